/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan_view_order.c - second stage of a view: one place at each target, outer before inner
 *
 * A mount covers what was mounted below it before, so a directory must come before all that is in it. Targets are compared
 * only after links are resolved: "/bin/x" and "/usr/bin/x" are one target where /bin is a link, and whichever layer is
 * later must win there. Links are dropped last, because until then they say where the others belong.
 */
#include "plan/plan_view_stages.h"

#include <stdlib.h>
#include <string.h>

/* As many links as the kernel follows. */
#define LINK_TURNS_MAX 40

/* The slash sorts before every other character. */
int plan_view_compare_paths(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	if (*a == *b)
		return 0;
	if (!*a || !*b)
		return *a ? 1 : -1;
	if (*a == '/' || *b == '/')
		return *a == '/' ? -1 : 1;
	return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
}

/* Of two at one target the later one counts, and a thing before a link: that link only says where the thing is. */
static int compare_places(const struct place *a, const struct place *b)
{
	int difference = plan_view_compare_paths(a->target, b->target);

	if (!difference)
		difference = (b->kind == PLACE_SYMLINK) - (a->kind == PLACE_SYMLINK);
	return difference ? difference : (a->order < b->order ? -1 : a->order > b->order);
}

/* In a view in order the places around one are among those before it, the innermost last. */
static void find_around(struct view *view)
{
	for (size_t i = 0; i < view->count; i++) {
		size_t around = i - 1; /* SIZE_MAX for the first */

		while (around != SIZE_MAX && !path_is_within(view->items[i].target, view->items[around].target))
			around = view->items[around].around;
		view->items[i].around = around;
	}
}

void plan_view_remove_dropped(struct view *view)
{
	size_t kept = 0;

	for (size_t i = 0; i < view->count; i++) {
		if (view->items[i].is_dropped)
			continue;
		if (kept != i)
			view->items[kept] = view->items[i];
		kept++;
	}
	view->count = kept;
	find_around(view);
}

const struct place *plan_view_standing_around(const struct view *view, size_t index)
{
	const struct place *around = plan_view_around(view, index);

	while (around && around->is_dropped)
		around = plan_view_around(view, (size_t)(around - view->items));
	return around;
}

static void keep_last_of_each(struct view *view)
{
	for (size_t i = 0; i + 1 < view->count; i++)
		view->items[i].is_dropped = !strcmp(view->items[i].target, view->items[i + 1].target);
	plan_view_remove_dropped(view);
}

/* Where @place belongs among the first @count of @sorted. */
static size_t position_of(const struct place *place, struct place *const *sorted, size_t count)
{
	size_t low = 0, high = count;

	/* Places mostly come in order. */
	if (!count || compare_places(sorted[count - 1], place) <= 0)
		return count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_places(sorted[middle], place) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* By pointer: places are large. */
void plan_view_sort(struct plan_build *build, struct view *view)
{
	size_t count = view->count;
	AUTO_FREE struct place **sorted = reallocarray(NULL, count + 1, sizeof(struct place *));
	struct place *items;
	bool is_in_order = true;

	if (!sorted) {
		build->has_failed = true;
		return;
	}
	for (size_t i = 0; i < count; i++) {
		size_t at = position_of(&view->items[i], sorted, i);

		is_in_order &= at == i;
		memmove(&sorted[at + 1], &sorted[at], (i - at) * sizeof(struct place *));
		sorted[at] = &view->items[i];
	}
	if (!is_in_order) {
		items = reallocarray(NULL, count + 1, sizeof(*items));
		if (!items) {
			build->has_failed = true;
			return;
		}
		for (size_t i = 0; i < count; i++)
			items[i] = *sorted[i];
		free(view->items);
		view->items = items;
		view->capacity = count + 1;
	}
	keep_last_of_each(view);
}

const struct place *plan_view_innermost(const struct view *view, const char *path)
{
	const struct place *found = NULL;

	for (size_t i = 0; i < view->count; i++)
		if (path_is_within(path, view->items[i].target) &&
		    (!found || strlen(view->items[i].target) >= strlen(found->target)))
			found = &view->items[i];
	return found;
}

/* Where a symbolic link at @link leads, with @rest behind it: absolute, without "." and "..". */
static const char *follow(struct plan_build *build, const char *link, const char *text, const char *rest)
{
	const char *slash = strrchr(link, '/');
	const char *joined = text[0] == '/' ? plan_format(build, "%s%s", text, rest)
					    : plan_format(build, "%.*s/%s%s", (int)(slash - link), link, text, rest);
	AUTO_TEXT clean = {0};

	while (*joined) {
		size_t len = strcspn(joined, "/");

		if (len == 2 && !strncmp(joined, "..", 2)) {
			while (clean.len && clean.data[clean.len - 1] != '/')
				clean.len--;
			clean.len -= clean.len > 0;
			if (clean.data)
				clean.data[clean.len] = '\0';
		} else if (len && !(len == 1 && joined[0] == '.')) {
			text_append_char(&clean, '/');
			text_append(&clean, joined, len);
		}
		joined += len + (joined[len] == '/');
	}
	build->has_failed |= text_failed(&clean);
	return plan_string(build, clean.len ? clean.data : "/");
}

struct link_list {
	const struct place **items;
	size_t count;
};

/* Of some hundred places ten are links, and each path is compared with each link. */
static struct link_list list_links(struct plan_build *build, const struct view *view)
{
	struct link_list links = {.items = reallocarray(NULL, view->count + 1, sizeof(struct place *))};

	build->has_failed |= !links.items;
	for (size_t i = 0; i < view->count && links.items; i++)
		if (view->items[i].kind == PLACE_SYMLINK)
			links.items[links.count++] = &view->items[i];
	return links;
}

static const char *through(struct plan_build *build, const struct link_list *links, const char *path)
{
	for (int turns = 0; turns < LINK_TURNS_MAX; turns++) {
		const char *before = path;

		for (size_t i = 0; i < links->count && path == before; i++) {
			const struct place *link = links->items[i];

			if (path[1] == link->target[1] && path_is_within(path, link->target) &&
			    path[strlen(link->target)] == '/')
				path = follow(build, link->target, link->source, path + strlen(link->target));
		}
		if (path == before)
			break;
	}
	return path;
}

const char *plan_view_through_links(struct plan_build *build, const struct view *view, const char *path)
{
	struct link_list links = list_links(build, view);

	path = through(build, &links, path);
	free(links.items);
	return path;
}

/* A destination that leads through one of the system's own links (/bin/x) means the place behind the link. */
static void resolve_links(struct plan_build *build, struct view *view)
{
	struct link_list links = list_links(build, view);

	for (size_t i = 0; i < view->count; i++)
		view->items[i].target = through(build, &links, view->items[i].target);
	free(links.items);
}

/* A symbolic link, or a made-up file, that lies in a host directory is that directory's own affair. */
static void drop_inner_links(struct view *view)
{
	for (size_t i = 0; i < view->count; i++) {
		struct place *place = &view->items[i];
		const struct place *around = plan_view_standing_around(view, i);

		place->is_dropped = (place->kind == PLACE_SYMLINK || place->kind == PLACE_FILE) && !place->is_over &&
				    around && plan_place_shows_host(around);
	}
	plan_view_remove_dropped(view);
}

void plan_view_order(struct plan_build *build, struct view *view)
{
	resolve_links(build, view);
	plan_view_sort(build, view);
	if (!build->has_failed)
		drop_inner_links(view);
}
