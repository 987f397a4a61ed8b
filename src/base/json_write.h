/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/json_write.h - write JSON into a text, commas and escapes taken care of
 *
 * Callers pass a key with each member (NULL inside an array). The writer replaces invalid UTF-8 by U+FFFD, so the
 * output is always one valid JSON document.
 */
#ifndef BELLJAR_BASE_JSON_WRITE_H
#define BELLJAR_BASE_JSON_WRITE_H

#include "base/text.h"

struct error;
struct json_value;

struct json_writer {
	struct text *text;
	bool needs_comma;
	int indent; /* 0: everything on one line; otherwise each member is on its own line */
	int depth;
	bool has_byte_escapes; /* write a byte that is not UTF-8 as a lone surrogate, \\udc80 to \\udcff, to keep it */
};

void json_open_object(struct json_writer *writer, const char *key);
void json_close_object(struct json_writer *writer);
void json_open_array(struct json_writer *writer, const char *key);
void json_close_array(struct json_writer *writer);
void json_write_string(struct json_writer *writer, const char *key, const char *string); /* NULL writes null */
void json_write_bytes(struct json_writer *writer, const char *key, const void *bytes, size_t len);
void json_write_integer(struct json_writer *writer, const char *key, int64_t number);
void json_write_unsigned(struct json_writer *writer, const char *key, uint64_t number);
/* Write microseconds as milliseconds with up to three decimals: 3100 becomes 3.1. */
void json_write_milliseconds(struct json_writer *writer, const char *key, uint64_t microseconds);
void json_write_bool(struct json_writer *writer, const char *key, bool value);
void json_write_null(struct json_writer *writer, const char *key);
/* Write an error as a result contains it; NULL writes null. */
void json_write_error(struct json_writer *writer, const char *key, const struct error *error);
/* Write a value as it was read, without its white space and comments. */
void json_write_value(struct json_writer *writer, const char *key, const struct json_value *value);
/* @json is a complete JSON value already. */
void json_write_raw(struct json_writer *writer, const char *key, const char *json, size_t len);

#endif
