/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/policy_patterns.h - patterns of paths, in `hide`, `ro` and `rw`
 *
 * '*' and '?' match within a name, "[...]" one character of a class ('!' or '^' negates), "**" as a whole name any number of
 * directories. A dot in front is a character like others. '\' makes one of "*?[]\" mean itself, and is itself elsewhere.
 */
#ifndef BELLJAR_POLICY_POLICY_PATTERNS_H
#define BELLJAR_POLICY_POLICY_PATTERNS_H

#include "policy/policy_origin.h"

/* Has @text a character that means others? A '[' that no ']' ends means itself. */
bool policy_pattern_is(const char *text);
/* The same of the first @len bytes. */
bool policy_pattern_part_is(const char *text, size_t len);
/* Without the '\' before what means itself; in place. */
void policy_pattern_unquote(char *text);
/* Add what means @path and nothing else. */
void policy_pattern_quote(struct text *text, const char *path);
/* Does one name match? Each pattern takes at most its length times the name's. */
bool policy_pattern_matches(const char *pattern, size_t len, const char *name);
/* How many bytes of a cleaned pattern come before the slash of the first name that means others. */
size_t policy_pattern_prefix(const char *text);

/*
 * Clean a path or a pattern as policy_clean_path() does for PATH_HOST, but for relative patterns: they stay relative, to the work
 * directory. *@is_pattern: which of the two it is; a pattern takes no @dest. A path comes without its '\', a pattern with it; owned
 * by the caller.
 */
int policy_clean_pattern(const char *given, const char *dest, const struct policy_origin *origin, bool *is_pattern,
			 char **out);
/* The same, with the '\' in both. */
int policy_read_pattern(const char *given, const struct policy_origin *origin, char **out);

#endif
