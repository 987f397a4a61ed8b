// SPDX-License-Identifier: Apache-2.0
/**
 * test/helper.js - what test files share
 */

import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import * as nodeTest from 'node:test';

/** Against hangs only. */
export const BOUND_MS = 60_000 * Number(process.env.BELLJAR_TEST_SLOWNESS ?? 1); // as tests/harness/bounds.py has it

export function test(name, ...rest) {
  const action = rest.pop();
  nodeTest.test(name, { timeout: BOUND_MS, ...rest[0] }, action);
}

/** Also what a layer of a workspace has that nobody may enter. */
function remove(path) {
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    if (!entry.isDirectory()) continue;
    chmodSync(join(path, entry.name), 0o700);
    remove(join(path, entry.name));
  }
  rmSync(path, { recursive: true, force: true });
}

/** A directory that is gone with the test. */
export function folder(context) {
  const made = mkdtempSync(join(tmpdir(), 'belljar-node-'));
  context.after(() => remove(made));
  return made;
}

/** Wait until something holds. */
export async function until(condition, what) {
  const end = Date.now() + BOUND_MS / 2;
  for (;;) {
    const found = await condition();
    if (found) return found;
    if (Date.now() > end) throw new Error(`it did not come to this: ${what ?? condition}`);
    await sleep(10);
  }
}

export const INDEX = new URL('../index.js', import.meta.url).href;

/** What the runtime of these tests needs before the name of a program's file; Deno's is "-" where it comes from standard input. */
export const START = 'Deno' in globalThis ? ['run', '--allow-all', '--quiet', '--v8-flags=--expose-gc'] : [];

/** Run a script that imports the package, or a file (null), in a process of its own: {status, signal, stdout, stderr}, and the child. */
export function script(text, { args = [], env = {}, cwd } = {}) {
  const source = `import * as belljar from ${JSON.stringify(INDEX)};\n${text}`;
  const isDeno = START.length > 0;
  const words = text === null ? [...START, ...args] : isDeno ? [...START, '-'] : [...args, '--input-type=module', '--eval', source];
  const child = spawn(process.execPath, words, { env: { ...process.env, ...env }, cwd });
  if (isDeno && text !== null) child.stdin.end(source);
  const done = new Promise((resolve, reject) => {
    const parts = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr']) child[name].setEncoding('utf8').on('data', (data) => (parts[name] += data));
    child.on('error', reject);
    child.on('close', (status, signal) => resolve({ status, signal, ...parts }));
  });
  return { child, done };
}

/** The processes whose parent is this one: [pid, name]. */
export function children(pid) {
  const found = [];
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      const [, command, parent] = /^\d+ \((.*)\) \S (\d+)/s.exec(stat);
      if (Number(parent) === pid) found.push([Number(name), command]);
    } catch {
      // it has ended in between
    }
  }
  return found;
}

export function isAlive(pid) {
  try {
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

/** The engine of a process. */
export function engineOf(pid) {
  return children(pid).find(([, name]) => name.startsWith('belljar'))?.[0];
}

export { sleep };
