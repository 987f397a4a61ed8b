// SPDX-License-Identifier: Apache-2.0
/**
 * test/docs.test.js - the examples of docs/node.md: each program prints what the text behind it says
 */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { folder, START, test } from './helper.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const TEXT = readFileSync(join(ROOT, 'docs/node.md'), 'utf8');
const EXAMPLES = [...TEXT.matchAll(/```js\n([^]*?)```\n```text\n([^]*?)```/g)];

test('every program of the page has its output beside it', () => {
  assert.ok(EXAMPLES.length >= 6);
  assert.equal([...TEXT.matchAll(/^```js$/gm)].length, EXAMPLES.length);
});

for (const [index, [, program, expected]] of EXAMPLES.entries()) {
  test(`example ${index + 1} prints what the page says`, async (context) => {
    const dir = folder(context);
    mkdirSync(join(dir, 'node_modules'));
    symlinkSync(dirname(dirname(fileURLToPath(import.meta.url))), join(dir, 'node_modules/belljar'));
    writeFileSync(join(dir, 'package.json'), '{}');
    writeFileSync(join(dir, 'example.mjs'), program);
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [...START, 'example.mjs'], { cwd: dir, encoding: 'utf8' });
    assert.deepEqual([stdout, stderr], [expected, '']);
  });
}
