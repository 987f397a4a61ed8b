/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/command_learn.c - `learn`: from a run that fails to a policy with which it works
 *
 * Runs the command under the walls that hold now, asks about each thing that was refused, and runs it again with what was allowed.
 * Nothing is ever allowed without an answer: where nobody can be asked, the questions are the result, and a second invocation with the
 * cures as options is the answer. What Belljar proposes no change for is said, and not asked about.
 *
 * The runs look for more than the policy that is learned: the most telling ledger, and a gate that lets nothing through in the
 * place of no network, because only a gate sees which hosts were wanted.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>

#include "base/escape.h"
#include "base/json_write.h"
#include "cli/child_run.h"
#include "cli/learned_policy.h"
#include "cli/terminal.h"
#include "engine/engine_why.h"

/* A command that is refused something new each time is not learned by waiting. */
#define RUNS_MAX 32
#define WITHHELD_SAID 12
#define WARNINGS_SAID 3
#define EXIT_NOT_YET 1

struct study {
	const struct invocation *invocation;
	struct run_options *options;
	const struct messenger *messenger;
	struct policy wanted;           /* what is learned: as it was given, and what was allowed since */
	struct engine_request question; /* about a jar with that */
	struct lesson_list lessons;
	int directory_fd; /* where --out is; -1: nowhere */
	const char *out_name;
	bool is_asking; /* somebody sits there */
	enum ledger_level level, first_level;
	bool has_layer; /* each run starts from the files as they are now */
	unsigned runs;
	struct text ends; /* how each run ended, as JSON */
	bool works, is_over;
	char workspace[WORKSPACE_ID_SIZE]; /* of the last run */
};

static int fail(const struct messenger *messenger, const struct error *error)
{
	message_error(messenger, error);
	return EXIT_BELLJAR;
}

/* --- where the policy goes ---------------------------------------------------------------------------------- */

/* Before anything runs: the command can put something else in the place of a directory. */
static int open_out(struct study *study, struct error *error)
{
	const char *path = study->options->out_path, *slash;
	AUTO_TEXT directory = {0};

	if (!path)
		return 0;
	slash = strrchr(path, '/');
	study->out_name = slash ? slash + 1 : path;
	text_append(&directory, slash ? path : ".", slash ? (size_t)(slash - path) + 1 : 1);
	study->directory_fd = open(text_string(&directory), O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (study->directory_fd < 0)
		return error_set(error, STAGE_FILES, errno, "cannot open the directory of '%s': %s", path,
				 strerror(errno));
	if (!*study->out_name || faccessat(study->directory_fd, study->out_name, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
		error_set(error, STAGE_USAGE, EEXIST, "--out: '%s' is there already", path);
		return error_hint(error, "name a new file; `--policy %s` starts from one", path);
	}
	return 0;
}

static int write_out(const struct study *study, const struct text *document, struct error *error)
{
	AUTO_CLOSE int fd = openat(study->directory_fd, study->out_name,
				   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	ssize_t count = fd < 0 ? -1 : write(fd, document->data, document->len);

	if (count == (ssize_t)document->len)
		return 0;
	error_set(error, STAGE_FILES, count < 0 ? errno : ENOSPC, "cannot write '%s': %s", study->options->out_path,
		  strerror(count < 0 ? errno : ENOSPC));
	if (fd >= 0)
		unlinkat(study->directory_fd, study->out_name, 0);
	return -EIO;
}

/* --- asking ------------------------------------------------------------------------------------------------- */

static void show(const struct study *study, const struct text *words)
{
	if (!terminal_is_dumb(study->invocation->environment))
		dprintf(STDERR_FILENO, "%s", TERMINAL_PLAIN);
	dprintf(STDERR_FILENO, "%s", text_string(words));
}

/* One of @letters; what was typed before the question was shown is no answer. The end of what is typed is 'q'. */
static char ask(const struct study *study, const struct text *question, const char *letters)
{
	tcflush(STDIN_FILENO, TCIFLUSH);
	show(study, question);
	for (;;) {
		char line[256];
		ssize_t count = read(STDIN_FILENO, line, sizeof(line));
		size_t at = 0;

		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			return 'q';
		while ((ssize_t)at + 1 < count && (line[at] == ' ' || line[at] == '\t'))
			at++;
		if (strchr(letters, line[at]) && line[at] != '\n' && ((ssize_t)at + 1 == count || line[at + 1] == '\n'))
			return line[at];
		dprintf(STDERR_FILENO, "belljar: answer with one of the letters %s > ", letters);
	}
}

/* What would allow @access to @path; null: nothing, or it is allowed. */
static void ask_why(const struct study *study, const char *path, const char *access, struct json_value *cure_out)
{
	struct error nobodys = {0};
	AUTO_TEXT answer = {0};
	AUTO_JSON value = {0};

	if (engine_why(&study->question, path, access, true, &answer, &nobodys) != 1 ||
	    json_parse(&(struct json_input){.name = "answer", .bytes = text_string(&answer), .len = answer.len}, &value,
		       &nobodys) < 0)
		return;
	for (size_t i = 0; i < value.object.count; i++) {
		struct json_value *found = &value.object.members[i].value;

		if (strcmp(value.object.members[i].name, "cure") != 0 || !cure_flag(found) || !cure_policy(found))
			continue;
		*cure_out = *found;
		*found = (struct json_value){.type = JSON_NULL};
	}
}

/*
 * Is there a whole directory to allow instead? plan_explain says no where one holds secrets, or a home. In a private place a command
 * may write, to a directory of its own; the host's is to be shown then.
 */
static void find_directory(const struct study *study, const struct lesson *lesson, struct json_value *cure_out)
{
	const char *key, *item;
	AUTO_TEXT path = {0};
	char *slash;

	*cure_out = (struct json_value){.type = JSON_NULL};
	cure_path(&lesson->cure, &path);
	item = cure_item(&lesson->cure, &key);
	slash = path.len ? strrchr(path.data, '/') : NULL;
	if (!item || !slash || slash == path.data)
		return;
	*slash = '\0';
	ask_why(study, path.data, !strcmp(key, "rw") ? "write" : "read", cure_out);
	if (cure_out->type != JSON_NULL || strcmp(key, "rw") != 0)
		return;
	ask_why(study, path.data, "read", cure_out);
	if (cure_out->type != JSON_NULL)
		cure_make_writable(cure_out);
}

static void describe(const struct lesson *lesson, struct text *out)
{
	text_append_format(out, "%s ", lesson->access);
	escape_append(out, lesson->what, MESSAGE_NAME_MAX);
	if (lesson->process) {
		text_append_string(out, " by ");
		escape_append(out, lesson->process, MESSAGE_NAME_MAX);
	}
}

static void append_flag(const struct json_value *cure, struct text *out)
{
	escape_append(out, cure_flag(cure), MESSAGE_NAME_MAX);
}

/* Lay @cure over what is wanted. */
static int take(struct study *study, struct lesson *lesson, struct error *error)
{
	const struct policy_context context = context_of(study->invocation);
	int rc = policy_append_value(&study->wanted, cure_policy(&lesson->cure), &context, error);

	if (rc == 0) {
		lesson->answer = LESSON_TAKEN;
		lessons_cover(&study->lessons);
	}
	return rc;
}

static void take_or_say(struct study *study, struct lesson *lesson)
{
	struct error error = {0};

	if (take(study, lesson, &error) < 0)
		message_error(study->messenger, &error);
}

static void ask_about(struct study *study, struct lesson *lesson)
{
	size_t left = lessons_count(&study->lessons, LESSON_OPEN);
	AUTO_JSON directory = {0};
	AUTO_TEXT question = {0};

	find_directory(study, lesson, &directory);
	text_append_format(&question, "belljar: %zu to decide: ", left);
	describe(lesson, &question);
	text_append_string(&question, "\n  refused because: ");
	escape_append(&question, lesson->why, MESSAGE_NAME_MAX);
	if (lesson->warning) {
		text_append_string(&question, "\n  beware: ");
		escape_append(&question, lesson->warning, MESSAGE_NAME_MAX);
	}
	text_append_string(&question, "\n  y: yes, ");
	append_flag(&lesson->cure, &question);
	if (directory.type == JSON_OBJECT) {
		text_append_string(&question, "\n  d: the whole directory, ");
		append_flag(&directory, &question);
	}
	text_append_string(&question, "\n  n: no  q: stop asking > ");
	switch (ask(study, &question, directory.type == JSON_OBJECT ? "ydnq" : "ynq")) {
	case 'd':
		json_value_done(&lesson->cure);
		lesson->cure = directory;
		directory = (struct json_value){.type = JSON_NULL};
		take_or_say(study, lesson);
		break;
	case 'y':
		take_or_say(study, lesson);
		break;
	case 'q':
		study->is_over = true;
		break;
	default:
		lesson->answer = LESSON_DECLINED;
		break;
	}
}

/* Only reading, of a toolchain or of the workdir's own repository. */
static bool is_agreed_beforehand(const struct study *study, const struct lesson *lesson)
{
	AUTO_TEXT path = {0};
	const char *key;

	cure_path(&lesson->cure, &path);
	return study->options->is_agreed && path.len && cure_item(&lesson->cure, &key) && !strcmp(key, "ro") &&
	       !lesson->warning && engine_is_own_path(&study->question, text_string(&path));
}

/* How many lines were taken. */
static size_t decide(struct study *study)
{
	size_t before = lessons_count(&study->lessons, LESSON_TAKEN);
	struct error error = {0};

	for (size_t i = 0; i < study->lessons.count; i++) {
		struct lesson *lesson = &study->lessons.items[i];

		if (lesson->answer == LESSON_OPEN && is_agreed_beforehand(study, lesson))
			take(study, lesson, &error);
	}
	for (size_t i = 0; i < study->lessons.count && study->is_asking && !study->is_over; i++)
		if (study->lessons.items[i].answer == LESSON_OPEN)
			ask_about(study, &study->lessons.items[i]);
	return lessons_count(&study->lessons, LESSON_TAKEN) - before;
}

/* --- running ------------------------------------------------------------------------------------------------ */

/* What the command prints is for whoever watches; our standard output has the policy, or the answer as data. */
static int run_beside(const struct invocation *invocation, struct run_options *options,
		      const struct messenger *messenger)
{
	if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return EXIT_BELLJAR;
	return command_run(invocation, options, messenger);
}

static int prepare(struct study *study, struct error *error)
{
	struct run_options *options = study->options;
	struct policy policy = {0};

	if (policy_copy(&study->wanted, &policy) < 0)
		return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	policy_done(&options->policy);
	options->policy = policy;
	options->policy.ledger = study->level;
	if (options->policy.net == NET_NONE && study->question.rung_max == RUNG_NAMESPACE)
		options->policy.net = NET_GATE;
	if (study->has_layer)
		return child_run_set_key(options, study->invocation, "workspace", NULL, error);
	return 0;
}

/* An unchanged one is gone already. */
static void drop_layer(struct study *study)
{
	struct run_options words = {.words = (const char *[]){study->workspace}, .word_count = 1, .status_fd = -1};
	struct messenger quiet = *study->messenger;

	quiet.verbosity = -1;
	if (study->has_layer && study->workspace[0])
		command_discard(study->invocation, &words, &quiet);
	study->workspace[0] = '\0';
}

static const char *string_of(const struct json_value *result, const char *name)
{
	const struct json_member *member = result->type == JSON_OBJECT ? json_find(result, name) : NULL;

	return member && member->value.type == JSON_STRING ? member->value.string.bytes : NULL;
}

static void note_end(struct study *study, const struct json_value *result, int status)
{
	static const char *const copied[] = {"outcome", "exit_code", "signal", "error"};
	const char *outcome = string_of(result, "outcome"), *signal = string_of(result, "signal");
	struct json_writer writer = {.text = &study->ends, .needs_comma = study->runs > 1};

	json_open_object(&writer, NULL);
	for (size_t i = 0; i < ARRAY_LEN(copied) && result->type == JSON_OBJECT; i++)
		if (json_find(result, copied[i]))
			json_write_value(&writer, copied[i], &json_find(result, copied[i])->value);
	json_close_object(&writer);
	study->works = status == 0 && outcome && !strcmp(outcome, "exited");
	if (outcome && !strcmp(outcome, "exited"))
		message_note(study->messenger, "run %u: exit status %d", study->runs, status);
	else
		message_note(study->messenger, "run %u: %s%s%s", study->runs, outcome ? outcome : "failed",
			     signal ? " by " : "", signal ? signal : "");
}

/* It was not refused anything: it never started, or somebody stopped it. */
static bool is_out_of_reach(const struct json_value *result)
{
	const char *outcome = string_of(result, "outcome");

	return !outcome || !strcmp(outcome, "cancelled");
}

static int run_once(struct study *study, struct error *error)
{
	struct messenger quiet = *study->messenger;
	AUTO_JSON result = {0};
	int status, rc;

	drop_layer(study);
	rc = prepare(study, error);
	if (rc < 0)
		return rc;
	/* What it was refused is said here. */
	quiet.verbosity = quiet.verbosity > 0 ? quiet.verbosity : -1;
	study->runs++;
	status = child_run(run_beside, study->invocation, study->options, &quiet, &result);
	child_run_workspace(&result, study->workspace);
	note_end(study, &result, status);
	study->is_over = is_out_of_reach(&result);
	lessons_add(&study->lessons, &result, study->runs);
	return 0;
}

/* Every shell opens its terminal, and many runtimes look at the machine; they go on without. */
static bool is_tried_in_passing(const struct lesson *lesson)
{
	return !strcmp(lesson->what, "/dev/tty") || !strncmp(lesson->what, "/sys/", 5);
}

/* The most telling ones come first. */
static void say_warnings(const struct study *study, size_t first)
{
	for (size_t i = first, said = 0; i < study->lessons.count && said < WARNINGS_SAID; i++) {
		const struct lesson *lesson = &study->lessons.items[i];
		AUTO_TEXT words = {0};

		if (lesson->answer != LESSON_WARNED || !lesson->warning || is_tried_in_passing(lesson))
			continue;
		said++;
		describe(lesson, &words);
		message_note(study->messenger, "refused, and no change is proposed: %s: %s", text_string(&words),
			     lesson->why);
		message_hint(study->messenger, "%s", lesson->warning);
	}
}

static bool has_question(const struct study *study, size_t first)
{
	for (size_t i = first; i < study->lessons.count; i++)
		if (study->lessons.items[i].answer != LESSON_WARNED)
			return true;
	return false;
}

/*
 * It failed, and was refused nothing that could be allowed. Names that a program only looks for, by stat(), are told by the other level,
 * which does not tell addresses and changes. It is run again only if somebody has agreed to that.
 */
static bool look_for_names(struct study *study, size_t known)
{
	if (study->is_over || study->level == LEDGER_FILES || has_question(study, known) ||
	    (!study->is_asking && !study->options->is_agreed))
		return false;
	study->level = LEDGER_FILES;
	message_note(study->messenger,
		     "nothing is known that could be allowed; running it once more to see what it looks for");
	return true;
}

static int study_command(struct study *study, struct error *error)
{
	while (study->runs < RUNS_MAX) {
		size_t known = study->lessons.count;
		int rc = run_once(study, error);

		if (rc < 0 || study->works || study->is_over)
			return rc;
		say_warnings(study, known);
		if (decide(study) && !study->is_over)
			study->level = study->first_level;
		else if (!look_for_names(study, known))
			return 0;
	}
	return 0;
}

/* --- before the first run ----------------------------------------------------------------------------------- */

/* False: it is not to be run at all. */
static bool agree_to_repeat(struct study *study)
{
	AUTO_TEXT question = {0};

	/* Each run has one of its own; one with a name is kept from run to run. */
	study->has_layer = study->wanted.workspace == WORKSPACE_COW && !study->wanted.workspace_name;
	if (!study->is_asking && !study->options->is_agreed)
		return true;
	message_note(study->messenger, "the command is run again after each round of answers; what it changes%s stays",
		     study->has_layer ? " outside of the layer" : "");
	if (study->wanted.workspace == WORKSPACE_COW || study->wanted.workdir_choice == WORKDIR_PRIVATE)
		return true;
	if (!study->is_asking) {
		message_hint(study->messenger, "with --cow each run starts from your files as they are now");
		return true;
	}
	text_append_string(&question, "  c: on a layer over the workdir, so that each run starts from your files as "
				      "they are\n  r: on the files themselves  q: not at all > ");
	switch (ask(study, &question, "crq")) {
	case 'c':
		study->has_layer = true;
		return true;
	case 'r':
		return true;
	default:
		return false;
	}
}

/* --- the end ------------------------------------------------------------------------------------------------ */

static void say_what_is_not_seen(const struct study *study)
{
	AUTO(string_list_done) struct string_list names = {0};
	struct error nobodys = {0};
	AUTO_TEXT words = {0};

	if (engine_withheld_variables(&study->question, &names, &nobodys) < 0)
		return;
	for (size_t i = 0; i < names.count && i < WITHHELD_SAID; i++)
		text_append_format(&words, "%s%s", i ? ", " : "", names.items[i]);
	message_note(study->messenger, "nothing else that was refused is known; what Belljar cannot see:");
	message_hint(study->messenger, "a variable that the command wants (--pass-env NAME); withheld: %s%s",
		     names.count ? text_string(&words) : "none", names.count > WITHHELD_SAID ? " ..." : "");
	if (!study->options->has_pty)
		message_hint(study->messenger, "a terminal that it wants (--pty)");
}

static void say_proposals(const struct study *study)
{
	for (size_t i = 0; i < study->lessons.count; i++) {
		const struct lesson *lesson = &study->lessons.items[i];
		AUTO_TEXT words = {0};

		if (lesson->answer != LESSON_OPEN)
			continue;
		describe(lesson, &words);
		message_note(study->messenger, "refused: %s: %s", text_string(&words), lesson->why);
		message_hint(study->messenger, "to allow it, say %s", cure_flag(&lesson->cure));
	}
	message_note(study->messenger,
		     "nobody can be asked here: give learn what you allow of this as options, and run it again");
}

static void write_lessons(const struct study *study, enum lesson_answer answer, struct json_writer *writer,
			  const char *key)
{
	json_open_array(writer, key);
	for (size_t i = 0; i < study->lessons.count; i++) {
		const struct lesson *lesson = &study->lessons.items[i];
		AUTO_JSON directory = {0};

		if (lesson->answer != answer)
			continue;
		json_open_object(writer, NULL);
		for (size_t k = 0; k < lesson->entry.object.count; k++)
			if (strcmp(lesson->entry.object.members[k].name, "cure") != 0)
				json_write_value(writer, lesson->entry.object.members[k].name,
						 &lesson->entry.object.members[k].value);
		json_write_value(writer, "cure", &lesson->cure);
		if (answer == LESSON_OPEN) {
			find_directory(study, lesson, &directory);
			json_write_value(writer, "directory", &directory);
		}
		json_close_object(writer);
	}
	json_close_array(writer);
}

static const char *next_step(const struct study *study)
{
	if (study->works)
		return "The command works with this policy.";
	if (lessons_count(&study->lessons, LESSON_OPEN))
		return "Ask whoever may decide about each question. For yes, run `belljar learn` again with the flag of its "
		       "cure, or of its directory, before the command; for no, leave it out. Trying again without a "
		       "change will not help.";
	return "Nothing that a change of the policy would allow was refused: what fails is the command's own, or "
	       "nothing that Belljar sees, such as a variable (--pass-env) or a terminal (--pty).";
}

static void write_answer(const struct study *study, const struct text *document, bool is_written, struct text *out)
{
	struct json_writer writer = {.text = out};
	struct error nobodys = {0};
	AUTO_JSON policy = {0};

	if (json_parse(&(struct json_input){.name = "policy", .bytes = text_string(document), .len = document->len},
		       &policy, &nobodys) < 0)
		policy = (struct json_value){.type = JSON_NULL};
	json_open_object(&writer, NULL);
	json_write_integer(&writer, "version", 1);
	json_write_bool(&writer, "works", study->works);
	json_open_array(&writer, "runs");
	text_append(out, study->ends.data, study->ends.len);
	json_close_array(&writer);
	write_lessons(study, LESSON_OPEN, &writer, "questions");
	write_lessons(study, LESSON_TAKEN, &writer, "allowed");
	write_lessons(study, LESSON_WARNED, &writer, "refused");
	json_write_value(&writer, "policy", &policy);
	json_write_string(&writer, "file", is_written ? study->options->out_path : NULL);
	json_write_string(&writer, "workspace", study->workspace[0] ? study->workspace : NULL);
	json_write_string(&writer, "next", next_step(study));
	json_close_object(&writer);
	text_append_char(out, '\n');
}

static void say_end(const struct study *study, bool is_json)
{
	size_t taken = lessons_count(&study->lessons, LESSON_TAKEN);

	if (study->works)
		message_note(study->messenger, "the command works; lines that were learned: %zu", taken);
	else if (!study->is_asking && !is_json && lessons_count(&study->lessons, LESSON_OPEN))
		say_proposals(study);
	else if (!study->is_over && !lessons_count(&study->lessons, LESSON_OPEN))
		say_what_is_not_seen(study);
	if (study->workspace[0])
		message_note(study->messenger, "what the last run changed is in the workspace %s: `belljar diff %s`",
			     study->workspace, study->workspace);
}

static int finish(struct study *study, bool is_json)
{
	const struct learned_policy learned = {.policy = &study->wanted,
					       .lessons = &study->lessons,
					       .program = study->options->is_shell_string ? "a line for the shell"
											  : study->options->command[0],
					       .works = study->works};
	bool is_worth_it = study->works || lessons_count(&study->lessons, LESSON_TAKEN), is_written = false;
	AUTO_TEXT document = {0}, out = {0};
	struct error error = {0};
	int rc = learned_policy_write(&learned, study->invocation, &document, &error);

	if (!study->works)
		drop_layer(study);
	say_end(study, is_json);
	if (rc == 0 && study->out_name && is_worth_it) {
		rc = write_out(study, &document, &error);
		is_written = rc == 0;
	}
	if (is_written)
		message_note(study->messenger, "written: %s; `belljar policy test %s` passes", study->options->out_path,
			     study->options->out_path);
	if (rc < 0)
		message_error(study->messenger, &error);
	if (is_json)
		write_answer(study, &document, is_written, &out);
	else if (!is_written && is_worth_it)
		text_append(&out, document.data, document.len); /* an answer that was given is not lost */
	if (print_out(&out, study->messenger) != 0 || rc < 0)
		return EXIT_BELLJAR;
	return study->works ? 0 : EXIT_NOT_YET;
}

static int learn(struct study *study, struct error *error)
{
	bool is_json = study->options->has_json;
	int rc = open_out(study, error);

	study->options->has_json = false; /* ours, not the run's */
	study->level = study->first_level =
		study->options->policy.ledger == LEDGER_BASIC ? LEDGER_TRACE : study->options->policy.ledger;
	if (rc == 0 && policy_copy(&study->options->policy, &study->wanted) < 0)
		rc = error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	if (rc < 0 || !agree_to_repeat(study))
		return rc < 0 ? rc : EXIT_NOT_YET;
	rc = study_command(study, error);
	return rc < 0 ? rc : finish(study, is_json);
}

int command_learn(const struct invocation *invocation, struct run_options *options, const struct messenger *messenger)
{
	struct study study = {
		.invocation = invocation,
		.options = options,
		.messenger = messenger,
		.directory_fd = -1,
		.is_asking = !options->has_json && isatty(STDIN_FILENO) && isatty(STDERR_FILENO) &&
			     tcgetpgrp(STDIN_FILENO) == getpgrp(),
	};
	struct error error = {0};
	int rc;

	study.question = question_of(invocation, &study.wanted);
	rc = learn(&study, &error);

	lessons_done(&study.lessons);
	policy_done(&study.wanted);
	text_done(&study.ends);
	close_fd(&study.directory_fd);
	return rc < 0 ? fail(messenger, &error) : rc;
}
