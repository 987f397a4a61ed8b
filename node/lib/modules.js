// SPDX-License-Identifier: Apache-2.0
/**
 * lib/modules.js - which files a module needs to be loaded in a jar
 *
 * Nothing that a jar could write is ever loaded by a later call, and a module is no reason to show secrets that lie beside it. So of the package
 * that a module is in, what lies at its top is shown read-only, but for names that begin with a dot (.env, .git, .npmrc); of directories that hold
 * more than packages - a home, /tmp, / - only the module's own file.
 */

import { existsSync, readdirSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { SendError } from './errors.js';

const UNFIT = new Set([
  '/', '/tmp', '/var/tmp', '/home', '/root', '/run', '/dev', '/dev/shm', '/proc', '/sys', '/etc', '/var', '/srv', '/mnt', '/media', '/boot',
]);

function isUnfit(folder) {
  return UNFIT.has(folder) || folder === homedir() || dirname(folder) === '/home';
}

function* ancestors(folder) {
  for (let at = folder; ; at = dirname(at)) {
    yield at;
    if (at === '/') return;
  }
}

/** The file of a module: a path, or a file URL. */
export function fileOf(module) {
  const path = module instanceof URL || String(module).startsWith('file:') ? fileURLToPath(module) : module;
  if (typeof path !== 'string') throw new SendError('a module must be a path or a file URL');
  try {
    return realpathSync(resolve(path));
  } catch (error) {
    throw new SendError(`there is no module '${path}'`, { cause: error });
  }
}

export const urlOf = (file) => pathToFileURL(file).href;

/** The folder of the package that a file is in; null: it stands for itself. */
export function packageOf(file) {
  const folder = [...ancestors(dirname(file))].find((at) => existsSync(join(at, 'package.json'))) ?? dirname(file);
  if (!isUnfit(folder)) return folder;
  return isUnfit(dirname(file)) ? null : dirname(file);
}

/** What has to be visible, read-only, for a module to be loaded. */
export function partsOf(file) {
  const folder = packageOf(file);
  if (folder === null) return [file];
  const tops = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => !entry.name.startsWith('.') && (entry.isFile() || entry.isDirectory()))
    .map((entry) => join(folder, entry.name));
  // Packages that a workspace shares.
  const shared = [...ancestors(dirname(folder))].map((at) => join(at, 'node_modules')).filter((at) => existsSync(at));
  return [...tops, ...shared];
}

function pathOf(entry) {
  const text = typeof entry === 'string' ? entry.replaceAll('\\:', '\0').split(':').at(-1).replaceAll('\0', ':') : entry?.dest ?? entry?.path;
  const path = resolve(String(text).replace(/^~(?=\/|$)/, homedir()));
  return existsSync(path) ? realpathSync(path) : path;
}

/** SendError if the jar could write where a module is loaded from. */
export function checkReadOnly(file, keys, importPaths) {
  const isIn = (path, folder) => path === folder || folder === '/' || path.startsWith(`${folder}/`);
  const folder = packageOf(file) ?? file;
  if (importPaths.some((named) => isIn(file, pathOf(named)))) return;
  const writable = (keys.rw ?? []).map(pathOf);
  if (typeof keys.workdir === 'string' && keys.workdir_mode !== 'ro') writable.push(pathOf({ path: keys.workdir }));
  for (const place of writable) {
    if (!isIn(place, folder)) continue;
    throw new SendError(`the jar can write '${place}', and the module '${file}' is loaded from there or around it`, {
      hint: 'keep modules apart from what a jar may write, or name the directory in importPaths',
    });
  }
}
