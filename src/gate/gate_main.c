/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/gate_main.c - the process of a gate: from its start to its end
 *
 * Its control socket is its leash: when the engine's end closes, the jar is gone, or the engine is. What the jar has
 * sent until then is brought to its end, for a moment, and then the process leaves.
 */
#include "gate/gate_main.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/descriptors.h"
#include "gate/gate_process.h"
#include "base/sys/calls.h"

#define TICK_NS 100000000ULL
#define DRAIN_NS 1000000000ULL
#define DNS_PORT 53
/* Descriptors of a connection: two sockets, and two pipes if it is stuck both ways. */
#define CONNECTION_FDS 6
#define OTHER_FDS 512
#define CONNECTIONS_MAX 16384
#define VISITORS_MAX 1024

/* --- time --------------------------------------------------------------------------------------------------- */

static void on_tick(struct loop_timer *timer)
{
	struct gate_process *gate = timer->owner;
	uint64_t now_ns = sys_monotonic_ns();
	bool has_deadlines = gate_resolver_check_time(&gate->resolver, now_ns);

	has_deadlines |= gate_connection_check_time(gate, now_ns);
	has_deadlines |= gate_ask_check_time(gate, now_ns);
	has_deadlines |= gate_publish_check_time(gate, now_ns);
	gate_answer_check_time(gate, now_ns);
	if (gate->is_paused && gate->connection_count < gate->connection_room)
		gate_pause(gate, false);
	if (has_deadlines || gate->streams || gate->is_paused || gate->drain_until_ns)
		gate_want_tick(gate);
}

void gate_want_tick(struct gate_process *gate)
{
	if (!gate->tick.loop)
		loop_arm(gate->loop, &gate->tick, sys_monotonic_ns() + TICK_NS, on_tick, gate);
}

/* --- the engine --------------------------------------------------------------------------------------------- */

void gate_tell(const struct gate_message *message)
{
	uint8_t bytes[GATE_MESSAGE_MAX];
	size_t len = gate_message_write(message, bytes);

	if (len)
		send(GATE_CONTROL_FD, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void gate_notify(struct gate_process *gate)
{
	/* If there is no room, the engine has not read an earlier one yet, and will look. */
	(void)gate;
	gate_tell(&(struct gate_message){.kind = GATE_LOOK});
}

void gate_pause(struct gate_process *gate, bool is_paused)
{
	gate->is_paused = is_paused;
	/* An answer to a datagram needs no room. */
	for (size_t i = 0; i < gate->listener_count; i++)
		if (gate->listeners[i].function != gate_answer_on_datagram)
			loop_change(&gate->listeners[i], is_paused ? 0 : EPOLLIN);
	if (is_paused)
		gate_want_tick(gate);
}

static void close_listeners(struct gate_process *gate)
{
	for (size_t i = 0; i < gate->listener_count; i++) {
		loop_remove(&gate->listeners[i]);
		close_fd(&gate->listeners[i].fd);
	}
	gate->listener_count = 0;
}

void gate_shut(struct gate_process *gate)
{
	if (!gate->page->is_out_of_bytes) {
		gate->page->is_out_of_bytes = 1;
		gate_notify(gate);
	}
}

/* The rule holds before the engine hears so. */
static void take_rule(struct gate_process *gate, const struct gate_message *message)
{
	int rc = gate_rules_add(gate, &message->rule, 0);

	if (rc == 0 && message->rule.is_deny)
		gate_connection_check_rules(gate);
	if (rc == 0)
		gate_ask_check_rules(gate);
	gate_tell(&(struct gate_message){.kind = rc < 0 ? GATE_FULL : GATE_DONE, .number = message->number});
}

static void want_files(void *owner)
{
	(void)owner;
	gate_tell(&(struct gate_message){.kind = GATE_STALE});
}

static void take_files(struct gate_process *gate)
{
	gate_resolver_take_files(&gate->resolver, gate->page->hosts_text, &gate->page->servers);
}

static void take_message(struct gate_process *gate, const struct gate_message *message)
{
	if (message->kind == GATE_RULE)
		take_rule(gate, message);
	else if (message->kind == GATE_ANSWER)
		gate_ask_take_answer(gate, message);
	else if (message->kind == GATE_FILES)
		take_files(gate);
}

static void on_control(struct loop_watch *watch, uint32_t events)
{
	struct gate_process *gate = watch->owner;
	static uint8_t bytes[GATE_MESSAGE_MAX];
	ssize_t len = recv(watch->fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_TRUNC);
	struct gate_message message;

	(void)events;
	if (len > 0) {
		if (gate_message_read(bytes, (size_t)len, GATE_FROM_ENGINE, &message))
			take_message(gate, &message);
		return;
	}
	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	loop_remove(watch);
	gate_attempts_drain(gate);
	close_listeners(gate);
	gate->drain_until_ns = sys_monotonic_ns() + DRAIN_NS;
	/* The engine does not read files for it any more. */
	gate->resolver.refresh = NULL;
	take_files(gate);
	gate_connection_drain(gate);
	gate_publish_drain(gate);
	gate_want_tick(gate);
}

/* --- the beginning ------------------------------------------------------------------------------------------ */

/* Behind the jar's sockets and the vault. */
static unsigned first_door_fd(const struct gate_page *page)
{
	return GATE_FIRST_SOCKET_FD + page->socket_count + !!page->has_vault;
}

static int map_page(struct gate_process *gate)
{
	struct stat status;

	if (fstat(GATE_PAGE_FD, &status) < 0)
		return -errno;
	if ((size_t)status.st_size < sizeof(*gate->page))
		return -EINVAL;
	gate->page = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, GATE_PAGE_FD, 0);
	if (gate->page == MAP_FAILED)
		return -errno;
	close(GATE_PAGE_FD);
	if (gate->page->magic != GATE_PAGE_MAGIC || gate->page->socket_count > GATE_LISTENERS_MAX ||
	    gate->page->published_count > PUBLISH_MAX ||
	    gate->page->rule_count > ((size_t)status.st_size - sizeof(*gate->page)) / sizeof(*gate->page->rules))
		return -EINVAL;
	/* Descriptors that the engine was started with are not for this process. */
	sys_close_range(first_door_fd(gate->page) + gate->page->published_count, ~0U);
	gate->rules.items = gate->page->rules;
	gate->rules.count = gate->page->rule_count;
	return 0;
}

static loop_watch_function *function_of(struct gate_process *gate, int fd)
{
	struct sockaddr_in6 address = {0};
	socklen_t len = sizeof(address), type_len = sizeof(int);
	int type = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &len) < 0)
		return NULL;
	if (type == SOCK_RAW)
		return gate_attempts_prepare(gate, fd) ? gate_attempts_on_packet : NULL;
	if (type == SOCK_DGRAM)
		return gate_answer_on_datagram;
	/* The port stands in the same place for both families. */
	return ntohs(address.sin6_port) == DNS_PORT ? gate_answer_on_stream : gate_connection_on_listener;
}

static int watch_sockets(struct gate_process *gate)
{
	int rc = loop_add(gate->loop, &gate->control, GATE_CONTROL_FD, EPOLLIN, on_control, gate);

	for (uint32_t i = 0; i < gate->page->socket_count && rc == 0; i++) {
		int fd = GATE_FIRST_SOCKET_FD + (int)i;
		loop_watch_function *function;

		if (gate_publish_take_socket(gate, fd))
			continue;
		function = function_of(gate, fd);
		if (!function)
			return -EINVAL;
		rc = loop_add(gate->loop, &gate->listeners[gate->listener_count++], fd, EPOLLIN, function, gate);
	}
	return rc < 0 ? rc : gate_publish_begin(gate, (int)first_door_fd(gate->page));
}

static void find_room(struct gate_process *gate)
{
	struct rlimit limit = {0};

	getrlimit(RLIMIT_NOFILE, &limit);
	gate->connection_room = 1;
	if (limit.rlim_cur > OTHER_FDS + CONNECTION_FDS)
		gate->connection_room = MIN_OF((limit.rlim_cur - OTHER_FDS) / CONNECTION_FDS, CONNECTIONS_MAX);
	/* Those from the host's side cannot take all of it, and neither can the jar's. */
	if (gate->page->published_count) {
		gate->visitor_room = MIN_OF(MAX_OF(gate->connection_room / 2, (size_t)1), (size_t)VISITORS_MAX);
		gate->connection_room = MAX_OF(gate->connection_room - gate->visitor_room, (size_t)1);
	}
}

static int open_vault(struct gate_process *gate)
{
	AUTO_CLOSE int vault_fd = GATE_FIRST_SOCKET_FD + (int)gate->page->socket_count;

	return gate->inspector ? gate->inspector->begin(gate->inspector, vault_fd) : -EINVAL;
}

static int begin(struct gate_process *gate)
{
	int rc;

	/* A signal for the terminal's programs is not for this one. */
	setsid();
	signal(SIGPIPE, SIG_IGN);
	rc = map_page(gate);
	if (rc < 0)
		return rc;
	gate->loop = loop_new();
	if (!gate->loop)
		return -ENOMEM;
	descriptors_raise_limit();
	find_room(gate);
	rc = gate_resolver_init(&gate->resolver, gate->loop);
	if (rc == 0) {
		take_files(gate);
		gate->resolver.refresh = want_files;
		rc = watch_sockets(gate);
	}
	if (rc == 0 && gate->page->has_vault)
		rc = open_vault(gate);
	if (rc == 0)
		rc = gate_put_up_walls(gate->page, gate->inspector);
	return rc;
}

int gate_main(struct gate_inspector *inspector)
{
	static struct gate_process gate;
	int rc;

	gate.inspector = inspector;
	rc = begin(&gate);

	if (rc < 0)
		_exit(125);
	while (!gate.drain_until_ns ||
	       ((gate.connections || gate.visitors) && sys_monotonic_ns() < gate.drain_until_ns)) {
		if (loop_turn(gate.loop) < 0)
			break;
		gate_connection_sweep(&gate);
		gate_publish_sweep(&gate);
	}
	_exit(0);
}
