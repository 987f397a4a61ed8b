/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/meter_memory.c - the memory of a jar, by looking at its processes
 *
 * The resident pages of all processes, what lies in the private places, and memory that no process need have mapped
 * (System V segments, memory files) are added up, which counts shared pages more than once and is cheap. Only when that
 * sum is above the limit are the processes weighed: the kernel then divides every page by the number of those who share
 * it, and what was counted by its place is not counted again by its mapping.
 */
#include "run/meter_process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "sys/calls.h"

#define LINE_BYTES 4096
#define LIST_BYTES 16384
#define ROLLUP_BYTES 2048
/* So many descriptors are looked at in one look, 2 µs each; the next look goes on with the next process. */
#define DESCRIPTORS_PER_LOOK 2048
#define MEMORY_FILES_MAX 4096
#define FILE_PREFIX "/memfd:"

/* --- memory that no process need have mapped ---------------------------------------------------------------- */

uint64_t meter_parse_shared(const char *list)
{
	enum { RESIDENT_COLUMN = 14 };
	uint64_t sum = 0;

	/* The first line names the columns. */
	for (const char *line = strchr(list, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
		const char *at = line + 1;

		for (int column = 0; column < RESIDENT_COLUMN && *at; column++) {
			at += strspn(at, " ");
			at += strcspn(at, " \n");
		}
		sum += strtoull(at, NULL, 10);
	}
	return sum;
}

static uint64_t shared_bytes(const struct meter *meter)
{
	char content[LIST_BYTES];
	ssize_t len = meter->shared_fd < 0 ? -1 : pread(meter->shared_fd, content, sizeof(content) - 1, 0);

	if (len <= 0)
		return 0;
	content[len] = '\0';
	return meter_parse_shared(content);
}

static void note_file(struct meter *meter, const struct stat *status)
{
	struct meter_file *file;

	for (size_t i = 0; i < meter->file_count; i++) {
		if (meter->files[i].inode != status->st_ino)
			continue;
		meter->files[i].bytes = (uint64_t)status->st_blocks * 512;
		meter->files[i].round = meter->round;
		return;
	}
	if (!meter->files)
		meter->files = calloc(MEMORY_FILES_MAX, sizeof(*meter->files));
	if (!meter->files || meter->file_count == MEMORY_FILES_MAX)
		return;
	file = &meter->files[meter->file_count++];
	*file = (struct meter_file){
		.inode = status->st_ino, .bytes = (uint64_t)status->st_blocks * 512, .round = meter->round};
}

struct directory_entry {
	uint64_t inode;
	int64_t offset;
	unsigned short len;
	unsigned char type;
	char name[];
};

/* The memory files among the descriptors of a process. Returns how many descriptors it has. */
static unsigned look_at_descriptors(struct meter *meter, pid_t pid)
{
	char entries[LIST_BYTES], name[32], target[sizeof(FILE_PREFIX)];
	AUTO_CLOSE int fd = -1;
	unsigned count = 0;
	long len;

	snprintf(name, sizeof(name), "%d/fd", (int)pid);
	fd = openat(meter->proc_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	while (fd >= 0 && (len = syscall(SYS_getdents64, fd, entries, sizeof(entries))) > 0) {
		for (long at = 0; at < len;) {
			const struct directory_entry *entry = (const struct directory_entry *)(entries + at);
			struct stat status;

			at += entry->len;
			count++;
			if (readlinkat(fd, entry->name, target, sizeof(FILE_PREFIX) - 1) != sizeof(FILE_PREFIX) - 1 ||
			    memcmp(target, FILE_PREFIX, sizeof(FILE_PREFIX) - 1) != 0)
				continue;
			if (fstatat(fd, entry->name, &status, 0) == 0)
				note_file(meter, &status);
		}
	}
	return count;
}

/* A file that was not seen in a whole round through all processes is gone. */
static void end_round(struct meter *meter)
{
	size_t kept = 0;

	for (size_t i = 0; i < meter->file_count; i++)
		if (meter->files[i].round == meter->round)
			meter->files[kept++] = meter->files[i];
	meter->file_count = kept;
	meter->round++;
	meter->next_pid = 0;
}

static void look_at_files(struct meter *meter)
{
	unsigned descriptors = 0;

	for (size_t i = 0; i < meter->process_count; i++) {
		pid_t pid = meter->processes[i].pid;

		if (pid < meter->next_pid || pid == meter->first_pid)
			continue;
		if (descriptors > DESCRIPTORS_PER_LOOK) {
			meter->next_pid = pid;
			return;
		}
		descriptors += look_at_descriptors(meter, pid);
	}
	end_round(meter);
}

uint64_t meter_hidden_bytes(struct meter *meter)
{
	uint64_t sum = shared_bytes(meter);

	look_at_files(meter);
	for (size_t i = 0; i < meter->file_count; i++)
		sum += meter->files[i].bytes;
	return sum;
}

/* --- weighing ----------------------------------------------------------------------------------------------- */

static bool is_known_file(const struct meter *meter, uint64_t inode)
{
	for (size_t i = 0; i < meter->file_count; i++)
		if (meter->files[i].inode == inode)
			return true;
	return false;
}

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
	for (size_t i = 0; i < meter->place_count; i++) {
		struct stat status;

		if (fstat(meter->places[i], &status) == 0 && status.st_dev == device)
			return true;
	}
	return strstr(line, " /SYSV") || (strstr(line, " " FILE_PREFIX) && is_known_file(meter, inode));
}

/* Of the shared memory that a process has mapped, what lies in the private places and is counted there. */
static uint64_t mapped_places(const struct meter *meter, pid_t pid)
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
		if (meter_parse_mapping(line, &device, &inode))
			is_counted = is_place(meter, line, device, inode);
		else if (is_counted && !strncmp(line, "Pss:", 4))
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
			anonymous += meter_parse_kilobytes(content, "\nPss_Anon:");
			shared += meter_parse_kilobytes(content, "\nPss_Shmem:");
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
