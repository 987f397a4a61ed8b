// SPDX-License-Identifier: Apache-2.0
/**
 * adapters/openai-agents.js - jars as the sandbox of the OpenAI Agents SDK
 *
 *     const agent = new SandboxAgent({ ... });
 *     await run(agent, prompt, { sandbox: { client: new JarSandboxClient({ memory: '2G' }) } });
 *
 * Each session is a jar; its workspace is private and starts empty, at the manifest's root. A session lives in this process only: its
 * state cannot be resumed elsewhere. Manifest entries can be files and directories, of the manifest or of the host; others are refused.
 */

import { applyDiff, UserError } from '@openai/agents';
import { Manifest } from '@openai/agents/sandbox';
import { lstat, readdir, readFile } from 'node:fs/promises';
import { join, posix } from 'node:path';

import { Jar } from '../index.js';
import { note } from './ai-sdk.js';
import { PolicyError } from '../lib/errors.js';
import { checkKeys, checkPolicy } from '../lib/keys.js';
import { currentDirectory, keysOf, normalKeys } from '../lib/policy.js';
import { lowerLimit } from '../lib/values.js';

const EXEC_YIELD_MS = 10_000;
const STDIN_YIELD_MS = 250;
const OUTPUT_MAX_BYTES = 1 << 20;
const BYTES_OF_A_TOKEN = 4;
const MAX_TERMINALS = 64;
const MAX_IMAGE_BYTES = 10 << 20;
const IMAGES = [
  [[0x89, 0x50, 0x4e, 0x47], 'image/png'], [[0xff, 0xd8, 0xff], 'image/jpeg'], [[0x47, 0x49, 0x46, 0x38], 'image/gif'],
  [[0x52, 0x49, 0x46, 0x46], 'image/webp'],
];

/** A command that may go on between calls, and its output since the last one. Nobody listens: it waits once there is a lot. */
class Terminal {
  #parts = [];
  #size = 0;
  #room;
  process;
  status = null;

  async hear(stream, data) {
    this.#parts.push([stream, Buffer.from(data)]);
    this.#size += data.length;
    if (this.#size >= OUTPUT_MAX_BYTES) await new Promise((resolve) => (this.#room = resolve));
  }

  take() {
    const parts = this.#parts.splice(0);
    this.#size = 0;
    this.#room?.();
    const text = (name) => Buffer.concat(parts.filter(([stream]) => name === undefined || stream === name).map(([, data]) => data)).toString('utf8');
    return { output: text(), stdout: text('stdout'), stderr: text('stderr') };
  }

  /** What the model should know of the end is the last of its output. */
  end(result) {
    const said = note(result);
    if (said !== '') this.#parts.push(['stderr', Buffer.from(`${said}\n`)]);
    this.status = result.shellStatus;
  }

  /** Until it has ended, or so long. */
  async wait(ms) {
    let timer;
    const late = new Promise((resolve) => (timer = setTimeout(resolve, ms)));
    await Promise.race([this.done, late]);
    clearTimeout(timer);
  }
}

/** Head and tail of what is too long. */
function shorten(text, tokens) {
  if (tokens === undefined || tokens === null) return { text };
  const most = Math.max(0, tokens) * BYTES_OF_A_TOKEN;
  const bytes = Buffer.from(text, 'utf8');
  if (bytes.length <= most) return { text };
  const half = Math.floor(most / 2);
  const left = Math.ceil((bytes.length - most) / BYTES_OF_A_TOKEN);
  const head = bytes.toString('utf8', 0, half);
  const tail = bytes.toString('utf8', bytes.length - half);
  return { text: `${head}...${left} tokens truncated...${tail}`, originalTokenCount: Math.ceil(bytes.length / BYTES_OF_A_TOKEN) };
}

function format({ output, wallTimeSeconds, sessionId, exitCode, originalTokenCount }) {
  const lines = [`Wall time: ${wallTimeSeconds.toFixed(4)} seconds`];
  if (sessionId !== undefined) lines.push(`Process running with session ID ${sessionId}`);
  else if (typeof exitCode === 'number') lines.push(`Process exited with code ${exitCode}`);
  if (originalTokenCount !== undefined) lines.push(`Original token count: ${originalTokenCount}`);
  return [...lines, 'Output:', output].join('\n');
}

class JarEditor {
  constructor(session) {
    this.session = session;
  }

  async createFile({ path, diff }) {
    await this.session.jar.writeFile(this.session.path(path), applyDiff('', diff, 'create'), { parents: true });
    return { status: 'completed' };
  }

  async updateFile({ path, diff, moveTo }) {
    const from = this.session.path(path);
    const text = await this.session.jar.readTextFile(from);
    const { mode } = await this.session.jar.stat(from, { follow: true });
    const to = moveTo === undefined ? from : this.session.path(moveTo);
    await this.session.jar.writeFile(to, applyDiff(text, diff), { parents: true, mode });
    if (to !== from) await this.session.jar.remove(from);
    return { status: 'completed' };
  }

  async deleteFile({ path }) {
    await this.session.jar.remove(this.session.path(path));
    return { status: 'completed' };
  }
}

/** Commands, files and terminals of one jar, from create() to close(). */
export class JarSandboxSession {
  #terminals = new Map();
  #next = 1;

  constructor(jar, state) {
    this.jar = jar;
    this.state = state;
  }

  get root() {
    return this.state.manifest.root;
  }

  /** A path of the workspace. The jar's walls hold whatever it is; this only says where relative ones start. */
  path(path) {
    return posix.resolve(this.root, path);
  }

  #refuseUser(runAs) {
    if (runAs !== undefined && runAs !== null) throw new UserError('a jar has one user: runAs cannot be had');
  }

  async running() {
    return this.jar.isOpen;
  }

  supportsPty() {
    return true;
  }

  createEditor(runAs) {
    this.#refuseUser(runAs);
    return new JarEditor(this);
  }

  async exec({ cmd, workdir, shell = '/bin/sh', login = false, tty = false, yieldTimeMs = EXEC_YIELD_MS, maxOutputTokens, runAs }) {
    this.#refuseUser(runAs);
    const start = Date.now();
    const terminal = new Terminal();
    const process = await this.jar.spawn([shell, login ? '-lc' : '-c', cmd], {
      cd: workdir === undefined ? this.root : this.path(workdir),
      env: this.state.environment, stdin: 'pipe', pty: tty, onOutput: (stream, data) => terminal.hear(stream, data),
    });
    terminal.process = process;
    terminal.isTty = tty;
    terminal.done = process.wait().then((result) => terminal.end(result), () => (terminal.status = 125));
    await terminal.wait(yieldTimeMs);
    const found = terminal.take();
    const { text, originalTokenCount } = shorten(found.output, maxOutputTokens);
    const made = { ...found, output: text, wallTimeSeconds: (Date.now() - start) / 1000, originalTokenCount };
    if (terminal.status !== null) return { ...made, exitCode: terminal.status };
    return { ...made, sessionId: await this.#keep(terminal) };
  }

  async #keep(terminal) {
    if (this.#terminals.size >= MAX_TERMINALS) {
      const [oldest, ended] = this.#terminals.entries().next().value;
      this.#terminals.delete(oldest);
      ended.take();
      await ended.process.close();
    }
    this.#terminals.set(this.#next, terminal);
    return this.#next++;
  }

  async execCommand(args) {
    return format(await this.exec(args));
  }

  async writeStdin({ sessionId, chars = '', yieldTimeMs = STDIN_YIELD_MS, maxOutputTokens }) {
    const terminal = this.#terminals.get(sessionId);
    if (terminal === undefined) return format({ output: `write_stdin failed: session not found: ${sessionId}`, wallTimeSeconds: 0, exitCode: 1 });
    const start = Date.now();
    if (!terminal.isTty && chars.includes('\x03')) terminal.process.kill('SIGINT');
    const text = terminal.isTty ? chars : chars.replaceAll('\x03', '');
    if (text !== '') terminal.process.stdin.write(text);
    await terminal.wait(yieldTimeMs);
    const { text: output, originalTokenCount } = shorten(terminal.take().output, maxOutputTokens);
    const made = { output, wallTimeSeconds: (Date.now() - start) / 1000, originalTokenCount };
    if (terminal.status === null) return format({ ...made, sessionId });
    this.#terminals.delete(sessionId);
    return format({ ...made, exitCode: terminal.status });
  }

  async viewImage({ path, runAs }) {
    this.#refuseUser(runAs);
    const data = new Uint8Array(await this.readFile({ path, maxBytes: MAX_IMAGE_BYTES }));
    const mediaType = IMAGES.find(([start]) => start.every((byte, index) => data[index] === byte))?.[1];
    if (mediaType === undefined) throw new UserError(`Unsupported image format for view_image: ${path}`);
    return { type: 'image', image: { data, mediaType } };
  }

  async readFile({ path, maxBytes, runAs }) {
    this.#refuseUser(runAs);
    return new Uint8Array(await this.jar.readFile(this.path(path), maxBytes === undefined ? {} : { maxBytes }));
  }

  async listDir({ path, runAs }) {
    this.#refuseUser(runAs);
    const found = await this.jar.listFiles(this.path(path));
    return found.map(({ name, type }) => ({ name, path: posix.join(path, name), type: type === 'file' || type === 'dir' ? type : 'other' }));
  }

  async pathExists(path, runAs) {
    this.#refuseUser(runAs);
    return this.jar.exists(this.path(path));
  }

  async directoryExists(path, runAs) {
    return (await this.pathExists(path, runAs)) && (await this.jar.stat(this.path(path), { follow: true })).type === 'dir';
  }

  async materializeEntry({ path, entry, runAs }) {
    this.#refuseUser(runAs);
    await this.#place(this.path(path), entry);
  }

  async #place(path, entry) {
    if (entry.type === 'dir') {
      await this.jar.mkdir(path, { parents: true });
      for (const [name, below] of Object.entries(entry.children ?? {})) await this.#place(posix.join(path, name), below);
    } else if (entry.type === 'file') {
      await this.jar.writeFile(path, entry.content ?? '', { parents: true });
    } else if (entry.type === 'local_file') {
      await this.jar.writeFile(path, await readFile(entry.src), { parents: true, mode: (await lstat(entry.src)).mode & 0o777 });
    } else if (entry.type === 'local_dir') {
      await this.#placeFolder(path, entry.src);
    } else {
      throw new UserError(`a jar cannot be given an entry of type '${entry.type}'`);
    }
  }

  async #placeFolder(path, source) {
    await this.jar.mkdir(path, { parents: true });
    for (const found of await readdir(source, { withFileTypes: true })) {
      const [to, from] = [posix.join(path, found.name), join(source, found.name)];
      if (found.isDirectory()) await this.#placeFolder(to, from);
      else if (found.isFile()) await this.#place(to, { type: 'local_file', src: from });
    }
  }

  async applyManifest(manifest, runAs) {
    this.#refuseUser(runAs);
    for (const [path, entry] of Object.entries(manifest.entries)) await this.#place(this.path(path), entry);
    Object.assign(this.state.environment, await manifest.resolveEnvironment());
  }

  async persistWorkspace() {
    const parts = [];
    for await (const data of this.jar.exportTar(this.root)) parts.push(data);
    return new Uint8Array(Buffer.concat(parts));
  }

  async hydrateWorkspace(data) {
    const bytes = typeof data === 'string' ? Buffer.from(data, 'base64') : new Uint8Array(data);
    await this.jar.importTar(bytes, this.root);
  }

  async close() {
    await this.jar.close();
  }

  async shutdown() {
    await this.close();
  }

  async delete() {
    await this.close();
  }
}

function checkOptions({ policy, ttl: _ttl, onAsk: _onAsk, ...keys }) {
  checkPolicy(policy);
  checkKeys(keys);
}

/** What the client was given, with what a session may add: lower limits, and keys that the client was not given. */
async function heldOptions(given, asked) {
  if (given.policy != null && asked.policy != null) throw new PolicyError("policy: the client has one, and a session cannot replace it; give the session's keys");
  const { policy: _given, ttl, onAsk, ...givenKeys } = given;
  const { policy: _asked, ttl: askedTtl, onAsk: askedOnAsk, ...askedKeys } = asked;
  const owner = { ...(await keysOf(given.policy, currentDirectory())), ...normalKeys(givenKeys) };
  const session = { ...(await keysOf(asked.policy, currentDirectory())), ...normalKeys(askedKeys) };
  const held = {};
  for (const [key, value] of Object.entries(owner)) {
    if (value === undefined || !(key in session)) continue;
    held[key] = lowerLimit(key, value, session[key]);
    if (held[key] === undefined && JSON.stringify(value) !== JSON.stringify(session[key])) throw new PolicyError(`${key}: the client has it, and a session cannot change it`);
    held[key] ??= value;
  }
  if (ttl != null && askedTtl != null) held.ttl = lowerLimit('timeout', ttl, askedTtl);
  return { ...given, ...asked, ...held, onAsk: onAsk ?? askedOnAsk };
}

/**
 * Makes a jar for each session. Options: a policy and its keys, as for Jar.open(). The options of a session may add keys and lower
 * limits; what the client was given holds.
 */
export class JarSandboxClient {
  backendId = 'belljar';
  serializedSessionStateRequiresFreshCreation = true;
  #options;

  constructor(options = {}) {
    checkOptions(options);
    this.#options = options;
  }

  async create(args = {}, manifestOptions = undefined) {
    const { manifest: given, options = manifestOptions, snapshot } = args instanceof Manifest ? { manifest: args } : args;
    if (snapshot !== undefined && snapshot !== null && snapshot.type !== 'noop') throw new UserError('a jar takes no snapshot; use persistWorkspace() and hydrateWorkspace()');
    const manifest = given instanceof Manifest ? given : new Manifest(given ?? {});
    checkOptions(options ?? {});
    const all = { workdir: null, ...(await heldOptions(this.#options, options ?? {})) };
    if (all.workdir !== null) throw new UserError('the workspace of a session is private: workdir cannot be given; use ro and rw');
    if (manifest.root !== '/workspace') throw new UserError("the workspace of a jar is '/workspace'; leave the manifest's root as it is");
    const jar = await Jar.open(all);
    try {
      const session = new JarSandboxSession(jar, { manifest, environment: {}, workspaceReady: true });
      await session.applyManifest(manifest);
      return session;
    } catch (error) {
      await jar.close();
      throw error;
    }
  }
}
