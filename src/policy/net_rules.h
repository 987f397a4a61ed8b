/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/net_rules.h - the rules of allow_net: which hosts and ports a jar may reach
 *
 * A rule is a text, HOST[:PORTS], or an object. Every rule has one canonical form, which is what a policy holds,
 * prints and compares. Deciding is pure: the gate, `belljar net check` and the planner ask the same functions.
 *
 * A rule that denies wins over every rule that allows, wherever the two stand.
 */
#ifndef BELLJAR_POLICY_NET_RULES_H
#define BELLJAR_POLICY_NET_RULES_H

#include "base/json_read.h"
#include "base/list.h"
#include "base/text.h"

/* The longest name in DNS, without its last dot, and a NUL. */
#define NET_NAME_SIZE 254
#define NET_PORTS_MAX 16
#define NET_REASON_SIZE 201
#define NET_METHODS_SIZE 160
#define NET_PATHS_SIZE 1024
/* The longest path that a rule is compared with. */
#define NET_TARGET_MAX 4096
/* The name by which a jar reaches the host's own loopback. */
#define NET_HOST_NAME "host.belljar.internal"

enum net_rule_kind {
	NET_RULE_NAME,    /* that name */
	NET_RULE_BELOW,   /* every name below it, not the name itself */
	NET_RULE_ADDRESS, /* addresses */
	NET_RULE_HOST,    /* the host's own loopback */
};

struct net_ports {
	uint16_t first, last;
};

struct net_rule {
	enum net_rule_kind kind;
	bool is_deny;
	bool may_be_private; /* the name may have private addresses */
	bool is_inspected;   /* the gate inspects requests to it, also inside TLS */
	bool is_ipv6;
	uint8_t prefix_len;
	uint8_t address[16];      /* the first 4 bytes of it, unless it is IPv6; nothing behind the prefix */
	char name[NET_NAME_SIZE]; /* in lower case, without a dot at its end */
	struct net_ports ports[NET_PORTS_MAX];
	size_t port_count;
	char methods[NET_METHODS_SIZE]; /* in order, each with a space behind it; empty: every method */
	char paths[NET_PATHS_SIZE];     /* patterns in order, each with a newline behind it; empty: every path */
	char reason[NET_REASON_SIZE];   /* for the message about a refusal; may be empty */
};

LIST_TYPE(struct net_rule, net_rule_list);

/* Why a rule is invalid. The longest of these texts fits. */
struct net_refusal {
	char why[160];
	char hint[160];
};

/* Parse a rule; the text of an object is JSON. Returns 0, or -EINVAL with a reason. */
int net_rule_parse(const char *text, struct net_rule *rule, struct net_refusal *refusal);
int net_rule_parse_object(const struct json_value *object, struct net_rule *rule, struct net_refusal *refusal);
/* Parse a rule, a string or an object, for a running jar. @is_deny: it denies unless it says otherwise. */
int net_rule_parse_change(const struct json_value *value, bool is_deny, struct net_rule *rule,
			  struct net_refusal *refusal);
/* Write the canonical form: HOST[:PORTS], or an object if the rule has more members. */
void net_rule_format(const struct net_rule *rule, struct text *out);

/* Convert a name to the form that rules use. Returns false if it is not a host name. */
bool net_name_clean(const char *name, size_t len, char out[NET_NAME_SIZE]);

/* Of two rules about a host, the wider allows more: requests without inspection, all requests, private addresses. */
int net_rule_width(const struct net_rule *rule);

struct net_verdict {
	bool is_allowed;
	const struct net_rule *rule; /* the one that decided; NULL: no rule applies */
};

/* @name is clean. @port 0: is there any port on which it may be reached? */
struct net_verdict net_decide_name(const struct net_rule_list *rules, const char *name, uint16_t port);
struct net_verdict net_decide_address(const struct net_rule_list *rules, bool is_ipv6, const uint8_t *address,
				      uint16_t port);

/* The kind of destination that a question is about. */
enum net_place {
	NET_PLACE_NAME, /* a name: it leads to public addresses only */
	NET_PLACE_PUBLIC,
	NET_PLACE_PRIVATE,
	NET_PLACE_HOST, /* the host's own */
};

/* A connection that no rule decides, for the user or program that answers. */
struct net_question {
	uint32_t id;
	struct net_rule rule; /* one host and port: it would allow exactly this */
	enum net_place place;
	uint64_t timeout_ns;
};

enum net_answer {
	NET_DENY, /* and do not ask again in this run */
	NET_ONCE, /* the connections that wait now */
	NET_RUN,  /* as long as this run lasts */
	NET_ANSWER_COUNT,
};

/* Is @rule about one host and one port, by a name or an address, and nothing else? */
bool net_rule_is_exact(const struct net_rule *rule);

/* --- net_requests.c --- */

/* Returns 0, -EINVAL or -E2BIG. A path is a pattern, in which a star matches any text. */
int net_method_add(struct net_rule *rule, const char *method, size_t len);
int net_path_add(struct net_rule *rule, const char *path, size_t len);
/* Does it name methods or paths? */
bool net_rule_is_limited(const struct net_rule *rule);
/* Are both about the same hosts and ports, and does @wide allow all that @narrow allows? */
bool net_rule_is_within(const struct net_rule *narrow, const struct net_rule *wide);
/* Write a path as a server reads it. Returns false if servers may read it differently. */
bool net_path_clean(const char *path, size_t len, char out[NET_TARGET_MAX]);
/*
 * May a client request @method for @target, a path and its query? Rules add up: one without methods and paths allows
 * all. A refusal has a rule that shows what would be allowed.
 */
struct net_verdict net_decide_request(const struct net_rule_list *rules, const char *name, uint16_t port,
				      const char *method, const char *target);

#endif
