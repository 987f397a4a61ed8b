/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/mcp/mcp_result.c - keep what came out of a jar apart from what Belljar says
 *
 * A command chooses what it prints, and many clients join all blocks of a result into one text. So Belljar's words have a block of
 * their own, always the last and never missing, and each of its lines begins with a mark. The mark is made when the output is
 * complete and does not occur in it, so no output can imitate the last line of its own result.
 */
#include <string.h>
#include <sys/random.h>

#include "base/base64.h"
#include "base/escape.h"
#include "door/mcp/mcp_server.h"

#define WORDS_MAX ((size_t)64 << 10) /* of one line that Belljar says */

void mcp_result_done(struct mcp_result *result)
{
	text_done(&result->words);
	text_done(&result->structured);
	text_done(&result->blocks);
}

bool mcp_make_mark(char *mark)
{
	static const char letters[] = "abcdefghijkmnpqrstuvwxyz23456789";
	unsigned char random[MCP_MARK_SIZE - 1];

	_Static_assert(sizeof(letters) == 33, "a byte's low five bits choose a letter");
	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return false;
	for (size_t i = 0; i < sizeof(random); i++)
		mark[i] = letters[random[i] % 32];
	mark[sizeof(random)] = '\0';
	return true;
}

static bool is_in_pieces(const char *mark, const struct mcp_piece *pieces, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (pieces[i].bytes && memmem(pieces[i].bytes, pieces[i].len, mark, strlen(mark)))
			return true;
	return false;
}

/* Without random bytes there is no mark, and no answer. */
static void choose_mark(struct mcp_result *result, const struct mcp_piece *pieces, size_t count)
{
	do {
		if (!mcp_make_mark(result->mark)) {
			result->words.has_failed = true;
			return;
		}
	} while (is_in_pieces(result->mark, pieces, count));
}

/* --- what came out of a jar --------------------------------------------------------------------------------- */

static size_t count_lines(const char *bytes, size_t len)
{
	size_t count = len && bytes[len - 1] != '\n';

	for (size_t i = 0; i < len; i++)
		count += bytes[i] == '\n';
	return count;
}

static void add_block(struct mcp_result *result, const char *from, const struct text *shown)
{
	struct json_writer writer = {.text = &result->blocks, .needs_comma = result->blocks.len > 0};

	json_open_object(&writer, NULL);
	json_write_string(&writer, "type", "text");
	json_write_bytes(&writer, "text", text_string(shown), shown->len);
	json_open_object(&writer, "_meta");
	json_write_string(&writer, "belljar/from", from);
	json_close_object(&writer);
	json_close_object(&writer);
	result->ends_in_line = shown->data[shown->len - 1] == '\n';
}

void mcp_show_image(struct mcp_result *result, const char *type, const char *base64)
{
	text_append_format(&result->blocks, "%s{\"type\":\"image\",\"data\":\"%s\",\"mimeType\":\"%s\"}",
			   result->blocks.len ? "," : "", base64, type);
	result->ends_in_line = true;
}

void mcp_show(struct mcp_result *result, struct json_writer *writer, const struct mcp_piece *pieces, size_t count)
{
	AUTO_TEXT names = {0};
	size_t shown_count = 0;

	choose_mark(result, pieces, count);
	for (size_t i = 0; i < count; i++) {
		const struct mcp_piece *piece = &pieces[i];
		AUTO_TEXT shown = {0};

		if (piece->bytes)
			mcp_shorten(&shown, piece->bytes, piece->len, piece->max ? piece->max : MCP_SHOWN_BYTES,
				    piece->path, result->mark);
		result->words.has_failed |= text_failed(&shown);
		if (!piece->is_for_model_only && piece->bytes)
			json_write_bytes(writer, piece->name, text_string(&shown), shown.len);
		else if (!piece->is_for_model_only)
			json_write_null(writer, piece->name);
		if (!shown.len)
			continue;
		add_block(result, piece->name, &shown);
		text_append_format(&names, "%s%s, %zu line%s", shown_count++ ? "; then " : "", piece->name,
				   count_lines(shown.data, shown.len),
				   count_lines(shown.data, shown.len) == 1 ? "" : "s");
	}
	if (shown_count > 1)
		mcp_say(result, "above: %s", text_string(&names));
}

/* --- what Belljar says -------------------------------------------------------------------------------------- */

static void say(struct mcp_result *result, const char *format, va_list arguments)
{
	AUTO_TEXT line = {0};

	text_append_format_list(&line, format, arguments);
	result->words.has_failed |= text_failed(&line);
	escape_append(&result->words, text_string(&line), WORDS_MAX);
	text_append_char(&result->words, '\n');
}

void mcp_say(struct mcp_result *result, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say(result, format, arguments);
	va_end(arguments);
}

void mcp_quote(struct text *out, const char *string)
{
	struct json_writer writer = {.text = out};

	json_write_string(&writer, NULL, string);
}

/* Each line of @result->words, in turn; false: there is no more. */
static bool next_line(const struct mcp_result *result, size_t *at, const char **line, size_t *len)
{
	const char *newline;

	if (*at >= result->words.len)
		return false;
	*line = result->words.data + *at;
	newline = memchr(*line, '\n', result->words.len - *at);
	*len = newline ? (size_t)(newline - *line) : result->words.len - *at;
	*at += *len + 1;
	return true;
}

void mcp_close_structured(struct mcp_result *result, struct json_writer *writer)
{
	const char *line;
	size_t at = 0, len;

	json_open_array(writer, "belljar");
	while (next_line(result, &at, &line, &len))
		json_write_bytes(writer, NULL, line, len);
	json_close_array(writer);
	json_write_string(writer, "mark", result->mark);
	json_close_object(writer);
}

void mcp_write_content(struct mcp_result *result, struct json_writer *writer)
{
	AUTO_TEXT words = {0};
	const char *line;
	size_t at = 0, len;

	if (!result->mark[0])
		choose_mark(result, NULL, 0);
	if (result->blocks.len && !result->ends_in_line)
		text_append_char(&words, '\n');
	while (next_line(result, &at, &line, &len)) {
		text_append_format(&words, "[belljar %s] ", result->mark);
		text_append(&words, line, len);
		text_append_char(&words, '\n');
	}
	json_open_array(writer, "content");
	if (result->blocks.len)
		json_write_raw(writer, NULL, result->blocks.data, result->blocks.len);
	json_open_object(writer, NULL);
	json_write_string(writer, "type", "text");
	json_write_bytes(writer, "text", text_string(&words), words.len);
	json_open_object(writer, "_meta");
	json_write_string(writer, "belljar/from", "belljar");
	json_write_string(writer, "belljar/mark", result->mark);
	json_close_object(writer);
	json_close_object(writer);
	json_close_array(writer);
	if (text_failed(&words))
		result->words.has_failed = true;
}

/* --- refusals ----------------------------------------------------------------------------------------------- */

void mcp_refuse(const struct mcp_request *request, const char *format, ...)
{
	AUTO_RESULT result = {.is_error = true};
	va_list arguments;

	va_start(arguments, format);
	say(&result, format, arguments);
	va_end(arguments);
	mcp_answer(request->server, &request->asker, &result);
}

void mcp_say_error(struct mcp_result *result, const struct belljar_error *error, const char *otherwise)
{
	const char *hint = error ? belljar_error_hint(error) : NULL;

	result->is_error = true;
	mcp_say(result, "%s", error ? belljar_error_message(error) : otherwise);
	if (hint)
		mcp_say(result, "hint: %s", hint);
}

void mcp_refuse_error(const struct mcp_request *request, const struct belljar_error *error)
{
	AUTO_RESULT result = {0};

	mcp_say_error(&result, error, "Belljar cannot carry this out");
	mcp_answer(request->server, &request->asker, &result);
}
