/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/policy_patterns.h - patterns of paths, in `hide`, `ro` and `rw`
 *
 * '*' and '?' match within a name, "[...]" one character of a class ('!' or '^' negates), "**" as a whole name any
 * number of directories. A leading dot is ordinary. '\' makes one of "*?[]\" literal, and is literal elsewhere.
 */
#ifndef BELLJAR_POLICY_POLICY_PATTERNS_H
#define BELLJAR_POLICY_POLICY_PATTERNS_H

#include "policy/policy_origin.h"

/* Does @text have a wildcard? A '[' without a ']' is literal. */
bool policy_pattern_is(const char *text);
/* The same for the first @len bytes. */
bool policy_pattern_part_is(const char *text, size_t len);
/* Remove the '\' of escaped characters, in place. */
void policy_pattern_unquote(char *text);
/* Append @path, escaped so that it matches only itself. */
void policy_pattern_quote(struct text *text, const char *path);
/* Does one name match? The cost is at most the pattern's length times the name's. */
bool policy_pattern_matches(const char *pattern, size_t len, const char *name);
/* Return how many bytes of a cleaned pattern precede the slash before the first name with a wildcard. */
size_t policy_pattern_prefix(const char *text);

/*
 * Clean a path or a pattern as policy_clean_path() does for PATH_HOST, except that a relative pattern stays relative
 * to the work directory. *@is_pattern: which of the two it is; a pattern takes no @dest. The result, which the caller
 * owns, is a path without '\' or a pattern with it.
 */
int policy_clean_pattern(const char *given, const char *dest, const struct policy_origin *origin, bool *is_pattern,
			 char **out);
/* The same, with the '\' in both. */
int policy_read_pattern(const char *given, const struct policy_origin *origin, char **out);

#endif
