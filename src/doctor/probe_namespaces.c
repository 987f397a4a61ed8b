/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor/probe_namespaces.c - are there namespaces, and can something be done in them?
 *
 * A namespace that can be made is not yet one that works: Ubuntu's AppArmor setting lets a user namespace be made and
 * takes its privileges away, and a masked /proc (as in Docker) forbids a new one. So each is made and used.
 */
#include "doctor/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "doctor/place.h"
#include "base/sys/calls.h"

#define MOUNTING_PROC "mounting proc"

/* --- why not, and what to do -------------------------------------------------------------------------------- */

static bool setting_is(const char *path, char expected)
{
	char content[16];

	return sys_read_file(AT_FDCWD, path, content, sizeof(content)) > 0 && content[0] == expected;
}

static void advise_user_namespaces(struct finding *finding)
{
	AUTO_TEXT cure = {0};

	if (setting_is("/proc/sys/user/max_user_namespaces", '0'))
		doctor_finding_remedy(finding, "sysctl -w user.max_user_namespaces=15000\n");
	if (setting_is("/proc/sys/kernel/unprivileged_userns_clone", '0'))
		doctor_finding_remedy(finding, "sysctl -w kernel.unprivileged_userns_clone=1\n");
	doctor_place_cure(doctor_find_place(environ), &cure);
	doctor_finding_remedy(finding, "%s", text_string(&cure));
	if (!finding->remedy[0])
		doctor_finding_remedy(finding,
				      "use a kernel with CONFIG_USER_NS, and do not start Belljar in a chroot\n");
}

/* --- making them -------------------------------------------------------------------------------------------- */

static int map_to_self(uid_t uid, gid_t gid)
{
	char map[64];
	int rc;

	rc = sys_write_file(AT_FDCWD, "/proc/self/setgroups", "deny");
	if (rc < 0)
		return rc;
	snprintf(map, sizeof(map), "%u %u 1\n", (unsigned)uid, (unsigned)uid);
	rc = sys_write_file(AT_FDCWD, "/proc/self/uid_map", map);
	if (rc < 0)
		return rc;
	snprintf(map, sizeof(map), "%u %u 1\n", (unsigned)gid, (unsigned)gid);
	return sys_write_file(AT_FDCWD, "/proc/self/gid_map", map);
}

/* A user namespace, and others in it; the caller's id is mapped to itself. */
static int enter_new(int other_namespaces, const char **failed)
{
	uid_t uid = getuid();
	gid_t gid = getgid();
	int rc;

	/* The files in /proc/self belong to root for a process that is not dumpable. */
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	*failed = "unshare";
	if (unshare(CLONE_NEWUSER) < 0)
		return -errno;
	*failed = "writing the id maps";
	rc = map_to_self(uid, gid);
	if (rc < 0)
		return rc;
	*failed = "unshare";
	return unshare(other_namespaces) < 0 ? -errno : 0;
}

static void report(struct finding *finding, int rc, const char *failed)
{
	finding->is_found = rc == 0;
	if (rc < 0)
		doctor_finding_value(finding, "%s: %s", failed, strerror(-rc));
	else
		doctor_finding_value(finding, "tried");
}

static void try_user(struct finding *finding)
{
	const char *failed = "";
	int mount_fd, rc = enter_new(CLONE_NEWNS, &failed);

	if (rc == 0) {
		failed = "mounting a tmpfs";
		mount_fd = sys_new_mount("tmpfs", NULL, 0, SYS_MOUNT_NOSUID | SYS_MOUNT_NODEV);
		rc = mount_fd < 0 ? mount_fd : sys_move_mount(mount_fd, AT_FDCWD, "/");
	}
	report(finding, rc, failed);
}

void probe_user_namespaces(struct finding *finding)
{
	doctor_finding_in_child(finding, try_user);
	if (!finding->is_found)
		advise_user_namespaces(finding);
}

static void try_one(struct finding *finding, int namespace)
{
	const char *failed = "";
	int rc = enter_new(namespace, &failed);

	report(finding, rc, failed);
}

static void try_pid(struct finding *finding)
{
	try_one(finding, CLONE_NEWPID);
}

static void try_net(struct finding *finding)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	const char *failed = "";
	int rc = enter_new(CLONE_NEWNET, &failed);

	if (rc == 0) {
		AUTO_CLOSE int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

		failed = "starting the loopback";
		rc = fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? -errno : 0;
	}
	report(finding, rc, failed);
}

static void try_ipc(struct finding *finding)
{
	try_one(finding, CLONE_NEWIPC);
}

static void try_uts(struct finding *finding)
{
	try_one(finding, CLONE_NEWUTS);
}

static void try_cgroup(struct finding *finding)
{
	try_one(finding, CLONE_NEWCGROUP);
}

static void probe_namespace(struct finding *finding, probe_function *function, const char *option)
{
	doctor_finding_in_child(finding, function);
	if (!finding->is_found)
		doctor_finding_remedy(finding, "needs user-namespaces (above), and a kernel with %s\n", option);
}

void probe_pid_namespace(struct finding *finding)
{
	probe_namespace(finding, try_pid, "CONFIG_PID_NS");
}

void probe_net_namespace(struct finding *finding)
{
	probe_namespace(finding, try_net, "CONFIG_NET_NS");
}

void probe_ipc_namespace(struct finding *finding)
{
	probe_namespace(finding, try_ipc, "CONFIG_IPC_NS");
}

void probe_uts_namespace(struct finding *finding)
{
	probe_namespace(finding, try_uts, "CONFIG_UTS_NS");
}

void probe_cgroup_namespace(struct finding *finding)
{
	probe_namespace(finding, try_cgroup, "CONFIG_CGROUPS");
}

/* --- mounts ------------------------------------------------------------------------------------------------- */

/* A new /proc shows a pid namespace, so it is mounted by a process in a new one. */
static void try_proc(struct finding *finding)
{
	const char *failed = "";
	int status = 0, rc = enter_new(CLONE_NEWNS | CLONE_NEWPID, &failed);
	pid_t child;

	if (rc < 0) {
		report(finding, rc, failed);
		return;
	}
	child = fork();
	if (child == 0) {
		int mount_fd = sys_new_mount("proc", NULL, 0, SYS_MOUNT_NOSUID | SYS_MOUNT_NODEV | SYS_MOUNT_NOEXEC);

		rc = mount_fd < 0 ? mount_fd : sys_move_mount(mount_fd, AT_FDCWD, "/proc");
		report(finding, rc, MOUNTING_PROC);
		_exit(0);
	}
	if (child < 0)
		report(finding, -errno, "fork");
	else
		waitpid(child, &status, 0);
}

void probe_proc_mount(struct finding *finding)
{
	doctor_finding_in_child(finding, try_proc);
	if (finding->is_found)
		return;
	if (strncmp(finding->value, MOUNTING_PROC, strlen(MOUNTING_PROC)) != 0)
		doctor_finding_remedy(finding, "needs user-namespaces and pid-namespace (above)\n");
	else
		doctor_finding_remedy(
			finding, "the /proc here is covered in places, as in a container: docker run --security-opt "
				 "systempaths=unconfined (or podman run --security-opt unmask=ALL)\n");
}

static int hold_user_namespace(int ready_fd) __attribute__((noreturn));
static int hold_user_namespace(int ready_fd)
{
	int rc = unshare(CLONE_NEWUSER) < 0 ? -errno : 0;
	char answer = rc < 0 ? 'n' : 'y', byte;

	if (write(ready_fd, &answer, 1) != 1)
		_exit(1);
	_exit(read(ready_fd, &byte, 1) < 0);
}

/* Write the maps from outside, as root may: 0 inside is an unused id of the host. */
static int map_holder(pid_t holder)
{
	char path[64];
	int rc;

	snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)holder);
	rc = sys_write_file(AT_FDCWD, path, "0 1900000000 1\n");
	snprintf(path, sizeof(path), "/proc/%d/gid_map", (int)holder);
	return rc < 0 ? rc : sys_write_file(AT_FDCWD, path, "0 1900000000 1\n");
}

/* On the file system of the current directory, which is where it will be needed. */
static int map_current_directory(pid_t holder)
{
	char path[64];
	AUTO_CLOSE int namespace_fd = -1;
	AUTO_CLOSE int mount_fd = -1;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)holder);
	namespace_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (namespace_fd < 0)
		return -errno;
	mount_fd = sys_open_tree_with(AT_FDCWD, ".", false, 0, namespace_fd);
	return mount_fd < 0 ? mount_fd : 0;
}

static void try_id_mapped(struct finding *finding)
{
	const char *failed = "making a user namespace";
	int ends[2], rc;
	char answer = 'n';
	pid_t holder;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
		report(finding, -errno, "socketpair");
		return;
	}
	holder = fork();
	if (holder == 0) {
		close(ends[0]);
		hold_user_namespace(ends[1]);
	}
	close(ends[1]);
	rc = holder < 0 || read(ends[0], &answer, 1) != 1 || answer != 'y' ? -EPERM : 0;
	if (rc == 0) {
		failed = "writing the id maps";
		rc = map_holder(holder);
	}
	if (rc == 0) {
		failed = "mapping the current directory";
		rc = map_current_directory(holder);
	}
	close(ends[0]);
	if (holder > 0)
		waitpid(holder, NULL, 0);
	report(finding, rc, failed);
}

void probe_id_mapped_mounts(struct finding *finding)
{
	doctor_finding_in_child(finding, try_id_mapped);
	if (!finding->is_found)
		doctor_finding_remedy(
			finding,
			"use Linux 5.12 or later, and a workdir on a file system that knows them (ext4, xfs, btrfs; "
			"tmpfs from 6.3, overlayfs from 5.19 on); without them the command keeps root's id, "
			"unprivileged\n");
}
