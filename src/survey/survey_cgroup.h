/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_cgroup.h - what this host can count: where cgroups of a run's own can be made, and what works without
 */
#ifndef BELLJAR_SURVEY_SURVEY_CGROUP_H
#define BELLJAR_SURVEY_SURVEY_CGROUP_H

#include "survey/survey.h"

/* True if @policy has a limit that a cgroup would hold better than anything else on @host. */
bool survey_wants_cgroups(const struct host *host, const struct policy *policy);
/* Look, and make nothing; again where @host has turned out to need more. 0, or -ENOMEM. */
int survey_cgroups(struct host *host, const struct policy *policy);
/* The same without asking whether any limit needs them. */
int survey_find_cgroups(struct host_cgroups *cgroups);
/* A new name for those that a jar will make. */
int survey_name_cgroups(struct host_cgroups *cgroups);
/* The first writable directory of @policy on which written bytes are not counted for a process. 0, or -ENOMEM. */
int survey_find_uncounted(struct host *host, const struct policy *policy);
/* May an ordinary process have the kernel's clock of a whole tree's CPU time? */
bool survey_may_have_task_clock(void);
void survey_cgroups_done(struct host_cgroups *cgroups);

#endif
