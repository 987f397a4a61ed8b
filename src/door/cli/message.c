/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/message.c - Belljar's own messages on stderr, and its output on stdout
 *
 * A message is built whole and written with one system call, so that it stays in one piece beside the command's own
 * output. A failure to write it is ignored: there is no place left to report it.
 */
#include "door/cli/message.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/escape.h"

#define COLOR_RED "\033[1;31m"
#define COLOR_YELLOW "\033[33m"
#define COLOR_DIM "\033[2m"
#define COLOR_OFF "\033[0m"

bool cli_wants_color(enum color_choice color, int fd)
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

void cli_messenger_init(struct messenger *messenger, enum color_choice color, int verbosity)
{
	*messenger = (struct messenger){
		.fd = STDERR_FILENO,
		.verbosity = verbosity,
		.has_color = cli_wants_color(color, STDERR_FILENO),
	};
}

void cli_message_escape(struct text *out, const char *string)
{
	escape_append(out, string, MESSAGE_NAME_MAX);
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
	cli_message_escape(out, words);
	text_append_string(out, messenger->is_raw ? "\r\n" : "\n");
}

static void write_line(const struct messenger *messenger, const char *label, const char *color, const char *format,
		       va_list arguments)
{
	AUTO_TEXT words = {0};
	AUTO_TEXT line = {0};

	text_append_format_list(&words, format, arguments);
	append_line(messenger, &line, label, color, text_string(&words));
	text_write_all(messenger->fd, text_string(&line), line.len);
}

void cli_message_error(const struct messenger *messenger, const struct error *error)
{
	AUTO_TEXT lines = {0};

	if (!error || error->stage == STAGE_NONE)
		return;
	append_line(messenger, &lines, "belljar:", COLOR_RED, error->message);
	if (error->hint[0])
		append_line(messenger, &lines, "  hint:", COLOR_YELLOW, error->hint);
	text_write_all(messenger->fd, text_string(&lines), lines.len);
}

void cli_message_note(const struct messenger *messenger, const char *format, ...)
{
	va_list arguments;

	if (messenger->verbosity < 0)
		return;
	va_start(arguments, format);
	write_line(messenger, "belljar:", COLOR_YELLOW, format, arguments);
	va_end(arguments);
}

void cli_message_hint(const struct messenger *messenger, const char *format, ...)
{
	va_list arguments;

	if (messenger->verbosity < 0)
		return;
	va_start(arguments, format);
	write_line(messenger, "  hint:", COLOR_YELLOW, format, arguments);
	va_end(arguments);
}

void cli_message_verbose(const struct messenger *messenger, const char *format, ...)
{
	va_list arguments;

	if (messenger->verbosity < 1)
		return;
	va_start(arguments, format);
	write_line(messenger, "belljar:", COLOR_DIM, format, arguments);
	va_end(arguments);
}

int cli_print_out(const struct text *text, const struct messenger *messenger)
{
	struct error error = {0};
	size_t done = 0;

	while (done < text->len) {
		ssize_t count = write(STDOUT_FILENO, text->data + done, text->len - done);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0) {
			error_set(&error, STAGE_OUTPUT, errno, "cannot write to standard output: %s", strerror(errno));
			cli_message_error(messenger, &error);
			return EXIT_BELLJAR;
		}
		done += (size_t)count;
	}
	return 0;
}
