/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor/probe_cgroups.c - may we make cgroups, and which controllers would they have?
 *
 * Making one and removing it is the only sure answer: a directory can be writable and the file system not.
 */
#include "doctor/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "survey/survey_cgroup.h"
#include "base/sys/calls.h"

#define CGROUP_NAME "belljar-doctor"

struct cgroup_search {
	const char *type;     /* "cgroup" or "cgroup2" */
	const char *option;   /* a controller among the mount's options; NULL: any */
	char mount[PATH_MAX]; /* where it is mounted */
	char path[PATH_MAX];  /* the directory of the cgroup we are in */
};

static bool list_has_word(const char *list, const char *word, char separator)
{
	size_t len = strlen(word);

	while (list && *list) {
		if (!strncmp(list, word, len) && (list[len] == separator || list[len] == '\0' || list[len] == '\n'))
			return true;
		list = strchr(list, separator);
		list = list ? list + 1 : NULL;
	}
	return false;
}

/* The mount of @search->type; a line of mountinfo: ... ROOT MOUNT-POINT OPTIONS ... - TYPE SOURCE SUPER-OPTIONS */
static bool find_mount(struct cgroup_search *search)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	char line[2 * PATH_MAX], type[64], options[1024];
	bool is_found = false;

	while (file && !is_found && fgets(line, sizeof(line), file)) {
		const char *rest = strstr(line, " - ");

		if (!rest || sscanf(rest, " - %63s %*s %1023s", type, options) != 2 || strcmp(type, search->type) != 0)
			continue;
		if (search->option && !list_has_word(options, search->option, ','))
			continue;
		is_found = sscanf(line, "%*s %*s %*s %*s %4095s", search->mount) == 1;
	}
	if (file)
		fclose(file);
	return is_found;
}

/* The cgroup we are in; a line of /proc/self/cgroup: NUMBER:CONTROLLERS:PATH, with 0 and no controllers for v2. */
static bool find_cgroup(struct cgroup_search *search)
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	char line[2 * PATH_MAX];
	bool is_found = false;

	while (file && !is_found && fgets(line, sizeof(line), file)) {
		char *controllers = strchr(line, ':');
		char *path = controllers ? strchr(controllers + 1, ':') : NULL;
		struct stat status;

		if (!path)
			continue;
		*path++ = '\0';
		path[strcspn(path, "\n")] = '\0';
		if (search->option ? !list_has_word(controllers + 1, search->option, ',') : controllers[1] != '\0')
			continue;
		is_found = snprintf(search->path, sizeof(search->path), "%s%s", search->mount, path) < PATH_MAX;
		/* In a container the path may be the host's; the mount is then the cgroup itself. */
		if (is_found && stat(search->path, &status) < 0)
			snprintf(search->path, sizeof(search->path), "%s", search->mount);
	}
	if (file)
		fclose(file);
	return is_found;
}

/* Make a cgroup below @directory and remove it. */
static int try_launch(const char *directory)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/" CGROUP_NAME "-%d", directory, (int)getpid());
	if (mkdir(path, 0755) < 0)
		return -errno;
	return rmdir(path) < 0 ? -errno : 0;
}

static void advise_delegation(struct finding *finding)
{
	if (getuid() == 0)
		doctor_finding_remedy(
			finding,
			"let the cgroup above this one delegate memory and pids, or be the only process in this one; in a container, start it with a writable cgroup: docker run --cgroupns=private with "
			"-v /sys/fs/cgroup:/sys/fs/cgroup:rw\n");
	else
		doctor_finding_remedy(
			finding,
			"start Belljar in a scope that is delegated to you: systemd-run --user --scope -p Delegate=yes "
			"belljar ...; in a service with Delegate=yes, keep its own processes in a cgroup below its own\n");
}

/* Explain why no cgroup can be made, as far as this process's own cgroup shows it. */
static void explain_cgroup2(struct finding *finding)
{
	struct cgroup_search search = {.type = "cgroup2"};
	char path[PATH_MAX + 32], controllers[512] = "";

	if (!find_mount(&search) || !find_cgroup(&search)) {
		doctor_finding_value(finding, "not mounted");
		doctor_finding_remedy(
			finding,
			"boot with systemd.unified_cgroup_hierarchy=1, or mount -t cgroup2 none /sys/fs/cgroup\n");
		return;
	}
	snprintf(path, sizeof(path), "%s/cgroup.controllers", search.path);
	sys_read_file(AT_FDCWD, path, controllers, sizeof(controllers));
	controllers[strcspn(controllers, "\n")] = '\0';
	if (!list_has_word(controllers, "memory", ' ') || !list_has_word(controllers, "pids", ' ')) {
		doctor_finding_value(finding, "controllers at %.60s: %.60s", search.path,
				     controllers[0] ? controllers : "none");
		doctor_finding_remedy(
			finding,
			"give this cgroup the controllers memory, pids and cpu (systemd: Delegate=yes); where cgroup "
			"v1 has them: boot with systemd.unified_cgroup_hierarchy=1\n");
		return;
	}
	doctor_finding_value(finding, "not delegated at %.100s", search.path);
	advise_delegation(finding);
}

/* Find the cgroup that a run would use, and check that a child can be made there. */
void probe_cgroup2(struct finding *finding)
{
	struct host_cgroups cgroups = {0};
	int rc;

	if (survey_find_cgroups(&cgroups) < 0 || cgroups.version != 2) {
		explain_cgroup2(finding);
	} else {
		rc = try_launch(cgroups.cpu);
		finding->is_found = rc == 0 && cgroups.memory && cgroups.pids;
		doctor_finding_value(finding, "%s%scpu at %.100s%s%.40s", cgroups.memory ? "memory " : "",
				     cgroups.pids ? "pids " : "", cgroups.cpu, rc < 0 ? ": " : "",
				     rc < 0 ? strerror(-rc) : "");
		if (!finding->is_found)
			advise_delegation(finding);
	}
	survey_cgroups_done(&cgroups);
}

static void probe_cgroup1(struct finding *finding, const char *controller)
{
	struct cgroup_search search = {.type = "cgroup", .option = controller};
	int rc;

	if (!find_mount(&search) || !find_cgroup(&search)) {
		doctor_finding_value(finding, "not mounted");
		return;
	}
	rc = try_launch(search.path);
	finding->is_found = rc == 0;
	if (rc == 0) {
		doctor_finding_value(finding, "writable at %.100s", search.path);
	} else {
		doctor_finding_value(finding, "%.60s: %.60s", search.path, strerror(-rc));
		doctor_finding_remedy(finding,
				      "as root, give the cgroup to the caller: chown USER %.200s; or use cgroup v2\n",
				      search.path);
	}
}

void probe_cgroup1_memory(struct finding *finding)
{
	probe_cgroup1(finding, "memory");
}

void probe_cgroup1_pids(struct finding *finding)
{
	probe_cgroup1(finding, "pids");
}

void probe_cgroup1_cpu(struct finding *finding)
{
	probe_cgroup1(finding, "cpuacct");
}
