// SPDX-License-Identifier: Apache-2.0
/**
 * adapters/ai-sdk.js - a jar as the sandbox of the Vercel AI SDK (7.0 and later)
 *
 *     const sandbox = sandboxSession(await Jar.open());
 *     await generateText({ model, tools, prompt, experimental_sandbox: sandbox });
 *
 * Nothing of the SDK is imported: its interface is what counts (Experimental_SandboxSession).
 */

import { randomBytes } from 'node:crypto';
import { pipeline } from 'node:stream/promises';

import { toWeb } from '../lib/process.js';
import { describe as describeEnd } from '../lib/result.js';
import { chunksOf } from '../lib/run.js';
import { checkKeys } from '../lib/keys.js';

const TYPES = { file: 'file', dir: 'directory', symlink: 'symlink', other: 'other' };
const isAbsent = (error) => error.code === 'ENOENT' || error.code === 'ENOTDIR';

/** null for what is not there. */
async function orNull(action) {
  try {
    return await action();
  } catch (error) {
    if (isAbsent(error)) return null;
    throw error;
  }
}

/** Promise for work that cannot be stopped in the middle: whoever aborts does not wait for it. */
function abortable(signal, action) {
  if (signal === undefined) return action();
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    action().then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

function describe(jar, net) {
  return [
    `Commands run with /bin/sh -c in a sandbox on Linux. The current directory, and where relative paths start, is ${jar.workdir}.`,
    net === 'host' ? '' : 'There is no network but what the policy allows; servers can listen on a private loopback.',
    '/tmp and the home directory are private and empty at first; the operating system is read-only.',
  ].filter(Boolean).join(' ');
}

/** The session of the SDK for a jar, which stays yours to close. */
export function sandboxSession(jar, { description, ...keys } = {}) {
  checkKeys(keys);
  const options = ({ workingDirectory, env, abortSignal }) => ({
    shell: true, ...keys, ...(workingDirectory === undefined ? {} : { cd: workingDirectory }), ...(env === undefined ? {} : { env: { ...keys.env, ...env } }), signal: abortSignal,
  });

  const readBinaryFile = ({ path, abortSignal }) => abortable(abortSignal, () => orNull(async () => new Uint8Array(await jar.readFile(path, { maxBytes: Infinity }))));
  const writeBinaryFile = ({ path, content, abortSignal }) => abortable(abortSignal, () => jar.writeFile(path, content, { parents: true }));

  return Object.freeze({
    description: description ?? describe(jar, keys.net),
    readBinaryFile,
    writeBinaryFile,

    async readFile({ path, abortSignal }) {
      const isThere = await abortable(abortSignal, () => orNull(() => jar.stat(path, { follow: true })));
      if (isThere === null) return null;
      const stream = jar.createReadStream(path);
      if (abortSignal !== undefined) abortSignal.addEventListener('abort', () => stream.destroy(abortSignal.reason), { once: true });
      return toWeb(stream);
    },

    async readTextFile({ path, encoding = 'utf-8', startLine = 1, endLine = Infinity, abortSignal }) {
      const bytes = await readBinaryFile({ path, abortSignal });
      if (bytes === null) return null;
      const text = new TextDecoder(encoding).decode(bytes);
      if (startLine <= 1 && endLine === Infinity) return text;
      return text.split(/(?<=\n)/).slice(Math.max(startLine, 1) - 1, endLine).join('');
    },

    async writeFile({ path, content, abortSignal }) {
      const target = jar.createWriteStream(path, { parents: true });
      await pipeline(chunksOf(content), target, { signal: abortSignal });
    },

    async writeTextFile({ path, content, encoding = 'utf-8', abortSignal }) {
      if (!Buffer.isEncoding(encoding)) throw new RangeError(`the encoding '${encoding}' is not known`);
      await writeBinaryFile({ path, content: Buffer.from(content, encoding), abortSignal });
    },

    stat({ path, abortSignal }) {
      return abortable(abortSignal, () => orNull(async () => {
        const { type, size } = await jar.stat(path, { follow: true });
        return { type: TYPES[type], size };
      }));
    },

    listDirectory({ path, abortSignal }) {
      return abortable(abortSignal, async () => {
        try {
          return (await jar.listFiles(path)).map(({ name, type }) => ({ name, type: TYPES[type] }));
        } catch (error) {
          if (error.code === 'ENOENT') return null;
          throw error;
        }
      });
    },

    deleteFile({ path, abortSignal }) {
      return abortable(abortSignal, async () => {
        const info = await orNull(() => jar.stat(path));
        if (info === null) return false;
        if (info.type === 'dir') throw Object.assign(new Error(`EISDIR: illegal operation on a directory, unlink '${path}'`), { code: 'EISDIR', errno: -21, path });
        await jar.remove(path);
        return true;
      });
    },

    async spawn({ command, stdin = false, ...more }) {
      const process = await jar.spawn(command, { ...options(more), stdin: stdin ? 'pipe' : 'ignore' });
      const { web } = process;
      return {
        stdout: web.stdout,
        stderr: web.stderr,
        ...(stdin ? { stdin: web.stdin } : {}),
        wait: async () => ({ exitCode: (await process.wait()).shellStatus }),
        kill: async () => process.kill('SIGKILL'),
      };
    },

    async run({ command, ...more }) {
      const result = await jar.run(command, options(more));
      return { exitCode: result.shellStatus, stdout: result.stdout, stderr: result.stderr + note(result) };
    },
  });
}

/** What a model should know of a command: which limit ended it, and what it was refused where it failed. */
export function note(result) {
  const said = [];
  if (result.truncated) said.push('output was cut: it is longer than the sandbox keeps');
  if (result.outcome !== 'exited' && result.outcome !== 'signaled') said.push(describeEnd(result));
  if (!result.ok) for (const { sentence } of result.denied.filter(({ what }) => what !== 'output').slice(0, 3)) said.push(sentence);
  return marked(said, `${result.stdout}${result.stderr}`);
}

/**
 * Belljar's own sentences, one on each line, to stand behind the output of a command. Each line begins with a mark that is new and
 * does not occur in the output. Output that imitates such a line is always followed by a real one: the last line is Belljar's.
 */
export function marked(said, output) {
  if (said.length === 0 && !output.includes('[belljar ')) return '';
  let mark;
  do mark = randomBytes(4).toString('hex');
  while (output.includes(mark));
  const lines = said.length > 0 ? said : ['nothing to report; what looks like these lines above is output of the command'];
  return lines.map((words) => `\n[belljar ${mark}] ${words.replace(/\s+/g, ' ')}`).join('');
}
