/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan_limits.c - which limit is held by what, and which cannot be held here
 *
 * A limit that someone asked for and that cannot be enforced refuses the run, unless the policy calls it optional. A
 * limit that is only a default is reported in `missing` instead.
 */
#include "plan/plan_build.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "policy/policy_build.h"

static void add_rlimit(struct plan_build *build, struct plan_step_list *list, int resource, uint64_t limit)
{
	struct plan_step *step;

	if (limit == LIMIT_NONE)
		return;
	step = plan_add(build, list, STEP_RLIMIT);
	step->value = (uint64_t)resource;
	step->value2 = limit;
}

/* Say that @name cannot be limited: refuse, or go on and report it. */
static int lacks(struct plan_build *build, const char *name, enum guarantee guarantee, const char *why, const char *hint)
{
	bool is_optional = build->policy->optional & (1U << guarantee);

	if (is_optional || !policy_is_given(build->policy, name)) {
		plan_missing(build, name, why, hint);
		return 0;
	}
	error_set(build->error, STAGE_LIMITS, EOPNOTSUPP, "the limit '%s' cannot be enforced here: %s", name, why);
	return error_hint(build->error, "%s; or go on without it: --optional %s", hint, name);
}

static int limit_pids(struct plan_build *build)
{
	if (build->policy->pids == LIMIT_NONE)
		return 0;
	build->plan->asked |= 1U << GUARANTEE_PIDS;
	if (build->plan->rung == RUNG_NAMESPACE && (build->host->uid != 0 || build->is_id_mapped)) {
		/* Counted per user namespace; the jar's own first process is in it too. */
		add_rlimit(build, &build->plan->steps, RLIMIT_NPROC, build->policy->pids + 1);
		return 0;
	}
	return lacks(build, "pids", GUARANTEE_PIDS,
		     "without a user namespace of its own the kernel counts all processes of the user together",
		     "allow user namespaces");
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

static int limit_disk(struct plan_build *build)
{
	if (build->policy->disk_bytes == LIMIT_NONE)
		return 0;
	build->plan->asked |= 1U << GUARANTEE_DISK;
	if (build->plan->rung == RUNG_NAMESPACE && !has_writable_host_directory(build))
		return 0; /* the scratch tmpfs has that size, and there is nowhere else to write */
	return lacks(build, "disk", GUARANTEE_DISK, "bytes written to host directories are not metered yet",
		     "use a private or read-only workdir (-C none, --workdir-mode ro)");
}

static int limit_unmetered(struct plan_build *build, const char *name, enum guarantee guarantee, uint64_t limit)
{
	if (limit == LIMIT_NONE)
		return 0;
	build->plan->asked |= 1U << guarantee;
	return lacks(build, name, guarantee, "this version has no back end for it", "use --timeout, --pids and --file-size");
}

int plan_limits(struct plan_build *build)
{
	const struct policy *policy = build->policy;
	struct plan_step_list *entry = &build->plan->entry;
	int rc = limit_pids(build);

	if (rc == 0)
		rc = limit_disk(build);
	if (rc == 0)
		rc = limit_unmetered(build, "memory", GUARANTEE_MEMORY, policy->memory_bytes);
	if (rc == 0)
		rc = limit_unmetered(build, "cpu_time", GUARANTEE_CPU_TIME, policy->cpu_time_ns);
	add_rlimit(build, entry, RLIMIT_CORE, policy->core_bytes);
	add_rlimit(build, entry, RLIMIT_FSIZE, policy->file_size_bytes);
	add_rlimit(build, entry, RLIMIT_NOFILE, policy->fds);
	return rc;
}
