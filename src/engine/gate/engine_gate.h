/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/gate/engine_gate.h - the engine's side of a gate: the process through which a jar reaches the hosts its policy names
 *
 * The jar sends its sockets to the engine while it is made. The engine starts the gate's process at their first use,
 * or some milliseconds later, and keeps no socket. Until then connections wait in the sockets. So no start waits for a
 * gate, and a short command without network has none. When the process is gone, the jar's network has no way out.
 */
#ifndef BELLJAR_ENGINE_GATE_ENGINE_GATE_H
#define BELLJAR_ENGINE_GATE_ENGINE_GATE_H

#include "base/error.h"
#include "base/loop.h"
#include "engine/limits/observation.h"
#include "plan/plan.h"
#include "policy/net_rules.h"
#include "base/reap/reap.h"

struct gate;

/* A run that uses a gate; embedded in it. */
struct gate_visit {
	struct gate *gate; /* NULL: it uses none, or no longer */
	struct gate_visit *next;
	const struct limits *limits;
	/* A limit was reached; CAUSE_NONE: the run goes on. Called from within the loop. */
	void (*limit)(void *owner, enum limit_name name, const struct limit_hit *hit, enum cause cause);
	/* The gate refused something that is new to the run. Called from within the loop. */
	void (*denied)(void *owner, const struct denial *denial);
	void *owner;
	/*
	 * No rule decides a connection: answer with engine_gate_answer(), now or later, until withdrawn().
	 * NULL: the run cannot answer. Called from within the loop.
	 */
	void (*question)(void *owner, const struct net_question *question);
	void (*withdrawn)(void *owner, uint32_t id);
	/* the gate's own */
	bool may_be_asked; /* until it leaves */
	bool is_answering; /* it has started */
	unsigned asked_count;
	uint32_t run_number; /* 0: it can have no rules of its own */
	/* The counts when the run entered. */
	uint64_t bytes_before, refused_before;
	uint64_t denials_before[DENIALS_MAX], denials_more_before;
	bool is_denial_told[DENIALS_MAX];
	struct network_host_list before;
};

/*
 * Make a gate for the jar of @plan. @family as in struct session_request. Binds the host's ports that the jar
 * publishes. 0 or a negative errno.
 */
int engine_gate_new(struct loop *loop, const struct plan *plan, struct reap_family *family, struct gate **out,
		    struct error *error);
/* Copy the published ports of the host to @out. */
void engine_gate_tell_published(const struct gate *gate, struct network_seen *out);
/* Take a socket of STEP_SOCKETS; -1: it does not exist. 0 or a negative errno. */
int engine_gate_take(struct gate *gate, int fd);
/*
 * End the gate after its jar. The gate still sends the jar's last bytes, for about a second. Then this calls
 * @function, from within the loop, never from within this call.
 */
void engine_gate_finish(struct gate *gate, void (*function)(void *owner), void *owner);
/* End the gate now. Accepts NULL. */
void engine_gate_free(struct gate *gate);

/* Begin a run; @visit has its limits, functions and owner. 0 or -ENOMEM. */
int engine_gate_enter(struct gate *gate, struct gate_visit *visit);
/* End a run: add its traffic for each host, and refusals, to @out. Runs at the same time count together. */
void engine_gate_leave(struct gate_visit *visit, struct observation *out);

/* Pass questions to the run, which has started: first those that came before. */
void engine_gate_begin_answering(struct gate_visit *visit);
/* Answer a question. Ignores a question that is gone. */
void engine_gate_answer(struct gate_visit *visit, uint32_t id, enum net_answer answer);

struct gate_change;

/*
 * Add a rule to an existing jar. It overrides earlier rules, but not the policy's exceptions. A rule that
 * denies also closes open connections. Calls @function from within the loop, never from within this call, when
 * the gate has taken the rule (0) or refused it (a negative errno). 0 or a negative errno; -EOPNOTSUPP: the
 * jar's network does not lead these addresses to the gate.
 */
int engine_gate_change(struct gate *gate, const struct net_rule *rule, void (*function)(void *owner, int rc),
		       void *owner, struct gate_change **out);
/* Forget a change: do not call its function any more. */
void engine_gate_forget_change(struct gate_change *change);

/*
 * engine_gate_bind.c: listen on the host's 127.0.0.1 for what @entry publishes. Returns the descriptor, and the
 * port in *@host_port, or a negative errno.
 */
int engine_gate_bind(const struct publish *entry, uint16_t *host_port, struct error *error);

#endif
