/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/message.c - Belljar's own words, on stderr only
 *
 * A message is built whole and written with one system call, so that it stays in one piece beside the command's own
 * output. Failing to write it is nobody's business: there is nowhere left to say so.
 */
#include "cli/message.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

#define COLOR_RED "\033[1;31m"
#define COLOR_YELLOW "\033[33m"
#define COLOR_DIM "\033[2m"
#define COLOR_OFF "\033[0m"

bool wants_color(enum color_choice color, int fd)
{
	const char *no_color = getenv("NO_COLOR");
	const char *terminal = getenv("TERM");

	switch (color) {
	case COLOR_ALWAYS:
		return true;
	case COLOR_NEVER:
		return false;
	case COLOR_AUTO:
		break;
	}
	return !(no_color && *no_color) && terminal && strcmp(terminal, "dumb") != 0 && isatty(fd);
}

void messenger_init(struct messenger *messenger, enum color_choice color, int verbosity)
{
	*messenger = (struct messenger){
		.fd = STDERR_FILENO,
		.verbosity = verbosity,
		.has_color = wants_color(color, STDERR_FILENO),
	};
}

/* The code point of a character that utf8_character() found valid. */
static uint32_t code_point(const unsigned char *bytes, size_t len)
{
	static const unsigned char first_byte_mask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	uint32_t code = bytes[0] & first_byte_mask[len];

	for (size_t i = 1; i < len; i++)
		code = code << 6 | (bytes[i] & 0x3f);
	return code;
}

/* Characters that take effect instead of being seen: C0, C1, bidirectional controls, line separators, BOM. */
static bool is_control(uint32_t code)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{0x00, 0x1f},     {0x7f, 0x9f},     {0x61c, 0x61c},   {0x200b, 0x200f},   {0x2028, 0x202e},
		{0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
	};

	for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
		if (code >= ranges[i].first && code <= ranges[i].last)
			return true;
	return false;
}

static void escape_byte(struct text *out, unsigned char byte)
{
	switch (byte) {
	case '\n':
		text_append_string(out, "\\n");
		break;
	case '\t':
		text_append_string(out, "\\t");
		break;
	case '\r':
		text_append_string(out, "\\r");
		break;
	default:
		text_append_format(out, "\\x%02x", byte);
		break;
	}
}

void message_escape(struct text *out, const char *string)
{
	const unsigned char *bytes = (const unsigned char *)string;
	size_t len = strnlen(string, MESSAGE_NAME_MAX);
	bool is_cut;

	for (size_t i = 0; i < len;) {
		size_t character_len = utf8_character(bytes + i, len - i, &is_cut);

		if (character_len > 0 && !is_control(code_point(bytes + i, character_len))) {
			text_append(out, bytes + i, character_len);
			i += character_len;
			continue;
		}
		for (size_t end = i + MAX_OF(character_len, 1); i < end; i++)
			escape_byte(out, bytes[i]);
	}
	if (string[len])
		text_append_string(out, "...");
}

static void write_all(int fd, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t written = write(fd, bytes, len);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return;
		bytes += written;
		len -= (size_t)written;
	}
}

static void append_line(const struct messenger *messenger, struct text *out, const char *label, const char *color,
			const char *words)
{
	if (messenger->has_color)
		text_append_string(out, color);
	text_append_string(out, label);
	if (messenger->has_color)
		text_append_string(out, COLOR_OFF);
	text_append_char(out, ' ');
	message_escape(out, words);
	text_append_string(out, messenger->is_raw ? "\r\n" : "\n");
}

static void write_line(const struct messenger *messenger, const char *label, const char *color, const char *format,
		       va_list arguments)
{
	AUTO_TEXT words = {0};
	AUTO_TEXT line = {0};

	text_append_format_list(&words, format, arguments);
	append_line(messenger, &line, label, color, text_string(&words));
	write_all(messenger->fd, text_string(&line), line.len);
}

void message_error(const struct messenger *messenger, const struct error *error)
{
	AUTO_TEXT lines = {0};

	if (!error || error->stage == STAGE_NONE)
		return;
	append_line(messenger, &lines, "belljar:", COLOR_RED, error->message);
	if (error->hint[0])
		append_line(messenger, &lines, "  hint:", COLOR_YELLOW, error->hint);
	write_all(messenger->fd, text_string(&lines), lines.len);
}

void message_note(const struct messenger *messenger, const char *format, ...)
{
	va_list arguments;

	if (messenger->verbosity < 0)
		return;
	va_start(arguments, format);
	write_line(messenger, "belljar:", COLOR_YELLOW, format, arguments);
	va_end(arguments);
}

void message_hint(const struct messenger *messenger, const char *format, ...)
{
	va_list arguments;

	if (messenger->verbosity < 0)
		return;
	va_start(arguments, format);
	write_line(messenger, "  hint:", COLOR_YELLOW, format, arguments);
	va_end(arguments);
}

void message_verbose(const struct messenger *messenger, const char *format, ...)
{
	va_list arguments;

	if (messenger->verbosity < 1)
		return;
	va_start(arguments, format);
	write_line(messenger, "belljar:", COLOR_DIM, format, arguments);
	va_end(arguments);
}
