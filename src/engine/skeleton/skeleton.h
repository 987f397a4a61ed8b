/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/skeleton/skeleton.h - skeletons: the part of a jar's root that is the same at every start, made once
 */
#ifndef BELLJAR_ENGINE_SKELETON_SKELETON_H
#define BELLJAR_ENGINE_SKELETON_SKELETON_H

#include "plan/plan.h"

struct engine_skeleton {
	int fd; /* holds a lock against removal; 0: there is none */
};

/*
 * Set host->skeletons; create the directory now, so that no jar can create it first. It is PATH_ABSENT if there
 * is no such directory that only the caller can use. 0 or -ENOMEM.
 */
int skeletons_find(struct host *host);
/*
 * Open the skeleton that @plan wants, for its STEP_SKELETON. A negative errno: there is none now; plan without one.
 */
int skeleton_open(struct engine_skeleton *skeleton, const struct host *host, struct plan *plan);
/* Remember that this skeleton could not be mounted. */
void skeleton_refuse(struct engine_skeleton *skeleton, const struct host *host, const struct plan *plan);
void skeleton_close(struct engine_skeleton *skeleton);

/* Count the skeletons. A negative errno: there is no directory for them that only the caller can use. */
ssize_t skeletons_count(const struct host *host);

#endif
