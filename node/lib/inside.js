// SPDX-License-Identifier: Apache-2.0
/**
 * lib/inside.js - one call, inside the jar: load the module, run the function, leave the answer in a file
 *
 * It is given to node as text, behind data.js, since the package need not be visible in the jar. The call comes on standard input once
 * somebody wants one; until then the process waits with its modules loaded.
 */

import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';

import { NotData, packData, unpackData } from './data.js';

const { preload, maxBytes } = JSON.parse(process.argv[1]);
const modules = new Map();
const { exit } = process;

async function load(url) {
  if (!modules.has(url)) modules.set(url, await import(url));
  return modules.get(url);
}

function words(error) {
  try {
    const typeName = String(error?.constructor?.name ?? typeof error).slice(0, 1000);
    return { typeName, message: String(error?.message ?? error).slice(0, 100_000), traceback: String(error?.stack ?? '').slice(0, 100_000) };
  } catch {
    return { typeName: 'unknown', message: 'an error that cannot be shown', traceback: '' };
  }
}

async function make({ module, name, args }) {
  let found;
  try {
    found = (await load(module))[name];
  } catch (error) {
    return { kind: 'not made', ...words(error) };
  }
  if (typeof found !== 'function') return { kind: 'not made', typeName: 'TypeError', message: `the module has no function '${name}'`, traceback: '' };
  let value;
  try {
    value = await found(...args);
  } catch (error) {
    return { kind: 'raised', ...words(error) };
  }
  return { kind: 'value', value };
}

function pack(answer) {
  try {
    const text = Buffer.from(packData(answer), 'utf8');
    if (text.length <= maxBytes) return text;
    throw new NotData(`it has ${text.length} bytes, more than ${maxBytes}`);
  } catch (error) {
    return Buffer.from(packData({ kind: 'not data', message: error instanceof NotData ? error.message : words(error).message }));
  }
}

// The call says what goes wrong with a module; the process that waits for one need not.
for (const url of preload) await load(url).catch(() => {});
const request = readFileSync(0);
if (request.length > 0) {
  const call = unpackData(request);
  const answer = pack(await make(call));
  const fd = openSync(call.answer, 'wx', 0o600);
  for (let at = 0; at < answer.length; ) at += writeSync(fd, answer, at);
  closeSync(fd);
}
exit(0);
