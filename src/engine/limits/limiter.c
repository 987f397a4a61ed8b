/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/limits/limiter.c - hold a run to its limits: open, schedule the looks, stop
 *
 * limiter_cgroup.c reads the limits that a cgroup holds. The others are measured: limiter_look.c has the looker
 * look, limiter_judge.c judges the result and sets the time of the next look. limiter_account.c adds up the use.
 *
 * One timer schedules both. A jar cannot block the loop: another process looks (looker.h) and reports to the
 * engine.
 */
#include "engine/limits/limiter_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/sys/calls.h"

/* --- for all parts ------------------------------------------------------------------------------------------ */

bool limiter_is_metered(const struct limiter *limiter, enum guarantee guarantee)
{
	return limiter->metered >> guarantee & 1;
}

void limiter_tell(struct limiter *limiter, enum limit_name name, uint64_t limit, uint64_t peak, const char *enforced_by,
		  const char *evidence, enum cause cause)
{
	struct limit_hit hit = {
		.is_hit = true, .limit = limit, .peak = peak, .has_peak = true, .enforced_by = enforced_by};

	if (!limiter->function)
		return;
	snprintf(hit.evidence, sizeof(hit.evidence), "%s", evidence);
	limiter->is_over |= cause != CAUSE_NONE;
	limiter->function(limiter->owner, name, &hit, cause);
}

void limiter_tell_cpu(struct limiter *limiter, uint64_t used_ns, const char *enforced_by, const char *source,
		      enum cause cause)
{
	char evidence[LIMIT_EVIDENCE_MAX];

	snprintf(evidence, sizeof(evidence), "%s: %" PRIu64 " ms of CPU time in the tree", source,
		 used_ns / LIMITER_MILLISECOND_NS);
	limiter_tell(limiter, LIMIT_CPU_TIME, limiter->plan->limits.cpu_time_ns / LIMITER_MILLISECOND_NS,
		     used_ns / LIMITER_MILLISECOND_NS, enforced_by, evidence, cause);
}

uint64_t limiter_cpu_interval(const struct limiter *limiter, uint64_t used_ns)
{
	uint64_t limit = limiter->plan->limits.cpu_time_ns;
	uint64_t left = limit - MIN_OF(limit, used_ns);

	return MIN_OF(MAX_OF(left / limiter->cpu_count, LIMITER_INTERVAL_MIN_NS), LIMITER_INTERVAL_MAX_NS);
}

/* --- what is next ------------------------------------------------------------------------------------------- */

static void on_timer(struct loop_timer *timer)
{
	struct limiter *limiter = timer->owner;
	uint64_t interval = LIMITER_INTERVAL_MAX_NS;

	if (limiter->is_looking)
		limiter_check_looker(limiter);
	else if (limiter->metered)
		interval = limiter_begin_look(limiter);
	if (limiter_has_cgroup_cpu(limiter))
		interval = MIN_OF(interval, limiter_check_cgroup_cpu(limiter));
	limiter_go_on(limiter, interval);
}

void limiter_go_on(struct limiter *limiter, uint64_t interval)
{
	if (limiter->function)
		loop_arm(limiter->loop, &limiter->timer, sys_monotonic_ns() + interval, on_timer, limiter);
}

void limiter_look(struct limiter *limiter)
{
	if (limiter->function && limiter->timer.loop && !limiter->is_looking)
		on_timer(&limiter->timer);
}

/* --- making and starting ------------------------------------------------------------------------------------ */

static void limiter_init(struct limiter *limiter, struct loop *loop, const struct plan *plan,
			 struct reap_family *family, limiter_function *function, void *owner)
{
	long cpu_count = sysconf(_SC_NPROCESSORS_ONLN);

	*limiter = (struct limiter){.loop = loop, .plan = plan, .family = family, .function = function, .owner = owner};
	limiter->cpu_count = cpu_count > 0 ? (unsigned)cpu_count : 1;
	helper_meter_init(&limiter->meter, plan);
}

int limiter_open(struct limiter *limiter, struct loop *loop, const struct plan *plan, struct reap_family *family,
		 limiter_function *function, void *owner, struct error *error)
{
	int rc;

	limiter_init(limiter, loop, plan, family, function, owner);
	rc = limits_cgroup_open(&limiter->cgroup, plan, error);
	if (rc == 0)
		limiter_watch_cgroup(limiter);
	return rc;
}

int limiter_open_run(struct limiter *limiter, struct loop *loop, const struct plan *plan, const struct limiter *jar,
		     const struct cgroup *cgroup, limiter_function *function, void *owner, struct error *error)
{
	int rc;

	limiter_init(limiter, loop, plan, jar->family, function, owner);
	limiter->jar = jar;
	limiter->cgroup = *cgroup;
	rc = limits_cgroup_limit(&limiter->cgroup, &plan->limits);
	if (rc < 0)
		return error_set(error, STAGE_LIMITS, -rc, "cannot set the limits of the run's cgroup: %s",
				 strerror(-rc));
	limiter_watch_cgroup(limiter);
	return 0;
}

int limiter_join(struct limiter *limiter, pid_t pid)
{
	return limiter->plan->metered ? helper_meter_join(&limiter->meter, &limiter->jar->meter, pid) : 0;
}

void limiter_take(struct limiter *limiter, enum jar_view view, int fd, uint64_t clock_ns)
{
	if (view == JAR_VIEW_CLOCK)
		limiter->clock_ns = clock_ns;
	if (fd >= 0)
		helper_meter_take(&limiter->meter, view, fd);
}

void limiter_written(struct limiter *limiter, uint64_t bytes)
{
	limiter->meter.first_written_bytes = MAX_OF(limiter->meter.first_written_bytes, bytes);
}

bool limiter_start(struct limiter *limiter, pid_t pid)
{
	if (limiter->plan->metered && limiter->meter.proc_fd < 0 &&
	    (limiter->plan->rung == RUNG_NAMESPACE || helper_meter_follow(&limiter->meter, pid) < 0))
		return false;
	/* A look is useless if the host hides processes. A minder may be gone already. */
	if (limiter->plan->metered && limiter->plan->rung != RUNG_NAMESPACE && !limiter->jar &&
	    !helper_meter_can_see(&limiter->meter))
		return false;
	limiter->metered = limiter->plan->metered;
	limiter->meter.most_threads = limiter_most_processes(limiter);
	if (limiter_is_metered(limiter, GUARANTEE_MEMORY))
		limiter->host_kills = limiter_count_host_kills();
	if (limiter->metered || limiter_has_cgroup_cpu(limiter))
		limiter_go_on(limiter, LIMITER_INTERVAL_MIN_NS);
	return true;
}

/* --- the end ------------------------------------------------------------------------------------------------ */

void limiter_finish(struct limiter *limiter, const struct rusage *usage, struct observation *seen)
{
	limiter_report(limiter, usage, seen);
	limiter_stop(limiter);
}

void limiter_stop(struct limiter *limiter)
{
	loop_disarm(&limiter->timer);
	loop_disarm(&limiter->recheck);
	loop_remove(&limiter->notice);
	helper_looker_free(limiter->looker);
	limiter->looker = NULL;
	limiter->is_looking = false;
	limiter->function = NULL;
}

void limiter_done(struct limiter *limiter)
{
	if (!limiter->loop)
		return;
	limiter_stop(limiter);
	helper_meter_done(&limiter->meter);
	limits_cgroup_done(&limiter->cgroup, limiter->loop);
}
