/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/gate/engine_gate.h - the engine's side of a gate: the process through which a jar reaches the hosts its policy names
 *
 * The jar hands its sockets to the engine while it is made. The process is started when one of them is used, or some milliseconds
 * later, and the engine keeps none. Until then connections and questions wait in the sockets: no start waits for a gate, and a short
 * command that uses no network has none. When the process is gone, whatever ended it, the jar's network is one without a way out.
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
	/* Something was refused that the run has not heard of. Called from within the loop. */
	void (*denied)(void *owner, const struct denial *denial);
	void *owner;
	/*
	 * It is asked about what no rule decides, and answers with engine_gate_answer(), now or later; or the question is withdrawn. NULL:
	 * nobody answers. Called from within the loop.
	 */
	void (*question)(void *owner, const struct net_question *question);
	void (*withdrawn)(void *owner, uint32_t id);
	/* the gate's own */
	bool may_be_asked; /* until it leaves */
	bool is_answering; /* it has started */
	unsigned asked_count;
	uint32_t run_number; /* 0: it can have no rules of its own */
	/* What others had counted before. */
	uint64_t bytes_before, refused_before;
	uint64_t denials_before[DENIALS_MAX], denials_more_before;
	bool is_denial_told[DENIALS_MAX];
	struct network_host_list before;
};

/*
 * For the jar of @plan. @family as in struct session_request. What the jar publishes has its ports of the host from here on. 0 or a
 * negative errno.
 */
int engine_gate_new(struct loop *loop, const struct plan *plan, struct reap_family *family, struct gate **out,
		    struct error *error);
/* Which ports of the host those are. */
void engine_gate_tell_published(const struct gate *gate, struct network_seen *out);
/* One of the sockets of STEP_SOCKETS; -1: it is not there. 0 or a negative errno. */
int engine_gate_take(struct gate *gate, int fd);
/*
 * The jar is gone. What it had sent is brought to its end within a second or so; then @function is called, from within the loop,
 * never from within this call.
 */
void engine_gate_finish(struct gate *gate, void (*function)(void *owner), void *owner);
/* End it now. Accepts NULL. */
void engine_gate_free(struct gate *gate);

/* The run begins; @visit has its limits, function and owner. 0 or -ENOMEM. */
int engine_gate_enter(struct gate *gate, struct gate_visit *visit);
/* It is over: add what went to which host meanwhile, and what was refused. Runs at the same time count together. */
void engine_gate_leave(struct gate_visit *visit, struct observation *out);

/* Its run has started: it hears of questions from now on, first of those that came before. */
void engine_gate_begin_answering(struct gate_visit *visit);
/* To a question that it was asked. One that is not there any more is nothing. */
void engine_gate_answer(struct gate_visit *visit, uint32_t id, enum net_answer answer);

struct gate_change;

/*
 * A rule for a jar that stands: from now on it is the last word about what it is about, but for the policy's exceptions. A rule
 * that denies also ends connections that are open. @function is called from within the loop, never from within this call,
 * when the gate has taken it (0) or will not (a negative errno). 0 or a negative errno: -EOPNOTSUPP, the jar's network does not lead
 * these addresses to the gate.
 */
int engine_gate_change(struct gate *gate, const struct net_rule *rule, void (*function)(void *owner, int rc),
		       void *owner, struct gate_change **out);
/* Nobody wants to know any more. */
void engine_gate_forget_change(struct gate_change *change);

/*
 * engine_gate_bind.c: listen on the host's 127.0.0.1 for what @entry publishes. The descriptor, and the port in *@host_port; or a
 * negative errno.
 */
int engine_gate_bind(const struct publish *entry, uint16_t *host_port, struct error *error);

#endif
