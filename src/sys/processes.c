/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys/processes.c - who is whose child, as /proc tells it
 */
#include "sys/processes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "sys/calls.h"

#define LIST_BYTES 4096
#define STAT_BYTES 512

struct directory_entry {
	uint64_t inode;
	int64_t offset;
	unsigned short len;
	unsigned char type;
	char name[];
};

/* What is on the way through the threads of one process. */
struct search {
	int proc_fd;
	sys_number_function *function;
	void *owner;
	int threads;
	int error;      /* the first; negative */
	bool has_lists; /* the kernel lists children */
};

const char *sys_after_name(const char *stat_line)
{
	const char *bracket = strrchr(stat_line, ')');

	return bracket && bracket[1] == ' ' ? bracket + 2 : NULL;
}

bool sys_parse_written(const char *content, uint64_t *bytes_out)
{
	const char *written = strstr(content, "\nwrite_bytes: ");
	const char *cancelled = strstr(content, "\ncancelled_write_bytes: ");
	uint64_t bytes, taken_back;

	if (!written || !cancelled)
		return false;
	bytes = strtoull(strchr(written, ' '), NULL, 10);
	taken_back = strtoull(strchr(cancelled, ' '), NULL, 10);
	*bytes_out = bytes - MIN_OF(bytes, taken_back);
	return true;
}

pid_t sys_parent_of(int proc_fd, pid_t pid)
{
	char name[32], content[STAT_BYTES];
	const char *after;
	int parent = 0;

	snprintf(name, sizeof(name), "%d/stat", (int)pid);
	if (sys_read_file(proc_fd, name, content, sizeof(content)) <= 0)
		return 0;
	after = sys_after_name(content);
	return after && sscanf(after, "%*c %d", &parent) == 1 ? parent : 0;
}

void sys_each_number(int fd, pid_t parent, sys_number_function *function, void *owner)
{
	char entries[LIST_BYTES];
	long len;

	lseek(fd, 0, SEEK_SET);
	while ((len = syscall(SYS_getdents64, fd, entries, sizeof(entries))) > 0) {
		for (long at = 0; at < len;) {
			const struct directory_entry *entry = (const struct directory_entry *)(entries + at);

			at += entry->len;
			if (entry->name[0] >= '1' && entry->name[0] <= '9')
				function(owner, (pid_t)atoi(entry->name), parent);
		}
	}
}

/* One `children` list of the kernel's, read piece by piece: it may be longer than the buffer. */
static void visit_list(struct search *search, pid_t thread, pid_t parent)
{
	char list[LIST_BYTES], name[64];
	size_t kept = 0;
	ssize_t len;
	AUTO_CLOSE int fd = -1;

	snprintf(name, sizeof(name), "%d/task/%d/children", (int)parent, (int)thread);
	fd = openat(search->proc_fd, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		if (errno != ENOENT && errno != ESRCH && !search->error)
			search->error = -errno;
		return;
	}
	search->has_lists = true;
	while ((len = read(fd, list + kept, sizeof(list) - 1 - kept)) > 0) {
		char *at = list, *end;

		list[kept + (size_t)len] = '\0';
		for (; (end = strchr(at, ' ')); at = end + 1)
			search->function(search->owner, (pid_t)atoi(at), parent);
		kept = strlen(at);
		memmove(list, at, kept);
	}
}

static void visit_thread(void *owner, pid_t thread, pid_t parent)
{
	struct search *search = owner;

	search->threads++;
	visit_list(search, thread, parent);
}

static void visit_if_child(void *owner, pid_t pid, pid_t parent)
{
	struct search *search = owner;

	if (sys_parent_of(search->proc_fd, pid) == parent)
		search->function(search->owner, pid, parent);
}

/* A process that has just gone has no lists either; to look through all others for its children then does no harm. */
static int search_all(struct search *search, pid_t parent)
{
	AUTO_CLOSE int fd = openat(search->proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	sys_each_number(fd, parent, visit_if_child, search);
	return search->threads;
}

int sys_each_child(int proc_fd, pid_t parent, sys_number_function *function, void *owner)
{
	struct search search = {.proc_fd = proc_fd, .function = function, .owner = owner};
	AUTO_CLOSE int fd = -1;
	char name[32];

	snprintf(name, sizeof(name), "%d/task", (int)parent);
	fd = openat(proc_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT || errno == ESRCH ? 0 : -errno;
	sys_each_number(fd, parent, visit_thread, &search);
	if (search.error)
		return search.error;
	return search.has_lists || !search.threads ? search.threads : search_all(&search, parent);
}
