// SPDX-License-Identifier: Apache-2.0
/**
 * lib/keys.js - have the engine's program look at policy keys when an object is made, before any jar is opened
 */

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { PolicyError } from './errors.js';
import { normalKeys } from './policy.js';
import { enginePath } from './program.js';

/** PolicyError, with the engine's suggestion, for keys that no policy can have. */
export function checkKeys(keys) {
  const made = normalKeys(keys);
  if (Object.keys(made).length === 0) return;
  const folder = mkdtempSync(join(tmpdir(), 'belljar-'));
  const file = join(folder, 'keys.json');
  try {
    writeFileSync(file, JSON.stringify(made));
    execFileSync(enginePath(), ['policy', 'check', '--color=never', file], { stdio: ['ignore', 'ignore', 'pipe'] });
  } catch (error) {
    if (typeof error.status !== 'number') throw error;
    const [message, ...rest] = String(error.stderr).trim().split('\n');
    const hint = rest.join('\n').trim().replace(/^hint: /, '');
    throw new PolicyError(message.replace(/^belljar: /, '').replace(`${file}:`, '').replace(/^\d+:\d+: /, ''), { hint: hint || null });
  } finally {
    rmSync(folder, { recursive: true });
  }
}
