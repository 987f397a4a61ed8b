// SPDX-License-Identifier: Apache-2.0
/**
 * lib/text.js - names and arguments that need not be UTF-8
 *
 * Linux has bytes there. As in Python, each byte that is not part of UTF-8 is a lone surrogate, U+DC80 to U+DCFF: such a text can
 * be given back to Belljar and means the same file.
 */

/** A text from bytes. */
export function textOf(bytes) {
  const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const text = buffer.toString('utf8');
  if (!text.includes('\ufffd')) return text;
  let made = '';
  for (let at = 0; at < buffer.length; ) {
    const first = buffer[at];
    const size = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
    const piece = size > 0 && at + size <= buffer.length ? buffer.toString('utf8', at, at + size) : '';
    if (piece !== '' && Buffer.byteLength(piece) === size && Buffer.from(piece).equals(buffer.subarray(at, at + size))) {
      made += piece;
      at += size;
    } else {
      made += String.fromCharCode(0xdc00 + first);
      at += 1;
    }
  }
  return made;
}

/** A word or path as it is sent: text, or bytes. TypeError for anything else, and for a NUL, which no name can have. */
export function wireText(word, what = 'a path') {
  const text = typeof word === 'string' ? word : word instanceof Uint8Array ? textOf(word) : undefined;
  if (text === undefined) throw new TypeError(`${what} must be a string or bytes, not ${typeof word}`);
  if (text.includes('\0')) throw new TypeError(`${what} must not have a NUL in it`);
  return text;
}

/** The bytes of a text or of bytes. */
export function bytesOf(data, what) {
  if (typeof data === 'string') return Buffer.from(data, 'utf8');
  if (data instanceof Uint8Array) return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  if (data instanceof ArrayBuffer) return Buffer.from(data);
  throw new TypeError(`${what} must be text or bytes, not ${data === null ? 'null' : typeof data}`);
}
