/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/serve/serve_child.c - a child of the server, for what takes long
 *
 * It has nothing of the server's but a pipe and a file: no leash of a jar, no channel, no lock of a store.
 */
#include "door/serve/serve_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/sys/calls.h"

#define TOLD_MAX_BYTES ((size_t)1 << 20)
#define READ_BYTES 4096
/* Above both, so that neither is written over before it is copied. */
#define SAFE_FD 16

/* --- the child ---------------------------------------------------------------------------------------------- */

void serve_child_write(int fd, const void *bytes, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t count = write(fd, (const char *)bytes + done, len - done);

		if (count <= 0)
			_exit(1);
		done += (size_t)count;
	}
}

static void be_child(const struct serve_child_request *request, int pipe_fd) __attribute__((noreturn));
static void be_child(const struct serve_child_request *request, int pipe_fd)
{
	int file = request->file_fd >= 0 ? fcntl(request->file_fd, F_DUPFD_CLOEXEC, SAFE_FD) : -1;
	int told = fcntl(pipe_fd, F_DUPFD_CLOEXEC, SAFE_FD);

	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (told < 0 || dup2(told, SERVE_CHILD_FD) < 0)
		_exit(1);
	if (request->file_fd >= 0 && (file < 0 || dup2(file, SERVE_CHILD_FILE_FD) < 0))
		_exit(1);
	sys_close_range(request->file_fd >= 0 ? SERVE_CHILD_FILE_FD + 1 : SERVE_CHILD_FD + 1, ~0U);
	request->work(request->context);
	_exit(0);
}

/* --- the server --------------------------------------------------------------------------------------------- */

void serve_child_kill(struct serve_child *child)
{
	if (child->server)
		kill(child->pid, SIGKILL);
}

void serve_child_done(struct serve_child *child)
{
	if (child->server) {
		serve_child_kill(child);
		while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
			;
		reap_family_remove(&child->server->family, child->pid);
		loop_remove(&child->watch);
		close_fd(&child->pipe_fd);
	}
	text_done(&child->told);
	child->server = NULL;
}

static void child_on_told(struct loop_watch *watch, uint32_t events)
{
	struct serve_child *child = watch->owner;
	char *room = text_reserve(&child->told, READ_BYTES);
	ssize_t count = room && child->told.len < TOLD_MAX_BYTES ? read(child->pipe_fd, room, READ_BYTES) : 0;
	struct text told;

	(void)events;
	if (count > 0)
		child->told.len += (size_t)count;
	if (count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	/* It is waited for: a process that has closed its pipe may still hold its locks. */
	told = child->told;
	child->told = (struct text){0};
	serve_child_done(child);
	child->told = told;
	child->over(child->owner);
}

int serve_child_start(struct serve_child *child, struct server *server, const struct serve_child_request *request)
{
	int ends[2], rc;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	child->pid = fork();
	if (child->pid == 0)
		be_child(request, ends[1]);
	rc = child->pid < 0 ? -errno : 0;
	close(ends[1]);
	if (rc < 0) {
		close(ends[0]);
		return rc;
	}
	child->server = server;
	child->pipe_fd = ends[0];
	child->over = request->over;
	child->owner = request->owner;
	rc = reap_family_add(&server->family, child->pid);
	if (rc == 0) {
		fcntl(child->pipe_fd, F_SETFL, O_NONBLOCK);
		rc = loop_add(server->loop, &child->watch, child->pipe_fd, EPOLLIN, child_on_told, child);
	}
	if (rc < 0)
		serve_child_done(child);
	return rc;
}
