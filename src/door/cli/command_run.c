/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/command_run.c - `run` and `shell`: one request, our signals, our terminal
 *
 * The engine runs in this process, on one loop. What is the command line's own is here: signals, which arrive as reads
 * so that no handler interrupts anything; the terminal, which must be as it was when Belljar stops or ends; and the
 * parent, whose end cancels the run if that is asked for.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include "door/cli/ask.h"
#include "door/cli/commands.h"
#include "door/cli/introduction.h"
#include "door/cli/learning.h"
#include "door/cli/terminal.h"

/* Lines about why a command failed; more is in the result. */
#define REASONS_SAID 5
#define RISKY_SHOWN_MAX 5

/* Signals that end the run; one that the caller had ignored (nohup, background jobs) stays ignored. */
static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
static const int other_signals[] = {SIGTSTP, SIGCONT, SIGWINCH};

struct foreground {
	struct loop *loop;
	struct engine_run *engine;
	struct loop_watch signals;
	struct loop_watch parent;
	struct messenger messenger;
	struct terminal terminal;
	struct asking asking;
	bool has_pty;
	bool is_cancelled;
	bool is_introduced; /* a shell for a person, who gets an introduction to the jar */
};

static bool is_ignored(int number)
{
	struct sigaction action;

	return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(ending_signals); i++)
		if (!is_ignored(ending_signals[i]))
			sigaddset(&set, ending_signals[i]);
	for (size_t i = 0; i < ARRAY_LEN(other_signals); i++)
		if (!is_ignored(other_signals[i]))
			sigaddset(&set, other_signals[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	/* write() reports a closed output. The command does not inherit the caller's action for SIGPIPE. */
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Control-Z, or a SIGTSTP from elsewhere: the tree stops, then we do; when we go on, so does the tree. */
static void stop_all(struct foreground *foreground)
{
	engine_signal(foreground->engine, SIGSTOP);
	cli_terminal_restore(&foreground->terminal);
	kill(getpid(), SIGSTOP);
	if (foreground->has_pty)
		cli_terminal_raw(&foreground->terminal);
	engine_signal(foreground->engine, SIGCONT);
	cli_ask_again(&foreground->asking);
}

static void resize(const struct foreground *foreground)
{
	struct winsize window;

	cli_terminal_size(&window);
	engine_resize(foreground->engine, &window);
}

static void on_signal(struct loop_watch *watch, uint32_t events)
{
	struct foreground *foreground = watch->owner;
	struct signalfd_siginfo info;

	(void)events;
	while (read(watch->fd, &info, sizeof(info)) == sizeof(info)) {
		switch ((int)info.ssi_signo) {
		case SIGTSTP:
			stop_all(foreground);
			break;
		case SIGCONT:
			engine_signal(foreground->engine, SIGCONT);
			break;
		case SIGWINCH:
			resize(foreground);
			break;
		default:
			foreground->is_cancelled = true;
			engine_cancel(foreground->engine, (int)info.ssi_signo);
			break;
		}
	}
}

/* Once: a second cancel would leave the command no grace. */
static void on_parent_gone(struct loop_watch *watch, uint32_t events)
{
	struct foreground *foreground = watch->owner;

	(void)events;
	loop_remove(watch);
	cli_message_note(&foreground->messenger, "the process that started Belljar is gone: ending the run");
	foreground->is_cancelled = true;
	engine_cancel(foreground->engine, SIGTERM);
}

/* --- a run -------------------------------------------------------------------------------------------------- */

static enum engine_mode mode_of(const struct run_options *options)
{
	if (options->has_json)
		return ENGINE_JSON;
	return options->has_events ? ENGINE_EVENTS : ENGINE_PASS;
}

static struct engine_request request_of(const struct invocation *invocation, const struct run_options *options)
{
	static const enum engine_stdin choices[] = {
		[STDIN_INHERIT] = ENGINE_STDIN_INHERIT,
		[STDIN_NULL] = ENGINE_STDIN_NULL,
		[STDIN_FILE] = ENGINE_STDIN_FILE,
	};
	struct engine_request request = {
		.policy = &options->policy,
		.command = options->command,
		.command_count = options->command_count,
		.is_shell_string = options->is_shell_string,
		.mode = mode_of(options),
		.has_bytes = options->has_bytes,
		.stdout_fd = options->is_output_beside ? STDERR_FILENO : STDOUT_FILENO,
		.stderr_fd = STDERR_FILENO,
		.status_fd = options->status_fd,
		.stdin_choice = choices[options->stdin_choice],
		.stdin_fd = invocation->has_stdin ? STDIN_FILENO : -1,
		.stdin_path = options->stdin_path,
		.has_pty = options->has_pty,
		.has_timing = options->has_timing,
		.has_no_cache = options->has_no_root_cache,
		.environment = invocation->environment,
		.current_directory = invocation->current_directory,
		.argv_memory = invocation->argv_memory,
		.argv_memory_len = invocation->argv_memory_len,
	};

	cli_terminal_size(&request.window);
	return request;
}

static void say_note(const struct messenger *messenger, const struct engine_note *note)
{
	cli_message_note(messenger, "%s", note->why);
	cli_message_hint(messenger, "%s", note->hint);
}

/* Before the command writes anything. */
static void say_notes(const struct engine_run *engine, const struct messenger *messenger)
{
	struct engine_note note;

	for (size_t i = 0; engine_note(engine, i, &note); i++)
		if (!note.is_quiet)
			say_note(messenger, &note);
}

static void say_quiet_notes(const struct engine_run *engine, const struct messenger *messenger, bool are_wanted)
{
	bool has_failed = engine_exit_status(engine) != 0;
	struct engine_note note;

	for (size_t i = 0; engine_note(engine, i, &note); i++)
		if (note.is_quiet && (are_wanted || (has_failed && note.is_about_a_failure)))
			say_note(messenger, &note);
}

static void say_what_was_missing(const struct engine_run *engine, const struct messenger *messenger)
{
	const char *name, *why;

	say_notes(engine, messenger);
	cli_message_verbose(messenger, "rung: %s", engine_rung(engine));
	for (size_t i = 0; engine_missing(engine, i, &name, &why); i++)
		cli_message_verbose(messenger, "missing: %s: %s", name, why);
}

/* Print why the command may have failed. @said: lines printed so far. Returns the new count. */
static size_t say_what_was_refused(const struct engine_run *engine, const struct messenger *messenger, size_t said)
{
	for (size_t i = 0; said < REASONS_SAID; i++, said++) {
		AUTO_TEXT what = {0}, cure = {0};

		if (!engine_denied(engine, i, &what, &cure))
			break;
		if (!what.len)
			cli_message_hint(messenger, "%s", text_string(&cure));
		else
			cli_message_note(messenger, "refused: %s%s%s", text_string(&what), cure.len ? "; " : "",
					 text_string(&cure));
	}
	return said;
}

/*
 * Print advice if the command failed and no refusal is known; only another ledger level records files. Print it on a
 * terminal only: a program that reads the messages does not need advice each time that a test fails.
 */
static void say_how_to_find_out(const struct foreground *foreground, const struct run_options *options)
{
	if (engine_exit_status(foreground->engine) == 0 || engine_error(foreground->engine) ||
	    options->policy.ledger != LEDGER_BASIC || foreground->is_introduced || !isatty(foreground->messenger.fd))
		return;
	cli_message_hint(
		&foreground->messenger,
		"if the jar blocked a file or host it needs, `belljar run --ledger trace` shows which, and `belljar learn` writes a policy");
}

/* Print changed files that later programs run or read as configuration, if no result object reports them. */
static void say_what_is_risky(const struct engine_run *engine, const struct messenger *messenger)
{
	size_t count = 0;

	for (;; count++) {
		AUTO_TEXT words = {0};

		if (!engine_risky(engine, count, &words))
			break;
		if (count < RISKY_SHOWN_MAX)
			cli_message_note(messenger, "look at %s", text_string(&words));
	}
	if (count > RISKY_SHOWN_MAX)
		cli_message_note(messenger, "there are %zu more such files; --json lists them",
				 count - RISKY_SHOWN_MAX);
	if (engine_unsearched(engine))
		cli_message_note(messenger, "check the directories that the command could write: %s",
				 engine_unsearched(engine));
}

static void say_how_it_ended(const struct foreground *foreground, const struct run_options *options)
{
	const struct engine_run *engine = foreground->engine;
	const struct messenger *messenger = &foreground->messenger;
	const struct error *error = engine_error(engine);
	AUTO_TEXT words = {0};
	AUTO_TEXT timing = {0};

	if (error)
		cli_message_error(messenger, error);
	say_quiet_notes(engine, messenger, error || messenger->verbosity > 0);
	engine_explain(engine, &words);
	if (words.len)
		cli_message_note(messenger, "%s", text_string(&words));
	if (!options->is_learning && !say_what_was_refused(engine, messenger, words.len > 0))
		say_how_to_find_out(foreground, options);
	if (!options->has_json && !options->has_events)
		say_what_is_risky(engine, messenger);
	for (size_t i = 0; !options->is_tried; i++) {
		AUTO_TEXT layer = {0};

		if (!engine_workspace(engine, i, &layer))
			break;
		if (layer.len)
			cli_message_note(messenger, "%s", text_string(&layer));
	}
	if (options->has_timing) {
		engine_print_timing(engine, &timing);
		for (char *line = timing.data, *end; line && (end = strchr(line, '\n')); line = end + 1) {
			*end = '\0';
			cli_message_note(messenger, "%s", line);
		}
	}
}

static void speak(const struct foreground *foreground, const struct run_options *options)
{
	say_what_was_missing(foreground->engine, &foreground->messenger);
	if (foreground->is_introduced && engine_workdir(foreground->engine))
		cli_introduce_jar(&foreground->messenger, &options->policy, engine_workdir(foreground->engine),
				  engine_rung(foreground->engine));
}

static int supervise(struct foreground *foreground, const struct run_options *options)
{
	bool has_spoken = false;

	while (!engine_is_done(foreground->engine)) {
		int rc = loop_turn(foreground->loop);

		if (rc < 0) {
			struct error error = {0};

			error_set(&error, STAGE_ENGINE, -rc, "cannot wait for the jar: %s", strerror(-rc));
			cli_message_error(&foreground->messenger, &error);
			return EXIT_BELLJAR;
		}
		if (!has_spoken && engine_has_started(foreground->engine)) {
			speak(foreground, options);
			has_spoken = true;
		}
	}
	cli_ask_done(&foreground->asking);
	cli_terminal_done(&foreground->terminal);
	foreground->messenger.is_raw = false;
	if (!has_spoken)
		say_what_was_missing(foreground->engine, &foreground->messenger);
	say_how_it_ended(foreground, options);
	return engine_exit_status(foreground->engine);
}

static void prepare_asking(struct foreground *foreground, const struct invocation *invocation,
			   const struct run_options *options, struct engine_request *request)
{
	if (cli_ask_open(&foreground->asking, foreground->loop, invocation, options, &foreground->terminal)) {
		request->asker = (struct engine_asker){&foreground->asking, cli_ask_on_question, cli_ask_on_withdrawn};
		return;
	}
	cli_message_note(&foreground->messenger,
			 "no terminal to ask on: Belljar refuses hosts without a rule in allow_net");
}

/* A shell's $PWD may lead through links that the jar does not have. Where it is our own directory, the path without links is meant. */
static void resolve_start(const struct invocation *invocation, struct policy *policy)
{
	struct stat named, own;
	char *path;

	if (!policy->cd || *policy->cd != '/' || !invocation->current_directory || stat(policy->cd, &named) < 0 ||
	    stat(invocation->current_directory, &own) < 0 || named.st_dev != own.st_dev || named.st_ino != own.st_ino)
		return;
	path = strdup(invocation->current_directory);
	if (!path)
		return;
	free(policy->cd);
	policy->cd = path;
}

static int run(const struct invocation *invocation, struct run_options *options, const struct messenger *messenger,
	       bool is_introduced)
{
	struct engine_request request;
	struct foreground foreground = {
		.has_pty = options->has_pty,
		.is_introduced = is_introduced,
		.messenger = *messenger,
		.terminal = {.fd = -1, .guard_fd = -1},
		.asking = {.fd = -1},
	};
	AUTO(cli_learning_done) struct learning learning = {0};
	struct error error = {0};
	AUTO_CLOSE int signal_fd = open_signals();
	int status = EXIT_BELLJAR;

	resolve_start(invocation, &options->policy);
	if (options->is_learning && cli_learning_begin(&learning, invocation, options, messenger, &error) < 0) {
		cli_message_error(messenger, &error);
		return EXIT_BELLJAR;
	}
	request = request_of(invocation, options);
	foreground.loop = loop_new();
	if (!foreground.loop || signal_fd < 0 ||
	    loop_add(foreground.loop, &foreground.signals, signal_fd, EPOLLIN, on_signal, &foreground) < 0 ||
	    (invocation->parent_fd >= 0 && loop_add(foreground.loop, &foreground.parent, invocation->parent_fd, EPOLLIN,
						    on_parent_gone, &foreground) < 0)) {
		error_set(&error, STAGE_ENGINE, errno, "cannot begin: %s", strerror(errno));
		cli_message_error(messenger, &error);
		loop_free(foreground.loop);
		return EXIT_BELLJAR;
	}
	if (options->has_pty && options->stdin_choice == STDIN_INHERIT && invocation->has_stdin) {
		cli_terminal_open(&foreground.terminal, STDIN_FILENO);
		cli_terminal_raw(&foreground.terminal);
		foreground.messenger.is_raw = foreground.terminal.is_raw && isatty(foreground.messenger.fd);
		request.spared_pid = foreground.terminal.guard;
	}
	if (options->policy.ask == ASK_NET && options->policy.net == NET_GATE)
		prepare_asking(&foreground, invocation, options, &request);
	if (engine_start(foreground.loop, &request, &foreground.engine) == 0) {
		options->status_fd = -1; /* the engine's now */
		foreground.asking.engine = foreground.engine;
		status = supervise(&foreground, options);
		if (options->is_learning && !engine_error(foreground.engine) && !foreground.is_cancelled &&
		    cli_learning_end(&learning, foreground.engine) < 0)
			status = EXIT_BELLJAR;
	}
	cli_ask_done(&foreground.asking);
	cli_terminal_done(&foreground.terminal);
	loop_remove(&foreground.parent);
	loop_remove(&foreground.signals);
	engine_free(foreground.engine);
	loop_free(foreground.loop);
	return status;
}

int cli_command_run(const struct invocation *invocation, struct run_options *options, const struct messenger *messenger)
{
	options->is_learning = options->out_path;
	return run(invocation, options, messenger, false);
}

/* Without --out the policy goes to stdout, so what the command prints goes to stderr. */
int cli_command_learn(const struct invocation *invocation, struct run_options *options,
		      const struct messenger *messenger)
{
	options->is_learning = true;
	options->is_output_beside = !options->out_path;
	return run(invocation, options, messenger, false);
}

int cli_command_shell(const struct invocation *invocation, struct run_options *options,
		      const struct messenger *messenger)
{
	static char *fallback[] = {(char *)"/bin/sh", NULL};
	char *chosen[] = {NULL, NULL, NULL}; /* a path, and perhaps an option */
	struct error error = {0};

	for (char *const *variable = invocation->environment; variable && *variable; variable++)
		if (!strncmp(*variable, "SHELL=/", 7))
			chosen[0] = *variable + 6;
	options->command = chosen[0] && access(chosen[0], X_OK) == 0 ? chosen : fallback;
	options->command_count = 1;
	/* In a home without its files zsh begins with questions to a new user, each time; without start files it does not. */
	if (options->command == chosen && cli_shell_is_zsh(chosen[0])) {
		chosen[1] = (char *)"-f";
		options->command_count = 2;
	}
	if (cli_mark_prompt(&options->policy, options->command[0], &error) < 0) {
		cli_message_error(messenger, &error);
		return EXIT_BELLJAR;
	}
	return run(invocation, options, messenger, true);
}
