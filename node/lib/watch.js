// SPDX-License-Identifier: Apache-2.0
/**
 * lib/watch.js - what happens to the files in a directory of a jar, as the kernel tells it (inotify)
 */

import { endianness } from 'node:os';

import { openData, wirePath } from './files.js';
import { Kind } from './frames.js';
import { textOf } from './text.js';

const HEADER_BYTES = 16;
const IS_DIRECTORY = 0x40000000;
const IGNORED = 0x8000;
const TYPES = [
  [0x2, 'modified'], [0x4, 'attributes'], [0x8, 'closed'], [0x40, 'moved_from'], [0x80, 'moved_to'], [0x100, 'created'],
  [0x200, 'deleted'], [0x400, 'deleted'], [0x800, 'moved_from'], [0x4000, 'overflow'],
];

const readUint32 = (data, at) => (endianness() === 'LE' ? data.readUInt32LE(at) : data.readUInt32BE(at));

/** Iterates over events (`for await`). It ends with the jar, when what is watched is removed, or by close(). */
export class Watch {
  #channel;
  #events = [];
  #waiting = [];
  #isOver = false;

  constructor(channel) {
    this.#channel = channel;
  }

  /** For watch(): what the kernel tells. */
  feed(data) {
    for (let at = 0; at + HEADER_BYTES <= data.length; ) {
      const mask = readUint32(data, at + 4);
      const size = readUint32(data, at + 12);
      const bytes = data.subarray(at + HEADER_BYTES, at + HEADER_BYTES + size);
      const end = bytes.indexOf(0);
      const type = TYPES.find(([bit]) => mask & bit)?.[1];
      const name = textOf(end < 0 ? bytes : bytes.subarray(0, end));
      at += HEADER_BYTES + size;
      if (type !== undefined) this.#give({ name, type, isDir: (mask & IS_DIRECTORY) !== 0 }, HEADER_BYTES + size);
      else this.#channel.consumed(HEADER_BYTES + size);
      if (mask & IGNORED) this.close();
    }
  }

  #give(event, size) {
    const waiting = this.#waiting.shift();
    if (waiting === undefined) return this.#events.push([event, size]);
    this.#channel.consumed(size);
    waiting({ done: false, value: event });
  }

  async next() {
    const found = this.#events.shift();
    if (found !== undefined) {
      this.#channel.consumed(found[1]);
      return { done: false, value: found[0] };
    }
    if (this.#isOver) return { done: true, value: undefined };
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Watch no more. */
  close() {
    this.#isOver = true;
    this.#channel.close();
    for (const waiting of this.#waiting.splice(0)) waiting({ done: true, value: undefined });
  }

  async return() {
    this.close();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator]() {
    return this;
  }
}

export function watch(jar, path = '.') {
  const name = wirePath(path);
  return new Promise((resolve, reject) => {
    const channel = openData(jar, Kind.FILE, { op: 'watch', path: name }, 'watch', name, {
      onOpen: () => resolve(made),
      onData: (data) => made.feed(data),
      onDone: (error) => (made.close(), reject(error)),
    });
    const made = new Watch(channel);
  });
}
