/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor/probe.h - look at one capability of the host after the other: is it there, and if not, how to get it
 *
 * survey_probe() takes facts as they look, because every run pays for it. Here there is time: what can be tried is tried,
 * in a child process with a deadline, that takes everything it made along when it ends.
 */
#ifndef BELLJAR_DOCTOR_PROBE_H
#define BELLJAR_DOCTOR_PROBE_H

#include "base/list.h"
#include "policy/policy.h"

#define FINDING_VALUE_MAX 160
#define FINDING_REMEDY_MAX 1400

/* What a probe says. No pointers: it is filled in by a child, in shared memory. */
struct finding {
	bool is_found;
	char value[FINDING_VALUE_MAX];
	char remedy[FINDING_REMEDY_MAX]; /* may have lines; empty: nothing to do, or nothing to be done */
};

struct capability {
	const char *name;
	const char *purpose;
	struct finding finding;
};

LIST_TYPE(struct capability, capability_list);

/* Every capability, in the order of the table; those that mean nothing to this caller are left out. */
int doctor_examine_host(struct capability_list *out);
/* The strongest rung that the findings allow. */
enum rung doctor_host_best_rung(const struct capability_list *list);

/* --- for the probes, in host_doctor_*.c --- */

typedef void probe_function(struct finding *finding);

void doctor_finding_value(struct finding *finding, const char *format, ...) PRINTF_LIKE(2, 3);
void doctor_finding_remedy(struct finding *finding, const char *format, ...) PRINTF_LIKE(2, 3); /* appends */

/* Run @function in a child that may do anything to itself; after the deadline it is killed and nothing was found. */
void doctor_finding_in_child(struct finding *finding, probe_function *function);

/* host_doctor_namespaces.c */
probe_function probe_user_namespaces, probe_pid_namespace, probe_net_namespace, probe_ipc_namespace,
	probe_uts_namespace, probe_cgroup_namespace, probe_proc_mount, probe_id_mapped_mounts;
/* host_doctor_kernel.c */
probe_function probe_kernel, probe_landlock, probe_seccomp, probe_seccomp_listener, probe_mount_api, probe_openat2,
	probe_pidfd, probe_clone3, probe_close_range, probe_children_lists, probe_root_cache, probe_pty;
/* probe_gate.c */
probe_function probe_nf_tables, probe_ipv6, probe_name_servers, probe_inspecting_gate;
/* probe_project.c */
probe_function probe_project_secrets;
/* host_doctor_cgroups.c */
probe_function probe_cgroup2, probe_cgroup1_memory, probe_cgroup1_pids, probe_cgroup1_cpu;

#endif
