// SPDX-License-Identifier: Apache-2.0
/**
 * lib/shell.js - a shell in a jar that keeps its directory, variables, functions and background jobs between commands
 *
 * It is the shell itself, interactive but without a terminal, which reads its commands from a pipe that only we write. A command is one word of that
 * text, quoted, for `eval`: whatever is in it, it cannot end early or take in what follows. Interactive, because only then does an interrupt
 * leave the whole command and keep the shell. bash reports in a second line; other shells throw away what they have read when something goes wrong,
 * and report when they ask for the next command ($PS1). docs/design/18-kept-interpreters has the reasons.
 */

import { asyncDispose } from './dispose.js';
import { RunError, RunTimeout } from './errors.js';
import { Kept } from './kept.js';
import { parseDuration } from './values.js';

// What the engine may take to deliver an interrupt, before the next command could be hit by it.
const SETTLE_MS = 50;
const MAX_COMMAND_BYTES = 16 << 20;

// bash if there is one. What it says about the terminal that is missing goes nowhere.
const START =
  'exec 7>&2 2>/dev/null; command -v bash >/dev/null && exec bash --noprofile --norc --noediting -i; exec /bin/sh -i';

const quote = (command) => `'${command.replaceAll("'", "'\\''")}'`;

const init = (word) => `
if [ -n "\${BASH_VERSION-}" ]; then eval 'exec 98>&1 99>&7 2>&7 7>&-'; else exec 8>&1 9>&7 2>&7 7>&-; fi
if [ -n "\${BASH_VERSION-}" ]; then unset HISTFILE; set +o history; set +H; PROMPT_COMMAND='PS1= PS2='; fi
_belljar_status() { return "$1"; }
if [ -n "\${BASH_VERSION-}" ]; then eval 'command printf "\\0%s 0 0 bash\\0" ${word} >&98; command printf "\\0%s 0 0\\0" ${word} >&99'; else command printf "\\0%s 0 0 sh\\0" ${word} >&8; fi
if [ -z "\${BASH_VERSION-}" ]; then _belljar_number=0; PS1='$(command printf "\\0%s %d %d\\0" ${word} "$_belljar_number" "$?" >&8; command printf "\\0%s %d 0\\0" ${word} "$_belljar_number" >&9)'; fi
`.trimStart();

/** What came of a command. */
class ShellResult {
  constructor(parts) {
    Object.assign(this, parts);
    Object.freeze(this);
  }

  get ok() {
    return this.outcome === 'exited' && this.exitCode === 0;
  }

  check() {
    if (this.ok) return this;
    const how = this.outcome === 'exited' ? `exit status ${this.exitCode}` : this.outcome;
    throw new (this.outcome === 'timeout' ? RunTimeout : RunError)(`the command ended with ${how}`, { result: this });
  }
}

export class Shell {
  #kept;
  #word;
  #isBash;
  #lastStatus = 0;

  constructor(kept, word) {
    this.#kept = kept;
    this.#word = word;
  }

  static async open(jar, options = {}) {
    let word;
    const begin = (made) => init((word = made));
    const { kept, first } = await Kept.open('shell', jar, ['/bin/sh', '-c', START], options, { PS1: '', PS2: '' }, false, begin);
    const made = new Shell(kept, word);
    made.#isBash = first.mark.more === ' bash';
    return made;
  }

  /** A command as the shell reads it. $? is the status of the last one. */
  #text(command, number) {
    const closed = this.#isBash ? '98>&- 99>&-' : '8>&- 9>&-';
    const text = `_belljar_status ${this.#lastStatus}; eval ${quote(command)} </dev/null ${closed}\n`;
    if (!this.#isBash) return `_belljar_number=${number}; ${text}`;
    const report = `command printf "\\0%s %d %d\\0" ${this.#word} ${number} "$?" >&98; command printf "\\0%s %d 0\\0" ${this.#word} ${number} >&99`;
    // Simple commands only: after a syntax error in an `eval`, bash takes no `{` in the next line.
    return `${text}${report}\n`;
  }

  /** Run a command line. Whatever its exit status, nothing is thrown; see check(). */
  run(command, { timeout, signal } = {}) {
    if (typeof command !== 'string') throw new TypeError('a command for a shell must be text');
    if (command.includes('\0')) throw new TypeError('a command for a shell must not have a NUL in it');
    if (command.length > MAX_COMMAND_BYTES) throw new RangeError(`a command for a shell has at most ${MAX_COMMAND_BYTES} bytes`);
    const seconds = timeout === undefined ? undefined : parseDuration(timeout, 'timeout');
    return this.#kept.inTurn(async () => {
      const done = await this.#kept.exchange((number) => this.#text(command, number), { timeout: seconds, signal });
      if (done.isAborting || done.wasInterrupted) await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
      return this.#made(done);
    });
  }

  #made({ stdout, stderr, mark, isLate, wasInterrupted, truncated, ended, seconds, risky }) {
    const result = ended?.result ?? null;
    const late = { name: 'timeout', limit: Math.round(seconds * 1000), peak: null, enforced_by: 'client', evidence: 'the command was interrupted when its time was over' };
    const limits_hit = [...(isLate ? [late] : []), ...(result?.limits_hit ?? [])];
    let exitCode = mark?.value ?? null;
    let outcome = isLate ? 'timeout' : wasInterrupted ? 'interrupted' : 'exited';
    if (ended !== undefined) {
      // `exit` in a command: the status is the shell's own.
      exitCode = result?.exit_code ?? null;
      outcome = isLate ? outcome : 'ended';
    } else {
      this.#lastStatus = exitCode;
    }
    return new ShellResult({ stdout, stderr, exitCode, outcome, exit_code: exitCode, limits_hit, truncated, stateLost: ended !== undefined, result, risky });
  }

  interrupt() {
    this.#kept.interrupt();
  }

  close() {
    return this.#kept.close();
  }

  [asyncDispose]() {
    return this.close();
  }
}
