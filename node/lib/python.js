// SPDX-License-Identifier: Apache-2.0
/**
 * lib/python.js - a Python process in a jar that keeps its variables between cells; lib/cell.py is its inside
 *
 * Nothing that comes from there is trusted: an answer is data within bounds, or the interpreter is ended with ResultError. How it
 * ended is what the engine says.
 */

import { readFileSync } from 'node:fs';

import { NotData, packData, unpackData } from './data.js';
import { asyncDispose } from './dispose.js';
import { CallEnded, CallError, CallTimeout, EngineError, ResultError, SendError } from './errors.js';
import { Kept } from './kept.js';
import { parseDuration } from './values.js';

const MAX_ANSWER_BYTES = 64 << 20;
// Tagged data, words of an exception, or a list of variables: nothing else.
const isText = (value) => typeof value === 'string';

let source;

/** What came of a cell. */
class Cell {
  constructor(parts) {
    Object.assign(this, parts);
    Object.freeze(this);
  }

  get ok() {
    return this.error === null;
  }

  /** The cell itself; CallError, CallTimeout or CallEnded if it has an error. */
  check() {
    if (this.error === null) return this;
    const { kind, typeName, message, traceback, result } = this.error;
    const made = { timeout: CallTimeout, ended: CallEnded }[kind] ?? CallError;
    throw new made(`${typeName}: ${message}`, { typeName, originalMessage: message, traceback, result });
  }
}

function malformed(why) {
  return new ResultError(`the answer is malformed: ${why}`);
}

function parse(body) {
  let answer;
  try {
    answer = unpackData(body);
  } catch (error) {
    throw malformed(error.message);
  }
  if (answer === null || typeof answer !== 'object' || Array.isArray(answer)) throw malformed('it is not an object');
  const { error, text } = answer;
  if (error !== undefined && !(error !== null && isText(error.type) && isText(error.message) && isText(error.traceback))) {
    throw malformed('an exception without its parts');
  }
  if (text !== undefined && !isText(text)) throw malformed('a value that is neither data nor text');
  return answer;
}

function checkName(name) {
  if (typeof name !== 'string' || !/^[\p{ID_Start}_][\p{ID_Continue}]*$/u.test(name)) throw new TypeError(`${String(name)} is not the name of a variable`);
}

const isTooLong = (text, most) => Buffer.byteLength(text) > most;

/** The bytes of a value as it comes from the jar; of text those of UTF-8. */
function sizeOf(value) {
  return Buffer.byteLength(isText(value) ? value : (packData(value) ?? ''));
}

/** The beginning of a text that is too long, or its end: no character is cut in two. */
function part(text, most, isEnd = false) {
  const bytes = Buffer.from(text);
  if (bytes.length <= most) return text;
  return (isEnd ? bytes.subarray(bytes.length - most) : bytes.subarray(0, most)).toString().replace(isEnd ? /^\uFFFD+/ : /\uFFFD+$/, '');
}

/** The members of a cell with no more in each than the limit of output allows: of the value the beginning of its text is left. */
function held(cell, most) {
  if (most === Infinity) return cell;
  const made = { ...cell };
  if (cell.value !== null && sizeOf(cell.value) > most) {
    made.value = part(isText(cell.value) ? cell.value : packData(cell.value), most);
    made.isData = false;
    made.truncated = true;
  }
  if (cell.error !== null && [cell.error.typeName, cell.error.message, cell.error.traceback].some((text) => isTooLong(text, most))) {
    const { typeName, message, traceback } = cell.error;
    // The end of a traceback says what happened.
    made.error = { ...cell.error, typeName: part(typeName, most), message: part(message, most), traceback: part(traceback, most, true) };
    made.truncated = true;
  }
  return made;
}

export class Interpreter {
  #kept;
  #jar;
  #options;

  constructor(jar, options, kept) {
    this.#jar = jar;
    this.#options = options;
    this.#kept = kept;
  }

  static async #start(jar, { python = 'python3', ...keys }) {
    source ??= readFileSync(new URL('cell.py', import.meta.url), 'utf8');
    const begin = (word) => `${JSON.stringify({ number: 0, word })}\n`;
    // As a program of its own, not from a file: the package need not be visible in the jar.
    const argv = [python, '-X', 'utf8', '-c', source];
    const { kept } = await Kept.open('interpreter', jar, argv, keys, {}, true, begin);
    return kept;
  }

  static async open(jar, options = {}) {
    return new Interpreter(jar, options, await Interpreter.#start(jar, options));
  }

  async #ask(request, options = {}) {
    return this.#kept.inTurn(async () => {
      try {
        const done = await this.#kept.exchange((number) => `${JSON.stringify({ number, ...request })}\n`, { maxBody: MAX_ANSWER_BYTES, ...options });
        return { done, answer: done.ended === undefined ? parse(done.mark.body) : {} };
      } catch (error) {
        // Whatever runs there is not what it was.
        if (error instanceof ResultError) await this.#kept.close();
        throw error;
      }
    });
  }

  /** Run a cell. Nothing is thrown for what the cell does; see Cell.check(). */
  async run(code, { timeout, signal } = {}) {
    if (typeof code !== 'string') throw new TypeError('code must be text');
    const seconds = timeout === undefined ? undefined : parseDuration(timeout, 'timeout');
    const { done, answer } = await this.#ask({ op: 'run', code }, { timeout: seconds, signal });
    const isData = answer.text === undefined;
    const cell = {
      value: isData ? answer.data ?? null : answer.text,
      isData,
      stdout: done.stdout,
      stderr: done.stderr,
      truncated: done.truncated,
      risky: done.risky,
      error: this.#error(done, answer.error),
    };
    return new Cell(held(cell, this.#most));
  }

  /** Bytes that a value may have: as much as output, where the owner gave a limit for that. */
  get #most() {
    const { isOutputGiven, output } = this.#kept.settings;
    return isOutputGiven ? output : Infinity;
  }

  #error({ isLate, wasInterrupted, ended }, words) {
    if (ended !== undefined) {
      const result = ended.result ?? null;
      return { kind: isLate ? 'timeout' : 'ended', typeName: 'CallEnded', message: ended.message, traceback: '', stateLost: true, result };
    }
    if (words === undefined && !isLate) return null;
    const isInterrupt = words?.type === 'KeyboardInterrupt';
    const kind = isLate ? 'timeout' : isInterrupt && wasInterrupted ? 'interrupted' : 'raised';
    const { type: typeName, message, traceback } = words ?? { type: 'TimeoutError', message: 'the cell took longer than it may', traceback: '' };
    return { kind, typeName, message, traceback, stateLost: false, result: null };
  }

  async #change(request) {
    const { done, answer } = await this.#ask(request);
    if (done.ended !== undefined) throw done.ended;
    if (answer.error !== undefined) throw new CallError(`${answer.error.type}: ${answer.error.message}`, { typeName: answer.error.type, originalMessage: answer.error.message, traceback: answer.error.traceback });
    return answer;
  }

  /** Set a variable to a value that is data. */
  async set(name, value) {
    checkName(name);
    let text;
    try {
      text = packData(value);
    } catch (error) {
      if (error instanceof NotData) throw new SendError(`the value cannot be sent: ${error.message}`);
      throw error;
    }
    await this.#change({ op: 'set', name, value: JSON.parse(text) });
  }

  /** The value of a variable. ResultError if it is no data; undefined if there is none of this name. */
  async get(name) {
    checkName(name);
    const answer = await this.#change({ op: 'get', name });
    if (answer.text !== undefined) throw new ResultError(`the value is not data: ${answer.text.slice(0, 200)}`);
    const bytes = sizeOf(answer.data);
    if (bytes > this.#most) throw new ResultError(`the value has ${bytes} bytes: the limit of output allows ${this.#most}`);
    return answer.data;
  }

  /** Name, type and text of each variable. */
  async variables() {
    const { variables } = await this.#change({ op: 'variables' });
    if (variables === null || typeof variables !== 'object') throw malformed('no list of variables');
    return Object.entries(variables).map(([name, parts]) => {
      if (!Array.isArray(parts) || !parts.every(isText)) throw malformed('a variable without its parts');
      return { name, typeName: parts[0], text: parts[1] };
    });
  }

  /** KeyboardInterrupt in the cell that runs; nothing if nothing runs. The variables stay. */
  interrupt() {
    this.#kept.interrupt();
  }

  /** Begin afresh in a new process, also after the old one has ended. */
  async reset() {
    if (!this.#jar.isOpen) throw new EngineError('the jar is closed');
    await this.#kept.close();
    this.#kept = await Interpreter.#start(this.#jar, this.#options);
  }

  close() {
    return this.#kept.close();
  }

  [asyncDispose]() {
    return this.close();
  }
}
