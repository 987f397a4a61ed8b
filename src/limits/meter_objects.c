/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits/meter_objects.c - memory that belongs to no one process: memory files (memfd) and shared anonymous memory
 *
 * Such memory stays when it is unmapped or closed, as long as one descriptor or one mapping of it is left anywhere, and
 * then shows in no process's count of resident pages. So the meter walks through the descriptors and mappings of all
 * processes, a bounded number in each look, and keeps what it found until a whole round has passed without it.
 *
 * A descriptor tells how much an object holds. Of one that is only mapped no one may ask: it counts with the greatest
 * part of it that was ever seen mapped, or that a descriptor told before; all of these together with no more than the
 * whole host has of such memory. An object that is neither open nor mapped may be on its way through a socket: while a
 * socket of the jar has descriptors waiting in it, what was known goes on counting. Where they wait for long, nobody can
 * tell what they are: then all that the host's shared memory has grown by since the run began, and that nothing else
 * explains, is taken for theirs.
 */
#include "limits/meter_process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/directory.h"
#include "sys/calls.h"

/* What one look may cost, in units of 0.5 µs, and what its parts do. The next look goes on where this one ends. */
#define COST_PER_LOOK 8192
#define COST_OF_OPENING 8
#define COST_OF_DESCRIPTOR 4
#define COST_OF_SOCKET 10
#define COST_OF_MAPPING 1
/* A longer list of mappings than the kernel hands out at once, whatever the names in it. */
#define LIST_BYTES 65536
#define DESCRIPTORS_BYTES 8192
#define SLOTS_LEAST 64
#define SLOTS_MAX 65536
#define MEMINFO_BYTES 4096
/* Descriptors are taken out of a socket soon, as a rule. */
#define FLIGHT_ROUNDS 5
#define FDINFO_BYTES 1024

#define FILE_PREFIX "/memfd:"
#define ANONYMOUS_PREFIX "/dev/zero (deleted)"
#define SOCKET_PREFIX "socket:["

/* --- what was found ----------------------------------------------------------------------------------------- */

/* Where @inode is or belongs; there is always a free slot. */
static struct meter_object *slot_of(struct meter_object *slots, size_t count, uint64_t inode)
{
	size_t at = (size_t)(inode * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (count - 1);

	while (slots[at].inode && slots[at].inode != inode)
		at = (at + 1) & (count - 1);
	return &slots[at];
}

/* The same objects, but for those that @round should have seen and did not, in @count slots. */
static bool rebuild(struct meter_walk *walk, size_t count, bool has_ended_round)
{
	struct meter_object *slots = calloc(count, sizeof(*slots));

	if (!slots)
		return false;
	for (size_t i = 0; i < walk->slot_count; i++) {
		struct meter_object *object = &walk->slots[i];

		if (!object->inode)
			continue;
		if (has_ended_round && object->round != walk->round) {
			if (!walk->in_flight) {
				walk->object_count--;
				continue;
			}
			object->is_exact = false;
			object->round = walk->round;
		}
		*slot_of(slots, count, object->inode) = *object;
	}
	free(walk->slots);
	walk->slots = slots;
	walk->slot_count = count;
	return true;
}

/* NULL: there are too many. */
static struct meter_object *find_or_add(struct meter_walk *walk, uint64_t inode)
{
	struct meter_object *object;

	if (!inode || (walk->object_count * 2 >= walk->slot_count &&
		       (walk->slot_count == SLOTS_MAX ||
			!rebuild(walk, walk->slot_count ? walk->slot_count * 2 : SLOTS_LEAST, false))))
		return NULL;
	object = slot_of(walk->slots, walk->slot_count, inode);
	if (!object->inode) {
		*object = (struct meter_object){.inode = inode};
		walk->object_count++;
	}
	return object;
}

bool meter_knows_object(const struct meter *meter, uint64_t inode)
{
	return meter->walk.slot_count && inode && slot_of(meter->walk.slots, meter->walk.slot_count, inode)->inode;
}

static void note_descriptor(struct meter_walk *walk, uint64_t inode, uint64_t bytes)
{
	struct meter_object *object = find_or_add(walk, inode);

	/* More objects than slots: then one with two descriptors counts twice. */
	if (!object) {
		walk->uncounted_bytes += bytes;
		return;
	}
	object->bytes = bytes;
	object->round = walk->round;
	object->is_exact = true;
}

static void note_mapping(struct meter_walk *walk, uint64_t inode, uint64_t extent)
{
	struct meter_object *object = find_or_add(walk, inode);

	if (!object) {
		walk->uncounted_bytes += extent;
		return;
	}
	if (object->is_exact && object->round == walk->round)
		return;
	object->bytes = MAX_OF(object->bytes, extent);
	object->round = walk->round;
	object->is_exact = false;
}

/* --- walking ------------------------------------------------------------------------------------------------ */

static unsigned count_in_flight(const struct meter *meter, const char *descriptor)
{
	char content[FDINFO_BYTES], name[64];
	const char *line;

	snprintf(name, sizeof(name), "%d/fdinfo/%s", (int)meter->walk.shown, descriptor);
	if (sys_read_file(meter->proc_fd, name, content, sizeof(content)) <= 0)
		return 0;
	line = strstr(content, "\nscm_fds:");
	return line ? (unsigned)strtoul(line + strlen("\nscm_fds:"), NULL, 10) : 0;
}

/* Returns what it cost. */
static unsigned look_at_descriptor(struct meter *meter, const char *name)
{
	char target[sizeof(SOCKET_PREFIX)];
	ssize_t len = readlinkat(meter->walk.fd, name, target, sizeof(target) - 1);
	struct stat status;

	target[MAX_OF(len, 0)] = '\0';
	if (!strncmp(target, FILE_PREFIX, strlen(FILE_PREFIX))) {
		if (fstatat(meter->walk.fd, name, &status, 0) == 0)
			note_descriptor(&meter->walk, status.st_ino, (uint64_t)status.st_blocks * 512);
	} else if (!strcmp(target, SOCKET_PREFIX)) {
		meter->walk.in_flight += count_in_flight(meter, name);
		return COST_OF_SOCKET;
	}
	return COST_OF_DESCRIPTOR;
}

/* Returns the cost; 0: there are no more. */
static unsigned walk_descriptors(struct meter *meter)
{
	_Alignas(struct directory_entry) char entries[DESCRIPTORS_BYTES];
	struct directory list = {.fd = meter->walk.fd, .buffer = entries, .size = sizeof(entries)};
	const struct directory_entry *entry;
	unsigned cost = directory_read(&list) > 0;

	while ((entry = directory_next_read(&list)))
		cost += look_at_descriptor(meter, entry->name);
	return cost;
}

/* ADDRESSES PERMISSIONS OFFSET MAJOR:MINOR INODE PATH */
bool meter_parse_object(const char *line, uint64_t *inode, uint64_t *extent)
{
	uint64_t start, end, offset;
	int path = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %" SCNu64 " %n", &start, &end, &offset, inode,
		   &path) != 4 ||
	    !path || end < start)
		return false;
	if (strncmp(line + path, FILE_PREFIX, strlen(FILE_PREFIX)) != 0 &&
	    strncmp(line + path, ANONYMOUS_PREFIX, strlen(ANONYMOUS_PREFIX)) != 0)
		return false;
	*extent = offset + (end - start);
	return true;
}

static unsigned walk_mappings(struct meter *meter)
{
	char *list = meter->walk.buffer;
	ssize_t len = read(meter->walk.fd, list, LIST_BYTES - 1);
	unsigned cost = 0;
	uint64_t inode, extent;

	if (len <= 0)
		return 0;
	list[len] = '\0';
	for (char *line = list, *end; line; line = end) {
		end = strchr(line, '\n');
		if (end)
			*end++ = '\0';
		cost += COST_OF_MAPPING;
		if (meter_parse_object(line, &inode, &extent))
			note_mapping(&meter->walk, inode, extent);
	}
	return cost;
}

/* The process after that number that is not the jar's own first one. */
static bool next_process(struct meter *meter)
{
	for (size_t i = 0; i < meter->process_count; i++) {
		const struct meter_process *process = &meter->processes[i];

		if (process->pid <= meter->walk.pid || process->pid == meter->first_pid)
			continue;
		meter->walk.pid = process->pid;
		meter->walk.shown = process->shown;
		return true;
	}
	return false;
}

/* What comes after the last one: mappings after descriptors, the next process after mappings. False: the round is over. */
static bool open_next(struct meter *meter)
{
	struct meter_walk *walk = &meter->walk;
	char name[32];

	walk->is_in_mappings = walk->pid && !walk->is_in_mappings;
	if (!walk->is_in_mappings && !next_process(meter))
		return false;
	snprintf(name, sizeof(name), walk->is_in_mappings ? "%d/maps" : "%d/fd", (int)walk->shown);
	walk->fd = meter_open(meter, name, walk->is_in_mappings ? 0 : O_DIRECTORY);
	if (walk->fd < 0 && (errno == EACCES || errno == EPERM))
		meter_note_hidden(meter, walk->pid);
	return true;
}

static void end_round(struct meter *meter)
{
	struct meter_walk *walk = &meter->walk;

	if (walk->object_count)
		rebuild(walk, walk->slot_count, true);
	walk->last_uncounted_bytes = walk->uncounted_bytes;
	walk->uncounted_bytes = 0;
	walk->flight_rounds = walk->in_flight ? walk->flight_rounds + 1 : 0;
	walk->in_flight = 0;
	walk->round++;
	walk->pid = 0;
	walk->is_in_mappings = false;
	meter_end_round(meter);
}

static void walk_on(struct meter *meter)
{
	struct meter_walk *walk = &meter->walk;
	unsigned cost = 0;

	while (cost < COST_PER_LOOK) {
		unsigned part = 0;

		if (walk->fd >= 0)
			part = walk->is_in_mappings ? walk_mappings(meter) : walk_descriptors(meter);
		cost += part ? part : COST_OF_OPENING;
		if (part)
			continue;
		close_fd(&walk->fd);
		if (!open_next(meter)) {
			end_round(meter);
			return;
		}
	}
}

/* --- adding up ---------------------------------------------------------------------------------------------- */

/* All shared memory that the host has, and all that was written to its swap. */
static uint64_t host_shared_bytes(void)
{
	char content[MEMINFO_BYTES];
	uint64_t total, free_bytes;

	if (sys_read_file(AT_FDCWD, "/proc/meminfo", content, sizeof(content)) <= 0)
		return UINT64_MAX;
	total = meter_parse_kilobytes(content, "\nSwapTotal:");
	free_bytes = meter_parse_kilobytes(content, "\nSwapFree:");
	return meter_parse_kilobytes(content, "\nShmem:") + total - MIN_OF(total, free_bytes);
}

/* What may be in descriptors that wait in sockets, if the jar has @known bytes elsewhere. */
static uint64_t flight_bytes(const struct meter_walk *walk, uint64_t known)
{
	uint64_t now = walk->flight_rounds < FLIGHT_ROUNDS ? 0 : host_shared_bytes();

	return now - MIN_OF(now, walk->first_shared_bytes + known);
}

uint64_t meter_object_bytes(struct meter *meter, uint64_t known)
{
	struct meter_walk *walk = &meter->walk;
	uint64_t exact = 0, guessed;

	if (!walk->buffer) {
		walk->buffer = malloc(LIST_BYTES);
		walk->first_shared_bytes = host_shared_bytes();
	}
	if (walk->buffer)
		walk_on(meter);
	guessed = MAX_OF(walk->uncounted_bytes, walk->last_uncounted_bytes);
	for (size_t i = 0; i < walk->slot_count; i++) {
		const struct meter_object *object = &walk->slots[i];

		if (object->inode && object->is_exact)
			exact += object->bytes;
		else if (object->inode)
			guessed += object->bytes;
	}
	guessed = guessed ? MIN_OF(guessed, host_shared_bytes()) : 0;
	/* What a session's other runs have done is not known here; the jar's own meter sees to it. */
	if (!meter->is_run)
		guessed += flight_bytes(walk, known + exact + guessed);
	return exact + guessed;
}

void meter_end_walk(struct meter *meter)
{
	close_fd(&meter->walk.fd);
	free(meter->walk.slots);
	free(meter->walk.buffer);
	meter->walk = (struct meter_walk){.fd = -1};
}
