/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/serve/serve_request.c - read a request, and the policy it asks for
 */
#include "door/serve/serve_request.h"

#include <errno.h>
#include <string.h>

#include "policy/policy_build.h"
#include "door/serve/server_jar.h"

#define DEFAULT_TIMEOUT_NS 30000000000ULL
#define DEFAULT_MEMORY_BYTES (512ULL << 20)
#define DEFAULT_OUTPUT_BYTES (100ULL << 10)

static const char *home_of(char *const *environment)
{
	for (; environment && *environment; environment++)
		if (!strncmp(*environment, "HOME=/", 6))
			return *environment + 5;
	return NULL;
}

static struct policy_context cli_context_of(const struct request *request)
{
	return (struct policy_context){
		.current_directory = request->cwd,
		.home = home_of(request->environment),
	};
}

/* What every API has where neither policy nor keyword says, for a jar and what runs in it. */
static void apply_defaults(struct policy *policy)
{
	if (!policy_is_given(policy, "memory"))
		policy->limits.memory_bytes = DEFAULT_MEMORY_BYTES;
	if (!policy_is_given(policy, "redact_env"))
		policy->has_redact_env = true;
}

/*
 * The same for what depends on how one run is used. Output that no client keeps needs no bound. Of a run whose client
 * counts the time and output of each cell, the sum has none.
 */
static void apply_run_defaults(struct policy *policy, const struct request *request)
{
	if (request->has_cells)
		policy->limits.timeout_ns = LIMIT_NONE;
	else if (!policy_is_given(policy, "timeout"))
		policy->limits.timeout_ns = request->is_open_ended ? LIMIT_NONE : DEFAULT_TIMEOUT_NS;
	if (request->has_cells && !request->is_captured)
		policy->limits.output = (struct output_limit){LIMIT_NONE, {LIMIT_NONE, LIMIT_NONE}};
	else if (!policy_is_given(policy, "output"))
		policy->limits.output.total_bytes = request->is_captured ? DEFAULT_OUTPUT_BYTES : LIMIT_NONE;
}

static int load(struct policy *policy, const struct request *request, const struct policy_context *context,
		struct error *error)
{
	const struct json_value *value = request->policy;
	struct policy_context from_base = *context;

	if (!value || value->type == JSON_NULL)
		return 0;
	if (request->base)
		from_base.current_directory = request->base;
	if (value->type == JSON_STRING)
		return policy_load(policy, value->string.bytes, &from_base, error);
	if (value->type == JSON_OBJECT)
		return policy_load_value(policy, value, from_base.current_directory, context, error);
	return error_set(error, STAGE_POLICY, 0, "a policy must be the name of a preset, a file or an object, not %s",
			 json_type_name(value->type));
}

/* Begin with the preset, which is read once. */
static int begin_policy(struct server *server, const struct policy_context *context, struct policy *out,
			struct error *error)
{
	static const struct policy_context no_user = {.current_directory = "/"};

	if (!server->has_agent) {
		int rc = policy_init(&server->agent, &no_user, error);

		if (rc < 0)
			return rc;
		server->has_agent = true;
	}
	return policy_init_from(out, &server->agent, context, error);
}

static int read_policy(struct server *server, const struct request *request, struct policy *out, struct error *error)
{
	AUTO(policy_done) struct policy made = {0};
	struct policy_context context = cli_context_of(request);
	int rc;

	if ((request->cwd && request->cwd[0] != '/') || (request->base && request->base[0] != '/'))
		return error_set(error, STAGE_USAGE, 0, "'cwd' and 'base' must be absolute paths");
	rc = begin_policy(server, &context, &made, error);
	if (rc == 0)
		rc = load(&made, request, &context, error);
	if (rc == 0 && request->keys)
		rc = policy_append_value(&made, request->keys, &context, error);
	if (rc < 0)
		return rc;
	apply_defaults(&made);
	apply_run_defaults(&made, request);
	/* A client that answers questions implies "ask". */
	if (request->is_asked && !policy_is_given(&made, "ask")) {
		made.ask = ASK_NET;
		made.net = made.net == NET_NONE && !policy_is_given(&made, "net") ? NET_GATE : made.net;
	}
	*out = made;
	made = (struct policy){0};
	return 0;
}

/* The policy of a run in a jar: @jar's with the run's own @keys on top (NULL: none), and no limit above the jar's. */
static int read_run_policy(const struct request *request, const struct json_value *keys, const struct policy *jar,
			   enum policy_sharing sharing, struct policy *out, struct error *error)
{
	AUTO(policy_done) struct policy made = {0};
	struct policy_context context = cli_context_of(request);
	uint64_t named_keys;
	int rc;

	for (size_t i = 0; keys && i < keys->object.count; i++) {
		const struct policy_key *key = policy_key_by_name(keys->object.members[i].name);

		if (key && key->scope == SCOPE_JAR)
			return error_set(error, STAGE_POLICY, 0,
					 "%s: is fixed for the jar; a run in it cannot change it", key->name);
	}
	if (policy_copy(jar, &made) < 0)
		return error_set(error, STAGE_ENGINE, 0, "out of memory");
	made.given_keys = 0;
	rc = keys ? policy_append_value(&made, keys, &context, error) : 0;
	if (rc < 0)
		return rc;
	named_keys = made.given_keys;
	made.given_keys |= jar->given_keys;
	policy_hold(&made, jar, named_keys, sharing);
	apply_run_defaults(&made, request);
	*out = made;
	made = (struct policy){0};
	return 0;
}

/* RUN: the jar is for this run alone, and `run` may have keys that the owner of the jar did not choose. */
static int read_alone(struct server *server, const struct request *request, struct policy *out, struct error *error)
{
	AUTO(policy_done) struct policy jar = {0};
	int rc;

	if (!request->run_keys)
		return read_policy(server, request, out, error);
	rc = read_policy(server, request, &jar, error);
	return rc < 0 ? rc : read_run_policy(request, request->run_keys, &jar, SHARES_NOTHING, out, error);
}

int serve_request_read(struct server *server, enum request_kind kind, const struct server_jar *jar,
		       const struct wire_frame *frame, struct serve_request **out, struct error *error)
{
	struct serve_request *request = calloc(1, sizeof(*request));
	int rc;

	if (!request)
		return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	request->references = 1;
	rc = wire_request_parse(kind, frame->payload, frame->len, &request->wire, error);
	if (rc == 0)
		rc = jar ? read_run_policy(&request->wire, request->wire.keys, &jar->request->policy,
					   plan_is_for_calls(&jar->launch.plan) ? SHARES_FILES : SHARES_ALL,
					   &request->policy, error)
			 : read_alone(server, &request->wire, &request->policy, error);
	if (rc < 0)
		serve_request_release(request);
	else
		*out = request;
	return rc;
}

int serve_check_descriptors_sent(const struct wire_frame *frame, size_t expected, struct error *error)
{
	if (frame->fd_count == expected)
		return 0;
	return error_set(error, STAGE_ENGINE, EPROTO, "%zu descriptors came with the request, and it needs %zu",
			 frame->fd_count, expected);
}

struct serve_request *serve_request_hold(struct serve_request *request)
{
	request->references++;
	return request;
}

void serve_request_release(struct serve_request *request)
{
	if (!request || --request->references)
		return;
	text_done(&request->jar_key);
	policy_done(&request->policy);
	wire_request_done(&request->wire);
	free(request);
}
