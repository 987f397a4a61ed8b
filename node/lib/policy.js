// SPDX-License-Identifier: Apache-2.0
/**
 * lib/policy.js - a policy as data, and its keys as options of functions. What they mean, only the engine knows
 *
 * Policies are documents that programs in other languages read too, so their keys are those of a policy file (`cpu_time`), here as well.
 */

import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { PolicyError } from './errors.js';
import { checkKeys } from './keys.js';
import { askProgram, hasEngine } from './program.js';
import { textOf } from './text.js';

// A string, or a comment, or a comma before a closing bracket: whichever comes first in the text.
const JSON_EXTRAS = /("(?:[^"\\]|\\.)*")|\/\/[^\n]*|\/\*[^]*?\*\/|,(?=(?:\s|\/\/[^\n]*|\/\*[^]*?\*\/)*[}\]])/g;
// Keys with a list of texts or paths.
const LISTS = new Set(['ro', 'rw', 'hide', 'tmpfs', 'cow_dirs', 'allow_net', 'secrets', 'publish', 'pass_env', 'redact', 'optional']);
// Options of child_process that are none here, and what to do instead.
const OF_CHILD_PROCESS = {
  argv0: 'name the program as the first of the words',
  detached: 'a jar has a session of its own; detach: true is for runs in a Jar',
  encoding: 'leave it out: text is UTF-8, and text: false gives bytes',
  gid: 'leave it out: a command has your own group',
  killSignal: 'leave it out: a run is ended with SIGTERM, and after the grace with SIGKILL',
  maxBuffer: 'use output',
  stdio: 'use stdin, and spawn() or onOutput for what the command writes',
  uid: 'leave it out: a command has your own user',
};

const inner = new WeakMap();

/** One value, as JSON can have it. */
function plain(value) {
  if (value instanceof Uint8Array) return textOf(value);
  if (value instanceof URL) return fileURLToPath(value);
  if (value instanceof Set) return [...value].map(plain);
  if (value instanceof Map) return Object.fromEntries([...value].map(([name, item]) => [name, plain(item)]));
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value === 'bigint') return Number(value);
  if (typeof value === 'number' && !Number.isFinite(value)) throw new PolicyError(`a policy cannot hold ${value}; null means no limit`);
  if (typeof value === 'function' || typeof value === 'symbol') throw new PolicyError(`a policy cannot hold a ${typeof value}`);
  if (value !== null && typeof value === 'object') {
    const made = {};
    for (const [name, item] of Object.entries(value)) if (item !== undefined) made[name] = plain(item);
    return made;
  }
  return value;
}

/** Options as the engine takes policy keys: `cwd` is another name for `workdir`, one text stands for a list of one. */
export function normalKeys(keys) {
  const made = {};
  for (const [name, value] of Object.entries(keys)) {
    if (value === undefined) continue;
    if (Object.hasOwn(OF_CHILD_PROCESS, name)) throw new PolicyError(`unknown key '${name}'; ${OF_CHILD_PROCESS[name]}`);
    const key = name === 'cwd' ? 'workdir' : name;
    if (key in made) throw new PolicyError('cwd and workdir are the same key; give one of them');
    if (key === 'env' && value === null) continue;
    if (typeof value === 'number' && value < 0) throw new PolicyError(`${name}: ${value} must not be negative; null means no limit`);
    const isOne = typeof value === 'string' || value instanceof Uint8Array || value instanceof URL;
    const isList = LISTS.has(key) && (isOne || (key === 'publish' && typeof value === 'number'));
    made[key] = plain(isList ? [value] : value);
  }
  return made;
}

/** What is allowed, as a frozen value: the object of a policy file. */
export class Policy {
  /** PolicyError for keys and values that no policy can have. Where there is no engine nothing is checked: it could run nothing. */
  constructor(keys = {}, { base, isChecked = false } = {}) {
    const made = normalKeys(keys);
    if (!isChecked && hasEngine()) checkKeys(made, base);
    inner.set(this, { keys: made, base });
    Object.freeze(this);
  }

  /** Read and check a policy file. Relative paths in it start at its directory; later changes of the file have no effect. */
  static async load(path) {
    const name = resolve(path instanceof URL ? fileURLToPath(path) : path.replace(/^~(?=\/|$)/, homedir()));
    const { status, stderr } = await askProgram('policy', 'check', '--color=never', name);
    if (status !== 0) {
      const [message, ...rest] = stderr.trim().split('\n');
      const hint = rest.join('\n').trim().replace(/^hint: /, '');
      throw new PolicyError(message.replace('belljar: ', '') || `the policy '${name}' is not valid`, { hint: hint || null });
    }
    try {
      const text = await readFile(name, 'utf8');
      return new Policy(JSON.parse(text.replace(JSON_EXTRAS, (_, kept) => kept ?? ' ')), { base: dirname(name), isChecked: true });
    } catch (error) {
      throw new PolicyError(`cannot read the policy '${name}': ${error.message}`, { cause: error });
    }
  }

  /** One of the built-in policies: agent, readonly, strict. */
  static preset(name) {
    if (typeof name !== 'string' || isFile(name)) throw new PolicyError(`'${name}' is not the name of a preset`);
    return new Policy({ extends: name });
  }

  /** A copy with some keys changed. */
  replace(keys) {
    const { keys: mine, base } = inner.get(this);
    return new Policy({ ...mine, ...normalKeys(keys) }, { base });
  }

  /** The keys that are set, as plain data. */
  toJSON() {
    return structuredClone(inner.get(this).keys);
  }
}

function isFile(name) {
  return name.includes('/') || name.endsWith('.json');
}

export function currentDirectory() {
  try {
    return process.cwd();
  } catch {
    return null; // it was removed
  }
}

/** The members `policy` and `base` of a request. */
export function wirePolicy(policy, cwd) {
  if (policy === undefined || policy === null) return {};
  if (policy instanceof Policy) {
    const { keys, base } = inner.get(policy);
    return { policy: keys, base: base ?? cwd };
  }
  if (typeof policy === 'string') return { policy, base: cwd };
  if (policy instanceof URL) return { policy: fileURLToPath(policy), base: cwd };
  if (typeof policy === 'object' && !Array.isArray(policy)) return { policy: normalKeys(policy), base: cwd };
  throw new TypeError('policy must be a Policy, an object, the name of a preset, a path or a file URL');
}

/** The keys of a policy, with those of what it extends; a default is missing. For what this side has to know of them. */
export async function keysOf(policy, cwd) {
  const { policy: found, base } = wirePolicy(policy, cwd);
  if (found === undefined) return {};
  if (typeof found !== 'string') {
    const extended = typeof found.extends === 'string' ? found.extends : 'agent';
    return { ...(await keysOf(isFile(extended) ? resolve(base ?? '/', extended) : extended, cwd)), ...found };
  }
  if (found === 'agent') return {};
  const { status, stdout, stderr } = await askProgram('policy', 'show', '--color=never', found);
  if (status !== 0) throw new PolicyError(stderr.trim().replace('belljar: ', ''));
  return JSON.parse(stdout);
}
