/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/net_rules.c - the rules of allow_net: read, write, decide
 */
#include "policy/net_rules.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json_write.h"

#define HOST_WORD "host"
#define PORT_MAX 65535
#define RULE_TEXT_MAX 1024

static const struct net_ports web_ports[] = {{80, 80}, {443, 443}};
static const struct net_ports every_port = {1, PORT_MAX};

static int refuse(struct net_refusal *refusal, const char *hint, const char *format, ...) PRINTF_LIKE(3, 4);
static int refuse(struct net_refusal *refusal, const char *hint, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(refusal->why, sizeof(refusal->why), format, arguments);
	va_end(arguments);
	snprintf(refusal->hint, sizeof(refusal->hint), "%s", hint ? hint : "");
	return -EINVAL;
}

/* --- names -------------------------------------------------------------------------------------------------- */

static bool is_label_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

bool net_name_clean(const char *name, size_t len, char out[NET_NAME_SIZE])
{
	size_t label = 0;
	bool is_numeric = true;

	if (len && name[len - 1] == '.')
		len--;
	if (!len || len >= NET_NAME_SIZE)
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] - 'A' + 'a') : name[i];

		if (c == '.' ? !label : !is_label_char(c) || ++label > 63)
			return false;
		if (c == '.') {
			label = 0;
			is_numeric = true;
		} else {
			is_numeric &= c >= '0' && c <= '9';
		}
		out[i] = c;
	}
	out[len] = '\0';
	/* A name that ends in a number is an address, or imitates one. */
	return label && !is_numeric;
}

/* --- ports -------------------------------------------------------------------------------------------------- */

static int read_port(const char **at, const char *end, uint32_t *out)
{
	uint32_t port = 0;
	size_t digits = 0;

	for (; *at < end && **at >= '0' && **at <= '9' && digits < 6; digits++)
		port = port * 10 + (uint32_t)(*(*at)++ - '0');
	*out = port;
	return digits && port >= 1 && port <= PORT_MAX ? 0 : -EINVAL;
}

static int add_ports(struct net_rule *rule, uint32_t first, uint32_t last, struct net_refusal *refusal)
{
	if (rule->port_count == NET_PORTS_MAX)
		return refuse(refusal, NULL, "a rule can have at most %d ports and ranges", NET_PORTS_MAX);
	rule->ports[rule->port_count++] = (struct net_ports){(uint16_t)first, (uint16_t)last};
	return 0;
}

/* "80,443,8000-8010" or "*". */
static int read_ports(const char *text, size_t len, struct net_rule *rule, struct net_refusal *refusal)
{
	const char *at = text, *end = text + len;

	if (len == 1 && *text == '*')
		return add_ports(rule, every_port.first, every_port.last, refusal);
	for (;;) {
		uint32_t first, last;
		int rc = read_port(&at, end, &first);

		last = first;
		if (rc == 0 && at < end && *at == '-') {
			at++;
			rc = read_port(&at, end, &last);
		}
		if (rc < 0 || last < first || (at < end && *at != ','))
			return refuse(refusal, NULL,
				      "ports are numbers from 1 to 65535 and ranges, such as 80,443,8000-8010, or *");
		rc = add_ports(rule, first, last, refusal);
		if (rc < 0 || at == end)
			return rc;
		at++;
	}
}

static int compare_ports(const void *left, const void *right)
{
	const struct net_ports *a = left, *b = right;

	return a->first != b->first ? (int)a->first - (int)b->first : (int)a->last - (int)b->last;
}

/* Sort the ranges, and merge those that overlap or touch, so that equal rules have equal texts. */
static void settle_ports(struct net_rule *rule)
{
	size_t kept = 0;

	if (!rule->port_count)
		return;
	qsort(rule->ports, rule->port_count, sizeof(*rule->ports), compare_ports);
	for (size_t i = 1; i < rule->port_count; i++) {
		if ((uint32_t)rule->ports[i].first > (uint32_t)rule->ports[kept].last + 1)
			rule->ports[++kept] = rule->ports[i];
		else
			rule->ports[kept].last = MAX_OF(rule->ports[kept].last, rule->ports[i].last);
	}
	rule->port_count = kept + 1;
}

static bool has_port(const struct net_rule *rule, uint16_t port)
{
	for (size_t i = 0; i < rule->port_count; i++)
		if (port >= rule->ports[i].first && port <= rule->ports[i].last)
			return true;
	return false;
}

static bool has_every_port(const struct net_rule *rule)
{
	return rule->ports[0].first == every_port.first && rule->ports[0].last == every_port.last;
}

static bool has_web_ports(const struct net_rule *rule)
{
	return rule->port_count == ARRAY_LEN(web_ports) && !memcmp(rule->ports, web_ports, sizeof(web_ports));
}

/* --- hosts -------------------------------------------------------------------------------------------------- */

static void clear_behind_prefix(struct net_rule *rule)
{
	for (size_t bit = rule->prefix_len; bit < 128; bit++)
		rule->address[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
}

/* Read an address with or without a prefix. Returns false if it is not one. */
static bool read_address(const char *text, size_t len, struct net_rule *rule, int *rc, struct net_refusal *refusal)
{
	char buffer[64], *slash, *rest;
	unsigned long prefix;

	if (len >= sizeof(buffer))
		return false;
	memcpy(buffer, text, len);
	buffer[len] = '\0';
	slash = strchr(buffer, '/');
	if (slash)
		*slash++ = '\0';
	if (inet_pton(AF_INET, buffer, rule->address) == 1)
		rule->is_ipv6 = false;
	else if (inet_pton(AF_INET6, buffer, rule->address) == 1)
		rule->is_ipv6 = true;
	else
		return false;
	rule->kind = NET_RULE_ADDRESS;
	rule->prefix_len = rule->is_ipv6 ? 128 : 32;
	*rc = 0;
	if (slash) {
		prefix = strtoul(slash, &rest, 10);
		if (*slash < '0' || *slash > '9' || *rest || prefix > rule->prefix_len)
			*rc = refuse(refusal, NULL, "the length of a prefix is a number from 0 to %u",
				     rule->prefix_len);
		else
			rule->prefix_len = (uint8_t)prefix;
	}
	clear_behind_prefix(rule);
	return true;
}

static int read_host(const char *text, size_t len, struct net_rule *rule, struct net_refusal *refusal)
{
	bool is_below = len > 2 && text[0] == '*' && text[1] == '.';
	int rc;

	if (len > 2 && text[0] == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
	}
	if (read_address(text, len, rule, &rc, refusal))
		return rc;
	rule->kind = is_below ? NET_RULE_BELOW : NET_RULE_NAME;
	if (net_name_clean(text + (is_below ? 2 : 0), len - (is_below ? 2 : 0), rule->name)) {
		if (!is_below && !strcmp(rule->name, HOST_WORD)) {
			rule->kind = NET_RULE_HOST;
			snprintf(rule->name, sizeof(rule->name), "%s", NET_HOST_NAME);
		}
		return 0;
	}
	if (memchr(text, '*', len))
		return refuse(refusal, NULL, "'*' may only be the first label of a name, as in *.example.org");
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] >= 0x80)
			return refuse(refusal, NULL, "write a name with other letters in its xn-- form");
	return refuse(refusal, NULL, "not a host name or an address");
}

static bool is_loopback(const struct net_rule *rule)
{
	static const uint8_t ipv6_loopback[16] = {[15] = 1};

	if (rule->is_ipv6)
		return rule->prefix_len == 128 && !memcmp(rule->address, ipv6_loopback, sizeof(ipv6_loopback));
	return rule->prefix_len >= 8 && rule->address[0] == 127;
}

/* Fill in the defaults, and require the rest. */
static int complete(struct net_rule *rule, struct net_refusal *refusal)
{
	if (!rule->port_count && rule->is_deny)
		rule->ports[rule->port_count++] = every_port;
	if (!rule->port_count && (rule->kind == NET_RULE_ADDRESS || rule->kind == NET_RULE_HOST))
		return refuse(refusal, NULL, "%s needs a port, as in %s",
			      rule->kind == NET_RULE_HOST ? "the host's loopback" : "an address",
			      rule->kind == NET_RULE_HOST ? "host:5432"
			      : rule->is_ipv6             ? "[2001:db8::/32]:443"
							  : "10.1.2.0/24:5432");
	if (!rule->port_count) {
		memcpy(rule->ports, web_ports, sizeof(web_ports));
		rule->port_count = ARRAY_LEN(web_ports);
	}
	if (rule->kind == NET_RULE_ADDRESS && !rule->is_deny && is_loopback(rule))
		return refuse(refusal, "host:PORT is the host's loopback, reached as " NET_HOST_NAME,
			      "in the jar this address is the jar's own");
	if (rule->may_be_private && (rule->is_deny || rule->kind == NET_RULE_ADDRESS || rule->kind == NET_RULE_HOST))
		return refuse(refusal, NULL, "\"private\" is for names that are allowed");
	if (rule->is_inspected && (rule->is_deny || rule->kind == NET_RULE_ADDRESS || rule->kind == NET_RULE_HOST))
		return refuse(refusal, NULL, "\"methods\", \"paths\" and \"inspect\" are for names that are allowed");
	if (rule->reason[0] && !rule->is_deny && !net_rule_is_limited(rule))
		return refuse(refusal, NULL, "\"reason\" goes with \"deny\": true, or with \"methods\" or \"paths\"");
	settle_ports(rule);
	return 0;
}

/* --- rules -------------------------------------------------------------------------------------------------- */

static int parse_object(const struct json_value *object, bool is_deny, struct net_rule *rule,
			struct net_refusal *refusal);

/* @is_deny: it denies unless it says otherwise. */
static int parse_text(const char *text, bool is_deny, struct net_rule *rule, struct net_refusal *refusal)
{
	const char *colon = strrchr(text, ':'), *bracket = strrchr(text, ']');
	struct net_rule made = {.is_deny = is_deny};
	size_t host_len = strlen(text);
	int rc;

	if (text[0] == '{') {
		struct json_input input = {.name = "rule", .bytes = text, .len = host_len, .stage = STAGE_POLICY};
		AUTO_JSON object = {0};
		struct error error = {0};

		if (json_parse(&input, &object, &error) < 0)
			return refuse(refusal, NULL, "%.140s", error.message);
		return parse_object(&object, is_deny, rule, refusal);
	}
	if (!*text)
		return refuse(refusal, NULL, "the rule is empty");
	if (strstr(text, "://"))
		return refuse(refusal, NULL, "name the host alone, as in example.org:443");
	if (host_len > RULE_TEXT_MAX)
		return refuse(refusal, NULL, "a rule may not be longer than %d bytes", RULE_TEXT_MAX);
	/* The colons of an IPv6 address do not introduce a port, unless it is in brackets. */
	if (colon && bracket && colon < bracket)
		colon = NULL;
	if (colon && !bracket && memchr(text, ':', (size_t)(colon - text)))
		return refuse(refusal, NULL, "write an IPv6 address in brackets, as in [2001:db8::/32]:443");
	if (colon)
		host_len = (size_t)(colon - text);
	rc = read_host(text, host_len, &made, refusal);
	if (rc == 0 && colon)
		rc = read_ports(colon + 1, strlen(colon + 1), &made, refusal);
	if (rc == 0)
		rc = complete(&made, refusal);
	if (rc == 0)
		*rule = made;
	return rc;
}

static int read_json_port(const struct json_value *value, struct net_rule *rule, struct net_refusal *refusal)
{
	if (value->type == JSON_STRING)
		return read_ports(value->string.bytes, value->string.len, rule, refusal);
	if (value->type == JSON_INTEGER)
		return read_ports(value->number.digits, strlen(value->number.digits), rule, refusal);
	return refuse(refusal, NULL, "\"ports\" must be a number, a text such as \"80,443\", or a list of them");
}

static int member_host(const struct json_value *value, struct net_rule *rule, struct net_refusal *refusal)
{
	if (value->type != JSON_STRING)
		return refuse(refusal, NULL, "\"host\" must be a string, not %s", json_type_name(value->type));
	return read_host(value->string.bytes, value->string.len, rule, refusal);
}

static int member_ports(const struct json_value *value, struct net_rule *rule, struct net_refusal *refusal)
{
	int rc = 0;

	if (value->type != JSON_LIST)
		return read_json_port(value, rule, refusal);
	if (!value->list.count)
		return refuse(refusal, NULL, "\"ports\" is an empty list");
	for (size_t i = 0; i < value->list.count && rc == 0; i++)
		rc = read_json_port(&value->list.items[i], rule, refusal);
	return rc;
}

static int read_bool(const struct json_value *value, const char *name, bool *out, struct net_refusal *refusal)
{
	if (value->type != JSON_BOOL)
		return refuse(refusal, NULL, "\"%s\" must be true or false, not %s", name, json_type_name(value->type));
	*out = value->boolean;
	return 0;
}

static int member_private(const struct json_value *value, struct net_rule *rule, struct net_refusal *refusal)
{
	return read_bool(value, "private", &rule->may_be_private, refusal);
}

static int member_deny(const struct json_value *value, struct net_rule *rule, struct net_refusal *refusal)
{
	return read_bool(value, "deny", &rule->is_deny, refusal);
}

static int member_reason(const struct json_value *value, struct net_rule *rule, struct net_refusal *refusal)
{
	if (value->type != JSON_STRING || !value->string.len || value->string.len >= NET_REASON_SIZE)
		return refuse(refusal, NULL, "\"reason\" must be a text of 1 to %d bytes", NET_REASON_SIZE - 1);
	for (size_t i = 0; i < value->string.len; i++)
		if ((unsigned char)value->string.bytes[i] < ' ')
			return refuse(refusal, NULL, "\"reason\" is one line of text");
	memcpy(rule->reason, value->string.bytes, value->string.len + 1);
	return 0;
}

static int member_tls(const struct json_value *value, struct net_rule *rule, struct net_refusal *refusal)
{
	if (value->type == JSON_STRING && !strcmp(value->string.bytes, "pass"))
		return 0;
	if (value->type != JSON_STRING || strcmp(value->string.bytes, "inspect") != 0)
		return refuse(refusal, NULL, "\"tls\" must be \"pass\" or \"inspect\"");
	rule->is_inspected = true;
	return 0;
}

static int read_words(const struct json_value *value, const char *name,
		      int (*add)(struct net_rule *rule, const char *word, size_t len), const char *example,
		      struct net_rule *rule, struct net_refusal *refusal)
{
	if (value->type != JSON_LIST || !value->list.count)
		return refuse(refusal, NULL, "\"%s\" must be a list such as %s", name, example);
	for (size_t i = 0; i < value->list.count; i++) {
		const struct json_value *word = &value->list.items[i];
		int rc = word->type == JSON_STRING ? add(rule, word->string.bytes, word->string.len) : -EINVAL;

		if (rc == -E2BIG)
			return refuse(refusal, NULL, "\"%s\" has too many entries for one rule", name);
		if (rc < 0)
			return refuse(refusal, NULL, "\"%s\" must be a list such as %s", name, example);
	}
	rule->is_inspected = true;
	return 0;
}

static int member_methods(const struct json_value *value, struct net_rule *rule, struct net_refusal *refusal)
{
	return read_words(value, "methods", net_method_add, "[\"GET\", \"HEAD\"]", rule, refusal);
}

static int member_paths(const struct json_value *value, struct net_rule *rule, struct net_refusal *refusal)
{
	return read_words(value, "paths", net_path_add, "[\"/v1/*\"]: paths without '?', '%', and parts such as '..'",
			  rule, refusal);
}

static int parse_object(const struct json_value *object, bool is_deny, struct net_rule *rule,
			struct net_refusal *refusal)
{
	static const struct {
		const char *name;
		int (*read)(const struct json_value *value, struct net_rule *rule, struct net_refusal *refusal);
	} members[] = {
		{"host", member_host},       {"ports", member_ports},   {"private", member_private},
		{"deny", member_deny},       {"reason", member_reason}, {"tls", member_tls},
		{"methods", member_methods}, {"paths", member_paths},
	};
	struct net_rule made = {.is_deny = is_deny};
	bool is_passed = false;
	int rc;

	if (object->type != JSON_OBJECT)
		return refuse(refusal, NULL, "a rule must be a string or an object, not %s",
			      json_type_name(object->type));
	for (size_t i = 0; i < object->object.count; i++) {
		const struct json_member *member = &object->object.members[i];
		size_t which = 0;

		while (which < ARRAY_LEN(members) && strcmp(members[which].name, member->name) != 0)
			which++;
		if (which == ARRAY_LEN(members))
			return refuse(refusal, NULL, "a rule has no \"%.40s\"", member->name);
		rc = members[which].read(&member->value, &made, refusal);
		if (rc < 0)
			return rc;
		is_passed |= members[which].read == member_tls && !strcmp(member->value.string.bytes, "pass");
	}
	if (is_passed && made.is_inspected)
		return refuse(refusal, "say \"tls\": \"inspect\"",
			      "what is passed on unseen has no \"methods\" and \"paths\"");
	if (!json_find(object, "host"))
		return refuse(refusal, NULL, "a rule needs a \"host\"");
	rc = complete(&made, refusal);
	if (rc == 0)
		*rule = made;
	return rc;
}

int net_rule_parse(const char *text, struct net_rule *rule, struct net_refusal *refusal)
{
	return parse_text(text, false, rule, refusal);
}

int net_rule_parse_object(const struct json_value *object, struct net_rule *rule, struct net_refusal *refusal)
{
	return parse_object(object, false, rule, refusal);
}

int net_rule_parse_change(const struct json_value *value, bool is_deny, struct net_rule *rule,
			  struct net_refusal *refusal)
{
	struct net_rule made;
	int rc = value->type == JSON_STRING ? parse_text(value->string.bytes, is_deny, &made, refusal)
					    : parse_object(value, is_deny, &made, refusal);

	if (rc == 0 && made.is_deny != is_deny)
		rc = refuse(refusal, NULL, "\"deny\" says the opposite of what is asked for");
	if (rc == 0)
		*rule = made;
	return rc;
}

static void format_host(const struct net_rule *rule, struct text *out)
{
	char address[INET6_ADDRSTRLEN];
	bool is_whole;

	switch (rule->kind) {
	case NET_RULE_NAME:
		text_append_string(out, rule->name);
		break;
	case NET_RULE_BELOW:
		text_append_format(out, "*.%s", rule->name);
		break;
	case NET_RULE_HOST:
		text_append_string(out, HOST_WORD);
		break;
	case NET_RULE_ADDRESS:
		inet_ntop(rule->is_ipv6 ? AF_INET6 : AF_INET, rule->address, address, sizeof(address));
		is_whole = rule->prefix_len == (rule->is_ipv6 ? 128 : 32);
		text_append_format(out, "%s%s", rule->is_ipv6 ? "[" : "", address);
		if (!is_whole)
			text_append_format(out, "/%u", rule->prefix_len);
		text_append_string(out, rule->is_ipv6 ? "]" : "");
		break;
	}
}

static void format_ports(const struct net_rule *rule, struct text *out)
{
	if (has_every_port(rule)) {
		text_append_char(out, '*');
		return;
	}
	for (size_t i = 0; i < rule->port_count; i++) {
		text_append_format(out, "%s%u", i ? "," : "", rule->ports[i].first);
		if (rule->ports[i].last != rule->ports[i].first)
			text_append_format(out, "-%u", rule->ports[i].last);
	}
}

static void format_words(struct json_writer *writer, const char *key, const char *words, char separator)
{
	if (!*words)
		return;
	json_open_array(writer, key);
	while (*words) {
		size_t len = (size_t)(strchrnul(words, separator) - words);

		json_write_bytes(writer, NULL, words, len);
		words += len + 1;
	}
	json_close_array(writer);
}

void net_rule_format(const struct net_rule *rule, struct text *out)
{
	struct json_writer writer = {.text = out};
	AUTO_TEXT host = {0}, ports = {0};

	format_host(rule, &host);
	format_ports(rule, &ports);
	if (!rule->is_deny && !rule->may_be_private && !rule->is_inspected) {
		text_append_string(out, text_string(&host));
		if (!has_web_ports(rule) || rule->kind == NET_RULE_ADDRESS || rule->kind == NET_RULE_HOST)
			text_append_format(out, ":%s", text_string(&ports));
		return;
	}
	json_open_object(&writer, NULL);
	json_write_string(&writer, "host", text_string(&host));
	json_write_string(&writer, "ports", text_string(&ports));
	format_words(&writer, "methods", rule->methods, ' ');
	format_words(&writer, "paths", rule->paths, '\n');
	if (rule->is_inspected)
		json_write_string(&writer, "tls", "inspect");
	if (rule->may_be_private)
		json_write_bool(&writer, "private", true);
	if (rule->is_deny)
		json_write_bool(&writer, "deny", true);
	if (rule->reason[0])
		json_write_string(&writer, "reason", rule->reason);
	json_close_object(&writer);
}

/* --- decide ------------------------------------------------------------------------------------------------- */

static bool is_about_name(const struct net_rule *rule, const char *name)
{
	size_t len = strlen(name), rule_len = strlen(rule->name);

	switch (rule->kind) {
	case NET_RULE_NAME:
	case NET_RULE_HOST:
		return !strcmp(rule->name, name);
	case NET_RULE_BELOW:
		return len > rule_len + 1 && name[len - rule_len - 1] == '.' &&
		       !strcmp(name + len - rule_len, rule->name);
	case NET_RULE_ADDRESS:
		return false;
	}
	return false;
}

static bool is_about_address(const struct net_rule *rule, bool is_ipv6, const uint8_t *address)
{
	if (rule->kind != NET_RULE_ADDRESS || rule->is_ipv6 != is_ipv6)
		return false;
	for (size_t bit = 0; bit < rule->prefix_len; bit++)
		if ((rule->address[bit / 8] ^ address[bit / 8]) & 0x80 >> bit % 8)
			return false;
	return true;
}

int net_rule_width(const struct net_rule *rule)
{
	return (rule->is_inspected ? 0 : 4) + (net_rule_is_limited(rule) ? 0 : 2) + rule->may_be_private;
}

/* Apply @rule, which is about the host, to @port. */
static void weigh(struct net_verdict *verdict, const struct net_rule *rule, uint16_t port)
{
	bool is_meant = port ? has_port(rule, port) : !rule->is_deny || has_every_port(rule);

	if (!is_meant || (verdict->rule && verdict->rule->is_deny))
		return;
	if (rule->is_deny || !verdict->rule)
		*verdict = (struct net_verdict){!rule->is_deny, rule};
	/* Of several that allow, the widest counts: no inspection, all requests, more addresses. */
	else if (net_rule_width(rule) > net_rule_width(verdict->rule))
		verdict->rule = rule;
}

/* The host's own loopback has that name only where a rule gives it one; a name below "internal" does not lead there. */
struct net_verdict net_decide_name(const struct net_rule_list *rules, const char *name, uint16_t port)
{
	struct net_verdict verdict = {false, NULL};
	bool is_host = !strcmp(name, NET_HOST_NAME);

	for (size_t i = 0; i < rules->count; i++) {
		const struct net_rule *rule = &rules->items[i];

		if (is_about_name(rule, name) && (!is_host || rule->kind == NET_RULE_HOST || rule->is_deny))
			weigh(&verdict, rule, port);
	}
	return verdict;
}

struct net_verdict net_decide_address(const struct net_rule_list *rules, bool is_ipv6, const uint8_t *address,
				      uint16_t port)
{
	struct net_verdict verdict = {false, NULL};

	for (size_t i = 0; i < rules->count; i++)
		if (is_about_address(&rules->items[i], is_ipv6, address))
			weigh(&verdict, &rules->items[i], port);
	return verdict;
}

bool net_rule_is_exact(const struct net_rule *rule)
{
	bool is_one = rule->kind == NET_RULE_ADDRESS ? rule->prefix_len == (rule->is_ipv6 ? 128 : 32)
						     : rule->kind == NET_RULE_NAME && strcmp(rule->name, NET_HOST_NAME);

	return is_one && !rule->is_deny && !rule->may_be_private && rule->port_count == 1 &&
	       rule->ports[0].first == rule->ports[0].last;
}
