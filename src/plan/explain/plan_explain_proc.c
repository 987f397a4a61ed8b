/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/explain/plan_explain_proc.c - what stands at a path of the jar's own /proc
 *
 * The same kernel makes the jar's /proc and the host's: a file has the same type and mode in both. So the host's is looked at, and
 * only what belongs to a process differs. There the looker sees itself, and what is its own is the command's in the jar. Magic links
 * lead to what a process has, so their text on the host means nothing.
 */
#include "plan/explain/plan_explain.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define DIGITS "0123456789"
#define EXE "/exe"
#define FDS "/fd/"

/* Parts of a process's directory that are not what a look at the looker's own part shows. */
struct odd_part {
	const char *name;   /* with '/' at the end: everything in it */
	bool may_be_absent; /* only the process knows what it has there */
	mode_t mode;
	const char *link; /* NULL: no link that can be followed here; "": to the work directory */
};

static const struct odd_part odd_parts[] = {
	{"/root", false, S_IFLNK | 0777, "/"},
	{"/cwd", false, S_IFLNK | 0777, ""},
	/* A running program cannot be written. */
	{EXE, false, S_IFREG | 0555, NULL},
	{"/ns/", false, S_IFREG | 0444, NULL},
	/* Each asks for a capability, which no command has. */
	{"/map_files/", true, S_IFREG, NULL},
	{"/setgroups", false, S_IFREG | 0444, NULL},
	{FDS, true, S_IFREG | 0600, NULL},
	{"/fdinfo/", true, S_IFREG | 0400, NULL},
};

/* The kernel opens them for a process with a capability only, whatever their mode says. */
static const char *const machines_own[] = {"/proc/kcore", "/proc/kmsg", "/proc/mtrr"};

/* The length of "self", "thread-self" or a number that @path begins with; 0: of none. */
static size_t process_len(const char *path)
{
	size_t len = strcspn(path, "/");

	if ((len == 4 && !strncmp(path, "self", len)) || (len == 11 && !strncmp(path, "thread-self", len)))
		return len;
	return strspn(path, DIGITS) == len ? len : 0;
}

const char *plan_part_of_process(const char *path)
{
	size_t len, digits;

	if (strncmp(path, "/proc/", 6) != 0)
		return NULL;
	path += 6;
	len = process_len(path);
	if (!len)
		return NULL;
	path += len;
	digits = !strncmp(path, "/task/", 6) ? strspn(path + 6, DIGITS) : 0;
	if (digits && (!path[6 + digits] || path[6 + digits] == '/'))
		path += 6 + digits;
	return path;
}

static const struct odd_part *odd_part_of(const char *part)
{
	for (size_t i = 0; i < ARRAY_LEN(odd_parts); i++) {
		size_t len = strlen(odd_parts[i].name);

		if (odd_parts[i].name[len - 1] == '/' ? !strncmp(part, odd_parts[i].name, len) && part[len]
						      : !strcmp(part, odd_parts[i].name))
			return &odd_parts[i];
	}
	return NULL;
}

static void look_at_process(const struct plan *plan, const struct plan_looker *looker, const char *process,
			    const char *part, struct plan_object *out)
{
	const struct odd_part *odd = odd_part_of(part);
	char path[PATH_MAX];

	*out = (struct plan_object){0};
	if (odd && odd->may_be_absent)
		out->mode = odd->mode;
	else if (!*part)
		out->mode = S_IFDIR | 0555;
	else if (snprintf(path, sizeof(path), "%s%s", process, part) < (int)sizeof(path))
		looker->look(looker->owner, path, out);
	if (odd && out->mode) {
		out->mode = odd->mode;
		snprintf(out->link, sizeof(out->link), "%s",
			 !odd->link     ? ""
			 : odd->link[0] ? odd->link
					: plan->core.workdir);
	}
	/* What a network counts belongs to the owner of the network. */
	if (!strncmp(part, "/net/", 5))
		return;
	out->uid = plan->owner_id ? plan->owner_id : looker->uid;
	out->gid = plan->owner_id ? plan->owner_id : looker->gid;
}

void plan_look_at_proc(const struct plan *plan, const struct plan_looker *looker, const char *path,
		       struct plan_object *out)
{
	const char *part = plan_part_of_process(path);
	bool is_thread = !strncmp(path, "/proc/thread-self", 17) || strstr(path, "/task/");
	bool is_first = !strncmp(path, "/proc/1", 7) && (!path[7] || path[7] == '/');

	if (!part)
		looker->look(looker->owner, path, out);
	else
		look_at_process(plan, looker, is_thread ? "/proc/thread-self" : "/proc/self", part, out);
	/* It cannot be looked into, so the kernel has given what is its own to root. */
	if (is_first)
		out->uid = out->gid = 0;
	for (size_t i = 0; i < ARRAY_LEN(machines_own); i++)
		if (!strcmp(path, machines_own[i]))
			out->mode &= S_IFMT;
}

bool plan_is_of_open_file(const char *path)
{
	const char *part = plan_part_of_process(path);

	return part && (!strcmp(part, EXE) || !strncmp(part, FDS, strlen(FDS)));
}
