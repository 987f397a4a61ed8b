// SPDX-License-Identifier: Apache-2.0
/**
 * tests/bench/hosts/node_host.mjs - a Node program that starts commands, with child_process and with the package. Arguments: package, rounds,
 * producer, mebibytes, idleMs
 */

import { execFile, spawn as spawnChild } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

const { package: path, rounds, producer, mebibytes, idleMs } = JSON.parse(process.argv[2]);
const kib = () => {
  global.gc();
  return process.memoryUsage.rss() / 1024;
};

const memory = { 'node alone': [kib()] };
const { Jar, Pool, run, spawn } = await import(path);
await run(['/bin/true']);
memory['with the package, after a run'] = [kib()];

const count = mebibytes * 2 ** 20;
const jar = await Jar.open();
const shell = await jar.shell();
const python = await jar.python();
writeFileSync('add.mjs', 'export const add = (a, b) => a + b;');
const pool = new Pool({ preload: ['add.mjs'], ready: 2 });
await pool.call('add.mjs', 'add', [1, 2]);

/** Values of each way in turns. */
async function turns(ways, times, idle = idleMs) {
  const values = Object.fromEntries(Object.keys(ways).map((name) => [name, []]));
  for (const way of Object.values(ways)) if (times > 1) await way();
  for (let round = 0; round < times; round++) {
    for (const [name, way] of Object.entries(ways)) {
      await sleep(idle);
      const begin = performance.now();
      const own = await way();
      values[name].push(typeof own === 'number' ? own : (performance.now() - begin) * 1000);
    }
  }
  return values;
}

async function drain(stream) {
  let size = 0;
  for await (const data of stream) size += data.length;
  if (size !== count) throw new Error(`${size} bytes instead of ${count}`);
}

const rate = (open) => async () => {
  const begin = performance.now();
  await drain((await open()).stdout);
  return count / 1e3 / (performance.now() - begin);
};

const runs = await turns({
  execFile: () => promisify(execFile)('/bin/true').then(() => {}),
  'run()': () => run(['/bin/true']).then(() => {}),
  'jar.run()': () => jar.run(['/bin/true']).then(() => {}),
}, rounds);
const kept = await turns({
  'shell.run()': () => shell.run(':').then(() => {}),
  'python.run()': () => python.run('x = 1').then(() => {}),
}, rounds);
// A process that waits needs its time to start.
const calls = await turns({ 'pool.call()': () => pool.call('add.mjs', 'add', [1, 2]).then(() => {}) }, Math.max(1, Math.ceil(rounds / 20)), rounds > 1 ? 1000 : 300);
const output = await turns({
  spawn: rate(() => spawnChild(producer, [String(mebibytes)], { stdio: ['ignore', 'pipe', 'ignore'] })),
  'belljar spawn()': rate(() => spawn([producer, String(mebibytes)])),
}, Math.max(1, Math.ceil(rounds / 10)));

memory['after all that was measured'] = [kib()];
const held = await spawn([producer, String(mebibytes)]);
await sleep(200);
memory['with a reader that has stopped'] = [kib()];
await held.cancel();
await pool.close();
await jar.close();
console.log(JSON.stringify({ runs, kept, calls, output, memory }));
