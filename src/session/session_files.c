/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/session_files.c - open files in a session, for a caller outside
 *
 * The jar's first process opens them and answers in the order of the questions; so the oldest question is always the one
 * that is answered next.
 */
#include "session/session_jar.h"

#include <errno.h>
#include <string.h>

#include "session/session_send.h"

/* So many questions are sent and not yet answered at a time. */
#define FILES_ASKED_MAX 16

struct session_file {
	struct session_file *next;
	session_file_function *function; /* NULL: nobody waits any more */
	void *owner;
	enum session_access access;
	mode_t mode;
	bool is_sent;
	char path[];
};

static void send_files(struct session *jar)
{
	unsigned sent = 0;

	for (struct session_file *file = jar->files; file && sent < FILES_ASKED_MAX; file = file->next) {
		sent++;
		if (file->is_sent)
			continue;
		if (session_send_open(jar->jar.control_fd, file->path, file->access, file->mode) < 0)
			return;
		file->is_sent = true;
	}
}

static void answer_oldest(struct session *jar, int fd, int errno_value)
{
	struct session_file *file = jar->files;

	if (!file) {
		close_fd(&fd);
		return;
	}
	jar->files = file->next;
	if (file->function)
		file->function(file->owner, fd, errno_value);
	else
		close_fd(&fd);
	free(file);
}

void session_file_opened(struct session *jar, int fd, int errno_value)
{
	answer_oldest(jar, fd, errno_value);
	send_files(jar);
}

void session_refuse_files(struct session *jar)
{
	while (jar->files)
		answer_oldest(jar, -1, ESHUTDOWN);
}

int session_open_file(struct session *jar, const char *path, enum session_access access, mode_t mode,
		      session_file_function *function, void *owner)
{
	size_t len = strlen(path) + 1;
	struct session_file **end = &jar->files, *file;

	if (jar->is_closing || jar->is_gone)
		return -ESHUTDOWN;
	if (jar->plan->kind != PLAN_SESSION)
		return -EINVAL;
	if (len >= SESSION_PATH_MAX)
		return -ENAMETOOLONG;
	file = calloc(1, sizeof(*file) + len);
	if (!file)
		return -ENOMEM;
	*file = (struct session_file){.function = function, .owner = owner, .access = access, .mode = mode};
	memcpy(file->path, path, len);
	while (*end)
		end = &(*end)->next;
	*end = file;
	send_files(jar);
	return 0;
}

void session_forget_files(struct session *jar, const void *owner)
{
	for (struct session_file *file = jar->files; file; file = file->next)
		if (file->owner == owner)
			file->function = NULL;
}
