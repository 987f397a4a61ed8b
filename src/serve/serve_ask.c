/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve/serve_ask.c - ASK: the client's question what this host can enforce, and its answer
 *
 * To answer, the engine must try things, and that takes time. So a child of the server tries them, and only the client that
 * asked waits. The child has nothing of the server's but a pipe: no leash of a jar, no channel.
 */
#include "serve/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "doctor/doctor.h"
#include "sys/calls.h"
#include "wire/request.h"

#define PIPE_FD 3
#define ANSWER_MAX_BYTES ((size_t)1 << 20)

struct serve_ask {
	struct object object;
	struct channel *channel; /* NULL: the client does not wait for it any more */
	pid_t pid;
	int pipe_fd;
	struct loop_watch watch;
	struct text answer;
};

/* --- the child ---------------------------------------------------------------------------------------------- */

static void find_out(const struct server *server, int pipe_fd) __attribute__((noreturn));
static void find_out(const struct server *server, int pipe_fd)
{
	struct engine_doctor_request request = {
		.is_json = true,
		.rung_max = RUNG_NAMESPACE,
		.environment = server->environment,
		.argv_memory = server->argv_memory.start,
		.argv_memory_len = server->argv_memory.len,
	};
	struct error error = {0};
	AUTO_TEXT out = {0};
	size_t done = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (dup2(pipe_fd, PIPE_FD) < 0)
		_exit(1);
	sys_close_range(PIPE_FD + 1, ~0U);
	if (engine_doctor(&request, &out, &error) < 0)
		_exit(1);
	while (done < out.len) {
		ssize_t count = write(PIPE_FD, out.data + done, out.len - done);

		if (count <= 0)
			_exit(1);
		done += (size_t)count;
	}
	_exit(0);
}

/* --- the server --------------------------------------------------------------------------------------------- */

static void kill_ask(struct object *object)
{
	struct serve_ask *ask = (struct serve_ask *)object;

	if (ask->pid > 0)
		kill(ask->pid, SIGKILL);
}

static void free_ask(struct object *object)
{
	struct serve_ask *ask = (struct serve_ask *)object;

	kill_ask(object);
	if (ask->pid > 0)
		while (waitpid(ask->pid, NULL, 0) < 0 && errno == EINTR)
			;
	reap_family_remove(&object->server->family, ask->pid);
	loop_remove(&ask->watch);
	close_fd(&ask->pipe_fd);
	text_done(&ask->answer);
	free(ask);
}

static void ask_finish(struct serve_ask *ask)
{
	struct channel *channel = ask->channel;
	struct error error = {0};

	ask->channel = NULL;
	ask->object.is_dead = true;
	if (!channel)
		return;
	while (ask->answer.len && ask->answer.data[ask->answer.len - 1] == '\n')
		ask->answer.data[--ask->answer.len] = '\0';
	if (ask->answer.len && !text_failed(&ask->answer)) {
		wire_send(&channel->wire, FRAME_ANSWER, ask->answer.data, ask->answer.len, -1);
		channel_end(channel);
		return;
	}
	channel_set_role(channel, NULL, NULL);
	error_set(&error, STAGE_ENGINE, EIO, "cannot find out what this host can enforce");
	channel_fail(channel, &error, NULL);
}

static void ask_on_answer(struct loop_watch *watch, uint32_t events)
{
	struct serve_ask *ask = watch->owner;
	char *room = text_reserve(&ask->answer, 4096);
	ssize_t count = room && ask->answer.len < ANSWER_MAX_BYTES ? read(ask->pipe_fd, room, 4096) : 0;

	(void)events;
	if (count > 0)
		ask->answer.len += (size_t)count;
	else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
		loop_remove(&ask->watch);
		ask_finish(ask);
	}
}

static void ask_on_gone(struct channel *channel)
{
	struct serve_ask *ask = channel->object;

	ask->channel = NULL;
	ask->object.is_dead = true;
}

static const struct channel_role ask_role = {channel_refuse, NULL, ask_on_gone};

static int ask_start(struct serve_ask *ask, struct error *error)
{
	int ends[2], rc;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return error_set(error, STAGE_ENGINE, errno, "cannot make a pipe: %s", strerror(errno));
	ask->pipe_fd = ends[0];
	ask->pid = fork();
	if (ask->pid == 0)
		find_out(ask->object.server, ends[1]);
	rc = ask->pid < 0 ? -errno : 0;
	close(ends[1]);
	if (rc == 0)
		rc = reap_family_add(&ask->object.server->family, ask->pid);
	if (rc == 0) {
		fcntl(ask->pipe_fd, F_SETFL, O_NONBLOCK);
		rc = loop_add(ask->object.server->loop, &ask->watch, ask->pipe_fd, EPOLLIN, ask_on_answer, ask);
	}
	return rc < 0 ? error_set(error, STAGE_ENGINE, -rc,
				  "cannot start a process that tries what this host can enforce: %s", strerror(-rc))
		      : 0;
}

void serve_ask_begin(struct channel *channel, struct wire_frame *frame)
{
	struct serve_ask *ask = NULL;
	AUTO_REQUEST request = {0};
	struct error error = {0};
	int rc = request_parse(REQUEST_ASK, frame->payload, frame->len, &request, &error);

	if (rc == 0 && frame->fd_count)
		rc = error_set(&error, STAGE_ENGINE, EPROTO,
			       "the client sent descriptors with a frame that takes none");
	if (rc == 0) {
		ask = calloc(1, sizeof(*ask));
		rc = ask ? 0 : error_set(&error, STAGE_ENGINE, ENOMEM, "out of memory");
	}
	if (rc == 0 && ask) {
		ask->object = (struct object){.kill = kill_ask, .free = free_ask};
		ask->pipe_fd = -1;
		server_add(channel->server, &ask->object);
		rc = ask_start(ask, &error);
		ask->object.is_dead = rc < 0;
	}
	if (rc < 0 || !ask) {
		channel_fail(channel, &error, NULL);
		return;
	}
	ask->channel = channel;
	channel_set_role(channel, &ask_role, ask);
}
