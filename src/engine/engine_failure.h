/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_failure.h - a step failed: is it the host that gives less than it seemed, and if not, in which words?
 */
#ifndef BELLJAR_ENGINE_ENGINE_FAILURE_H
#define BELLJAR_ENGINE_ENGINE_FAILURE_H

#include "survey/survey.h"
#include "plan/plan.h"
#include "engine/limits/observation.h"

/* True if the failure shows that a fact about the host is wrong; it is then put right in @host. */
bool engine_failure_corrects_host(const struct plan *plan, const struct observation *seen, struct host *host);
/* The same for a jar whose first process could not even be made. */
bool engine_failure_corrects_host_start(const struct plan *plan, const struct error *error, struct host *host);
/* Where @seen says only which step failed: put the stage, the step and a hint into @error, which is its error or a copy. */
void engine_failure_explain(const struct plan *plan, const struct observation *seen, struct error *error);

#endif
