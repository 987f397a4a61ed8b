/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/lessons.h - what a command was refused, what would allow it, and what a person said to that
 */
#ifndef BELLJAR_CLI_LESSONS_H
#define BELLJAR_CLI_LESSONS_H

#include "base/json_read.h"
#include "base/list.h"
#include "base/text.h"

/* A run can be refused as many things as it likes. */
#define LESSONS_MAX 1024

enum lesson_answer {
	LESSON_OPEN,
	LESSON_TAKEN,
	LESSON_DECLINED,
	LESSON_COVERED, /* another that was taken allows it too */
	LESSON_WARNED,  /* no change is proposed, so there is nothing to answer */
};

/* One entry of `denied`. Strings are harmless for a terminal, but for those in `cure`, which are as a policy has them. */
struct lesson {
	struct json_value entry; /* as it was in the result */
	struct json_value cure;  /* {"flag","policy"}; null: there is none */
	const char *kind, *what, *access, *why;
	const char *process, *warning; /* NULL: none */
	bool is_inferred;
	enum lesson_answer answer;
	unsigned run; /* in which it was first seen, from 1 */
};

LIST_TYPE(struct lesson, lesson_list);

void lessons_done(struct lesson_list *lessons);
/* Add those of the result of run @run that are new; they are taken out of it. */
void lessons_add(struct lesson_list *lessons, struct json_value *result, unsigned run);
/* Mark open ones that what was taken allows too: a file whose directory is shown. */
void lessons_cover(struct lesson_list *lessons);
size_t lessons_count(const struct lesson_list *lessons, enum lesson_answer answer);

/* Of a cure; NULL: there is none. */
const char *cure_flag(const struct json_value *cure);
const struct json_value *cure_policy(const struct json_value *cure);
/* The one place of the host that a cure would show, "" if it is about something else. */
void cure_path(const struct json_value *cure, struct text *out);
/* Of a cure that shows a place read-only, one that shows it writable. */
void cure_make_writable(struct json_value *cure);
/* The first entry of the list that it adds to, with the key's name; NULL: it adds to none. */
const char *cure_item(const struct json_value *cure, const char **key_out);

#endif
