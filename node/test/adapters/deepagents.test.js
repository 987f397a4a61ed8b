// SPDX-License-Identifier: Apache-2.0
/**
 * test/adapters/deepagents.test.js - a jar under deepagents, with a scripted model
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { AIMessage } from '@langchain/core/messages';
import { FakeListChatModel } from '@langchain/core/utils/testing';
import { Jar } from 'belljar';
import { JarSandbox } from 'belljar/deepagents';
import { createDeepAgent, isSandboxBackend } from 'deepagents';

import { checkLimits, checkMistakes } from './limits.js';

async function open(context) {
  const jar = await Jar.open({ workdir: null });
  context.after(() => jar.close());
  return jar;
}

class Scripted extends FakeListChatModel {
  constructor(messages) {
    super({ responses: [''] });
    this.messages = messages;
  }

  bindTools() {
    return this;
  }

  async _generate() {
    const message = this.messages.shift();
    return { generations: [{ message, text: String(message.content) }] };
  }

  async *_streamResponseChunks() {}
}

const calls = (name, args) => new AIMessage({ content: '', tool_calls: [{ id: name, name, args, type: 'tool_call' }] });

test('commands and files', async (context) => {
  const backend = new JarSandbox(await open(context));
  assert.ok(isSandboxBackend(backend));
  assert.notEqual(backend.id, new JarSandbox(await open(context)).id);
  assert.deepEqual(await backend.execute('echo out; echo err >&2; exit 3'), { output: 'out\nerr\n', exitCode: 3, truncated: false });
  const bytes = new Uint8Array([1, 2]);
  assert.deepEqual(await backend.uploadFiles([['/workspace/a/b', bytes], ['/etc/passwd', bytes]]), [{ path: '/workspace/a/b', error: null }, { path: '/etc/passwd', error: 'permission_denied' }]);
  const [found, absent, folder] = await backend.downloadFiles(['/workspace/a/b', '/workspace/none', '/workspace/a']);
  assert.deepEqual([found.content, found.error, absent.error, folder.error], [bytes, null, 'file_not_found', 'is_directory']);
  assert.equal((await backend.write('/workspace/text', 'one\ntwo\n')).error, undefined);
  assert.match(JSON.stringify(await backend.read('/workspace/text')), /one/);
  assert.match(JSON.stringify(await backend.grep('two', '/workspace')), /text/);
  assert.match(JSON.stringify(await backend.ls('/workspace')), /text/);
});

test('an agent works in a jar', async (context) => {
  const jar = await open(context);
  const model = new Scripted([
    calls('write_file', { file_path: '/workspace/made.py', content: 'print(6 * 7)' }),
    calls('execute', { command: 'python3 made.py > answer' }),
    new AIMessage('done'),
  ]);
  const agent = createDeepAgent({ model, backend: new JarSandbox(jar) });
  const { messages } = await agent.invoke({ messages: [{ role: 'user', content: 'x' }] });
  assert.equal(messages.at(-1).content, 'done');
  assert.equal(await jar.readTextFile('answer'), '42\n');
});

test('the limits of the owner hold and are named', async (context) => {
  await checkLimits(async (keys, command) => {
    const jar = await Jar.open({ workdir: null, ...keys });
    context.after(() => jar.close());
    return (await new JarSandbox(jar).execute(command)).output;
  });
  const jar = await open(context);
  checkMistakes((keys) => new JarSandbox(jar, keys));
});
