/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/inspect/inspect_secrets.c - secrets: where a placeholder may stand, and what must not come back
 */
#include "gate/inspect/inspect_secrets.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

const char *inspect_secret_value_fault(const char *value, size_t len)
{
	if (len < NET_SECRET_MIN)
		return "it has fewer than 8 bytes";
	if (len > NET_SECRET_MAX)
		return "it has more than 8192 bytes";
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)value[i] < ' ' || value[i] == 0x7f)
			return "it has line breaks or other control characters, which a header cannot have";
	return NULL;
}

static bool copy(char *to, size_t size, const struct json_value *from)
{
	if (!from || from->string.len >= size)
		return false;
	memcpy(to, from->string.bytes, from->string.len);
	to[from->string.len] = '\0';
	return true;
}

static bool read_secret(struct secret *secret, const struct json_value *object)
{
	const struct json_value *value = json_member(object, "value", JSON_STRING);
	bool is_read = value && !inspect_secret_value_fault(value->string.bytes, value->string.len) &&
		       copy(secret->name, sizeof(secret->name), json_member(object, "name", JSON_STRING)) &&
		       copy(secret->host, sizeof(secret->host), json_member(object, "host", JSON_STRING)) &&
		       copy(secret->header, sizeof(secret->header), json_member(object, "header", JSON_STRING)) &&
		       copy(secret->format, sizeof(secret->format), json_member(object, "format", JSON_STRING)) &&
		       copy(secret->value, sizeof(secret->value), value) && strstr(secret->format, "{}");

	secret->value_len = is_read ? value->string.len : 0;
	if (is_read) {
		const char *place = strstr(secret->format, "{}");

		snprintf(secret->written, sizeof(secret->written), "%.*s%s%s", (int)(place - secret->format),
			 secret->format, secret->value, place + 2);
	}
	snprintf(secret->placeholder, sizeof(secret->placeholder), "%s%s", NET_SECRET_PLACEHOLDER, secret->name);
	if (value)
		explicit_bzero(value->string.bytes, value->string.len);
	return is_read;
}

bool inspect_secrets_read(struct secrets *secrets, struct json_value *list)
{
	bool is_read = list->type == JSON_LIST && list->list.count <= NET_SECRETS_MAX;

	*secrets = (struct secrets){0};
	if (!is_read || !list->list.count)
		return is_read;
	secrets->items = calloc(list->list.count, sizeof(*secrets->items));
	if (!secrets->items)
		return false;
	for (size_t i = 0; i < list->list.count; i++)
		is_read &= read_secret(&secrets->items[secrets->count++], &list->list.items[i]);
	if (!is_read)
		inspect_secrets_done(secrets);
	return is_read;
}

void inspect_secrets_done(struct secrets *secrets)
{
	if (secrets->items)
		explicit_bzero(secrets->items, secrets->count * sizeof(*secrets->items));
	free(secrets->items);
	*secrets = (struct secrets){0};
}

bool inspect_secrets_are_for(const struct secrets *secrets, const char *host)
{
	for (size_t i = 0; i < secrets->count; i++)
		if (!strcmp(secrets->items[i].host, host))
			return true;
	return false;
}

/* --- requests ----------------------------------------------------------------------------------------------- */

/* A placeholder that goes on is another one's. */
static bool has_placeholder(struct http_slice value, const struct secret *secret)
{
	size_t len = strlen(secret->placeholder);
	const char *at = value.bytes, *end = value.bytes + value.len;

	while (at && (at = memmem(at, (size_t)(end - at), secret->placeholder, len))) {
		const char *behind = at + len;
		char next = behind < end ? *behind : ' ';

		if (!((next >= 'A' && next <= 'Z') || (next >= 'a' && next <= 'z') || (next >= '0' && next <= '9') ||
		      next == '_'))
			return true;
		at = behind;
	}
	return false;
}

enum secret_use inspect_secrets_look(const struct secrets *secrets, const char *host, bool is_safe,
				     struct http_slice header, struct http_slice value, const struct secret **out)
{
	enum secret_use use = SECRET_NONE;

	for (size_t i = 0; i < secrets->count; i++) {
		const struct secret *secret = &secrets->items[i];

		if (!has_placeholder(value, secret))
			continue;
		*out = secret;
		if (is_safe && !strcmp(secret->host, host) && http_is(header, secret->header))
			return SECRET_PUT;
		use = SECRET_MISPLACED;
	}
	return use;
}

void inspect_secret_write_header(const struct secret *secret, struct text *out)
{
	text_append_format(out, "%s: %s\r\n", secret->header, secret->written);
}

/* --- answers ------------------------------------------------------------------------------------------------ */

/*
 * What a jar can have a host send back, it can time. So neither the work of a search nor the bytes that wait depend on how much of a
 * value the text has: a rolling hash costs the same for every byte, and only a whole value is compared.
 */
#define HASH_BASE UINT64_C(0x9e3779b97f4a7c15)
/* The number of bytes that wait says no more about the length of a value than this. */
#define LENGTH_STEP 64

/*
 * Cover every occurrence of @secret in @from, of @len bytes, in the first @to_len of @to. Returns where the last one ends that
 * begins there.
 */
static size_t cover_one(const struct secret *secret, const char *from, size_t len, char *to, size_t to_len)
{
	const unsigned char *bytes = (const unsigned char *)from;
	uint64_t wanted = 0, power = 1, hash = 0;
	size_t end = 0;

	for (size_t i = 0; i < secret->value_len; i++) {
		wanted = wanted * HASH_BASE + (unsigned char)secret->value[i];
		power *= HASH_BASE;
	}
	for (size_t i = 0; i < len; i++) {
		size_t begin = i + 1 - secret->value_len;

		hash = hash * HASH_BASE + bytes[i];
		if (i >= secret->value_len)
			hash -= power * bytes[i - secret->value_len];
		if (hash != wanted || i + 1 < secret->value_len ||
		    memcmp(from + begin, secret->value, secret->value_len) != 0 || begin >= to_len)
			continue;
		memset(to + begin, '*', MIN_OF(i + 1, to_len) - begin);
		end = i + 1;
	}
	return end;
}

bool inspect_secrets_hide(const struct secrets *secrets, char *bytes, size_t len)
{
	AUTO_TEXT whole = {0};

	text_append(&whole, bytes, len);
	for (size_t i = 0; i < secrets->count && !text_failed(&whole) && len; i++)
		cover_one(&secrets->items[i], whole.data, len, bytes, len);
	return !text_failed(&whole);
}

size_t inspect_secrets_tail(const struct secrets *secrets)
{
	size_t longest = 0;

	for (size_t i = 0; i < secrets->count; i++)
		longest = MAX_OF(longest, secrets->items[i].value_len);
	return longest ? (longest + LENGTH_STEP - 1) / LENGTH_STEP * LENGTH_STEP - 1 : 0;
}

/* inspect_secret_value_fault() refuses these in a value. */
static bool is_in_no_value(char byte)
{
	return (unsigned char)byte < ' ' || byte == 0x7f;
}

/* How many bytes at the end wait for what follows. */
static size_t tail_of(const struct secrets *secrets, const struct text *held, enum secret_search_end end)
{
	size_t tail = end == SEARCH_END ? 0 : MIN_OF(inspect_secrets_tail(secrets), held->len), rest = tail;

	for (size_t at = held->len - tail; at < held->len && end == SEARCH_BODY; at++)
		if (is_in_no_value(held->data[at]))
			rest = held->len - at - 1;
	return rest;
}

struct http_slice inspect_secrets_search(const struct secrets *secrets, struct secret_search *search,
					 struct http_slice piece, enum secret_search_end end)
{
	struct text *held = &search->held, *out = &search->out;
	size_t covered = search->covered, ready;

	text_clear(out);
	text_consume(held, search->gone);
	search->gone = search->covered = 0;
	text_append(held, piece.bytes, piece.len);
	if (text_failed(held) || !held->len)
		return (struct http_slice){"", 0};
	ready = held->len - tail_of(secrets, held, end);
	text_append(out, held->data, ready);
	if (text_failed(out))
		return (struct http_slice){"", 0};
	/* The first of these bytes may belong to a value whose beginning has gone, the last ones to one whose end waits. */
	memset(out->data, '*', MIN_OF(covered, ready));
	covered -= MIN_OF(covered, ready);
	for (size_t i = 0; i < secrets->count; i++) {
		size_t last = cover_one(&secrets->items[i], held->data, held->len, out->data, ready);

		covered = MAX_OF(covered, last - MIN_OF(last, ready));
	}
	search->covered = covered;
	search->gone = ready;
	return (struct http_slice){text_string(out), ready};
}

bool inspect_secret_search_failed(const struct secret_search *search)
{
	return text_failed(&search->held) || text_failed(&search->out);
}

size_t inspect_secret_search_tail(const struct secret_search *search)
{
	return search->held.len - search->gone;
}

void inspect_secret_search_done(struct secret_search *search)
{
	text_done(&search->held);
	text_done(&search->out);
	*search = (struct secret_search){0};
}
