// SPDX-License-Identifier: Apache-2.0
/**
 * test/adapters/limits.js - the owner's limits, for the tests of every adapter
 */

import assert from 'node:assert/strict';

import { PolicyError } from 'belljar';

// Each limit as the owner gives it, a command that needs more, and what the model must see.
export const LIMITS = {
  timeout: ['1s', 'sleep 600', /limit 'timeout' of 1s/],
  cpu_time: ['1s', 'while :; do :; done', /limit 'cpu_time' of 1s|limit of 1s was/],
  memory: ['100M', 'python3 -c "x = b\'x\' * (1 << 30)"', /of 100M/],
  pids: [24, 'for i in $(seq 200); do sleep 20 & done; exit 9', /of 24\b|Cannot fork/],
  fds: [77, 'ulimit -n', /\b77\b/],
  core: [0, 'ulimit -c', /\b0\b/],
  file_size: ['1M', 'ulimit -f', /\b(1024|2048)\b/],
};

/** see(keys, command): what the model sees of a command in a jar with these keys. */
export async function checkLimits(see) {
  for (const [name, [given, command, seen]] of Object.entries(LIMITS)) assert.match(await see({ [name]: given }, command), seen, name);
}

/** A wrong key is an error when the object is made, with the engine's suggestion. */
export function checkMistakes(make) {
  assert.throws(() => make({ memroy: '1G' }), (error) => error instanceof PolicyError && /did you mean 'memory'/.test(error.message));
  assert.throws(() => make({ pids: 'many' }), PolicyError);
  make({ pass_env: 'FOO' });
}
