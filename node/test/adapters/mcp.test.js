// SPDX-License-Identifier: Apache-2.0
/**
 * test/adapters/mcp.test.js - `belljar mcp` with other people's clients, over both of its doors and in both eras of the protocol; and `belljar
 * mcp-wrap` with somebody else's server
 */

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import * as newer from '@modelcontextprotocol/client';
import { StdioClientTransport as NewerStdio } from '@modelcontextprotocol/client/stdio';
import { Client as OlderClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as OlderStdio } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as OlderHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const BELLJAR = process.env.BELLJAR_BIN;
const HERE = fileURLToPath(new URL('.', import.meta.url));
const MODULES = fileURLToPath(new URL('../node_modules', import.meta.url));
const BOUND = { timeout: 300_000 };
const info = { name: 'test', version: '1' };

function folder(context) {
  const made = mkdtempSync(join(tmpdir(), 'belljar-mcp-'));
  context.after(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

/** A server that listens: {url, token}. */
async function listen(context, ...options) {
  const server = spawn(`${BELLJAR}-mcp-http`, options, { stdio: ['ignore', 'pipe', 'inherit'] });
  context.after(async () => {
    server.kill();
    if (server.exitCode === null && server.signalCode === null) await once(server, 'exit');
  });
  const lines = createInterface({ input: server.stdout })[Symbol.asyncIterator]();
  const url = (await lines.next()).value.replace('url: ', '');
  return { url, token: (await lines.next()).value.replace('token: ', '') };
}

const headers = (token) => ({ requestInit: { headers: { Authorization: `Bearer ${token}` } } });
const words = (work) => ({ command: BELLJAR, args: ['mcp', '-C', work] });
/** What they are called, how they are made, and whether a session keeps their state. */
const CLIENTS = [
  ['sdk 1.x', () => new OlderClient(info), OlderStdio, OlderHttp, true],
  ...[['legacy', 'legacy'], ['auto', 'auto'], ['pinned', { pin: '2026-07-28' }]].map(([name, mode]) => [
    `client 2.x, ${name}`,
    () => new newer.Client(info, { versionNegotiation: { mode } }),
    NewerStdio,
    newer.StreamableHTTPClientTransport,
    name === 'legacy',
  ]),
];

const running = (marker) =>
  readdirSync('/proc').filter((name) => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/cmdline`, 'utf8').startsWith(`sleep\0${marker}`);
    } catch {
      return false;
    }
  });

async function exercise(client, isKept, work) {
  const call = (name, args, options) => (client instanceof OlderClient ? client.callTool({ name, arguments: args }, undefined, options) : client.callTool({ name, arguments: args }, options));
  const names = (await client.listTools()).tools.map((tool) => tool.name);
  assert.ok(names.includes('run') && names.includes('policy_show'), names.join());
  const told = [];
  const done = await call('run', { command: 'echo a; sleep 0.5; exit 3' }, { onprogress: ({ message }) => told.push(message) });
  assert.deepEqual([done.structuredContent.stdout, done.structuredContent.exit_code], ['a\n', 3]);
  assert.ok(told.includes('a'), told.join());
  const { structuredContent: opened } = await call('jar_open', {});
  await call('run_code', { language: 'bash', code: 'v=7', jar: opened.jar });
  assert.equal((await call('run_code', { language: 'bash', code: 'echo $v', jar: opened.jar })).structuredContent.stdout, '7\n');
  await call('run_code', { language: 'bash', code: 'v=8' });
  assert.equal((await call('run_code', { language: 'bash', code: 'echo $v' })).structuredContent.stdout, isKept ? '8\n' : '\n');
  assert.equal((await call('read_file', { path: 'absent' })).isError, true);
  const marker = `30${process.pid}`;
  const ending = new AbortController();
  const lasting = call('run', { command: `touch ${work}/begun; exec sleep ${marker}` }, { signal: ending.signal });
  while (!running(marker).length) await sleep(20);
  ending.abort();
  await assert.rejects(lasting);
  while (running(marker).length) await sleep(20);
}

for (const [name, make, Stdio, Http, hasSession] of CLIENTS) {
  test(`${name} over standard input and output`, BOUND, async (context) => {
    const work = folder(context);
    const client = make();
    await client.connect(new Stdio(words(work)));
    await exercise(client, true, work);
    await client.close();
  });

  test(`${name} over HTTP`, BOUND, async (context) => {
    const work = folder(context);
    const { url, token } = await listen(context, '-C', work);
    const stranger = make();
    await assert.rejects(stranger.connect(new Http(new URL(url))));
    const client = make();
    const transport = new Http(new URL(url), headers(token));
    await client.connect(transport);
    await exercise(client, hasSession, work);
    assert.equal(Boolean(transport.sessionId), hasSession);
    await transport.terminateSession?.();
    await client.close();
  });
}

test("the inspector's command line", BOUND, async (context) => {
  const work = folder(context);
  const home = folder(context);
  const { url, token } = await listen(context, '-C', work);
  const inspect = async (...args) => JSON.parse((await promisify(execFile)(process.execPath, [join(MODULES, '.bin', 'mcp-inspector'), '--cli', ...args], { env: { ...process.env, HOME: home } })).stdout);
  const call = ['--method', 'tools/call', '--tool-name', 'run', '--tool-arg', 'command=echo inspected'];
  for (const target of [[BELLJAR, 'mcp', '-C', work], [url, '--transport', 'http', '--header', `Authorization: Bearer ${token}`]]) {
    assert.equal((await inspect(...target, ...call)).structuredContent.stdout, 'inspected\n');
    assert.ok((await inspect(...target, '--method', 'tools/list')).tools.some((tool) => tool.name === 'run_code'));
  }
});

/** The tool knows of no tokens: this adds it, and the name of this server where that of the proxy stands. */
async function proxy(context, { url, token }) {
  const target = new URL(url);
  const server = http.createServer((request, response) => {
    const given = { ...request.headers, authorization: `Bearer ${token}` };
    for (const name of ['host', 'origin']) {
      given[name] = given[name]?.replace(new RegExp(`(localhost|127\\.0\\.0\\.1):${server.address().port}$`), `$1:${target.port}`);
      if (given[name] === undefined) delete given[name];
    }
    const passed = http.request({ host: target.hostname, port: target.port, method: request.method, path: request.url, headers: given, setHost: false }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    passed.on('error', () => response.destroy());
    response.on('close', () => passed.destroy());
    request.pipe(passed);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}/mcp`;
}

for (const version of ['2025-11-25', '2026-07-28']) {
  test(`the conformance tool, ${version}`, BOUND, async (context) => {
    const work = folder(context);
    const url = await proxy(context, await listen(context, '-C', work));
    const tool = join(MODULES, '@modelcontextprotocol', 'conformance', 'dist', 'index.js');
    const expected = join(HERE, `mcp-expected-failures-${version}.yaml`);
    const done = await promisify(execFile)(process.execPath, [tool, 'server', '--url', url, '--requirements', version, '--expected-failures', expected], { cwd: work, maxBuffer: 64 << 20 }).catch((error) => error);
    assert.equal(done.code, undefined, done.stdout?.slice(-4000));
  });
}

test('a server of files, wrapped', BOUND, async (context) => {
  const work = folder(context);
  const outside = folder(context);
  writeFileSync(join(work, 'in.txt'), 'inside');
  writeFileSync(join(outside, 'out.txt'), 'outside');
  const log = join(outside, 'log');
  const server = join(MODULES, '@modelcontextprotocol', 'server-filesystem', 'dist', 'index.js');
  const options = ['-C', work, '--workdir-mode', 'ro', '--ro', MODULES, '--ro', process.execPath, '--deny-tool', '*_file', '--deny-tool', 'move_*', '--log', log];
  // It would itself show both directories.
  const args = ['mcp-wrap', ...options, '--', process.execPath, server, work, outside];
  const client = new OlderClient(info);
  await client.connect(new OlderStdio({ command: BELLJAR, args, stderr: 'ignore' }));
  const names = (await client.listTools()).tools.map((tool) => tool.name);
  assert.ok(names.includes('read_text_file') === false && names.includes('list_directory'), names.join());
  assert.match(JSON.stringify(await client.callTool({ name: 'list_directory', arguments: { path: work } })), /in\.txt/);
  assert.match((await client.callTool({ name: 'write_file', arguments: { path: join(work, 'new'), content: '' } })).content[0].text, /is not allowed here/);
  assert.doesNotMatch(JSON.stringify(await client.callTool({ name: 'list_directory', arguments: { path: outside } })), /out\.txt/);
  assert.equal((await client.callTool({ name: 'create_directory', arguments: { path: join(work, 'made') } })).isError, true);
  await client.close();
  const logged = readFileSync(log, 'utf8').trim().split('\n').map((line) => JSON.parse(line));
  assert.deepEqual(logged.map(({ tool, what }) => `${tool} ${what}`), ['list_directory answered', 'write_file refused', 'list_directory answered', 'create_directory answered']);
});
