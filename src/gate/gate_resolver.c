/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/gate_resolver.c - find the addresses of a name, without blocking
 *
 *   asked ──► waiting for the host's files ──► by datagram ──► by stream, where the answer was cut short ──► finished
 *               (if they were read long ago)      └── no answer, or a failure: the next server ───────┘
 *
 * Each attempt has a socket of its own, connected to one server. So the kernel drops answers from any other sender,
 * and the port is as hard to guess as the number of the question.
 */
#include "gate/gate_resolver.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/sys/calls.h"

#define ATTEMPT_NS 2000000000ULL
/* After one of the two kinds of addresses has come, wait this long for the other. */
#define OTHER_KIND_NS 300000000ULL
#define ATTEMPTS_OF_EACH 2
#define KINDS 2
#define FAILURE_KEPT_NS 1000000000ULL
/* The gate asks for the host's files again when they are older than this, */
#define FRESH_NS 1000000000ULL
/* and a lookup waits this long for them. */
#define REFRESH_NS 1000000000ULL
#define STREAM_BYTES_MAX (2 + 65535)

static const uint16_t kinds[KINDS] = {DNS_TYPE_A, DNS_TYPE_AAAA};

struct lookup {
	struct resolver *resolver;
	struct lookup *next;
	char name[NET_NAME_SIZE];
	struct resolver_waiter *waiters;
	struct loop_watch watch;
	int fd;
	uint8_t *stream; /* what has come; NULL: it is asked by datagram */
	size_t stream_len;
	bool is_sent; /* to the stream */
	uint16_t ids[KINDS];
	bool is_answered[KINDS];
	bool has_failed;   /* a server that cannot help */
	bool is_cut;       /* there is more than a datagram can hold */
	unsigned attempts; /* 0: it waits for the host's files */
	uint64_t deadline_ns;
	struct dns_addresses found[KINDS];
};

/* --- what is known ------------------------------------------------------------------------------------------ */

static bool find_in_hosts(const struct resolver *resolver, const char *name, struct dns_addresses *out)
{
	*out = (struct dns_addresses){0};
	for (size_t i = 0; i < resolver->hosts.count && out->count < DNS_ADDRESSES_MAX; i++)
		if (!strcmp(resolver->hosts.items[i].name, name))
			out->items[out->count++] = resolver->hosts.items[i].address;
	return out->count;
}

static bool find_in_cache(const struct resolver *resolver, const char *name, struct dns_addresses *out)
{
	for (size_t i = 0; i < RESOLVER_CACHE_MAX; i++) {
		const struct resolver_cached *cached = &resolver->cache[i];

		if (cached->until_ns && !strcmp(cached->name, name) && sys_monotonic_ns() < cached->until_ns) {
			*out = cached->addresses;
			return true;
		}
	}
	return false;
}

static void keep(struct resolver *resolver, const char *name, const struct dns_addresses *addresses)
{
	struct resolver_cached *cached = &resolver->cache[resolver->next_cached++ % RESOLVER_CACHE_MAX];

	for (size_t i = 0; i < RESOLVER_CACHE_MAX; i++)
		if (!strcmp(resolver->cache[i].name, name))
			resolver->cache[i].until_ns = 0;
	memcpy(cached->name, name, sizeof(cached->name));
	cached->addresses = *addresses;
	cached->until_ns = sys_monotonic_ns() + MAX_OF(addresses->ttl_s * 1000000000ULL, FAILURE_KEPT_NS);
}

/* --- the end of a lookup ------------------------------------------------------------------------------------ */

static void close_socket(struct lookup *lookup)
{
	loop_remove(&lookup->watch);
	close_fd(&lookup->fd);
	free(lookup->stream);
	lookup->stream = NULL;
	lookup->stream_len = 0;
}

static void finish_with(struct lookup *lookup, const struct dns_addresses *addresses)
{
	struct resolver *resolver = lookup->resolver;
	struct resolver_waiter *waiter;

	for (struct lookup **at = &resolver->lookups; *at; at = &(*at)->next) {
		if (*at == lookup) {
			*at = lookup->next;
			break;
		}
	}
	resolver->lookup_count--;
	close_socket(lookup);
	while ((waiter = lookup->waiters)) {
		lookup->waiters = waiter->next;
		waiter->lookup = NULL;
		waiter->function(waiter, addresses);
	}
	free(lookup);
}

/* IPv4 first: it works in more places. */
static void gather(const struct lookup *lookup, struct dns_addresses *out)
{
	*out = (struct dns_addresses){.ttl_s = UINT32_MAX};
	for (size_t kind = 0; kind < KINDS; kind++) {
		for (size_t i = 0; i < lookup->found[kind].count && out->count < DNS_ADDRESSES_MAX; i++)
			out->items[out->count++] = lookup->found[kind].items[i];
		if (lookup->found[kind].count)
			out->ttl_s = MIN_OF(out->ttl_s, lookup->found[kind].ttl_s);
	}
	if (!out->count)
		out->ttl_s = 0;
}

static void finish(struct lookup *lookup)
{
	struct dns_addresses addresses;

	gather(lookup, &addresses);
	keep(lookup->resolver, lookup->name, &addresses);
	finish_with(lookup, &addresses);
}

/* --- asking ------------------------------------------------------------------------------------------------- */

static void attempt(struct lookup *lookup);

/* End the lookup if both kinds are answered, or no server is left. True: it is over, and @lookup is freed. */
static bool go_on(struct lookup *lookup)
{
	bool has_some = lookup->found[0].count || lookup->found[1].count;

	if (lookup->is_answered[0] && lookup->is_answered[1] && (has_some || !lookup->has_failed)) {
		finish(lookup);
		return true;
	}
	if (lookup->has_failed && !has_some && lookup->is_answered[0] && lookup->is_answered[1]) {
		attempt(lookup);
		return true; /* it may be over by now */
	}
	/* What a stream completes is not the other kind. */
	if (has_some && !lookup->stream)
		lookup->deadline_ns = MIN_OF(lookup->deadline_ns, sys_monotonic_ns() + OTHER_KIND_NS);
	return false;
}

/* This server says no more. What it has said counts, also the part of an answer. */
static void give_up_server(struct lookup *lookup)
{
	lookup->has_failed = true;
	lookup->is_answered[0] = lookup->is_answered[1] = true;
}

static int send_questions(struct lookup *lookup)
{
	uint8_t message[2 + DNS_MESSAGE_MAX];

	for (size_t kind = 0; kind < KINDS; kind++) {
		size_t len = gate_dns_write_query(lookup->ids[kind], lookup->name, kinds[kind], message + 2);
		const void *from = message + 2;

		if (lookup->is_answered[kind])
			continue;
		if (lookup->stream) {
			message[0] = (uint8_t)(len >> 8);
			message[1] = (uint8_t)len;
			from = message;
			len += 2;
		}
		if (send(lookup->fd, from, len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			return -errno;
	}
	return 0;
}

static void take_message(struct lookup *lookup, const uint8_t *message, size_t len)
{
	for (size_t kind = 0; kind < KINDS; kind++) {
		struct dns_addresses found = {0};
		unsigned code = 0;

		if (lookup->is_answered[kind] ||
		    !gate_dns_read_answer(message, len, lookup->ids[kind], lookup->name, kinds[kind], &found, &code))
			continue;
		lookup->found[kind] = found;
		if (!lookup->stream && gate_dns_is_cut(message, len)) {
			lookup->is_cut = true;
			continue;
		}
		lookup->is_answered[kind] = true;
		lookup->has_failed |= code && code != DNS_NO_SUCH_NAME;
	}
}

/* Messages of a stream have their length before them. */
static void take_stream(struct lookup *lookup)
{
	for (;;) {
		size_t len = lookup->stream_len < 2 ? 0 : (size_t)lookup->stream[0] << 8 | lookup->stream[1];

		if (lookup->stream_len < 2 || lookup->stream_len < 2 + len)
			return;
		take_message(lookup, lookup->stream + 2, len);
		lookup->stream_len -= 2 + len;
		memmove(lookup->stream, lookup->stream + 2 + len, lookup->stream_len);
	}
}

static void on_stream(struct loop_watch *watch, uint32_t events)
{
	struct lookup *lookup = watch->owner;
	ssize_t len = -1;

	(void)events;
	errno = EAGAIN;
	if (lookup->is_sent) {
		len = recv(lookup->fd, lookup->stream + lookup->stream_len, STREAM_BYTES_MAX - lookup->stream_len,
			   MSG_DONTWAIT);
	} else if (send_questions(lookup) == 0) {
		/* It is connected. */
		lookup->is_sent = true;
		loop_change(watch, EPOLLIN);
	}
	if (len > 0) {
		lookup->stream_len += (size_t)len;
		take_stream(lookup);
	}
	if (len == 0 || (len < 0 && errno != EAGAIN && errno != EINTR))
		give_up_server(lookup);
	go_on(lookup);
}

static int ask_by_stream(struct lookup *lookup, const struct resolver_server *server)
{
	close_socket(lookup);
	lookup->is_sent = false;
	lookup->deadline_ns = sys_monotonic_ns() + ATTEMPT_NS;
	lookup->stream = malloc(STREAM_BYTES_MAX);
	lookup->fd = socket(server->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (!lookup->stream || lookup->fd < 0)
		return -ENOMEM;
	if (connect(lookup->fd, &server->any, server->len) < 0 && errno != EINPROGRESS)
		return -errno;
	return loop_add(lookup->resolver->loop, &lookup->watch, lookup->fd, EPOLLOUT, on_stream, lookup);
}

static const struct resolver_server *server_of(const struct resolver *resolver, unsigned attempts)
{
	return &resolver->servers.items[attempts % resolver->servers.count];
}

static void on_datagram(struct loop_watch *watch, uint32_t events)
{
	struct lookup *lookup = watch->owner;
	uint8_t message[DNS_MESSAGE_MAX];
	ssize_t len;

	(void)events;
	while ((len = recv(lookup->fd, message, sizeof(message), MSG_DONTWAIT)) > 0)
		take_message(lookup, message, (size_t)len);
	/* No server listens there: ask the next one at once. */
	if (len < 0 && errno != EAGAIN && errno != EINTR)
		give_up_server(lookup);
	else if (lookup->is_cut && ask_by_stream(lookup, server_of(lookup->resolver, lookup->attempts - 1)) < 0)
		give_up_server(lookup);
	go_on(lookup);
}

static void attempt(struct lookup *lookup)
{
	struct resolver *resolver = lookup->resolver;

	while (lookup->attempts < resolver->servers.count * ATTEMPTS_OF_EACH) {
		const struct resolver_server *server = server_of(resolver, lookup->attempts++);

		close_socket(lookup);
		lookup->is_answered[0] = lookup->is_answered[1] = lookup->has_failed = lookup->is_cut = false;
		lookup->found[0].count = lookup->found[1].count = 0;
		lookup->deadline_ns = sys_monotonic_ns() + ATTEMPT_NS;
		lookup->fd = socket(server->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (lookup->fd >= 0 && connect(lookup->fd, &server->any, server->len) == 0 &&
		    getrandom(lookup->ids, sizeof(lookup->ids), 0) == sizeof(lookup->ids) &&
		    send_questions(lookup) == 0 &&
		    loop_add(resolver->loop, &lookup->watch, lookup->fd, EPOLLIN, on_datagram, lookup) == 0)
			return;
	}
	finish(lookup);
}

/* Begin a lookup with the host's files as they are now. It may be over then, and freed. */
static void begin(struct lookup *lookup)
{
	struct dns_addresses known;

	lookup->attempts = 0;
	if (find_in_hosts(lookup->resolver, lookup->name, &known) ||
	    find_in_cache(lookup->resolver, lookup->name, &known))
		finish_with(lookup, &known);
	else
		attempt(lookup);
}

/* --- the host's files --------------------------------------------------------------------------------------- */

int gate_resolver_init(struct resolver *resolver, struct loop *loop)
{
	*resolver = (struct resolver){.loop = loop};
	resolver->cache = calloc(RESOLVER_CACHE_MAX, sizeof(*resolver->cache));
	return resolver->cache ? 0 : -ENOMEM;
}

/* They are to be read again, before anything is found by them. */
static bool is_stale(const struct resolver *resolver)
{
	return resolver->refresh && sys_monotonic_ns() >= resolver->fresh_until_ns;
}

void gate_resolver_take_files(struct resolver *resolver, const char *hosts, const struct resolver_servers *servers)
{
	bool is_changed = memcmp(&resolver->servers, servers, sizeof(*servers)) != 0;
	struct lookup *next;

	gate_resolver_read_hosts(resolver, hosts);
	resolver->servers = *servers;
	resolver->fresh_until_ns = sys_monotonic_ns() + FRESH_NS;
	resolver->is_refreshing = false;
	/* Another network: what was found in the one before need not hold in it. */
	for (size_t i = 0; is_changed && i < RESOLVER_CACHE_MAX; i++)
		resolver->cache[i].until_ns = 0;
	for (struct lookup *lookup = resolver->lookups; lookup; lookup = next) {
		next = lookup->next;
		if (is_changed || !lookup->attempts)
			begin(lookup);
	}
}

static void wait_for_files(struct lookup *lookup)
{
	struct resolver *resolver = lookup->resolver;

	lookup->deadline_ns = sys_monotonic_ns() + REFRESH_NS;
	if (resolver->is_refreshing)
		return;
	resolver->is_refreshing = true;
	resolver->refresh(resolver->owner);
}

/* --- waiters ------------------------------------------------------------------------------------------------ */

static struct lookup *find_lookup(const struct resolver *resolver, const char *name)
{
	struct lookup *lookup = resolver->lookups;

	while (lookup && strcmp(lookup->name, name) != 0)
		lookup = lookup->next;
	return lookup;
}

static void wait_for(struct lookup *lookup, struct resolver_waiter *waiter)
{
	waiter->lookup = lookup;
	waiter->next = lookup->waiters;
	lookup->waiters = waiter;
}

bool gate_resolver_ask(struct resolver *resolver, const char *name, struct dns_addresses *out,
		       struct resolver_waiter *waiter)
{
	bool must_wait = is_stale(resolver);
	struct lookup *lookup;

	if (!must_wait && (find_in_hosts(resolver, name, out) || find_in_cache(resolver, name, out)))
		return true;
	lookup = find_lookup(resolver, name);
	if (lookup) {
		wait_for(lookup, waiter);
		return false;
	}
	*out = (struct dns_addresses){0};
	lookup = resolver->lookup_count < RESOLVER_LOOKUPS_MAX ? calloc(1, sizeof(*lookup)) : NULL;
	if (!lookup)
		return true;
	lookup->resolver = resolver;
	lookup->fd = -1;
	memcpy(lookup->name, name, strlen(name) + 1);
	lookup->next = resolver->lookups;
	resolver->lookups = lookup;
	resolver->lookup_count++;
	/* No waiter is in the list yet: if no server can be asked, the answer is here already. */
	if (must_wait)
		wait_for_files(lookup);
	else
		attempt(lookup);
	lookup = find_lookup(resolver, name);
	if (!lookup)
		return true;
	wait_for(lookup, waiter);
	return false;
}

void gate_resolver_forget(struct resolver_waiter *waiter)
{
	if (!waiter->lookup)
		return;
	for (struct resolver_waiter **at = &waiter->lookup->waiters; *at; at = &(*at)->next) {
		if (*at == waiter) {
			*at = waiter->next;
			break;
		}
	}
	waiter->lookup = NULL;
}

bool gate_resolver_check_time(struct resolver *resolver, uint64_t now_ns)
{
	struct lookup *next;

	for (struct lookup *lookup = resolver->lookups; lookup; lookup = next) {
		next = lookup->next;
		if (now_ns < lookup->deadline_ns)
			continue;
		if (!lookup->attempts) {
			/* The engine has not read them: use the old contents for now. */
			resolver->fresh_until_ns = now_ns + FRESH_NS;
			resolver->is_refreshing = false;
			begin(lookup);
			continue;
		}
		if (lookup->found[0].count || lookup->found[1].count)
			finish(lookup);
		else
			attempt(lookup);
	}
	return resolver->lookups;
}
