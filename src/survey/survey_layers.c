/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_layers.c - look at directories over which a policy wants a layer
 *
 * The kernel refuses a layer over a directory in which something is mounted, unless root asks; and it writes no file
 * whose group the jar's user namespace does not know. Both can be seen beforehand.
 */
#include "survey/survey_layers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "survey/survey_paths.h"

#define OVERLAY_MAGIC 0x794c7630UL
#define TMPFS_MAGIC 0x01021994UL

/* The fifth word of a line of mountinfo, in which a space, a tab, a newline and a backslash are written as \040 ... */
static char *mount_point_of(char *line)
{
	char *at = line, *out;

	for (int i = 0; i < 4 && at; i++) {
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	if (!at)
		return NULL;
	out = line;
	for (; *at && *at != ' '; at++) {
		if (*at == '\\' && strspn(at + 1, "01234567") >= 3) {
			*out++ = (char)((at[1] - '0') << 6 | (at[2] - '0') << 3 | (at[3] - '0'));
			at += 3;
		} else {
			*out++ = *at;
		}
	}
	*out = '\0';
	return line;
}

/* Return a mount point in @directory, not on it; NULL: none, or unknown. */
static char *find_inner_mount(const char *directory)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	AUTO_FREE char *line = NULL;
	size_t capacity = 0;
	char *found = NULL;

	while (file && !found && getline(&line, &capacity, file) > 0) {
		const char *point = mount_point_of(line);

		if (point && path_is_within(point, directory) && strcmp(point, directory) != 0)
			found = strdup(point);
	}
	if (file)
		fclose(file);
	return found;
}

static int add_layer(struct host *host, const struct host_path *path, struct error *error)
{
	struct host_path_list copies = {0};
	struct host_layer *layer = list_add(&host->layers);
	struct statfs system;
	struct stat status;

	if (!layer || survey_path_list_copy(&copies, path) < 0)
		return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	layer->path = copies.items[0];
	free(copies.items);
	layer->inner_mount = find_inner_mount(path->path);
	layer->group = stat(path->path, &status) == 0 ? status.st_gid : host->gid;
	layer->may_lack_maps = statfs(path->path, &system) == 0 && ((unsigned long)system.f_type == OVERLAY_MAGIC ||
								    (unsigned long)system.f_type == TMPFS_MAGIC);
	return 0;
}

/* Every directory once: two layers over one would each have their own changes. */
static bool has_layer(const struct host *host, const struct host_path *path)
{
	for (size_t i = 0; i < host->layers.count; i++)
		if (!strcmp(host->layers.items[i].path.path, path->path))
			return true;
	return false;
}

static int add_named(struct host *host, const char *name, struct error *error)
{
	struct host_path *path = list_add(&host->cow_places);

	if (!path || survey_look_through(path, name) < 0)
		return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	if (path->kind != PATH_DIRECTORY) {
		int why = path->error ? path->error : ENOTDIR;

		error_set(error, STAGE_FILES, why, "cannot put a layer over '%s': %s", name, strerror(why));
		return error_hint(error, "a layer lies over a directory that exists; make it first");
	}
	return has_layer(host, path) ? 0 : add_layer(host, path, error);
}

int survey_layers(struct host *host, const struct policy *policy, struct error *error)
{
	const struct host_workdir *workdir = &host->workdir;
	bool is_private = policy->workdir_choice == WORKDIR_PRIVATE ||
			  (workdir->unfit && policy->workdir_choice == WORKDIR_DEFAULT);
	int rc = 0;

	if (policy->workspace == WORKSPACE_COW && !is_private && policy->workdir_mode == WORKDIR_RW) {
		rc = add_layer(host, &workdir->path, error);
		host->has_workdir_layer = rc == 0;
	}
	for (size_t i = 0; i < policy->cow_dirs.count && rc == 0; i++)
		rc = add_named(host, policy->cow_dirs.items[i], error);
	return rc;
}

void survey_forget_stores(struct host *host)
{
	for (size_t i = 0; i < host->layers.count; i++) {
		survey_path_done(&host->layers.items[i].store);
		survey_path_done(&host->layers.items[i].upper);
		survey_path_list_done(&host->layers.items[i].frozen);
		host->layers.items[i].is_found = host->layers.items[i].is_copied = false;
		host->layers.items[i].is_from_before_boot = false;
	}
	survey_path_list_done(&host->stores);
	survey_path_list_done(&host->held_stores);
}

void survey_layers_done(struct host *host)
{
	survey_forget_stores(host);
	for (size_t i = 0; i < host->layers.count; i++) {
		survey_path_done(&host->layers.items[i].path);
		free(host->layers.items[i].inner_mount);
	}
	free(host->layers.items);
	host->layers = (struct host_layer_list){0};
}
