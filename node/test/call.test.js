// SPDX-License-Identifier: Apache-2.0
/**
 * test/call.test.js - functions of modules in jars; and the data that travels
 */

import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { call, CallEnded, CallError, CallTimeout, EngineError, Jar, Pool, PolicyError, ResultError, SendError, UnavailableError } from '../index.js';
import { MAX_NODES, NotData, packData, unpackData } from '../lib/data.js';
import { folder, test } from './helper.js';

const MODULE = `
import fs from 'node:fs';
import net from 'node:net';
import { helper } from './helper.js';
export const add = (a, b) => a + b;
export const same = (value) => value;
export const help = () => helper();
export function print() { console.log('printed'); console.error('complained'); return 1; }
export function raise() { throw new RangeError('no'); }
export const raiseText = () => { throw 'text'; };
export const leave = (status) => process.exit(status);
export const stuck = () => new Promise(() => setInterval(() => {}, 1000));
export const spin = () => { for (;;); };
export const instance = () => ({ list: [1, new (class Foo {})()] });
export const cycle = () => { const a = {}; a.a = a; return a; };
export const fn = () => () => 1;
export const large = (size) => 'x'.repeat(size);
export const many = () => new Array(2_000_000).fill(0);
export const look = (path) => fs.readdirSync(path);
export const read = (path) => fs.readFileSync(path, 'utf8');
export const write = (path) => fs.writeFileSync(path, 'x');
export function forge(text) {
  const open = fs.openSync;
  process.on('exit', () => {
    for (const name of fs.readdirSync('/tmp')) if (name.startsWith('belljar-')) fs.writeFileSync('/tmp/' + name, Buffer.from(text, 'latin1'));
  });
}
export function link() {
  process.on('exit', () => {
    for (const name of fs.readdirSync('/tmp')) {
      if (!name.startsWith('belljar-')) continue;
      fs.unlinkSync('/tmp/' + name);
      fs.symlinkSync('/dev/zero', '/tmp/' + name);
    }
  });
}
export const reach = (host) => new Promise((resolve) => {
  const socket = net.connect(7000, host, () => socket.write('x'));
  socket.on('error', ({ code }) => resolve(code)).on('close', () => resolve('closed'));
});
let count = 0;
export const counted = () => ++count;
`;

function module(context) {
  const dir = folder(context);
  writeFileSync(join(dir, 'package.json'), '{"type": "module"}');
  writeFileSync(join(dir, 'helper.js'), 'export const helper = () => "helped";');
  writeFileSync(join(dir, '.env'), 'SECRET=1');
  writeFileSync(join(dir, 'tools.js'), MODULE);
  return join(dir, 'tools.js');
}

test('a function is called with data, and gives data', async (context) => {
  const tools = module(context);
  assert.equal(await call(tools, 'add', [1, 2]), 3);
  assert.equal(await call(pathToFileURL(tools), 'help'), 'helped');
  const value = { n: [1, -0, NaN, Infinity, 2n ** 90n, -5n], d: new Date(5), b: new Uint8Array([1, 2]), m: new Map([[{ a: 1 }, new Set(['x'])]]), u: undefined, $x: { $bytes: 'AA==' }, ['__proto__']: { polluted: 1 }, s: '\ud800é' };
  assert.deepEqual(await call(tools, 'same', [value]), value);
  assert.equal({}.polluted, undefined);
});

test('each call has a process of its own, and sees nothing of the others', async (context) => {
  const tools = module(context);
  await using_(new Pool({ preload: [tools], ready: 2 }), async (pool) => {
    assert.deepEqual(await Promise.all(Array.from({ length: 5 }, () => pool.call(tools, 'counted'))), [1, 1, 1, 1, 1]);
    await pool.call(tools, 'write', ['/tmp/left']);
    assert.ok(!(await pool.call(tools, 'look', ['/tmp'])).includes('left'));
    assert.ok(!(await pool.call(tools, 'look', ['.'])).length);
  });
});

async function using_(pool, action) {
  try {
    await action(pool);
  } finally {
    await pool.close();
  }
}

test('what lies beside a module and is not for it is not shown', async (context) => {
  const tools = module(context);
  const seen = await call(tools, 'look', [join(tools, '..')]);
  assert.deepEqual(seen.sort(), ['helper.js', 'package.json', 'tools.js']);
  await assert.rejects(call(tools, 'write', [tools]), CallError);
});

test('what a function throws is text', async (context) => {
  const tools = module(context);
  await assert.rejects(call(tools, 'raise'), (error) => {
    assert.ok(error instanceof CallError);
    assert.deepEqual([error.typeName, error.originalMessage], ['RangeError', 'no']);
    return /tools\.js:\d+/.test(error.traceback);
  });
  await assert.rejects(call(tools, 'raiseText'), { originalMessage: 'text' });
});

test('a process that ends, or is ended, is CallEnded or CallTimeout', async (context) => {
  const tools = module(context);
  await assert.rejects(call(tools, 'leave', [3]), (error) => error instanceof CallEnded && error.result.exit_code === 3);
  await assert.rejects(call(tools, 'leave', [0]), CallEnded);
  await assert.rejects(call(tools, 'stuck', [], { timeout: 0.4 }), CallTimeout);
  await assert.rejects(call(tools, 'spin', [], { cpu_time: 0.5 }), (error) => error instanceof CallEnded && error.result.outcome === 'cpu');
  await assert.rejects(call(tools, 'stuck', [], { signal: AbortSignal.timeout(300) }), { name: 'TimeoutError' });
});

test('what cannot be sent is a SendError, and what cannot come back a ResultError', async (context) => {
  const tools = module(context);
  await assert.rejects(call(tools, 'same', [() => 1]), (error) => error instanceof SendError && /a function at \$\[0\]/.test(error.message));
  await assert.rejects(call('/nonexistent.js', 'x'), SendError);
  await assert.rejects(call(tools, 'nothing'), SendError);
  await assert.rejects(call(tools, 'instance'), (error) => error instanceof ResultError && /class Foo at \$\["list"\]\[1\]/.test(error.message));
  await assert.rejects(call(tools, 'cycle'), ResultError);
  await assert.rejects(call(tools, 'fn'), ResultError);
  await assert.rejects(call(tools, 'many'), /1000000 parts/);
  await assert.rejects(call(tools, 'large', [5000], { maxResult: '1K' }), ResultError);
  await assert.rejects(call(tools, 'add', 1), TypeError);
  await assert.rejects(call(tools, 'add', [], { maxResult: 'much' }), PolicyError);
});

test('forged answers are ResultErrors', async (context) => {
  const tools = module(context);
  for (const text of ['', '[]', '{"kind":"value","value":{"$map":3}}', '{"kind":"raised"}', '\xff']) {
    await assert.rejects(call(tools, 'forge', [text]), ResultError, text);
  }
  await assert.rejects(call(tools, 'link'), (error) => error instanceof CallError);
});

test('prints are output, with cap and redaction as ever', async (context) => {
  const tools = module(context);
  const seen = [];
  assert.equal(await call(tools, 'print', [], { onOutput: (stream, data) => seen.push(`${stream}: ${data}`) }), 1);
  assert.deepEqual(seen.sort(), ['stderr: complained\n', 'stdout: printed\n']);
});

test('a pool gives files by its policy, and loads nothing that a jar can write', async (context) => {
  const tools = module(context);
  const dir = join(tools, '..');
  const data = folder(context);
  writeFileSync(join(data, 'x'), 'content');
  assert.throws(() => new Pool({ timeot: 1 }), PolicyError);
  await using_(new Pool({ ro: [data] }), async (pool) => assert.equal(await pool.call(tools, 'read', [join(data, 'x')]), 'content'));
  await using_(new Pool({ workdir: dir }), (pool) => assert.rejects(pool.call(tools, 'add', [1, 2]), SendError));
  mkdirSync(join(dir, 'below'));
  await using_(new Pool({ rw: [join(dir, 'below')] }), (pool) => assert.rejects(pool.call(tools, 'add', [1, 2]), SendError));
  await using_(new Pool({ workdir: dir, importPaths: [dir] }), async (pool) => assert.equal(await pool.call(tools, 'add', [1, 2]), 3));
  await using_(new Pool({ workdir: dir, workdir_mode: 'ro' }), async (pool) => assert.equal(await pool.call(tools, 'add', [1, 2]), 3));
});

test('a function is called for each item, in order, and the first error ends it', async (context) => {
  const tools = module(context);
  await using_(new Pool({ preload: [tools], concurrency: 2 }), async (pool) => {
    const seen = [];
    for await (const value of pool.map(tools, 'same', [1, 2, 3])) seen.push(value);
    assert.deepEqual(seen, [1, 2, 3]);
    async function* items() {
      try {
        for (let item = 0; ; item++) yield item;
      } finally {
        seen.push('left');
      }
    }
    for await (const value of pool.map(tools, 'same', items())) if (value === 1) break;
    assert.equal(seen.at(-1), 'left');
    await assert.rejects(async () => {
      for await (const _ of pool.map(tools, 'leave', [3])) assert.fail();
    }, CallEnded);
    await assert.rejects(async () => {
      for await (const _ of pool.map(tools, 'stuck', [1, 2], { signal: AbortSignal.timeout(300) })) assert.fail();
    }, { name: 'TimeoutError' });
  });
});

test('a function is called over the files of a jar', async (context) => {
  const tools = module(context);
  const jar = await Jar.open({ workdir: null, ro: [join(tools, '..'), process.execPath] });
  context.after(() => jar.close());
  await jar.writeFile('data', 'content');
  assert.equal(await jar.call(tools, 'read', ['data']), 'content');
  await jar.call(tools, 'write', ['made']);
  assert.equal(await jar.readTextFile('made'), 'x');
  assert.deepEqual([await jar.call(tools, 'counted'), await jar.call(tools, 'counted')], [1, 1]);
  assert.ok(!(await jar.call(tools, 'look', ['/tmp'])).some((name) => /^belljar-[0-9a-f]{16}$/.test(name)));
  await assert.rejects(jar.call(tools, 'raise'), { typeName: 'RangeError' });
  await assert.rejects(jar.call(tools, 'same', [() => 1]), SendError);
  const other = await Jar.open({ workdir: null, ro: [process.execPath] });
  context.after(() => other.close());
  await assert.rejects(other.call(tools, 'add', [1, 2]), (error) => error instanceof SendError && /`ro`/.test(error.hint));
  const writing = await Jar.open({ workdir: join(tools, '..'), ro: [process.execPath] });
  context.after(() => writing.close());
  await assert.rejects(writing.call(tools, 'add', [1, 2]), SendError);
  assert.equal(await writing.call(tools, 'add', [1, 2], { importPaths: [join(tools, '..')] }), 3);
});

test('a closed pool takes no calls', async (context) => {
  const pool = new Pool({ concurrency: 1 });
  await pool.close();
  await assert.rejects(pool.call(module(context), 'add', [1, 2]), EngineError);
  assert.throws(() => new Pool({ concurrency: 0 }), RangeError);
});

test('data is counted before it is parsed', () => {
  assert.throws(() => unpackData(Buffer.from('['.repeat(1_000_000))), RangeError);
  assert.throws(() => unpackData(Buffer.from(`[${'[],'.repeat(4 * MAX_NODES)}0]`)), RangeError);
  assert.throws(() => unpackData(Buffer.from(`[${'0,'.repeat(MAX_NODES)}0]`)), RangeError);
  assert.throws(() => unpackData(Buffer.from(`${'['.repeat(102)}${']'.repeat(102)}`)), RangeError);
  assert.throws(() => unpackData(Buffer.from('"no end\\"')), RangeError);
  assert.equal(unpackData(Buffer.from('"a\\\\"')), 'a\\');
  assert.equal(unpackData(Buffer.from('"[[[[,\\"{"')), '[[[[,"{');
  assert.throws(() => unpackData(Buffer.from(`{"$bigint":"${'f'.repeat(20_000)}"}`)), RangeError);
  assert.throws(() => packData({ deep: JSON.parse(`${'['.repeat(200)}${']'.repeat(200)}`) }), NotData);
  assert.throws(() => packData({ [Symbol('x')]: 1 }), NotData);
});

test('a pool is asked for its calls, and a call may have its own answer', async (context) => {
  const asked = [];
  const says = (who) => ({ host }) => (asked.push([who, host]), 'deny');
  const pool = new Pool({ onAsk: says('pool') });
  context.after(() => pool.close());
  const file = module(context);
  try {
    assert.equal(await pool.call(file, 'reach', ['a.test']), 'ECONNRESET');
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error;
    return context.skip('needs:gate');
  }
  assert.equal(await pool.call(file, 'reach', ['b.test'], { onAsk: says('call') }), 'ECONNRESET');
  assert.deepEqual(asked, [['pool', 'a.test'], ['call', 'b.test']]);
});
