/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/limits/limiter_look.c - have the looker look, one question at a time, and notice when no answer comes
 *
 * The looker is a copy of the engine, with a copy of the limiter from that moment; limiter_on_question() runs
 * there. The engine gets only the answers. It replaces a killed looker for the next look. If a process of the
 * run blocks the looker for ten seconds, measured limits are not held any more, and the run ends.
 */
#include "engine/limits/limiter_parts.h"

#include <string.h>

#include "base/sys/calls.h"

/* The checks in a row, LIMITER_INTERVAL_MAX_NS apart, that find the looker blocked by the jar: ten seconds. */
#define BLOCKED_MAX 40
/* The pause before a repeated weighing, in multiples of the time that the last one took. */
#define WEIGHING_RATIO 10

/* --- in the looker ------------------------------------------------------------------------------------------ */

/* Pages that become private after a fork do not show in the sum: above the limit, weigh again now and then. */
static bool must_weigh(const struct limiter *limiter)
{
	uint64_t limit = limiter->plan->limits.memory_bytes;
	uint64_t sum = limiter->reading.resident_bytes + limiter->reading.private_bytes;

	return limiter_is_metered(limiter, GUARANTEE_MEMORY) && sum > limit &&
	       (sum - MIN_OF(sum, limiter->excess_bytes) > limit ||
		sys_monotonic_ns() - limiter->weighed_ns > limiter->weighing_ns * WEIGHING_RATIO);
}

static uint64_t weigh(struct limiter *limiter)
{
	uint64_t sum = limiter->reading.resident_bytes + limiter->reading.private_bytes;
	uint64_t weight = helper_meter_weigh(&limiter->meter, &limiter->reading);

	/* A process that ended in the middle of it may have been counted here and there. */
	if (weight > limiter->plan->limits.memory_bytes)
		weight = MIN_OF(weight, helper_meter_weigh(&limiter->meter, &limiter->reading));
	limiter->excess_bytes = sum - MIN_OF(sum, weight);
	return weight;
}

static bool has_too_many(const struct limiter *limiter, enum meter_progress progress)
{
	uint64_t count = progress == METER_CROWDED ? limiter->meter.seen_threads : limiter->reading.processes;

	return progress != METER_BLIND && count > limiter_most_processes(limiter);
}

static void limiter_on_question(void *owner, const struct looker_question *question, struct looker_answer *answer)
{
	struct limiter *limiter = owner;
	uint64_t begun_ns = helper_meter_spent_ns();

	limiter->meter.first_written_bytes = question->first_written_bytes;
	answer->progress = helper_meter_look(&limiter->meter, &limiter->reading);
	/* A single look adds up what was never there at once. The next one is taken now: a bomb grows while an answer is under way. */
	if (has_too_many(limiter, answer->progress))
		answer->progress = helper_meter_look(&limiter->meter, &limiter->reading);
	if (answer->progress == METER_WHOLE && must_weigh(limiter)) {
		answer->weight = weigh(limiter);
		limiter->weighed_ns = sys_monotonic_ns();
		limiter->weighing_ns = helper_meter_spent_ns() - begun_ns;
	}
	answer->reading = limiter->reading;
	answer->excess_bytes = limiter->excess_bytes;
	answer->seen_threads = limiter->meter.seen_threads;
	answer->hidden_rounds = limiter->meter.hidden_rounds;
	answer->hidden_pid = limiter->meter.hidden_pid;
	answer->spent_ns = helper_meter_spent_ns() - begun_ns;
}

/* --- in the engine ------------------------------------------------------------------------------------------ */

/* Another one is made for the next look. */
static void lose_looker(struct limiter *limiter, const char *why)
{
	helper_looker_free(limiter->looker);
	limiter->looker = NULL;
	limiter_note_unseen(limiter, why);
}

static void limiter_on_answer(void *owner, const struct looker_answer *answer)
{
	struct limiter *limiter = owner;

	limiter->is_looking = false;
	limiter->blocked_times = 0;
	if (answer) {
		limiter_go_on(limiter, limiter_judge(limiter, answer));
	} else {
		lose_looker(limiter, "the measuring process was killed");
		limiter_go_on(limiter, LIMITER_INTERVAL_SHORT_NS);
	}
}

/* The host has no process left to give, perhaps because the run has them all: better late than not held to its limits. */
static uint64_t look_here(struct limiter *limiter, const struct looker_question *question)
{
	struct looker_answer answer = {0};

	limiter_on_question(limiter, question, &answer);
	return limiter_judge(limiter, &answer);
}

uint64_t limiter_begin_look(struct limiter *limiter)
{
	struct looker_question question = {.first_written_bytes = limiter->meter.first_written_bytes};
	int rc;

	if (!limiter->looker && helper_looker_new(limiter->loop, limiter->family, &limiter->meter, limiter_on_question,
						  limiter_on_answer, limiter, &limiter->looker) < 0)
		return look_here(limiter, &question);
	rc = helper_looker_ask(limiter->looker, &question);
	limiter->is_looking = rc == 0;
	if (rc < 0)
		lose_looker(limiter, strerror(-rc));
	return rc < 0 ? LIMITER_INTERVAL_SHORT_NS : LIMITER_INTERVAL_MAX_NS;
}

/* The kernel reports nothing about a process that holds its own memory lock. */
void limiter_check_looker(struct limiter *limiter)
{
	limiter->blocked_times = helper_looker_is_blocked(limiter->looker) ? limiter->blocked_times + 1 : 0;
	if (limiter->blocked_times >= BLOCKED_MAX)
		limiter_tell_unseen(limiter, "a process blocks reads of its memory usage");
}
