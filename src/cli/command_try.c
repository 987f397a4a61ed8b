/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/command_try.c - `try`: run a command with --cow, show what it changed, and ask
 *
 * The run is made by a child, which is `belljar run` in all but name; which workspace it has left is read from its result.
 * Without a terminal nothing is asked: what the options do not decide stays in the workspace.
 */
#include <errno.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/json_read.h"
#include "cli/changes_print.h"
#include "cli/command_changes.h"
#include "cli/pager.h"
#include "cli/picker.h"
#include "workspace/workspace_risk.h"

#define RESULT_BYTES_MAX ((size_t)16 << 20)

static int fail(const struct messenger *messenger, const struct error *error)
{
	message_error(messenger, error);
	return EXIT_BELLJAR;
}

/* --- the run ------------------------------------------------------------------------------------------------------ */

static int set_key(struct run_options *options, const struct invocation *invocation, const char *name,
		   const char *value, struct error *error)
{
	const struct policy_context context = context_of(invocation);

	return policy_set_flag(&options->policy, policy_key_by_name(name), value, false, &context, error);
}

/* What the child ends with. A stop of the child's is ours too, so that the shell takes over. */
static int wait_for(pid_t child)
{
	int status;

	for (;;) {
		if (waitpid(child, &status, WUNTRACED) < 0) {
			if (errno == EINTR)
				continue;
			return EXIT_BELLJAR;
		}
		if (!WIFSTOPPED(status))
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		kill(getpid(), SIGSTOP);
		kill(child, SIGCONT);
	}
}

typedef int run_function(const struct invocation *invocation, struct run_options *options,
			 const struct messenger *messenger);

/* The terminal's signals are the child's: it passes them on and ends in order. */
static int run_in_child(run_function *function, const struct invocation *invocation, struct run_options *options,
			const struct messenger *messenger)
{
	static const int signals[] = {SIGINT, SIGQUIT, SIGTSTP};
	struct sigaction before[ARRAY_LEN(signals)];
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(function(invocation, options, messenger));
	if (child < 0)
		return EXIT_BELLJAR;
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		sigaction(signals[i], &(struct sigaction){.sa_handler = SIG_IGN}, &before[i]);
	status = wait_for(child);
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		sigaction(signals[i], &before[i], NULL);
	return status;
}

/* The workspace's id in a result, or "". */
static void read_id(int fd, char id[WORKSPACE_ID_SIZE])
{
	AUTO_FREE char *bytes = malloc(RESULT_BYTES_MAX);
	ssize_t len = bytes ? pread(fd, bytes, RESULT_BYTES_MAX, 0) : -1;
	const struct json_input input = {.name = "result",
					 .bytes = bytes,
					 .len = len > 0 ? (size_t)len : 0,
					 .stage = STAGE_ENGINE,
					 .max_bytes = RESULT_BYTES_MAX,
					 .has_byte_escapes = true};
	struct error nobodys = {0};
	AUTO_JSON value = {0};
	const struct json_member *member;

	id[0] = '\0';
	if (len <= 0 || json_parse(&input, &value, &nobodys) < 0 || value.type != JSON_OBJECT)
		return;
	member = json_find(&value, "workspace");
	member = member && member->value.type == JSON_OBJECT ? json_find(&member->value, "id") : NULL;
	if (member && member->value.type == JSON_STRING && workspace_id_is_valid(member->value.string.bytes))
		memcpy(id, member->value.string.bytes, WORKSPACE_ID_SIZE);
}

/* --- deciding ----------------------------------------------------------------------------------------------------- */

struct trial {
	const struct invocation *invocation;
	struct run_options *options;
	const struct messenger *messenger;
	char id[WORKSPACE_ID_SIZE];
	struct chosen chosen;
	struct change_list list;
	int status; /* of the command */
};

/* Open the workspace, and list its changes anew. */
static int look(struct trial *trial, struct error *error)
{
	struct run_options words = {.words = {trial->id}, .word_count = 1};
	AUTO(string_list_done) struct string_list risky = {0};
	int rc = chosen_open(&trial->chosen, trial->invocation, &words, 0, WORKSPACE_WRITE, true, error);

	if (rc == 0)
		rc = workspace_settle(&trial->chosen.opened.view, &trial->chosen.opened.workspace, error);
	if (rc == 0)
		rc = chosen_translate(&trial->chosen, trial->invocation, &trial->options->risky, &risky, error);
	if (rc == 0)
		rc = workspace_changes(&trial->chosen.opened.view, &trial->list, error);
	if (rc == 0)
		workspace_judge(&trial->chosen.opened.view, &trial->list, &risky);
	return rc;
}

static void leave(struct trial *trial)
{
	change_list_done(&trial->list);
	chosen_done(&trial->chosen);
	trial->chosen = (struct chosen){0};
}

static int apply(struct trial *trial, const struct string_list *paths)
{
	static const struct string_list none;
	const struct apply_order order = {.paths = paths, .theirs = &none, .ours = &none};

	return apply_chosen(&trial->chosen, &trial->list, &order, trial->messenger);
}

static int discard(struct trial *trial)
{
	struct error error = {0};

	if (workspace_remove(&trial->chosen.opened.home, &trial->chosen.opened.workspace, &error) < 0)
		return fail(trial->messenger, &error);
	message_note(trial->messenger, "dropped: the workdir is as it was");
	return trial->status;
}

static int keep(const struct trial *trial)
{
	message_note(trial->messenger, "kept as the workspace %s", trial->id);
	message_hint(trial->messenger, "`belljar diff %s`, `belljar apply %s`, `belljar discard %s`", trial->id,
		     trial->id, trial->id);
	return trial->status;
}

/* What --yes, --apply and --discard say. -1: nothing. */
static int decide_by_options(struct trial *trial)
{
	AUTO(string_list_done) struct string_list paths = {0};
	const struct string_list *patterns = &trial->options->apply_patterns;
	int rc;

	if (trial->options->has_discard)
		return discard(trial);
	if (trial->options->is_agreed) {
		rc = apply(trial, &paths);
		return rc ? rc : trial->status;
	}
	if (!patterns->count)
		return -1;
	for (size_t i = 0; i < trial->list.count; i++)
		for (size_t k = 0; k < patterns->count; k++)
			if (fnmatch(patterns->items[k], trial->list.items[i].path, 0) == 0 ||
			    change_is_within(trial->list.items[i].path, patterns->items[k])) {
				if (string_list_add(&paths, trial->list.items[i].path) < 0)
					return EXIT_BELLJAR;
				break;
			}
	if (!paths.count) {
		message_note(trial->messenger, "nothing that was changed matches --apply");
		return keep(trial);
	}
	rc = apply(trial, &paths);
	return rc ? rc : trial->status;
}

static void show(const struct trial *trial, bool is_patch)
{
	bool has_color = wants_color(trial->options->color, STDOUT_FILENO);
	AUTO_TEXT out = {0};

	if (is_patch)
		changes_print_patch(&out, &trial->chosen.opened.view, &trial->list, true, has_color);
	else
		changes_print(&out, &trial->list, has_color);
	if (is_patch)
		pager_print(trial->invocation, &out, trial->messenger);
	else
		print_out(&out, trial->messenger);
}

/* A shell in a jar on the same workspace; afterwards there may be other changes. */
static int look_around(struct trial *trial, struct error *error)
{
	int rc;

	leave(trial);
	rc = set_key(trial->options, trial->invocation, "workspace_name", trial->id, error);
	if (rc < 0)
		return rc;
	trial->options->has_pty = true;
	trial->options->status_fd = -1;
	run_in_child(command_shell, trial->invocation, trial->options, trial->messenger);
	return look(trial, error);
}

static char ask(void)
{
	static const char question[] = "apply, pick, diff, shell, keep, drop? [a/p/d/s/k/x] ";
	char line[64];
	ssize_t count;

	if (write(STDOUT_FILENO, question, strlen(question)) < 0)
		return 'k';
	count = read(STDIN_FILENO, line, sizeof(line));
	return count <= 0 ? 'k' : line[0];
}

static int decide_by_asking(struct trial *trial, struct error *error)
{
	show(trial, false);
	for (;;) {
		AUTO(string_list_done) struct string_list paths = {0};
		int rc;

		switch (ask()) {
		case 'a':
			rc = apply(trial, &paths);
			return rc ? rc : trial->status;
		case 'p':
			if (!pick_changes(&trial->list, &paths))
				break;
			rc = apply(trial, &paths);
			return rc ? rc : trial->status;
		case 'd':
			show(trial, true);
			break;
		case 's':
			rc = look_around(trial, error);
			if (rc < 0)
				return fail(trial->messenger, error);
			show(trial, false);
			break;
		case 'k':
			return keep(trial);
		case 'x':
			return discard(trial);
		default:
			break;
		}
	}
}

int command_try(const struct invocation *invocation, struct run_options *options, const struct messenger *messenger)
{
	struct trial trial = {.invocation = invocation, .options = options, .messenger = messenger};
	AUTO_CLOSE int result_fd = memfd_create("result", MFD_CLOEXEC);
	struct error error = {0};
	int rc = set_key(options, invocation, "workspace", NULL, &error);

	if (rc < 0 || result_fd < 0)
		return rc < 0 ? fail(messenger, &error) : EXIT_BELLJAR;
	options->status_fd = result_fd;
	trial.status = run_in_child(command_run, invocation, options, messenger);
	options->status_fd = -1;
	read_id(result_fd, trial.id);
	if (!trial.id[0]) {
		message_note(messenger, "nothing was changed");
		return trial.status;
	}
	rc = look(&trial, &error);
	if (rc < 0) {
		leave(&trial);
		return fail(messenger, &error);
	}
	rc = decide_by_options(&trial);
	if (rc < 0 && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)) {
		rc = decide_by_asking(&trial, &error);
	} else if (rc < 0) {
		show(&trial, false);
		rc = keep(&trial);
	}
	leave(&trial);
	return rc;
}
