/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor/probe.c - the table of capabilities, and the child in which dangerous questions are asked
 */
#include "doctor/probe.h"

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
	{"kernel", "Linux 5.12 or later", probe_kernel, false},
	{"user-namespaces", "full jars without root", probe_user_namespaces, false},
	{"pid-namespace", "a jar sees and signals only its own processes, and they all end with it",
	 probe_pid_namespace, false},
	{"net-namespace", "no network but a private loopback", probe_net_namespace, false},
	{"ipc-namespace", "the host's shared memory and message queues stay out of reach", probe_ipc_namespace, false},
	{"uts-namespace", "a jar has its own hostname", probe_uts_namespace, false},
	{"cgroup-namespace", "a jar does not see the host's cgroup names", probe_cgroup_namespace, false},
	{"proc-mount", "/proc shows only the jar", probe_proc_mount, false},
	{"id-mapped-mounts", "a command that root starts runs under an unused, unprivileged id", probe_id_mapped_mounts,
	 true},
	{"landlock", "a second wall around files; the only one where user namespaces are missing", probe_landlock,
	 false},
	{"seccomp", "a filter refuses dangerous system calls", probe_seccomp, false},
	{"seccomp-listener", "without user namespaces, commands cannot change mode, owner and times of files outside",
	 probe_seccomp_listener, false},
	{"mount-api", "Belljar builds a jar's file system from descriptors, not from paths", probe_mount_api, false},
	{"openat2", "Belljar never follows links that a jar made", probe_openat2, false},
	{"pidfd", "Belljar never signals the wrong process", probe_pidfd, false},
	{"clone3", "Belljar makes a process and its namespaces in one step", probe_clone3, false},
	{"close_range", "Belljar closes inherited descriptors quickly", probe_close_range, false},
	{"proc-children", "Belljar finds a jar's processes quickly where there is no pid namespace",
	 probe_children_lists, false},
	{"root-cache", "Belljar makes most of a jar's root once, for all later jars", probe_root_cache, false},
	{"pty", "--pty and `belljar shell`", probe_pty, false},
	{"nf-tables", "a gate (allow_net) may lead to any port, and takes none from servers in the jar",
	 probe_nf_tables, false},
	{"ipv6", "a gate reaches hosts that have no other address", probe_ipv6, false},
	{"name-servers", "a gate finds the addresses of hosts", probe_name_servers, false},
	{"belljar-gate", "secrets, and rules of allow_net about requests", probe_inspecting_gate, false},
	{"cgroup2", "the kernel enforces memory, processes and CPU time exactly", probe_cgroup2, false},
	{"cgroup1-memory", "the kernel enforces memory, without cgroup v2", probe_cgroup1_memory, false},
	{"cgroup1-pids", "the kernel enforces the number of processes, without cgroup v2", probe_cgroup1_pids, false},
	{"cgroup1-cpu", "the kernel counts CPU time, without cgroup v2", probe_cgroup1_cpu, false},
	{"project-secrets", "the current directory is free of files that usually hold secrets", probe_project_secrets,
	 false},
};

void doctor_finding_value(struct finding *finding, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(finding->value, sizeof(finding->value), format, arguments);
	va_end(arguments);
}

void doctor_finding_remedy(struct finding *finding, const char *format, ...)
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

void doctor_finding_in_child(struct finding *finding, probe_function *function)
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
		doctor_finding_value(finding, "cannot be tried: %s", strerror(errno));
	else if (wait_for_child(child, ends[0]))
		*finding = *shared;
	else
		doctor_finding_value(finding, "no answer within %d s", PROBE_TIMEOUT_MS / 1000);
	close(ends[0]);
	munmap(shared, sizeof(*shared));
}

int doctor_examine_host(struct capability_list *out)
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

enum rung doctor_host_best_rung(const struct capability_list *list)
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
