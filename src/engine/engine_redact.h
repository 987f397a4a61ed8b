/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_redact.h - what the engine itself says of a run is redacted like what the command prints
 */
#ifndef BELLJAR_ENGINE_ENGINE_REDACT_H
#define BELLJAR_ENGINE_ENGINE_REDACT_H

#include "plan/plan.h"

struct redactor;

struct engine_words {
	struct redactor *redactor; /* NULL: there is nothing to redact */
	bool is_blind;             /* it could not be made: nothing can be shown */
};

void engine_words_init(struct engine_words *words, const struct plan *plan);
void engine_words_done(struct engine_words *words);
void engine_words_write(const struct engine_words *words, const char *string, struct json_writer *writer,
			const char *key);

/* There may be no plan yet; the policy and the caller's environment say what is secret. */
void engine_redact_error(const struct policy *policy, char *const *environment, struct error *error);

#endif
