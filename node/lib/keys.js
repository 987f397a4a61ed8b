// SPDX-License-Identifier: Apache-2.0
/**
 * lib/keys.js - have the engine's program look at policies and their keys when an object is made, before any jar is opened
 */

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

import { PolicyError } from './errors.js';
import { normalKeys, Policy, wirePolicy } from './policy.js';
import { enginePath } from './program.js';

const isFile = (name) => typeof name === 'string' && (name.includes('/') || name.endsWith('.json'));

/** Have the program look at a file or preset. `file`: what its words name beside the policy itself. */
function ask(name, file = '') {
  try {
    execFileSync(enginePath(), ['policy', 'check', '--color=never', name], { stdio: ['ignore', 'ignore', 'pipe'] });
  } catch (error) {
    if (typeof error.status !== 'number') throw error;
    const [message, ...rest] = String(error.stderr).trim().split('\n');
    const hint = rest.join('\n').trim().replace(/^hint: /, '');
    const words = message.replace(/^belljar: /, '');
    throw new PolicyError(file === '' ? words : words.replace(`${file}:`, '').replace(/^\d+:\d+: /, ''), { hint: hint || null });
  }
}

/** PolicyError, with the engine's suggestion, for keys that no policy can have. `base`: where a relative path of `extends` starts. */
export function checkKeys(keys, base = '.') {
  const made = normalKeys(keys);
  if (Object.keys(made).length === 0) return;
  if (isFile(made.extends) && !made.extends.startsWith('~')) made.extends = resolve(base, made.extends);
  const folder = mkdtempSync(join(tmpdir(), 'belljar-'));
  const file = join(folder, 'keys.json');
  try {
    writeFileSync(file, JSON.stringify(made));
    ask(file, file);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The same for a policy as functions take it. A Policy was checked when it was made. */
export function checkPolicy(policy) {
  const { policy: found } = wirePolicy(policy, undefined);
  if (typeof found === 'string') ask(isFile(found) && !found.startsWith('~') ? resolve(found) : found);
  else if (found !== undefined && !(policy instanceof Policy)) checkKeys(found);
}
