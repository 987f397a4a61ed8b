/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/limits/limiter_judge.c - judge what a look showed: is a limit reached, and when must the next look be
 *
 * The limiter looks before the run can reach a limit: far from every limit ten times a second or less, close to
 * one every 5 ms. Looks never take more than a twentieth of a CPU, except that even a very slow look is done
 * twice a second.
 *
 * A run with too many processes to look at, or one that hides from the looker, cannot be held to a measured
 * limit. After a few such looks the limiter ends the run and names the limit.
 */
#include "engine/limits/limiter_parts.h"

#include <inttypes.h>
#include <stdio.h>

/* Memory and processes. */
#define INTERVAL_FAR_NS 100000000ULL
/* As fast as one CPU can touch new pages, make pages of a file dirty, or make threads: bytes, or threads, in a second. */
#define MEMORY_SPEED (2ULL << 30)
#define DISK_SPEED (1ULL << 30)
#define PIDS_SPEED 50000ULL
#define COST_RATIO 20
#define INTERVAL_COSTLY_NS 500000000ULL
/* Failed looks in a row before the limiter ends the run. */
#define UNSEEN_LOOKS 3
/* A process that cannot be looked at may be about to end. */
#define HIDDEN_ROUNDS_MAX 3
#define SECOND_NS 1000000000ULL

/* The time in which all processors together can use @left units, at @speed units a second each. */
static uint64_t time_for(const struct limiter *limiter, uint64_t left, uint64_t speed, uint64_t most_ns)
{
	double ns = (double)left * SECOND_NS / (double)speed / limiter->cpu_count;

	return ns < (double)most_ns ? MAX_OF((uint64_t)ns, LIMITER_INTERVAL_MIN_NS) : most_ns;
}

/* --- what cannot be seen ------------------------------------------------------------------------------------ */

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

static uint64_t limit_of(const struct limits *limits, enum limit_name name)
{
	return name == LIMIT_PIDS     ? limits->pids
	       : name == LIMIT_MEMORY ? limits->memory_bytes
	       : name == LIMIT_DISK   ? limits->disk_bytes
				      : limits->cpu_time_ns / LIMITER_MILLISECOND_NS;
}

void limiter_tell_unseen(struct limiter *limiter, const char *why)
{
	struct limit_hit hit = {.is_hit = true, .enforced_by = "meter"};

	if (!limiter->function)
		return;
	snprintf(hit.evidence, sizeof(hit.evidence), "meter: %s; what the run uses is not known", why);
	for (size_t i = 0; i < ARRAY_LEN(metered_limits); i++) {
		if (!limiter_is_metered(limiter, metered_limits[i].guarantee))
			continue;
		hit.limit = limit_of(&limiter->plan->limits, metered_limits[i].name);
		limiter->is_over = true;
		limiter->function(limiter->owner, metered_limits[i].name, &hit, metered_limits[i].cause);
		return;
	}
}

void limiter_note_unseen(struct limiter *limiter, const char *why)
{
	char words[128];

	if (++limiter->unseen_looks < UNSEEN_LOOKS)
		return;
	snprintf(words, sizeof(words), "%u readings in a row failed: %s", limiter->unseen_looks, why);
	limiter_tell_unseen(limiter, words);
}

static void note_crowd(struct limiter *limiter)
{
	char why[64];

	snprintf(why, sizeof(why), "there were more than %u processes", helper_meter_most_processes());
	limiter_note_unseen(limiter, why);
}

/* Nothing is known of what such a process holds or writes: the run ends with the limit that cannot be held. */
static void check_hidden(struct limiter *limiter, enum limit_name name, uint64_t limit, uint64_t seen, enum cause cause)
{
	char evidence[LIMIT_EVIDENCE_MAX];

	if (limiter->meter.hidden_rounds < HIDDEN_ROUNDS_MAX)
		return;
	snprintf(evidence, sizeof(evidence),
		 "meter: Belljar cannot read process %d, whose program may be executed but not read; at least %" PRIu64
		 " bytes beside it",
		 (int)limiter->meter.hidden_pid, seen);
	limiter_tell(limiter, name, limit, seen, "meter", evidence, cause);
}

/* --- each limit: returns the time until it must be looked at again ------------------------------------------ */

static void tell_weight(struct limiter *limiter, const struct looker_answer *answer)
{
	char evidence[LIMIT_EVIDENCE_MAX];

	limiter->peak_memory_bytes = MAX_OF(limiter->peak_memory_bytes, answer->weight);
	snprintf(evidence, sizeof(evidence),
		 "meter: %" PRIu64 " bytes in %u processes and threads, shared pages counted once; of these %" PRIu64
		 " in files in memory",
		 answer->weight, answer->reading.processes, answer->reading.private_bytes);
	limiter_tell(limiter, LIMIT_MEMORY, limiter->plan->limits.memory_bytes, answer->weight, "meter", evidence,
		     CAUSE_MEMORY);
}

static uint64_t check_memory(struct limiter *limiter, const struct looker_answer *answer)
{
	uint64_t limit = limiter->plan->limits.memory_bytes;
	uint64_t sum = answer->reading.resident_bytes + answer->reading.private_bytes;

	check_hidden(limiter, LIMIT_MEMORY, limit, sum, CAUSE_MEMORY);
	limiter->peak_memory_bytes = MAX_OF(limiter->peak_memory_bytes, sum - MIN_OF(sum, answer->excess_bytes));
	return time_for(limiter, limit - MIN_OF(limit, sum), MEMORY_SPEED, INTERVAL_FAR_NS);
}

static uint64_t check_cpu(struct limiter *limiter, const struct meter_reading *reading)
{
	bool has_clock = limiter->meter.clock_fd >= 0;
	uint64_t used_ns = has_clock ? reading->cpu_ns - MIN_OF(reading->cpu_ns, limiter->clock_ns)
				     : limiter_command_ns(limiter, reading->cpu_ns);

	if (used_ns > limiter->plan->limits.cpu_time_ns)
		limiter_tell_cpu(limiter, used_ns, "meter", has_clock ? "meter: task clock" : "meter: /proc",
				 CAUSE_CPU);
	/* Without the clock, what short-lived processes used shows only while they live. */
	return MIN_OF(limiter_cpu_interval(limiter, used_ns),
		      has_clock ? LIMITER_INTERVAL_MAX_NS : LIMITER_INTERVAL_SHORT_NS);
}

void limiter_check_scratch(struct limiter *limiter, const struct meter_reading *reading)
{
	if (reading->is_scratch_full)
		limiter_tell(limiter, LIMIT_DISK, limiter->plan->limits.disk_bytes, reading->stored_bytes, "tmpfs",
			     "statfs: no block or no inode is free in the private places", CAUSE_NONE);
}

void limiter_tell_growth(struct limiter *limiter, uint64_t grown_bytes, uint64_t used, enum cause cause)
{
	char evidence[LIMIT_EVIDENCE_MAX];

	snprintf(evidence, sizeof(evidence),
		 "statfs: a file system has grown by %" PRIu64
		 " bytes, and children that no parent waited for (SIGCHLD ignored) wrote to it",
		 grown_bytes);
	limiter_tell(limiter, LIMIT_DISK, limiter->plan->limits.disk_bytes, used, "meter", evidence, cause);
}

/* A private place that is full refuses by itself; only what is written to the host beside it must be ended. */
static uint64_t check_disk(struct limiter *limiter, const struct meter_reading *reading)
{
	uint64_t limit = limiter->plan->limits.disk_bytes;
	uint64_t used = MAX_OF(reading->written_bytes, reading->grown_bytes) + reading->stored_bytes;
	char evidence[LIMIT_EVIDENCE_MAX];

	if (limiter->plan->has_counted_writes)
		check_hidden(limiter, LIMIT_DISK, limit, used, CAUSE_DISK);
	if (used > limit && reading->grown_bytes > reading->written_bytes) {
		limiter_tell_growth(limiter, reading->grown_bytes, used, CAUSE_DISK);
	} else if (used > limit) {
		snprintf(evidence, sizeof(evidence),
			 "meter: %" PRIu64 " bytes written to host directories, %" PRIu64 " in private places",
			 reading->written_bytes, reading->stored_bytes);
		limiter_tell(limiter, LIMIT_DISK, limit, used, "meter", evidence, CAUSE_DISK);
	} else {
		limiter_check_scratch(limiter, reading);
	}
	return time_for(limiter, limit - MIN_OF(limit, used), DISK_SPEED, LIMITER_INTERVAL_SHORT_NS);
}

uint64_t limiter_most_processes(const struct limiter *limiter)
{
	if (!(limiter->plan->metered >> GUARANTEE_PIDS & 1))
		return LIMIT_NONE;
	return limiter->plan->limits.pids + (plan_has_minders(limiter->plan) ? PLAN_MINDERS_ROOM : 0);
}

/* Check the number of processes; @own of them may be the jar's own. */
static uint64_t check_pids(struct limiter *limiter, uint64_t count, uint64_t own)
{
	uint64_t limit = limiter->plan->limits.pids + own;
	char evidence[LIMIT_EVIDENCE_MAX];

	if (count <= limit)
		return time_for(limiter, limit - count, PIDS_SPEED, INTERVAL_FAR_NS);
	limiter->peak_processes = MAX_OF(limiter->peak_processes, count);
	snprintf(evidence, sizeof(evidence),
		 "meter: %" PRIu64 " processes and threads or more, in two readings in a row; Belljar killed the run",
		 count);
	limiter_tell(limiter, LIMIT_PIDS, limiter->plan->limits.pids, count, "meter", evidence, CAUSE_PIDS);
	return LIMITER_INTERVAL_MIN_NS;
}

/* --- an answer ---------------------------------------------------------------------------------------------- */

/* Judge a complete look. */
static uint64_t judge_whole(struct limiter *limiter, const struct looker_answer *answer)
{
	const struct meter_reading *reading = &answer->reading;
	uint64_t interval = LIMITER_INTERVAL_MAX_NS;

	/* If this looker is lost, another one continues from here. */
	limiter->reading = *reading;
	limiter->excess_bytes = answer->excess_bytes;
	limiter->meter.hidden_rounds = answer->hidden_rounds;
	limiter->meter.hidden_pid = answer->hidden_pid;
	limiter->unseen_looks = 0;
	limiter->peak_processes = MAX_OF(limiter->peak_processes, reading->processes);
	if (answer->weight > limiter->plan->limits.memory_bytes)
		tell_weight(limiter, answer);
	if (limiter_is_metered(limiter, GUARANTEE_MEMORY))
		interval = MIN_OF(interval, check_memory(limiter, answer));
	if (limiter_is_metered(limiter, GUARANTEE_CPU_TIME))
		interval = MIN_OF(interval, check_cpu(limiter, reading));
	if (limiter_is_metered(limiter, GUARANTEE_DISK))
		interval = MIN_OF(interval, check_disk(limiter, reading));
	if (limiter_is_metered(limiter, GUARANTEE_PIDS))
		interval = MIN_OF(interval, check_pids(limiter, reading->processes, 0));
	return MAX_OF(interval, MIN_OF(answer->spent_ns * COST_RATIO, INTERVAL_COSTLY_NS));
}

/* Judge a look that stopped, because there are too many processes. */
static uint64_t judge_crowd(struct limiter *limiter, const struct looker_answer *answer)
{
	uint64_t own = plan_has_minders(limiter->plan) ? PLAN_MINDERS_ROOM : 0;

	if (answer->seen_threads > limiter_most_processes(limiter))
		return check_pids(limiter, answer->seen_threads, own);
	note_crowd(limiter);
	return MIN_OF(answer->spent_ns * COST_RATIO, INTERVAL_COSTLY_NS);
}

uint64_t limiter_judge(struct limiter *limiter, const struct looker_answer *answer)
{
	switch (answer->progress) {
	case METER_WHOLE:
		return judge_whole(limiter, answer);
	case METER_CROWDED:
		return judge_crowd(limiter, answer);
	case METER_BLIND:
		break;
	}
	return LIMITER_INTERVAL_MIN_NS;
}
