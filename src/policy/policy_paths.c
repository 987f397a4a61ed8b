/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/policy_paths.c - paths as people write them, made absolute and lexically clean
 */
#include "policy/policy_paths.h"

#include <errno.h>
#include <string.h>

static bool is_component(const char *component, size_t len, const char *name)
{
	return len == strlen(name) && memcmp(component, name, len) == 0;
}

/* Add the components of @path to @text, each with a slash before it. */
static void append_components(struct text *text, const char *path, bool *has_parent_out)
{
	while (*path) {
		size_t len = strcspn(path, "/");

		if (len && !is_component(path, len, ".")) {
			*has_parent_out |= is_component(path, len, "..");
			text_append_char(text, '/');
			text_append(text, path, len);
		}
		path += len + (path[len] == '/');
	}
}

/* "./~" is an ordinary name, and must not turn into the home directory when it is read again. */
static void make_relative(struct text *text)
{
	if (!text->len)
		text_append_char(text, '.');
	else if (text->data[1] != '~')
		text_consume(text, 1);
	else {
		text_append_char(text, '\0');
		memmove(text->data + 1, text->data, text->len - 1);
		text->data[0] = '.';
	}
}

int policy_clean_path(const char *given, enum path_rule rule, const struct policy_origin *origin, char **out)
{
	const struct policy_source *source = origin->source;
	bool is_home = given[0] == '~' && (given[1] == '\0' || given[1] == '/');
	bool is_relative = !is_home && given[0] != '/', has_parent = false;
	AUTO_TEXT text = {0};

	if (!*given)
		return policy_refuse(origin, given, "the path is empty");
	if (is_home && !source->home)
		return policy_refuse(origin, given, "cannot expand '~': the home directory is unknown");
	if (is_relative && rule != PATH_INSIDE && rule != PATH_DEST && !source->directory)
		return policy_refuse(origin, given, "the current directory no longer exists; name an absolute path");
	if (is_relative && rule == PATH_DEST)
		return policy_refuse(origin, given, "the place in the jar must be an absolute path");

	if (is_home)
		append_components(&text, source->home, &has_parent);
	else if (is_relative && rule != PATH_INSIDE)
		append_components(&text, source->directory, &has_parent);
	append_components(&text, is_home ? given + 1 : given, &has_parent);

	if (has_parent && (rule == PATH_DEST || rule == PATH_PLACE))
		return policy_refuse(origin, given, "a place in the jar may not have '..' in it");
	if (is_relative && rule == PATH_INSIDE)
		make_relative(&text);
	else if (!text.len)
		text_append_char(&text, '/');
	if (text_failed(&text))
		return policy_refuse_errno(origin, -ENOMEM);
	if (text.len > POLICY_MAX_PATH_BYTES)
		return policy_refuse(origin, given, "the path is longer than %d bytes", POLICY_MAX_PATH_BYTES);
	*out = take_ptr(text.data);
	return 0;
}

int policy_split_path(const char *given, const struct policy_origin *origin, char **first_out, char **second_out)
{
	AUTO_TEXT first = {0}, second = {0};
	struct text *part = &first;

	for (const char *at = given; *at; at++) {
		if (at[0] == '\\' && at[1] == ':') {
			text_append_char(part, ':');
			at++;
		} else if (*at != ':') {
			text_append_char(part, *at);
		} else if (part == &second) {
			return policy_refuse(origin, given, "more than one ':'; write '\\:' for a colon in a name");
		} else {
			part = &second;
			text_append(part, "", 0);
		}
	}
	text_append(&first, "", 0);
	if (text_failed(&first) || text_failed(&second))
		return policy_refuse_errno(origin, -ENOMEM);
	*first_out = take_ptr(first.data);
	*second_out = take_ptr(second.data);
	return 0;
}

void policy_escape_path(struct text *text, const char *path)
{
	for (; *path; path++) {
		if (*path == ':')
			text_append_char(text, '\\');
		text_append_char(text, *path);
	}
}
