/* SPDX-License-Identifier: Apache-2.0 */
/*
 * include/belljar.h - libbelljar: run untrusted commands in a sandbox, from a C or C++ program
 *
 *	struct belljar_error *error = NULL;
 *	struct belljar_engine *engine = NULL;
 *	struct belljar_result *result = NULL;
 *	const char *const argv[] = {"sh", "-c", "echo hello", NULL};
 *	struct belljar_command command = {.size = sizeof(command), .argv = argv};
 *
 *	if (belljar_engine_open(NULL, &engine, &error) < 0 || belljar_run(engine, &command, &result, &error) < 0)
 *		fprintf(stderr, "%s\n", belljar_error_message(error));
 *	else
 *		fputs(belljar_result_stdout(result, NULL), stdout);
 *	belljar_result_free(result);
 *	belljar_engine_close(engine);
 *	belljar_error_free(error);
 *
 * `belljar engine`, a small process that belljar_engine_open() starts, does the work; this library only talks to it.
 * So the cost of a call does not depend on the client's memory and threads. The library never forks, and has no
 * thread, no signal handler and no global of its own. If the client dies, every jar dies with it.
 *
 * Errors. Functions that can fail return 0 or more on success and a negative errno on failure. The error record has
 * the cause in words, and advice. Declare one `struct belljar_error *error = NULL`, pass its address to any number of
 * calls (a failure replaces the record, a success keeps it), and free it once. Any `error` argument may be NULL. The
 * library writes an output pointer on success only.
 *
 * Input structs begin with their size and only grow at the end. Set `size` to sizeof the struct, and unused members to
 * 0 (in C++ before 20: `struct belljar_command command = {}; command.size = sizeof(command);`). If a struct is longer
 * than this library knows and its unknown part is not all zero, the call fails with -E2BIG. The library copies or
 * sends strings and arrays during the call; they stay the caller's.
 *
 * Threads. An engine or a jar may be used by any number of threads at once. A handle belongs to one thread at a time,
 * but belljar_cancel(), belljar_signal() and belljar_resize() may be called from any other. Results and errors are
 * plain data.
 *
 * fork. A child of fork() cannot use the engines, jars and handles that it inherits: every call with one fails with
 * -ECHILD. Closing and freeing work: they release the child's copies and leave the parent's alone. The child may open
 * an engine of its own. All descriptors are close-on-exec and above 2.
 *
 * Children. The engine is a child process of the client. It sends SIGCHLD when it ends, and belljar_engine_close()
 * collects it. A client may ignore SIGCHLD or collect any child with waitpid(-1): the library only waits for the
 * engine's end. A client that waits until it has no children at all must close its engines first.
 *
 * Manual pages: libbelljar(3), belljar-policy(5).
 */
#ifndef BELLJAR_H
#define BELLJAR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define BELLJAR_API __attribute__((visibility("default")))
#define BELLJAR_CHECKED __attribute__((visibility("default"), warn_unused_result))
#else
#define BELLJAR_API
#define BELLJAR_CHECKED
#endif

struct belljar_engine;    /* the engine's process */
struct belljar_handle;    /* one run under way */
struct belljar_jar;       /* a kept jar: many runs, one set of private files */
struct belljar_result;    /* how a run ended */
struct belljar_error;     /* why a call failed */
struct belljar_workspace; /* changes in a layer over a directory, to review, apply or discard */

/* The version of the library, "0.1.0". Static storage. */
BELLJAR_API const char *belljar_version(void);

/* --- errors --- */

/*
 * The stage that failed: "usage" (this call), "policy", "host" (it cannot enforce the policy), "plan", "files",
 * "limits", "isolate", "exec" (the command could not be started), "engine". Never NULL.
 */
BELLJAR_API const char *belljar_error_stage(const struct belljar_error *error);
/* Positive; 0 where no system call failed. */
BELLJAR_API int belljar_error_errno(const struct belljar_error *error);
/* The operation that failed, and its object; one line, never NULL. */
BELLJAR_API const char *belljar_error_message(const struct belljar_error *error);
/* Advice, or NULL. */
BELLJAR_API const char *belljar_error_hint(const struct belljar_error *error);
/* Features that the host lacks, as JSON text: [{"name","why","hint"}]; "[]" if that is not the cause. Never NULL. */
BELLJAR_API const char *belljar_error_missing(const struct belljar_error *error);
BELLJAR_API void belljar_error_free(struct belljar_error *error);

/* --- the engine --- */

struct belljar_engine_options {
	uint32_t size;
	uint32_t flags; /* none yet: 0 */
	/*
	 * The program to start. NULL: $BELLJAR_BIN, unless the client runs with more rights than its caller; else the
	 * `belljar` that was installed with this library; else the one in $PATH.
	 */
	const char *program;
};

/*
 * Start an engine; @options may be NULL. One engine is enough for a process; two engines share nothing. An engine gets
 * none of the client's descriptors, environment, signal dispositions or terminal.
 */
BELLJAR_CHECKED int belljar_engine_open(const struct belljar_engine_options *options, struct belljar_engine **out,
					struct belljar_error **error);
/*
 * Close an engine: kill every run and jar, and return when the engine and all processes of its jars are gone. Handles
 * and jars stay valid, their calls fail with -ECONNRESET, and the caller must still free them. NULL is allowed.
 */
BELLJAR_API void belljar_engine_close(struct belljar_engine *engine);

/* Report what this host can enforce, as `belljar doctor --json` prints it. Free *@json_out with free(). */
BELLJAR_CHECKED int belljar_capabilities(struct belljar_engine *engine, char **json_out, struct belljar_error **error);
/* Report the engine's protocol, as JSON text {"version","belljar","features"}. Free it with free(). */
BELLJAR_CHECKED int belljar_protocol(struct belljar_engine *engine, char **json_out, struct belljar_error **error);

/* --- one run --- */

#define BELLJAR_STDOUT 1
#define BELLJAR_STDERR 2

/*
 * Take a piece of output: redacted, 64 KiB at most, never splitting a UTF-8 character. @stream is BELLJAR_STDOUT or
 * BELLJAR_STDERR. Called by belljar_process(), belljar_wait() and belljar_run() in their thread. While it works, the
 * command can write no more than the pipes hold, and no other run is slowed. Any value but 0 ends the run: it is
 * killed, the callback is not called again, and the outcome is BELLJAR_CANCELLED. May call belljar_cancel(),
 * belljar_signal() and belljar_resize() on the handle, nothing else.
 */
typedef int (*belljar_output_fn)(void *data, int stream, const void *bytes, size_t len);

/*
 * Take an event of the run: @json is an object, as text, and its member `event` is the kind. "limit": the run reached
 * a limit for the first time; `limit` is its name, as in `limits_hit` of the result. "denied": Belljar refused
 * something for the first time; `denied` has it, as in `denied` of the result. Ignore events that you do not know.
 * Called where belljar_output_fn is, with the same meaning of the return value.
 */
typedef int (*belljar_event_fn)(void *data, const char *json);

#define BELLJAR_ASK_DENY 0 /* and do not ask again in this run */
#define BELLJAR_ASK_ONCE 1 /* the connections that wait now */
#define BELLJAR_ASK_RUN 2  /* as long as this run lasts */

/*
 * The command wants to reach a host that no rule of `allow_net` decides about, and its connection waits: @json is an
 * object, as text, {"id","kind":"net","host","port","address","rule","timeout_ms"}. `address` is null for a name,
 * which can only lead to public addresses; else "public", "private", or "host" for one of this host's own. `rule` is
 * the entry of `allow_net` that would allow it. Returns BELLJAR_ASK_DENY, _ONCE or _RUN; any other value is a denial.
 * After `timeout_ms` the gate refuses the connection, and a later answer changes nothing. Called where
 * belljar_output_fn is, and may call the same functions.
 */
typedef int (*belljar_ask_fn)(void *data, const char *json);

/* Flags of a command. */
#define BELLJAR_SHELL 0x1u       /* argv is one string for /bin/sh -c */
#define BELLJAR_MERGE 0x2u       /* stderr goes where stdout goes, in the order in which it was written */
#define BELLJAR_PTY 0x4u         /* a terminal of its own, of `rows` and `columns`; all output is stdout's */
#define BELLJAR_NO_CAPTURE 0x8u  /* keep no output for the result */
#define BELLJAR_STDIN_FD 0x10u   /* stdin is `stdin_fd`, not `input` */
#define BELLJAR_OUTPUT_FDS 0x20u /* output is written to `stdout_fd` and `stderr_fd` as it comes */
/*
 * In a kept jar, without BELLJAR_PTY and BELLJAR_OUTPUT_FDS: the result comes when the command itself has ended.
 * Processes that it started go on in the jar, under the run's limits except `timeout`. Belljar drops what they write
 * from then on.
 */
#define BELLJAR_DETACH 0x40u
/*
 * In a kept jar: the command gets its work piece by piece, and your program counts the time and the output of each
 * piece. The limits `timeout` and `output` do not hold for all pieces together. Held to all other limits.
 */
#define BELLJAR_CELLS 0x80u
/*
 * In a jar of its own: `options` may lower the limits of `policy` and never raise them, as in a kept jar. For options
 * that your program did not choose itself.
 */
#define BELLJAR_CEILINGS 0x100u

struct belljar_command {
	uint32_t size;
	uint32_t flags;
	const char *const *argv; /* NULL-terminated, at least one. A name without '/' is looked up in the jar's PATH */
	/*
	 * What is allowed. A preset: "agent" (also if NULL), "readonly", "strict". A file: a name with '/' in it or
	 * ".json" at its end. Or the policy itself, JSON text that begins with '{'. See belljar-policy(5). NULL for a
	 * run in a kept jar, whose policy was fixed when it was opened.
	 */
	const char *policy;
	/*
	 * Keys on top of it, NULL-terminated or NULL: the options of `belljar run` without the dashes, "timeout=5s",
	 * "memory=1G", "net=host", "ro=/data", "env=CI=1", "system=false". Lists are appended to, "none" is no limit.
	 * Where neither policy nor options say: timeout=30s, memory=512M, output=100K (with BELLJAR_NO_CAPTURE none),
	 * redact_env=true.
	 */
	const char *const *options;
	/* The policy passes variables on from this environment. NULL: the client's own, as getenv() sees it. */
	const char *const *environment;
	/* Where relative paths start, and the default workdir. NULL: the client's current directory. */
	const char *directory;
	const void *input; /* what the command reads from its stdin; NULL: nothing, it is /dev/null */
	size_t input_len;
	belljar_output_fn on_output; /* NULL: output is only kept for the result */
	void *data;                  /* for on_output, on_event and on_ask */
	/* Further descriptors for the command, its 3, 4, … */
	const int32_t *fds;
	uint32_t fd_count; /* 64 at most */
	int32_t stdin_fd;  /* with BELLJAR_STDIN_FD */
	int32_t stdout_fd; /* with BELLJAR_OUTPUT_FDS; both. They stay the caller's. If the reader of a pipe closes it, the */
	int32_t stderr_fd; /* run ends as BELLJAR_CANCELLED */
	uint16_t rows;     /* with BELLJAR_PTY; 0: 24 and 80 */
	uint16_t columns;
	uint32_t reserved;         /* 0 */
	belljar_event_fn on_event; /* NULL: only the result has the events */
	/* NULL: refuse hosts that no rule decides about. Else it implies "ask=net"; open a kept jar with that. */
	belljar_ask_fn on_ask;
};

/*
 * Run a command in a fresh jar and wait for its end. 0: it ran, and *@out says how it ended; free it with
 * belljar_result_free(). Negative: the command did not start, or the engine ended (stage "engine").
 */
BELLJAR_CHECKED int belljar_run(struct belljar_engine *engine, const struct belljar_command *command,
				struct belljar_result **out, struct belljar_error **error);

/* Ask for a run and do not wait. belljar_process() reports later failures, also a bad policy. */
BELLJAR_CHECKED int belljar_start(struct belljar_engine *engine, const struct belljar_command *command,
				  struct belljar_handle **out, struct belljar_error **error);

/*
 * Return the descriptor to wait for with poll(), POLLIN, level-triggered. When it is readable, call belljar_process();
 * do nothing else with it. It stays the same for the handle's life. -EINVAL for NULL.
 */
BELLJAR_API int belljar_fd(const struct belljar_handle *handle);
/*
 * Read what has come, without blocking, and call the callbacks. One call reads at most 1 MiB, so that a loop over many
 * handles is fair. 0: the run goes on; 1: it is over, take the result; negative as belljar_run(). After the end it
 * returns the same again.
 */
BELLJAR_CHECKED int belljar_process(struct belljar_handle *handle, struct belljar_error **error);
/*
 * The same until the end, or until @timeout_ms are over (negative: no such limit; the run itself has its own). Returns
 * as belljar_process(); 0: the time is over, and the run goes on. Signals do not end the waiting.
 */
BELLJAR_CHECKED int belljar_wait(struct belljar_handle *handle, int timeout_ms, struct belljar_error **error);

/*
 * The isolation in force, as JSON text: the keys of the event `start` of `belljar run --events`. NULL until the
 * command was started. The handle owns it.
 */
BELLJAR_API const char *belljar_started(const struct belljar_handle *handle);
/* The result of a run that is over. The first call hands it over; NULL before the end and after that. */
BELLJAR_API struct belljar_result *belljar_take_result(struct belljar_handle *handle);

/*
 * End the run: send @signal, 0 for SIGTERM, to all its processes; after the policy's grace, or at the second call,
 * SIGKILL. The result still comes, as BELLJAR_CANCELLED. 0 also if the run is over already. From any thread.
 */
BELLJAR_API int belljar_cancel(struct belljar_handle *handle, int signal);
/* Send a signal to every process of the run. -ESRCH: it is over. From any thread. */
BELLJAR_API int belljar_signal(struct belljar_handle *handle, int signal);
/* Resize the terminal of a run with BELLJAR_PTY. -ESRCH: the run is over. From any thread. */
BELLJAR_API int belljar_resize(struct belljar_handle *handle, uint16_t rows, uint16_t columns);
/* Free the handle. The engine kills a run that goes on at once; this call does not wait for that. NULL is allowed. */
BELLJAR_API void belljar_free(struct belljar_handle *handle);

/* --- results --- */

enum belljar_outcome {
	BELLJAR_UNKNOWN = 0, /* one that this library does not know: see the JSON text */
	BELLJAR_EXITED = 1,
	BELLJAR_SIGNALED = 2,
	BELLJAR_TIMEOUT = 3, /* these: ended by a limit */
	BELLJAR_CPU = 4,
	BELLJAR_MEMORY = 5,
	BELLJAR_DISK = 6,
	BELLJAR_OUTPUT = 7,
	BELLJAR_CANCELLED = 8 /* by belljar_cancel(), by the callback, or because a reader closed the output */
};

enum belljar_usage {
	BELLJAR_WALL_US = 1, /* microseconds */
	BELLJAR_USER_US = 2,
	BELLJAR_SYSTEM_US = 3,
	BELLJAR_PEAK_MEMORY_BYTES = 4,
	BELLJAR_PEAK_PROCESSES = 5
};

/* Why the run ended. A command can imitate any exit status, but not this. */
BELLJAR_API enum belljar_outcome belljar_result_outcome(const struct belljar_result *result);
/* "exited", "timeout", ... as the result object has it. */
BELLJAR_API const char *belljar_result_outcome_name(const struct belljar_result *result);
/* The command's own; -1 for every outcome but BELLJAR_EXITED. */
BELLJAR_API int belljar_result_exit_code(const struct belljar_result *result);
/* The number of the signal that ended the main process, from any sender; 0: none. */
BELLJAR_API int belljar_result_signal(const struct belljar_result *result);
/*
 * The bytes that were kept, exact, with a NUL behind them that is not counted. Never NULL. @len_out may be NULL.
 * belljar_result_is_truncated(): did the command write more than was kept?
 */
BELLJAR_API const char *belljar_result_stdout(const struct belljar_result *result, size_t *len_out);
BELLJAR_API const char *belljar_result_stderr(const struct belljar_result *result, size_t *len_out);
BELLJAR_API int belljar_result_is_truncated(const struct belljar_result *result);
/* The limits that were reached, also where the command survived: "memory", "pids", ... NULL past the last one. */
BELLJAR_API const char *belljar_result_limit(const struct belljar_result *result, size_t index);
/*
 * Denials, the most useful first. A member of the entry @index. NULL past the last one, and for a member that the
 * entry does not have: every entry has kind, what, access, why and certainty. The cure is an option of the command
 * line.
 */
enum belljar_denied {
	BELLJAR_DENIED_KIND, /* "file", "exec", "net", "name", "syscall", "http", "limit" */
	BELLJAR_DENIED_WHAT,
	BELLJAR_DENIED_ACCESS,
	BELLJAR_DENIED_PROCESS,
	BELLJAR_DENIED_WHY,
	BELLJAR_DENIED_CURE,
	BELLJAR_DENIED_WARNING,
	BELLJAR_DENIED_CERTAINTY, /* "seen", "inferred" */
	BELLJAR_DENIED_SENTENCE   /* for the person or model that decides what to do next */
};
BELLJAR_API const char *belljar_result_denied(const struct belljar_result *result, size_t index,
					      enum belljar_denied member);
/* How often; 0 past the last one. */
BELLJAR_API uint64_t belljar_result_denied_count(const struct belljar_result *result, size_t index);
/* What the whole tree used; UINT64_MAX: unknown. */
BELLJAR_API uint64_t belljar_result_usage(const struct belljar_result *result, enum belljar_usage what);
/* The isolation that held: "namespace", "landlock" or "process". */
BELLJAR_API const char *belljar_result_rung(const struct belljar_result *result);
/* Everything, as JSON text: the result object of belljar-run(1), with null for stdout and stderr. */
BELLJAR_API const char *belljar_result_json(const struct belljar_result *result);
BELLJAR_API void belljar_result_free(struct belljar_result *result);

/* --- kept jars --- */

struct belljar_jar_options {
	uint32_t size;
	uint32_t flags;                 /* none yet: 0 */
	const char *policy;             /* these as in struct belljar_command. Limits and other keys that may differ */
	const char *const *options;     /* from run to run are what each run has where it does not say; no run gets */
	const char *const *environment; /* more than its jar */
	const char *directory;
	const char *ttl; /* after this time, "10m", the engine closes the jar, also in use; NULL: never */
};

/* Make a jar and keep it. Returns when it is ready. */
BELLJAR_CHECKED int belljar_jar_open(struct belljar_engine *engine, const struct belljar_jar_options *options,
				     struct belljar_jar **out, struct belljar_error **error);
/*
 * Ask for a jar and do not wait. You get *@out at once, and can use it when it is ready: wait for belljar_jar_fd(),
 * then call belljar_jar_process(). Close it in any case.
 */
BELLJAR_CHECKED int belljar_jar_begin(struct belljar_engine *engine, const struct belljar_jar_options *options,
				      struct belljar_jar **out, struct belljar_error **error);
/*
 * Return the descriptor to wait for with poll(), POLLIN. It is readable when the jar is ready or could not be made,
 * and later, when the jar has ended by itself. Then call belljar_jar_process(). Do nothing else with it. -EINVAL for
 * NULL.
 */
BELLJAR_API int belljar_jar_fd(const struct belljar_jar *jar);
/* Read what has come, without blocking. 0: the jar is being made; 1: it is ready; negative: it failed, or has ended. */
BELLJAR_CHECKED int belljar_jar_process(struct belljar_jar *jar, struct belljar_error **error);
/*
 * The isolation in force, as JSON text {"rung","enforced","missing","limits","workdir","workspace","searched"}. The
 * jar owns it; it is valid until the jar's workspace is changed.
 */
BELLJAR_API const char *belljar_jar_info(const struct belljar_jar *jar);
/* As belljar_run() and belljar_start(); several at once if you like. Only keys that may differ from run to run. */
BELLJAR_CHECKED int belljar_jar_run(struct belljar_jar *jar, const struct belljar_command *command,
				    struct belljar_result **out, struct belljar_error **error);
BELLJAR_CHECKED int belljar_jar_start(struct belljar_jar *jar, const struct belljar_command *command,
				      struct belljar_handle **out, struct belljar_error **error);

#define BELLJAR_FILE_READ 1  /* a regular file */
#define BELLJAR_FILE_WRITE 2 /* a regular file, made with @mode or emptied; a link as the last component is refused */
#define BELLJAR_FILE_LIST 3  /* a directory, for fdopendir(); a link as the last component is refused */
#define BELLJAR_FILE_WATCH 4 /* an inotify descriptor, non-blocking, for this directory or regular file; likewise */

/* Flags for files. */
#define BELLJAR_PARENTS 0x100u   /* make the directories above it; a directory to make may exist */
#define BELLJAR_RECURSIVE 0x200u /* with all that is in it */
#define BELLJAR_FOLLOW 0x400u    /* if it is a link, its target */

/*
 * Open a file of the jar; returns a descriptor, close-on-exec, the caller's. @path is a path in the jar; a relative
 * one starts at the jar's workdir. A process inside opens it, so no link leads out. A FIFO or device is refused.
 * @access may have BELLJAR_PARENTS with BELLJAR_FILE_WRITE.
 */
BELLJAR_CHECKED int belljar_jar_open_file(struct belljar_jar *jar, const char *path, int access, uint32_t mode,
					  struct belljar_error **error);
/* Read a whole file; free it with free(); a NUL follows it. -EFBIG: it has more than @max_len bytes. */
BELLJAR_CHECKED int belljar_jar_read_file(struct belljar_jar *jar, const char *path, size_t max_len, void **bytes_out,
					  size_t *len_out, struct belljar_error **error);
BELLJAR_CHECKED int belljar_jar_write_file(struct belljar_jar *jar, const char *path, const void *bytes, size_t len,
					   uint32_t mode, struct belljar_error **error);

/* A process inside does these too. Only belljar_jar_stat() with BELLJAR_FOLLOW follows a link as the last component. */
BELLJAR_CHECKED int belljar_jar_mkdir(struct belljar_jar *jar, const char *path, uint32_t mode, uint32_t flags,
				      struct belljar_error **error);
/* Remove a file, a link or an empty directory; with BELLJAR_RECURSIVE a directory and all in it. */
BELLJAR_CHECKED int belljar_jar_remove(struct belljar_jar *jar, const char *path, uint32_t flags,
				       struct belljar_error **error);
BELLJAR_CHECKED int belljar_jar_rename(struct belljar_jar *jar, const char *path, const char *to,
				       struct belljar_error **error);

enum belljar_file_type {
	BELLJAR_TYPE_FILE = 1,
	BELLJAR_TYPE_DIRECTORY = 2,
	BELLJAR_TYPE_LINK = 3,
	BELLJAR_TYPE_OTHER = 4
};

/* Returns an enum belljar_file_type. Each of the last three may be NULL; @modified_out is in nanoseconds. */
BELLJAR_CHECKED int belljar_jar_stat(struct belljar_jar *jar, const char *path, uint32_t flags, uint64_t *size_out,
				     uint32_t *mode_out, int64_t *modified_out, struct belljar_error **error);

/*
 * Connect to a TCP port that a process in the jar listens on (127.0.0.1, else ::1); returns a stream socket, the
 * caller's. -EOPNOTSUPP: the jar has no loopback of its own, nor the host's.
 */
BELLJAR_CHECKED int belljar_jar_connect(struct belljar_jar *jar, uint16_t port, struct belljar_error **error);
/* List the jar's processes as JSON text, {"processes":[{"pid","ppid","run","state",...}]}. Free it with free(). */
BELLJAR_CHECKED int belljar_jar_processes(struct belljar_jar *jar, char **json_out, struct belljar_error **error);
/* Send a signal to a process, by its pid inside; 0 only checks that it exists. -ESRCH: it does not. */
BELLJAR_CHECKED int belljar_jar_kill(struct belljar_jar *jar, int pid, int signal, struct belljar_error **error);
/* Report what the jar with all its runs uses, as JSON text {"age_ms","memory_bytes",...}; null: not measured. */
BELLJAR_CHECKED int belljar_jar_usage(struct belljar_jar *jar, char **json_out, struct belljar_error **error);
/*
 * List changed files that other programs execute or read as configuration, as JSON text; free it with free(). `risky`
 * has all so far. `new` has those that no result and no earlier call reported: of running runs and of processes that
 * outlived theirs.
 */
BELLJAR_CHECKED int belljar_jar_look(struct belljar_jar *jar, char **json_out, struct belljar_error **error);
/*
 * End the jar and all that runs in it, and wait. *@json_out has `risky`, as above, and `error` if the jar had ended by
 * itself before; free it with free(). Then call belljar_jar_close(), and nothing else.
 */
BELLJAR_CHECKED int belljar_jar_finish(struct belljar_jar *jar, char **json_out, struct belljar_error **error);

/*
 * Change the rules of a jar that has a gate ("net=gate" or "allow_net=..."). Allowing holds from the next connection
 * on; denying also resets open connections. @rule is HOST[:PORTS] or the JSON text of an object, as in allow_net;
 * without ports belljar_jar_deny_net() denies all. The latest rule about a host and port wins; what the policy denies
 * stays denied. -EINVAL: the jar has no gate, or @rule is invalid. -EOPNOTSUPP: this host cannot add these addresses
 * later.
 */
BELLJAR_CHECKED int belljar_jar_allow_net(struct belljar_jar *jar, const char *rule, struct belljar_error **error);
BELLJAR_CHECKED int belljar_jar_deny_net(struct belljar_jar *jar, const char *rule, struct belljar_error **error);

/* Kill all processes in the jar, remove it, and return when it is gone. NULL is allowed. */
BELLJAR_API void belljar_jar_close(struct belljar_jar *jar);

/* --- workspaces --- */

/*
 * A run or a jar with "workspace=cow" writes to a layer over its work directory, and the host's files stay as they
 * are. These functions review the layer, apply it or discard it. Paths are below that directory; lists of them are
 * NULL-terminated, and NULL means all. Free returned texts with free(); pass NULL for a text that you do not need.
 *
 * belljar_workspace_show(), _diff() and _patch() read the layer of a jar while the jar runs. The others restart the
 * jar: they end its processes and drop its private files, and the same struct belljar_jar stays usable.
 */

/* The workspace of a jar, to be freed before the jar is closed. -EINVAL: it has none. */
BELLJAR_CHECKED int belljar_jar_workspace(struct belljar_jar *jar, struct belljar_workspace **out,
					  struct belljar_error **error);
/* Open a workspace that runs have left: by its id, or by its name for the current directory. -ENOENT: not found. */
BELLJAR_CHECKED int belljar_workspace_open(struct belljar_engine *engine, const char *id,
					   struct belljar_workspace **out, struct belljar_error **error);
/* Free the object; the changes stay. NULL is allowed. */
BELLJAR_API void belljar_workspace_free(struct belljar_workspace *workspace);

/* Describe it and count its changes, as JSON text {"id","name","workdir","kind","checkpoints",...}. */
BELLJAR_CHECKED int belljar_workspace_show(struct belljar_workspace *workspace, char **json_out,
					   struct belljar_error **error);
/* List differences from the host's files as they are now, as `belljar diff --json` prints them. */
BELLJAR_CHECKED int belljar_workspace_diff(struct belljar_workspace *workspace, const char *const *paths,
					   char **json_out, struct belljar_error **error);
/* The same as a patch that `git apply` takes; it may have NULs in it, and has one behind it. */
BELLJAR_CHECKED int belljar_workspace_patch(struct belljar_workspace *workspace, const char *const *paths,
					    char **patch_out, size_t *len_out, struct belljar_error **error);

struct belljar_apply_options {
	uint32_t size;
	uint32_t flags;                 /* none yet: 0 */
	const char *const *paths;       /* NULL: everything */
	const char *const *allow_risky; /* apply these though they would be refused */
	const char *const *theirs;      /* in a conflict, the workspace's side of these */
	const char *const *ours;        /* ... the host's */
};

/*
 * Apply changes to the host's directory; @options may be NULL. 0: all chosen changes; 1: not all, and "not_applied" in
 * the JSON text lists the others, and why: a conflict, or refused. A workspace without changes left is removed, unless
 * it has a name.
 */
BELLJAR_CHECKED int belljar_workspace_apply(struct belljar_workspace *workspace,
					    const struct belljar_apply_options *options, char **json_out,
					    struct belljar_error **error);
/* Drop the workspace, or the changes of these paths. 1: some cannot be dropped alone; "not_dropped" has them. */
BELLJAR_CHECKED int belljar_workspace_discard(struct belljar_workspace *workspace, const char *const *paths,
					      char **json_out, struct belljar_error **error);
/* Freeze the changes so far. *@id_out is for belljar_workspace_rollback(): "origin" without changes. @note may be NULL. */
BELLJAR_CHECKED int belljar_workspace_checkpoint(struct belljar_workspace *workspace, const char *note, char **id_out,
						 struct belljar_error **error);
/* Drop changes made since @checkpoint; NULL: since the last one. */
BELLJAR_CHECKED int belljar_workspace_rollback(struct belljar_workspace *workspace, const char *checkpoint,
					       struct belljar_error **error);
/*
 * Make @count workspaces, 256 at most, that start with these changes: {"forks":["ID",...]}. A jar with
 * "workspace_name=ID" opens one. null in place of an id: there are no changes yet, so use a new workspace.
 */
BELLJAR_CHECKED int belljar_workspace_fork(struct belljar_workspace *workspace, uint32_t count, char **json_out,
					   struct belljar_error **error);

#ifdef __cplusplus
}
#endif

#endif
