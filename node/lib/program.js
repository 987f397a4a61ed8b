// SPDX-License-Identifier: Apache-2.0
/**
 * lib/program.js - find the engine's program: $BELLJAR_BIN, else the one of the package for this platform, else the one in PATH
 */

import { execFile } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, join } from 'node:path';

import { EngineError, UnavailableError } from './errors.js';

const require = createRequire(import.meta.url);

function isProgram(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function packaged() {
  try {
    return require.resolve(`@belljar/${process.platform}-${process.arch}/bin/belljar`);
  } catch {
    return undefined;
  }
}

/** The path of the program. UnavailableError on systems other than Linux, EngineError if there is none. */
export function enginePath() {
  if (process.platform !== 'linux') throw new UnavailableError(`Belljar needs Linux; this is ${process.platform}`);
  const named = process.env.BELLJAR_BIN;
  const hint = `install @belljar/linux-${process.arch} beside this package, or set BELLJAR_BIN`;
  if (named) {
    if (isProgram(named)) return named;
    throw new EngineError(`there is no engine to run: BELLJAR_BIN is '${named}', which is not a program`);
  }
  const inPath = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder.startsWith('/'));
  const found = [packaged(), ...inPath.map((folder) => join(folder, 'belljar'))].find((path) => path !== undefined && isProgram(path));
  if (found === undefined) throw new EngineError('there is no engine to run', { hint });
  return found;
}

/** Whether there is one. */
export function hasEngine() {
  try {
    return enginePath() !== '';
  } catch {
    return false;
  }
}

/** Run the program itself, outside any jar, for a short answer: {status, stdout, stderr}. */
export function askProgram(...words) {
  const path = enginePath();
  return new Promise((resolve, reject) => {
    execFile(path, words, { maxBuffer: 4 << 20 }, (error, stdout, stderr) => {
      if (error && typeof error.code !== 'number') reject(new EngineError(`cannot start '${path}': ${error.message}`, { cause: error }));
      else resolve({ status: error ? error.code : 0, stdout, stderr });
    });
  });
}
