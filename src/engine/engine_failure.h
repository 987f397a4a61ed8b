/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_failure.h - after a failed step: correct the facts about the host, or explain the failure
 */
#ifndef BELLJAR_ENGINE_ENGINE_FAILURE_H
#define BELLJAR_ENGINE_ENGINE_FAILURE_H

#include "survey/survey.h"
#include "plan/plan.h"
#include "engine/limits/observation.h"

/* If the failure shows that a fact about the host is wrong, correct @host and return true. */
bool engine_failure_corrects_host(const struct plan *plan, const struct observation *seen, struct host *host);
/* The same for a jar whose first process could not even be made. */
bool engine_failure_corrects_host_start(const struct plan *plan, const struct error *error, struct host *host);
/* If @seen has only a failed step, put the stage, step and a hint into @error, which is its error or a copy. */
void engine_failure_explain(const struct plan *plan, const struct observation *seen, struct error *error);

#endif
