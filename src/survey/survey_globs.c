/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_globs.c - compare paths with patterns, one name after the other
 */
#include "survey/survey_globs.h"

#include <errno.h>
#include <string.h>

#include "policy/policy_patterns.h"

static int add_part(struct globs *globs, const char *text, size_t len, bool is_plain)
{
	struct glob_part *part = list_add(globs);

	if (!part)
		return -ENOMEM;
	*part = (struct glob_part){
		.text = text,
		.len = len,
		.is_plain = is_plain,
		.is_deep = !is_plain && len == 2 && !memcmp(text, "**", 2),
		.pattern = globs->said.count - 1,
	};
	return 0;
}

static int add_parts(struct globs *globs, const char *path, bool is_plain)
{
	int rc = string_list_add(&globs->copies, path);
	const char *at = rc == 0 ? globs->copies.items[globs->copies.count - 1] : "";

	for (; *at && rc == 0; at += strcspn(at, "/")) {
		at += strspn(at, "/");
		if (*at)
			rc = add_part(globs, at, strcspn(at, "/"), is_plain);
	}
	return rc;
}

int survey_globs_add(struct globs *globs, const char *anchor, const char *pattern, const char *said)
{
	size_t first = globs->count;
	struct glob_part *last;
	int rc = string_list_add(&globs->said, said);

	if (rc == 0)
		rc = add_parts(globs, anchor, true);
	if (rc == 0)
		rc = add_parts(globs, pattern, false);
	if (rc < 0 || globs->count == first)
		return rc;
	last = &globs->items[globs->count - 1];
	last->is_last = true;
	/* "a/<any number>" means all that is in it, and what is in a directory is meant with the directory. */
	if (last->is_deep) {
		last->is_deep = false;
		last->len = 1;
	}
	return 0;
}

static void enter(const struct globs *globs, size_t part, uint64_t *set)
{
	for (;; part++) {
		set[part / 64] |= UINT64_C(1) << (part % 64);
		if (!globs->items[part].is_deep)
			return;
	}
}

void survey_globs_start(const struct globs *globs, uint64_t *set)
{
	for (size_t i = 0; i < globs->count; i++)
		if (!i || globs->items[i - 1].is_last)
			enter(globs, i, set);
}

static bool is_match(const struct glob_part *part, const char *name)
{
	char first = part->text[0];

	if (part->is_plain)
		return !strncmp(part->text, name, part->len) && !name[part->len];
	/* Most names differ in the first letter. */
	if (first != name[0] && first != '*' && first != '?' && first != '[' && first != '\\')
		return false;
	return policy_pattern_matches(part->text, part->len, name);
}

long survey_globs_step(const struct globs *globs, const uint64_t *set, const char *name, bool is_link, uint64_t *next)
{
	long ended = -1;

	memset(next, 0, survey_globs_words(globs) * sizeof(*next));
	for (size_t word = 0; word < survey_globs_words(globs); word++)
		for (uint64_t rest = set[word]; rest; rest &= rest - 1) {
			size_t i = word * 64 + (size_t)__builtin_ctzll(rest);
			const struct glob_part *part = &globs->items[i];

			if (part->is_deep) {
				if (!is_link)
					enter(globs, i, next);
			} else if (!is_match(part, name)) {
				continue;
			} else if (part->is_last) {
				ended = ended < 0 ? (long)part->pattern : ended;
			} else {
				enter(globs, i + 1, next);
			}
		}
	return ended;
}

bool survey_globs_is_empty(const struct globs *globs, const uint64_t *set)
{
	for (size_t i = 0; i < survey_globs_words(globs); i++)
		if (set[i])
			return false;
	return true;
}

void survey_globs_done(struct globs *globs)
{
	free(globs->items);
	string_list_done(&globs->said);
	string_list_done(&globs->copies);
	*globs = (struct globs){0};
}

bool survey_glob_matches(const char *pattern, const char *workdir, const char *path)
{
	AUTO(survey_globs_done) struct globs globs = {0};
	AUTO_FREE char *copy = strdup(path);
	AUTO_FREE uint64_t *sets = NULL;
	bool has_ended = false;

	if (!copy || survey_globs_add(&globs, pattern[0] == '/' ? "" : workdir, pattern, pattern) < 0 || !globs.count)
		return false;
	sets = calloc(2 * survey_globs_words(&globs), sizeof(*sets));
	if (!sets)
		return false;
	survey_globs_start(&globs, sets);
	/* What lies in a directory that matches is meant too. */
	for (char *at = copy, *end; *at && !has_ended; at = end) {
		char cut;

		at += strspn(at, "/");
		end = at + strcspn(at, "/");
		cut = *end;
		*end = '\0';
		if (*at)
			has_ended = survey_globs_step(&globs, sets, at, false, sets + survey_globs_words(&globs)) >= 0;
		memcpy(sets, sets + survey_globs_words(&globs), survey_globs_words(&globs) * sizeof(*sets));
		*end = cut;
	}
	return has_ended;
}
