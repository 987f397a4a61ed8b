/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/message.h - Belljar's own messages on stderr, and its output on stdout
 *
 * Every message is one line: "belljar: ..." or "  hint: ...". Names in it may come from anyone, so whatever could
 * steer a terminal or pretend to be another line is written as an escape such as \x1b.
 */
#ifndef BELLJAR_DOOR_CLI_MESSAGE_H
#define BELLJAR_DOOR_CLI_MESSAGE_H

#include "base/error.h"
#include "base/text.h"
#include "door/cli/options.h"

struct messenger {
	int fd;        /* borrowed */
	int verbosity; /* -1: errors only; 0; 1: cli_message_verbose() too */
	bool has_color;
	bool is_raw; /* fd is a terminal in raw mode, which needs a carriage return for each line */
};

/* COLOR_AUTO: coloured on a terminal, unless NO_COLOR is set (to anything but "") or TERM is "dumb". */
bool cli_wants_color(enum color_choice color, int fd);

/* For stderr. */
void cli_messenger_init(struct messenger *messenger, enum color_choice color, int verbosity);

/* Always written. Nothing is written for a record without a failure. */
void cli_message_error(const struct messenger *messenger, const struct error *error);
/* Not with -q. */
void cli_message_note(const struct messenger *messenger, const char *format, ...) PRINTF_LIKE(2, 3);
/* Not with -q; the line that belongs below a note. */
void cli_message_hint(const struct messenger *messenger, const char *format, ...) PRINTF_LIKE(2, 3);
/* Only with -v. */
void cli_message_verbose(const struct messenger *messenger, const char *format, ...) PRINTF_LIKE(2, 3);

/*
 * Append @string, at most MESSAGE_NAME_MAX bytes of it, with everything but printable characters escaped: control
 * characters, bytes that are not UTF-8, and the Unicode controls that reorder or end a line.
 */
void cli_message_escape(struct text *out, const char *string);
#define MESSAGE_NAME_MAX 4096

/* The exit status of Belljar's programs for failures of their own. */
#define EXIT_BELLJAR 125

/* Print a text on stdout: 0, or EXIT_BELLJAR with a message if it cannot be written. */
int cli_print_out(const struct text *text, const struct messenger *messenger);

#endif
