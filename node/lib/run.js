// SPDX-License-Identifier: Apache-2.0
/**
 * lib/run.js - run(): a command and its result; and what spawn() shares with it, the life of a run on its channel
 */

import { answerTo } from './ask.js';
import { EngineError } from './errors.js';
import { Kind } from './frames.js';
import { Request } from './request.js';
import { Collector } from './result.js';
import { bytesOf } from './text.js';

/** A run on its channel: `started` and `result` are promises. `onPiece(stream, data)`: output as it comes, to be given back as consumed. */
export class Live {
  #collector;
  #settle;
  #failure;
  #unlisten = () => {};
  onPiece = (_stream, data) => this.channel.consumed(data.length + 8);

  constructor(request, channel) {
    this.request = request;
    this.channel = channel;
    this.#collector = new Collector(request.args, request.text, request.isCaptured);
    channel.hold();
    this.started = new Promise((resolve, reject) => {
      this.result = new Promise((resolveResult, rejectResult) => {
        this.#settle = {
          started: resolve,
          result: (result) => (resolve(), resolveResult(result)),
          error: (error) => (reject(error), rejectResult(error)),
        };
      });
    });
    // Whoever waits hears of it; that nobody waits for one of the two is no mistake.
    this.started.catch(() => {});
    this.result.catch(() => {});
    channel.onFrame = (kind, payload) => this.#take(kind, payload);
    channel.onEnd = (error) => this.#end(() => { throw error ?? new EngineError('the engine closed the channel without an answer'); });
    this.#listen(request.signal);
    this.#feed();
  }

  #take(kind, payload) {
    if (kind === Kind.OUTPUT) {
      this.onPiece(...Collector.piece(payload));
    } else if (kind === Kind.CAPTURED) {
      this.#collector.capture(payload);
      this.channel.consumed(payload.length);
    } else if (kind === Kind.STARTED) {
      this.#settle.started();
    } else if (kind === Kind.EVENT) {
      this.#takeEvent(JSON.parse(payload));
    } else {
      // Frames are copied no further than here, so the bytes of the last one are still there when output was waited for.
      this.#end(() => this.#collector.finish(kind, payload));
    }
  }

  #takeEvent(event) {
    const { onAsk, onEvent } = this.request;
    if (event.event === 'ask') answerTo(event, onAsk).then((answer) => this.channel.reply(event.id, answer));
    else if (event.event !== 'withdrawn' && onEvent !== undefined) this.tell(onEvent, event);
  }

  /** Wait for what the caller's functions are still doing with output; then it is over. */
  async #end(finish) {
    this.channel.onEnd = () => {};
    this.channel.onFrame = () => {};
    this.#unlisten();
    await this.idle?.();
    try {
      const result = finish();
      if (this.#failure !== undefined) this.#settle.error(this.#failure.error);
      else this.#settle.result(result);
    } catch (error) {
      this.#settle.error(this.#failure?.error ?? error);
    }
  }

  /** Call a function of the caller's. If it throws, the run is ended, and the error is that of the run. */
  tell(callback, ...told) {
    if (this.#failure !== undefined) return undefined;
    try {
      const made = callback(...told);
      return typeof made?.then === 'function' ? made.then(undefined, (error) => this.fail(error)) : undefined;
    } catch (error) {
      return this.fail(error);
    }
  }

  /** End the run; its promises are rejected with this, when nothing of it is left. */
  fail(error) {
    this.#failure ??= { error };
    this.channel.cancel();
  }

  #listen(signal) {
    if (signal === undefined) return;
    const onAbort = () => this.fail(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    this.#unlisten = () => signal.removeEventListener('abort', onAbort);
  }

  /** Give the command its input, if that is known already. */
  async #feed() {
    const { input, source } = this.request;
    if (input !== undefined) {
      await this.channel.write(input);
      this.channel.endData();
    } else if (source !== undefined) {
      try {
        for await (const chunk of chunksOf(source)) {
          if (!(await this.channel.write(bytesOf(chunk, 'what stdin gives')))) break;
        }
        this.channel.endData();
      } catch (error) {
        this.fail(error);
      }
    }
  }
}

/** The chunks of a Node stream, a web stream or anything that can be iterated over. */
export async function* chunksOf(source) {
  if (typeof source[Symbol.asyncIterator] === 'function') {
    yield* source;
    return;
  }
  const reader = source.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** Give output to onOutput, one piece after the other; a slow callback slows the command. */
export function deliver(live, onOutput) {
  let last;
  live.onPiece = (stream, data) => {
    const give = () => {
      const waits = live.tell(onOutput, stream, data);
      if (waits === undefined) live.channel.consumed(data.length + 8);
      else return waits.then(() => live.channel.consumed(data.length + 8));
    };
    if (last === undefined) {
      last = give();
    } else {
      last = last.then(give);
    }
    if (last !== undefined) {
      const mine = last;
      mine.then(() => { if (last === mine) last = undefined; });
    }
  };
  live.idle = () => last;
}

/** Run it to its end. */
export async function finish(request, opener) {
  const live = new Live(request, opener(request));
  if (request.onOutput !== undefined) deliver(live, request.onOutput);
  const result = await live.result;
  return request.isChecked ? result.check() : result;
}

/** Run a command in a fresh jar. */
export async function run(args, options) {
  return finish(new Request(args, options), (request) => request.open());
}
