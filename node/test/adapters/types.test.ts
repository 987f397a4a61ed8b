// SPDX-License-Identifier: Apache-2.0
/**
 * test/adapters/types.test.ts - what strict TypeScript users see; tsc compiles it, and nothing runs it
 */

import type { Readable, Writable } from 'node:stream';

import { type Applied, call, CallError, type Change, Jar, type LimitHit, Policy, Pool, type Process, type Result, run, RunError, RunTimeout, spawn, StartError, Workspace, WorkspaceError } from 'belljar';

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(_: Same<A, B>): void {}

const text = await run(['true']);
same<typeof text, Result<string>>(true);
same<typeof text.exit_code, number | null>(true);
same<typeof text.limits_hit, LimitHit[]>(true);
const bytes = await run(['true'], { text: false });
same<typeof bytes.stdout, Uint8Array>(true);
const line = await run('true', { shell: true, timeout: '5s', memory: null, ro: ['/data', { path: '/x', optional: true }], policy: Policy.preset('strict') });
same<typeof line, Result<string>>(true);

// @ts-expect-error a command line needs shell: true
await run('true');
// @ts-expect-error a key of JavaScript's fashion is no policy key
await run(['true'], { cpuTime: 3 });
// @ts-expect-error a misspelt key of a policy
new Policy({ tiemout: 3 });
// @ts-expect-error and of a changed one
Policy.preset('strict').replace({ memroy: '1G' });
// @ts-expect-error and of a pool
new Pool({ memroy: '1G' });
// @ts-expect-error there is no such network
await run(['true'], { net: 'all' });
// @ts-expect-error a pipe is for spawn()
await run(['cat'], { stdin: 'pipe' });
// @ts-expect-error a jar is opened with Jar.open()
new Jar();

{
  await using jar = await Jar.open({ workdir: null, ttl: '5m' });
  // @ts-expect-error the network of a jar is fixed
  await jar.run(['true'], { net: 'host' });
  await jar.run(['true'], { detach: true, check: true });
  await using process = await jar.spawn(['cat'], { stdin: 'pipe', pty: true, rows: 3, columns: 4 });
  process.stdin.write('x');
  process.kill('SIGUSR1');
  const [info] = await jar.listFiles('.', { recursive: true });
  same<NonNullable<typeof info>['type'], 'file' | 'dir' | 'symlink' | 'other'>(true);
  for await (const event of await jar.watch()) same<typeof event.isDir, boolean>(true);
  await using shell = await jar.shell({ timeout: 5 });
  same<Awaited<ReturnType<typeof shell.run>>['exitCode'], number | null>(true);
  await using python = await jar.python();
  const cell = await python.run('1');
  if (cell.error !== null) same<typeof cell.error.kind, 'raised' | 'timeout' | 'interrupted' | 'ended'>(true);
}

{
  await using jar = await Jar.open({ workspace: 'cow', cow_dirs: '/cache', secrets: ['A@b.example', { name: 'A', host: 'b.example' }], publish: [3000, '0:80'] });
  same<Awaited<ReturnType<typeof jar.diff>>, Change[]>(true);
  same<Change['change'], 'added' | 'modified' | 'type' | 'mode' | 'deleted'>(true);
  const applied = await jar.apply(null, { allowRisky: ['.envrc'], theirs: ['a'] });
  same<typeof applied, Applied>(true);
  same<Awaited<ReturnType<typeof jar.fork>>, Jar[]>(true);
  same<Awaited<ReturnType<Workspace['fork']>>, Workspace[]>(true);
  same<WorkspaceError['notApplied'][number]['reason'], 'conflict' | 'refused' | 'failed'>(true);
  same<NonNullable<typeof text.workspace>['id'], string | null>(true);
  // @ts-expect-error paths are a list
  await jar.discard('a');
  same<Awaited<ReturnType<typeof jar.call<number>>>, number>(true);
  for await (const value of new Pool().map<number>('m.mjs', 'f', [1, 2])) same<typeof value, number>(true);
}

const going = await spawn(['cat']);
same<typeof going.web.stdout, ReadableStream<Uint8Array>>(true);
same<typeof going.stdin, Writable | null>(true);
const piped = await spawn(['cat'], { stdin: 'pipe' });
piped.stdin.end('x');
piped.stdout.setEncoding('utf8');
const heard = await spawn('cat', { shell: true, onOutput: () => {} });
same<typeof heard.stdout, Readable | null>(true);
const either: Process = piped;
await using pool = new Pool({ preload: [new URL('file:///x.js')], ready: 2 });
const sum = await pool.call<number>('/x.js', 'add', [1, 2n, new Map([[1, new Set(['x'])]])]);
same<typeof sum, number>(true);
same<Awaited<ReturnType<typeof call>>, unknown>(true);
// @ts-expect-error a function is no data
await call('/x.js', 'add', [() => 1]);

try {
  await run(['x'], { check: true });
} catch (error) {
  if (error instanceof RunError) error.result.stdout;
  if (error instanceof RunTimeout) {
    same<typeof error.result.limits_hit, LimitHit[]>(true);
    same<typeof error.result.exit_code, number | null>(true);
  }
  if (error instanceof StartError) same<typeof error.code, string>(true);
  if (error instanceof CallError) same<typeof error.typeName, string | null>(true);
}
void either;
