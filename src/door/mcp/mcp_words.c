/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/mcp/mcp_words.c - how a run ended, for a model: short, and with what is left out said
 */
#include <string.h>

#include "base/units.h"
#include "base/utf8.h"
#include "door/mcp/mcp_server.h"
#include "policy/policy_keys.h"

#define ENTRIES_TOLD 5 /* of refusals, and of risky files */
#define NANOSECONDS_PER_MILLISECOND 1000000

static size_t count_lines(const char *bytes, size_t len)
{
	size_t count = 0;

	for (size_t i = 0; i < len; i++)
		count += bytes[i] == '\n';
	return count;
}

/* Where the line that @at lies in ends, not further than @end; a line that is longer than that is cut. */
static size_t line_end(const char *bytes, size_t at, size_t end)
{
	const char *newline = memchr(bytes + at, '\n', end - at);

	return newline ? (size_t)(newline - bytes) + 1 : end;
}

/* Not within a character. */
static size_t whole_characters(const char *bytes, size_t len)
{
	return len - utf8_cut_tail((const unsigned char *)bytes, len);
}

void mcp_shorten(struct text *out, const char *bytes, size_t len, size_t max, const char *path, const char *mark)
{
	size_t half = max / 2, head, tail, lines;

	if (len <= max) {
		text_append(out, bytes, len);
		return;
	}
	/* The last whole line of the first half, and the first whole line of the second, unless a line is as long as that. */
	head = half;
	while (head > half / 2 && bytes[head - 1] != '\n')
		head--;
	if (bytes[head - 1] != '\n')
		head = whole_characters(bytes, half);
	tail = line_end(bytes, len - half, len - half / 2);
	while (tail < len && (bytes[tail] & 0xC0) == 0x80)
		tail++;
	text_append(out, bytes, head);
	lines = count_lines(bytes + head, tail - head);
	text_append_format(out, "%s[belljar %s] %zu lines, %zu bytes left out here",
			   head && bytes[head - 1] != '\n' ? "\n" : "", mark, lines, tail - head);
	if (path)
		text_append_format(out, "; all of it: read_file with path \"%s\"", path);
	text_append_char(out, '\n');
	text_append(out, bytes + tail, len - tail);
}

static const char *string_in(const struct json_value *object, const char *name)
{
	const struct json_value *value = json_member(object, name, JSON_STRING);

	return value && value->string.len ? value->string.bytes : NULL;
}

/* Of an entry of `denied`: the option that would allow it; NULL: no option does. */
static const char *flag_of(const struct json_value *entry)
{
	return string_in(json_member(entry, "cure", JSON_OBJECT), "flag");
}

/* --- limits ------------------------------------------------------------------------------------------------- */

bool mcp_is_tightened(const struct mcp_jar *jar, const char *key)
{
	for (size_t i = 0; jar && i < jar->tightened.count; i++)
		if (!strcmp(jar->tightened.items[i], key))
			return true;
	return false;
}

static void append_amount(struct text *out, const char *name, uint64_t amount)
{
	const struct policy_key *key = policy_key_by_name(name);
	uint64_t nanoseconds;

	if (!key || key->type == POLICY_COUNT)
		text_append_format(out, "%llu", (unsigned long long)amount);
	else if (key->type != POLICY_DURATION)
		units_format_size(out, amount);
	else if (!__builtin_mul_overflow(amount, NANOSECONDS_PER_MILLISECOND, &nanoseconds))
		units_format_duration(out, nanoseconds);
}

void mcp_say_limit(struct mcp_result *result, const struct mcp_limit *limit)
{
	AUTO_TEXT amount = {0};

	append_amount(&amount, limit->name, limit->amount);
	if (limit->is_of_the_call)
		mcp_say(result,
			"limit reached: %s, %s; this call asked for it with timeout_seconds, and can ask for more",
			limit->name, text_string(&amount));
	else if (mcp_is_tightened(limit->jar, limit->name))
		mcp_say(result, "limit reached: %s, %s; jar_open was given it in tighten, and can make a jar with more",
			limit->name, text_string(&amount));
	else
		mcp_say(result, "limit reached: %s, %s%s%s", limit->name, text_string(&amount),
			limit->flag ? "; the user can allow more with " : "", limit->flag ? limit->flag : "");
}

static bool is_limit(const struct json_value *entry)
{
	const char *kind = string_in(entry, "kind");

	return kind && !strcmp(kind, "limit");
}

static const char *flag_of_limit(const struct json_value *document, const char *name)
{
	const struct json_value *denied = json_member(document, "denied", JSON_LIST);

	for (size_t i = 0; denied && i < denied->list.count; i++) {
		const struct json_value *entry = &denied->list.items[i];
		const char *what = string_in(entry, "what");

		if (is_limit(entry) && what && !strcmp(what, name))
			return flag_of(entry);
	}
	return NULL;
}

static uint64_t amount_of(const struct json_value *limit)
{
	const struct json_value *integer = json_member(limit, "limit", JSON_INTEGER),
				*real = json_member(limit, "limit", JSON_REAL);

	if (integer)
		return (uint64_t)integer->number.integer;
	return real ? (uint64_t)real->number.real : 0;
}

static void say_limits(struct mcp_result *result, const struct json_value *document, const struct mcp_jar *jar,
		       bool is_own_timeout)
{
	const struct json_value *limits = json_member(document, "limits_hit", JSON_LIST);

	for (size_t i = 0; limits && i < limits->list.count; i++) {
		const char *name = string_in(&limits->list.items[i], "name");
		struct mcp_limit limit = {.name = name, .jar = jar};

		if (!name)
			continue;
		limit.amount = amount_of(&limits->list.items[i]);
		limit.flag = flag_of_limit(document, name);
		limit.is_of_the_call = is_own_timeout && !strcmp(name, "timeout");
		mcp_say_limit(result, &limit);
	}
}

/* A result that cannot be read is still a run that ended: *@out is null. */
static void read_json(const char *json, struct json_value *out)
{
	struct json_input input = {.name = "result",
				   .bytes = json,
				   .len = strlen(json),
				   .stage = STAGE_ENGINE,
				   .max_bytes = (size_t)16 << 20};
	struct error error = {0};

	if (json_parse(&input, out, &error) < 0)
		*out = (struct json_value){.type = JSON_NULL};
}

static void read_document(const struct belljar_result *ended, struct json_value *out)
{
	read_json(belljar_result_json(ended), out);
}

void mcp_say_limits(struct mcp_result *result, const struct belljar_result *ended, const struct mcp_jar *jar)
{
	AUTO_JSON document = {0};

	read_document(ended, &document);
	say_limits(result, &document, jar, false);
}

/* --- a run -------------------------------------------------------------------------------------------------- */

/* One refusal: what, why, and what would allow it. */
static void say_refusal(struct mcp_result *result, const struct json_value *entry)
{
	const char *what = string_in(entry, "what"), *why = string_in(entry, "why"),
		   *warning = string_in(entry, "warning"), *flag = flag_of(entry);
	AUTO_TEXT line = {0};

	mcp_quote(&line, what ? what : "");
	if (why)
		text_append_format(&line, ": %.400s", why);
	if (warning)
		text_append_format(&line, "; %.400s", warning);
	if (flag)
		text_append_format(&line, "; the user can allow it with %.400s", flag);
	result->words.has_failed |= text_failed(&line);
	mcp_say(result, "refused: %s; trying again unchanged will not help", text_string(&line));
}

/* Of a command that failed: programs try much that they can do without. Limits have words of their own. */
static void say_refusals(struct mcp_result *result, const struct json_value *document)
{
	const struct json_value *denied = json_member(document, "denied", JSON_LIST);

	for (size_t i = 0, told = 0; denied && i < denied->list.count && told < ENTRIES_TOLD; i++) {
		if (is_limit(&denied->list.items[i]))
			continue;
		say_refusal(result, &denied->list.items[i]);
		told++;
	}
}

/* Where `risky` does not have all, a note says so. */
static void say_unsearched(struct mcp_result *result, const struct json_value *document)
{
	const struct json_value *notes = json_member(document, "notes", JSON_LIST);

	for (size_t i = 0; notes && i < notes->list.count; i++) {
		const char *name = string_in(&notes->list.items[i], "name"),
			   *why = string_in(&notes->list.items[i], "why");

		if (name && why && !strcmp(name, "risky"))
			mcp_say(result, "risky: %.400s; report it to the user", why);
	}
}

/* What a command leaves where another program runs it later is the user's to look at. */
static void say_risky(struct mcp_result *result, const struct json_value *document, const char *member)
{
	const struct json_value *risky = json_member(document, member, JSON_LIST);

	for (size_t i = 0; risky && i < risky->list.count && i < ENTRIES_TOLD; i++) {
		const char *path = string_in(&risky->list.items[i], "path"),
			   *why = string_in(&risky->list.items[i], "why");
		AUTO_TEXT quoted = {0};

		mcp_quote(&quoted, path ? path : "");
		mcp_say(result, "risky: %s%s%.400s; report it to the user", text_string(&quoted), why ? ": " : "",
			why ? why : "");
	}
	if (risky && risky->list.count > ENTRIES_TOLD)
		mcp_say(result, "risky: %zu more files; `risky` lists them; report it to the user",
			risky->list.count - ENTRIES_TOLD);
	say_unsearched(result, document);
}

void mcp_tell_risky(struct mcp_result *result, struct json_writer *writer, const char *json, const char *member)
{
	AUTO_JSON document = {0};
	const struct json_value *risky;

	read_json(json, &document);
	say_risky(result, &document, member);
	risky = json_member(&document, member, JSON_LIST);
	if (risky)
		json_write_value(writer, "risky", risky);
}

void mcp_look(struct mcp_result *result, struct json_writer *writer, const struct mcp_jar *jar)
{
	struct belljar_error *error = NULL;
	char *json = NULL;

	/* The engine writes no spaces, and a quote in a string has a backslash before it. */
	if (!strstr(belljar_jar_info(jar->jar), "\"searched\":true"))
		return;
	if (belljar_jar_look(jar->jar, &json, &error) == 0)
		mcp_tell_risky(result, writer, json, "new");
	else
		mcp_say(result, "risky: Belljar could not search the jar's directories: %.400s",
			error ? belljar_error_message(error) : "no reason is known");
	belljar_error_free(error);
	free(json);
}

static void say_end(struct mcp_result *result, const struct belljar_result *ended)
{
	if (belljar_result_outcome(ended) == BELLJAR_EXITED)
		mcp_say(result, "exit status %d", belljar_result_exit_code(ended));
	else if (belljar_result_outcome(ended) == BELLJAR_SIGNALED)
		mcp_say(result, "ended by signal %d", belljar_result_signal(ended));
	else
		mcp_say(result, "ended: %s", belljar_result_outcome_name(ended));
}

/* Members of the result that a program wants as they are. */
static const char *const copied[] = {"outcome", "exit_code", "signal", "timed_out",    "truncated", "limits_hit",
				     "denied",  "network",   "risky",  "risky_search", "notes"};

static void copy_members(const struct json_value *document, struct json_writer *writer)
{
	for (size_t i = 0; document->type == JSON_OBJECT && i < ARRAY_LEN(copied); i++) {
		const struct json_member *member = json_find(document, copied[i]);

		if (member)
			json_write_value(writer, copied[i], &member->value);
	}
}

void mcp_tell_run(const struct belljar_result *ended, const struct mcp_jar *jar, const struct mcp_piece streams[2],
		  bool is_own_timeout, struct mcp_result *told)
{
	struct json_writer writer = {.text = &told->structured};
	AUTO_JSON document = {0};
	uint64_t wall_us = belljar_result_usage(ended, BELLJAR_WALL_US);
	bool is_well = belljar_result_outcome(ended) == BELLJAR_EXITED && belljar_result_exit_code(ended) == 0;

	read_document(ended, &document);
	told->is_error = belljar_result_outcome(ended) != BELLJAR_EXITED;
	json_open_object(&writer, NULL);
	mcp_show(told, &writer, streams, 2);
	if (belljar_result_is_truncated(ended))
		mcp_say(told, "the command wrote more than the limit of output; the rest is lost");
	say_limits(told, &document, jar, is_own_timeout);
	if (!is_well)
		say_refusals(told, &document);
	say_risky(told, &document, "risky");
	say_end(told, ended);
	copy_members(&document, &writer);
	if (wall_us != UINT64_MAX)
		json_write_milliseconds(&writer, "duration_ms", wall_us);
	mcp_close_structured(told, &writer);
}
