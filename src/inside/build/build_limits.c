/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/build/build_limits.c - the steps that put limits on the jar
 */
#include "inside/build/build.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/sys/calls.h"

#define PATH_BYTES 4096
/* Of 1000: above what a desktop gives to browser tabs, so that a jar goes before the user's own programs. */
#define OOM_SCORE "500"

void build_set_oom_score(void)
{
	/* The files in /proc/self belong to root for a process that is not dumpable. Nothing of the jar runs yet. */
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	/* Only a preference: where a masked /proc forbids it, everything else holds. */
	sys_write_file(AT_FDCWD, "/proc/self/oom_score_adj", OOM_SCORE);
}

/* Alone in the cgroup? */
static int check_cgroup(const char *members_path)
{
	char members[64];
	ssize_t len = sys_read_file(AT_FDCWD, members_path, members, sizeof(members));

	if (len < 0)
		return (int)len;
	return strtol(members, NULL, 10) == (long)getpid() ? 0 : -ENOENT;
}

/* Born in it: see that it is so. Where that could not be, go there. */
static int join_cgroup2(const char *directory)
{
	char path[PATH_BYTES];
	int rc;

	if (snprintf(path, sizeof(path), "%s/cgroup.procs", directory) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	rc = check_cgroup(path);
	if (rc != -ENOENT)
		return rc;
	rc = sys_write_file(AT_FDCWD, path, "0");
	return rc < 0 ? rc : check_cgroup(path);
}

int build_cgroup(struct jar_build *build, const struct plan_step *step)
{
	char path[PATH_BYTES];

	/* A run's own: its starter was let in before the command was known, or could not be made. */
	if (!step->target)
		return build->has_run_cgroup ? 0 : -ENOENT;
	if (step->as.cgroup.version == 2)
		return join_cgroup2(step->target);
	if (snprintf(path, sizeof(path), "%s/tasks", step->target) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	/* Not cgroup.procs: moving a whole process waits until no process of the host is being started. */
	return sys_write_file(AT_FDCWD, path, "0");
}

static int open_view(struct jar_build *build)
{
	build->view_fds[JAR_VIEW_PROC] = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	build->view_fds[JAR_VIEW_ROOT] = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (build->view_fds[JAR_VIEW_PROC] < 0 || build->view_fds[JAR_VIEW_ROOT] < 0)
		return -errno;
	/* The meter needs this file, and a policy may have hidden it. */
	if (access("/proc/self/stat", R_OK) < 0)
		return -errno;
	/* A kernel without System V IPC has no lists. */
	build->view_fds[JAR_VIEW_SHARED] = open("/proc/sysvipc/shm", O_RDONLY | O_CLOEXEC);
	build->view_fds[JAR_VIEW_QUEUES] = open("/proc/sysvipc/msg", O_RDONLY | O_CLOEXEC);
	build->view_fds[JAR_VIEW_SEMAPHORES] = open("/proc/sysvipc/sem", O_RDONLY | O_CLOEXEC);
	return 0;
}

int build_meter(struct jar_build *build, const struct plan_step *step)
{
	/* Without a pid namespace the jar's processes are in the host's /proc, and there is nothing to hand over. */
	int rc = build->plan->namespaces & CLONE_NEWPID ? open_view(build) : 0;

	if (rc < 0)
		return rc;
	if (step->as.meter.has_clock) {
		build->view_fds[JAR_VIEW_CLOCK] = sys_task_clock();
		if (build->view_fds[JAR_VIEW_CLOCK] < 0)
			return build->view_fds[JAR_VIEW_CLOCK];
	}
	/* Only this process may read this, by a descriptor that it opens before it stops being dumpable. */
	if (step->flags & STEP_COUNT_WRITES) {
		build->written_fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
		if (build->written_fd < 0)
			return -errno;
	}
	return 0;
}

int build_user_limit(struct jar_build *build, const struct plan_step *step)
{
	char path[64], number[24];

	/* Each opener sees its own user namespace in these files, and writes them with that one's capabilities. */
	snprintf(path, sizeof(path), "/proc/sys/user/%s", step->source);
	snprintf(number, sizeof(number), "%" PRIu64, step->as.user_limit.limit);
	return sys_write_file(AT_FDCWD, path, number);
}

int build_rlimit(struct jar_build *build, const struct plan_step *step)
{
	struct rlimit limit;

	if (getrlimit(step->as.rlimit.resource, &limit) < 0)
		return -errno;
	/* A hard limit that the caller has already stays: it can only be lowered. */
	limit.rlim_max = MIN_OF(limit.rlim_max, step->as.rlimit.limit);
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(step->as.rlimit.resource, &limit) < 0 ? -errno : 0;
}
