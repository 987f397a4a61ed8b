/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_risky.h - which files that other programs execute or obey have appeared, or changed, during a run
 */
#ifndef BELLJAR_SURVEY_SURVEY_RISKY_H
#define BELLJAR_SURVEY_SURVEY_RISKY_H

#include "survey/survey.h"
#include "survey/survey_judge.h"
#include "survey/survey_tree.h"

/* Why people should look for themselves. */
enum risky_unsearched {
	RISKY_IS_SEARCHED, /* no reason */
	RISKY_IS_MOVED,
	RISKY_IS_FLOODED,
	RISKY_HAS_PATTERNS,
	RISKY_IS_LOST,
	RISKY_UNSEARCHED_COUNT,
};
/* NULL for RISKY_IS_SEARCHED. */
const char *survey_risky_unsearched_words(enum risky_unsearched unsearched);

struct risky_path {
	char *path;
	char *why;
};

struct risky_list {
	struct risky_path *items;
	size_t count;
	size_t capacity;
	size_t looks;      /* into directories that count as a whole, so far */
	size_t misleading; /* names that only mislead */
	enum risky_unsearched unsearched;
	size_t looked_at;            /* directories */
	struct string_list left_out; /* the first of what the search did not reach, or not wholly */
};

/* How many paths `left_out` names at most. */
#define RISKY_LEFT_OUT_MAX 16

/*
 * When a run began, as far as times of files can tell: what changed before `earliest_ns` changed before the run, what changed
 * after `latest_ns` during it; between the two lies one tick of the clock.
 */
struct host_moment {
	int64_t earliest_ns, latest_ns;
};

void survey_moment_now(struct host_moment *moment);
/* For survey_watch() before a run: what changed later is fresh. */
int64_t survey_settled_ns(void);

/* All borrowed. */
struct risky_request {
	const struct host *host;
	const struct watch_list *before; /* what survey_watch() found before the run */
	struct host_moment start;
	bool was_protected;        /* protected files were read-only in the jar */
	struct tree *const *trees; /* of all that the command may write (host_tree_tops()) */
	size_t tree_count;
	const struct risk_rules *rules; /* what counts besides the tables; NULL: nothing. Its `has` is not used. */
};

void survey_risky_done(struct risky_list *risky);

/* For those who look: @path @what during the run; @who. A path that is there already is not added again. */
void survey_risky_add(struct risky_list *risky, const char *path, const char *what, const char *who);
/* There are more than are listed. */
void survey_risky_flood(struct risky_list *risky);
/* Add what @from has. */
void survey_risky_merge(struct risky_list *into, const struct risky_list *from);
/* @path below @top was not searched, or not wholly. */
void survey_risky_leave_out(struct risky_list *risky, const char *top, const char *path);

#endif
