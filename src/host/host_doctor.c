/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host/host_doctor.c - the table of capabilities, and the child in which dangerous questions are asked
 */
#include "host/host_doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define PROBE_TIMEOUT_MS 3000

static const struct {
	const char *name;
	const char *purpose;
	probe_function *function;
	bool is_for_root; /* others have no use for it */
} probes[] = {
	{"kernel", "everything else", probe_kernel, false},
	{"user-namespaces", "the rung 'namespace': all other namespaces without root", probe_user_namespaces, false},
	{"pid-namespace", "a jar's processes see, signal and trace only each other, and end together",
	 probe_pid_namespace, false},
	{"net-namespace", "no network but a private loopback", probe_net_namespace, false},
	{"ipc-namespace", "no shared memory or message queues of the host", probe_ipc_namespace, false},
	{"uts-namespace", "a hostname of its own", probe_uts_namespace, false},
	{"cgroup-namespace", "the host's cgroup names stay hidden", probe_cgroup_namespace, false},
	{"proc-mount", "a /proc that shows only the jar", probe_proc_mount, false},
	{"id-mapped-mounts", "a command started by root runs under an id that is nobody's", probe_id_mapped_mounts,
	 true},
	{"landlock", "the rung 'landlock', and a second wall around files on the rung 'namespace'", probe_landlock,
	 false},
	{"seccomp", "the filter of system calls; needed on every rung but 'process'", probe_seccomp, false},
	{"mount-api", "a jar's file system, built by descriptor", probe_mount_api, false},
	{"openat2", "paths in directories a jar can write, without following its links", probe_openat2, false},
	{"pidfd", "signals that cannot hit another process by mistake", probe_pidfd, false},
	{"clone3", "a process and its namespaces in one step", probe_clone3, false},
	{"close_range", "closing what the caller left open, quickly", probe_close_range, false},
	{"proc-children", "finding a jar's processes quickly where there is no pid namespace", probe_children_lists,
	 false},
	{"pty", "--pty and `belljar shell`", probe_pty, false},
	{"cgroup2", "exact limits of memory, processes and CPU time for the whole tree", probe_cgroup2, false},
	{"cgroup1-memory", "the limit of memory where there is no cgroup v2", probe_cgroup1_memory, false},
	{"cgroup1-pids", "the limit of processes where there is no cgroup v2", probe_cgroup1_pids, false},
	{"cgroup1-cpu", "the limit of CPU time where there is no cgroup v2", probe_cgroup1_cpu, false},
};

void finding_value(struct finding *finding, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(finding->value, sizeof(finding->value), format, arguments);
	va_end(arguments);
}

void finding_remedy(struct finding *finding, const char *format, ...)
{
	size_t len = strlen(finding->remedy);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(finding->remedy + len, sizeof(finding->remedy) - len, format, arguments);
	va_end(arguments);
}

/* Wait until the other end of the pipe is closed, by the child's end; kill it if that takes too long. */
static bool wait_for_child(pid_t child, int pipe_fd)
{
	struct pollfd ended = {.fd = pipe_fd, .events = POLLIN};
	bool is_in_time = poll(&ended, 1, PROBE_TIMEOUT_MS) > 0;

	if (!is_in_time)
		kill(child, SIGKILL);
	while (waitpid(child, NULL, __WALL) < 0 && errno == EINTR)
		;
	return is_in_time;
}

void finding_in_child(struct finding *finding, probe_function *function)
{
	struct finding *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int ends[2];
	pid_t child;

	if (shared == MAP_FAILED)
		return;
	if (pipe2(ends, O_CLOEXEC) < 0) {
		munmap(shared, sizeof(*shared));
		return;
	}
	child = fork();
	if (child == 0) {
		close(ends[0]);
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		function(shared);
		_exit(0);
	}
	close(ends[1]);
	if (child < 0)
		finding_value(finding, "cannot be tried: %s", strerror(errno));
	else if (wait_for_child(child, ends[0]))
		*finding = *shared;
	else
		finding_value(finding, "no answer within %d s", PROBE_TIMEOUT_MS / 1000);
	close(ends[0]);
	munmap(shared, sizeof(*shared));
}

int host_examine(struct capability_list *out)
{
	for (size_t i = 0; i < ARRAY_LEN(probes); i++) {
		struct capability *item;

		if (probes[i].is_for_root && getuid() != 0)
			continue;
		item = list_add(out);
		if (!item)
			return -ENOMEM;
		item->name = probes[i].name;
		item->purpose = probes[i].purpose;
		probes[i].function(&item->finding);
	}
	return 0;
}

static bool has(const struct capability_list *list, const char *name)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->items[i].name, name))
			return list->items[i].finding.is_found;
	return false;
}

enum rung host_best_rung(const struct capability_list *list)
{
	static const char *const needed[] = {"user-namespaces", "pid-namespace", "net-namespace",
					     "ipc-namespace",   "uts-namespace", "cgroup-namespace",
					     "proc-mount",      "mount-api",     "openat2"};
	bool has_all = true;

	if (!has(list, "seccomp"))
		return RUNG_PROCESS;
	for (size_t i = 0; i < ARRAY_LEN(needed); i++)
		has_all &= has(list, needed[i]);
	if (has_all)
		return RUNG_NAMESPACE;
	return has(list, "landlock") ? RUNG_LANDLOCK : RUNG_PROCESS;
}
