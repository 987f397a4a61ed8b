/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/learning.c - write a policy from what one run was refused: `learn`, and `run --suggest`
 *
 * The command chooses what it is refused, so it chooses the lines. A person reads them: on a terminal Belljar asks about each line,
 * elsewhere the file has them all, each with its reason. No line reaches a secret, because the ledger has no cure for that.
 */
#include "door/cli/learning.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>

#include "base/escape.h"
#include "door/cli/hook.h"
#include "door/cli/learned_policy.h"
#include "door/cli/terminal.h"
#include "engine/engine_why.h"

#define WITHHELD_SAID 12
#define WARNINGS_SAID 3

/* --- before the run ----------------------------------------------------------------------------------------- */

static const char *name_in(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int cli_learning_open(const char *path, int *directory_out, struct error *error)
{
	const char *name = name_in(path);
	AUTO_TEXT directory = {0};
	AUTO_CLOSE int fd = -1;

	text_append_string(&directory, name == path ? "." : "");
	text_append(&directory, path, (size_t)(name - path));
	fd = open(text_string(&directory), O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return error_set(error, STAGE_FILES, errno, "cannot open the directory of '%s': %s", path,
				 strerror(errno));
	if (!*name || faccessat(fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
		error_set(error, STAGE_USAGE, EEXIST, "cannot write the policy: '%s' exists already", path);
		return error_hint(error, "name a new file; `--policy %s` starts from one", path);
	}
	*directory_out = take_fd(&fd);
	return 0;
}

int cli_learning_begin(struct learning *learning, const struct invocation *invocation, struct run_options *options,
		       const struct messenger *messenger, struct error *error)
{
	*learning = (struct learning){.invocation = invocation, .options = options, .messenger = messenger};
	if (policy_copy(&options->policy, &learning->wanted) < 0)
		return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	/* The user did not choose the door's limit for --json. */
	if (!policy_is_given(&learning->wanted, "output"))
		learning->wanted.limits.output.total_bytes = LIMIT_NONE;
	learning->question = cli_question_of(invocation, &learning->wanted);
	if (options->policy.ledger == LEDGER_BASIC)
		options->policy.ledger = LEDGER_TRACE;
	if (options->policy.net == NET_NONE && learning->question.rung_max == RUNG_NAMESPACE)
		options->policy.net = NET_GATE;
	return 0;
}

/* --- asking ------------------------------------------------------------------------------------------------- */

static bool is_asking(const struct learning *learning)
{
	return !learning->options->has_json && !learning->options->has_events && isatty(STDIN_FILENO) &&
	       isatty(STDERR_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

/* One of @letters. Ignore what was typed before the question was shown; the end of the input is 'q'. */
static char ask(const struct text *question, const char *letters)
{
	tcflush(STDIN_FILENO, TCIFLUSH);
	dprintf(STDERR_FILENO, "%s", text_string(question));
	for (;;) {
		char line[256];
		ssize_t count = read(STDIN_FILENO, line, sizeof(line));

		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			return 'q';
		if (line[0] != '\n' && strchr(letters, line[0]) && (count == 1 || line[1] == '\n'))
			return line[0];
		dprintf(STDERR_FILENO, "belljar: answer with one of the letters %s > ", letters);
	}
}

static void ask_about_lines(struct learning *learning)
{
	struct lesson_list *lessons = &learning->lessons;
	bool is_over = !is_asking(learning);

	if (!is_over && !cli_terminal_is_dumb(learning->invocation->environment))
		dprintf(STDERR_FILENO, "%s", TERMINAL_PLAIN);
	for (size_t i = 0; i < lessons->lines.count && !is_over; i++) {
		AUTO_TEXT question = {0};
		char letter;

		if (!lessons->lines.items[i].count)
			continue;
		text_append_string(&question, "belljar: refused: ");
		cli_lessons_describe(lessons, i, &question);
		text_append_string(&question, "\n  y: allow it with ");
		escape_append(&question, cli_cure_flag(&lessons->lines.items[i].cure), LESSON_WORDS_MAX);
		text_append_string(&question, "  n: no  q: no, and no to the rest > ");
		letter = ask(&question, "ynq");
		is_over = letter == 'q';
		for (size_t k = i; k < lessons->lines.count && letter != 'y'; k++)
			if (k == i || is_over)
				lessons->lines.items[k].is_declined = true;
	}
}

/* Lay the lines over what was given. One that does not fit is left out. */
static size_t take_lines(struct learning *learning)
{
	const struct policy_context context = cli_context_of(learning->invocation);
	size_t taken = 0;

	for (size_t i = 0; i < learning->lessons.lines.count; i++) {
		struct lesson *line = &learning->lessons.lines.items[i];
		struct error error = {0};

		if (!line->count || line->is_declined)
			continue;
		if (policy_append_value(&learning->wanted, cli_cure_policy(&line->cure), &context, &error) == 0) {
			taken++;
			continue;
		}
		cli_message_error(learning->messenger, &error);
		line->is_declined = true;
	}
	return taken;
}

/* --- what is said ------------------------------------------------------------------------------------------- */

/* Every shell opens its terminal, and many runtimes look at the machine; they go on without. */
static bool is_tried_in_passing(const struct refusal *refusal)
{
	return !strcmp(refusal->what, "/dev/tty") || !strncmp(refusal->what, "/sys/", 5);
}

/* The most useful ones come first. */
static void say_warnings(const struct learning *learning)
{
	const struct lesson_list *lessons = &learning->lessons;

	for (size_t i = 0, said = 0; i < lessons->refusals.count && said < WARNINGS_SAID; i++) {
		const struct refusal *refusal = &lessons->refusals.items[i];

		if (refusal->lesson != LESSON_NONE || !refusal->warning || is_tried_in_passing(refusal))
			continue;
		said++;
		cli_message_note(learning->messenger, "refused, and Belljar proposes no change: %s %s: %s",
				 refusal->access, refusal->what, refusal->why);
		cli_message_hint(learning->messenger, "%s", refusal->warning);
	}
}

/* It failed, and the ledger explains nothing. */
static void say_what_is_not_seen(const struct learning *learning)
{
	AUTO(string_list_done) struct string_list names = {0};
	struct error unused = {0};
	AUTO_TEXT words = {0};

	if (engine_withheld_variables(&learning->question, &names, &unused) < 0)
		return;
	for (size_t i = 0; i < names.count && i < WITHHELD_SAID; i++)
		text_append_format(&words, "%s%s", i ? ", " : "", names.items[i]);
	cli_message_note(learning->messenger,
			 "the command failed, but the ledger has no refusal that a line of a policy could allow");
	cli_message_hint(learning->messenger, "a variable that the command wants (--pass-env NAME); withheld: %s%s",
			 names.count ? text_string(&words) : "none", names.count > WITHHELD_SAID ? " ..." : "");
	if (learning->options->policy.ledger != LEDGER_FILES)
		cli_message_hint(learning->messenger, "a file that it looked for and did not find (--ledger files)");
	if (!learning->options->has_pty)
		cli_message_hint(learning->messenger, "a terminal that it wants (--pty)");
}

static void append_word(struct text *out, const char *word)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:=@%+,-";

	if (*word && !word[strspn(word, plain)])
		text_append_string(out, word);
	else
		cli_hook_append_quoted(out, word);
}

/* The command that uses the policy, as a shell reads it. */
static void say_command(const struct learning *learning, size_t taken)
{
	const struct run_options *options = learning->options;
	const char *path = options->out_path ? options->out_path : "FILE";
	AUTO_TEXT file = {0}, words = {0};

	text_append_format(&file, "%s%s", strchr(path, '/') ? "" : "./", path);
	text_append_string(&words, "belljar run --policy ");
	append_word(&words, text_string(&file));
	text_append_string(&words, options->is_shell_string ? " --shell" : "");
	text_append_string(&words, options->has_pty ? " --pty" : "");
	text_append_string(&words, " --");
	for (int i = 0; i < options->command_count; i++) {
		text_append_char(&words, ' ');
		append_word(&words, options->command[i]);
	}
	cli_message_note(learning->messenger, "%s %s: %zu line%s learned; read it, then run",
			 options->out_path ? "wrote" : "save this as", path, taken, taken == 1 ? "" : "s");
	cli_message_hint(learning->messenger, "%s", text_string(&words));
}

/* --- the end ------------------------------------------------------------------------------------------------ */

static int write_file(const struct learning *learning, const struct text *document, struct error *error)
{
	const char *path = learning->options->out_path;
	AUTO_CLOSE int fd = openat(learning->invocation->out_directory_fd, name_in(path),
				   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	ssize_t count = fd < 0 ? -1 : write(fd, document->data, document->len);
	int reason = count < 0 ? errno : ENOSPC;

	if (count == (ssize_t)document->len)
		return 0;
	if (fd >= 0)
		unlinkat(learning->invocation->out_directory_fd, name_in(path), 0);
	return error_set(error, STAGE_FILES, reason, "cannot write '%s': %s", path, strerror(reason));
}

static int read_denied(struct learning *learning, const struct engine_run *engine, struct error *error)
{
	AUTO_TEXT denied = {0};
	AUTO_JSON value = {0};
	struct json_member *list;
	int rc;

	engine_write_denied(engine, &denied);
	rc = json_parse(&(struct json_input){.name = "denied",
					     .bytes = text_string(&denied),
					     .len = denied.len,
					     .max_bytes = denied.len + 1,
					     .has_byte_escapes = true},
			&value, error);
	list = rc == 0 ? (struct json_member *)json_find(&value, "denied") : NULL;
	if (list)
		cli_lessons_read(&learning->lessons, &list->value, &learning->question);
	return rc;
}

int cli_learning_end(struct learning *learning, const struct engine_run *engine)
{
	const struct run_options *options = learning->options;
	const struct learned_policy learned = {
		.policy = &learning->wanted,
		.lessons = &learning->lessons,
		.program = options->is_shell_string ? "a line for the shell" : options->command[0],
	};
	AUTO_TEXT document = {0};
	struct error error = {0};
	size_t taken = 0;
	int rc = read_denied(learning, engine, &error);

	if (rc == 0) {
		say_warnings(learning);
		if (!learning->lessons.lines.count && engine_exit_status(engine) != 0)
			say_what_is_not_seen(learning);
		ask_about_lines(learning);
		taken = take_lines(learning);
		rc = cli_learned_policy_write(&learned, learning->invocation, &document, &error);
	}
	if (rc == 0 && options->out_path)
		rc = write_file(learning, &document, &error);
	else if (rc == 0 && cli_print_out(&document, learning->messenger) != 0)
		return -EIO;
	if (rc < 0)
		cli_message_error(learning->messenger, &error);
	else
		say_command(learning, taken);
	return rc;
}

void cli_learning_done(struct learning *learning)
{
	cli_lessons_done(&learning->lessons);
	policy_done(&learning->wanted);
}
