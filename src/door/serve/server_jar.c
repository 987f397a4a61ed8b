/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/serve/server_jar.c - a jar that runs are given to: a session, or prepared for one run
 */
#include "door/serve/server_jar.h"

#include <errno.h>

#include "inside/call/call.h"
#include "engine/engine_failure.h"
#include "base/sys/calls.h"

static void server_jar_try(struct server_jar *server_jar);

static void server_jar_check_dead(struct server_jar *server_jar)
{
	server_jar->object.is_dead |=
		server_jar->is_gone && !server_jar->run_count; /* the server's end has said so before */
}

static void close_zygote_fds(struct server_jar *server_jar)
{
	while (server_jar->zygote_fd_count)
		close_fd(&server_jar->zygote_fds[--server_jar->zygote_fd_count]);
}

static void server_jar_on_later(struct loop_timer *timer)
{
	struct server_jar *server_jar = timer->owner;
	const struct observation *seen = server_jar->jar ? jar_observation(server_jar->jar) : NULL;

	/* A prepared jar is not made again: the run before it went well, so the host has changed since. */
	if (seen && !server_jar->is_standing && server_jar->launch.kind != PLAN_PREPARED &&
	    engine_launch_is_corrected(&server_jar->launch, seen)) {
		jar_free(server_jar->jar);
		server_jar->jar = NULL;
		server_jar_try(server_jar);
		return;
	}
	if (seen)
		server_jar->launch.error = seen->error;
	if (seen && !server_jar->is_standing)
		engine_failure_explain(&server_jar->launch.plan, seen, &server_jar->launch.error);
	if (server_jar->breach.stage != STAGE_NONE)
		server_jar->launch.error = server_jar->breach;
	server_jar->is_gone = true;
	close_zygote_fds(server_jar);
	/* Close them first: gone() may start a run that needs them. */
	engine_workspaces_close(&server_jar->launch.workspaces);
	server_jar->gone(server_jar);
	server_jar_check_dead(server_jar);
}

static void server_jar_finish_later(struct server_jar *server_jar)
{
	loop_arm(server_jar->object.server->loop, &server_jar->later, 0, server_jar_on_later, server_jar);
}

static void server_jar_on_ready(void *owner, struct session *jar)
{
	struct server_jar *server_jar = owner;

	(void)jar;
	server_jar->is_standing = true;
	close_zygote_fds(server_jar); /* it will not be made again */
	if (server_jar->stands)
		server_jar->stands(server_jar);
}

static void server_jar_on_gone(void *owner, struct session *jar)
{
	(void)jar;
	server_jar_finish_later(owner);
}

static int open_jar(struct launch *launch, void *owner)
{
	struct server_jar *server_jar = owner;
	struct session_request request = {
		.plan = &launch->plan,
		.main = plan_is_for_calls(&launch->plan) ? call_first_main : NULL,
		.argv_memory = &server_jar->object.server->argv_memory,
		.zygote_fds = server_jar->zygote_fds,
		.zygote_fd_count = server_jar->zygote_fd_count,
		.family = &server_jar->object.server->family,
		.listener = {.owner = server_jar, .ready = server_jar_on_ready, .gone = server_jar_on_gone},
	};

	engine_workspaces_tidy_soon(&launch->workspaces, server_jar->object.server->loop);
	return jar_open(server_jar->object.server->loop, &request, &server_jar->jar, &launch->error);
}

/* Before any process of the jar can change something. A zygote begins with the jar. */
static void remember_baseline(struct server_jar *server_jar)
{
	const struct host *host = &server_jar->launch.host;

	if (server_jar->launch.kind == PLAN_PREPARED || server_jar->baseline)
		return;
	if (server_jar->launch.baseline && engine_may_leave_risks(host))
		server_jar->baseline = engine_baseline_hold(server_jar->launch.baseline);
	server_jar->has_unseen = server_jar->zygote.count;
}

static void server_jar_try(struct server_jar *server_jar)
{
	remember_baseline(server_jar);
	if (engine_launch_start(&server_jar->launch, open_jar, server_jar) < 0)
		server_jar_finish_later(server_jar);
}

void server_jar_init(struct server_jar *server_jar, struct server *server, enum plan_kind kind,
		     struct serve_request *request)
{
	server_jar->request = serve_request_hold(request);
	server_jar->jar_number = server_take_number(server);
	server_jar->launch = (struct launch){
		.policy = &request->policy,
		.environment = request->wire.environment,
		.prefixes = request->wire.prefixes,
		.current_directory = request->wire.cwd,
		.is_caller_elsewhere = true,
		.jar_number = server_jar->jar_number,
		.kind = kind,
		.helpers = &server->helpers,
	};
	server_add(server, &server_jar->object);
}

int server_jar_set_zygote(struct server_jar *server_jar, char *const *argv, int *fds, size_t fd_count)
{
	for (size_t i = 0; i < fd_count; i++)
		server_jar->zygote_fds[server_jar->zygote_fd_count++] = take_fd(&fds[i]);
	for (; *argv; argv++)
		if (string_list_add(&server_jar->zygote, *argv) < 0)
			return -ENOMEM;
	server_jar->launch.kind = PLAN_CALLS;
	server_jar->launch.request = (struct plan_request){.argv = &server_jar->zygote};
	return 0;
}

static int take_host(struct server_jar *server_jar, struct host *host)
{
	int rc;

	server_jar->launch.host = *host;
	*host = (struct host){0};
	server_jar->launch.surveyed_ns = sys_monotonic_ns();
	rc = survey_hand_on(&server_jar->launch.host, server_jar->request->wire.environment, server_jar->jar_number);
	/* Of the stores that no jar is to see, those of the run before are forgotten; the directory of all of them is the same. */
	return rc < 0 ? rc : engine_workspaces_find(&server_jar->launch.host, server_jar->request->wire.environment);
}

static void server_jar_on_lifted(void *owner, const struct error *error)
{
	struct server_jar *server_jar = owner;

	server_jar->breach = *error;
	server_jar_close(server_jar);
}

static int watch_over(struct server_jar *server_jar)
{
	struct launch *launch = &server_jar->launch;

	return engine_guard_open(&server_jar->guard, server_jar->object.server->loop, &launch->host, launch->policy,
				 server_jar_on_lifted, server_jar, &launch->error);
}

static void server_jar_on_surveyed(void *owner, int rc)
{
	struct server_jar *server_jar = owner;

	if (rc == 0 && server_jar->is_closed)
		rc = -ECANCELED;
	if (rc == 0)
		rc = watch_over(server_jar);
	if (rc < 0)
		server_jar_finish_later(server_jar);
	else
		server_jar_try(server_jar);
}

void server_jar_build(struct server_jar *server_jar, struct host *host)
{
	if (host)
		server_jar_on_surveyed(server_jar, take_host(server_jar, host));
	else
		engine_launch_survey_soon(&server_jar->launch, server_jar_on_surveyed, server_jar);
}

void server_jar_close(struct server_jar *server_jar)
{
	server_jar->is_closed = true;
	if (server_jar->jar && !server_jar->is_gone)
		jar_close(server_jar->jar);
}

void server_jar_give_up(struct server_jar *server_jar)
{
	server_jar_finish_later(server_jar);
}

void server_jar_done(struct server_jar *server_jar)
{
	loop_disarm(&server_jar->later);
	engine_search_done(&server_jar->search);
	engine_baseline_release(server_jar->baseline);
	survey_risky_done(&server_jar->risky);
	survey_risky_done(&server_jar->looked);
	engine_guard_close(&server_jar->guard);
	jar_free(server_jar->jar);
	close_zygote_fds(server_jar);
	string_list_done(&server_jar->zygote);
	engine_launch_done(&server_jar->launch);
	server_return_number(server_jar->object.server, server_jar->jar_number);
	serve_request_release(server_jar->request);
}

/* The one that knew the project may have been killed. */
static void find_helper_again(struct launch *launch)
{
	if (!launch->project.helper || !engine_helper_is_lost(launch->project.helper))
		return;
	engine_project_close(&launch->project);
	engine_project_open(&launch->project, launch->helpers, &launch->host);
}

/*
 * What the next search compares with. If only the host's programs have changed anything since the last one, that is
 * what there is now.
 */
static void refresh_baseline(struct server_jar *server_jar)
{
	struct engine_baseline *now = NULL;

	if (server_jar->baseline && !server_jar->has_unseen) {
		find_helper_again(&server_jar->launch);
		now = engine_baseline_new(&server_jar->launch.project, NULL);
	}
	if (now) {
		engine_baseline_release(server_jar->baseline);
		server_jar->baseline = now;
	}
	server_jar->has_unseen = true;
}

void server_jar_hold(struct server_jar *server_jar)
{
	server_jar->run_count++;
}

struct job_jar server_jar_enter(struct server_jar *server_jar)
{
	server_jar_hold(server_jar);
	refresh_baseline(server_jar);
	return (struct job_jar){
		.session = server_jar->jar,
		.plan = &server_jar->launch.plan,
		.host = &server_jar->launch.host,
		.workspaces = &server_jar->launch.workspaces,
		.project = server_jar->baseline ? &server_jar->launch.project : NULL,
		.baseline = server_jar->baseline,
		.guard = &server_jar->guard,
		.is_kept = server_jar->launch.kind != PLAN_PREPARED,
	};
}

void server_jar_leave(struct server_jar *server_jar)
{
	server_jar->run_count--;
	server_jar_check_dead(server_jar);
}

bool server_jar_is_searched(const struct server_jar *server_jar)
{
	return server_jar->baseline != NULL;
}

void server_jar_search(struct server_jar *server_jar, struct engine_search *search, void (*over)(void *owner),
		       void *owner)
{
	const struct plan *plan = &server_jar->launch.plan;
	struct engine_baseline *baseline =
		server_jar->baseline && server_jar->has_unseen ? engine_baseline_hold(server_jar->baseline) : NULL;

	engine_search_begin(search, &server_jar->launch.project, baseline);
	engine_search_end(search, plan->rung == RUNG_NAMESPACE && server_jar->launch.policy->has_protect, over, owner);
}

void server_jar_found(struct server_jar *server_jar, struct engine_search *search, bool has_more)
{
	if (!server_jar->baseline)
		return;
	survey_risky_merge(&server_jar->risky, &search->risky);
	if (search->next) {
		engine_baseline_release(server_jar->baseline);
		server_jar->baseline = engine_baseline_hold(search->next);
		server_jar->has_unseen = has_more;
	} else if (search->baseline) {
		/* Without an answer, or without memory: the next search compares with what there is now, or when a run begins. */
		server_jar->has_unseen = false;
		if (has_more)
			refresh_baseline(server_jar);
	}
}

void server_jar_searched(struct server_jar *server_jar, struct job *job, bool is_left)
{
	survey_risky_merge(&job->search.risky, &server_jar->looked);
	survey_risky_done(&server_jar->looked);
	server_jar_found(server_jar, &job->search, is_left || server_jar->run_count > 1);
}

void server_jar_looked(struct server_jar *server_jar, struct engine_search *search)
{
	survey_risky_merge(&server_jar->looked, &search->risky);
	server_jar_found(server_jar, search, true);
}

static void on_searched_last(void *owner)
{
	struct server_jar *server_jar = owner;

	server_jar_found(server_jar, &server_jar->search, false);
	server_jar->searched_last(server_jar);
}

void server_jar_search_last(struct server_jar *server_jar, void (*over)(void *owner))
{
	server_jar->searched_last = over;
	server_jar_search(server_jar, &server_jar->search, on_searched_last, server_jar);
}
