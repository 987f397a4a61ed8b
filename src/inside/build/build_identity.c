/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/build/build_identity.c - the steps that set the command's ids, and drop privileges for good
 *
 * An ordinary caller keeps its own id, mapped to itself in a new user namespace. For root the jar is built by an unused
 * unprivileged host id that still holds root's capabilities. After all mounts it enters a user namespace that
 * maps that id to 0. The mounts then belong to the host's user namespace, so even all capabilities inside
 * cannot change them.
 */
#include "inside/build/build.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <linux/securebits.h>
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/processor.h"
#include "base/sys/calls.h"

#define HELPER_STACK_BYTES 16384

static int write_maps(uint64_t inside_uid, uint64_t outside_uid, uint64_t inside_gid, uint64_t outside_gid)
{
	char map[64];
	int rc;

	/* The kernel lets a group map be written without privilege only where setgroups() is off for good. */
	rc = sys_write_file(AT_FDCWD, "/proc/self/setgroups", "deny");
	if (rc < 0)
		return rc;
	snprintf(map, sizeof(map), "%" PRIu64 " %" PRIu64 " 1\n", inside_uid, outside_uid);
	rc = sys_write_file(AT_FDCWD, "/proc/self/uid_map", map);
	if (rc < 0)
		return rc;
	snprintf(map, sizeof(map), "%" PRIu64 " %" PRIu64 " 1\n", inside_gid, outside_gid);
	return sys_write_file(AT_FDCWD, "/proc/self/gid_map", map);
}

int build_id_maps(struct jar_build *build, const struct plan_step *step)
{
	/* The files in /proc/self belong to root for a process that is not dumpable. */
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return -errno;
	return write_maps(step->as.id_maps.uid, step->as.id_maps.uid, step->as.id_maps.gid, step->as.id_maps.gid);
}

/* A child that makes the user namespace of root's jar. It shares all memory with its parent, which sleeps meanwhile. */
struct helper {
	_Alignas(16) char stack[HELPER_STACK_BYTES];
	uint64_t id;
	int namespace_fd; /* or a negative errno */
};

static int helper_main(void *argument)
{
	struct helper *helper = argument;
	int rc = write_maps(0, helper->id, 0, helper->id);

	helper->namespace_fd = rc < 0 ? rc : sys_open("/proc/self/ns/user", O_RDONLY);
	return 0;
}

static int make_user_namespace(uint64_t id)
{
	static struct helper helper;
	struct processors processors;
	pid_t pid;
	int rc;

	helper.id = id;
	processor_stay(&processors);
	pid = clone(helper_main, helper.stack + sizeof(helper.stack),
		    CLONE_NEWUSER | CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, &helper);
	rc = pid < 0 ? -errno : 0;
	processor_roam(&processors);
	if (rc < 0)
		return rc;
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	return helper.namespace_fd;
}

int build_become(struct jar_build *build, const struct plan_step *step)
{
	uid_t id = step->as.become.id;
	int rc;

	if (setgroups(0, NULL) < 0 || prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setresgid(id, id, id) < 0 ||
	    setresuid(id, id, id) < 0)
		return -errno;
	rc = sys_set_effective(true);
	if (rc < 0)
		return rc;
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return -errno;
	build->user_namespace_fd = make_user_namespace(id);
	return MIN_OF(build->user_namespace_fd, 0);
}

int build_join(struct jar_build *build, const struct plan_step *step)
{
	if (setns(build->user_namespace_fd, CLONE_NEWUSER) < 0)
		return -errno;
	close_fd(&build->user_namespace_fd);
	return 0;
}

int build_privileges(struct jar_build *build, const struct plan_step *step)
{
	int rc = sys_drop_bounding_set();

	/* Without privilege there is nothing to drop: set-user-id and file capabilities are off below. */
	if (rc < 0 && !(rc == -EPERM && step->flags & STEP_UNPRIVILEGED))
		return rc;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return sys_drop_capabilities();
}
