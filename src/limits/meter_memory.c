/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits/meter_memory.c - the memory of a jar, by looking at its processes
 *
 * The resident pages of all processes, what lies in the private places, and memory that no process need have mapped
 * (System V's, memory files, shared anonymous memory) are added up, with page tables and kernel stacks, which counts
 * shared pages more than once and is cheap. Only when that sum is above the limit are the processes weighed: the kernel
 * then divides every page by the number of those who share it, and what was counted by its place is not counted again by
 * its mapping. Copies of the engine that a jar needs (meter_mark_ours()) are in neither sum.
 */
#include "limits/meter_process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "sys/calls.h"

#define LINE_BYTES 4096
#define LIST_BYTES 16384
#define ROLLUP_BYTES 2048
#define STATUS_BYTES 4096
#define SECOND_NS UINT64_C(1000000000)
/* No weighing takes more of a processor. A tree that is too large for that, so many times in a row, counts as it stands. */
#define WEIGHING_MAX_NS (SECOND_NS / 8)
#define UNWEIGHED_MAX 8
/* One in so many bytes of the address space is a page table's, at most: below this that is not worth a look. */
#define TABLE_RATIO 512
#define TABLES_UNSEEN_MAX (UINT64_C(256) << 20)
/* What every thread has. */
#define KERNEL_STACK_BYTES 16384

/* --- memory that no process need have mapped ---------------------------------------------------------------- */

/* A line of a list takes `each` bytes, and the numbers in two columns, times something. */
static const struct {
	uint64_t each;
	struct {
		int column;
		uint64_t weight;
	} parts[2];
} lists[] = {
	{1024, {{14, 1}, {15, 1}}}, /* shm: resident, and in swap */
	{256, {{3, 1}, {4, 64}}},   /* msg: bytes, and messages */
	{512, {{3, 128}, {3, 0}}},  /* sem: semaphores */
};
_Static_assert(ARRAY_LEN(lists) == METER_LIST_COUNT, "every list has its columns");

static uint64_t number_in_column(const char *line, int column)
{
	for (int i = 0; i < column && *line; i++) {
		line += strspn(line, " ");
		line += strcspn(line, " \n");
	}
	return strtoull(line, NULL, 10);
}

uint64_t meter_parse_list(unsigned which, const char *lines)
{
	uint64_t sum = 0;

	for (const char *line = lines; line && *line;) {
		const char *end = strchr(line, '\n');

		/* One line names the columns. */
		if (strspn(line, " 0123456789-") == strcspn(line, "\n")) {
			sum += lists[which].each;
			for (size_t i = 0; i < ARRAY_LEN(lists[which].parts); i++)
				sum += number_in_column(line, lists[which].parts[i].column) *
				       lists[which].parts[i].weight;
		}
		line = end ? end + 1 : NULL;
	}
	return sum;
}

/* The whole list, however long; the kernel hands it out in pieces of whole lines. */
static uint64_t list_bytes(const struct meter *meter, unsigned which)
{
	char content[LIST_BYTES];
	uint64_t sum = 0;
	off_t offset = 0;
	ssize_t len;

	while (meter->list_fds[which] >= 0 && sum <= meter->plan->limits.memory_bytes &&
	       (len = pread(meter->list_fds[which], content, sizeof(content) - 1, offset)) > 0) {
		content[len] = '\0';
		sum += meter_parse_list(which, content);
		offset += len;
	}
	return sum;
}

uint64_t meter_hidden_bytes(struct meter *meter, uint64_t places)
{
	uint64_t sum = 0;

	for (unsigned which = 0; which < METER_LIST_COUNT; which++)
		sum += list_bytes(meter, which);
	return sum + meter_object_bytes(meter, places + sum);
}

uint64_t meter_kernel_bytes(const struct meter *meter, const struct meter_process *process, bool is_exact)
{
	uint64_t stacks = (uint64_t)process->threads * KERNEL_STACK_BYTES;
	char content[STATUS_BYTES], name[32];

	if (!is_exact && !meter->has_swap && process->virtual_bytes < TABLES_UNSEEN_MAX)
		return stacks + process->virtual_bytes / TABLE_RATIO;
	snprintf(name, sizeof(name), "%d/status", (int)process->shown);
	if (sys_read_file(meter->proc_fd, name, content, sizeof(content)) <= 0)
		return stacks;
	return stacks + meter_parse_kilobytes(content, "\nVmPTE:") + meter_parse_kilobytes(content, "\nVmSwap:");
}

/* --- weighing ----------------------------------------------------------------------------------------------- */

uint64_t meter_parse_kilobytes(const char *content, const char *key)
{
	const char *at = strstr(content, key);

	return at ? strtoull(at + strlen(key), NULL, 10) * 1024 : 0;
}

/* ADDRESSES PERMISSIONS OFFSET MAJOR:MINOR INODE PATH; the other lines begin with a capital letter. */
bool meter_parse_mapping(const char *line, dev_t *device, uint64_t *inode)
{
	unsigned device_major, device_minor;
	unsigned long long number;

	if (sscanf(line, "%*x-%*x %*s %*s %x:%x %llu", &device_major, &device_minor, &number) != 3)
		return false;
	*device = makedev(device_major, device_minor);
	*inode = number;
	return true;
}

static bool is_place(const struct meter *meter, const char *line, dev_t device, uint64_t inode)
{
	uint64_t extent;

	for (size_t i = 0; i < meter->place_count; i++) {
		struct stat status;

		if (fstat(meter->places[i], &status) == 0 && status.st_dev == device)
			return true;
	}
	return strstr(line, " /SYSV") ||
	       (meter_parse_object(line, &inode, &extent) && meter_knows_object(meter, inode));
}

uint64_t meter_spent_ns(void)
{
	struct timespec spent;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
	return (uint64_t)spent.tv_sec * SECOND_NS + (uint64_t)spent.tv_nsec;
}

/* Of the shared memory that a process has mapped, what lies in the private places and is counted there. */
static uint64_t mapped_places(const struct meter *meter, pid_t pid, uint64_t late_ns)
{
	char name[32], line[LINE_BYTES];
	bool is_counted = false;
	uint64_t sum = 0, inode;
	dev_t device;
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
		if (meter_parse_mapping(line, &device, &inode)) {
			if (meter_spent_ns() > late_ns)
				break;
			is_counted = is_place(meter, line, device, inode);
		} else if (is_counted && !strncmp(line, "Pss:", 4)) {
			sum += strtoull(line + 4, NULL, 10) * 1024;
		}
	}
	fclose(file);
	return sum;
}

/* What all processes have: anonymous pages, and what the kernel keeps; and what they share. */
struct sums {
	uint64_t own, shared;
};

static void weigh_process(const struct meter *meter, const struct meter_process *process, struct sums *sums)
{
	char content[ROLLUP_BYTES], name[32];
	ssize_t len;

	snprintf(name, sizeof(name), "%d/smaps_rollup", (int)process->shown);
	len = sys_read_file(meter->proc_fd, name, content, sizeof(content));
	if (len > 0) {
		sums->own += meter_parse_kilobytes(content, "\nPss_Anon:");
		sums->shared += meter_parse_kilobytes(content, "\nPss_Shmem:");
	} else if (len == -EACCES || len == -EPERM) {
		sums->own += process->resident_bytes; /* it hides: then all of it counts */
	}
	if (len > 0 || len == -EACCES || len == -EPERM)
		sums->own += meter_kernel_bytes(meter, process, true);
}

/* False: it would take too long. */
static bool weigh_all(const struct meter *meter, uint64_t late_ns, struct sums *sums)
{
	for (size_t i = 0; i < meter->process_count; i++) {
		if (!meter->processes[i].is_ours)
			weigh_process(meter, &meter->processes[i], sums);
		if (meter_spent_ns() > late_ns)
			return false;
	}
	return true;
}

/* A file of the private places that is mapped is in both sums. To find out costs more, and rarely matters. */
static bool find_counted_twice(const struct meter *meter, uint64_t late_ns, uint64_t *bytes)
{
	for (size_t i = 0; i < meter->process_count; i++) {
		if (!meter->processes[i].is_ours)
			*bytes += mapped_places(meter, meter->processes[i].shown, late_ns);
		if (meter_spent_ns() > late_ns)
			return false;
	}
	return true;
}

uint64_t meter_weigh(struct meter *meter, const struct meter_reading *reading, uint64_t limit_bytes)
{
	uint64_t late_ns = meter_spent_ns() + WEIGHING_MAX_NS, counted_twice = 0;
	struct sums sums = {0};
	bool is_whole = weigh_all(meter, late_ns, &sums);

	if (is_whole && sums.own + sums.shared + reading->private_bytes > limit_bytes && sums.shared &&
	    reading->private_bytes)
		is_whole = find_counted_twice(meter, late_ns, &counted_twice);
	meter->unweighed = is_whole ? 0 : meter->unweighed + 1;
	if (meter->unweighed >= UNWEIGHED_MAX)
		return reading->resident_bytes + reading->private_bytes;
	/* At least that, whatever the rest would have shown. */
	if (!is_whole)
		return sums.own + reading->private_bytes;
	return sums.own + sums.shared - MIN_OF(sums.shared, counted_twice) + reading->private_bytes;
}
