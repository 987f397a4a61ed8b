// SPDX-License-Identifier: Apache-2.0
/**
 * lib/errors.js - the errors of the package, and which of them stands for what the engine reports
 *
 * The classes have the names and meanings of the Python package's. JavaScript has one base class for each, so what is a ValueError or
 * an OSError there is told by `code` here, as Node does: a StartError has the `code`, `errno` and `path` that errors of `fs` have.
 */

import { getSystemErrorMap } from 'node:util';

/** The base of all. `result` is the Result of the run, if there was one; `hint` says what to do, if that is known. */
export class BelljarError extends Error {
  constructor(message, { result = null, hint = null, cause } = {}) {
    super(hint ? `${message}\n  hint: ${hint}` : message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.result = result;
    this.hint = hint;
  }
}

export class PolicyError extends BelljarError {}

export class UnavailableError extends BelljarError {
  constructor(message, { missing = [], ...more } = {}) {
    super(message, more);
    this.missing = missing;
  }
}

export class StartError extends BelljarError {
  constructor(message, { errno = 0, path, ...more } = {}) {
    super(message, more);
    Object.assign(this, systemParts(errno));
    if (path !== undefined) this.path = path;
  }
}

export class EngineError extends BelljarError {}

export class RunError extends BelljarError {
  get stdout() {
    return this.result.stdout;
  }

  get stderr() {
    return this.result.stderr;
  }
}

export class RunTimeout extends RunError {}

/** A workspace could not be used, or not everything could be applied: `notApplied` has what was not, and why. */
export class WorkspaceError extends BelljarError {
  constructor(message, { notApplied = [], ...more } = {}) {
    super(message, more);
    this.notApplied = notApplied;
  }
}

export class SendError extends BelljarError {}

export class CallError extends BelljarError {
  constructor(message, { typeName = null, originalMessage = null, traceback = null, ...more } = {}) {
    super(message, more);
    this.typeName = typeName;
    this.originalMessage = originalMessage;
    this.traceback = traceback;
  }
}

export class CallTimeout extends CallError {}

export class CallEnded extends CallError {}

export class ResultError extends CallError {}

function systemParts(errno) {
  return { errno: -errno, code: getSystemErrorMap().get(-errno)?.[0] ?? `errno ${errno}` };
}

/** An error as those of `fs`, for what could not be done with a file or process of a jar. */
export function systemError(errno, operation, path, dest, message) {
  const words = message ?? getSystemErrorMap().get(-errno)?.[1] ?? 'it failed';
  const parts = systemParts(errno);
  const where = path === undefined ? '' : dest === undefined ? ` '${path}'` : ` '${path}' -> '${dest}'`;
  const made = Object.assign(new Error(`${parts.code}: ${words}, ${operation}${where}`), parts, { syscall: operation });
  if (path !== undefined) made.path = path;
  if (dest !== undefined) made.dest = dest;
  return made;
}

const EPERM = 1;
const ENOSYS = 38;
const EOPNOTSUPP = 95;
const ESHUTDOWN = 108;

/** The error for {"stage", "errno", "message", "hint"}. */
export function failure(error, missing, result = null, command = '') {
  const { stage, errno = 0, message = 'the engine gave no reason', hint = null } = error ?? {};
  const more = { result, hint };
  if (stage === 'usage' || stage === 'policy') return new PolicyError(message, more);
  // The planner refuses paths that cannot be used, and policies that this host cannot enforce; its number tells which.
  if (stage === 'exec' || stage === 'files' || (stage === 'plan' && ![EPERM, ENOSYS, EOPNOTSUPP].includes(errno))) {
    const path = stage === 'exec' && command ? command : /'([^']+)'/.exec(message)?.[1];
    return new StartError(message, { errno, path, ...more });
  }
  if (['host', 'plan', 'limits', 'isolate'].includes(stage)) return new UnavailableError(message, { missing: missing ?? [], ...more });
  return new EngineError(message, more);
}

/** The error for a question about a file, a process or a port. */
export function fileFailure(answer, operation, path, dest) {
  const error = answer.error ?? {};
  if (error.errno === ESHUTDOWN) return new EngineError('the jar has ended');
  if (error.stage === 'files' && error.errno) {
    return systemError(error.errno, operation, path, dest, path === undefined ? error.message : undefined);
  }
  return failure(error, answer.missing);
}
