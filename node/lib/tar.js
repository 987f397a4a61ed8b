// SPDX-License-Identifier: Apache-2.0
/**
 * lib/tar.js - trees of a jar as tar archives, in and out, piece by piece: nothing is kept whole
 *
 * Every file is read and made inside the jar; what an archive could do harm with is refused. The protocol has no question for where a link leads,
 * so a run in the jar answers it.
 */

import { Readable } from 'node:stream';

import { systemError } from './errors.js';
import { createReadStream, createWriteStream, entries, mkdir, stat, TYPES, wirePath } from './files.js';
import { chunksOf } from './run.js';

const BLOCK_BYTES = 512;
const LINKS_AT_ONCE = 200;
const MAX_DEPTH = 100;
// Names and comments of an archive that come before a member.
const MAX_EXTRA_BYTES = 1 << 20;
// A file that ends no sooner than this may be all holes, which Node cannot find: its zeros would take hours.
const MAX_FILE_BYTES = 64 * 2 ** 30;
const ENOSPC = 28;
const EFBIG = 27;
const E2BIG = 7;

// --- out ---

function padding(size) {
  return Buffer.alloc((BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES);
}

/** The bytes of a text in which lone surrogates stand for bytes. */
function rawBytes(text) {
  if (!/[\udc80-\udcff]/.test(text)) return Buffer.from(text, 'utf8');
  const parts = [];
  for (const character of text) {
    const code = character.codePointAt(0);
    parts.push(code >= 0xdc80 && code <= 0xdcff ? Buffer.from([code - 0xdc00]) : Buffer.from(character, 'utf8'));
  }
  return Buffer.concat(parts);
}

function block(name, type, { mode, size, seconds, link }) {
  const header = Buffer.alloc(BLOCK_BYTES);
  const octal = (value, at, width) => header.write(value.toString(8).padStart(width - 1, '0').slice(-(width - 1)), at, 'latin1');
  name.copy(header, 0, 0, 100);
  octal(mode & 0o7777, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(Math.min(size, 0o77777777777), 124, 12);
  octal(Math.min(Math.max(seconds, 0), 0o77777777777), 136, 12);
  header.fill(' ', 148, 156);
  header.write(type, 156, 'latin1');
  link.copy(header, 157, 0, 100);
  header.write('ustar\x0000', 257, 'latin1');
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return header;
}

/** A line of a pax header, which begins with its own length. */
function paxLine(key, value) {
  const rest = Buffer.concat([Buffer.from(` ${key}=`), value, Buffer.from('\n')]);
  let size = rest.length + 1;
  while (String(size).length + rest.length !== size) size = String(size).length + rest.length;
  return Buffer.concat([Buffer.from(String(size)), rest]);
}

function header(path, info, target = '') {
  const isDir = info.type === 'dir';
  const name = rawBytes(isDir ? `${path}/` : path);
  const link = rawBytes(target);
  const size = info.type === 'file' ? info.size : 0;
  const lines = [];
  if (name.length > 100) lines.push(paxLine('path', name));
  if (link.length > 100) lines.push(paxLine('linkpath', link));
  if (size > 0o77777777777) lines.push(paxLine('size', Buffer.from(String(size))));
  const parts = [];
  const seconds = Math.floor(info.mtime.getTime() / 1000);
  if (lines.length > 0) {
    const extra = Buffer.concat(lines);
    parts.push(block(Buffer.from('pax'), 'x', { mode: 0o644, size: extra.length, seconds, link: Buffer.alloc(0) }), extra, padding(extra.length));
  }
  const type = { file: '0', dir: '5', symlink: '2' }[info.type];
  parts.push(block(name, type, { mode: info.mode, size, seconds, link }));
  return Buffer.concat(parts);
}

function checkSize(path, size) {
  if (size <= MAX_FILE_BYTES) return;
  throw systemError(EFBIG, 'tar', path, undefined, `the file has ${size} bytes; an archive takes ${MAX_FILE_BYTES} at most`);
}

/** Exactly as many bytes as were promised, whatever becomes of the file meanwhile. */
async function* content(jar, path, size) {
  let left = size;
  try {
    for await (const data of createReadStream(jar, path)) {
      const part = data.subarray(0, left);
      left -= part.length;
      yield part;
      if (left === 0) break;
    }
  } catch (error) {
    if (error.code === undefined) throw error; // removed or replaced in between
  }
  for (; left > 0; left -= Math.min(left, 65536)) yield Buffer.alloc(Math.min(left, 65536));
  yield padding(size);
}

/** Where links lead, by their names; those that are gone are missing. */
async function targets(jar, folder, names) {
  const found = new Map();
  for (let at = 0; at < names.length; at += LINKS_AT_ONCE) {
    const some = names.slice(at, at + LINKS_AT_ONCE);
    const script = 'for name do readlink -n -- "$name"; printf "\\0"; done';
    const paths = some.map((name) => `${folder.startsWith('/') ? '' : './'}${folder}/${name}`);
    const { stdout } = await jar.run(['/bin/sh', '-c', script, 'sh', ...paths], { text: false, output: '16M', redact_env: false, check: true });
    stdout.toString('latin1').split('\0').forEach((target, index) => {
      if (target !== '' && index < some.length) found.set(some[index], Buffer.from(target, 'latin1').toString('utf8'));
    });
  }
  return found;
}

async function* below(jar, folder, prefix, depth) {
  if (depth > MAX_DEPTH) throw systemError(E2BIG, 'tar', folder, undefined, `directories are nested more than ${MAX_DEPTH} deep`);
  const found = (await entries(jar, folder)).sort(([, a], [, b]) => (a < b ? -1 : 1));
  const links = await targets(jar, folder, found.filter(([type]) => type === 'l').map(([, name]) => name));
  for (const [type, name] of found) {
    const path = `${folder}/${name}`;
    if (!TYPES.has(type)) continue;
    try {
      const info = await stat(jar, path);
      if (info.type === 'symlink' && links.has(name)) yield header(prefix + name, info, links.get(name));
      if (info.type === 'dir') {
        yield header(prefix + name, info);
        yield* below(jar, path, `${prefix}${name}/`, depth + 1);
      }
      if (info.type === 'file') {
        checkSize(path, info.size);
        yield header(prefix + name, info);
        yield* content(jar, path, info.size);
      }
    } catch (error) {
      if (!['ENOENT', 'ENOTDIR', 'ELOOP'].includes(error.code)) throw error; // removed or replaced in between
    }
  }
}

async function* pieces(jar, path) {
  const info = await stat(jar, path, { follow: true });
  if (info.type === 'file') {
    checkSize(path, info.size);
    yield header(path.slice(path.lastIndexOf('/') + 1), info);
    yield* content(jar, path, info.size);
  } else {
    yield* below(jar, path, '', 0);
  }
  yield Buffer.alloc(2 * BLOCK_BYTES);
}

/** A directory of the jar with all in it, or one file, as a stream of a tar archive that is made while it is read. */
export function exportTar(jar, path) {
  return Readable.from(pieces(jar, wirePath(path)), { objectMode: false });
}

// --- in ---

/** Reads an archive by so many bytes at a time. */
class Source {
  #chunks;
  #rest = Buffer.alloc(0);

  constructor(data) {
    this.#chunks = data instanceof Uint8Array ? [data].values() : chunksOf(data);
  }

  /** At most so many bytes; none at the end. */
  async some(most) {
    while (this.#rest.length === 0) {
      const { done, value } = await this.#chunks.next();
      if (done) return this.#rest;
      if (!(value instanceof Uint8Array)) throw new TypeError('an archive must be bytes, or a stream of bytes');
      this.#rest = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    }
    const part = this.#rest.subarray(0, most);
    this.#rest = this.#rest.subarray(part.length);
    return part;
  }

  /** Exactly so many; RangeError if there are fewer. */
  async exactly(size) {
    const parts = [];
    for (let left = size; left > 0; ) {
      const part = await this.some(left);
      if (part.length === 0) throw new RangeError('the archive ends in the middle of a member');
      parts.push(part);
      left -= part.length;
    }
    return Buffer.concat(parts);
  }

  async skip(size) {
    for (let left = size; left > 0; ) {
      const part = await this.some(left);
      if (part.length === 0) throw new RangeError('the archive ends in the middle of a member');
      left -= part.length;
    }
  }

  async stop() {
    await this.#chunks.return?.();
  }
}

function textField(data, at, size) {
  const field = data.subarray(at, at + size);
  const end = field.indexOf(0);
  return field.subarray(0, end < 0 ? size : end).toString('utf8');
}

function numberField(data, at, size) {
  if (data[at] & 0x80) {
    // Larger than octal digits can tell.
    const value = BigInt(`0x${data.toString('hex', at + 1, at + size)}`);
    if (data[at] !== 0x80 || value > BigInt(Number.MAX_SAFE_INTEGER)) throw new RangeError('the archive has a number that is too large');
    return Number(value);
  }
  const text = textField(data, at, size).trim();
  if (!/^[0-7]*$/.test(text)) throw new RangeError('this is not a tar archive');
  return text === '' ? 0 : parseInt(text, 8);
}

function checkSum(data) {
  const sum = data.reduce((total, byte, index) => total + (index >= 148 && index < 156 ? 32 : byte), 0);
  if (sum !== numberField(data, 148, 8)) throw new RangeError('this is not a tar archive, or it is damaged');
}

function paxOf(data, into) {
  for (let at = 0; at < data.length; ) {
    const space = data.indexOf(32, at);
    const size = Number(data.toString('latin1', at, space));
    if (space < 0 || !Number.isSafeInteger(size) || size <= space - at + 1 || at + size > data.length) throw new RangeError('the archive has a malformed header');
    const equals = data.indexOf(61, space);
    into[data.toString('utf8', space + 1, equals)] = data.toString('utf8', equals + 1, at + size - 1);
    at += size;
  }
}

function refusal(name, type, pax) {
  if (type === '1' || type === '2') return 'is a link';
  if (type === 'S' || Object.keys(pax).some((key) => key.startsWith('GNU.sparse.'))) return 'is a sparse file';
  if (!'05\x007'.includes(type)) return 'is neither a file nor a directory';
  if (name.startsWith('/')) return 'has an absolute name';
  if (name.split('/').includes('..')) return "has '..' in its name";
  if (name.includes('\0')) return 'has a NUL in its name';
  return null;
}

/** The next member; null at the end. */
async function member(source) {
  const pax = Object.create(null);
  for (;;) {
    const first = await source.some(BLOCK_BYTES);
    if (first.length === 0) return null;
    const data = first.length === BLOCK_BYTES ? first : Buffer.concat([first, await source.exactly(BLOCK_BYTES - first.length)]);
    if (data.every((byte) => byte === 0)) return null;
    checkSum(data);
    const type = String.fromCharCode(data[156]);
    const size = numberField(data, 124, 12);
    if ('xgLK'.includes(type)) {
      if (size > MAX_EXTRA_BYTES) throw new RangeError('the archive has a header that is too large');
      const extra = await source.exactly(size);
      await source.skip(padding(size).length);
      if (type === 'x') paxOf(extra, pax);
      if (type === 'L') pax.path = textField(extra, 0, extra.length);
      continue;
    }
    const prefix = data.toString('latin1', 257, 263) === 'ustar\0' ? textField(data, 345, 155) : '';
    const short = textField(data, 0, 100);
    const name = pax.path ?? (prefix === '' ? short : `${prefix}/${short}`);
    const wanted = pax.size === undefined ? size : Number(pax.size);
    if (!Number.isSafeInteger(wanted) || wanted < 0) throw new RangeError('the archive has a malformed header');
    const isDir = type === '5' || (type !== '1' && type !== '2' && name.endsWith('/'));
    return { name, type, pax, isDir, size: isDir ? 0 : wanted, mode: numberField(data, 100, 8) & 0o777 };
  }
}

async function writeMember(jar, source, target, { size, mode }) {
  const file = createWriteStream(jar, target, { mode, parents: true });
  const failed = new Promise((_, reject) => file.once('error', reject));
  failed.catch(() => {});
  const step = (action) => Promise.race([failed, new Promise((resolve) => action(() => resolve()))]);
  try {
    for (let left = size; left > 0; ) {
      const part = await source.some(Math.min(left, 65536));
      if (part.length === 0) throw new RangeError('the archive ends in the middle of a member');
      left -= part.length;
      await step((done) => file.write(part, done));
    }
    await step((done) => file.end(done));
  } finally {
    file.destroy();
  }
  await source.skip(padding(size).length);
}

/** Unpack an archive below a directory of the jar. What is written here no meter of the jar's sees: its limits hold for the archive too. */
export async function importTar(jar, data, path) {
  const source = new Source(data);
  const top = wirePath(path);
  let room = jar.limits?.disk ?? Infinity;
  try {
    for (let found = await member(source); found !== null; found = await member(source)) {
      const why = refusal(found.name, found.type, found.pax);
      if (why !== null) throw new RangeError(`'${found.name}' in the archive ${why}; it was not unpacked, nor was what follows it`);
      const target = [top, ...found.name.split('/').filter((part) => part !== '' && part !== '.')].join('/');
      if (found.isDir) {
        await mkdir(jar, target, { parents: true, mode: found.mode | 0o700 });
        continue;
      }
      if (found.size > (jar.limits?.file_size ?? Infinity)) throw systemError(EFBIG, 'tar', target);
      room -= found.size;
      if (room < 0) throw systemError(ENOSPC, 'tar', target, undefined, 'the archive holds more than the jar may store');
      await writeMember(jar, source, target, found);
    }
  } finally {
    await source.stop();
  }
}
