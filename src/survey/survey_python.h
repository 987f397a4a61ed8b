/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_python.h - virtual environments that the caller uses, with the Python installations they are made from
 */
#ifndef BELLJAR_SURVEY_SURVEY_PYTHON_H
#define BELLJAR_SURVEY_SURVEY_PYTHON_H

#include "survey/survey.h"

/* Into host->toolchains, and into host->unshown what cannot be shown. -ENOMEM only. */

/* The environment X of @directory, where that is X/bin; else nothing. */
int survey_add_environment_of(struct host *host, const struct policy *policy, const char *directory);
/* What VIRTUAL_ENV and host->prefixes name. */
int survey_add_named_pythons(struct host *host, const struct policy *policy);

#endif
