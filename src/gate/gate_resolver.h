/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/gate_resolver.h - find the addresses of a name, without blocking
 *
 * The host's /etc/hosts first, then the name servers of its resolv.conf. The engine reads these files: if they were
 * read more than a second ago, a lookup waits for a new read. The C library's resolver would block the loop, and needs
 * files.
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

/* A caller that waits for a name's addresses. */
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

struct resolver_servers {
	struct resolver_server items[RESOLVER_SERVERS_MAX];
	size_t count; /* at least one, once they are read */
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
	struct resolver_servers servers;
	struct resolver_hosts hosts;
	struct resolver_cached *cache; /* RESOLVER_CACHE_MAX of them */
	size_t next_cached;
	struct lookup *lookups;
	size_t lookup_count;
	/* Have the host's files read; gate_resolver_take_files() follows. NULL: never read them again. */
	void (*refresh)(void *owner);
	void *owner;
	uint64_t fresh_until_ns;
	bool is_refreshing;
};

/* 0 or -ENOMEM. */
int gate_resolver_init(struct resolver *resolver, struct loop *loop);
/* Take the text of /etc/hosts and the name servers. Continue lookups that wait for the host's files. */
void gate_resolver_take_files(struct resolver *resolver, const char *hosts, const struct resolver_servers *servers);
/* gate_resolver_files.c */
void gate_resolver_read_hosts(struct resolver *resolver, const char *text);
/* Parse /etc/resolv.conf. A server's address may name an interface, so call this in the host's network. */
void gate_resolver_read_configuration(const char *text, struct resolver_servers *out);

/*
 * Find @name. True: *@out has its addresses, maybe none. False: @waiter's function is called later; the caller has set
 * it and the owner.
 */
bool gate_resolver_ask(struct resolver *resolver, const char *name, struct dns_addresses *out,
		       struct resolver_waiter *waiter);
void gate_resolver_forget(struct resolver_waiter *waiter);
/* Ask the next server if one has not answered in time. True: a lookup still waits. */
bool gate_resolver_check_time(struct resolver *resolver, uint64_t now_ns);

#endif
