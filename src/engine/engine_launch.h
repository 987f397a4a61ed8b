/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_launch.h - a launch takes a policy to something that runs: survey, plan, start, and plan again if need be
 *
 * A run in its own jar, a session and a prepared jar each have a launch. Some facts about the host would take
 * time to prove, so a launch assumes them. If the kernel then refuses a step, the launch corrects the fact and
 * plans again, if the policy accepts that. No command has run by then.
 */
#ifndef BELLJAR_ENGINE_ENGINE_LAUNCH_H
#define BELLJAR_ENGINE_ENGINE_LAUNCH_H

#include "engine/engine_search.h"
#include "engine/skeleton/skeleton.h"
#include "engine/engine_vault.h"
#include "engine/engine_workspace.h"
#include "plan/plan.h"
#include "engine/limits/observation.h"

/* Start launch->plan: 0, or a negative errno with launch->error set and nothing running. */
struct launch;
typedef int launch_start_function(struct launch *launch, void *owner);
/* Called after the survey of the host; @rc below 0: launch->error says why it failed. */
typedef void launch_surveyed_function(void *owner, int rc);

struct launch {
	/* to be filled in; all borrowed */
	const struct policy *policy;
	char *const *environment;
	char *const *prefixes;         /* of the caller's own interpreter; NULL: not said */
	const char *current_directory; /* NULL: there is none */
	bool is_caller_elsewhere;      /* another process's directory: only its name is known */
	bool is_rung_limited;          /* treat what is above rung_max as absent */
	enum rung rung_max;
	unsigned jar_number; /* tells apart the jars that this process has at the same time */
	enum plan_kind kind; /* PLAN_RUN is not made here */
	struct plan_request request;
	bool is_plan_only;              /* nothing will be started */
	struct string_list stores;      /* ids of those to go on with; owned. Else as the policy says */
	bool has_no_cache;              /* the jar makes its root itself */
	struct engine_helpers *helpers; /* for engine_launch_survey_soon() */
	/* results */
	struct host host;
	struct engine_workspaces workspaces; /* of the layers in the plan */
	struct plan plan;
	struct engine_skeleton skeleton; /* of the jar's root */
	struct vault vault;              /* of a jar whose requests the gate inspects */
	bool has_plan;
	struct error error;
	unsigned corrections; /* how often a fact about the host was wrong */
	uint64_t surveyed_ns, planned_ns;
	struct engine_project project;    /* what the helper knows of the host */
	struct engine_baseline *baseline; /* what the helper found; NULL: there is nothing to search, or it was taken */
	bool was_empty;                   /* there was nothing to search, and no helper looked */
	struct engine_question question;
	launch_surveyed_function *surveyed;
	void *owner;
};

/* Survey the host in this process, for a plan that is only printed. 0 or a negative errno, with launch->error set. */
int engine_launch_survey(struct launch *launch);
/* The same with a helper that finds protected files. Calls @surveyed at once or from within the loop. */
void engine_launch_survey_soon(struct launch *launch, launch_surveyed_function *surveyed, void *owner);
/* Plan and start; again, without the fact, each time that the start shows a fact to be wrong. */
int engine_launch_start(struct launch *launch, launch_start_function *start, void *owner);
/* After a failed start, correct the facts. True: free what was started, then call engine_launch_start() again. */
bool engine_launch_is_corrected(struct launch *launch, const struct observation *seen);
int engine_launch_compile(struct launch *launch);
void engine_launch_done(struct launch *launch);

#endif
