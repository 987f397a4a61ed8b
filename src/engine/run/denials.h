/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/run/denials.h - what a run was refused: system calls, as its jar reports them; names, redacted like what the command prints
 */
#ifndef BELLJAR_ENGINE_RUN_DENIALS_H
#define BELLJAR_ENGINE_RUN_DENIALS_H

#include "inside/control.h"
#include "plan/explain/denial.h"

struct redactor;

/* A copy whose path is the caller's to free; NULL if there is no memory for it. */
void run_denials_copy(const struct denial *denial, struct denial *out);

/* @redactor may be NULL. */
void run_denials_redact(const struct redactor *redactor, struct denial *denials, size_t count);

/*
 * What a JAR_DENIED says. The entry that it is about, if it is new there, else NULL. The sender could say anything: so many entries are
 * kept, and no more.
 */
const struct denial *run_denials_note_call(struct denied_seen *seen, const struct jar_message *message);

#endif
