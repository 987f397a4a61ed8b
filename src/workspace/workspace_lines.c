/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_lines.c - which lines of two texts differ, and how that is written as a patch
 *
 * Myers' algorithm: walk along ever more edits until the end is reached, remember how far each diagonal came, and go back. It
 * costs lines times edits, so the number of edits is bounded: two texts that have nothing in common count as replaced.
 */
#include "workspace/workspace_lines.h"

#include <errno.h>
#include <string.h>

#include "base/list.h"

#define EDITS_MAX 1500
#define CONTEXT 3

int workspace_lines_split(struct line_list *out, const char *bytes, size_t len)
{
	*out = (struct line_list){0};
	while (len) {
		const char *end = memchr(bytes, '\n', len);
		size_t line_len = end ? (size_t)(end - bytes) + 1 : len;
		struct line *line = list_add(out);

		if (!line) {
			free(out->items);
			return -ENOMEM;
		}
		line->bytes = bytes;
		line->len = line_len;
		bytes += line_len;
		len -= line_len;
	}
	return 0;
}

/* --- the same number for the same line ---------------------------------------------------------------------------- */

struct bucket {
	const struct line *line;
};

static uint32_t hash_of(const struct line *line)
{
	uint32_t hash = 2166136261;

	for (size_t i = 0; i < line->len; i++)
		hash = (hash ^ (unsigned char)line->bytes[i]) * 16777619;
	return hash;
}

static void number(struct line_list *lines, struct bucket *buckets, size_t mask, uint32_t *next)
{
	for (size_t i = 0; i < lines->count; i++) {
		struct line *line = &lines->items[i];
		size_t at = hash_of(line) & mask;

		while (buckets[at].line && (buckets[at].line->len != line->len ||
					    memcmp(buckets[at].line->bytes, line->bytes, line->len) != 0))
			at = (at + 1) & mask;
		if (buckets[at].line) {
			line->id = buckets[at].line->id;
		} else {
			line->id = (*next)++;
			buckets[at].line = line;
		}
	}
}

static int number_both(struct line_list *old, struct line_list *new)
{
	size_t size = 64;
	AUTO_FREE struct bucket *buckets = NULL;
	uint32_t next = 0;

	while (size < 2 * (old->count + new->count))
		size *= 2;
	buckets = calloc(size, sizeof(*buckets));
	if (!buckets)
		return -ENOMEM;
	number(old, buckets, size - 1, &next);
	number(new, buckets, size - 1, &next);
	return 0;
}

/* --- Myers -------------------------------------------------------------------------------------------------------- */

struct problem {
	const struct line *old, *new;
	long old_count, new_count;
	int32_t **trace; /* for each number of edits: how far each diagonal came */
	long edit_count;
};

static long follow(const struct problem *problem, long x, long k)
{
	while (x < problem->old_count && x - k < problem->new_count && problem->old[x].id == problem->new[x - k].id)
		x++;
	return x;
}

/* Fill the trace. 1: the end was reached; 0: not with so few edits. */
static int search(struct problem *problem)
{
	long max = MIN_OF(problem->old_count + problem->new_count, (long)EDITS_MAX);

	for (long d = 0; d <= max; d++) {
		int32_t *reach = malloc((size_t)(2 * d + 1) * sizeof(*reach));
		const int32_t *before = d ? problem->trace[d - 1] + (d - 1) : NULL;

		if (!reach)
			return -ENOMEM;
		problem->trace[d] = reach;
		problem->edit_count = d;
		for (long k = -d; k <= d; k += 2) {
			long x;

			if (!d)
				x = 0;
			else if (k == -d || (k != d && before[k - 1] < before[k + 1]))
				x = before[k + 1];
			else
				x = before[k - 1] + 1;
			x = follow(problem, x, k);
			reach[k + d] = (int32_t)x;
			if (x >= problem->old_count && x - k >= problem->new_count)
				return 1;
		}
	}
	return 0;
}

/* Mark the lines that were removed and added. */
static void go_back(const struct problem *problem, bool *removed, bool *added)
{
	long x = problem->old_count, y = problem->new_count;

	for (long d = problem->edit_count; d > 0; d--) {
		const int32_t *before = problem->trace[d - 1] + (d - 1);
		long k = x - y;
		bool is_down = k == -d || (k != d && before[k - 1] < before[k + 1]);
		long from = is_down ? before[k + 1] : before[k - 1];

		if (is_down) {
			y = from - (k + 1);
			added[y] = true;
			x = from;
		} else {
			x = from;
			removed[x] = true;
			y = from - (k - 1);
		}
	}
}

static int mark(struct problem *problem, bool *removed, bool *added)
{
	int rc;

	problem->trace = calloc(EDITS_MAX + 1, sizeof(*problem->trace));
	if (!problem->trace)
		return -ENOMEM;
	rc = search(problem);
	if (rc == 1) {
		go_back(problem, removed, added);
	} else if (rc == 0) {
		memset(removed, true, (size_t)problem->old_count);
		memset(added, true, (size_t)problem->new_count);
	}
	for (long d = 0; d <= EDITS_MAX; d++)
		free(problem->trace[d]);
	free(problem->trace);
	return MIN_OF(rc, 0);
}

static int collect(struct edit_list *out, const bool *removed, size_t old_count, const bool *added, size_t new_count,
		   size_t offset)
{
	size_t i = 0, k = 0;

	while (i < old_count || k < new_count) {
		struct edit edit = {.old_from = i + offset, .new_from = k + offset};
		struct edit *slot;

		while (i < old_count && removed[i]) {
			i++;
			edit.old_count++;
		}
		while (k < new_count && added[k]) {
			k++;
			edit.new_count++;
		}
		if (edit.old_count || edit.new_count) {
			slot = list_add(out);
			if (!slot)
				return -ENOMEM;
			*slot = edit;
		}
		while (i < old_count && k < new_count && !removed[i] && !added[k]) {
			i++;
			k++;
		}
	}
	return 0;
}

int workspace_lines_compare(struct line_list *old, struct line_list *new, struct edit_list *out)
{
	size_t start = 0, old_end = old->count, new_end = new->count;
	AUTO_FREE bool *removed = NULL, *added = NULL;
	struct problem problem;
	int rc = number_both(old, new);

	*out = (struct edit_list){0};
	if (rc < 0)
		return rc;
	while (start < old_end && start < new_end && old->items[start].id == new->items[start].id)
		start++;
	while (old_end > start && new_end > start && old->items[old_end - 1].id == new->items[new_end - 1].id) {
		old_end--;
		new_end--;
	}
	removed = calloc(old_end - start + 1, sizeof(*removed));
	added = calloc(new_end - start + 1, sizeof(*added));
	if (!removed || !added)
		return -ENOMEM;
	problem = (struct problem){
		.old = old->count ? old->items + start : NULL,
		.new = new->count ? new->items + start : NULL,
		.old_count = (long)(old_end - start),
		.new_count = (long)(new_end - start),
	};
	rc = mark(&problem, removed, added);
	if (rc == 0)
		rc = collect(out, removed, old_end - start, added, new_end - start, start);
	if (rc < 0)
		free(out->items);
	return rc;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static void print_line(struct text *out, char mark_letter, const struct line *line)
{
	text_append_char(out, mark_letter);
	text_append(out, line->bytes, line->len);
	if (!line->len || line->bytes[line->len - 1] != '\n')
		text_append_string(out, "\n\\ No newline at end of file\n");
}

/* "12,3", and "12" for a single line; an empty range stands after the line before it. */
static void print_range(struct text *out, size_t from, size_t count)
{
	text_append_format(out, "%zu", count ? from + 1 : from);
	if (count != 1)
		text_append_format(out, ",%zu", count);
}

static void print_hunk(struct text *out, const struct line_list *old, const struct line_list *new,
		       const struct edit *edits, size_t count)
{
	const struct edit *last = &edits[count - 1];
	size_t before = MIN_OF(edits[0].old_from, (size_t)CONTEXT);
	size_t old_from = edits[0].old_from - before, new_from = edits[0].new_from - before;
	size_t old_end = MIN_OF(last->old_from + last->old_count + CONTEXT, old->count);
	size_t new_end = last->new_from + last->new_count + (old_end - last->old_from - last->old_count);
	size_t at = old_from;

	text_append_string(out, "@@ -");
	print_range(out, old_from, old_end - old_from);
	text_append_string(out, " +");
	print_range(out, new_from, new_end - new_from);
	text_append_string(out, " @@\n");
	for (size_t i = 0; i < count; i++) {
		while (at < edits[i].old_from)
			print_line(out, ' ', &old->items[at++]);
		for (; at < edits[i].old_from + edits[i].old_count; at++)
			print_line(out, '-', &old->items[at]);
		for (size_t k = 0; k < edits[i].new_count; k++)
			print_line(out, '+', &new->items[edits[i].new_from + k]);
	}
	while (at < old_end)
		print_line(out, ' ', &old->items[at++]);
}

static int compare_texts(const char *old, size_t old_len, const char *new, size_t new_len, struct line_list *old_lines,
			 struct line_list *new_lines, struct edit_list *edits)
{
	int rc = workspace_lines_split(old_lines, old, old_len);

	if (rc == 0)
		rc = workspace_lines_split(new_lines, new, new_len);
	return rc == 0 ? workspace_lines_compare(old_lines, new_lines, edits) : rc;
}

int workspace_lines_print(const char *old, size_t old_len, const char *new, size_t new_len, struct text *out)
{
	struct line_list old_lines = {0}, new_lines = {0};
	struct edit_list edits = {0};
	int rc = compare_texts(old, old_len, new, new_len, &old_lines, &new_lines, &edits);

	for (size_t i = 0; rc == 0 && i < edits.count;) {
		size_t count = 1;

		while (i + count < edits.count &&
		       edits.items[i + count].old_from -
				       (edits.items[i + count - 1].old_from + edits.items[i + count - 1].old_count) <=
			       2 * CONTEXT)
			count++;
		print_hunk(out, &old_lines, &new_lines, &edits.items[i], count);
		i += count;
	}
	free(old_lines.items);
	free(new_lines.items);
	if (rc == 0)
		free(edits.items);
	return rc;
}

int workspace_lines_count(const char *old, size_t old_len, const char *new, size_t new_len, size_t *added,
			  size_t *removed)
{
	struct line_list old_lines = {0}, new_lines = {0};
	struct edit_list edits = {0};
	int rc = compare_texts(old, old_len, new, new_len, &old_lines, &new_lines, &edits);

	*added = *removed = 0;
	for (size_t i = 0; rc == 0 && i < edits.count; i++) {
		*added += edits.items[i].new_count;
		*removed += edits.items[i].old_count;
	}
	free(old_lines.items);
	free(new_lines.items);
	if (rc == 0)
		free(edits.items);
	return rc;
}
