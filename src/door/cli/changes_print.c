/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/changes_print.c - changes for people to read
 *
 * Every change has its own line, because a user cannot review a deletion that is only counted. Names and contents are
 * untrusted, and are escaped before they reach a screen.
 */
#include "door/cli/changes_print.h"

#include <errno.h>
#include <string.h>

#include "base/escape.h"
#include "base/units.h"
#include "workspace/workspace_patch.h"

#define GREEN "\033[32m"
#define RED "\033[31m"
#define YELLOW "\033[33m"
#define CYAN "\033[36m"
#define BOLD "\033[1m"
#define OFF "\033[0m"
#define NAME_MAX_SHOWN 4096
#define LINE_MAX_SHOWN 16384
#define STAT_WIDTH 40

static void paint(struct text *out, bool has_color, const char *color)
{
	if (has_color)
		text_append_string(out, color);
}

static const char *color_of(const struct change *change)
{
	if (change->flags & CHANGE_IS_CONFLICT)
		return RED;
	if (change->kind == CHANGE_ADDED)
		return GREEN;
	return change->kind == CHANGE_DELETED ? RED : YELLOW;
}

static bool is_directory(const struct change *change)
{
	return S_ISDIR(change->after.mode ? change->after.mode : change->before.mode);
}

void cli_changes_print_one(struct text *out, const struct change *change, bool has_color)
{
	bool is_renamed = change->from && change->kind == CHANGE_ADDED;

	paint(out, has_color, color_of(change));
	text_append_format(out, "%c%c ",
			   change->flags & CHANGE_IS_CONFLICT  ? '!'
			   : change->flags & CHANGE_IS_REFUSED ? 'x'
							       : ' ',
			   is_renamed ? 'R' : workspace_change_letter(change->kind));
	if (is_renamed) {
		escape_append(out, change->from->path, NAME_MAX_SHOWN);
		text_append_string(out, " -> ");
	}
	escape_append(out, change->path, NAME_MAX_SHOWN);
	if (is_directory(change) && strcmp(change->path, ".") != 0)
		text_append_char(out, '/');
	paint(out, has_color, OFF);
	if (change->kind == CHANGE_MODE && change->flags & CHANGE_HAS_MODE)
		text_append_format(out, " (%04o -> %04o)", (unsigned)change->before.mode & 07777,
				   (unsigned)change->after.mode & 07777);
	else if (change->kind == CHANGE_MODE)
		text_append_string(out, " (attributes)");
	if (S_ISREG(change->after.mode) && change->kind == CHANGE_ADDED && !is_renamed && change->after.size >= 1 << 20)
		text_append_format(out, " (%llu MiB)", (unsigned long long)(change->after.size >> 20));
	if (change->flags & CHANGE_IS_CONFLICT && change->conflict)
		text_append_format(out, ": %s", change->conflict);
}

void cli_changes_print_counts(struct text *out, const struct change_list *list)
{
	size_t counts[CHANGE_DELETED + 1] = {0}, conflicts = 0, refused = 0;

	for (size_t i = 0; i < list->count; i++) {
		counts[list->items[i].kind]++;
		conflicts += !!(list->items[i].flags & CHANGE_IS_CONFLICT);
		refused += !!(list->items[i].flags & CHANGE_IS_REFUSED);
	}
	text_append_format(out, "%zu added, %zu modified, %zu deleted", counts[CHANGE_ADDED],
			   counts[CHANGE_MODIFIED] + counts[CHANGE_TYPE] + counts[CHANGE_MODE], counts[CHANGE_DELETED]);
	if (conflicts)
		text_append_format(out, ", %zu in conflict with the workdir", conflicts);
	if (refused)
		text_append_format(out, ", %zu not applied unless --allow-risky names them", refused);
}

void cli_changes_print_risks(struct text *out, const struct change_list *list, bool has_color)
{
	static const struct {
		unsigned flag;
		const char *words;
	} groups[] = {
		{CHANGE_IS_REFUSED, "Not applied unless --allow-risky names them:"},
		{CHANGE_IS_APART, "Look at these before you apply them:"},
	};

	for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
		bool is_first = true;

		for (size_t k = 0; k < list->count; k++) {
			const struct change *change = &list->items[k];

			if (!(change->flags & groups[i].flag))
				continue;
			if (is_first) {
				paint(out, has_color, BOLD);
				text_append_string(out, groups[i].words);
				paint(out, has_color, OFF);
				text_append_char(out, '\n');
			}
			is_first = false;
			text_append_string(out, "   ");
			escape_append(out, change->path, NAME_MAX_SHOWN);
			text_append_format(out, ": %s\n", change->why);
		}
	}
}

void cli_changes_print(struct text *out, const struct change_list *list, bool has_color)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct change *change = &list->items[i];

		/* One line for a rename, where the file is now. */
		if (change->from && change->kind == CHANGE_DELETED)
			continue;
		cli_changes_print_one(out, change, has_color);
		text_append_char(out, '\n');
	}
	cli_changes_print_risks(out, list, has_color);
	cli_changes_print_counts(out, list);
	text_append_char(out, '\n');
}

int cli_changes_print_stat(struct text *out, const struct opened_workspace *opened, const struct change_list *list,
			   bool has_color)
{
	size_t added = 0, removed = 0, files = 0;

	for (size_t i = 0; i < list->count; i++) {
		const struct change *change = &list->items[i];
		struct patch_count count;
		size_t total, plus;

		if (is_directory(change) || (change->from && change->kind == CHANGE_DELETED))
			continue;
		text_append_char(out, ' ');
		escape_append(out, change->path, NAME_MAX_SHOWN);
		text_append_string(out, " | ");
		files++;
		if (workspace_patch_count(&opened->view, &opened->workspace, change, &count) < 0) {
			text_append_string(out, "cannot be read\n");
			continue;
		}
		if (count.is_binary) {
			text_append_format(out, "binary, %llu -> %llu bytes\n", (unsigned long long)change->before.size,
					   (unsigned long long)change->after.size);
			continue;
		}
		total = count.added + count.removed;
		plus = total > STAT_WIDTH ? count.added * STAT_WIDTH / total : count.added;
		text_append_format(out, "%zu ", total);
		paint(out, has_color, GREEN);
		for (size_t k = 0; k < plus; k++)
			text_append_char(out, '+');
		paint(out, has_color, RED);
		for (size_t k = 0; k < (total > STAT_WIDTH ? STAT_WIDTH - plus : count.removed); k++)
			text_append_char(out, '-');
		paint(out, has_color, OFF);
		text_append_char(out, '\n');
		added += count.added;
		removed += count.removed;
	}
	text_append_format(out, " %zu files, %zu lines added, %zu lines removed\n", files, added, removed);
	return text_failed(out) ? -ENOMEM : 0;
}

/* A patch for a screen: a line of it after the other. */
static void show_patch(struct text *out, const struct text *patch, bool has_color)
{
	bool is_head = true;

	for (size_t at = 0; at < patch->len;) {
		const char *line = patch->data + at;
		const char *end = memchr(line, '\n', patch->len - at);
		size_t len = end ? (size_t)(end - line) : patch->len - at;
		const char *color = NULL;

		if (!strncmp(line, "diff --git ", 11))
			is_head = true;
		else if (!strncmp(line, "@@ ", 3))
			is_head = false;
		if (is_head)
			color = BOLD;
		else if (line[0] == '@')
			color = CYAN;
		else if (line[0] == '+' || line[0] == '-')
			color = line[0] == '+' ? GREEN : RED;
		if (color)
			paint(out, has_color, color);
		for (size_t done = 0; done < len;) {
			/* A tab is the one control that a screen may see. A NUL ends a string, so it is written out. */
			char piece[LINE_MAX_SHOWN + 1];
			size_t count = 0;

			while (done + count < len && count < LINE_MAX_SHOWN && line[done + count] != '\t' &&
			       line[done + count])
				count++;
			memcpy(piece, line + done, count);
			piece[count] = '\0';
			escape_append(out, piece, LINE_MAX_SHOWN);
			done += count;
			if (done < len && line[done] == '\t') {
				text_append_char(out, '\t');
				done++;
			} else if (done < len && !line[done]) {
				text_append_string(out, "\\x00");
				done++;
			}
		}
		if (color)
			paint(out, has_color, OFF);
		text_append_char(out, '\n');
		at += len + 1;
	}
}

int cli_changes_print_patch(struct text *out, const struct opened_workspace *opened, const struct change_list *list,
			    bool is_shown, bool has_color)
{
	for (size_t i = 0; i < list->count; i++) {
		AUTO_TEXT patch = {0};
		int rc = workspace_patch_print(&opened->view, &opened->workspace, &list->items[i],
					       is_shown ? &patch : out);

		if (rc < 0)
			return rc;
		if (is_shown)
			show_patch(out, &patch, has_color);
	}
	return text_failed(out) ? -ENOMEM : 0;
}
