/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_watch.h - what in a project other programs run or obey without being asked
 *
 * The same search is made before a run, to protect what it finds, and after it: what it finds only then, or finds changed, is
 * what the command may have planted. It looks where git would look: at what the configuration names, at the repositories
 * that .gitmodules names, through links. git itself is never run, nothing is executed, and what is read is read
 * beneath directories that were opened before, through no link, as far as a bound.
 */
#ifndef BELLJAR_SURVEY_SURVEY_WATCH_H
#define BELLJAR_SURVEY_SURVEY_WATCH_H

#include "survey/survey.h"

/*
 * What a search may cost. What it reads was perhaps written to keep it busy: a configuration that includes itself a thousand
 * times, a .gitmodules of thousands of paths.
 */
struct watch_budget {
	size_t looks;
	uint64_t bytes;
};
#define WATCH_BUDGET                                                                                                   \
	{                                                                                                              \
		.looks = 16384, .bytes = 64 << 20                                                                      \
	}

/*
 * Fill @found, and @pinned, unless it is NULL, with the directories above what is protected. Of files that changed after
 * @settled_ns, what is in them is remembered too. 0 or a negative errno.
 */
int survey_watch(const struct host *host, int64_t settled_ns, struct watch_list *found, struct host_path_list *pinned);
/* The same for one repository in the workdir, whose work tree is @directory; *@has_programs_out: its configuration names some. */
int survey_watch_nested(const struct host *host, const char *directory, bool is_bare, struct watch_budget *budget,
			struct watch_list *found, bool *has_programs_out);
void survey_watch_done(struct watch_list *list);
/*
 * Is there nothing that a command may write, but a work directory without a repository and without any name in it? Then survey_watch() finds
 * nothing to protect.
 */
bool survey_is_empty(const struct host *host);

/*
 * Which of these names a directory has, a bit for each, says whether git takes it for a repository without a work tree:
 * HEAD, and objects and refs, or commondir, which says where those are.
 */
#define GIT_BARE_NAMES 4
extern const char *const survey_git_bare_names[GIT_BARE_NAMES];
bool survey_git_is_bare(unsigned names);

#endif
