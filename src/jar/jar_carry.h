/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jar/jar_carry.h - carry a list of steps out, in order; those that may be done beside the others by a second thread
 */
#ifndef BELLJAR_JAR_JAR_CARRY_H
#define BELLJAR_JAR_JAR_CARRY_H

#include "jar/jar_inside.h"

struct jar_progress {
	uint32_t done;
	int failed_step; /* -1: none */
	int error;       /* of it: a negative errno */
};

/* @times: when each step was done, or NULL. 0 or the negative errno of the step that failed. */
int jar_carry_out(struct jar_build *build, const struct plan_step_list *steps, uint64_t *times,
		  struct jar_progress *progress);

#endif
