/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_match.c - replace the patterns of a policy by what they match on this host
 *
 * `ro` and `rw` come first, since the rest of the survey depends on what is shown. `hide` comes when all that is shown is known.
 *
 * A mask on one name of a file leaves its other names. So the other names of what is hidden are looked for too, wherever a file has
 * more than one.
 */
#include "survey/survey_match.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "survey/survey_match_walk.h"
#include "survey/survey_paths.h"
#include "policy/policy_build.h"
#include "policy/policy_lists.h"
#include "policy/policy_patterns.h"

/* --- where -------------------------------------------------------------------------------------------------- */

static int add_region(struct matching *matching, const char *inner, const struct host_path *path, bool is_project)
{
	struct region *region;

	if (!path->path || (path->kind != PATH_DIRECTORY && path->kind != PATH_FILE) ||
	    survey_matching_has_region(matching, inner))
		return 0;
	region = list_add(&matching->regions);
	if (!region)
		return survey_matching_no_memory(matching);
	*region = (struct region){inner, path->path, is_project};
	return 0;
}

static int add_list(struct matching *matching, const struct host_path_list *list, bool is_project)
{
	int rc = 0;

	for (size_t i = 0; i < list->count && rc == 0; i++)
		rc = add_region(matching, list->items[i].path, &list->items[i], is_project);
	return rc;
}

/* All that the jar shows of the host. What stands at one place twice is shown by the first of these. */
static int add_regions(struct matching *matching, const struct policy *policy)
{
	const struct host *host = matching->host;
	const struct host_workdir *workdir = &host->workdir;
	int rc = 0;

	for (size_t i = policy->mounts.count; i-- > 0 && rc == 0;) {
		const struct policy_mount *mount = &policy->mounts.items[i];
		const struct host_path *source = &host->mounts.items[i];

		rc = add_region(matching, strcmp(mount->path, mount->dest) ? mount->dest : source->path, source, true);
	}
	if (rc == 0)
		rc = add_list(matching, &host->cow_places, true);
	if (rc == 0 && workdir->path.path && !workdir->unfit)
		rc = add_region(matching, workdir->path.path, &workdir->path, true);
	if (rc == 0 && workdir->top.path)
		rc = add_region(matching, workdir->top.path, &workdir->top, true);
	if (rc == 0)
		rc = add_list(matching, &host->toolchains, false);
	if (rc == 0)
		rc = add_list(matching, &host->system, false);
	return rc < 0 ? rc : add_list(matching, &host->etc, false);
}

/* --- hide --------------------------------------------------------------------------------------------------- */

/* What comes before the first name that means others may lead through links: then what it leads to is meant too. */
static int add_pattern(struct matching *matching, const char *said)
{
	const char *workdir = matching->host->workdir.path.path;
	size_t prefix = policy_pattern_prefix(said);
	AUTO_TEXT path = {0};
	AUTO_FREE char *plain = strndup(said, prefix);
	char resolved[PATH_MAX];
	bool is_relative = said[0] != '/';

	if (is_relative && !workdir)
		return 0;
	if (!plain)
		return survey_matching_no_memory(matching);
	policy_pattern_unquote(plain);
	text_append_format(&path, "%s%s%s", is_relative ? workdir : "", is_relative && prefix ? "/" : "", plain);
	if (text_failed(&path) || survey_globs_add(&matching->globs, text_string(&path), said + prefix, said) < 0)
		return survey_matching_no_memory(matching);
	if (survey_matching_resolve(text_string(&path), resolved) < 0 || !strcmp(resolved, text_string(&path)))
		return 0;
	return survey_globs_add(&matching->globs, resolved, said + prefix, said) < 0
		       ? survey_matching_no_memory(matching)
		       : 0;
}

static bool is_pattern_there(const struct string_list *hide)
{
	for (size_t i = 0; i < hide->count; i++)
		if (policy_pattern_is(hide->items[i]))
			return true;
	return false;
}

static int find_hidden(struct matching *matching, const struct policy *policy, const struct string_list *hide)
{
	int rc = add_regions(matching, policy);

	for (size_t i = 0; i < hide->count && rc == 0; i++)
		rc = policy_pattern_is(hide->items[i]) ? add_pattern(matching, hide->items[i]) : 0;
	if (rc == 0 && (is_pattern_there(hide) || policy->has_hide_secrets))
		rc = survey_matching_walk_regions(matching, policy->has_hide_secrets);
	return rc;
}

static int by_path(const void *left, const void *right)
{
	return strcmp(((const struct host_match *)left)->path, ((const struct host_match *)right)->path);
}

/* In the order of their names, whatever order the file system has. */
static int keep_found(struct host *host, struct matching *matching, struct string_list *paths)
{
	size_t first = host->matches.count;

	for (size_t i = 0; i < matching->found.count; i++) {
		struct host_match *match = list_add(&host->matches);

		if (!match)
			return survey_matching_no_memory(matching);
		*match = matching->found.items[i];
		matching->found.items[i] = (struct host_match){0};
	}
	if (matching->found.count)
		qsort(host->matches.items + first, matching->found.count, sizeof(*host->matches.items), by_path);
	survey_matches_done(&matching->found);
	for (size_t i = first; i < host->matches.count; i++)
		if (!policy_string_list_has(paths, host->matches.items[i].path) &&
		    string_list_add(paths, host->matches.items[i].path) < 0)
			return survey_matching_no_memory(matching);
	return 0;
}

static int copy_policy(struct host *host, const struct policy *policy)
{
	if (host->matched)
		return 0;
	host->matched = calloc(1, sizeof(*host->matched));
	return host->matched ? policy_copy(policy, host->matched) : -ENOMEM;
}

static int add_plain_paths(const struct string_list *hide, struct string_list *paths)
{
	int rc = 0;

	for (size_t i = 0; i < hide->count && rc == 0; i++) {
		AUTO_FREE char *path = policy_pattern_is(hide->items[i]) ? NULL : strdup(hide->items[i]);

		if (path)
			policy_pattern_unquote(path);
		rc = path ? string_list_add(paths, path) : 0;
	}
	return rc;
}

int survey_match_hidden(struct host *host, const struct policy *policy, struct error *error)
{
	AUTO(survey_matching_done)
	struct matching matching = {.host = host, .key = "hide", .is_hiding = true, .error = error};
	struct string_list *paths;
	int rc;

	if (!policy->hide.count && !policy->has_hide_secrets)
		return 0;
	if (copy_policy(host, policy) < 0 || string_list_copy(&host->hide_patterns, &policy->hide) < 0)
		return survey_matching_no_memory(&matching);
	paths = &host->matched->hide;
	string_list_done(paths);
	*paths = (struct string_list){0};
	if (add_plain_paths(&policy->hide, paths) < 0)
		return survey_matching_no_memory(&matching);
	rc = find_hidden(&matching, host->matched, &policy->hide);
	if (rc == 0)
		rc = keep_found(host, &matching, paths);
	return rc;
}

int survey_match_twins(struct host *host, struct error *error)
{
	AUTO(survey_matching_done)
	struct matching matching = {.host = host, .key = "hide", .is_hiding = true, .error = error};
	int rc;

	for (size_t i = 0; i < host->hidden.count; i++) {
		const struct host_path *hidden = &host->hidden.items[i];
		struct twin *twin;
		struct stat status;

		if (hidden->kind != PATH_FILE || lstat(hidden->path, &status) < 0 || status.st_nlink < 2)
			continue;
		twin = list_add(&matching.twins);
		if (!twin)
			return survey_matching_no_memory(&matching);
		*twin = (struct twin){hidden->device, hidden->inode, hidden->path};
	}
	if (!matching.twins.count)
		return 0;
	rc = add_regions(&matching, host->matched);
	if (rc == 0)
		rc = survey_matching_walk_twins(&matching);
	return rc < 0 ? rc : keep_found(host, &matching, &host->matched->hide);
}

/* --- ro and rw ---------------------------------------------------------------------------------------------- */

static int add_shown(struct host *host, const struct policy_mount *mount, const char *current_directory,
		     struct error *error)
{
	const char *workdir = host->matched->workdir ? host->matched->workdir : current_directory;
	AUTO(survey_matching_done)
	struct matching matching = {.host = host, .key = mount->access == MOUNT_RO ? "ro" : "rw", .error = error};
	struct string_list paths = {0};
	size_t prefix = policy_pattern_prefix(mount->path);
	AUTO_FREE char *plain = strndup(mount->path, prefix);
	AUTO_TEXT top = {0};
	char resolved[PATH_MAX];
	bool is_relative = mount->path[0] != '/';
	int rc = 0;

	if (!plain)
		return survey_matching_no_memory(&matching);
	policy_pattern_unquote(plain);
	if (is_relative && (host->matched->workdir_choice == WORKDIR_PRIVATE || !workdir))
		return error_set(error, STAGE_FILES, ENOENT,
				 "cannot show '%s': there is no work directory that it could begin in", mount->path);
	text_append_format(&top, "%s%s%s", is_relative ? workdir : "", is_relative && prefix ? "/" : "", plain);
	if (text_failed(&top))
		return survey_matching_no_memory(&matching);
	if (survey_globs_add(&matching.globs, "", mount->path + prefix, mount->path) < 0)
		return survey_matching_no_memory(&matching);
	if (survey_matching_resolve(top.len ? text_string(&top) : "/", resolved) == 0) {
		AUTO_FREE uint64_t *set = calloc(survey_globs_words(&matching.globs) + 1, sizeof(*set));

		if (!set)
			return survey_matching_no_memory(&matching);
		survey_globs_start(&matching.globs, set);
		rc = survey_matching_walk(&matching, top.len ? text_string(&top) : "/", resolved, set);
	}
	if (rc == 0 && !matching.found.count && !mount->is_optional) {
		error_set(error, STAGE_FILES, ENOENT, "cannot show '%s' in the jar: nothing matches", mount->path);
		return error_hint(error, "check the pattern; in a policy file, \"optional\": true goes on without");
	}
	if (rc == 0)
		rc = keep_found(host, &matching, &paths);
	for (size_t i = 0; i < paths.count && rc == 0; i++)
		if (policy_add_mount(host->matched, paths.items[i], paths.items[i], mount->access, mount->is_optional) <
		    0)
			rc = error_set(error, STAGE_FILES, E2BIG, "`%s` has more than %d entries", matching.key,
				       POLICY_MAX_ENTRIES);
	string_list_done(&paths);
	return rc;
}

static bool has_mount_pattern(const struct policy *policy)
{
	for (size_t i = 0; i < policy->mounts.count; i++)
		if (policy->mounts.items[i].is_pattern)
			return true;
	return false;
}

int survey_match_shown(struct host *host, const struct policy *policy, const char *current_directory,
		       struct error *error)
{
	int rc = 0;

	if (!has_mount_pattern(policy))
		return 0;
	if (copy_policy(host, policy) < 0)
		return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	policy_clear_mounts(host->matched, MOUNT_RO);
	policy_clear_mounts(host->matched, MOUNT_RW);
	for (size_t i = 0; i < policy->mounts.count && rc == 0; i++) {
		const struct policy_mount *mount = &policy->mounts.items[i];

		if (mount->is_pattern)
			rc = add_shown(host, mount, current_directory, error);
		else if (policy_add_mount(host->matched, mount->path, mount->dest, mount->access, mount->is_optional) <
			 0)
			rc = error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	}
	return rc;
}

/* --- after a run -------------------------------------------------------------------------------------------- */

static bool is_same_as_hidden(const struct host *host, size_t index, const char *path)
{
	const struct host_path *hidden = index < host->hidden.count ? &host->hidden.items[index] : NULL;
	struct stat status;

	return !hidden || hidden->kind == PATH_ABSENT || stat(path, &status) < 0 ||
	       (status.st_dev == hidden->device && status.st_ino == hidden->inode);
}

static void report(const struct host *host, const struct host_match *match, struct risky_list *risky)
{
	const struct string_list *hidden = &host->matched->hide;
	AUTO_TEXT why = {0};
	size_t index = 0;

	while (index < hidden->count && strcmp(hidden->items[index], match->path) != 0)
		index++;
	if (index < hidden->count && is_same_as_hidden(host, index, match->path))
		return;
	text_append_format(&why, "it matches '%s' in `%s`, but the jar was made before: the command could read it",
			   match->pattern, match->key);
	survey_risky_add(risky, match->path, index < hidden->count ? "was replaced" : "appeared", text_string(&why));
}

void survey_find_unhidden(const struct host *host, struct risky_list *risky)
{
	struct error error = {0};
	AUTO(survey_matching_done)
	struct matching matching = {.host = host, .key = "hide", .is_hiding = true, .error = &error};

	if (!host->matched || (!is_pattern_there(&host->hide_patterns) && !host->matched->has_hide_secrets))
		return;
	if (find_hidden(&matching, host->matched, &host->hide_patterns) < 0)
		risky->unsearched = RISKY_HAS_PATTERNS;
	for (size_t i = 0; i < matching.found.count; i++)
		report(host, &matching.found.items[i], risky);
}

void survey_match_done(struct host *host)
{
	survey_matches_done(&host->matches);
	string_list_done(&host->hide_patterns);
	policy_done(host->matched);
	free(host->matched);
	host->matched = NULL;
}

int survey_find_secret_files(const char *directory, size_t max, struct string_list *found)
{
	struct host host = {.uid = getuid()};
	struct error error = {0};
	AUTO(survey_matching_done) struct matching matching = {.host = &host, .key = "hide_secrets", .error = &error};
	struct region *region = list_add(&matching.regions);

	if (!region)
		return -ENOMEM;
	*region = (struct region){directory, directory, true};
	/* What was found before a bound was met is worth saying. */
	survey_matching_walk_regions(&matching, true);
	for (size_t i = 0; i < matching.found.count && i < max; i++)
		if (string_list_add(found, matching.found.items[i].path) < 0)
			return -ENOMEM;
	return 0;
}
