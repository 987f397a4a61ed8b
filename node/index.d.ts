// SPDX-License-Identifier: Apache-2.0
/**
 * Types of the package. Keys of policies, results and events are those of Belljar's documents (`cpu_time`), which programs in other
 * languages read too; everything else has names as JavaScript has them.
 */

import type { Duplex, Readable, Writable } from 'node:stream';

// --- values ---

/** Seconds, or text such as "500ms", "30s", "5m". */
export type Duration = number | string;
/** Bytes, or text such as "100K", "512M". */
export type Size = number | string;
/** A path: text, or bytes where it is no UTF-8. */
export type Path = string | Uint8Array;
/** A path of the host in a policy. */
export type HostPath = string | Uint8Array | URL;
export type Shown = HostPath | { path: string; dest?: string; optional?: boolean };
export type NetRule = string | { host: string; ports?: string | number | readonly (string | number)[]; private?: boolean; deny?: boolean; reason?: string };
/** "NAME@HOST[:HEADER]", or an object: a value that the gate puts into a header for that host. Inside, the variable has a placeholder. */
export type Secret = string | { name: string; host: string; header?: string; format?: string; from_env?: string; from_file?: string };
export type Rung = 'namespace' | 'landlock' | 'process';
export type StreamName = 'stdout' | 'stderr';
export type SignalName = NodeJS.Signals | number;

// --- policies ---

/** Policy keys that may differ from run to run of one jar. null: no limit. */
export interface RunKeys {
  cd?: Path | undefined;
  pass_env?: string | readonly string[] | undefined;
  env?: Readonly<Record<string, string>> | null | undefined;
  timeout?: Duration | null | undefined;
  grace?: Duration | null | undefined;
  cpu_time?: Duration | null | undefined;
  memory?: Size | null | undefined;
  pids?: number | null | undefined;
  disk?: Size | null | undefined;
  file_size?: Size | null | undefined;
  fds?: number | null | undefined;
  core?: Size | null | undefined;
  net_connections?: number | null | undefined;
  net_bytes?: Size | null | undefined;
  output?: Size | null | { stdout?: Size | null; stderr?: Size | null } | undefined;
  overflow?: 'truncate' | 'kill' | undefined;
  keep?: 'head' | 'tail' | 'both' | undefined;
  ledger?: 'basic' | 'files' | 'trace' | undefined;
  redact?: string | readonly string[] | undefined;
  redact_secrets?: boolean | undefined;
  redact_env?: boolean | undefined;
}

/** All policy keys. `cwd` is another name for `workdir`. */
export interface PolicyKeys extends RunKeys {
  version?: 1 | undefined;
  extends?: string | undefined;
  workdir?: HostPath | null | undefined;
  cwd?: HostPath | null | undefined;
  workdir_mode?: 'rw' | 'ro' | undefined;
  workspace?: 'direct' | 'cow' | undefined;
  workspace_name?: string | null | undefined;
  cow_dirs?: HostPath | readonly HostPath[] | undefined;
  ro?: Shown | readonly Shown[] | undefined;
  rw?: Shown | readonly Shown[] | undefined;
  /** Paths, and patterns such as `**` + `/.env`, which begin in the work directory. */
  hide?: HostPath | readonly HostPath[] | undefined;
  hide_secrets?: boolean | undefined;
  tmpfs?: string | readonly string[] | undefined;
  system?: boolean | undefined;
  toolchains?: boolean | undefined;
  protect?: boolean | undefined;
  exec?: 'any' | 'trusted' | undefined;
  speculation?: 'on' | 'off' | undefined;
  machine_facts?: 'host' | 'few' | 'none' | undefined;
  net?: 'none' | 'gate' | 'host' | undefined;
  allow_net?: string | readonly NetRule[] | undefined;
  secrets?: string | readonly Secret[] | undefined;
  /** PORT, or "HOSTPORT:PORT": servers in the jar that the host reaches on its own loopback. */
  publish?: number | string | readonly (number | string)[] | undefined;
  ask?: 'none' | 'net' | undefined;
  ask_timeout?: Duration | undefined;
  hostname?: string | undefined;
  rung?: Rung | undefined;
  optional?: string | readonly string[] | undefined;
}

/** A policy, its keys, the name of a preset, a path or a file URL. */
export type PolicyLike = Policy | PolicyKeys | string | URL;

/** What is allowed, as a frozen value: the object of a policy file. The engine checks it when it is made. */
export declare class Policy {
  constructor(keys?: PolicyKeys);
  /** Read and check a policy file; PolicyError names line and column. Later changes of the file have no effect. */
  static load(path: string | URL): Promise<Policy>;
  /** One of the built-in policies. */
  static preset(name: 'agent' | 'readonly' | 'strict' | (string & {})): Policy;
  /** A copy with some keys changed. */
  replace(keys: PolicyKeys): Policy;
  /** The keys that are set, as plain data. */
  toJSON(): Record<string, unknown>;
}

// --- results ---

export type Outcome = 'exited' | 'signaled' | 'timeout' | 'cpu' | 'memory' | 'disk' | 'output' | 'net' | 'cancelled' | 'failed';
export type LimitName = 'timeout' | 'cpu_time' | 'memory' | 'pids' | 'disk' | 'file_size' | 'fds' | 'output' | 'net_connections' | 'net_bytes' | (string & {});

export interface LimitHit {
  name: LimitName;
  limit: number;
  peak: number | null;
  enforced_by: string;
  evidence: string;
}

export interface Usage {
  wall_ms: number | null;
  user_ms: number | null;
  system_ms: number | null;
  peak_memory_bytes: number | null;
  memory_by: string | null;
  peak_processes: number | null;
}

export interface Enforced {
  rung: Rung | null;
  filesystem: string | null;
  network: string | null;
  processes: string | null;
  syscalls: string | null;
  memory: string | null;
  pids: string | null;
  cpu_time: string | null;
  disk: string | null;
}

export interface Missing {
  name: string;
  why: string;
  hint: string | null;
}

/** Something that the jar refused, and the smallest change that would allow it. Nothing is changed by itself. */
export interface Denial {
  kind: 'file' | 'exec' | 'net' | 'name' | 'syscall' | 'http' | 'limit' | (string & {});
  what: string;
  access: string;
  count: number;
  process: string | null;
  why: string;
  cure: { flag: string; policy: PolicyKeys } | null;
  certainty: 'seen' | 'inferred';
  warning?: string | null;
  /** For whoever decides what to do next, a model among them. */
  sentence: string;
}

/** The layer that a run wrote to. `id` is null if nothing was changed: then nothing was kept. */
export interface WorkspaceSummary {
  id: string | null;
  added: number;
  modified: number;
  deleted: number;
  bytes: number;
  path: string;
  kind: 'overlay' | 'copy';
  /** false: there was too much to compare, and the numbers are rough. */
  complete: boolean;
  /** Layers of `cow_dirs`. */
  dirs?: WorkspaceSummary[];
}

export interface Failure {
  stage: string;
  errno: number;
  message: string;
  hint: string | null;
}

/** How a run ended, and why. Frozen. `Text` is string, or Uint8Array with `text: false`, or null where nothing was kept. */
export declare class Result<Text = string> {
  private constructor();
  readonly args: string[];
  readonly version: number;
  readonly outcome: Outcome;
  /** Set only if the outcome is "exited". */
  readonly exit_code: number | null;
  /** The name of the signal that ended the main process, whoever sent it. */
  readonly signal: string | null;
  readonly timed_out: boolean;
  readonly killed: boolean;
  readonly stdout: Text;
  readonly stderr: Text;
  readonly encoding: 'utf-8' | 'utf-8-lossy';
  readonly stdout_bytes: number;
  readonly stderr_bytes: number;
  readonly truncated: boolean;
  readonly elided_at?: { stdout?: number | null; stderr?: number | null };
  readonly limits_hit: LimitHit[];
  readonly usage: Usage;
  readonly enforced: Enforced;
  readonly missing: Missing[];
  readonly risky: { path: string; why: string }[];
  readonly risky_search?: { looked_at: number; left_out: string[]; why?: string };
  readonly denied: Denial[];
  readonly network: Record<string, unknown> | null;
  readonly workspace: WorkspaceSummary | null;
  readonly workdir: string | null;
  readonly notes: unknown[];
  readonly error: Failure | null;
  /** Whether the command ended by itself, with exit status 0. */
  get ok(): boolean;
  /** The exit status that `belljar run` would have: 128 + n for a signal n, 124 for a timeout, 137 for other limits ... */
  get shellStatus(): number;
  /** Itself, if `ok`; else RunTimeout or RunError is thrown. */
  check(): this;
  /** The document of `belljar run --json`. */
  toJSON(): Record<string, unknown>;
}

export type Event = { event: 'limit'; limit: LimitHit } | { event: string & {}; [member: string]: unknown };

// --- errors ---

/** The base of all. */
export declare class BelljarError extends Error {
  /** The result of the run, if there was one. */
  readonly result: Result<any> | ShellResult | null;
  /** What to do about it, if that is known. */
  readonly hint: string | null;
}
/** An unknown key, a bad value, a bad policy file. Nothing ran. */
export declare class PolicyError extends BelljarError {}
/** This host cannot enforce what the policy asks for. Nothing ran. */
export declare class UnavailableError extends BelljarError {
  readonly missing: Missing[];
}
/** The command or its work directory was not found or cannot be used. Nothing ran. `code`, `errno` and `path` are as in errors of `fs`. */
export declare class StartError extends BelljarError {
  readonly code: string;
  readonly errno: number;
  readonly path?: string;
}
/** The engine could not be started, died, or sent nonsense. */
export declare class EngineError extends BelljarError {}
/** `check: true`, and the command did not end with exit status 0. */
export declare class RunError extends BelljarError {
  readonly result: Result<any> | ShellResult;
  get stdout(): string | Uint8Array | null;
  get stderr(): string | Uint8Array | null;
}
/** `check: true`, and the wall-clock limit ended the run. */
export declare class RunTimeout extends RunError {}
/** A workspace could not be used, or not everything could be applied: then `notApplied` says what, and why. */
export declare class WorkspaceError extends BelljarError {
  readonly notApplied: NotApplied[];
}
/** The function or its arguments cannot be sent into a jar. */
export declare class SendError extends BelljarError {}
/** The function threw. What its error said is text. */
export declare class CallError extends BelljarError {
  readonly typeName: string | null;
  readonly originalMessage: string | null;
  readonly traceback: string | null;
}
/** The call took longer than its wall-clock limit. */
export declare class CallTimeout extends CallError {}
/** The function's process ended without a result; `result.outcome` says how. */
export declare class CallEnded extends CallError {}
/** What came back is not data, too large, too deep, or malformed. */
export declare class ResultError extends CallError {}

// --- runs ---

export type Words = readonly (string | Uint8Array)[];
/** Output as it comes, redacted; never cuts a UTF-8 character. A promise is waited for: a slow function slows the command. */
export type OnOutput = (stream: StreamName, data: Uint8Array) => unknown;
export type OnEvent = (event: Event) => unknown;
/**
 * A command wants to reach a host that no rule decides about. Its connection waits for the answer. `address` is null for a name, which can only
 * lead to public addresses; else `host` is an address, and it says where that is. After `timeout` seconds the connection is refused.
 */
export interface Question {
  kind: string;
  host: string;
  port: number;
  address: 'public' | 'private' | 'host' | null;
  /** The entry of allow_net that would allow it. */
  rule: string;
  timeout: number;
}
export type Answer = 'once' | 'run' | 'deny';
/** "once": the connections that wait now; "run": until the run ends. Anything else, and an error, is "deny". */
export type OnAsk = (question: Question) => Answer | Promise<Answer>;
export type Source = Readable | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array | string>;

export interface CommandOptions {
  /** The command is one string, for `/bin/sh -c`. */
  shell?: boolean | undefined;
  /** What the command reads. */
  input?: string | Uint8Array | ArrayBuffer | null | undefined;
  /** Whether stdout and stderr of the result are text (default) or bytes. */
  text?: boolean | undefined;
  /** One stream for both. */
  stderrToStdout?: boolean | undefined;
  /** Give the command a terminal of its own. All output is stdout then. */
  pty?: boolean | undefined;
  rows?: number | undefined;
  columns?: number | undefined;
  /** Keep the output in the result: the default of run(), not of spawn(). */
  capture?: boolean | undefined;
  onOutput?: OnOutput | undefined;
  onEvent?: OnEvent | undefined;
  /** Is asked about hosts that no rule decides; implies `ask: 'net'`. */
  onAsk?: OnAsk | undefined;
  /** Aborting ends the run; its promise is rejected with the reason when nothing of it is left. */
  signal?: AbortSignal | undefined;
}

export interface RunInJarOptions extends CommandOptions, RunKeys {
  /** Where the command reads from; by default nothing. */
  stdin?: 'ignore' | Source | null | undefined;
  /** Throw RunError unless the command ends with exit status 0. */
  check?: boolean | undefined;
  /** What the command has started goes on in the jar after its end. Only in a Jar. */
  detach?: boolean | undefined;
}
export interface SpawnInJarOptions extends CommandOptions, RunKeys {
  /** "pipe" gives a stream to write to. By default the command reads nothing. */
  stdin?: 'pipe' | 'ignore' | Source | null | undefined;
}
export interface RunOptions extends Omit<RunInJarOptions, 'detach'>, PolicyKeys {
  policy?: PolicyLike | undefined;
}
export interface SpawnOptions extends SpawnInJarOptions, PolicyKeys {
  policy?: PolicyLike | undefined;
}

/** `args` of a run: words, or one string with `shell: true`. */
export interface RunFunction<Options extends { text?: boolean | undefined; shell?: boolean | undefined; capture?: boolean | undefined }> {
  (args: Words, options?: Options & { text?: true | undefined; shell?: false | undefined; capture?: true | undefined }): Promise<Result<string>>;
  (args: Words, options: Options & { text: false; shell?: false | undefined; capture?: true | undefined }): Promise<Result<Uint8Array>>;
  (args: string, options: Options & { shell: true; text?: true | undefined; capture?: true | undefined }): Promise<Result<string>>;
  (args: string, options: Options & { shell: true; text: false; capture?: true | undefined }): Promise<Result<Uint8Array>>;
  (args: Words | string, options: Options): Promise<Result<string | Uint8Array | null>>;
}

/** Run a command in a fresh jar. By default: 30 seconds, 512M of memory, 100K of output, no network. */
export declare const run: RunFunction<RunOptions>;

/**
 * Start a command in a fresh jar; resolves once it runs. Unless asked for it has no time limit, its output no cap, and the result no output.
 */
export declare const spawn: SpawnFunction<SpawnOptions>;

/** `args` of spawn(): words, or one string with `shell: true`. `stdin: "pipe"` and no onOutput say which streams there are. */
export interface SpawnFunction<Options extends { shell?: boolean | undefined; stdin?: unknown; onOutput?: OnOutput | undefined }> {
  (args: Words, options: Options & { shell?: false | undefined; stdin: 'pipe'; onOutput?: undefined }): Promise<Process<true, true>>;
  (args: string, options: Options & { shell: true; stdin: 'pipe'; onOutput?: undefined }): Promise<Process<true, true>>;
  (args: Words, options: Options & { shell?: false | undefined; stdin: 'pipe' }): Promise<Process<true, boolean>>;
  (args: string, options: Options & { shell: true; stdin: 'pipe' }): Promise<Process<true, boolean>>;
  (args: Words, options?: Options & { shell?: false | undefined; onOutput?: undefined }): Promise<Process<boolean, true>>;
  (args: string, options: Options & { shell: true; onOutput?: undefined }): Promise<Process<boolean, true>>;
  (args: Words, options?: Options & { shell?: false | undefined }): Promise<Process>;
  (args: string, options: Options & { shell: true }): Promise<Process>;
}

type Maybe<Has extends boolean, Stream> = Has extends true ? Stream : Stream | null;

/** A run that goes on. `await using` cancels the run and waits until it is gone. */
export declare class Process<HasStdin extends boolean = boolean, HasOutput extends boolean = boolean> implements AsyncDisposable {
  private constructor();
  readonly args: string[];
  /** With `stdin: "pipe"`. */
  readonly stdin: Maybe<HasStdin, Writable>;
  /** Read both, or the command waits once 256 KiB are there. null with onOutput. Destroying one ends the run. */
  readonly stdout: Maybe<HasOutput, Readable>;
  readonly stderr: Maybe<HasOutput, Readable>;
  /** The same as web streams. Use these or the others, not both. */
  readonly web: {
    stdin: Maybe<HasStdin, WritableStream<Uint8Array>>;
    stdout: Maybe<HasOutput, ReadableStream<Uint8Array>>;
    stderr: Maybe<HasOutput, ReadableStream<Uint8Array>>;
  };
  /** The result, once the run is over. */
  readonly result: Result<string | Uint8Array | null> | null;
  wait(): Promise<Result<string | Uint8Array | null>>;
  /** Send a signal to every process of the run; SIGTERM by default. */
  kill(signal?: SignalName): void;
  /** End the run: SIGTERM, after the policy's grace SIGKILL. Resolves when nothing of it is left. */
  cancel(): Promise<Result<string | Uint8Array | null>>;
  resize(rows: number, columns: number): void;
  /** Let Node end although the run goes on; it is killed then. */
  unref(): this;
  ref(): this;
  /** cancel(), if it still runs; never rejects. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

// --- jars ---

export interface FileInfo {
  name: string;
  type: 'file' | 'dir' | 'symlink' | 'other';
  size: number;
  /** Permissions only. */
  mode: number;
  mtime: Date;
}

export interface FileEvent {
  /** In the watched directory; "" is what is watched itself. */
  name: string;
  type: 'created' | 'modified' | 'closed' | 'attributes' | 'deleted' | 'moved_from' | 'moved_to' | 'overflow';
  isDir: boolean;
}

export interface ProcessInfo {
  pid: number;
  ppid: number;
  /** The same for all processes of one run. */
  run: number;
  /** The letter of /proc/PID/stat. */
  state: string;
  name: string;
  args: string[];
}

export interface JarUsage {
  age_ms: number;
  ttl_ms: number | null;
  runs: number;
  memory_bytes: number | null;
  peak_memory_bytes: number | null;
  processes: number | null;
  peak_processes: number | null;
  cpu_ms: number | null;
}

export interface Watch extends AsyncIterableIterator<FileEvent> {
  close(): void;
}

export interface JarOptions extends PolicyKeys {
  policy?: PolicyLike | undefined;
  /** After so long the jar is closed by itself. */
  ttl?: Duration | undefined;
  /** Answers for runs that have none of their own. */
  onAsk?: OnAsk | undefined;
}

// --- workspaces ---

/** One side of a change. */
export interface ChangeSide {
  type: 'file' | 'directory' | 'link' | 'fifo' | 'socket' | 'device';
  /** Permissions, as "0644". */
  mode: string;
  size?: number;
  sha256?: string | null;
}

/** One path that a workspace changes. */
export interface Change {
  path: string;
  change: 'added' | 'modified' | 'type' | 'mode' | 'deleted';
  before: ChangeSide | null;
  after: ChangeSide | null;
  renamed_from: string | null;
  /** The host's was touched since. */
  conflict: boolean;
  /** Not applied unless `allowRisky` names it. */
  refused: boolean;
  /** Look at it: tools run it by themselves. */
  apart: boolean;
  why: string | null;
}

export interface NotApplied {
  path: string;
  reason: 'conflict' | 'refused' | 'failed';
  why: string | null;
}

export interface Applied {
  applied: number;
  conflicts: number;
  refused: number;
  failed: number;
  dropped: number;
  /** Changes that were not asked for. */
  left: number;
  kept: boolean;
  not_applied: NotApplied[];
  /** Where versions of files are that the host changed at the same moment. */
  saved: string[];
}

export interface ApplyOptions {
  /** Apply these though they would be refused. */
  allowRisky?: readonly Path[] | undefined;
  /** In a conflict, take the workspace's side of these ... */
  theirs?: readonly Path[] | undefined;
  /** ... or the host's. */
  ours?: readonly Path[] | undefined;
}

export interface WorkspaceFacts {
  id: string;
  name: string | null;
  workdir: string;
  kind: 'overlay' | 'copy';
  /** Seconds since 1970. */
  created: number;
  checkpoints: string[];
  added: number;
  modified: number;
  deleted: number;
  bytes: number;
  upper: string;
}

/** What can be asked about a workspace, a jar's or one that is left. Paths are below its directory; without them everything is meant. */
export interface Deciding {
  /** What is different from the host's files as they are now. */
  diff(paths?: readonly Path[] | null): Promise<Change[]>;
  /** The same as a patch that `git apply` takes. */
  patch(paths?: readonly Path[] | null): Promise<string>;
  /** Put changes into the host's directory. WorkspaceError if some were not applied; the others are then. */
  apply(paths?: readonly Path[] | null, options?: ApplyOptions): Promise<Applied>;
  /** Drop what was changed. */
  discard(paths?: readonly Path[] | null): Promise<void>;
  /** Freeze what was changed so far; the id is for rollback(). "origin" if that is nothing. */
  checkpoint(note?: string): Promise<string>;
  /** Drop what was changed since that checkpoint, or since the last. */
  rollback(checkpoint?: string): Promise<void>;
}

/** What runs with `workspace: "cow"` left, by its id. */
export declare class Workspace implements Deciding {
  constructor(id: string);
  /** By its id, or by its name for the current directory. WorkspaceError if there is none. */
  static open(idOrName: string): Promise<Workspace>;
  readonly id: string;
  show(): Promise<WorkspaceFacts>;
  diff(paths?: readonly Path[] | null): Promise<Change[]>;
  patch(paths?: readonly Path[] | null): Promise<string>;
  apply(paths?: readonly Path[] | null, options?: ApplyOptions): Promise<Applied>;
  discard(paths?: readonly Path[] | null): Promise<void>;
  checkpoint(note?: string): Promise<string>;
  rollback(checkpoint?: string): Promise<void>;
  /** So many workspaces that go on from here. Nothing is copied. */
  fork(count: number): Promise<Workspace[]>;
}

// --- jars for many runs ---

export type Archive = Uint8Array | Readable | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;

/**
 * A jar that stays open for many runs over the same files. Paths are the jar's; relative ones start at the workdir. What goes wrong with a file is
 * an error as those of `fs`.
 */
export declare class Jar implements AsyncDisposable, Deciding {
  private constructor();
  static open(options?: JarOptions): Promise<Jar>;
  readonly rung: Rung;
  readonly enforced: Enforced;
  readonly missing: Missing[];
  readonly limits: Record<string, number | null>;
  /** Where runs start, as seen inside. */
  readonly workdir: string | null;
  /** For each port of `publish` the one of this host's 127.0.0.1 that leads to it. */
  readonly published: Record<number, number>;
  readonly isOpen: boolean;
  /** What its processes changed that other programs obey: as far as the last look() saw, and all of it once it has ended. */
  readonly risky: { path: string; why: string }[];
  /** Search now, and give `risky`: also what a process that lives on has left. */
  look(): Promise<{ path: string; why: string }[]>;
  /** The layer that it writes to, as the engine told it last; null: it has none. */
  readonly workspace: WorkspaceSummary | null;

  run: RunFunction<RunInJarOptions>;
  spawn: SpawnFunction<SpawnInJarOptions>;
  /** A function of a module in this jar: over its files, each time in a fresh process. The jar must show the module, read-only. */
  call<Type = unknown>(module: string | URL, name: string, args?: readonly Data[], options?: JarCallOptions): Promise<Type>;
  /** A shell that keeps its directory, variables, functions and background jobs. */
  shell(options?: KeptKeys): Promise<Shell>;
  /** A Python that keeps its variables. `python`: the program, by default python3. */
  python(options?: KeptKeys & { python?: string | undefined }): Promise<Interpreter>;

  readFile(path: Path, options?: { maxBytes?: number | undefined; offset?: number | undefined; length?: number | undefined }): Promise<Buffer>;
  readTextFile(path: Path, options?: { maxBytes?: number | undefined; offset?: number | undefined; length?: number | undefined }): Promise<string>;
  writeFile(path: Path, data: string | Uint8Array | ArrayBuffer, options?: { mode?: number | undefined; parents?: boolean | undefined }): Promise<void>;
  createReadStream(path: Path): Readable;
  createWriteStream(path: Path, options?: { mode?: number | undefined; parents?: boolean | undefined }): Writable;
  /** Sorted by name. No link is followed. */
  listFiles(path?: Path, options?: { recursive?: boolean | undefined }): Promise<FileInfo[]>;
  mkdir(path: Path, options?: { parents?: boolean | undefined; mode?: number | undefined }): Promise<void>;
  stat(path: Path, options?: { follow?: boolean | undefined }): Promise<FileInfo>;
  exists(path: Path): Promise<boolean>;
  remove(path: Path, options?: { recursive?: boolean | undefined }): Promise<void>;
  rename(from: Path, to: Path): Promise<void>;
  /** A directory with all in it, or a file, as a tar archive that is made while it is read. */
  exportTar(path?: Path): Readable;
  /** Unpack a tar archive below a directory. Links, devices, absolute names and '..' are refused. */
  importTar(data: Archive, path?: Path): Promise<void>;
  watch(path?: Path): Promise<Watch>;
  /** A connection to a TCP port that a process in the jar listens on. */
  connect(port: number): Promise<Duplex>;
  processes(): Promise<ProcessInfo[]>;
  kill(pid: number, signal?: SignalName): Promise<void>;
  usage(): Promise<JarUsage>;
  /** Let a jar with a gate reach what a rule names, or no longer. The last word about a host and port counts. */
  allowNet(rule: NetRule): Promise<void>;
  denyNet(rule: NetRule): Promise<void>;
  /** diff() and patch() look while the jar goes on. After the others the jar begins afresh over what is left: processes and private files are gone. */
  diff(paths?: readonly Path[] | null): Promise<Change[]>;
  patch(paths?: readonly Path[] | null): Promise<string>;
  apply(paths?: readonly Path[] | null, options?: ApplyOptions): Promise<Applied>;
  discard(paths?: readonly Path[] | null): Promise<void>;
  checkpoint(note?: string): Promise<string>;
  rollback(checkpoint?: string): Promise<void>;
  /** So many jars that go on from here, each with a layer of its own. */
  fork(count: number): Promise<Jar[]>;
  /** Kill what is left in the jar and wait until it is gone. May be called again. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

// --- what keeps state ---

/** `timeout`, `grace` and `output` hold for each command or cell. */
export type KeptKeys = Omit<RunKeys, 'keep' | 'overflow'> & { onAsk?: OnAsk | undefined };

export interface KeptOptions {
  timeout?: Duration | null | undefined;
  signal?: AbortSignal | undefined;
}

export interface ShellResult {
  readonly stdout: string;
  readonly stderr: string;
  /** As the shell has it in $?; null if there is none. */
  readonly exitCode: number | null;
  /** The same, as Result has it. */
  readonly exit_code: number | null;
  /** As Result has it: the timeout of the command, and what its shell ran into. */
  readonly limits_hit: LimitHit[];
  readonly outcome: 'exited' | 'timeout' | 'interrupted' | 'ended';
  readonly truncated: boolean;
  /** What the command, or what else is in the jar, changed meanwhile that other programs obey. */
  readonly risky: { path: string; why: string }[];
  /** The shell is gone. */
  readonly stateLost: boolean;
  /** How its run ended, then. */
  readonly result: Result<null> | null;
  readonly ok: boolean;
  check(): this;
}

export declare class Shell implements AsyncDisposable {
  private constructor();
  run(command: string, options?: KeptOptions): Promise<ShellResult>;
  interrupt(): void;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface CellError {
  readonly kind: 'raised' | 'timeout' | 'interrupted' | 'ended';
  readonly typeName: string;
  readonly message: string;
  readonly traceback: string;
  /** The variables are gone; reset() begins afresh. */
  readonly stateLost: boolean;
  readonly result: Result<null> | null;
}

export interface Cell {
  /**
   * That of the last expression, if it is data; else its repr(), and then isData is false. Of one that is bigger than the `output` that
   * was given, the beginning of its text; then truncated is true.
   */
  readonly value: Data;
  readonly isData: boolean;
  readonly stdout: string;
  readonly stderr: string;
  readonly truncated: boolean;
  /** What the cell, or what else is in the jar, changed meanwhile that other programs obey. */
  readonly risky: { path: string; why: string }[];
  readonly error: CellError | null;
  readonly ok: boolean;
  check(): this;
}

export declare class Interpreter implements AsyncDisposable {
  private constructor();
  run(code: string, options?: KeptOptions): Promise<Cell>;
  set(name: string, value: Data): Promise<void>;
  get(name: string): Promise<Data>;
  variables(): Promise<{ name: string; typeName: string; text: string }[]>;
  interrupt(): void;
  reset(): Promise<void>;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

// --- calls ---

/** What travels into a jar and out of it. Bytes come back as Uint8Array. */
export type Data =
  | null
  | undefined
  | boolean
  | number
  | bigint
  | string
  | Date
  | Uint8Array
  | readonly Data[]
  | { readonly [key: string]: Data }
  | ReadonlyMap<Data, Data>
  | ReadonlySet<Data>;

export interface CallOptions extends RunKeys {
  onOutput?: OnOutput | undefined;
  onAsk?: OnAsk | undefined;
  /** Bytes of the result; 64M by default. */
  maxResult?: Size | undefined;
  signal?: AbortSignal | undefined;
}

export interface JarCallOptions extends CallOptions {
  /** Directories from which modules may be loaded although the jar can write there. */
  importPaths?: readonly string[] | undefined;
  /** The program in the jar; this one's by default. */
  node?: string | undefined;
}

/**
 * Call the function `name` that a module exports, in a process and a jar of its own. Its result is data, and nothing else: it was made by code
 * that nobody has reviewed, so `Type` is what you expect and have to check.
 */
export declare function call<Type = unknown>(module: string | URL, name: string, args?: readonly Data[], options?: CallOptions): Promise<Type>;

export interface PoolOptions extends PolicyKeys {
  /** Modules that are loaded ahead. */
  preload?: readonly (string | URL)[] | undefined;
  /** Calls at once; more wait in order. */
  concurrency?: number | undefined;
  /** Processes that are kept ready; 1 by default. */
  ready?: number | undefined;
  /** Directories that modules may be loaded from although the jar can write there. */
  importPaths?: readonly string[] | undefined;
  /** The program; by default the one that runs this. */
  node?: string | undefined;
  /** Answers for calls that have none of their own. */
  onAsk?: OnAsk | undefined;
  policy?: PolicyLike | undefined;
}

/** Processes that are ready for calls, in jars that are made alike. */
export declare class Pool implements AsyncDisposable {
  constructor(options?: PoolOptions);
  call<Type = unknown>(module: string | URL, name: string, args?: readonly Data[], options?: CallOptions): Promise<Type>;
  /** The values of the function for each item, in order; as many at once as the pool allows. The first error ends it, and so does leaving the loop. */
  map<Type = unknown>(module: string | URL, name: string, items: Iterable<Data> | AsyncIterable<Data>, options?: CallOptions): AsyncGenerator<Type, void, undefined>;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** What this host can enforce: `belljar doctor --json`. */
export declare function capabilities(): Promise<Record<string, unknown>>;
