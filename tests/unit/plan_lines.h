/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/plan_lines.h - a plan as lines that each say everything, and the difference of two such plans
 *
 * A scalar is one line, "limits.pids: 1024"; so is each item of a list, whatever is in it: 'steps: {"step": "root"}'. No line
 * stands twice in a plan. So a difference needs no numbers, which would change in every file when one plan grows: a change
 * stands below the line that comes before it.
 */
#ifndef BELLJAR_TESTS_UNIT_PLAN_LINES_H
#define BELLJAR_TESTS_UNIT_PLAN_LINES_H

#include <stdint.h>
#include <stdlib.h>

#include "base/json_read.h"
#include "base/json_write.h"
#include "base/text.h"

#define PLAN_LINES_MAX 1024

static inline void json_copy(const struct json_value *value, struct json_writer *writer, const char *key)
{
	switch (value->type) {
	case JSON_NULL:
		json_write_null(writer, key);
		break;
	case JSON_BOOL:
		json_write_bool(writer, key, value->boolean);
		break;
	case JSON_INTEGER:
	case JSON_REAL:
		json_write_raw(writer, key, value->number.digits, strlen(value->number.digits));
		break;
	case JSON_STRING:
		json_write_bytes(writer, key, value->string.bytes, value->string.len);
		break;
	case JSON_LIST:
		json_open_array(writer, key);
		for (size_t i = 0; i < value->list.count; i++)
			json_copy(&value->list.items[i], writer, NULL);
		json_close_array(writer);
		break;
	case JSON_OBJECT:
		json_open_object(writer, key);
		for (size_t i = 0; i < value->object.count; i++)
			json_copy(&value->object.members[i].value, writer, value->object.members[i].name);
		json_close_object(writer);
		break;
	case JSON_TYPE_COUNT:
		break;
	}
}

static inline void add_line(struct string_list *lines, const char *name, const struct json_value *value)
{
	AUTO_TEXT text = {0};
	struct json_writer writer = {.text = &text};

	json_copy(value, &writer, NULL);
	string_list_add_format(lines, "%s: %s", name, text_string(&text));
}

/* Every value of @value, which stands at @name (NULL: the whole), as lines. */
static inline void lines_of_json(struct string_list *lines, const char *name, const struct json_value *value)
{
	if (value->type == JSON_OBJECT) {
		for (size_t i = 0; i < value->object.count; i++) {
			AUTO_TEXT inner = {0};

			if (name)
				text_append_format(&inner, "%s.", name);
			text_append_string(&inner, value->object.members[i].name);
			lines_of_json(lines, text_string(&inner), &value->object.members[i].value);
		}
	} else if (value->type == JSON_LIST && value->list.count) {
		for (size_t i = 0; i < value->list.count; i++)
			add_line(lines, name, &value->list.items[i]);
	} else {
		add_line(lines, name, value);
	}
}

static inline void lines_of_text(struct string_list *lines, const char *text)
{
	while (*text) {
		size_t len = strcspn(text, "\n");

		string_list_add_format(lines, "%.*s", (int)len, text);
		text += len + (text[len] == '\n');
	}
}

/* table[i][j]: how many lines the ends of @before from i and of @after from j have in common, in one order. */
static inline void fill_table(uint16_t (*table)[PLAN_LINES_MAX + 1], const struct string_list *before,
			      const struct string_list *after)
{
	for (size_t i = before->count; i-- > 0;)
		for (size_t j = after->count; j-- > 0;) {
			uint16_t without_before = table[i + 1][j], without_after = table[i][j + 1];

			if (!strcmp(before->items[i], after->items[j]))
				table[i][j] = (uint16_t)(table[i + 1][j + 1] + 1);
			else
				table[i][j] = without_before > without_after ? without_before : without_after;
		}
}

/* What turns @before into @after: lines taken away with "-", added with "+", each change below the line before it. */
static inline bool write_difference(const struct string_list *before, const struct string_list *after, struct text *out)
{
	uint16_t(*table)[PLAN_LINES_MAX + 1] = calloc(PLAN_LINES_MAX + 1, sizeof(*table));
	bool is_in_change = false;
	size_t i = 0, j = 0;

	if (!table || before->count > PLAN_LINES_MAX || after->count > PLAN_LINES_MAX) {
		free(table);
		return false;
	}
	fill_table(table, before, after);
	while (i < before->count || j < after->count) {
		if (i < before->count && j < after->count && !strcmp(before->items[i], after->items[j])) {
			is_in_change = false;
			i++;
			j++;
			continue;
		}
		if (!is_in_change && j > 0)
			text_append_format(out, "  %s\n", after->items[j - 1]);
		is_in_change = true;
		if (i < before->count && (j == after->count || table[i + 1][j] >= table[i][j + 1]))
			text_append_format(out, "- %s\n", before->items[i++]);
		else
			text_append_format(out, "+ %s\n", after->items[j++]);
	}
	free(table);
	return true;
}

#endif
