/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/picker.c - choose some of many changes by keyboard
 *
 * On the terminal's second screen, so that what was there before comes back. What cannot be applied can be seen, not chosen.
 * A directory's path stands for all that is in it. So taking one marks all of that, and one of which something is left is not
 * named: what is marked is what is applied.
 */
#include "door/cli/picker.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/utf8.h"
#include "door/cli/changes_print.h"
#include "door/cli/terminal.h"
#include "workspace/workspace_risk.h"

#define ENTER_SCREEN "\033[?1049h\033[?25l"
#define ESCAPE_MS 100
#define LEAVE_SCREEN "\033[?25h\033[?1049l"

struct picker {
	const struct change_list *list;
	bool *taken;
	size_t at, top;
	size_t rows, columns;
};

static bool can_be_taken(const struct change *change)
{
	return !(change->flags & (CHANGE_IS_CONFLICT | CHANGE_IS_REFUSED));
}

/* As many characters as fit. The line is harmless already: one character is one column or two, and a long one is cut early. */
static void append_cut(struct text *out, const char *line, size_t columns)
{
	size_t len = strlen(line), at = 0;
	bool is_cut;

	for (size_t used = 0; at < len && used < columns; used++) {
		size_t step = utf8_character((const unsigned char *)line + at, len - at, &is_cut);

		/* What is not plain may be wide. */
		if (step > 1 && ++used >= columns)
			break;
		at += step ? step : 1;
	}
	text_append(out, line, at);
}

static void draw(struct picker *picker)
{
	AUTO_TEXT out = {0};
	size_t shown = picker->rows - 2;

	if (picker->at < picker->top)
		picker->top = picker->at;
	if (picker->at >= picker->top + shown)
		picker->top = picker->at - shown + 1;
	text_append_string(&out, "\033[H\033[2J");
	for (size_t i = picker->top; i < picker->top + shown && i < picker->list->count; i++) {
		const struct change *change = &picker->list->items[i];
		AUTO_TEXT line = {0};

		text_append_format(&line, "%c[%c] ", i == picker->at ? '>' : ' ',
				   picker->taken[i]       ? 'x'
				   : can_be_taken(change) ? ' '
							  : '-');
		cli_changes_print_one(&line, change, false);
		if (change->flags & CHANGE_IS_REFUSED)
			text_append_format(&line, ": refused: %s", change->why);
		if (i == picker->at)
			text_append_string(&out, "\033[7m");
		append_cut(&out, text_string(&line), picker->columns - 1);
		text_append_string(&out, "\033[0m\r\n");
	}
	text_append_format(&out, "\033[%zu;1H%zu of %zu   ", picker->rows, picker->at + 1, picker->list->count);
	append_cut(&out, "space: take  a: all  n: none  enter: apply  q: back", picker->columns - 20);
	text_write_all(STDOUT_FILENO, out.data, out.len);
}

/* The next byte; -1: none within @timeout_ms (-1: however long it takes), or the terminal is gone. */
static int read_byte(int timeout_ms)
{
	struct pollfd ready = {.fd = STDIN_FILENO, .events = POLLIN};
	unsigned char byte;

	if (poll(&ready, 1, timeout_ms) <= 0)
		return -1;
	return read(STDIN_FILENO, &byte, 1) == 1 ? byte : -1;
}

/* One key; an arrow counts as its letter, and so does a page up (b) or down (f). 0: the terminal is gone. */
static char read_key(void)
{
	int key = read_byte(-1);

	if (key < 0)
		return 0;
	if (key != '\033')
		return (char)key;
	/* The key itself, or what an arrow sends: then more comes at once. */
	key = read_byte(ESCAPE_MS);
	if (key != '[' && key != 'O')
		return '\033';
	key = read_byte(ESCAPE_MS);
	/* A page up or down: a number, which a tilde ends. */
	if ((key == '5' || key == '6') && read_byte(ESCAPE_MS) == '~')
		return key == '5' ? 'b' : 'f';
	return key == 'A' ? 'k' : key == 'B' ? 'j' : '?';
}

/* The one under the cursor, and all that is in it. */
static void take_one(struct picker *picker, bool is_taken)
{
	const char *path = picker->list->items[picker->at].path;

	picker->taken[picker->at] = is_taken;
	for (size_t i = 0; strcmp(path, ".") != 0 && i < picker->list->count; i++)
		if (workspace_change_is_within(picker->list->items[i].path, path))
			picker->taken[i] = is_taken && can_be_taken(&picker->list->items[i]);
}

/* Is there a change in it that was not taken? */
static bool is_taken_in_part(const struct picker *picker, size_t index)
{
	const char *path = picker->list->items[index].path;
	size_t len = strlen(path);

	for (size_t i = index + 1; i < picker->list->count; i++) {
		const char *other = picker->list->items[i].path;

		if (strncmp(other, path, len) != 0)
			return false;
		if (other[len] == '/' && !picker->taken[i])
			return true;
	}
	return false;
}

static void take_all(struct picker *picker, bool is_taken)
{
	for (size_t i = 0; i < picker->list->count; i++)
		picker->taken[i] = is_taken && can_be_taken(&picker->list->items[i]);
}

/* True: enter; false: q. */
static bool work(struct picker *picker)
{
	for (;;) {
		char key;

		draw(picker);
		key = read_key();
		if (key == 0 || key == 'q' || key == 3 || key == 4 || key == '\033')
			return false;
		if (key == '\r' || key == '\n')
			return true;
		if (key == 'j' && picker->at + 1 < picker->list->count)
			picker->at++;
		else if (key == 'k' && picker->at > 0)
			picker->at--;
		else if (key == 'f')
			picker->at = MIN_OF(picker->at + picker->rows - 2, picker->list->count - 1);
		else if (key == 'b')
			picker->at -= MIN_OF(picker->rows - 2, picker->at);
		else if (key == ' ' && can_be_taken(&picker->list->items[picker->at]))
			take_one(picker, !picker->taken[picker->at]);
		else if (key == 'a' || key == 'n')
			take_all(picker, key == 'a');
	}
}

bool cli_pick_changes(const struct change_list *list, struct string_list *paths)
{
	struct picker picker = {.list = list, .taken = calloc(list->count + 1, sizeof(bool))};
	struct terminal terminal;
	struct winsize window;
	bool is_done = false;

	cli_terminal_open(&terminal, STDIN_FILENO);
	cli_terminal_size(&window);
	picker.rows = MAX_OF(window.ws_row, 4);
	picker.columns = MAX_OF(window.ws_col, 24);
	if (picker.taken && terminal.fd >= 0 && list->count) {
		cli_terminal_raw(&terminal);
		text_write_all(STDOUT_FILENO, ENTER_SCREEN, strlen(ENTER_SCREEN));
		is_done = work(&picker);
		text_write_all(STDOUT_FILENO, LEAVE_SCREEN, strlen(LEAVE_SCREEN));
	}
	cli_terminal_done(&terminal);
	for (size_t i = 0; is_done && i < list->count; i++)
		if (picker.taken[i] && !is_taken_in_part(&picker, i) && string_list_add(paths, list->items[i].path) < 0)
			is_done = false;
	free(picker.taken);
	return is_done && paths->count;
}
