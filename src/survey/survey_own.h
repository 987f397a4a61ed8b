/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_own.h - Belljar's own files: what of them lies where, and whether it changed
 */
#ifndef BELLJAR_SURVEY_SURVEY_OWN_H
#define BELLJAR_SURVEY_SURVEY_OWN_H

#include "survey/survey.h"

/* The variable by which a client names the directory of its package. */
#define HOST_PACKAGE_VARIABLE "BELLJAR_PACKAGE"

/* Fill host->own and host->started_by; after the workdir was looked at. 0 or -ENOMEM. */
int survey_find_own(struct host *host);

/* What Belljar's own files are at a moment: one number for each item of host->own. */
struct host_own_marks {
	uint64_t *items; /* NULL: not taken */
	size_t count;
};

/* Take the marks of @host's own files; of a package only where a command with @policy may write around it. 0 or -ENOMEM. */
int survey_own_look(const struct host *host, const struct policy *policy, struct host_own_marks *out);
/* The path of one that is another now than in @before; NULL: none is. */
const char *survey_own_changed(const struct host *host, const struct policy *policy,
			       const struct host_own_marks *before);
void survey_own_marks_done(struct host_own_marks *marks);

#endif
