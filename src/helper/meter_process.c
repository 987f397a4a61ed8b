/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper/meter_process.c - which processes a jar has, and what each of them uses
 *
 * /proc/PID/stat has all but the bytes written in one line, at 6.6 µs a process.
 */
#include "helper/meter_process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/sys/calls.h"
#include "base/reap/reap_children.h"

#define STAT_BYTES 1024
/* Threads to try until one shows their shared memory: the first living one does. */
#define THREADS_TRIED_MAX 16
#define NANOSECONDS 1000000000ULL
/* The kernel's PF_FORKNOEXEC, among a process's flags. */
#define FORKED_FLAG 0x40
/* Beyond what its minder has: the command that it was sent, and what it touches on the way. */
#define STARTER_MORE_BYTES (UINT64_C(1) << 20)

/* --- the table ---------------------------------------------------------------------------------------------- */

static int compare(const void *left, const void *right)
{
	const struct meter_process *one = left, *other = right;

	/* One that is known comes before what is only a second mention of it. */
	if (one->pid == other->pid)
		return (int)one->is_new - (int)other->is_new;
	return one->pid < other->pid ? -1 : 1;
}

/* Among those that are in order. */
struct meter_process *helper_meter_find(const struct meter *meter, pid_t pid)
{
	size_t low = 0, high = meter->sorted_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (meter->processes[middle].pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return low < meter->sorted_count && meter->processes[low].pid == pid ? &meter->processes[low] : NULL;
}

static bool make_room(struct meter *meter)
{
	size_t capacity = MAX_OF(32, meter->process_capacity * 2);
	struct meter_process *grown;

	if (meter->process_count < meter->process_capacity)
		return true;
	grown = reallocarray(meter->processes, capacity, sizeof(*grown));
	if (!grown)
		return false;
	meter->processes = grown;
	meter->process_capacity = capacity;
	return true;
}

/* New ones stand behind those that are in order, until all have been found. */
static bool note(void *owner, pid_t pid)
{
	struct meter *meter = owner;

	if (helper_meter_find(meter, pid))
		return true;
	/* Too many children, dead or alive, are too many: do not look at each. */
	if (meter->process_count - meter->sorted_count > meter->most_threads ||
	    meter->process_count == METER_PROCESSES_MAX || !make_room(meter)) {
		meter->is_crowded = true;
		return false;
	}
	meter->processes[meter->process_count++] = (struct meter_process){.pid = pid, .is_new = true};
	return true;
}

/* A process may have been found below two others, if the first of them ended meanwhile. */
static void put_in_order(struct meter *meter)
{
	size_t kept = 0;

	if (meter->process_count > meter->sorted_count) {
		qsort(meter->processes, meter->process_count, sizeof(*meter->processes), compare);
		for (size_t i = 0; i < meter->process_count; i++)
			if (!kept || meter->processes[kept - 1].pid != meter->processes[i].pid)
				meter->processes[kept++] = meter->processes[i];
		meter->process_count = kept;
	}
	meter->sorted_count = meter->process_count;
}

void helper_meter_forget(struct meter *meter)
{
	size_t kept = 0;

	for (size_t i = 0; i < meter->process_count; i++) {
		if (!meter->processes[i].is_gone)
			meter->processes[kept++] = meter->processes[i];
	}
	meter->process_count = meter->sorted_count = kept;
}

/* --- one process -------------------------------------------------------------------------------------------- */

static uint64_t to_nanoseconds(uint64_t ticks)
{
	return ticks * (NANOSECONDS / (uint64_t)sysconf(_SC_CLK_TCK));
}

bool helper_meter_parse_stat(struct meter_process *process, const char *line)
{
	enum {
		PARENT = 4,
		SESSION = 6,
		FLAGS = 9,
		FAULTS = 10,
		CHILD_FAULTS,
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
	const char *at = reap_after_name(line);

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
	process->session = (pid_t)fields[SESSION];
	process->is_fork = fields[FLAGS] & FORKED_FLAG;
	process->threads = (unsigned)fields[THREADS];
	process->shown = process->pid;
	process->virtual_bytes = fields[VIRTUAL];
	process->resident_bytes = fields[RESIDENT] * (uint64_t)sysconf(_SC_PAGESIZE);
	process->own_faults = fields[FAULTS];
	process->waited_faults.now = fields[CHILD_FAULTS];
	process->cpu_ns.now = to_nanoseconds(fields[USER] + fields[SYSTEM] + fields[CHILD_USER] + fields[CHILD_SYSTEM]);
	return true;
}

/*
 * A kept jar's minders and the processes of tasks are in the session of its first process. Each command starts in
 * its own session, and no process can enter another's. A starter has left the first session too. A minder has one
 * starter at most; it has executed nothing, and is about as large as its minder. After the starter has become the
 * command, an orphan of it may look like the starter. A run gains no more from that than what its starter had.
 */
void helper_meter_mark_ours(struct meter *meter)
{
	for (size_t i = 0; i < meter->process_count; i++) {
		struct meter_process *process = &meter->processes[i];

		process->is_ours = process->pid == meter->first_pid || process->session == meter->first_pid;
		process->has_starter = false;
	}
	for (size_t i = 0; i < meter->process_count; i++) {
		struct meter_process *process = &meter->processes[i];
		struct meter_process *minder = process->is_fork ? helper_meter_find(meter, process->parent) : NULL;

		if (!minder || minder->session != meter->first_pid || minder->pid == meter->first_pid ||
		    minder->has_starter || process->is_ours ||
		    process->resident_bytes > minder->resident_bytes + STARTER_MORE_BYTES)
			continue;
		process->is_ours = minder->has_starter = true;
	}
}

struct thread_look {
	struct meter *meter;
	struct meter_process *process;
	int left;
};

static bool look_at_thread(void *owner, pid_t thread)
{
	struct thread_look *look = owner;
	struct meter_process found = {.pid = thread, .is_new = true};
	char line[STAT_BYTES], name[64];

	snprintf(name, sizeof(name), "%d/task/%d/stat", (int)look->process->pid, (int)thread);
	if (thread != look->process->pid && sys_read_file(look->meter->proc_fd, name, line, sizeof(line)) > 0 &&
	    helper_meter_parse_stat(&found, line) && found.virtual_bytes) {
		look->process->shown = thread;
		look->process->virtual_bytes = found.virtual_bytes;
		look->process->resident_bytes = found.resident_bytes;
		return false;
	}
	return look->left-- > 0;
}

/*
 * If a process's first thread has ended, the kernel shows neither memory nor descriptors under its pid, though
 * other threads still have them. It does show them under the number of another thread.
 */
static void look_by_thread(struct meter *meter, struct meter_process *process)
{
	struct thread_look look = {meter, process, THREADS_TRIED_MAX};
	AUTO_CLOSE int fd = -1;
	char name[32];

	snprintf(name, sizeof(name), "%d/task", (int)process->pid);
	fd = openat(meter->proc_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		reap_some_numbers(fd, look_at_thread, &look);
}

static bool read_stat(struct meter *meter, struct meter_process *process)
{
	char line[STAT_BYTES], name[32];

	snprintf(name, sizeof(name), "%d/stat", (int)process->pid);
	if (sys_read_file(meter->proc_fd, name, line, sizeof(line)) <= 0 || !helper_meter_parse_stat(process, line))
		return false;
	if (!process->virtual_bytes && process->threads > 1)
		look_by_thread(meter, process);
	return true;
}

/* The files of one that has ended belong to root, too: look again whether it lives. */
static void note_hidden(struct meter *meter, struct meter_process *process)
{
	/* A session has processes of ours that hide. The meters of its runs look at the others. */
	if (plan_has_minders(meter->plan) || !read_stat(meter, process) || !process->virtual_bytes)
		return;
	meter->has_hidden = true;
	meter->hidden_pid = process->pid;
}

static void read_written(struct meter *meter, struct meter_process *process)
{
	char content[STAT_BYTES], name[32];
	ssize_t len;

	snprintf(name, sizeof(name), "%d/io", (int)process->pid);
	len = sys_read_file(meter->proc_fd, name, content, sizeof(content));
	if (len > 0)
		reap_parse_written(content, &process->written_bytes.now);
	else if (len == -EACCES || len == -EPERM)
		note_hidden(meter, process);
}

/* --- finding processes -------------------------------------------------------------------------------------- */

static void read_one(struct meter *meter, struct meter_process *process)
{
	process->is_gone = !read_stat(meter, process);
	if (process->is_gone)
		return;
	meter->has_seen_any = true;
	if (process->pid == meter->first_pid)
		return;
	meter->seen_threads += process->threads;
	if (meter->plan->has_counted_writes && meter->plan->metered >> GUARANTEE_DISK & 1)
		read_written(meter, process);
}

/* One of the threads of the process that is walked: each has children of its own. */
static bool note_children(void *owner, pid_t thread)
{
	struct meter *meter = owner;
	pid_t pid = meter->processes[meter->at].pid;

	reap_each_child(meter->proc_fd, pid, thread, note, meter);
	return !meter->is_crowded;
}

/* Too many to look at, or more than there may be: the look need not be finished. */
static bool is_given_up(const struct meter *meter)
{
	return meter->is_crowded || (meter->has_lists && meter->seen_threads > meter->most_threads);
}

/* Look at one process, and note its children. */
static void walk(struct meter *meter)
{
	struct meter_process *process = &meter->processes[meter->at];
	AUTO_CLOSE int task_fd = -1;
	char name[32];

	read_one(meter, process);
	/* Each of its threads would be asked for children: where they are too many, that takes longest. */
	if (process->is_gone || is_given_up(meter))
		return;
	if (process->threads == 1) {
		note_children(meter, process->pid);
		return;
	}
	snprintf(name, sizeof(name), "%d/task", (int)process->pid);
	task_fd = openat(meter->proc_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	while (task_fd >= 0 && !meter->is_crowded && reap_some_numbers(task_fd, note_children, meter) > 0)
		;
}

/*
 * Walk everything below the first process, each process once. When one ends, the kernel gives its children to a
 * process that this walk may have passed; the next look finds them there.
 */
static void follow(struct meter *meter)
{
	note(meter, meter->first_pid);
	for (meter->at = 0; meter->at < meter->process_count && !is_given_up(meter); meter->at++)
		walk(meter);
}

/* List all of /proc, if it shows only the jar, or if the kernel does not list children. */
static void list(struct meter *meter)
{
	lseek(meter->proc_fd, 0, SEEK_SET);
	while (!meter->is_crowded && reap_some_numbers(meter->proc_fd, note, meter) > 0)
		;
	if (meter->is_crowded)
		return;
	put_in_order(meter);
	for (size_t i = 0; i < meter->process_count && !is_given_up(meter); i++)
		read_one(meter, &meter->processes[i]);
}

/* A number may have gone to a stranger between the list and the look. */
static bool is_ours(const struct meter *meter, const struct meter_process *process)
{
	return !process->is_new || process->pid == meter->first_pid || helper_meter_find(meter, process->parent);
}

/* Whether the process is a descendant of the first one. */
static bool descends(const struct meter *meter, const struct meter_process *process)
{
	for (int depth = 0; process && depth < METER_DEPTH_MAX; depth++) {
		if (process->pid == meter->first_pid)
			return true;
		process = helper_meter_find(meter, process->parent);
	}
	return false;
}

static void drop_strangers(struct meter *meter)
{
	for (size_t i = 0; i < meter->process_count; i++) {
		struct meter_process *process = &meter->processes[i];

		process->is_stranger = !(meter->has_lists ? is_ours(meter, process) : descends(meter, process));
	}
	for (size_t i = 0; i < meter->process_count; i++)
		meter->processes[i].is_gone |= meter->processes[i].is_stranger;
}

static void begin_tally(struct meter_tally *tally)
{
	tally->older = tally->before;
	tally->before = tally->now;
	tally->expected = tally->pending;
	tally->pending = 0;
}

static void begin(struct meter *meter)
{
	for (size_t i = 0; i < meter->process_count; i++) {
		meter->processes[i].is_new = false;
		begin_tally(&meter->processes[i].cpu_ns);
		begin_tally(&meter->processes[i].written_bytes);
		begin_tally(&meter->processes[i].waited_faults);
	}
	meter->is_crowded = meter->has_seen_any = false;
	meter->seen_threads = 0;
}

/* There are too many processes: forget those found in this look. */
static enum meter_progress give_up(struct meter *meter)
{
	meter->seen_threads = MAX_OF(meter->seen_threads, meter->process_count - meter->sorted_count);
	meter->process_count = meter->sorted_count;
	return METER_CROWDED;
}

enum meter_progress helper_meter_update(struct meter *meter)
{
	begin(meter);
	if (meter->is_whole_proc || !meter->has_lists)
		list(meter);
	else
		follow(meter);
	if (is_given_up(meter))
		return give_up(meter);
	put_in_order(meter);
	if (!meter->is_whole_proc)
		drop_strangers(meter);
	return meter->has_seen_any ? METER_WHOLE : METER_BLIND;
}
