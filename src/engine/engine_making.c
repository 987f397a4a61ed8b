/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_making.c - survey, plan, start, and plan again
 */
#include "engine/engine_making.h"

#include <errno.h>

#include "engine/engine_failure.h"
#include "host/host_cgroup.h"
#include "host/host_ids.h"
#include "host/host_same.h"
#include "plan/plan_test.h"
#include "sys/calls.h"

static void limit_rung(const struct making *making, struct host *host)
{
	if (!making->is_rung_limited)
		return;
	if (making->rung_max < RUNG_NAMESPACE)
		host->has_user_namespaces = false;
	if (making->rung_max < RUNG_LANDLOCK)
		host->landlock_abi = 0;
}

static int look_at_host(struct making *making)
{
	int rc = host_probe(&making->host, making->environment, &making->error);

	if (rc < 0)
		return rc;
	limit_rung(making, &making->host);
	if (making->host.uid == 0)
		making->host.jar_id = host_jar_id(making->jar_number);
	making->host.is_caller_elsewhere = making->is_caller_elsewhere;
	rc = host_survey(&making->host, making->policy, making->current_directory, &making->error);
	if (rc == 0 && making->has_stamps)
		rc = host_stamp(&making->host);
	return rc;
}

int making_survey(struct making *making)
{
	int rc = look_at_host(making);

	making->surveyed_ns = sys_monotonic_ns();
	return rc;
}

static void forget_plan(struct making *making)
{
	struct heap_pool *pool = making->plan.pool;

	plan_done(&making->plan);
	heap_close_pool(pool);
	making->has_plan = false;
}

static int compile(struct making *making)
{
	if (making->kind == PLAN_ONCE)
		return plan_compile(&making->plan, making->policy, &making->host, &making->request, &making->error);
	return plan_compile_jar(&making->plan, making->kind, making->policy, &making->host,
				making->request.argv ? &making->request : NULL, &making->error);
}

int making_compile(struct making *making)
{
	struct heap_pool *pool, *before;
	int rc;

	forget_plan(making);
	/*
	 * Only now: whoever is handed a jar that stands has no use for it. And again where the host has turned out to give
	 * less: a cgroup may have to hold what a namespace would have held.
	 */
	if (host_survey_cgroups(&making->host, making->policy) < 0)
		return error_set(&making->error, STAGE_ENGINE, ENOMEM, "out of memory");
	pool = making->has_pool ? heap_open_pool() : NULL;
	if (making->has_pool && !pool)
		return error_set(&making->error, STAGE_ENGINE, ENOMEM, "out of memory");
	before = heap_use_pool(pool);
	rc = compile(making);
#ifdef BELLJAR_TEST_BUILD
	if (rc == 0)
		rc = plan_leave_out(&making->plan, making->environment, &making->error);
#endif
	heap_use_pool(before);
	making->plan.pool = pool;
	making->has_plan = rc == 0;
	making->planned_ns = sys_monotonic_ns();
	return rc;
}

int making_start(struct making *making, making_start_function *start, void *owner)
{
	for (;;) {
		int rc = making_compile(making);

		if (rc == 0)
			rc = start(making, owner);
		if (rc == 0 || !making->has_plan ||
		    !engine_failure_corrects_host_start(&making->plan, &making->error, &making->host))
			return rc;
		making->error = (struct error){0}; /* each time with one fact less: it ends */
		making->corrections++;
	}
}

bool making_is_corrected(struct making *making, const struct observation *seen)
{
	if (!engine_failure_corrects_host(&making->plan, seen, &making->host))
		return false;
	making->corrections++;
	return true;
}

void making_done(struct making *making)
{
	forget_plan(making);
	host_done(&making->host);
}
