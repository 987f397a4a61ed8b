/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine.h - the interface of the engine for the command line and other doors
 *
 * A request is a policy, a command and where its streams go. The engine surveys the host, makes the plan, runs it, and
 * writes the result. If a feature of the host turns out not to work (user namespaces that exist but fail), the
 * engine plans again without it, if the policy accepts that. No command has run by then.
 */
#ifndef BELLJAR_ENGINE_ENGINE_H
#define BELLJAR_ENGINE_ENGINE_H

#include <sys/ioctl.h>

#include "base/error.h"
#include "base/loop.h"
#include "base/text.h"
#include "policy/net_rules.h"
#include "policy/policy.h"

/* The form of the command's output. */
enum engine_mode {
	ENGINE_PASS,   /* passed through */
	ENGINE_JSON,   /* captured; one result object */
	ENGINE_EVENTS, /* one JSON object per line */
};

enum engine_stdin { ENGINE_STDIN_INHERIT, ENGINE_STDIN_NULL, ENGINE_STDIN_FILE };

/* Asks the user about connections that no rule decides; see engine_answer(). Called from within the loop. */
struct engine_asker {
	void *owner;
	void (*question)(void *owner, const struct net_question *question);
	void (*withdrawn)(void *owner, uint32_t id); /* no answer is needed any more */
};

struct engine_request {
	const struct policy *policy;
	char *const *command;
	int command_count;
	bool is_shell_string; /* command[0] is for /bin/sh -c */
	enum engine_mode mode;
	bool has_bytes;
	int stdout_fd; /* borrowed */
	int stderr_fd;
	int status_fd; /* -1: none; owned by the engine from here on, closed after the result was written */
	enum engine_stdin stdin_choice;
	int stdin_fd; /* ENGINE_STDIN_INHERIT: borrowed */
	const char *stdin_path;
	struct engine_asker asker; /* no functions: Belljar refuses what no rule decides */
	bool has_pty;
	struct winsize window;
	bool has_timing;
	bool has_no_cache; /* the jar makes its root itself */
	pid_t spared_pid;  /* a child of the caller's own that must not be taken for an orphan; 0: none */
	char *const *environment;
	const char *current_directory; /* NULL: there is none */
	bool is_rung_limited; /* treat what is above rung_max as absent, as on a host without it: for `doctor --prove` */
	enum rung rung_max;
	/* Memory that /proc shows as this process's command line and environment; see jar_argv_memory. */
	char *argv_memory;
	size_t argv_memory_len;
};

struct engine_run;

/* Start a run. The result reports every error, so this fails only with -ENOMEM. */
int engine_start(struct loop *loop, const struct engine_request *request, struct engine_run **out);
bool engine_has_started(const struct engine_run *run); /* the command runs or has run: the plan is final */
bool engine_is_done(const struct engine_run *run);     /* the jar is gone and all output is written */
void engine_free(struct engine_run *run);
/* Whether the engine killed the run for too many processes, because no kernel limit refused them. */
bool engine_is_over_pids(const struct engine_run *run);

void engine_cancel(struct engine_run *run, int signal_number);
void engine_signal(struct engine_run *run, int signal_number); /* to the whole tree; SIGSTOP and SIGCONT among them */
void engine_answer(struct engine_run *run, uint32_t id, enum net_answer answer);
/* Make the command's input and output on the terminal wait, while Belljar asks the user there. */
void engine_hold_terminal(struct engine_run *run, bool is_held);
void engine_resize(struct engine_run *run, const struct winsize *window);

int engine_exit_status(const struct engine_run *run);
/* Why the run did not start or lost its output; NULL: neither. */
const struct error *engine_error(const struct engine_run *run);
/* One line for people about an end that was not the command's own; may be empty. */
void engine_explain(const struct engine_run *run, struct text *out);
/*
 * Describe a refusal to a command that failed, the most telling first, in @what, and what would allow it in
 * @cure, which may be empty. False: there are no more.
 */
bool engine_denied(const struct engine_run *run, size_t index, struct text *what, struct text *cure);
/* Write every refusal, as the members of a result. */
void engine_write_denied(const struct engine_run *run, struct text *out);
/* Describe a file that the command changed and other programs run or read as settings. False: there are no more. */
bool engine_risky(const struct engine_run *run, size_t index, struct text *words);
/* Why the list of such files is incomplete; NULL: it is complete. */
const char *engine_unsearched(const struct engine_run *run);
/* Describe the changes in a kept layer. False: there are no more. Dropped layers have no words. */
bool engine_workspace(const struct engine_run *run, size_t index, struct text *words);
struct engine_note {
	const char *why, *hint;
	bool is_quiet;           /* for people only if they ask, or if the command did not start */
	bool is_about_a_failure; /* also if the command failed */
};

/* Get one note for the user. False: there are no more. */
bool engine_note(const struct engine_run *run, size_t index, struct engine_note *out);
bool engine_missing(const struct engine_run *run, size_t index, const char **name, const char **why);
const char *engine_rung(const struct engine_run *run);
/* The command's first directory in the jar; NULL: there is no plan. */
const char *engine_workdir(const struct engine_run *run);
/* Write the time of each stage and step, in words. */
void engine_print_timing(const struct engine_run *run, struct text *out);

/* Write the result object for a usage error, before there is a request. */
void engine_failure_result(const struct error *error, bool is_captured, struct text *out);
/* The same as the only line of an event stream. */
void engine_failure_event(const struct error *error, struct text *out);

struct redactor;
/* Make a redactor for a door whose output does not pass through the engine. NULL: nothing to redact. */
int engine_make_redactor(const struct policy *policy, char *const *environment, struct redactor **out,
			 struct error *error);

/* Write the plan of @request, in words or as JSON; runs nothing. */
int engine_plan(const struct engine_request *request, bool is_json, struct text *out, struct error *error);

#endif
