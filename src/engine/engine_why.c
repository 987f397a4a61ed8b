/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_why.c - say whether a command may do something, by which rule, and the smallest change
 *
 * plan/explain/plan_explain.h gives the answer. This file makes the plan, surveys the host if the answer
 * depends on it, and writes the answer in words or JSON.
 */
#include "engine/engine_why.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/paths.h"
#include "engine/engine_job.h"
#include "survey/survey_names.h"
#include "helper/ledger_look.h"
#include "plan/explain/plan_explain.h"

/* --- answers ------------------------------------------------------------------------------------------------ */

struct answer {
	const char *question;
	const char *access;
	const char *kind;
	const struct plan_explanation *explanation;
};

static void write_words(const struct answer *answer, struct text *out)
{
	const struct plan_explanation *explanation = answer->explanation;

	text_append_format(out, "%s: %s", explanation->is_allowed ? "allowed" : "refused", answer->question);
	if (!strcmp(answer->kind, "file"))
		text_append_format(out, " (%s)", answer->access);
	text_append_format(out, ": %s\n", text_string(&explanation->why));
	if (explanation->flag.len)
		text_append_format(out, "  allowed with: %s\n  as a policy:  %s\n", text_string(&explanation->flag),
				   text_string(&explanation->policy));
	if (explanation->warning.len)
		text_append_format(out, "  note: %s\n", text_string(&explanation->warning));
}

static void write_json(const struct answer *answer, struct text *out)
{
	struct json_writer writer = {.text = out};

	json_open_object(&writer, NULL);
	json_write_string(&writer, "kind", answer->kind);
	json_write_string(&writer, "what", answer->question);
	json_write_string(&writer, "access", answer->access);
	json_write_bool(&writer, "allowed", answer->explanation->is_allowed);
	json_write_string(&writer, "why", text_string(&answer->explanation->why));
	plan_write_cure(answer->explanation, &writer, "cure");
	json_write_string(&writer, "warning",
			  answer->explanation->warning.len ? text_string(&answer->explanation->warning) : NULL);
	json_close_object(&writer);
	text_append_char(out, '\n');
}

static void write_answer(const struct answer *answer, bool is_json, struct text *out)
{
	if (is_json)
		write_json(answer, out);
	else
		write_words(answer, out);
}

/* --- questions ---------------------------------------------------------------------------------------------- */

static struct plan_looker looker_of(const struct engine_request *request)
{
	const char *home = NULL;

	for (char *const *variable = request->environment; variable && *variable; variable++)
		if (!strncmp(*variable, "HOME=/", 6))
			home = *variable + 5;
	return helper_ledger_host(home);
}

static int explain_path(const struct engine_request *request, const struct plan *plan, const char *path,
			const char *access, bool is_json, struct text *out)
{
	struct plan_looker looker = looker_of(request);
	int rc = 0;

	for (int i = 0; i < PLAN_ACCESS_COUNT; i++) {
		AUTO(plan_explanation_done) struct plan_explanation explanation = {0};
		const struct answer answer = {path, plan_access_names[i], "file", &explanation};

		if (access && strcmp(access, plan_access_names[i]) != 0)
			continue;
		plan_explain_path(plan, &looker, path, (enum plan_access)i, &explanation);
		write_answer(&answer, is_json, out);
		if (access || i == PLAN_READ)
			rc = !explanation.is_allowed;
	}
	return rc;
}

static int explain_endpoint(const struct plan_network_rules *network, const struct plan_endpoint *endpoint,
			    const char *question, bool is_json, struct text *out)
{
	AUTO(plan_explanation_done) struct plan_explanation explanation = {0};
	const struct answer answer = {question, "connect", "net", &explanation};

	plan_explain_host(network, endpoint, &explanation);
	write_answer(&answer, is_json, out);
	return !explanation.is_allowed;
}

static int explain_host(const struct plan_network_rules *network, const char *question, bool is_json, struct text *out)
{
	struct plan_endpoint endpoint;

	if (!plan_read_endpoint(question, &endpoint))
		return -EINVAL;
	return explain_endpoint(network, &endpoint, question, is_json, out);
}

static int explain_call(const struct plan *plan, const char *question, bool is_json, struct text *out)
{
	AUTO(plan_explanation_done) struct plan_explanation explanation = {0};
	const struct answer answer = {question, "call", "syscall", &explanation};

	if (!plan_explain_call(plan, question, false, &explanation))
		return -ENOENT;
	write_answer(&answer, is_json, out);
	return !explanation.is_allowed;
}

/* A path has a slash in it; what is left is a call, if there is one of that name, or a host. */
static int explain(const struct engine_request *request, const struct plan *plan, const char *question,
		   const char *access, bool is_json, struct text *out)
{
	struct plan_network_rules network = plan_network_rules(plan);
	int rc;

	network.is_asked = plan->gate.may_ask;
	if (question[0] == '/')
		return explain_path(request, plan, question, access, is_json, out);
	rc = explain_call(plan, question, is_json, out);
	return rc == -ENOENT ? explain_host(&network, question, is_json, out) : rc;
}

static struct launch launch_of(const struct engine_request *request)
{
	return (struct launch){
		.policy = request->policy,
		.environment = request->environment,
		.current_directory = request->current_directory,
		.is_plan_only = true,
		.is_rung_limited = request->is_rung_limited,
		.rung_max = request->rung_max,
	};
}

static int refuse_question(const char *question, struct error *error)
{
	error_set(error, STAGE_USAGE, 0, "'%s' is neither a path, nor a host and port, nor a system call", question);
	return error_hint(error, "a path begins with '/', './' or '~/'; a host is HOST:PORT");
}

/* The plan of a jar with these options, whatever runs in it. */
static int make_plan(const struct engine_request *request, struct job *job, struct error *error)
{
	static char *command[] = {(char *)"true", NULL};
	struct launch *launch = &job->launch;
	int rc = engine_job_set_command(job, command, 1, false, &launch->error);

	launch->request = (struct plan_request){.argv = &job->argv, .is_captured = request->mode == ENGINE_JSON};
	if (rc == 0)
		rc = engine_launch_survey(launch);
	/* A layer is planned, and not made. */
	if (rc == 0 && engine_workspaces_pretend(&launch->host, launch->environment) < 0)
		rc = error_set(&launch->error, STAGE_ENGINE, ENOMEM, "out of memory");
	if (rc == 0)
		rc = engine_launch_compile(launch);
	if (rc < 0)
		*error = launch->error;
	return rc;
}

int engine_why(const struct engine_request *request, const char *question, const char *access, bool is_json,
	       struct text *out, struct error *error)
{
	struct job job = {.launch = launch_of(request)};
	int rc = make_plan(request, &job, error);

	if (rc == 0)
		rc = explain(request, &job.launch.plan, question, access, is_json, out);
	if (rc == -EINVAL && error->stage == STAGE_NONE)
		refuse_question(question, error);
	engine_job_done(&job);
	return rc;
}

int engine_why_host(const struct policy *policy, const char *question, const char *method, const char *path,
		    bool *is_answered, struct text *out, struct error *error)
{
	struct net_rule_list rules = {0};
	struct plan_network_rules network = {policy->net, true, &rules, policy->ask == ASK_NET};
	struct plan_endpoint endpoint;
	struct net_refusal refusal;
	int rc = 0;

	for (size_t i = 0; i < policy->allow_net.count && rc == 0; i++) {
		struct net_rule *rule = list_add(&rules);

		if (!rule || net_rule_parse(policy->allow_net.items[i], rule, &refusal) < 0)
			rc = error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	}
	*is_answered = plan_read_endpoint(question, &endpoint) && endpoint.port;
	endpoint.method = method;
	endpoint.path = path;
	if (rc == 0 && *is_answered)
		rc = explain_endpoint(&network, &endpoint, question, false, out);
	free(rules.items);
	return rc;
}

/* --- variables ----------------------------------------------------------------------------------------------- */

int engine_withheld_variables(const struct engine_request *request, struct string_list *out, struct error *error)
{
	struct job job = {.launch = launch_of(request)};
	int rc = make_plan(request, &job, error);

	for (char *const *variable = request->environment; rc == 0 && variable && *variable; variable++) {
		const char *end = strchr(*variable, '=');
		size_t len = end ? (size_t)(end - *variable) : 0;
		/* Propose no change that passes a secret or one of Belljar's own variables to a command. */
		bool is_passed = !len || plan_is_secret_variable(*variable, len) || !strncmp(*variable, "BELLJAR_", 8);

		for (size_t i = 0; !is_passed && i < job.launch.plan.core.env.count; i++)
			is_passed = !strncmp(job.launch.plan.core.env.items[i], *variable, len + 1);
		if (!is_passed)
			rc = string_list_add_format(out, "%.*s", (int)len, *variable);
	}
	engine_job_done(&job);
	return rc;
}

/* --- policies that say what they must do -------------------------------------------------------------------- */

static int explain_must(const struct engine_request *request, const struct plan *plan, const struct policy_must *must,
			const char *home, struct plan_explanation *out)
{
	struct plan_network_rules network = plan_network_rules(plan);
	struct plan_looker looker = looker_of(request);
	struct plan_endpoint endpoint;
	AUTO_TEXT path = {0};

	if (must->access) {
		text_append_format(&path, "%s%s", must->question[0] == '~' ? (home ? home : "/nonexistent") : "",
				   must->question + (must->question[0] == '~'));
		for (int i = 0; i < PLAN_ACCESS_COUNT; i++)
			if (!strcmp(must->access, plan_access_names[i]))
				plan_explain_path(plan, &looker, text_string(&path), (enum plan_access)i, out);
		return 0;
	}
	if (plan_explain_call(plan, must->question, false, out))
		return 0;
	if (!plan_read_endpoint(must->question, &endpoint))
		return -EINVAL;
	plan_explain_host(&network, &endpoint, out);
	return 0;
}

int engine_test_policy(const struct engine_request *request, const struct policy_must_list *musts, const char *name,
		       const char *home, struct text *out, struct error *error)
{
	struct job job = {.launch = launch_of(request)};
	int rc = make_plan(request, &job, error), broken = 0;

	for (size_t i = 0; rc == 0 && i < musts->count; i++) {
		AUTO(plan_explanation_done) struct plan_explanation explanation = {0};
		const struct policy_must *must = &musts->items[i];

		rc = explain_must(request, &job.launch.plan, must, home, &explanation);
		if (rc < 0) {
			error_set(error, STAGE_POLICY, 0,
				  "%s:%u:%u: '%s' is neither a path, nor a host and port, nor a system call", name,
				  must->line, must->column, must->question);
			break;
		}
		if (explanation.is_allowed == must->is_allowed)
			continue;
		broken = 1;
		text_append_format(out, "%s:%u:%u: %s: %s%s%s is %s: %s\n", name, must->line, must->column,
				   must->is_allowed ? "must_allow" : "must_deny", must->question,
				   must->access ? " " : "", must->access ? must->access : "",
				   explanation.is_allowed ? "allowed" : "refused", text_string(&explanation.why));
		if (explanation.flag.len)
			text_append_format(out, "  allowed with: %s\n", text_string(&explanation.flag));
	}
	engine_job_done(&job);
	return rc < 0 ? rc : broken;
}
