/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/command_hook.c - `hook`: have a coding agent's shell commands run in jars
 *
 * An agent asks its hooks before it uses a tool: an event on standard input, an answer on standard output. A shell command comes back as
 * `belljar run ... -- bash -c COMMAND`. Whatever goes wrong blocks the command (exit status 2): with any other failure an agent would run
 * it as it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json_write.h"
#include "cli/commands.h"

#define EVENT_MAX ((size_t)4 << 20)

/* What agents call the same things. */
static const struct agent {
	const char *name;
	const char *event;     /* of its hooks */
	const char *tool;      /* that runs shell commands */
	const char *rewritten; /* member of the answer that has the tool's new input */
	const char *settings;  /* in the project */
	const char *remark;    /* what else has to be done; NULL: nothing */
	bool has_failure_key;  /* "onFailure": "block": a hook that cannot be started blocks the command too */
	bool can_ask;          /* its user, about the command that it was given */
} agents[] = {
	{"claude", "PreToolUse", "Bash", "updatedInput", ".claude/settings.json", NULL, true, true},
	{"codex", "PreToolUse", "Bash", "updatedInput", ".codex/hooks.json",
	 "codex skips a new hook until you have trusted it: /hooks", false, false},
	{"gemini", "BeforeTool", "run_shell_command", "tool_input", ".gemini/settings.json",
	 "gemini skips a project's hooks until you have trusted the folder (/permissions), and with --skip-trust; those in your home "
	 "directory it never skips",
	 false, false},
};

static const struct agent *find_agent(const char *name)
{
	for (size_t i = 0; name && i < ARRAY_LEN(agents); i++)
		if (!strcmp(agents[i].name, name))
			return &agents[i];
	return NULL;
}

/* As a shell reads it back: one word. */
static void append_quoted(struct text *out, const char *word)
{
	text_append_char(out, '\'');
	for (; *word; word++) {
		if (*word == '\'')
			text_append_string(out, "'\\''");
		else
			text_append_char(out, *word);
	}
	text_append_char(out, '\'');
}

/* The options that this hook was given, but for what chooses what it does. @is_for_run: those that `run` has too. */
static void append_options(struct text *out, const struct run_options *options, bool is_for_run)
{
	int words_left = options->word_count;

	for (int i = 0; i < options->argument_count; i++) {
		const char *argument = options->arguments[i];

		if (words_left && !strcmp(argument, options->words[options->word_count - words_left])) {
			words_left--;
			continue;
		}
		if (!strcmp(argument, "--yes") || (is_for_run && !strcmp(argument, "--confirm")))
			continue;
		text_append_char(out, ' ');
		append_quoted(out, argument);
	}
}

static int read_all(int fd, struct text *out)
{
	for (;;) {
		char *room = text_reserve(out, 65536);
		ssize_t count = room ? read(fd, room, 65536) : -1;

		if (count < 0 && room && errno == EINTR)
			continue;
		if (count < 0)
			return room ? -errno : -ENOMEM;
		if (count == 0)
			return out->len > EVENT_MAX ? -EFBIG : 0;
		out->len += (size_t)count;
		if (out->len > EVENT_MAX)
			return -EFBIG;
	}
}

static const struct json_value *find(const struct json_value *object, const char *name, enum json_type type)
{
	const struct json_member *member = object && object->type == JSON_OBJECT ? json_find(object, name) : NULL;

	return member && member->value.type == type ? &member->value : NULL;
}

/* The program that runs now, also where it is not in the agent's PATH. */
static void append_program(struct text *out)
{
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

	path[len > 0 ? len : 0] = '\0';
	append_quoted(out, len > 0 ? path : "belljar");
}

static void write_answer(const struct agent *agent, const struct json_value *input, const char *command, bool is_asking,
			 struct text *out)
{
	struct json_writer writer = {.text = out};

	json_open_object(&writer, NULL);
	json_open_object(&writer, "hookSpecificOutput");
	json_write_string(&writer, "hookEventName", agent->event);
	json_write_string(&writer, "permissionDecision", is_asking ? "ask" : "allow");
	json_write_string(&writer, "permissionDecisionReason",
			  is_asking ? "the user decides; the command would run in a jar" : "the command runs in a jar");
	json_open_object(&writer, agent->rewritten);
	for (size_t i = 0; i < input->object.count; i++)
		if (strcmp(input->object.members[i].name, "command"))
			json_write_value(&writer, input->object.members[i].name, &input->object.members[i].value);
	json_write_string(&writer, "command", command);
	json_close_object(&writer);
	json_close_object(&writer);
	json_close_object(&writer);
	text_append_char(out, '\n');
}

static int answer_event(const struct agent *agent, const struct run_options *options, struct text *out,
			struct error *error)
{
	AUTO_TEXT bytes = {0}, line = {0};
	AUTO_JSON event = {0};
	int rc = read_all(STDIN_FILENO, &bytes);
	struct json_input input = {.name = "event",
				   .bytes = text_string(&bytes),
				   .len = bytes.len,
				   .stage = STAGE_USAGE,
				   .max_bytes = EVENT_MAX,
				   .max_entries = 100000};
	const struct json_value *name, *command;

	if (rc < 0)
		return error_set(error, STAGE_USAGE, -rc, "cannot read the event: %s", strerror(-rc));
	rc = json_parse(&input, &event, error);
	if (rc < 0)
		return rc;
	name = find(&event, "tool_name", JSON_STRING);
	if (!name)
		return error_set(error, STAGE_USAGE, 0, "the event does not name a tool");
	if (strcmp(name->string.bytes, agent->tool)) {
		text_append_string(out, "{}\n"); /* not for us */
		return 0;
	}
	command = find(find(&event, "tool_input", JSON_OBJECT), "command", JSON_STRING);
	if (!command)
		return error_set(error, STAGE_USAGE, 0, "the event has no command");
	append_program(&line);
	text_append_string(&line, " run");
	append_options(&line, options, true);
	/* What agents write is for bash. */
	text_append_string(&line, access("/bin/bash", X_OK) == 0 ? " -- bash -c " : " -- sh -c ");
	append_quoted(&line, command->string.bytes);
	write_answer(agent, find(&event, "tool_input", JSON_OBJECT), text_string(&line), options->has_confirm, out);
	return text_failed(&line) || text_failed(out)
		       ? error_set(error, STAGE_ENGINE, ENOMEM, "no memory for the answer")
		       : 0;
}

/* --- settings ----------------------------------------------------------------------------------------------- */

static void write_entry(struct json_writer *writer, const struct agent *agent, const char *command)
{
	json_open_object(writer, NULL);
	json_write_string(writer, "matcher", agent->tool);
	json_open_array(writer, "hooks");
	json_open_object(writer, NULL);
	json_write_string(writer, "type", "command");
	json_write_string(writer, "command", command);
	if (agent->has_failure_key)
		json_write_string(writer, "onFailure", "block");
	json_close_object(writer);
	json_close_array(writer);
	json_close_object(writer);
}

/* Everything that was there, and one entry more in hooks.EVENT. */
static void write_settings(const struct agent *agent, const struct json_value *before, const char *command,
			   struct text *out)
{
	struct json_writer writer = {.text = out, .indent = 2};
	const struct json_value *hooks = find(before, "hooks", JSON_OBJECT);
	const struct json_value *entries = find(hooks, agent->event, JSON_LIST);

	json_open_object(&writer, NULL);
	for (size_t i = 0; before->type == JSON_OBJECT && i < before->object.count; i++)
		if (strcmp(before->object.members[i].name, "hooks"))
			json_write_value(&writer, before->object.members[i].name, &before->object.members[i].value);
	json_open_object(&writer, "hooks");
	for (size_t i = 0; hooks && i < hooks->object.count; i++)
		if (strcmp(hooks->object.members[i].name, agent->event))
			json_write_value(&writer, hooks->object.members[i].name, &hooks->object.members[i].value);
	json_open_array(&writer, agent->event);
	for (size_t i = 0; entries && i < entries->list.count; i++)
		json_write_value(&writer, NULL, &entries->list.items[i]);
	write_entry(&writer, agent, command);
	json_close_array(&writer);
	json_close_object(&writer);
	json_close_object(&writer);
	text_append_char(out, '\n');
}

/* What is there must be understood before it is written anew. */
static int read_settings(const struct agent *agent, struct text *bytes, struct json_value *out, struct error *error)
{
	AUTO_CLOSE int fd = open(agent->settings, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct json_input input = {
		.name = agent->settings, .stage = STAGE_USAGE, .max_bytes = EVENT_MAX, .max_entries = 100000};
	const struct json_member *hooks, *entries;
	int rc;

	if (fd < 0 && errno == ENOENT)
		return 0;
	rc = fd < 0 ? -errno : read_all(fd, bytes);
	if (rc < 0)
		return error_set(error, STAGE_USAGE, -rc, "cannot read '%s': %s", agent->settings, strerror(-rc));
	input.bytes = text_string(bytes);
	input.len = bytes->len;
	rc = json_parse(&input, out, error);
	if (rc < 0)
		return rc;
	hooks = out->type == JSON_OBJECT ? json_find(out, "hooks") : NULL;
	entries = hooks && hooks->value.type == JSON_OBJECT ? json_find(&hooks->value, agent->event) : NULL;
	if (out->type != JSON_OBJECT || (hooks && hooks->value.type != JSON_OBJECT) ||
	    (entries && entries->value.type != JSON_LIST))
		return error_set(error, STAGE_USAGE, 0, "'%s' is not laid out as settings are; change it by hand",
				 agent->settings);
	return 0;
}

static int make_directory(const char *path)
{
	const char *slash = strchr(path, '/');
	char name[64];

	snprintf(name, sizeof(name), "%.*s", (int)(slash - path), path);
	return mkdir(name, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

/* Whole or not at all. A link is not followed: what it leads to is somebody else's. */
static int replace_file(const char *path, const struct text *content)
{
	AUTO_CLOSE int fd = -1;
	char name[96];
	struct stat status;
	int rc = make_directory(path);

	if (rc < 0)
		return rc;
	snprintf(name, sizeof(name), "%s.belljar-new", path);
	fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return -errno;
	if (lstat(path, &status) == 0 && S_ISREG(status.st_mode))
		fchmod(fd, status.st_mode & 0777);
	if (write(fd, content->data, content->len) != (ssize_t)content->len || fsync(fd) < 0 ||
	    rename(name, path) < 0) {
		rc = errno ? -errno : -EIO;
		unlink(name);
	}
	return rc;
}

static int install(const struct agent *agent, const struct run_options *options, struct text *out, struct error *error)
{
	AUTO_TEXT bytes = {0}, command = {0}, settings = {0}, entry = {0}, quoted = {0};
	struct json_writer writer = {.text = &entry, .indent = 2};
	struct json_writer quoter = {.text = &quoted};
	AUTO_JSON before = {0};
	int rc = read_settings(agent, &bytes, &before, error);

	if (rc < 0)
		return rc;
	append_program(&command);
	text_append_format(&command, " hook %s", agent->name);
	append_options(&command, options, false);
	json_write_string(&quoter, NULL, text_string(&command));
	if (bytes.len && strstr(bytes.data, text_string(&quoted))) {
		text_append_format(out, "%s has it already\n", agent->settings);
		return 0;
	}
	write_entry(&writer, agent, text_string(&command));
	write_settings(agent, &before, text_string(&command), &settings);
	text_append_format(out, "%s, hooks.%s: one entry more:\n%s\n", agent->settings, agent->event,
			   text_string(&entry));
	if (agent->remark)
		text_append_format(out, "%s\n", agent->remark);
	if (!options->is_agreed) {
		text_append_string(out, "nothing was changed; --yes makes this change\n");
		return 0;
	}
	rc = text_failed(&settings) ? -ENOMEM : replace_file(agent->settings, &settings);
	if (rc < 0)
		return error_set(error, STAGE_USAGE, -rc, "cannot write '%s': %s", agent->settings, strerror(-rc));
	text_append_format(out, "written: %s\n", agent->settings);
	return 0;
}

int command_hook(const struct invocation *invocation, struct run_options *options, const struct messenger *messenger)
{
	bool is_install = !strcmp(options->words[0], "install");
	const struct agent *agent = find_agent(options->words[is_install ? 1 : 0]);
	struct error error = {0};
	AUTO_TEXT out = {0};
	int rc;

	if (!agent || options->word_count != (is_install ? 2 : 1)) {
		rc = error_set(&error, STAGE_USAGE, 0, "name one agent: claude, codex or gemini");
		error_hint(&error, "usage: belljar hook [install] claude|codex|gemini [options]");
	} else if (options->has_confirm && !agent->can_ask) {
		/* It would take the answer for a failure of the hook, and run the command as it is. */
		rc = error_set(&error, STAGE_USAGE, 0, "%s cannot be told by a hook to ask its user", agent->name);
	} else {
		rc = is_install ? install(agent, options, &out, &error) : answer_event(agent, options, &out, &error);
	}
	if (rc == 0)
		rc = print_out(&out, messenger) == 0 ? 0 : -EIO;
	else
		message_error(messenger, &error);
	return rc == 0 ? 0 : EXIT_HOOK_BLOCKS;
}
