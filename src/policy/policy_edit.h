/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/policy_edit.h - add a rule to a policy file, and leave everything else in it as it is
 */
#ifndef BELLJAR_POLICY_POLICY_EDIT_H
#define BELLJAR_POLICY_POLICY_EDIT_H

#include <sys/types.h>

#include "policy/policy_build.h"

/*
 * The document with @rule, in its canonical form, at the end of allow_net; comments and layout stay. -EINVAL: there is no
 * place for it.
 */
int policy_edit_text(const char *document, size_t len, const char *rule, struct text *out);
/* A policy file as it was before anything ran: a command that can write where it lies cannot have another one edited. */
struct policy_edit {
	char *path;       /* without links; NULL: there is none */
	const char *name; /* the last part of it */
	int directory_fd;
	int held_fd; /* the file itself: as long as it is held no other can get its number */
	dev_t device;
	ino_t inode;
};

/* 0 or a negative errno. */
int policy_edit_open(struct policy_edit *file, const char *path);
void policy_edit_done(struct policy_edit *file); /* accepts one that is all zeroes */
/*
 * Add @rule: another file takes its place, whole or not at all. What it would say then is read before, and must be what it says now
 * and @rule.
 */
int policy_edit_add_rule(struct policy_edit *file, const char *rule, const struct policy_context *context,
			 struct error *error);

#endif
