// SPDX-License-Identifier: Apache-2.0
/**
 * test/package.test.js - the packages as users install them
 */

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { enginePath } from '../lib/program.js';
import { folder, START, test } from './helper.js';

const HERE = dirname(fileURLToPath(import.meta.url));
// The stage of the tests keeps it apart.
const TOOL = ['../../packaging/tools/package.py', '../../tools/package.py'].map((name) => join(HERE, name)).find(existsSync);
const ABOUT = JSON.parse(readFileSync(join(HERE, '../package.json'), 'utf8'));
const PROGRAM = `
import { Jar, run } from 'belljar';
const jar = await Jar.open({ workdir: null });
const python = await jar.python();
console.log((await run(['echo', 'installed'])).stdout.trim(), (await python.run('6 * 7')).value);
`;

function make(context) {
  const dir = folder(context);
  execFileSync('python3', [TOOL, 'npm', enginePath(), dir]);
  return dir;
}

function runIn(dir) {
  writeFileSync(join(dir, 'package.json'), '{}');
  writeFileSync(join(dir, 'program.mjs'), PROGRAM);
  const env = { PATH: '/usr/bin:/bin', HOME: process.env.HOME };
  return execFileSync(process.execPath, [...START, 'program.mjs'], { cwd: dir, env, encoding: 'utf8' });
}

test('both packages, unpacked as npm does it, work in an empty directory', (context) => {
  const made = make(context);
  const dir = folder(context);
  for (const file of readdirSync(made)) {
    const name = file.startsWith('belljar-linux') ? `@belljar/linux-${process.arch}` : 'belljar';
    const target = join(dir, 'node_modules', name);
    mkdirSync(target, { recursive: true });
    execFileSync('tar', ['xzf', join(made, file), '--strip-components=1', '-C', target]);
  }
  assert.equal(runIn(dir), 'installed 42\n');
  const about = JSON.parse(readFileSync(join(dir, `node_modules/@belljar/linux-${process.arch}/package.json`), 'utf8'));
  assert.deepEqual([about.os, about.cpu, about.version], [['linux'], [process.arch], ABOUT.version]);
});

test('the same input gives the same bytes', (context) => {
  const [a, b] = [make(context), make(context)];
  for (const file of readdirSync(a)) assert.ok(readFileSync(join(a, file)).equals(readFileSync(join(b, file))), file);
});

test('there is nothing to install with it, and no script runs', () => {
  assert.equal(ABOUT.scripts, undefined);
  assert.equal(ABOUT.dependencies, undefined);
  assert.deepEqual(Object.keys(ABOUT.optionalDependencies), ['@belljar/linux-arm64', '@belljar/linux-x64']);
  for (const { types, default: file } of Object.values(ABOUT.exports).filter((entry) => typeof entry === 'object')) {
    assert.ok(existsSync(join(HERE, '..', types)) && existsSync(join(HERE, '..', file)));
  }
});
