// SPDX-License-Identifier: Apache-2.0
/**
 * test/adapters/types-deepagents.test.ts - what strict TypeScript users of the adapter see; tsc compiles it, and nothing runs it
 */

import { Jar } from 'belljar';
import { JarSandbox } from 'belljar/deepagents';
import type { SandboxBackendProtocolV2 } from 'deepagents';

await using jar = await Jar.open();
const backend: SandboxBackendProtocolV2 = new JarSandbox(jar);
// @ts-expect-error a misspelt key
new JarSandbox(jar, { memroy: '1G' });
void backend;
