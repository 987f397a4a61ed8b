/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/policy_origin.h - where a value comes from: what its relative paths mean, and how messages name it
 */
#ifndef BELLJAR_POLICY_POLICY_ORIGIN_H
#define BELLJAR_POLICY_POLICY_ORIGIN_H

#include "policy/policy_build.h"

/* A document, or all the flags. */
struct policy_source {
	const char *name;      /* of the document; NULL: flags */
	bool is_from_program;  /* values from a program, for which lines and columns have no meaning */
	const char *directory; /* where relative paths start */
	const char *home;      /* NULL: not known */
	struct error *error;
};

/* One value in it. */
struct policy_origin {
	const struct policy_source *source;
	const struct policy_key *key;
	bool is_negated; /* flags: the --no- form */
	unsigned line;   /* documents */
	unsigned column;
};

/* Append "p.json:2:14: ", or nothing for values from a program. */
void policy_append_place(struct text *text, const struct policy_source *source, unsigned line, unsigned column);

/*
 * Record an error about the value: "--timeout 5x: MESSAGE" or "p.json:2:14: timeout '5x': MESSAGE". @shown is the
 * value; NULL leaves it out, as for a possible secret. Returns a negative errno.
 */
int policy_refuse(const struct policy_origin *origin, const char *shown, const char *format, ...) PRINTF_LIKE(3, 4);

/* The same for Belljar's own failure: -ENOMEM, or -E2BIG for a full list. */
int policy_refuse_errno(const struct policy_origin *origin, int rc);

static inline bool policy_is_flag(const struct policy_origin *origin)
{
	return !origin->source->name;
}

#endif
