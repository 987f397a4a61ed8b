// SPDX-License-Identifier: Apache-2.0
/**
 * lib/connect.js - a connection to a port in a jar
 */

import { Duplex } from 'node:stream';

import { openData } from './files.js';
import { Kind } from './frames.js';
import { sendChunk } from './process.js';

/** Both ways of a channel. Each side ends its half. */
class Connection extends Duplex {
  #channel;
  #waiting = 0;

  constructor(channel) {
    super({ allowHalfOpen: true });
    this.#channel = channel;
  }

  give(data) {
    if (this.destroyed || this.push(data)) this.#channel.consumed(data.length);
    else this.#waiting += data.length;
  }

  _read() {
    const size = this.#waiting;
    this.#waiting = 0;
    if (size > 0) this.#channel.consumed(size);
  }

  _write(data, _encoding, callback) {
    sendChunk(this.#channel, data, callback);
  }

  _final(callback) {
    this.#channel.endData();
    callback();
  }

  _destroy(error, callback) {
    this.#channel.close();
    callback(error);
  }

  // What http expects of a socket.
  setTimeout() {
    return this;
  }

  setNoDelay() {
    return this;
  }

  setKeepAlive() {
    return this;
  }

  ref() {
    this.#channel.hold();
    return this;
  }

  unref() {
    this.#channel.release();
    return this;
  }
}

export function connect(jar, port) {
  return new Promise((resolve, reject) => {
    let isOpen = false;
    const channel = openData(jar, Kind.CONNECT, { port }, 'connect', undefined, {
      onOpen: () => resolve(((isOpen = true), connection)),
      onData: (data) => connection.give(data),
      onDone: (error) => (!isOpen ? reject(error) : error ? connection.destroy(error) : connection.push(null)),
    });
    const connection = new Connection(channel);
  });
}
