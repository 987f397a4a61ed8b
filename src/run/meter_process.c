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

#include "sys/calls.h"
#include "sys/processes.h"

#define KEPT_MAX 200
#define STAT_BYTES 1024
#define NANOSECONDS 1000000000ULL

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

	if (meter->process_count == METER_PROCESSES_MAX)
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

bool meter_parse_stat(struct meter_process *process, const char *line)
{
	enum {
		PARENT = 4,
		USER = 14,
		SYSTEM,
		CHILD_USER,
		CHILD_SYSTEM,
		THREADS = 20,
		START = 22,
		VIRTUAL,
		RESIDENT,
		COUNT
	};
	uint64_t fields[COUNT] = {0};
	const char *at = sys_after_name(line);

	if (!at || !at[0] || at[1] != ' ')
		return false;
	at += 2; /* the state; the numbers begin with the fourth field of the line */
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
	process->virtual_bytes = fields[VIRTUAL];
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
int meter_open(struct meter *meter, const char *name, int flags)
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
	return meter_open(meter, name, 0);
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
	return meter_parse_stat(process, line);
}

/* The files of one that has ended belong to root, too: look again whether it lives. */
void meter_note_hidden(struct meter *meter, pid_t pid)
{
	struct meter_process *process = meter_find(meter, pid);

	/* A kept jar has processes of ours that hide. The meters of its runs look at the others. */
	if (meter->plan->kind == PLAN_KEPT || !process || !read_stat(meter, process) || !process->virtual_bytes)
		return;
	meter->has_hidden = true;
	meter->hidden_pid = pid;
}

void meter_end_round(struct meter *meter)
{
	meter->hidden_rounds = meter->has_hidden ? meter->hidden_rounds + 1 : 0;
	meter->has_hidden = false;
}

static void read_written(struct meter *meter, struct meter_process *process)
{
	char content[STAT_BYTES], name[32];
	ssize_t len;

	snprintf(name, sizeof(name), "%d/io", (int)process->pid);
	len = sys_read_file(meter->proc_fd, name, content, sizeof(content));
	if (len > 0)
		sys_parse_written(content, &process->written_bytes.now);
	else if (len == -EACCES || len == -EPERM)
		meter_note_hidden(meter, process->pid);
}

/* --- who is there ------------------------------------------------------------------------------------------- */

static void note(void *owner, pid_t pid, pid_t parent)
{
	struct meter *meter = owner;

	(void)parent;
	if (!meter_find(meter, pid))
		insert(meter, pid);
}

static void note_children(struct meter *meter, pid_t parent)
{
	int rc = sys_each_child(meter->proc_fd, parent, note, meter);

	if ((rc != -EMFILE && rc != -ENFILE) || meter->keeps_nothing)
		return;
	keep_nothing(meter);
	sys_each_child(meter->proc_fd, parent, note, meter);
}

/* Everything below the first process. The table grows while it is walked: what was added is walked too. */
static void follow_children(struct meter *meter)
{
	bool has_grown = true;

	note(meter, meter->first_pid, 0);
	while (has_grown) {
		size_t count = meter->process_count;

		for (size_t i = 0; i < meter->process_count; i++)
			note_children(meter, meter->processes[i].pid);
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
	bool has_disk = meter->plan->has_counted_writes && meter->plan->metered >> GUARANTEE_DISK & 1;
	bool has_seen_any = false;

	for (size_t i = 0; i < meter->process_count; i++) {
		meter->processes[i].is_new = false;
		begin_tally(&meter->processes[i].cpu_ns);
		begin_tally(&meter->processes[i].written_bytes);
	}
	if (meter->is_whole_proc)
		sys_each_number(meter->proc_fd, 0, note, meter);
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
