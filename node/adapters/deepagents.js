// SPDX-License-Identifier: Apache-2.0
/**
 * adapters/deepagents.js - a jar as the backend of a deep agent
 *
 *     const backend = new JarSandbox(await Jar.open());
 *     createDeepAgent({ model, backend });
 */

import { BaseSandbox } from 'deepagents';

import { note } from './ai-sdk.js';
import { checkKeys } from '../lib/keys.js';

const ERRORS = { ENOENT: 'file_not_found', ENOTDIR: 'file_not_found', EISDIR: 'is_directory', EACCES: 'permission_denied', EPERM: 'permission_denied', EROFS: 'permission_denied' };

let count = 0;

/** Commands and files of a jar, which stays yours to close. */
export class JarSandbox extends BaseSandbox {
  #jar;
  #keys;

  constructor(jar, keys = {}) {
    super();
    checkKeys(keys);
    this.#jar = jar;
    this.#keys = keys;
    this.id = `belljar-${process.pid}-${++count}`;
  }

  async execute(command) {
    const result = await this.#jar.run(command, { shell: true, stderrToStdout: true, ...this.#keys });
    return { output: result.stdout + note(result), exitCode: result.shellStatus, truncated: result.truncated };
  }

  async uploadFiles(files) {
    return Promise.all(files.map(([path, content]) => this.#tell(path, () => this.#jar.writeFile(path, content, { parents: true }))));
  }

  async downloadFiles(paths) {
    return Promise.all(paths.map(async (path) => {
      let content = null;
      const told = await this.#tell(path, async () => {
        content = new Uint8Array(await this.#jar.readFile(path));
      });
      return { ...told, content };
    }));
  }

  async #tell(path, action) {
    try {
      await action();
      return { path, error: null };
    } catch (error) {
      if (typeof error.errno !== 'number') throw error;
      return { path, error: ERRORS[error.code] ?? 'invalid_path' };
    }
  }
}
