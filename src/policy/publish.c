/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/publish.c - the entries of `publish`: read, write, add
 */
#include "policy/publish.h"

#include <string.h>

#define PORT_MAX 65535
#define DIGITS_MAX 5

static bool read_number(const char **at, uint32_t *out)
{
	size_t digits = 0;

	*out = 0;
	for (; **at >= '0' && **at <= '9'; (*at)++) {
		if (++digits > DIGITS_MAX)
			return false;
		*out = *out * 10 + (uint32_t)(**at - '0');
	}
	return digits && *out <= PORT_MAX;
}

const char *policy_publish_parse(const char *text, struct publish *out)
{
	uint32_t host_port = 0, port;
	bool is_number = read_number(&text, &port);

	if (is_number && *text == ':') {
		host_port = port;
		text++;
		is_number = read_number(&text, &port);
	}
	if (!is_number || *text)
		return "must be PORT or HOSTPORT:PORT, numbers up to 65535; HOSTPORT 0: any that is free";
	if (port < PUBLISH_PORT_MIN)
		return "nothing in a jar may listen on a port below 1024";
	*out = (struct publish){.port = (uint16_t)port, .host_port = (uint16_t)host_port};
	return NULL;
}

void policy_publish_format(const struct publish *entry, struct text *out)
{
	if (entry->host_port)
		text_append_format(out, "%u:", entry->host_port);
	text_append_format(out, "%u", entry->port);
}

const char *policy_publish_add(struct string_list *entries, const char *text)
{
	AUTO_TEXT canonical = {0};
	struct publish entry, earlier;
	const char *why = policy_publish_parse(text, &entry);
	size_t place = entries->count;

	if (why)
		return why;
	for (size_t i = 0; i < entries->count; i++) {
		if (policy_publish_parse(entries->items[i], &earlier))
			continue;
		if (earlier.port == entry.port)
			place = i;
		else if (entry.host_port && earlier.host_port == entry.host_port)
			return "another port of the jar has this port of the host";
	}
	policy_publish_format(&entry, &canonical);
	if (text_failed(&canonical))
		return "out of memory";
	if (place < entries->count) {
		char *copy = strdup(text_string(&canonical));

		if (!copy)
			return "out of memory";
		free(entries->items[place]);
		entries->items[place] = copy;
		return NULL;
	}
	if (entries->count == PUBLISH_MAX)
		return "a jar can publish at most 32 ports";
	return string_list_add(entries, text_string(&canonical)) < 0 ? "out of memory" : NULL;
}
