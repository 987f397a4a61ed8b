/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_order.h - look at a workspace or decide about it: what every door does, and the answer as JSON
 *
 * The commands of the command line are made of these functions and print for people. The engine carries out whole orders of
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

/* The path @path below @workdir, without a look at the file system; a relative one starts in @here if that is in @workdir. */
int workspace_path_below(const char *workdir, const char *here, const char *path, struct string_list *to,
			 struct error *error);

/* Everything that is different, and whether it would be refused; what @allowed names is not. */
int workspace_judged_changes(const struct workspace_view *view, const struct string_list *allowed,
			     struct change_list *list, struct error *error);

/*
 * The changes to be applied: what an apply that was killed left behind is settled, and what is not as @viewer was shown it is
 * refused. Nothing may have the workspace mounted.
 */
int workspace_changes_to_apply(const struct opened_workspace *opened, enum workspace_viewer viewer,
			       const struct string_list *allowed, struct change_list *list, struct error *error);

/* Everything was applied or dropped: an unnamed workspace has done its work, a named one begins anew. */
int workspace_finish(struct opened_workspace *opened, struct error *error);

/* Drop the changes below @paths. What could not be dropped by itself is in @left. */
int workspace_drop_paths(struct opened_workspace *opened, const struct string_list *paths, struct change_list *left,
			 size_t *dropped_out, struct error *error);

/* workspace_checkpoint(), but where nothing was ever changed it is WORKSPACE_ORIGIN, and nothing is made. */
int workspace_mark(struct opened_workspace *opened, const char *note, char id_out[WORKSPACE_ID_SIZE],
		   struct error *error);
/* workspace_rollback(), also to WORKSPACE_ORIGIN. A copy is gone after that. */
int workspace_go_back(struct opened_workspace *opened, const char *checkpoint, struct error *error);
/*
 * So many workspaces that go on from here, by their ids. Where nothing was ever changed there is nothing to go on from: @ids
 * stays empty.
 */
int workspace_fork(struct opened_workspace *opened, unsigned count, struct string_list *ids, struct error *error);

struct json_writer;
/* Members of an object: what it is. */
void workspace_write_facts(const struct workspace_meta *meta, struct json_writer *json);
/* One object: a workspace with its changes; what became of an apply. */
void workspace_write_changes(const struct opened_workspace *opened, const struct change_list *list, struct text *out);
void workspace_write_outcome(const struct apply_outcome *outcome, const struct change_list *list, bool is_kept,
			     struct text *out);
/* One object: what it is, and how much it changes. */
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

/* Does it only look? Else nothing may have the workspace mounted. */
static inline bool workspace_verb_looks(enum workspace_verb verb)
{
	return verb == WORKSPACE_SHOW || verb == WORKSPACE_DIFF || verb == WORKSPACE_PATCH;
}

/* What is asked for. Lists are NULL-terminated or NULL. */
struct workspace_order {
	enum workspace_verb verb;
	const char *which;     /* an id, or a name */
	const char *directory; /* of whose workspaces it is the name of one; NULL: none */
	char *const *environment;
	char *const *paths;  /* NULL: everything */
	char *const *theirs; /* WORKSPACE_APPLY: these four */
	char *const *ours;
	char *const *risky;
	const char *note;       /* WORKSPACE_CHECKPOINT; NULL: none */
	const char *checkpoint; /* WORKSPACE_ROLLBACK; NULL: the last */
	unsigned count;         /* WORKSPACE_FORK */
};

/* Do it, and append the answer: JSON, or the patch. */
int workspace_carry_out(const struct workspace_order *order, struct text *out, struct error *error);

#endif
