// SPDX-License-Identifier: Apache-2.0
/**
 * lib/data.js - values that travel between a program and a jar: JSON, and objects with one key that begins with "$" for what JSON lacks
 *
 * What comes out of a jar was written by an enemy. So it is counted before it is parsed, and only ever becomes data: never a class, a
 * function or a prototype. The serializer of V8 is not used: its reader is not made for hostile bytes.
 *
 * This file is also part of what runs in the jar (lib/call.js), so it imports nothing.
 */

export const MAX_NODES = 1_000_000;
export const MAX_DEPTH = 100;
// Digits of a bigint, in base 16.
const MAX_DIGITS = 16384;

/** A value that is no data, and where it was. */
export class NotData extends TypeError {}

const NUMBERS = { NaN, Infinity, '-Infinity': -Infinity, '-0': -0 };

function typeName(value) {
  if (typeof value !== 'object') return typeof value;
  return value.constructor?.name || 'object without a name';
}

function numberText(value) {
  return Object.is(value, -0) ? '-0' : String(value);
}

function base64(bytes) {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
}

function isPlain(value) {
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null;
}

class Packer {
  #left = MAX_NODES;

  pack(value, where, depth) {
    if (--this.#left < 0) throw new NotData(`it has more than ${MAX_NODES} parts`);
    if (depth > MAX_DEPTH) throw new NotData(`it is nested more than ${MAX_DEPTH} deep at ${where.slice(0, 100)}`);
    switch (typeof value) {
      case 'string':
      case 'boolean':
        return value;
      case 'number':
        return Number.isFinite(value) && !Object.is(value, -0) ? value : { $number: numberText(value) };
      case 'undefined':
        return { $undefined: 0 };
      case 'bigint': {
        const text = value < 0n ? `-${(-value).toString(16)}` : value.toString(16);
        if (text.length > MAX_DIGITS) throw new NotData(`a bigint of more than ${MAX_DIGITS} digits at ${where}`);
        return { $bigint: text };
      }
      case 'object':
        return value === null ? null : this.#packObject(value, where, depth + 1);
      default:
        throw new NotData(`a ${typeof value} at ${where}`);
    }
  }

  #packAll(values, where, depth) {
    return Array.from(values, (item, index) => this.pack(item, `${where}[${index}]`, depth));
  }

  #packObject(value, where, depth) {
    if (Array.isArray(value)) return this.#packAll(value, where, depth);
    if (value instanceof Uint8Array) return { $bytes: base64(value) };
    if (value instanceof ArrayBuffer) return { $bytes: base64(new Uint8Array(value)) };
    if (value instanceof Date) return { $date: Number.isNaN(value.getTime()) ? null : value.getTime() };
    if (value instanceof Map) return { $map: Array.from(value, (pair, index) => this.#packAll(pair, `${where}[${index}]`, depth)) };
    if (value instanceof Set) return { $set: this.#packAll(value, where, depth) };
    if (!isPlain(value)) throw new NotData(`a value of the class ${typeName(value)} at ${where}`);
    if (Object.getOwnPropertySymbols(value).length > 0) throw new NotData(`a symbol as a key at ${where}`);
    const entries = Object.keys(value).map((key) => [key, this.pack(value[key], `${where}[${JSON.stringify(key)}]`, depth)]);
    if (entries.some(([key]) => key.startsWith('$'))) return { $object: entries };
    return Object.fromEntries(entries);
  }
}

/** The JSON text of a value. NotData names what cannot travel, and where it is: `$[2]["x"]`. */
export function packData(value) {
  return JSON.stringify(new Packer().pack(value, '$', 0));
}

/** Count brackets and commas of a JSON text before anything is made of it. RangeError if there are too many. */
export function checkJson(bytes) {
  let depth = 0;
  let nodes = 1;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === 0x22) {
      // To the end of the string: a quotation mark that is not escaped.
      do {
        at = bytes.indexOf(0x22, at + 1);
        if (at < 0) throw new RangeError('a string has no end');
        let slashes = 0;
        while (bytes[at - 1 - slashes] === 0x5c) slashes++;
        if (slashes % 2 === 0) break;
      } while (true);
    } else if (byte === 0x5b || byte === 0x7b) {
      nodes++;
      if (++depth > 3 * MAX_DEPTH) throw new RangeError('it is nested too deep');
    } else if (byte === 0x5d || byte === 0x7d) {
      depth--;
    } else if (byte === 0x2c) {
      nodes++;
    }
    if (nodes > 4 * MAX_NODES) throw new RangeError(`it has more than ${MAX_NODES} parts`);
  }
}

class Unpacker {
  #left = MAX_NODES;

  unpack(value, depth) {
    if (--this.#left < 0) throw new RangeError(`it has more than ${MAX_NODES} parts`);
    if (depth > MAX_DEPTH) throw new RangeError(`it is nested more than ${MAX_DEPTH} deep`);
    if (value === null || typeof value !== 'object') return value;
    if (Array.isArray(value)) return this.#all(value, depth + 1);
    const keys = Object.keys(value);
    if (keys.length === 1 && keys[0].startsWith('$')) return this.#special(keys[0], value[keys[0]], depth + 1);
    return this.#object(Object.entries(value), depth + 1);
  }

  #all(values, depth) {
    if (!Array.isArray(values)) throw new RangeError('a list is missing');
    return values.map((item) => this.unpack(item, depth));
  }

  #object(entries, depth) {
    const made = {};
    for (const entry of entries) {
      if (!Array.isArray(entry) || entry.length !== 2 || typeof entry[0] !== 'string') throw new RangeError('an object without its keys');
      const value = this.unpack(entry[1], depth);
      // As an assignment, this one would set the prototype.
      if (entry[0] === '__proto__') Object.defineProperty(made, '__proto__', { value, enumerable: true, writable: true, configurable: true });
      else made[entry[0]] = value;
    }
    return made;
  }

  #special(key, value, depth) {
    if (key === '$undefined') return undefined;
    if (key === '$number' && typeof value === 'string' && Object.hasOwn(NUMBERS, value)) return NUMBERS[value];
    if (key === '$bigint' && typeof value === 'string' && value.length <= MAX_DIGITS + 1 && /^-?[0-9a-f]+$/.test(value)) {
      return value.startsWith('-') ? -BigInt(`0x${value.slice(1)}`) : BigInt(`0x${value}`);
    }
    if (key === '$bytes' && typeof value === 'string') return new Uint8Array(Buffer.from(value, 'base64'));
    if (key === '$date' && (value === null || typeof value === 'number')) return new Date(value ?? NaN);
    if (key === '$set') return new Set(this.#all(value, depth));
    if (key === '$map' && Array.isArray(value) && value.every((pair) => Array.isArray(pair) && pair.length === 2)) {
      return new Map(value.map((pair) => this.#all(pair, depth)));
    }
    if (key === '$object' && Array.isArray(value)) return this.#object(value, depth);
    throw new RangeError(`the word ${JSON.stringify(key.slice(0, 20))} has no meaning`);
  }
}

/** A value from bytes that nobody vouches for. RangeError or SyntaxError if they are not what packData() writes. */
export function unpackData(bytes) {
  checkJson(bytes);
  const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  return new Unpacker().unpack(JSON.parse(text), 0);
}
