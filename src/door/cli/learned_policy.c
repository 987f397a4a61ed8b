/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/learned_policy.c - a policy as `learn` writes it: what differs from the default, with a reason for each new line
 *
 * Both policies are printed in full and compared as data, so that an option that was given stands in the file too. What it must
 * allow and deny is written only where it holds. Whether all that was right is not believed but read: the document is loaded, and
 * tested, before anybody sees it.
 */
#include "door/cli/learned_policy.h"

#include <errno.h>
#include <string.h>

#include "base/escape.h"
#include "base/json_write.h"
#include "engine/engine_why.h"
#include "policy/policy_musts.h"

#define MUSTS_MAX 64

/* --- what differs ------------------------------------------------------------------------------------------- */

static int print_and_parse(const struct policy *policy, struct json_value *out, struct error *error)
{
	AUTO_TEXT text = {0};

	policy_print(policy, &text, 0);
	return json_parse(&(struct json_input){.name = "policy", .bytes = text_string(&text), .len = text.len}, out,
			  error);
}

static void append_value(const struct json_value *value, struct text *out)
{
	struct json_writer writer = {.text = out};

	json_write_value(&writer, NULL, value);
}

static bool is_same(const struct json_value *a, const struct json_value *b)
{
	AUTO_TEXT one = {0}, other = {0};

	append_value(a, &one);
	append_value(b, &other);
	return !strcmp(text_string(&one), text_string(&other));
}

/* The last line that was taken and says @key, of a list: @item. */
static size_t line_about(const struct lesson_list *lessons, const char *key, const struct json_value *item)
{
	size_t found = LESSON_NONE;

	for (size_t i = 0; i < lessons->lines.count; i++) {
		const struct lesson *line = &lessons->lines.items[i];
		const struct json_value *policy = cli_cure_policy(&line->cure);
		const char *name, *said = cli_cure_item(&line->cure, &name);

		if (line->count && !line->is_declined && policy && json_find(policy, key) &&
		    (!item || (said && item->type == JSON_STRING && !strcmp(said, item->string.bytes))))
			found = i;
	}
	return found;
}

static void append_reason(const struct lesson_list *lessons, const char *key, const struct json_value *item,
			  const char *indent, struct text *out)
{
	size_t line = line_about(lessons, key, item);

	if (line == LESSON_NONE)
		return;
	text_append_format(out, "%s// ", indent);
	cli_lessons_describe(lessons, line, out);
	text_append_char(out, '\n');
}

static void append_list(const struct json_member *member, const struct lesson_list *lessons, struct text *out)
{
	text_append_format(out, "  \"%s\": [", member->name);
	for (size_t i = 0; i < member->value.list.count; i++) {
		const struct json_value *item = &member->value.list.items[i];

		text_append_string(out, i ? ",\n" : "\n");
		append_reason(lessons, member->name, item, "    ", out);
		text_append_string(out, "    ");
		append_value(item, out);
	}
	text_append_string(out, "\n  ]");
}

static void append_member(const struct json_member *member, const struct lesson_list *lessons, struct text *out)
{
	text_append_string(out, ",\n");
	if (member->value.type == JSON_LIST && member->value.list.count) {
		append_list(member, lessons, out);
		return;
	}
	append_reason(lessons, member->name, NULL, "  ", out);
	text_append_format(out, "  \"%s\": ", member->name);
	append_value(&member->value, out);
}

static int append_differences(const struct learned_policy *learned, const struct policy_context *context,
			      struct text *out, struct error *error)
{
	AUTO(policy_done) struct policy base = {0};
	AUTO_JSON before = {0}, after = {0};
	int rc = policy_init(&base, context, error);

	if (rc == 0)
		rc = print_and_parse(&base, &before, error);
	if (rc == 0)
		rc = print_and_parse(learned->policy, &after, error);
	for (size_t i = 0; rc == 0 && i < after.object.count; i++) {
		const struct json_member *member = &after.object.members[i];
		const struct json_member *old = json_find(&before, member->name);

		if (!old || !is_same(&old->value, &member->value))
			append_member(member, learned->lessons, out);
	}
	return rc;
}

/* --- what it must allow and deny ---------------------------------------------------------------------------- */

static bool is_access_of_path(const char *access)
{
	return !strcmp(access, "read") || !strcmp(access, "write") || !strcmp(access, "exec");
}

/* Does the policy's jar decide so? A name that had to be escaped is no question any more. */
static bool holds(const struct engine_request *request, const char *question, const char *access, bool is_allowed)
{
	bool is_path = is_access_of_path(access);
	struct error unused = {0};
	AUTO_TEXT answer = {0};
	int rc;

	if (strchr(question, '\\') || (is_path && question[0] != '/'))
		return false;
	if (!is_path && strcmp(access, "connect") != 0 && strcmp(access, "call") != 0)
		return false;
	rc = engine_why(request, question, is_path ? access : NULL, true, &answer, &unused);
	return rc >= 0 && (rc == 0) == is_allowed;
}

struct must_list {
	const char *key;
	size_t count;
};

static void append_must(struct must_list *list, const char *question, const char *access, struct text *out)
{
	struct json_writer writer = {.text = out};
	AUTO_TEXT words = {0};

	text_append_format(&words, "%s%s%s", question, is_access_of_path(access) ? " " : "",
			   is_access_of_path(access) ? access : "");
	if (list->count++)
		text_append_string(out, ",\n    ");
	else
		text_append_format(out, ",\n  \"%s\": [\n    ", list->key);
	json_write_string(&writer, NULL, text_string(&words));
}

static void append_musts(const struct learned_policy *learned, const struct engine_request *request, struct text *out)
{
	/* No policy that was learned should ever lose these. */
	static const char *const never[][2] = {{"/etc/shadow", "read"}, {"mount", "call"}};
	struct must_list allowed = {.key = "must_allow"}, denied = {.key = "must_deny"};

	for (size_t i = 0; i < learned->lessons->refusals.count && allowed.count < MUSTS_MAX; i++) {
		const struct refusal *refusal = &learned->lessons->refusals.items[i];

		if (refusal->lesson != LESSON_NONE && !learned->lessons->lines.items[refusal->lesson].is_declined &&
		    holds(request, refusal->what, refusal->access, true))
			append_must(&allowed, refusal->what, refusal->access, out);
	}
	if (allowed.count)
		text_append_string(out, "\n  ]");
	for (size_t i = 0; i < ARRAY_LEN(never); i++)
		if (holds(request, never[i][0], never[i][1], false))
			append_must(&denied, never[i][0], never[i][1], out);
	if (denied.count)
		text_append_string(out, "\n  ]");
}

/* --- reading it back ---------------------------------------------------------------------------------------- */

static bool prints_the_same(const struct policy *a, const struct policy *b)
{
	AUTO_TEXT one = {0}, other = {0};

	policy_print(a, &one, 0);
	policy_print(b, &other, 0);
	return !strcmp(text_string(&one), text_string(&other));
}

static int check(const struct text *document, const struct policy *policy, const struct invocation *invocation,
		 const struct policy_context *context, struct error *error)
{
	static const char name[] = "the learned policy";
	AUTO(policy_musts_done) struct policy_must_list musts = {0};
	AUTO(policy_done) struct policy read = {0};
	AUTO_JSON value = {0};
	AUTO_TEXT broken = {0};
	struct engine_request request;
	int rc = policy_init(&read, context, error);

	if (rc == 0)
		rc = policy_load_document(&read, text_string(document), document->len, name, context->current_directory,
					  context, error);
	if (rc == 0 && !prints_the_same(&read, policy)) {
		rc = error_set(error, STAGE_POLICY, EINVAL, "the policy cannot be written as a file");
		error_hint(error, "a name in it may have bytes that are not UTF-8");
	}
	if (rc == 0)
		rc = json_parse(&(struct json_input){.name = name,
						     .bytes = text_string(document),
						     .len = document->len,
						     .stage = STAGE_POLICY},
				&value, error);
	if (rc == 0)
		rc = policy_musts_take(&value, name, &musts, error);
	if (rc < 0)
		return rc;
	request = cli_question_of(invocation, &read);
	rc = engine_test_policy(&request, &musts, name, invocation->home, &broken, error);
	if (rc > 0)
		rc = error_set(error, STAGE_POLICY, EINVAL, "%s", text_string(&broken));
	return rc;
}

int cli_learned_policy_write(const struct learned_policy *learned, const struct invocation *invocation,
			     struct text *out, struct error *error)
{
	const struct policy_context context = cli_context_of(invocation);
	struct engine_request request = cli_question_of(invocation, learned->policy);
	AUTO_TEXT document = {0};
	int rc;

	text_append_string(&document, "// Written by Belljar after one run of: ");
	escape_append(&document, learned->program, LESSON_WORDS_MAX);
	text_append_string(&document,
			   "\n// Each line with a reason allows what that run was refused. Delete what you do not "
			   "want.\n{\n  \"version\": 1");
	rc = append_differences(learned, &context, &document, error);
	if (rc < 0)
		return rc;
	append_musts(learned, &request, &document);
	text_append_string(&document, "\n}\n");
	if (text_failed(&document))
		return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	rc = check(&document, learned->policy, invocation, &context, error);
	if (rc == 0)
		text_append(out, document.data, document.len);
	return rc;
}
