/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove/attempt.c - `belljar-prove --attempt NAME`: make one attempt, print one line
 */
#include "prove/attempt.h"

#include <stdio.h>
#include <string.h>

static const char *const verdict_names[] = {
	[VERDICT_UNKNOWN] = "unknown",
	[VERDICT_STOPPED] = "stopped",
	[VERDICT_THROUGH] = "through",
	[VERDICT_SKIPPED] = "skipped",
};

void prove_facts_print(const struct prove_facts *facts, struct text *out)
{
	text_append_format(out, "%s %s %d %d %d %d %d %d %jx %d", facts->base, facts->token, facts->tcp_port,
			   facts->udp_port, facts->gate_port, facts->shared_memory_id, facts->engine_pid,
			   facts->victim_pid, (uintmax_t)facts->victim_address, facts->pids_max);
}

static bool read_facts(const char *text, struct prove_facts *facts)
{
	uintmax_t address = 0;
	int count = sscanf(text, "%79s %19s %d %d %d %d %d %d %jx %d", facts->base, facts->token, &facts->tcp_port,
			   &facts->udp_port, &facts->gate_port, &facts->shared_memory_id, &facts->engine_pid,
			   &facts->victim_pid, &address, &facts->pids_max);

	facts->victim_address = (uintptr_t)address;
	return count == 10;
}

bool prove_answer_read(const char *line, struct answer *answer, char *call, size_t capacity)
{
	char verdict[16], layer[16], name[32];

	if (sscanf(line, PROVE_ANSWER_WORD " %15s %15s %31s %d", verdict, layer, name, &answer->errno_value) != 4)
		return false;
	snprintf(call, capacity, "%s", name);
	answer->call = call;
	answer->layer = prove_layer_by_name(layer);
	for (size_t i = 0; i < ARRAY_LEN(verdict_names); i++)
		if (!strcmp(verdict_names[i], verdict))
			answer->verdict = (enum verdict)i;
	return answer->layer != LAYER_COUNT;
}

int prove_attempt(const char *name, struct text *out, struct error *error)
{
	const struct attempt *attempt = attempt_by_name(name);
	const char *text = getenv(PROVE_FACTS_VARIABLE);
	struct prove_facts facts;
	struct answer answer;

	if (!attempt)
		return error_set(error, STAGE_USAGE, 0, "there is no attempt '%s'", name);
	if (!text || !read_facts(text, &facts)) {
		error_set(error, STAGE_USAGE, 0, "an attempt needs what --prove plants for it");
		return error_hint(error, "`belljar doctor --prove` makes all attempts, each in a jar of its own");
	}
	if (attempt->call)
		facts.call = prove_corpus_find(attempt->path    ? prove_corpus_paths
					       : attempt->probe ? prove_corpus_process
								: prove_corpus_calls,
					       attempt->call);
	if (attempt->probe)
		facts.probe = prove_corpus_find(prove_corpus_process, attempt->probe);
	facts.path = attempt->path;
	answer = attempt->function(&facts);
	text_append_format(out, PROVE_ANSWER_WORD " %s %s %s %d\n", verdict_names[answer.verdict],
			   prove_layer_name(answer.layer), answer.call, answer.errno_value);
	return 0;
}
