/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan_view.h - the view of the jar, place by place, before it becomes steps or rules
 *
 * A place is one target in the jar and the object there. Mount steps and Landlock rules both come from the finished
 * view, so the two walls cannot disagree. plan_view.c describes how a view is made.
 *
 * Another way to show a host directory is a kind of place: a row in step_of_place[] of plan_mounts.c, an answer of the
 * questions below, and one line where the place is added, in plan_view_collect.c.
 */
#ifndef BELLJAR_PLAN_PLAN_VIEW_H
#define BELLJAR_PLAN_PLAN_VIEW_H

#include "base/paths.h"
#include "plan/plan_build.h"

enum place_kind {
	PLACE_BIND,
	PLACE_OVERLAY, /* a host directory under a layer */
	PLACE_PRIVATE,
	PLACE_TMPFS,
	PLACE_SYMLINK,
	PLACE_FILE,
	PLACE_HIDDEN,
	PLACE_PROC,
	PLACE_DEVPTS,
	PLACE_PIN
};

struct place {
	enum place_kind kind;
	const char *target;
	const char *source;         /* PLACE_BIND, PLACE_OVERLAY: host path; PLACE_SYMLINK, PLACE_FILE: text */
	unsigned flags;             /* enum step_flag */
	const struct text *content; /* PLACE_FILE: its content if that is binary; else NULL */
	bool is_over;               /* PLACE_FILE: covers a file of the host */
	bool is_own;                /* PLACE_FILE: the next jar of the same kind may have another one */
	mode_t mode;
	uint64_t limit; /* PLACE_TMPFS: bytes; PLACE_DEVPTS: terminals */
	dev_t device;
	ino_t inode;
	enum path_kind on_host; /* the kind of the object at the target if that is in a host directory ... */
	dev_t place_device;     /* ... and the exact object; inode 0: any */
	ino_t place_inode;
	const struct host_layer
		*layer;      /* PLACE_OVERLAY: the one that lies over it; PLACE_BIND: a copy of `source` stands there */
	bool is_copied;      /* PLACE_BIND: copied, with `mode`, where it stands in the jar's own root ... */
	int64_t changed_ns;  /* ... of a file that last changed then ... */
	uint64_t size_bytes; /* ... and had this size */
	bool is_protected;   /* for mounts only: Landlock cannot take rights back */
	bool is_in_host;     /* the place around it shows a host directory: finished views only */
	bool is_dropped;     /* while the view is being made */
	size_t around;       /* index of the innermost place that encloses it, in a view in order; SIZE_MAX: the root */
	size_t order;        /* of two places at one target the one with the higher number wins */
};

LIST_TYPE(struct place, view);

/* Does it show an object of the host? Then its content is visible, and other places in it cover that. */
static inline bool plan_place_shows_host(const struct place *place)
{
	return place->kind == PLACE_BIND || place->kind == PLACE_OVERLAY;
}

/* Does the host keep what the command writes there? */
static inline bool plan_place_writes_host(const struct place *place)
{
	return place->kind == PLACE_BIND && !place->layer && !(place->flags & STEP_READ_ONLY);
}

/*
 * Make the places of build's policy on its host, sorted, each target once, outer before inner. @pins gets the host's
 * directories that must not move.
 */
int plan_view_make(struct plan_build *build, struct view *view, struct view *pins);
/* plan_layers.c: set the parameters of @step, of a place under @layer. */
void plan_set_layer(struct plan_build *build, struct plan_step *step, const struct host_layer *layer);
/* Return the innermost place that encloses place @index of a sorted view; NULL: the root itself. */
const struct place *plan_view_around(const struct view *view, size_t index);
void plan_view_done(struct view *view);

#endif
