/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan_test.h - leave a layer out of a plan, to prove that a test would notice (test builds only)
 *
 * BELLJAR_TEST_WITHOUT=landlock,seccomp names layers, as `belljar doctor --prove` does. A program that users run has no
 * such function and does not look at the variable.
 */
#ifndef BELLJAR_PLAN_PLAN_TEST_H
#define BELLJAR_PLAN_PLAN_TEST_H

#include "plan/plan.h"

#ifdef BELLJAR_TEST_BUILD
/* -EINVAL for a name that is no layer: a test must not pass because of a typing mistake. */
int plan_leave_out(struct plan *plan, char *const *environment, struct error *error);
#endif

#endif
