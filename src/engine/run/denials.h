/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/run/denials.h - the refusals of a run: system calls, as its jar reports them; names, redacted like the output
 */
#ifndef BELLJAR_ENGINE_RUN_DENIALS_H
#define BELLJAR_ENGINE_RUN_DENIALS_H

#include "inside/control.h"
#include "plan/explain/denial.h"

struct redactor;

/* Copy a denial. The caller frees its path, which is NULL if there is no memory for it. */
void run_denials_copy(const struct denial *denial, struct denial *out);

/* @redactor may be NULL. */
void run_denials_redact(const struct redactor *redactor, struct denial *denials, size_t count);

/*
 * Note a JAR_DENIED. Returns its entry if that is new, else NULL. The number of entries is bounded, because the
 * sender is not trusted.
 */
const struct denial *run_denials_note_call(struct denied_seen *seen, const struct jar_message *message);

#endif
