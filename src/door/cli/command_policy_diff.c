/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/command_policy_diff.c - `policy diff A B`: what B allows and limits otherwise than A, in words
 *
 * Both policies are printed in full, and compared as data: a key that is new is compared too, in plain words.
 */
#include "door/cli/command_policy_diff.h"

#include <string.h>

#include "policy/policy_build.h"

/* The meaning of an entry of a list. */
static const struct list_words {
	const char *key, *added, *removed;
} list_words[] = {
	{"ro", "also lets the jar read", "no longer lets the jar read"},
	{"rw", "also lets the jar write", "no longer lets the jar write"},
	{"hide", "also hides", "no longer hides"},
	{"tmpfs", "also makes private", "no longer makes private"},
	{"allow_net", "also has the rule", "no longer has the rule"},
	{"pass_env", "also passes the variable", "no longer passes the variable"},
	{"redact", "also redacts a text", "no longer redacts a text"},
	{"optional", "also does without", "no longer does without"},
	{"publish", "also publishes the port", "no longer publishes the port"},
};

/* One value, much as it would stand in a file. */
static void write_value(const struct json_value *value, struct text *out)
{
	switch (value->type) {
	case JSON_STRING:
		text_append_string(out, value->string.bytes);
		break;
	case JSON_INTEGER:
	case JSON_REAL:
		text_append_string(out, value->number.digits);
		break;
	case JSON_BOOL:
		text_append_string(out, value->boolean ? "true" : "false");
		break;
	case JSON_NULL:
		text_append_string(out, "none");
		break;
	case JSON_OBJECT:
		for (size_t i = 0; i < value->object.count; i++) {
			text_append_format(out, "%s%s=", i ? " " : "", value->object.members[i].name);
			write_value(&value->object.members[i].value, out);
		}
		break;
	case JSON_LIST:
		for (size_t i = 0; i < value->list.count; i++) {
			text_append_string(out, i ? "," : "");
			write_value(&value->list.items[i], out);
		}
		break;
	case JSON_TYPE_COUNT:
		break;
	}
}

static bool is_same(const struct json_value *a, const struct json_value *b)
{
	AUTO_TEXT one = {0}, other = {0};

	write_value(a, &one);
	write_value(b, &other);
	return a->type == b->type && !strcmp(text_string(&one), text_string(&other));
}

static bool has_item(const struct json_value *list, const struct json_value *item)
{
	for (size_t i = 0; i < list->list.count; i++)
		if (is_same(&list->list.items[i], item))
			return true;
	return false;
}

static const struct list_words *words_of(const char *key)
{
	for (size_t i = 0; i < ARRAY_LEN(list_words); i++)
		if (!strcmp(list_words[i].key, key))
			return &list_words[i];
	return NULL;
}

/* Entries that @to has and @from has not. */
static void compare_lists(const char *key, const struct json_value *from, const struct json_value *to, bool is_added,
			  const char *name, struct text *out)
{
	const struct list_words *words = words_of(key);

	for (size_t i = 0; i < to->list.count; i++) {
		if (has_item(from, &to->list.items[i]))
			continue;
		if (words)
			text_append_format(out, "%s %s", name, is_added ? words->added : words->removed);
		else
			text_append_format(out, "%s: %s %s", name, key, is_added ? "also has" : "no longer has");
		if (strcmp(key, "redact") != 0) {
			text_append_char(out, ' ');
			write_value(&to->list.items[i], out);
		}
		text_append_char(out, '\n');
	}
}

static void compare(const char *key, const struct json_value *a, const struct json_value *b, const char *name,
		    struct text *out)
{
	if (is_same(a, b))
		return;
	if (a->type == JSON_LIST && b->type == JSON_LIST) {
		compare_lists(key, a, b, true, name, out);
		compare_lists(key, b, a, false, name, out);
		return;
	}
	text_append_format(out, "%s: %s is ", name, key);
	if (b->type == JSON_OBJECT && !b->object.count)
		text_append_string(out, "empty");
	else
		write_value(b, out);
	text_append_string(out, " instead of ");
	if (a->type == JSON_OBJECT && !a->object.count)
		text_append_string(out, "empty");
	else
		write_value(a, out);
	text_append_char(out, '\n');
}

static int load(const char *name, const struct policy_context *context, struct json_value *out, struct error *error)
{
	AUTO(policy_done) struct policy policy = {0};
	AUTO_TEXT text = {0};
	int rc = policy_init(&policy, context, error);

	if (rc == 0)
		rc = policy_load(&policy, name, context, error);
	if (rc < 0)
		return rc;
	policy_print(&policy, &text, 0);
	return json_parse(&(struct json_input){.name = name, .bytes = text_string(&text), .len = text.len}, out, error);
}

int cli_policy_diff(const char *a, const char *b, const struct policy_context *context, struct text *out,
		    struct error *error)
{
	AUTO_JSON left = {0}, right = {0};
	int rc = load(a, context, &left, error);

	if (rc == 0)
		rc = load(b, context, &right, error);
	for (size_t i = 0; rc == 0 && i < right.object.count; i++) {
		const struct json_member *member = &right.object.members[i];
		const struct json_member *before = json_find(&left, member->name);

		if (before && strcmp(member->name, "extends") != 0)
			compare(member->name, &before->value, &member->value, b, out);
	}
	return rc;
}
