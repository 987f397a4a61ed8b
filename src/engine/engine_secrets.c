/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_secrets.c - files of secrets, which no command may reach
 *
 * The gate keeps a value away from the jar. That is worth nothing where the jar shows the file that the value comes from: under
 * any name, through a link that an earlier command has put on the way, or by another hard link, wherever that is.
 */
#include "engine/engine_secrets.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "survey/survey_paths.h"
#include "plan/explain/plan_explain.h"
#include "policy/net_secrets.h"

#define HINT "keep the file where no jar shows it, such as ~/.config/keys, or name a variable with from_env"

static int refuse(struct error *error, const struct net_secret *secret, const char *why, const char *what)
{
	error_set(error, STAGE_POLICY, EPERM, "the secret %s: the command could read '%s': %s '%s'", secret->name,
		  secret->source, why, what);
	return error_hint(error, HINT);
}

/* The file and each directory above it. Returns how many. @path is cut up, and the nodes point into @names. */
static size_t look_upwards(char *path, struct string_list *names, struct plan_node *way, size_t size)
{
	size_t count = 0;
	struct stat status;
	char *slash = path;

	while (count < size && slash) {
		if (lstat(path[0] ? path : "/", &status) < 0 || string_list_add(names, path[0] ? path : "/") < 0)
			return 0;
		way[count++] = (struct plan_node){NULL, status.st_dev, status.st_ino};
		slash = strrchr(path, '/');
		if (slash)
			*slash = '\0';
	}
	for (size_t i = 0; i < count; i++)
		way[i].path = names->items[i];
	return count;
}

/* Without overlays the command gets a copy of the whole directory: find @path in one. */
static const char *find_in_copies(const struct host *host, const char *path)
{
	for (size_t i = 0; i < host->layers.count; i++)
		if (host->layers.items[i].upper.path && path_is_within(path, host->layers.items[i].path.path))
			return host->layers.items[i].path.path;
	return NULL;
}

static int check(const struct plan *plan, const struct host *host, const struct policy *policy,
		 const struct net_secret *secret, const struct host_path *file, struct error *error)
{
	AUTO(string_list_done) struct string_list names = {0};
	struct plan_node way[PATH_MAX / 2];
	char path[PATH_MAX];
	struct stat status;
	const char *place;
	size_t count;

	for (size_t i = 0; i < file->links.count; i++) {
		place = survey_written_around(host, policy, file->links.items[i]);
		if (place)
			return refuse(error, secret, "a link on the way to it is in", place);
	}
	/* belljar-gate says why it cannot read it. */
	if (file->kind != PATH_FILE || lstat(file->path, &status) < 0)
		return 0;
	if (status.st_nlink > 1)
		return refuse(error, secret, "it has other names too (hard links), besides", file->path);
	memccpy(path, file->path, '\0', sizeof(path));
	count = look_upwards(path, &names, way, ARRAY_LEN(way));
	if (!count)
		return error_set(error, STAGE_ENGINE, EIO, "cannot look at the directories above '%s'", file->path);
	place = plan_shows(plan, way, count);
	if (!place)
		place = find_in_copies(host, file->path);
	return place ? refuse(error, secret, "the jar shows", place) : 0;
}

int engine_secrets_check(const struct plan *plan, const struct host *host, const struct policy *policy,
			 struct error *error)
{
	struct net_refusal refusal;
	struct net_secret secret;
	int rc = 0;

	for (size_t i = 0; i < policy->secrets.count && rc == 0; i++) {
		struct host_path file = {0};

		if (net_secret_parse(policy->secrets.items[i], &secret, &refusal) < 0 || !secret.is_file)
			continue;
		rc = survey_look_through(&file, secret.source);
		if (rc == 0)
			rc = check(plan, host, policy, &secret, &file, error);
		else
			rc = error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
		survey_path_done(&file);
	}
	return rc;
}
