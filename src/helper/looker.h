/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper/looker.h - the process that looks at a jar for its limiter
 *
 * What the kernel tells of a process's memory it tells under a lock of that process, and whoever waits for it waits as long as
 * that process is kept from running: for seconds in a crowd, for as long as it likes if it has the lowest priority among
 * its own. The engine has deadlines to keep. So a copy of it looks, and may wait.
 */
#ifndef BELLJAR_HELPER_LOOKER_H
#define BELLJAR_HELPER_LOOKER_H

#include "base/loop.h"
#include "helper/meter.h"
#include "base/reap/reap.h"

/* What is asked for is a look, knowing this. */
struct looker_question {
	uint64_t first_written_bytes; /* see struct meter */
};

/* What the looker has seen. */
struct looker_answer {
	enum meter_progress progress;
	struct meter_reading reading;
	uint64_t weight;       /* of all memory, shared pages counted once; 0: it was not weighed */
	uint64_t excess_bytes; /* by how much the last look was above the last weighing */
	uint64_t seen_threads; /* of a look that was given up */
	unsigned hidden_rounds;
	pid_t hidden_pid;
	uint64_t spent_ns; /* of a processor, on this look */
};

/* In the looker: look once. */
typedef void looker_look(void *owner, const struct looker_question *question, struct looker_answer *answer);
/* In the engine: an answer. NULL: the looker is gone, and there will be none. */
typedef void looker_function(void *owner, const struct looker_answer *answer);

struct looker;

/* Make one. It keeps the descriptors of @meter and no others, and answers each question with @look. 0 or a negative errno. */
int helper_looker_new(struct loop *loop, struct reap_family *family, const struct meter *meter, looker_look *look,
		      looker_function *function, void *owner, struct looker **out);
/* The next question; only after the answer to the last one. 0 or a negative errno. */
int helper_looker_ask(struct looker *looker, const struct looker_question *question);
/* Does it wait for somebody else, and not only for a processor? */
bool helper_looker_is_blocked(const struct looker *looker);
/* End it; what that takes is done from the loop. */
void helper_looker_free(struct looker *looker);

#endif
