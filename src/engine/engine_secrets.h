/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_secrets.h - files of secrets, which no command may reach
 */
#ifndef BELLJAR_ENGINE_ENGINE_SECRETS_H
#define BELLJAR_ENGINE_ENGINE_SECRETS_H

#include "plan/plan.h"

/* Refuse a plan in which a command could read the file that a secret comes from, or choose which file that is. */
int engine_secrets_check(const struct plan *plan, const struct host *host, const struct policy *policy,
			 struct error *error);

#endif
