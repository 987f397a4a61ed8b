/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/json_write.c - write JSON into a text
 */
#include "base/json_write.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/json_read.h"
#include "base/utf8.h"

static const char replacement_character[] = "\xef\xbf\xbd";

static void new_line(struct json_writer *writer)
{
	if (!writer->indent)
		return;
	text_append_char(writer->text, '\n');
	for (int i = 0; i < writer->depth * writer->indent; i++)
		text_append_char(writer->text, ' ');
}

/* DEL and C1 controls are legal in JSON, but a terminal that shows the result must not act on them. */
static bool must_escape(const unsigned char *bytes, size_t len)
{
	return bytes[0] < 0x20 || bytes[0] == 0x7f || (len == 2 && bytes[0] == 0xc2 && bytes[1] < 0xa0);
}

static void write_escape(struct text *text, unsigned code)
{
	static const char short_forms[][2] = {{'\b', 'b'}, {'\t', 't'}, {'\n', 'n'}, {'\f', 'f'}, {'\r', 'r'}};

	for (size_t i = 0; i < ARRAY_LEN(short_forms); i++) {
		if (code == (unsigned char)short_forms[i][0]) {
			text_append_char(text, '\\');
			text_append_char(text, short_forms[i][1]);
			return;
		}
	}
	text_append_format(text, "\\u%04x", code);
}

static void write_quoted(const struct json_writer *writer, const unsigned char *bytes, size_t len)
{
	struct text *text = writer->text;
	size_t plain_from = 0, at = 0;
	bool is_cut;

	text_append_char(text, '"');
	while (at < len) {
		size_t character = utf8_character(bytes + at, len - at, &is_cut);
		bool is_plain =
			character && bytes[at] != '"' && bytes[at] != '\\' && !must_escape(bytes + at, character);

		if (is_plain) {
			at += character;
			continue;
		}
		text_append(text, bytes + plain_from, at - plain_from);
		if (!character && writer->has_byte_escapes) {
			text_append_format(text, "\\udc%02x", bytes[at]);
			character = 1;
		} else if (!character) {
			text_append_string(text, replacement_character);
			character = utf8_bad_span(bytes + at, len - at);
		} else if (bytes[at] == '"' || bytes[at] == '\\') {
			text_append_char(text, '\\');
			text_append_char(text, (char)bytes[at]);
		} else {
			write_escape(text, character == 2 ? bytes[at + 1] : bytes[at]);
		}
		at += character;
		plain_from = at;
	}
	text_append(text, bytes + plain_from, at - plain_from);
	text_append_char(text, '"');
}

static void begin_member(struct json_writer *writer, const char *key)
{
	if (writer->needs_comma)
		text_append_char(writer->text, ',');
	if (writer->depth)
		new_line(writer);
	if (key) {
		write_quoted(writer, (const unsigned char *)key, strlen(key));
		text_append_string(writer->text, writer->indent ? ": " : ":");
	}
	writer->needs_comma = true;
}

static void open_group(struct json_writer *writer, const char *key, char bracket)
{
	begin_member(writer, key);
	text_append_char(writer->text, bracket);
	writer->needs_comma = false;
	writer->depth++;
}

static void close_group(struct json_writer *writer, char bracket)
{
	writer->depth--;
	if (writer->needs_comma)
		new_line(writer);
	text_append_char(writer->text, bracket);
	writer->needs_comma = true;
}

void json_open_object(struct json_writer *writer, const char *key)
{
	open_group(writer, key, '{');
}

void json_close_object(struct json_writer *writer)
{
	close_group(writer, '}');
}

void json_open_array(struct json_writer *writer, const char *key)
{
	open_group(writer, key, '[');
}

void json_close_array(struct json_writer *writer)
{
	close_group(writer, ']');
}

void json_write_bytes(struct json_writer *writer, const char *key, const void *bytes, size_t len)
{
	begin_member(writer, key);
	write_quoted(writer, bytes, len);
}

void json_write_string(struct json_writer *writer, const char *key, const char *string)
{
	if (string)
		json_write_bytes(writer, key, string, strlen(string));
	else
		json_write_null(writer, key);
}

void json_write_integer(struct json_writer *writer, const char *key, int64_t number)
{
	begin_member(writer, key);
	text_append_format(writer->text, "%" PRId64, number);
}

void json_write_unsigned(struct json_writer *writer, const char *key, uint64_t number)
{
	begin_member(writer, key);
	text_append_format(writer->text, "%" PRIu64, number);
}

void json_write_milliseconds(struct json_writer *writer, const char *key, uint64_t microseconds)
{
	uint64_t rest = microseconds % 1000;
	int digits = 3;

	for (; digits > 1 && rest % 10 == 0; digits--)
		rest /= 10;
	begin_member(writer, key);
	text_append_format(writer->text, "%" PRIu64 ".%0*" PRIu64, microseconds / 1000, digits, rest);
}

void json_write_bool(struct json_writer *writer, const char *key, bool value)
{
	begin_member(writer, key);
	text_append_string(writer->text, value ? "true" : "false");
}

void json_write_null(struct json_writer *writer, const char *key)
{
	begin_member(writer, key);
	text_append_string(writer->text, "null");
}

void json_write_raw(struct json_writer *writer, const char *key, const char *json, size_t len)
{
	begin_member(writer, key);
	text_append(writer->text, json, len);
}

void json_write_error(struct json_writer *writer, const char *key, const struct error *error)
{
	if (!error) {
		json_write_null(writer, key);
		return;
	}
	json_open_object(writer, key);
	json_write_string(writer, "stage", stage_name(error->stage));
	if (error->errno_value) {
		json_write_integer(writer, "errno", error->errno_value);
		json_write_string(writer, "errno_name", errno_name(error->errno_value));
	} else {
		json_write_null(writer, "errno");
		json_write_null(writer, "errno_name");
	}
	json_write_string(writer, "message", error->message);
	json_write_string(writer, "hint", error->hint[0] ? error->hint : NULL);
	json_close_object(writer);
}

void json_write_value(struct json_writer *writer, const char *key, const struct json_value *value)
{
	switch (value->type) {
	case JSON_NULL:
		json_write_null(writer, key);
		break;
	case JSON_BOOL:
		json_write_bool(writer, key, value->boolean);
		break;
	case JSON_INTEGER:
	case JSON_REAL:
		json_write_raw(writer, key, value->number.digits, strlen(value->number.digits));
		break;
	case JSON_STRING:
		json_write_bytes(writer, key, value->string.bytes, value->string.len);
		break;
	case JSON_LIST:
		json_open_array(writer, key);
		for (size_t i = 0; i < value->list.count; i++)
			json_write_value(writer, NULL, &value->list.items[i]);
		json_close_array(writer);
		break;
	case JSON_OBJECT:
		json_open_object(writer, key);
		for (size_t i = 0; i < value->object.count; i++)
			json_write_value(writer, value->object.members[i].name, &value->object.members[i].value);
		json_close_object(writer);
		break;
	case JSON_TYPE_COUNT:
		break;
	}
}
