/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/wire/request.c - what the JSON of a frame asks for: one table of keys
 *
 * A row of the table `fields` says in which requests a key may stand, what type it has and where its value goes; the code
 * below only follows it. Values stay in the parsed document and are pointed at, so that a request of megabytes is not copied.
 */
#include "door/wire/request.h"

#include <errno.h>
#include <string.h>

#include "base/units.h"

/* Far more than arguments and environment of 4 MiB can have; policies have bounds of their own. */
#define ENTRIES_MAX ((size_t)1 << 20)
#define SIGNAL_MAX 64
#define FORKS_MAX 256

enum field_type {
	FIELD_VERSION,
	FIELD_ANY,
	FIELD_OBJECT,
	FIELD_STRING, /* or null */
	FIELD_STRINGS,
	FIELD_BOOL,
	FIELD_NUMBER,
	FIELD_WORD,
	FIELD_DURATION, /* a string as "500ms", a number of seconds, or null */
	FIELD_GROUP,    /* an object whose members are those of JOIN */
};

struct field {
	const char *name;
	enum field_type type;
	unsigned kinds; /* 1 << enum request_kind: where it may stand */
	size_t offset;
	const char *const *words; /* FIELD_WORD */
	int64_t least, most;      /* FIELD_NUMBER */
};

#define IN_RUN (1U << REQUEST_RUN)
#define IN_OPEN (1U << REQUEST_OPEN)
#define IN_JOIN (1U << REQUEST_JOIN)
#define IN_FILE (1U << REQUEST_FILE)
#define IN_ASK (1U << REQUEST_ASK)
#define IN_HELLO (1U << REQUEST_HELLO)
#define IN_CONNECT (1U << REQUEST_CONNECT)
#define IN_PROCESSES (1U << REQUEST_PROCESSES)
#define IN_KILL (1U << REQUEST_KILL)
#define IN_USAGE (1U << REQUEST_USAGE)
#define IN_NET (1U << REQUEST_NET)
#define IN_WORKSPACE (1U << REQUEST_WORKSPACE)
#define IN_LAYER (1U << REQUEST_LAYER)
#define IN_BOTH (IN_WORKSPACE | IN_LAYER)
#define IN_ALL ((1U << REQUEST_KIND_COUNT) - 1)
/* Members of `run`, which are members of JOIN itself. */
#define IN_GROUP (1U << REQUEST_KIND_COUNT)
#define AT(member) offsetof(struct request, member)

static const char *const stdin_words[] = {"null", "descriptor", "none", NULL};
static const char *const sink_words[] = {"none", "frames", "pipes", NULL};
static const char *const operation_words[] = {"read",  "write",  "list",   "watch", "stat",
					      "mkdir", "remove", "rename", NULL};
static const char *const change_words[] = {"allow", "deny", NULL};
static const char *const verb_words[] = {
	[REQUEST_SHOW] = "show",         [REQUEST_DIFF] = "diff",       [REQUEST_PATCH] = "patch",
	[REQUEST_APPLY] = "apply",       [REQUEST_DISCARD] = "discard", [REQUEST_CHECKPOINT] = "checkpoint",
	[REQUEST_ROLLBACK] = "rollback", [REQUEST_FORK] = "fork",       [REQUEST_VERB_COUNT] = NULL,
};
static const char *const question_words[] = {
	[REQUEST_CAPABILITIES] = "capabilities", [REQUEST_POLICY] = "policy", NULL};

static const struct field fields[] = {
	{.name = "version", .type = FIELD_VERSION, .kinds = IN_ALL & ~IN_HELLO},
	/* The answer to HELLO has the engine's version. */
	{.name = "version", .type = FIELD_ANY, .kinds = IN_HELLO, .offset = AT(hello)},
	{.name = "policy", .type = FIELD_ANY, .kinds = IN_RUN | IN_OPEN | IN_ASK, .offset = AT(policy)},
	{.name = "base", .type = FIELD_STRING, .kinds = IN_RUN | IN_OPEN | IN_ASK, .offset = AT(base)},
	{.name = "cwd", .type = FIELD_STRING, .kinds = IN_RUN | IN_OPEN | IN_WORKSPACE | IN_ASK, .offset = AT(cwd)},
	{.name = "keys", .type = FIELD_OBJECT, .kinds = IN_RUN | IN_OPEN | IN_JOIN | IN_ASK, .offset = AT(keys)},
	{.name = "keys", .type = FIELD_OBJECT, .kinds = IN_GROUP, .offset = AT(run_keys)},
	{.name = "environ",
	 .type = FIELD_STRINGS,
	 .kinds = IN_RUN | IN_OPEN | IN_JOIN | IN_WORKSPACE | IN_ASK,
	 .offset = AT(environment)},
	{.name = "ttl", .type = FIELD_DURATION, .kinds = IN_OPEN, .offset = AT(ttl_ns)},
	{.name = "prefixes", .type = FIELD_STRINGS, .kinds = IN_RUN | IN_OPEN | IN_ASK, .offset = AT(prefixes)},
	{.name = "run", .type = FIELD_GROUP, .kinds = IN_RUN},
	{.name = "zygote", .type = FIELD_STRINGS, .kinds = IN_OPEN, .offset = AT(argv)},
	{.name = "argv", .type = FIELD_STRINGS, .kinds = IN_JOIN | IN_GROUP, .offset = AT(argv)},
	{.name = "shell", .type = FIELD_BOOL, .kinds = IN_JOIN | IN_GROUP, .offset = AT(is_shell_string)},
	{.name = "stdin",
	 .type = FIELD_WORD,
	 .kinds = IN_JOIN | IN_GROUP,
	 .offset = AT(stdin_choice),
	 .words = stdin_words},
	{.name = "pty", .type = FIELD_BOOL, .kinds = IN_JOIN | IN_GROUP, .offset = AT(has_pty)},
	{.name = "rows", .type = FIELD_NUMBER, .kinds = IN_JOIN | IN_GROUP, .offset = AT(rows), .most = UINT16_MAX},
	{.name = "columns",
	 .type = FIELD_NUMBER,
	 .kinds = IN_JOIN | IN_GROUP,
	 .offset = AT(columns),
	 .most = UINT16_MAX},
	{.name = "sink", .type = FIELD_WORD, .kinds = IN_JOIN | IN_GROUP, .offset = AT(sink), .words = sink_words},
	{.name = "merge", .type = FIELD_BOOL, .kinds = IN_JOIN | IN_GROUP, .offset = AT(is_merged)},
	{.name = "capture", .type = FIELD_BOOL, .kinds = IN_JOIN | IN_GROUP, .offset = AT(is_captured)},
	{.name = "open_ended", .type = FIELD_BOOL, .kinds = IN_JOIN | IN_GROUP, .offset = AT(is_open_ended)},
	{.name = "held", .type = FIELD_BOOL, .kinds = IN_JOIN, .offset = AT(is_held)},
	{.name = "cells", .type = FIELD_BOOL, .kinds = IN_JOIN, .offset = AT(has_cells)},
	{.name = "detach", .type = FIELD_BOOL, .kinds = IN_JOIN, .offset = AT(is_detached)},
	{.name = "started", .type = FIELD_BOOL, .kinds = IN_JOIN | IN_GROUP, .offset = AT(is_start_told)},
	{.name = "events", .type = FIELD_BOOL, .kinds = IN_JOIN | IN_GROUP, .offset = AT(has_events)},
	{.name = "ask", .type = FIELD_BOOL, .kinds = IN_JOIN | IN_GROUP, .offset = AT(is_asked)},
	{.name = "extra",
	 .type = FIELD_NUMBER,
	 .kinds = IN_OPEN | IN_JOIN | IN_GROUP,
	 .offset = AT(extra_count),
	 .most = FRAME_MAX_EXTRA},
	{.name = "path", .type = FIELD_STRING, .kinds = IN_FILE, .offset = AT(path)},
	{.name = "op", .type = FIELD_WORD, .kinds = IN_FILE, .offset = AT(operation), .words = operation_words},
	{.name = "op", .type = FIELD_WORD, .kinds = IN_NET, .offset = AT(change), .words = change_words},
	{.name = "rule", .type = FIELD_ANY, .kinds = IN_NET, .offset = AT(rule)},
	{.name = "op", .type = FIELD_WORD, .kinds = IN_BOTH, .offset = AT(verb), .words = verb_words},
	{.name = "id", .type = FIELD_STRING, .kinds = IN_BOTH, .offset = AT(id)},
	{.name = "paths", .type = FIELD_STRINGS, .kinds = IN_BOTH, .offset = AT(paths)},
	{.name = "theirs", .type = FIELD_STRINGS, .kinds = IN_BOTH, .offset = AT(theirs)},
	{.name = "ours", .type = FIELD_STRINGS, .kinds = IN_BOTH, .offset = AT(ours)},
	{.name = "allow_risky", .type = FIELD_STRINGS, .kinds = IN_BOTH, .offset = AT(risky)},
	{.name = "note", .type = FIELD_STRING, .kinds = IN_BOTH, .offset = AT(note)},
	{.name = "checkpoint", .type = FIELD_STRING, .kinds = IN_BOTH, .offset = AT(checkpoint)},
	{.name = "count", .type = FIELD_NUMBER, .kinds = IN_BOTH, .offset = AT(count), .least = 1, .most = FORKS_MAX},
	{.name = "to", .type = FIELD_STRING, .kinds = IN_FILE, .offset = AT(to)},
	{.name = "parents", .type = FIELD_BOOL, .kinds = IN_FILE, .offset = AT(makes_parents)},
	{.name = "recursive", .type = FIELD_BOOL, .kinds = IN_FILE, .offset = AT(is_recursive)},
	{.name = "follow", .type = FIELD_BOOL, .kinds = IN_FILE, .offset = AT(follows_link)},
	{.name = "port", .type = FIELD_NUMBER, .kinds = IN_CONNECT, .offset = AT(port), .least = 1, .most = UINT16_MAX},
	{.name = "pid", .type = FIELD_NUMBER, .kinds = IN_KILL, .offset = AT(pid), .least = 1, .most = INT32_MAX},
	{.name = "signal", .type = FIELD_NUMBER, .kinds = IN_KILL, .offset = AT(signal), .most = SIGNAL_MAX},
	{.name = "mode", .type = FIELD_NUMBER, .kinds = IN_FILE, .offset = AT(mode), .most = 07777},
	{.name = "what", .type = FIELD_WORD, .kinds = IN_ASK, .offset = AT(question), .words = question_words},
};

static int refuse_member(const struct json_member *member, struct error *error, const char *expected)
{
	return error_set(error, STAGE_ENGINE, EINVAL, "malformed request: '%.60s' must be %s, not %s", member->name,
			 expected, json_type_name(member->value.type));
}

static int read_version(const struct json_member *member, struct error *error)
{
	if (member->value.type != JSON_INTEGER)
		return refuse_member(member, error, "a number");
	if (member->value.number.integer == WIRE_VERSION)
		return 0;
	error_set(error, STAGE_ENGINE, EPROTO, "this engine speaks version %d of the protocol, not %lld", WIRE_VERSION,
		  (long long)member->value.number.integer);
	return error_hint(error, "install the library and the program 'belljar' from one build");
}

static int read_strings(const struct json_member *member, char ***out, struct error *error)
{
	const struct json_value *value = &member->value;
	char **strings;

	if (value->type != JSON_LIST)
		return refuse_member(member, error, "a list of strings");
	for (size_t i = 0; i < value->list.count; i++)
		if (value->list.items[i].type != JSON_STRING)
			return refuse_member(member, error, "a list of strings");
	strings = calloc(value->list.count + 1, sizeof(*strings));
	if (!strings)
		return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	for (size_t i = 0; i < value->list.count; i++)
		strings[i] = value->list.items[i].string.bytes;
	*out = strings;
	return 0;
}

static int read_word(const struct json_member *member, const struct field *field, int *out, struct error *error)
{
	if (member->value.type != JSON_STRING)
		return refuse_member(member, error, "a word");
	for (int i = 0; field->words[i]; i++) {
		if (!strcmp(field->words[i], member->value.string.bytes)) {
			*out = i;
			return 0;
		}
	}
	return error_set(error, STAGE_ENGINE, EINVAL, "malformed request: '%s' cannot be '%.60s'", member->name,
			 member->value.string.bytes);
}

static int read_number(const struct json_member *member, const struct field *field, int64_t *out, struct error *error)
{
	int64_t number = member->value.type == JSON_INTEGER ? member->value.number.integer : -1;

	if (number < field->least || number > field->most)
		return error_set(error, STAGE_ENGINE, EINVAL,
				 "malformed request: '%s' must be a number from %lld to %lld", member->name,
				 (long long)field->least, (long long)field->most);
	*out = number;
	return 0;
}

static int read_duration(const struct json_member *member, uint64_t *out, struct error *error)
{
	const struct json_value *value = &member->value;
	bool is_number = value->type == JSON_INTEGER || value->type == JSON_REAL;
	const char *text = value->type == JSON_STRING ? value->string.bytes
			   : is_number                ? value->number.digits
			   : value->type == JSON_NULL ? "none"
						      : "";

	if (units_parse_duration(text, out) < 0 || *out == 0)
		return error_set(error, STAGE_POLICY, EINVAL,
				 "%s: '%.60s' is not a duration (such as 500ms, 30s, 5m, 1h)", member->name, text);
	return 0;
}

static int read_members(struct request *request, const struct json_value *object, unsigned kind, struct error *error);

static int read_field(struct request *request, const struct json_member *member, const struct field *field,
		      struct error *error)
{
	void *place = (char *)request + field->offset;
	const struct json_value *value = &member->value;
	int word;

	switch (field->type) {
	case FIELD_VERSION:
		return read_version(member, error);
	case FIELD_ANY:
		*(const struct json_value **)place = value;
		return 0;
	case FIELD_OBJECT:
		if (value->type != JSON_OBJECT)
			return refuse_member(member, error, "an object");
		*(const struct json_value **)place = value;
		return 0;
	case FIELD_STRING:
		if (value->type != JSON_STRING && value->type != JSON_NULL)
			return refuse_member(member, error, "a string");
		*(const char **)place = value->type == JSON_NULL ? NULL : value->string.bytes;
		return 0;
	case FIELD_STRINGS:
		return read_strings(member, place, error);
	case FIELD_BOOL:
		if (value->type != JSON_BOOL)
			return refuse_member(member, error, "a bool");
		*(bool *)place = value->boolean;
		return 0;
	case FIELD_NUMBER:
		return read_number(member, field, place, error);
	case FIELD_WORD:
		return read_word(member, field, field->offset ? place : &word, error);
	case FIELD_DURATION:
		return read_duration(member, place, error);
	case FIELD_GROUP:
		if (value->type != JSON_OBJECT)
			return refuse_member(member, error, "an object");
		return read_members(request, value, IN_GROUP, error);
	}
	return -EINVAL;
}

static int read_members(struct request *request, const struct json_value *object, unsigned kind, struct error *error)
{
	int rc = 0;

	for (size_t i = 0; i < object->object.count && rc == 0; i++) {
		const struct json_member *member = &object->object.members[i];
		const struct field *found = NULL;

		for (size_t j = 0; j < ARRAY_LEN(fields) && !found; j++)
			if (fields[j].kinds & kind && !strcmp(fields[j].name, member->name))
				found = &fields[j];
		rc = found ? read_field(request, member, found, error)
			   : error_set(error, STAGE_ENGINE, EINVAL, "malformed request: unknown key '%.60s'",
				       member->name);
	}
	return rc;
}

/* Check the members of an operation on files, besides `path`. */
static int check_file(const struct request *request, struct error *error)
{
	int operation = request->operation;
	const char *surplus = NULL;

	if (operation < 0)
		return error_set(error, STAGE_ENGINE, EINVAL, "malformed request: 'op' is missing");
	if (!request->path)
		return error_set(error, STAGE_ENGINE, EINVAL, "malformed request: 'path' is missing");
	if ((operation == REQUEST_RENAME) != !!request->to)
		return error_set(error, STAGE_ENGINE, EINVAL,
				 "malformed request: 'to' goes with 'rename', and only there");
	if (request->mode >= 0 && operation != REQUEST_WRITE && operation != REQUEST_MKDIR)
		surplus = "mode";
	if (request->makes_parents && operation != REQUEST_WRITE && operation != REQUEST_MKDIR)
		surplus = "parents";
	if (request->is_recursive && operation != REQUEST_REMOVE)
		surplus = "recursive";
	if (request->follows_link && operation != REQUEST_STAT)
		surplus = "follow";
	return surplus ? error_set(error, STAGE_ENGINE, EINVAL, "malformed request: '%s' does not go with '%s'",
				   surplus, operation_words[operation])
		       : 0;
}

/* Check the members of a request about a workspace, besides `id`. */
static int check_verb(const struct request *request, enum request_kind kind, struct error *error)
{
	int verb = request->verb;
	bool takes_paths =
		verb == REQUEST_DIFF || verb == REQUEST_PATCH || verb == REQUEST_APPLY || verb == REQUEST_DISCARD;
	const char *surplus = NULL;

	if (verb < 0)
		return error_set(error, STAGE_ENGINE, EINVAL, "malformed request: 'op' is missing");
	if (kind == REQUEST_WORKSPACE && !request->id)
		return error_set(error, STAGE_ENGINE, EINVAL, "malformed request: 'id' is missing");
	if ((verb == REQUEST_FORK) != !!request->count)
		return error_set(error, STAGE_ENGINE, EINVAL,
				 "malformed request: 'count' goes with 'fork', and only there");
	/* An empty list must not mean everything. */
	if (request->paths && !request->paths[0])
		return error_set(error, STAGE_ENGINE, EINVAL, "malformed request: 'paths' is empty");
	if (request->paths && !takes_paths)
		surplus = "paths";
	if ((request->theirs || request->ours || request->risky) && verb != REQUEST_APPLY)
		surplus = request->theirs ? "theirs" : request->ours ? "ours" : "allow_risky";
	if (request->note && verb != REQUEST_CHECKPOINT)
		surplus = "note";
	if (request->checkpoint && verb != REQUEST_ROLLBACK)
		surplus = "checkpoint";
	return surplus ? error_set(error, STAGE_ENGINE, EINVAL, "malformed request: '%s' does not go with '%s'",
				   surplus, verb_words[verb])
		       : 0;
}

/* Check for missing members, and for members that exclude each other. */
static int check_request(struct request *request, enum request_kind kind, struct error *error)
{
	if (!json_find(&request->document, "version"))
		return error_set(error, STAGE_ENGINE, EINVAL, "malformed request: 'version' is missing");
	for (char **at = request->argv; at && *at; at++)
		request->argument_count++;
	/* In a jar for calls there is none; whether it is one is known only there. */
	if ((kind == REQUEST_RUN || request->argv) && !request->argument_count)
		return error_set(error, STAGE_ENGINE, EINVAL, "malformed request: 'argv' is missing");
	if (kind == REQUEST_OPEN && request->extra_count && !request->argv)
		return error_set(error, STAGE_ENGINE, EINVAL, "malformed request: 'extra' needs a 'zygote'");
	if (request->is_shell_string && request->argument_count != 1)
		return error_set(error, STAGE_ENGINE, EINVAL, "malformed request: 'shell' takes one string");
	if (request->is_detached && (request->has_pty || request->sink == REQUEST_SINK_PIPES))
		return error_set(error, STAGE_ENGINE, EINVAL,
				 "malformed request: 'detach' goes neither with 'pty' nor with pipes");
	if (kind == REQUEST_FILE)
		return check_file(request, error);
	if (kind == REQUEST_WORKSPACE || kind == REQUEST_LAYER)
		return check_verb(request, kind, error);
	if (kind == REQUEST_NET && (request->change < 0 || !request->rule))
		return error_set(error, STAGE_ENGINE, EINVAL, "malformed request: 'op' or 'rule' is missing");
	if (kind == REQUEST_CONNECT && !request->port)
		return error_set(error, STAGE_ENGINE, EINVAL, "malformed request: 'port' is missing");
	if (kind == REQUEST_KILL && (!request->pid || request->signal < 0))
		return error_set(error, STAGE_ENGINE, EINVAL, "malformed request: 'pid' or 'signal' is missing");
	if (kind == REQUEST_ASK && !json_find(&request->document, "what"))
		return error_set(error, STAGE_ENGINE, EINVAL, "malformed request: 'what' is missing");
	if (kind == REQUEST_ASK && request->question == REQUEST_CAPABILITIES && (request->policy || request->keys))
		return error_set(error, STAGE_ENGINE, EINVAL, "malformed request: 'capabilities' takes no policy");
	return 0;
}

int wire_request_parse(enum request_kind kind, const char *bytes, size_t len, struct request *out, struct error *error)
{
	struct json_input input = {
		.name = "request",
		.bytes = bytes,
		.len = len,
		.stage = STAGE_ENGINE,
		.max_bytes = FRAME_MAX_BYTES,
		.max_entries = ENTRIES_MAX,
		.has_byte_escapes = true,
	};
	AUTO_REQUEST made = {.ttl_ns = LIMIT_NONE,
			     .rows = 24,
			     .columns = 80,
			     .mode = -1,
			     .operation = -1,
			     .change = -1,
			     .verb = -1,
			     .signal = -1,
			     .is_captured = true,
			     .is_start_told = true};
	int rc = json_parse(&input, &made.document, error);

	if (rc == 0 && made.document.type != JSON_OBJECT)
		rc = error_set(error, STAGE_ENGINE, EINVAL, "malformed request: it must be an object");
	if (rc == 0)
		rc = read_members(&made, &made.document, 1U << kind, error);
	if (rc == 0)
		rc = check_request(&made, kind, error);
	if (rc < 0)
		return rc;
	*out = made;
	made = (struct request){0};
	return 0;
}

void wire_request_done(struct request *request)
{
	free(request->argv);
	free(request->environment);
	free(request->prefixes);
	free(request->paths);
	free(request->theirs);
	free(request->ours);
	free(request->risky);
	json_value_done(&request->document);
	*request = (struct request){0};
}

size_t wire_request_descriptors(const struct request *request)
{
	return (request->stdin_choice == REQUEST_STDIN_DESCRIPTOR) + (request->sink == REQUEST_SINK_PIPES ? 2U : 0U) +
	       (size_t)request->extra_count;
}
