/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_judge.h - the one judge of risk: may a change at this path make other programs run or use something?
 *
 * A pure function of a path, its type and tables. A run, `diff`, `apply` and every other door ask it, so that they
 * agree.
 */
#ifndef BELLJAR_SURVEY_SURVEY_JUDGE_H
#define BELLJAR_SURVEY_SURVEY_JUDGE_H

#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/text.h"

enum risk {
	RISK_NONE,
	RISK_REPORTED, /* people and agents change it at work: report it, do not protect it */
	RISK_PROTECTED,
};

/* A path that no table names: git's configuration names it, or a link behind a protected name leads to it. */
struct risk_extra {
	char *path;       /* below the work directory; what lies below it counts too */
	bool is_only_new; /* it counts if it was not there before */
	enum risk risk;
	const char *who;
	bool is_only_file; /* as a file: something else in its place does not count */
};

LIST_TYPE(struct risk_extra, risk_extra_list);

struct risk_rules {
	struct risk_extra_list extra;
	/*
	 * Does the directory (@len bytes of @directory) contain @name after the change? This recognises repositories
	 * without a work tree. NULL: there are none.
	 */
	bool (*has)(void *context, const char *directory, size_t len, const char *name);
	void *context;
};

/* Whether the path existed before the change, if known. */
enum risk_before { RISK_BEFORE_UNKNOWN, RISK_BEFORE_ABSENT, RISK_BEFORE_THERE };

struct risk_change {
	const char *path; /* below the work directory, "a/b" */
	mode_t mode;      /* its type now; 0: it is gone */
	enum risk_before before;
};

/* *@who_out: "git runs the programs in it"; unchanged for RISK_NONE. */
enum risk survey_risk_judge(const struct risk_rules *rules, const struct risk_change *change, const char **who_out);

/* The names of the tables, as a filter that answers most questions with one look. */
#define RISK_NAME_BITS 16384

struct risk_names {
	uint64_t bits[RISK_NAME_BITS / 64]; /* one for the hash of each name, without regard to case */
};

void survey_risk_names_init(struct risk_names *names);
/*
 * Can an entry of this name, in a directory that does not count by itself, count at all? False for most names, and
 * cheap: a walk asks it before it makes a path. Links, and what rules->extra has, can count with any name.
 */
bool survey_risk_is_known_name(const struct risk_names *names, const char *name, size_t len);

/* Does all that lies in the directory count, whatever its name, because of the directory's own name? */
bool survey_risk_counts_as_a_whole(const char *directory);

/* Does a name begin with a dash, or is it not plain text? Programs and people misread such names. */
bool survey_risk_is_misleading(const char *name);
/* *@who_out of survey_risk_judge() if the name only misleads. */
extern const char survey_risk_why_misleading[];

/* Add @extra with a copy of @path; 0 or -ENOMEM. */
int survey_risk_rules_add(struct risk_rules *rules, const char *path, const struct risk_extra *extra);
void survey_risk_rules_done(struct risk_rules *rules);

#endif
