// SPDX-License-Identifier: Apache-2.0
/**
 * lib/files.js - files of a jar, over a channel each
 *
 * Everything that looks up, makes or removes a name happens inside the jar, behind its walls: no path of the jar is ever used out here. Everything
 * has a bound, because the jar decides how much there is.
 */

import { EngineError, fileFailure, systemError } from './errors.js';
import { Kind } from './frames.js';
import { Incoming, Outgoing } from './process.js';
import { withVersion } from './request.js';
import { bytesOf, textOf, wireText } from './text.js';

const EFBIG = 27;
const E2BIG = 7;
const LIST_MAX_ENTRIES = 100_000;
const LIST_MAX_DEPTH = 100;
/** Names that are looked at together. */
const STATS_AT_ONCE = 64;

/** Those that have a name in FileInfo. */
export const TYPES = new Map(Object.entries({ f: 'file', d: 'dir', l: 'symlink' }));

/** A question whose answer is data. */
export function ask(jar, kind, members, operation, path, dest) {
  const channel = jar.ask(kind, withVersion(members));
  channel.hold();
  return new Promise((resolve, reject) => {
    channel.onFrame = (found, payload) => {
      const answer = JSON.parse(payload);
      if (found === Kind.ANSWER) resolve(answer);
      else if (found === Kind.FAILED) reject(fileFailure(answer, operation, path, dest));
      else reject(new EngineError(`the engine sent a frame of type ${found} in place of an answer`));
    };
    channel.onEnd = (error) => reject(error ?? new EngineError('the jar has ended'));
  });
}

/**
 * A channel that brings or takes DATA: `onOpen()`, then `onData(payload)`, which gives back what it consumed, and `onDone(error)` once.
 * The functions are given before anything can arrive.
 */
export function openData(jar, kind, members, operation, path, { onOpen = () => {}, onData = () => {}, onDone }) {
  const channel = jar.ask(kind, withVersion(members));
  channel.hold();
  let isDone = false;
  const done = (error) => {
    if (!isDone) onDone(error);
    isDone = true;
  };
  channel.onFrame = (found, payload) => {
    if (found === Kind.DATA) onData(payload);
    else if (found === Kind.DATA_END) done();
    else if (found === Kind.DESCRIPTOR) onOpen();
    else if (found === Kind.FAILED) done(fileFailure(JSON.parse(payload), operation, path));
    else done(new EngineError(`the engine sent a frame of type ${found} in place of a file`));
  };
  channel.onEnd = (error) => done(error ?? new EngineError('the jar has ended'));
  return channel;
}

export const wirePath = (path) => wireText(path);

/** A stream of the bytes of a file. */
export function createReadStream(jar, path) {
  const name = wirePath(path);
  const channel = openData(jar, Kind.FILE, { op: 'read', path: name }, 'open', name, {
    onData: (data) => stream.give(data),
    onDone: (error) => (error ? stream.destroy(error) : stream.push(null)),
  });
  const stream = new Incoming(channel);
  stream.once('close', () => channel.close());
  return stream;
}

/** A file to be written: its channel, and a promise of the moment when all is. */
function openWrite(jar, path, { mode = 0o644, parents = false } = {}) {
  const name = wirePath(path);
  let channel;
  const written = new Promise((resolve, reject) => {
    const members = { op: 'write', path: name, mode: mode & 0o7777, parents };
    channel = openData(jar, Kind.FILE, members, 'open', name, { onDone: (error) => (error ? reject(error) : resolve()) });
  });
  return { channel, written };
}

/** A stream to write a file with. It finishes when all is written. */
export function createWriteStream(jar, path, options) {
  const { channel, written } = openWrite(jar, path, options);
  const stream = new Outgoing(channel);
  written.catch((error) => stream.destroy(error));
  stream._final = (callback) => {
    channel.endData();
    written.then(() => callback(), callback);
  };
  // What is destroyed was not written to its end.
  stream._destroy = (error, callback) => {
    channel.close();
    callback(error);
  };
  return stream;
}

export async function writeFile(jar, path, data, options) {
  const bytes = bytesOf(data, 'data');
  const { channel, written } = openWrite(jar, path, options);
  // The channel of a file that cannot be written ends while we send: that is told by `written`.
  channel.write(bytes).then(() => channel.endData());
  await written;
}

export async function readFile(jar, path, { maxBytes = 64 << 20, offset = 0, length = Infinity } = {}) {
  if (!(offset >= 0) || !(length >= 0)) throw new RangeError('offset and length must not be negative');
  const name = wirePath(path);
  const parts = [];
  let at = 0;
  let kept = 0;
  return new Promise((resolve, reject) => {
    const finish = (settle, value) => {
      channel.close();
      settle(value);
    };
    const onData = (data) => {
      const from = Math.min(Math.max(offset - at, 0), data.length);
      const part = data.subarray(from, from + Math.min(length - kept, data.length));
      at += data.length;
      kept += part.length;
      if (part.length > 0) parts.push(part);
      if (kept > maxBytes) finish(reject, systemError(EFBIG, 'read', name, undefined, `the file is larger than ${maxBytes} bytes`));
      else if (kept >= length) finish(resolve, Buffer.concat(parts));
      else channel.consumed(data.length);
    };
    const onDone = (error) => (error ? finish(reject, error) : finish(resolve, Buffer.concat(parts)));
    const channel = openData(jar, Kind.FILE, { op: 'read', path: name }, 'open', name, { onData, onDone });
  });
}

/** The entries of one directory: [type, name] each. */
export async function entries(jar, path, room = LIST_MAX_ENTRIES) {
  const found = [];
  return new Promise((resolve, reject) => {
    const onData = (data) => {
      for (let at = 0; at < data.length; ) {
        const end = data.indexOf(0, at);
        if (end < 0) break;
        found.push([String.fromCharCode(data[at]), textOf(data.subarray(at + 1, end))]);
        at = end + 1;
      }
      if (found.length > room) {
        channel.close();
        reject(systemError(E2BIG, 'scandir', path, undefined, `the directory has more than ${LIST_MAX_ENTRIES} files`));
      } else {
        channel.consumed(data.length);
      }
    };
    const onDone = (error) => (error ? reject(error) : resolve(found));
    const channel = openData(jar, Kind.FILE, { op: 'list', path }, 'scandir', path, { onData, onDone });
  });
}

function infoOf(name, seen) {
  return { name, type: seen.type, size: seen.size, mode: seen.mode, mtime: new Date(seen.mtime_ns / 1e6) };
}

export async function stat(jar, path, { follow = false } = {}) {
  const name = wirePath(path);
  return infoOf(name, await ask(jar, Kind.FILE, { op: 'stat', path: name, follow }, 'stat', name));
}

/** What there is to a name now; null if it was removed in between. */
async function look(jar, path, name) {
  try {
    return infoOf(name, await ask(jar, Kind.FILE, { op: 'stat', path }, 'stat', path));
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
    throw error;
  }
}

async function lookAll(jar, folder, prefix, found) {
  const infos = [];
  for (let at = 0; at < found.length; at += STATS_AT_ONCE) {
    const some = found.slice(at, at + STATS_AT_ONCE).map(([, name]) => look(jar, `${folder}/${name}`, prefix + name));
    infos.push(...(await Promise.all(some)));
  }
  return infos.filter((info) => info !== null);
}

export async function listFiles(jar, path = '.', { recursive = false } = {}) {
  const top = wirePath(path);
  const all = [];
  const below = [[top, '', 0]];
  for (let next = below.pop(); next !== undefined; next = below.pop()) {
    const [folder, prefix, depth] = next;
    if (depth > LIST_MAX_DEPTH) throw systemError(E2BIG, 'scandir', top, undefined, `directories are nested more than ${LIST_MAX_DEPTH} deep`);
    let found;
    try {
      found = await entries(jar, folder, LIST_MAX_ENTRIES - all.length);
    } catch (error) {
      // Removed or replaced in between.
      if (depth > 0 && ['ENOENT', 'ENOTDIR', 'ELOOP'].includes(error.code)) continue;
      throw error;
    }
    const infos = await lookAll(jar, folder, prefix, found);
    all.push(...infos);
    if (!recursive) break;
    for (const info of infos) if (info.type === 'dir') below.push([`${top}/${info.name}`, `${info.name}/`, depth + 1]);
  }
  return all.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

export function mkdir(jar, path, { parents = false, mode = 0o755 } = {}) {
  const name = wirePath(path);
  return ask(jar, Kind.FILE, { op: 'mkdir', path: name, mode, parents }, 'mkdir', name);
}

export function remove(jar, path, { recursive = false } = {}) {
  const name = wirePath(path);
  return ask(jar, Kind.FILE, { op: 'remove', path: name, recursive }, 'rm', name);
}

export function rename(jar, from, to) {
  const [path, dest] = [wirePath(from), wirePath(to)];
  return ask(jar, Kind.FILE, { op: 'rename', path, to: dest }, 'rename', path, dest);
}
