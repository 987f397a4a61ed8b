/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/skeleton/skeleton.h - what of a jar's root is the same at every start, made once
 */
#ifndef BELLJAR_ENGINE_SKELETON_SKELETON_H
#define BELLJAR_ENGINE_SKELETON_SKELETON_H

#include "plan/plan.h"

struct engine_skeleton {
	int fd; /* nobody removes it while this is open; 0: there is none */
};

/*
 * Where this caller's are kept, as host->skeletons: the directory is made, so that no jar can make it. Nothing is used yet. 0 or
 * -ENOMEM; where there is no such directory that is the caller's alone, it is PATH_ABSENT.
 */
int skeletons_find(struct host *host);
/*
 * The one that @plan wants, into its STEP_SKELETON. A negative errno: there is none this time, and another plan must do without.
 */
int skeleton_open(struct engine_skeleton *skeleton, const struct host *host, struct plan *plan);
/* It could not be mounted: remember that. */
void skeleton_refuse(struct engine_skeleton *skeleton, const struct host *host, const struct plan *plan);
void skeleton_close(struct engine_skeleton *skeleton);

/* How many are kept, or a negative errno: there is no directory for them that is the caller's alone. */
ssize_t skeletons_count(const struct host *host);

#endif
