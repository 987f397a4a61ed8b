/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_guard.h - watch that the files a jar hides stay where the jar hides them
 */
#ifndef BELLJAR_ENGINE_ENGINE_GUARD_H
#define BELLJAR_ENGINE_ENGINE_GUARD_H

#include "base/loop.h"
#include "survey/survey.h"

/* A path that a mount covers, and the shown directory around it. */
struct guard_item {
	const char *path; /* the host's; borrowed */
	const char *name; /* below the root */
	dev_t device;
	ino_t inode;
	int root_fd;
};

LIST_TYPE(struct guard_item, guard_item_list);

struct engine_guard {
	struct guard_item_list items;
	int inotify_fd; /* 0: nothing is watched */
	bool has_moved; /* an object was, and its cover with it, whatever has its name now */
	struct loop_watch watch;
	void (*lifted)(void *owner, const struct error *error);
	void *owner;
};

/*
 * Watch all that a jar with @policy on @host hides, and Belljar's own files in it. Calls lifted() from within
 * the loop when one has moved. @host and its paths must outlive the guard. With nothing to watch this succeeds.
 */
int engine_guard_open(struct engine_guard *guard, struct loop *loop, const struct host *host,
		      const struct policy *policy, void (*lifted)(void *owner, const struct error *error), void *owner,
		      struct error *error);
/* Whether one has moved; then @error says which. */
bool engine_guard_is_lifted(struct engine_guard *guard, struct error *error);
void engine_guard_close(struct engine_guard *guard);

#endif
