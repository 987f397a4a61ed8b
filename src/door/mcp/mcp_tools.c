/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/mcp/mcp_tools.c - the table of tools, and how their arguments are read
 *
 * Few, and stable: a model reads all of this. Annotations say what is true of a jar with the server's policy, so that a client that
 * asks its user before dangerous tools asks for the right ones. Schemas stand here as the text that is sent.
 */
#include <string.h>

#include "door/mcp/mcp_server.h"

#define JAR_ARGUMENT                                                                                                                    \
	"\"jar\":{\"type\":\"string\",\"description\":\"A jar of jar_open. Without it: the jar of this session, which stays too; over " \
	"HTTP without a session, a new one that ends with the call, or none where changes are to be shown by diff.\"}"
#define INPUT(properties, required)                                                                                    \
	"{\"type\":\"object\",\"properties\":{" properties "},\"required\":[" required                                 \
	"],\"additionalProperties\":false}"
#define BELLJAR ",\"belljar\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},\"mark\":{\"type\":\"string\"}"
#define OUTPUT(properties, required) "{\"type\":\"object\",\"properties\":{" properties "},\"required\":[" required "]}"
#define STRING(name, words) "\"" name "\":{\"type\":\"string\",\"description\":\"" words "\"}"
#define NUMBER(name, words) "\"" name "\":{\"type\":\"number\",\"description\":\"" words "\"}"
#define INTEGER(name, words) "\"" name "\":{\"type\":\"integer\",\"minimum\":1,\"description\":\"" words "\"}"
#define PATHS                                                                                                                      \
	"\"paths\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"description\":\"Below the working directory; without it " \
	"everything.\"}"
#define PATH STRING("path", "In the jar; a relative path starts at its working directory.")

#define WRITTEN "\"path\":{\"type\":\"string\"},\"bytes\":{\"type\":\"integer\"}"
#define OPENED "\"jar\":{\"type\":\"string\"},\"policy\":{\"type\":\"object\"},\"in_force\":{\"type\":\"object\"}"

/* The effect of a tool on the world outside, within the policy. */
enum effect { EFFECT_NONE, EFFECT_FILES, EFFECT_ANY, EFFECT_HOST };

static const struct tool {
	const char *name, *title, *description;
	void (*function)(struct mcp_request *request);
	enum effect effect;
	bool is_idempotent;
	bool (*is_offered)(const struct mcp_options *options); /* NULL: always */
	const char *input, *output; /* schemas; every result except an error has an object that fits @output */
} tools[] = {
	{
		.name = "run",
		.title = "Run a command",
		.description =
			"Run a shell command in the jar, and wait for its end. Files stay for the next command; programs that it left in the "
			"background do not. The result has the output, and then in lines of Belljar's own ([belljar ...]) the exit status, "
			"limits that were reached, and what was refused, with the change that would allow it.",
		.function = mcp_tool_run,
		.effect = EFFECT_ANY,
		.input = INPUT(
			STRING("command", "For bash -c.") "," STRING("stdin", "What the command reads from its standard input.") "," NUMBER(
				"timeout_seconds", "Less than the server's own limit.") "," JAR_ARGUMENT,
			"\"command\""),
		.output = OUTPUT(
			"\"stdout\":{\"type\":\"string\"},\"stderr\":{\"type\":\"string\"},\"outcome\":{\"type\":\"string\"},"
			"\"exit_code\":{\"type\":[\"integer\",\"null\"]},\"signal\":{\"type\":[\"string\",\"null\"]},"
			"\"timed_out\":{\"type\":\"boolean\"},\"truncated\":{\"type\":\"boolean\"},"
			"\"limits_hit\":{\"type\":\"array\"},\"denied\":{\"type\":\"array\"},\"duration_ms\":{\"type\":\"number\"}" BELLJAR,
			"\"stdout\",\"stderr\",\"outcome\",\"exit_code\""),
	},
	{
		.name = "run_code",
		.title = "Run code",
		.description =
			"Run a piece of Python, JavaScript (Node) or bash in an interpreter of the jar that keeps its variables between "
			"calls. The value of the last expression comes back, as do figures of matplotlib.",
		.function = mcp_tool_run_code,
		.effect = EFFECT_ANY,
		.input = INPUT(
			"\"language\":{\"enum\":[\"python\",\"javascript\",\"bash\"]}," STRING(
				"code",
				"Several lines if you like.") "," NUMBER("timeout_seconds",
									 "Less than the server's own limit.") "," JAR_ARGUMENT,
			"\"language\",\"code\""),
		.output =
			OUTPUT("\"stdout\":{\"type\":\"string\"},\"stderr\":{\"type\":\"string\"},"
			       "\"value\":{\"type\":[\"string\",\"null\"]},\"error\":{\"type\":[\"string\",\"null\"]},"
			       "\"exit_code\":{\"type\":[\"integer\",\"null\"]}" BELLJAR,
			       "\"stdout\",\"stderr\",\"value\",\"error\""),
	},
	{
		.name = "read_file",
		.title = "Read a file",
		.description = "Read a text file of the jar, or lines of it. PNG and JPEG come back as images.",
		.function = mcp_tool_read_file,
		.effect = EFFECT_NONE,
		.is_idempotent = true,
		.input = INPUT(PATH "," INTEGER("first_line",
						"1 is the first.") "," INTEGER("lines", "How many.") "," JAR_ARGUMENT,
			       "\"path\""),
		.output = OUTPUT(
			"\"content\":{\"type\":\"string\"},\"first_line\":{\"type\":\"integer\"},\"lines\":{\"type\":\"integer\"},"
			"\"is_all\":{\"type\":\"boolean\"},\"next_line\":{\"type\":\"integer\"},\"image\":{\"type\":\"string\"},"
			"\"bytes\":{\"type\":\"integer\"}" BELLJAR,
			""),
	},
	{
		.name = "write_file",
		.title = "Write a file",
		.description =
			"Write a text file in the jar, whatever was there before. Directories above it are made.",
		.function = mcp_tool_write_file,
		.effect = EFFECT_FILES,
		.is_idempotent = true,
		.input = INPUT(PATH "," STRING("content", "All of it.") "," JAR_ARGUMENT, "\"path\",\"content\""),
		.output = OUTPUT(WRITTEN, "\"path\",\"bytes\""),
	},
	{
		.name = "edit_file",
		.title = "Edit a file",
		.description =
			"Replace a piece of a text file in the jar. It must be there exactly once, unless replace_all is true.",
		.function = mcp_tool_edit_file,
		.effect = EFFECT_FILES,
		.input = INPUT(
			PATH "," STRING("old_text", "Exactly as it is in the file.") "," STRING(
				"new_text", "What it becomes.") ",\"replace_all\":{\"type\":\"boolean\"}," JAR_ARGUMENT,
			"\"path\",\"old_text\",\"new_text\""),
		.output = OUTPUT(WRITTEN ",\"replacements\":{\"type\":\"integer\"}",
				 "\"path\",\"bytes\",\"replacements\""),
	},
	{
		.name = "list_files",
		.title = "List a directory",
		.description = "The names in a directory of the jar, and what each is.",
		.function = mcp_tool_list_files,
		.effect = EFFECT_NONE,
		.is_idempotent = true,
		.input = INPUT(PATH "," JAR_ARGUMENT, ""),
		.output = OUTPUT("\"entries\":{\"type\":\"array\"},\"is_all\":{\"type\":\"boolean\"}" BELLJAR,
				 "\"entries\",\"is_all\""),
	},
	{
		.name = "diff",
		.title = "Show what was changed",
		.description =
			"Commands of this server change a copy of the user's files. This tool lists what is different from the user's files, "
			"and shows it as a patch.",
		.function = mcp_tool_diff,
		.effect = EFFECT_NONE,
		.is_idempotent = true,
		.is_offered = mcp_offers_diff,
		.input = INPUT(PATHS "," JAR_ARGUMENT, ""),
		.output = OUTPUT(
			"\"workspace\":{\"type\":\"string\"},\"count\":{\"type\":\"integer\"},\"changes\":{\"type\":\"array\"},"
			"\"patch\":{\"type\":\"string\"}" BELLJAR,
			"\"workspace\",\"count\",\"changes\",\"patch\""),
	},
	{
		.name = "apply",
		.title = "Apply changes",
		.description =
			"Put changes that `diff` shows into the user's files, as far as the user allows. Conflicts and risky files are left to "
			"the user. The jar restarts afterwards: interpreters and private files are gone.",
		.function = mcp_tool_apply,
		.effect = EFFECT_HOST,
		.is_offered = mcp_offers_apply,
		.input = INPUT(PATHS "," JAR_ARGUMENT, ""),
		.output = OUTPUT(
			"\"applied\":{\"type\":\"integer\"},\"not_allowed\":{\"type\":\"integer\"},\"not_applied\":{\"type\":\"array\"}",
			"\"applied\",\"not_applied\""),
	},
	{
		.name = "jar_open",
		.title = "Open a jar",
		.description =
			"Make another jar, with private files and interpreters of its own, and at most what the server's policy allows. "
			"Pass the name that comes back as the argument jar of other tools. The server closes it when no call uses it for long.",
		.function = mcp_tool_jar_open,
		.effect = EFFECT_NONE,
		.input = INPUT(
			"\"tighten\":{\"type\":\"object\",\"description\":\"Keys of a policy that allow less than the server's, as "
			"policy_show prints them.\"}",
			""),
		.output = OUTPUT(OPENED, "\"jar\",\"policy\",\"in_force\""),
	},
	{
		.name = "jar_close",
		.title = "Close a jar",
		.description = "End everything in a jar, and drop its private files.",
		.function = mcp_tool_jar_close,
		.effect = EFFECT_NONE,
		.input = INPUT(STRING("jar", "The name that jar_open gave."), "\"jar\""),
		.output =
			OUTPUT("\"jar\":{\"type\":\"string\"},\"closed\":{\"type\":\"boolean\"}", "\"jar\",\"closed\""),
	},
	{
		.name = "policy_show",
		.title = "Show what is allowed",
		.description =
			"What jars of this server may read, write, reach and use, and how this host enforces it.",
		.function = mcp_tool_policy_show,
		.effect = EFFECT_NONE,
		.is_idempotent = true,
		.input = INPUT(JAR_ARGUMENT, ""),
		.output = OUTPUT(OPENED, "\"jar\",\"policy\",\"in_force\""),
	},
};

/* --- the list ----------------------------------------------------------------------------------------------- */

/* Can a tool change files that outlive the jar? */
static bool may_change_files(const struct policy *policy)
{
	if (policy->workdir_choice != WORKDIR_PRIVATE && policy->workdir_mode == WORKDIR_RW &&
	    policy->workspace != WORKSPACE_COW)
		return true;
	for (size_t i = 0; i < policy->mounts.count; i++)
		if (policy->mounts.items[i].access == MOUNT_RW)
			return true;
	return false;
}

static void write_annotations(const struct tool *tool, const struct policy *policy, struct json_writer *writer)
{
	bool is_changing = tool->effect == EFFECT_HOST || (tool->effect != EFFECT_NONE && may_change_files(policy));
	bool is_open = tool->effect == EFFECT_ANY && policy->net != NET_NONE;

	json_open_object(writer, "annotations");
	json_write_string(writer, "title", tool->title);
	json_write_bool(writer, "readOnlyHint", !is_changing && !is_open);
	json_write_bool(writer, "destructiveHint", is_changing);
	json_write_bool(writer, "idempotentHint", tool->is_idempotent);
	json_write_bool(writer, "openWorldHint", is_open);
	json_close_object(writer);
}

static bool is_offered(const struct tool *tool, const struct mcp_server *server)
{
	return !tool->is_offered || tool->is_offered(server->options);
}

void mcp_list_tools(struct mcp_server *server, struct json_writer *writer)
{
	for (size_t i = 0; i < ARRAY_LEN(tools); i++) {
		if (!is_offered(&tools[i], server))
			continue;
		json_open_object(writer, NULL);
		json_write_string(writer, "name", tools[i].name);
		json_write_string(writer, "title", tools[i].title);
		json_write_string(writer, "description", tools[i].description);
		json_write_raw(writer, "inputSchema", tools[i].input, strlen(tools[i].input));
		json_write_raw(writer, "outputSchema", tools[i].output, strlen(tools[i].output));
		write_annotations(&tools[i], server->options->policy, writer);
		json_close_object(writer);
	}
}

/* --- arguments ---------------------------------------------------------------------------------------------- */

/* The argument that the tool's schema does not have; NULL: it has all. The table is the only place that knows them. */
static const char *unknown_argument(const struct tool *tool, const struct json_value *arguments)
{
	struct json_input input = {
		.name = tool->name, .bytes = tool->input, .len = strlen(tool->input), .stage = STAGE_ENGINE};
	const struct json_member *properties;
	struct error error = {0};
	AUTO_JSON schema = {0};

	properties = json_parse(&input, &schema, &error) == 0 ? json_find(&schema, "properties") : NULL;
	for (size_t i = 0; arguments && i < arguments->object.count; i++)
		if (!properties || !json_find(&properties->value, arguments->object.members[i].name))
			return arguments->object.members[i].name;
	return NULL;
}

bool mcp_call_tool(struct mcp_request *request)
{
	for (size_t i = 0; i < ARRAY_LEN(tools); i++) {
		const char *unknown;

		if (strcmp(tools[i].name, request->tool) || !is_offered(&tools[i], request->server))
			continue;
		unknown = unknown_argument(&tools[i], request->arguments);
		if (unknown)
			mcp_refuse(request, "the tool '%s' has no argument '%.60s'", request->tool, unknown);
		else
			tools[i].function(request);
		return true;
	}
	return false;
}

static const struct json_value *argument(const struct mcp_request *request, const char *name)
{
	const struct json_member *member = request->arguments ? json_find(request->arguments, name) : NULL;

	return member && member->value.type != JSON_NULL ? &member->value : NULL;
}

bool mcp_string(const struct mcp_request *request, const char *name, bool is_needed, const char **out)
{
	const struct json_value *value = argument(request, name);

	if (value && value->type == JSON_STRING)
		*out = value->string.bytes;
	else if (value || is_needed)
		mcp_refuse(request, "the tool '%s' needs '%s', a string", request->tool, name);
	return value ? value->type == JSON_STRING : !is_needed;
}

bool mcp_number(const struct mcp_request *request, const char *name, double min, double max, double *out)
{
	const struct json_value *value = argument(request, name);
	double number = 0;

	if (!value)
		return true;
	if (value->type == JSON_INTEGER)
		number = (double)value->number.integer;
	else if (value->type == JSON_REAL)
		number = value->number.real;
	if ((value->type != JSON_INTEGER && value->type != JSON_REAL) || number < min || number > max) {
		mcp_refuse(request, "'%s' must be a number from %g to %g", name, min, max);
		return false;
	}
	*out = number;
	return true;
}

bool mcp_bool(const struct mcp_request *request, const char *name, bool *out)
{
	const struct json_value *value = argument(request, name);

	if (value && value->type != JSON_BOOL) {
		mcp_refuse(request, "'%s' must be true or false", name);
		return false;
	}
	if (value)
		*out = value->boolean;
	return true;
}
