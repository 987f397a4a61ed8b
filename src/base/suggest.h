/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/suggest.h - "did you mean ...?": the known word nearest to one that is not known
 */
#ifndef BELLJAR_BASE_SUGGEST_H
#define BELLJAR_BASE_SUGGEST_H

#include "base/base.h"

/* For candidates in a table of another shape: start with {.word = ...}, consider each, read @best. */
struct suggestion {
	const char *word;
	const char *best; /* NULL while nothing is near */
	size_t distance;
};

void suggest_consider(struct suggestion *suggestion, const char *candidate);

/* Return the nearest of a NULL-terminated list, or NULL if none is near. */
const char *suggest_from(const char *word, const char *const *candidates);

#endif
