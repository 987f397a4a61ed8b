/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/text.c - a growable byte string, and a list of strings
 */
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SMALLEST_CAPACITY 64
#define READ_BYTES ((size_t)64 << 10)

void text_done(struct text *text)
{
	if (!text)
		return;
	free(text->data);
	*text = (struct text){0};
}

char *text_reserve(struct text *text, size_t len)
{
	size_t needed, capacity = text->capacity ? text->capacity : SMALLEST_CAPACITY;
	char *grown;

	if (text->has_failed)
		return NULL;
	if (__builtin_add_overflow(text->len, len, &needed) || __builtin_add_overflow(needed, 1, &needed)) {
		text->has_failed = true;
		return NULL;
	}
	if (needed > text->capacity) {
		while (capacity < needed)
			capacity = capacity > SIZE_MAX / 2 ? needed : capacity * 2;
		grown = realloc(text->data, capacity);
		if (!grown) {
			text->has_failed = true;
			return NULL;
		}
		text->data = grown;
		text->capacity = capacity;
	}
	return text->data + text->len;
}

int text_read_all(struct text *text, int fd, size_t max_len)
{
	while (text->len <= max_len) {
		size_t room = MIN_OF(max_len + 1 - text->len, READ_BYTES);
		char *end = text_reserve(text, room);
		ssize_t count = end ? read(fd, end, room) : -1;

		if (!end)
			return -ENOMEM;
		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			return count < 0 ? -errno : 0;
		text->len += (size_t)count;
	}
	return -EFBIG;
}

int text_write_all(int fd, const void *bytes, size_t len)
{
	const char *at = bytes;

	while (len) {
		ssize_t count = write(fd, at, len);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return -errno;
		at += count;
		len -= (size_t)count;
	}
	return 0;
}

void text_append(struct text *text, const void *bytes, size_t len)
{
	char *end = text_reserve(text, len);

	if (!end)
		return;
	if (len)
		memcpy(end, bytes, len);
	text->len += len;
	text->data[text->len] = '\0';
}

void text_append_string(struct text *text, const char *string)
{
	text_append(text, string, strlen(string));
}

void text_append_char(struct text *text, char character)
{
	text_append(text, &character, 1);
}

void text_append_format_list(struct text *text, const char *format, va_list arguments)
{
	va_list again;
	int len;
	char *end;

	va_copy(again, arguments);
	len = vsnprintf(NULL, 0, format, again);
	va_end(again);
	end = len < 0 ? NULL : text_reserve(text, (size_t)len);
	if (!end)
		return;
	vsnprintf(end, (size_t)len + 1, format, arguments);
	text->len += (size_t)len;
}

void text_append_format(struct text *text, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	text_append_format_list(text, format, arguments);
	va_end(arguments);
}

void text_consume(struct text *text, size_t len)
{
	if (!len)
		return;
	memmove(text->data, text->data + len, text->len - len);
	text->len -= len;
	text->data[text->len] = '\0';
}

void text_clear(struct text *text)
{
	text->len = 0;
	if (text->data)
		text->data[0] = '\0';
}

void string_list_clear(struct string_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i]);
	list->count = 0;
	if (list->items)
		list->items[0] = NULL;
}

void string_list_done(struct string_list *list)
{
	if (!list)
		return;
	string_list_clear(list);
	free(list->items);
	*list = (struct string_list){0};
}

/* Takes ownership of @string, also on failure. */
static int add_owned(struct string_list *list, char *string)
{
	if (!string)
		return -ENOMEM;
	if (list->count + 2 > list->capacity) {
		size_t capacity = list->capacity ? list->capacity * 2 : 8;
		char **grown = realloc(list->items, capacity * sizeof(*grown));

		if (!grown) {
			free(string);
			return -ENOMEM;
		}
		list->items = grown;
		list->capacity = capacity;
	}
	list->items[list->count++] = string;
	list->items[list->count] = NULL;
	return 0;
}

int string_list_add(struct string_list *list, const char *string)
{
	return add_owned(list, strdup(string));
}

int string_list_add_format(struct string_list *list, const char *format, ...)
{
	va_list arguments;
	char *string = NULL;
	int len;

	va_start(arguments, format);
	len = vasprintf(&string, format, arguments);
	va_end(arguments);
	return len < 0 ? -ENOMEM : add_owned(list, string);
}

int string_list_copy(struct string_list *to, const struct string_list *from)
{
	for (size_t i = 0; i < from->count; i++) {
		int rc = string_list_add(to, from->items[i]);

		if (rc < 0)
			return rc;
	}
	return 0;
}
