/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/mcp/mcp_workspace.c - the tools for a server whose jars write to layers: what was changed, and taking it over
 *
 * The person who starts the server decides, with patterns of paths, what a model may apply. Without patterns there is
 * no such tool. Only that person can apply risky changes, and changes that conflict with the host's.
 */
#include <fnmatch.h>
#include <limits.h>
#include <string.h>

#include "base/escape.h"
#include "base/paths.h"
#include "door/mcp/mcp_server.h"

#define LISTED_MAX 500
#define HELD_MAX 50

/* --- arguments ---------------------------------------------------------------------------------------------- */

/* NULL-terminated; its strings are the request's. */
struct path_list {
	const char **items;
	size_t count;
};

static void path_list_done(struct path_list *list)
{
	free(list->items);
}

static bool path_list_make(struct path_list *list, size_t count)
{
	list->items = calloc(count + 1, sizeof(*list->items));
	return list->items;
}

/* The argument `paths`, if it is there. False: it was answered. */
static bool read_paths(const struct mcp_request *request, struct path_list *out)
{
	const struct json_member *member = request->arguments ? json_find(request->arguments, "paths") : NULL;
	bool is_right = member && member->value.type == JSON_LIST && member->value.list.count;

	if (!member)
		return true;
	for (size_t i = 0; is_right && i < member->value.list.count; i++)
		is_right = member->value.list.items[i].type == JSON_STRING;
	if (!is_right || !path_list_make(out, member->value.list.count)) {
		mcp_refuse(request, "'paths' must be a list of paths; leave it out for everything");
		return false;
	}
	for (; out->count < member->value.list.count; out->count++)
		out->items[out->count] = member->value.list.items[out->count].string.bytes;
	return true;
}

/* --- what was changed --------------------------------------------------------------------------------------- */

static const char *string_of(const struct json_value *object, const char *name)
{
	const struct json_value *value = json_member(object, name, JSON_STRING);

	return value ? value->string.bytes : "";
}

static bool is_true(const struct json_value *object, const char *name)
{
	const struct json_value *value = json_member(object, name, JSON_BOOL);

	return value && value->boolean;
}

static int parse(const char *text, struct json_value *out)
{
	struct json_input input = {.name = "diff",
				   .bytes = text,
				   .len = strlen(text),
				   .stage = STAGE_ENGINE,
				   .max_bytes = (size_t)256 << 20,
				   .max_entries = (size_t)1 << 24,
				   .has_byte_escapes = true};
	struct error error = {0};

	return json_parse(&input, out, &error);
}

/* Get the changes from the engine; the caller frees @text. False: the request was answered. */
static bool ask_changes(const struct mcp_request *request, struct belljar_workspace *workspace,
			const struct path_list *paths, char **text, struct json_value *document)
{
	struct belljar_error *error = NULL;
	int rc = belljar_workspace_diff(workspace, paths->count ? paths->items : NULL, text, &error);

	if (rc < 0)
		mcp_refuse_error(request, error);
	else if (parse(*text, document) < 0 || !json_member(document, "changes", JSON_LIST))
		mcp_refuse(request, "there are too many changes to list; name some paths");
	belljar_error_free(error);
	return document->type == JSON_OBJECT && json_member(document, "changes", JSON_LIST);
}

/* A line of the list for the model, and a member of the list for a program. */
static void list_change(struct text *list, struct json_writer *writer, const struct json_value *change)
{
	const char *why = string_of(change, "why");

	text_append_format(list, "%s ", string_of(change, "change"));
	escape_append(list, string_of(change, "path"), PATH_MAX);
	text_append_char(list, '\n');
	json_open_object(writer, NULL);
	json_write_string(writer, "path", string_of(change, "path"));
	json_write_string(writer, "change", string_of(change, "change"));
	json_write_bool(writer, "conflict", is_true(change, "conflict"));
	json_write_bool(writer, "refused", is_true(change, "refused"));
	json_write_string(writer, "why", *why ? why : NULL);
	json_close_object(writer);
}

static void list_changes(struct text *list, struct json_writer *writer, const struct json_value *document)
{
	const struct json_value *changes = json_member(document, "changes", JSON_LIST);

	json_write_string(writer, "workspace", string_of(document, "id"));
	json_write_unsigned(writer, "count", changes->list.count);
	json_open_array(writer, "changes");
	for (size_t i = 0; i < changes->list.count && i < LISTED_MAX; i++)
		list_change(list, writer, &changes->list.items[i]);
	json_close_array(writer);
}

/* Redact the patch as `run` redacts output. */
static void redact_patch(const struct mcp_jar *jar, const char *patch, size_t len, struct text *clean)
{
	if (jar->redactor)
		redact_string(jar->redactor, patch, clean);
	else
		text_append(clean, patch, len);
}

/* Those that the tool `apply` leaves to the user. */
static void say_held(struct mcp_result *result, const struct json_value *changes)
{
	for (size_t i = 0, said = 0; i < changes->list.count && said < HELD_MAX; i++) {
		const struct json_value *change = &changes->list.items[i];
		AUTO_TEXT quoted = {0};

		if (!is_true(change, "conflict") && !is_true(change, "refused"))
			continue;
		mcp_quote(&quoted, string_of(change, "path"));
		mcp_say(result, "not applied without the user: %s: %s", text_string(&quoted), string_of(change, "why"));
		said++;
	}
}

static void say_changes(const struct mcp_server *server, const struct json_value *document, struct mcp_result *result)
{
	const struct json_value *changes = json_member(document, "changes", JSON_LIST);

	if (!changes->list.count) {
		mcp_say(result, "nothing was changed");
		return;
	}
	mcp_say(result, "%zu change%s", changes->list.count, changes->list.count == 1 ? "" : "s");
	if (changes->list.count > LISTED_MAX)
		mcp_say(result, "only the first %d are listed; name paths to see others", LISTED_MAX);
	say_held(result, changes);
	if (mcp_offers_apply(server->options))
		mcp_say(result, "the tool `apply` puts changes into the user's files, as far as the user allows");
	else
		mcp_say(result, "the user's files are unchanged; the user can apply this with `belljar apply %s`",
			string_of(document, "id"));
}

static void diff(struct mcp_request *request, struct mcp_jar *jar, struct belljar_workspace *workspace,
		 const struct path_list *paths)
{
	AUTO_RESULT result = {0};
	AUTO_TEXT list = {0}, clean = {0};
	struct json_writer writer = {.text = &result.structured, .has_byte_escapes = false};
	struct mcp_piece pieces[] = {{.name = "changes", .is_for_model_only = true}, {.name = "patch"}};
	struct belljar_error *error = NULL;
	AUTO_FREE char *patch = NULL, *text = NULL;
	AUTO_JSON document = {0};
	size_t len = 0;

	if (!ask_changes(request, workspace, paths, &text, &document))
		return;
	if (belljar_workspace_patch(workspace, paths->count ? paths->items : NULL, &patch, &len, &error) < 0) {
		mcp_refuse_error(request, error);
		belljar_error_free(error);
		return;
	}
	redact_patch(jar, patch, len, &clean);
	free(take_ptr(jar->shown));
	if (json_member(&document, "changes", JSON_LIST)->list.count)
		jar->shown = take_ptr(text);
	json_open_object(&writer, NULL);
	list_changes(&list, &writer, &document);
	pieces[0].bytes = text_string(&list);
	pieces[0].len = pieces[0].max = list.len;
	pieces[1].bytes = text_string(&clean);
	pieces[1].len = clean.len;
	mcp_show(&result, &writer, pieces, ARRAY_LEN(pieces));
	say_changes(request->server, &document, &result);
	mcp_close_structured(&result, &writer);
	result.words.has_failed |= text_failed(&list) || text_failed(&clean);
	mcp_answer(request->server, &request->asker, &result);
}

/* --- taking it over ----------------------------------------------------------------------------------------- */

static bool is_allowed(const struct string_list *patterns, const char *path)
{
	for (size_t i = 0; i < patterns->count; i++)
		if (!fnmatch(patterns->items[i], path, 0) || path_is_within(path, patterns->items[i]))
			return true;
	return false;
}

static bool is_everything_allowed(const struct string_list *patterns)
{
	for (size_t i = 0; i < patterns->count; i++)
		if (!strcmp(patterns->items[i], "*") || !strcmp(patterns->items[i], "."))
			return true;
	return false;
}

/* A path of a directory stands for all that is in it by the time that it is applied. So directories come with their files. */
static bool is_directory(const struct json_value *change)
{
	const struct json_value *after = json_member(change, "after", JSON_OBJECT);

	return after && !strcmp(string_of(after, "type"), "directory");
}

/* Is @path, below @workdir, among @paths as a model writes them? */
static bool is_named(const struct path_list *paths, const char *workdir, const char *path)
{
	for (size_t i = 0; i < paths->count; i++) {
		const char *named = paths->items[i];

		if (path_is_within(named, workdir))
			named += strlen(workdir) + strspn(named + strlen(workdir), "/");
		while (named[0] == '.' && (named[1] == '/' || !named[1]))
			named += 1 + strspn(named + 1, "/");
		if (!*named || path_is_within(path, named))
			return true;
	}
	return !paths->count;
}

/* Choose the changes below @paths that the patterns allow. Returns how many they do not allow. */
static size_t choose(const struct string_list *patterns, const struct path_list *paths,
		     const struct json_value *document, struct path_list *chosen)
{
	const struct json_value *changes = json_member(document, "changes", JSON_LIST);
	size_t held = 0;

	for (size_t i = 0; i < changes->list.count; i++) {
		const struct json_value *change = &changes->list.items[i];

		if (is_directory(change) || !is_named(paths, string_of(document, "workdir"), string_of(change, "path")))
			continue;
		if (is_allowed(patterns, string_of(change, "path")))
			chosen->items[chosen->count++] = string_of(change, "path");
		else
			held++;
	}
	return held;
}

static void answer_applied(const struct mcp_request *request, const char *json, size_t held)
{
	AUTO_RESULT result = {0};
	struct json_writer writer = {.text = &result.structured};
	AUTO_JSON document = {0};
	AUTO_TEXT quoted = {0};
	const struct json_value *left;
	int64_t applied = 0;

	if (parse(json, &document) < 0 || !json_member(&document, "not_applied", JSON_LIST)) {
		mcp_refuse(request, "the changes were applied, but Belljar cannot list those that were not");
		return;
	}
	left = json_member(&document, "not_applied", JSON_LIST);
	if (json_member(&document, "applied", JSON_INTEGER))
		applied = json_member(&document, "applied", JSON_INTEGER)->number.integer;
	mcp_say(&result, "%lld change%s applied", (long long)applied, applied == 1 ? "" : "s");
	json_open_object(&writer, NULL);
	json_write_integer(&writer, "applied", applied);
	json_write_unsigned(&writer, "not_allowed", held);
	json_open_array(&writer, "not_applied");
	for (size_t i = 0; i < left->list.count && i < LISTED_MAX; i++) {
		const struct json_value *entry = &left->list.items[i];

		json_open_object(&writer, NULL);
		json_write_string(&writer, "path", string_of(entry, "path"));
		json_write_string(&writer, "reason", string_of(entry, "reason"));
		json_write_string(&writer, "why", string_of(entry, "why"));
		json_close_object(&writer);
		text_clear(&quoted);
		mcp_quote(&quoted, string_of(entry, "path"));
		mcp_say(&result, "not applied: %s: %s", text_string(&quoted), string_of(entry, "why"));
	}
	json_close_array(&writer);
	json_close_object(&writer);
	if (left->list.count)
		mcp_say(&result, "the user decides about the rest");
	if (held)
		mcp_say(&result, "%zu changes are not among what the user lets you apply", held);
	mcp_say(&result, "the jar has restarted: interpreters and private files are gone");
	mcp_answer(request->server, &request->asker, &result);
}

static void apply(struct mcp_request *request, struct mcp_jar *jar, struct belljar_workspace *workspace,
		  const struct path_list *paths)
{
	const struct string_list *patterns = request->server->options->apply_patterns;
	struct belljar_apply_options options = {.size = sizeof(options)};
	AUTO(path_list_done) struct path_list chosen = {0};
	const struct json_value *changes;
	struct belljar_error *error = NULL;
	AUTO_FREE char *json = NULL, *text = NULL;
	AUTO_JSON document = {0};
	size_t held = 0;
	int rc;

	if (jar->call_count) {
		mcp_refuse(request, "%u calls are under way in this jar; wait for their end", jar->call_count);
		return;
	}
	/* To list the changes again would be a look that no model has had: what `diff` showed is what it means. */
	if (jar->shown ? parse(jar->shown, &document) < 0 : !ask_changes(request, workspace, paths, &text, &document))
		return;
	changes = json_member(&document, "changes", JSON_LIST);
	if (is_everything_allowed(patterns)) {
		options.paths = paths->count ? paths->items : NULL;
	} else if (!path_list_make(&chosen, changes->list.count)) {
		mcp_refuse(request, "no memory for the changes");
		return;
	} else {
		held = choose(patterns, paths, &document, &chosen);
		options.paths = chosen.items;
	}
	if (!changes->list.count || (options.paths && !options.paths[0])) {
		mcp_refuse(request, held ? "the user lets you apply none of these changes" : "nothing was changed");
		return;
	}
	mcp_end_interpreters(jar);
	rc = belljar_workspace_apply(workspace, &options, &json, &error);
	if (rc < 0)
		mcp_refuse_error(request, error);
	else
		answer_applied(request, json, held);
	/* What is not applied is not shown by that. */
	if (rc == 0)
		free(take_ptr(jar->shown));
	belljar_error_free(error);
}

/* --- tools -------------------------------------------------------------------------------------------------- */

bool mcp_offers_diff(const struct mcp_options *options)
{
	return options->policy->workspace == WORKSPACE_COW;
}

bool mcp_offers_apply(const struct mcp_options *options)
{
	return mcp_offers_diff(options) && options->apply_patterns && options->apply_patterns->count;
}

typedef void work_function(struct mcp_request *request, struct mcp_jar *jar, struct belljar_workspace *workspace,
			   const struct path_list *paths);

static void work(struct mcp_request *request, work_function *function)
{
	AUTO(path_list_done) struct path_list paths = {0};
	struct belljar_workspace *workspace = NULL;
	struct belljar_error *error = NULL;
	struct mcp_jar *jar;

	if (!read_paths(request, &paths))
		return;
	jar = mcp_find_jar(request);
	if (!jar)
		return;
	if (belljar_jar_workspace(jar->jar, &workspace, &error) < 0)
		mcp_refuse_error(request, error);
	else
		function(request, jar, workspace, &paths);
	belljar_workspace_free(workspace);
	belljar_error_free(error);
}

void mcp_tool_diff(struct mcp_request *request)
{
	work(request, diff);
}

void mcp_tool_apply(struct mcp_request *request)
{
	work(request, apply);
}
