/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/mcp/mcp_jars.c - the jars that tools work in: opened when needed, closed when unused for long
 *
 * A client of the newer protocol has no session: what must last between calls has a name, which the server makes up and the client
 * passes on. Names cannot be guessed: clients of HTTP that have no session share a server, and a name is all that tells them apart.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "door/mcp/mcp_server.h"
#include "door/mcp/mcp_tighten.h"

/* The jar of calls that name none. */
#define OWN_NAME "main"
#define SWEEP_NS ((uint64_t)30 * 1000000000)

int mcp_make_jar_name(char *name)
{
	snprintf(name, MCP_NAME_SIZE, "jar-");
	return mcp_make_mark(name + 4) && mcp_make_mark(name + 4 + MCP_MARK_SIZE - 1) ? 0 : -EIO;
}

/* Once for all; the client may be one that only wants to know what there is. */
static int open_engine(struct mcp_server *server, struct belljar_error **error)
{
	struct belljar_engine_options options = {
		.size = sizeof(options),
		.program = server->options->engine ? server->options->engine : "/proc/self/exe",
	};

	return server->engine ? 0 : belljar_engine_open(&options, &server->engine, error);
}

/* Report whether there is room for another jar of this kind. */
static bool has_room(const struct mcp_server *server, bool is_for_one_call)
{
	return is_for_one_call ? server->brief_jar_count < MCP_CALLS_MAX : server->jar_count < MCP_JARS_MAX;
}

static void free_jar(struct mcp_jar *jar)
{
	if (!jar)
		return;
	redactor_free(jar->redactor);
	string_list_done(&jar->tightened);
	free(jar->shown);
	free(jar);
}

/* Make the jar's redactor and its name. */
static int prepare(struct mcp_jar *jar, const struct mcp_options *options, const struct policy *policy,
		   const char *name, struct error *error)
{
	if (options->make_redactor && options->make_redactor(policy, options->environment, &jar->redactor, error) < 0)
		return -EINVAL;
	if (name)
		snprintf(jar->name, sizeof(jar->name), "%s", name);
	else if (mcp_make_jar_name(jar->name) < 0)
		return error_set(error, STAGE_ENGINE, EIO, "the kernel gives no random bytes for a name");
	return 0;
}

static struct mcp_jar *open_jar(const struct mcp_request *request, const struct policy *policy, const char *name)
{
	struct mcp_server *server = request->server;
	AUTO_TEXT document = {0};
	struct belljar_jar_options wanted = {
		.size = sizeof(wanted),
		.environment = (const char *const *)server->options->environment,
		.directory = server->options->context->current_directory,
	};
	bool is_for_one_call = server->options->is_shared && !server->options->only_jar;
	struct belljar_error *error = NULL;
	struct error failure = {0};
	struct mcp_jar *jar;

	if (!has_room(server, is_for_one_call)) {
		mcp_refuse(request, "%u jars are open, and no more can be; close one with jar_close",
			   is_for_one_call ? server->brief_jar_count : server->jar_count);
		return NULL;
	}
	policy_print(policy, &document, 0);
	wanted.policy = text_string(&document);
	jar = calloc(1, sizeof(*jar));
	if (!jar || text_failed(&document) || prepare(jar, server->options, policy, name, &failure) < 0) {
		free_jar(jar);
		mcp_refuse(request, "%s", failure.message[0] ? failure.message : "no memory for a jar");
		return NULL;
	}
	if (open_engine(server, &error) < 0 || belljar_jar_open(server->engine, &wanted, &jar->jar, &error) < 0) {
		mcp_refuse_error(request, error);
		belljar_error_free(error);
		free_jar(jar);
		/* A dead engine: the next call has a new one. Jars of the old one are gone and say so. */
		return NULL;
	}
	jar->is_for_one_call = is_for_one_call;
	jar->timeout_ns = policy->limits.timeout_ns;
	jar->output = (struct output_limit){LIMIT_NONE, {LIMIT_NONE, LIMIT_NONE}};
	if (policy_is_given(policy, "output"))
		jar->output = policy->limits.output;
	jar->used_ns = clock_ns();
	jar->next = server->jars;
	server->jars = jar;
	*(is_for_one_call ? &server->brief_jar_count : &server->jar_count) += 1;
	return jar;
}

void mcp_end_interpreters(struct mcp_jar *jar)
{
	for (size_t i = 0; i < LANGUAGE_COUNT; i++)
		mcp_interpreter_free(take_ptr(jar->interpreters[i]));
}

void mcp_close_jar(struct mcp_server *server, struct mcp_jar *jar)
{
	for (struct mcp_jar **at = &server->jars; *at; at = &(*at)->next)
		if (*at == jar) {
			*at = jar->next;
			break;
		}
	*(jar->is_for_one_call ? &server->brief_jar_count : &server->jar_count) -= 1;
	mcp_end_interpreters(jar);
	belljar_jar_close(jar->jar);
	free_jar(jar);
}

void mcp_close_brief_jars(struct mcp_server *server)
{
	struct mcp_jar *next;

	for (struct mcp_jar *jar = server->jars; jar && server->brief_jar_count; jar = next) {
		next = jar->next;
		if (jar->is_for_one_call && !jar->call_count)
			mcp_close_jar(server, jar);
	}
}

/* Close an engine that died, if no jar is left in it; the next call starts a new one. */
static void drop_engine(struct mcp_server *server)
{
	if (server->jars)
		return;
	belljar_engine_close(server->engine);
	server->engine = NULL;
}

bool mcp_is_alone(const struct mcp_request *request)
{
	const struct json_member *jar = request->arguments ? json_find(request->arguments, "jar") : NULL;

	return request->server->options->is_shared && (!jar || jar->value.type == JSON_NULL) &&
	       request->server->options->policy->workspace == WORKSPACE_DIRECT;
}

int mcp_start_alone(const struct mcp_request *request, struct belljar_command *command, struct belljar_handle **handle,
		    struct belljar_error **error)
{
	struct mcp_server *server = request->server;
	AUTO_TEXT document = {0};
	int rc;

	policy_print(server->options->policy, &document, 0);
	command->policy = text_string(&document);
	command->directory = server->options->context->current_directory;
	command->flags |= BELLJAR_CEILINGS;
	rc = text_failed(&document) ? -ENOMEM : open_engine(server, error);
	if (rc == 0)
		rc = belljar_start(server->engine, command, handle, error);
	if (rc < 0 && server->call_count <= 1)
		drop_engine(server);
	return rc;
}

static struct mcp_jar *jar_named(struct mcp_server *server, const char *name)
{
	for (struct mcp_jar *jar = server->jars; jar; jar = jar->next)
		if (!jar->is_for_one_call && !strcmp(jar->name, name))
			return jar;
	return NULL;
}

/* Closed by the engine, or gone with it. */
static bool has_ended(struct mcp_jar *jar)
{
	return belljar_jar_process(jar->jar, NULL) < 0;
}

/* Would a jar for one call leave a layer with changes that no other call could find? */
static bool is_layer_lost(const struct mcp_server *server)
{
	return server->options->is_shared && server->options->policy->workspace == WORKSPACE_COW;
}

struct mcp_jar *mcp_find_jar(const struct mcp_request *request)
{
	struct mcp_server *server = request->server;
	const char *name = OWN_NAME;
	struct mcp_jar *jar;

	if (!mcp_string(request, "jar", false, &name))
		return NULL;
	jar = jar_named(server, name);
	if (jar && !jar->call_count && has_ended(jar)) {
		mcp_close_jar(server, jar);
		jar = NULL;
		if (strcmp(name, OWN_NAME)) {
			mcp_refuse(request, "the jar '%s' has ended, and its state is gone; jar_open makes another",
				   name);
			return NULL;
		}
		drop_engine(server);
	}
	if (!jar && !strcmp(name, OWN_NAME) && is_layer_lost(server))
		mcp_refuse(
			request,
			"changes stay in a jar, and this call names none: open one with jar_open, and pass its name as 'jar'");
	else if (!jar && !strcmp(name, OWN_NAME))
		jar = open_jar(request, server->options->policy, OWN_NAME);
	else if (!jar)
		mcp_refuse(
			request,
			"there is no jar '%.60s'; jar_open makes one; the server closes a jar that no call uses for long",
			name);
	if (jar)
		jar->used_ns = clock_ns();
	return jar;
}

uint64_t mcp_sweep_ns(const struct mcp_options *options)
{
	return MAX_OF(MIN_OF(SWEEP_NS, options->idle_ns / 2), (uint64_t)1000000);
}

void mcp_sweep(struct loop_timer *timer)
{
	struct mcp_server *server = timer->owner;
	uint64_t now = clock_ns(), idle_ns = server->options->idle_ns;
	struct mcp_jar *next;

	for (struct mcp_jar *jar = server->jars; jar; jar = next) {
		next = jar->next;
		if (!jar->call_count && now - jar->used_ns > idle_ns)
			mcp_close_jar(server, jar);
	}
	loop_arm(server->loop, timer, now + mcp_sweep_ns(server->options), mcp_sweep, server);
}

/* --- tools -------------------------------------------------------------------------------------------------- */

static void answer_jar(const struct mcp_request *request, const struct mcp_jar *jar, const struct policy *policy)
{
	AUTO_RESULT result = {0};
	struct json_writer writer = {.text = &result.structured};
	const char *info = belljar_jar_info(jar->jar);
	AUTO_TEXT shown = {0};

	policy_print(policy, &shown, 0);
	json_open_object(&writer, NULL);
	json_write_string(&writer, "jar", jar->name);
	json_write_raw(&writer, "policy", text_string(&shown), shown.len);
	json_write_raw(&writer, "in_force", info, strlen(info));
	json_close_object(&writer);
	mcp_say(&result, "jar: %s", jar->name);
	mcp_say(&result, "policy: %s", text_string(&shown));
	mcp_say(&result, "in force: %s", info);
	mcp_answer(request->server, &request->asker, &result);
}

void mcp_tool_policy_show(struct mcp_request *request)
{
	struct mcp_jar *jar = mcp_find_jar(request);

	if (!jar)
		return;
	if (strcmp(jar->name, OWN_NAME)) {
		mcp_refuse(
			request,
			"jar_open reported what the jar '%s' allows; without 'jar' this tool reports what all jars may have",
			jar->name);
		return;
	}
	answer_jar(request, jar, request->server->options->policy);
}

static void refuse_tightening(const struct mcp_request *request, const struct error *error)
{
	AUTO_RESULT result = {.is_error = true};

	mcp_say(&result, "%s", error->message);
	if (error->hint[0])
		mcp_say(&result, "hint: %s", error->hint);
	mcp_answer(request->server, &request->asker, &result);
}

/* What the words about a limit, or about a place that cannot be written, ask for later. */
static void note_tightened(struct mcp_jar *jar, const struct json_value *tighten)
{
	for (size_t i = 0; tighten->type == JSON_OBJECT && i < tighten->object.count; i++)
		string_list_add(&jar->tightened, tighten->object.members[i].name);
}

void mcp_tool_jar_open(struct mcp_request *request)
{
	const struct json_member *tighten = request->arguments ? json_find(request->arguments, "tighten") : NULL;
	AUTO(policy_done) struct policy policy = {0};
	AUTO_TEXT document = {0};
	struct json_writer writer = {.text = &document};
	struct error error = {0};
	struct mcp_jar *jar;

	/* Each has a process of its own, unless there is no more room for one. */
	if (request->server->options->is_shared && !request->server->options->only_jar) {
		mcp_refuse(request, "%u jars are open, and no more can be; close one with jar_close", MCP_JARS_MAX);
		return;
	}
	if (policy_copy(request->server->options->policy, &policy) < 0) {
		mcp_refuse(request, "no memory for a policy");
		return;
	}
	if (tighten) {
		json_write_value(&writer, NULL, &tighten->value);
		if (mcp_tighten(&policy, text_string(&document), document.len, request->server->options->context,
				&error) < 0) {
			refuse_tightening(request, &error);
			return;
		}
	}
	jar = open_jar(request, &policy, request->server->options->only_jar);
	if (jar && tighten)
		note_tightened(jar, &tighten->value);
	if (jar)
		answer_jar(request, jar, &policy);
}

void mcp_tool_jar_close(struct mcp_request *request)
{
	AUTO_RESULT result = {0};
	struct json_writer writer = {.text = &result.structured};
	AUTO_FREE char *left = NULL;
	const char *name = NULL;
	struct mcp_jar *jar;

	if (!mcp_string(request, "jar", true, &name))
		return;
	jar = jar_named(request->server, name);
	if (!jar) {
		mcp_refuse(request, "there is no jar '%.60s'", name);
		return;
	}
	if (jar->call_count) {
		mcp_refuse(request, "%u calls are under way in the jar '%s'; cancel them, or wait for their end",
			   jar->call_count, name);
		return;
	}
	json_open_object(&writer, NULL);
	json_write_string(&writer, "jar", jar->name);
	json_write_bool(&writer, "closed", true);
	mcp_end_interpreters(jar);
	if (belljar_jar_finish(jar->jar, &left, NULL) == 0)
		mcp_tell_risky(&result, &writer, left, "risky");
	json_close_object(&writer);
	mcp_say(&result, "closed: %s", name);
	mcp_close_jar(request->server, jar);
	mcp_answer(request->server, &request->asker, &result);
}
