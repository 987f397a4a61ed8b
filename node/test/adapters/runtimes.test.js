// SPDX-License-Identifier: Apache-2.0
/**
 * test/adapters/runtimes.test.js - the package's own tests on Bun, Deno and other versions of Node; and on Bun and Deno a program that uses it as
 * npm installs it
 */

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const MODULES = fileURLToPath(new URL('../node_modules', import.meta.url));
const PROGRAM = `
import { call, Jar, run, spawn, StartError } from 'belljar';
const said = [];
const say = (...words) => said.push(words.join(' '));
say((await run(['cat'], { input: 'in' })).stdout);
await run(['no-such-command']).catch((error) => say(error instanceof StartError, error.code));
await run(['sleep', '600'], { timeout: null, signal: AbortSignal.timeout(50) }).catch((error) => say(error.name));
const cat = await spawn(['cat'], { stdin: 'pipe' });
cat.stdin.end('streamed');
for await (const data of cat.stdout) say(String(data));
const yes = await spawn(['yes']);
await new Promise((resolve) => setTimeout(resolve, 300));
say(yes.stdout.readableLength <= 262144, (await yes.cancel()).outcome);
const web = await spawn(['echo', 'web']);
say(new TextDecoder().decode((await web.web.stdout.getReader().read()).value).trim());
const jar = await Jar.open({ workdir: null });
await jar.writeFile('a/b', 'file', { parents: true });
say(await jar.readTextFile('a/b'), (await jar.listFiles('.', { recursive: true })).length);
let size = 0;
for await (const data of jar.exportTar()) size += data.length;
say(size);
const shell = await jar.shell();
await shell.run('cd /usr');
say((await shell.run('pwd')).stdout.trim());
const python = await jar.python();
say((await python.run('2 ** 70')).value);
say(await call('./tools.mjs', 'add', [20, 22]));
await jar.close();
console.log(said.join('\\n'));
`;
const EXPECTED = ['in', 'true ENOENT', 'TimeoutError', 'streamed', 'true cancelled', 'web', 'file 2', '2560', '/usr', '1180591620717411303424', '42'];

const RUNTIMES = {
  bun: [join(MODULES, '.bin/bun'), 'test', '--timeout', '60000'],
  deno: [join(MODULES, '.bin/deno'), 'test', '--allow-all', '--no-check', '--quiet'],
  'Node 18': [join(MODULES, 'node18/bin/node'), '--test'],
  'Node 24': [join(MODULES, 'node24/bin/node'), '--test'],
};
const OWN = join(process.env.BELLJAR_TEST_NODE_SOURCE, 'test');

for (const [name, [program, ...words]] of Object.entries(RUNTIMES)) {
  const skip = spawnSync(program, ['--version']).status === 0 ? false : `needs:${name}`;
  for (const file of readdirSync(OWN).filter((entry) => entry.endsWith('.test.js'))) {
    test(`${file} on ${name}`, { skip, timeout: 600_000 }, () => {
      const env = { ...process.env, NODE_TEST_CONTEXT: undefined };
      const { status, stdout, stderr } = spawnSync(program, [...words, `./${file}`], { cwd: OWN, env, encoding: 'utf8', maxBuffer: 64 << 20 });
      assert.equal(status, 0, (stdout + stderr).slice(-4000));
    });
  }
}

for (const [name, ...words] of [['bun'], ['deno', 'run', '--allow-all']]) {
  const program = join(MODULES, '.bin', name);
  const isThere = spawnSync(program, ['--version']).status === 0;
  test(`everything works on ${name}`, { skip: isThere ? false : `needs:${name}`, timeout: 120_000 }, (context) => {
    const dir = mkdtempSync(join(tmpdir(), 'belljar-node-'));
    context.after(() => rmSync(dir, { recursive: true }));
    symlinkSync(MODULES, join(dir, 'node_modules'));
    writeFileSync(join(dir, 'package.json'), '{"type": "module"}');
    writeFileSync(join(dir, 'tools.mjs'), 'export const add = (a, b) => a + b;');
    writeFileSync(join(dir, 'program.mjs'), PROGRAM);
    const stdout = execFileSync(program, [...words, 'program.mjs'], { cwd: dir, encoding: 'utf8' });
    assert.deepEqual(stdout.trim().split('\n'), EXPECTED);
  });
}
