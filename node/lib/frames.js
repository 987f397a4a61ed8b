// SPDX-License-Identifier: Apache-2.0
/**
 * lib/frames.js - the frames of docs/protocol.md: their numbers, and the reader that cuts a stream of bytes into them
 */

export const VERSION = 2;

export const Kind = Object.freeze({
  RUN: 1, OPEN: 2, ASK: 3, JOIN: 4, FILE: 5, SIGNAL: 6, CANCEL: 7, RESIZE: 8, CLOSE: 9, GO: 10, HELLO: 11,
  CONNECT: 12, PROCESSES: 13, KILL: 14, USAGE: 15, NET: 16, REPLY: 17, WORKSPACE: 18, LAYER: 19, LOOK: 20,
  STARTED: 65, OUTPUT: 66, CAPTURED: 67, RESULT: 68, OPENED: 69, FAILED: 70, CLOSED: 71, DESCRIPTOR: 72, ANSWER: 73, EVENT: 74,
  DATA: 128, DATA_END: 129, DATA_STOP: 130, CREDIT: 131, END: 132,
});

export const HEADER_BYTES = 8;
/** Bytes of a DATA frame. */
export const PIECE_BYTES = 65536;
/** What the engine takes in one frame. */
export const SEND_MAX_BYTES = 5 << 20;
/** What it sends in one. */
const RECEIVE_MAX_BYTES = 16 << 20;

/** What came is no frame, or breaks the protocol. */
export class Nonsense extends Error {}

/** The bytes of a frame, in one piece. */
export function frame(channel, kind, payload) {
  const size = payload === undefined ? 0 : payload.length;
  const bytes = Buffer.allocUnsafe(HEADER_BYTES + size);
  bytes.writeUInt32LE(size, 0);
  bytes[4] = kind;
  bytes.writeUIntLE(channel, 5, 3);
  if (size > 0) bytes.set(payload, HEADER_BYTES);
  return bytes;
}

/** Feed it what arrives; it calls `take(channel, kind, payload)` for each whole frame. A payload is valid as long as it is kept. */
export class Inbox {
  #parts = [];
  #have = 0;
  #need = HEADER_BYTES;
  #take;

  constructor(take) {
    this.#take = take;
  }

  feed(data) {
    this.#parts.push(data);
    this.#have += data.length;
    // Pieces of a large frame are joined once, when all of it is here.
    if (this.#have < this.#need) return;
    let all = this.#parts.length === 1 ? data : Buffer.concat(this.#parts, this.#have);
    for (;;) {
      this.#need = HEADER_BYTES;
      if (all.length < HEADER_BYTES) break;
      const size = all.readUInt32LE(0);
      if (size > RECEIVE_MAX_BYTES) throw new Nonsense(`a frame of ${size} bytes`);
      this.#need = HEADER_BYTES + size;
      if (all.length < this.#need) break;
      try {
        this.#take(all.readUIntLE(5, 3), all[4], all.subarray(HEADER_BYTES, this.#need));
      } catch (error) {
        if (error instanceof Nonsense) throw error;
        // A function of the caller's, which listens to a stream: it is told as if there were nobody in between.
        queueMicrotask(() => { throw error; });
      }
      all = all.subarray(this.#need);
    }
    this.#parts = all.length > 0 ? [all] : [];
    this.#have = all.length;
  }
}
