/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/ledger/ledger.c - what a traced run asks for and is refused: the engine's side
 */
#include "engine/ledger/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "helper/ledger_look.h"
#include "base/reap/reap_children.h"
#include "base/sys/calls.h"

/* The helper's time to finish after the run; up to FINISH_TURNS times that if it only waits for a processor. */
#define FINISH_NS 1000000000ULL
#define FINISH_TURNS 8
/* A killed process is gone at once, unless it waits for a file server that does not answer. */
#define GONE_MS 50
#define RECORDS_PER_TURN 64
#define SEND_BUFFER_BYTES (1 << 20)
/* The most directories of a PATH to ask about. */
#define COMMANDS_ASKED_MAX 64

void ledger_denials_done(struct denial_list *denials)
{
	for (size_t i = 0; i < denials->count; i++)
		free(denials->items[i].path);
	free(denials->items);
	*denials = (struct denial_list){0};
}

/* --- the process -------------------------------------------------------------------------------------------- */

/* End the helper. The reaper of orphans reaps one that does not die at once. */
static void end_process(struct ledger *ledger)
{
	struct pollfd gone = {.fd = ledger->pidfd, .events = POLLIN};

	loop_remove(&ledger->socket);
	loop_disarm(&ledger->late);
	close_fd(&ledger->socket_fd);
	if (!ledger->pid)
		return;
	kill(ledger->pid, SIGKILL); /* only this ledger waits for it */
	if (ledger->pidfd < 0 || poll(&gone, 1, GONE_MS) > 0)
		waitpid(ledger->pid, NULL, __WALL);
	reap_family_remove(ledger->family, ledger->pid);
	close_fd(&ledger->pidfd);
	ledger->pid = 0;
}

static void finish(struct ledger *ledger)
{
	bool is_awaited = ledger->is_closed && ledger->finished;

	end_process(ledger);
	ledger->is_closed = true;
	if (is_awaited)
		ledger->finished(ledger->owner);
}

/* On a busy host, as opposed to a file server that does not answer. */
static bool waits_for_processor(pid_t pid)
{
	char path[32], line[512];
	const char *state;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (sys_read_file(AT_FDCWD, path, line, sizeof(line)) <= 0)
		return false;
	state = reap_after_name(line);
	return state && *state == 'R';
}

static void on_late(struct loop_timer *timer)
{
	struct ledger *ledger = timer->owner;

	if (++ledger->turns < FINISH_TURNS && waits_for_processor(ledger->pid)) {
		loop_arm(ledger->loop, timer, sys_monotonic_ns() + FINISH_NS, on_late, ledger);
		return;
	}
	ledger->lost++;
	finish(ledger);
}

static void take_record(struct ledger *ledger, enum ledger_word word, const struct denial *denial)
{
	struct denial *added;

	if (word == LEDGER_ANEW) {
		ledger_denials_done(&ledger->denials);
		ledger->is_anew = true;
		return;
	}
	added = ledger->denials.count < DENIALS_MAX ? list_add(&ledger->denials) : NULL;
	if (!added) {
		free(denial->path);
		ledger->lost++;
		return;
	}
	*added = *denial;
	if (!ledger->is_anew && !ledger->is_closed && ledger->found)
		ledger->found(ledger->owner, added);
}

static void on_socket(struct loop_watch *watch, uint32_t events)
{
	struct ledger *ledger = watch->owner;
	enum ledger_word word;
	struct denial denial;
	int rc = 1;

	(void)events;
	for (size_t i = 0; i < RECORDS_PER_TURN && rc > 0; i++) {
		rc = helper_ledger_receive(ledger->socket_fd, &word, &denial);
		if (rc > 0)
			take_record(ledger, word, &denial);
	}
	if (rc <= 0 && rc != -EAGAIN && rc != -EINTR)
		finish(ledger);
}

static int start(struct ledger *ledger)
{
	int ends[2], size = SEND_BUFFER_BYTES, rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	ledger->socket_fd = ends[0];
	ledger->pid = sys_fork(0, -1, &ledger->pidfd);
	if (ledger->pid == 0)
		helper_ledger_look(ends[1], ledger->plan);
	close(ends[1]);
	if (ledger->pid < 0) {
		rc = (int)ledger->pid;
		ledger->pid = 0;
		return rc;
	}
	rc = reap_family_add(ledger->family, ledger->pid);
	return rc < 0 ? rc : loop_add(ledger->loop, &ledger->socket, ledger->socket_fd, EPOLLIN, on_socket, ledger);
}

/* --- the run ------------------------------------------------------------------------------------------------ */

static void pass_on(struct ledger *ledger, const struct jar_message *message)
{
	if (ledger->is_closed)
		return;
	if (!ledger->pid && message->kind == JAR_TRIED && start(ledger) < 0) {
		end_process(ledger);
		ledger->is_closed = true;
	}
	if ((!ledger->pid || control_send(ledger->socket_fd, message, -1) < 0) && message->kind == JAR_TRIED)
		ledger->lost++;
}

void ledger_hear(struct ledger *ledger, const struct jar_message *message)
{
	if (ledger->plan->is_traced)
		pass_on(ledger, message);
}

void ledger_ask_command(struct ledger *ledger, const char *path)
{
	struct jar_message message = {
		.kind = JAR_TRIED,
		.tried = {.last_ns = sys_monotonic_ns(), .number = ledger->asked, .access = JAR_EXECUTES}};

	if (strlen(path) >= sizeof(message.tried.path) || ledger->asked == COMMANDS_ASKED_MAX)
		return;
	memcpy(message.tried.path, path, strlen(path) + 1);
	ledger->asked++;
	pass_on(ledger, &message);
}

bool ledger_close(struct ledger *ledger)
{
	if (ledger->is_closed)
		return ledger->pid;
	ledger->is_closed = true;
	if (!ledger->pid)
		return false;
	shutdown(ledger->socket_fd, SHUT_WR);
	loop_arm(ledger->loop, &ledger->late, sys_monotonic_ns() + FINISH_NS, on_late, ledger);
	return true;
}

void ledger_take(struct ledger *ledger, struct denied_seen *out)
{
	for (size_t i = 0; i < ledger->denials.count; i++) {
		struct denial *added = list_add(&out->list);

		if (!added) {
			ledger->lost++;
			continue;
		}
		*added = ledger->denials.items[i];
		ledger->denials.items[i].path = NULL;
	}
	out->more_paths += ledger->lost;
	ledger_denials_done(&ledger->denials);
}

void ledger_done(struct ledger *ledger)
{
	end_process(ledger);
	ledger_denials_done(&ledger->denials);
}
