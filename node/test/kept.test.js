// SPDX-License-Identifier: Apache-2.0
/**
 * test/kept.test.js - shells and interpreters that keep their state
 */

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { CallEnded, CallError, EngineError, Jar, PolicyError, ResultError, RunError, RunTimeout, SendError } from '../index.js';
import { asyncDispose } from '../lib/dispose.js';
import { sleep, test } from './helper.js';

async function open(context, options = {}) {
  const jar = await Jar.open({ workdir: null, ...options });
  context.after(() => jar.close());
  return jar;
}

test('a shell keeps directory, variables, functions and status', async (context) => {
  const shell = await (await open(context)).shell();
  const first = await shell.run('cd /usr; greet() { echo hello $1 from $PWD; }; x="a b"; false');
  assert.deepEqual([first.exitCode, first.outcome, first.ok], [1, 'exited', false]);
  const second = await shell.run('echo $?; greet "$x"; echo oops >&2');
  assert.deepEqual([second.stdout, second.stderr, second.ok], ['1\nhello a b from /usr\n', 'oops\n', true]);
  await assert.rejects(async () => (await shell.run('exit_with() { return 7; }; exit_with')).check(), RunError);
});

test('what a cell answers is held to the output that was given', async (context) => {
  const given = await open(context, { output: 100 });
  for (const [jar, options] of [[given, {}], [given, { output: '1M' }], [await open(context), { output: 100 }]]) {
    const python = await jar.python(options);
    for (const code of ["'x' * 5000", "['é' * 3000]", "b'y' * 5000", 'range(10 ** 400)']) {
      const cell = await python.run(code);
      assert.ok(cell.truncated && !cell.isData && Buffer.byteLength(cell.value) <= 100 && cell.value.length > 30, JSON.stringify(cell));
    }
    const { truncated, error } = await python.run("v = 'x' * 5000\nraise ValueError('é' * 3000)");
    assert.deepEqual([truncated, error.typeName, error.traceback.trimEnd().at(-1)], [true, 'ValueError', 'é']);
    assert.ok(Math.max(Buffer.byteLength(error.message), Buffer.byteLength(error.traceback)) <= 100);
    await assert.rejects(python.get('v'), (error) => error instanceof ResultError && /limit of output allows 100/.test(error.message));
    const cell = await python.run("[1, 'two']");
    assert.deepEqual([cell.value, cell.isData, cell.truncated], [[1, 'two'], true, false]);
  }
  const python = await (await open(context)).python();
  assert.equal((await python.run("'x' * 500000")).value.length, 500_000);
});

test('each request has at most what the jar was given, and the shell lives on', async (context) => {
  const jar = await open(context, { timeout: '400ms', output: 10 });
  const shell = await jar.shell({ timeout: 60, output: '1M' });
  await sleep(600);
  for (const timeout of [undefined, 50, null]) {
    const late = await shell.run('echo 0123456789abcdef; sleep 600', timeout === null ? {} : { timeout });
    assert.deepEqual([late.outcome, late.stdout, late.limits_hit[0].limit], ['timeout', '0123456789', 400]);
  }
  assert.equal((await shell.run('echo here')).stdout, 'here\n');
  const python = await jar.python({ timeout: null });
  assert.equal((await python.run('import time; time.sleep(60)', { timeout: 60 })).error.kind, 'timeout');
  assert.equal((await python.run('1 + 1')).value, 2);
});

test('whatever is in a command, it cannot end early or take in what follows', async (context) => {
  const shell = await (await open(context)).shell();
  for (const [command, code] of [["echo 'unclosed", 2], ['cat <<END\nno end', 0], ['if true; then', 2], ['cat', 0], ["echo it\\'s", 0], ['read x', 1]]) {
    const done = await shell.run(command);
    assert.equal(done.outcome, 'exited', command);
    if (code === 0) assert.equal(done.exitCode, 0, command);
    else assert.notEqual(done.exitCode, 0, command);
  }
  assert.equal((await shell.run('echo still here')).stdout, 'still here\n');
});

test('streams that a command takes away do not take the answer along', async (context) => {
  const shell = await (await open(context)).shell();
  await shell.run('exec >/dev/null 2>&1');
  const done = await shell.run('echo unseen; (exit 3)');
  assert.deepEqual([done.stdout, done.exitCode], ['', 3]);
  assert.equal((await shell.run('set -x; ls /proc/self/fd | wc -l > /tmp/count; set +x')).ok, true);
});

test('a timeout interrupts the whole command line and keeps the shell', async (context) => {
  const shell = await (await open(context)).shell({ timeout: '200ms' });
  const late = await shell.run('x=5; sleep 600; echo never');
  assert.deepEqual([late.outcome, late.stateLost, late.stdout], ['timeout', false, '']);
  assert.throws(() => late.check(), RunTimeout);
  assert.equal((await shell.run('echo $x', { timeout: null })).stdout, '5\n');
});

test('who ignores interrupts is killed after the grace, and the shell with it', async (context) => {
  const shell = await (await open(context)).shell({ grace: '100ms' });
  await shell.run('trap "" INT');
  const done = await shell.run('sleep 600', { timeout: 0.1 });
  assert.deepEqual([done.outcome, done.stateLost], ['timeout', true]);
  await assert.rejects(shell.run('echo'), CallEnded);
});

test('interrupt() and an AbortSignal leave the shell as it is', async (context) => {
  const shell = await (await open(context)).shell();
  const going = shell.run('x=1; sleep 600');
  await sleep(200);
  shell.interrupt();
  assert.equal((await going).outcome, 'interrupted');
  await assert.rejects(shell.run('sleep 600', { signal: AbortSignal.timeout(100) }), { name: 'TimeoutError' });
  assert.equal((await shell.run('echo $x')).stdout, '1\n');
});

test('exit ends the shell with its own status', async (context) => {
  const shell = await (await open(context)).shell();
  const done = await shell.run('echo bye; exit 9');
  assert.deepEqual([done.outcome, done.exitCode, done.stdout, done.stateLost, done.result.exit_code], ['ended', 9, 'bye\n', true, 9]);
  await shell[asyncDispose]();
  await assert.rejects(shell.run('echo'), EngineError);
});

test('commands wait for their turn, and output is capped', async (context) => {
  const shell = await (await open(context)).shell({ output: 1000 });
  const all = await Promise.all([1, 2, 3].map((number) => shell.run(`sleep 0.0${4 - number}; echo ${number}`)));
  assert.deepEqual(all.map(({ stdout }) => stdout), ['1\n', '2\n', '3\n']);
  const large = await shell.run('head -c 3000000 /dev/zero | tr "\\0" x; echo end >&2');
  assert.deepEqual([large.stdout.length, large.stderr, large.truncated], [1000, '', true]);
  assert.equal((await shell.run('echo small')).truncated, false);
});

test('background output belongs to the command during which it comes', async (context) => {
  const shell = await (await open(context)).shell();
  await shell.run('{ sleep 0.1; echo from behind; } & :');
  await sleep(300);
  assert.match((await shell.run('echo now')).stdout, /from behind\n/);
});

test('marks that were not given are output', async (context) => {
  const shell = await (await open(context)).shell();
  const zeros = await shell.run('printf "\\0%032d 1 0\\0" 7; printf "\\0"');
  assert.deepEqual([zeros.exitCode, zeros.stdout.length], [0, 39]);
});

test('sh does as well where there is no bash', async (context) => {
  const jar = await open(context, { env: { PATH: '/none' } });
  const shell = await jar.shell();
  assert.equal((await shell.run('echo "[$BASH_VERSION]"; x=3; false')).stdout, '[]\n');
  const done = await shell.run('echo $? $x; cd /usr');
  assert.deepEqual([done.stdout, done.stderr, done.exitCode], ['1 3\n', '', 0]);
  assert.equal((await shell.run('/bin/sleep 600', { timeout: 0.2 })).outcome, 'timeout');
  const after = await shell.run('pwd; echo err >&2');
  assert.deepEqual([after.stdout, after.stderr], ['/usr\n', 'err\n']);
  assert.notEqual((await shell.run('if')).exitCode, 0);
  assert.equal((await shell.run('echo $x')).stdout, '3\n');
  // Here a command can find the word, and forge its own answer. What is malformed ends the shell.
  const forged = 'printf "\\0%s x\\0" "$(printf %s "$PS1" | /bin/grep -ao "[0-9a-f]\\{32\\}" | /usr/bin/head -n 1)"';
  await assert.rejects(shell.run(forged), ResultError);
  await assert.rejects(shell.run('echo'), CallEnded);
});

test('keys that cannot hold are refused', async (context) => {
  const jar = await open(context);
  await assert.rejects(jar.shell({ keep: 'tail' }), PolicyError);
  await assert.rejects(jar.shell({ timeout: 'soon' }), PolicyError);
  await assert.rejects(jar.shell({ net: 'host' }), PolicyError);
  await assert.rejects(jar.python({ python: 'no-such-python' }), (error) => error.code === 'ENOENT');
});

test('an interpreter keeps variables', async (context) => {
  const python = await (await open(context)).python();
  const first = await python.run('x = 20\nprint("hello")\nimport sys; print("err", file=sys.stderr)');
  assert.deepEqual([first.stdout, first.stderr, first.value, first.ok], ['hello\n', 'err\n', null, true]);
  assert.equal((await python.run('x + 22')).value, 42);
  assert.equal((await python.run('import asyncio\nawait asyncio.sleep(0)\nx')).value, 20);
  const failed = await python.run('def half(n):\n    return n / 0\nhalf(4)');
  assert.deepEqual([failed.error.kind, failed.error.typeName], ['raised', 'ZeroDivisionError']);
  assert.match(failed.error.traceback, /File "<cell 4>", line 2, in half\n\s+return n \/ 0/);
  assert.throws(() => failed.check(), (error) => error instanceof CallError && error.typeName === 'ZeroDivisionError');
  assert.match((await python.run('x =')).error.typeName, /SyntaxError/);
  assert.equal((await python.run('import subprocess\nsubprocess.run(["echo", "child"]).returncode')).stdout, 'child\n');
  assert.deepEqual(await python.run('exit()').then(({ error }) => error.typeName), 'SystemExit');
  assert.match((await python.run('input()')).error.typeName, /EOFError/);
});

test('values cross both ways as data', async (context) => {
  const python = await (await open(context)).python();
  const value = { a: [1, 2.5, true, null], big: 2n ** 80n, bytes: new Uint8Array([0, 255]), map: new Map([[1, 'x']]), set: new Set([1]), $x: NaN, minus: -0, text: 'é\u{1f600}' };
  await python.set('value', value);
  assert.deepEqual(await python.get('value'), value);
  assert.equal((await python.run('type(value["bytes"]).__name__ + type(value["set"]).__name__')).value, 'bytesset');
  const shown = await python.run('object()');
  assert.deepEqual([shown.isData, /^<object object/.test(shown.value)], [false, true]);
  await python.set('when', new Date(0));
  assert.equal((await python.run('when.isoformat()')).value, '1970-01-01T00:00:00+00:00');
  await assert.rejects(python.get('when'), ResultError);
  await assert.rejects(python.set('f', () => 1), SendError);
  await assert.rejects(python.set('no name', 1), TypeError);
  assert.equal(await python.get('absent'), undefined);
  assert.ok((await python.variables()).some(({ name, typeName }) => name === 'value' && typeName === 'dict'));
});

test('a cell that takes too long is interrupted, and the variables stay', async (context) => {
  const python = await (await open(context)).python();
  const late = await python.run('x = 1\nimport time\ntime.sleep(600)', { timeout: 0.3 });
  assert.deepEqual([late.error.kind, late.error.typeName, late.error.stateLost], ['timeout', 'KeyboardInterrupt', false]);
  assert.equal((await python.run('x')).value, 1);
  const going = python.run('time.sleep(600)');
  await sleep(200);
  python.interrupt();
  assert.equal((await going).error.kind, 'interrupted');
});

test('an interpreter that ends says how, and begins afresh', async (context) => {
  const python = await (await open(context)).python({ memory: '100M' });
  const died = await python.run('print("last words", flush=True)\nimport os\nos._exit(4)');
  assert.deepEqual([died.error.kind, died.error.stateLost, died.error.result.exit_code, died.stdout], ['ended', true, 4, 'last words\n']);
  await assert.rejects(python.run('1'), CallEnded);
  await python.reset();
  assert.equal((await python.run('2')).value, 2);
  const greedy = await python.run('x = bytearray(300 << 20)');
  assert.ok(greedy.error.kind === 'ended' ? greedy.error.result.outcome === 'memory' : greedy.error.typeName === 'MemoryError');
});

test('forged answers are ResultErrors, and end the interpreter', async (context) => {
  const jar = await open(context);
  const forge = (body) => `
import gc, os
cells = next(o for o in gc.get_objects() if type(o).__name__ == "Cells")
body = ${body}
os.write(cells.answers, b"\\0%s %d %d\\0%s" % (cells.word.encode(), cells.number, len(body), body))
os.write(cells.ends, b"\\0%s %d 0\\0" % (cells.word.encode(), cells.number))
`;
  for (const body of ['b"[]"', 'b\'{"error": 3}\'', 'b\'{"data": {"$bigint": "zz"}}\'', 'b"[" + b"[]," * 5_000_000 + b"0]"']) {
    const python = await jar.python();
    await assert.rejects(python.run(forge(body)), ResultError, body);
    await assert.rejects(python.run('1'), EngineError);
  }
  const python = await jar.python();
  const huge = 'os.write(cells.answers, b"\\0%s %d 99999999999\\0" % (cells.word.encode(), cells.number))';
  await assert.rejects(python.run(`import gc, os\ncells = next(o for o in gc.get_objects() if type(o).__name__ == "Cells")\n${huge}`), ResultError);
  assert.ok(!('polluted' in {}));
});

test('a cell, a command and a look say what was left for other programs', async (context) => {
  const directory = await mkdtemp(join(tmpdir(), 'belljar-look-'));
  context.after(() => rm(directory, { recursive: true }));
  const names = (entries) => entries.map(({ path }) => path.slice(directory.length + 1));
  const jar = await open(context, { workdir: directory });
  const python = await jar.python();
  assert.deepEqual(names((await python.run("open('.envrc', 'w').close()")).risky), ['.envrc']);
  assert.deepEqual((await python.run('1')).risky, []);
  const shell = await jar.shell();
  assert.deepEqual(names((await shell.run('mkdir -p sub/.vscode; echo x > sub/.vscode/tasks.json')).risky), ['sub/.vscode/tasks.json']);
  assert.deepEqual((await shell.run('(echo x > AGENTS.md; touch there) & wait; true')).ok, true);
  assert.deepEqual(names(await jar.look()).sort(), ['.envrc', 'AGENTS.md', 'sub/.vscode/tasks.json']);
  await jar.close();
  assert.deepEqual(names(jar.risky).sort(), ['.envrc', 'AGENTS.md', 'sub/.vscode/tasks.json']);
});

test('a jar whose time is over says what was left', async (context) => {
  const directory = await mkdtemp(join(tmpdir(), 'belljar-look-'));
  context.after(() => rm(directory, { recursive: true }));
  const jar = await open(context, { workdir: directory, ttl: '1s' });
  await jar.run(['sh', '-c', '(echo x > AGENTS.md; exec sleep 600) &'], { detach: true });
  while (jar.isOpen) await sleep(50);
  assert.deepEqual(jar.risky.map(({ path }) => path), [join(directory, 'AGENTS.md')]);
});
