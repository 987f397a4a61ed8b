// SPDX-License-Identifier: Apache-2.0
/**
 * test/jar.test.js - Jar: runs, files, archives, processes, ports
 */

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { Readable } from 'node:stream';

import { EngineError, Jar, PolicyError, run, StartError, UnavailableError } from '../index.js';
import { asyncDispose } from '../lib/dispose.js';
import { folder, test, until } from './helper.js';

async function open(context, options = {}) {
  const jar = await Jar.open({ workdir: null, ...options });
  context.after(() => jar.close());
  return jar;
}

const namesOf = (infos) => infos.map(({ name }) => name);

test('runs share private files, and a closed jar is gone', async (context) => {
  const jar = await open(context, { env: { A: 'jar' } });
  assert.deepEqual([jar.workdir, jar.isOpen, Array.isArray(jar.missing)], ['/workspace', true, true]);
  await jar.run(['sh', '-c', 'echo kept > file; echo kept > /tmp/file']);
  assert.equal((await jar.run('cat file /tmp/file; echo $A', { shell: true })).stdout, 'kept\nkept\njar\n');
  const process = await jar.spawn(['sleep', '600']);
  await jar[asyncDispose]();
  assert.equal((await process.wait()).outcome, 'cancelled');
  await jar.close();
  await assert.rejects(jar.run(['true']), EngineError);
  await assert.rejects(jar.readFile('file'), EngineError);
  assert.equal(jar.isOpen, false);
});

test('what a jar was given is a ceiling for its runs', async (context) => {
  const jar = await open(context, { timeout: '300ms', grace: '100ms', output: 100, fds: 40, pids: 30 });
  for (const asked of [{}, { timeout: 60, output: '1M', fds: 400, grace: '1h' }, { timeout: null, output: 5000, fds: null }]) {
    const late = await jar.run("trap '' TERM; head -c 1000 /dev/zero; ulimit -n >&2; sleep 600; sleep 600", { shell: true, ...asked });
    assert.deepEqual([late.outcome, late.stdout.length + late.stderr.length <= 100, late.limits_hit.find(({ name }) => name === 'timeout').limit], ['timeout', true, 300]);
    const process = await jar.spawn(['sleep', '600'], asked);
    assert.equal((await process.wait()).outcome, 'timeout');
  }
  assert.equal((await jar.run('ulimit -n', { shell: true, fds: 4000 })).stdout, '40\n');
  const free = await open(context);
  assert.equal((await free.run(['true'], { timeout: '1h', memory: '8G', pids: null })).ok, true);
});

test('keys of a jar cannot be changed by a run', async (context) => {
  const jar = await open(context, { memory: '64M' });
  await assert.rejects(jar.run(['true'], { net: 'host' }), PolicyError);
  await assert.rejects(jar.run(['true'], { policy: 'strict' }), PolicyError);
  assert.throws(() => new Jar(), TypeError);
  await assert.rejects(Jar.open({ workdir: '/nonexistent/x' }), StartError);
});

test('a run in a jar sees the environment of its time', async (context) => {
  const jar = await open(context, { pass_env: ['BELLJAR_TEST_WORD'] });
  process.env.BELLJAR_TEST_WORD = 'later';
  context.after(() => delete process.env.BELLJAR_TEST_WORD);
  assert.equal((await jar.run('echo $BELLJAR_TEST_WORD', { shell: true })).stdout, 'later\n');
});

test('files are written, read, listed, renamed and removed', async (context) => {
  const jar = await open(context);
  await jar.writeFile('a/b.txt', 'grüße', { parents: true, mode: 0o600 });
  assert.equal(await jar.readTextFile('a/b.txt'), 'grüße');
  assert.equal(await jar.readTextFile('a/b.txt', { offset: 1, length: 1 }), 'r');
  assert.equal(await jar.readTextFile('a/b.txt', { offset: 100 }), '');
  const info = await jar.stat('a/b.txt');
  assert.deepEqual([info.type, info.size, info.mode], ['file', 7, 0o600]);
  assert.ok(Math.abs(info.mtime.getTime() - Date.now()) < 600_000);
  await jar.run(['sh', '-c', 'ln -s b.txt a/link; mkfifo a/fifo; ln -s nowhere dangling']);
  const found = await jar.listFiles('.', { recursive: true });
  assert.deepEqual(found.map(({ name, type }) => [name, type]), [['a', 'dir'], ['a/b.txt', 'file'], ['a/fifo', 'other'], ['a/link', 'symlink'], ['dangling', 'symlink']]);
  assert.deepEqual(namesOf(await jar.listFiles()), ['a', 'dangling']);
  assert.equal((await jar.stat('a/link')).type, 'symlink');
  assert.equal((await jar.stat('a/link', { follow: true })).type, 'file');
  assert.deepEqual([await jar.exists('a/link'), await jar.exists('dangling'), await jar.exists('/nope')], [true, false, false]);
  await jar.rename('a/b.txt', 'c.txt');
  await jar.mkdir('x/y', { parents: true });
  await jar.remove('a', { recursive: true });
  assert.deepEqual(namesOf(await jar.listFiles()), ['c.txt', 'dangling', 'x']);
});

test('what cannot be done is an error as those of fs', async (context) => {
  const jar = await open(context);
  await assert.rejects(jar.readFile('absent'), { code: 'ENOENT', errno: -2, syscall: 'open', path: 'absent', message: "ENOENT: no such file or directory, open 'absent'" });
  await assert.rejects(jar.writeFile('/etc/passwd', 'x'), (error) => ['EROFS', 'EACCES', 'ELOOP'].includes(error.code));
  await assert.rejects(jar.mkdir('a/b'), { code: 'ENOENT' });
  await assert.rejects(jar.readFile('.'), { code: 'EISDIR' });
  await assert.rejects(jar.rename('absent', 'x'), { code: 'ENOENT', dest: 'x' });
  await assert.rejects(jar.kill(99999), { code: 'ESRCH' });
  await assert.rejects(jar.kill(1), RangeError);
  await assert.rejects(jar.writeFile('x', 3), TypeError);
  await assert.rejects(jar.readFile('a\0'), TypeError);
  await jar.writeFile('large', Buffer.alloc(1000));
  await assert.rejects(jar.readFile('large', { maxBytes: 999 }), { code: 'EFBIG' });
});

test('no link leads out of the jar', async (context) => {
  const dir = folder(context);
  writeFileSync(join(dir, 'secret'), 'outside');
  const jar = await open(context);
  await jar.run(['ln', '-s', join(dir, 'secret'), 'link']);
  await assert.rejects(jar.readFile('link'), { code: 'ENOENT' });
  await assert.rejects(jar.writeFile('link', 'x'), (error) => typeof error.code === 'string');
  assert.equal(readFileSync(join(dir, 'secret'), 'utf8'), 'outside');
});

test('large files pass in pieces', async (context) => {
  const jar = await open(context);
  const large = Buffer.alloc(5_000_000, 'abcdefg');
  await jar.writeFile('large', large);
  assert.ok(large.equals(await jar.readFile('large')));
  await pipeline(jar.createReadStream('large'), jar.createWriteStream('copy'));
  assert.ok(large.equals(await jar.readFile('copy')));
  await assert.rejects(pipeline(Readable.from([Buffer.from('x')]), jar.createWriteStream('no/such/file')), { code: 'ENOENT' });
  await assert.rejects(pipeline(jar.createReadStream('absent'), jar.createWriteStream('other')), { code: 'ENOENT' });
});

test('a directory with many files, and names that are not UTF-8', async (context) => {
  const jar = await open(context);
  await jar.run(['sh', '-c', 'mkdir d; cd d; seq 1 3000 | xargs touch; printf x > "$(printf "b\\377d")"']);
  const found = await jar.listFiles('d');
  assert.equal(found.length, 3001);
  assert.equal(await jar.readTextFile(`d/${found.at(-1).name}`), 'x');
});

test('archives go out as tar reads them', async (context) => {
  const jar = await open(context);
  const long = `${'n'.repeat(120)}/${'m'.repeat(120)}`;
  await jar.writeFile(long, 'far', { parents: true });
  await jar.writeFile('run.sh', 'x'.repeat(1000), { mode: 0o755 });
  await jar.run(['sh', '-c', `mkdir empty; ln -s run.sh link; ln -s ${'t'.repeat(150)} far; mkfifo fifo; touch "$(printf 'b\\377d')"`]);
  const dir = folder(context);
  await pipeline(jar.exportTar(), (await import('node:fs')).createWriteStream(join(dir, 'x.tar')));
  execFileSync('tar', ['xf', 'x.tar'], { cwd: dir });
  assert.equal(readFileSync(join(dir, long), 'utf8'), 'far');
  const listed = execFileSync('tar', ['tvf', 'x.tar'], { cwd: dir, encoding: 'utf8' });
  assert.match(listed, /-rwxr-xr-x .* 1000 .* run\.sh/);
  assert.match(listed, /link -> run\.sh/);
  assert.match(listed, /far -> t{150}/);
  assert.match(listed, /empty\//);
  assert.match(listed, /b\\377d/);
  assert.ok(!listed.includes('fifo'));
  const one = await Readable.from(jar.exportTar('run.sh')).toArray?.();
  assert.equal(Buffer.concat(one).length, 512 + 1024 + 1024);
});

test('a file whose zeros would take hours is refused', async (context) => {
  const jar = await open(context);
  await jar.run(['truncate', '-s', '1T', 'huge']);
  await assert.rejects(async () => {
    for await (const _ of jar.exportTar()) continue;
  }, { code: 'EFBIG', message: /1099511627776 bytes/ });
  await assert.rejects(Readable.from(jar.exportTar('huge')).toArray(), { code: 'EFBIG' });
});

test('archives come in, by bytes and by stream', async (context) => {
  const dir = folder(context);
  const jar = await open(context);
  execFileSync('sh', ['-c', `mkdir -p t/${'d'.repeat(90)}/${'e'.repeat(90)}; echo hello > t/${'d'.repeat(90)}/${'e'.repeat(90)}/f; head -c 300000 /dev/zero > t/zero; chmod 750 t/zero`], { cwd: dir });
  for (const [index, format] of ['gnu', 'pax', 'ustar', 'v7'].entries()) {
    if (format === 'v7') execFileSync('rm', ['-r', `t/${'d'.repeat(90)}`], { cwd: dir });
    const tar = execFileSync('tar', ['cf', '-', `--format=${format}`, '-C', 't', '.'], { cwd: dir, maxBuffer: 1 << 24 });
    await jar.importTar(index % 2 ? tar : Readable.from([tar.subarray(0, 700), tar.subarray(700)]), format);
    assert.equal((await jar.readFile(`${format}/zero`)).length, 300_000);
    assert.equal((await jar.stat(`${format}/zero`)).mode, 0o750);
    if (format !== 'v7') assert.equal(await jar.readTextFile(`${format}/${'d'.repeat(90)}/${'e'.repeat(90)}/f`), 'hello\n');
  }
});

test('archives that could do harm, or are none, are refused', async (context) => {
  const dir = folder(context);
  const jar = await open(context, { disk: '1M' });
  execFileSync('sh', ['-c', 'ln -s /etc link; mkfifo fifo; echo x > f; head -c 2000000 /dev/zero > large'], { cwd: dir });
  const tar = (...words) => execFileSync('tar', ['cf', '-', ...words], { cwd: dir, stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 1 << 24 });
  await assert.rejects(jar.importTar(tar('link')), /is a link/);
  await assert.rejects(jar.importTar(tar('fifo')), /neither a file nor a directory/);
  await assert.rejects(jar.importTar(tar('--transform=s,f,../f,', 'f')), /'\.\.' in its name/);
  await assert.rejects(jar.importTar(tar('-P', '--transform=s,f,/f,', 'f')), /absolute name/);
  await assert.rejects(jar.importTar(tar('large')), { code: 'ENOSPC' });
  const good = tar('f');
  const bad = Buffer.from(good);
  bad[0] ^= 1;
  await assert.rejects(jar.importTar(bad), RangeError);
  await assert.rejects(jar.importTar(good.subarray(0, 513)), RangeError);
  await assert.rejects(jar.importTar(Buffer.alloc(600, 'x')), RangeError);
  await assert.rejects(jar.importTar('text'), TypeError);
});

test('events of files', async (context) => {
  const jar = await open(context);
  const watch = await jar.watch();
  await jar.run(['sh', '-c', 'echo x > a; mkdir d; rm a']);
  const seen = [];
  for await (const event of watch) {
    seen.push(`${event.type} ${event.name}${event.isDir ? '/' : ''}`);
    if (event.type === 'deleted') break;
  }
  assert.deepEqual(seen, ['created a', 'modified a', 'closed a', 'created d/', 'deleted a']);
  assert.deepEqual(await watch.next(), { done: true, value: undefined });
  const other = await jar.watch('d');
  const next = other.next();
  await jar.close();
  assert.equal((await next).done, true);
  await assert.rejects(jar.watch(), EngineError);
});

test('processes are told, and killed by number', async (context) => {
  const jar = await open(context);
  await jar.run(['sh', '-c', 'sleep 600 & :'], { detach: true });
  const found = await until(async () => (await jar.processes()).find(({ name }) => name === 'sleep'));
  assert.deepEqual([found.name, found.args], ['sleep', ['sleep', '600']]);
  await jar.kill(found.pid, 0); // it is there
  await jar.kill(found.pid, 'SIGKILL');
  await until(async () => (await jar.processes()).length === 0);
  assert.ok((await jar.usage()).age_ms > 0);
});

test('a server in the jar can be asked', async (context) => {
  const jar = await open(context);
  await jar.writeFile('hello', 'x'.repeat(500_000));
  const server = await jar.spawn(['python3', '-u', '-m', 'http.server', '8000', '--bind', '127.0.0.1']);
  await new Promise((resolve) => server.stdout.once('data', resolve));
  server.stdout.resume();
  server.stderr.resume();
  const socket = await jar.connect(8000);
  const answer = await new Promise((resolve, reject) => {
    http.get({ path: '/hello', createConnection: () => socket }, resolve).on('error', reject);
  });
  let size = 0;
  for await (const data of answer) size += data.length;
  assert.deepEqual([answer.statusCode, size], [200, 500_000]);
  await assert.rejects(jar.connect(9), { code: 'ECONNREFUSED' });
});

test('a jar ends by its time to live, and says so', async () => {
  const jar = await Jar.open({ workdir: null, ttl: 0.05 });
  await until(() => !jar.isOpen);
  await assert.rejects(jar.run(['true']), EngineError);
  await jar.close();
});

test('rules of the network can be changed while a jar with a gate lives', async (context) => {
  await assert.rejects((await open(context)).allowNet('example.org'), PolicyError);
  const server = http.createServer((_request, response) => response.end('reached')).listen(0, '127.0.0.1');
  context.after(() => server.close());
  await once(server, 'listening');
  const { port } = server.address();
  let jar;
  try {
    jar = await open(context, { allow_net: ['host:9'] });
  } catch (error) {
    assert.ok(error instanceof UnavailableError);
    return context.skip('needs:gate');
  }
  const ask = () => jar.run(['python3', '-c', `import urllib.request as r; print(r.urlopen('http://host.belljar.internal:${port}', timeout=20).read())`]);
  const refused = await ask();
  assert.notEqual(refused.exit_code, 0);
  assert.ok(refused.denied.some(({ kind, cure }) => kind === 'net' && cure !== null));
  assert.throws(() => refused.check(), /ended with exit status 1\. The sandbox refused to connect to host\.belljar\.internal/);
  await jar.allowNet(`host:${port}`);
  assert.match((await ask()).stdout, /reached/);
  await jar.denyNet(`host:${port}`);
  assert.notEqual((await ask()).exit_code, 0);
});

test('a server in a jar is reached at the published port of this host', async (context) => {
  let jar;
  try {
    jar = await open(context, { publish: 8000 });
  } catch (error) {
    assert.ok(error instanceof UnavailableError);
    return context.skip('needs:gate');
  }
  assert.deepEqual(Object.keys(jar.published), ['8000']);
  const server = await jar.spawn(['node', '-e', `require('http').createServer((q, a) => a.end('reached')).listen(8000, () => console.log('up'))`]);
  await once(server.stdout, 'data');
  const answer = await fetch(`http://127.0.0.1:${jar.published[8000]}/`);
  assert.equal(await answer.text(), 'reached');
  await server.kill();
  await server.wait();
  assert.deepEqual((await open(context)).published, {});
});

const TALK = `
import socket, sys
for host, port in zip(sys.argv[1::2], sys.argv[2::2]):
    try:
        with socket.create_connection((host, int(port)), 40) as s:
            s.sendall(b"x")
            print(s.recv(1).decode() or "end")
    except OSError as error:
        print(type(error).__name__)
`;
const talk = (...where) => ['python3', '-c', TALK, ...where.map(String)];
const RESET = 'ConnectionResetError';

test('the program is asked about hosts that no rule decides, in a run and in all that a jar does', async (context) => {
  const asked = [];
  const says = (answer) => (question) => (asked.push(question), answer);
  let first;
  try {
    first = await run(talk('nobody.test', 7000, 'nobody.test', 7000, 'other.test', 443), { workdir: null, onAsk: says(Promise.resolve('deny')) });
  } catch (error) {
    assert.ok(error instanceof UnavailableError);
    return context.skip('needs:gate');
  }
  assert.deepEqual(first.stdout.split('\n'), [RESET, RESET, RESET, '']);
  assert.deepEqual(asked, [
    { kind: 'net', host: 'nobody.test', port: 7000, address: null, rule: 'nobody.test:7000', timeout: 60 },
    { kind: 'net', host: 'other.test', port: 443, address: null, rule: 'other.test:443', timeout: 60 },
  ]);

  asked.length = 0;
  const jar = await open(context, { onAsk: says('deny') });
  assert.equal((await jar.run(talk('a.test', 1))).stdout, `${RESET}\n`);
  assert.equal((await jar.run(talk('b.test', 1), { onAsk: says('deny') })).stdout, `${RESET}\n`);
  const shell = await jar.shell();
  assert.equal((await shell.run(`python3 -c '${TALK}' c.test 1`)).stdout, `${RESET}\n`);
  await shell.close();
  assert.deepEqual(asked.map(({ host }) => host), ['a.test', 'b.test', 'c.test']);

  // This host's own address: a question of its own kind, and one that can be allowed without an internet.
  const own = Object.values(networkInterfaces()).flat().find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
  if (own === undefined) return;
  const server = net.createServer((socket) => socket.pipe(socket).on('error', () => {})).listen(0, own);
  context.after(() => server.close());
  await once(server, 'listening');
  const { port } = server.address();
  asked.length = 0;
  assert.equal((await jar.run(talk(own, port, own, port), { onAsk: says('run') })).stdout, 'x\nx\n');
  assert.deepEqual(asked.map(({ host, address }) => [host, address]), [[own, 'host']]);
  const spawned = await jar.spawn(talk(own, port, own, port), { onAsk: async (question) => (asked.push(question), 'once') });
  let said = '';
  for await (const data of spawned.stdout) said += data;
  assert.deepEqual([said, asked.length], ['x\nx\n', 3]);
});

test('whatever onAsk does beside answering is a denial', async (context) => {
  const answers = [() => undefined, () => true, () => 'toString', () => { throw new Error('no'); }, () => Promise.reject(new Error('no'))];
  let jar;
  try {
    jar = await open(context, { ask: 'net' });
  } catch (error) {
    assert.ok(error instanceof UnavailableError);
    return context.skip('needs:gate');
  }
  let warnings = 0;
  const onWarning = ({ name }) => (warnings += name === 'BelljarWarning' ? 1 : 0);
  process.on('warning', onWarning);
  context.after(() => process.removeListener('warning', onWarning));
  const results = await Promise.all(answers.map((onAsk, number) => run(talk(`${number}.test`, 1), { workdir: null, onAsk })));
  assert.deepEqual(results.map(({ stdout }) => stdout), Array(answers.length).fill(`${RESET}\n`));
  await until(() => warnings === answers.length);
  assert.equal((await jar.run(talk('x.test', 1), { onAsk: () => 'deny' })).stdout, `${RESET}\n`);
  await assert.rejects((await open(context)).run(['true'], { onAsk: () => 'run' }), /this jar asks no questions/);
});
