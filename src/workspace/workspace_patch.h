/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_patch.h - changes as a patch that `git apply` takes, as counts of lines, and as JSON
 */
#ifndef BELLJAR_WORKSPACE_WORKSPACE_PATCH_H
#define BELLJAR_WORKSPACE_WORKSPACE_PATCH_H

#include "workspace/workspace_changes.h"

/* Text files up to this size are compared line by line; a larger file counts as binary. */
#define PATCH_TEXT_BYTES ((uint64_t)4 << 20)
/* Binary files up to this size are in the patch; for a larger one the patch only has "differ". */
#define PATCH_BINARY_BYTES ((uint64_t)16 << 20)
/* Files up to this size get digests. */
#define PATCH_DIGEST_BYTES ((uint64_t)1 << 30)

/*
 * Append the patch of one change. A directory has none. The patch of a conflict says what the command changed: its old
 * side is the version before both changes, if that was kept, so that `git apply --3way` merges.
 */
int workspace_patch_print(const struct workspace_view *view, const struct workspace *workspace,
			  const struct change *change, struct text *out);

struct patch_count {
	size_t added, removed;
	bool is_binary;
};
int workspace_patch_count(const struct workspace_view *view, const struct workspace *workspace,
			  const struct change *change, struct patch_count *out);

/* One object with everything about the change; digests where a side is a file or a link. */
struct json_writer;
void workspace_patch_json(const struct workspace_view *view, const struct change *change, struct json_writer *json);

/* As git writes a name: in quotes and with octal numbers, if it has anything but plain characters in it. */
void workspace_patch_quote(struct text *out, const char *prefix, const char *name);

#endif
