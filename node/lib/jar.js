// SPDX-License-Identifier: Apache-2.0
/**
 * lib/jar.js - Jar: a jar that stays open for many runs over the same private files
 */

import { callInJar } from './call.js';
import { connect } from './connect.js';
import { asyncDispose } from './dispose.js';
import { open } from './engine.js';
import { EngineError, failure } from './errors.js';
import * as files from './files.js';
import { Kind } from './frames.js';
import { begin } from './process.js';
import { Interpreter } from './python.js';
import { jarMembers, Request } from './request.js';
import { signalNumber } from './result.js';
import { finish } from './run.js';
import { Shell } from './shell.js';
import { exportTar, importTar } from './tar.js';
import { watch } from './watch.js';
import { Decisions } from './workspace.js';

// A jar that nobody can reach any more is closed.
const forgotten = new FinalizationRegistry((channel) => {
  if (channel.isOver) return;
  process.emitWarning('a belljar Jar was never closed; it is closed now', 'ResourceWarning');
  channel.close();
});

/** A jar that stays open for many runs, one after the other or at the same time, over the same files. */
export class Jar {
  #channel;
  #members;
  #facts;
  #closing;
  #risky = [];
  #why;
  #onAsk;

  /** Use Jar.open(). */
  constructor(channel, members, facts, policy) {
    if (channel?.ask === undefined) throw new TypeError('a Jar is opened with await Jar.open()');
    this.#channel = channel;
    this.#members = members;
    this.#facts = facts;
    this.policy = policy;
    // Not this jar in these functions: it would never be forgotten.
    const end = { why: null };
    this.#why = end;
    channel.onFrame = (kind, payload) => {
      if (kind !== Kind.FAILED) return;
      const answer = JSON.parse(payload);
      end.risky = answer.risky;
      end.why = new EngineError(answer.error.message, { hint: answer.error.hint });
    };
    channel.onEnd = (error) => {
      end.why ??= error ?? null;
      end.onEnd?.();
    };
    forgotten.register(this, channel, this);
  }

  /** Open a jar. `ttl`: after so long it is closed by itself. `onAsk` answers for runs that have none of their own. The other options are policy keys. */
  static async open(options = {}) {
    const { policy, ttl, onAsk, ...keys } = options;
    if (onAsk !== undefined) keys.ask ??= 'net';
    return this.#begin(jarMembers(policy, keys, ttl), Object.freeze({ policy, keys: Object.freeze(keys) }), onAsk);
  }

  static async #begin(members, policy, onAsk) {
    const channel = open(Kind.OPEN, members);
    channel.hold();
    const facts = await new Promise((resolve, reject) => {
      channel.onFrame = (kind, payload) => {
        const answer = JSON.parse(payload);
        if (kind === Kind.OPENED) resolve(answer);
        else reject(kind === Kind.FAILED ? failure(answer.error, answer.missing) : new EngineError(`the engine sent a frame of type ${kind} when a jar was opened`));
      };
      channel.onEnd = (error) => reject(error ?? new EngineError('the engine closed the channel without an answer'));
    });
    channel.release();
    const made = new this(channel, members, facts, policy);
    made.#onAsk = onAsk;
    return made;
  }

  get rung() {
    return this.#facts.rung;
  }

  get enforced() {
    return this.#facts.enforced;
  }

  get missing() {
    return this.#facts.missing;
  }

  /** What its processes changed that other programs obey: as far as the last look() saw, and all of it once it has ended. */
  get risky() {
    return this.#why.risky ?? this.#risky;
  }

  /** Search now, and give `risky`: also what a process that lives on has left. */
  async look() {
    await this.lookForNew();
    return this.risky;
  }

  /** What no result and no look had before: for the package's own use. */
  async lookForNew() {
    if (this.#facts.searched !== true) return [];
    const answer = await files.ask(this, Kind.LOOK, {}, 'look');
    this.#risky = answer.risky;
    return answer.new;
  }

  /** Limits of the jar, as the engine names them. */
  get limits() {
    return this.#facts.limits;
  }

  /** Where runs start, as seen inside. */
  get workdir() {
    return this.#facts.workdir;
  }

  /** For each port of `publish` the one of this host's 127.0.0.1 that leads to it. */
  get published() {
    return Object.fromEntries((this.#facts.published ?? []).map((entry) => [entry.port, entry.host_port]));
  }

  /** Whether runs can be started in it. */
  get isOpen() {
    return this.#closing === undefined && !this.#channel.isOver;
  }

  /** The channel for a request to this jar: for the package's own use. */
  ask(kind, members) {
    if (this.#closing !== undefined) throw new EngineError('the jar is closed');
    if (this.#channel.isOver) throw this.#why.why ?? new EngineError('the jar has ended');
    return this.#owned(this.#channel.ask(kind, members));
  }

  /** A jar is not forgotten while something in it is in use. */
  #owned(channel) {
    channel.owner = this;
    return channel;
  }

  /** Not made in the constructor: functions of one scope keep alive what any of them names. */
  get #decisions() {
    return new Decisions(
      (order) => this.ask(Kind.LAYER, order),
      (opened) => (this.#facts = opened),
    );
  }

  /** The channel of a run in this jar: for the package's own use. */
  join(request) {
    if (!this.isOpen) this.ask();
    request.answeredBy(this.#onAsk);
    return this.#owned(request.join(this.#channel, this.#members.environ));
  }

  /** run() in this jar. */
  async run(args, options) {
    return finish(new Request(args, options), (request) => this.join(request));
  }

  /** spawn() in this jar. */
  async spawn(args, options) {
    return begin(new Request(args, options, true), (request) => this.join(request));
  }

  /** Call a function of a module in this jar: over its files, and each time in a fresh process. */
  async call(module, name, args, options) {
    return callInJar(this, module, name, args, options);
  }

  /** A shell in this jar that keeps its directory, variables, functions and background jobs between commands. */
  async shell(options) {
    return Shell.open(this, options);
  }

  /** A Python in this jar that keeps its variables between cells. */
  async python(options) {
    return Interpreter.open(this, options);
  }

  async readFile(path, options) {
    return files.readFile(this, path, options);
  }

  async readTextFile(path, options) {
    return (await files.readFile(this, path, options)).toString('utf8');
  }

  async writeFile(path, data, options) {
    await files.writeFile(this, path, data, options);
  }

  createReadStream(path) {
    return files.createReadStream(this, path);
  }

  createWriteStream(path, options) {
    return files.createWriteStream(this, path, options);
  }

  async listFiles(path, options) {
    return files.listFiles(this, path, options);
  }

  async mkdir(path, options) {
    await files.mkdir(this, path, options);
  }

  async stat(path, options) {
    return files.stat(this, path, options);
  }

  async exists(path) {
    try {
      await files.stat(this, path, { follow: true });
      return true;
    } catch (error) {
      if (typeof error.errno === 'number') return false;
      throw error;
    }
  }

  async remove(path, options) {
    await files.remove(this, path, options);
  }

  async rename(from, to) {
    await files.rename(this, from, to);
  }

  exportTar(path = '.') {
    return exportTar(this, path);
  }

  async importTar(data, path = '.') {
    await importTar(this, data, path);
  }

  async watch(path) {
    return watch(this, path);
  }

  async connect(port) {
    return connect(this, port);
  }

  /** The processes that run in the jar now. */
  async processes() {
    const { processes } = await files.ask(this, Kind.PROCESSES, {}, 'processes');
    return processes.map(({ argv, started_ms: _, ...more }) => ({ ...more, args: argv }));
  }

  /** Send a signal to one process of the jar, by its number in processes(). */
  async kill(pid, signal = 'SIGTERM') {
    if (!Number.isInteger(pid) || pid < 2 || pid > 0x7fffffff) throw new RangeError(`no process of a jar has the number ${pid}`);
    await files.ask(this, Kind.KILL, { pid, signal: signal === 0 ? 0 : signalNumber(signal) }, 'kill');
  }

  /** Let the jar, which must have a gate, reach what a rule of `allow_net` names, from the next connection on. */
  async allowNet(rule) {
    await files.ask(this, Kind.NET, { op: 'allow', rule }, 'net');
  }

  /** Let it no longer reach what a rule names. Open connections to it are reset. */
  async denyNet(rule) {
    await files.ask(this, Kind.NET, { op: 'deny', rule }, 'net');
  }

  /** The workspace that it writes to, as the engine told it last; null: it has none. */
  get workspace() {
    return this.#facts.workspace ?? null;
  }

  /** What runs in this jar have changed so far. The jar goes on. */
  async diff(paths) {
    return this.#decisions.diff(paths);
  }

  async patch(paths) {
    return this.#decisions.patch(paths);
  }

  /** Put changes into the host's directory; then the jar begins afresh over what is left. So it does after the others. */
  async apply(paths, options) {
    return this.#decisions.apply(paths, options);
  }

  async discard(paths) {
    await this.#decisions.discard(paths);
  }

  async checkpoint(note) {
    return this.#decisions.checkpoint(note);
  }

  async rollback(checkpoint) {
    await this.#decisions.rollback(checkpoint);
  }

  /** So many jars that go on from here, each with a layer of its own. */
  async fork(count) {
    const ids = await this.#decisions.fork(count);
    const { policy, keys } = this.policy;
    const made = await Promise.allSettled(ids.map((id) => {
      const { workspace_name: _, ...more } = this.#members.keys;
      const own = { workspace: 'cow', ...(id === null ? {} : { workspace_name: id }) };
      const fixed = Object.freeze({ policy, keys: Object.freeze({ ...keys, workspace_name: undefined, ...own }) });
      return Jar.#begin({ ...this.#members, keys: { ...more, ...own } }, fixed, this.#onAsk);
    }));
    const failed = made.find(({ status }) => status === 'rejected');
    if (failed === undefined) return made.map(({ value }) => value);
    await Promise.all(made.map(({ value }) => value?.close()));
    throw failed.reason;
  }

  /** What the jar with all its runs uses; null: nobody counts it. */
  async usage() {
    return files.ask(this, Kind.USAGE, {}, 'usage');
  }

  /** Kill what is left in the jar and wait until it is gone. May be called again. */
  close() {
    this.#closing ??= new Promise((resolve) => {
      forgotten.unregister(this);
      if (this.#channel.isOver) return resolve();
      this.#channel.onFrame = (kind, payload) => {
        if ((kind === Kind.CLOSED || kind === Kind.FAILED) && payload.length > 0) this.#risky = JSON.parse(payload).risky ?? this.#risky;
      };
      this.#why.onEnd = resolve;
      this.#channel.hold();
      this.#channel.send(Kind.CLOSE);
    });
    return this.#closing;
  }

  [asyncDispose]() {
    return this.close();
  }
}
