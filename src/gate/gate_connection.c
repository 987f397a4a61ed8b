/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/gate_connection.c - one connection of the jar's: find its host, check the rules, dial, relay
 *
 *   accepted ──► ASKING ──► SNIFFING ──► RESOLVING ──► DIALLING ──► RELAYING
 *      │   └─ another port than 80 and 443 ─┘
 *      └─ no rule decides ──► ASKING ──► as those that a rule allows
 *
 * The address that a program connected to says which name it means, since that name has no other. On ports 80 and 443
 * the first bytes must name the same host before anything happens outside. On other ports a server may have to speak
 * first: there bytes from the jar wait until they are seen to be neither TLS nor HTTP for another host.
 *
 * Of TLS the ClientHello goes on, and no byte more before the host has answered: if it asks for a second one, that
 * must have the same name, since it is the one that counts.
 *
 * A refusal is a reset: a polite end would be taken for an answer.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "gate/gate_address.h"
#include "gate/gate_relay.h"
#include "gate/gate_sniff.h"
#include "plan/plan_gate.h"
#include "base/sys/calls.h"

#define ACCEPTS_PER_TURN 64
#define TLS_FIRST_BYTE 22
#define SNIFF_NS 10000000000ULL
/* So long a host may take to answer a ClientHello. */
#define HELLO_NS 60000000000ULL
/* While there are other addresses to try. */
#define DIAL_NS 2000000000ULL
#define LAST_DIAL_NS 30000000000ULL
/* In the jar's side of a connection, each way; the kernel doubles it for what it keeps beside. */
#define JAR_BUFFER_BYTES (256 << 10)
/* At most this many connections at a time may buffer more from their host. */
#define LARGE_CONNECTIONS 4

enum connection_state { STATE_ASKING, STATE_SNIFFING, STATE_RESOLVING, STATE_DIALLING, STATE_RELAYING };

struct connection {
	struct gate_process *gate;
	struct connection *next, *previous;
	enum connection_state state;
	bool is_dead;
	bool is_stopped; /* no more bytes may go through */
	bool is_checked; /* its first bytes are for the host that it asked for */
	bool is_dialled; /* some address of the host's may be reached */
	bool has_name;
	bool is_inspected; /* by the rule that allows it */
	bool is_tls;
	bool is_retried;  /* the host has asked for a second ClientHello */
	bool is_answered; /* no rule allows it, but the answer to a question does */
	uint16_t port;
	struct address_permit permit; /* by the rule that allows it */
	struct question *question;    /* while it waits for the answer; else NULL */
	const char *host;             /* a name of the gate's, or `text` */
	char text[INET6_ADDRSTRLEN];
	struct gate_host *counted; /* NULL: there was no room for it */
	struct loop_watch client, server;
	size_t peeked;        /* bytes that were looked at, of the client's, or of the host's answer to a ClientHello */
	uint64_t deadline_ns; /* 0: none */
	struct resolver_waiter waiter;
	struct dns_addresses addresses;
	size_t next_address;
	struct relay_half up, down;
	struct inspection *inspection; /* in place of both */
};

static void set_number(int fd, int level, int name, int value)
{
	setsockopt(fd, level, name, &value, sizeof(value));
}

/*
 * Small pieces go at once; what is urgent is a byte like others, in the order in which it was sent. What waits is
 * memory of the host's, whatever the jar's limit is: a jar that does not read has a buffer of fixed size. So has each
 * host but for a few, for which the kernel adapts it: one download keeps its speed. A clamp of the window would not
 * last, since the kernel lifts it when it adapts the buffer.
 */
static void prepare(const struct gate_process *gate, int fd, bool is_jars)
{
	set_number(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set_number(fd, SOL_SOCKET, SO_OOBINLINE, 1);
	if (is_jars) {
		set_number(fd, SOL_SOCKET, SO_SNDBUF, JAR_BUFFER_BYTES);
		set_number(fd, SOL_SOCKET, SO_RCVBUF, JAR_BUFFER_BYTES);
	} else if (gate->connection_count > LARGE_CONNECTIONS) {
		set_number(fd, SOL_SOCKET, SO_RCVBUF, JAR_BUFFER_BYTES);
	}
}

static void reset(int fd)
{
	const struct linger at_once = {.l_onoff = 1};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

static void close_watch(struct loop_watch *watch)
{
	loop_remove(watch);
	close_fd(&watch->fd);
}

static void record(const struct connection *connection, enum denial_reason reason, const char *detail)
{
	gate_account_refusal(connection->gate, &(struct refusal){.kind = DENIAL_NET,
								 .reason = reason,
								 .host = connection->host,
								 .port = connection->port,
								 .detail = detail});
}

/* It is freed later: a callback may still have it. */
static void end(struct connection *connection, bool is_reset)
{
	struct gate_process *gate = connection->gate;

	if (connection->is_dead)
		return;
	connection->is_dead = true;
	if (connection->question)
		gate_ask_leave(gate, connection->question);
	gate_resolver_forget(&connection->waiter);
	if (is_reset && connection->client.fd >= 0)
		reset(connection->client.fd);
	if (is_reset && connection->server.fd >= 0)
		reset(connection->server.fd);
	close_watch(&connection->client);
	close_watch(&connection->server);
	if (connection->inspection)
		gate->inspector->methods->free(connection->inspection);
	connection->inspection = NULL;
	gate_relay_half_done(gate, &connection->up);
	gate_relay_half_done(gate, &connection->down);
	if (connection->next)
		connection->next->previous = connection->previous;
	if (connection->previous)
		connection->previous->next = connection->next;
	else
		gate->connections = connection->next;
	connection->next = gate->dead;
	gate->dead = connection;
	gate->connection_count--;
	if (gate->is_paused)
		gate_pause(gate, false);
}

void gate_connection_sweep(struct gate_process *gate)
{
	struct connection *connection;

	while ((connection = gate->dead)) {
		gate->dead = connection->next;
		free(connection);
	}
}

/* --- relaying ----------------------------------------------------------------------------------------------- */

/*
 * No more bytes may go through. It stays as it is until the engine has ended the run: a reset would let the command
 * end by itself first. What is still in its sockets belongs to that run, and never goes on its way.
 */
static void stop(struct connection *connection)
{
	connection->is_stopped = true;
	loop_change(&connection->client, 0);
	loop_change(&connection->server, 0);
	gate_shut(connection->gate);
	gate_want_tick(connection->gate);
}

/* The inspection moves the bytes, and says what it waits for. */
static void pump_inspection(struct connection *connection)
{
	struct gate_inspection_wants wants = {0};
	int rc = connection->gate->inspector->methods->pump(connection->inspection, &wants);

	if (rc == -EDQUOT) {
		stop(connection);
	} else if (rc) {
		end(connection, rc < 0);
	} else {
		loop_change(&connection->client, wants.client_events);
		loop_change(&connection->server, wants.server_events);
		connection->deadline_ns = wants.deadline_ns;
		if (wants.deadline_ns)
			gate_want_tick(connection->gate);
	}
}

static void set_deadline(struct connection *connection, uint64_t after_ns)
{
	connection->deadline_ns = sys_monotonic_ns() + after_ns;
	gate_want_tick(connection->gate);
}

/* Read the host's answer to the ClientHello. True: relay it, and what the jar sends next. */
static bool look_at_answer(struct connection *connection)
{
	uint8_t bytes[64];
	ssize_t len = recv(connection->server.fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
	enum sniff found;

	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	found = gate_sniff_retry(bytes, len < 0 ? 0 : (size_t)len);
	if (found == SNIFF_MORE && len > 0 && (size_t)len != connection->peeked) {
		connection->peeked = (size_t)len;
		set_number(connection->server.fd, SOL_SOCKET, SO_RCVLOWAT, (int)len + 1);
		return false;
	}
	set_number(connection->server.fd, SOL_SOCKET, SO_RCVLOWAT, 1);
	connection->up.is_resting = false;
	connection->is_retried = found == SNIFF_FOUND;
	connection->is_checked = !connection->is_retried;
	connection->peeked = 0;
	connection->deadline_ns = 0;
	if (connection->is_retried)
		set_deadline(connection, SNIFF_NS);
	return true;
}

static void pump(struct connection *connection)
{
	struct gate_process *gate = connection->gate;
	int client = connection->client.fd, server = connection->server.fd, rc = 0;

	if (connection->is_stopped)
		return;
	if (connection->inspection) {
		pump_inspection(connection);
		return;
	}
	if (connection->is_checked)
		rc = gate_relay_move(gate, &connection->up, client, server, connection->counted, true);
	if (rc == 0 && (!connection->up.is_resting || look_at_answer(connection)))
		rc = gate_relay_move(gate, &connection->down, server, client, connection->counted, false);
	if (rc == -EDQUOT) {
		stop(connection);
		return;
	}
	/* When the jar is gone no process waits for a response. */
	if (rc == 0 && connection->up.is_shut && (connection->down.is_shut || gate->drain_until_ns)) {
		end(connection, false);
		return;
	}
	if (connection->up.is_resting && !connection->deadline_ns)
		set_deadline(connection, HELLO_NS);
	if (rc < 0)
		end(connection, true);
	else if (gate_relay_listen(&connection->client, &connection->server, &connection->up, &connection->down))
		gate_want_tick(gate);
}

/* --- dialling ----------------------------------------------------------------------------------------------- */

union address {
	struct sockaddr any;
	struct sockaddr_in ipv4;
	struct sockaddr_in6 ipv6;
};

static socklen_t make_address(const struct dns_address *from, uint16_t port, union address *out)
{
	if (from->is_ipv6) {
		out->ipv6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
		memcpy(&out->ipv6.sin6_addr, from->bytes, 16);
		return sizeof(out->ipv6);
	}
	out->ipv4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
	memcpy(&out->ipv4.sin_addr, from->bytes, 4);
	return sizeof(out->ipv4);
}

static bool may_be_dialled(const struct connection *connection, const struct dns_address *address)
{
	struct net_verdict by_address;

	if (connection->permit.kind == NET_RULE_HOST)
		return true;
	/* The question was about this very address, and said what kind it is. */
	if (connection->is_answered && !connection->has_name)
		return true;
	by_address = gate_rules_decide_address(connection->gate, address->is_ipv6, address->bytes, connection->port);
	return policy_address_may_be_dialled(by_address, connection->permit, address->is_ipv6, address->bytes,
					     gate_address_is_own(address->is_ipv6, address->bytes));
}

static void on_server(struct loop_watch *watch, uint32_t events);

static void start_relaying(struct connection *connection)
{
	const struct gate_inspected what = {connection->client.fd, connection->server.fd, connection->host,
					    connection->port,      connection->is_tls,    connection->counted};

	connection->state = STATE_RELAYING;
	connection->deadline_ns = 0;
	if (connection->counted)
		connection->counted->connections++;
	if (connection->is_inspected) {
		connection->inspection = connection->gate->inspector->methods->start(connection->gate, &what);
		if (!connection->inspection) {
			end(connection, true);
			return;
		}
	}
	pump(connection);
}

/* Its rule leads to none of the addresses that it has. */
static void record_address(const struct connection *connection)
{
	const struct dns_address *first = &connection->addresses.items[0];
	char text[INET6_ADDRSTRLEN];

	inet_ntop(first->is_ipv6 ? AF_INET6 : AF_INET, first->bytes, text, sizeof(text));
	record(connection, DENIAL_ADDRESS, text);
}

/* Dial the next address that may be; when there is none left, refuse. */
static void dial(struct connection *connection)
{
	struct gate_process *gate = connection->gate;

	close_watch(&connection->server);
	while (connection->next_address < connection->addresses.count) {
		const struct dns_address *address = &connection->addresses.items[connection->next_address++];
		bool is_last = connection->next_address == connection->addresses.count;
		union address to;
		socklen_t len = make_address(address, connection->port, &to);
		int fd;

		if (!may_be_dialled(connection, address))
			continue;
		connection->is_dialled = true;
		fd = socket(to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd < 0)
			continue;
		prepare(gate, fd, false);
		if ((connect(fd, &to.any, len) < 0 && errno != EINPROGRESS) ||
		    loop_add(gate->loop, &connection->server, fd, EPOLLOUT, on_server, connection) < 0) {
			close(fd);
			connection->server.fd = -1;
			continue;
		}
		connection->state = STATE_DIALLING;
		connection->deadline_ns = sys_monotonic_ns() + (is_last ? LAST_DIAL_NS : DIAL_NS);
		gate_want_tick(gate);
		return;
	}
	if (!connection->is_dialled && connection->addresses.count)
		record_address(connection);
	end(connection, true);
}

static void on_server(struct loop_watch *watch, uint32_t events)
{
	struct connection *connection = watch->owner;
	int error = 0;
	socklen_t len = sizeof(error);

	if (connection->is_dead)
		return;
	if (connection->state == STATE_RELAYING) {
		gate_relay_forget_if_gone(watch, events);
		pump(connection);
		return;
	}
	getsockopt(watch->fd, SOL_SOCKET, SO_ERROR, &error, &len);
	if (error)
		dial(connection);
	else
		start_relaying(connection);
}

/* --- resolving ---------------------------------------------------------------------------------------------- */

static void on_addresses(struct resolver_waiter *waiter, const struct dns_addresses *addresses)
{
	struct connection *connection = waiter->owner;

	connection->addresses = *addresses;
	dial(connection);
}

static void find_addresses(struct connection *connection)
{
	static const struct dns_addresses own = {
		.items = {{.bytes = {127, 0, 0, 1}}, {.is_ipv6 = true, .bytes = {[15] = 1}}}, .count = 2};
	bool is_known = true;

	connection->state = STATE_RESOLVING;
	connection->deadline_ns = 0;
	connection->counted = gate_account_host(connection->gate->page, connection->host, connection->port);
	if (connection->permit.kind == NET_RULE_HOST)
		connection->addresses = own;
	else if (connection->has_name)
		is_known = gate_resolver_ask(&connection->gate->resolver, connection->host, &connection->addresses,
					     &connection->waiter);
	if (is_known)
		dial(connection);
	else
		gate_want_tick(connection->gate);
}

/* --- first bytes -------------------------------------------------------------------------------------------- */

static bool is_web_port(uint16_t port)
{
	return port == 80 || port == 443;
}

/* Report whether the first bytes of a connection must name its host. */
static bool must_say(const struct connection *connection)
{
	return is_web_port(connection->port) || connection->is_inspected;
}

/* Look at what the client has sent, and leave it there. True: it may go on. */
static bool check_first_bytes(struct connection *connection)
{
	static uint8_t bytes[SNIFF_BYTES_MAX];
	ssize_t len = recv(connection->client.fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
	struct sniffed said;
	enum sniff found;
	bool is_named, must;

	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	must = must_say(connection) || connection->is_retried;
	/* It has closed, and there is nothing to pass on. */
	if (len <= 0 && !must) {
		connection->is_checked = true;
		return true;
	}
	if (len <= 0) {
		end(connection, len < 0);
		return false;
	}
	found = (connection->is_retried ? gate_sniff_second_hello : gate_sniff_first_bytes)(bytes, (size_t)len, &said);
	connection->is_tls = bytes[0] == TLS_FIRST_BYTE;
	/* It will not send more. */
	if (found == SNIFF_MORE && (size_t)len == connection->peeked)
		found = SNIFF_BAD;
	is_named = found == SNIFF_FOUND && said.name[0];
	if (found == SNIFF_FOUND &&
	    (strcmp(said.name, connection->host) != 0 || (said.port && said.port != connection->port)))
		found = SNIFF_BAD;
	if (found == SNIFF_BAD || (found == SNIFF_NONE && must)) {
		record(connection, is_named ? DENIAL_OTHER_NAME : DENIAL_NO_NAME, is_named ? said.name : NULL);
		end(connection, true);
		return false;
	}
	connection->is_checked = found != SNIFF_MORE;
	connection->peeked = connection->is_checked ? 0 : (size_t)len;
	if (connection->is_checked && said.hello_len && !connection->is_retried && !connection->is_inspected)
		connection->up.until = said.hello_len;
	/* Do not wake for the same bytes again. */
	set_number(connection->client.fd, SOL_SOCKET, SO_RCVLOWAT, connection->is_checked ? 1 : (int)len + 1);
	if (!connection->is_checked && !connection->deadline_ns)
		set_deadline(connection, SNIFF_NS);
	return connection->is_checked;
}

/* One that has closed without a word waits for nothing. */
static void on_waiting_client(struct connection *connection, uint32_t events)
{
	char byte;
	ssize_t len = recv(connection->client.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	if (events & (EPOLLERR | EPOLLHUP) || len == 0 || (len < 0 && errno != EAGAIN && errno != EINTR))
		end(connection, true);
	else if (len > 0)
		loop_change(&connection->client, 0);
}

static void on_client(struct loop_watch *watch, uint32_t events)
{
	struct connection *connection = watch->owner;

	if (connection->is_dead)
		return;
	if (connection->state == STATE_ASKING) {
		on_waiting_client(connection, events);
		return;
	}
	if (connection->state == STATE_SNIFFING) {
		if (check_first_bytes(connection)) {
			loop_change(watch, 0);
			find_addresses(connection);
		}
		return;
	}
	/* Reset before the relay began. */
	if (connection->state != STATE_RELAYING) {
		if (events & EPOLLERR)
			end(connection, true);
		else
			loop_remove(watch);
		return;
	}
	/* The jar's side reset it: there is nothing left to relay. */
	if (events & EPOLLERR) {
		/* The last bytes may carry the cause. */
		if (connection->inspection)
			pump(connection);
		end(connection, true);
		return;
	}
	if (!connection->is_checked && events & EPOLLIN && !check_first_bytes(connection))
		return;
	if (connection->is_checked && !connection->up.is_resting)
		connection->deadline_ns = 0;
	gate_relay_forget_if_gone(watch, events);
	pump(connection);
}

/* --- accepting ---------------------------------------------------------------------------------------------- */

/* Never ask about loopback or metadata addresses, nor about made-up addresses that stand for no name. */
static bool may_be_asked_about(const struct connection *connection)
{
	const struct dns_address *address = &connection->addresses.items[0];
	uint32_t number;

	if (connection->has_name)
		return strcmp(connection->host, NET_HOST_NAME) != 0;
	memcpy(&number, address->bytes, sizeof(number));
	if (!address->is_ipv6 && (ntohl(number) ^ GATE_NAMES_ADDRESS) >> (32 - GATE_NAMES_PREFIX) == 0)
		return false;
	return policy_address_place(address->is_ipv6, address->bytes).kind != ADDRESS_SPECIAL;
}

static void ask(struct connection *connection)
{
	const struct dns_address *address = &connection->addresses.items[0];
	struct net_rule rule = {.kind = connection->has_name ? NET_RULE_NAME : NET_RULE_ADDRESS,
				.ports = {{connection->port, connection->port}},
				.port_count = 1};

	if (!may_be_asked_about(connection))
		return;
	if (connection->has_name) {
		snprintf(rule.name, sizeof(rule.name), "%s", connection->host);
	} else {
		rule.is_ipv6 = address->is_ipv6;
		rule.prefix_len = address->is_ipv6 ? 128 : 32;
		memcpy(rule.address, address->bytes, address->is_ipv6 ? 16 : 4);
	}
	connection->permit = (struct address_permit){.kind = rule.kind};
	connection->question = gate_ask_about(connection->gate, &rule);
}

/* Find the host of a connection by its destination address, and apply the rules. False: refuse it. */
static bool identify(struct connection *connection, const union address *to)
{
	struct gate_process *gate = connection->gate;
	bool is_ipv6 = to->any.sa_family == AF_INET6;
	const uint8_t *bytes = is_ipv6 ? to->ipv6.sin6_addr.s6_addr : (const uint8_t *)&to->ipv4.sin_addr.s_addr;
	struct net_verdict verdict;
	const char *name = is_ipv6 ? NULL : gate_names_find(gate, ntohl(to->ipv4.sin_addr.s_addr));

	connection->port = ntohs(is_ipv6 ? to->ipv6.sin6_port : to->ipv4.sin_port);
	connection->has_name = name;
	if (name) {
		connection->host = name;
		verdict = gate_rules_decide_name(gate, name, connection->port);
	} else {
		inet_ntop(to->any.sa_family, bytes, connection->text, sizeof(connection->text));
		connection->host = connection->text;
		connection->addresses.count = 1;
		connection->addresses.items[0].is_ipv6 = is_ipv6;
		memcpy(connection->addresses.items[0].bytes, bytes, is_ipv6 ? 16 : 4);
		verdict = gate_rules_decide_address(gate, is_ipv6, bytes, connection->port);
		/* Addresses have no name to compare with. */
		connection->is_checked = true;
	}
	if (verdict.is_allowed)
		connection->permit = (struct address_permit){verdict.rule->kind, verdict.rule->may_be_private};
	else if (!verdict.rule)
		ask(connection);
	/* gate_attempts.c records most refusals. Record those that it cannot see, or that could have been asked about. */
	if (!verdict.is_allowed && !connection->question &&
	    ((gate->page->may_ask && !verdict.rule) || !(is_ipv6 ? gate->sees_ipv6 : gate->sees_ipv4)))
		record(connection, DENIAL_BY_RULE, NULL);
	connection->is_inspected = verdict.is_allowed && name &&
				   (verdict.rule->is_inspected || (is_web_port(connection->port) && gate->inspector &&
								   gate->inspector->has_secret(gate->inspector, name)));
	/* Refuse a connection that needs inspection if there is no inspector. */
	return connection->question || (verdict.is_allowed && (!connection->is_inspected || gate->inspector));
}

static void begin(struct connection *connection)
{
	if (connection->question) {
		connection->state = STATE_ASKING;
		loop_change(&connection->client, EPOLLRDHUP);
		return;
	}
	connection->state = STATE_SNIFFING;
	if (connection->has_name && must_say(connection)) {
		set_deadline(connection, SNIFF_NS);
		loop_change(&connection->client, EPOLLIN);
		return;
	}
	loop_change(&connection->client, 0);
	find_addresses(connection);
}

static void take(struct gate_process *gate, int fd)
{
	struct connection *connection;
	union address to = {0};
	socklen_t len = sizeof(to);

	if (gate->connection_count >= gate->page->connections_max) {
		gate->page->connections_refused++;
		gate_notify(gate);
		reset(fd);
		close(fd);
		return;
	}
	connection = calloc(1, sizeof(*connection));
	if (!connection || getsockname(fd, &to.any, &len) < 0) {
		free(connection);
		reset(fd);
		close(fd);
		return;
	}
	connection->gate = gate;
	connection->server.fd = -1;
	connection->waiter.function = on_addresses;
	connection->waiter.owner = connection;
	gate_relay_half_init(&connection->up);
	gate_relay_half_init(&connection->down);
	if (!identify(connection, &to) || loop_add(gate->loop, &connection->client, fd, 0, on_client, connection) < 0) {
		if (connection->question)
			gate_ask_leave(gate, connection->question);
		reset(fd);
		close(fd);
		free(connection);
		return;
	}
	prepare(gate, fd, true);
	connection->next = gate->connections;
	if (connection->next)
		connection->next->previous = connection;
	gate->connections = connection;
	gate->connection_count++;
	if (gate->page->connections_peak < gate->connection_count)
		gate->page->connections_peak = gate->connection_count;
	begin(connection);
}

void gate_connection_on_listener(struct loop_watch *watch, uint32_t events)
{
	struct gate_process *gate = watch->owner;

	(void)events;
	for (size_t i = 0; i < ACCEPTS_PER_TURN && watch->loop; i++) {
		int fd;

		if (gate->connection_count >= gate->connection_room) {
			gate_pause(gate, true);
			return;
		}
		fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0) {
			if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
				gate_pause(gate, true);
			return;
		}
		take(gate, fd);
	}
}

/* --- time, and the end -------------------------------------------------------------------------------------- */

bool gate_connection_check_time(struct gate_process *gate, uint64_t now_ns)
{
	struct connection *next;
	bool has_deadlines = false;

	for (struct connection *connection = gate->connections; connection; connection = next) {
		next = connection->next;
		if (connection->is_stopped) {
			has_deadlines = true;
			if (gate_account_room(gate->page))
				end(connection, true);
			continue;
		}
		if (connection->state == STATE_RELAYING && (connection->up.is_starved || connection->down.is_starved)) {
			connection->up.is_starved = connection->down.is_starved = false;
			pump(connection);
			continue;
		}
		has_deadlines |= connection->deadline_ns != 0;
		if (!connection->deadline_ns || now_ns < connection->deadline_ns)
			continue;
		if (connection->state == STATE_DIALLING) {
			dial(connection);
			continue;
		}
		if (connection->inspection) {
			pump(connection);
			continue;
		}
		if (connection->state == STATE_SNIFFING || !connection->is_checked)
			record(connection, DENIAL_NO_NAME, NULL);
		end(connection, true);
	}
	return has_deadlines;
}

void gate_connection_answer(struct gate_process *gate, const struct question *question, bool is_allowed)
{
	struct connection *next;

	for (struct connection *connection = gate->connections; connection; connection = next) {
		next = connection->next;
		if (connection->question != question)
			continue;
		connection->question = NULL;
		connection->is_answered = true;
		if (is_allowed) {
			begin(connection);
		} else {
			record(connection, DENIAL_ANSWER, NULL);
			end(connection, true);
		}
	}
}

/* By its name, or by the address that it was made to, or is dialled to. */
static bool is_denied(const struct connection *connection)
{
	const struct dns_address *address = NULL;
	struct net_verdict verdict = {0};

	if (connection->has_name)
		verdict = gate_rules_decide_name(connection->gate, connection->host, connection->port);
	if (verdict.rule && verdict.rule->is_deny)
		return true;
	if (!connection->has_name)
		address = &connection->addresses.items[0];
	else if (connection->state >= STATE_DIALLING && connection->permit.kind != NET_RULE_HOST)
		address = &connection->addresses.items[connection->next_address - 1];
	if (address)
		verdict =
			gate_rules_decide_address(connection->gate, address->is_ipv6, address->bytes, connection->port);
	return address && verdict.rule && verdict.rule->is_deny;
}

void gate_connection_check_rules(struct gate_process *gate)
{
	struct connection *next;

	for (struct connection *connection = gate->connections; connection; connection = next) {
		next = connection->next;
		if (is_denied(connection)) {
			record(connection, DENIAL_BY_RULE, NULL);
			end(connection, true);
		}
	}
}

void gate_connection_drain(struct gate_process *gate)
{
	struct connection *next;

	for (struct connection *connection = gate->connections; connection; connection = next) {
		next = connection->next;
		if (connection->state == STATE_RELAYING && !connection->is_stopped)
			pump(connection);
		else if (connection->state == STATE_SNIFFING && check_first_bytes(connection))
			find_addresses(connection);
		else if (connection->state <= STATE_SNIFFING || connection->is_stopped)
			end(connection, true);
	}
}
