/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/result/result_denied.h - the ledger: what was refused, why, and what would allow it
 */
#ifndef BELLJAR_ENGINE_RESULT_RESULT_DENIED_H
#define BELLJAR_ENGINE_RESULT_RESULT_DENIED_H

#include "base/json_write.h"
#include "engine/limits/observation.h"
#include "plan/plan.h"

/* As members "denied", the most telling first, and "denied_more", attempts that it has no room for. */
void result_write_denied(const struct plan *plan, const struct observation *seen, struct json_writer *writer);
/* Write one of them, as a member @key. */
void result_write_denial(const struct plan *plan, const struct denial *denial, struct json_writer *writer,
			 const char *key);
/*
 * Describe a refusal, the most telling first: @what was refused, and what would allow it in @cure. @what stays
 * empty for the refusal that ended the run. False: there are no more. Names in it are safe to print.
 */
bool result_tell_denial(const struct plan *plan, const struct observation *seen, size_t number, struct text *what,
			struct text *cure);

#endif
