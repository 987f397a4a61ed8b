/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper/looker.h - the process that measures a jar for its limiter
 *
 * The kernel reports a process's memory under a lock that this process may hold. A reader of /proc waits until
 * the holder runs again: for seconds on a busy host, and as long as a command likes if it gives the holder the
 * lowest priority. The engine has deadlines to keep, so a copy of it measures, and may wait.
 */
#ifndef BELLJAR_HELPER_LOOKER_H
#define BELLJAR_HELPER_LOOKER_H

#include "base/loop.h"
#include "helper/meter.h"
#include "base/reap/reap.h"

/* A request for one look. */
struct looker_question {
	uint64_t first_written_bytes; /* see struct meter */
};

/* The result of one look. */
struct looker_answer {
	enum meter_progress progress;
	struct meter_reading reading;
	uint64_t weight;       /* all memory, shared pages counted once; 0: not measured */
	uint64_t excess_bytes; /* by how much the last look was above the last weighing */
	uint64_t seen_threads; /* of a look that was stopped */
	unsigned hidden_rounds;
	pid_t hidden_pid;
	uint64_t spent_ns; /* CPU time of this look */
};

/* Look once, in the looker. */
typedef void looker_look(void *owner, const struct looker_question *question, struct looker_answer *answer);
/* Take an answer, in the engine. NULL: the looker has ended, and no answer will come. */
typedef void looker_function(void *owner, const struct looker_answer *answer);

struct looker;

/* Start a looker. It keeps only the descriptors of @meter, and answers with @look. 0 or a negative errno. */
int helper_looker_new(struct loop *loop, struct reap_family *family, const struct meter *meter, looker_look *look,
		      looker_function *function, void *owner, struct looker **out);
/* Send the next question, after the answer to the last one. 0 or a negative errno. */
int helper_looker_ask(struct looker *looker, const struct looker_question *question);
/* Whether it sleeps in the kernel (state D), and not only waits for a processor. */
bool helper_looker_is_blocked(const struct looker *looker);
/* Kill the looker; the loop reaps it. */
void helper_looker_free(struct looker *looker);

#endif
