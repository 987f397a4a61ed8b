// SPDX-License-Identifier: Apache-2.0
/**
 * test/life.test.js - the engine's life beside that of the program: threads, children, death, memory
 */

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { EngineError, Jar, run, spawn } from '../index.js';
import { BOUND_MS, engineOf, folder, INDEX, isAlive, script, sleep, test, until } from './helper.js';

const MEBIBYTES = Number(process.env.BELLJAR_TEST_NODE_MEBIBYTES ?? 200);

test('one engine, and a program ends by itself although a jar is open', async () => {
  const { done } = script(`
    const jar = await belljar.Jar.open({ workdir: null });
    await Promise.all([belljar.run(['true']), jar.run(['true']), jar.shell(), jar.watch().then((watch) => watch.close())]);
    const { children } = await import(${JSON.stringify(new URL('helper.js', import.meta.url).href)});
    console.log(children(process.pid).length);
  `);
  const { status, stdout, stderr } = await done;
  assert.deepEqual([status, stdout.trim(), stderr], [0, '1', '']);
});

test('a program waits for a run, and not for one that was let go', async () => {
  const waits = script(`belljar.run(['sh', '-c', 'sleep 0.2; echo waited']).then(({ stdout }) => console.log(stdout.trim()));`);
  assert.equal((await waits.done).stdout, 'waited\n');
  const leaves = script(`(await belljar.spawn(['sleep', '600'])).unref();`);
  assert.equal((await leaves.done).status, 0);
});

test('an engine that died is an error for what it did, and another is started', async () => {
  const jar = await Jar.open({ workdir: null });
  const going = run(['sleep', '600'], { timeout: null });
  const process_ = await spawn(['cat'], { stdin: 'pipe' });
  const first = engineOf(process.pid);
  process.kill(first, 'SIGKILL');
  await assert.rejects(going, (error) => error instanceof EngineError && /was ended by SIGKILL/.test(error.message));
  await assert.rejects(process_.wait(), EngineError);
  await assert.rejects(jar.run(['true']), EngineError);
  await jar.close();
  assert.equal((await run(['echo', 'again'])).stdout, 'again\n');
  assert.notEqual(engineOf(process.pid), first);
});

test('when the program is killed, everything ends', async (context) => {
  const dir = folder(context);
  const { child, done } = script(`
    const going = await belljar.spawn(['sh', '-c', 'echo $$ > started; sleep 600 & sleep 600'], { cwd: ${JSON.stringify(dir)} });
    console.log('started');
    await going.wait();
  `);
  await new Promise((resolve) => child.stdout.once('data', resolve));
  const engine = await until(() => engineOf(child.pid));
  child.kill('SIGKILL');
  await done;
  await until(() => !isAlive(engine), 'the engine has ended');
});

test('Ctrl-C is for the program, which decides', async () => {
  const { child, done } = script(`
    process.on('SIGINT', async () => { console.log((await belljar.run(['echo', 'still here'])).stdout.trim()); process.exit(7); });
    await belljar.run(['true']);
    console.log('ready');
    setInterval(() => {}, 1000);
  `);
  await new Promise((resolve) => child.stdout.once('data', resolve));
  // As a terminal does: to every process of the group, which the engine is not in.
  for (const pid of [child.pid, engineOf(child.pid)]) process.kill(pid, 'SIGINT');
  const { status, stdout } = await done;
  assert.deepEqual([status, stdout], [7, 'ready\nstill here\n']);
});

test('worker threads have engines of their own, which end with them', async (context) => {
  const dir = folder(context);
  const worker = join(dir, 'worker.mjs');
  writeFileSync(worker, `
    import { parentPort } from 'node:worker_threads';
    import { run, spawn } from ${JSON.stringify(INDEX)};
    const { stdout } = await run(['echo', 'from a thread']);
    await spawn(['sleep', '600']);
    parentPort.postMessage(stdout);
  `);
  const { Worker } = await import('node:worker_threads');
  const { children } = await import('./helper.js');
  await run(['true']);
  const before = children(process.pid).length;
  const workers = [1, 2].map(() => new Worker(worker));
  const said = await Promise.all(workers.map((item) => new Promise((resolve, reject) => item.once('message', resolve).once('error', reject))));
  assert.deepEqual(said, ['from a thread\n', 'from a thread\n']);
  assert.equal(children(process.pid).length, before + 2);
  await Promise.all(workers.map((item) => item.terminate()));
  await until(() => children(process.pid).filter(([pid]) => isAlive(pid)).length === before, 'the engines of the threads have ended');
  assert.ok((await run(['true'])).ok);
});

test('cluster workers have engines of their own', async (context) => {
  const dir = folder(context);
  const file = join(dir, 'cluster.mjs');
  writeFileSync(file, `
    import cluster from 'node:cluster';
    import { run } from ${JSON.stringify(INDEX)};
    if (cluster.isPrimary) {
      let text = (await run(['echo', 'primary'])).stdout;
      for (let index = 0; index < 2; index++) cluster.fork().on('message', (more) => (text += more));
      cluster.on('exit', () => { if (Object.keys(cluster.workers).length === 0) console.log(text); });
    } else {
      process.send((await run(['echo', 'worker'])).stdout, () => process.disconnect());
    }
  `);
  const { done } = script(null, { args: [file] });
  assert.deepEqual((await done).stdout.trim().split('\n').sort(), ['primary', 'worker', 'worker']);
});

test('a jar that nobody can reach is closed', async () => {
  const { done } = script(`
    process.on('warning', ({ name }) => console.log(name));
    await (async () => { await (await belljar.Jar.open({ workdir: null })).run(['true']); })();
    for (let turn = 0; turn < 20; turn++) { gc(); await new Promise((resolve) => setTimeout(resolve, 10)); }
  `, { args: ['--expose-gc', '--no-warnings'] });
  assert.equal((await done).stdout, 'ResourceWarning\n');
});

test('an error of a listener is the program\'s, and the engine goes on', async () => {
  const { done } = script(`
    process.on('uncaughtException', (error) => console.log(error.message));
    const going = await belljar.spawn(['echo', 'x']);
    going.stdout.on('data', () => { throw new Error('mine'); });
    console.log((await going.wait()).outcome, (await belljar.run(['echo', 'on'])).stdout.trim());
  `);
  assert.equal((await done).stdout, 'mine\nexited on\n');
});

test('a reader that stops holds the command up, and nothing grows', { timeout: BOUND_MS * Math.max(1, MEBIBYTES / 200) }, async () => {
  const { done } = script(`
    const producer = ['sh', '-c', 'head -c ${MEBIBYTES}M /dev/zero'];
    const going = await belljar.spawn(producer);
    const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
    while (going.stdout.readableLength === 0) await wait(5);
    gc();
    const before = process.memoryUsage.rss();
    await wait(300);
    const held = process.memoryUsage.rss() - before;
    const buffered = going.stdout.readableLength;
    let size = 0, most = 0, turns = 0;
    for await (const data of going.stdout) {
      size += data.length;
      if (++turns % 1000 === 0) most = Math.max(most, process.memoryUsage.rss() - before);
    }
    console.log(JSON.stringify({ size, held, buffered, most, outcome: (await going.wait()).outcome }));
  `, { args: ['--expose-gc'] });
  const { stdout, stderr } = await done;
  const found = JSON.parse(stdout || JSON.stringify(stderr));
  assert.equal(found.size, MEBIBYTES * 2 ** 20);
  assert.equal(found.outcome, 'exited');
  assert.ok(found.buffered <= 262144, `${found.buffered} bytes wait`);
  assert.ok(found.held < 16 << 20, `${found.held} bytes more while nobody reads`);
  assert.ok(found.most < 128 << 20, `${found.most} bytes more while reading ${MEBIBYTES} MiB`);
});

test('other runs go on while one is held up', async () => {
  const held = await spawn(['yes']);
  await until(() => held.stdout.readableLength > 60_000);
  assert.equal((await run(['echo', 'free'])).stdout, 'free\n');
  await held.cancel();
  await sleep(0);
});
