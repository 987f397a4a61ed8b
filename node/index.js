// SPDX-License-Identifier: Apache-2.0
/**
 * belljar - run commands and functions that nobody has reviewed, in a jar
 *
 * A client of `belljar engine --stdio` (docs/protocol.md) in plain JavaScript. docs/node.md shows how it is used.
 */

export { call, Pool } from './lib/call.js';
export { capabilities } from './lib/capabilities.js';
export {
  BelljarError,
  CallEnded,
  CallError,
  CallTimeout,
  EngineError,
  PolicyError,
  ResultError,
  RunError,
  RunTimeout,
  SendError,
  StartError,
  UnavailableError,
  WorkspaceError,
} from './lib/errors.js';
export { Jar } from './lib/jar.js';
export { Policy } from './lib/policy.js';
export { Process, spawn } from './lib/process.js';
export { Interpreter } from './lib/python.js';
export { Result } from './lib/result.js';
export { run } from './lib/run.js';
export { Shell } from './lib/shell.js';
export { Workspace } from './lib/workspace.js';
