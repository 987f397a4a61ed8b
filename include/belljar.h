/* SPDX-License-Identifier: Apache-2.0 */
/*
 * include/belljar.h - libbelljar: run commands that nobody has reviewed, from a C or C++ program
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
 * The work is done by `belljar engine`, a small process that belljar_engine_open() starts; this library only talks to
 * it. So a call costs the same however much memory and however many threads the host has, nothing in here forks, and
 * if the host dies, every jar dies with it. The library has no thread, no signal handler and no global of its own.
 *
 * Errors. Functions that can fail return 0 or more on success and a negative errno on failure. The cause, in words and
 * with advice, is the error record: declare one `struct belljar_error *error = NULL`, pass its address to any number of
 * calls (each failure replaces the last one's record; success leaves it alone), free it once. Any `error` argument may
 * be NULL. An output pointer is written on success only.
 *
 * Input structs begin with their size, and only grow at the end: set `size` to sizeof the struct and everything you do
 * not use to zero (in C++ before 20: `struct belljar_command command = {}; command.size = sizeof(command);`). A struct that is longer than this library knows
 * is accepted if what it does not know is zero; else the call fails with -E2BIG, rather than leave out what was asked for.
 * Strings and arrays given in are copied or sent during the call and stay the caller's.
 *
 * Threads. An engine or a jar may be used by any number of threads at once. A handle belongs to one thread at a time,
 * but belljar_cancel(), belljar_signal() and belljar_resize() may be called from any other. Results and errors are
 * plain data.
 *
 * fork. What a child of fork() inherits of engines, jars and handles is not its own: every call with one fails with
 * -ECHILD, except that closing and freeing release the child's copies and do nothing to the parent's. The child may open
 * an engine of its own. All descriptors are close-on-exec and above 2.
 *
 * Children. The engine is a child process of the host. It sends SIGCHLD when it ends, and belljar_engine_close() collects
 * it. A host that ignores SIGCHLD, or collects any child with waitpid(-1), takes nothing away: the library waits for no
 * more than the engine's end. Only a host that waits until it has no children at all has to close its engines first.
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
struct belljar_workspace; /* what was changed under a layer, to be looked at and decided about */

/* The version of the library, "0.1.0". Static storage. */
BELLJAR_API const char *belljar_version(void);

/* --- errors --- */

/*
 * Where it went wrong: "usage" (this call), "policy", "host" (it cannot enforce what was asked for), "plan", "files",
 * "limits", "isolate", "exec" (the command could not be started), "engine". Never NULL.
 */
BELLJAR_API const char *belljar_error_stage(const struct belljar_error *error);
/* Positive; 0 where no system call failed. */
BELLJAR_API int belljar_error_errno(const struct belljar_error *error);
/* What was tried, on which object; one line, never NULL. */
BELLJAR_API const char *belljar_error_message(const struct belljar_error *error);
/* What can be done about it, or NULL. */
BELLJAR_API const char *belljar_error_hint(const struct belljar_error *error);
/* What the host lacks, as JSON text: [{"name","why","hint"}]; "[]" where that is not the cause. Never NULL. */
BELLJAR_API const char *belljar_error_missing(const struct belljar_error *error);
BELLJAR_API void belljar_error_free(struct belljar_error *error);

/* --- the engine --- */

struct belljar_engine_options {
	uint32_t size;
	uint32_t flags; /* none yet: 0 */
	/*
	 * The program to start. NULL: $BELLJAR_BIN, unless the host runs with more rights than its caller; else the
	 * `belljar` that was installed with this library; else the one in $PATH.
	 */
	const char *program;
};

/*
 * Start an engine; @options may be NULL. One serves the whole process; two are two worlds that know nothing of each
 * other. It gets none of the client's descriptors, environment, signal dispositions or terminal.
 */
BELLJAR_CHECKED int belljar_engine_open(const struct belljar_engine_options *options, struct belljar_engine **out,
					struct belljar_error **error);
/*
 * End it: every run and jar is killed, and the call returns when the engine, and so everything in them, is gone. What is
 * left of handles and jars stays valid, answers -ECONNRESET, and has still to be freed. NULL is allowed.
 */
BELLJAR_API void belljar_engine_close(struct belljar_engine *engine);

/* What this host can enforce: what `belljar doctor --json` prints. *@json_out is to be freed with free(). */
BELLJAR_CHECKED int belljar_capabilities(struct belljar_engine *engine, char **json_out, struct belljar_error **error);
/* Which protocol the engine speaks, as JSON text {"version","belljar","features"}, to be freed with free(). */
BELLJAR_CHECKED int belljar_protocol(struct belljar_engine *engine, char **json_out, struct belljar_error **error);

/* --- one run --- */

#define BELLJAR_STDOUT 1
#define BELLJAR_STDERR 2

/*
 * A piece of output, as it comes: redacted, 64 KiB at most, never splitting a UTF-8 character. @stream is BELLJAR_STDOUT
 * or BELLJAR_STDERR. Called by belljar_process(), belljar_wait() and belljar_run() in their thread. While it works, the
 * command can write no more than the pipes hold, and no other run is slowed. Any value but 0 ends the run: it is killed,
 * the callback is not called again, and the outcome is BELLJAR_CANCELLED. May call belljar_cancel(), belljar_signal()
 * and belljar_resize() on the handle, nothing else.
 */
typedef int (*belljar_output_fn)(void *data, int stream, const void *bytes, size_t len);

/*
 * Something has happened to the run: @json is an object, as text, whose member `event` says what. "limit": a limit was reached
 * for the first time, and `limit` says which, as in `limits_hit` of the result. "denied": something was refused for the first
 * time, and `denied` says what, as in `denied` of the result. Ignore events that you do not know. Called where
 * belljar_output_fn is, and returns what that returns.
 */
typedef int (*belljar_event_fn)(void *data, const char *json);

#define BELLJAR_ASK_DENY 0 /* and do not ask again in this run */
#define BELLJAR_ASK_ONCE 1 /* the connections that wait now */
#define BELLJAR_ASK_RUN 2  /* as long as this run lasts */

/*
 * The command wants to reach a host that no rule of `allow_net` decides about, and its connection waits: @json is an object, as text,
 * {"id","kind":"net","host","port","address","rule","timeout_ms"}. `address` is null for a name, which can only lead to public
 * addresses; else "public", "private", or "host" for one of this host's own. `rule` is the entry of `allow_net` that would allow it.
 * Returns BELLJAR_ASK_DENY, _ONCE or _RUN; any other value is a denial. After `timeout_ms` the connection is refused, whatever comes
 * then. Called where belljar_output_fn is, and may call what that may.
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
 * In a kept jar, without BELLJAR_PTY and BELLJAR_OUTPUT_FDS: the result comes when the command itself has ended, and what it has
 * started goes on in the jar, held to the run's limits but for its time. What it writes from then on is dropped.
 */
#define BELLJAR_DETACH 0x40u
/*
 * In a kept jar: the command gets its work piece by piece, and your program counts the time and the output of each piece. The
 * limits `timeout` and `output` do not hold for all pieces together. Held to all other limits.
 */
#define BELLJAR_CELLS 0x80u
/*
 * In a jar of its own: `options` may lower the limits of `policy` and never raise them, as in a kept jar. For options that
 * your program did not choose itself.
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
	/* The environment from which the policy takes what it passes on. NULL: the client's own, as getenv() sees it. */
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
	int32_t stdout_fd; /* with BELLJAR_OUTPUT_FDS; both. They stay the caller's. If nobody reads a pipe any more, the */
	int32_t stderr_fd; /* run ends as BELLJAR_CANCELLED */
	uint16_t rows;     /* with BELLJAR_PTY; 0: 24 and 80 */
	uint16_t columns;
	uint32_t reserved;         /* 0 */
	belljar_event_fn on_event; /* NULL: the result tells it all at the end */
	/* NULL: what no rule decides is refused. Else it implies "ask=net"; a kept jar must have been opened with that. */
	belljar_ask_fn on_ask;
};

/*
 * Run a command in a fresh jar and wait for its end. 0: it ran, and *@out, to be freed with belljar_result_free(), says
 * how it ended, whatever ended it. Negative: it was not started, or the engine was lost (stage "engine").
 */
BELLJAR_CHECKED int belljar_run(struct belljar_engine *engine, const struct belljar_command *command,
				struct belljar_result **out, struct belljar_error **error);

/* Ask for a run and do not wait. What goes wrong later, also a bad policy, is told by belljar_process(). */
BELLJAR_CHECKED int belljar_start(struct belljar_engine *engine, const struct belljar_command *command,
				  struct belljar_handle **out, struct belljar_error **error);

/*
 * The descriptor to wait for with poll(), POLLIN, level-triggered: when it is readable, call belljar_process(). Do
 * nothing else with it. The same for the handle's life; -EINVAL for NULL.
 */
BELLJAR_API int belljar_fd(const struct belljar_handle *handle);
/*
 * Take what is there, without blocking, and hand output to the callback. At most 1 MiB in one call, so that a loop over
 * many handles is fair. 0: the run goes on; 1: it is over, take the result; negative as belljar_run(). After the end it
 * returns the same again.
 */
BELLJAR_CHECKED int belljar_process(struct belljar_handle *handle, struct belljar_error **error);
/*
 * The same until the end, or until @timeout_ms are over (negative: no such limit; the run itself has its own). Returns
 * as belljar_process(); 0: the time is over, and the run goes on. Signals do not end the waiting.
 */
BELLJAR_CHECKED int belljar_wait(struct belljar_handle *handle, int timeout_ms, struct belljar_error **error);

/*
 * What was put in force, as JSON text: the keys of the event `start` of `belljar run --events`. NULL until the command
 * was started. The handle's.
 */
BELLJAR_API const char *belljar_started(const struct belljar_handle *handle);
/* The result of a run that is over. The first call hands it over; NULL before the end and after that. */
BELLJAR_API struct belljar_result *belljar_take_result(struct belljar_handle *handle);

/*
 * End the run: @signal, 0 for SIGTERM, to all its processes; after the policy's grace, or at the second call, SIGKILL. The
 * result still comes, as BELLJAR_CANCELLED. 0 also if the run is over already. From any thread.
 */
BELLJAR_API int belljar_cancel(struct belljar_handle *handle, int signal);
/* Send a signal to every process of the run. -ESRCH: it is over. From any thread. */
BELLJAR_API int belljar_signal(struct belljar_handle *handle, int signal);
/* The terminal of a run with BELLJAR_PTY has a new size. -ESRCH: the run is over. From any thread. */
BELLJAR_API int belljar_resize(struct belljar_handle *handle, uint16_t rows, uint16_t columns);
/* Let go of it. A run that goes on is killed at once; nobody waits until it is gone. NULL is allowed. */
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
	BELLJAR_CANCELLED = 8 /* by belljar_cancel(), the callback, or because nobody took the output */
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
/* The number of the signal that ended the main process, whoever sent it; 0: none. */
BELLJAR_API int belljar_result_signal(const struct belljar_result *result);
/*
 * The bytes that were kept, exact, with a NUL behind them that is not counted. Never NULL. @len_out may be NULL.
 * belljar_result_is_truncated(): was more written than was kept?
 */
BELLJAR_API const char *belljar_result_stdout(const struct belljar_result *result, size_t *len_out);
BELLJAR_API const char *belljar_result_stderr(const struct belljar_result *result, size_t *len_out);
BELLJAR_API int belljar_result_is_truncated(const struct belljar_result *result);
/* The limits that were reached, also where the command survived: "memory", "pids", ... NULL past the last one. */
BELLJAR_API const char *belljar_result_limit(const struct belljar_result *result, size_t index);
/*
 * What was refused, the most telling first. A member of the entry @index; NULL past the last one, and where there is nothing to
 * say: only kind, what, access, why and certainty are always there. The cure is an option of the command line.
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
	BELLJAR_DENIED_SENTENCE   /* for whoever decides what to do next, a model among them */
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
	const char *ttl; /* after this time, "10m", the jar is closed, whatever runs in it; NULL: never */
};

/* Make a jar and keep it. Returns when it stands. */
BELLJAR_CHECKED int belljar_jar_open(struct belljar_engine *engine, const struct belljar_jar_options *options,
				     struct belljar_jar **out, struct belljar_error **error);
/*
 * Ask for a jar and do not wait. The jar is there at once, and cannot be used before it stands: wait for belljar_jar_fd(), call
 * belljar_jar_process(). Close it in any case.
 */
BELLJAR_CHECKED int belljar_jar_begin(struct belljar_engine *engine, const struct belljar_jar_options *options,
				      struct belljar_jar **out, struct belljar_error **error);
/*
 * The descriptor to wait for with poll(), POLLIN: it is readable when the jar stands or could not be made, and later, when it has
 * ended though nobody closed it. Then call belljar_jar_process(). Do nothing else with it. -EINVAL for NULL.
 */
BELLJAR_API int belljar_jar_fd(const struct belljar_jar *jar);
/* Take what is there, without blocking. 0: it is being made; 1: it stands; negative: it could not be made, or has ended. */
BELLJAR_CHECKED int belljar_jar_process(struct belljar_jar *jar, struct belljar_error **error);
/*
 * What was put in force, as JSON text {"rung","enforced","missing","limits","workdir","workspace","searched"}. The jar's, until its
 * workspace is changed.
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
#define BELLJAR_PARENTS 0x100u   /* make the directories above it; one that is to be made may be there */
#define BELLJAR_RECURSIVE 0x200u /* with all that is in it */
#define BELLJAR_FOLLOW 0x400u    /* if it is a link, what it leads to */

/*
 * Open a file of the jar; returns a descriptor, close-on-exec, the caller's. @path is the jar's own, a relative one starts
 * at its workdir. It is opened inside, so that no link leads out, and a FIFO or device is refused, not waited for. @access may
 * have BELLJAR_PARENTS with BELLJAR_FILE_WRITE.
 */
BELLJAR_CHECKED int belljar_jar_open_file(struct belljar_jar *jar, const char *path, int access, uint32_t mode,
					  struct belljar_error **error);
/* The whole of a file, to be freed with free(); with a NUL behind it. -EFBIG: it has more than @max_len bytes. */
BELLJAR_CHECKED int belljar_jar_read_file(struct belljar_jar *jar, const char *path, size_t max_len, void **bytes_out,
					  size_t *len_out, struct belljar_error **error);
BELLJAR_CHECKED int belljar_jar_write_file(struct belljar_jar *jar, const char *path, const void *bytes, size_t len,
					   uint32_t mode, struct belljar_error **error);

/* These are done inside too. A link as the last component is never followed, but by belljar_jar_stat() with BELLJAR_FOLLOW. */
BELLJAR_CHECKED int belljar_jar_mkdir(struct belljar_jar *jar, const char *path, uint32_t mode, uint32_t flags,
				      struct belljar_error **error);
/* A file, a link or an empty directory; with BELLJAR_RECURSIVE a directory and all in it. */
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
 * A stream socket, the caller's, that is connected to a TCP port that a process in the jar listens on (127.0.0.1, else ::1).
 * -EOPNOTSUPP: the jar has no loopback of its own, nor the host's.
 */
BELLJAR_CHECKED int belljar_jar_connect(struct belljar_jar *jar, uint16_t port, struct belljar_error **error);
/* The processes in the jar as JSON text, to be freed with free(): {"processes":[{"pid","ppid","run","state",...}]}. */
BELLJAR_CHECKED int belljar_jar_processes(struct belljar_jar *jar, char **json_out, struct belljar_error **error);
/* A signal to one of them, by the number it has inside; 0 only looks. -ESRCH: there is none. */
BELLJAR_CHECKED int belljar_jar_kill(struct belljar_jar *jar, int pid, int signal, struct belljar_error **error);
/* What the jar with all its runs uses, as JSON text {"age_ms","memory_bytes",...}; null: nobody counts it. */
BELLJAR_CHECKED int belljar_jar_usage(struct belljar_jar *jar, char **json_out, struct belljar_error **error);
/*
 * What processes of the jar changed that other programs execute or obey, as JSON text, to be freed with free(): `new` has what no
 * result and no look had before (what a process that lives on, or a run that is not over, has left), and `risky` all so far.
 */
BELLJAR_CHECKED int belljar_jar_look(struct belljar_jar *jar, char **json_out, struct belljar_error **error);
/*
 * End the jar and all that runs in it, and wait. *@json_out, to be freed with free(), has `risky`, as above; and `error` if the jar
 * had ended by itself before. Nothing but belljar_jar_close() may follow, which is due all the same.
 */
BELLJAR_CHECKED int belljar_jar_finish(struct belljar_jar *jar, char **json_out, struct belljar_error **error);

/*
 * The rules of a jar that has a gate ("net=gate" or "allow_net=..."): let it reach what @rule names, from the next connection on,
 * or no longer, which also resets open connections. @rule is HOST[:PORTS] or the JSON text of an object, as in allow_net; without
 * ports belljar_jar_deny_net() denies all. The last word about a host and port counts; what the policy denies stays denied.
 * -EINVAL: the jar has no gate, or that is no rule. -EOPNOTSUPP: this host cannot add these addresses later.
 */
BELLJAR_CHECKED int belljar_jar_allow_net(struct belljar_jar *jar, const char *rule, struct belljar_error **error);
BELLJAR_CHECKED int belljar_jar_deny_net(struct belljar_jar *jar, const char *rule, struct belljar_error **error);

/* Kill what is left in it, take it down, and return when it is gone. NULL is allowed. */
BELLJAR_API void belljar_jar_close(struct belljar_jar *jar);

/* --- workspaces --- */

/*
 * A run or a jar with "workspace=cow" writes to a layer over its work directory, and the host's files stay as they are. These
 * functions look at the layer and decide about it. Paths are below that directory; lists of them are NULL-terminated, and
 * NULL is all. Texts that come out are to be freed with free(); where one is not wanted, its pointer may be NULL.
 *
 * A jar holds its layer. belljar_workspace_show(), _diff() and _patch() look while it goes on. The others end what runs in it
 * and make it anew over what is left: processes and private files begin afresh, and the jar stays the same for the program.
 */

/* The workspace of a jar, to be freed before the jar is closed. -EINVAL: it has none. */
BELLJAR_CHECKED int belljar_jar_workspace(struct belljar_jar *jar, struct belljar_workspace **out,
					  struct belljar_error **error);
/* One that runs have left: by its id, or by its name for the current directory. -ENOENT: there is none. */
BELLJAR_CHECKED int belljar_workspace_open(struct belljar_engine *engine, const char *id,
					   struct belljar_workspace **out, struct belljar_error **error);
/* Nothing happens to what was changed. NULL is allowed. */
BELLJAR_API void belljar_workspace_free(struct belljar_workspace *workspace);

/* What it is and how much it changes, as JSON text {"id","name","workdir","kind","checkpoints",...}. */
BELLJAR_CHECKED int belljar_workspace_show(struct belljar_workspace *workspace, char **json_out,
					   struct belljar_error **error);
/* What is different from the host's files as they are now: what `belljar diff --json` prints. */
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
 * Put changes into the host's directory; @options may be NULL. 0: all that was asked for; 1: not all, and "not_applied" in the
 * JSON text says what, and why: a conflict, or refused. A workspace of which nothing is left is gone, unless it has a name.
 */
BELLJAR_CHECKED int belljar_workspace_apply(struct belljar_workspace *workspace,
					    const struct belljar_apply_options *options, char **json_out,
					    struct belljar_error **error);
/* Drop it, or the changes of these paths. 1: some cannot be dropped by themselves; "not_dropped" has them. */
BELLJAR_CHECKED int belljar_workspace_discard(struct belljar_workspace *workspace, const char *const *paths,
					      char **json_out, struct belljar_error **error);
/* Freeze what was changed so far, under an id for belljar_workspace_rollback(): "origin" if that is nothing. @note may be NULL. */
BELLJAR_CHECKED int belljar_workspace_checkpoint(struct belljar_workspace *workspace, const char *note, char **id_out,
						 struct belljar_error **error);
/* Drop what was changed since; NULL: since the last one. */
BELLJAR_CHECKED int belljar_workspace_rollback(struct belljar_workspace *workspace, const char *checkpoint,
					       struct belljar_error **error);
/*
 * So many workspaces, 256 at most, that go on from here: {"forks":["ID",...]}. A jar with "workspace_name=ID" opens one. null in place of
 * an id: nothing was changed yet, and a new workspace is the same.
 */
BELLJAR_CHECKED int belljar_workspace_fork(struct belljar_workspace *workspace, uint32_t count, char **json_out,
					   struct belljar_error **error);

#ifdef __cplusplus
}
#endif

#endif
