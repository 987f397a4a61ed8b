// SPDX-License-Identifier: Apache-2.0
/** Jars as the sandbox of the OpenAI Agents SDK. */

import type { Editor, ToolOutputImage } from '@openai/agents';
import type {
  ExecCommandArgs,
  ListDirectoryArgs,
  Manifest,
  MaterializeEntryArgs,
  ReadFileArgs,
  SandboxClient,
  SandboxClientCreateArgs,
  SandboxDirectoryEntry,
  SandboxExecResult,
  SandboxSession,
  SandboxSessionState,
  ViewImageArgs,
  WorkspaceArchiveData,
  WriteStdinArgs,
} from '@openai/agents/sandbox';
import type { Jar, JarOptions } from '../index.js';

/** A policy and its keys, as for Jar.open(). The workspace is private. */
export type JarSandboxOptions = Omit<JarOptions, 'workdir' | 'cwd' | 'workdir_mode'>;

/** Commands, files and terminals of one jar, from create() to close(). */
export declare class JarSandboxSession implements SandboxSession {
  private constructor();
  readonly jar: Jar;
  state: SandboxSessionState;
  running(): Promise<boolean>;
  supportsPty(): boolean;
  createEditor(runAs?: string): Editor;
  exec(args: ExecCommandArgs): Promise<SandboxExecResult>;
  execCommand(args: ExecCommandArgs): Promise<string>;
  writeStdin(args: WriteStdinArgs): Promise<string>;
  viewImage(args: ViewImageArgs): Promise<ToolOutputImage>;
  readFile(args: ReadFileArgs): Promise<Uint8Array>;
  listDir(args: ListDirectoryArgs): Promise<SandboxDirectoryEntry[]>;
  pathExists(path: string, runAs?: string): Promise<boolean>;
  directoryExists(path: string, runAs?: string): Promise<boolean>;
  materializeEntry(args: MaterializeEntryArgs): Promise<void>;
  applyManifest(manifest: Manifest, runAs?: string): Promise<void>;
  persistWorkspace(): Promise<Uint8Array>;
  hydrateWorkspace(data: WorkspaceArchiveData): Promise<void>;
  close(): Promise<void>;
  shutdown(): Promise<void>;
  delete(): Promise<void>;
}

/** Makes a jar for each session. */
export declare class JarSandboxClient implements SandboxClient<JarSandboxOptions> {
  constructor(options?: JarSandboxOptions);
  backendId: string;
  serializedSessionStateRequiresFreshCreation: boolean;
  create(args?: SandboxClientCreateArgs<JarSandboxOptions>): Promise<JarSandboxSession>;
  create(manifest: Manifest, options?: JarSandboxOptions): Promise<JarSandboxSession>;
}
