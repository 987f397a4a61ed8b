// SPDX-License-Identifier: Apache-2.0
/**
 * test/adapters/openai-agents.test.js - jars under the OpenAI Agents SDK, with a scripted model
 */

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { Runner, setTracingDisabled } from '@openai/agents';
import { Manifest, SandboxAgent } from '@openai/agents/sandbox';
import { assistantMessage, functionCall, ScriptedModel } from '@openai/agents/testing';
import { JarSandboxClient } from 'belljar/openai-agents';

import { checkLimits, checkMistakes } from './limits.js';

setTracingDisabled(true);

async function session(context, args) {
  const made = await new JarSandboxClient({ timeout: null }).create(args);
  context.after(() => made.close());
  return made;
}

test('an agent works in a jar, which ends with the run', async () => {
  const model = new ScriptedModel([
    [functionCall('exec_command', { cmd: 'cat given.txt; echo $((6 * 7)) > made; cat made' }, { callId: '1' })],
    [assistantMessage('done')],
  ]);
  const client = new JarSandboxClient();
  let made;
  const create = client.create.bind(client);
  client.create = async (...args) => (made = await create(...args));
  const agent = new SandboxAgent({ name: 'a', model, defaultManifest: new Manifest({ entries: { 'given.txt': { type: 'file', content: 'given ' } } }) });
  const result = await new Runner({ sandbox: { client } }).run(agent, 'x');
  assert.equal(result.finalOutput, 'done');
  assert.match(JSON.stringify(model.lastCall.request.input), /given 42/);
  assert.equal(made.jar.isOpen, false);
});

test('commands, and those that go on', async (context) => {
  const sandbox = await session(context);
  const done = await sandbox.exec({ cmd: 'echo out; echo err >&2; exit 3' });
  assert.deepEqual([done.stdout, done.stderr, done.exitCode, done.sessionId], ['out\n', 'err\n', 3, undefined]);
  assert.match(await sandbox.execCommand({ cmd: 'pwd', workdir: '/usr' }), /exited with code 0\nOutput:\n\/usr\n/);
  const going = await sandbox.exec({ cmd: 'read x; echo got $x; read y', yieldTimeMs: 50 });
  assert.equal(typeof going.sessionId, 'number');
  assert.match(await sandbox.writeStdin({ sessionId: going.sessionId, chars: 'word\n', yieldTimeMs: 400 }), /running with session ID[^]*got word/);
  assert.match(await sandbox.writeStdin({ sessionId: going.sessionId, chars: 'end\n', yieldTimeMs: 5000 }), /exited with code 0/);
  assert.match(await sandbox.writeStdin({ sessionId: going.sessionId }), /session not found/);
  const terminal = await sandbox.exec({ cmd: 'test -t 0 && echo yes; cat', tty: true, yieldTimeMs: 300 });
  assert.match(terminal.output, /yes/);
  assert.match(await sandbox.writeStdin({ sessionId: terminal.sessionId, chars: '\x03', yieldTimeMs: 5000 }), /exited with code 130/);
  const long = await sandbox.exec({ cmd: 'seq 1 100000', maxOutputTokens: 50 });
  assert.ok(long.output.length < 300 && /tokens truncated/.test(long.output));
  await assert.rejects(sandbox.exec({ cmd: 'id', runAs: 'root' }), /one user/);
});

test('files, entries, edits and archives', async (context) => {
  const host = mkdtempSync(join(tmpdir(), 'belljar-node-'));
  context.after(() => rmSync(host, { recursive: true }));
  writeFileSync(join(host, 'local.txt'), 'from the host');
  const sandbox = await session(context, {
    manifest: new Manifest({
      environment: { GREETING: 'hello' },
      entries: { sub: { type: 'dir', children: { 'a.txt': { type: 'file', content: 'one\ntwo\n' } } }, copied: { type: 'local_dir', src: host } },
    }),
  });
  assert.equal((await sandbox.exec({ cmd: 'cat copied/local.txt; echo " $GREETING"' })).stdout, 'from the host hello\n');
  assert.equal(Buffer.from(await sandbox.readFile({ path: 'sub/a.txt' })).toString(), 'one\ntwo\n');
  assert.deepEqual(await sandbox.listDir({ path: '.' }), [{ name: 'copied', path: 'copied', type: 'dir' }, { name: 'sub', path: 'sub', type: 'dir' }]);
  assert.deepEqual([await sandbox.pathExists('sub/a.txt'), await sandbox.directoryExists('sub'), await sandbox.directoryExists('sub/a.txt')], [true, true, false]);
  const editor = sandbox.createEditor();
  await editor.createFile({ type: 'create_file', path: 'new.txt', diff: '+fresh\n+text' });
  await editor.updateFile({ type: 'update_file', path: 'sub/a.txt', diff: '@@\n one\n-two\n+2' });
  assert.equal(Buffer.from(await sandbox.readFile({ path: 'new.txt' })).toString(), 'fresh\ntext');
  assert.match(Buffer.from(await sandbox.readFile({ path: 'sub/a.txt' })).toString(), /^one\n2/);
  const archive = await sandbox.persistWorkspace();
  await editor.deleteFile({ type: 'delete_file', path: 'new.txt' });
  const other = await session(context);
  await other.hydrateWorkspace(archive);
  assert.equal((await other.exec({ cmd: 'cat new.txt copied/local.txt' })).stdout, 'fresh\ntextfrom the host');
  await sandbox.materializeEntry({ path: 'dot.png', entry: { type: 'file', content: new Uint8Array([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10]) } });
  assert.equal((await sandbox.viewImage({ path: 'dot.png' })).image.mediaType, 'image/png');
  await assert.rejects(sandbox.viewImage({ path: 'new.txt' }));
  await assert.rejects(sandbox.materializeEntry({ path: 'x', entry: { type: 'git_repo' } }), /git_repo/);
  await assert.rejects(new JarSandboxClient({ workdir: '/tmp' }).create(), /private/);
});

test('the limits of the owner hold and are named', async (context) => {
  for (const tty of [false, true]) {
    await checkLimits(async (keys, cmd) => {
      const made = await new JarSandboxClient(keys).create();
      context.after(() => made.close());
      return made.execCommand({ cmd, tty, yieldTimeMs: 60_000 });
    });
  }
  checkMistakes((keys) => new JarSandboxClient(keys));
});

test('the options of a session do not go beyond those of the client', async (context) => {
  const create = async (client, options) => {
    const made = await new JarSandboxClient(client).create({ options });
    context.after(() => made.close());
    return made;
  };
  const limits = async (made) => (await made.exec({ cmd: 'ulimit -n; ulimit -c' })).stdout.trim().split('\n').map(Number);
  for (const client of [{ fds: 300, core: 0 }, { policy: { fds: 300, core: 0 } }]) {
    assert.deepEqual(await limits(await create(client, { fds: 4000, core: '1M' })), [300, 0]);
    assert.deepEqual(await limits(await create(client, { fds: null, core: null })), [300, 0]);
    assert.deepEqual(await limits(await create(client, { fds: 200 })), [200, 0]);
  }
  assert.deepEqual((await limits(await create({ fds: 300 }, { policy: { fds: 4000, pids: 50 } })))[0], 300);
  const late = await create({ timeout: '1s', output: 10 }, { timeout: null, output: '1M' });
  const { exitCode, stdout } = await late.exec({ cmd: 'head -c 1000 /dev/zero; sleep 60' });
  assert.deepEqual([exitCode, stdout.length], [124, 10]);
  await assert.rejects(create({ net: 'none' }, { net: 'host' }), { name: 'PolicyError', message: /^net: the client has it/ });
  await assert.rejects(create({ policy: 'strict' }, { policy: 'agent' }), { name: 'PolicyError', message: /^policy: the client has one/ });
  await assert.rejects(create({}, { memroy: '1G' }), /did you mean 'memory'/);
  assert.throws(() => new JarSandboxClient({ policy: { tiemout: 3 } }), /did you mean 'timeout'/);
});
