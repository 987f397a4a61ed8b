// SPDX-License-Identifier: Apache-2.0
/**
 * test/adapters/types-openai-agents.test.ts - what strict TypeScript users of the adapter see; tsc compiles it, and nothing runs it
 */

import { JarSandboxClient } from 'belljar/openai-agents';
import type { SandboxClient } from '@openai/agents/sandbox';

const client: SandboxClient<any> = new JarSandboxClient({ memory: '1G' });
// @ts-expect-error a misspelt key
new JarSandboxClient({ memroy: '1G' });
// @ts-expect-error the workspace is private
new JarSandboxClient({ workdir: '/srv' });
void client;
const made = new JarSandboxClient({ memory: '1G' });
await made.create({ options: { timeout: 3 } });
// @ts-expect-error a misspelt key of a session
await made.create({ options: { memroy: '1G' } });
