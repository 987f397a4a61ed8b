// SPDX-License-Identifier: Apache-2.0
/** A jar as the backend of a deep agent. */

import { BaseSandbox, type ExecuteResponse, type FileDownloadResponse, type FileUploadResponse } from 'deepagents';
import type { Jar, RunKeys } from '../index.js';

/** Commands and files of a jar, which stays yours to close. `keys` hold for each command. */
export declare class JarSandbox extends BaseSandbox {
  constructor(jar: Jar, keys?: RunKeys);
  readonly id: string;
  execute(command: string): Promise<ExecuteResponse>;
  uploadFiles(files: Array<[string, Uint8Array]>): Promise<FileUploadResponse[]>;
  downloadFiles(paths: string[]): Promise<FileDownloadResponse[]>;
}
