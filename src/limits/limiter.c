/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits/limiter.c - hold a run to its limits, and know which was reached
 *
 * What must be looked at is looked at as often as it could be reached in the meantime: far from every limit ten times a
 * second or less, close to one every 5 ms, and never so often that looking takes more than a twentieth of a CPU; but even
 * where one look takes very long, twice a second.
 *
 * Nothing that a jar does holds the loop up: another process looks (looker.h), and the engine hears from it. What has more
 * processes than can be looked at, or keeps the looker waiting, cannot be held to a limit that is measured. The limiter
 * notices that: after a few such looks, or a long wait, it ends the run, and names the limit.
 */
#include "limits/limiter.h"

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
/* So often in a row, INTERVAL_CPU_MAX_NS apart, the looker is found waiting for a process of the jar: ten seconds. */
#define BLOCKED_MAX 40
/* So many looks in a row must come to nothing before a run is ended for it. */
#define UNSEEN_LOOKS 3
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

static bool is_metered(const struct limiter *limiter, enum guarantee guarantee)
{
	return limiter->metered >> guarantee & 1;
}

static bool has_cgroup_cpu(const struct limiter *limiter)
{
	return limiter->cgroup.fds[CGROUP_CPU] >= 0 && limiter->plan->limits.cpu_time_ns != LIMIT_NONE;
}

static void report_hit(struct limiter *limiter, enum limit_name name, uint64_t limit, uint64_t peak,
		       const char *enforced_by, const char *evidence, enum cause cause)
{
	struct limit_hit hit = {
		.is_hit = true, .limit = limit, .peak = peak, .has_peak = true, .enforced_by = enforced_by};

	if (!limiter->function)
		return;
	snprintf(hit.evidence, sizeof(hit.evidence), "%s", evidence);
	limiter->is_over |= cause != CAUSE_NONE;
	limiter->function(limiter->owner, name, &hit, cause);
}

/* --- the cgroup --------------------------------------------------------------------------------------------- */

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

/* Whose limit it was: the run's own, or that of the session around it. NULL: none of ours. */
static const struct limiter *over_memory(const struct limiter *limiter, const struct cgroup_reading *reading)
{
	struct cgroup_reading jars;

	if (!reading->killed_for_memory)
		return NULL;
	if (is_at_limit(limiter, reading))
		return limiter;
	if (!limiter->jar)
		return NULL;
	cgroup_read(&limiter->jar->cgroup, &jars);
	return is_at_limit(limiter->jar, &jars) ? limiter->jar : NULL;
}

static void check_cgroup_memory(struct limiter *limiter, const struct cgroup_reading *reading)
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
	report_hit(limiter, LIMIT_MEMORY, whose->plan->limits.memory_bytes, reading->peak_memory_bytes,
		   cgroup_word(&limiter->cgroup), evidence, CAUSE_MEMORY);
}

/* The kernel counts how often it has killed for want of memory, whoever it was, and says so to everybody. 0: it does not say. */
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
static enum host_shortage find_shortage(const struct limiter *limiter, const struct cgroup_reading *reading)
{
	if (reading->killed_for_memory)
		return over_memory(limiter, reading) ? SHORTAGE_NONE : SHORTAGE_PROVEN;
	return is_metered(limiter, GUARANTEE_MEMORY) && count_host_kills() > limiter->host_kills ? SHORTAGE_SEEN
												 : SHORTAGE_NONE;
}

static void check_cgroup_pids(struct limiter *limiter, const struct cgroup_reading *reading)
{
	char evidence[LIMIT_EVIDENCE_MAX];

	if (!reading->refused_pids)
		return;
	snprintf(evidence, sizeof(evidence), "pids.events: max %" PRIu64, reading->refused_pids);
	report_hit(limiter, LIMIT_PIDS, limiter->plan->limits.pids, limiter->plan->limits.pids,
		   cgroup_word(&limiter->cgroup), evidence, CAUSE_NONE);
}

static void on_recheck(struct loop_timer *timer)
{
	struct limiter *limiter = timer->owner;

	limiter_check(limiter, false);
	if (limiter->function && limiter->rechecks_left-- > 0)
		loop_arm(limiter->loop, timer, sys_monotonic_ns() + INTERVAL_MIN_NS, on_recheck, limiter);
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

/* --- CPU time ----------------------------------------------------------------------------------------------- */

static uint64_t command_ns(const struct limiter *limiter, uint64_t cpu_ns)
{
	return cpu_ns - MIN_OF(cpu_ns, limiter->launch_ns);
}

static void report_cpu(struct limiter *limiter, uint64_t used_ns, const char *enforced_by, const char *source,
		       enum cause cause)
{
	char evidence[LIMIT_EVIDENCE_MAX];

	snprintf(evidence, sizeof(evidence), "%s: %" PRIu64 " ms of CPU time in the tree", source,
		 used_ns / MILLISECOND_NS);
	report_hit(limiter, LIMIT_CPU_TIME, limiter->plan->limits.cpu_time_ns / MILLISECOND_NS,
		   used_ns / MILLISECOND_NS, enforced_by, evidence, cause);
}

/* When it could be reached at the soonest. */
static uint64_t cpu_interval(const struct limiter *limiter, uint64_t used_ns)
{
	uint64_t limit = limiter->plan->limits.cpu_time_ns;
	uint64_t left = limit - MIN_OF(limit, used_ns);

	return MIN_OF(MAX_OF(left / limiter->cpu_count, INTERVAL_MIN_NS), INTERVAL_CPU_MAX_NS);
}

/* Returns the time until it must be looked at again. */
static uint64_t check_cgroup_cpu(struct limiter *limiter)
{
	uint64_t used_ns = command_ns(limiter, cgroup_cpu_ns(&limiter->cgroup));

	if (used_ns > limiter->plan->limits.cpu_time_ns)
		report_cpu(limiter, used_ns, cgroup_word(&limiter->cgroup),
			   limiter->cgroup.version == 2 ? "cpu.stat" : "cpuacct.usage", CAUSE_CPU);
	return cpu_interval(limiter, used_ns);
}

/* --- the meter ---------------------------------------------------------------------------------------------- */

/* Nothing is known of what such a process holds or writes: the run ends with the limit that cannot be held. */
static void check_hidden(struct limiter *limiter, enum limit_name name, uint64_t limit, uint64_t seen, enum cause cause)
{
	char evidence[LIMIT_EVIDENCE_MAX];

	if (limiter->meter.hidden_rounds < HIDDEN_ROUNDS_MAX)
		return;
	snprintf(
		evidence, sizeof(evidence),
		"meter: process %d forbids looking at it, as programs do that may be executed but not read; at least %" PRIu64
		" bytes beside it",
		(int)limiter->meter.hidden_pid, seen);
	report_hit(limiter, name, limit, seen, "meter", evidence, cause);
}

/* Pages that become private after a fork do not show in the sum: above the limit, weigh again now and then. */
static bool must_weigh(const struct limiter *limiter)
{
	uint64_t limit = limiter->plan->limits.memory_bytes;
	uint64_t sum = limiter->reading.resident_bytes + limiter->reading.private_bytes;

	return is_metered(limiter, GUARANTEE_MEMORY) && sum > limit &&
	       (sum - MIN_OF(sum, limiter->excess_bytes) > limit ||
		sys_monotonic_ns() - limiter->weighed_ns > limiter->weighing_ns * WEIGHING_RATIO);
}

static void report_weight(struct limiter *limiter, uint64_t weight)
{
	uint64_t limit = limiter->plan->limits.memory_bytes;
	char evidence[LIMIT_EVIDENCE_MAX];

	limiter->peak_memory_bytes = MAX_OF(limiter->peak_memory_bytes, weight);
	snprintf(evidence, sizeof(evidence),
		 "meter: %" PRIu64 " bytes in %u processes and threads, shared pages counted once; of these %" PRIu64
		 " in files in memory",
		 weight, limiter->reading.processes, limiter->reading.private_bytes);
	report_hit(limiter, LIMIT_MEMORY, limit, weight, "meter", evidence, CAUSE_MEMORY);
}

static uint64_t weigh(struct limiter *limiter)
{
	uint64_t limit = limiter->plan->limits.memory_bytes;
	uint64_t sum = limiter->reading.resident_bytes + limiter->reading.private_bytes;
	uint64_t weight = meter_weigh(&limiter->meter, &limiter->reading, limit);

	/* A process that ended in the middle of it may have been counted here and there. */
	if (weight > limit)
		weight = MIN_OF(weight, meter_weigh(&limiter->meter, &limiter->reading, limit));
	limiter->excess_bytes = sum - MIN_OF(sum, weight);
	return weight;
}

static uint64_t check_metered_memory(struct limiter *limiter, const struct meter_reading *reading)
{
	uint64_t limit = limiter->plan->limits.memory_bytes;
	uint64_t sum = reading->resident_bytes + reading->private_bytes;
	uint64_t left;

	limiter->last_memory_bytes = sum;
	check_hidden(limiter, LIMIT_MEMORY, limit, sum, CAUSE_MEMORY);
	limiter->peak_memory_bytes = MAX_OF(limiter->peak_memory_bytes, sum - MIN_OF(sum, limiter->excess_bytes));
	if (sum > limit)
		return INTERVAL_MIN_NS;
	left = limit - sum;
	return MIN_OF(MAX_OF((uint64_t)((double)left * SECOND_NS / MEMORY_SPEED) / limiter->cpu_count, INTERVAL_MIN_NS),
		      INTERVAL_MAX_NS);
}

static uint64_t check_metered_cpu(struct limiter *limiter, const struct meter_reading *reading)
{
	bool has_clock = limiter->meter.clock_fd >= 0;
	uint64_t unseen_ns = has_clock ? limiter->clock_ns : limiter->launch_ns;
	uint64_t used_ns = reading->cpu_ns - MIN_OF(reading->cpu_ns, unseen_ns);

	if (used_ns > limiter->plan->limits.cpu_time_ns)
		report_cpu(limiter, used_ns, "meter", has_clock ? "meter: task clock" : "meter: /proc", CAUSE_CPU);
	/* Without the clock, what short-lived processes used shows only while they live. */
	return MIN_OF(cpu_interval(limiter, used_ns), has_clock ? INTERVAL_CPU_MAX_NS : INTERVAL_SHORT_NS);
}

static void check_scratch(struct limiter *limiter, const struct meter_reading *reading)
{
	if (reading->is_scratch_full)
		report_hit(limiter, LIMIT_DISK, limiter->plan->limits.disk_bytes, reading->stored_bytes, "tmpfs",
			   "statfs: no block or no inode is free in the private places", CAUSE_NONE);
}

/* A private place that is full refuses by itself; only what is written to the host beside it must be ended. */
static uint64_t check_metered_disk(struct limiter *limiter, const struct meter_reading *reading)
{
	uint64_t limit = limiter->plan->limits.disk_bytes;
	uint64_t used = reading->written_bytes + reading->stored_bytes;
	uint64_t left = limit - MIN_OF(limit, used);
	char evidence[LIMIT_EVIDENCE_MAX];

	limiter->last_disk_bytes = used;
	if (limiter->plan->has_counted_writes)
		check_hidden(limiter, LIMIT_DISK, limit, used, CAUSE_DISK);
	if (used > limit) {
		snprintf(evidence, sizeof(evidence),
			 "meter: %" PRIu64 " bytes written to host directories, %" PRIu64 " in private places",
			 reading->written_bytes, reading->stored_bytes);
		report_hit(limiter, LIMIT_DISK, limit, used, "meter", evidence, CAUSE_DISK);
	} else {
		check_scratch(limiter, reading);
	}
	return MIN_OF(MAX_OF((uint64_t)((double)left * SECOND_NS / DISK_SPEED) / limiter->cpu_count, INTERVAL_MIN_NS),
		      INTERVAL_SHORT_NS);
}

/* What the whole jar may have; a session's own processes are beside that. LIMIT_NONE: nobody looks. */
static uint64_t most_processes(const struct limiter *limiter)
{
	if (!(limiter->plan->metered >> GUARANTEE_PIDS & 1))
		return LIMIT_NONE;
	return limiter->plan->limits.pids + (plan_has_minders(limiter->plan) ? PLAN_MINDERS_ROOM : 0);
}

/* Returns the time until it must be looked at again. */
static uint64_t check_metered_pids(struct limiter *limiter, uint64_t count)
{
	uint64_t limit = most_processes(limiter);
	char evidence[LIMIT_EVIDENCE_MAX];

	if (count <= limit)
		return MIN_OF(MAX_OF((limit - count) * SECOND_NS / PIDS_SPEED / limiter->cpu_count, INTERVAL_MIN_NS),
			      INTERVAL_MAX_NS);
	limiter->peak_processes = MAX_OF(limiter->peak_processes, count);
	snprintf(evidence, sizeof(evidence),
		 "meter: %" PRIu64 " processes and threads or more, two looks in a row; the run was killed for it",
		 count);
	report_hit(limiter, LIMIT_PIDS, limiter->plan->limits.pids, count, "meter", evidence, CAUSE_PIDS);
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

/* What is measured by looking is no longer held. */
static void report_unseen(struct limiter *limiter, const char *why)
{
	struct limit_hit hit = {.is_hit = true, .enforced_by = "meter"};

	if (!limiter->function)
		return;
	snprintf(hit.evidence, sizeof(hit.evidence), "meter: %s; what the run uses is not known", why);
	for (size_t i = 0; i < ARRAY_LEN(metered_limits); i++) {
		if (!is_metered(limiter, metered_limits[i].guarantee))
			continue;
		hit.limit = limit_of(&limiter->plan->limits, metered_limits[i].name);
		limiter->is_over = true;
		limiter->function(limiter->owner, metered_limits[i].name, &hit, metered_limits[i].cause);
		return;
	}
}

/* A look came to nothing, because of what @why says. */
static void note_unseen(struct limiter *limiter, const char *why)
{
	char words[128];

	if (++limiter->unseen_looks < UNSEEN_LOOKS)
		return;
	snprintf(words, sizeof(words), "%u looks in a row could not be finished: %s", limiter->unseen_looks, why);
	report_unseen(limiter, words);
}

static void note_crowd(struct limiter *limiter)
{
	char why[64];

	snprintf(why, sizeof(why), "there were more than %u processes", meter_most_processes());
	note_unseen(limiter, why);
}

/* All was looked at. Returns the time until it must be looked at again. */
static uint64_t check_reading(struct limiter *limiter, uint64_t weight)
{
	const struct meter_reading *reading = &limiter->reading;
	uint64_t interval = INTERVAL_CPU_MAX_NS;

	limiter->unseen_looks = 0;
	if (weight > limiter->plan->limits.memory_bytes)
		report_weight(limiter, weight);
	limiter->last_processes = reading->processes;
	limiter->peak_processes = MAX_OF(limiter->peak_processes, reading->processes);
	if (is_metered(limiter, GUARANTEE_MEMORY))
		interval = MIN_OF(interval, check_metered_memory(limiter, reading));
	if (is_metered(limiter, GUARANTEE_CPU_TIME))
		interval = MIN_OF(interval, check_metered_cpu(limiter, reading));
	if (is_metered(limiter, GUARANTEE_DISK))
		interval = MIN_OF(interval, check_metered_disk(limiter, reading));
	if (is_metered(limiter, GUARANTEE_PIDS))
		interval = MIN_OF(interval, check_metered_pids(limiter, reading->processes));
	return interval;
}

static bool has_too_many(const struct limiter *limiter, enum meter_progress progress)
{
	uint64_t count = progress == METER_CROWDED ? limiter->meter.seen_threads : limiter->reading.processes;

	return progress != METER_BLIND && count > most_processes(limiter);
}

/* In the looker, which has a limiter of its own: a copy. */
static void limiter_on_question(void *owner, const struct looker_question *question, struct looker_answer *answer)
{
	struct limiter *limiter = owner;
	uint64_t begun_ns = meter_spent_ns();

	limiter->meter.first_written_bytes = question->first_written_bytes;
	answer->progress = meter_look(&limiter->meter, &limiter->reading);
	/* A single look adds up what was never there at once. The next one is taken now: a bomb grows while an answer is under way. */
	if (has_too_many(limiter, answer->progress))
		answer->progress = meter_look(&limiter->meter, &limiter->reading);
	if (answer->progress == METER_WHOLE && must_weigh(limiter)) {
		answer->weight = weigh(limiter);
		limiter->weighed_ns = sys_monotonic_ns();
		limiter->weighing_ns = meter_spent_ns() - begun_ns;
	}
	answer->reading = limiter->reading;
	answer->excess_bytes = limiter->excess_bytes;
	answer->seen_threads = limiter->meter.seen_threads;
	answer->hidden_rounds = limiter->meter.hidden_rounds;
	answer->hidden_pid = limiter->meter.hidden_pid;
	answer->spent_ns = meter_spent_ns() - begun_ns;
}

/* A look that was given up. Returns the time until the next one. */
static uint64_t check_crowd(struct limiter *limiter, const struct looker_answer *answer)
{
	if (answer->seen_threads > most_processes(limiter))
		return check_metered_pids(limiter, answer->seen_threads);
	note_crowd(limiter);
	return MIN_OF(answer->spent_ns * COST_RATIO, INTERVAL_COSTLY_NS);
}

/* Returns the time until the next look. */
static uint64_t check_answer(struct limiter *limiter, const struct looker_answer *answer)
{
	switch (answer->progress) {
	case METER_CROWDED:
		return check_crowd(limiter, answer);
	case METER_WHOLE:
		limiter->reading = answer->reading;
		limiter->excess_bytes = answer->excess_bytes;
		limiter->meter.hidden_rounds = answer->hidden_rounds;
		limiter->meter.hidden_pid = answer->hidden_pid;
		return MAX_OF(check_reading(limiter, answer->weight),
			      MIN_OF(answer->spent_ns * COST_RATIO, INTERVAL_COSTLY_NS));
	case METER_BLIND:
		break;
	}
	return INTERVAL_MIN_NS;
}

/* --- both --------------------------------------------------------------------------------------------------- */

static void on_timer(struct loop_timer *timer);

/* Whatever is next: what was reported may have ended the watch. */
static void go_on(struct limiter *limiter, uint64_t interval)
{
	if (limiter->function)
		loop_arm(limiter->loop, &limiter->timer, sys_monotonic_ns() + interval, on_timer, limiter);
}

/* Another one is made for the next look. */
static void lose_looker(struct limiter *limiter, const char *why)
{
	looker_free(limiter->looker);
	limiter->looker = NULL;
	note_unseen(limiter, why);
}

static void limiter_on_answer(void *owner, const struct looker_answer *answer)
{
	struct limiter *limiter = owner;

	limiter->is_looking = false;
	limiter->blocked_times = 0;
	if (answer) {
		go_on(limiter, check_answer(limiter, answer));
	} else {
		lose_looker(limiter, "who looked was killed");
		go_on(limiter, INTERVAL_SHORT_NS);
	}
}

/* The host has no process left to give, perhaps because the run has them all: better late than not held to its limits. */
static uint64_t look_here(struct limiter *limiter, const struct looker_question *question)
{
	struct looker_answer answer = {0};

	limiter_on_question(limiter, question, &answer);
	return check_answer(limiter, &answer);
}

/* Returns the time until it must be asked for, or the next look. */
static uint64_t begin_look(struct limiter *limiter)
{
	struct looker_question question = {.first_written_bytes = limiter->meter.first_written_bytes};
	int rc;

	if (!limiter->looker && looker_new(limiter->loop, limiter->family, &limiter->meter, limiter_on_question,
					   limiter_on_answer, limiter, &limiter->looker) < 0)
		return look_here(limiter, &question);
	rc = looker_ask(limiter->looker, &question);
	limiter->is_looking = rc == 0;
	if (rc < 0)
		lose_looker(limiter, strerror(-rc));
	return rc < 0 ? INTERVAL_SHORT_NS : INTERVAL_CPU_MAX_NS;
}

/* The kernel tells nothing of a process while that holds a lock of its own memory. */
static void check_looker(struct limiter *limiter)
{
	limiter->blocked_times = looker_is_blocked(limiter->looker) ? limiter->blocked_times + 1 : 0;
	if (limiter->blocked_times >= BLOCKED_MAX)
		report_unseen(limiter,
			      "a process of the run keeps a lock of its memory, and has who looks wait for it");
}

static void on_timer(struct loop_timer *timer)
{
	struct limiter *limiter = timer->owner;
	uint64_t interval = INTERVAL_CPU_MAX_NS;

	if (limiter->is_looking)
		check_looker(limiter);
	else if (limiter->metered)
		interval = begin_look(limiter);
	if (has_cgroup_cpu(limiter))
		interval = MIN_OF(interval, check_cgroup_cpu(limiter));
	go_on(limiter, interval);
}

void limiter_look(struct limiter *limiter)
{
	if (limiter->function && limiter->timer.loop && !limiter->is_looking)
		on_timer(&limiter->timer);
}

static void limiter_init(struct limiter *limiter, struct loop *loop, const struct plan *plan,
			 struct reap_family *family, limiter_function *function, void *owner)
{
	long cpu_count = sysconf(_SC_NPROCESSORS_ONLN);

	*limiter = (struct limiter){.loop = loop, .plan = plan, .family = family, .function = function, .owner = owner};
	limiter->recheck.owner = limiter;
	limiter->cpu_count = cpu_count > 0 ? (unsigned)cpu_count : 1;
	meter_init(&limiter->meter, plan);
}

static void watch_notice(struct limiter *limiter)
{
	if (limiter->cgroup.notice_fd >= 0)
		loop_add(limiter->loop, &limiter->notice, limiter->cgroup.notice_fd,
			 limiter->cgroup.version == 2 ? EPOLLPRI : EPOLLIN, on_notice, limiter);
}

int limiter_open(struct limiter *limiter, struct loop *loop, const struct plan *plan, struct reap_family *family,
		 limiter_function *function, void *owner, struct error *error)
{
	int rc;

	limiter_init(limiter, loop, plan, family, function, owner);
	rc = cgroup_open(&limiter->cgroup, plan, error);
	if (rc == 0)
		watch_notice(limiter);
	return rc;
}

int limiter_open_run(struct limiter *limiter, struct loop *loop, const struct plan *plan, const struct limiter *jar,
		     const struct cgroup *cgroup, limiter_function *function, void *owner, struct error *error)
{
	int rc;

	limiter_init(limiter, loop, plan, jar->family, function, owner);
	limiter->jar = jar;
	limiter->cgroup = *cgroup;
	rc = cgroup_limit(&limiter->cgroup, &plan->limits);
	if (rc < 0)
		return error_set(error, STAGE_LIMITS, -rc, "cannot set the limits of the run's cgroup: %s",
				 strerror(-rc));
	watch_notice(limiter);
	return 0;
}

int limiter_join(struct limiter *limiter, pid_t pid)
{
	return limiter->plan->metered ? meter_join(&limiter->meter, &limiter->jar->meter, pid) : 0;
}

void limiter_take(struct limiter *limiter, enum jar_view view, int fd, uint64_t clock_ns)
{
	if (view == JAR_VIEW_CLOCK)
		limiter->clock_ns = clock_ns;
	if (fd >= 0)
		meter_take(&limiter->meter, view, fd);
}

void limiter_written(struct limiter *limiter, uint64_t bytes)
{
	limiter->meter.first_written_bytes = MAX_OF(limiter->meter.first_written_bytes, bytes);
}

static uint64_t to_microseconds(struct timeval time)
{
	return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_usec;
}

static uint64_t total_ns(const struct rusage *usage)
{
	return (to_microseconds(usage->ru_utime) + to_microseconds(usage->ru_stime)) * 1000;
}

void limiter_leave_out(struct limiter *limiter, const struct rusage *making)
{
	limiter->launch_ns = total_ns(making);
	limiter->launch_user_us = to_microseconds(making->ru_utime);
	limiter->launch_system_us = to_microseconds(making->ru_stime);
}

bool limiter_start(struct limiter *limiter, pid_t pid)
{
	if (limiter->plan->metered && limiter->meter.proc_fd < 0 &&
	    (limiter->plan->rung == RUNG_NAMESPACE || meter_follow(&limiter->meter, pid) < 0))
		return false;
	/* Where the host hides processes from us we would look in vain. A minder may be gone already. */
	if (limiter->plan->metered && limiter->plan->rung != RUNG_NAMESPACE && !limiter->jar &&
	    !meter_can_see(&limiter->meter))
		return false;
	limiter->metered = limiter->plan->metered;
	limiter->meter.most_threads = most_processes(limiter);
	if (is_metered(limiter, GUARANTEE_MEMORY))
		limiter->host_kills = count_host_kills();
	if (limiter->metered || has_cgroup_cpu(limiter))
		loop_arm(limiter->loop, &limiter->timer, sys_monotonic_ns() + INTERVAL_MIN_NS, on_timer, limiter);
	return true;
}

static void read_cgroup(struct limiter *limiter, struct cgroup_reading *reading)
{
	if (!limiter->cgroup.version)
		return;
	if (limiter->has_last_reading) {
		*reading = limiter->last_reading;
		return;
	}
	cgroup_read(&limiter->cgroup, reading);
	check_cgroup_memory(limiter, reading);
	check_cgroup_pids(limiter, reading);
}

void limiter_check(struct limiter *limiter, bool is_last)
{
	struct cgroup_reading reading = {0};

	read_cgroup(limiter, &reading);
	limiter->last_reading = reading;
	limiter->has_last_reading = is_last;
}

/* The last numbers may show a limit that was passed between the last look and the end; that ended nothing any more. */
static void finish_cpu(struct limiter *limiter, const struct cgroup_reading *reading, const struct rusage *usage)
{
	uint64_t used_ns = command_ns(limiter, reading->has_cpu ? reading->cpu_ns : total_ns(usage));
	bool is_cgroup = has_cgroup_cpu(limiter);

	if ((is_cgroup || is_metered(limiter, GUARANTEE_CPU_TIME)) && used_ns > limiter->plan->limits.cpu_time_ns)
		report_cpu(limiter, used_ns, is_cgroup ? cgroup_word(&limiter->cgroup) : "meter",
			   is_cgroup ? (limiter->cgroup.version == 2 ? "cpu.stat" : "cpuacct.usage") : "rusage",
			   CAUSE_NONE);
}

/* What was waited for. */
static void note_usage(const struct limiter *limiter, const struct rusage *usage, struct observation *seen)
{
	uint64_t user_us = to_microseconds(usage->ru_utime), system_us = to_microseconds(usage->ru_stime);

	seen->user_us = user_us - MIN_OF(user_us, limiter->launch_user_us);
	seen->system_us = system_us - MIN_OF(system_us, limiter->launch_system_us);
}

/*
 * What was waited for is in @seen already. Who counts the whole tree has seen the children too that nobody waited for;
 * the task clock knows only the sum, which is then divided as the known part is.
 */
static void finish_usage(const struct limiter *limiter, const struct cgroup_reading *reading, struct observation *seen)
{
	uint64_t known_us = seen->user_us + seen->system_us;
	uint64_t clock_ns = 0, all_us;

	if (reading->user_ns || reading->system_ns) {
		uint64_t user_us = reading->user_ns / 1000, system_us = reading->system_ns / 1000;

		seen->user_us = MAX_OF(seen->user_us, user_us - MIN_OF(user_us, limiter->launch_user_us));
		seen->system_us = MAX_OF(seen->system_us, system_us - MIN_OF(system_us, limiter->launch_system_us));
		return;
	}
	if (limiter->meter.clock_fd < 0 ||
	    read(limiter->meter.clock_fd, &clock_ns, sizeof(clock_ns)) != sizeof(clock_ns))
		return;
	all_us = (clock_ns - MIN_OF(clock_ns, limiter->clock_ns)) / 1000;
	if (all_us <= known_us)
		return;
	seen->user_us = known_us ? (uint64_t)((double)all_us * (double)seen->user_us / (double)known_us) : all_us;
	seen->system_us = all_us - seen->user_us;
}

void limiter_usage(const struct limiter *limiter, struct limiter_usage *out)
{
	const uint64_t none = UINT64_MAX;
	struct cgroup_reading reading = {0};
	bool is_looked_at = limiter->metered != 0;

	*out = (struct limiter_usage){none, none, none, none, none};
	if (limiter->cgroup.version)
		cgroup_read(&limiter->cgroup, &reading);
	if (!cgroup_memory_now(&limiter->cgroup, &out->memory_bytes) && is_metered(limiter, GUARANTEE_MEMORY))
		out->memory_bytes = limiter->last_memory_bytes;
	if (!cgroup_processes_now(&limiter->cgroup, &out->processes) && is_looked_at)
		out->processes = limiter->last_processes;
	if (reading.has_peak_memory)
		out->peak_memory_bytes = reading.peak_memory_bytes;
	else if (is_metered(limiter, GUARANTEE_MEMORY))
		out->peak_memory_bytes = limiter->peak_memory_bytes;
	if (reading.has_peak_pids)
		out->peak_processes = reading.peak_pids;
	else if (is_looked_at)
		out->peak_processes = limiter->peak_processes;
	if (reading.has_cpu)
		out->cpu_us = reading.cpu_ns / 1000;
}

void limiter_report(struct limiter *limiter, const struct rusage *usage, struct observation *seen)
{
	struct cgroup_reading reading = {0};
	struct meter_reading places = {0};

	/* It may have filled up since the last look. */
	if (is_metered(limiter, GUARANTEE_DISK)) {
		meter_look_at_places(&limiter->meter, &places);
		check_scratch(limiter, &places);
	}
	seen->memory_by = "maxrss";
	seen->peak_memory_bytes = (uint64_t)usage->ru_maxrss * 1024;
	seen->metered = limiter->metered;
	read_cgroup(limiter, &reading);
	finish_cpu(limiter, &reading, usage);
	note_usage(limiter, usage, seen);
	finish_usage(limiter, &reading, seen);
	seen->shortage = find_shortage(limiter, &reading);
	if (reading.has_peak_memory) {
		struct limit_hit *hit = &seen->limits[LIMIT_MEMORY];

		seen->memory_by = cgroup_word(&limiter->cgroup);
		seen->peak_memory_bytes = reading.peak_memory_bytes;
		/* What the limit's notice saw may have grown since: large pages are refused before the last of the small ones is. */
		if (hit->is_hit && hit->has_peak)
			hit->peak = MAX_OF(hit->peak, reading.peak_memory_bytes);
	} else if (is_metered(limiter, GUARANTEE_MEMORY)) {
		/* A run that was over before the first look has at least its largest process. */
		seen->memory_by = "meter";
		seen->peak_memory_bytes = MAX_OF(seen->peak_memory_bytes, limiter->peak_memory_bytes);
	}
	if (reading.has_peak_pids && limiter->jar)
		seen->peak_processes = reading.peak_pids;
	else if (reading.has_peak_pids)
		/* The jar's first process is no part of the run; helpers that made the jar may have been more than the run. */
		seen->peak_processes = MIN_OF(MAX_OF(reading.peak_pids, 2) - 1, limiter->plan->limits.pids);
	else if (limiter->peak_processes)
		seen->peak_processes = limiter->peak_processes;
}

void limiter_finish(struct limiter *limiter, const struct rusage *usage, struct observation *seen)
{
	loop_disarm(&limiter->timer);
	limiter_report(limiter, usage, seen);
	limiter_stop(limiter);
}

void limiter_stop(struct limiter *limiter)
{
	loop_disarm(&limiter->timer);
	loop_disarm(&limiter->recheck);
	loop_remove(&limiter->notice);
	looker_free(limiter->looker);
	limiter->looker = NULL;
	limiter->function = NULL;
}

void limiter_done(struct limiter *limiter)
{
	if (!limiter->loop)
		return;
	limiter_stop(limiter);
	meter_done(&limiter->meter);
	cgroup_done(&limiter->cgroup, limiter->loop);
}
