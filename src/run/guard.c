/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/guard.c - hold a run to its limits, and know which was reached
 *
 * What must be looked at is looked at as often as it could be reached in the meantime: far from every limit ten times a
 * second or less, close to one every 5 ms, and never so often that looking takes more than a twentieth of a CPU; but even
 * where one look takes very long, twice a second.
 *
 * Nothing that a jar does holds the loop up: a look is done in pieces of a millisecond, and everything else has its turn
 * between two of them. What has more processes than can be looked at cannot be held to a limit that is measured. That this
 * is so is seen, too: after a few such looks the run ends, with the limit named.
 */
#include "run/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "sys/calls.h"

#define INTERVAL_MIN_NS 5000000ULL
#define INTERVAL_SHORT_NS 20000000ULL
#define INTERVAL_MAX_NS 100000000ULL
#define INTERVAL_CPU_MAX_NS 250000000ULL
/* As fast as one CPU can touch new pages, or make pages of a file dirty: bytes in a second. */
#define MEMORY_SPEED (2ULL << 30)
#define DISK_SPEED (1ULL << 30)
#define COST_RATIO 20
#define INTERVAL_COSTLY_NS 500000000ULL
/* One piece of a look; and of a look that is taken here and now. */
#define PIECE_NS 1000000ULL
/* So many looks in a row must show the same before a run is ended for it: a single one adds up what was never there at once. */
#define CROWDED_LOOKS 3
#define OVER_PIDS_LOOKS 2
/* As fast as one CPU can make threads, in a second. */
#define PIDS_SPEED 50000ULL
/* For so many of the shortest intervals a kill is waited for that was announced. */
#define RECHECKS 200
#define WEIGHING_RATIO 10
/* A process that cannot be looked at may be about to end. */
#define HIDDEN_ROUNDS_MAX 3
/* The kernel charges pages in batches: a limit is reached when less than this is left below it. */
#define MEMORY_SLACK (1ULL << 20)
/* 6.18 has 4 KiB of it. */
#define VMSTAT_BYTES 16384
#define SECOND_NS 1000000000ULL
#define MILLISECOND_NS UINT64_C(1000000)

static bool is_metered(const struct guard *guard, enum guarantee guarantee)
{
	return guard->metered >> guarantee & 1;
}

static bool has_cgroup_cpu(const struct guard *guard)
{
	return guard->cgroup.fds[CGROUP_CPU] >= 0 && guard->plan->limits.cpu_time_ns != LIMIT_NONE;
}

static void tell(struct guard *guard, enum limit_name name, uint64_t limit, uint64_t peak, const char *enforced_by,
		 const char *evidence, enum cause cause)
{
	struct limit_hit hit = {
		.is_hit = true, .limit = limit, .peak = peak, .has_peak = true, .enforced_by = enforced_by};

	if (!guard->function)
		return;
	snprintf(hit.evidence, sizeof(hit.evidence), "%s", evidence);
	guard->is_over |= cause != CAUSE_NONE;
	guard->function(guard->owner, name, &hit, cause);
}

/* --- the cgroup --------------------------------------------------------------------------------------------- */

/*
 * Killed for our limit, and not because the host or a cgroup above ran out of memory. Version 2 says so; in version 1
 * the peak tells: at our own limit it is as high as it can get.
 */
static bool is_at_limit(const struct guard *guard, const struct cgroup_reading *reading)
{
	if (guard->cgroup.version == 2)
		return reading->memory_refusals > 0;
	return reading->has_peak_memory &&
	       reading->peak_memory_bytes + MEMORY_SLACK >= guard->plan->limits.memory_bytes;
}

/* Whose limit it was: the run's own, or that of the kept jar around it. NULL: none of ours. */
static const struct guard *over_memory(const struct guard *guard, const struct cgroup_reading *reading)
{
	struct cgroup_reading jars;

	if (!reading->killed_for_memory)
		return NULL;
	if (is_at_limit(guard, reading))
		return guard;
	if (!guard->jar)
		return NULL;
	cgroup_read(&guard->jar->cgroup, &jars);
	return is_at_limit(guard->jar, &jars) ? guard->jar : NULL;
}

static void check_cgroup_memory(struct guard *guard, const struct cgroup_reading *reading)
{
	const struct guard *whose = over_memory(guard, reading);
	char evidence[LIMIT_EVIDENCE_MAX];

	if (!whose)
		return;
	if (guard->cgroup.version == 2)
		snprintf(evidence, sizeof(evidence), "memory.events: oom %" PRIu64 ", oom_kill %" PRIu64,
			 reading->memory_refusals, reading->killed_for_memory);
	else
		snprintf(evidence, sizeof(evidence),
			 "memory.oom_control: oom_kill %" PRIu64 "; memory.max_usage_in_bytes: %" PRIu64,
			 reading->killed_for_memory, reading->peak_memory_bytes);
	tell(guard, LIMIT_MEMORY, whose->plan->limits.memory_bytes, reading->peak_memory_bytes,
	     cgroup_word(&guard->cgroup), evidence, CAUSE_MEMORY);
}

/* The kernel counts how often it has killed for want of memory, whoever it was, and tells everybody. 0: it does not say. */
static uint64_t count_host_kills(void)
{
	char content[VMSTAT_BYTES];
	const char *line;

	if (sys_read_file(AT_FDCWD, "/proc/vmstat", content, sizeof(content)) <= 0)
		return 0;
	line = strstr(content, "\noom_kill ");
	return line ? strtoull(strchr(line, ' '), NULL, 10) : 0;
}

/* Nothing is claimed from this: it says that somebody else's want of memory may be, or is, what ended the command. */
static enum host_shortage find_shortage(const struct guard *guard, const struct cgroup_reading *reading)
{
	if (reading->killed_for_memory)
		return over_memory(guard, reading) ? SHORTAGE_NONE : SHORTAGE_PROVEN;
	return is_metered(guard, GUARANTEE_MEMORY) && count_host_kills() > guard->host_kills ? SHORTAGE_SEEN
											     : SHORTAGE_NONE;
}

static void check_cgroup_pids(struct guard *guard, const struct cgroup_reading *reading)
{
	char evidence[LIMIT_EVIDENCE_MAX];

	if (!reading->refused_pids)
		return;
	snprintf(evidence, sizeof(evidence), "pids.events: max %" PRIu64, reading->refused_pids);
	tell(guard, LIMIT_PIDS, guard->plan->limits.pids, guard->plan->limits.pids, cgroup_word(&guard->cgroup),
	     evidence, CAUSE_NONE);
}

static void on_recheck(struct loop_timer *timer)
{
	struct guard *guard = timer->owner;

	guard_check(guard, false);
	if (guard->function && guard->rechecks_left-- > 0)
		loop_arm(guard->loop, timer, sys_monotonic_ns() + INTERVAL_MIN_NS, on_recheck, guard);
}

static void on_notice(struct loop_watch *watch, uint32_t events)
{
	struct guard *guard = watch->owner;
	char drained[512];

	(void)events;
	/* Until it is read it stays ready. */
	if (pread(watch->fd, drained, sizeof(drained), 0) < 0 && read(watch->fd, drained, sizeof(drained)) < 0)
		loop_remove(watch);
	guard->rechecks_left = RECHECKS;
	on_recheck(&guard->recheck);
}

/* --- CPU time ----------------------------------------------------------------------------------------------- */

static uint64_t command_ns(const struct guard *guard, uint64_t cpu_ns)
{
	return cpu_ns - MIN_OF(cpu_ns, guard->making_ns);
}

static void tell_cpu(struct guard *guard, uint64_t used_ns, const char *enforced_by, const char *source,
		     enum cause cause)
{
	char evidence[LIMIT_EVIDENCE_MAX];

	snprintf(evidence, sizeof(evidence), "%s: %" PRIu64 " ms of CPU time in the tree", source,
		 used_ns / MILLISECOND_NS);
	tell(guard, LIMIT_CPU_TIME, guard->plan->limits.cpu_time_ns / MILLISECOND_NS, used_ns / MILLISECOND_NS,
	     enforced_by, evidence, cause);
}

/* When it could be reached at the soonest. */
static uint64_t cpu_interval(const struct guard *guard, uint64_t used_ns)
{
	uint64_t limit = guard->plan->limits.cpu_time_ns;
	uint64_t left = limit - MIN_OF(limit, used_ns);

	return MIN_OF(MAX_OF(left / guard->cpu_count, INTERVAL_MIN_NS), INTERVAL_CPU_MAX_NS);
}

/* Returns the time until it must be looked at again. */
static uint64_t check_cgroup_cpu(struct guard *guard)
{
	uint64_t used_ns = command_ns(guard, cgroup_cpu_ns(&guard->cgroup));

	if (used_ns > guard->plan->limits.cpu_time_ns)
		tell_cpu(guard, used_ns, cgroup_word(&guard->cgroup),
			 guard->cgroup.version == 2 ? "cpu.stat" : "cpuacct.usage", CAUSE_CPU);
	return cpu_interval(guard, used_ns);
}

/* --- the meter ---------------------------------------------------------------------------------------------- */

/* Nothing is known of what such a process holds or writes: the run ends with the limit that cannot be held. */
static void check_hidden(struct guard *guard, enum limit_name name, uint64_t limit, uint64_t seen, enum cause cause)
{
	char evidence[LIMIT_EVIDENCE_MAX];

	if (guard->meter.hidden_rounds < HIDDEN_ROUNDS_MAX)
		return;
	snprintf(
		evidence, sizeof(evidence),
		"meter: process %d forbids looking at it, as programs do that may be executed but not read; at least %" PRIu64
		" bytes beside it",
		(int)guard->meter.hidden_pid, seen);
	tell(guard, name, limit, seen, "meter", evidence, cause);
}

/* Pages that become private after a fork do not show in the sum: above the limit, weigh again now and then. */
static bool must_weigh(const struct guard *guard)
{
	uint64_t limit = guard->plan->limits.memory_bytes;
	uint64_t sum = guard->reading.resident_bytes + guard->reading.private_bytes;

	return is_metered(guard, GUARANTEE_MEMORY) && sum > limit &&
	       (sum - MIN_OF(sum, guard->excess_bytes) > limit ||
		sys_monotonic_ns() - guard->weighed_ns > guard->weighing_ns * WEIGHING_RATIO);
}

static void tell_weight(struct guard *guard, uint64_t weight)
{
	uint64_t limit = guard->plan->limits.memory_bytes;
	char evidence[LIMIT_EVIDENCE_MAX];

	guard->peak_memory_bytes = MAX_OF(guard->peak_memory_bytes, weight);
	snprintf(evidence, sizeof(evidence),
		 "meter: %" PRIu64 " bytes in %u processes and threads, shared pages counted once; of these %" PRIu64
		 " in files in memory",
		 weight, guard->reading.processes, guard->reading.private_bytes);
	tell(guard, LIMIT_MEMORY, limit, weight, "meter", evidence, CAUSE_MEMORY);
}

/* True: the weight is known, and what follows from it has been told. */
static bool weigh(struct guard *guard, uint64_t until_ns)
{
	uint64_t limit = guard->plan->limits.memory_bytes;
	uint64_t sum = guard->reading.resident_bytes + guard->reading.private_bytes;
	uint64_t weight;

	if (!meter_weigh(&guard->meter, &guard->reading, limit, until_ns, &weight))
		return false;
	/* A process that ended in the middle of it may have been counted here and there. */
	if (weight > limit && !guard->first_weight) {
		guard->first_weight = weight;
		return weigh(guard, until_ns);
	}
	if (guard->first_weight)
		weight = MIN_OF(weight, guard->first_weight);
	guard->first_weight = 0;
	guard->excess_bytes = sum - MIN_OF(sum, weight);
	if (weight > limit)
		tell_weight(guard, weight);
	return true;
}

static uint64_t check_metered_memory(struct guard *guard, const struct meter_reading *reading)
{
	uint64_t limit = guard->plan->limits.memory_bytes;
	uint64_t sum = reading->resident_bytes + reading->private_bytes;
	uint64_t left;

	guard->last_memory_bytes = sum;
	check_hidden(guard, LIMIT_MEMORY, limit, sum, CAUSE_MEMORY);
	guard->peak_memory_bytes = MAX_OF(guard->peak_memory_bytes, sum - MIN_OF(sum, guard->excess_bytes));
	if (sum > limit)
		return INTERVAL_MIN_NS;
	left = limit - sum;
	return MIN_OF(MAX_OF((uint64_t)((double)left * SECOND_NS / MEMORY_SPEED) / guard->cpu_count, INTERVAL_MIN_NS),
		      INTERVAL_MAX_NS);
}

static uint64_t check_metered_cpu(struct guard *guard, const struct meter_reading *reading)
{
	bool has_clock = guard->meter.clock_fd >= 0;
	uint64_t unseen_ns = has_clock ? guard->clock_ns : guard->making_ns;
	uint64_t used_ns = reading->cpu_ns - MIN_OF(reading->cpu_ns, unseen_ns);

	if (used_ns > guard->plan->limits.cpu_time_ns)
		tell_cpu(guard, used_ns, "meter", has_clock ? "meter: task clock" : "meter: /proc", CAUSE_CPU);
	/* Without the clock, what short-lived processes used shows only while they live. */
	return MIN_OF(cpu_interval(guard, used_ns), has_clock ? INTERVAL_CPU_MAX_NS : INTERVAL_SHORT_NS);
}

static void check_scratch(struct guard *guard, const struct meter_reading *reading)
{
	if (reading->is_scratch_full)
		tell(guard, LIMIT_DISK, guard->plan->limits.disk_bytes, reading->stored_bytes, "tmpfs",
		     "statfs: no block or no inode is free in the private places", CAUSE_NONE);
}

/* A private place that is full refuses by itself; only what is written to the host beside it must be ended. */
static uint64_t check_metered_disk(struct guard *guard, const struct meter_reading *reading)
{
	uint64_t limit = guard->plan->limits.disk_bytes;
	uint64_t used = reading->written_bytes + reading->stored_bytes;
	uint64_t left = limit - MIN_OF(limit, used);
	char evidence[LIMIT_EVIDENCE_MAX];

	guard->last_disk_bytes = used;
	if (guard->plan->has_counted_writes)
		check_hidden(guard, LIMIT_DISK, limit, used, CAUSE_DISK);
	if (used > limit) {
		snprintf(evidence, sizeof(evidence),
			 "meter: %" PRIu64 " bytes written to host directories, %" PRIu64 " in private places",
			 reading->written_bytes, reading->stored_bytes);
		tell(guard, LIMIT_DISK, limit, used, "meter", evidence, CAUSE_DISK);
	} else {
		check_scratch(guard, reading);
	}
	return MIN_OF(MAX_OF((uint64_t)((double)left * SECOND_NS / DISK_SPEED) / guard->cpu_count, INTERVAL_MIN_NS),
		      INTERVAL_SHORT_NS);
}

/* What the whole jar may have; a kept one's own processes are beside that. LIMIT_NONE: nobody looks. */
static uint64_t most_processes(const struct guard *guard)
{
	if (!(guard->plan->metered >> GUARANTEE_PIDS & 1))
		return LIMIT_NONE;
	return guard->plan->limits.pids + (guard->plan->kind == PLAN_KEPT ? PLAN_KEEPERS_ROOM : 0);
}

/* Returns the time until it must be looked at again. */
static uint64_t check_metered_pids(struct guard *guard, uint64_t count)
{
	uint64_t limit = most_processes(guard);
	char evidence[LIMIT_EVIDENCE_MAX];

	if (count <= limit) {
		guard->over_pids_looks = 0;
		return MIN_OF(MAX_OF((limit - count) * SECOND_NS / PIDS_SPEED / guard->cpu_count, INTERVAL_MIN_NS),
			      INTERVAL_MAX_NS);
	}
	guard->peak_processes = MAX_OF(guard->peak_processes, count);
	if (++guard->over_pids_looks >= OVER_PIDS_LOOKS) {
		snprintf(evidence, sizeof(evidence),
			 "meter: %" PRIu64
			 " processes and threads or more, %u looks in a row; the run was killed for it",
			 count, guard->over_pids_looks);
		tell(guard, LIMIT_PIDS, guard->plan->limits.pids, count, "meter", evidence, CAUSE_PIDS);
	}
	return INTERVAL_MIN_NS;
}

static const struct {
	enum guarantee guarantee;
	enum limit_name name;
	enum cause cause;
} metered_limits[] = {
	{GUARANTEE_PIDS, LIMIT_PIDS, CAUSE_PIDS},
	{GUARANTEE_MEMORY, LIMIT_MEMORY, CAUSE_MEMORY},
	{GUARANTEE_DISK, LIMIT_DISK, CAUSE_DISK},
	{GUARANTEE_CPU_TIME, LIMIT_CPU_TIME, CAUSE_CPU},
};

static uint64_t limit_of(const struct plan_limits *limits, enum limit_name name)
{
	return name == LIMIT_PIDS     ? limits->pids
	       : name == LIMIT_MEMORY ? limits->memory_bytes
	       : name == LIMIT_DISK   ? limits->disk_bytes
				      : limits->cpu_time_ns / MILLISECOND_NS;
}

/* Too many processes to look at: what is measured by looking at them is no longer held. */
static void note_crowd(struct guard *guard)
{
	struct limit_hit hit = {.is_hit = true, .enforced_by = "meter"};

	if (++guard->crowded_looks < CROWDED_LOOKS || !guard->function)
		return;
	snprintf(
		hit.evidence, sizeof(hit.evidence),
		"meter: %u looks in a row could not be finished: there were more than %u processes, and what they use is "
		"not known",
		guard->crowded_looks, meter_most_processes());
	for (size_t i = 0; i < ARRAY_LEN(metered_limits); i++) {
		if (!is_metered(guard, metered_limits[i].guarantee))
			continue;
		hit.limit = limit_of(&guard->plan->limits, metered_limits[i].name);
		guard->is_over = true;
		guard->function(guard->owner, metered_limits[i].name, &hit, metered_limits[i].cause);
		return;
	}
}

/* All was looked at. Returns the time until it must be looked at again. */
static uint64_t check_reading(struct guard *guard)
{
	const struct meter_reading *reading = &guard->reading;
	uint64_t interval = INTERVAL_CPU_MAX_NS;

	guard->crowded_looks = 0;
	guard->last_processes = reading->processes;
	guard->peak_processes = MAX_OF(guard->peak_processes, reading->processes);
	if (is_metered(guard, GUARANTEE_MEMORY))
		interval = MIN_OF(interval, check_metered_memory(guard, reading));
	if (is_metered(guard, GUARANTEE_CPU_TIME))
		interval = MIN_OF(interval, check_metered_cpu(guard, reading));
	if (is_metered(guard, GUARANTEE_DISK))
		interval = MIN_OF(interval, check_metered_disk(guard, reading));
	if (is_metered(guard, GUARANTEE_PIDS))
		interval = MIN_OF(interval, check_metered_pids(guard, reading->processes));
	return interval;
}

/* One piece. Returns how far the look has come, weighing included. */
static enum meter_progress look_on(struct guard *guard)
{
	uint64_t begun_ns = sys_monotonic_ns();
	enum meter_progress progress = METER_WHOLE;

	if (!guard->is_weighing) {
		progress = meter_look(&guard->meter, begun_ns + PIECE_NS, &guard->reading);
		guard->is_weighing = progress == METER_WHOLE && must_weigh(guard);
	}
	if (guard->is_weighing && !weigh(guard, begun_ns + PIECE_NS))
		progress = METER_PARTLY;
	guard->look_ns += sys_monotonic_ns() - begun_ns;
	if (progress != METER_WHOLE || !guard->is_weighing)
		return progress;
	guard->is_weighing = false;
	guard->weighed_ns = sys_monotonic_ns();
	guard->weighing_ns = guard->look_ns;
	return progress;
}

/* A look that was given up. Returns the time until the next one. */
static uint64_t check_crowd(struct guard *guard)
{
	if (guard->meter.seen_threads > most_processes(guard))
		return check_metered_pids(guard, guard->meter.seen_threads);
	note_crowd(guard);
	return MIN_OF(guard->look_ns * COST_RATIO, INTERVAL_COSTLY_NS);
}

/* Returns the time until it must be gone on with; 0 in the middle of a look. */
static uint64_t check_meter(struct guard *guard)
{
	uint64_t interval = INTERVAL_MIN_NS;
	enum meter_progress progress = look_on(guard);

	if (progress == METER_PARTLY)
		return 0;
	if (progress == METER_CROWDED)
		interval = check_crowd(guard);
	if (progress == METER_WHOLE)
		interval = MAX_OF(check_reading(guard), MIN_OF(guard->look_ns * COST_RATIO, INTERVAL_COSTLY_NS));
	guard->look_ns = 0;
	return interval;
}

/* --- both --------------------------------------------------------------------------------------------------- */

static void on_timer(struct loop_timer *timer)
{
	struct guard *guard = timer->owner;
	uint64_t interval = INTERVAL_CPU_MAX_NS;

	if (guard->metered)
		interval = MIN_OF(interval, check_meter(guard));
	if (has_cgroup_cpu(guard))
		interval = MIN_OF(interval, check_cgroup_cpu(guard));
	/* What was told may have ended the watch. */
	if (guard->function)
		loop_arm(guard->loop, timer, sys_monotonic_ns() + interval, on_timer, guard);
}

void guard_look(struct guard *guard)
{
	if (guard->function && guard->timer.loop)
		on_timer(&guard->timer);
}

static void init(struct guard *guard, struct loop *loop, const struct plan *plan, guard_function *function, void *owner)
{
	long cpu_count = sysconf(_SC_NPROCESSORS_ONLN);

	*guard = (struct guard){.loop = loop, .plan = plan, .function = function, .owner = owner};
	guard->recheck.owner = guard;
	guard->cpu_count = cpu_count > 0 ? (unsigned)cpu_count : 1;
	meter_init(&guard->meter, plan);
}

static void watch_notice(struct guard *guard)
{
	if (guard->cgroup.notice_fd >= 0)
		loop_add(guard->loop, &guard->notice, guard->cgroup.notice_fd,
			 guard->cgroup.version == 2 ? EPOLLPRI : EPOLLIN, on_notice, guard);
}

int guard_open(struct guard *guard, struct loop *loop, const struct plan *plan, guard_function *function, void *owner,
	       struct error *error)
{
	int rc;

	init(guard, loop, plan, function, owner);
	rc = cgroup_open(&guard->cgroup, plan, error);
	if (rc == 0)
		watch_notice(guard);
	return rc;
}

int guard_open_run(struct guard *guard, struct loop *loop, const struct plan *plan, const struct guard *jar,
		   const struct cgroup *cgroup, guard_function *function, void *owner, struct error *error)
{
	int rc;

	init(guard, loop, plan, function, owner);
	guard->jar = jar;
	guard->cgroup = *cgroup;
	rc = cgroup_limit(&guard->cgroup, &plan->limits);
	if (rc < 0)
		return error_set(error, STAGE_LIMITS, -rc, "cannot set the limits of the run's cgroup: %s",
				 strerror(-rc));
	watch_notice(guard);
	return 0;
}

int guard_join(struct guard *guard, pid_t pid)
{
	return guard->plan->metered ? meter_join(&guard->meter, &guard->jar->meter, pid) : 0;
}

void guard_take(struct guard *guard, enum jar_view view, int fd, uint64_t clock_ns)
{
	if (view == JAR_VIEW_CLOCK)
		guard->clock_ns = clock_ns;
	if (fd >= 0)
		meter_take(&guard->meter, view, fd);
}

void guard_written(struct guard *guard, uint64_t bytes)
{
	guard->meter.first_written_bytes = MAX_OF(guard->meter.first_written_bytes, bytes);
}

static uint64_t to_microseconds(struct timeval time)
{
	return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_usec;
}

static uint64_t total_ns(const struct rusage *usage)
{
	return (to_microseconds(usage->ru_utime) + to_microseconds(usage->ru_stime)) * 1000;
}

bool guard_start(struct guard *guard, pid_t pid, const struct rusage *making)
{
	guard->making_ns = total_ns(making);
	guard->making_user_us = to_microseconds(making->ru_utime);
	guard->making_system_us = to_microseconds(making->ru_stime);
	if (guard->plan->metered && guard->meter.proc_fd < 0 &&
	    (guard->plan->rung == RUNG_NAMESPACE || meter_follow(&guard->meter, pid) < 0))
		return false;
	/* Where the host hides processes from us we would look in vain. A keeper may be gone already. */
	if (guard->plan->metered && guard->plan->rung != RUNG_NAMESPACE && !guard->jar && !meter_can_see(&guard->meter))
		return false;
	guard->metered = guard->plan->metered;
	guard->meter.most_threads = most_processes(guard);
	if (is_metered(guard, GUARANTEE_MEMORY))
		guard->host_kills = count_host_kills();
	if (guard->metered || has_cgroup_cpu(guard))
		loop_arm(guard->loop, &guard->timer, sys_monotonic_ns() + INTERVAL_MIN_NS, on_timer, guard);
	return true;
}

static void look(struct guard *guard, struct cgroup_reading *reading)
{
	if (!guard->cgroup.version)
		return;
	if (guard->has_last_reading) {
		*reading = guard->last_reading;
		return;
	}
	cgroup_read(&guard->cgroup, reading);
	check_cgroup_memory(guard, reading);
	check_cgroup_pids(guard, reading);
}

void guard_check(struct guard *guard, bool is_last)
{
	struct cgroup_reading reading = {0};

	look(guard, &reading);
	guard->last_reading = reading;
	guard->has_last_reading = is_last;
}

/* The last numbers may show a limit that was passed between the last look and the end; that ended nothing any more. */
static void finish_cpu(struct guard *guard, const struct cgroup_reading *reading, const struct rusage *usage)
{
	uint64_t used_ns = command_ns(guard, reading->has_cpu ? reading->cpu_ns : total_ns(usage));
	bool is_cgroup = has_cgroup_cpu(guard);

	if ((is_cgroup || is_metered(guard, GUARANTEE_CPU_TIME)) && used_ns > guard->plan->limits.cpu_time_ns)
		tell_cpu(guard, used_ns, is_cgroup ? cgroup_word(&guard->cgroup) : "meter",
			 is_cgroup ? (guard->cgroup.version == 2 ? "cpu.stat" : "cpuacct.usage") : "rusage",
			 CAUSE_NONE);
}

/*
 * What was waited for is in @seen already. Who counts the whole tree has seen the children too that nobody waited for;
 * the task clock knows only the sum, which is then divided as the known part is.
 */
static void finish_usage(const struct guard *guard, const struct cgroup_reading *reading, struct observation *seen)
{
	uint64_t known_us = seen->user_us + seen->system_us;
	uint64_t clock_ns = 0, all_us;

	if (reading->user_ns || reading->system_ns) {
		uint64_t user_us = reading->user_ns / 1000, system_us = reading->system_ns / 1000;

		seen->user_us = MAX_OF(seen->user_us, user_us - MIN_OF(user_us, guard->making_user_us));
		seen->system_us = MAX_OF(seen->system_us, system_us - MIN_OF(system_us, guard->making_system_us));
		return;
	}
	if (guard->meter.clock_fd < 0 || read(guard->meter.clock_fd, &clock_ns, sizeof(clock_ns)) != sizeof(clock_ns))
		return;
	all_us = (clock_ns - MIN_OF(clock_ns, guard->clock_ns)) / 1000;
	if (all_us <= known_us)
		return;
	seen->user_us = known_us ? (uint64_t)((double)all_us * (double)seen->user_us / (double)known_us) : all_us;
	seen->system_us = all_us - seen->user_us;
}

void guard_finish(struct guard *guard, const struct rusage *usage, struct observation *seen)
{
	struct cgroup_reading reading = {0};
	struct meter_reading places = {0};

	loop_disarm(&guard->timer);
	/* It may have filled up since the last look. */
	if (is_metered(guard, GUARANTEE_DISK)) {
		meter_look_at_places(&guard->meter, &places);
		check_scratch(guard, &places);
	}
	seen->memory_by = "maxrss";
	seen->peak_memory_bytes = (uint64_t)usage->ru_maxrss * 1024;
	seen->metered = guard->metered;
	look(guard, &reading);
	finish_cpu(guard, &reading, usage);
	finish_usage(guard, &reading, seen);
	seen->shortage = find_shortage(guard, &reading);
	if (reading.has_peak_memory) {
		struct limit_hit *hit = &seen->limits[LIMIT_MEMORY];

		seen->memory_by = cgroup_word(&guard->cgroup);
		seen->peak_memory_bytes = reading.peak_memory_bytes;
		/* What the limit's notice saw may have grown since: large pages are refused before the last of the small ones is. */
		if (hit->is_hit && hit->has_peak)
			hit->peak = MAX_OF(hit->peak, reading.peak_memory_bytes);
	} else if (is_metered(guard, GUARANTEE_MEMORY)) {
		/* A run that was over before the first look has at least its largest process. */
		seen->memory_by = "meter";
		seen->peak_memory_bytes = MAX_OF(seen->peak_memory_bytes, guard->peak_memory_bytes);
	}
	if (reading.has_peak_pids && guard->jar)
		seen->peak_processes = reading.peak_pids;
	else if (reading.has_peak_pids)
		/* The jar's first process is no part of the run; helpers that made the jar may have been more than the run. */
		seen->peak_processes = MIN_OF(MAX_OF(reading.peak_pids, 2) - 1, guard->plan->limits.pids);
	else if (guard->peak_processes)
		seen->peak_processes = guard->peak_processes;
	guard_stop(guard);
}

void guard_stop(struct guard *guard)
{
	loop_disarm(&guard->timer);
	loop_disarm(&guard->recheck);
	loop_remove(&guard->notice);
	guard->function = NULL;
}

void guard_done(struct guard *guard)
{
	if (!guard->loop)
		return;
	guard_stop(guard);
	meter_done(&guard->meter);
	cgroup_done(&guard->cgroup, guard->loop);
}
