/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_flags.h - compare the flags a text mentions with those of the tables, both ways
 */
#ifndef BELLJAR_TESTS_UNIT_TEST_FLAGS_H
#define BELLJAR_TESTS_UNIT_TEST_FLAGS_H

#include <stdio.h>
#include <string.h>

#include "door/cli/options.h"

#define FLAG_CHARACTERS "abcdefghijklmnopqrstuvwxyz0123456789_-"

static inline bool flag_is_known(const char *flag)
{
	struct option_cursor cursor = {0};
	struct option_row row;

	while (cli_options_next(&cursor, &row))
		if (strcmp(row.flag, flag) == 0 ||
		    (row.is_negatable && strncmp(flag, "no-", 3) == 0 && strcmp(row.flag, flag + 3) == 0))
			return true;
	return strcmp(flag, "version") == 0;
}

/* Is there @prefix and then exactly @flag in @text? "--ro" is not in "--root". */
static inline bool text_has_flag(const char *text, const char *prefix, const char *flag)
{
	char word[128];
	size_t len = (size_t)snprintf(word, sizeof(word), "%s%s", prefix, flag);

	for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
		if (!at[len] || !strchr(FLAG_CHARACTERS, at[len]))
			return true;
	return false;
}

/*
 * Call @report for every flag in @text that neither table nor @foreign (NULL-terminated, may be NULL) knows. A flag is
 * what follows @prefix.
 */
static inline int count_unknown_flags(const char *text, const char *prefix, const char *const *foreign,
				      const char *where)
{
	int count = 0;

	for (const char *at = strstr(text, prefix); at; at = strstr(at + 1, prefix)) {
		char flag[64];
		bool is_foreign = false;
		const char *name = at + strlen(prefix);

		name += strncmp(name, "[no-]", 5) == 0 ? 5 : 0;
		snprintf(flag, sizeof(flag), "%.*s", (int)strspn(name, FLAG_CHARACTERS), name);
		if (flag[0] < 'a' || flag[0] > 'z' || (at > text && at[-1] == '-'))
			continue;
		for (size_t i = 0; foreign && foreign[i]; i++)
			is_foreign |= strcmp(foreign[i], flag) == 0;
		if (is_foreign || flag_is_known(flag))
			continue;
		printf("%s: no table has the flag '%s'\n", where, flag);
		count++;
	}
	return count;
}

#endif
