// SPDX-License-Identifier: Apache-2.0
/**
 * test/adapters/package-npm.test.js - npm packs what tools/package.py packs, and installs it offline in an empty directory
 */

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

const SOURCE = process.env.BELLJAR_TEST_NODE_SOURCE;
const TARBALLS = process.env.BELLJAR_TEST_NODE_TARBALLS;
const PROGRAM = `
import { run } from 'belljar';
console.log((await run(['echo', 'installed'])).stdout.trim());
`;

test('npm packs the same files, and installs them offline', (context) => {
  const dir = mkdtempSync(join(tmpdir(), 'belljar-node-'));
  context.after(() => rmSync(dir, { recursive: true }));
  cpSync(SOURCE, join(dir, 'source'), { recursive: true });
  execFileSync('npm', ['pack', '--silent', '--pack-destination', dir], { cwd: join(dir, 'source'), stdio: ['ignore', 'pipe', 'pipe'] });
  const list = (path) => execFileSync('tar', ['tzf', path], { encoding: 'utf8' }).trim().split('\n').sort();
  const made = readdirSync(TARBALLS).filter((file) => file.endsWith('.tgz'));
  const main = made.find((file) => !file.startsWith('belljar-linux'));
  assert.deepEqual(list(join(dir, main)), list(join(TARBALLS, main)));
  const empty = join(dir, 'empty');
  cpSync(TARBALLS, join(dir, 'tarballs'), { recursive: true });
  execFileSync('mkdir', [empty]);
  writeFileSync(join(empty, 'package.json'), '{"private": true}');
  const files = made.map((file) => join(dir, 'tarballs', file));
  execFileSync('npm', ['install', '--offline', '--no-audit', '--no-fund', '--cache', join(dir, 'cache'), ...files], { cwd: empty, stdio: 'pipe' });
  writeFileSync(join(empty, 'program.mjs'), PROGRAM);
  const env = { PATH: process.env.PATH, HOME: process.env.HOME };
  assert.equal(execFileSync(process.execPath, ['program.mjs'], { cwd: empty, env, encoding: 'utf8' }), 'installed\n');
  assert.ok(existsSync(join(empty, 'node_modules/.bin/belljar')));
});
