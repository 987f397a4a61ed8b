/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/text.h - a growable byte string
 *
 * Appending never fails visibly: when memory runs out the text is marked and every later append is dropped, so that a
 * long chain of appends is checked once, at its end, with text_failed(). @data is NUL-terminated once anything was
 * appended; the NUL is not counted in @len.
 */
#ifndef BELLJAR_BASE_TEXT_H
#define BELLJAR_BASE_TEXT_H

#include <stdarg.h>

#include "base/base.h"

struct text {
	char *data;
	size_t len;
	size_t capacity;
	bool has_failed;
};

void text_done(struct text *text);
void text_append(struct text *text, const void *bytes, size_t len);
void text_append_string(struct text *text, const char *string);
void text_append_char(struct text *text, char character);
void text_append_format(struct text *text, const char *format, ...) PRINTF_LIKE(2, 3);
void text_append_format_list(struct text *text, const char *format, va_list arguments);
/* Drop the first @len bytes. */
void text_consume(struct text *text, size_t len);
void text_clear(struct text *text);
/* Reserve @len bytes at the end. The caller fills them and then adds to text->len. Returns NULL if memory ran out. */
char *text_reserve(struct text *text, size_t len);
/* Append all of @fd. Returns 0, -EFBIG if the text is then longer than @max_len, or another negative errno. */
int text_read_all(struct text *text, int fd, size_t max_len);
/* Write @len bytes, in several calls if necessary. Returns 0 or a negative errno. */
int text_write_all(int fd, const void *bytes, size_t len);

static inline bool text_failed(const struct text *text)
{
	return text->has_failed;
}

static inline const char *text_string(const struct text *text)
{
	return text->data ? text->data : "";
}

#define AUTO_TEXT AUTO(text_done) struct text

/* A list of owned strings; NULL-terminated once anything was added, so it serves as argv or envp. */
struct string_list {
	char **items;
	size_t count;
	size_t capacity;
};

void string_list_done(struct string_list *list);
int string_list_add(struct string_list *list, const char *string);
int string_list_add_format(struct string_list *list, const char *format, ...) PRINTF_LIKE(2, 3);
int string_list_copy(struct string_list *to, const struct string_list *from);
void string_list_clear(struct string_list *list);

#endif
