/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host/host_search_match.c - find the files that a shell's pattern matches, in the directories that a command may write
 *
 * One name of the pattern after the other, from the left. Directories above what the command may write are not listed: of those only
 * the way to it counts, and its names are known. All lists together have a bound, and where it is reached the search says so.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "host/host_git_command.h"
#include "host/host_paths.h"
#include "host/host_search.h"

/* Names in lists, over all patterns. */
#define LISTED_MAX 65536
/* Patterns in one path. */
#define PATTERNS_MAX 8

struct matching {
	struct search *search;
	search_match_function *each;
	void *context;
	int depth;
};

static void match_below(struct matching *matching, const char *directory, const char *pattern);

static void match_name(struct matching *matching, const char *directory, const char *pattern, size_t len,
		       const char *name)
{
	char path[PATH_MAX];

	if (git_pattern_matches(pattern, len, name) &&
	    snprintf(path, sizeof(path), "%s/%s", directory, name) < (int)sizeof(path))
		match_below(matching, path, pattern + len);
}

/* Outside of what is searched: the next name on the way to each root. */
static void match_ways(struct matching *matching, const char *directory, const char *pattern, size_t len)
{
	const struct search *search = matching->search;

	for (size_t i = 0; i < search->root_count; i++) {
		const char *path = search->roots[i].path;
		char name[NAME_MAX + 1];

		if (!path_is_within(path, directory[0] ? directory : "/") || !strcmp(path, directory))
			continue;
		path += strlen(directory) + 1;
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(path, "/"), path);
		match_name(matching, directory, pattern, len, name);
	}
}

static void match_list(struct matching *matching, const char *directory, const char *pattern, size_t len)
{
	struct search *search = matching->search;
	char own[PATH_MAX];
	const struct search_root *root;
	const struct dirent *entry;
	DIR *listing;
	AUTO_CLOSE int fd = -1;

	snprintf(own, sizeof(own), "%s", directory);
	search_find_at(search, own, &(struct watched){.who = NULL});
	root = search_root_of(search, own);
	if (!root) {
		match_ways(matching, own, pattern, len);
		return;
	}
	fd = search_open(root, search_beneath(root, own), O_RDONLY | O_DIRECTORY);
	listing = fd < 0 ? NULL : fdopendir(fd);
	if (!listing)
		return;
	take_fd(&fd);
	while ((entry = readdir(listing))) {
		if (search->listed++ >= LISTED_MAX) {
			search->found->is_cut_off = true;
			break;
		}
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			match_name(matching, own, pattern, len, entry->d_name);
	}
	closedir(listing);
}

static void match_below(struct matching *matching, const char *directory, const char *pattern)
{
	char path[PATH_MAX], name[PATH_MAX];
	size_t used = strlen(directory), len;

	if (used >= sizeof(path))
		return;
	memcpy(path, directory, used + 1);
	for (;; pattern += len) {
		pattern += strspn(pattern, "/");
		len = strcspn(pattern, "/");
		if (!len || git_pattern_is(pattern, len))
			break;
		snprintf(name, sizeof(name), "%.*s", (int)len, pattern);
		git_pattern_plain(name);
		if (used + 1 + strlen(name) >= sizeof(path))
			return;
		used += (size_t)snprintf(path + used, sizeof(path) - used, "/%s", name);
	}
	if (!len) {
		matching->each(matching->context, path);
	} else if (matching->depth == PATTERNS_MAX || !matching->search->budget->looks) {
		matching->search->found->is_cut_off = true;
	} else {
		matching->depth++;
		match_list(matching, path, pattern, len);
		matching->depth--;
	}
}

void search_match(struct search *search, const char *directory, const char *pattern, search_match_function *each,
		  void *context)
{
	struct matching matching = {.search = search, .each = each, .context = context};

	match_below(&matching, directory, pattern);
}
