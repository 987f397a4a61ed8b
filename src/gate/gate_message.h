/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/gate_message.h - what a gate's process and its engine say to each other
 *
 * One socket, one datagram for each message, fixed numbers and one text. Either side reads what the other sends as if it
 * were hostile: a message that is not exactly what its kind says is no message. Rules travel as text, in their canonical form,
 * and are parsed again where they arrive.
 */
#ifndef BELLJAR_GATE_GATE_MESSAGE_H
#define BELLJAR_GATE_GATE_MESSAGE_H

#include "policy/net_rules.h"

/* The longest rule in its canonical form, a reason with every byte escaped, fits. */
#define GATE_TEXT_MAX 8192

enum gate_message_kind {
	/* from the gate */
	GATE_LOOK = 1,  /* look at the page */
	GATE_DONE,      /* the rule of change `number` holds */
	GATE_FULL,      /* it does not: there are too many */
	GATE_QUESTION,  /* question `number`: may what `rule` names be reached? */
	GATE_WITHDRAWN, /* nobody waits for the answer any more */
	GATE_STALE,     /* somebody wants a name's addresses: read the host's files about names again */
	/* from the engine */
	GATE_RULE,   /* change `number`: from now on this rule holds */
	GATE_ANSWER, /* to question `number`, from the run `run`; 0: from nobody */
	GATE_FILES,  /* the page has what they say */
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
