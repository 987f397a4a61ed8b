/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan_view.h - what the jar will see, place by place, before it becomes steps or rules
 *
 * Places are collected in layers, from the most general to what the user named. Of two for the same target the later
 * one counts; of nested ones each counts for its own part. Mount steps and Landlock rules are both made from the
 * finished view, so the two walls cannot disagree.
 */
#ifndef BELLJAR_PLAN_PLAN_VIEW_H
#define BELLJAR_PLAN_PLAN_VIEW_H

#include "base/paths.h"
#include "plan/plan_build.h"

enum place_kind {
	PLACE_BIND,
	PLACE_PRIVATE,
	PLACE_TMPFS,
	PLACE_SYMLINK,
	PLACE_FILE,
	PLACE_HIDDEN,
	PLACE_PROC,
	PLACE_DEVPTS
};

struct place {
	enum place_kind kind;
	const char *target;
	const char *source; /* PLACE_BIND: host path; PLACE_SYMLINK, PLACE_FILE: text */
	unsigned flags;     /* enum step_flag */
	mode_t mode;
	uint64_t limit; /* PLACE_TMPFS: bytes; PLACE_DEVPTS: terminals */
	dev_t device;
	ino_t inode;
	enum path_kind on_client; /* what stands at the target if that lies in a host directory ... */
	dev_t place_device;       /* ... and which object exactly; inode 0: any */
	ino_t place_inode;
	bool is_guard;   /* a protected file: of the mounts alone, Landlock cannot take it back */
	bool is_in_host; /* the place around it is a host directory: finished views only */
	bool is_dropped; /* while the view is being made */
	size_t around;   /* index of the innermost place that encloses it, in a view in order; SIZE_MAX: the root */
	size_t order;
};

LIST_TYPE(struct place, view);

/* plan_ways.c: refuse a path that is named by way of a link which a command may have put there. */
int view_check_ways(struct plan_build *build);
/* The places of build's policy on its host: sorted, each target once, outer before inner. */
int view_collect(struct plan_build *build, struct view *view);
/* The innermost place that encloses place @index of a finished view; NULL: the root itself. */
const struct place *view_around(const struct view *view, size_t index);
void view_done(struct view *view);

#endif
