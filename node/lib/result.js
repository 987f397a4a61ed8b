// SPDX-License-Identifier: Apache-2.0
/**
 * lib/result.js - how a run ended
 *
 * The result is the document of `belljar run --json`, with its keys. What JavaScript adds has names as JavaScript has them.
 */

import { constants } from 'node:os';

import { EngineError, failure, RunError, RunTimeout } from './errors.js';
import { Kind } from './frames.js';

const ENOENT = 2;
const STATUS_OF_OUTCOME = { timeout: 124, cpu: 137, memory: 137, disk: 137, output: 137, net: 137 };
const NO_CUT = [0, 0];
const STREAMS = { 1: 'stdout', 2: 'stderr' };

/** How a run ended, and why. Frozen. */
export class Result {
  constructor(answer, args, stdout, stderr) {
    const { cut: _, ...members } = answer;
    Object.assign(this, { args }, members, { stdout, stderr });
    Object.freeze(this);
  }

  /** Whether the command ended by itself, with exit status 0. */
  get ok() {
    return this.outcome === 'exited' && this.exit_code === 0;
  }

  /** The exit status that `belljar run` would have, as a shell shows it: 128 + n for a signal n, 124 for a timeout ... */
  get shellStatus() {
    if (this.exit_code !== null) return this.exit_code;
    const stage = this.error?.stage;
    if (this.outcome === 'signaled') return 128 + signalNumber(this.signal ?? 'SIGKILL');
    if (this.outcome === 'cancelled' && stage !== 'output') return 128 + constants.signals.SIGTERM;
    if (this.outcome === 'failed' && stage === 'exec') return this.error.errno === ENOENT ? 127 : 126;
    return STATUS_OF_OUTCOME[this.outcome] ?? 125;
  }

  /** Itself, if `ok`; else RunTimeout or RunError is thrown. */
  check() {
    if (this.ok) return this;
    throw new (this.outcome === 'timeout' ? RunTimeout : RunError)(explain(this), { result: this });
  }

  /** The document of `belljar run --json`. Bytes are given as text, and exactly in stdout_base64 and stderr_base64. */
  toJSON() {
    const data = { ...this };
    for (const name of ['stdout', 'stderr']) {
      const value = data[name];
      if (value instanceof Uint8Array) {
        data[name] = Buffer.from(value).toString('utf8');
        data[`${name}_base64`] = Buffer.from(value).toString('base64');
      }
    }
    return data;
  }
}

/** 15 for "SIGTERM" or 15. */
export function signalNumber(signal) {
  if (Number.isInteger(signal) && signal >= 1 && signal <= 64) return signal;
  if (Object.hasOwn(constants.signals, signal)) return constants.signals[signal];
  const realTime = /^SIGRTMIN\+(\d{1,2})$/.exec(signal);
  if (realTime !== null && Number(realTime[1]) <= 30) return 34 + Number(realTime[1]);
  throw new TypeError(`no signal is called ${signal}`);
}

/** Why a run was not a success, in a few words. */
export function describe(result) {
  const command = result.args[0] ?? 'the command';
  if (result.outcome === 'exited') return `'${command}' ended with exit status ${result.exit_code}`;
  if (result.outcome === 'signaled') return `'${command}' was ended by ${result.signal}`;
  if (result.outcome === 'cancelled') return `'${command}' was cancelled`;
  const name = { cpu: 'cpu_time', net: 'net_bytes' }[result.outcome] ?? result.outcome;
  const hit = result.limits_hit.find((entry) => entry.name === name);
  return `'${command}' was ended by the limit '${name}'${hit === undefined ? '' : ` of ${amount(name, hit.limit)}`}`;
}

// From large to small, as the engine writes them: the largest unit that divides the number.
const DURATIONS = [['h', 3_600_000], ['m', 60_000], ['s', 1000], ['ms', 1]];
const SIZES = [['T', 2 ** 40], ['G', 2 ** 30], ['M', 2 ** 20], ['K', 2 ** 10], ['', 1]];
const COUNTS = [['', 1]];

/** A limit of `limits_hit` as policies write it: "2s", "100M", "64". */
export function amount(name, number) {
  const isTime = name === 'timeout' || name === 'cpu_time';
  const units = isTime ? DURATIONS : ['pids', 'fds', 'net_connections'].includes(name) ? COUNTS : SIZES;
  const [unit, factor] = units.find(([, size]) => number % size === 0 && (number !== 0 || size === 1));
  return `${number / factor}${unit}`;
}

/** The same; and of a command that ended by itself the first thing that it was refused: it may have failed for that. */
function explain(result) {
  const isOwnEnd = result.outcome === 'exited' || result.outcome === 'signaled';
  const refused = isOwnEnd ? result.denied?.find((entry) => entry.sentence) : undefined;
  return refused === undefined ? describe(result) : `${describe(result)}. ${refused.sentence}`;
}

/** Puts the result of a run together from its frames. */
export class Collector {
  #args;
  #text;
  #isCaptured;
  #captured = { stdout: [], stderr: [] };

  constructor(args, text, isCaptured) {
    this.#args = args;
    this.#text = text;
    this.#isCaptured = isCaptured;
  }

  /** A piece of output: its stream and bytes. */
  static piece(payload) {
    return [STREAMS[payload[0]], payload.subarray(8)];
  }

  capture(payload) {
    const [stream, data] = Collector.piece(payload);
    this.#captured[stream].push(data);
  }

  /** cut: where the cap went through a character, and how many bytes of it are there; as text, they are nothing. */
  #stream(name, [start, count], answer) {
    if (!this.#isCaptured) return null;
    const all = Buffer.concat(this.#captured[name]);
    if (!this.#text) return all;
    const whole = count > 0 ? Buffer.concat([all.subarray(0, start), all.subarray(start + count)]) : all;
    const text = whole.toString('utf8');
    if (text.includes('\ufffd') && !Buffer.from(text).equals(whole)) answer.encoding = 'utf-8-lossy';
    return text;
  }

  /** The result from the last frame; if the run never started, the reason is thrown. */
  finish(kind, payload) {
    const command = this.#args[0] ?? '';
    const answer = JSON.parse(payload);
    if (kind === Kind.FAILED) throw failure(answer.error, answer.missing, null, command);
    if (kind !== Kind.RESULT) throw new EngineError(`the engine answered a run with a frame of type ${kind}`);
    const stdout = this.#stream('stdout', answer.cut?.stdout ?? NO_CUT, answer);
    const stderr = this.#stream('stderr', answer.cut?.stderr ?? NO_CUT, answer);
    const result = new Result(answer, this.#args, stdout, stderr);
    if (result.outcome === 'failed') throw failure(result.error, result.missing, result, command);
    return result;
  }
}
