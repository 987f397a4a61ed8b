/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/lessons.c - what a command was refused, what would allow it, and what a person said to that
 */
#include "cli/lessons.h"

#include <string.h>

#include "base/paths.h"

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

const char *cure_flag(const struct json_value *cure)
{
	return string_of(cure, "flag");
}

const struct json_value *cure_policy(const struct json_value *cure)
{
	return find(cure, "policy", JSON_OBJECT);
}

const char *cure_item(const struct json_value *cure, const char **key_out)
{
	const struct json_value *policy = cure_policy(cure), *list;

	if (!policy || policy->object.count != 1)
		return NULL;
	list = &policy->object.members[0].value;
	if (list->type != JSON_LIST || list->list.count != 1 || list->list.items[0].type != JSON_STRING)
		return NULL;
	*key_out = policy->object.members[0].name;
	return list->list.items[0].string.bytes;
}

void cure_path(const struct json_value *cure, struct text *out)
{
	const char *key, *at = cure_item(cure, &key);

	if (!at || (strcmp(key, "ro") != 0 && strcmp(key, "rw") != 0))
		return;
	/* As policy_escape_path() has written it. */
	for (; *at; at++) {
		at += *at == '\\' && at[1];
		text_append_char(out, *at);
	}
}

void cure_make_writable(struct json_value *cure)
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

/* --- lessons ------------------------------------------------------------------------------------------------ */

void lessons_done(struct lesson_list *lessons)
{
	for (size_t i = 0; i < lessons->count; i++) {
		json_value_done(&lessons->items[i].entry);
		json_value_done(&lessons->items[i].cure);
	}
	free(lessons->items);
	*lessons = (struct lesson_list){0};
}

size_t lessons_count(const struct lesson_list *lessons, enum lesson_answer answer)
{
	size_t count = 0;

	for (size_t i = 0; i < lessons->count; i++)
		count += lessons->items[i].answer == answer;
	return count;
}

static bool covers(const struct lesson *taken, const struct lesson *lesson)
{
	const char *key, *wanted;
	AUTO_TEXT place = {0}, path = {0};

	cure_path(&taken->cure, &place);
	cure_path(&lesson->cure, &path);
	if (!place.len || !path.len || !cure_item(&taken->cure, &key) || !cure_item(&lesson->cure, &wanted))
		return false;
	return (!strcmp(key, "rw") || !strcmp(key, wanted)) && path_is_within(text_string(&path), text_string(&place));
}

void lessons_cover(struct lesson_list *lessons)
{
	for (size_t i = 0; i < lessons->count; i++)
		for (size_t k = 0; k < lessons->count && lessons->items[i].answer == LESSON_OPEN; k++)
			if (lessons->items[k].answer == LESSON_TAKEN && covers(&lessons->items[k], &lessons->items[i]))
				lessons->items[i].answer = LESSON_COVERED;
}

static bool is_known(const struct lesson_list *lessons, const struct lesson *lesson)
{
	for (size_t i = 0; i < lessons->count; i++) {
		const struct lesson *known = &lessons->items[i];

		if (!strcmp(known->kind, lesson->kind) && !strcmp(known->what, lesson->what) &&
		    !strcmp(known->access, lesson->access) &&
		    (known->answer != LESSON_TAKEN || !cure_flag(&lesson->cure) ||
		     !strcmp(cure_flag(&known->cure), cure_flag(&lesson->cure))))
			return true;
	}
	return false;
}

/* Take @entry over, and its cure out of it. */
static bool read_entry(struct json_value *entry, unsigned run, struct lesson *out)
{
	const char *certainty = string_of(entry, "certainty");
	struct json_member *cure;

	*out = (struct lesson){
		.kind = string_of(entry, "kind"),
		.what = string_of(entry, "what"),
		.access = string_of(entry, "access"),
		.why = string_of(entry, "why"),
		.process = string_of(entry, "process"),
		.warning = string_of(entry, "warning"),
		.is_inferred = certainty && strcmp(certainty, "seen") != 0,
		.run = run,
	};
	if (!out->kind || !out->what || !out->access || !out->why)
		return false;
	cure = (struct json_member *)json_find(entry, "cure");
	if (cure && cure_flag(&cure->value) && cure_policy(&cure->value)) {
		out->cure = cure->value;
		cure->value = (struct json_value){.type = JSON_NULL};
	}
	out->answer = out->cure.type == JSON_OBJECT ? LESSON_OPEN : LESSON_WARNED;
	out->entry = *entry;
	*entry = (struct json_value){.type = JSON_NULL};
	return true;
}

void lessons_add(struct lesson_list *lessons, struct json_value *result, unsigned run)
{
	const struct json_value *denied = find(result, "denied", JSON_LIST);

	for (size_t i = 0; denied && i < denied->list.count && lessons->count < LESSONS_MAX; i++) {
		struct lesson lesson, *room;

		if (denied->list.items[i].type != JSON_OBJECT || !read_entry(&denied->list.items[i], run, &lesson))
			continue;
		room = is_known(lessons, &lesson) ? NULL : list_add(lessons);
		if (room) {
			*room = lesson;
			continue;
		}
		json_value_done(&lesson.entry);
		json_value_done(&lesson.cure);
	}
}
