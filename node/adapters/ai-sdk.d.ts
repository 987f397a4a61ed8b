// SPDX-License-Identifier: Apache-2.0
/** A jar as the sandbox of the Vercel AI SDK (7.0 and later). */

import type { Experimental_SandboxSession } from 'ai';
import type { Jar, RunKeys } from '../index.js';

export interface SandboxOptions extends RunKeys {
  /** What the model is told of the sandbox. */
  description?: string | undefined;
}

/** The session for a jar, which stays yours to close. `keys` hold for each command. Pass it as `experimental_sandbox`. */
export declare function sandboxSession(jar: Jar, options?: SandboxOptions): Experimental_SandboxSession;
