/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper/meter.c - measure a jar from outside, where no cgroup does
 *
 * Some processes end between two looks. A parent that waits inherits their use. If no parent waits (SIGCHLD
 * ignored), they leave no trace, so the meter adds their use at the last look. For CPU time the kernel has a clock
 * that follows every process from its start (perf's task clock); where that is allowed, nothing is lost. Written
 * bytes have no such clock: once the meter has seen such a process, it reads the growth of file systems instead.
 */
#include "helper/meter.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "helper/meter_process.h"
#include "base/sys/calls.h"

/* An inode of a tmpfs and the name that leads to it. */
#define INODE_BYTES 1024
/* Fewer may be by chance. */
#define LOSSES_LEAST 3

unsigned helper_meter_most_processes(void)
{
	return METER_PROCESSES_MAX;
}

void helper_meter_init(struct meter *meter, const struct plan *plan)
{
	*meter = (struct meter){.plan = plan,
				.proc_fd = -1,
				.list_fds = {-1, -1, -1},
				.clock_fd = -1,
				.most_threads = LIMIT_NONE,
				.has_lists = access("/proc/thread-self/children", F_OK) == 0};
}

void helper_meter_done(struct meter *meter)
{
	for (size_t i = 0; i < meter->place_count; i++)
		close_fd(&meter->places[i]);
	for (size_t i = 0; i < meter->store_count; i++)
		close_fd(&meter->stores[i].fd);
	free(meter->processes);
	free(meter->places);
	free(meter->stores);
	close_fd(&meter->proc_fd);
	for (size_t i = 0; i < ARRAY_LEN(meter->list_fds); i++)
		close_fd(&meter->list_fds[i]);
	close_fd(&meter->clock_fd);
	meter->processes = NULL;
	meter->places = NULL;
	meter->stores = NULL;
	meter->process_count = meter->sorted_count = meter->place_count = meter->store_count = 0;
}

/* --- the view ----------------------------------------------------------------------------------------------- */

static int open_inside(int root_fd, const char *path, uint64_t flags)
{
	return sys_openat2(root_fd, path + (path[0] == '/'), flags, 0,
			   SYS_RESOLVE_IN_ROOT | SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS);
}

/* The scratch space once, by any of the places that are made of it, and every other tmpfs. */
static void open_places(struct meter *meter, int root_fd)
{
	const struct plan_step_list *steps = &meter->plan->core.steps;

	meter->places = calloc(steps->count, sizeof(*meter->places));
	for (int pass = 0; pass < 2 && meter->places; pass++) {
		enum step_kind kind = pass == 0 ? STEP_PRIVATE : STEP_TMPFS;

		for (size_t i = 0; i < steps->count; i++) {
			int fd;

			if (steps->items[i].kind != kind || (kind == STEP_PRIVATE && meter->has_scratch))
				continue;
			fd = open_inside(root_fd, steps->items[i].target, O_PATH | O_DIRECTORY);
			if (fd < 0)
				continue;
			meter->has_scratch |= kind == STEP_PRIVATE;
			meter->places[meter->place_count++] = fd;
		}
	}
}

/* The bytes that the files at @fd use; *@inode_bytes: beside their content, in the kernel's own memory. */
static uint64_t used_bytes(int fd, bool *is_full, uint64_t *inode_bytes)
{
	struct statfs status;

	if (fstatfs(fd, &status) < 0)
		return 0;
	*is_full = (status.f_blocks && !status.f_bfree) || (status.f_files && !status.f_ffree);
	*inode_bytes = (uint64_t)(status.f_files - MIN_OF(status.f_files, status.f_ffree)) * INODE_BYTES;
	return (uint64_t)(status.f_blocks - status.f_bfree) * (uint64_t)status.f_bsize;
}

/* --- file systems of the host's ----------------------------------------------------------------------------- */

static bool counts_writes(const struct meter *meter)
{
	return meter->plan->has_counted_writes && meter->plan->metered >> GUARANTEE_DISK & 1;
}

/* Takes @fd over. */
static void add_store(struct meter *meter, int fd)
{
	uint64_t inode_bytes;
	struct stat status;
	bool is_full, is_new = fd >= 0 && fstat(fd, &status) == 0;

	for (size_t i = 0; i < meter->store_count && is_new; i++)
		is_new = meter->stores[i].device != status.st_dev;
	if (is_new) {
		uint64_t base = used_bytes(fd, &is_full, &inode_bytes);

		meter->stores[meter->store_count++] = (struct meter_store){take_fd(&fd), status.st_dev, base};
	}
	close_fd(&fd);
}

/* By the steps that show them, in a jar's own root. */
static void open_stores(struct meter *meter, int root_fd)
{
	const struct plan_step_list *steps = &meter->plan->core.steps;

	meter->stores = counts_writes(meter) ? calloc(steps->count, sizeof(*meter->stores)) : NULL;
	for (size_t i = 0; i < steps->count && meter->stores; i++) {
		const struct plan_step *step = &steps->items[i];
		bool is_writable = step->kind == STEP_OVERLAY ||
				   (step->kind == STEP_BIND && !(step->flags & (STEP_READ_ONLY | STEP_DEVICE)));

		if (is_writable)
			add_store(meter, open_inside(root_fd, step->target, O_PATH));
	}
}

/* By the rules that allow it, without a root of the jar's own. */
static void open_host_stores(struct meter *meter)
{
	const struct plan_rule_list *rules = &meter->plan->core.landlock;

	meter->stores = counts_writes(meter) ? calloc(rules->count, sizeof(*meter->stores)) : NULL;
	for (size_t i = 0; i < rules->count && meter->stores; i++)
		if (rules->items[i].is_writable)
			add_store(meter, open(rules->items[i].path, O_PATH | O_CLOEXEC));
}

static int join_stores(struct meter *meter, const struct meter *jar)
{
	meter->stores = calloc(jar->store_count, sizeof(*meter->stores));
	if (!meter->stores && jar->store_count)
		return -ENOMEM;
	for (size_t i = 0; i < jar->store_count; i++)
		add_store(meter, fcntl(jar->stores[i].fd, F_DUPFD_CLOEXEC, 3));
	return 0;
}

uint64_t helper_meter_grown_bytes(const struct meter *meter)
{
	uint64_t most = 0, inode_bytes;
	bool is_full;

	for (size_t i = 0; i < meter->store_count; i++) {
		uint64_t now = used_bytes(meter->stores[i].fd, &is_full, &inode_bytes);

		most = MAX_OF(most, now - MIN_OF(now, meter->stores[i].base_bytes));
	}
	return most;
}

/* --- where it looks ----------------------------------------------------------------------------------------- */

void helper_meter_take(struct meter *meter, enum jar_view view, int fd)
{
	switch (view) {
	case JAR_VIEW_PROC:
		meter->proc_fd = fd;
		meter->is_whole_proc = true;
		meter->first_pid = 1;
		break;
	case JAR_VIEW_ROOT:
		open_places(meter, fd);
		open_stores(meter, fd);
		close(fd);
		break;
	case JAR_VIEW_SHARED:
	case JAR_VIEW_QUEUES:
	case JAR_VIEW_SEMAPHORES:
		meter->list_fds[view - JAR_VIEW_SHARED] = fd;
		break;
	case JAR_VIEW_CLOCK:
		meter->clock_fd = fd;
		break;
	case JAR_VIEW_COUNT:
		close(fd);
		break;
	}
}

int helper_meter_follow(struct meter *meter, pid_t pid)
{
	meter->proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	meter->first_pid = pid;
	if (!meter->is_run)
		open_host_stores(meter);
	return meter->proc_fd < 0 ? -errno : 0;
}

int helper_meter_join(struct meter *meter, const struct meter *jar, pid_t pid)
{
	uint64_t inode_bytes;
	bool is_full;

	meter->is_run = true;
	if (counts_writes(meter) && join_stores(meter, jar) < 0)
		return -ENOMEM;
	/* Without a pid namespace there is only the host's /proc. */
	if (jar->proc_fd < 0)
		return helper_meter_follow(meter, pid);
	meter->first_pid = pid;
	/* A directory's position is the open file's: looking at the same time as the jar needs one of its own. */
	meter->proc_fd = openat(jar->proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (meter->proc_fd < 0)
		return -errno;
	if (!jar->has_scratch || !(meter->plan->metered >> GUARANTEE_DISK & 1))
		return 0;
	meter->places = calloc(1, sizeof(*meter->places));
	if (!meter->places)
		return -ENOMEM;
	meter->places[0] = fcntl(jar->places[0], F_DUPFD_CLOEXEC, 3);
	if (meter->places[0] < 0)
		return -errno;
	meter->place_count = 1;
	meter->has_scratch = true;
	meter->stored_base = used_bytes(meter->places[0], &is_full, &inode_bytes);
	return 0;
}

/* --- looking ------------------------------------------------------------------------------------------------ */

/* The nearest living ancestor of @process, as last seen. NULL: only the first process, which waits for all. */
static struct meter_process *survivor_above(const struct meter *meter, const struct meter_process *process)
{
	for (int depth = 0; process && depth < METER_DEPTH_MAX; depth++) {
		struct meter_process *parent = helper_meter_find(meter, process->parent);

		if (parent && parent->pid == meter->first_pid)
			return NULL;
		if (parent && !parent->is_gone)
			return parent;
		process = parent;
	}
	return NULL;
}

static uint64_t lost(const struct meter_tally *tally)
{
	uint64_t grown = tally->now - MIN_OF(tally->now, tally->older);

	return tally->expected - MIN_OF(tally->expected, grown);
}

/*
 * The use of an ended process must appear in its parent; if it does not, no parent waited. One look is not
 * enough to know: the child may have ended after the look at its parent.
 */
static void add_lost(struct meter *meter)
{
	for (size_t i = 0; i < meter->process_count; i++) {
		const struct meter_process *gone = &meter->processes[i];
		struct meter_process *heir;

		if (!gone->is_gone || gone->is_new)
			continue;
		/* Only a parent that lives can have waited for it; and every process has page faults. */
		heir = helper_meter_find(meter, gone->parent);
		if (heir && !heir->is_gone && heir->pid != meter->first_pid)
			heir->waited_faults.pending += gone->own_faults + gone->waited_faults.before;
		heir = survivor_above(meter, gone);
		if (!heir)
			continue;
		heir->cpu_ns.pending += gone->cpu_ns.before;
		heir->written_bytes.pending += gone->written_bytes.before;
	}
	for (size_t i = 0; i < meter->process_count; i++) {
		const struct meter_process *process = &meter->processes[i];

		if (process->is_gone)
			continue;
		meter->lost_cpu_ns += lost(&process->cpu_ns);
		meter->lost_written_bytes += lost(&process->written_bytes);
		meter->losses += lost(&process->waited_faults) > 0;
	}
}

void helper_meter_look_at_places(const struct meter *meter, struct meter_reading *reading)
{
	for (size_t i = 0; i < meter->place_count; i++) {
		bool is_full = false;
		uint64_t inode_bytes = 0;
		uint64_t used = used_bytes(meter->places[i], &is_full, &inode_bytes);

		if (!meter->is_run)
			reading->private_bytes += used + inode_bytes;
		if (i == 0 && meter->has_scratch) {
			reading->stored_bytes = used - MIN_OF(used, meter->stored_base);
			reading->is_scratch_full = is_full;
		}
	}
}

static void add_process(const struct meter *meter, const struct meter_process *process, struct meter_reading *reading)
{
	reading->cpu_ns += process->cpu_ns.now;
	reading->written_bytes += process->written_bytes.now;
	if (process->pid == meter->first_pid)
		return;
	if (process->is_ours)
		return;
	reading->processes += process->threads;
	reading->resident_bytes += process->resident_bytes;
}

bool helper_meter_can_see(const struct meter *meter)
{
	char name[32], content[16];

	snprintf(name, sizeof(name), "%d/stat", (int)meter->first_pid);
	return meter->proc_fd >= 0 && sys_read_file(meter->proc_fd, name, content, sizeof(content)) > 0;
}

enum meter_progress helper_meter_look(struct meter *meter, struct meter_reading *reading)
{
	enum meter_progress progress = meter->proc_fd < 0 ? METER_BLIND : helper_meter_update(meter);
	uint64_t clock_ns;

	if (progress != METER_WHOLE)
		return progress;
	*reading = (struct meter_reading){0};
	add_lost(meter);
	helper_meter_forget(meter);
	helper_meter_mark_ours(meter);
	for (size_t i = 0; i < meter->process_count; i++)
		add_process(meter, &meter->processes[i], reading);
	reading->cpu_ns += meter->lost_cpu_ns;
	reading->written_bytes += meter->lost_written_bytes + meter->first_written_bytes;
	reading->has_lost_writes = meter->losses >= LOSSES_LEAST;
	if (reading->has_lost_writes)
		reading->grown_bytes = helper_meter_grown_bytes(meter);
	if (meter->clock_fd >= 0 && read(meter->clock_fd, &clock_ns, sizeof(clock_ns)) == sizeof(clock_ns))
		reading->cpu_ns = clock_ns;
	helper_meter_look_at_places(meter, reading);
	if (meter->plan->metered >> GUARANTEE_MEMORY & 1)
		reading->private_bytes += helper_meter_list_bytes(meter);
	meter->hidden_rounds = meter->has_hidden ? meter->hidden_rounds + 1 : 0;
	meter->has_hidden = false;
	return METER_WHOLE;
}
