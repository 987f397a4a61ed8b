/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/serve/serve.c - the server: where channels come from, the lists of channels and objects, one loop
 *
 * One thread serves all channels, so nothing here blocks: slow work runs in a child process, or is a state that an
 * event changes. The server ends when the door socket closes or the client ends. It watches the client too, since a
 * child that the client forked may hold a copy of the socket and live on. It ignores the signals of a terminal: a
 * client that survives Control-C must not lose its jars. It always keeps some descriptors free, to report an error to
 * a client that opens too many channels.
 */
#include "door/serve/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/processor.h"
#include "base/descriptors.h"
#include "door/serve/mux/mux.h"
#include "door/serve/serve_door.h"
#include "door/serve/serve_prepared.h"
#include "policy/policy_build.h"
#include "base/sys/calls.h"

/* Channels taken in one turn of the loop. */
#define CHANNELS_PER_TURN 64
/* Descriptors that making one jar may need for a moment, here and in its first process. */
#define DESCRIPTORS_KEPT_FREE 64
#define CHANNEL_WORD 'c'
/* Descriptors that a run needs soon after its request. */
#define DESCRIPTORS_OF_RUN 12
/* Helpers that wait for runs to come in their directory. */
#define HELPERS_IDLE_MAX 4
/* A set of signals, as the kernel has it. */
#define SIGNAL_SET_BYTES 8
/* The time to remove what is left after the last jar is gone. */
#define DRAIN_NS 1000000000ULL

/* --- objects ------------------------------------------------------------------------------------------------- */

void server_add(struct server *server, struct object *object)
{
	object->server = server;
	object->next = server->objects;
	server->objects = object;
}

unsigned server_take_number(struct server *server)
{
	for (unsigned i = 0; i < SERVE_JAR_NUMBERS; i++) {
		unsigned number = (server->next_number + i) % SERVE_JAR_NUMBERS;

		if (!(server->jar_numbers[number / 8] >> number % 8 & 1)) {
			server->jar_numbers[number / 8] |= (unsigned char)(1U << number % 8);
			server->next_number = number + 1;
			return number;
		}
	}
	return server->next_number++ % SERVE_JAR_NUMBERS; /* beyond the maximum, jars share numbers */
}

void server_return_number(struct server *server, unsigned number)
{
	server->jar_numbers[number / 8] &= (unsigned char)~(1U << number % 8);
}

static void sweep(struct server *server)
{
	for (struct channel **at = &server->channels; *at;) {
		struct channel *channel = *at;

		if (channel->is_dead) {
			*at = channel->next;
			serve_channel_free(channel);
		} else {
			at = &channel->next;
		}
	}
	for (struct object **at = &server->objects; *at;) {
		struct object *object = *at;

		if (object->is_dead) {
			*at = object->next;
			object->free(object);
		} else {
			at = &object->next;
		}
	}
}

/* --- the door socket ---------------------------------------------------------------------------------------- */

static void open_reserve(struct server *server)
{
	if (server->reserve_fd < 0)
		server->reserve_fd = fcntl(server->null_fd, F_DUPFD_CLOEXEC, 3);
}

/*
 * Report whether enough descriptors are left. The kernel always uses the lowest free number, so if @least is free,
 * about as many are left as lie between it and the limit. An exact count is not needed.
 */
bool server_has_descriptors(const struct server *server)
{
	struct rlimit limit;
	int least, fd;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return true;
	least = (int)(MIN_OF(limit.rlim_cur, (rlim_t)INT_MAX) -
		      MIN_OF(limit.rlim_cur / 4, (rlim_t)DESCRIPTORS_KEPT_FREE));
	if (server->starting > (unsigned)least / DESCRIPTORS_OF_RUN)
		return false;
	least -= (int)server->starting * DESCRIPTORS_OF_RUN;
	fd = fcntl(server->null_fd, F_DUPFD_CLOEXEC, least);
	if (fd >= 0)
		close(fd);
	return fd == least;
}

int server_check_descriptors(const struct server *server, struct error *error)
{
	if (server_has_descriptors(server))
		return 0;
	error_set(error, STAGE_ENGINE, EMFILE, "the engine has no descriptors left for another run or jar");
	return error_hint(error, "wait until others have ended, or raise the hard limit on open files (ulimit -Hn)");
}

/* The channel in one message of the door socket; -1: there is none in it. *@rc_out as descriptors_receive(). */
static int receive_channel(const struct server *server, ssize_t *rc_out)
{
	char word[2] = {0};
	struct iovec part = {word, sizeof(word)};
	struct descriptors received;
	int fd;

	*rc_out = descriptors_receive(server->door_fd, &part, 1, 1, &received);
	if (*rc_out <= 0)
		return -1;
	fd = received.count ? received.fds[0] : -1;
	if (*rc_out != 1 || word[0] != CHANNEL_WORD)
		close_fd(&fd);
	return fd;
}

static void refuse_channel(struct server *server, int fd)
{
	struct channel *channel = serve_channel_open(server, fd, NULL, NULL);
	struct error error = {0};

	if (!channel)
		return;
	server_check_descriptors(server, &error);
	serve_channel_fail(channel, &error, NULL);
}

static void server_on_door(struct loop_watch *watch, uint32_t events)
{
	struct server *server = watch->owner;

	for (int i = 0; i < CHANNELS_PER_TURN; i++) {
		bool is_short = !server_has_descriptors(server);
		ssize_t rc;
		int fd;

		if (is_short)
			close_fd(&server->reserve_fd);
		fd = receive_channel(server, &rc);
		if (fd >= 0 && is_short)
			refuse_channel(server, fd);
		else if (fd >= 0)
			serve_channel_open(server, fd, NULL, NULL);
		if (is_short) {
			sweep(server);
			open_reserve(server);
		}
		if (rc < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		/* An empty message is nothing; an end is one only with the word of the kernel. */
		if (rc < 0 || (rc == 0 && events & (EPOLLHUP | EPOLLERR))) {
			server->is_client_gone = true;
			return;
		}
		if (rc == 0)
			return;
	}
}

static void server_on_client(struct loop_watch *watch, uint32_t events)
{
	struct server *server = watch->owner;

	server->is_client_gone = true;
}

/* The client is the process that made the door socket, as the kernel knows it. */
static int open_client(int door_fd)
{
	struct ucred maker = {0};
	socklen_t len = sizeof(maker);

	if (getsockopt(door_fd, SOL_SOCKET, SO_PEERCRED, &maker, &len) < 0 || maker.pid <= 0)
		return -1;
	return sys_pidfd_open(maker.pid);
}

/* --- standard input and output ------------------------------------------------------------------------------- */

static void server_on_hello(void *owner, struct json_writer *writer)
{
	(void)owner;
	serve_hello_write(writer);
}

static void server_on_mux_channel(void *owner, int fd)
{
	struct server *server = owner;

	if (server_has_descriptors(server))
		serve_channel_open(server, fd, NULL, NULL);
	else
		refuse_channel(server, fd);
}

static void server_on_mux_ended(void *owner, const struct error *error)
{
	struct server *server = owner;

	server->is_client_gone = true;
	if (error)
		server->broken = *error;
}

/* Nothing of a jar may ever have them: where they were is nothing. */
static int open_mux(struct server *server, struct error *error)
{
	struct mux_listener listener = {server, server_on_hello, server_on_mux_channel, server_on_mux_ended};
	int in_fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3), out_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);

	if (in_fd < 0 || out_fd < 0) {
		error_set(error, STAGE_USAGE, errno, "cannot use standard input and output: %s", strerror(errno));
		close_fd(&in_fd);
		close_fd(&out_fd);
		return -EBADF;
	}
	dup2(server->null_fd, STDIN_FILENO);
	dup2(server->null_fd, STDOUT_FILENO);
	server->mux = mux_new(server->loop, in_fd, out_fd, &listener, error);
	return server->mux ? 0 : -EINVAL;
}

/* --- beginning and end -------------------------------------------------------------------------------------- */

static bool is_door(int fd)
{
	int type = 0;
	socklen_t len = sizeof(type);

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_SEQPACKET;
}

/*
 * Signals of a terminal or a service manager go to the client too, which decides. A file that may not grow is an
 * error, not the end. Commands get all of them back.
 */
static void stand_apart(int last_fd)
{
	/*
	 * The kernel's struct sigaction, since the C library keeps some signals to itself. Every member is zero, so
	 * their order, which differs between architectures, does not count; 8 longs are more than any of them has.
	 */
	static const unsigned long standard[8];
	static const int others[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP, SIGTTIN, SIGTTOU, SIGXFSZ};

	setsid();
	/* Close descriptors that the client leaks to its children: another process may wait for their end. */
	sys_close_range((unsigned)last_fd + 1, ~0U);
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		signal(others[i], SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	/* glibc's posix_spawn() leaves its own two ignored. */
	for (int number = 32; number <= 34; number++)
		syscall(SYS_rt_sigaction, number, standard, NULL, SIGNAL_SET_BYTES);
}

static int open_server(struct server *server, struct error *error)
{
	int rc;

	server->null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (server->null_fd < 0)
		return error_set(error, STAGE_ENGINE, errno, "cannot open /dev/null: %s", strerror(errno));
	open_reserve(server);
	server->loop = loop_new();
	if (!server->loop)
		return error_set(error, STAGE_ENGINE, errno, "cannot make an event loop: %s", strerror(errno));
	if (server->door_fd < 0)
		return open_mux(server, error);
	fcntl(server->door_fd, F_SETFD, FD_CLOEXEC);
	rc = loop_add(server->loop, &server->door, server->door_fd, EPOLLIN, server_on_door, server);
	server->client_fd = open_client(server->door_fd);
	if (rc == 0 && server->client_fd >= 0)
		rc = loop_add(server->loop, &server->client, server->client_fd, EPOLLIN, server_on_client, server);
	return rc < 0 ? error_set(error, STAGE_ENGINE, -rc, "cannot watch the door socket: %s", strerror(-rc)) : 0;
}

static void close_server(struct server *server)
{
	/* Begin to end all before waiting for any. */
	for (struct object *object = server->objects; object; object = object->next)
		object->kill(object);
	for (struct object *object = server->objects; object; object = object->next)
		object->is_dead = true;
	for (struct channel *channel = server->channels; channel; channel = channel->next)
		channel->is_dead = true;
	serve_prepared_want_none(server);
	sweep(server);
	loop_remove(&server->door);
	loop_remove(&server->client);
	engine_helpers_done(&server->helpers);
	if (server->loop)
		loop_drain(server->loop, sys_monotonic_ns() + DRAIN_NS);
	mux_free(server->mux);
	loop_free(server->loop);
	policy_done(&server->agent);
	close_fd(&server->client_fd);
	close_fd(&server->null_fd);
	close_fd(&server->reserve_fd);
	free(server->family.items);
}

int serve_engine(const struct engine_serve_request *request, struct error *error)
{
	struct server server = {
		.door_fd = request->door_fd,
		.client_fd = -1,
		.null_fd = -1,
		.reserve_fd = -1,
		.argv_memory = {request->argv_memory, request->argv_memory_len},
		.environment = request->environment,
	};
	int rc;

	if (request->door_fd >= 0 && !is_door(request->door_fd)) {
		error_set(error, STAGE_USAGE, ENOTSOCK, "descriptor %d is not the socket of a client program",
			  request->door_fd);
		return error_hint(error,
				  "libbelljar and the Python package start this program; use `belljar run` by hand");
	}
	stand_apart(MAX_OF(request->door_fd, STDERR_FILENO));
	processor_be_prompt();
	descriptors_raise_limit();
	rc = open_server(&server, error);
	server.helpers = (struct engine_helpers){server.loop, &server.family, HELPERS_IDLE_MAX, NULL};
	while (rc == 0 && !server.is_client_gone) {
		rc = loop_turn(server.loop);
		sweep(&server);
		if (server.mux)
			mux_turn(server.mux);
		serve_prepared_make(&server);
	}
	if (rc < 0)
		error_set(error, STAGE_ENGINE, -rc, "cannot wait for events: %s", strerror(-rc));
	close_server(&server);
	if (rc == 0 && server.broken.stage != STAGE_NONE) {
		*error = server.broken;
		rc = -EPROTO;
	}
	return rc;
}
