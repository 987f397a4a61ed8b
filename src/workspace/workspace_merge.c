/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_merge.c - put together what two sides made of the same text
 *
 * Each side is a list of edits of the base's lines. Edits that overlap or touch form a group; between groups both sides have
 * the base's lines. A group with edits of one side is that side's. One with edits of both is a conflict, unless both came to
 * the same lines. That edits which only touch count as one is on purpose: whoever inserts a line before the one that the
 * other changes may well mean the same thing.
 */
#include "workspace/workspace_merge.h"

#include <errno.h>
#include <string.h>

#include "workspace/workspace_lines.h"

struct side {
	struct line_list lines;
	struct edit_list edits;
	size_t at;   /* the next edit */
	long offset; /* of its lines, to the base's, before the next edit */
};

static void side_done(struct side *side)
{
	free(side->lines.items);
	free(side->edits.items);
}

/* lines_compare() numbers the lines of both, so the base is split anew for each side. */
static int side_init(struct side *side, const struct text *base, const struct text *text)
{
	struct line_list old = {0};
	struct edit_list edits = {0};
	int rc = lines_split(&old, text_string(base), base->len);

	if (rc == 0)
		rc = lines_split(&side->lines, text_string(text), text->len);
	if (rc == 0)
		rc = lines_compare(&old, &side->lines, &edits);
	if (rc == 0)
		side->edits = edits;
	free(old.items);
	return rc;
}

static const struct edit *next_edit(const struct side *side)
{
	return side->at < side->edits.count ? &side->edits.items[side->at] : NULL;
}

/* Take the edits that begin no later than *@end into the group, and move *@end. True if there was one. */
static bool take_edits(struct side *side, size_t *end)
{
	const struct edit *edit;
	bool is_taken = false;

	while ((edit = next_edit(side)) && edit->old_from <= *end) {
		*end = MAX_OF(*end, edit->old_from + edit->old_count);
		side->offset += (long)edit->new_count - (long)edit->old_count;
		side->at++;
		is_taken = true;
	}
	return is_taken;
}

/* The lines that a side has for a stretch of the base's. */
struct stretch {
	const struct line *lines;
	size_t count;
};

static struct stretch stretch_of(const struct side *side, size_t from, long offset_before, size_t end)
{
	size_t first = (size_t)((long)from + offset_before), behind = (size_t)((long)end + side->offset);

	return (struct stretch){side->lines.items ? side->lines.items + first : NULL, behind - first};
}

static bool is_same(struct stretch a, struct stretch b)
{
	if (a.count != b.count)
		return false;
	for (size_t i = 0; i < a.count; i++)
		if (a.lines[i].len != b.lines[i].len || memcmp(a.lines[i].bytes, b.lines[i].bytes, a.lines[i].len) != 0)
			return false;
	return true;
}

static void append(struct text *out, struct stretch stretch)
{
	for (size_t i = 0; stretch.lines && i < stretch.count; i++)
		text_append(out, stretch.lines[i].bytes, stretch.lines[i].len);
}

/* The next group; *@done are the base's lines that are dealt with. False: a conflict. */
static bool merge_group(struct side sides[2], size_t *done, struct text *out)
{
	const struct edit *first = next_edit(&sides[0]), *other = next_edit(&sides[1]);
	size_t from = MIN_OF(first ? first->old_from : SIZE_MAX, other ? other->old_from : SIZE_MAX), end = from;
	long before[2] = {sides[0].offset, sides[1].offset};
	bool has[2] = {false, false}, is_more = true;
	struct stretch stretches[2];

	/* What both have before it. */
	append(out, (struct stretch){sides[0].lines.items ? sides[0].lines.items + ((long)*done + before[0]) : NULL,
				     from - *done});
	while (is_more) {
		is_more = false;
		for (int i = 0; i < 2; i++)
			if (take_edits(&sides[i], &end))
				has[i] = is_more = true;
	}
	for (int i = 0; i < 2; i++)
		stretches[i] = stretch_of(&sides[i], from, before[i], end);
	*done = end;
	if (has[0] && has[1] && !is_same(stretches[0], stretches[1]))
		return false;
	append(out, stretches[has[0] ? 0 : 1]);
	return true;
}

int merge_texts(const struct text *base, const struct text *ours, const struct text *theirs, struct text *out)
{
	struct side sides[2] = {0};
	size_t done = 0;
	int rc = side_init(&sides[0], base, ours);

	if (rc == 0)
		rc = side_init(&sides[1], base, theirs);
	if (rc == 0)
		rc = 1;
	while (rc == 1 && (next_edit(&sides[0]) || next_edit(&sides[1])))
		rc = merge_group(sides, &done, out);
	if (rc == 1) {
		size_t first = (size_t)((long)done + sides[0].offset);

		append(out, (struct stretch){sides[0].lines.items ? sides[0].lines.items + first : NULL,
					     sides[0].lines.count - first});
	}
	side_done(&sides[0]);
	side_done(&sides[1]);
	return text_failed(out) ? -ENOMEM : rc;
}
