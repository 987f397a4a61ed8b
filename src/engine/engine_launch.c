/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_launch.c - survey, plan, start, and plan again
 */
#include "engine/engine_launch.h"

#include <errno.h>
#include <string.h>

#include "engine/engine_failure.h"
#include "engine/engine_secrets.h"
#include "survey/survey_cgroup.h"
#include "survey/survey_ids.h"
#include "survey/survey_watch.h"
#include "plan/plan_test.h"
#include "base/sys/calls.h"

static void limit_rung(const struct launch *launch, struct host *host)
{
	if (!launch->is_rung_limited)
		return;
	if (launch->rung_max < RUNG_NAMESPACE)
		host->has_user_namespaces = false;
	if (launch->rung_max < RUNG_LANDLOCK)
		host->landlock_abi = 0;
}

/* `belljar plan` shows a plan without a skeleton, as for the first jar of its kind. */
static bool may_use_skeleton(const struct launch *launch)
{
	const char *choice = survey_variable(launch->environment, "BELLJAR_CACHE");

	return launch->host.skeletons.kind == PATH_DIRECTORY && launch->host.has_user_namespaces &&
	       !launch->is_plan_only && !launch->has_no_cache && !(choice && !strcmp(choice, "off"));
}

static int prepare_survey(struct launch *launch)
{
	int rc = survey_probe(&launch->host, launch->environment, &launch->error);

	if (rc < 0)
		return rc;
	limit_rung(launch, &launch->host);
	if (launch->host.uid == 0)
		launch->host.jar_id = survey_jar_id(launch->jar_number);
	launch->host.is_caller_elsewhere = launch->is_caller_elsewhere;
	launch->host.prefixes = launch->prefixes;
	/* Find the directories that no jar may see first: the survey checks the directories above them. */
	if (skeletons_find(&launch->host) < 0 || engine_workspaces_find(&launch->host, launch->environment) < 0)
		return error_set(&launch->error, STAGE_ENGINE, ENOMEM, "out of memory");
	launch->host.has_skeleton = may_use_skeleton(launch);
	return 0;
}

static int look_at_host(struct launch *launch)
{
	int rc = prepare_survey(launch);

	return rc < 0 ? rc : survey_host(&launch->host, launch->policy, launch->current_directory, &launch->error);
}

static void forget_survey(struct launch *launch)
{
	engine_question_done(&launch->question);
	engine_baseline_release(take_ptr(launch->baseline));
	engine_project_close(&launch->project);
	launch->was_empty = false;
}

int engine_launch_survey(struct launch *launch)
{
	int rc = look_at_host(launch);

	if (rc == 0 && engine_workspaces_guard(&launch->host, launch->policy, launch->environment)) {
		survey_done(&launch->host);
		rc = look_at_host(launch);
	}
	launch->surveyed_ns = sys_monotonic_ns();
	return rc;
}

static void on_looked(void *owner, struct unpack *answer)
{
	struct launch *launch = owner;
	int rc;

	if (!answer) {
		rc = error_set(&launch->error, STAGE_ENGINE, EPIPE,
			       "the process that searches the work directory ended before it answered");
		error_hint(&launch->error, "try again");
	} else {
		rc = -(int)survey_unpack_number(answer);
		if (rc == 0)
			rc = survey_take_protected(answer, &launch->host);
		rc = survey_failed(rc, &launch->error);
	}
	launch->surveyed_ns = sys_monotonic_ns();
	launch->surveyed(launch->owner, rc);
}

/* The helper looks while the rest of the survey is made. */
static int survey_with_helper(struct launch *launch)
{
	int rc = prepare_survey(launch);

	if (rc == 0)
		rc = survey_writable(&launch->host, launch->policy, launch->current_directory, &launch->error);
	/* Kept helpers know more than one look shows. */
	if (rc == 0)
		launch->was_empty = !launch->helpers->idle_max && survey_is_empty(&launch->host);
	if (rc == 0 && survey_is_searched(&launch->host) && !launch->was_empty) {
		rc = engine_project_open(&launch->project, launch->helpers, &launch->host);
		if (rc == 0)
			launch->baseline = engine_baseline_new(&launch->project, &launch->question);
		if (rc < 0 || !launch->baseline)
			rc = error_set(&launch->error, STAGE_ENGINE, rc < 0 ? -rc : ENOMEM,
				       "cannot start the process that searches the work directory: %s",
				       strerror(rc < 0 ? -rc : ENOMEM));
	}
	return rc < 0 ? rc : survey_rest(&launch->host, launch->policy, &launch->error);
}

void engine_launch_survey_soon(struct launch *launch, launch_surveyed_function *surveyed, void *owner)
{
	int rc;

	launch->surveyed = surveyed;
	launch->owner = owner;
	launch->question.answered = on_looked;
	launch->question.owner = launch;
	rc = survey_with_helper(launch);
	if (rc == 0 && engine_workspaces_guard(&launch->host, launch->policy, launch->environment)) {
		forget_survey(launch);
		survey_done(&launch->host);
		rc = survey_with_helper(launch);
	}
	if (rc == 0 && launch->baseline)
		return;
	engine_question_done(&launch->question);
	launch->surveyed_ns = sys_monotonic_ns();
	surveyed(owner, rc);
}

static void forget_plan(struct launch *launch)
{
	plan_done(&launch->plan);
	launch->has_plan = false;
}

static int compile(struct launch *launch)
{
	if (launch->kind == PLAN_ONCE)
		return plan_compile(&launch->plan, launch->policy, &launch->host, &launch->request, &launch->error);
	return plan_compile_jar(&launch->plan, launch->kind, launch->policy, &launch->host,
				launch->request.argv ? &launch->request : NULL, &launch->error);
}

int engine_launch_compile(struct launch *launch)
{
	int rc;

	forget_plan(launch);
	/*
	 * Only now, because a run in an existing jar does not need it. And again after a correction: without
	 * namespaces a cgroup may have to hold a limit.
	 */
	if (survey_cgroups(&launch->host, launch->policy) < 0)
		return error_set(&launch->error, STAGE_ENGINE, ENOMEM, "out of memory");
	/* The jar's own authority is in files that are planned. A plan that lacks something else fails without it. */
	if (!launch->is_plan_only && launch->host.trust.program && launch->host.trust.source) {
		rc = engine_vault_make(&launch->vault, &launch->host, launch->policy, &launch->error);
		if (rc < 0)
			return rc;
	}
	rc = compile(launch);
	if (rc == 0)
		rc = engine_secrets_check(&launch->plan, &launch->host, launch->policy, &launch->error);
	if (rc < 0)
		forget_plan(launch);
	if (rc == 0 && launch->vault.is_made) {
		launch->plan.gate.vault_fd = launch->vault.fd;
		launch->plan.gate.program_fd = launch->vault.program_fd;
		launch->plan.gate.has_vault = true;
	}
#ifdef BELLJAR_TEST_BUILD
	if (rc == 0)
		rc = plan_leave_out(&launch->plan, launch->environment, &launch->error);
#endif
	launch->has_plan = rc == 0;
	launch->planned_ns = sys_monotonic_ns();
	return rc;
}

static int compile_with_skeleton(struct launch *launch)
{
	int rc = engine_launch_compile(launch);

	if (rc < 0 || skeleton_open(&launch->skeleton, &launch->host, &launch->plan) == 0)
		return rc;
	launch->host.has_skeleton = false;
	return engine_launch_compile(launch);
}

int engine_launch_start(struct launch *launch, launch_start_function *start, void *owner)
{
	for (;;) {
		int rc = engine_workspaces_open(&launch->workspaces, &launch->host, launch->policy, &launch->stores,
						launch->environment, &launch->error);

		if (rc == 0)
			rc = compile_with_skeleton(launch);
		if (rc == 0)
			rc = start(launch, owner);
		if (rc == 0 || !launch->has_plan ||
		    !engine_failure_corrects_host_start(&launch->plan, &launch->error, &launch->host))
			return rc;
		launch->error = (struct error){0}; /* each time with one fact less: it ends */
		launch->corrections++;
	}
}

bool engine_launch_is_corrected(struct launch *launch, const struct observation *seen)
{
	bool had_skeleton = launch->host.has_skeleton;

	if (!engine_failure_corrects_host(&launch->plan, seen, &launch->host))
		return false;
	if (had_skeleton && !launch->host.has_skeleton && seen->error.errno_value != ESTALE &&
	    seen->error.errno_value != ENOENT)
		skeleton_refuse(&launch->skeleton, &launch->host, &launch->plan);
	launch->corrections++;
	return true;
}

void engine_launch_done(struct launch *launch)
{
	forget_survey(launch);
	forget_plan(launch);
	skeleton_close(&launch->skeleton);
	engine_vault_done(&launch->vault);
	engine_workspaces_close(&launch->workspaces);
	string_list_done(&launch->stores);
	survey_done(&launch->host);
}
