/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host/host_notes.c - what a survey looked at
 */
#include "host/host_notes.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host/host_paths.h"

/* File systems round times, the coarsest to two seconds. */
#define SETTLING_NS 2000000000LL

/* Where notes are found by their path; what is more than half of this finds no place, and is noted twice. */
#define SLOT_COUNT 1024

static struct host_notes *taken;
static uint16_t slots[SLOT_COUNT]; /* numbers of notes, from 1 */

static int64_t nanoseconds(const struct timespec *time)
{
	return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

void host_notes_take(struct host_notes *notes)
{
	struct timespec now;

	taken = notes;
	if (!notes)
		return;
	memset(slots, 0, sizeof(slots));
	clock_gettime(CLOCK_REALTIME, &now);
	*notes = (struct host_notes){.settled_ns = nanoseconds(&now) - SETTLING_NS};
}

void host_notes_done(struct host_notes *notes)
{
	for (size_t i = 0; i < notes->list.count; i++)
		free(notes->list.items[i].path);
	free(notes->list.items);
	*notes = (struct host_notes){.is_broken = true};
}

void host_notes_break_off(void)
{
	if (taken)
		taken->is_broken = true;
}

/* --- taking ------------------------------------------------------------------------------------------------- */

static bool is_taking(void)
{
	return taken && !taken->is_broken;
}

/* The slot of the note about @path, or a free one; NULL: none is left. */
static uint16_t *slot_of(const char *path, bool is_followed)
{
	uint32_t hash = is_followed;

	for (const char *at = path; *at; at++)
		hash = (hash ^ (unsigned char)*at) * 16777619U;
	for (size_t i = 0; i < SLOT_COUNT / 2; i++) {
		uint16_t *slot = &slots[(hash + i) % SLOT_COUNT];
		const struct host_note *note = *slot ? &taken->list.items[*slot - 1] : NULL;

		if (!note || (note->is_followed == is_followed && !strcmp(note->path, path)))
			return slot;
	}
	return NULL;
}

static bool is_noted(const char *path)
{
	const uint16_t *slot = slot_of(path, false);

	return slot && *slot;
}

/* Takes over the path of @note. */
static void add(struct host_note note)
{
	uint16_t *slot = note.path ? slot_of(note.path, note.is_followed) : NULL;
	bool is_known = slot && *slot;
	struct host_note *item = is_known ? &taken->list.items[*slot - 1] : note.path ? list_add(&taken->list) : NULL;

	if (!item || note.changed_ns > taken->settled_ns)
		taken->is_broken = true;
	if (item && is_known)
		item->changed_ns = note.changed_ns ? note.changed_ns : item->changed_ns;
	else if (item)
		*item = note;
	if (is_known || !item)
		free(note.path);
	else if (slot && taken->list.count <= SLOT_COUNT / 2)
		*slot = (uint16_t)taken->list.count;
}

static struct host_note describe(const char *path, const struct stat *status, int error)
{
	struct host_note note = {.path = strdup(path), .error = status ? 0 : error};

	if (!status)
		return note;
	note.type = status->st_mode & S_IFMT;
	note.device = status->st_dev;
	note.inode = status->st_ino;
	if (S_ISREG(status->st_mode) || S_ISLNK(status->st_mode))
		note.changed_ns = nanoseconds(&status->st_ctim);
	return note;
}

void host_note(const char *path, const struct stat *status)
{
	int error = errno;

	if (is_taking())
		add(describe(path, status, error));
}

/* @is_listed: of a directory its names count too. What is in a file counts in any case. */
static void note_followed(const char *path, bool is_listed)
{
	struct stat status;
	struct host_note note;

	if (!is_taking())
		return;
	note = stat(path, &status) == 0 ? describe(path, &status, 0) : describe(path, NULL, errno);
	note.is_followed = true;
	if (!note.error && is_listed)
		note.changed_ns = nanoseconds(&status.st_ctim);
	add(note);
}

void host_note_followed(const char *path)
{
	note_followed(path, false);
}

void host_note_content(const char *path)
{
	note_followed(path, true);
}

static void look_and_note(const char *path)
{
	struct stat status;

	host_note(path, lstat(path, &status) == 0 ? &status : NULL);
}

void host_note_way(const char *path)
{
	char part[PATH_MAX];
	char *slash;

	if (!is_taking())
		return;
	if (strlen(path) >= sizeof(part)) {
		taken->is_broken = true;
		return;
	}
	memcpy(part, path, strlen(path) + 1);
	do {
		if (!is_noted(part))
			look_and_note(part);
		slash = strrchr(part, '/');
		if (slash)
			*slash = '\0';
	} while (slash && slash != part);
}

void host_note_absent(const char *directory, const char *name)
{
	if (!is_taking())
		return;
	add((struct host_note){.path = path_join(directory, name), .error = ENOENT});
}

/* --- looking again ------------------------------------------------------------------------------------------ */

static bool holds(const struct host_note *note)
{
	struct stat status;
	int rc = note->is_followed ? stat(note->path, &status) : lstat(note->path, &status);

	if (rc < 0)
		return note->error == errno;
	return !note->error && (status.st_mode & S_IFMT) == note->type && status.st_dev == note->device &&
	       status.st_ino == note->inode && (!note->changed_ns || nanoseconds(&status.st_ctim) == note->changed_ns);
}

bool host_notes_hold(const struct host_notes *notes)
{
	if (notes->is_broken || !notes->list.count)
		return false;
	for (size_t i = 0; i < notes->list.count; i++)
		if (!holds(&notes->list.items[i]))
			return false;
	return true;
}
