/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_job.c - one command: survey, plan, run, end
 *
 * A plan uses facts about the host that would take time to prove. If the run shows one of them to be wrong, the
 * job makes another plan without it and starts again, before the door receives anything. That is why the run
 * reports its end here, and everything else directly to the door. The job frees nothing from within a callback
 * of the run: a timer of 0 leaves it first.
 */
#include "engine/engine_job.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>

#include "engine/engine_failure.h"
#include "engine/engine_redact.h"
#include "survey/survey_match.h"
#include "survey/survey_watch.h"
#include "engine/jar/jar.h"
#include "base/sys/calls.h"

static void job_begin(struct job *job);

const struct plan *engine_job_plan(const struct job *job)
{
	return job->launch.has_plan ? &job->launch.plan : NULL;
}

const struct observation *engine_job_seen(const struct job *job)
{
	return job->run ? run_observation(job->run) : NULL;
}

static const struct engine_workspaces *workspaces_of(const struct job *job)
{
	return job->jar.session ? job->jar.workspaces : &job->launch.workspaces;
}

struct result_source engine_job_result(const struct job *job)
{
	return (struct result_source){
		.plan = engine_job_plan(job),
		.seen = engine_job_seen(job),
		.error = &job->launch.error,
		.capture = job->run ? run_capture(job->run) : NULL,
		.risky = &job->search.risky,
		.workspaces = &workspaces_of(job)->seen,
	};
}

/* --- the end ------------------------------------------------------------------------------------------------ */

static const struct host *host_of(const struct job *job)
{
	return job->jar.session ? job->jar.host : &job->launch.host;
}

static void job_on_searched(void *owner)
{
	struct job *job = owner;

	survey_find_unhidden(host_of(job), &job->search.risky);
	engine_workspaces_look(job->jar.session ? job->jar.workspaces : &job->launch.workspaces, !job->jar.is_kept);
	engine_redact_error(job->launch.policy, job->launch.environment, run_error(job->run));
	job->is_over = true;
	job->over(job);
}

/*
 * Check Belljar's own files. No command can write to them by a path that Belljar knows, on any rung; but it may by
 * another name of the file, and so may another program. The next run might execute anything then, so this run fails.
 */
static void job_check_own(struct job *job)
{
	const char *changed = survey_own_changed(host_of(job), job->launch.policy, &job->own);
	struct error error = {0};

	if (!changed)
		return;
	error_set(&error, STAGE_ISOLATE, EPERM, "Belljar's own '%s' changed or appeared while the command ran",
		  changed);
	error_hint(&error, "if you did not do that, remove it and install Belljar again, where no command can write");
	run_breach(job->run, &error);
}

static void job_on_lifted(void *owner, const struct error *error)
{
	struct job *job = owner;

	if (job->run && !job->is_over)
		run_breach(job->run, error);
}

/* Check that the jar's hidden files stayed covered. */
static void job_check_guard(struct job *job)
{
	struct error error = {0};

	if (engine_guard_is_lifted(job->jar.session ? job->jar.guard : &job->guard, &error))
		run_breach(job->run, &error);
}

/* The directory was empty before the run, so only files that exist now need a helper. */
static void job_begin_late(struct job *job)
{
	struct launch *launch = &job->launch;

	if (!launch->was_empty || !engine_may_leave_risks(&launch->host) || survey_is_empty(&launch->host))
		return;
	if (engine_project_open(&launch->project, launch->helpers, &launch->host) == 0)
		engine_search_begin(&job->search, &launch->project, engine_baseline_empty(&launch->project));
	if (!job->search.baseline)
		job->search.risky.unsearched = RISKY_IS_LOST;
}

/* On rungs without mounts nothing was read-only. */
static void job_search(struct job *job)
{
	job_begin_late(job);
	engine_search_end(&job->search, job->launch.plan.rung == RUNG_NAMESPACE && job->launch.policy->has_protect,
			  job_on_searched, job);
}

static void job_on_later(struct loop_timer *timer)
{
	struct job *job = timer->owner;
	const struct plan *plan = &job->launch.plan;
	bool is_searching;

	if (job->run && !job->jar.session && engine_launch_is_corrected(&job->launch, engine_job_seen(job))) {
		run_free(job->run);
		job->run = NULL;
		job_begin(job);
		return;
	}
	engine_redact_error(job->launch.policy, job->launch.environment, &job->launch.error);
	if (!job->run) {
		job->is_over = true;
		job->over(job);
		return;
	}
	/* The helper searches while the engine checks its own. */
	is_searching = job->search.baseline;
	if (is_searching)
		job_search(job);
	engine_failure_explain(plan, engine_job_seen(job), run_error(job->run));
	job_check_own(job);
	job_check_guard(job);
	if (!is_searching)
		job_search(job);
}

static void job_finish_later(struct job *job)
{
	loop_arm(job->loop, &job->later, 0, job_on_later, job);
}

static void job_on_done(void *owner, struct run *run)
{
	(void)run;
	job_finish_later(owner);
}

/* --- the beginning ------------------------------------------------------------------------------------------ */

int engine_job_set_command(struct job *job, char *const *command, size_t count, bool is_shell_string,
			   struct error *error)
{
	int rc = 0;

	if (is_shell_string) {
		rc = string_list_add(&job->argv, "/bin/sh");
		if (rc == 0)
			rc = string_list_add(&job->argv, "-c");
	}
	for (size_t i = 0; i < count && rc == 0; i++)
		rc = string_list_add(&job->argv, command[i]);
	return rc < 0 ? error_set(error, STAGE_ENGINE, ENOMEM, "out of memory") : 0;
}

static int job_start_run(struct launch *launch, void *owner)
{
	struct job *job = owner;

	job->request.plan = &launch->plan;
	job->request.jar = job->jar.session;
	job->request.listener.owner = job;
	job->request.listener.done = job_on_done;
	engine_workspaces_tidy_soon(&launch->workspaces, job->loop);
	return run_start(job->loop, &job->request, &job->run, &launch->error);
}

/*
 * The mount over a protected file goes as the one over a hidden file does. To end a jar for each `git config` of the host would be too
 * hard; a new jar protects the new file.
 */
static void say_what_is_unprotected(struct job *job)
{
	const struct host_path_list *list = &job->jar.host->workdir.protected;
	struct plan *plan = &job->launch.plan;

	for (size_t i = 0; i < list->count && job->jar.plan->rung == RUNG_NAMESPACE; i++) {
		const struct host_path *path = &list->items[i];
		struct plan_remark *remark;
		struct stat status;

		if ((path->kind != PATH_DIRECTORY && path->kind != PATH_FILE) ||
		    (lstat(path->path, &status) == 0 && status.st_dev == path->device && status.st_ino == path->inode))
			continue;
		remark =
			string_list_add_format(
				&plan->strings,
				"this jar no longer protects '%s': a program of the host replaced, moved or removed it",
				path->path) < 0
				? NULL
				: list_add(&plan->missing);
		if (remark)
			*remark = (struct plan_remark){"protect", plan->strings.items[plan->strings.count - 1],
						       "open a new jar"};
	}
}

static int job_start_in_jar(struct job *job)
{
	struct launch *launch = &job->launch;
	int rc;

	if (engine_guard_is_lifted(job->jar.guard, &launch->error))
		return -ESTALE;
	job->joined_host = *job->jar.host;
	job->joined_host.environment = launch->environment;
	/* A call is a fork of the jar's own program. */
	if (plan_is_for_calls(job->jar.plan))
		launch->request.argv = &job->jar.plan->core.argv;
	launch->request.runs_beside = jar_run_count(job->jar.session);
	rc = plan_compile_run(&launch->plan, job->jar.plan, launch->policy, &job->joined_host, &launch->request,
			      &launch->error);
	launch->has_plan = rc == 0;
	if (rc == 0 && launch->policy->has_protect && !job->jar.host->has_workdir_layer)
		say_what_is_unprotected(job);
	return rc < 0 ? rc : job_start_run(launch, job);
}

/* The watch comes before the mounts: they compare what they cover with what the survey saw. */
static int job_start_own_jar(struct job *job)
{
	struct launch *launch = &job->launch;
	int rc;

	engine_guard_close(&job->guard);
	rc = engine_guard_open(&job->guard, job->loop, &launch->host, launch->policy, job_on_lifted, job,
			       &launch->error);
	return rc < 0 ? rc : engine_launch_start(launch, job_start_run, job);
}

static void job_begin(struct job *job)
{
	int rc = job->jar.session ? job_start_in_jar(job) : job_start_own_jar(job);

	if (rc < 0)
		job_finish_later(job);
}

/*
 * Get the baseline of this run. The survey of a new jar has just made one. An existing jar was surveyed when it
 * was made, and earlier runs may have changed everything since.
 */
static void job_begin_search(struct job *job)
{
	const struct launch *launch = &job->launch;
	struct engine_baseline *baseline = job->search.baseline;

	if (!baseline && launch->baseline && engine_may_leave_risks(host_of(job)))
		baseline = engine_baseline_hold(launch->baseline);
	engine_search_begin(&job->search, job->jar.project ? job->jar.project : &launch->project, baseline);
}

/* Do what was asked for before there was a run. */
static void job_catch_up(struct job *job)
{
	struct job_held held = job->held;

	job->held = (struct job_held){0};
	if (!job->run || job->is_over)
		return;
	if (held.is_input_held)
		run_hold_input(job->run, true);
	if (held.signal_number)
		run_signal(job->run, held.signal_number);
	for (unsigned i = 0; i < held.cancels; i++)
		run_cancel(job->run, held.cancel_number);
}

static void job_go_on(struct job *job)
{
	job_begin_search(job);
	job_begin(job);
	job_catch_up(job);
}

static void job_on_surveyed(void *owner, int rc)
{
	struct job *job = owner;

	if (rc < 0) {
		job_finish_later(job);
		return;
	}
	if (job->choose)
		job->choose(job);
	survey_own_look(host_of(job), job->launch.policy, &job->own);
	job_go_on(job);
}

/* The helper has looked before the run, so the command's changes are not in the baseline. */
static void job_on_looked(void *owner, struct unpack *answer)
{
	(void)answer; /* without a helper the search says that there was none */
	job_go_on(owner);
}

static void job_wait_for_look(struct job *job)
{
	job->question.answered = job_on_looked;
	job->question.owner = job;
	/* Held at once: other runs in the jar may give it another one meanwhile. */
	if (job->jar.baseline)
		job->search.baseline = engine_baseline_hold(job->jar.baseline);
	if (job->search.baseline)
		engine_helper_tell(job->search.baseline->helper, HELPER_SYNC, &job->question, NULL, 0);
	survey_own_look(host_of(job), job->launch.policy, &job->own);
	if (!job->search.baseline)
		job_go_on(job);
}

void engine_job_start(struct job *job)
{
	job->launch.request = (struct plan_request){
		.argv = &job->argv,
		.is_captured = job->request.is_captured,
		.has_pty = job->request.has_pty,
		.input_name = job->input_name,
		.input = job->input,
	};
	if (job->launch.error.stage != STAGE_NONE)
		job_finish_later(job);
	else if (job->jar.session)
		job_wait_for_look(job);
	else
		engine_launch_survey_soon(&job->launch, job_on_surveyed, job);
}

void engine_job_done(struct job *job)
{
	loop_disarm(&job->later);
	engine_question_done(&job->question);
	engine_search_done(&job->search);
	run_free(job->run);
	job->run = NULL;
	engine_guard_close(&job->guard);
	engine_launch_done(&job->launch);
	string_list_done(&job->argv);
	survey_own_marks_done(&job->own);
}

/* --- meddling with it --------------------------------------------------------------------------------------- */

void engine_job_go(struct job *job)
{
	job->request.is_held = false;
	if (job->run && !job->is_over)
		run_go(job->run);
}

void engine_job_cancel(struct job *job, int signal_number)
{
	if (job->run && !job->is_over)
		run_cancel(job->run, signal_number);
	else if (!job->run && job->held.cancels < 2) {
		job->held.cancels++;
		job->held.cancel_number = signal_number;
	}
}

void engine_job_kill(struct job *job)
{
	engine_job_cancel(job, SIGKILL);
	engine_job_cancel(job, SIGKILL); /* the second one does not wait for the grace */
}

void engine_job_signal(struct job *job, int signal_number)
{
	if (job->run && !job->is_over)
		run_signal(job->run, signal_number);
	else if (!job->run)
		job->held.signal_number = signal_number;
}

void engine_job_resize(struct job *job, const struct winsize *window)
{
	if (job->run)
		run_resize(job->run, window);
	else
		job->request.window = *window;
}

void engine_job_answer(struct job *job, uint32_t id, enum net_answer answer)
{
	if (job->run)
		run_answer(job->run, id, answer);
}

void engine_job_hold_input(struct job *job, bool is_held)
{
	if (job->run && !job->is_over)
		run_hold_input(job->run, is_held);
	else
		job->held.is_input_held = is_held;
}
