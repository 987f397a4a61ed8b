/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/call/call_check.c - what the kernel says of a fork of the zygote, before anything of the call is let in
 *
 * The fork puts its walls up itself, in an interpreter: that is not trusted. Its minder looks from outside, and a mistake on
 * the fork's side fails closed: the call ends before it has seen its function.
 */
#include "inside/call/call_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>

#include "base/sys/calls.h"

#define STATUS_BYTES 4096

static int check_status(pid_t pid)
{
	static const char *const lines[] = {
		"\nNoNewPrivs:\t1\n",
		"\nSeccomp:\t2\n",
		"\nCapInh:\t0000000000000000\n",
		"\nCapPrm:\t0000000000000000\n",
		"\nCapEff:\t0000000000000000\n",
		"\nCapBnd:\t0000000000000000\n",
		"\nCapAmb:\t0000000000000000\n",
	};
	char path[32], status[STATUS_BYTES];
	const char *filters;
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	len = sys_read_file(AT_FDCWD, path, status, sizeof(status));
	if (len < 0)
		return (int)len;
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		if (!strstr(status, lines[i]))
			return -EPERM;
	/* The zygote's own, which it has inherited, and the call's. */
	filters = strstr(status, "\nSeccomp_filters:\t");
	return !filters || strtol(strchr(filters, '\t'), NULL, 10) >= 2 ? 0 : -EPERM;
}

/* Check that @name in the fork's /proc directory is the same object as in this process's own. */
static int check_same(pid_t pid, const char *name)
{
	struct stat own, its;
	char path[48];

	snprintf(path, sizeof(path), "/proc/self/%s", name);
	if (stat(path, &own) < 0)
		return errno == ENOENT ? 0 : -errno; /* a kernel without this kind of namespace */
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	if (stat(path, &its) < 0)
		return -errno;
	return own.st_dev == its.st_dev && own.st_ino == its.st_ino ? 0 : -EPERM;
}

/* Check that the fork has the same namespaces and root as this minder. */
static int check_places(pid_t pid)
{
	static const char *const names[] = {
		"ns/pid",  "ns/pid_for_children",  "ns/mnt", "ns/ipc",    "ns/net", "ns/user",
		"ns/time", "ns/time_for_children", "ns/uts", "ns/cgroup", "root"};
	int rc = 0;

	for (size_t i = 0; i < ARRAY_LEN(names) && rc == 0; i++)
		rc = check_same(pid, names[i]);
	return rc;
}

/*
 * Nothing in /proc shows Landlock. But an open file keeps the rights that its opener's domain allows. The
 * domain forbids ioctl() on this device (plan_calls.c), while without a domain the kernel answers ENOTTY.
 */
static int check_landlock(const struct jar_plan *plan, int probe_fd)
{
	struct stat own, its;
	struct termios terminal;

	if (!plan->zygote.landlock_probe)
		return 0;
	if (probe_fd < 0 || fstat(probe_fd, &its) < 0 || stat(plan->zygote.landlock_probe, &own) < 0 ||
	    !S_ISCHR(its.st_mode) || own.st_rdev != its.st_rdev)
		return -EPERM;
	return ioctl(probe_fd, TCGETS, &terminal) < 0 && errno == EACCES ? 0 : -EPERM;
}

int call_check(const struct jar_plan *plan, pid_t pid, int probe_fd)
{
	int rc = check_status(pid);

	if (rc == 0)
		rc = check_places(pid);
	return rc < 0 ? rc : check_landlock(plan, probe_fd);
}
