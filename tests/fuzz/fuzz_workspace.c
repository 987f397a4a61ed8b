/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/fuzz/fuzz_workspace.c - any bytes as a store's meta.json, as a journal, and as two texts to compare
 *
 * What is accepted must be what would be written again, and edits must turn the one text into the other.
 */
#include <stdlib.h>
#include <string.h>

#include "workspace/workspace_journal.h"
#include "workspace/workspace_lines.h"
#include "workspace/workspace_meta.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_meta(const char *bytes, size_t len)
{
	struct workspace_meta meta = {0}, again = {0};
	struct error error = {0};
	AUTO_TEXT text = {0};

	if (workspace_meta_parse(&meta, "lusab-babad", bytes, len, &error) < 0)
		return;
	workspace_meta_print(&meta, &text);
	if (workspace_meta_parse(&again, "lusab-babad", text.data, text.len, &error) < 0 ||
	    strcmp(meta.workdir, again.workdir) != 0 || meta.layers.count != again.layers.count)
		abort();
	workspace_meta_done(&meta);
	workspace_meta_done(&again);
}

static void try_journal(const char *bytes, size_t len)
{
	struct journal_record record = {0};

	if (workspace_journal_parse(bytes, len, &record) < 0)
		return;
	if (!record.path[0] || record.path[0] == '/' || strchr(record.temporary, '/'))
		abort();
	workspace_journal_record_done(&record);
}

static void try_lines(const char *bytes, size_t len)
{
	const char *middle = memchr(bytes, '\0', len);
	size_t old_len = middle ? (size_t)(middle - bytes) : len, new_len = middle ? len - old_len - 1 : 0;
	struct line_list old = {0}, new = {0};
	struct edit_list edits = {0};
	AUTO_TEXT made = {0};
	size_t at = 0;

	if (workspace_lines_split(&old, bytes, old_len) < 0 ||
	    workspace_lines_split(&new, middle ? middle + 1 : bytes, new_len) < 0 ||
	    workspace_lines_compare(&old, &new, &edits) < 0)
		abort();
	for (size_t i = 0; i < edits.count; i++) {
		const struct edit *edit = &edits.items[i];

		for (; at < edit->old_from; at++)
			text_append(&made, old.items[at].bytes, old.items[at].len);
		at += edit->old_count;
		for (size_t k = 0; k < edit->new_count; k++)
			text_append(&made, new.items[edit->new_from + k].bytes, new.items[edit->new_from + k].len);
	}
	for (; at < old.count; at++)
		text_append(&made, old.items[at].bytes, old.items[at].len);
	if (made.len != new_len || (new_len && memcmp(made.data, middle + 1, new_len) != 0))
		abort();
	free(old.items);
	free(new.items);
	free(edits.items);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	try_meta((const char *)data, size);
	try_journal((const char *)data, size);
	try_lines((const char *)data, size);
	return 0;
}
