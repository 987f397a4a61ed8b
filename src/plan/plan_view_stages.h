/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan_view_stages.h - the three stages that make a view, and their shared functions
 */
#ifndef BELLJAR_PLAN_PLAN_VIEW_STAGES_H
#define BELLJAR_PLAN_PLAN_VIEW_STAGES_H

#include "plan/plan_view.h"

/* plan_view_links.c: refuse a path that the policy names through a link that a command may have put there. */
int plan_view_refuse_written_links(struct plan_build *build);
/* plan_view_collect.c: collect all places of the policy and the host; of two at one target the later one will win. */
int plan_view_collect(struct plan_build *build, struct view *view);
/* plan_view_order.c: one place at each target, outer before inner. */
void plan_view_order(struct plan_build *build, struct view *view);
/* plan_view_protect.c: add places beyond the order: files to protect, to hide, and to keep from being moved. */
int plan_view_protect(struct plan_build *build, struct view *view, struct view *pins);
/* plan_view_own.c: make Belljar's own files read-only; refuse where they would be writable without mounts. */
int plan_view_guard_own(struct plan_build *build, struct view *view);
/* plan_view_protect.c: return where the host's @path shows through @place, if nothing covers it; NULL: nowhere. */
const char *plan_view_seen_through(struct plan_build *build, const struct view *view, const struct place *place,
				   const char *path);

/* plan_layers.c: add a directory under a layer, or a copy of it. Returns its path in the jar. */
const char *plan_view_add_layer(struct plan_build *build, struct view *view, const struct host_layer *layer);

/* plan_view_notes.c: report which of the caller's tools the finished view does not have. */
void plan_view_note_tools(struct plan_build *build, const struct view *view);

/* plan_view.c: add a place; never NULL (after a failure a spare one that is never read). */
struct place *plan_view_add(struct plan_build *build, struct view *view, enum place_kind kind, const char *target);
struct place *plan_view_add_bind(struct plan_build *build, struct view *view, const struct host_path *from,
				 const char *target, unsigned flags);
/* Record the object that the survey saw at the place: if the jar finds another there, a process may have swapped it. */
void plan_view_set_on_host(struct place *place, const struct host_path *path);

/* plan_view_order.c: sort again after additions or changes. */
void plan_view_sort(struct plan_build *build, struct view *view);
/* Compare so that a directory precedes its content, and that its siblings: less than, equal to or greater than 0. */
int plan_view_compare_paths(const char *a, const char *b);
/* Remove the places marked is_dropped; the others stay in order. */
void plan_view_remove_dropped(struct view *view);
/* As plan_view_around(), but past places that are marked is_dropped. */
const struct place *plan_view_standing_around(const struct view *view, size_t index);
/* The innermost place that encloses @path, which need not be a place itself; NULL: the root. */
const struct place *plan_view_innermost(const struct view *view, const char *path);
/* @path with every link of the view that it leads through replaced by where that leads. */
const char *plan_view_through_links(struct plan_build *build, const struct view *view, const char *path);

#endif
