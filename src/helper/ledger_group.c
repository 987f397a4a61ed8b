/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper/ledger_group.c - a directory in place of many names in it
 *
 * A program that misses a directory asks for its files one by one. One entry for the directory replaces them if
 * one change for it would do and shows no secret that the program did not ask for. A program that may not write
 * a file often tries to read it next: one entry for writing covers both.
 */
#include <stdio.h>
#include <string.h>

#include "survey/survey_names.h"
#include "helper/ledger_look.h"

#define GROUP_MIN 3

/* May a change for its directory stand for the change for this one? */
static bool is_groupable(const struct denial *denial)
{
	return denial->path && denial->path->flag[0] && !denial->path->warning[0];
}

static size_t directory_len(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) : 0;
}

static bool are_siblings(const struct denial *one, const struct denial *other)
{
	size_t len = directory_len(one->path->path);

	return one->path->access == other->path->access && len == directory_len(other->path->path) &&
	       !strncmp(one->path->path, other->path->path, len);
}

static bool is_there(const struct plan_looker *looker, const char *directory, const char *name)
{
	struct plan_object object = {0};
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", directory, name) >= (int)sizeof(path))
		return true;
	looker->look(looker->owner, path, &object);
	return object.mode != 0;
}

/* What is left of @name behind a beginning of it that @directory ends with; NULL: it ends with none. */
static const char *rest_of_name(const char *directory, const char *name)
{
	for (const char *slash = name; (slash = strchr(slash, '/')); slash++) {
		size_t len = (size_t)(slash - name), whole = strlen(directory);

		if (whole > len && directory[whole - len - 1] == '/' && !strncmp(directory + whole - len, name, len))
			return slash + 1;
	}
	return NULL;
}

bool helper_ledger_holds_secret(const struct plan_looker *looker, const char *directory)
{
	for (const struct host_name *secret = survey_secret_names; secret->name; secret++) {
		const char *rest = rest_of_name(directory, secret->name);

		if (secret->name[0] == '/' || secret->name[0] == '~')
			continue; /* the explanation has looked at these */
		if (is_there(looker, directory, secret->name) || (rest && is_there(looker, directory, rest)))
			return true;
	}
	return false;
}

/* Explain the refusal of the directory; NULL: it cannot replace the entries in it. */
static struct denial_path *explain_directory(const struct plan *plan, const struct plan_looker *looker,
					     const struct denial_path *path, size_t count)
{
	AUTO(plan_explanation_done) struct plan_explanation explanation = {0};
	enum plan_access access = path->access == PLAN_EXECUTE ? PLAN_READ : path->access;
	size_t len = directory_len(path->path);
	char directory[PATH_MAX];

	if (!len || len >= sizeof(directory))
		return NULL;
	memcpy(directory, path->path, len);
	directory[len] = '\0';
	plan_explain_path(plan, looker, directory, access, &explanation);
	if (explanation.is_allowed || !explanation.flag.len || explanation.warning.len ||
	    helper_ledger_holds_secret(looker, directory))
		return NULL;
	text_append_format(&explanation.why, "; %zu names in it were asked for", count);
	return helper_ledger_path(path->access, (const char *const[]){directory, text_string(&explanation.why),
								      text_string(&explanation.flag),
								      text_string(&explanation.policy), ""});
}

static void join(struct denial *group, struct denial *other)
{
	group->count += other->count;
	if (other->last_ns > group->last_ns)
		group->last_ns = other->last_ns;
	free(other->path);
	other->path = NULL;
}

/* Would the change for @one, if there is any, do for @other too? */
static bool stands_for(const struct denial *one, const struct denial *other)
{
	if (!one->path || !other->path || strcmp(one->path->path, other->path->path) != 0)
		return false;
	return one->path->access == other->path->access ||
	       (one->path->access == PLAN_WRITE && other->path->access == PLAN_READ && one->path->flag[0]);
}

static void join_same(struct denial *items, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < count; j++)
			if (i != j && stands_for(&items[i], &items[j]))
				join(&items[i], &items[j]);
}

void helper_ledger_group(const struct plan *plan, const struct plan_looker *looker, struct denial_list *denials)
{
	struct denial *items = denials->items;
	size_t kept = 0;

	join_same(items, denials->count);
	for (size_t i = 0; i < denials->count; i++) {
		struct denial_path *directory = NULL;
		size_t siblings = 1;

		for (size_t j = i + 1; is_groupable(&items[i]) && j < denials->count; j++)
			siblings += is_groupable(&items[j]) && are_siblings(&items[i], &items[j]);
		if (siblings >= GROUP_MIN)
			directory = explain_directory(plan, looker, items[i].path, siblings);
		for (size_t j = i + 1; directory && j < denials->count; j++)
			if (is_groupable(&items[j]) && are_siblings(&items[i], &items[j]))
				join(&items[i], &items[j]);
		if (directory) {
			free(items[i].path);
			items[i].path = directory;
		}
	}
	for (size_t i = 0; i < denials->count; i++)
		if (items[i].kind != DENIAL_FILE || items[i].path)
			items[kept++] = items[i];
	denials->count = kept;
}
