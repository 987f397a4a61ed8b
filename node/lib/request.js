// SPDX-License-Identifier: Apache-2.0
/**
 * lib/request.js - what is asked of the engine: the one place that writes the JSON of runs and jars
 */

import { open } from './engine.js';
import { Kind, VERSION } from './frames.js';
import { currentDirectory, normalKeys, wirePolicy } from './policy.js';
import { bytesOf, wireText } from './text.js';

/** The words of a command, as they are sent. */
function wordsOf(args, shell) {
  if (typeof args === 'string') {
    if (!shell) throw new TypeError('args must be a list of words; a command line for the shell needs shell: true');
    return [wireText(args, 'a command line')];
  }
  if (!Array.isArray(args)) throw new TypeError('args must be a list of words');
  if (shell) throw new TypeError('with shell: true, args must be one string');
  if (args.length === 0) throw new TypeError('args is empty: there is nothing to run');
  return args.map((word) => wireText(word, 'a word of a command'));
}

function isReadable(stream) {
  return stream !== null && typeof stream === 'object' && (typeof stream[Symbol.asyncIterator] === 'function' || typeof stream.getReader === 'function');
}

export function environ() {
  return Object.entries(process.env).map(([name, value]) => `${name}=${value}`);
}

export function withVersion(members) {
  return { version: VERSION, ...members };
}

/** What RUN and OPEN begin with. */
function policyMembers(policy, keys) {
  const cwd = currentDirectory();
  return withVersion({ ...wirePolicy(policy, cwd), keys, cwd, environ: environ() });
}

/** One command, ready to be sent. */
export class Request {
  /** isSpawn: the caller uses the streams while it runs; then it has no time limit, and its output is not kept, unless asked for. */
  constructor(args, options = {}, isSpawn = false) {
    const {
      shell = false, input, stdin, text = true, stderrToStdout = false, pty = false, rows, columns, capture = !isSpawn,
      onOutput, onEvent, onAsk, signal, check = false, detach = false, policy, ...keys
    } = options;
    this.args = wordsOf(args, shell);
    this.text = text;
    this.isCaptured = capture;
    this.onOutput = onOutput;
    this.onEvent = onEvent;
    this.onAsk = onAsk;
    this.signal = signal;
    this.isChecked = check;
    this.policy = policy;
    this.keys = normalKeys(keys);
    if (input !== undefined && stdin !== undefined) throw new TypeError('stdin and input may not both be given');
    this.input = input === undefined || input === null ? undefined : bytesOf(input, 'input');
    this.hasPipe = stdin === 'pipe';
    this.source = isReadable(stdin) ? stdin : undefined;
    if (this.hasPipe && !isSpawn) throw new TypeError("stdin: 'pipe' is for spawn(); use input here");
    if (stdin !== undefined && stdin !== null && stdin !== 'ignore' && !this.hasPipe && this.source === undefined) {
      throw new TypeError("stdin must be 'pipe', 'ignore' or a stream; what the command shall read is input");
    }
    if (detach && pty) throw new TypeError('detach and pty do not go together: the terminal ends with the command');
    const hasStdin = this.input !== undefined || this.hasPipe || this.source !== undefined;
    this.run = {
      argv: this.args, shell, stdin: hasStdin ? 'descriptor' : 'null', pty, rows, columns,
      sink: isSpawn || onOutput !== undefined ? 'frames' : 'none', merge: stderrToStdout, capture,
      open_ended: isSpawn, events: onEvent !== undefined, started: isSpawn, detach: detach || undefined, ask: onAsk !== undefined || undefined,
    };
    signal?.throwIfAborted();
  }

  /** This function answers, where the command has none of its own. */
  answeredBy(onAsk) {
    if (this.onAsk !== undefined || onAsk === undefined) return;
    this.onAsk = onAsk;
    this.run.ask = true;
  }

  /** Its channel, in a jar of its own. */
  open() {
    return open(Kind.RUN, { ...policyMembers(this.policy, this.keys), run: this.run });
  }

  /** Its channel, in a jar. */
  join(jarChannel, jarEnviron) {
    // A policy the engine refuses, in its own words.
    const keys = this.policy === undefined ? this.keys : { ...this.keys, policy: this.policy };
    const now = environ();
    const isSame = now.length === jarEnviron.length && now.every((entry, index) => entry === jarEnviron[index]);
    return jarChannel.ask(Kind.JOIN, withVersion({ keys, ...(isSame ? {} : { environ: now }), ...this.run }));
  }
}

/** What a jar for many runs is opened with: a copy of it opens another one. */
export function jarMembers(policy, keys, ttl) {
  return { ...policyMembers(policy, normalKeys(keys)), ttl };
}
