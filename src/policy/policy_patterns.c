/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/policy_patterns.c - distinguish patterns from paths, clean them, and compare them with names
 *
 * This code does not access the file system. survey/survey_globs.c finds the matches when a jar is made.
 */
#include "policy/policy_patterns.h"

#include <errno.h>
#include <string.h>

#include "policy/policy_paths.h"

static bool is_quotable(char character)
{
	return character && strchr("*?[]\\", character);
}

/* Return the length of the class at @at, with its brackets; 0: not a class. A leading ']' is one of its characters. */
static size_t class_length(const char *at, const char *end)
{
	const char *character = at + 1;

	if (at >= end || *at != '[')
		return 0;
	if (character < end && (*character == '!' || *character == '^'))
		character++;
	if (character < end && *character == ']')
		character++;
	while (character < end && *character != ']' && *character != '/')
		character += *character == '\\' && character + 1 < end ? 2 : 1;
	return character < end && *character == ']' ? (size_t)(character - at) + 1 : 0;
}

bool policy_pattern_part_is(const char *text, size_t len)
{
	const char *end = text + len;

	for (const char *at = text; at < end; at++) {
		if (*at == '\\' && at + 1 < end && is_quotable(at[1]))
			at++;
		else if (*at == '*' || *at == '?' || class_length(at, end))
			return true;
	}
	return false;
}

bool policy_pattern_is(const char *text)
{
	return policy_pattern_part_is(text, strlen(text));
}

void policy_pattern_unquote(char *text)
{
	char *out = text;

	for (const char *at = text; *at; at++) {
		if (*at == '\\' && is_quotable(at[1]))
			at++;
		*out++ = *at;
	}
	*out = '\0';
}

void policy_pattern_quote(struct text *text, const char *path)
{
	for (; *path; path++) {
		if (is_quotable(*path))
			text_append_char(text, '\\');
		text_append_char(text, *path);
	}
}

static bool class_has(const char *class, size_t len, char character)
{
	const unsigned char wanted = (unsigned char)character;
	const char *at = class + 1, *end = class + len - 1;
	bool is_negated = at < end && (*at == '!' || *at == '^'), has = false;

	for (at += is_negated; at < end; at++) {
		unsigned char first, last;

		at += *at == '\\' && at + 1 < end;
		first = last = (unsigned char)*at;
		if (at + 2 < end && at[1] == '-') {
			at += 2;
			at += *at == '\\' && at + 1 < end;
			last = (unsigned char)*at;
		}
		has |= first <= wanted && wanted <= last;
	}
	return has != is_negated;
}

/* Return the length of the pattern's next element for one character, and whether it matches @character. */
static size_t match_one(const char *at, const char *end, char character, bool *is_match)
{
	size_t len = class_length(at, end);

	if (len) {
		*is_match = class_has(at, len, character);
		return len;
	}
	if (*at == '\\' && at + 1 < end && is_quotable(at[1])) {
		*is_match = at[1] == character;
		return 2;
	}
	*is_match = *at == '?' || *at == character;
	return 1;
}

/* Backtrack to the last '*' only. */
static bool matches(const char *pattern, size_t len, const char *name)
{
	const char *end = pattern + len, *star = NULL, *star_name = NULL;

	while (*name || pattern < end) {
		bool is_match = false;
		size_t part = 0;

		if (pattern < end && *pattern == '*') {
			star = ++pattern;
			star_name = name;
			continue;
		}
		if (pattern < end && *name)
			part = match_one(pattern, end, *name, &is_match);
		if (is_match) {
			pattern += part;
			name++;
		} else if (star && *star_name) {
			pattern = star;
			name = ++star_name;
		} else {
			return false;
		}
	}
	return true;
}

/* Names with brackets are common ("[id].tsx"), so a name that equals the pattern's text matches too. */
bool policy_pattern_matches(const char *pattern, size_t len, const char *name)
{
	return matches(pattern, len, name) || (!strncmp(pattern, name, len) && !name[len]);
}

size_t policy_pattern_prefix(const char *text)
{
	size_t prefix = 0;

	for (const char *at = text; *at; at += strcspn(at, "/")) {
		size_t slashes = strspn(at, "/"), len = strcspn(at + slashes, "/");

		if (policy_pattern_part_is(at + slashes, len))
			return prefix;
		at += slashes;
		prefix = (size_t)(at - text) + len;
	}
	return prefix;
}

/* "a//./b/" is "a/b". */
static int clean_relative(const char *given, const struct policy_origin *origin, char **out)
{
	AUTO_TEXT text = {0};

	for (const char *at = given; *at;) {
		size_t len = strcspn(at, "/");

		if (len && !(len == 1 && *at == '.')) {
			if (text.len)
				text_append_char(&text, '/');
			text_append(&text, at, len);
		}
		at += len + (at[len] == '/');
	}
	if (text_failed(&text))
		return policy_refuse_errno(origin, -ENOMEM);
	if (text.len > POLICY_MAX_PATH_BYTES)
		return policy_refuse(origin, given, "the pattern is longer than %d bytes", POLICY_MAX_PATH_BYTES);
	*out = take_ptr(text.data);
	return 0;
}

static bool has_parent(const char *path)
{
	for (const char *at = path; *at; at += strcspn(at, "/")) {
		at += strspn(at, "/");
		if (at[0] == '.' && at[1] == '.' && (at[2] == '/' || !at[2]))
			return true;
	}
	return false;
}

int policy_clean_pattern(const char *given, const char *dest, const struct policy_origin *origin, bool *is_pattern,
			 char **out)
{
	AUTO_FREE char *path = strdup(given);
	AUTO_TEXT text = {0};

	*is_pattern = policy_pattern_is(given);
	if (!path)
		return policy_refuse_errno(origin, -ENOMEM);
	if (!*is_pattern) {
		policy_pattern_unquote(path);
		return policy_clean_path(path, PATH_HOST, origin, out);
	}
	if (dest)
		return policy_refuse(origin, given, "a pattern takes no DEST: what it matches keeps its own path");
	if (has_parent(given))
		return policy_refuse(origin, given, "a pattern may not have '..' in it");
	if (given[0] != '/' && !(given[0] == '~' && given[1] == '/'))
		return clean_relative(given, origin, out);
	if (given[0] == '~' && !origin->source->home)
		return policy_refuse(origin, given, "cannot expand '~': the home directory is unknown");
	if (given[0] == '~') {
		policy_pattern_quote(&text, origin->source->home);
		text_append_string(&text, given + 1);
	}
	if (text_failed(&text))
		return policy_refuse_errno(origin, -ENOMEM);
	return policy_clean_path(text.len ? text_string(&text) : given, PATH_HOST, origin, out);
}

int policy_read_pattern(const char *given, const struct policy_origin *origin, char **out)
{
	AUTO_FREE char *path = NULL;
	AUTO_TEXT quoted = {0};
	bool is_pattern;
	int rc = policy_clean_pattern(given, NULL, origin, &is_pattern, &path);

	if (rc < 0)
		return rc;
	if (is_pattern) {
		*out = take_ptr(path);
		return 0;
	}
	policy_pattern_quote(&quoted, path);
	if (text_failed(&quoted))
		return policy_refuse_errno(origin, -ENOMEM);
	*out = take_ptr(quoted.data);
	return 0;
}
