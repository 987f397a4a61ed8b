/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan_view_links.c - refuse paths that lead through a link which a command may have put there
 *
 * Showing "./data" must not show whatever a link says that a command put there: no path that the policy names, and no file
 * for standard input, leads through a link in a directory that the same policy makes writable, nor in the workdir, which
 * an earlier run may have written. The way to the workdir leads through no link that any earlier run may have made, and
 * neither does a way to secrets: survey_find_planted() says which links those are.
 */
#include "plan/plan_view_stages.h"

#include <errno.h>
#include <string.h>

#include "survey/survey_paths.h"
#include "survey/survey_secrets.h"

static int refuse_link(struct plan_build *build, const char *named, const struct host_path *found, const char *link,
		       int around_len, const char *around)
{
	error_set(build->error, STAGE_PLAN, ELOOP,
		  "'%s' leads through the symbolic link '%s', which an earlier command may have put into '%.*s'", named,
		  link, around_len, around);
	if (found->kind == PATH_ABSENT)
		return error_hint(build->error, "remove the link, or name a place that it does not lead to");
	return error_hint(build->error, "if you mean the place it leads to, name that: '%s'", found->path);
}

static int check_links(struct plan_build *build, const char *named, const struct host_path *found)
{
	for (size_t i = 0; i < found->links.count; i++) {
		const char *link = found->links.items[i];
		const char *around = survey_written_around(build->host, build->policy, link);

		if (around)
			return refuse_link(build, named, found, link, (int)strlen(around), around);
	}
	return 0;
}

/* Any run before, of whatever policy, may have put the link there. */
static int check_planted(struct plan_build *build, const char *named, const struct host_path *found)
{
	const char *link = found->planted;

	return link ? refuse_link(build, named, found, link, (int)(strrchr(link, '/') - link), link) : 0;
}

static bool is_in_own(const struct host *host, const char *path)
{
	for (size_t i = 0; i < host->own.count; i++)
		if (path_is_within(path, host->own.items[i].path))
			return true;
	return false;
}

/* The next run is started by the same path: a command that could replace a link on it would choose what runs. */
static int check_start(struct plan_build *build)
{
	const struct host_path *start = &build->host->started_by;

	for (size_t i = 0; i < start->links.count; i++) {
		const char *link = start->links.items[i];
		const char *around = survey_written_around(build->host, build->policy, link);

		if (!around || is_in_own(build->host, link) || build->plan->rung == RUNG_PROCESS)
			continue;
		error_set(
			build->error, STAGE_PLAN, ELOOP,
			"Belljar was started by way of the symbolic link '%s', which the command could replace in '%s'",
			link, around);
		return error_hint(build->error, "start '%s' itself, or move the link out of '%s'", start->path, around);
	}
	return 0;
}

int plan_view_refuse_written_links(struct plan_build *build)
{
	const struct policy *policy = build->policy;
	const struct host *host = build->host;
	const char *workdir = policy->workdir ? policy->workdir : host->workdir.path.path;
	int rc = check_start(build);

	if (rc == 0 && !build->has_private_workdir)
		rc = check_links(build, workdir, &host->workdir.path);
	if (rc == 0 && !build->has_private_workdir)
		rc = check_planted(build, workdir, &host->workdir.path);
	for (size_t i = 0; i < policy->mounts.count && rc == 0; i++) {
		rc = check_links(build, policy->mounts.items[i].path, &host->mounts.items[i]);
		if (rc == 0 && survey_secret_at(host->real_home, host->mounts.items[i].path))
			rc = check_planted(build, policy->mounts.items[i].path, &host->mounts.items[i]);
		if (rc == 0)
			rc = check_links(build, policy->mounts.items[i].dest, &host->places.items[i]);
	}
	for (size_t i = 0; i < policy->hide.count && rc == 0; i++)
		rc = check_links(build, policy->hide.items[i], &host->hidden.items[i]);
	for (size_t i = 0; i < policy->tmpfs.count && rc == 0; i++)
		rc = check_links(build, policy->tmpfs.items[i].path, &host->tmpfs_places.items[i]);
	for (size_t i = 0; i < policy->files.count && rc == 0; i++)
		rc = check_links(build, policy->files.items[i], &host->policy_files.items[i]);
	if (rc == 0 && build->request && build->request->input)
		rc = check_links(build, build->request->input_name, build->request->input);
	for (size_t i = 0; i < policy->cow_dirs.count && rc == 0; i++)
		rc = check_links(build, policy->cow_dirs.items[i], &host->cow_places.items[i]);
	return rc;
}
