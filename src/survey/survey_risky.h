/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_risky.h - find files that other programs run or read and that appeared or changed during a run
 */
#ifndef BELLJAR_SURVEY_SURVEY_RISKY_H
#define BELLJAR_SURVEY_SURVEY_RISKY_H

#include "survey/survey.h"
#include "survey/survey_judge.h"
#include "survey/survey_tree.h"

/* Why the search was incomplete, so that people should check themselves. */
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
	struct string_list left_out; /* the first paths that the search did not reach, or only in part */
};

/* How many paths `left_out` names at most. */
#define RISKY_LEFT_OUT_MAX 16

/*
 * When a run began, as far as times of files show: a change before `earliest_ns` was before the run, one after
 * `latest_ns` during it; between the two lies one tick of the clock.
 */
struct host_moment {
	int64_t earliest_ns, latest_ns;
};

void survey_moment_now(struct host_moment *moment);
/* Return the time for survey_watch() before a run: files that changed later are fresh. */
int64_t survey_settled_ns(void);

/* All borrowed. */
struct risky_request {
	const struct host *host;
	const struct watch_list *before; /* what survey_watch() found before the run */
	struct host_moment start;
	bool was_protected;        /* protected files were read-only in the jar */
	struct tree *const *trees; /* of all that the command may write (host_tree_tops()) */
	size_t tree_count;
	const struct risk_rules *rules; /* rules beside the tables; NULL: none. Its `has` is not used. */
};

void survey_risky_done(struct risky_list *risky);

/* Add "@path @what during the run; @who", unless the list has @path already. */
void survey_risky_add(struct risky_list *risky, const char *path, const char *what, const char *who);
/* Note that there are more than the list has. */
void survey_risky_flood(struct risky_list *risky);
/* Add the entries of @from. */
void survey_risky_merge(struct risky_list *into, const struct risky_list *from);
/* Note that @path below @top was not searched, or only in part. */
void survey_risky_leave_out(struct risky_list *risky, const char *top, const char *path);

#endif
