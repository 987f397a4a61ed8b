// SPDX-License-Identifier: Apache-2.0
/**
 * lib/process.js - spawn(): a command whose streams can be used while it runs
 *
 * Both streams share the credit of the run's channel: a reader that stops holds the command up, as a full pipe does, and what waits for it
 * here is at most one window (256 KiB).
 */

import { Readable, Writable } from 'node:stream';

import { asyncDispose } from './dispose.js';
import { systemError } from './errors.js';
import { Request } from './request.js';
import { signalNumber } from './result.js';
import { deliver, Live } from './run.js';

const EPIPE = 32;
const BUFFER_BYTES = 65536;

/** A stream of what a channel brings: `give(data, size)`; `size` bytes are given back when the reader has taken them. */
export class Incoming extends Readable {
  #channel;
  #waiting = 0;

  constructor(channel) {
    super({ highWaterMark: BUFFER_BYTES });
    this.#channel = channel;
  }

  give(data, size = data.length) {
    if (this.destroyed || this.readableEnded) this.#channel.consumed(size);
    else if (this.push(data)) this.#channel.consumed(size);
    else this.#waiting += size;
  }

  _read() {
    this.#giveBack();
  }

  #giveBack() {
    const size = this.#waiting;
    this.#waiting = 0;
    if (size > 0) this.#channel.consumed(size);
  }

  _destroy(error, callback) {
    this.#giveBack();
    callback(error);
  }
}

/** Send what a stream was told to write. */
export function sendChunk(channel, data, callback) {
  channel.write(data).then((isTaken) => callback(isTaken ? undefined : systemError(EPIPE, 'write')), callback);
}

/** A stream whose bytes are sent on a channel, within its credit. */
export class Outgoing extends Writable {
  #channel;

  constructor(channel) {
    super({ highWaterMark: BUFFER_BYTES });
    this.#channel = channel;
  }

  _write(data, _encoding, callback) {
    sendChunk(this.#channel, data, callback);
  }

  _final(callback) {
    this.#channel.endData();
    callback();
  }

  _destroy(error, callback) {
    if (!this.writableFinished) this.#channel.endData();
    callback(error);
  }
}

export function toWeb(stream) {
  if (stream === null) return null;
  const pieces = stream[Symbol.asyncIterator]();
  return new ReadableStream(
    {
      async pull(controller) {
        const { done, value } = await pieces.next();
        if (done) controller.close();
        else controller.enqueue(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
      },
      async cancel() {
        await pieces.return();
        stream.destroy();
      },
    },
    { highWaterMark: 0 },
  );
}

/** A run that goes on. Disposing of it (`await using`) cancels the run and waits until it is gone. */
export class Process {
  #live;
  #web;

  constructor(request, live) {
    this.#live = live;
    this.args = request.args;
    this.result = null;
    const { channel } = live;
    this.stdin = request.hasPipe ? new Outgoing(channel) : null;
    this.stdin?.on('error', () => {}); // a command may end before it has read all
    if (request.onOutput === undefined) {
      this.stdout = new Incoming(channel);
      this.stderr = new Incoming(channel);
      for (const stream of [this.stdout, this.stderr]) stream.once('close', () => this.#onClose(stream));
      live.onPiece = (stream, data) => this[stream].give(data, data.length + 8);
    } else {
      this.stdout = this.stderr = null;
      deliver(live, request.onOutput);
    }
    const end = () => {
      this.stdout?.push(null);
      this.stderr?.push(null);
      this.stdin?.destroy();
    };
    live.result.then((result) => {
      this.result = result;
      end();
    }, end);
  }

  /** Nobody reads one of the streams any more: as a broken pipe, it ends the run. */
  #onClose(stream) {
    if (!stream.readableEnded && this.result === null) this.#live.channel.cancel();
  }

  /** The streams as web streams. Use these or the others, not both. */
  get web() {
    this.#web ??= {
      stdin: this.stdin && Writable.toWeb(this.stdin),
      stdout: toWeb(this.stdout),
      stderr: toWeb(this.stderr),
    };
    return this.#web;
  }

  /** Wait for the end. Streams that nobody reads hold the command up. */
  wait() {
    return this.#live.result;
  }

  /** Send a signal to every process of the run; nothing if it is over. 0 reaches nobody. */
  kill(signal = 'SIGTERM') {
    if (signal !== 0) this.#live.channel.signal(signalNumber(signal));
  }

  /** End the run: SIGTERM, after the policy's grace SIGKILL. Resolves when nothing of it is left. */
  cancel() {
    this.#live.channel.cancel();
    this.stdout?.resume();
    this.stderr?.resume();
    return this.#live.result;
  }

  /** Tell the command's terminal its new size. */
  resize(rows, columns) {
    for (const size of [rows, columns]) {
      if (!Number.isInteger(size) || size < 1 || size > 65535) throw new RangeError('rows and columns must be between 1 and 65535');
    }
    this.#live.channel.resize(rows, columns);
  }

  /** Let Node end although the run goes on; it is killed then. */
  unref() {
    this.#live.channel.release();
    return this;
  }

  ref() {
    this.#live.channel.hold();
    return this;
  }

  /** cancel(), if it still runs; whatever became of it. */
  async close() {
    if (this.result === null) await this.cancel().catch(() => {});
    this.stdout?.destroy();
    this.stderr?.destroy();
  }

  [asyncDispose]() {
    return this.close();
  }
}

/** Start it, and have it once it runs. */
export async function begin(request, opener) {
  const live = new Live(request, opener(request));
  const made = new Process(request, live);
  await live.started;
  return made;
}

/** Start a command in a fresh jar. */
export async function spawn(args, options) {
  return begin(new Request(args, options, true), (request) => request.open());
}
