/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan_run.c - one command in a jar that stands, or will stand, already
 *
 * The walls are the jar's, and so are the steps that `enforced` is derived from. The command brings its arguments, its
 * environment, where it starts, and limits of its own. policy_hold() has lowered them to the jar's before.
 */
#include "plan/plan_build.h"

#include <errno.h>
#include <string.h>

/* What a prepared jar is held to was set up before its command was known. */
static int check_prepared(struct plan_build *build)
{
	const struct limits *run = &build->plan->limits, *jar = &build->plan->jar->limits;

	if (build->plan->jar->kind != PLAN_PREPARED ||
	    (run->memory_bytes == jar->memory_bytes && run->pids == jar->pids && run->disk_bytes == jar->disk_bytes &&
	     run->cpu_time_ns == jar->cpu_time_ns))
		return 0;
	return error_set(build->error, STAGE_ENGINE, EINVAL, "the jar was prepared with other limits");
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
	plan->limits = policy->limits;
	plan->own_limits = policy->own_limits;
	rc = check_prepared(&build);
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
