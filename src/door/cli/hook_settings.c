/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/hook_settings.c - put the hook into an agent's settings, and take it out again
 *
 * The settings belong to the user: everything else in them stays, and nothing is written before it was shown and agreed to.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_write.h"
#include "door/cli/hook.h"

#define PATH_SIZE 96

struct settings {
	char path[PATH_SIZE];
	struct text bytes;
	struct json_value document; /* null: there is no file */
};

static void settings_done(struct settings *settings)
{
	text_done(&settings->bytes);
	json_value_done(&settings->document);
}

/* --- reading ------------------------------------------------------------------------------------------------ */

/* Comments would be lost. */
static bool has_comments(const char *bytes, size_t len)
{
	bool is_in_string = false;

	for (size_t i = 0; i < len; i++) {
		if (is_in_string && bytes[i] == '\\')
			i++;
		else if (bytes[i] == '"')
			is_in_string = !is_in_string;
		else if (!is_in_string && bytes[i] == '/')
			return true;
	}
	return false;
}

static bool is_laid_out(const struct agent *agent, const struct json_value *document)
{
	const struct json_member *hooks = document->type == JSON_OBJECT ? json_find(document, "hooks") : NULL;
	const struct json_member *entries =
		hooks && hooks->value.type == JSON_OBJECT ? json_find(&hooks->value, agent->event) : NULL;

	return document->type == JSON_OBJECT && (!hooks || hooks->value.type == JSON_OBJECT) &&
	       (!entries || entries->value.type == JSON_LIST);
}

/* Parse the settings that exist before writing them again. */
static int read_settings(const struct agent *agent, struct settings *out, struct error *error)
{
	AUTO_CLOSE int fd = -1;
	struct json_input input = {
		.name = out->path, .stage = STAGE_USAGE, .max_bytes = HOOK_EVENT_MAX, .max_entries = 100000};
	int rc;

	snprintf(out->path, sizeof(out->path), "%s/%s", agent->directory, agent->settings);
	fd = open(out->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 && errno == ENOENT)
		return 0;
	rc = fd < 0 ? -errno : text_read_all(&out->bytes, fd, HOOK_EVENT_MAX);
	if (rc < 0)
		return error_set(error, STAGE_USAGE, -rc, "cannot read '%s': %s", out->path, strerror(-rc));
	input.bytes = text_string(&out->bytes);
	input.len = out->bytes.len;
	rc = json_parse(&input, &out->document, error);
	if (rc < 0)
		return rc;
	if (!is_laid_out(agent, &out->document))
		return error_set(error, STAGE_USAGE, 0,
				 "'%s' does not have the layout of a settings file; change it by hand", out->path);
	if (has_comments(out->bytes.data, out->bytes.len))
		return error_set(error, STAGE_USAGE, 0, "'%s' has comments, which would be lost; change it by hand",
				 out->path);
	return 0;
}

/* --- writing ------------------------------------------------------------------------------------------------ */

/* Whole or not at all, with the mode and the owner that the file had. A link is not followed: it may lead to another user's file. */
static int replace_file(const char *path, const struct text *content)
{
	AUTO_CLOSE int fd = -1;
	char name[PATH_SIZE + 16];
	struct stat status;
	int rc = 0;

	snprintf(name, sizeof(name), "%s.belljar-new", path);
	fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return -errno;
	errno = 0;
	if ((lstat(path, &status) == 0 && S_ISREG(status.st_mode) &&
	     (fchown(fd, status.st_uid, status.st_gid) < 0 || fchmod(fd, status.st_mode & 0777) < 0)) ||
	    write(fd, content->data, content->len) != (ssize_t)content->len || fsync(fd) < 0 ||
	    rename(name, path) < 0) {
		rc = errno ? -errno : -EIO;
		unlink(name);
	}
	return rc;
}

static int write_settings(const struct agent *agent, const struct settings *settings, const struct text *content,
			  struct error *error)
{
	int rc = text_failed(content) ? -ENOMEM : 0;

	if (rc == 0 && mkdir(agent->directory, 0755) < 0 && errno != EEXIST)
		rc = -errno;
	if (rc == 0)
		rc = replace_file(settings->path, content);
	if (rc < 0)
		return error_set(error, STAGE_USAGE, -rc, "cannot write '%s': %s", settings->path, strerror(-rc));
	return 0;
}

/* The members of @object but one. */
static void write_others(struct json_writer *writer, const struct json_value *object, const char *name)
{
	for (size_t i = 0; object && object->type == JSON_OBJECT && i < object->object.count; i++)
		if (strcmp(object->object.members[i].name, name))
			json_write_value(writer, object->object.members[i].name, &object->object.members[i].value);
}

/* --- installing --------------------------------------------------------------------------------------------- */

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
static void write_with_entry(const struct agent *agent, const struct json_value *before, const char *command,
			     struct text *out)
{
	struct json_writer writer = {.text = out, .indent = 2};
	const struct json_value *hooks = json_member(before, "hooks", JSON_OBJECT);
	const struct json_value *entries = json_member(hooks, agent->event, JSON_LIST);

	json_open_object(&writer, NULL);
	write_others(&writer, before, "hooks");
	json_open_object(&writer, "hooks");
	write_others(&writer, hooks, agent->event);
	json_open_array(&writer, agent->event);
	for (size_t i = 0; entries && i < entries->list.count; i++)
		json_write_value(&writer, NULL, &entries->list.items[i]);
	write_entry(&writer, agent, command);
	json_close_array(&writer);
	json_close_object(&writer);
	json_close_object(&writer);
	text_append_char(out, '\n');
}

int cli_hook_install(const struct agent *agent, const char *command, bool is_agreed, struct text *out,
		     struct error *error)
{
	AUTO(settings_done) struct settings settings = {0};
	AUTO_TEXT content = {0}, entry = {0}, quoted = {0};
	struct json_writer writer = {.text = &entry, .indent = 2}, quoter = {.text = &quoted};
	int rc = read_settings(agent, &settings, error);

	if (rc < 0)
		return rc;
	json_write_string(&quoter, NULL, command);
	if (settings.bytes.len && strstr(settings.bytes.data, text_string(&quoted))) {
		text_append_format(out, "%s has it already\n", settings.path);
		return 0;
	}
	write_entry(&writer, agent, command);
	write_with_entry(agent, &settings.document, command, &content);
	text_append_format(out, "%s, hooks.%s: one entry more:\n%s\n", settings.path, agent->event,
			   text_string(&entry));
	if (agent->remark)
		text_append_format(out, "%s\n", agent->remark);
	if (!is_agreed) {
		text_append_string(out, "nothing was changed; --yes makes this change\n");
		return 0;
	}
	rc = write_settings(agent, &settings, &content, error);
	if (rc == 0)
		text_append_format(out, "written: %s\n", settings.path);
	return rc;
}

/* --- uninstalling ------------------------------------------------------------------------------------------- */

/* The next word of a command line as a shell reads it, as far as that needs no expansion. False: there is no more. */
static bool next_word(const char **at, struct text *out)
{
	char quote = '\0';
	const char *c = *at;

	while (*c == ' ' || *c == '\t')
		c++;
	if (!*c)
		return false;
	text_clear(out);
	for (; *c && (quote || (*c != ' ' && *c != '\t')); c++) {
		if (*c == quote)
			quote = '\0';
		else if (!quote && (*c == '\'' || *c == '"'))
			quote = *c;
		else if (*c == '\\' && quote != '\'' && c[1])
			text_append_char(out, *++c);
		else
			text_append_char(out, *c);
	}
	*at = c;
	return true;
}

/* Is the word a path of belljar, or of this very program, whatever its name is? */
static bool is_program(const char *word)
{
	const char *slash = strrchr(word, '/');
	char own[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", own, sizeof(own) - 1);

	own[MAX_OF(len, 0)] = '\0';
	return !strcmp(slash ? slash + 1 : word, "belljar") || !strcmp(word, own);
}

/* Does the command run `belljar hook AGENT`, by whatever path, or as a module of Python? */
static bool is_ours(const struct agent *agent, const char *command)
{
	const char *const wanted[] = {"hook", agent->name};
	AUTO_TEXT word = {0};
	size_t matched = 0; /* words of `belljar hook AGENT` */

	while (matched < 3 && next_word(&command, &word)) {
		if (matched && !strcmp(text_string(&word), wanted[matched - 1]))
			matched++;
		else
			matched = is_program(text_string(&word));
	}
	return matched == 3;
}

static const char *command_of(const struct json_value *hook)
{
	const struct json_value *command = json_member(hook, "command", JSON_STRING);

	return command ? command->string.bytes : "";
}

static size_t count_ours(const struct agent *agent, const struct json_value *entry)
{
	const struct json_value *inner = json_member(entry, "hooks", JSON_LIST);
	size_t count = 0;

	for (size_t i = 0; inner && i < inner->list.count; i++)
		count += is_ours(agent, command_of(&inner->list.items[i]));
	return count;
}

/* An entry without our commands; one that had no others is left out. */
static void write_rest(struct json_writer *writer, const struct agent *agent, const struct json_value *entry)
{
	const struct json_value *inner = json_member(entry, "hooks", JSON_LIST);
	size_t ours = count_ours(agent, entry);

	if (!ours) {
		json_write_value(writer, NULL, entry);
		return;
	}
	if (ours == inner->list.count)
		return;
	json_open_object(writer, NULL);
	write_others(writer, entry, "hooks");
	json_open_array(writer, "hooks");
	for (size_t i = 0; i < inner->list.count; i++)
		if (!is_ours(agent, command_of(&inner->list.items[i])))
			json_write_value(writer, NULL, &inner->list.items[i]);
	json_close_array(writer);
	json_close_object(writer);
}

/* Say which commands go. How many there are. */
static size_t list_ours(const struct agent *agent, const struct json_value *entries, struct text *out)
{
	size_t count = 0;

	for (size_t i = 0; entries && i < entries->list.count; i++) {
		const struct json_value *inner = json_member(&entries->list.items[i], "hooks", JSON_LIST);

		for (size_t j = 0; inner && j < inner->list.count; j++) {
			if (!is_ours(agent, command_of(&inner->list.items[j])))
				continue;
			text_append_format(out, "  %s\n", command_of(&inner->list.items[j]));
			count++;
		}
	}
	return count;
}

/* Everything but our commands. Lists and objects that are empty without them are left out. */
static void write_without(const struct agent *agent, const struct json_value *before, struct text *out)
{
	struct json_writer writer = {.text = out, .indent = 2};
	const struct json_value *hooks = json_member(before, "hooks", JSON_OBJECT);
	const struct json_value *entries = json_member(hooks, agent->event, JSON_LIST);
	size_t left = 0;

	for (size_t i = 0; i < entries->list.count; i++) {
		const struct json_value *inner = json_member(&entries->list.items[i], "hooks", JSON_LIST);

		left += !inner || !inner->list.count || count_ours(agent, &entries->list.items[i]) < inner->list.count;
	}
	json_open_object(&writer, NULL);
	write_others(&writer, before, "hooks");
	if (left || hooks->object.count > 1) {
		json_open_object(&writer, "hooks");
		write_others(&writer, hooks, agent->event);
		if (left)
			json_open_array(&writer, agent->event);
		for (size_t i = 0; left && i < entries->list.count; i++)
			write_rest(&writer, agent, &entries->list.items[i]);
		if (left)
			json_close_array(&writer);
		json_close_object(&writer);
	}
	json_close_object(&writer);
	text_append_char(out, '\n');
}

int cli_hook_uninstall(const struct agent *agent, bool is_agreed, struct text *out, struct error *error)
{
	AUTO(settings_done) struct settings settings = {0};
	AUTO_TEXT content = {0}, list = {0};
	int rc = read_settings(agent, &settings, error);

	if (rc < 0)
		return rc;
	if (!list_ours(agent,
		       json_member(json_member(&settings.document, "hooks", JSON_OBJECT), agent->event, JSON_LIST),
		       &list)) {
		text_append_format(out, "%s has no hook of belljar\n", settings.path);
		return 0;
	}
	text_append_format(out, "%s, hooks.%s: to be removed:\n%s", settings.path, agent->event, text_string(&list));
	if (!is_agreed) {
		text_append_string(out, "nothing was changed; --yes makes this change\n");
		return 0;
	}
	write_without(agent, &settings.document, &content);
	rc = write_settings(agent, &settings, &content, error);
	if (rc == 0)
		text_append_format(out, "written: %s\n", settings.path);
	return rc;
}
