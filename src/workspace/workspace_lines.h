/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_lines.h - compare two texts by lines, and print the differences as a patch
 */
#ifndef BELLJAR_WORKSPACE_WORKSPACE_LINES_H
#define BELLJAR_WORKSPACE_WORKSPACE_LINES_H

#include "base/text.h"

/* A stretch of lines that was replaced; either side may be empty. */
struct edit {
	size_t old_from, old_count;
	size_t new_from, new_count;
};

struct edit_list {
	struct edit *items;
	size_t count;
	size_t capacity;
};

struct line {
	const char *bytes;
	size_t len;  /* with its newline, if it has one */
	uint32_t id; /* the same for lines that are the same */
};

struct line_list {
	struct line *items;
	size_t count;
	size_t capacity;
};

/* Both borrow the bytes. 0 or -ENOMEM. */
int workspace_lines_split(struct line_list *out, const char *bytes, size_t len);
/* Find few edits, the fewest if that is not too much work. They never overlap and are in order. */
int workspace_lines_compare(struct line_list *old, struct line_list *new, struct edit_list *out);

/* Append the hunks of a unified diff, with three lines around each. Nothing if the texts are the same. */
int workspace_lines_print(const char *old, size_t old_len, const char *new, size_t new_len, struct text *out);
/* Count added and removed lines. */
int workspace_lines_count(const char *old, size_t old_len, const char *new, size_t new_len, size_t *added,
			  size_t *removed);

#endif
