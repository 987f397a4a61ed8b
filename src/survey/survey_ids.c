/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_ids.c - host ids for root's jars that no other engine uses
 *
 * Root's jars run under host ids that no user has. The kernel counts processes, signals and keys against that id, so
 * two jars must not share one. Each engine reserves a block of ids: it locks the block's byte in a file that only
 * root can open. Pids would not do, since engines in different pid namespaces of one host can have the same. The
 * kernel drops such locks when the process ends. The first block to try is random, so that engines without a common
 * file system, or without a place for the file, rarely collide.
 */
#include "survey/survey_ids.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_PATH "/run/belljar.ids"
/* Above all ranges that distributions hand out to users, containers and services; it ends below 2^32 - 1. */
#define ID_BASE 1900000000U
#define BLOCK_COUNT (1U << 22)
#define TRIES_MAX 64

static int open_locks(const char *path)
{
	AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0)
		return -errno;
	/* A user who can open the file could hold every lock. */
	if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || status.st_mode & 077)
		return -EPERM;
	return take_fd(&fd);
}

static unsigned random_block(unsigned block_count)
{
	uint32_t number;

	/* It waits only in the first moments after the machine has started. */
	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
		number = (uint32_t)getpid();
	return number % block_count;
}

int survey_ids_reserve(const char *path, unsigned block_count, unsigned *block)
{
	AUTO_CLOSE int fd = open_locks(path);

	*block = random_block(block_count);
	for (int i = 0; fd >= 0 && i < TRIES_MAX; i++) {
		struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)*block, .l_len = 1};

		if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
			return take_fd(&fd);
		if (errno != EAGAIN && errno != EACCES)
			return -errno;
		*block = random_block(block_count);
	}
	return fd < 0 ? fd : -EAGAIN;
}

uid_t survey_jar_id(unsigned number)
{
	/* The reservation is this process's, like its number, and ends with it. A child needs another one. */
	static pid_t owner;
	static unsigned block;

	if (owner != getpid()) {
		survey_ids_reserve(LOCK_PATH, BLOCK_COUNT, &block);
		owner = getpid();
	}
	return ID_BASE + (uid_t)(block * HOST_IDS_IN_BLOCK + number % HOST_IDS_IN_BLOCK);
}
