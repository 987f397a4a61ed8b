/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_redact.h - redact the engine's own words about a run like the command's output
 */
#ifndef BELLJAR_ENGINE_ENGINE_REDACT_H
#define BELLJAR_ENGINE_ENGINE_REDACT_H

#include "plan/plan.h"

struct redactor;

struct engine_words {
	struct redactor *redactor; /* NULL: there is nothing to redact */
	bool is_blind;             /* the redactor could not be made: show nothing */
};

void engine_words_init(struct engine_words *words, const struct plan *plan);
void engine_words_done(struct engine_words *words);
void engine_words_write(const struct engine_words *words, const char *string, struct json_writer *writer,
			const char *key);

/* Redact @error without a plan: the policy and the caller's environment name the secrets. */
void engine_redact_error(const struct policy *policy, char *const *environment, struct error *error);

#endif
