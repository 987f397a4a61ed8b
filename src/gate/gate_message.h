/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/gate_message.h - messages between a gate's process and its engine
 *
 * One socket, one datagram for each message, fixed numbers and one text. Either side reads messages as if the other
 * side were hostile, and drops a message that does not match its kind exactly. A rule is sent as text in its canonical
 * form, and the receiver parses it again.
 */
#ifndef BELLJAR_GATE_GATE_MESSAGE_H
#define BELLJAR_GATE_GATE_MESSAGE_H

#include "policy/net_rules.h"

/* The longest rule in its canonical form, a reason with every byte escaped, fits. */
#define GATE_TEXT_MAX 8192

enum gate_message_kind {
	/* from the gate */
	GATE_LOOK = 1,  /* look at the page */
	GATE_DONE,      /* the rule of change `number` is in force */
	GATE_FULL,      /* it is not: there are too many rules */
	GATE_QUESTION,  /* question `number`: may the jar reach the host and port of `rule`? */
	GATE_WITHDRAWN, /* question `number` needs no answer any more */
	GATE_STALE,     /* a lookup waits: read the host's files about names again */
	/* from the engine */
	GATE_RULE,   /* change `number`: put this rule in force */
	GATE_ANSWER, /* to question `number`, from the run `run`; 0: no run answered */
	GATE_FILES,  /* the page has the contents of the host's files */
	GATE_MESSAGE_KIND_COUNT,
};

enum gate_side { GATE_FROM_PROCESS, GATE_FROM_ENGINE };

struct gate_message {
	uint32_t kind;
	uint32_t number;
	uint32_t answer; /* enum net_answer */
	uint32_t run;
	struct net_rule rule; /* GATE_RULE, GATE_QUESTION */
};

#define GATE_MESSAGE_MAX (16 + GATE_TEXT_MAX)

/* False: @from never sends this. */
bool gate_message_read(const void *bytes, size_t len, enum gate_side from, struct gate_message *out);
/* How many bytes of @out are the message; 0: the rule is too long to be sent. */
size_t gate_message_write(const struct gate_message *message, uint8_t out[GATE_MESSAGE_MAX]);

#endif
