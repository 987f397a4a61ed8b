/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/json_read.c - a strict, bounded parser for JSON with comments and trailing commas
 *
 * The document is checked for UTF-8 and control characters once, before anything else; from there on the parser may
 * look at bytes. Line and column move with the cursor and are never counted anew, so a document on one line costs no
 * more than any other. Parsing and freeing recurse once per nesting level, and nesting is bounded.
 *
 * strtod() follows the locale of the process; the engine never sets one. Callers that need exact decimals read the
 * digits instead.
 */
#include "base/json_read.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "base/utf8.h"

struct position {
	unsigned line;
	unsigned column;
};

struct reader {
	const struct json_input *input;
	struct error *error;
	const char *at;
	const char *end;
	struct position here;
	unsigned depth;
	size_t max_entries;
};

static const char *const type_names[] = {
	[JSON_NULL] = "null",       [JSON_BOOL] = "a bool", [JSON_INTEGER] = "a number", [JSON_REAL] = "a number",
	[JSON_STRING] = "a string", [JSON_LIST] = "a list", [JSON_OBJECT] = "an object",
};
_Static_assert(ARRAY_LEN(type_names) == JSON_TYPE_COUNT, "every type has a name");

const char *json_type_name(enum json_type type)
{
	return type_names[type];
}

static int refuse(struct reader *reader, struct position where, const char *format, ...) PRINTF_LIKE(3, 4);

static int refuse(struct reader *reader, struct position where, const char *format, ...)
{
	AUTO_TEXT message = {0};
	va_list arguments;

	va_start(arguments, format);
	text_append_format_list(&message, format, arguments);
	va_end(arguments);
	return error_set(reader->error, reader->input->stage, 0, "%s:%u:%u: %s", reader->input->name, where.line,
			 where.column, text_string(&message));
}

static int out_of_memory(struct reader *reader)
{
	return error_set(reader->error, reader->input->stage, ENOMEM, "no memory to read '%s'", reader->input->name);
}

static size_t bytes_left(const struct reader *reader)
{
	return (size_t)(reader->end - reader->at);
}

static bool starts_with(const struct reader *reader, const char *word)
{
	size_t len = strlen(word);

	return bytes_left(reader) >= len && memcmp(reader->at, word, len) == 0;
}

static bool is_at(const struct reader *reader, char character)
{
	return reader->at < reader->end && *reader->at == character;
}

static void advance(struct reader *reader, size_t len)
{
	for (const char *stop = reader->at + len; reader->at < stop; reader->at++) {
		unsigned char byte = (unsigned char)*reader->at;

		if (byte == '\n') {
			reader->here.line++;
			reader->here.column = 1;
		} else if ((byte & 0xc0) != 0x80) {
			reader->here.column++;
		}
	}
}

static bool is_space(char character)
{
	return character == ' ' || character == '\t' || character == '\n' || character == '\r';
}

/* Return the length of the character at @at; 0: it is not allowed in a document. */
static size_t check_character(const char *at, const char *end)
{
	unsigned char byte = (unsigned char)*at;
	bool is_cut;

	if (byte >= 0x80)
		return utf8_character((const unsigned char *)at, (size_t)(end - at), &is_cut);
	return byte >= 0x20 || is_space((char)byte) ? 1 : 0;
}

static int check_characters(struct reader *reader)
{
	const char *at = reader->at;
	size_t len;

	for (; at < reader->end; at += len) {
		len = check_character(at, reader->end);
		if (len)
			continue;
		advance(reader, (size_t)(at - reader->at));
		if ((unsigned char)*at >= 0x80)
			return refuse(reader, reader->here, "this is not UTF-8 (byte 0x%02x)", (unsigned char)*at);
		return refuse(reader, reader->here, "control character U+%04X", (unsigned char)*at);
	}
	if (starts_with(reader, "\xef\xbb\xbf"))
		return refuse(reader, reader->here, "the document begins with a byte order mark; remove it");
	return 0;
}

static int skip_block_comment(struct reader *reader)
{
	struct position start = reader->here;

	advance(reader, 2);
	while (reader->at < reader->end) {
		if (starts_with(reader, "*/")) {
			advance(reader, 2);
			return 0;
		}
		advance(reader, 1);
	}
	return refuse(reader, start, "this comment is not closed");
}

static int skip_space(struct reader *reader)
{
	while (reader->at < reader->end) {
		if (is_space(*reader->at)) {
			advance(reader, 1);
		} else if (*reader->at != '/') {
			return 0;
		} else if (starts_with(reader, "//")) {
			const char *line_end = memchr(reader->at, '\n', bytes_left(reader));

			advance(reader, line_end ? (size_t)(line_end - reader->at) : bytes_left(reader));
		} else if (starts_with(reader, "/*")) {
			int rc = skip_block_comment(reader);

			if (rc < 0)
				return rc;
		} else {
			return 0;
		}
	}
	return 0;
}

/* Refuse the character at the cursor. */
static int refuse_character(struct reader *reader, const char *expected)
{
	bool is_cut;
	size_t len;

	if (reader->at == reader->end)
		return refuse(reader, reader->here, "the document ends where %s should be", expected);
	len = utf8_character((const unsigned char *)reader->at, bytes_left(reader), &is_cut);
	return refuse(reader, reader->here, "expected %s, not '%.*s'", expected, (int)len, reader->at);
}

/* Four hexadecimal digits at @at; negative if they are not. */
static int32_t hex4(const struct reader *reader, const char *at)
{
	int32_t code = 0;

	if (reader->end - at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		static const char digits[] = "0123456789abcdef";
		const char *digit = strchr(digits, tolower((unsigned char)at[i]));

		if (!digit || !*digit)
			return -1;
		code = code * 16 + (int32_t)(digit - digits);
	}
	return code;
}

static void append_utf8(struct text *text, uint32_t code)
{
	if (code < 0x80) {
		text_append_char(text, (char)code);
		return;
	}
	if (code < 0x800) {
		text_append_char(text, (char)(0xc0 | code >> 6));
	} else {
		if (code < 0x10000) {
			text_append_char(text, (char)(0xe0 | code >> 12));
		} else {
			text_append_char(text, (char)(0xf0 | code >> 18));
			text_append_char(text, (char)(0x80 | (code >> 12 & 0x3f)));
		}
		text_append_char(text, (char)(0x80 | (code >> 6 & 0x3f)));
	}
	text_append_char(text, (char)(0x80 | (code & 0x3f)));
}

/* Read from "\u" on. A character beyond U+FFFF is two escapes, high surrogate first; neither is valid alone. */
static int read_unicode_escape(struct reader *reader, struct text *text)
{
	int32_t code = hex4(reader, reader->at + 2), low;
	size_t len = 6;

	if (code < 0)
		return refuse(reader, reader->here, "'\\u' needs four hexadecimal digits");
	if (code == 0)
		return refuse(reader, reader->here, "a string may not hold a NUL");
	if (reader->input->has_byte_escapes && code >= 0xdc80 && code <= 0xdcff) {
		text_append_char(text, (char)(code - 0xdc00));
		advance(reader, len);
		return 0;
	}
	if (code >= 0xdc00 && code <= 0xdfff)
		return refuse(reader, reader->here, "a low surrogate without a high one before it");
	if (code >= 0xd800 && code <= 0xdbff) {
		low = -1;
		if (bytes_left(reader) >= 12 && reader->at[6] == '\\' && reader->at[7] == 'u')
			low = hex4(reader, reader->at + 8);
		if (low < 0xdc00 || low > 0xdfff)
			return refuse(reader, reader->here, "a high surrogate without a low one after it");
		code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
		len = 12;
	}
	append_utf8(text, (uint32_t)code);
	advance(reader, len);
	return 0;
}

static int read_escape(struct reader *reader, struct text *text)
{
	static const char names[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
	const char *name;

	if (bytes_left(reader) < 2)
		return refuse_character(reader, "an escape");
	if (reader->at[1] == 'u')
		return read_unicode_escape(reader, text);
	name = strchr(names, reader->at[1]);
	if (!name || !*name)
		return refuse(reader, reader->here,
			      "unknown escape; known are \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
	text_append_char(text, meanings[name - names]);
	advance(reader, 2);
	return 0;
}

/* Does @character mean itself in a string? check_character() has refused the other control characters. */
static bool is_plain(char character)
{
	return character != '"' && character != '\\' && (character == ' ' || !is_space(character));
}

/* At the opening quote. */
static int read_string(struct reader *reader, char **string_out, size_t *len_out)
{
	struct position start = reader->here;
	AUTO_TEXT text = {0};
	int rc;

	advance(reader, 1);
	while (reader->at < reader->end && *reader->at != '"') {
		size_t plain = 0;

		if (*reader->at == '\\') {
			rc = read_escape(reader, &text);
			if (rc < 0)
				return rc;
			continue;
		}
		if (*reader->at == '\n' || *reader->at == '\r')
			return refuse(reader, start, "this string is not closed on its line");
		if (*reader->at == '\t')
			return refuse(reader, reader->here, "a tab in a string is written \\t");
		while (reader->at + plain < reader->end && is_plain(reader->at[plain]))
			plain++;
		text_append(&text, reader->at, plain);
		advance(reader, plain);
	}
	if (reader->at == reader->end)
		return refuse(reader, start, "this string is not closed");
	advance(reader, 1);
	text_append(&text, "", 0); /* gives an empty string its NUL */
	if (text_failed(&text))
		return out_of_memory(reader);
	*len_out = text.len;
	*string_out = take_ptr(text.data);
	return 0;
}

static size_t count_digits(const struct reader *reader, const char *from)
{
	const char *at = from;

	while (at < reader->end && *at >= '0' && *at <= '9')
		at++;
	return (size_t)(at - from);
}

/* Return the length of the number at the cursor, or 0. *@is_integer_out: it has neither fraction nor exponent. */
static size_t scan_number(const struct reader *reader, bool *is_integer_out)
{
	const char *at = reader->at;
	size_t digits;

	at += is_at(reader, '-');
	digits = count_digits(reader, at);
	if (!digits || (digits > 1 && *at == '0'))
		return 0;
	at += digits;
	*is_integer_out = true;
	if (at < reader->end && *at == '.') {
		digits = count_digits(reader, at + 1);
		if (!digits)
			return 0;
		at += 1 + digits;
		*is_integer_out = false;
	}
	if (at < reader->end && (*at == 'e' || *at == 'E')) {
		at++;
		at += at < reader->end && (*at == '+' || *at == '-');
		digits = count_digits(reader, at);
		if (!digits)
			return 0;
		at += digits;
		*is_integer_out = false;
	}
	return (size_t)(at - reader->at);
}

static int read_number(struct reader *reader, struct json_value *out)
{
	bool is_integer = false;
	size_t len = scan_number(reader, &is_integer);
	AUTO_FREE char *digits = NULL;

	if (!len)
		return refuse(reader, reader->here, "this is not a number as JSON writes it");
	digits = strndup(reader->at, len);
	if (!digits)
		return out_of_memory(reader);
	errno = 0;
	if (is_integer)
		out->number.integer = strtoll(digits, NULL, 10);
	if (is_integer && errno == 0) {
		out->type = JSON_INTEGER;
	} else {
		out->type = JSON_REAL;
		out->number.real = strtod(digits, NULL);
		if (!isfinite(out->number.real)) {
			*out = (struct json_value){0};
			return refuse(reader, reader->here, "this number is too large");
		}
	}
	out->number.digits = take_ptr(digits);
	advance(reader, len);
	return 0;
}

static int read_value(struct reader *reader, struct json_value *out);

/* Make room for one more zeroed element in an array that grows by doubling. NULL: out of memory. */
static void *grow(void **items, size_t count, size_t item_size)
{
	if ((count & (count - 1)) == 0) {
		void *grown = reallocarray(*items, count ? count * 2 : 1, item_size);

		if (!grown)
			return NULL;
		*items = grown;
	}
	return memset((char *)*items + count * item_size, 0, item_size);
}

/*
 * Read on after an element; set *@is_more_out if another one follows. A comma may precede the closing bracket, so that
 * people can reorder lines freely.
 */
static int next_element(struct reader *reader, char closing, struct position start, bool *is_more_out)
{
	const char *expected = closing == ']' ? "',' or ']'" : "',' or '}'";
	int rc = skip_space(reader);

	if (rc < 0)
		return rc;
	if (is_at(reader, ',')) {
		advance(reader, 1);
		rc = skip_space(reader);
		if (rc < 0)
			return rc;
	} else if (reader->at < reader->end && *reader->at != closing) {
		return refuse_character(reader, expected);
	}
	if (reader->at == reader->end)
		return refuse(reader, start, "this %s is not closed", closing == ']' ? "list" : "object");
	*is_more_out = *reader->at != closing;
	if (!*is_more_out)
		advance(reader, 1);
	return 0;
}

static int read_list(struct reader *reader, struct json_value *out)
{
	struct position start = reader->here;
	bool is_more;
	int rc;

	out->type = JSON_LIST;
	advance(reader, 1);
	rc = skip_space(reader);
	if (rc < 0)
		return rc;
	if (is_at(reader, ']')) {
		advance(reader, 1);
		return 0;
	}
	do {
		struct json_value *item;

		if (out->list.count == reader->max_entries)
			return refuse(reader, reader->here, "more than %zu entries in a list", reader->max_entries);
		item = grow((void **)&out->list.items, out->list.count, sizeof(*item));
		if (!item)
			return out_of_memory(reader);
		out->list.count++;
		rc = read_value(reader, item);
		if (rc < 0)
			return rc;
		rc = next_element(reader, ']', start, &is_more);
		if (rc < 0)
			return rc;
	} while (is_more);
	return 0;
}

static int check_repeated(struct reader *reader, const struct json_value *object, const struct json_member *added)
{
	const struct json_member *earlier = object->object.members;

	for (; earlier < added; earlier++) {
		if (strcmp(earlier->name, added->name) == 0)
			return refuse(reader, (struct position){added->line, added->column},
				      "repeated key '%.100s' (first on line %u)", added->name, earlier->line);
	}
	return 0;
}

static int read_member(struct reader *reader, struct json_value *object)
{
	struct json_member *member;
	size_t name_len;
	int rc;

	if (object->object.count == JSON_MAX_ENTRIES)
		return refuse(reader, reader->here, "more than %d keys in an object", JSON_MAX_ENTRIES);
	if (!is_at(reader, '"'))
		return refuse_character(reader, "a key in double quotes");
	member = grow((void **)&object->object.members, object->object.count, sizeof(*member));
	if (!member)
		return out_of_memory(reader);
	member->line = reader->here.line;
	member->column = reader->here.column;
	rc = read_string(reader, &member->name, &name_len);
	if (rc < 0)
		return rc;
	object->object.count++;
	rc = check_repeated(reader, object, member);
	if (rc < 0)
		return rc;
	rc = skip_space(reader);
	if (rc < 0)
		return rc;
	if (!is_at(reader, ':'))
		return refuse_character(reader, "':' after the key");
	advance(reader, 1);
	rc = skip_space(reader);
	if (rc < 0)
		return rc;
	return read_value(reader, &member->value);
}

static int read_object(struct reader *reader, struct json_value *out)
{
	struct position start = reader->here;
	bool is_more;
	int rc;

	out->type = JSON_OBJECT;
	advance(reader, 1);
	rc = skip_space(reader);
	if (rc < 0)
		return rc;
	if (is_at(reader, '}')) {
		advance(reader, 1);
		return 0;
	}
	do {
		rc = read_member(reader, out);
		if (rc < 0)
			return rc;
		rc = next_element(reader, '}', start, &is_more);
		if (rc < 0)
			return rc;
	} while (is_more);
	return 0;
}

static int read_word(struct reader *reader, struct json_value *out)
{
	static const struct {
		const char *word;
		enum json_type type;
		bool boolean;
	} words[] = {{"null", JSON_NULL, false}, {"true", JSON_BOOL, true}, {"false", JSON_BOOL, false}};
	size_t len = 0;

	while (reader->at + len < reader->end && ((reader->at[len] | 0x20) >= 'a' && (reader->at[len] | 0x20) <= 'z'))
		len++;
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (len == strlen(words[i].word) && starts_with(reader, words[i].word)) {
			out->type = words[i].type;
			out->boolean = words[i].boolean;
			advance(reader, len);
			return 0;
		}
	}
	if (len)
		return refuse(reader, reader->here, "unknown word '%.*s'; a string is written in double quotes",
			      (int)MIN_OF(len, 40), reader->at);
	if (is_at(reader, '\''))
		return refuse(reader, reader->here, "a string is written in double quotes");
	return refuse_character(reader, "a value");
}

static int read_group(struct reader *reader, struct json_value *out)
{
	int rc;

	if (reader->depth == JSON_MAX_DEPTH)
		return refuse(reader, reader->here, "nested more than %d deep", JSON_MAX_DEPTH);
	reader->depth++;
	rc = *reader->at == '[' ? read_list(reader, out) : read_object(reader, out);
	reader->depth--;
	return rc;
}

/* Also on failure *@out holds the parts read so far, which the owner frees. */
static int read_value(struct reader *reader, struct json_value *out)
{
	char first = reader->at < reader->end ? *reader->at : '\0';

	out->line = reader->here.line;
	out->column = reader->here.column;
	if (first == '{' || first == '[')
		return read_group(reader, out);
	if (first == '"') {
		int rc = read_string(reader, &out->string.bytes, &out->string.len);

		out->type = rc < 0 ? JSON_NULL : JSON_STRING;
		return rc;
	}
	if (first == '-' || (first >= '0' && first <= '9'))
		return read_number(reader, out);
	return read_word(reader, out);
}

static int read_document(struct reader *reader, struct json_value *out)
{
	int rc = check_characters(reader);

	if (rc < 0)
		return rc;
	rc = skip_space(reader);
	if (rc < 0)
		return rc;
	rc = read_value(reader, out);
	if (rc < 0)
		return rc;
	rc = skip_space(reader);
	if (rc < 0)
		return rc;
	if (reader->at < reader->end)
		return refuse_character(reader, "the end of the document");
	return 0;
}

int json_parse(const struct json_input *input, struct json_value *out, struct error *error)
{
	size_t max_bytes = input->max_bytes ? input->max_bytes : JSON_MAX_BYTES;
	struct reader reader = {
		.input = input,
		.error = error,
		.at = input->bytes,
		.end = input->bytes + input->len,
		.here = {1, 1},
		.max_entries = input->max_entries ? input->max_entries : JSON_MAX_ENTRIES,
	};
	AUTO_JSON value = {0};
	int rc;

	if (input->len > max_bytes)
		return error_set(error, input->stage, EFBIG, "'%s' has %zu bytes; the limit is %zu", input->name,
				 input->len, max_bytes);
	rc = read_document(&reader, &value);
	if (rc < 0)
		return rc;
	*out = value;
	value = (struct json_value){0};
	return 0;
}

void json_value_done(struct json_value *value)
{
	if (!value)
		return;
	switch (value->type) {
	case JSON_NULL:
	case JSON_BOOL:
		break;
	case JSON_INTEGER:
	case JSON_REAL:
		free(value->number.digits);
		break;
	case JSON_STRING:
		free(value->string.bytes);
		break;
	case JSON_LIST:
		for (size_t i = 0; i < value->list.count; i++)
			json_value_done(&value->list.items[i]);
		free(value->list.items);
		break;
	case JSON_OBJECT:
		for (size_t i = 0; i < value->object.count; i++) {
			free(value->object.members[i].name);
			json_value_done(&value->object.members[i].value);
		}
		free(value->object.members);
		break;
	case JSON_TYPE_COUNT:
		break;
	}
	*value = (struct json_value){0};
}

const struct json_member *json_find(const struct json_value *object, const char *name)
{
	for (size_t i = 0; i < object->object.count; i++) {
		if (strcmp(object->object.members[i].name, name) == 0)
			return &object->object.members[i];
	}
	return NULL;
}

const struct json_value *json_member(const struct json_value *object, const char *name, enum json_type type)
{
	const struct json_member *member = object && object->type == JSON_OBJECT ? json_find(object, name) : NULL;

	return member && (type == JSON_ANY || member->value.type == type) ? &member->value : NULL;
}

const char *json_string_of(const struct json_value *object, const char *name)
{
	const struct json_value *value = json_member(object, name, JSON_STRING);

	return value ? value->string.bytes : NULL;
}
