/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/gate_process.h - what the files of a gate's process share
 *
 * One thread, one loop. The engine gave the process sockets of the jar's network; sockets of the host's network it
 * makes itself. It passes no socket on. It reads all files that it needs before gate_put_up_walls() takes file access
 * away.
 */
#ifndef BELLJAR_GATE_GATE_PROCESS_H
#define BELLJAR_GATE_GATE_PROCESS_H

#include "base/loop.h"
#include "gate/gate_dns.h"
#include "gate/gate_message.h"
#include "gate/gate_page.h"
#include "gate/gate_resolver.h"

#define GATE_NAMES_MAX 4096
/* Rules that came while the jar lives. */
#define GATE_LATER_MAX 1024
/* Questions that wait for an answer at once, and connections that wait for one. */
#define GATE_QUESTIONS_MAX 16
#define GATE_ASKING_MAX 1024
#define GATE_LISTENERS_MAX 64
#define GATE_PIPES_MAX 64
#define GATE_DNS_STREAMS_MAX 64

struct connection;
struct dns_stream;
struct later_rule;
struct gate_process;
struct question;
struct visitor;

struct gate_pipe {
	int read_fd, write_fd; /* -1: none */
};

/* --- inspected connections: only belljar-gate has them (gate/inspect/) --- */

struct inspection;

/* The connection to inspect. It keeps both sockets. */
struct gate_inspected {
	int client_fd, server_fd;
	const char *host;
	uint16_t port;
	bool is_tls;
	struct gate_host *counted; /* may be NULL */
};

struct gate_inspection_wants {
	uint32_t client_events, server_events;
	uint64_t deadline_ns; /* call again then, at the latest; 0: no deadline */
};

struct gate_inspection_methods {
	struct inspection *(*start)(struct gate_process *gate, const struct gate_inspected *what); /* NULL: it cannot */
	/* Work without blocking: 0, 1 if all is done, -EDQUOT if the byte limit is reached, else it is broken. */
	int (*pump)(struct inspection *inspection, struct gate_inspection_wants *wants);
	void (*free)(struct inspection *inspection);
};

struct gate_inspector {
	const struct gate_inspection_methods *methods;
	/* Read the vault, before the walls are up. 0 or a negative errno. */
	int (*begin)(struct gate_inspector *inspector, int vault_fd);
	/* Report whether a secret is for this host. Then connections to it are inspected under any rule. */
	bool (*has_secret)(const struct gate_inspector *inspector, const char *host);
	void *state;
};

/* Where sockets of the jar's network are made, of one family: gate_publish.c. */
struct gate_nursery {
	struct loop_watch listener; /* its loop is NULL: the jar has none */
	int dialler_fd;
	bool is_busy;
};

struct gate_process {
	struct loop *loop;
	struct gate_inspector *inspector; /* NULL: refuse connections that need inspection */
	struct gate_page *page;
	struct net_rule_list rules; /* those of the page */
	struct later_rule *later;   /* gate_rules.c */
	size_t later_count;
	uint64_t later_order;
	struct resolver resolver;
	struct loop_watch control;
	struct loop_watch listeners[GATE_LISTENERS_MAX];
	size_t listener_count;
	bool is_paused; /* nothing is accepted: there is no room */
	/* A raw socket sees every attempt of this family; then the accepting code need not record refusals. */
	bool sees_ipv4, sees_ipv6;
	char *names[GATE_NAMES_MAX];
	size_t name_count;
	struct connection *connections;
	size_t connection_count, connection_room;
	struct question *questions;
	size_t question_count, asking_count; /* of those, and of connections that wait for an answer */
	uint32_t last_question;
	size_t asked_name_count; /* names that have an address though no rule allows them */
	struct connection *dead; /* freed when no callback can have them any more */
	struct dns_stream *streams;
	size_t stream_count;
	struct gate_nursery nurseries[2];     /* IPv4, IPv6 */
	struct loop_watch doors[PUBLISH_MAX]; /* listeners of the host's */
	size_t door_count;
	bool are_doors_shut;      /* there is no room for visitors */
	struct visitor *visitors; /* youngest first */
	size_t visitor_count, visitor_room;
	struct visitor *dead_visitors;
	struct gate_pipe pipes[GATE_PIPES_MAX]; /* empty ones, for the next connection with bytes to move */
	size_t pipe_count;
	struct loop_timer tick;
	uint64_t drain_until_ns; /* 0: the jar lives */
};

/* gate_ask.c */
/* Report whether the gate can ask about hosts now. */
bool gate_ask_is_possible(const struct gate_process *gate);
/* Add a connection to those that wait for the answer about @rule, which is exact. NULL: refuse it. */
struct question *gate_ask_about(struct gate_process *gate, const struct net_rule *rule);
/* Remove a connection from those that wait. */
void gate_ask_leave(struct gate_process *gate, struct question *question);
void gate_ask_take_answer(struct gate_process *gate, const struct gate_message *message);
/* Withdraw questions that the changed rules decide. */
void gate_ask_check_rules(struct gate_process *gate);
/* End questions whose time is over. True: a question still waits. */
bool gate_ask_check_time(struct gate_process *gate, uint64_t now_ns);

/* gate_names.c: make the address that stands for a name; 0: too many. And back; NULL: it stands for no name. */
uint32_t gate_names_address(struct gate_process *gate, const char *name);
/* The same for a name that no rule allows yet; these have a lower maximum. */
uint32_t gate_names_address_to_ask(struct gate_process *gate, const char *name);
const char *gate_names_find(const struct gate_process *gate, uint32_t address);

/* gate_rules.c */
/* Add a rule that wins over earlier ones, as long as @run goes on; 0: as long as the jar. Returns 0, or -ENOSPC. */
int gate_rules_add(struct gate_process *gate, const struct net_rule *rule, uint32_t run);
/* Decide about the one host and port that @rule names. */
struct net_verdict gate_rules_decide(const struct gate_process *gate, const struct net_rule *rule);
/* As net_decide_name() and net_decide_address(). The rule pointer is valid until the next gate_rules_add(). */
struct net_verdict gate_rules_decide_name(const struct gate_process *gate, const char *name, uint16_t port);
struct net_verdict gate_rules_decide_address(const struct gate_process *gate, bool is_ipv6, const uint8_t *address,
					     uint16_t port);
struct net_verdict gate_rules_decide_request(const struct gate_process *gate, const char *name, uint16_t port,
					     const char *method, const char *target);

/* gate_answer.c: questions of the jar's, by datagram and by stream. */
void gate_answer_on_datagram(struct loop_watch *watch, uint32_t events);
void gate_answer_on_stream(struct loop_watch *watch, uint32_t events);
void gate_answer_check_time(struct gate_process *gate, uint64_t now_ns);

/* gate_account.c */
/* Find or add the row of a host and port; NULL: there are too many of them. */
struct gate_host *gate_account_host(struct gate_page *page, const char *host, uint16_t port);
/* Return how many more bytes the jar may send and receive. */
uint64_t gate_account_room(const struct gate_page *page);
void gate_account_add(struct gate_page *page, struct gate_host *host, bool is_out, uint64_t bytes);

struct refusal {
	enum denial_kind kind;
	enum denial_reason reason;
	const char *host;
	uint16_t port;
	const char *detail; /* NULL: there is none */
	bool is_twin;       /* usually the second half of another attempt: not counted if that was recorded */
};

/* Record a refusal. Notify the engine if it does not know of it. */
void gate_account_refusal(struct gate_process *gate, const struct refusal *refusal);

/* gate_attempts.c: connections and datagrams that the kernel refuses, because no process listens there. */
void gate_attempts_on_packet(struct loop_watch *watch, uint32_t events);
/* True: @fd is a raw socket for this; attach its filter. */
bool gate_attempts_prepare(struct gate_process *gate, int fd);
/* Read all pending packets, before the gate ends. */
void gate_attempts_drain(struct gate_process *gate);

/* gate_connection.c */
void gate_connection_on_listener(struct loop_watch *watch, uint32_t events);
/* End connections whose time is over. True: one has a deadline, or waits for another change. */
bool gate_connection_check_time(struct gate_process *gate, uint64_t now_ns);
/* Give the answer to the connections that wait for @question. */
void gate_connection_answer(struct gate_process *gate, const struct question *question, bool is_allowed);
/* Reset connections that the changed rules deny. */
void gate_connection_check_rules(struct gate_process *gate);
/* The jar is gone: deliver only what it has sent, then end. */
void gate_connection_drain(struct gate_process *gate);
void gate_connection_sweep(struct gate_process *gate);

/* gate_publish.c: from the host to servers of the jar's. */
/* Take a socket of the jar's network that makes sockets for publishing. False: @fd is another socket. */
bool gate_publish_take_socket(struct gate_process *gate, int fd);
/* Take the host's listeners, from @first_fd on. 0 or a negative errno. */
int gate_publish_begin(struct gate_process *gate, int first_fd);
bool gate_publish_check_time(struct gate_process *gate, uint64_t now_ns);
void gate_publish_drain(struct gate_process *gate);
void gate_publish_sweep(struct gate_process *gate);

/* gate_main.c */
/* Start the tick timer, because something has a deadline now. */
void gate_want_tick(struct gate_process *gate);
/* Send the engine a message; drop it if the engine does not read. */
void gate_tell(const struct gate_message *message);
/* Have the engine look at the page. */
void gate_notify(struct gate_process *gate);
/* Stop accepting connections, or accept them again. */
void gate_pause(struct gate_process *gate, bool is_paused);
/* No bytes are left: notify the engine, which ends the run. */
void gate_shut(struct gate_process *gate);

/* gate_walls.c: 0 or a negative errno. */
int gate_put_up_walls(const struct gate_page *page, bool is_inspecting);

#endif
