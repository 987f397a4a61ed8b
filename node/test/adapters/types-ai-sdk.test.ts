// SPDX-License-Identifier: Apache-2.0
/**
 * test/adapters/types-ai-sdk.test.ts - what strict TypeScript users of the adapter see; tsc compiles it, and nothing runs it
 */

import type { Experimental_SandboxSession } from 'ai';
import { Jar } from 'belljar';
import { sandboxSession } from 'belljar/ai-sdk';

await using jar = await Jar.open();
const session: Experimental_SandboxSession = sandboxSession(jar, { timeout: 5 });
// @ts-expect-error a misspelt key
sandboxSession(jar, { memroy: '1G' });
void session;
