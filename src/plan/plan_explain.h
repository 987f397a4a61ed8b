/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan_explain.h - may a command do this? By which rule, and what is the smallest change that would allow it?
 *
 * Pure: a plan and a question give an answer. Whoever says why something was refused asks here: `belljar why`, `belljar net
 * check`, `belljar policy test`, and the cures of the ledger.
 */
#ifndef BELLJAR_PLAN_PLAN_EXPLAIN_H
#define BELLJAR_PLAN_PLAN_EXPLAIN_H

#include "base/json_write.h"
#include "plan/plan.h"

struct plan_explanation {
	bool is_allowed;
	struct text why;     /* a clause: the rule that decides */
	struct text flag;    /* options that would allow it; empty: no option does */
	struct text policy;  /* the same as members of a policy, a JSON object; empty with `flag` */
	struct text warning; /* why there is no cure, or what to think of before taking it; may be empty */
};

void plan_explanation_done(struct plan_explanation *explanation);
/* As a member @key: {"flag","policy"}, or null. */
void plan_write_cure(const struct plan_explanation *explanation, struct json_writer *writer, const char *key);

/* A host to reach. */
struct plan_endpoint {
	bool is_address, is_ipv6;
	uint8_t address[16];
	char name[NET_NAME_SIZE]; /* clean, unless it is an address */
	uint16_t port;            /* 0: on any port */
};

/* HOST[:PORT], [ADDRESS]:PORT. False: it is none. */
bool plan_read_endpoint(const char *text, struct plan_endpoint *out);
/* Such a text again. */
void plan_format_endpoint(const struct plan_endpoint *endpoint, struct text *out);

/* What a plan says of networks. */
struct plan_network_rules {
	enum net_mode net;
	bool may_have_gate; /* the rung can have one */
	const struct net_rule_list *rules;
};

struct plan_network_rules plan_network_rules(const struct plan *plan);
void plan_explain_host(const struct plan_network_rules *network, const struct plan_endpoint *endpoint,
		       struct plan_explanation *out);
/* The rule is right, but the name leads to @address, which such a rule does not mean. */
void plan_explain_address(const struct plan_endpoint *endpoint, const struct plan_endpoint *address,
			  struct plan_explanation *out);
/* @request is a method and a path, which the rules about the host do not allow. */
void plan_explain_request(const struct plan_endpoint *endpoint, const char *request, struct plan_explanation *out);

#endif
