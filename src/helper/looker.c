/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper/looker.c - a copy of the engine that does nothing but look
 *
 * It holds no descriptor but those of its meter: a copy of a jar's control socket would outlive the engine's own end of it.
 */
#include "helper/looker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/processor.h"
#include "base/reap/reap_children.h"
#include "base/sys/calls.h"

/* The interval between attempts to reap a killed looker. */
#define REAP_NS 500000ULL
#define STAT_BYTES 512

struct looker {
	struct loop *loop;
	struct reap_family *family;
	looker_function *function;
	void *owner;
	pid_t pid;
	int socket_fd;
	struct loop_watch watch;
	struct loop_timer reaping;
};

/* --- the looker --------------------------------------------------------------------------------------------- */

static int compare_fds(const void *left, const void *right)
{
	return *(const int *)left - *(const int *)right;
}

static void keep_only(int *fds, size_t count)
{
	unsigned next = 0;

	qsort(fds, count, sizeof(*fds), compare_fds);
	for (size_t i = 0; i < count; i++) {
		if (fds[i] < 0)
			continue;
		if ((unsigned)fds[i] > next)
			sys_close_range(next, (unsigned)fds[i] - 1);
		next = (unsigned)fds[i] + 1;
	}
	sys_close_range(next, ~0U);
}

static void serve(const struct meter *meter, int socket_fd, pid_t engine_pid, looker_look *look, void *owner)
	__attribute__((noreturn));
static void serve(const struct meter *meter, int socket_fd, pid_t engine_pid, looker_look *look, void *owner)
{
	int *kept = calloc(METER_LIST_COUNT + 3 + meter->place_count + meter->store_count, sizeof(*kept));
	struct looker_question question;
	struct looker_answer answer;
	size_t count = 0;

	if (!kept || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != engine_pid)
		_exit(1);
	/* A session of its own: the kernel shares processors out between sessions, and the engine's is its own. */
	setsid();
	processor_be_prompt();
	kept[count++] = socket_fd;
	kept[count++] = meter->proc_fd;
	kept[count++] = meter->clock_fd;
	for (size_t i = 0; i < METER_LIST_COUNT; i++)
		kept[count++] = meter->list_fds[i];
	for (size_t i = 0; i < meter->place_count; i++)
		kept[count++] = meter->places[i];
	for (size_t i = 0; i < meter->store_count; i++)
		kept[count++] = meter->stores[i].fd;
	keep_only(kept, count);
	while (recv(socket_fd, &question, sizeof(question), 0) == sizeof(question)) {
		memset(&answer, 0, sizeof(answer));
		look(owner, &question, &answer);
		if (send(socket_fd, &answer, sizeof(answer), MSG_NOSIGNAL) < 0)
			break;
	}
	_exit(0);
}

/* --- the engine --------------------------------------------------------------------------------------------- */

static void on_socket(struct loop_watch *watch, uint32_t events)
{
	struct looker *looker = watch->owner;
	struct looker_answer answer;
	ssize_t len = recv(looker->socket_fd, &answer, sizeof(answer), MSG_DONTWAIT);

	(void)events;
	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (len == sizeof(answer)) {
		looker->function(looker->owner, &answer);
		return;
	}
	loop_remove(watch);
	looker->function(looker->owner, NULL);
}

int helper_looker_new(struct loop *loop, struct reap_family *family, const struct meter *meter, looker_look *look,
		      looker_function *function, void *owner, struct looker **out)
{
	struct looker *looker = calloc(1, sizeof(*looker));
	pid_t engine_pid = getpid();
	int ends[2], rc;

	if (!looker)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
		rc = -errno;
		free(looker);
		return rc;
	}
	*looker = (struct looker){
		.loop = loop, .family = family, .function = function, .owner = owner, .socket_fd = ends[0]};
	looker->pid = fork();
	if (looker->pid == 0)
		serve(meter, ends[1], engine_pid, look, owner);
	rc = looker->pid < 0 ? -errno : reap_family_add(family, looker->pid);
	close(ends[1]);
	if (rc == 0)
		rc = loop_add(loop, &looker->watch, looker->socket_fd, EPOLLIN, on_socket, looker);
	if (rc < 0) {
		helper_looker_free(looker);
		return rc;
	}
	*out = looker;
	return 0;
}

int helper_looker_ask(struct looker *looker, const struct looker_question *question)
{
	return send(looker->socket_fd, question, sizeof(*question), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

bool helper_looker_is_blocked(const struct looker *looker)
{
	char path[32], content[STAT_BYTES];
	const char *state;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)looker->pid);
	state = sys_read_file(AT_FDCWD, path, content, sizeof(content)) > 0 ? reap_after_name(content) : NULL;
	return state && *state == 'D';
}

static void on_reaping(struct loop_timer *timer)
{
	struct looker *looker = timer->owner;

	/* The reaper of orphans may have reaped it first. */
	if (waitpid(looker->pid, NULL, WNOHANG | __WALL) == 0) {
		loop_arm(looker->loop, timer, sys_monotonic_ns() + REAP_NS, on_reaping, looker);
		return;
	}
	reap_family_remove(looker->family, looker->pid);
	free(looker);
}

void helper_looker_free(struct looker *looker)
{
	if (!looker)
		return;
	loop_remove(&looker->watch);
	close_fd(&looker->socket_fd);
	if (looker->pid > 0)
		kill(looker->pid, SIGKILL); /* only this process waits for it */
	looker->reaping.owner = looker;
	if (looker->pid > 0)
		on_reaping(&looker->reaping);
	else
		free(looker);
}
