/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper/meter_memory.c - the memory of a jar, by looking at its processes
 *
 * The resident pages of all processes, the private places and what System V keeps are added up. This counts shared pages more
 * than once and is cheap. Only when the sum is above the limit are the processes weighed: the kernel then divides every page
 * by the number of processes that map it. `missing` names the memory that shows in no process (plan/plan_limits.c).
 */
#include "helper/meter_process.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/sys/calls.h"

#define LIST_BYTES 16384
#define ROLLUP_BYTES 2048
#define SECOND_NS UINT64_C(1000000000)

/* --- System V ----------------------------------------------------------------------------------------------- */

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

uint64_t helper_meter_parse_list(unsigned which, const char *lines)
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
static uint64_t bytes_of_list(const struct meter *meter, unsigned which)
{
	char content[LIST_BYTES];
	uint64_t sum = 0;
	off_t offset = 0;
	ssize_t len;

	while (meter->list_fds[which] >= 0 && sum <= meter->plan->limits.memory_bytes &&
	       (len = pread(meter->list_fds[which], content, sizeof(content) - 1, offset)) > 0) {
		content[len] = '\0';
		sum += helper_meter_parse_list(which, content);
		offset += len;
	}
	return sum;
}

uint64_t helper_meter_list_bytes(const struct meter *meter)
{
	uint64_t sum = 0;

	for (unsigned which = 0; which < METER_LIST_COUNT; which++)
		sum += bytes_of_list(meter, which);
	return sum;
}

/* --- weighing ----------------------------------------------------------------------------------------------- */

uint64_t helper_meter_parse_kilobytes(const char *content, const char *key)
{
	const char *at = strstr(content, key);

	return at ? strtoull(at + strlen(key), NULL, 10) * 1024 : 0;
}

uint64_t helper_meter_spent_ns(void)
{
	struct timespec spent;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
	return (uint64_t)spent.tv_sec * SECOND_NS + (uint64_t)spent.tv_nsec;
}

uint64_t helper_meter_weigh(const struct meter *meter, const struct meter_reading *reading)
{
	uint64_t own = 0, shared = 0;

	for (size_t i = 0; i < meter->process_count; i++) {
		const struct meter_process *process = &meter->processes[i];
		char content[ROLLUP_BYTES], name[32];
		ssize_t len;

		if (process->is_ours)
			continue;
		snprintf(name, sizeof(name), "%d/smaps_rollup", (int)process->shown);
		len = sys_read_file(meter->proc_fd, name, content, sizeof(content));
		if (len > 0) {
			own += helper_meter_parse_kilobytes(content, "\nPss_Anon:");
			shared += helper_meter_parse_kilobytes(content, "\nPss_Shmem:");
		} else if (len == -EACCES || len == -EPERM) {
			own += process->resident_bytes; /* it forbids looking at it: count all of it */
		}
	}
	/* Files of the private places that a process maps are in both. */
	return own + MAX_OF(shared, reading->private_bytes);
}
