/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/invocation.c - what the program was started with, and what follows from it
 */
#include "door/cli/invocation.h"

#include "doctor/doctor.h"

struct policy_context cli_context_of(const struct invocation *invocation)
{
	return (struct policy_context){
		.current_directory = invocation->current_directory,
		.home = invocation->home,
	};
}

struct engine_request cli_plan_request_of(const struct invocation *invocation, const struct policy *policy)
{
	return (struct engine_request){
		.policy = policy,
		.mode = ENGINE_PASS,
		.status_fd = -1,
		.stdin_choice = ENGINE_STDIN_NULL,
		.stdin_fd = -1,
		.environment = invocation->environment,
		.current_directory = invocation->current_directory,
	};
}

struct engine_request cli_question_of(const struct invocation *invocation, const struct policy *policy)
{
	struct engine_request request = cli_plan_request_of(invocation, policy);

	request.is_rung_limited = true;
	request.rung_max = doctor_best_rung();
	return request;
}
