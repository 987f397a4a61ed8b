/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_making.h - from a policy to something that runs: survey, plan, start; and plan again if the host gives less
 *
 * Shared by whatever is made from a policy: a run in a jar of its own, a jar that is kept or prepared. Facts about the
 * host that proving would cost time are taken as they look; a refused step corrects them, and the plan is made again for
 * what is really there, as long as the policy accepts that. Nothing has run by then.
 */
#ifndef BELLJAR_ENGINE_ENGINE_MAKING_H
#define BELLJAR_ENGINE_ENGINE_MAKING_H

#include "plan/plan.h"
#include "run/observation.h"

/* Start what making->plan says: 0, or a negative errno with making->error set, and nothing running. */
struct making;
typedef int making_start_function(struct making *making, void *owner);

struct making {
	/* to be filled in; all borrowed */
	const struct policy *policy;
	char *const *environment;
	const char *current_directory; /* NULL: there is none */
	bool is_caller_elsewhere;      /* that directory is another process's: it is known by its name only */
	bool is_rung_limited;          /* treat what is above rung_max as absent */
	enum rung rung_max;
	unsigned jar_number; /* tells apart the jars that this process has at the same time */
	enum plan_kind kind; /* PLAN_RUN is not made here */
	bool has_stamps;     /* the jar may be made ahead: the survey looks closer at what such a jar copies */
	bool has_pool; /* this process will go on and make others: the jar gets nothing of its memory but the plan */
	struct plan_request request;
	/* results */
	struct host host;
	struct plan plan;
	bool has_plan;
	struct error error;
	unsigned corrections; /* how often a fact about the host turned out to be wrong */
	uint64_t surveyed_ns, planned_ns;
};

/* Look at the host. 0 or a negative errno, with making->error set. */
int making_survey(struct making *making);
/* Plan and start, with fewer facts each time that starting shows one to be wrong. */
int making_start(struct making *making, making_start_function *start, void *owner);
/* It was started and failed. True if that corrects the facts: free what was started, then making_start() again. */
bool making_is_corrected(struct making *making, const struct observation *seen);
int making_compile(struct making *making);
void making_done(struct making *making);

#endif
