/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/gate_publish.c - connections from the host's loopback to servers in the jar
 *
 *   accepted ──► WAITING ──► DIALLING ──► RELAYING
 *                   └── refused: once more, by IPv6 ──┘
 *
 * The process is outside of the jar's network and may make no socket in it. The engine gave it two: one that listens,
 * and one that connects to it. A socket from accept() belongs to the network of the listener; disconnected, it can
 * connect to any address there. So a pair makes as many sockets as needed, without any process of the jar. A program
 * of the jar that connects to that listener only makes a socket for the gate.
 *
 * If no process listens inside, the gate resets the visitor. Without room, visitors wait in the listener's queue.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "gate/gate_relay.h"
#include "plan/plan_gate.h"
#include "base/sys/calls.h"

#define ACCEPTS_PER_TURN 64
/* A server whose queue is full answers late or never. */
#define DIAL_NS 10000000000ULL

enum visitor_state { VISITOR_WAITING, VISITOR_DIALLING, VISITOR_RELAYING };

struct visitor {
	struct gate_process *gate;
	struct visitor *next, *previous;
	enum visitor_state state;
	bool is_dead;
	bool is_ipv6; /* how it tries to reach the server */
	uint16_t port;
	struct loop_watch outside, inside;
	uint64_t deadline_ns; /* 0: none */
	struct relay_half in, out;
};

union address {
	struct sockaddr any;
	struct sockaddr_in ipv4;
	struct sockaddr_in6 ipv6;
};

static socklen_t make_address(bool is_ipv6, uint16_t port, union address *out)
{
	if (is_ipv6) {
		out->ipv6 = (struct sockaddr_in6){
			.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
		return sizeof(out->ipv6);
	}
	out->ipv4 = (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	return sizeof(out->ipv4);
}

static void set_number(int fd, int level, int name, int value)
{
	setsockopt(fd, level, name, &value, sizeof(value));
}

static void close_watch(struct loop_watch *watch, bool is_reset)
{
	const struct linger at_once = {.l_onoff = 1};

	if (is_reset && watch->fd >= 0)
		setsockopt(watch->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	loop_remove(watch);
	close_fd(&watch->fd);
}

static void open_doors(struct gate_process *gate, bool is_open)
{
	gate->are_doors_shut = !is_open;
	for (size_t i = 0; i < gate->door_count; i++)
		loop_change(&gate->doors[i], is_open ? EPOLLIN : 0);
}

/* It is freed later: a callback may still have it. */
static void end(struct visitor *visitor, bool is_reset)
{
	struct gate_process *gate = visitor->gate;

	if (visitor->is_dead)
		return;
	visitor->is_dead = true;
	close_watch(&visitor->outside, is_reset);
	close_watch(&visitor->inside, is_reset);
	gate_relay_half_done(gate, &visitor->in);
	gate_relay_half_done(gate, &visitor->out);
	if (visitor->next)
		visitor->next->previous = visitor->previous;
	if (visitor->previous)
		visitor->previous->next = visitor->next;
	else
		gate->visitors = visitor->next;
	visitor->next = gate->dead_visitors;
	gate->dead_visitors = visitor;
	gate->visitor_count--;
	if (gate->are_doors_shut)
		open_doors(gate, true);
}

void gate_publish_sweep(struct gate_process *gate)
{
	struct visitor *visitor;

	while ((visitor = gate->dead_visitors)) {
		gate->dead_visitors = visitor->next;
		free(visitor);
	}
}

/* --- relaying ----------------------------------------------------------------------------------------------- */

static void pump(struct visitor *visitor)
{
	struct gate_process *gate = visitor->gate;
	int outside = visitor->outside.fd, inside = visitor->inside.fd;
	int rc = gate_relay_move(gate, &visitor->in, outside, inside, NULL, false);

	if (rc == 0)
		rc = gate_relay_move(gate, &visitor->out, inside, outside, NULL, true);
	/* When the jar is gone no process reads what comes in. */
	if (rc == 0 && visitor->out.is_shut && (visitor->in.is_shut || gate->drain_until_ns))
		end(visitor, false);
	else if (rc < 0)
		end(visitor, true);
	else if (gate_relay_listen(&visitor->outside, &visitor->inside, &visitor->in, &visitor->out))
		gate_want_tick(gate);
}

static void on_outside(struct loop_watch *watch, uint32_t events)
{
	struct visitor *visitor = watch->owner;

	if (visitor->is_dead)
		return;
	/* The outside reset it: there is nothing left to relay. */
	if (events & EPOLLERR) {
		end(visitor, true);
		return;
	}
	if (visitor->state != VISITOR_RELAYING) {
		loop_remove(watch);
		return;
	}
	gate_relay_forget_if_gone(watch, events);
	pump(visitor);
}

/* --- sockets of the jar's network --------------------------------------------------------------------------- */

static int disconnect(int fd)
{
	const struct sockaddr nobody = {.sa_family = AF_UNSPEC};

	return connect(fd, &nobody, sizeof(nobody)) < 0 ? -errno : 0;
}

static void want_socket(struct gate_process *gate, bool is_ipv6)
{
	struct gate_nursery *nursery = &gate->nurseries[is_ipv6];
	union address to;
	socklen_t len = make_address(is_ipv6, GATE_NURSERY_PORT, &to);

	if (nursery->is_busy)
		return;
	/* If the jar has used up its ports, the next tick tries again. */
	disconnect(nursery->dialler_fd);
	if (connect(nursery->dialler_fd, &to.any, len) < 0 && errno != EINPROGRESS) {
		gate_want_tick(gate);
		return;
	}
	nursery->is_busy = true;
	loop_change(&nursery->listener, EPOLLIN);
}

static struct visitor *next_waiting(const struct gate_process *gate, bool is_ipv6)
{
	struct visitor *found = NULL;

	/* The youngest is first in the list. */
	for (struct visitor *visitor = gate->visitors; visitor; visitor = visitor->next)
		if (visitor->state == VISITOR_WAITING && visitor->is_ipv6 == is_ipv6)
			found = visitor;
	return found;
}

static void dial(struct visitor *visitor, int fd);

static void on_nursery(struct loop_watch *watch, uint32_t events)
{
	struct gate_process *gate = watch->owner;
	bool is_ipv6 = watch == &gate->nurseries[1].listener;
	struct gate_nursery *nursery = &gate->nurseries[is_ipv6];
	int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct visitor *visitor = next_waiting(gate, is_ipv6);

	(void)events;
	if (fd < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED))
		return;
	nursery->is_busy = false;
	loop_change(watch, 0);
	/* The host has no descriptor left: the next tick tries again. */
	if (fd < 0) {
		gate_want_tick(gate);
		return;
	}
	disconnect(nursery->dialler_fd);
	if (!visitor || disconnect(fd) < 0)
		close(fd);
	else
		dial(visitor, fd);
	if (next_waiting(gate, is_ipv6))
		want_socket(gate, is_ipv6);
}

bool gate_publish_take_socket(struct gate_process *gate, int fd)
{
	union address address = {0};
	socklen_t len = sizeof(address), number_len = sizeof(int);
	int type = 0, is_listening = 0;
	struct gate_nursery *nursery;

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &number_len) < 0 || type != SOCK_STREAM ||
	    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &number_len) < 0 ||
	    getsockname(fd, &address.any, &len) < 0)
		return false;
	nursery = &gate->nurseries[address.any.sa_family == AF_INET6];
	if (!is_listening) {
		nursery->dialler_fd = fd;
		return true;
	}
	/* The port stands in the same place for both families. */
	return ntohs(address.ipv4.sin_port) == GATE_NURSERY_PORT &&
	       loop_add(gate->loop, &nursery->listener, fd, 0, on_nursery, gate) == 0;
}

/* --- dialling ----------------------------------------------------------------------------------------------- */

/* Try IPv6 after IPv4; if both are refused, no process listens. */
static void refused(struct visitor *visitor)
{
	struct gate_process *gate = visitor->gate;

	close_watch(&visitor->inside, false);
	if (visitor->is_ipv6 || !gate->nurseries[1].listener.loop) {
		end(visitor, true);
		return;
	}
	visitor->is_ipv6 = true;
	visitor->state = VISITOR_WAITING;
	want_socket(gate, true);
}

/* Report whether a socket has connected to itself: the kernel may give it an unused port that is also its target. */
static bool is_itself(const struct visitor *visitor)
{
	union address own = {0};
	socklen_t len = sizeof(own);

	return getsockname(visitor->inside.fd, &own.any, &len) < 0 || ntohs(own.ipv4.sin_port) == visitor->port;
}

static void on_inside(struct loop_watch *watch, uint32_t events)
{
	struct visitor *visitor = watch->owner;
	int error = 0;
	socklen_t len = sizeof(error);

	if (visitor->is_dead)
		return;
	if (visitor->state == VISITOR_RELAYING) {
		gate_relay_forget_if_gone(watch, events);
		pump(visitor);
		return;
	}
	getsockopt(watch->fd, SOL_SOCKET, SO_ERROR, &error, &len);
	if (error || is_itself(visitor)) {
		refused(visitor);
		return;
	}
	visitor->state = VISITOR_RELAYING;
	visitor->deadline_ns = 0;
	pump(visitor);
}

static void dial(struct visitor *visitor, int fd)
{
	union address to;
	socklen_t len = make_address(visitor->is_ipv6, visitor->port, &to);

	set_number(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	visitor->state = VISITOR_DIALLING;
	if (connect(fd, &to.any, len) < 0 && errno != EINPROGRESS) {
		close(fd);
		refused(visitor);
	} else if (loop_add(visitor->gate->loop, &visitor->inside, fd, EPOLLOUT, on_inside, visitor) < 0) {
		close(fd);
		visitor->inside.fd = -1;
		end(visitor, true);
	}
}

/* --- accepting ---------------------------------------------------------------------------------------------- */

static void take(struct gate_process *gate, int fd, uint16_t port)
{
	struct visitor *visitor = calloc(1, sizeof(*visitor));

	if (!visitor || loop_add(gate->loop, &visitor->outside, fd, 0, on_outside, visitor) < 0) {
		close(fd);
		free(visitor);
		return;
	}
	visitor->gate = gate;
	visitor->port = port;
	visitor->inside.fd = -1;
	visitor->deadline_ns = sys_monotonic_ns() + DIAL_NS;
	gate_relay_half_init(&visitor->in);
	gate_relay_half_init(&visitor->out);
	visitor->in.is_free = visitor->out.is_free = true;
	set_number(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	visitor->next = gate->visitors;
	if (visitor->next)
		visitor->next->previous = visitor;
	gate->visitors = visitor;
	gate->visitor_count++;
	gate_want_tick(gate);
	want_socket(gate, false);
}

static void on_door(struct loop_watch *watch, uint32_t events)
{
	struct gate_process *gate = watch->owner;

	(void)events;
	for (size_t i = 0; i < ACCEPTS_PER_TURN; i++) {
		int fd = -1;

		if (gate->visitor_count < gate->visitor_room)
			fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		else
			errno = EMFILE;
		if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
			/* Opened again with the next tick, or when a visitor leaves. */
			open_doors(gate, false);
			gate_want_tick(gate);
		}
		if (fd < 0)
			return;
		take(gate, fd, gate->page->published[watch - gate->doors]);
	}
}

int gate_publish_begin(struct gate_process *gate, int first_fd)
{
	int rc = 0;

	/* The jar's side is not there: the plan has it whenever something is published. */
	if (gate->page->published_count && !gate->nurseries[0].listener.loop)
		return -EINVAL;
	for (uint32_t i = 0; i < gate->page->published_count && rc == 0; i++) {
		rc = loop_add(gate->loop, &gate->doors[i], first_fd + (int)i, EPOLLIN, on_door, gate);
		gate->door_count++;
	}
	return rc;
}

/* --- time, and the end -------------------------------------------------------------------------------------- */

bool gate_publish_check_time(struct gate_process *gate, uint64_t now_ns)
{
	bool has_deadlines = false;
	struct visitor *next;

	for (struct visitor *visitor = gate->visitors; visitor; visitor = next) {
		next = visitor->next;
		if (visitor->state == VISITOR_RELAYING && (visitor->in.is_starved || visitor->out.is_starved)) {
			visitor->in.is_starved = visitor->out.is_starved = false;
			pump(visitor);
			continue;
		}
		has_deadlines |= visitor->deadline_ns != 0;
		if (!visitor->deadline_ns || now_ns < visitor->deadline_ns)
			continue;
		if (visitor->state == VISITOR_WAITING)
			gate->nurseries[visitor->is_ipv6].is_busy = false;
		end(visitor, true);
	}
	for (int is_ipv6 = 0; is_ipv6 <= 1; is_ipv6++)
		if (next_waiting(gate, is_ipv6))
			want_socket(gate, is_ipv6);
	if (gate->are_doors_shut && gate->visitor_count < gate->visitor_room)
		open_doors(gate, true);
	return has_deadlines || gate->are_doors_shut;
}

void gate_publish_drain(struct gate_process *gate)
{
	struct visitor *next;

	for (size_t i = 0; i < gate->door_count; i++)
		close_watch(&gate->doors[i], false);
	gate->door_count = 0;
	for (struct visitor *visitor = gate->visitors; visitor; visitor = next) {
		next = visitor->next;
		if (visitor->state == VISITOR_RELAYING)
			pump(visitor);
		else
			end(visitor, true);
	}
}
