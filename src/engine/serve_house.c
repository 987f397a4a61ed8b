/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/serve_house.c - a jar that runs are given to
 */
#include "engine/serve_house.h"

#include <errno.h>

#include "engine/engine_failure.h"
#include "policy/policy_build.h"
#include "sys/calls.h"

static void build(struct house *house);

static void check_dead(struct house *house)
{
	house->body.is_dead |= house->is_gone && !house->run_count; /* the server's end has said so before */
}

static void close_zygote_fds(struct house *house)
{
	while (house->zygote_fd_count)
		close_fd(&house->zygote_fds[--house->zygote_fd_count]);
}

static void on_later(struct loop_timer *timer)
{
	struct house *house = timer->owner;
	struct observation *seen = house->jar ? (struct observation *)kept_observation(house->jar) : NULL;

	/* What was made ahead for a run that went well has nothing to learn about the host: it just goes. */
	if (seen && !house->is_standing && house->making.kind == PLAN_KEPT &&
	    making_is_corrected(&house->making, seen)) {
		kept_free(house->jar);
		house->jar = NULL;
		build(house);
		return;
	}
	if (seen && !house->is_standing)
		engine_failure_explain(&house->making.plan, seen);
	if (seen)
		house->making.error = seen->error;
	house->is_gone = true;
	close_zygote_fds(house);
	house->gone(house);
	check_dead(house);
}

static void finish_later(struct house *house)
{
	loop_arm(house->body.server->loop, &house->later, 0, on_later, house);
}

static void on_ready(void *owner, struct kept_jar *jar)
{
	struct house *house = owner;

	(void)jar;
	house->is_standing = true;
	close_zygote_fds(house); /* it will not be made again */
	if (house->stands)
		house->stands(house);
}

static void on_gone(void *owner, struct kept_jar *jar)
{
	(void)jar;
	finish_later(owner);
}

static int open_jar(struct making *making, void *owner)
{
	struct house *house = owner;
	struct kept_request request = {
		.plan = &making->plan,
		.area = &house->body.server->area,
		.zygote_fds = house->zygote_fds,
		.zygote_fd_count = house->zygote_fd_count,
		.family = &house->body.server->family,
		.listener = {.owner = house, .ready = on_ready, .gone = on_gone},
	};

	return kept_open(house->body.server->loop, &request, &house->jar, &making->error);
}

static void build(struct house *house)
{
	if (making_start(&house->making, open_jar, house) < 0)
		finish_later(house);
}

void house_init(struct house *house, struct server *server, enum plan_kind kind, struct request *request,
		struct policy *policy)
{
	house->request = *request;
	*request = (struct request){0};
	house->policy = *policy;
	*policy = (struct policy){0};
	house->jar_number = server_take_number(server);
	house->making = (struct making){
		.policy = &house->policy,
		.environment = house->request.environment,
		.current_directory = house->request.cwd,
		.is_caller_elsewhere = true,
		.jar_number = house->jar_number,
		.kind = kind,
		.has_pool = true,
		.has_stamps = kind == PLAN_PREPARED,
	};
	server_add(server, &house->body);
}

int house_set_zygote(struct house *house, char *const *argv, int *fds, size_t fd_count)
{
	for (size_t i = 0; i < fd_count; i++)
		house->zygote_fds[house->zygote_fd_count++] = take_fd(&fds[i]);
	for (; *argv; argv++)
		if (string_list_add(&house->zygote, *argv) < 0)
			return -ENOMEM;
	house->making.request = (struct plan_request){.argv = &house->zygote};
	return 0;
}

static int take_host(struct house *house, struct host *host)
{
	house->making.host = *host;
	*host = (struct host){0};
	house->making.surveyed_ns = sys_monotonic_ns();
	return host_hand_on(&house->making.host, house->request.environment, house->jar_number);
}

void house_build(struct house *house, struct host *host)
{
	int rc = host ? take_host(house, host) : making_survey(&house->making);

	if (rc < 0)
		finish_later(house);
	else
		build(house);
}

void house_close(struct house *house)
{
	if (house->jar && !house->is_gone)
		kept_close(house->jar);
}

void house_done(struct house *house)
{
	loop_disarm(&house->later);
	kept_free(house->jar);
	close_zygote_fds(house);
	string_list_done(&house->zygote);
	making_done(&house->making);
	server_return_number(house->body.server, house->jar_number);
	policy_done(&house->policy);
	request_done(&house->request);
}

struct job_jar house_enter(struct house *house)
{
	house->run_count++;
	return (struct job_jar){house->jar, &house->making.plan, &house->making.host};
}

void house_leave(struct house *house)
{
	house->run_count--;
	check_dead(house);
}
