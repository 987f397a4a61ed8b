/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/oracle_json.c - our JSON reader against jansson, on random documents
 *
 * Documents are valid ones with a few bytes changed. Both must accept, and understand the same, or both refuse. Comments,
 * commas at the end, and integers beyond 64 bits are ours alone; such documents are left out. Not part of the unit
 * tests, because it needs libjansson: cc ... oracle_json.c -ljansson; oracle_json [ROUNDS [SEED]].
 */
/* Both call their types JSON_...; theirs get another name. */
#define JSON_OBJECT THEIR_OBJECT
#define JSON_STRING THEIR_STRING
#define JSON_INTEGER THEIR_INTEGER
#define JSON_REAL THEIR_REAL
#define JSON_NULL THEIR_NULL
#include <jansson.h>
#undef JSON_OBJECT
#undef JSON_STRING
#undef JSON_INTEGER
#undef JSON_REAL
#undef JSON_NULL

#include <stdio.h>
#include <string.h>

#include "base/json_read.h"

static const char *const seeds[] = {
	"{\"a\": [1, -2.5e1, \"x\\ud83d\\ude00\\n\", {\"b\": null}, true], \"e\": {\"f\": \"\xc3\xa9\"}}",
	"[0, 1, -1, 0.5, 1E+5, 2e-3, 1234567890123, \"\\u00e9\\\\\\\"\\/\\b\\f\\r\\t\", [], {}, [[[]]], false]",
	"\"plain \xe2\x82\xac \xf0\x9f\x98\x80\"",
	" { \"\" : [ ] , \"x y\" : { \"z\" : -0 } } ",
};
static const char alphabet[] = "{}[]:,\"\\ue0123456789+-.EtrfalsnDd8 \t\n\x01\x80\xc3\xa9'x";

static uint64_t state = 88172645463325252;

static uint64_t next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static size_t mutate(char *document, size_t len, size_t capacity)
{
	for (uint64_t changes = next_random() % 4; changes > 0 && len > 1; changes--) {
		size_t at = next_random() % len;
		char character = alphabet[next_random() % (sizeof(alphabet) - 1)];

		switch (next_random() % 3) {
		case 0:
			document[at] = character;
			break;
		case 1:
			memmove(document + at, document + at + 1, --len - at);
			break;
		case 2:
			if (len == capacity)
				break;
			memmove(document + at + 1, document + at, len++ - at);
			document[at] = character;
			break;
		}
	}
	return len;
}

static bool is_same(const struct json_value *ours, const json_t *theirs)
{
	if (!theirs)
		return false;
	switch (ours->type) {
	case JSON_NULL:
		return json_typeof(theirs) == THEIR_NULL;
	case JSON_BOOL:
		return json_is_boolean(theirs) && ours->boolean == json_boolean_value(theirs);
	case JSON_INTEGER:
		return json_typeof(theirs) == THEIR_INTEGER && ours->number.integer == json_integer_value(theirs);
	case JSON_REAL:
		return json_typeof(theirs) == THEIR_REAL && ours->number.real == json_real_value(theirs);
	case JSON_STRING:
		return json_typeof(theirs) == THEIR_STRING && ours->string.len == json_string_length(theirs) &&
		       strcmp(ours->string.bytes, json_string_value(theirs)) == 0;
	case JSON_LIST:
		if (!json_is_array(theirs) || ours->list.count != json_array_size(theirs))
			return false;
		for (size_t i = 0; i < ours->list.count; i++)
			if (!is_same(&ours->list.items[i], json_array_get(theirs, i)))
				return false;
		return true;
	case JSON_OBJECT:
		if (json_typeof(theirs) != THEIR_OBJECT || ours->object.count != json_object_size(theirs))
			return false;
		for (size_t i = 0; i < ours->object.count; i++)
			if (!is_same(&ours->object.members[i].value,
				     json_object_get(theirs, ours->object.members[i].name)))
				return false;
		return true;
	case JSON_TYPE_COUNT:
		break;
	}
	return false;
}

/* Is there a comma with only space between it and a closing bracket? Inside strings too, which does no harm. */
static bool has_trailing_comma(const char *document, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		size_t next = i + 1;

		while (next < len && strchr(" \t\r\n", document[next]) && document[next])
			next++;
		if (document[i] == ',' && next < len && (document[next] == ']' || document[next] == '}'))
			return true;
	}
	return false;
}

static bool agree(const char *document, size_t len)
{
	struct json_input input = {.name = "f", .bytes = document, .len = len, .stage = STAGE_POLICY};
	AUTO_JSON ours = {0};
	struct error our_error = {0};
	json_error_t their_error = {0};
	json_t *theirs = json_loadb(document, len, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &their_error);
	bool is_ours = json_parse(&input, &ours, &our_error) == 0, result;

	result = is_ours == (theirs != NULL) && (!is_ours || is_same(&ours, theirs));
	if (!result && is_ours && !theirs && strstr(their_error.text, "too big integer"))
		result = true;
	if (!result)
		printf("ours: %s\ntheirs: %s\n%.*s\n", our_error.message, their_error.text, (int)len, document);
	json_decref(theirs);
	return result;
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 200000, compared = 0;

	if (argc > 2)
		state = strtoull(argv[2], NULL, 10) | 1;
	for (long i = 0; i < rounds; i++) {
		const char *seed = seeds[next_random() % ARRAY_LEN(seeds)];
		char document[512];
		size_t len = strlen(seed);

		memcpy(document, seed, len);
		len = mutate(document, len, sizeof(document));
		if (has_trailing_comma(document, len))
			continue;
		compared++;
		if (!agree(document, len))
			return 1;
	}
	printf("ok oracle_json (%ld documents)\n", compared);
	return 0;
}
