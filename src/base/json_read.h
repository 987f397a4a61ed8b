/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/json_read.h - read JSON that people write, and report exactly where it is wrong
 *
 * UTF-8 JSON with `//` and block comments and trailing commas. Every value and every key knows its line and column,
 * both from 1, columns counted in characters. Strings never hold a NUL, so they are plain C strings.
 */
#ifndef BELLJAR_BASE_JSON_READ_H
#define BELLJAR_BASE_JSON_READ_H

#include "base/error.h"

#define JSON_MAX_BYTES ((size_t)1 << 20)
#define JSON_MAX_ENTRIES 1000 /* of a list, unless the caller says otherwise; of an object, always */
#define JSON_MAX_DEPTH 64

enum json_type {
	JSON_NULL,
	JSON_BOOL,
	JSON_INTEGER, /* a number without fraction and exponent that fits an int64_t */
	JSON_REAL,    /* any other number; always finite */
	JSON_STRING,
	JSON_LIST,
	JSON_OBJECT,
	JSON_TYPE_COUNT,
	JSON_ANY = JSON_TYPE_COUNT, /* for json_member() */
};

struct json_member;

struct json_value {
	enum json_type type;
	unsigned line;
	unsigned column;
	union {
		bool boolean;
		struct {
			char *digits; /* as written in the document: exact where a double is not */
			union {
				int64_t integer;
				double real;
			};
		} number;
		struct {
			char *bytes;
			size_t len;
		} string;
		struct {
			struct json_value *items;
			size_t count;
		} list;
		struct {
			struct json_member *members; /* in the order of the document; no name occurs twice */
			size_t count;
		} object;
	};
};

struct json_member {
	char *name;
	unsigned line; /* of the name */
	unsigned column;
	struct json_value value;
};

struct json_input {
	const char *name; /* for messages: "NAME:LINE:COLUMN: ..." */
	const char *bytes;
	size_t len;
	enum stage stage;   /* of the errors */
	size_t max_bytes;   /* 0: JSON_MAX_BYTES */
	size_t max_entries; /* of a list; 0: JSON_MAX_ENTRIES */
	/* A lone low surrogate, U+DC80 to U+DCFF, means a raw byte 0x80 to 0xFF that is not UTF-8. */
	bool has_byte_escapes;
};

/* Parse the whole input as one value. Nothing in *@out points into the input. */
int json_parse(const struct json_input *input, struct json_value *out, struct error *error);
void json_value_done(struct json_value *value);

/* Return the member of that name, or NULL. @object is an object. */
const struct json_member *json_find(const struct json_value *object, const char *name);

/* Return the value of that name and type, or NULL; NULL too if @object is NULL or not an object. */
const struct json_value *json_member(const struct json_value *object, const char *name, enum json_type type);
/* Return the string of that name, or NULL. */
const char *json_string_of(const struct json_value *object, const char *name);

/* For messages: "a list", "null". */
const char *json_type_name(enum json_type type);

#define AUTO_JSON AUTO(json_value_done) struct json_value

#endif
