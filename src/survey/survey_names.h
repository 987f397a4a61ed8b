/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_names.h - the names of files that the default policy knows; each list exists only here
 */
#ifndef BELLJAR_SURVEY_SURVEY_NAMES_H
#define BELLJAR_SURVEY_SURVEY_NAMES_H

#include <stdbool.h>

#include <stddef.h>

/* Lists of certificate authorities; each ends with NULL. */
extern const char *const survey_trust_names[];
extern const char *const survey_java_trust_names[];

/* Variables whose value git runs as a program. */
extern const char *const survey_git_variables[];

/* Each list ends with NULL. */
extern const char *const survey_system_names[]; /* the operating system's directories */
extern const char *const survey_etc_names[];    /* sorted: the files of /etc that programs need; none is a secret */
extern const char *const survey_device_names[]; /* in /dev */
extern const char *const survey_system_trees[]; /* neither they nor anything in them may be a workdir ... */
extern const char *const survey_system_exceptions[]; /* ... but what lies in these may */
extern const char *const survey_system_tops[];       /* these themselves may not be a workdir; what lies in them may */

/* A name below a project's top, and what makes it worth a warning: "git runs the programs in it". */
struct host_name {
	const char *name;
	const char *who;
	bool is_of_top; /* of the protected names: programs run or read it at the top only */
};
/* Each ends with a NULL name. */
extern const struct host_name survey_protected_names[]; /* files that other programs run or read by themselves */
extern const struct host_name
	survey_instruction_names[]; /* instructions for tools that people and agents write at work: only reported */
extern const struct host_name
	survey_build_names[]; /* what people run to build and test: shown apart before a workspace is applied */
extern const char *const survey_filled_names[]; /* directories that tools fill, at any depth; NULL ends it */

/*
 * Places that hold secrets or reveal the host. Belljar never proposes a policy change that shows one, and none may be a
 * workdir. A name that begins with a slash is a path, "~/" means the home directory; others count below any directory.
 */
extern const struct host_name survey_secret_names[];

/* Tools below the home directory: if PATH contains `directory`, the jar shows `needs` too. */
struct host_toolchain {
	const char *directory;
	const char *needs[6]; /* ends with NULL */
	bool has_links;       /* installers put links there to programs elsewhere below home; users do not work in it */
};
extern const struct host_toolchain survey_toolchains[]; /* ends with a NULL directory */
/*
 * Directories below home that tools manage and users do not work in. A link within one counts. If a link of has_links
 * leads to a program in one, the jar shows the program's directory.
 */
extern const char *const survey_tool_trees[];

/* The names at the top of a Python environment or installation; a project around it has other names. */
extern const char *const survey_prefix_names[];
extern const char *const survey_conda_names[];   /* more of them, for conda */
extern const char *const survey_python_stores[]; /* below home: where tools install Python versions */

#endif
