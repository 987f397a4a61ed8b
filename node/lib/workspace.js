// SPDX-License-Identifier: Apache-2.0
/**
 * lib/workspace.js - what was changed under a layer, and what becomes of it
 *
 * The engine does all of it. For what changes a layer it makes the jar that has it anew; the answer says what the jar is then.
 */

import { open } from './engine.js';
import { EngineError, WorkspaceError } from './errors.js';
import { Kind } from './frames.js';
import { currentDirectory } from './policy.js';
import { environ, withVersion } from './request.js';
import { wireText } from './text.js';

const ESHUTDOWN = 108;

function failureOf({ error = {} }) {
  if (error.errno === ESHUTDOWN) return new EngineError('the jar has ended');
  return new WorkspaceError(error.message ?? 'the engine gave no reason', { hint: error.hint });
}

/** The bytes of the answer to an order; `takeOpened` hears what its jar is now, if that was made anew. */
function answerOn(channel, takeOpened) {
  channel.hold();
  return new Promise((resolve, reject) => {
    const parts = [];
    const settle = (action, value) => {
      channel.close();
      action(value);
    };
    channel.onFrame = (kind, payload) => {
      if (kind === Kind.DATA) {
        parts.push(payload);
        channel.consumed(payload.length);
      } else if (kind === Kind.DATA_END) {
        settle(resolve, Buffer.concat(parts));
      } else if (kind === Kind.DESCRIPTOR || kind === Kind.FAILED) {
        const answer = JSON.parse(payload);
        if (answer.opened) takeOpened(answer.opened);
        if (kind === Kind.FAILED) settle(reject, failureOf(answer));
      } else {
        settle(reject, new EngineError(`the engine sent a frame of type ${kind} in place of a file`));
      }
    };
    channel.onEnd = (error) => reject(error ?? new EngineError('the jar has ended'));
  });
}

/** Paths as they are sent. An empty list is none at all, and a string would be a list of letters. */
function list(paths, name) {
  if (paths === undefined || paths === null) return undefined;
  if (!Array.isArray(paths)) throw new TypeError(`${name} must be a list of paths`);
  if (paths.length === 0 && name === 'paths') throw new RangeError('paths is empty: leave it out for everything');
  return paths.map((path) => wireText(path, 'a path'));
}

/** What can be asked about a workspace. `ask(members)` gives the channel of the answer. */
export class Decisions {
  #ask;
  #takeOpened;

  constructor(ask, takeOpened = () => {}) {
    this.#ask = ask;
    this.#takeOpened = takeOpened;
  }

  async #carryOut(op, members) {
    return answerOn(this.#ask(withVersion({ op, ...members })), this.#takeOpened);
  }

  async #json(op, members) {
    return JSON.parse(await this.#carryOut(op, members));
  }

  show() {
    return this.#json('show');
  }

  async diff(paths) {
    return (await this.#json('diff', { paths: list(paths, 'paths') })).changes;
  }

  async patch(paths) {
    return (await this.#carryOut('patch', { paths: list(paths, 'paths') })).toString('utf8');
  }

  async apply(paths, { allowRisky, theirs, ours } = {}) {
    const answer = await this.#json('apply', {
      paths: list(paths, 'paths'), allow_risky: list(allowRisky, 'allowRisky'), theirs: list(theirs, 'theirs'), ours: list(ours, 'ours'),
    });
    const [first, ...others] = answer.not_applied;
    if (first === undefined) return answer;
    const more = others.length > 0 ? ` and ${others.length} more` : '';
    throw new WorkspaceError(`not applied: ${first.path}${more} (${first.reason}: ${first.why})`, { notApplied: answer.not_applied });
  }

  async discard(paths) {
    const { not_dropped: left } = await this.#json('discard', { paths: list(paths, 'paths') });
    if (left.length === 0) return;
    throw new WorkspaceError(`cannot be dropped by itself: ${left[0]} (it belongs to a checkpoint, or to a directory that was replaced as a whole)`);
  }

  async checkpoint(note) {
    return (await this.#json('checkpoint', { note })).checkpoint;
  }

  async rollback(checkpoint) {
    await this.#json('rollback', { checkpoint });
  }

  /** Ids; null where nothing was changed yet, so that a new one is the same. */
  async fork(count) {
    if (!Number.isInteger(count) || count < 1 || count > 256) throw new RangeError('a fork makes 1 to 256');
    return (await this.#json('fork', { count })).forks;
  }
}

/** What runs with `workspace: 'cow'` left. */
export class Workspace {
  #decisions;

  constructor(id) {
    this.id = id;
    this.#decisions = new Decisions((members) => open(Kind.WORKSPACE, { ...members, id: this.id, cwd: currentDirectory(), environ: environ() }));
  }

  /** The workspace of that id, or of that name for the current directory. */
  static async open(idOrName) {
    return new this((await new this(String(idOrName)).show()).id);
  }

  show() {
    return this.#decisions.show();
  }

  diff(paths) {
    return this.#decisions.diff(paths);
  }

  patch(paths) {
    return this.#decisions.patch(paths);
  }

  apply(paths, options) {
    return this.#decisions.apply(paths, options);
  }

  discard(paths) {
    return this.#decisions.discard(paths);
  }

  checkpoint(note) {
    return this.#decisions.checkpoint(note);
  }

  rollback(checkpoint) {
    return this.#decisions.rollback(checkpoint);
  }

  async fork(count) {
    const ids = await this.#decisions.fork(count);
    if (ids.includes(null)) throw new WorkspaceError('nothing was changed in this workspace: there is nothing to fork');
    return ids.map((id) => new Workspace(id));
  }
}
