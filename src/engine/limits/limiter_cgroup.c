/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/limits/limiter_cgroup.c - read from a cgroup's files which limits it has held
 *
 * The kernel ends a run for its memory and refuses forks by itself; this file detects and reports that. The kernel's
 * notice comes before the kill, so read the files again until they show it. No cgroup limits CPU time: measure it.
 */
#include "engine/limits/limiter_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/epoll.h>

#include "base/sys/calls.h"

/* How many of the shortest intervals to wait for an announced kill. */
#define RECHECKS 200
/* The kernel charges pages in batches: a limit is reached when less than this is left below it. */
#define MEMORY_SLACK (1ULL << 20)

/* --- memory and processes ----------------------------------------------------------------------------------- */

/*
 * Killed for our limit, and not because the host or a cgroup above ran out of memory. Version 2 says so; in version 1
 * the peak shows it: at our own limit it is as high as it can get.
 */
static bool is_at_limit(const struct limiter *limiter, const struct cgroup_reading *reading)
{
	if (limiter->cgroup.version == 2)
		return reading->memory_refusals > 0;
	return reading->has_peak_memory &&
	       reading->peak_memory_bytes + MEMORY_SLACK >= limiter->plan->limits.memory_bytes;
}

/* Find the limiter whose limit was reached: the run's own, or its session's. NULL: neither. */
static const struct limiter *over_memory(const struct limiter *limiter, const struct cgroup_reading *reading)
{
	struct cgroup_reading jars;

	if (!reading->killed_for_memory)
		return NULL;
	if (is_at_limit(limiter, reading))
		return limiter;
	if (!limiter->jar)
		return NULL;
	limits_cgroup_read(&limiter->jar->cgroup, &jars);
	return is_at_limit(limiter->jar, &jars) ? limiter->jar : NULL;
}

bool limiter_is_over_memory(const struct limiter *limiter, const struct cgroup_reading *reading)
{
	return over_memory(limiter, reading) != NULL;
}

static void check_memory(struct limiter *limiter, const struct cgroup_reading *reading)
{
	const struct limiter *whose = over_memory(limiter, reading);
	char evidence[LIMIT_EVIDENCE_MAX];

	if (!whose)
		return;
	if (limiter->cgroup.version == 2)
		snprintf(evidence, sizeof(evidence), "memory.events: oom %" PRIu64 ", oom_kill %" PRIu64,
			 reading->memory_refusals, reading->killed_for_memory);
	else
		snprintf(evidence, sizeof(evidence),
			 "memory.oom_control: oom_kill %" PRIu64 "; memory.max_usage_in_bytes: %" PRIu64,
			 reading->killed_for_memory, reading->peak_memory_bytes);
	limiter_tell(limiter, LIMIT_MEMORY, whose->plan->limits.memory_bytes, reading->peak_memory_bytes,
		     limits_cgroup_word(&limiter->cgroup), evidence, CAUSE_MEMORY);
}

static void check_pids(struct limiter *limiter, const struct cgroup_reading *reading)
{
	char evidence[LIMIT_EVIDENCE_MAX];

	if (!reading->refused_pids)
		return;
	snprintf(evidence, sizeof(evidence), "pids.events: max %" PRIu64, reading->refused_pids);
	limiter_tell(limiter, LIMIT_PIDS, limiter->plan->limits.pids, limiter->plan->limits.pids,
		     limits_cgroup_word(&limiter->cgroup), evidence, CAUSE_NONE);
}

void limiter_read_cgroup(struct limiter *limiter, struct cgroup_reading *reading)
{
	if (!limiter->cgroup.version)
		return;
	if (limiter->has_last_reading) {
		*reading = limiter->last_reading;
		return;
	}
	limits_cgroup_read(&limiter->cgroup, reading);
	check_memory(limiter, reading);
	check_pids(limiter, reading);
}

void limiter_check(struct limiter *limiter, bool is_last)
{
	struct cgroup_reading reading = {0};

	limiter_read_cgroup(limiter, &reading);
	limiter->last_reading = reading;
	limiter->has_last_reading = is_last;
}

/* --- the kernel's notice ------------------------------------------------------------------------------------ */

static void on_recheck(struct loop_timer *timer)
{
	struct limiter *limiter = timer->owner;

	limiter_check(limiter, false);
	if (limiter->function && limiter->rechecks_left-- > 0)
		loop_arm(limiter->loop, timer, sys_monotonic_ns() + LIMITER_INTERVAL_MIN_NS, on_recheck, limiter);
}

static void on_notice(struct loop_watch *watch, uint32_t events)
{
	struct limiter *limiter = watch->owner;
	char drained[512];

	(void)events;
	/* Until it is read it stays ready. */
	if (pread(watch->fd, drained, sizeof(drained), 0) < 0 && read(watch->fd, drained, sizeof(drained)) < 0)
		loop_remove(watch);
	limiter->rechecks_left = RECHECKS;
	on_recheck(&limiter->recheck);
}

void limiter_watch_cgroup(struct limiter *limiter)
{
	limiter->recheck.owner = limiter;
	if (limiter->cgroup.notice_fd >= 0)
		loop_add(limiter->loop, &limiter->notice, limiter->cgroup.notice_fd,
			 limiter->cgroup.version == 2 ? EPOLLPRI : EPOLLIN, on_notice, limiter);
}

/* --- CPU time ----------------------------------------------------------------------------------------------- */

bool limiter_has_cgroup_cpu(const struct limiter *limiter)
{
	return limiter->cgroup.fds[CGROUP_CPU] >= 0 && limiter->plan->limits.cpu_time_ns != LIMIT_NONE;
}

const char *limiter_cgroup_cpu_source(const struct limiter *limiter)
{
	return limiter->cgroup.version == 2 ? "cpu.stat" : "cpuacct.usage";
}

uint64_t limiter_check_cgroup_cpu(struct limiter *limiter)
{
	uint64_t used_ns = limiter_command_ns(limiter, limits_cgroup_cpu_ns(&limiter->cgroup));

	if (used_ns > limiter->plan->limits.cpu_time_ns)
		limiter_tell_cpu(limiter, used_ns, limits_cgroup_word(&limiter->cgroup),
				 limiter_cgroup_cpu_source(limiter), CAUSE_CPU);
	return limiter_cpu_interval(limiter, used_ns);
}
