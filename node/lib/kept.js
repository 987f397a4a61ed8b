// SPDX-License-Identifier: Apache-2.0
/**
 * lib/kept.js - what a kept shell and a kept Python have in common: a process in a jar that answers one request after the other
 *
 * Over one stream no descriptors can be passed, so the process has nothing but its standard streams: requests come on stdin, and the end of an
 * answer is a mark in stdout and in stderr, each written after everything else:
 *
 *     NUL, a word of 128 random bits, the number of the request, a number, NUL
 *
 * Then the output of a request has arrived whole. The process keeps copies of its streams for that, which what it starts does not inherit. No output
 * can hit the mark by chance or by trying; code that searches the memory or the descriptors of its own process can. It can forge its own
 * answers by that, as it can anyway, and nothing else. A mark ends with a NUL, so redaction never holds it back.
 *
 * Between requests nothing is read: what a background process writes waits, and belongs to the next request.
 */

import { randomBytes } from 'node:crypto';
import { constants } from 'node:os';

import { asyncDispose } from './dispose.js';
import { CallEnded, EngineError, PolicyError, ResultError } from './errors.js';
import { currentDirectory, keysOf, normalKeys } from './policy.js';
import { Request } from './request.js';
import { describe } from './result.js';
import { Live } from './run.js';
import { parseDuration, parseSize } from './values.js';

const DEFAULTS = { timeout: 30, grace: 3, output: 100 << 10 };
// The engine does these with the output of a run, and a run has many requests here.
const NOT_HERE = ['keep', 'overflow'];
const MAX_MARK_BYTES = 64;
const START_SECONDS = 60;
const MAX_TIMER_MS = 0x7fffffff;

/** What a request has written to one stream, and the mark that ends it. */
class Scanner {
  #word;
  #hasBody;
  #parts = [];
  #rest = Buffer.alloc(0);
  #mark;
  /** {number, value, body} when the mark, and what belongs to it, has been read. */
  found;

  constructor(word, hasBody) {
    this.#word = Buffer.from(`\0${word} `);
    this.#hasBody = hasBody;
  }

  /** Bytes of the stream. `keep(data)`: how much of some output is kept. Gives what is left behind the end. */
  feed(data, number, maxBody, keep) {
    let all = this.#rest.length > 0 ? Buffer.concat([this.#rest, data]) : data;
    this.#rest = Buffer.alloc(0);
    while (this.found === undefined) {
      if (this.#mark === undefined) {
        const at = all.indexOf(this.#word);
        const end = at < 0 ? all.length - this.#partial(all) : at;
        this.#keep(keep(all.subarray(0, end)));
        all = all.subarray(end);
        if (at < 0) break;
        const stop = all.indexOf(0, this.#word.length);
        if (stop < 0 && all.length <= MAX_MARK_BYTES) break;
        const words = /^([0-9]{1,15}) ([0-9]{1,15})( bash| sh)?$/.exec(all.toString('latin1', this.#word.length, stop));
        if (words === null) throw new ResultError('the answer is malformed: a command has written to it');
        all = all.subarray(stop + 1);
        // One for an earlier request is repeated by some shells.
        if (Number(words[1]) !== number) continue;
        this.#mark = { value: Number(words[2]), more: words[3] ?? '' };
        if (this.#hasBody && this.#mark.value > maxBody) throw new ResultError(`the answer has ${this.#mark.value} bytes, more than ${maxBody}`);
      }
      const size = this.#hasBody ? this.#mark.value : 0;
      this.#body.push(all.subarray(0, size - this.#bodyBytes));
      all = all.subarray(this.#body.at(-1).length);
      this.#bodyBytes += this.#body.at(-1).length;
      if (this.#bodyBytes < size) return all;
      this.found = { ...this.#mark, body: Buffer.concat(this.#body) };
    }
    if (this.found !== undefined) return all;
    this.#rest = all;
    return Buffer.alloc(0);
  }

  #body = [];
  #bodyBytes = 0;

  #keep(data) {
    if (data.length > 0) this.#parts.push(data);
  }

  /** Bytes at the end that a mark could begin with. */
  #partial(all) {
    for (let size = Math.min(this.#word.length - 1, all.length); size > 0; size--) {
      if (all.subarray(all.length - size).equals(this.#word.subarray(0, size))) return size;
    }
    return 0;
  }

  text() {
    return Buffer.concat(this.#parts).toString('utf8');
  }

  begin() {
    this.found = this.#mark = undefined;
    this.#parts = [];
    this.#body = [];
    this.#bodyBytes = 0;
  }
}

/** A process in a jar that keeps its state. */
export class Kept {
  #live;
  #scanners;
  #waiting = [];
  #busy;
  #turn = Promise.resolve();
  #number = 0;
  #closing;
  #why;
  #name;
  #jar;

  /** settings: seconds of timeout and grace, bytes of output; ceiling: the most seconds that a request can have. */
  constructor(name, jar, live, word, settings, hasBody) {
    this.#name = name;
    this.#jar = jar;
    this.#live = live;
    this.settings = settings;
    this.#scanners = { stdout: new Scanner(word, hasBody), stderr: new Scanner(word, false) };
    live.onPiece = (stream, data) => {
      this.#waiting.push([stream, data, data.length + 8]);
      this.#read();
    };
    live.result.then(
      (result) => this.#end(new CallEnded(`the ${name} has ended: ${describe(result)}`, { result })),
      (error) => this.#end(error),
    );
  }

  static async open(name, jar, argv, options, env, hasBody, begin) {
    const { onAsk, ...own } = options ?? {};
    const keys = normalKeys(own);
    for (const key of NOT_HERE) if (key in keys) throw new PolicyError(`${name} does not take '${key}'`);
    const policyKeys = { ...(await keysOf(jar.policy.policy, currentDirectory())), ...normalKeys(jar.policy.keys) };
    const valueOf = (key) => keys[key] ?? policyKeys[key] ?? DEFAULTS[key];
    // What was given for the jar is a ceiling for each request.
    const most = (key, parse) => (policyKeys[key] === undefined || policyKeys[key] === null ? Infinity : parse(policyKeys[key], key));
    const ceiling = most('timeout', parseDuration);
    const isOutputGiven = [keys, policyKeys].some(({ output }) => output !== undefined && output !== null);
    const settings = {
      ceiling,
      isOutputGiven,
      timeout: Math.min(ceiling, keys.timeout === null ? Infinity : parseDuration(valueOf('timeout'), 'timeout')),
      grace: Math.min(ceiling === Infinity ? Infinity : parseDuration(policyKeys.grace ?? DEFAULTS.grace, 'grace'), most('grace', parseDuration), parseDuration(valueOf('grace'), 'grace')),
      output: Math.min(most('output', parseSize), keys.output === null ? Infinity : parseSize(valueOf('output'), 'output')),
    };
    const { timeout: _timeout, output: _output, ...more } = keys;
    const request = new Request(argv, { ...more, env: { ...keys.env, ...env }, onAsk, stdin: 'pipe' }, true);
    request.run.cells = true;
    request.args = argv.slice(0, 1); // the rest says nothing to a reader
    const word = randomBytes(16).toString('hex');
    const live = new Live(request, jar.join(request));
    const made = new this(name, jar, live, word, settings, hasBody);
    try {
      await live.started;
      const first = await made.exchange(begin(word), { timeout: START_SECONDS, number: 0, isStart: true });
      if (first.ended !== undefined) throw new CallEnded(`the ${name} did not start: ${first.ended.message}`, { result: first.ended.result });
      return { kept: made, first };
    } catch (error) {
      await made.close();
      throw error;
    }
  }

  get isOpen() {
    return this.#closing === undefined && this.#why === undefined;
  }

  /** Requests take turns. */
  inTurn(action) {
    const mine = this.#turn.then(action);
    this.#turn = mine.then(() => {}, () => {});
    return mine;
  }

  /** Send a request and wait for the end of its answer: {stdout, stderr, mark, isLate, wasInterrupted, truncated}. */
  async exchange(text, { timeout = this.settings.timeout, signal, number = ++this.#number, maxBody = 1024, isStart = false } = {}) {
    if (this.#closing !== undefined) throw new EngineError(`the ${this.#name} is closed`);
    if (this.#why !== undefined) throw this.#ended();
    signal?.throwIfAborted();
    const busy = { number, maxBody, room: this.settings.output, isLate: false, wasInterrupted: false, truncated: false };
    const done = new Promise((resolve, reject) => Object.assign(busy, { resolve, reject }));
    for (const scanner of Object.values(this.#scanners)) scanner.begin();
    this.#busy = busy;
    this.#live.channel.hold();
    const abort = () => this.#abort(busy);
    const onAbort = () => {
      busy.failure ??= { error: signal.reason };
      abort();
    };
    signal?.addEventListener('abort', onAbort, { once: true });
    const onTime = () => {
      busy.isLate = true;
      abort();
    };
    if (!isStart) timeout = Math.min(timeout, this.settings.ceiling);
    busy.seconds = timeout;
    if (timeout < Infinity) busy.timer = setTimeout(onTime, Math.min(timeout * 1000, MAX_TIMER_MS));
    try {
      this.#live.channel.write(Buffer.from(typeof text === 'function' ? text(number) : text, 'utf8'));
      this.#read();
      await done;
    } finally {
      clearTimeout(busy.timer);
      signal?.removeEventListener('abort', onAbort);
      this.#busy = undefined;
      this.#live.channel.release();
    }
    if (busy.failure !== undefined) throw busy.failure.error;
    const { stdout, stderr } = this.#scanners;
    const answer = { stdout: stdout.text(), stderr: stderr.text(), mark: stdout.found, number, ended: busy.ended, ...busy };
    return { ...answer, risky: isStart ? [] : await this.#look(busy.ended) };
  }

  /** What was changed since the last search that other programs execute or obey. */
  async #look(ended) {
    if (ended !== undefined) return ended.result?.risky ?? [];
    try {
      return await this.#jar.lookForNew();
    } catch (error) {
      return [{ path: this.#jar.workdir, why: `Belljar could not search it: ${error.message}` }];
    }
  }

  /** First SIGINT, and the state stays; after the grace SIGKILL. */
  #abort(busy) {
    if (busy !== this.#busy) return;
    clearTimeout(busy.timer);
    if (busy.isAborting) {
      // What the command says as it is killed is no answer: the shell goes with it.
      busy.isKilled = true;
      return this.#kill();
    }
    busy.isAborting = true;
    this.#live.channel.signal(constants.signals.SIGINT);
    busy.timer = setTimeout(() => this.#abort(busy), this.settings.grace * 1000);
  }

  #kill() {
    this.#live.channel.cancel();
    this.#live.channel.cancel();
  }

  /** Read what has come, as long as somebody waits for it. */
  #read() {
    while (this.#busy !== undefined && this.#waiting.length > 0) {
      const busy = this.#busy;
      const [stream, data, size] = this.#waiting.shift();
      const scanner = this.#scanners[stream];
      if (scanner.found !== undefined) {
        // Behind the end of this request. The other stream may be what we wait for.
        busy.behind ??= [];
        busy.behind.push([stream, data, size]);
        continue;
      }
      try {
        const rest = scanner.feed(data, busy.number, busy.maxBody, (output) => this.#room(busy, output));
        if (rest.length > 0) (busy.behind ??= []).push([stream, rest, 0]);
      } catch (error) {
        this.#why = new CallEnded(`the ${this.#name} was ended: ${error.message}`);
        this.#kill();
        busy.reject(error);
        this.#busy = undefined;
      }
      this.#live.channel.consumed(size);
      if (this.#scanners.stdout.found !== undefined && this.#scanners.stderr.found !== undefined && !busy.isKilled) {
        this.#waiting.unshift(...(busy.behind ?? []));
        this.#busy = undefined;
        busy.resolve();
      }
    }
  }

  #room(busy, output) {
    const kept = output.subarray(0, busy.room);
    busy.room -= kept.length;
    if (kept.length < output.length) busy.truncated = true;
    return kept;
  }

  #end(why) {
    this.#why ??= why;
    const busy = this.#busy;
    if (busy === undefined) return;
    busy.ended = why;
    if (why instanceof CallEnded) busy.resolve();
    else busy.reject(why);
  }

  #ended() {
    const why = this.#why;
    return why instanceof CallEnded ? new CallEnded(why.message, { result: why.result }) : why;
  }

  /** SIGINT to what runs now; nothing if nothing runs. The state stays. */
  interrupt() {
    if (this.#busy === undefined) return;
    this.#busy.wasInterrupted = true;
    this.#live.channel.signal(constants.signals.SIGINT);
  }

  /** End it, with all that it has started, and wait until nothing is left. May be called again. */
  close() {
    this.#closing ??= (async () => {
      this.#live.channel.hold();
      this.#kill();
      this.#live.onPiece = (_stream, data) => this.#live.channel.consumed(data.length + 8);
      for (const [, , size] of this.#waiting.splice(0)) this.#live.channel.consumed(size);
      await this.#live.result.catch(() => {});
    })();
    return this.#closing;
  }

  [asyncDispose]() {
    return this.close();
  }
}
