/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan_limits.c - which limit is held by what, and which cannot be held here
 *
 * In order of preference: a cgroup of the run's own, where the kernel counts and refuses; what the kernel limits
 * without one (processes per user namespace, the size of a tmpfs, rlimits); and a meter, the engine looking at the
 * tree many times a second. A limit that someone asked for and that cannot be enforced refuses the run, unless the
 * policy calls it optional. A limit that is only a default is reported in `missing` instead.
 */
#include "plan/plan_build.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "plan/seccomp/seccomp_rules.h"
#include "policy/policy_build.h"

#define METER_HINT                                                                                                     \
	"give Belljar a cgroup of its own (as root, or: systemd-run --user --scope -p Delegate=yes belljar ...); "     \
	"`belljar doctor` says more"

/* What no look at processes shows, and what it shows too late. */
#define UNSEEN_MEMORY                                                                                                          \
	"memory files (memfd) and shared memory that no process has in its page tables, nor what waits in sockets and pipes, " \
	"nor pages in swap, nor what the kernel keeps for a process (page tables, stacks, descriptors); files in host "        \
	"directories that are in memory (tmpfs) are not counted"
#define UNSEEN_FILES ", among them the run's own directory where it is one"

static bool is_asked(const struct plan_build *build, enum guarantee guarantee)
{
	return build->plan->asked >> guarantee & 1;
}

/* Say that @name cannot be limited: refuse, or go on and report it. */
static int lacks(struct plan_build *build, const char *name, enum guarantee guarantee, const char *why,
		 const char *hint)
{
	bool is_optional = build->policy->optional & (1U << guarantee);

	if (is_optional || !policy_is_given(build->policy, name)) {
		plan_missing(build, name, why, hint);
		return 0;
	}
	error_set(build->error, STAGE_LIMITS, EOPNOTSUPP, "cannot enforce the limit '%s' here: %s", name, why);
	return error_hint(build->error, "%s; or run without it: --optional %s", hint, name);
}

/* --- who holds it ------------------------------------------------------------------------------------------- */

static const char *own_cgroup(struct plan_build *build, const char *directory)
{
	build->plan->cgroup.version = build->host->cgroups.version;
	if (build->host->cgroups.is_own)
		build->plan->cgroup.room = plan_string(build, directory);
	return plan_format(build, "%s/%s", directory, build->host->cgroups.name);
}

/* In a pid namespace the jar has a /proc of its own. */
static bool can_see_processes(const struct plan_build *build)
{
	return build->plan->rung == RUNG_NAMESPACE || !build->host->hides_processes;
}

/* What memory and writing are measured by is shown only to those who might trace the process. */
static bool can_look_inside(const struct plan_build *build)
{
	bool is_foreign =
		build->plan->rung == RUNG_NAMESPACE && build->host->uid == 0 && build->host->has_id_mapped_mounts;

	return can_see_processes(build) && !(is_foreign && build->host->hides_jar);
}

static int lacks_sight(struct plan_build *build, const char *name, enum guarantee guarantee)
{
	if (can_see_processes(build))
		return lacks(build, name, guarantee,
			     "root has no CAP_SYS_PTRACE here, and cannot read the jar's processes",
			     "give the container CAP_SYS_PTRACE, or start Belljar as an ordinary user");
	return lacks(build, name, guarantee, "/proc is mounted with hidepid, and does not show the jar's processes",
		     "allow user namespaces, or mount /proc without hidepid");
}

static int hold_memory(struct plan_build *build)
{
	if (build->host->cgroups.version && build->host->cgroups.memory) {
		build->plan->cgroup.memory = own_cgroup(build, build->host->cgroups.memory);
		return 0;
	}
	if (!can_look_inside(build))
		return lacks_sight(build, "memory", GUARANTEE_MEMORY);
	build->plan->metered |= 1U << GUARANTEE_MEMORY;
	plan_missing(build, "memory",
		     plan_format(build,
				 "Belljar measures it by reading the processes, which shows neither " UNSEEN_MEMORY
				 "%s",
				 build->plan->rung == RUNG_NAMESPACE ? "" : UNSEEN_FILES),
		     METER_HINT);
	return 0;
}

static int hold_cpu_time(struct plan_build *build)
{
	if (build->host->cgroups.version && build->host->cgroups.cpu) {
		build->plan->cgroup.cpu = own_cgroup(build, build->host->cgroups.cpu);
		return 0;
	}
	if (!can_see_processes(build))
		return lacks_sight(build, "cpu_time", GUARANTEE_CPU_TIME);
	build->plan->metered |= 1U << GUARANTEE_CPU_TIME;
	if (!build->host->has_task_clock)
		plan_missing(
			build, "cpu_time",
			"Belljar measures it by reading the processes, to 10 ms for each: if no parent waits for a child (SIGCHLD ignored), its CPU time since the last reading is lost",
			METER_HINT);
	return 0;
}

static void add_rlimit(struct plan_build *build, struct plan_step_list *list, int resource, uint64_t limit)
{
	struct plan_step *step;

	if (limit == LIMIT_NONE)
		return;
	step = plan_add(build, list, STEP_RLIMIT);
	step->as.rlimit.resource = resource;
	step->as.rlimit.limit = limit;
}

/* What the user's other programs may add while the jar lives. */
#define USER_PROCESSES_ROOM 3000

/* Without a user namespace of its own the kernel counts all processes of the user together. */
static void meter_pids(struct plan_build *build)
{
	build->plan->metered |= 1U << GUARANTEE_PIDS;
	plan_missing(
		build, "pids",
		"Belljar counts the processes every 5 to 100 ms: the command can make any number in between, and Belljar then kills the run, where with a cgroup the kernel would refuse to make them",
		"allow user namespaces, or " METER_HINT);
	/* A bomb is faster than any look. All of the user's processes count, so this is wide, but it is the kernel's. */
	if (build->host && build->host->uid != 0 && build->host->process_count)
		add_rlimit(build, &build->plan->core.entry, RLIMIT_NPROC,
			   build->host->process_count + build->plan->limits.pids + USER_PROCESSES_ROOM);
}

/*
 * Counted per user namespace for nothing, but a refused fork leaves no trace: where the number was asked for, or
 * there is a cgroup anyway, that counts better.
 */
static int hold_pids(struct plan_build *build)
{
	const struct host_cgroups *cgroups = &build->host->cgroups;
	bool has_namespace_count =
		build->plan->rung == RUNG_NAMESPACE && (build->host->uid != 0 || build->host->has_id_mapped_mounts);
	bool is_wanted = policy_is_given(build->policy, "pids") || !has_namespace_count ||
			 (cgroups->version == 2 && build->plan->cgroup.version);

	if (cgroups->version && cgroups->pids && is_wanted) {
		build->plan->cgroup.pids = own_cgroup(build, cgroups->pids);
		return 0;
	}
	build->has_process_rlimit = has_namespace_count;
	if (has_namespace_count)
		return 0;
	if (!can_see_processes(build))
		return lacks_sight(build, "pids", GUARANTEE_PIDS);
	meter_pids(build);
	return 0;
}

static bool has_writable_host_directory(const struct plan_build *build)
{
	if (!build->has_private_workdir && build->policy->workdir_mode == WORKDIR_RW)
		return true;
	for (size_t i = 0; i < build->policy->mounts.count; i++)
		if (build->policy->mounts.items[i].access == MOUNT_RW)
			return true;
	return false;
}

/* The scratch tmpfs has that size; where there is nowhere else to write, only its filling up remains to be seen. */
static int hold_disk(struct plan_build *build)
{
	const char *hint = "use a private or read-only workdir (-C none, --workdir-mode ro), where the limit is exact";

	if (build->plan->rung == RUNG_NAMESPACE && !has_writable_host_directory(build)) {
		build->plan->metered |= 1U << GUARANTEE_DISK;
		return 0;
	}
	if (!can_look_inside(build))
		return lacks_sight(build, "disk", GUARANTEE_DISK);
	if (build->host->uncounted_path)
		return lacks(
			build, "disk", GUARANTEE_DISK,
			plan_format(
				build,
				"'%s' is on a file system where the kernel does not count what is written (tmpfs, FUSE)",
				build->host->uncounted_path),
			hint);
	build->plan->metered |= 1U << GUARANTEE_DISK;
	build->plan->has_counted_writes = true;
	plan_missing(
		build, "disk",
		build->plan->rung == RUNG_NAMESPACE
			? "in host directories Belljar measures it by reading the processes: if no parent waits for a child (SIGCHLD ignored), its writes since the last reading count only as far as any program made the file system grow; space for names and attributes of files does not count, and removed files still count"
			: "Belljar measures it by reading the processes: if no parent waits for a child (SIGCHLD ignored), its writes since the last reading count only as far as any program made the file system grow; space for names and attributes of files does not count, nor does the run's own directory where it is in memory",
		hint);
	return 0;
}

/* --- steps -------------------------------------------------------------------------------------------------- */

/* The first steps of all: after them the command's root has no way there, and its id no right. */
static void add_cgroup_steps(struct plan_build *build)
{
	const struct plan_cgroup *cgroup = &build->plan->cgroup;
	const char *directories[] = {cgroup->memory, cgroup->pids, cgroup->cpu};
	static const enum guarantee guarantees[] = {GUARANTEE_MEMORY, GUARANTEE_PIDS, GUARANTEE_CPU_TIME};
	struct plan_step *step = NULL;

	for (size_t i = 0; i < ARRAY_LEN(directories); i++) {
		if (!directories[i])
			continue;
		if (!step || cgroup->version == 1) {
			step = plan_add(build, &build->plan->core.steps, STEP_CGROUP);
			step->target = cgroup->version == 2 && plan_has_minders(build->plan)
					       ? plan_format(build, "%s/" PLAN_CGROUP_LEAF, directories[i])
					       : directories[i];
			step->as.cgroup.version = (uint32_t)cgroup->version;
			if (cgroup->version == 2)
				build->plan->core.birth_cgroup = step->target;
		}
		step->as.cgroup.holds |= 1U << guarantees[i];
	}
}

int plan_back_ends(struct plan_build *build)
{
	const struct policy *policy = build->policy;
	struct plan *plan = build->plan;
	int rc = 0;

	plan->asked |= (policy->limits.memory_bytes != LIMIT_NONE) << GUARANTEE_MEMORY |
		       (plan->limits.cpu_time_ns != LIMIT_NONE) << GUARANTEE_CPU_TIME |
		       (policy->limits.pids != LIMIT_NONE) << GUARANTEE_PIDS |
		       (policy->limits.disk_bytes != LIMIT_NONE) << GUARANTEE_DISK;
	if (is_asked(build, GUARANTEE_MEMORY))
		rc = hold_memory(build);
	if (rc == 0 && is_asked(build, GUARANTEE_CPU_TIME))
		rc = hold_cpu_time(build);
	/* Not the jar's limit, but each of its commands may have one. */
	if (plan_has_minders(plan) && policy->limits.cpu_time_ns != LIMIT_NONE && build->host->cgroups.version &&
	    build->host->cgroups.cpu)
		plan->cgroup.cpu = own_cgroup(build, build->host->cgroups.cpu);
	if (rc == 0 && is_asked(build, GUARANTEE_PIDS))
		rc = hold_pids(build);
	if (rc == 0 && is_asked(build, GUARANTEE_DISK))
		rc = hold_disk(build);
	add_cgroup_steps(build);
	return rc;
}

void plan_meter(struct plan_build *build)
{
	struct plan_step *step;

	/* What a kept jar's commands may not use is known only later: there must be something to look at. */
	if (!build->plan->metered && !plan_has_minders(build->plan))
		return;
	step = plan_add(build, &build->plan->core.steps, STEP_METER);
	step->as.meter.holds = build->plan->metered;
	step->flags = build->plan->metered >> GUARANTEE_DISK & 1 ? STEP_COUNT_WRITES : 0;
	step->as.meter.has_clock = build->plan->metered >> GUARANTEE_CPU_TIME & 1 && build->host->has_task_clock;
}

/* A program that the kernel hands dumps to gets them whatever the limit is, unless it is 1: too small for a file too. */
static uint64_t core_limit(const struct plan_build *build)
{
	return build->policy->limits.core_bytes == 0 && build->host->pipes_core_dumps
		       ? 1
		       : build->policy->limits.core_bytes;
}

bool plan_keeps_core_limit(const struct plan_build *build)
{
	const struct plan *plan = build->plan;

	if (plan->kind == PLAN_RUN)
		return plan->jar->filter_parts & SECCOMP_KEEP_CORE_LIMIT;
	return plan->rung != RUNG_PROCESS && build->policy->limits.core_bytes == 0 && build->host->pipes_core_dumps;
}

/* A jar gets one part in this many of a user's share of the host; the rest is for the user's other programs. */
#define USER_SHARE 4
/* The host's defaults are 15,000 signals and more, by its memory, and 819,200 bytes: ten queues of the usual size. */
#define QUEUED_SIGNALS 1024
#define MESSAGE_QUEUE_BYTES (256 << 10)

/*
 * The jar's user namespace has a limit of its own, below the user's. Root's jars are another user each, where there are
 * id-mapped mounts.
 */
void plan_user_limits(struct plan_build *build)
{
	const struct {
		const char *name;
		uint64_t all;
	} counts[] = {
		{"max_inotify_instances", build->host->inotify_instances},
		{"max_inotify_watches", build->host->inotify_watches},
	};
	struct plan_step *step;

	if (!build->host->inotify_instances || !build->host->inotify_watches) {
		plan_missing(build, "user_limits",
			     "the jar's share of the user's inotify instances and watches cannot be limited: "
			     "/proc/sys/user cannot be written",
			     "mount /proc/sys writable; this gives no program a right that it does not have already");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		step = plan_add(build, &build->plan->core.steps, STEP_USER_LIMIT);
		step->source = counts[i].name;
		step->as.user_limit.limit = MAX_OF(counts[i].all / USER_SHARE, 1);
	}
}

void plan_process_limits(struct plan_build *build)
{
	const struct policy *policy = build->policy;
	struct plan_step_list *entry = &build->plan->core.entry;

	if (!plan_keeps_core_limit(build))
		add_rlimit(build, entry, RLIMIT_CORE, core_limit(build));
	add_rlimit(build, entry, RLIMIT_FSIZE, policy->limits.file_size_bytes);
	add_rlimit(build, entry, RLIMIT_NOFILE, policy->limits.fds);
}

void plan_limits(struct plan_build *build)
{
	uint64_t own = plan_has_minders(build->plan) ? PLAN_MINDERS_ROOM : 1;

	/* Counted per user namespace; the jar's own processes are in it too. */
	if (build->has_process_rlimit)
		add_rlimit(build, &build->plan->core.steps, RLIMIT_NPROC, build->policy->limits.pids + own);
	/* The first process sets it for all, since its filter keeps every later process from doing so. */
	if (plan_keeps_core_limit(build))
		add_rlimit(build, &build->plan->core.steps, RLIMIT_CORE, core_limit(build));
	/* The kernel counts the user's other programs too, but applies to them their own, higher limits. */
	add_rlimit(build, &build->plan->core.steps, RLIMIT_SIGPENDING, QUEUED_SIGNALS);
	add_rlimit(build, &build->plan->core.steps, RLIMIT_MSGQUEUE, MESSAGE_QUEUE_BYTES);
}

/* --- one run in a kept jar ---------------------------------------------------------------------------------- */

static bool has_process_rlimit(const struct plan *jar)
{
	for (size_t i = 0; i < jar->core.steps.count; i++)
		if (jar->core.steps.items[i].kind == STEP_RLIMIT &&
		    jar->core.steps.items[i].as.rlimit.resource == RLIMIT_NPROC)
			return true;
	return false;
}

static void hold_run_memory(struct plan_build *build)
{
	struct plan *plan = build->plan;

	plan->cgroup.memory = plan->jar->cgroup.memory;
	if (plan->cgroup.memory)
		return;
	plan->metered |= 1U << GUARANTEE_MEMORY;
	if (plan_is_for_calls(plan->jar)) {
		plan_missing(
			build, "memory",
			"Belljar measures it by reading the call's processes, with everything that the zygote has loaded; this shows neither " UNSEEN_MEMORY,
			METER_HINT);
		return;
	}
	plan_missing(
		build, "memory",
		"Belljar measures it by reading the run's processes: files in the jar's private places and System V memory count for the jar; this shows neither " UNSEEN_MEMORY,
		METER_HINT);
}

static void hold_run_cpu_time(struct plan_build *build)
{
	struct plan *plan = build->plan;

	plan->cgroup.cpu = plan->jar->cgroup.cpu;
	if (plan->cgroup.cpu)
		return;
	plan->metered |= 1U << GUARANTEE_CPU_TIME;
	plan_missing(
		build, "cpu_time",
		"Belljar measures it by reading the processes, to 10 ms for each: if no parent waits for a child (SIGCHLD ignored), its CPU time since the last reading is lost",
		METER_HINT);
}

/*
 * The kernel counts the jar's user namespace: this run, those beside it, and the jar's first process and minders. When
 * other runs end, or while spare minders do not exist yet, the command can have that many more processes.
 */
static void hold_pids_beside_minders(struct plan_build *build)
{
	struct plan *plan = build->plan;
	/* A spare minder has a starter. */
	unsigned more = 2 * PLAN_SPARE_MINDERS + build->request->runs_beside;

	add_rlimit(build, &plan->core.entry, RLIMIT_NPROC, plan->limits.pids + 2 + more);
	if (policy_is_given(build->policy, "pids"))
		plan_missing(
			build, "pids",
			plan_format(
				build,
				"the kernel counts the processes of all runs in the jar together, with the jar's own: up to %u more than the limit are possible",
				more),
			METER_HINT);
}

static int hold_run_pids(struct plan_build *build)
{
	struct plan *plan = build->plan;

	plan->cgroup.pids = plan->jar->cgroup.pids;
	if (plan->cgroup.pids)
		return 0;
	if (!has_process_rlimit(plan->jar)) {
		if (!can_see_processes(build))
			return lacks_sight(build, "pids", GUARANTEE_PIDS);
		meter_pids(build);
		return 0;
	}
	if (plan_is_for_calls(plan->jar)) {
		add_rlimit(build, &plan->core.entry, RLIMIT_NPROC, plan->limits.pids + PLAN_MINDERS_ROOM);
		plan_missing(
			build, "pids",
			plan_format(
				build,
				"the kernel counts the processes of all calls in the jar together, and up to %d of the "
				"jar's own with them",
				PLAN_MINDERS_ROOM),
			METER_HINT);
		return 0;
	}
	hold_pids_beside_minders(build);
	return 0;
}

int plan_run_back_ends(struct plan_build *build)
{
	const uint32_t own =
		1U << GUARANTEE_MEMORY | 1U << GUARANTEE_CPU_TIME | 1U << GUARANTEE_PIDS | 1U << GUARANTEE_DISK;
	struct plan *plan = build->plan;
	struct plan_step *step;
	int rc = 0;

	plan->asked = (plan->jar->asked & ~own) | (plan->limits.memory_bytes != LIMIT_NONE) << GUARANTEE_MEMORY |
		      (plan->limits.cpu_time_ns != LIMIT_NONE) << GUARANTEE_CPU_TIME |
		      (plan->limits.pids != LIMIT_NONE) << GUARANTEE_PIDS |
		      (plan->limits.disk_bytes != LIMIT_NONE) << GUARANTEE_DISK;
	if (is_asked(build, GUARANTEE_MEMORY))
		hold_run_memory(build);
	if (is_asked(build, GUARANTEE_CPU_TIME))
		hold_run_cpu_time(build);
	if (is_asked(build, GUARANTEE_PIDS))
		rc = hold_run_pids(build);
	/* Its jar has such a limit too, or this one would be above it: what is counted for that is counted here. */
	plan->metered |= plan->jar->metered & 1U << GUARANTEE_DISK;
	plan->has_counted_writes = plan->jar->has_counted_writes;
	if (plan->cgroup.memory || plan->cgroup.cpu || plan->cgroup.pids) {
		plan->cgroup.version = plan->jar->cgroup.version;
		step = plan_add(build, &plan->core.entry, STEP_CGROUP);
		step->as.cgroup.version = (uint32_t)plan->cgroup.version;
		step->as.cgroup.holds = (plan->cgroup.memory ? 1U << GUARANTEE_MEMORY : 0) |
					(plan->cgroup.cpu ? 1U << GUARANTEE_CPU_TIME : 0) |
					(plan->cgroup.pids ? 1U << GUARANTEE_PIDS : 0);
	}
	return rc;
}
