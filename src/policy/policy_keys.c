/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/policy_keys.c - the table of policy keys
 *
 * The order is the order of --help, of the manual and of `belljar policy show`. Defaults are not here but in the preset
 * `agent`; default_text only describes them.
 */
#include "policy/policy_keys.h"

#include <string.h>

/* A word's place in its list is its enum value. */
static const char *const workdir_mode_words[] = {[WORKDIR_RW] = "rw", [WORKDIR_RO] = "ro", NULL};
static const char *const net_words[] = {[NET_NONE] = "none", [NET_HOST] = "host", NULL};
static const char *const overflow_words[] = {[OVERFLOW_TRUNCATE] = "truncate", [OVERFLOW_KILL] = "kill", NULL};
static const char *const keep_words[] = {[KEEP_HEAD] = "head", [KEEP_TAIL] = "tail", [KEEP_BOTH] = "both", NULL};
static const char *const rung_words[] = {
	[RUNG_PROCESS] = "process", [RUNG_LANDLOCK] = "landlock", [RUNG_NAMESPACE] = "namespace", NULL};

const char *const policy_guarantee_names[] = {
	[GUARANTEE_RUNG] = "rung",         [GUARANTEE_FILESYSTEM] = "filesystem",
	[GUARANTEE_NETWORK] = "network",   [GUARANTEE_PROCESSES] = "processes",
	[GUARANTEE_SYSCALLS] = "syscalls", [GUARANTEE_MEMORY] = "memory",
	[GUARANTEE_PIDS] = "pids",         [GUARANTEE_CPU_TIME] = "cpu_time",
	[GUARANTEE_DISK] = "disk",         [GUARANTEE_COUNT] = NULL,
};

/* `true` alone takes 0.7 MB of a cgroup: its pages, its page tables and kernel stack, and what starts it. */
#define LEAST_MEMORY_BYTES (1 << 20)
/* Standard input, output and error, and one with which the loader opens libraries. */
#define LEAST_FDS 4

#define MEMBER(name) .offset = offsetof(struct policy, name)

const struct policy_key policy_keys[] = {
	{
		.name = "version",
		.help = "version of the policy format; always 1",
		.default_text = "1",
		.type = POLICY_VERSION,
		.scope = SCOPE_BOTH,
		.tightening = TIGHTEN_NOT,
	},
	{
		.name = "extends",
		.help = "preset or file that this policy starts from; a name with a '/' or ending in .json is a file",
		.default_text = "agent",
		.type = POLICY_EXTENDS,
		.scope = SCOPE_BOTH,
		.tightening = TIGHTEN_REFUSED,
	},
	{
		.name = "workdir",
		.flag = "workdir",
		.short_flag = 'C',
		.placeholder = "DIR|none",
		.help = "where the command starts, readable and writable; none: private and empty",
		.default_text = "current directory",
		.type = POLICY_WORKDIR,
		.scope = SCOPE_JAR,
		.may_be_none = true,
		MEMBER(workdir),
		.tightening = TIGHTEN_TO_NULL,
	},
	{
		.name = "workdir_mode",
		.flag = "workdir-mode",
		.placeholder = "rw|ro",
		.help = "whether the command may write in the work directory",
		.default_text = "rw",
		.type = POLICY_WORD,
		.scope = SCOPE_JAR,
		.words = workdir_mode_words,
		MEMBER(workdir_mode),
		.tightening = TIGHTEN_HIGHER,
	},
	{
		.name = "cd",
		.flag = "cd",
		.placeholder = "DIR",
		.help = "directory in the jar to start in; a relative one starts at the work directory",
		.default_text = "the work directory",
		.type = POLICY_PATH,
		.scope = SCOPE_RUN,
		.may_be_none = true,
		MEMBER(cd),
		.tightening = TIGHTEN_NOT,
	},
	{
		.name = "ro",
		.flag = "ro",
		.placeholder = "PATH[:DEST]",
		.help = "make a host path visible, read-only; at DEST if given",
		.type = POLICY_MOUNTS,
		.scope = SCOPE_JAR,
		MEMBER(mounts),
		.tightening = TIGHTEN_SHORTEN,
	},
	{
		.name = "rw",
		.flag = "rw",
		.placeholder = "PATH[:DEST]",
		.help = "make a host path visible and writable; at DEST if given",
		.type = POLICY_MOUNTS,
		.scope = SCOPE_JAR,
		MEMBER(mounts),
		.tightening = TIGHTEN_SHORTEN,
	},
	{
		.name = "hide",
		.flag = "hide",
		.placeholder = "PATH",
		.help = "hide a path that would be visible; wins over everything",
		.type = POLICY_PATHS,
		.scope = SCOPE_JAR,
		MEMBER(hide),
		.tightening = TIGHTEN_ADD,
	},
	{
		.name = "tmpfs",
		.flag = "tmpfs",
		.placeholder = "PATH[:SIZE]",
		.help = "private memory-backed directory; the size defaults to --disk, else --memory, else half of RAM",
		.default_text = "/tmp /var/tmp /dev/shm /run, home",
		.type = POLICY_TMPFS,
		.scope = SCOPE_JAR,
		MEMBER(tmpfs),
		.tightening = TIGHTEN_SHORTEN,
	},
	{
		.name = "system",
		.flag = "system",
		.help = "show the operating system, read-only",
		.default_text = "on",
		.type = POLICY_BOOL,
		.scope = SCOPE_JAR,
		MEMBER(has_system),
		.tightening = TIGHTEN_LOWER,
	},
	{
		.name = "toolchains",
		.flag = "toolchains",
		.help = "show the tools that the caller's PATH points at inside the home directory, and Python environments, read-only",
		.default_text = "on",
		.type = POLICY_BOOL,
		.scope = SCOPE_JAR,
		MEMBER(has_toolchains),
		.tightening = TIGHTEN_LOWER,
	},
	{
		.name = "protect",
		.flag = "protect",
		.help = "keep files read-only that other programs execute later, such as .git/hooks and .bashrc",
		.default_text = "on",
		.type = POLICY_BOOL,
		.scope = SCOPE_JAR,
		MEMBER(has_protect),
		.tightening = TIGHTEN_HIGHER,
	},
	{
		.name = "net",
		.flag = "net",
		.placeholder = "none|host",
		.help = "network: none but a private loopback, or the host's",
		.default_text = "none",
		.type = POLICY_WORD,
		.scope = SCOPE_JAR,
		.words = net_words,
		MEMBER(net),
		.tightening = TIGHTEN_LOWER,
	},
	{
		.name = "hostname",
		.flag = "hostname",
		.placeholder = "NAME",
		.help = "name of the host as the command sees it",
		.default_text = "the caller's",
		.type = POLICY_STRING,
		.scope = SCOPE_JAR,
		.may_be_none = true,
		MEMBER(hostname),
		.tightening = TIGHTEN_NOT,
	},
	{
		.name = "pass_env",
		.flag = "pass-env",
		.placeholder = "NAME",
		.help = "copy a variable from the caller's environment if it is set; a * at the end matches any rest",
		.default_text = "PATH, LANG, TERM and the like",
		.type = POLICY_NAMES,
		.scope = SCOPE_RUN,
		MEMBER(pass_env),
		.tightening = TIGHTEN_SHORTEN,
	},
	{
		.name = "env",
		.flag = "env",
		.placeholder = "NAME=VALUE",
		.help = "set a variable; wins over --pass-env",
		.type = POLICY_ENV,
		.scope = SCOPE_RUN,
		MEMBER(env),
		.tightening = TIGHTEN_SHORTEN,
	},
	{
		.name = "timeout",
		.flag = "timeout",
		.placeholder = "D",
		.help = "end the run after this time by the wall clock: SIGTERM to the tree, after the grace SIGKILL",
		.default_text = "none; 30s in an API that waits for the end",
		.type = POLICY_DURATION,
		.scope = SCOPE_RUN,
		.may_be_none = true,
		MEMBER(timeout_ns),
		.tightening = TIGHTEN_LOWER,
	},
	{
		.name = "grace",
		.flag = "grace",
		.placeholder = "D",
		.help = "time between SIGTERM and SIGKILL, after a timeout or a cancel",
		.default_text = "3s",
		.type = POLICY_DURATION,
		.scope = SCOPE_RUN,
		.may_be_zero = true,
		MEMBER(grace_ns),
		.tightening = TIGHTEN_LOWER,
	},
	{
		.name = "cpu_time",
		.flag = "cpu-time",
		.placeholder = "D",
		.help = "CPU time of the whole tree",
		.default_text = "none",
		.type = POLICY_DURATION,
		.scope = SCOPE_RUN,
		.may_be_none = true,
		MEMBER(cpu_time_ns),
		.tightening = TIGHTEN_LOWER,
	},
	{
		.name = "memory",
		.flag = "memory",
		.placeholder = "SIZE",
		.help = "memory of the whole tree, tmpfs and shared memory included; at least 1M",
		.default_text = "none; 512M in every API",
		.type = POLICY_SIZE,
		.scope = SCOPE_BOTH,
		.may_be_none = true,
		.least = LEAST_MEMORY_BYTES,
		MEMBER(memory_bytes),
		.tightening = TIGHTEN_LOWER,
	},
	{
		.name = "pids",
		.flag = "pids",
		.placeholder = "N",
		.help = "processes and threads in the tree",
		.default_text = "1024",
		.type = POLICY_COUNT,
		.scope = SCOPE_BOTH,
		.may_be_none = true,
		MEMBER(pids),
		.tightening = TIGHTEN_LOWER,
	},
	{
		.name = "disk",
		.flag = "disk",
		.placeholder = "SIZE",
		.help = "bytes the run may store: exact in private places, metered in host directories",
		.default_text = "none",
		.type = POLICY_SIZE,
		.scope = SCOPE_BOTH,
		.may_be_none = true,
		MEMBER(disk_bytes),
		.tightening = TIGHTEN_LOWER,
	},
	{
		.name = "file_size",
		.flag = "file-size",
		.placeholder = "SIZE",
		.help = "size of any one file that a process writes",
		.default_text = "none",
		.type = POLICY_SIZE,
		.scope = SCOPE_RUN,
		.may_be_none = true,
		MEMBER(file_size_bytes),
		.tightening = TIGHTEN_LOWER,
	},
	{
		.name = "fds",
		.flag = "fds",
		.placeholder = "N",
		.help = "open files of each process; at least 4",
		.default_text = "1024",
		.type = POLICY_COUNT,
		.scope = SCOPE_RUN,
		.may_be_none = true,
		.least = LEAST_FDS,
		MEMBER(fds),
		.tightening = TIGHTEN_LOWER,
	},
	{
		.name = "core",
		.flag = "core",
		.placeholder = "SIZE",
		.help = "size of a core dump; 0: none, to a file or to a program",
		.default_text = "0",
		.type = POLICY_SIZE,
		.scope = SCOPE_RUN,
		.may_be_zero = true,
		.may_be_none = true,
		MEMBER(core_bytes),
		.tightening = TIGHTEN_LOWER,
	},
	{
		.name = "output",
		.flag = "output",
		.placeholder = "SIZE|stdout=SIZE,stderr=SIZE",
		.help = "bytes kept of stdout and stderr together, or of each, exact to the byte",
		.default_text = "none when passed through, 100K when captured",
		.type = POLICY_OUTPUT,
		.scope = SCOPE_RUN,
		.may_be_zero = true,
		.may_be_none = true,
		MEMBER(output),
		.tightening = TIGHTEN_LOWER,
	},
	{
		.name = "overflow",
		.flag = "overflow",
		.placeholder = "truncate|kill",
		.help = "beyond --output: drop the rest and go on, or end the run",
		.default_text = "truncate",
		.type = POLICY_WORD,
		.scope = SCOPE_RUN,
		.words = overflow_words,
		MEMBER(overflow),
		.tightening = TIGHTEN_HIGHER,
	},
	{
		.name = "keep",
		.flag = "keep",
		.placeholder = "head|tail|both",
		.help = "which part of captured output to keep; both: the first and the last half",
		.default_text = "head",
		.type = POLICY_WORD,
		.scope = SCOPE_RUN,
		.words = keep_words,
		MEMBER(keep),
		.tightening = TIGHTEN_NOT,
	},
	{
		.name = "redact",
		.flag = "redact",
		.placeholder = "TEXT",
		.help = "replace a literal text of 4 bytes or more in the output before it leaves the engine",
		.type = POLICY_STRINGS,
		.scope = SCOPE_RUN,
		MEMBER(redact),
		.tightening = TIGHTEN_ADD,
	},
	{
		.name = "redact_secrets",
		.flag = "redact-secrets",
		.help = "replace what has the shape of a known kind of secret in the output",
		.default_text = "off",
		.type = POLICY_BOOL,
		.scope = SCOPE_RUN,
		MEMBER(has_redact_secrets),
		.tightening = TIGHTEN_HIGHER,
	},
	{
		.name = "redact_env",
		.flag = "redact-env",
		.help = "replace values of withheld variables that look secret in the output",
		.default_text = "off; on in every API",
		.type = POLICY_BOOL,
		.scope = SCOPE_RUN,
		MEMBER(has_redact_env),
		.tightening = TIGHTEN_HIGHER,
	},
	{
		.name = "rung",
		.flag = "rung",
		.placeholder = "namespace|landlock|process",
		.help = "least isolation accepted; where the host cannot give it, nothing runs",
		.default_text = "landlock",
		.type = POLICY_WORD,
		.scope = SCOPE_JAR,
		.words = rung_words,
		MEMBER(rung),
		.tightening = TIGHTEN_HIGHER,
	},
	{
		.name = "optional",
		.flag = "optional",
		.placeholder = "NAME",
		.help = "a guarantee to go without, and report as missing, where the host cannot give it",
		.type = POLICY_GUARANTEES,
		.scope = SCOPE_JAR,
		MEMBER(optional),
		.tightening = TIGHTEN_SHORTEN,
	},
};

const size_t policy_key_count = ARRAY_LEN(policy_keys);
_Static_assert(ARRAY_LEN(policy_keys) <= 64, "policy.given_keys has a bit for every key");

const struct policy_key *policy_key_by_name(const char *name)
{
	for (size_t i = 0; i < policy_key_count; i++) {
		if (strcmp(policy_keys[i].name, name) == 0)
			return &policy_keys[i];
	}
	return NULL;
}

const struct policy_key *policy_key_by_flag(const char *flag)
{
	for (size_t i = 0; i < policy_key_count; i++) {
		if (policy_keys[i].flag && strcmp(policy_keys[i].flag, flag) == 0)
			return &policy_keys[i];
	}
	return NULL;
}
