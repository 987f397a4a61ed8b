/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/reap/reap_children.c - find the children of processes in /proc
 */
#include "base/reap/reap_children.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/directory.h"
#include "base/sys/calls.h"

#define LIST_BYTES 4096
#define IO_BYTES 512

const char *reap_after_name(const char *stat_line)
{
	const char *bracket = strrchr(stat_line, ')');

	return bracket && bracket[1] == ' ' ? bracket + 2 : NULL;
}

bool reap_parse_written(const char *content, uint64_t *bytes_out)
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

uint64_t reap_written_bytes(int io_fd)
{
	char content[IO_BYTES];
	ssize_t len = pread(io_fd, content, sizeof(content) - 1, 0);
	uint64_t bytes = 0;

	if (len <= 0)
		return 0;
	content[len] = '\0';
	reap_parse_written(content, &bytes);
	return bytes;
}

uint64_t reap_written_by_children(void)
{
	struct rusage usage;

	getrusage(RUSAGE_CHILDREN, &usage);
	return (uint64_t)usage.ru_oublock * REAP_BLOCK_BYTES;
}

long reap_some_numbers(int fd, reap_number_function *function, void *owner)
{
	_Alignas(struct directory_entry) char entries[LIST_BYTES];
	struct directory list = {.fd = fd, .buffer = entries, .size = sizeof(entries)};
	const struct directory_entry *entry;
	long len = directory_read(&list);

	while ((entry = directory_next_read(&list)))
		if (entry->name[0] >= '1' && entry->name[0] <= '9' && !function(owner, (pid_t)atoi(entry->name)))
			return 0;
	return len;
}

/* The kernel's list is read piece by piece: it may be longer than the buffer. */
int reap_each_child(int proc_fd, pid_t pid, pid_t thread, reap_number_function *function, void *owner)
{
	char list[LIST_BYTES], name[64];
	size_t kept = 0;
	ssize_t len;
	AUTO_CLOSE int fd = -1;

	snprintf(name, sizeof(name), "%d/task/%d/children", (int)pid, (int)thread);
	fd = openat(proc_fd, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while ((len = read(fd, list + kept, sizeof(list) - 1 - kept)) > 0) {
		char *at = list, *end;

		list[kept + (size_t)len] = '\0';
		for (; (end = strchr(at, ' ')); at = end + 1)
			if (!function(owner, (pid_t)atoi(at)))
				return 0;
		kept = strlen(at);
		memmove(list, at, kept);
	}
	return 0;
}
