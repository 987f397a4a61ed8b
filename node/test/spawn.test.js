// SPDX-License-Identifier: Apache-2.0
/**
 * test/spawn.test.js - spawn(): streams, signals, terminals
 */

import assert from 'node:assert/strict';
import { once } from 'node:events';

import { Process, spawn, StartError } from '../index.js';
import { asyncDispose } from '../lib/dispose.js';
import { test, until } from './helper.js';

async function textOf(stream) {
  let text = '';
  for await (const data of stream) text += data;
  return text;
}

test('streams can be used while the command runs', async () => {
  const process = await spawn(['cat'], { stdin: 'pipe' });
  assert.ok(process instanceof Process && process.result === null);
  process.stdin.write('hello');
  const [first] = await once(process.stdout, 'data');
  assert.equal(String(first), 'hello');
  process.stdin.end();
  const result = await process.wait();
  assert.deepEqual([result.outcome, result.exit_code, result.stdout, process.result], ['exited', 0, null, result]);
});

test('stdout and stderr are apart, or one', async () => {
  const apart = await spawn(['sh', '-c', 'echo a; echo b >&2']);
  assert.deepEqual(await Promise.all([textOf(apart.stdout), textOf(apart.stderr)]), ['a\n', 'b\n']);
  const joined = await spawn('echo a; echo b >&2', { shell: true, stderrToStdout: true });
  assert.equal(await textOf(joined.stdout), 'a\nb\n');
});

test('web streams', async () => {
  const process = await spawn(['cat'], { stdin: 'pipe' });
  const writer = process.web.stdin.getWriter();
  await writer.write(new TextEncoder().encode('over the web'));
  await writer.close();
  const parts = [];
  for await (const data of process.web.stdout) parts.push(data);
  assert.equal(Buffer.concat(parts).toString(), 'over the web');
  assert.equal((await process.wait()).outcome, 'exited');
});

test('who stops reading a web stream ends the command', async () => {
  const process = await spawn(['yes']);
  const reader = process.web.stdout.getReader();
  await reader.read();
  await reader.cancel();
  assert.equal((await process.wait()).outcome, 'cancelled');
});

test('breaking off a loop over stdout ends the command', async () => {
  const process = await spawn(['yes']);
  for await (const data of process.stdout) {
    assert.ok(data.length > 0);
    break;
  }
  assert.equal((await process.wait()).outcome, 'cancelled');
});

test('a command that cannot be started is told at once', async () => {
  await assert.rejects(spawn(['no-such-command']), StartError);
});

test('signals reach the command', async () => {
  const process = await spawn(['sh', '-c', 'trap "echo got; exit 5" USR1; echo ready; while :; do sleep 0.01; done']);
  await once(process.stdout, 'data');
  process.kill(0); // reaches nobody
  for (const wrong of [65, -1, 'SIGRTMIN+31']) assert.throws(() => process.kill(wrong), TypeError);
  process.kill('SIGUSR1');
  process.stdout.resume();
  assert.equal((await process.wait()).exit_code, 5);
  for (const none of ['SIGNONE', 65]) assert.throws(() => process.kill(none), TypeError);
  process.kill(9); // it is over: nothing happens
  const other = await spawn(['sleep', '600']);
  other.kill('SIGKILL');
  assert.deepEqual(await other.wait().then(({ outcome, signal, shellStatus }) => [outcome, signal, shellStatus]), ['signaled', 'SIGKILL', 137]);
});

test('cancel ends it, also where nobody reads', async () => {
  const process = await spawn(['yes']);
  await until(() => process.stdout.readableLength > 60_000);
  assert.equal((await process.cancel()).outcome, 'cancelled');
});

test('disposing of it ends it', async () => {
  const process = await spawn(['sleep', '600']);
  await process[asyncDispose]();
  assert.equal(process.result.outcome, 'cancelled');
  await process.close();
});

test('a terminal, its size, and the change of it', async () => {
  const process = await spawn(['sh', '-c', 'stty size; trap "stty size; exit" WINCH; echo ready; while :; do sleep 0.01; done'], { pty: true, rows: 30, columns: 100 });
  let text = '';
  process.stdout.on('data', (data) => (text += data));
  await until(() => text.includes('ready'));
  process.resize(40, 120);
  await process.wait();
  assert.match(text, /30 100\r\n.*ready\r\n.*40 120\r\n/s);
  assert.throws(() => process.resize(0, 5), RangeError);
});

test('a terminal takes input, and Ctrl-C is a signal', async () => {
  const process = await spawn(['cat'], { pty: true, stdin: 'pipe' });
  let text = '';
  process.stdout.on('data', (data) => (text += data));
  process.stdin.write('typed\n');
  await until(() => text.includes('typed\r\ntyped\r\n'));
  process.stdin.write('\x03');
  assert.deepEqual(await process.wait().then(({ outcome, signal }) => [outcome, signal]), ['signaled', 'SIGINT']);
});

test('writing to a command that has ended is an error of the stream, not of the program', async () => {
  const process = await spawn(['true'], { stdin: 'pipe' });
  await process.wait();
  const failed = await new Promise((resolve) => process.stdin.write(Buffer.alloc(1 << 20), resolve));
  assert.ok(failed instanceof Error);
});

test('an AbortSignal ends it', async () => {
  const controller = new AbortController();
  const process = await spawn(['sleep', '600'], { signal: controller.signal });
  controller.abort();
  await assert.rejects(process.wait(), { name: 'AbortError' });
  assert.equal(await textOf(process.stdout), '');
});

test('onOutput instead of streams', async () => {
  const seen = [];
  const process = await spawn(['echo', 'told'], { onOutput: (stream, data) => seen.push([stream, String(data)]) });
  assert.deepEqual([process.stdout, process.stderr], [null, null]);
  await process.wait();
  assert.deepEqual(seen, [['stdout', 'told\n']]);
});

test('capture keeps output too', async () => {
  const process = await spawn(['echo', 'kept'], { capture: true });
  process.stdout.resume();
  assert.equal((await process.wait()).stdout, 'kept\n');
});
