/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/gate_resolver_files.c - read /etc/hosts and /etc/resolv.conf as the C library does
 */
#include <arpa/inet.h>
#include <net/if.h>
#include <string.h>

#include "gate/gate_resolver.h"

#define DNS_PORT 53

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

void gate_resolver_read_hosts(struct resolver *resolver, const char *text)
{
	char word[NET_NAME_SIZE + 1];

	resolver->hosts.count = 0;
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

static void add_server(struct resolver_servers *servers, const char *text)
{
	struct resolver_server *server = &servers->items[servers->count];
	char address[64], *scope;

	if (servers->count == RESOLVER_SERVERS_MAX || strlen(text) >= sizeof(address))
		return;
	memcpy(address, text, strlen(text) + 1);
	scope = strchr(address, '%');
	if (scope)
		*scope++ = '\0';
	memset(server, 0, sizeof(*server));
	server->len = sizeof(server->ipv4);
	server->ipv4.sin_family = AF_INET;
	server->ipv4.sin_port = htons(DNS_PORT);
	if (inet_pton(AF_INET, address, &server->ipv4.sin_addr) != 1) {
		memset(server, 0, sizeof(*server));
		server->len = sizeof(server->ipv6);
		server->ipv6.sin6_family = AF_INET6;
		server->ipv6.sin6_port = htons(DNS_PORT);
		server->ipv6.sin6_scope_id = scope ? if_nametoindex(scope) : 0;
		if (inet_pton(AF_INET6, address, &server->ipv6.sin6_addr) != 1)
			return;
	}
	servers->count++;
}

void gate_resolver_read_configuration(const char *text, struct resolver_servers *out)
{
	char word[64];

	memset(out, 0, sizeof(*out));
	for (const char *line = text; *line; line = next_line(line)) {
		const char *at = line;

		if (next_word(&at, word, sizeof(word)) && !strcmp(word, "nameserver") &&
		    next_word(&at, word, sizeof(word)))
			add_server(out, word);
	}
	/* The C library does the same. */
	if (!out->count)
		add_server(out, "127.0.0.1");
}
