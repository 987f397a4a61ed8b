// SPDX-License-Identifier: Apache-2.0
/**
 * lib/call.js - call(): a function of a module, in a jar, with data in and data out
 *
 * Each call has a jar and a process of its own, so nothing of one call is left for the next. Starting node takes tens of milliseconds; so a pool
 * keeps processes ready, with its modules loaded, which wait for a call (`held` in docs/protocol.md: their time begins with it).
 *
 * The answer is a file in the jar that the engine reads for us after the end of the run. So what the function prints is the run's output, with cap
 * and redaction as ever, and no print can be taken for an answer. What is in the file was written by an enemy: it is data within bounds, or
 * ResultError.
 */

import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import * as os from 'node:os';

import { NotData, packData, unpackData } from './data.js';
import { asyncDispose } from './dispose.js';
import { CallEnded, CallError, CallTimeout, EngineError, ResultError, SendError } from './errors.js';
import { Kind } from './frames.js';
import { Jar } from './jar.js';
import { checkKeys, checkPolicy } from './keys.js';
import { checkReadOnly, fileOf, partsOf, urlOf } from './modules.js';
import { currentDirectory, keysOf, normalKeys } from './policy.js';
import { Request } from './request.js';
import { describe } from './result.js';
import { deliver, Live } from './run.js';
import { parseSize } from './values.js';

const MAX_RESULT = 64 << 20;
const IDLE_MS = 30_000;
const MAX_POOLS = 4;
const NODE = process.versions.bun || process.versions.deno ? 'node' : process.execPath;

let text;

function bootText() {
  text ??= ['data.js', 'inside.js']
    .map((name) => readFileSync(new URL(name, import.meta.url), 'utf8'))
    .join('\n')
    .replace(/^import .* from '\.\/data\.js';$/m, '')
    .replace(/^export /gm, '');
  return text;
}

/** Where the process of a call can leave its answer. Private to the jar: on the rung landlock it has no fixed name. */
async function answerFolder(jar) {
  return jar.rung === 'namespace' ? '/tmp' : (await jar.run(['/bin/sh', '-c', 'printf %s "$TMPDIR"'])).stdout;
}

/** A process in a jar that makes one call, now or later. */
class Caller {
  constructor(jar, live, folder) {
    this.jar = jar;
    this.live = live;
    this.folder = folder;
  }

  static async start(jar, node, preload, options, maxBytes, isHeld) {
    const folder = await answerFolder(jar);
    const argv = [node, '--input-type=module', '--eval', bootText(), JSON.stringify({ preload, maxBytes })];
    const request = new Request(argv, { ...options, stdin: 'pipe', capture: true }, true);
    Object.assign(request.run, { held: isHeld, open_ended: false, started: false });
    request.args = [node];
    const live = new Live(request, jar.join(request));
    live.channel.release();
    return new Caller(jar, live, folder);
  }

  get isFit() {
    return this.jar.isOpen && !this.live.channel.isOver;
  }

  /** The value, and where the answer lay. */
  async call(call, isHeld, onOutput, signal, maxResult, answer = `${this.folder}/belljar-${randomBytes(8).toString('hex')}`) {
    const { channel } = this.live;
    if (onOutput !== undefined) deliver(this.live, onOutput);
    channel.hold();
    const onAbort = () => this.live.fail(signal.reason);
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      if (isHeld) channel.send(Kind.GO);
      channel.write(Buffer.from(packData({ ...call, answer }), 'utf8')).then(() => channel.endData());
      const result = await this.live.result;
      return await this.#read(result, answer, maxResult);
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  }

  async #read(result, path, maxResult) {
    if (result.outcome === 'timeout') throw new CallTimeout(describe(result), { result });
    if (!result.ok) throw new CallEnded(`the function's process ended without a result: ${describe(result)}`, { result });
    let bytes;
    try {
      bytes = await this.jar.readFile(path, { maxBytes: maxResult });
    } catch (error) {
      if (error.code === 'EFBIG') throw new ResultError(`the result has more than ${maxResult} bytes`, { result });
      if (typeof error.errno !== 'number') throw error;
      throw new CallEnded("the function's process ended without a result", { result });
    }
    return valueOf(bytes, result);
  }

  drop() {
    this.live.channel.close();
    return this.jar.close();
  }
}

/** A call as it is sent, if its arguments are data. */
function callOf(file, name, args) {
  if (!Array.isArray(args)) throw new TypeError('args must be a list of arguments');
  const call = { module: urlOf(file), name: String(name), args };
  try {
    packData(call);
  } catch (error) {
    if (error instanceof NotData) throw new SendError(`the arguments cannot be sent: ${error.message.replace('$["args"]', '$')}`);
    throw error;
  }
  return call;
}

/** Call a function of a module in a jar that is there already, over its files, in a process of its own. */
export async function callInJar(jar, module, name, args = [], { onOutput, maxResult = MAX_RESULT, signal, importPaths = [], node = NODE, ...keys } = {}) {
  signal?.throwIfAborted();
  const maxBytes = parseSize(maxResult, 'maxResult');
  const file = fileOf(module);
  const call = callOf(file, name, args);
  const jarKeys = { ...(await keysOf(jar.policy.policy, currentDirectory())), ...normalKeys(jar.policy.keys) };
  // Without a word about it the jar has the current directory as its workdir, and can write there.
  checkReadOnly(file, 'workdir' in jarKeys ? jarKeys : { ...jarKeys, workdir: jar.workdir }, importPaths);
  const caller = await Caller.start(jar, node, [], keys, maxBytes, false);
  const answer = `${caller.folder}/belljar-${randomBytes(8).toString('hex')}`;
  try {
    return await caller.call(call, false, onOutput, signal, maxBytes, answer);
  } catch (error) {
    if (error instanceof SendError && error.hint === null) throw new SendError(error.message, { result: error.result, hint: 'a jar sees only what it was opened with: name the module\'s directory in `ro`' });
    throw error;
  } finally {
    await jar.remove(answer).catch(() => {});
  }
}

/** The value in an answer. */
function valueOf(bytes, result) {
  let answer;
  try {
    answer = unpackData(bytes);
  } catch (error) {
    throw new ResultError(`the answer is malformed: ${error.message}`, { result });
  }
  const { kind, value, typeName, message, traceback } = answer ?? {};
  if (kind === 'value') return value;
  if (kind === 'not data' && typeof message === 'string') throw new ResultError(`the function did not return data: ${message.replace('$["value"]', '$')}`, { result });
  if ([typeName, message, traceback].every((part) => typeof part === 'string')) {
    const parts = { typeName, originalMessage: message, traceback, result };
    if (kind === 'raised') throw new CallError(`${typeName}: ${message}`, parts);
    if (kind === 'not made') throw new SendError(`the jar cannot load the function: ${typeName}: ${message}`, { result });
  }
  throw new ResultError('the answer is malformed: it does not answer a call', { result });
}

/** Processes that are ready for calls, in jars that are made alike. */
export class Pool {
  #files = new Set();
  #importPaths;
  #policy;
  #keys;
  #node;
  #ready;
  #concurrency;
  #waiting = [];
  #running = 0;
  #warm = [];
  #making = 0;
  #timer;
  #isClosed = false;
  #policyKeys;
  #onAsk;

  constructor({ preload = [], concurrency = os.availableParallelism?.() ?? os.cpus().length, ready = 1, importPaths = [], node = NODE, policy, onAsk, ...keys } = {}) {
    if (!Number.isInteger(concurrency) || concurrency < 1) throw new RangeError('concurrency must be a whole number of 1 or more');
    if (!Number.isInteger(ready) || ready < 0) throw new RangeError('ready must be a whole number of 0 or more');
    if (!Array.isArray(preload)) throw new TypeError('preload must be a list of modules');
    this.#importPaths = importPaths;
    this.#policy = policy;
    this.#onAsk = onAsk;
    this.#keys = normalKeys(keys);
    const { ttl: _ttl, ...policyKeys } = this.#keys;
    checkPolicy(policy);
    checkKeys(policyKeys); // now, not when the first call makes a jar
    this.#concurrency = concurrency;
    this.#ready = ready;
    this.#node = node;
    for (const module of preload) this.#files.add(fileOf(module));
  }

  /** Jar keys: the pool's own, and what its modules need. */
  async #jarKeys() {
    this.#policyKeys ??= keysOf(this.#policy, currentDirectory());
    const policyKeys = await this.#policyKeys;
    const keys = { ...this.#keys };
    if (!('workdir' in keys) && !('workdir' in policyKeys)) keys.workdir = null;
    const all = { ...policyKeys, ...keys, rw: [...(policyKeys.rw ?? []), ...(keys.rw ?? [])] };
    const parts = new Set();
    for (const file of this.#files) {
      checkReadOnly(file, all, this.#importPaths);
      for (const part of partsOf(file)) parts.add(part);
    }
    if (this.#node.startsWith('/') && !/^\/(usr|opt|bin)\//.test(this.#node)) parts.add(this.#node);
    const shown = [...parts].map((path) => ({ path }));
    return { ...keys, ro: [...(keys.ro ?? []), ...shown] };
  }

  async #make({ onAsk = this.#onAsk, ...options }, maxBytes, isHeld) {
    const jar = await Jar.open({ policy: this.#policy, onAsk, ...(await this.#jarKeys()) });
    try {
      return await Caller.start(jar, this.#node, [...this.#files].map(urlOf), options, maxBytes, isHeld);
    } catch (error) {
      await jar.close();
      throw error;
    }
  }

  #refill() {
    while (!this.#isClosed && this.#warm.length + this.#making < this.#ready) {
      this.#making++;
      this.#make({}, MAX_RESULT, true)
        .then(
          (made) => (this.#isClosed ? made.drop() : this.#warm.push(made)),
          () => {}, // whoever calls next hears of it
        )
        .finally(() => this.#making--);
    }
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#drop(), IDLE_MS);
    this.#timer.unref();
  }

  #drop() {
    return Promise.all(this.#warm.splice(0).map((warm) => warm.drop()));
  }

  /** Call the function `name` of a module with these arguments, in a jar. */
  async call(module, name, args = [], options = {}) {
    const { onOutput, maxResult = MAX_RESULT, signal, ...keys } = options;
    if (this.#isClosed) throw new EngineError('the pool is closed');
    signal?.throwIfAborted();
    const maxBytes = parseSize(maxResult, 'maxResult');
    const file = fileOf(module);
    const call = callOf(file, name, args);
    if (!this.#files.has(file)) {
      this.#files.add(file);
      await this.#drop();
    }
    await this.#enter();
    try {
      // A process that waits was started with the pool's own settings.
      const isPlain = Object.keys(keys).length === 0 && maxBytes === MAX_RESULT;
      let warm;
      while (isPlain && warm === undefined && this.#warm.length > 0) {
        const found = this.#warm.shift();
        if (found.isFit) warm = found;
        else await found.drop();
      }
      const isHeld = warm !== undefined;
      warm ??= await this.#make(keys, maxBytes, false);
      try {
        return await warm.call(call, isHeld, onOutput, signal, maxBytes);
      } finally {
        warm.jar.close(); // nobody waits for it, but the program does not end before
      }
    } finally {
      this.#leave();
      this.#refill(); // afterwards: the start of another process would slow this one down
    }
  }

  /** The values of the function for each of the items, in order; as many at once as the pool allows. The first error ends it, and so does leaving the loop. */
  async *map(module, name, items, { signal, ...options } = {}) {
    const stop = new AbortController();
    const onAbort = () => stop.abort(signal.reason);
    const calls = [];
    const source = items[Symbol.asyncIterator]?.() ?? items[Symbol.iterator]();
    let hasMore = true;
    signal?.throwIfAborted();
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      for (;;) {
        while (hasMore && calls.length < this.#concurrency) {
          const { done, value } = await source.next();
          hasMore = !done;
          if (done) break;
          const made = this.call(module, name, [value], { ...options, signal: stop.signal });
          made.catch(() => {}); // it is told when its turn comes
          calls.push(made);
        }
        if (calls.length === 0) return;
        yield await calls.shift();
      }
    } finally {
      signal?.removeEventListener('abort', onAbort);
      stop.abort();
      if (hasMore) await source.return?.();
      await Promise.allSettled(calls);
    }
  }

  async #enter() {
    if (this.#running < this.#concurrency) {
      this.#running++;
      return;
    }
    await new Promise((resolve) => this.#waiting.push(resolve));
  }

  #leave() {
    const next = this.#waiting.shift();
    if (next === undefined) this.#running--;
    else next();
  }

  /** Calls that go on come to their end; nothing is kept ready any more. */
  async close() {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#drop();
  }

  [asyncDispose]() {
    return this.close();
  }
}

const pools = new Map();

/** Call a function of a module in a jar of its own, under the default policy. For other policies there is Pool. */
export async function call(module, name, args, options) {
  const file = fileOf(module);
  let pool = pools.get(file);
  pools.delete(file);
  pool ??= new Pool({ preload: [file] });
  pools.set(file, pool);
  for (const [oldest, unused] of pools) {
    if (pools.size <= MAX_POOLS) break;
    pools.delete(oldest);
    unused.close();
  }
  return pool.call(file, name, args, options);
}
