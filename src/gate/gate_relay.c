/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/gate_relay.c - move bytes from one socket to another
 */
#include "gate/gate_relay.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* More in a pipe is more for each turn; beyond this it gains nothing. */
#define PIPE_BYTES (256 << 10)
/* Then others have their turn. */
#define ROUNDS_MAX 16

void gate_relay_half_init(struct relay_half *half)
{
	*half = (struct relay_half){.pipe = {-1, -1}};
}

static int take_pipe(struct gate_process *gate, struct gate_pipe *pipe)
{
	int fds[2];

	if (gate->pipe_count) {
		*pipe = gate->pipes[--gate->pipe_count];
		return 0;
	}
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	*pipe = (struct gate_pipe){fds[0], fds[1]};
	/* Refused where a user has many: a smaller one will do. */
	fcntl(pipe->write_fd, F_SETPIPE_SZ, PIPE_BYTES);
	return 0;
}

static void close_pipe(struct gate_pipe *pipe)
{
	close_fd(&pipe->read_fd);
	close_fd(&pipe->write_fd);
}

/* Keep an empty pipe for the next connection that needs one. */
static void give_pipe_back(struct gate_process *gate, struct gate_pipe *pipe)
{
	if (pipe->read_fd < 0)
		return;
	if (gate->pipe_count < GATE_PIPES_MAX)
		gate->pipes[gate->pipe_count++] = *pipe;
	else
		close_pipe(pipe);
	*pipe = (struct gate_pipe){-1, -1};
}

void gate_relay_half_done(struct gate_process *gate, struct relay_half *half)
{
	if (half->held)
		close_pipe(&half->pipe);
	give_pipe_back(gate, &half->pipe);
}

/* splice() does not go past a byte that was sent as urgent, and the socket stays readable: that one byte goes by hand. */
static ssize_t fill_by_hand(struct relay_half *half, int from_fd)
{
	uint8_t byte;
	ssize_t len = recv(from_fd, &byte, 1, MSG_DONTWAIT);

	return len > 0 ? write(half->pipe.write_fd, &byte, 1) : len;
}

static int fill(struct gate_process *gate, struct relay_half *half, int from_fd, struct gate_host *host, bool is_out)
{
	uint64_t room = half->is_free ? PIPE_BYTES : gate_account_room(gate->page);
	ssize_t len;
	int rc;

	if (half->pipe.read_fd < 0) {
		rc = take_pipe(gate, &half->pipe);
		half->is_starved = rc < 0;
		if (rc < 0)
			return -EAGAIN;
	}
	if (!room)
		return -EDQUOT;
	if (half->until)
		room = MIN_OF(room, half->until);
	len = splice(from_fd, NULL, half->pipe.write_fd, NULL, MIN_OF(room, PIPE_BYTES),
		     SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (len < 0 && errno == EAGAIN)
		len = fill_by_hand(half, from_fd);
	if (len < 0)
		return -errno;
	half->is_ended = len == 0;
	half->held = (size_t)len;
	if (half->until) {
		half->until -= (size_t)len;
		half->is_resting = !half->until;
	}
	if (!half->is_free)
		gate_account_add(gate->page, host, is_out, (uint64_t)len);
	return 0;
}

static int empty(struct relay_half *half, int to_fd)
{
	ssize_t len = splice(half->pipe.read_fd, NULL, to_fd, NULL, half->held, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

	if (len <= 0)
		return len < 0 ? -errno : -EPIPE;
	half->held -= (size_t)len;
	return 0;
}

int gate_relay_move(struct gate_process *gate, struct relay_half *half, int from_fd, int to_fd, struct gate_host *host,
		    bool is_out)
{
	int rc = 0;

	for (int round = 0; round < ROUNDS_MAX && rc == 0 && !half->is_shut; round++) {
		if (!half->held && half->is_resting)
			break;
		if (!half->held && !half->is_ended)
			rc = fill(gate, half, from_fd, host, is_out);
		if (rc == 0 && half->held)
			rc = empty(half, to_fd);
		if (rc == 0 && half->is_ended && !half->held) {
			shutdown(to_fd, SHUT_WR);
			half->is_shut = true;
		}
	}
	if (!half->held)
		give_pipe_back(gate, &half->pipe);
	return rc == -EAGAIN || rc == -EINTR ? 0 : rc;
}

/* @out is what this side sends, @in what it is given. */
static uint32_t interest(const struct relay_half *out, const struct relay_half *in)
{
	return (!out->held && !out->is_ended && !out->is_starved && !out->is_resting ? EPOLLIN : 0) |
	       (in->held ? EPOLLOUT : 0);
}

bool gate_relay_listen(struct loop_watch *client, struct loop_watch *server, const struct relay_half *up,
		       const struct relay_half *down)
{
	uint32_t client_events = interest(up, down), server_events = interest(down, up);

	/* One that has hung up is not listened to any more; what it left is fetched when the other can take it. */
	if (!client->loop && client_events & EPOLLIN)
		server_events |= EPOLLOUT;
	if (!server->loop && server_events & EPOLLIN)
		client_events |= EPOLLOUT;
	loop_change(client, client_events);
	loop_change(server, server_events);
	return up->is_starved || down->is_starved;
}

void gate_relay_forget_if_gone(struct loop_watch *watch, uint32_t events)
{
	if (events & (EPOLLHUP | EPOLLERR) && !watch->events)
		loop_remove(watch);
}
