/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_watch.h - find the files in a project that other programs run or read by themselves
 *
 * The same search runs before a run, to protect these files, and after it: new or changed ones are files that the
 * command may have planted. It looks where git would look: at files that the configuration names, at repositories
 * that .gitmodules names, through links. It never runs git or another program. It reads beneath directories that were
 * opened before, through no link, up to a bound.
 */
#ifndef BELLJAR_SURVEY_SURVEY_WATCH_H
#define BELLJAR_SURVEY_SURVEY_WATCH_H

#include "survey/survey.h"

/*
 * What a search may cost. A command may have written files to keep it busy: a configuration that includes itself a
 * thousand times, a .gitmodules of thousands of paths.
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
 * Fill @found, and @pinned, unless it is NULL, with the directories above the protected files. Record the content too
 * of files that changed after @settled_ns. Returns 0 or a negative errno.
 */
int survey_watch(const struct host *host, int64_t settled_ns, struct watch_list *found, struct host_path_list *pinned);
/* The same for a repository in the workdir with the work tree @directory. *@has_programs_out: its settings name any. */
int survey_watch_nested(const struct host *host, const char *directory, bool is_bare, struct watch_budget *budget,
			struct watch_list *found, bool *has_programs_out);
void survey_watch_done(struct watch_list *list);
/*
 * May a command write only an empty work directory without a repository? Then survey_watch() finds nothing to protect.
 */
bool survey_is_empty(const struct host *host);

/*
 * git takes a directory with these names for a repository without a work tree: HEAD, and either objects and refs, or
 * commondir, which names the directory that has those. A bit for each records which of them a directory has.
 */
#define GIT_BARE_NAMES 4
extern const char *const survey_git_bare_names[GIT_BARE_NAMES];
bool survey_git_is_bare(unsigned names);

#endif
