/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/meter.c - measure a jar from outside, where no cgroup does
 *
 * Memory: the resident pages of all processes and what lies in the private places are added up, which counts shared pages
 * more than once and is cheap. Only when that sum is above the limit are the processes weighed: the kernel then divides
 * every page by the number of those who share it.
 *
 * What ends between two looks: a process that was waited for is in the account of the one who waited. One that nobody
 * waited for (SIGCHLD ignored) leaves no trace, so what it had at the last look is added here. For CPU time the kernel
 * has a clock that follows every process from its birth (perf's task clock); where that is allowed, nothing is lost.
 */
#include "run/meter.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include "run/meter_process.h"
#include "sys/calls.h"

#define MAGIC_PROC 0x9fa0
#define PATH_BYTES 4096
#define SMAPS_BYTES 16384
#define ROLLUP_BYTES 2048

void meter_init(struct meter *meter, const struct plan *plan)
{
	*meter = (struct meter){.plan = plan, .proc_fd = -1, .shared_fd = -1, .clock_fd = -1};
}

void meter_done(struct meter *meter)
{
	for (size_t i = 0; i < meter->process_count; i++)
		close_fd(&meter->processes[i].stat_fd);
	for (size_t i = 0; i < meter->place_count; i++)
		close_fd(&meter->places[i]);
	free(meter->processes);
	free(meter->places);
	close_fd(&meter->proc_fd);
	close_fd(&meter->shared_fd);
	close_fd(&meter->clock_fd);
	meter->processes = NULL;
	meter->places = NULL;
	meter->process_count = meter->place_count = 0;
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
	const struct plan_step_list *steps = &meter->plan->steps;

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

void meter_take(struct meter *meter, enum jar_view view, int fd)
{
	switch (view) {
	case JAR_VIEW_PROC:
		meter->proc_fd = fd;
		meter->is_whole_proc = true;
		meter->first_pid = 1;
		break;
	case JAR_VIEW_ROOT:
		open_places(meter, fd);
		close(fd);
		break;
	case JAR_VIEW_SHARED:
		meter->shared_fd = fd;
		break;
	case JAR_VIEW_CLOCK:
		meter->clock_fd = fd;
		break;
	case JAR_VIEW_COUNT:
		close(fd);
		break;
	}
}

int meter_follow(struct meter *meter, pid_t pid)
{
	meter->proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	meter->first_pid = pid;
	return meter->proc_fd < 0 ? -errno : 0;
}

/* --- looking ------------------------------------------------------------------------------------------------ */

/* Whoever lives of those above @process, as it was when last seen. NULL: only the first process, which waits for all. */
static struct meter_process *survivor_above(const struct meter *meter, const struct meter_process *process)
{
	for (int depth = 0; process && depth < 64; depth++) {
		struct meter_process *parent = meter_find(meter, process->parent);

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
 * What ended must show in those who waited for it; if it does not, nobody waited. One look is not enough to tell: the
 * parent may have been looked at before the child, and the end may have come in between.
 */
static void add_lost(struct meter *meter)
{
	for (size_t i = 0; i < meter->process_count; i++) {
		const struct meter_process *gone = &meter->processes[i];
		struct meter_process *heir;

		if (!gone->is_gone || gone->is_new)
			continue;
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
	}
}

/* The sum of one column of the list of System V shared memory: bytes that are really there. */
static uint64_t shared_bytes(const struct meter *meter)
{
	enum { RESIDENT_COLUMN = 14 };
	char content[SMAPS_BYTES];
	uint64_t sum = 0;
	ssize_t len;
	const char *line;

	if (meter->shared_fd < 0)
		return 0;
	len = pread(meter->shared_fd, content, sizeof(content) - 1, 0);
	if (len <= 0)
		return 0;
	content[len] = '\0';
	for (line = strchr(content, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
		const char *at = line + 1;

		for (int column = 0; column < RESIDENT_COLUMN && *at; column++) {
			at += strspn(at, " ");
			at += strcspn(at, " \n");
		}
		sum += strtoull(at, NULL, 10);
	}
	return sum;
}

static uint64_t used_bytes(int fd, bool *is_full)
{
	struct statfs status;

	if (fstatfs(fd, &status) < 0)
		return 0;
	*is_full = status.f_blocks && !status.f_bfree;
	return (uint64_t)(status.f_blocks - status.f_bfree) * (uint64_t)status.f_bsize;
}

static void look_at_places(const struct meter *meter, struct meter_reading *reading)
{
	for (size_t i = 0; i < meter->place_count; i++) {
		bool is_full = false;
		uint64_t used = used_bytes(meter->places[i], &is_full);

		reading->private_bytes += used;
		if (i == 0 && meter->has_scratch) {
			reading->stored_bytes = used;
			reading->is_scratch_full = is_full;
		}
	}
	reading->private_bytes += shared_bytes(meter);
}

static void add_process(const struct meter *meter, const struct meter_process *process, struct meter_reading *reading)
{
	reading->cpu_ns += process->cpu_ns.now;
	reading->written_bytes += process->written_bytes.now;
	if (process->pid == meter->first_pid)
		return;
	reading->processes += process->threads;
	reading->resident_bytes += process->resident_bytes;
}

bool meter_look(struct meter *meter, struct meter_reading *reading)
{
	uint64_t clock_ns;

	*reading = (struct meter_reading){0};
	if (meter->proc_fd < 0 || !meter_update(meter))
		return false;
	add_lost(meter);
	meter_forget(meter);
	for (size_t i = 0; i < meter->process_count; i++)
		add_process(meter, &meter->processes[i], reading);
	reading->cpu_ns += meter->lost_cpu_ns;
	reading->written_bytes += meter->lost_written_bytes + meter->first_written_bytes;
	if (meter->clock_fd >= 0 && read(meter->clock_fd, &clock_ns, sizeof(clock_ns)) == sizeof(clock_ns))
		reading->cpu_ns = clock_ns;
	look_at_places(meter, reading);
	return true;
}

/* --- weighing ----------------------------------------------------------------------------------------------- */

static uint64_t kilobytes_after(const char *content, const char *key)
{
	const char *at = strstr(content, key);

	return at ? strtoull(at + strlen(key), NULL, 10) * 1024 : 0;
}

/* A line that opens a mapping: ADDRESSES PERMISSIONS OFFSET MAJOR:MINOR INODE PATH. */
static bool is_mapping_of_place(const struct meter *meter, const char *line)
{
	unsigned device_major, device_minor;

	if (sscanf(line, "%*x-%*x %*s %*s %x:%x", &device_major, &device_minor) != 2)
		return false;
	for (size_t i = 0; i < meter->place_count; i++) {
		struct stat status;

		if (fstat(meter->places[i], &status) == 0 && status.st_dev == makedev(device_major, device_minor))
			return true;
	}
	return strstr(line, " /SYSV") != NULL;
}

static bool opens_mapping(const char *line)
{
	return (line[0] >= '0' && line[0] <= '9') || (line[0] >= 'a' && line[0] <= 'f');
}

/* Of the shared memory that a process has mapped, what lies in the private places and is counted there. */
static uint64_t mapped_places(const struct meter *meter, pid_t pid)
{
	char name[32], line[PATH_BYTES];
	bool is_place = false;
	uint64_t sum = 0;
	FILE *file;
	int fd;

	snprintf(name, sizeof(name), "%d/smaps", (int)pid);
	fd = openat(meter->proc_fd, name, O_RDONLY | O_CLOEXEC);
	file = fd < 0 ? NULL : fdopen(fd, "r");
	if (!file) {
		close_fd(&fd);
		return 0;
	}
	while (fgets(line, sizeof(line), file)) {
		if (opens_mapping(line))
			is_place = is_mapping_of_place(meter, line);
		else if (is_place && !strncmp(line, "Pss:", 4))
			sum += strtoull(line + 4, NULL, 10) * 1024;
	}
	fclose(file);
	return sum;
}

uint64_t meter_weigh(struct meter *meter, const struct meter_reading *reading, uint64_t limit_bytes)
{
	uint64_t anonymous = 0, shared = 0, counted_twice = 0;
	char content[ROLLUP_BYTES], name[32];

	for (size_t i = 0; i < meter->process_count; i++) {
		const struct meter_process *process = &meter->processes[i];
		ssize_t len;

		if (process->pid == meter->first_pid)
			continue;
		snprintf(name, sizeof(name), "%d/smaps_rollup", (int)process->pid);
		len = sys_read_file(meter->proc_fd, name, content, sizeof(content));
		if (len > 0) {
			anonymous += kilobytes_after(content, "\nPss_Anon:");
			shared += kilobytes_after(content, "\nPss_Shmem:");
		} else if (len == -EACCES || len == -EPERM) {
			anonymous += process->resident_bytes; /* it hides: then all of it counts */
		}
	}
	/* A file of the private places that is mapped is in both sums. To find out costs more, and rarely matters. */
	if (anonymous + shared + reading->private_bytes > limit_bytes && shared && reading->private_bytes)
		for (size_t i = 0; i < meter->process_count; i++)
			if (meter->processes[i].pid != meter->first_pid)
				counted_twice += mapped_places(meter, meter->processes[i].pid);
	return anonymous + shared - MIN_OF(shared, counted_twice) + reading->private_bytes;
}
