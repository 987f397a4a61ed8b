/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor/probe.h - check each capability of the host: does it work, and if not, how to get it
 *
 * survey_probe() only reads facts, because every run pays for it. The doctor has time, so it tries each capability, in
 * a child process with a deadline. When the child ends, everything that it made is gone.
 */
#ifndef BELLJAR_DOCTOR_PROBE_H
#define BELLJAR_DOCTOR_PROBE_H

#include "base/list.h"
#include "policy/policy.h"

#define FINDING_VALUE_MAX 160
#define FINDING_REMEDY_MAX 1400

/* The result of a probe. It has no pointers, because a child fills it in, in shared memory. */
struct finding {
	bool is_found;
	char value[FINDING_VALUE_MAX];
	char remedy[FINDING_REMEDY_MAX]; /* may have several lines; empty: none is needed, or none is known */
};

struct capability {
	const char *name;
	const char *purpose;
	struct finding finding;
};

LIST_TYPE(struct capability, capability_list);

/* Check every capability, in the order of the table; skip those that do not apply to this caller. */
int doctor_examine_host(struct capability_list *out);
/* Return the strongest rung that the findings allow. */
enum rung doctor_host_best_rung(const struct capability_list *list);

/* --- for the probes, in probe_*.c --- */

typedef void probe_function(struct finding *finding);

void doctor_finding_value(struct finding *finding, const char *format, ...) PRINTF_LIKE(2, 3);
void doctor_finding_remedy(struct finding *finding, const char *format, ...) PRINTF_LIKE(2, 3); /* appends */

/* Run @function in a child that may change itself in any way. Kill it at the deadline: then nothing was found. */
void doctor_finding_in_child(struct finding *finding, probe_function *function);

/* probe_namespaces.c */
probe_function probe_user_namespaces, probe_pid_namespace, probe_net_namespace, probe_ipc_namespace,
	probe_uts_namespace, probe_cgroup_namespace, probe_proc_mount, probe_id_mapped_mounts;
/* probe_kernel.c */
probe_function probe_kernel, probe_landlock, probe_seccomp, probe_seccomp_listener, probe_mount_api, probe_openat2,
	probe_pidfd, probe_clone3, probe_close_range, probe_children_lists, probe_root_cache, probe_pty;
/* probe_gate.c */
probe_function probe_nf_tables, probe_ipv6, probe_name_servers, probe_inspecting_gate;
/* probe_project.c */
probe_function probe_project_secrets;
/* probe_cgroups.c */
probe_function probe_cgroup2, probe_cgroup1_memory, probe_cgroup1_pids, probe_cgroup1_cpu;

#endif
