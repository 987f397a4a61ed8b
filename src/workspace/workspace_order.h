/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_order.h - read, apply or discard a workspace, for every door, with the answer as JSON
 *
 * The commands of the command line use these functions and print for people. The engine carries out whole orders of
 * its clients.
 */
#ifndef BELLJAR_WORKSPACE_WORKSPACE_ORDER_H
#define BELLJAR_WORKSPACE_WORKSPACE_ORDER_H

#include "workspace/workspace_apply.h"
#include "workspace/workspace_shown.h"

#define WORKSPACE_FORKS_MAX 256
/* The name of the state before anything was changed. */
#define WORKSPACE_ORIGIN "origin"

/* A workspace, found and opened. */
struct opened_workspace {
	struct workspace_home home;
	struct workspace workspace;
	struct workspace_view view; /* if it was opened */
};
void workspace_opened_done(struct opened_workspace *opened);

/* Make @path relative to @workdir, without the file system. It may be relative to @here, if that is in @workdir. */
int workspace_path_below(const char *workdir, const char *here, const char *path, struct string_list *to,
			 struct error *error);

/* List all changes, and mark those that are refused; changes that @allowed names are not. */
int workspace_judged_changes(const struct workspace_view *view, const struct string_list *allowed,
			     struct change_list *list, struct error *error);

/*
 * List the changes to be applied. First settle what a killed apply left behind; refuse each change that differs from
 * what @viewer was shown. Nothing may have the workspace mounted.
 */
int workspace_changes_to_apply(const struct opened_workspace *opened, enum workspace_viewer viewer,
			       const struct string_list *allowed, struct change_list *list, struct error *error);

/* Finish after everything was applied or dropped: remove an unnamed workspace, reset a named one. */
int workspace_finish(struct opened_workspace *opened, struct error *error);

/* Drop the changes below @paths. @left gets the changes that cannot be dropped alone. */
int workspace_drop_paths(struct opened_workspace *opened, const struct string_list *paths, struct change_list *left,
			 size_t *dropped_out, struct error *error);

/* As workspace_checkpoint(), but without any change yet the id is WORKSPACE_ORIGIN, and nothing is made. */
int workspace_mark(struct opened_workspace *opened, const char *note, char id_out[WORKSPACE_ID_SIZE],
		   struct error *error);
/* workspace_rollback(), also to WORKSPACE_ORIGIN. A copy is gone after that. */
int workspace_go_back(struct opened_workspace *opened, const char *checkpoint, struct error *error);
/*
 * Make @count workspaces that start with the changes of this one, and add their ids to @ids. Without any change yet,
 * @ids stays empty.
 */
int workspace_fork(struct opened_workspace *opened, unsigned count, struct string_list *ids, struct error *error);

struct json_writer;
/* Write the members that describe a workspace. */
void workspace_write_facts(const struct workspace_meta *meta, struct json_writer *json);
/* Write one object: a workspace with its changes; the outcome of an apply. */
void workspace_write_changes(const struct opened_workspace *opened, const struct change_list *list, struct text *out);
void workspace_write_outcome(const struct apply_outcome *outcome, const struct change_list *list, bool is_kept,
			     struct text *out);
/* Write one object: the description of a workspace, and the counts of its changes. */
int workspace_write_summary(const struct opened_workspace *opened, struct text *out, struct error *error);

enum workspace_verb {
	WORKSPACE_SHOW,
	WORKSPACE_DIFF,
	WORKSPACE_PATCH,
	WORKSPACE_APPLY,
	WORKSPACE_DISCARD,
	WORKSPACE_CHECKPOINT,
	WORKSPACE_ROLLBACK,
	WORKSPACE_FORK,
	WORKSPACE_VERB_COUNT,
};

/* Report whether it only reads. Else nothing may have the workspace mounted. */
static inline bool workspace_verb_looks(enum workspace_verb verb)
{
	return verb == WORKSPACE_SHOW || verb == WORKSPACE_DIFF || verb == WORKSPACE_PATCH;
}

/* A request. Lists are NULL-terminated or NULL. */
struct workspace_order {
	enum workspace_verb verb;
	const char *which;     /* an id, or a name */
	const char *directory; /* the workdir that the name belongs to; NULL: none */
	char *const *environment;
	char *const *paths;  /* NULL: everything */
	char *const *theirs; /* WORKSPACE_APPLY: these four */
	char *const *ours;
	char *const *risky;
	const char *note;       /* WORKSPACE_CHECKPOINT; NULL: none */
	const char *checkpoint; /* WORKSPACE_ROLLBACK; NULL: the last */
	unsigned count;         /* WORKSPACE_FORK */
};

/* Carry out the order, and append the answer: JSON, or the patch. */
int workspace_carry_out(const struct workspace_order *order, struct text *out, struct error *error);

#endif
