/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_globs.h - compare paths with patterns, one name after the other
 *
 * A pattern is a row of names. While a walk goes down a tree, a set of bits records for each pattern how many of its
 * names the way so far may match. With an empty set nothing below can match. The code does not access the files.
 */
#ifndef BELLJAR_SURVEY_SURVEY_GLOBS_H
#define BELLJAR_SURVEY_SURVEY_GLOBS_H

#include <stdint.h>

#include "base/base.h"
#include "base/list.h"
#include "base/text.h"

struct glob_part {
	const char *text; /* of a copy that the globs have */
	size_t len;
	bool is_plain; /* compared as it is */
	bool is_deep;  /* "**" */
	bool is_last;
	size_t pattern; /* number of its pattern */
};

struct globs {
	struct glob_part *items;
	size_t count, capacity;
	struct string_list said;   /* the patterns, as people wrote them */
	struct string_list copies; /* what the parts point at */
};

/* Return the number of words in a set. Callers allocate a set with calloc(). */
static inline size_t survey_globs_words(const struct globs *globs)
{
	return (globs->count + 63) / 64;
}

/* Add @pattern, which begins in the directory @anchor ("" or a plain path); messages call it @said. 0 or -ENOMEM. */
int survey_globs_add(struct globs *globs, const char *anchor, const char *pattern, const char *said);
/* Set @set for a walk that begins where the anchors begin. */
void survey_globs_start(const struct globs *globs, uint64_t *set);
/*
 * Step from @set, of a directory, to @next, of @name in it. Returns the number of a pattern that ends there, or -1. If
 * @is_link, "**" does not continue, since a walk does not enter links.
 */
long survey_globs_step(const struct globs *globs, const uint64_t *set, const char *name, bool is_link, uint64_t *next);
bool survey_globs_is_empty(const struct globs *globs, const uint64_t *set);
void survey_globs_done(struct globs *globs);

/* Does the cleaned @pattern match @path? A relative pattern begins in @workdir, "" for a path below it. */
bool survey_glob_matches(const char *pattern, const char *workdir, const char *path);

#endif
