// SPDX-License-Identifier: Apache-2.0
/**
 * test/adapters/ai-sdk.test.js - a jar under the Vercel AI SDK, with a scripted model
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { generateText, isStepCount, tool } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { Jar } from 'belljar';
import { sandboxSession } from 'belljar/ai-sdk';
import { z } from 'zod';

import { checkLimits, checkMistakes } from './limits.js';

async function open(context, options = {}) {
  const jar = await Jar.open({ workdir: null, ...options });
  context.after(() => jar.close());
  return jar;
}

async function textOf(stream) {
  const parts = [];
  for await (const data of stream) parts.push(data);
  return Buffer.concat(parts).toString();
}

test('a model runs commands in a jar', async (context) => {
  const sandbox = sandboxSession(await open(context));
  const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
  const answers = [
    { content: [{ type: 'tool-call', toolCallId: '1', toolName: 'shell', input: JSON.stringify({ command: 'echo $((6 * 7)); id -un >&2; touch made' }) }], finishReason: { unified: 'tool-calls', raw: undefined }, usage, warnings: [] },
    { content: [{ type: 'text', text: 'done' }], finishReason: { unified: 'stop', raw: undefined }, usage, warnings: [] },
  ];
  const model = new MockLanguageModelV4({ doGenerate: async () => answers.shift() });
  const shell = tool({
    inputSchema: z.object({ command: z.string() }),
    execute: ({ command }, { experimental_sandbox: given }) => given.run({ command }),
  });
  const { text, steps } = await generateText({ model, tools: { shell }, prompt: 'x', stopWhen: isStepCount(3), experimental_sandbox: sandbox });
  assert.equal(text, 'done');
  const [{ output }] = steps[0].toolResults;
  assert.deepEqual([output.exitCode, output.stdout], [0, '42\n']);
  assert.deepEqual(await sandbox.stat({ path: 'made' }), { type: 'file', size: 0 });
});

test('run and spawn', async (context) => {
  const sandbox = sandboxSession(await open(context), { timeout: 0.3 });
  assert.match(sandbox.description, /\/workspace/);
  const all = await sandbox.run({ command: 'mkdir -p d; cd d; echo $A; exit 3', env: { A: 'x' } });
  assert.deepEqual(all, { exitCode: 3, stdout: 'x\n', stderr: '' });
  assert.equal((await sandbox.run({ command: 'pwd', workingDirectory: 'd' })).stdout, '/workspace/d\n');
  const late = await sandbox.run({ command: 'sleep 600' });
  assert.equal(late.exitCode, 124);
  assert.match(late.stderr, /limit .timeout. of 300ms.*this call allowed it/s);
  await assert.rejects(sandbox.run({ command: 'sleep 600', abortSignal: AbortSignal.timeout(50) }), { name: 'TimeoutError' });
  const process = await sandbox.spawn({ command: 'cat; echo err >&2; exit 4', stdin: true });
  const writer = process.stdin.getWriter();
  await writer.write(new TextEncoder().encode('in'));
  await writer.close();
  assert.deepEqual(await Promise.all([textOf(process.stdout), textOf(process.stderr), process.wait()]), ['in', 'err\n', { exitCode: 4 }]);
  const other = await sandbox.spawn({ command: 'sleep 600' });
  assert.equal('stdin' in other, false);
  await other.kill();
  await other.kill();
  assert.equal((await other.wait()).exitCode, 137);
});

test('files', async (context) => {
  const sandbox = sandboxSession(await open(context));
  await sandbox.writeTextFile({ path: 'a/b.txt', content: 'one\ntwo\nthree\n' });
  assert.equal(await sandbox.readTextFile({ path: 'a/b.txt' }), 'one\ntwo\nthree\n');
  assert.equal(await sandbox.readTextFile({ path: 'a/b.txt', startLine: 2, endLine: 2 }), 'two\n');
  assert.equal(await sandbox.readTextFile({ path: 'a/b.txt', startLine: 3, endLine: 99 }), 'three\n');
  await sandbox.writeFile({ path: 'stream', content: new Blob(['streamed']).stream() });
  assert.equal(await textOf(await sandbox.readFile({ path: 'stream' })), 'streamed');
  await sandbox.writeBinaryFile({ path: 'bytes', content: new Uint8Array([0, 255]) });
  assert.deepEqual(await sandbox.readBinaryFile({ path: 'bytes' }), new Uint8Array([0, 255]));
  await sandbox.run({ command: 'ln -s a/b.txt link; ln -s nowhere dangling' });
  assert.deepEqual((await sandbox.listDirectory({ path: '.' })).sort((x, y) => (x.name < y.name ? -1 : 1)), [
    { name: 'a', type: 'directory' }, { name: 'bytes', type: 'file' }, { name: 'dangling', type: 'symlink' }, { name: 'link', type: 'symlink' }, { name: 'stream', type: 'file' },
  ]);
  assert.deepEqual(await sandbox.stat({ path: 'link' }), { type: 'file', size: 14 });
  for (const method of ['readFile', 'readBinaryFile', 'readTextFile', 'stat', 'listDirectory']) assert.equal(await sandbox[method]({ path: 'absent' }), null, method);
  await assert.rejects(sandbox.listDirectory({ path: 'bytes' }), { code: 'ENOTDIR' });
  await assert.rejects(sandbox.writeTextFile({ path: 'a', content: '' }));
  assert.equal(await sandbox.deleteFile({ path: 'link' }), true);
  assert.equal(await sandbox.deleteFile({ path: 'link' }), false);
  assert.equal(await sandbox.readTextFile({ path: 'a/b.txt', startLine: 1, endLine: 1 }), 'one\n');
  await assert.rejects(sandbox.deleteFile({ path: 'a' }), { code: 'EISDIR' });
  await assert.rejects(sandbox.readTextFile({ path: 'bytes', abortSignal: AbortSignal.abort() }), { name: 'AbortError' });
});

test('the limits of the owner hold and are named', async (context) => {
  await checkLimits(async (keys, command) => {
    const { stdout, stderr } = await sandboxSession(await open(context, keys)).run({ command });
    return stdout + stderr;
  });
  const jar = await open(context);
  checkMistakes((keys) => sandboxSession(jar, keys));
});
