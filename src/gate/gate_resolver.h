/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/gate_resolver.h - find the addresses of a name, without waiting for anybody
 *
 * The host's /etc/hosts, then the name servers of its resolv.conf, both as they were when the gate started. The C library's
 * own resolver would block the loop and needs files.
 */
#ifndef BELLJAR_GATE_GATE_RESOLVER_H
#define BELLJAR_GATE_GATE_RESOLVER_H

#include <netinet/in.h>

#include "base/loop.h"
#include "gate/gate_dns.h"

#define RESOLVER_SERVERS_MAX 3
#define RESOLVER_CACHE_MAX 128
#define RESOLVER_LOOKUPS_MAX 256
#define RESOLVER_HOSTS_MAX 1024

struct lookup;

/* Somebody who waits for a name's addresses. */
struct resolver_waiter {
	struct resolver_waiter *next;
	struct lookup *lookup; /* NULL: it does not wait */
	/* @addresses may have none. Called from within the loop. */
	void (*function)(struct resolver_waiter *waiter, const struct dns_addresses *addresses);
	void *owner;
};

struct resolver_server {
	union {
		struct sockaddr any;
		struct sockaddr_in ipv4;
		struct sockaddr_in6 ipv6;
	};
	socklen_t len;
};

struct resolver_entry {
	char name[NET_NAME_SIZE];
	struct dns_address address;
};

LIST_TYPE(struct resolver_entry, resolver_hosts);

struct resolver_cached {
	char name[NET_NAME_SIZE];
	struct dns_addresses addresses;
	uint64_t until_ns;
};

struct resolver {
	struct loop *loop;
	struct resolver_server servers[RESOLVER_SERVERS_MAX];
	size_t server_count;
	struct resolver_hosts hosts;
	struct resolver_cached *cache; /* RESOLVER_CACHE_MAX of them */
	size_t next_cached;
	struct lookup *lookups;
	size_t lookup_count;
};

/* Read what the host says of names. 0 or -ENOMEM: what cannot be read is not there. */
int resolver_init(struct resolver *resolver, struct loop *loop);
/* Parts of it, for tests. */
void resolver_read_hosts(struct resolver *resolver, const char *text);
void resolver_read_configuration(struct resolver *resolver, const char *text);

/*
 * Find @name. True: *@out has its addresses, of which there may be none. False: @waiter, whose function and owner are set, will
 * be told.
 */
bool resolver_ask(struct resolver *resolver, const char *name, struct dns_addresses *out,
		  struct resolver_waiter *waiter);
void resolver_forget(struct resolver_waiter *waiter);
/* Ask the next server where one has not answered in time. True: somebody still waits. */
bool resolver_check_time(struct resolver *resolver, uint64_t now_ns);

#endif
