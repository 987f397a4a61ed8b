/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/gate_resolver.c - find the addresses of a name, without waiting for anybody
 *
 * Each attempt has a socket of its own, connected to one server: the kernel takes answers from nobody else, and its port is as
 * hard to guess as the number of the question.
 */
#include "gate/gate_resolver.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "sys/calls.h"

#define FILE_BYTES_MAX (256 << 10)
#define DNS_PORT 53
#define ATTEMPT_NS 2000000000ULL
/* One of the two kinds of addresses is there: the other has this long. */
#define OTHER_KIND_NS 300000000ULL
#define ATTEMPTS_OF_EACH 2
#define KINDS 2
#define FAILURE_KEPT_NS 1000000000ULL

static const uint16_t kinds[KINDS] = {DNS_TYPE_A, DNS_TYPE_AAAA};

struct lookup {
	struct resolver *resolver;
	struct lookup *next;
	char name[NET_NAME_SIZE];
	struct resolver_waiter *waiters;
	struct loop_watch watch;
	int fd;
	uint16_t ids[KINDS];
	bool is_answered[KINDS];
	bool has_failed; /* a server that cannot help */
	unsigned attempts;
	uint64_t deadline_ns;
	struct dns_addresses found[KINDS];
};

/* --- files -------------------------------------------------------------------------------------------------- */

static bool read_address(const char *text, struct dns_address *out)
{
	*out = (struct dns_address){0};
	if (inet_pton(AF_INET, text, out->bytes) == 1)
		return true;
	out->is_ipv6 = true;
	return inet_pton(AF_INET6, text, out->bytes) == 1;
}

/* The next word of a line; NULL at its end. */
static const char *next_word(const char **at, char *word, size_t size)
{
	size_t len;

	*at += strspn(*at, " \t\r");
	len = strcspn(*at, " \t\r\n#");
	if (!len)
		return NULL;
	if (len < size)
		memcpy(word, *at, len);
	word[len < size ? len : 0] = '\0';
	*at += len;
	return word;
}

static const char *next_line(const char *at)
{
	at += strcspn(at, "\n");
	return at + (*at == '\n');
}

void resolver_read_hosts(struct resolver *resolver, const char *text)
{
	char word[NET_NAME_SIZE + 1];

	for (const char *line = text; *line; line = next_line(line)) {
		struct dns_address address;
		const char *at = line;

		if (!next_word(&at, word, sizeof(word)) || !read_address(word, &address))
			continue;
		while (next_word(&at, word, sizeof(word)) && resolver->hosts.count < RESOLVER_HOSTS_MAX) {
			struct resolver_entry *entry = list_add(&resolver->hosts);

			if (!entry)
				return;
			entry->address = address;
			if (!net_name_clean(word, strlen(word), entry->name))
				resolver->hosts.count--;
		}
	}
}

static void add_server(struct resolver *resolver, const char *text)
{
	struct resolver_server *server = &resolver->servers[resolver->server_count];
	char address[64], *scope;

	if (resolver->server_count == RESOLVER_SERVERS_MAX || strlen(text) >= sizeof(address))
		return;
	memcpy(address, text, strlen(text) + 1);
	scope = strchr(address, '%');
	if (scope)
		*scope++ = '\0';
	*server = (struct resolver_server){.len = sizeof(server->ipv4)};
	server->ipv4.sin_family = AF_INET;
	server->ipv4.sin_port = htons(DNS_PORT);
	if (inet_pton(AF_INET, address, &server->ipv4.sin_addr) != 1) {
		*server = (struct resolver_server){.len = sizeof(server->ipv6)};
		server->ipv6.sin6_family = AF_INET6;
		server->ipv6.sin6_port = htons(DNS_PORT);
		server->ipv6.sin6_scope_id = scope ? if_nametoindex(scope) : 0;
		if (inet_pton(AF_INET6, address, &server->ipv6.sin6_addr) != 1)
			return;
	}
	resolver->server_count++;
}

void resolver_read_configuration(struct resolver *resolver, const char *text)
{
	char word[64];

	for (const char *line = text; *line; line = next_line(line)) {
		const char *at = line;

		if (next_word(&at, word, sizeof(word)) && !strcmp(word, "nameserver") &&
		    next_word(&at, word, sizeof(word)))
			add_server(resolver, word);
	}
	/* What the C library does. */
	if (!resolver->server_count)
		add_server(resolver, "127.0.0.1");
}

int resolver_init(struct resolver *resolver, struct loop *loop)
{
	AUTO_FREE char *text = malloc(FILE_BYTES_MAX);

	*resolver = (struct resolver){.loop = loop};
	resolver->cache = calloc(RESOLVER_CACHE_MAX, sizeof(*resolver->cache));
	if (!text || !resolver->cache)
		return -ENOMEM;
	if (sys_read_file(AT_FDCWD, "/etc/hosts", text, FILE_BYTES_MAX) >= 0)
		resolver_read_hosts(resolver, text);
	if (sys_read_file(AT_FDCWD, "/etc/resolv.conf", text, FILE_BYTES_MAX) < 0)
		text[0] = '\0';
	resolver_read_configuration(resolver, text);
	return 0;
}

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

/* --- asking ------------------------------------------------------------------------------------------------- */

static void close_socket(struct lookup *lookup)
{
	loop_remove(&lookup->watch);
	close_fd(&lookup->fd);
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
	struct resolver *resolver = lookup->resolver;
	struct resolver_waiter *waiter;
	struct dns_addresses addresses;

	gather(lookup, &addresses);
	keep(resolver, lookup->name, &addresses);
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
		waiter->function(waiter, &addresses);
	}
	free(lookup);
}

static void attempt(struct lookup *lookup);

/* Both are answered, or nobody is going to. True: it is over, and @lookup is freed. */
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
	if (has_some)
		lookup->deadline_ns = MIN_OF(lookup->deadline_ns, sys_monotonic_ns() + OTHER_KIND_NS);
	return false;
}

static void on_answer(struct loop_watch *watch, uint32_t events)
{
	struct lookup *lookup = watch->owner;
	uint8_t message[DNS_MESSAGE_MAX];
	ssize_t len;

	(void)events;
	while ((len = recv(lookup->fd, message, sizeof(message), MSG_DONTWAIT)) > 0) {
		for (size_t kind = 0; kind < KINDS; kind++) {
			unsigned code = 0;

			if (lookup->is_answered[kind] ||
			    !dns_read_answer(message, (size_t)len, lookup->ids[kind], lookup->name, kinds[kind],
					     &lookup->found[kind], &code))
				continue;
			lookup->is_answered[kind] = true;
			lookup->has_failed |= code && code != DNS_NO_SUCH_NAME;
		}
	}
	/* Nobody listens there: the next one is asked at once. */
	if (len < 0 && errno != EAGAIN && errno != EINTR) {
		lookup->has_failed = true;
		lookup->is_answered[0] = lookup->is_answered[1] = true;
	}
	go_on(lookup);
}

static int send_questions(struct lookup *lookup)
{
	uint8_t message[DNS_MESSAGE_MAX];

	if (getrandom(lookup->ids, sizeof(lookup->ids), 0) != sizeof(lookup->ids))
		return -EIO;
	for (size_t kind = 0; kind < KINDS; kind++) {
		size_t len = dns_write_query(lookup->ids[kind], lookup->name, kinds[kind], message);

		if (send(lookup->fd, message, len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			return -errno;
	}
	return 0;
}

static void attempt(struct lookup *lookup)
{
	struct resolver *resolver = lookup->resolver;

	while (lookup->attempts < resolver->server_count * ATTEMPTS_OF_EACH) {
		const struct resolver_server *server = &resolver->servers[lookup->attempts++ % resolver->server_count];

		close_socket(lookup);
		lookup->is_answered[0] = lookup->is_answered[1] = lookup->has_failed = false;
		lookup->found[0].count = lookup->found[1].count = 0;
		lookup->deadline_ns = sys_monotonic_ns() + ATTEMPT_NS;
		lookup->fd = socket(server->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (lookup->fd >= 0 && connect(lookup->fd, &server->any, server->len) == 0 &&
		    send_questions(lookup) == 0 &&
		    loop_add(resolver->loop, &lookup->watch, lookup->fd, EPOLLIN, on_answer, lookup) == 0)
			return;
	}
	finish(lookup);
}

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

bool resolver_ask(struct resolver *resolver, const char *name, struct dns_addresses *out,
		  struct resolver_waiter *waiter)
{
	struct lookup *lookup;

	if (find_in_hosts(resolver, name, out) || find_in_cache(resolver, name, out))
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
	/* Nobody waits yet: if no server can be asked, the answer is here already. */
	attempt(lookup);
	lookup = find_lookup(resolver, name);
	if (!lookup)
		return true;
	wait_for(lookup, waiter);
	return false;
}

void resolver_forget(struct resolver_waiter *waiter)
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

bool resolver_check_time(struct resolver *resolver, uint64_t now_ns)
{
	struct lookup *next;

	for (struct lookup *lookup = resolver->lookups; lookup; lookup = next) {
		next = lookup->next;
		if (now_ns < lookup->deadline_ns)
			continue;
		if (lookup->found[0].count || lookup->found[1].count)
			finish(lookup);
		else
			attempt(lookup);
	}
	return resolver->lookups;
}
