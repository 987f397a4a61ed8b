/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/policy_edit.h - add a rule to a policy file, and leave the rest of it unchanged
 */
#ifndef BELLJAR_POLICY_POLICY_EDIT_H
#define BELLJAR_POLICY_POLICY_EDIT_H

#include <sys/types.h>

#include "policy/policy_build.h"

/*
 * Write the document with @rule, in its canonical form, at the end of allow_net; comments and layout stay. Returns
 * -EINVAL if there is no place for it.
 */
int policy_edit_text(const char *document, size_t len, const char *rule, struct text *out);
/* A policy file as it was before any run, so that a command that can write its directory cannot redirect the edit. */
struct policy_edit {
	char *path;       /* without links; NULL: there is none */
	const char *name; /* the last part of it */
	int directory_fd;
	int held_fd; /* the file itself: while it is open, no other file can get its inode number */
	dev_t device;
	ino_t inode;
};

/* Returns 0 or a negative errno. */
int policy_edit_open(struct policy_edit *file, const char *path);
void policy_edit_done(struct policy_edit *file); /* accepts one that is all zeroes */
/*
 * Add @rule by an atomic replacement of the file. Before that, parse the new text: it must mean the old rules and
 * @rule.
 */
int policy_edit_add_rule(struct policy_edit *file, const char *rule, const struct policy_context *context,
			 struct error *error);

#endif
