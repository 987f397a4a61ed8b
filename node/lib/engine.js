// SPDX-License-Identifier: Apache-2.0
/**
 * lib/engine.js - the engine of this thread, and channels to it
 *
 * `belljar engine --stdio` is started at first use, and anew after it died. It ends when our end of its pipe does: also when this process
 * is killed. A worker thread has its own, since nothing here is shared between threads.
 *
 * Node stays alive while somebody waits for the engine (hold), and not because it is there: an idle jar does not keep a program from
 * ending.
 *
 * What arrives is always read. What keeps a command from filling our memory is credit: a channel gives back what its reader has
 * consumed, and nothing before.
 */

import { spawn } from 'node:child_process';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

import { EngineError, PolicyError } from './errors.js';
import { frame, Inbox, Kind, Nonsense, PIECE_BYTES, SEND_MAX_BYTES, VERSION } from './frames.js';
import { enginePath } from './program.js';

const MAX_CHANNEL = 0xffffff;
const WINDOW_BYTES = 262144;
const PACKAGE = dirname(dirname(fileURLToPath(import.meta.url)));

let current;

/** One run, jar, file or question. Frames are given to `onFrame(kind, payload)`; at the end `onEnd(error)` is called once. */
export class Channel {
  #engine;
  #credit;
  #owed = 0;
  #waiting;
  #hasEnded = false;
  #isClosed = false;
  #isStopped = false;
  #isHolding = false;
  onFrame = () => {};
  onEnd = () => {};

  constructor(engine, number) {
    this.#engine = engine;
    this.number = number;
    this.#credit = engine.window;
  }

  /** Neither side will say more. */
  get isOver() {
    return this.#hasEnded || this.#isClosed;
  }

  /** Somebody waits for this channel: Node does not end until it has ended, or release() is called. */
  hold() {
    if (this.#isHolding || this.isOver) return;
    this.#isHolding = true;
    this.#engine.hold();
  }

  release() {
    if (!this.#isHolding) return;
    this.#isHolding = false;
    this.#engine.release();
  }

  /** A frame that needs no credit. One that comes too late is not sent. */
  send(kind, payload) {
    if (!this.isOver) this.#engine.write(this.number, kind, payload);
  }

  /** A request to the jar of this channel: the new channel on which its answer comes. */
  ask(kind, members) {
    if (this.isOver) throw new EngineError('the jar has ended');
    const payload = encode(members);
    const channel = this.#engine.newChannel();
    const number = Buffer.alloc(4);
    number.writeUInt32LE(channel.number);
    this.#engine.write(this.number, kind, Buffer.concat([number, payload]));
    return channel;
  }

  /** A signal to every process of the run; 0 reaches nobody. */
  signal(number) {
    if (number !== 0) this.send(Kind.SIGNAL, int32(number));
  }

  /** End the run as a timeout would; the second time, at once. */
  cancel(number = 0) {
    this.send(Kind.CANCEL, int32(number));
  }

  resize(rows, columns) {
    const payload = Buffer.alloc(4);
    payload.writeUInt16LE(rows, 0);
    payload.writeUInt16LE(columns, 2);
    this.send(Kind.RESIZE, payload);
  }

  /** The answer to a question. */
  reply(id, answer) {
    this.send(Kind.REPLY, Buffer.concat([uint32(id), uint32(answer)]));
  }

  /** Send DATA within the credit. Resolves when all is sent: to false if nobody reads it. One at a time. */
  async write(data) {
    for (let at = 0; at < data.length; ) {
      if (this.isOver || this.#isStopped) return false;
      if (this.#credit === 0) {
        await new Promise((resolve) => (this.#waiting = resolve));
        continue;
      }
      const size = Math.min(this.#credit, PIECE_BYTES, data.length - at);
      this.#credit -= size;
      this.#engine.write(this.number, Kind.DATA, data.subarray(at, at + size));
      at += size;
      if (this.#engine.isFull) await this.#engine.drained();
    }
    return !this.isOver && !this.#isStopped;
  }

  endData() {
    this.send(Kind.DATA_END);
  }

  /** So many bytes were consumed: the engine may send as many more. */
  consumed(size) {
    this.#owed += size;
    if (this.#owed >= this.#engine.window / 4 && !this.isOver) {
      this.#engine.write(this.number, Kind.CREDIT, uint32(this.#owed));
      this.#owed = 0;
    }
  }

  /** Hang up: what runs on this channel is killed at once. `onEnd` is not called. */
  close() {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.onFrame = this.onEnd = () => {};
    this.release();
    this.#wake();
    this.#engine.write(this.number, Kind.END);
    if (this.#hasEnded) this.#engine.forget(this);
  }

  #wake() {
    this.#waiting?.();
    this.#waiting = undefined;
  }

  /** For the engine: a frame has arrived. */
  take(kind, payload) {
    if (kind === Kind.END) {
      this.#hasEnded = true;
      if (this.#isClosed) return this.#engine.forget(this);
      const onEnd = this.onEnd;
      this.close();
      onEnd();
    } else if (kind === Kind.CREDIT) {
      this.#credit += payload.readUInt32LE(0);
      this.#wake();
    } else if (kind === Kind.DATA_STOP) {
      this.#isStopped = true;
      this.#wake();
    } else if (!this.#isClosed) {
      this.onFrame(kind, payload);
    }
  }

  /** For the engine: it is gone. */
  lose(error) {
    if (this.isOver) return;
    this.#hasEnded = this.#isClosed = true;
    this.release();
    this.#wake();
    this.onEnd(error);
  }
}

class Engine {
  #child;
  #channels = new Map();
  #next = 1;
  #holds = 0;
  #drains = [];
  window = WINDOW_BYTES;
  end;

  constructor() {
    const path = enginePath();
    // In a process group of its own: Ctrl-C at the terminal is for this program, which decides what becomes of its jars.
    // The engine makes this package read-only in every jar.
    const env = { ...process.env, BELLJAR_PACKAGE: PACKAGE };
    this.#child = spawn(path, ['engine', '--stdio'], { stdio: ['pipe', 'pipe', 'ignore'], detached: true, env });
    const inbox = new Inbox((number, kind, payload) => this.#take(number, kind, payload));
    this.#child.on('error', (error) => this.#lose(new EngineError(`cannot start the engine '${path}': ${error.message}`, { cause: error })));
    this.#child.on('exit', (status, signal) => {
      this.#how = signal ? `was ended by ${signal}` : `ended with exit status ${status}`;
    });
    this.#child.on('close', () => this.#lose(new EngineError(`the engine ${this.#how ?? 'has ended'}; its jars have ended with it`)));
    this.#child.stdin?.on('error', () => {}); // its end is told by 'close'
    this.#child.stdin?.on('drain', () => this.#drains.splice(0).forEach((resolve) => resolve()));
    this.#child.stdout?.on('error', () => {});
    this.#child.stdout?.on('data', (data) => {
      try {
        inbox.feed(data);
      } catch (error) {
        this.#lose(new EngineError(`the engine sent a malformed message: ${error.message}`, { cause: error }));
      }
    });
    this.write(0, Kind.HELLO, encode({ version: VERSION }));
    this.#rest();
  }

  #how;

  // --- staying alive ---

  /** Node does not end until release(). */
  hold() {
    if (this.#holds++ === 0) {
      this.#child.ref();
      this.#child.stdout?.ref?.();
    }
  }

  release() {
    if (--this.#holds === 0) this.#rest();
  }

  #rest() {
    this.#child.unref();
    this.#child.stdin?.unref?.();
    this.#child.stdout?.unref?.();
  }

  // --- frames ---

  write(number, kind, payload) {
    if (this.end === undefined && this.#child.stdin !== null) this.#child.stdin.write(frame(number, kind, payload));
  }

  /** What we have written waits: whoever sends much should wait too. */
  get isFull() {
    return this.end === undefined && this.#child.stdin !== null && this.#child.stdin.writableNeedDrain;
  }

  drained() {
    return new Promise((resolve) => this.#drains.push(resolve));
  }

  newChannel() {
    if (this.end !== undefined) throw this.end;
    while (this.#channels.has(this.#next)) this.#next = (this.#next % MAX_CHANNEL) + 1;
    const channel = new Channel(this, this.#next);
    this.#channels.set(this.#next, channel);
    this.#next = (this.#next % MAX_CHANNEL) + 1;
    return channel;
  }

  forget(channel) {
    this.#channels.delete(channel.number);
  }

  #take(number, kind, payload) {
    if (number !== 0) {
      this.#channels.get(number)?.take(kind, payload);
    } else if (kind === Kind.ANSWER) {
      const hello = JSON.parse(payload);
      if (hello.version !== VERSION) throw new Nonsense(`it speaks version ${hello.version} of the protocol, this package version ${VERSION}`);
      this.window = hello.window;
    } else if (kind === Kind.FAILED) {
      throw new Nonsense(JSON.parse(payload).error.message);
    }
  }

  #lose(error) {
    if (this.end !== undefined) return;
    this.end = error;
    if (current === this) current = undefined;
    this.#child.stdin?.destroy();
    this.#child.stdout?.destroy();
    this.#drains.splice(0).forEach((resolve) => resolve());
    const channels = [...this.#channels.values()];
    this.#channels.clear();
    for (const channel of channels) channel.lose(error);
  }
}

function int32(number) {
  const payload = Buffer.alloc(4);
  payload.writeInt32LE(number);
  return payload;
}

function uint32(number) {
  const payload = Buffer.alloc(4);
  payload.writeUInt32LE(number);
  return payload;
}

/** A replacer that refuses text which no name, argument or variable can be. U+DC80 to U+DCFF stand for bytes: see text.js. */
function checkText(key, value) {
  if (typeof value === 'string' && /[\0\ud800-\udc7f\udd00-\udfff]/u.test(value)) {
    throw new PolicyError(`${key}: a text must not have a NUL or half of a character in it: ${JSON.stringify(value.slice(0, 60))}`);
  }
  return value;
}

/** The bytes of a JSON payload; an error if the engine would not take them. */
export function encode(members) {
  const text = JSON.stringify(members);
  if (/\\u(?:0000|d[89a-f])/.test(text)) JSON.stringify(members, checkText);
  const payload = Buffer.from(text, 'utf8');
  if (payload.length > SEND_MAX_BYTES) {
    throw Object.assign(new Error('E2BIG: the request has more than 5 MiB'), { code: 'E2BIG', errno: -7 });
  }
  return payload;
}

/** A new channel that begins with this request. */
export function open(kind, members) {
  const payload = encode(members);
  current ??= new Engine();
  const channel = current.newChannel();
  current.write(channel.number, kind, payload);
  return channel;
}
