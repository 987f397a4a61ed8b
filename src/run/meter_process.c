/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/meter_process.c - which processes a jar has, and what each of them uses
 *
 * /proc/PID/stat has all but the bytes written in one line, at 2.7 µs a process by a descriptor that is kept open, and
 * 6.6 µs if it has to be opened.
 */
#include "run/meter_process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "sys/calls.h"

/* More than any policy's default allows; beyond it processes go unseen. */
#define PROCESSES_MAX 16384
#define KEPT_MAX 200
#define LIST_BYTES 8192
#define STAT_BYTES 1024
#define NANOSECONDS 1000000000ULL

struct directory_entry {
	uint64_t inode;
	int64_t offset;
	unsigned short len;
	unsigned char type;
	char name[];
};

/* --- the table ---------------------------------------------------------------------------------------------- */

/* Where @pid is or belongs. */
static size_t position_of(const struct meter *meter, pid_t pid)
{
	size_t low = 0, high = meter->process_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (meter->processes[middle].pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct meter_process *meter_find(const struct meter *meter, pid_t pid)
{
	size_t at = position_of(meter, pid);

	return at < meter->process_count && meter->processes[at].pid == pid ? &meter->processes[at] : NULL;
}

static struct meter_process *insert(struct meter *meter, pid_t pid)
{
	size_t at = position_of(meter, pid);

	if (meter->process_count == PROCESSES_MAX)
		return NULL;
	if (meter->process_count == meter->process_capacity) {
		size_t capacity = MAX_OF(32, meter->process_capacity * 2);
		struct meter_process *grown = reallocarray(meter->processes, capacity, sizeof(*grown));

		if (!grown)
			return NULL;
		meter->processes = grown;
		meter->process_capacity = capacity;
	}
	memmove(&meter->processes[at + 1], &meter->processes[at],
		(meter->process_count - at) * sizeof(*meter->processes));
	meter->process_count++;
	meter->processes[at] = (struct meter_process){.pid = pid, .stat_fd = -1, .is_new = true};
	return &meter->processes[at];
}

void meter_forget(struct meter *meter)
{
	size_t kept = 0;

	for (size_t i = 0; i < meter->process_count; i++) {
		if (meter->processes[i].is_gone)
			close_fd(&meter->processes[i].stat_fd);
		else
			meter->processes[kept++] = meter->processes[i];
	}
	meter->process_count = kept;
}

/* --- one process -------------------------------------------------------------------------------------------- */

static uint64_t to_nanoseconds(uint64_t ticks)
{
	return ticks * (NANOSECONDS / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* The numbers after the name, which may hold anything, brackets too. The first is the fourth field of the line. */
static bool parse_stat(struct meter_process *process, const char *line)
{
	enum {
		PARENT = 4,
		USER = 14,
		SYSTEM,
		CHILD_USER,
		CHILD_SYSTEM,
		THREADS = 20,
		START = 22,
		RESIDENT = 24,
		COUNT
	};
	uint64_t fields[COUNT] = {0};
	const char *at = strrchr(line, ')');

	if (!at || strlen(at) < 4)
		return false;
	at += 4; /* ") S " */
	for (int i = PARENT; i < COUNT; i++) {
		char *end;

		fields[i] = strtoull(at, &end, 10);
		if (end == at)
			return false;
		at = end;
	}
	if (!process->is_new && process->start_time != fields[START])
		return false; /* another one that got its number */
	process->start_time = fields[START];
	process->parent = (pid_t)fields[PARENT];
	process->threads = (unsigned)fields[THREADS];
	process->resident_bytes = fields[RESIDENT] * (uint64_t)sysconf(_SC_PAGESIZE);
	process->cpu_ns.now = to_nanoseconds(fields[USER] + fields[SYSTEM] + fields[CHILD_USER] + fields[CHILD_SYSTEM]);
	return true;
}

/* Our own descriptors are used up: processes that cannot be opened would go unseen. Keep none from here on. */
static void keep_nothing(struct meter *meter)
{
	meter->keeps_nothing = true;
	for (size_t i = 0; i < meter->process_count; i++)
		close_fd(&meter->processes[i].stat_fd);
}

/* Every look into /proc goes this way, so that none fails for want of a descriptor that we only keep for speed. */
static int open_proc(struct meter *meter, const char *name, int flags)
{
	int fd = openat(meter->proc_fd, name, O_RDONLY | O_CLOEXEC | flags);

	if (fd >= 0 || (errno != EMFILE && errno != ENFILE) || meter->keeps_nothing)
		return fd;
	keep_nothing(meter);
	return openat(meter->proc_fd, name, O_RDONLY | O_CLOEXEC | flags);
}

static int open_stat(struct meter *meter, pid_t pid)
{
	char name[32];

	snprintf(name, sizeof(name), "%d/stat", (int)pid);
	return open_proc(meter, name, 0);
}

static bool read_stat(struct meter *meter, struct meter_process *process)
{
	char line[STAT_BYTES];
	ssize_t len;

	if (process->stat_fd >= 0) {
		len = pread(process->stat_fd, line, sizeof(line) - 1, 0);
	} else {
		int fd = open_stat(meter, process->pid);

		if (fd < 0)
			return false;
		len = read(fd, line, sizeof(line) - 1);
		if (meter->process_count <= KEPT_MAX && !meter->keeps_nothing)
			process->stat_fd = fd;
		else
			close(fd);
	}
	if (len <= 0)
		return false;
	line[len] = '\0';
	return parse_stat(process, line);
}

/* Bytes that made pages of a file dirty, less what was taken back before it was stored. */
static void read_written(const struct meter *meter, struct meter_process *process)
{
	char content[STAT_BYTES], name[32];
	const char *written, *cancelled;
	uint64_t bytes, taken_back;

	snprintf(name, sizeof(name), "%d/io", (int)process->pid);
	if (sys_read_file(meter->proc_fd, name, content, sizeof(content)) <= 0)
		return;
	written = strstr(content, "\nwrite_bytes: ");
	cancelled = strstr(content, "\ncancelled_write_bytes: ");
	if (!written || !cancelled)
		return;
	bytes = strtoull(strchr(written, ' '), NULL, 10);
	taken_back = strtoull(strchr(cancelled, ' '), NULL, 10);
	process->written_bytes.now = bytes - MIN_OF(bytes, taken_back);
}

/* --- who is there ------------------------------------------------------------------------------------------- */

typedef void number_function(struct meter *meter, pid_t number, pid_t parent);

static void for_each_entry(struct meter *meter, int fd, pid_t parent, number_function *function)
{
	char entries[LIST_BYTES];
	long len;

	lseek(fd, 0, SEEK_SET);
	while ((len = syscall(SYS_getdents64, fd, entries, sizeof(entries))) > 0) {
		for (long at = 0; at < len;) {
			const struct directory_entry *entry = (const struct directory_entry *)(entries + at);

			at += entry->len;
			if (entry->name[0] >= '1' && entry->name[0] <= '9')
				function(meter, (pid_t)atoi(entry->name), parent);
		}
	}
}

static void note(struct meter *meter, pid_t pid, pid_t parent)
{
	(void)parent;
	if (!meter_find(meter, pid))
		insert(meter, pid);
}

/* One `children` list of the kernel's, read piece by piece: it may be longer than the buffer. */
static void note_children(struct meter *meter, pid_t thread, pid_t parent)
{
	char list[LIST_BYTES], name[64];
	size_t kept = 0;
	ssize_t len;
	AUTO_CLOSE int fd = -1;

	snprintf(name, sizeof(name), "%d/task/%d/children", (int)parent, (int)thread);
	fd = open_proc(meter, name, 0);
	while (fd >= 0 && (len = read(fd, list + kept, sizeof(list) - 1 - kept)) > 0) {
		char *at = list, *end;

		list[kept + (size_t)len] = '\0';
		for (; (end = strchr(at, ' ')); at = end + 1)
			note(meter, (pid_t)atoi(at), parent);
		kept = strlen(at);
		memmove(list, at, kept);
	}
}

/* Everything below the first process. The table grows while it is walked: what was added is walked too. */
static void follow_children(struct meter *meter)
{
	bool has_grown = true;

	note(meter, meter->first_pid, 0);
	while (has_grown) {
		size_t count = meter->process_count;

		for (size_t i = 0; i < meter->process_count; i++) {
			pid_t pid = meter->processes[i].pid;
			AUTO_CLOSE int fd = -1;
			char name[32];

			snprintf(name, sizeof(name), "%d/task", (int)pid);
			fd = open_proc(meter, name, O_DIRECTORY);
			if (fd >= 0)
				for_each_entry(meter, fd, pid, note_children);
		}
		has_grown = meter->process_count > count;
	}
}

/* Without a pid namespace a number may have gone to a stranger between the list and the look. */
static bool is_ours(const struct meter *meter, const struct meter_process *process)
{
	return meter->is_whole_proc || !process->is_new || process->pid == meter->first_pid ||
	       meter_find(meter, process->parent);
}

static void begin_tally(struct meter_tally *tally)
{
	tally->older = tally->before;
	tally->before = tally->now;
	tally->expected = tally->pending;
	tally->pending = 0;
}

bool meter_update(struct meter *meter)
{
	bool has_disk = meter->plan->metered >> GUARANTEE_DISK & 1;
	bool has_seen_any = false;

	for (size_t i = 0; i < meter->process_count; i++) {
		meter->processes[i].is_new = false;
		begin_tally(&meter->processes[i].cpu_ns);
		begin_tally(&meter->processes[i].written_bytes);
	}
	if (meter->is_whole_proc)
		for_each_entry(meter, meter->proc_fd, 0, note);
	else
		follow_children(meter);
	for (size_t i = 0; i < meter->process_count; i++) {
		struct meter_process *process = &meter->processes[i];

		process->is_gone = !read_stat(meter, process) || !is_ours(meter, process);
		if (process->is_gone)
			continue;
		has_seen_any = true;
		if (has_disk && process->pid != meter->first_pid)
			read_written(meter, process);
	}
	return has_seen_any;
}
