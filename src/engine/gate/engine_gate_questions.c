/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/gate/engine_gate_questions.c - the engine's side of questions: pass them to a run, and the answers to the gate
 *
 * The engine does not trust the questions of the gate's process. Runs at the same time share a jar's network,
 * so the engine cannot know which run made a connection. It asks the oldest run that can answer. A run that
 * ends passes its questions on.
 *
 * A command can look a name up before the engine hears of its start. So the gate counts a run from its entry
 * on: else it would answer that the name does not exist. The engine keeps early questions until the run starts.
 */
#include <errno.h>
#include <string.h>

#include "gate/gate_address.h"
#include "engine/gate/engine_gate_parts.h"
#include "base/sys/calls.h"

/* The most questions that wait at once, as in the process, and the most for a run in all. */
#define WAITING_MAX 16
#define ASKED_MAX 256

struct gate_question {
	struct gate_question *next;
	uint32_t number; /* the process's */
	struct gate_visit *visit;
	uint64_t deadline_ns;
	struct net_question asked;
};

/* --- which run to ask --------------------------------------------------------------------------------------- */

static bool can_answer(const struct gate_visit *visit)
{
	return visit->may_be_asked && visit->asked_count < ASKED_MAX;
}

/* The oldest of those that have started, else of all: the list has the youngest first. */
static struct gate_visit *find_visit(const struct gate *gate)
{
	struct gate_visit *found = NULL;

	for (struct gate_visit *visit = gate->visits; visit; visit = visit->next)
		if (can_answer(visit) && (visit->is_answering || !found || !found->is_answering))
			found = visit;
	return found;
}

static void note_askers(struct gate *gate)
{
	gate->page->can_ask = find_visit(gate) != NULL;
}

/* --- questions ---------------------------------------------------------------------------------------------- */

static void drop(struct gate *gate, struct gate_question *question)
{
	for (struct gate_question **at = &gate->questions; *at; at = &(*at)->next) {
		if (*at == question) {
			*at = question->next;
			break;
		}
	}
	free(question);
}

static void reply(struct gate *gate, uint32_t number, enum net_answer answer, uint32_t run)
{
	/* If the answer is lost the process refuses by itself, a little later. */
	engine_gate_send(gate,
			 &(struct gate_message){.kind = GATE_ANSWER, .number = number, .answer = answer, .run = run});
}

static void on_timer(struct loop_timer *timer);

static void arm(struct gate *gate)
{
	uint64_t first_ns = UINT64_MAX;

	for (const struct gate_question *question = gate->questions; question; question = question->next)
		first_ns = MIN_OF(first_ns, question->deadline_ns);
	if (gate->questions)
		loop_arm(gate->loop, &gate->ask_timer, first_ns, on_timer, gate);
	else
		loop_disarm(&gate->ask_timer);
}

/* Withdraw a question: no answer is needed any more. */
static void withdraw(struct gate *gate, struct gate_question *question)
{
	struct gate_visit *visit = question->visit;
	uint32_t id = question->asked.id;

	drop(gate, question);
	if (visit->is_answering)
		visit->withdrawn(visit->owner, id);
}

static void on_timer(struct loop_timer *timer)
{
	struct gate *gate = timer->owner;
	uint64_t now_ns = sys_monotonic_ns();
	struct gate_question *next;

	for (struct gate_question *question = gate->questions; question; question = next) {
		next = question->next;
		if (now_ns < question->deadline_ns)
			continue;
		reply(gate, question->number, NET_DENY, 0);
		withdraw(gate, question);
	}
	arm(gate);
}

static void hand_over(struct gate *gate, struct gate_question *question, struct gate_visit *visit)
{
	question->visit = visit;
	visit->asked_count++;
	note_askers(gate);
	if (visit->is_answering)
		visit->question(visit->owner, &question->asked);
}

static bool find_place(const struct net_rule *rule, enum net_place *out)
{
	enum address_kind kind;

	*out = NET_PLACE_NAME;
	if (rule->kind == NET_RULE_NAME)
		return true;
	kind = policy_address_place(rule->is_ipv6, rule->address).kind;
	*out = gate_address_is_own(rule->is_ipv6, rule->address) ? NET_PLACE_HOST
	       : kind == ADDRESS_PRIVATE                         ? NET_PLACE_PRIVATE
								 : NET_PLACE_PUBLIC;
	return kind != ADDRESS_SPECIAL;
}

void engine_gate_questions_take(struct gate *gate, uint32_t number, const struct net_rule *rule)
{
	struct gate_visit *visit = gate->plan->gate.may_ask ? find_visit(gate) : NULL;
	struct gate_question *question;
	enum net_place place;
	size_t count = 0;

	for (question = gate->questions; question; question = question->next, count++)
		if (question->number == number)
			return; /* it asks that already */
	question = visit && count < WAITING_MAX && find_place(rule, &place) ? calloc(1, sizeof(*question)) : NULL;
	if (!question) {
		reply(gate, number, NET_DENY, 0);
		return;
	}
	*question = (struct gate_question){
		.next = gate->questions,
		.number = number,
		.deadline_ns = sys_monotonic_ns() + gate->plan->gate.ask_timeout_ns,
		.asked = {.id = ++gate->last_question,
			  .rule = *rule,
			  .place = place,
			  .timeout_ns = gate->plan->gate.ask_timeout_ns},
	};
	gate->questions = question;
	arm(gate);
	hand_over(gate, question, visit);
}

void engine_gate_questions_withdraw(struct gate *gate, uint32_t number)
{
	for (struct gate_question *question = gate->questions; question; question = question->next) {
		if (question->number == number) {
			withdraw(gate, question);
			break;
		}
	}
	arm(gate);
}

void engine_gate_answer(struct gate_visit *visit, uint32_t id, enum net_answer answer)
{
	struct gate *gate = visit->gate;

	if (!gate)
		return;
	for (struct gate_question *question = gate->questions; question; question = question->next) {
		if (question->visit != visit || question->asked.id != id)
			continue;
		reply(gate, question->number, answer, visit->run_number);
		drop(gate, question);
		break;
	}
	arm(gate);
}

/* --- runs --------------------------------------------------------------------------------------------------- */

void engine_gate_questions_enter(struct gate *gate, struct gate_visit *visit)
{
	visit->may_be_asked = visit->question && gate->plan->gate.may_ask;
	visit->is_answering = false;
	visit->asked_count = 0;
	visit->run_number = 0;
	note_askers(gate);
	for (size_t i = 0; i < GATE_RUNS_MAX; i++) {
		if (gate->run_numbers[i])
			continue;
		visit->run_number = ++gate->last_run;
		gate->run_numbers[i] = visit->run_number;
		gate->page->runs[i] = visit->run_number;
		return;
	}
}

void engine_gate_begin_answering(struct gate_visit *visit)
{
	const struct gate_question *next;

	if (!visit->gate || !visit->may_be_asked || visit->is_answering)
		return;
	visit->is_answering = true;
	for (const struct gate_question *question = visit->gate->questions; question; question = next) {
		next = question->next;
		if (question->visit == visit)
			visit->question(visit->owner, &question->asked);
	}
}

void engine_gate_questions_leave(struct gate *gate, struct gate_visit *visit)
{
	struct gate_question *next;
	struct gate_visit *other;

	visit->may_be_asked = visit->is_answering = false;
	note_askers(gate);
	for (size_t i = 0; i < GATE_RUNS_MAX && visit->run_number; i++) {
		if (gate->run_numbers[i] == visit->run_number) {
			gate->page->runs[i] = 0;
			gate->run_numbers[i] = 0;
		}
	}
	for (struct gate_question *question = gate->questions; question; question = next) {
		next = question->next;
		if (question->visit != visit)
			continue;
		other = find_visit(gate);
		if (other) {
			hand_over(gate, question, other);
			continue;
		}
		reply(gate, question->number, NET_DENY, 0);
		drop(gate, question);
	}
	arm(gate);
}

void engine_gate_questions_end(struct gate *gate)
{
	while (gate->questions)
		withdraw(gate, gate->questions);
	arm(gate);
}
