/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/client_engine.c - start the engine, connect to it, end it
 *
 * The engine inherits nothing of the program: posix_spawn() copies no memory, and the file actions give the engine
 * /dev/null as 0, 1 and 2, its end of the door socket as 3, and nothing else.
 *
 * The library sees the end of the engine on its pidfd, also if another part of the program collects the process. A
 * child of fork() may hold a copy of the door socket, which would keep the engine alive. So the library shuts the
 * socket down, which ends all copies, and does not only close it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/descriptors.h"
#include "client/client.h"
#include "client/client_request.h"

/* WIRE_VERSION in a string. */
#define TEXT_OF(value) #value
#define TEXT_OF_VALUE(value) TEXT_OF(value)
#define VERSION_TEXT TEXT_OF_VALUE(WIRE_VERSION)
#define DOOR_FD 3
/* Above what the file actions write to: not one of them may hit the descriptor that the next one needs. */
#define SPARE_FD 10
/* Leaving means killing jars, which takes a moment; an engine that takes this long never will. */
#define LEAVE_MS 10000
/* A request this short fits into the socket's buffer before the engine reads: it then comes with its channel. */
#define EARLY_BYTES ((size_t)32 << 10)

/* Call numbers that are the same on every architecture; older headers do not have them. */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#define BELLJAR_P_PIDFD ((idtype_t)3)

/* --- starting --- */

static int add_actions(posix_spawn_file_actions_t *actions, int door)
{
	int rc = 0;

	for (int fd = 0; fd < DOOR_FD && rc == 0; fd++)
		rc = posix_spawn_file_actions_addopen(actions, fd, "/dev/null", fd ? O_WRONLY : O_RDONLY, 0);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(actions, door, DOOR_FD);
#ifdef HAVE_CLOSEFROM_ACTION
	/* What the program forgot to mark close-on-exec. The engine looks again. */
	if (rc == 0)
		rc = posix_spawn_file_actions_addclosefrom_np(actions, DOOR_FD + 1);
#endif
	return rc;
}

/* A session of its own: what a terminal sends to the program's group is for the program to decide on. */
static int set_attributes(posix_spawnattr_t *attributes)
{
	sigset_t all, none;
	int rc = posix_spawnattr_setflags(attributes,
					  POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);

	/* sigfillset() leaves out the two that glibc keeps for itself, and those posix_spawn() then has the child ignore. */
	memset(&all, 0xff, sizeof(all));
	sigemptyset(&none);
	if (rc == 0)
		rc = posix_spawnattr_setsigdefault(attributes, &all);
	return rc ? rc : posix_spawnattr_setsigmask(attributes, &none);
}

/* Returns a positive errno, as the functions that it calls do. */
static int spawn(const char *program, bool is_in_path, int door, pid_t *pid_out)
{
	char *const argv[] = {(char *)"belljar", (char *)"engine", NULL};
	char *const environment[] = {NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int rc = posix_spawn_file_actions_init(&actions);

	if (rc)
		return rc;
	rc = posix_spawnattr_init(&attributes);
	if (rc) {
		posix_spawn_file_actions_destroy(&actions);
		return rc;
	}
	rc = add_actions(&actions, door);
	if (rc == 0)
		rc = set_attributes(&attributes);
	if (rc == 0)
		rc = (is_in_path ? posix_spawnp : posix_spawn)(pid_out, program, &actions, &attributes, argv,
							       environment);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return rc;
}

/* The program to start; *@is_in_path: it has to be looked for. */
static const char *find_program(const char *named, bool *is_in_path)
{
	const char *program = named;

	*is_in_path = false;
	if (!program)
		program = secure_getenv("BELLJAR_BIN");
	if (program && *program)
		return program;
	if (access(BELLJAR_INSTALLED_PROGRAM, X_OK) == 0 || !secure_getenv("PATH"))
		return BELLJAR_INSTALLED_PROGRAM;
	*is_in_path = true;
	return "belljar";
}

static int start_engine(struct belljar_engine *engine, const char *named, int door, struct belljar_error *failure)
{
	bool is_in_path;
	const char *program = find_program(named, &is_in_path);
	int rc = spawn(program, is_in_path, door, &engine->pid);

	if (rc) {
		error_set(&failure->error, STAGE_ENGINE, rc, "cannot start the engine '%s': %s", program,
			  errno_name(rc));
		return error_hint(&failure->error, "install belljar, or name the program in $BELLJAR_BIN");
	}
	engine->pidfd = client_raise_fd((int)syscall(SYS_pidfd_open, engine->pid, 0));
	if (engine->pidfd >= 0)
		return 0;
	/* It leaves as soon as the other end of the door socket is closed. */
	rc = error_set(&failure->error, STAGE_HOST, -engine->pidfd, "cannot watch the engine: %s",
		       errno_name(-engine->pidfd));
	error_hint(&failure->error, "Linux 5.4 or later is needed");
	return rc;
}

/* --- ending --- */

static void wait_for_end(const struct belljar_engine *engine)
{
	struct pollfd end = {.fd = engine->pidfd, .events = POLLIN};
	siginfo_t info;
	int rc, timeout_ms = LEAVE_MS;

	do {
		rc = poll(&end, 1, timeout_ms);
		if (rc == 0) {
			syscall(SYS_pidfd_send_signal, engine->pidfd, SIGKILL, NULL, 0);
			timeout_ms = -1;
		}
	} while (rc == 0 || (rc < 0 && errno == EINTR));
	/* ECHILD: the program ignores SIGCHLD, or has collected it. */
	while (waitid(BELLJAR_P_PIDFD, (id_t)engine->pidfd, &info, WEXITED) < 0 && errno == EINTR)
		;
}

static void end_engine(struct belljar_engine *engine)
{
	if (engine->door >= 0 && client_engine_is_ours(engine))
		shutdown(engine->door, SHUT_RDWR);
	close_fd(&engine->door);
	if (engine->pidfd >= 0 && client_engine_is_ours(engine))
		wait_for_end(engine);
	else if (engine->pid > 0 && client_engine_is_ours(engine))
		while (waitpid(engine->pid, NULL, 0) < 0 && errno == EINTR)
			;
}

void client_engine_hold(struct belljar_engine *engine)
{
	atomic_fetch_add(&engine->references, 1);
}

void client_engine_release(struct belljar_engine *engine)
{
	if (atomic_fetch_sub(&engine->references, 1) > 1)
		return;
	close_fd(&engine->pidfd);
	free(engine);
}

bool client_engine_is_ours(const struct belljar_engine *engine)
{
	return getpid() == engine->owner;
}

int client_engine_check(const struct belljar_engine *engine, struct belljar_error *failure)
{
	if (!engine)
		return error_set(&failure->error, STAGE_USAGE, EINVAL, "there is no engine: the pointer is NULL");
	if (client_engine_is_ours(engine))
		return 0;
	error_set(&failure->error, STAGE_USAGE, ECHILD, "this engine was opened by process %d before fork()",
		  (int)engine->owner);
	return error_hint(&failure->error, "open another engine after fork()");
}

int client_engine_lost(const struct belljar_engine *engine, struct belljar_error *failure)
{
	siginfo_t info = {0};

	if (engine->is_closed)
		return error_set(&failure->error, STAGE_ENGINE, ECONNRESET, "the engine was closed");
	/* Looking only: it is collected when it is closed. */
	if (waitid(BELLJAR_P_PIDFD, (id_t)engine->pidfd, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || !info.si_pid)
		error_set(&failure->error, STAGE_ENGINE, ECONNRESET, "the engine has ended");
	else if (info.si_code == CLD_EXITED)
		error_set(&failure->error, STAGE_ENGINE, ECONNRESET, "the engine has ended with exit status %d",
			  info.si_status);
	else
		error_set(&failure->error, STAGE_ENGINE, ECONNRESET, "the engine was ended by signal %d",
			  info.si_status);
	return error_hint(&failure->error, "everything it ran is gone; close it and open another one");
}

int client_engine_nonsense(struct belljar_error *failure)
{
	error_set(&failure->error, STAGE_ENGINE, EPROTO, "the engine sent a malformed answer");
	return error_hint(&failure->error, "install the library and the program 'belljar' from one build");
}

/* --- channels --- */

/* Sending is atomic: threads need no lock. */
static int send_channel(const struct belljar_engine *engine, int theirs)
{
	char letter = 'c';
	struct iovec part = {.iov_base = &letter, .iov_len = 1};
	ssize_t count = descriptors_send(engine->door, &part, 1, &theirs, 1, 0);

	return count < 0 ? (int)count : 0;
}

static bool is_broken(int rc)
{
	return rc == -EPIPE || rc == -ECONNRESET;
}

static int send_both(const struct belljar_engine *engine, const struct client_message *message, int ours, int theirs)
{
	bool is_early = message->len <= EARLY_BYTES;
	int rc = is_early ? client_send(ours, message) : 0;

	if (rc == 0)
		rc = send_channel(engine, theirs);
	if (rc < 0 || is_early)
		return rc;
	rc = client_send(ours, message);
	/* The engine has refused the beginning already: its reason is there to be read. */
	return is_broken(rc) ? 0 : rc;
}

int client_engine_connect(struct belljar_engine *engine, const struct client_message *message, int *channel_out,
			  struct belljar_error *failure)
{
	AUTO_CLOSE int ours = -1;
	AUTO_CLOSE int theirs = -1;
	int rc = client_channel_pair(&ours, &theirs);

	if (rc < 0)
		return error_set(&failure->error, STAGE_ENGINE, -rc, "cannot make a channel to the engine: %s",
				 errno_name(-rc));
	/* A request that is sent before its channel has only the other end's buffer to go to: no reader, no copy here. */
	rc = send_both(engine, message, ours, theirs);
	if (is_broken(rc))
		return client_engine_lost(engine, failure);
	if (rc == -E2BIG)
		return error_set(&failure->error, STAGE_USAGE, E2BIG,
				 "arguments, environment and policy together are too large for one request");
	if (rc < 0)
		return error_set(&failure->error, STAGE_ENGINE, -rc, "cannot send the request to the engine: %s",
				 errno_name(-rc));
	*channel_out = take_fd(&ours);
	return 0;
}

int client_engine_await(struct belljar_engine *engine, struct client_channel *channel, struct client_frame *out,
			struct belljar_error *failure)
{
	struct pollfd readable = {.fd = channel->fd, .events = POLLIN};

	for (;;) {
		int rc = client_next_frame(channel, out);
		ssize_t count;

		if (rc < 0)
			return client_engine_nonsense(failure);
		if (rc > 0)
			return 0;
		count = client_receive(channel);
		if (count == -EAGAIN)
			poll(&readable, 1, -1);
		else if (count == -ENOMEM)
			return client_no_memory(failure);
		else if (count <= 0)
			return client_engine_lost(engine, failure);
	}
}

/* --- public --- */

static int open_engine(const struct belljar_engine_options *given, struct belljar_engine **out,
		       struct belljar_error *failure)
{
	struct belljar_engine_options options = {0};
	struct belljar_engine *engine;
	int ends[2];
	int rc = given ? client_copy_struct(given, sizeof(options), &options, failure) : 0;

	if (rc < 0)
		return rc;
	if (options.flags)
		return error_set(&failure->error, STAGE_USAGE, EINVAL, "unknown flags: 0x%x", options.flags);
	engine = calloc(1, sizeof(*engine));
	if (!engine)
		return client_no_memory(failure);
	engine->references = 1;
	engine->owner = getpid();
	engine->door = engine->pidfd = -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
		rc = error_set(&failure->error, STAGE_ENGINE, errno, "cannot make a socket: %s", errno_name(errno));
		belljar_engine_close(engine);
		return rc;
	}
	engine->door = client_raise_fd(ends[0]);
	AUTO_CLOSE int low = ends[1];
	AUTO_CLOSE int theirs = fcntl(low, F_DUPFD_CLOEXEC, SPARE_FD);
	if (engine->door < 0 || theirs < 0)
		rc = error_set(&failure->error, STAGE_ENGINE, engine->door < 0 ? -engine->door : errno,
			       "too many open files");
	else
		rc = start_engine(engine, options.program, theirs, failure);
	if (rc < 0) {
		belljar_engine_close(engine);
		return rc;
	}
	*out = engine;
	return 0;
}

int belljar_engine_open(const struct belljar_engine_options *options, struct belljar_engine **out,
			struct belljar_error **error)
{
	AUTO_FAILURE failure = {0};

	return client_publish(open_engine(options, out, &failure), &failure, error);
}

void belljar_engine_close(struct belljar_engine *engine)
{
	if (!engine)
		return;
	engine->is_closed = true;
	end_engine(engine);
	client_engine_release(engine);
}

static int ask_engine(struct belljar_engine *engine, enum frame_type type, const char *question, char **json_out,
		      struct belljar_error *failure)
{
	struct client_message message = {.type = type, .payload = question, .len = strlen(question)};
	AUTO(client_channel_done) struct client_channel channel = {.fd = -1, .received_fd = -1};
	struct client_frame frame;
	AUTO_JSON document = {0};
	int fd = -1, rc = client_engine_check(engine, failure);

	if (rc == 0)
		rc = client_engine_connect(engine, &message, &fd, failure);
	if (rc < 0)
		return rc;
	client_channel_init(&channel, fd);
	rc = client_engine_await(engine, &channel, &frame, failure);
	if (rc < 0)
		return rc;
	if (frame.type == FRAME_ANSWER) {
		char *json = strndup(frame.payload, frame.len);

		if (!json)
			return client_no_memory(failure);
		*json_out = json;
		return 0;
	}
	if (frame.type != FRAME_FAILED)
		return client_engine_nonsense(failure);
	rc = client_parse(frame.payload, frame.len, &document, failure);
	return rc < 0 ? rc : client_read_failure(&document, failure);
}

int belljar_capabilities(struct belljar_engine *engine, char **json_out, struct belljar_error **error)
{
	AUTO_FAILURE failure = {0};

	return client_publish(ask_engine(engine, FRAME_ASK, "{\"version\":" VERSION_TEXT ",\"what\":\"capabilities\"}",
					 json_out, &failure),
			      &failure, error);
}

int belljar_protocol(struct belljar_engine *engine, char **json_out, struct belljar_error **error)
{
	AUTO_FAILURE failure = {0};

	return client_publish(ask_engine(engine, FRAME_HELLO, "{\"version\":" VERSION_TEXT "}", json_out, &failure),
			      &failure, error);
}
