/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/lessons.c - the lines that a policy could have more, from what a command was refused
 *
 * Each line is a cure that the ledger has, or that `why` has for a directory: learning decides nothing about secrets by itself.
 */
#include "door/cli/lessons.h"

#include <string.h>

#include "base/escape.h"
#include "base/paths.h"
#include "engine/engine_why.h"

/* A cache has a directory for every two letters. More of one directory's than these are a line about all of it. */
#define SIBLINGS_MAX 3

static const struct json_value *find(const struct json_value *object, const char *name, enum json_type type)
{
	const struct json_member *member = object->type == JSON_OBJECT ? json_find(object, name) : NULL;

	return member && member->value.type == type ? &member->value : NULL;
}

static const char *string_of(const struct json_value *object, const char *name)
{
	const struct json_value *value = find(object, name, JSON_STRING);

	return value ? value->string.bytes : NULL;
}

/* --- cures -------------------------------------------------------------------------------------------------- */

const char *cli_cure_flag(const struct json_value *cure)
{
	return string_of(cure, "flag");
}

const struct json_value *cli_cure_policy(const struct json_value *cure)
{
	return find(cure, "policy", JSON_OBJECT);
}

const char *cli_cure_item(const struct json_value *cure, const char **key_out)
{
	const struct json_value *policy = cli_cure_policy(cure), *list;

	if (!policy || policy->object.count != 1)
		return NULL;
	list = &policy->object.members[0].value;
	if (list->type != JSON_LIST || list->list.count != 1 || list->list.items[0].type != JSON_STRING)
		return NULL;
	*key_out = policy->object.members[0].name;
	return list->list.items[0].string.bytes;
}

/* The one place of the host that a cure would show, "" if it is about something else. */
static void cure_path(const struct json_value *cure, struct text *out)
{
	const char *key, *at = cli_cure_item(cure, &key);

	if (!at || (strcmp(key, "ro") != 0 && strcmp(key, "rw") != 0))
		return;
	/* As policy_escape_path() has written it. */
	for (; *at; at++) {
		at += *at == '\\' && at[1];
		text_append_char(out, *at);
	}
}

/* Of a cure that shows a place read-only, one that shows it writable. */
static void cure_make_writable(struct json_value *cure)
{
	for (size_t i = 0; i < cure->object.count; i++) {
		struct json_value *value = &cure->object.members[i].value;

		if (value->type == JSON_STRING && !strncmp(value->string.bytes, "--ro ", 5))
			memcpy(value->string.bytes, "--rw ", 5);
		if (value->type == JSON_OBJECT && value->object.count == 1 &&
		    !strcmp(value->object.members[0].name, "ro"))
			memcpy(value->object.members[0].name, "rw", 2);
	}
}

/* --- directories -------------------------------------------------------------------------------------------- */

/* Ask `why` for the cure of reading @path. Null: there is none, or nothing is refused. */
static void ask_why(const struct engine_request *question, const char *path, struct json_value *cure_out)
{
	struct error unused = {0};
	AUTO_TEXT answer = {0};
	AUTO_JSON value = {0};
	struct json_member *cure;

	if (engine_why(question, path, "read", true, &answer, &unused) != 1 ||
	    json_parse(&(struct json_input){.name = "answer", .bytes = text_string(&answer), .len = answer.len}, &value,
		       &unused) < 0)
		return;
	cure = (struct json_member *)json_find(&value, "cure");
	if (!cure || !cli_cure_flag(&cure->value) || !cli_cure_policy(&cure->value))
		return;
	*cure_out = cure->value;
	cure->value = (struct json_value){.type = JSON_NULL};
}

/* The directory that @cure's place lies in; empty: it is about no place, or that is directly below /. */
static void parent_of(const struct json_value *cure, struct text *out)
{
	const char *slash;

	cure_path(cure, out);
	slash = out->len ? strrchr(out->data, '/') : NULL;
	if (slash == NULL || memchr(out->data + 1, '/', (size_t)(slash - out->data)) == slash) {
		text_clear(out);
		return;
	}
	out->len = (size_t)(slash - out->data);
	out->data[out->len] = '\0';
}

/*
 * Show the directory instead of what is in it. Not one that the jar shows already, such as a system directory, and not one directly
 * below /. `why` has no cure for a directory with secrets in it, or a home.
 */
static bool widen(const struct engine_request *question, struct json_value *cure)
{
	struct json_value wider = {.type = JSON_NULL};
	const char *key, *item = cli_cure_item(cure, &key);
	AUTO_TEXT path = {0};

	parent_of(cure, &path);
	if (!item || !path.len)
		return false;
	ask_why(question, path.data, &wider);
	if (wider.type == JSON_NULL)
		return false;
	if (!strcmp(key, "rw"))
		cure_make_writable(&wider);
	json_value_done(cure);
	*cure = wider;
	return true;
}

/* --- lines -------------------------------------------------------------------------------------------------- */

static bool covers(const struct json_value *cure, const struct json_value *other)
{
	const char *key, *wanted;
	AUTO_TEXT place = {0}, path = {0};

	if (!strcmp(cli_cure_flag(cure), cli_cure_flag(other)))
		return true;
	cure_path(cure, &place);
	cure_path(other, &path);
	return place.len && path.len && cli_cure_item(cure, &key) && cli_cure_item(other, &wanted) &&
	       (!strcmp(key, "rw") || !strcmp(key, wanted)) && path_is_within(text_string(&path), text_string(&place));
}

static size_t find_line(const struct lesson_list *lessons, const struct json_value *cure)
{
	for (size_t i = 0; i < lessons->lines.count; i++)
		if (lessons->lines.items[i].count && covers(&lessons->lines.items[i].cure, cure))
			return i;
	return LESSON_NONE;
}

/* Lines about places beside that of @cure. */
static size_t count_siblings(const struct lesson_list *lessons, const struct json_value *cure)
{
	AUTO_TEXT parent = {0};
	size_t count = 0;

	parent_of(cure, &parent);
	for (size_t i = 0; parent.len && i < lessons->lines.count; i++) {
		AUTO_TEXT other = {0};

		parent_of(&lessons->lines.items[i].cure, &other);
		count += lessons->lines.items[i].count && !strcmp(text_string(&parent), text_string(&other));
	}
	return count;
}

/* A new line at the end, which takes over what lines that it covers allow. */
static size_t add_line(struct lesson_list *lessons, struct json_value *cure)
{
	struct lesson *line = list_add(&lessons->lines);

	if (!line)
		return LESSON_NONE;
	line->cure = *cure;
	*cure = (struct json_value){.type = JSON_NULL};
	for (size_t i = 0; i < lessons->refusals.count; i++) {
		struct refusal *refusal = &lessons->refusals.items[i];

		if (refusal->lesson == LESSON_NONE || !covers(&line->cure, &lessons->lines.items[refusal->lesson].cure))
			continue;
		lessons->lines.items[refusal->lesson].count--;
		refusal->lesson = lessons->lines.count - 1;
		line->count++;
	}
	return lessons->lines.count - 1;
}

static void read_refusal(struct lesson_list *lessons, struct json_value *entry, const struct engine_request *question)
{
	const struct refusal read = {
		.what = string_of(entry, "what"),
		.access = string_of(entry, "access"),
		.why = string_of(entry, "why"),
		.process = string_of(entry, "process"),
		.warning = string_of(entry, "warning"),
		.lesson = LESSON_NONE,
	};
	struct json_member *cure = (struct json_member *)json_find(entry, "cure");
	struct refusal *refusal = read.what && read.access && read.why ? list_add(&lessons->refusals) : NULL;
	size_t line;

	if (!refusal)
		return;
	*refusal = read;
	if (!cure || !cli_cure_flag(&cure->value) || !cli_cure_policy(&cure->value))
		return;
	line = find_line(lessons, &cure->value);
	if (line == LESSON_NONE) {
		if (widen(question, &cure->value))
			while (count_siblings(lessons, &cure->value) >= SIBLINGS_MAX && widen(question, &cure->value))
				;
		line = find_line(lessons, &cure->value);
	}
	if (line == LESSON_NONE)
		line = add_line(lessons, &cure->value);
	refusal->lesson = line;
	if (line != LESSON_NONE)
		lessons->lines.items[line].count++;
}

void cli_lessons_read(struct lesson_list *lessons, struct json_value *denied, const struct engine_request *question)
{
	lessons->denied = *denied;
	*denied = (struct json_value){.type = JSON_NULL};
	for (size_t i = 0; lessons->denied.type == JSON_LIST && i < lessons->denied.list.count; i++)
		if (lessons->denied.list.items[i].type == JSON_OBJECT)
			read_refusal(lessons, &lessons->denied.list.items[i], question);
}

void cli_lessons_done(struct lesson_list *lessons)
{
	for (size_t i = 0; i < lessons->lines.count; i++)
		json_value_done(&lessons->lines.items[i].cure);
	free(lessons->lines.items);
	free(lessons->refusals.items);
	json_value_done(&lessons->denied);
	*lessons = (struct lesson_list){0};
}

void cli_lessons_describe(const struct lesson_list *lessons, size_t line, struct text *out)
{
	const struct refusal *first = lessons->refusals.items;

	while (first < lessons->refusals.items + lessons->refusals.count && first->lesson != line)
		first++;
	if (first == lessons->refusals.items + lessons->refusals.count)
		return;
	text_append_format(out, "%s ", first->access);
	escape_append(out, first->what, LESSON_WORDS_MAX);
	if (first->process) {
		text_append_string(out, " by ");
		escape_append(out, first->process, LESSON_WORDS_MAX);
	}
	if (lessons->lines.items[line].count > 1)
		text_append_format(out, ", and %zu more", lessons->lines.items[line].count - 1);
	text_append_string(out, ": ");
	escape_append(out, first->why, LESSON_WORDS_MAX);
}
