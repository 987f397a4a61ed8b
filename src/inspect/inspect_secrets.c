/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect/inspect_secrets.c - secrets: where a placeholder may stand, and what must not come back
 */
#include "inspect/inspect_secrets.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Of a value that is not whole yet, when what follows does not come. */
#define SHOWN_MAX 4
#define SHOWN_PART 4

const char *secret_value_fault(const char *value, size_t len)
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

static const struct json_value *member(const struct json_value *object, const char *name)
{
	const struct json_member *found = object->type == JSON_OBJECT ? json_find(object, name) : NULL;

	return found && found->value.type == JSON_STRING ? &found->value : NULL;
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
	const struct json_value *value = member(object, "value");
	bool is_read = value && !secret_value_fault(value->string.bytes, value->string.len) &&
		       copy(secret->name, sizeof(secret->name), member(object, "name")) &&
		       copy(secret->host, sizeof(secret->host), member(object, "host")) &&
		       copy(secret->header, sizeof(secret->header), member(object, "header")) &&
		       copy(secret->format, sizeof(secret->format), member(object, "format")) &&
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

bool secrets_read(struct secrets *secrets, struct json_value *list)
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
		secrets_done(secrets);
	return is_read;
}

void secrets_done(struct secrets *secrets)
{
	if (secrets->items)
		explicit_bzero(secrets->items, secrets->count * sizeof(*secrets->items));
	free(secrets->items);
	*secrets = (struct secrets){0};
}

bool secrets_are_for(const struct secrets *secrets, const char *host)
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

enum secret_use secrets_look(const struct secrets *secrets, const char *host, bool is_safe, struct http_slice header,
			     struct http_slice value, const struct secret **out)
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

void secret_write_header(const struct secret *secret, struct text *out)
{
	text_append_format(out, "%s: %s\r\n", secret->header, secret->written);
}

/* --- answers ------------------------------------------------------------------------------------------------ */

/* How many bytes at the end could be the beginning of the value. */
static size_t begun_at_end(const struct secret *secret, const char *bytes, size_t len)
{
	for (size_t begun = MIN_OF(len, secret->value_len - 1); begun; begun--)
		if (!memcmp(bytes + len - begun, secret->value, begun))
			return begun;
	return 0;
}

void secrets_hide(const struct secrets *secrets, char *bytes, size_t len)
{
	for (size_t i = 0; i < secrets->count; i++) {
		const struct secret *secret = &secrets->items[i];
		char *found;

		for (size_t at = 0; (found = memmem(bytes + at, len - at, secret->value, secret->value_len));
		     at = (size_t)(found - bytes) + secret->value_len)
			memset(found, '*', secret->value_len);
	}
}

struct http_slice secrets_search(const struct secrets *secrets, struct secret_search *search, struct http_slice piece,
				 enum secret_search_state state)
{
	struct text *held = &search->held;
	size_t needed = 0, waiting = 0, begin;

	text_consume(held, search->unneeded);
	search->gone -= search->unneeded;
	search->unneeded = 0;
	text_append(held, piece.bytes, piece.len);
	if (text_failed(held) || !held->len)
		return (struct http_slice){"", 0};
	secrets_hide(secrets, held->data, held->len);
	for (size_t i = 0; i < secrets->count && state != SEARCH_END; i++) {
		const struct secret *secret = &secrets->items[i];
		size_t begun = begun_at_end(secret, held->data, held->len);

		needed = MAX_OF(needed, begun);
		if (state == SEARCH_MORE || begun > MIN_OF((size_t)SHOWN_MAX, secret->value_len / SHOWN_PART))
			waiting = MAX_OF(waiting, begun);
	}
	begin = search->gone;
	search->gone = MAX_OF(begin, held->len - waiting);
	search->unneeded = held->len - needed;
	return (struct http_slice){held->data + begin, search->gone - begin};
}

bool secret_search_is_holding(const struct secret_search *search)
{
	return search->gone < search->held.len;
}

void secret_search_done(struct secret_search *search)
{
	text_done(&search->held);
	*search = (struct secret_search){0};
}
