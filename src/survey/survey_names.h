/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_names.h - the names of files that the default policy knows; each list stands here and nowhere else
 */
#ifndef BELLJAR_SURVEY_SURVEY_NAMES_H
#define BELLJAR_SURVEY_SURVEY_NAMES_H

#include <stdbool.h>

#include <stddef.h>

/* Lists of certificate authorities; each ends with NULL. */
extern const char *const survey_trust_names[];
extern const char *const survey_java_trust_names[];

/* Variables whose value git runs. */
extern const char *const survey_git_variables[];

/* Each list ends with NULL. */
extern const char *const survey_system_names[]; /* the operating system's directories */
extern const char *const survey_etc_names[]; /* sorted: what of /etc programs need to work; nothing that is a secret */
extern const char *const survey_device_names[];      /* in /dev */
extern const char *const survey_system_trees[];      /* neither they nor anything in them may be a workdir ... */
extern const char *const survey_system_exceptions[]; /* ... but what lies in these may */
extern const char *const survey_system_tops[];       /* these themselves may not be a workdir; what lies in them may */

/* A name below a project's top, and what makes it worth a warning: "git runs the programs in it". */
struct host_name {
	const char *name;
	const char *who;
	bool is_of_top; /* of the protected names: below the top no program runs or obeys it */
};
/* Each ends with a NULL name. */
extern const struct host_name survey_protected_names[]; /* files that other programs run or obey without being asked */
extern const struct host_name
	survey_instruction_names[]; /* what people and agents write at work, and tools obey: it is only reported */
extern const struct host_name
	survey_build_names[]; /* what people run to build and test: shown apart before a workspace is applied */
extern const char *const survey_filled_names[]; /* directories that tools fill, at any depth; NULL ends it */

/*
 * Places that hold secrets, or give away the host: no change of a policy that shows one is ever proposed, and none is a workdir.
 * A name with a slash in front is that path, one with "~/" in front lies in the home directory; others are meant below any directory.
 */
extern const struct host_name survey_secret_names[];

/* Tools below the home directory: if PATH has `directory`, then `needs` are visible too. */
struct host_toolchain {
	const char *directory;
	const char *needs[6]; /* ends with NULL */
	bool has_links; /* installers put links there, to programs elsewhere below home; and it is nobody's workdir */
};
extern const struct host_toolchain survey_toolchains[]; /* ends with a NULL directory */
/*
 * Below the home directory: what tools manage by themselves, and nobody works in. A link in one that stays in it counts,
 * and a program of one that a link of has_links leads to comes with its directory.
 */
extern const char *const survey_tool_trees[];

/* What a Python environment or installation has at its top; a project around it has other names. */
extern const char *const survey_prefix_names[];
extern const char *const survey_conda_names[];   /* and those of conda besides */
extern const char *const survey_python_stores[]; /* below home: where tools install Pythons */

#endif
