// SPDX-License-Identifier: Apache-2.0
/**
 * lib/values.js - durations and sizes as policies write them, where this side has to know them
 */

import { PolicyError } from './errors.js';

const SECONDS = { ms: 0.001, '': 1, s: 1, m: 60, h: 3600 };
const UNITS = { '': 1, K: 2 ** 10, M: 2 ** 20, G: 2 ** 30, T: 2 ** 40 };

/** Seconds of a number or text such as "500ms"; Infinity for null and "none". */
export function parseDuration(value, name) {
  if (value === null || value === 'none') return Infinity;
  const match = typeof value === 'string' ? /^([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|)$/.exec(value) : null;
  const seconds = match !== null ? Number(match[1]) * SECONDS[match[2]] : typeof value === 'number' ? value : NaN;
  if (!(seconds >= 0 && seconds < 1e10) || (seconds === 0 && name !== 'grace')) {
    throw new PolicyError(`${name}: ${JSON.stringify(value)} is not a duration; write seconds, or text such as "500ms"`);
  }
  return seconds;
}

/** The lower of two values of a limit, as it was written; undefined for keys that are no limits. null: no limit. */
export function lowerLimit(key, owner, asked) {
  const parse = LIMITS[key];
  if (parse === undefined) return undefined;
  const isSplit = [owner, asked].some((value) => value !== null && typeof value === 'object');
  return !isSplit && parse(asked, key) <= parse(owner, key) ? asked : owner;
}

/** Bytes of a number or text such as "64M"; Infinity for null and "none". */
export function parseSize(value, name) {
  if (value === null || value === 'none') return Infinity;
  const match = typeof value === 'string' ? /^([0-9]+(?:\.[0-9]+)?)([KMGT]?)$/i.exec(value) : null;
  const size = match !== null ? Number(match[1]) * UNITS[match[2].toUpperCase()] : typeof value === 'number' ? value : NaN;
  if (!Number.isSafeInteger(size) || size < 0 || (size === 0 && name !== 'output' && name !== 'core')) {
    throw new PolicyError(`${name}: ${JSON.stringify(value)} is not a size; write a number of bytes, or text such as "64M"`);
  }
  return size;
}

// A function declaration is there before this line is reached.
const LIMITS = {
  timeout: parseDuration, grace: parseDuration, cpu_time: parseDuration, memory: parseSize, pids: parseSize, disk: parseSize, file_size: parseSize,
  fds: parseSize, core: parseSize, net_connections: parseSize, net_bytes: parseSize, output: parseSize,
};
