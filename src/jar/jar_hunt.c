/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jar/jar_hunt.c - find and end every descendant where there is no pid namespace to do it
 *
 * This process is a subreaper: a descendant whose parent ends becomes its child, in whatever session or process group it
 * hides. Killing all children until there are none therefore ends the whole tree; a chain that keeps forking away
 * (fork, setsid, exit) loses the race, since a kill costs less than a fork.
 */
#include "jar/jar_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "sys/calls.h"

#define DEPTH_MAX 16
#define LIST_BYTES 4096

/* Called for each child found; @depth is 0 for this process's own. */
typedef void visit_function(pid_t child, pid_t parent, int depth, int signal_number);

struct directory_entry {
	uint64_t inode;
	int64_t offset;
	unsigned short len;
	unsigned char type;
	char name[];
};

static pid_t parent_of(pid_t pid)
{
	char path[64], content[512], *after;
	int parent = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (sys_read_file(AT_FDCWD, path, content, sizeof(content)) <= 0)
		return 0;
	after = strrchr(content, ')');
	return after && sscanf(after + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

/* The numbers in one `children` file of the kernel's, read piece by piece: it may be longer than the buffer. */
static bool visit_list(const char *path, pid_t parent, int depth, int signal_number, visit_function *visit)
{
	char list[LIST_BYTES];
	size_t kept = 0;
	ssize_t len;
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	while ((len = read(fd, list + kept, sizeof(list) - 1 - kept)) > 0) {
		char *at = list, *end;

		list[kept + (size_t)len] = '\0';
		for (; (end = strchr(at, ' ')); at = end + 1)
			visit((pid_t)atoi(at), parent, depth, signal_number);
		kept = strlen(at);
		memmove(list, at, kept);
	}
	return true;
}

/* Call @visit for each number that names an entry of @path. */
static bool visit_directory(const char *path, void (*visit)(pid_t number, void *argument), void *argument)
{
	char entries[LIST_BYTES];
	long len;
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return false;
	while ((len = syscall(SYS_getdents64, fd, entries, sizeof(entries))) > 0) {
		for (long at = 0; at < len;) {
			const struct directory_entry *entry = (const struct directory_entry *)(entries + at);

			at += entry->len;
			if (entry->name[0] >= '1' && entry->name[0] <= '9')
				visit((pid_t)atoi(entry->name), argument);
		}
	}
	return true;
}

struct walk {
	pid_t parent;
	int depth;
	int signal_number;
	visit_function *visit;
	bool has_lists; /* the kernel lists children (CONFIG_PROC_CHILDREN) */
};

static void visit_thread(pid_t thread, void *argument)
{
	struct walk *walk = argument;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)walk->parent, (int)thread);
	if (visit_list(path, walk->parent, walk->depth, walk->signal_number, walk->visit))
		walk->has_lists = true;
}

static void visit_if_child(pid_t pid, void *argument)
{
	struct walk *walk = argument;

	if (parent_of(pid) == walk->parent)
		walk->visit(pid, walk->parent, walk->depth, walk->signal_number);
}

static void visit_children(pid_t parent, int depth, int signal_number, visit_function *visit)
{
	struct walk walk = {parent, depth, signal_number, visit, false};
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)parent);
	visit_directory(path, visit_thread, &walk);
	if (!walk.has_lists)
		visit_directory("/proc", visit_if_child, &walk);
}

/* A child of ours that nobody has reaped keeps its number: killing by number is safe. */
static void kill_child(pid_t child, pid_t parent, int depth, int signal_number)
{
	(void)parent;
	(void)depth;
	kill(child, signal_number);
}

/* Deeper down a number may have been given to a stranger by now: hold the process first, then look at its parent. */
static void signal_below(pid_t child, pid_t parent, int depth, int signal_number)
{
	AUTO_CLOSE int pidfd = sys_pidfd_open(child);

	if (pidfd < 0 || parent_of(child) != parent)
		return;
	if (depth < DEPTH_MAX)
		visit_children(child, depth + 1, signal_number, signal_below);
	sys_pidfd_send_signal(pidfd, signal_number);
}

void jar_signal_tree(int signal_number)
{
	visit_children(getpid(), 0, signal_number, signal_below);
}

void jar_hunt(void)
{
	for (;;) {
		while (waitpid(-1, NULL, WNOHANG | __WALL) > 0)
			;
		if (waitpid(-1, NULL, WNOHANG | __WALL) < 0 && errno == ECHILD)
			return;
		visit_children(getpid(), 0, SIGKILL, kill_child);
	}
}
