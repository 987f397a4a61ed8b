/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor/probe_kernel.c - the kernel's version, Landlock, seccomp, and the calls the engine likes to have
 *
 * Each probe does what the engine would do, in a child that may be changed for good, and looks at what the kernel
 * answers. A version number says nothing: distributions carry patches back, and containers take calls away.
 */
#include "doctor/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include "inside/answer/answer_listener.h"
#include "survey/survey.h"
#include "base/sys/calls.h"

#define NUMBER_OPEN_TREE 428
#define NUMBER_FSOPEN 430
#define NUMBER_PIDFD_OPEN 434
#define NUMBER_CLONE3 435
#define NUMBER_CLOSE_RANGE 436
#define NUMBER_OPENAT2 437
#define NUMBER_MOUNT_SETATTR 442
#define NUMBER_LANDLOCK_CREATE_RULESET 444
/* The mount calls of a jar are complete from here on. */
#define KERNEL_LEAST_MAJOR 5
#define KERNEL_LEAST_MINOR 12

void probe_kernel(struct finding *finding)
{
	struct utsname name;
	int major = 0, minor = 0;

	if (uname(&name) < 0)
		return;
	doctor_finding_value(finding, "%.100s", name.release);
	sscanf(name.release, "%d.%d", &major, &minor);
	finding->is_found = major > KERNEL_LEAST_MAJOR || (major == KERNEL_LEAST_MAJOR && minor >= KERNEL_LEAST_MINOR);
	if (!finding->is_found)
		doctor_finding_remedy(finding, "use Linux %d.%d or later; 6.12 or later has everything Belljar uses\n",
				      KERNEL_LEAST_MAJOR, KERNEL_LEAST_MINOR);
}

/* --- Landlock ----------------------------------------------------------------------------------------------- */

/* Features that an ABI lacks, with the first kernel that has them. */
static const struct {
	int abi;
	const char *lack;
} landlock_steps[] = {
	{2, "before ABI 2 (Linux 5.19) no file can be renamed into another directory"},
	{3, "before ABI 3 (Linux 6.2) files outside can be truncated"},
	{5, "before ABI 5 (Linux 6.10) ioctl on devices is not governed"},
	{6,
	 "before ABI 6 (Linux 6.12) signals and abstract sockets are held by the filter alone on the rung 'landlock'"},
	{7, "before ABI 7 (Linux 6.15) the kernel cannot log refusals"},
	{9,
	 "before ABI 9 (Linux 7.1) Landlock cannot tell Unix sockets by path apart, and the rung 'landlock' refuses every connect()"},
};

/* An empty ruleset lets nothing be opened; then try. */
static void try_landlock(struct finding *finding)
{
	int fd = sys_landlock_create(SYS_LANDLOCK_READ_DIR, 0, 1), rc;

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	rc = fd < 0 ? fd : sys_landlock_restrict(fd, 0);
	if (rc < 0) {
		doctor_finding_value(finding, "cannot be used: %s", strerror(-rc));
		return;
	}
	finding->is_found = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC) < 0 && errno == EACCES;
	doctor_finding_value(finding, finding->is_found ? "ABI %d" : "ABI %d, but it refuses nothing",
			     survey_landlock_abi());
}

void probe_landlock(struct finding *finding)
{
	int abi = survey_landlock_abi();

	if (abi <= 0) {
		bool is_off = syscall(NUMBER_LANDLOCK_CREATE_RULESET, NULL, 0, 1) < 0 && errno == EOPNOTSUPP;

		doctor_finding_value(finding, is_off ? "switched off" : "not in this kernel, or a filter refuses it");
		doctor_finding_remedy(
			finding, is_off ? "add landlock to the kernel's parameter lsm= (lsm=landlock,... in the boot "
					  "loader's settings)\n"
					: "use Linux 5.13 or later with CONFIG_SECURITY_LANDLOCK; in a container, a "
					  "seccomp profile that lets landlock_* through\n");
		return;
	}
	doctor_finding_in_child(finding, try_landlock);
	for (size_t i = 0; i < ARRAY_LEN(landlock_steps); i++)
		if (abi < landlock_steps[i].abi)
			doctor_finding_remedy(finding, "%s\n", landlock_steps[i].lack);
}

/* --- seccomp ------------------------------------------------------------------------------------------------ */

static void try_seccomp(struct finding *finding)
{
	struct sock_filter program[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	int rc;

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	rc = sys_seccomp_load(program, ARRAY_LEN(program));
	finding->is_found = rc == 0;
	if (rc < 0)
		doctor_finding_value(finding, "%s", strerror(-rc));
	else
		doctor_finding_value(finding, "tried");
}

void probe_seccomp(struct finding *finding)
{
	doctor_finding_in_child(finding, try_seccomp);
	if (!finding->is_found)
		doctor_finding_remedy(finding, "use a kernel with CONFIG_SECCOMP_FILTER\n");
}

static void try_seccomp_listener(struct finding *finding)
{
	struct sock_filter program[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	int fd;

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	fd = answer_listen(program, ARRAY_LEN(program));
	finding->is_found = fd >= 0;
	doctor_finding_value(finding, "%s", fd < 0 ? strerror(-fd) : "tried");
}

void probe_seccomp_listener(struct finding *finding)
{
	doctor_finding_in_child(finding, try_seccomp_listener);
	if (!finding->is_found)
		doctor_finding_remedy(
			finding, "not inside of another sandbox whose filter has a listener; Linux 5.0 or later\n");
}

/* --- single calls ------------------------------------------------------------------------------------------- */

/* With arguments that cannot be right: ENOSYS or EPERM come before the kernel looks at them. */
static bool is_there(long result)
{
	return result >= 0 || (errno != ENOSYS && errno != EPERM);
}

static void report_call(struct finding *finding, bool is_found, const char *since)
{
	finding->is_found = is_found;
	doctor_finding_value(finding, is_found ? "there" : "refused, or not in this kernel");
	if (!is_found)
		doctor_finding_remedy(finding,
				      "use Linux %s or later; in a container, a seccomp profile that lets it through\n",
				      since);
}

/* fsopen and its like ask for a capability first, so they are tried where there is one. */
static void try_mount_api(struct finding *finding)
{
	struct {
		uint64_t set, clear, propagation, user_namespace_fd;
	} nothing = {0};
	bool has_open_tree = is_there(syscall(NUMBER_OPEN_TREE, -1, "x", ~0U));
	bool has_fsopen = syscall(NUMBER_FSOPEN, NULL, ~0U) < 0 && errno != ENOSYS;
	bool has_setattr = is_there(syscall(NUMBER_MOUNT_SETATTR, -1, "x", ~0U, &nothing, sizeof(nothing)));

	report_call(finding, has_open_tree && has_fsopen && has_setattr, "5.12");
}

void probe_mount_api(struct finding *finding)
{
	doctor_finding_in_child(finding, try_mount_api);
}

void probe_openat2(struct finding *finding)
{
	report_call(finding, is_there(syscall(NUMBER_OPENAT2, -1, NULL, NULL, 0)), "5.6");
}

void probe_pidfd(struct finding *finding)
{
	AUTO_CLOSE int pidfd = (int)syscall(NUMBER_PIDFD_OPEN, getpid(), 0);

	report_call(finding, pidfd >= 0, "5.3");
}

void probe_clone3(struct finding *finding)
{
	report_call(finding, is_there(syscall(NUMBER_CLONE3, NULL, 0)), "5.3");
	if (!finding->is_found)
		doctor_finding_remedy(finding, "(clone does the same, a little slower)\n");
}

void probe_close_range(struct finding *finding)
{
	report_call(finding, is_there(syscall(NUMBER_CLOSE_RANGE, ~0U, 0, ~0U)), "5.9");
	if (!finding->is_found)
		doctor_finding_remedy(finding, "(close does the same, slower)\n");
}

void probe_children_lists(struct finding *finding)
{
	char content[64];

	finding->is_found = sys_read_file(AT_FDCWD, "/proc/thread-self/children", content, sizeof(content)) >= 0;
	doctor_finding_value(finding, finding->is_found ? "there" : "no /proc/PID/task/TID/children");
	if (!finding->is_found)
		doctor_finding_remedy(finding,
				      "use a kernel with CONFIG_PROC_CHILDREN (all of /proc is searched otherwise)\n");
}

void probe_pty(struct finding *finding)
{
	AUTO_CLOSE int fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);

	finding->is_found = fd >= 0;
	doctor_finding_value(finding, "%s", fd >= 0 ? "there" : strerror(errno));
	if (fd < 0)
		doctor_finding_remedy(finding, "mount devpts on /dev/pts, with /dev/ptmx\n");
}
