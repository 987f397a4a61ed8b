/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jar/jar_traces.c - is there a trace of a call in what its keeper leaves to the next one?
 *
 * What ends with the processes of a call, all killed and reaped by then, needs no look. What does not is made anew, or
 * cannot be changed by a call, or is compared here with what it was before.
 */
#include "jar/jar_traces.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>

#include "sys/calls.h"

#define NET_BYTES 1024

struct times {
	struct timespec accessed, modified, changed;
};

static struct times noted[JAR_WATCHED_MAX];

static bool is_same_time(const struct timespec *left, const struct timespec *right)
{
	return left->tv_sec == right->tv_sec && left->tv_nsec == right->tv_nsec;
}

static bool look(const char *path, struct times *times)
{
	struct stat status;

	if (lstat(path, &status) < 0)
		return false;
	*times = (struct times){.accessed = status.st_atim, .modified = status.st_mtim, .changed = status.st_ctim};
	return true;
}

/* Whatever is made, removed or changed in a directory, or of itself, shows in one of its times; nobody can set that of change. */
static bool is_untouched(const char *path, const struct times *before)
{
	struct times now;

	return look(path, &now) && is_same_time(&before->accessed, &now.accessed) &&
	       is_same_time(&before->modified, &now.modified) && is_same_time(&before->changed, &now.changed);
}

/* Without a packet there has been no connection; sockets end with their processes. */
static bool is_network_untouched(void)
{
	char content[NET_BYTES];
	const char *at;

	if (sys_read_file(AT_FDCWD, "/proc/self/net/dev", content, sizeof(content)) <= 0)
		return false;
	at = strstr(content, "lo:");
	for (at = at ? at + 3 : "?"; *at && *at != '\n'; at++)
		if (*at != ' ' && *at != '0')
			return false;
	return true;
}

void jar_traces_note(const struct plan *plan)
{
	for (size_t i = 0; i < plan->watched.count; i++)
		if (!look(plan->watched.items[i].path, &noted[i]))
			noted[i] = (struct times){0};
}

bool jar_is_traceless(const struct jar_inside *inside)
{
	const struct plan_watch_list *watched = &inside->plan->watched;

	if (!inside->call.is_reaped)
		return false;
	for (size_t i = 0; i < watched->count; i++)
		if (!is_untouched(watched->items[i].path, &noted[i]))
			return false;
	/* Without one of its own, what a call did to it is the policy's matter, as for all that share a jar. */
	return !(inside->plan->namespaces & CLONE_NEWNET) || is_network_untouched();
}
