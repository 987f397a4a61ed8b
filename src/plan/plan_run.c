/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan_run.c - one command in a jar that stands, or will stand, already
 *
 * The walls are the jar's, and so are the steps that `enforced` is derived from. The command brings its arguments, its
 * environment, where it starts, and limits of its own, of which none that the jar has too may be above the jar's.
 */
#include "plan/plan_build.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

struct shared_limit {
	const char *name;
	size_t offset;
};

/* Those that the jar itself is held to. */
static const struct shared_limit shared_limits[] = {
	{"memory", offsetof(struct plan_limits, memory_bytes)},
	{"pids", offsetof(struct plan_limits, pids)},
	{"disk", offsetof(struct plan_limits, disk_bytes)},
};

static uint64_t limit_at(const struct plan_limits *limits, size_t offset)
{
	uint64_t value;

	memcpy(&value, (const char *)limits + offset, sizeof(value));
	return value;
}

static int check_limits(struct plan_build *build)
{
	const struct plan *jar = build->plan->jar;

	for (size_t i = 0; i < ARRAY_LEN(shared_limits); i++) {
		uint64_t own = limit_at(&build->plan->limits, shared_limits[i].offset);
		uint64_t most = limit_at(&jar->limits, shared_limits[i].offset);

		if (own <= most && (plan_has_minders(jar) || own == most))
			continue;
		/* Only its private places were made before the call was known. */
		if (plan_is_for_calls(jar) && shared_limits[i].offset != offsetof(struct plan_limits, disk_bytes))
			continue;
		if (jar->kind == PLAN_PREPARED)
			return error_set(build->error, STAGE_ENGINE, EINVAL,
					 "the jar was prepared with another limit for '%s'", shared_limits[i].name);
		if (own == LIMIT_NONE)
			error_set(build->error, STAGE_POLICY, EINVAL,
				  "'%s': the run needs a limit too, since its jar has one of %" PRIu64,
				  shared_limits[i].name, most);
		else
			error_set(build->error, STAGE_POLICY, EINVAL,
				  "'%s': %" PRIu64 " is above the limit of the jar, %" PRIu64, shared_limits[i].name,
				  own, most);
		return error_hint(build->error, "open the jar with a higher limit");
	}
	if (jar->kind == PLAN_PREPARED && build->plan->limits.cpu_time_ns != jar->limits.cpu_time_ns)
		return error_set(build->error, STAGE_ENGINE, EINVAL,
				 "the jar was prepared with another limit for 'cpu_time'");
	return 0;
}

static bool has_remark(const struct plan_remark_list *list, const char *name)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->items[i].name, name))
			return true;
	return false;
}

/* What holds for the jar holds for the run, unless it says so itself. */
static void inherit_remarks(struct plan_build *build, struct plan_remark_list *list,
			    const struct plan_remark_list *jars)
{
	size_t own_count = list->count;

	for (size_t i = 0; i < jars->count; i++) {
		const struct plan_remark_list own = {.items = list->items, .count = own_count};
		struct plan_remark *remark;

		if (has_remark(&own, jars->items[i].name))
			continue;
		remark = list_add(list);
		if (remark)
			*remark = jars->items[i];
		else
			build->has_failed = true;
	}
}

int plan_compile_run(struct plan *plan, const struct plan *jar, const struct policy *policy, const struct host *host,
		     const struct plan_request *request, struct error *error)
{
	struct plan_build build = {.plan = plan, .policy = policy, .host = host, .request = request, .error = error};
	int rc;

	*plan = (struct plan){
		.kind = PLAN_RUN,
		.jar = jar,
		.rung = jar->rung,
		.core =
			{
				.namespaces = jar->core.namespaces,
				.steps = jar->core.steps,
				.landlock_abi = jar->core.landlock_abi,
				.landlock_files = jar->core.landlock_files,
				.landlock_scopes = jar->core.landlock_scopes,
				.landlock = jar->core.landlock,
				.filter = jar->core.filter,
				.filter_asks = jar->core.filter_asks,
				.asking = {jar->core.asking[0], jar->core.asking[1], jar->core.asking[2]},
				.workdir = jar->core.workdir,
				.run_directory = jar->core.run_directory,
			},
		.filter_parts = jar->filter_parts,
		.net = jar->net,
		.gate = jar->gate,
		.has_redact_secrets = policy->has_redact_secrets,
		.home = jar->home,
		.owner_id = jar->owner_id,
		.asked = jar->asked,
		.optional = jar->optional,
	};
	plan_copy_limits(&plan->limits, policy);
	rc = check_limits(&build);
	if (rc == 0)
		rc = plan_command(&build);
	if (rc == 0 && plan_has_minders(jar))
		rc = plan_run_back_ends(&build);
	if (jar->kind == PLAN_PREPARED) {
		plan->metered = jar->metered;
		plan->cgroup = jar->cgroup;
	}
	if (rc == 0) {
		plan_run_walls(&build);
		plan_process_limits(&build);
		inherit_remarks(&build, &plan->missing, &jar->missing);
		inherit_remarks(&build, &plan->notes, &jar->notes);
	}
	if (rc == 0 && build.has_failed)
		rc = error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	if (rc < 0)
		plan_done(plan);
	return rc;
}
