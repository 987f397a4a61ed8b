/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_cgroup.c - where cgroups of a run's own can be made
 *
 * A few reads, since every run with such a limit pays for them; that a directory can really be made there shows when
 * it is made, and the plan is made again without if not. Version 1 has one tree per controller, and ours goes below
 * the cgroup we are in. In version 2 a cgroup that hands controllers on may have no processes of its own, and we are
 * one: so ours goes beside the cgroup we are in, where the cgroup above belongs to us too, as in a systemd user
 * session, and nothing that is there is changed. Where only our own is ours, as in a service with Delegate=yes or in
 * a container, and we are the only process in it, we go one down and ours goes beside that.
 */
#include "survey/survey_cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/statfs.h>

#include "base/helper.h"
#include "policy/policy_build.h"
#include "base/sys/calls.h"

#define MOUNT "/sys/fs/cgroup"
#define MAGIC_CGROUP1 0x27e0eb
#define MAGIC_CGROUP2 0x63677270
#define MEMBERSHIP_BYTES 8192

bool survey_wants_cgroups(const struct host *host, const struct policy *policy)
{
	/*
	 * A user namespace holds a default process count well enough, at no cost; but not for root if its jars cannot
	 * get a host id that no user has.
	 */
	bool has_namespace_count = host->has_user_namespaces && (host->uid != 0 || host->has_id_mapped_mounts);

	return policy->limits.memory_bytes != LIMIT_NONE || policy->limits.cpu_time_ns != LIMIT_NONE ||
	       (policy->limits.pids != LIMIT_NONE && (policy_is_given(policy, "pids") || !has_namespace_count));
}

static bool list_has_word(const char *list, const char *word, char separator)
{
	size_t len = strlen(word);

	for (;;) {
		size_t item_len = strcspn(list, separator == ',' ? ",\n" : " \n");

		if (item_len == len && !memcmp(list, word, len))
			return true;
		if (list[item_len] != separator)
			return false;
		list += item_len + 1;
	}
}

static bool is_on(const char *path, long magic)
{
	struct statfs status;

	return statfs(path, &status) == 0 && (long)status.f_type == magic;
}

/*
 * One line of /proc/self/cgroup, NUMBER:CONTROLLERS:PATH, with no controllers for version 2. Splits it in place; true
 * for the line of @controller.
 */
static bool split_line(char *line, const char *controller, char **controllers_out, char **path_out)
{
	char *controllers = strchr(line, ':');
	char *path = controllers ? strchr(controllers + 1, ':') : NULL;

	if (!path)
		return false;
	*path++ = '\0';
	controllers++;
	*controllers_out = controllers;
	*path_out = path;
	return controller ? list_has_word(controllers, controller, ',') : !controllers[0];
}

/* The path of our cgroup in the tree of @controller (NULL: version 2), and the controllers of that tree. */
static bool find_membership(const char *membership, const char *controller, char *controllers, char *path)
{
	char line[PATH_MAX];

	while (*membership) {
		size_t len = strcspn(membership, "\n");
		char *line_controllers, *line_path;

		if (len < sizeof(line)) {
			memcpy(line, membership, len);
			line[len] = '\0';
			if (split_line(line, controller, &line_controllers, &line_path)) {
				snprintf(controllers, PATH_MAX, "%s", line_controllers);
				snprintf(path, PATH_MAX, "%s", line_path);
				return true;
			}
		}
		membership += len + (membership[len] == '\n');
	}
	return false;
}

/* --- version 1 ---------------------------------------------------------------------------------------------- */

/* A tree with several controllers is mounted under all their names, most often with a link for each of them. */
static int find_version1(const char *membership, const char *controller, char **out)
{
	char controllers[PATH_MAX], path[PATH_MAX], directory[3 * PATH_MAX];
	const char *names[] = {controller, controllers};

	if (!find_membership(membership, controller, controllers, path))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		/* In a container the path may be the host's, and absent here: then our own cgroup is unknown. */
		snprintf(directory, sizeof(directory), MOUNT "/%s%s", names[i], strcmp(path, "/") ? path : "");
		if (!is_on(directory, MAGIC_CGROUP1) || access(directory, W_OK) < 0)
			continue;
		*out = strdup(directory);
		return *out ? 0 : -ENOMEM;
	}
	return 0;
}

/* --- version 2 ---------------------------------------------------------------------------------------------- */

static bool has_right(const char *directory, const char *name)
{
	char file[2 * PATH_MAX + 64];

	snprintf(file, sizeof(file), "%s/%s", directory, name);
	return access(file, W_OK) == 0;
}

static bool read_list(const char *directory, const char *name, char *list, size_t capacity)
{
	char file[2 * PATH_MAX + 64];

	snprintf(file, sizeof(file), "%s/%s", directory, name);
	return sys_read_file(AT_FDCWD, file, list, capacity) > 0;
}

/* Moving a process from one cgroup to another takes the right to do so in the one that holds both. */
static bool is_delegated(const char *directory)
{
	return access(directory, W_OK) == 0 && has_right(directory, "cgroup.procs");
}

static bool has_useful(const char *controllers)
{
	return list_has_word(controllers, "memory", ' ') || list_has_word(controllers, "pids", ' ');
}

/* Beside ours, where the cgroup above hands controllers on to both. The root of all is above itself. */
static bool find_beside(const char *directory, char *controllers, size_t capacity)
{
	return is_delegated(directory) && read_list(directory, "cgroup.subtree_control", controllers, capacity) &&
	       has_useful(controllers);
}

/* Is every process in @members this one, or a helper of it? */
static bool are_ours(const char *members)
{
	for (char *end; *members; members = end + strspn(end, "\n")) {
		long pid = strtol(members, &end, 10);

		if (end == members || (pid != getpid() && !helper_is_ours((pid_t)pid)))
			return false;
	}
	return true;
}

/* Use our own cgroup, if it has no other processes: Belljar moves only itself and its helpers to make room. */
static bool find_own(const char *directory, char *controllers, size_t capacity)
{
	char members[PATH_MAX];

	if (!is_delegated(directory) || !has_right(directory, "cgroup.subtree_control") ||
	    !read_list(directory, "cgroup.procs", members, sizeof(members)))
		return false;
	return are_ours(members) && read_list(directory, "cgroup.controllers", controllers, capacity) &&
	       has_useful(controllers);
}

static int find_version2(const char *membership, struct host_cgroups *cgroups)
{
	const char *mount = is_on(MOUNT, MAGIC_CGROUP2) ? MOUNT : MOUNT "/unified";
	char controllers[PATH_MAX], path[PATH_MAX], own[2 * PATH_MAX], above[2 * PATH_MAX];
	const char *directory;

	if (!find_membership(membership, NULL, controllers, path) || path[0] != '/' || strstr(path, "/..") ||
	    !is_on(mount, MAGIC_CGROUP2))
		return 0;
	snprintf(own, sizeof(own), "%s%s", mount, path);
	*strrchr(path, '/') = '\0';
	snprintf(above, sizeof(above), "%s%s", mount, path);
	if (find_beside(above, controllers, sizeof(controllers)))
		directory = above;
	else if (find_own(own, controllers, sizeof(controllers)))
		directory = own;
	else
		return 0;
	cgroups->is_own = directory == own;
	if (list_has_word(controllers, "memory", ' '))
		cgroups->memory = strdup(directory);
	if (list_has_word(controllers, "pids", ' '))
		cgroups->pids = strdup(directory);
	/* Time is counted in every cgroup, whatever its controllers. */
	cgroups->cpu = strdup(directory);
	return 0;
}

/* --- both --------------------------------------------------------------------------------------------------- */

int survey_name_cgroups(struct host_cgroups *cgroups)
{
	uint64_t random = 0;

	free(cgroups->name);
	cgroups->name = NULL;
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	return asprintf(&cgroups->name, "belljar-%016" PRIx64, random) < 0 ? -ENOMEM : 0;
}

int survey_find_cgroups(struct host_cgroups *cgroups)
{
	char membership[MEMBERSHIP_BYTES];
	int rc;

	*cgroups = (struct host_cgroups){0};
	if (sys_read_file(AT_FDCWD, "/proc/self/cgroup", membership, sizeof(membership)) <= 0)
		return 0;
	rc = find_version2(membership, cgroups);
	if (rc == 0 && cgroups->cpu) {
		cgroups->version = 2;
		return survey_name_cgroups(cgroups);
	}
	if (rc == 0)
		rc = find_version1(membership, "memory", &cgroups->memory);
	if (rc == 0)
		rc = find_version1(membership, "pids", &cgroups->pids);
	if (rc == 0)
		rc = find_version1(membership, "cpuacct", &cgroups->cpu);
	if (rc < 0 || !(cgroups->memory || cgroups->pids || cgroups->cpu))
		return rc;
	cgroups->version = 1;
	return survey_name_cgroups(cgroups);
}

int survey_cgroups(struct host *host, const struct policy *policy)
{
	/* A name stands for a search that found something, even if that could not be used. */
	return host->cgroups.name || !survey_wants_cgroups(host, policy) ? 0 : survey_find_cgroups(&host->cgroups);
}

/* --- without cgroups ---------------------------------------------------------------------------------------- */

/* Bytes are counted when a page of a file becomes dirty and will have to be stored. */
static bool is_uncounted(const char *path)
{
	static const long magics[] = {
		0x01021994, /* tmpfs */
		0x858458f6, /* ramfs */
		0x958458f6, /* hugetlbfs */
		0x65735546, /* FUSE */
		0x01021997, /* 9p */
		0x2fc12fc1, /* ZFS */
		0x2011bab0, /* exFAT: a file that is made longer takes the space at once */
	};

	for (size_t i = 0; i < ARRAY_LEN(magics); i++)
		if (is_on(path, magics[i]))
			return true;
	return false;
}

int survey_find_uncounted(struct host *host, const struct policy *policy)
{
	const char *found = NULL;

	free(host->uncounted_path);
	host->uncounted_path = NULL;
	if (host->workdir.path.path && policy->workdir_mode == WORKDIR_RW && !host->has_workdir_layer &&
	    is_uncounted(host->workdir.path.path))
		found = host->workdir.path.path;
	/* What is written to a layer is in its store. */
	for (size_t i = 0; i < host->layers.count && !found; i++)
		if (host->layers.items[i].store.path && is_uncounted(host->layers.items[i].store.path))
			found = host->layers.items[i].store.path;
	for (size_t i = 0; i < policy->mounts.count && !found; i++)
		if (policy->mounts.items[i].access == MOUNT_RW && host->mounts.items[i].path &&
		    is_uncounted(host->mounts.items[i].path))
			found = host->mounts.items[i].path;
	if (!found)
		return 0;
	host->uncounted_path = strdup(found);
	return host->uncounted_path ? 0 : -ENOMEM;
}

bool survey_may_have_task_clock(void)
{
	char content[16];

	/* 2 is the kernel's own default; some distributions know 3 and 4, which forbid everything. */
	return sys_read_file(AT_FDCWD, "/proc/sys/kernel/perf_event_paranoid", content, sizeof(content)) > 0 &&
	       (getuid() == 0 || atoi(content) <= 2);
}

void survey_cgroups_done(struct host_cgroups *cgroups)
{
	free(cgroups->memory);
	free(cgroups->pids);
	free(cgroups->cpu);
	free(cgroups->name);
	*cgroups = (struct host_cgroups){0};
}
