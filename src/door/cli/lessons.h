/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/lessons.h - the lines that a policy could have more, from what a command was refused
 */
#ifndef BELLJAR_DOOR_CLI_LESSONS_H
#define BELLJAR_DOOR_CLI_LESSONS_H

#include "base/json_read.h"
#include "base/list.h"
#include "base/text.h"
#include "engine/engine.h"

/* One entry of `denied`. The strings belong to the list, and are harmless for a terminal. */
struct refusal {
	const char *what, *access, *why;
	const char *process, *warning; /* NULL: none */
	size_t lesson;                 /* the line that allows it; LESSON_NONE: Belljar proposes no change */
};
#define LESSON_NONE SIZE_MAX
/* Bytes that are shown of each word from a command. */
#define LESSON_WORDS_MAX 4096

/* One line, which allows all refusals of its group. */
struct lesson {
	struct json_value cure; /* {"flag","policy"} */
	size_t count;           /* refusals that it allows; 0: another line allows them too */
	bool is_declined;
};

struct lesson_list {
	struct json_value denied;
	LIST_TYPE(struct refusal, refusal_list) refusals;
	LIST_TYPE(struct lesson, line_list) lines;
};

/*
 * Read the list @denied of a result, which is taken over. @question is about the jar that refused. A line shows the directory that a
 * file lies in, where the jar does not show that, and where it may be shown; and the one above, if there are many of them in it.
 */
void cli_lessons_read(struct lesson_list *lessons, struct json_value *denied, const struct engine_request *question);
void cli_lessons_done(struct lesson_list *lessons);

/* "read /data/model by python3, and 2 more: why" */
void cli_lessons_describe(const struct lesson_list *lessons, size_t line, struct text *out);

/* Return the option, or the policy, of a cure. */
const char *cli_cure_flag(const struct json_value *cure);
const struct json_value *cli_cure_policy(const struct json_value *cure);
/* The first entry of the list that it adds to, with the key's name; NULL: it adds to none. */
const char *cli_cure_item(const struct json_value *cure, const char **key_out);

#endif
