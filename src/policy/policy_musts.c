/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/policy_musts.c - what a policy file promises: must_allow and must_deny, for `belljar policy test`
 */
#include "policy/policy_musts.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

static const char *const accesses[] = {"read", "write", "exec"};

void policy_musts_done(struct policy_must_list *musts)
{
	if (!musts)
		return;
	for (size_t i = 0; i < musts->count; i++)
		free(musts->items[i].question);
	free(musts->items);
	*musts = (struct policy_must_list){0};
}

static int refuse(const struct json_value *value, const char *name, struct error *error, const char *why)
{
	error_set(error, STAGE_POLICY, 0, "%s:%u:%u: %s", name, value->line, value->column, why);
	return error_hint(error, "\"/etc/shadow read\", \"~/data write\", \"example.org:443\" or \"mount\"");
}

/* A path has its access behind it; names of hosts and calls have no spaces. */
static int read_must(const struct json_value *value, const char *name, struct policy_must *out, struct error *error)
{
	const char *space;

	if (value->type != JSON_STRING || strlen(value->string.bytes) != value->string.len)
		return refuse(value, name, error, "what must be allowed or denied is a text");
	*out = (struct policy_must){.line = value->line, .column = value->column};
	space = strrchr(value->string.bytes, ' ');
	for (size_t i = 0; space && i < ARRAY_LEN(accesses); i++)
		if (!strcmp(space + 1, accesses[i]))
			out->access = accesses[i];
	if (!value->string.len || (strchr("/~", value->string.bytes[0]) != NULL) != (out->access != NULL))
		return refuse(value, name, error,
			      "a path begins with '/' or '~/' and is followed by read, write or exec; hosts and calls "
			      "stand alone");
	out->question =
		strndup(value->string.bytes, out->access ? (size_t)(space - value->string.bytes) : value->string.len);
	return out->question ? 0 : error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
}

static int read_list(const struct json_member *member, const char *name, bool is_allowed, struct policy_must_list *out,
		     struct error *error)
{
	int rc = 0;

	if (member->value.type != JSON_LIST)
		return refuse(&member->value, name, error, "this key is a list");
	for (size_t i = 0; i < member->value.list.count && rc == 0; i++) {
		struct policy_must must = {0}, *added;

		rc = read_must(&member->value.list.items[i], name, &must, error);
		must.is_allowed = is_allowed;
		added = rc == 0 && out ? list_add(out) : NULL;
		if (added)
			*added = must;
		else
			free(must.question);
		if (rc == 0 && out && !added)
			rc = error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	}
	return rc;
}

int policy_musts_take(struct json_value *document, const char *name, struct policy_must_list *out, struct error *error)
{
	for (size_t i = 0; i < document->object.count;) {
		struct json_member *member = &document->object.members[i];
		bool is_allowed = !strcmp(member->name, "must_allow");
		int rc;

		if (!is_allowed && strcmp(member->name, "must_deny") != 0) {
			i++;
			continue;
		}
		rc = read_list(member, name, is_allowed, out, error);
		if (rc < 0)
			return rc;
		free(member->name);
		json_value_done(&member->value);
		document->object.count--;
		memmove(member, member + 1, (document->object.count - i) * sizeof(*member));
	}
	return 0;
}
