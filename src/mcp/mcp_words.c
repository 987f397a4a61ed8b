/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp/mcp_words.c - results as a model reads them: short, and with what is left out said
 */
#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"
#include "mcp/mcp_server.h"

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

void mcp_shorten(struct text *out, const char *bytes, size_t len, size_t max, const char *path)
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
	text_append_format(out, "%s[%zu lines, %zu bytes left out", head && bytes[head - 1] != '\n' ? "\n" : "", lines,
			   tail - head);
	if (path)
		text_append_format(out, "; all of it: read_file with path \"%s\"", path);
	text_append_string(out, "]\n");
	text_append(out, bytes + tail, len - tail);
}

static void tell_stream(struct text *words, const char *name, const char *bytes, size_t len, const char *path)
{
	if (!len)
		return;
	if (words->len && words->data[words->len - 1] != '\n')
		text_append_char(words, '\n');
	if (name)
		text_append_format(words, "--- %s\n", name);
	mcp_shorten(words, bytes, len, MCP_SHOWN_BYTES, path);
}

static const struct json_value *find(const struct json_value *object, const char *name, enum json_type type)
{
	const struct json_member *member = object->type == JSON_OBJECT ? json_find(object, name) : NULL;

	return member && member->value.type == type ? &member->value : NULL;
}

/* One refusal: what, why, and what would allow it. */
static void tell_refusal(struct text *words, const struct json_value *entry)
{
	static const char *const names[] = {"what", "why", "warning"};
	static const char *const before[] = {"refused: ", ": ", "; "};
	const struct json_value *cure = find(entry, "cure", JSON_OBJECT);
	const struct json_value *flag = cure ? find(cure, "flag", JSON_STRING) : NULL;

	text_append_char(words, '[');
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const struct json_value *value = find(entry, names[i], JSON_STRING);

		if (value && value->string.len)
			text_append_format(words, "%s%.400s", before[i], value->string.bytes);
	}
	if (flag)
		text_append_format(words, "; whoever started this server can allow it with %.400s", flag->string.bytes);
	text_append_string(words, "; trying again will not help]\n");
}

/* A limit is told as one: a tool's own argument may have set it. */
static bool is_limit(const struct json_value *entry)
{
	const struct json_value *kind = find(entry, "kind", JSON_STRING);

	return kind && !strcmp(kind->string.bytes, "limit");
}

#define REFUSALS_TOLD 5

static void tell_limits(struct text *words, const struct json_value *result)
{
	const struct json_value *limits = find(result, "limits_hit", JSON_LIST);
	const struct json_value *truncated = find(result, "truncated", JSON_BOOL);

	for (size_t i = 0; limits && i < limits->list.count; i++) {
		const struct json_value *name = find(&limits->list.items[i], "name", JSON_STRING);

		if (name)
			text_append_format(words, "[limit reached: %s]\n", name->string.bytes);
	}
	if (truncated && truncated->boolean)
		text_append_string(words, "[the command wrote more than the limit of output; the rest is lost]\n");
}

/* Of a command that failed: programs try much that they can do without. */
static void tell_refusals(struct text *words, const struct json_value *result)
{
	const struct json_value *denied = find(result, "denied", JSON_LIST);

	for (size_t i = 0, told = 0; denied && i < denied->list.count && told < REFUSALS_TOLD; i++) {
		if (is_limit(&denied->list.items[i]))
			continue;
		tell_refusal(words, &denied->list.items[i]);
		told++;
	}
}

static void tell_end(struct text *words, const struct belljar_result *result)
{
	const char *outcome = belljar_result_outcome_name(result);
	int code = belljar_result_exit_code(result);

	if (words->len && words->data[words->len - 1] != '\n')
		text_append_char(words, '\n');
	if (belljar_result_outcome(result) == BELLJAR_EXITED)
		text_append_format(words, "[exit status %d]\n", code);
	else if (belljar_result_outcome(result) == BELLJAR_SIGNALED)
		text_append_format(words, "[ended by signal %d]\n", belljar_result_signal(result));
	else
		text_append_format(words, "[ended: %s]\n", outcome);
}

/* Members of the result that a program wants as they are. */
static const char *const copied[] = {"outcome",    "exit_code", "signal",  "timed_out", "truncated",
				     "limits_hit", "denied",    "network", "risky",     "notes"};

static void write_stream(struct json_writer *writer, const char *key, const char *bytes, size_t len, const char *path)
{
	AUTO_TEXT shown = {0};

	mcp_shorten(&shown, bytes, len, MCP_SHOWN_BYTES, path);
	json_write_bytes(writer, key, text_string(&shown), shown.len);
}

void mcp_tell_run(const struct belljar_result *result, const char *out_path, const char *err_path,
		  struct mcp_result *told)
{
	const char *json = belljar_result_json(result);
	struct json_input input = {.name = "result",
				   .bytes = json,
				   .len = strlen(json),
				   .stage = STAGE_ENGINE,
				   .max_bytes = (size_t)16 << 20};
	struct json_writer writer = {.text = &told->structured};
	AUTO_JSON document = {0};
	struct error error = {0};
	size_t out_len, err_len;
	const char *out = belljar_result_stdout(result, &out_len), *err = belljar_result_stderr(result, &err_len);
	uint64_t wall_us = belljar_result_usage(result, BELLJAR_WALL_US);
	bool is_well = belljar_result_outcome(result) == BELLJAR_EXITED && belljar_result_exit_code(result) == 0;

	/* A result that cannot be read is still a run that ended. */
	if (json_parse(&input, &document, &error) < 0)
		document = (struct json_value){.type = JSON_NULL};
	tell_stream(&told->words, NULL, out, out_len, out_path);
	tell_stream(&told->words, err_len ? "stderr" : NULL, err, err_len, err_path);
	if (!is_well || !told->words.len)
		tell_end(&told->words, result);
	tell_limits(&told->words, &document);
	if (!is_well)
		tell_refusals(&told->words, &document);
	told->is_error = belljar_result_outcome(result) != BELLJAR_EXITED;

	json_open_object(&writer, NULL);
	write_stream(&writer, "stdout", out, out_len, out_path);
	write_stream(&writer, "stderr", err, err_len, err_path);
	for (size_t i = 0; i < ARRAY_LEN(copied); i++) {
		const struct json_member *member =
			document.type == JSON_OBJECT ? json_find(&document, copied[i]) : NULL;

		if (member)
			json_write_value(&writer, copied[i], &member->value);
	}
	if (wall_us != UINT64_MAX)
		json_write_milliseconds(&writer, "duration_ms", wall_us);
	json_close_object(&writer);
}
