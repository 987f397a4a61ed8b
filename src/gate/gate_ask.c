/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/gate_ask.c - questions about hosts that no rule decides about
 *
 * A connection waits while the gate asks the engine about its host and port. Connections to the same host and port
 * share a question. A program can try any number of hosts: beyond the bounds the gate refuses. Do not resolve the name
 * before the user agrees.
 */
#include <string.h>

#include "gate/gate_process.h"
#include "base/sys/calls.h"

/* Wait this much longer than the engine, so that its answer comes first unless it is lost. */
#define LATER_NS 2000000000ULL

struct question {
	struct question *next;
	uint32_t number;
	struct net_rule rule;
	size_t waiting;
	uint64_t deadline_ns;
};

bool gate_ask_is_possible(const struct gate_process *gate)
{
	return gate->page->may_ask && gate->page->can_ask && !gate->drain_until_ns;
}

static bool is_same(const struct net_rule *a, const struct net_rule *b)
{
	return a->kind == b->kind && a->is_ipv6 == b->is_ipv6 && a->ports[0].first == b->ports[0].first &&
	       !strcmp(a->name, b->name) && !memcmp(a->address, b->address, sizeof(a->address));
}

static void withdraw(const struct question *question)
{
	gate_tell(&(struct gate_message){.kind = GATE_WITHDRAWN, .number = question->number});
}

static void drop(struct gate_process *gate, struct question *question)
{
	for (struct question **at = &gate->questions; *at; at = &(*at)->next) {
		if (*at == question) {
			*at = question->next;
			break;
		}
	}
	gate->question_count--;
	free(question);
}

static struct question *add(struct gate_process *gate, const struct net_rule *rule)
{
	struct question *question;

	if (gate->question_count == GATE_QUESTIONS_MAX)
		return NULL;
	question = calloc(1, sizeof(*question));
	if (!question)
		return NULL;
	*question = (struct question){
		.next = gate->questions,
		.number = ++gate->last_question,
		.rule = *rule,
		.deadline_ns = sys_monotonic_ns() + gate->page->ask_timeout_ns + LATER_NS,
	};
	gate->questions = question;
	gate->question_count++;
	gate_tell(&(struct gate_message){.kind = GATE_QUESTION, .number = question->number, .rule = *rule});
	gate_want_tick(gate);
	return question;
}

struct question *gate_ask_about(struct gate_process *gate, const struct net_rule *rule)
{
	struct question *question = gate->questions;

	if (!gate_ask_is_possible(gate) || gate->asking_count == GATE_ASKING_MAX)
		return NULL;
	while (question && !is_same(&question->rule, rule))
		question = question->next;
	if (!question)
		question = add(gate, rule);
	if (!question)
		return NULL;
	question->waiting++;
	gate->asking_count++;
	return question;
}

void gate_ask_leave(struct gate_process *gate, struct question *question)
{
	gate->asking_count--;
	if (--question->waiting)
		return;
	withdraw(question);
	drop(gate, question);
}

/* Give the answer to all connections that wait. */
static void settle(struct gate_process *gate, struct question *question, bool is_allowed)
{
	gate->asking_count -= question->waiting;
	question->waiting = 0;
	gate_connection_answer(gate, question, is_allowed);
	drop(gate, question);
}

void gate_ask_take_answer(struct gate_process *gate, const struct gate_message *message)
{
	struct question *question = gate->questions;
	struct net_rule rule;

	while (question && question->number != message->number)
		question = question->next;
	if (!question)
		return;
	rule = question->rule;
	rule.is_deny = message->answer == NET_DENY;
	/* Without room for it the answer is for what waits now. */
	if (message->run && message->answer != NET_ONCE)
		gate_rules_add(gate, &rule, message->run);
	settle(gate, question, message->answer != NET_DENY);
}

void gate_ask_check_rules(struct gate_process *gate)
{
	struct question *next;

	for (struct question *question = gate->questions; question; question = next) {
		struct net_verdict verdict = gate_rules_decide(gate, &question->rule);

		next = question->next;
		if (!verdict.rule)
			continue;
		withdraw(question);
		settle(gate, question, verdict.is_allowed);
	}
}

bool gate_ask_check_time(struct gate_process *gate, uint64_t now_ns)
{
	struct question *next;

	for (struct question *question = gate->questions; question; question = next) {
		next = question->next;
		if (now_ns < question->deadline_ns)
			continue;
		withdraw(question);
		settle(gate, question, false);
	}
	return gate->questions;
}
