/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host/host_cgroup.h - what this host can count: where cgroups of a run's own can be made, and what works without
 */
#ifndef BELLJAR_HOST_HOST_CGROUP_H
#define BELLJAR_HOST_HOST_CGROUP_H

#include "host/host.h"

/* True if @policy has a limit that a cgroup would hold better than anything else on @host. */
bool host_wants_cgroups(const struct host *host, const struct policy *policy);
/* Look, and make nothing; again where @host has turned out to need more. 0, or -ENOMEM. */
int host_survey_cgroups(struct host *host, const struct policy *policy);
/* The same without asking whether any limit needs them. */
int host_find_cgroups(struct host_cgroups *cgroups);
/* A new name for those that a jar will make. */
int host_name_cgroups(struct host_cgroups *cgroups);
/* The first writable directory of @policy on which written bytes are not counted for a process. 0, or -ENOMEM. */
int host_find_uncounted(struct host *host, const struct policy *policy);
/* May an ordinary process have the kernel's clock of a whole tree's CPU time? */
bool host_may_have_task_clock(void);
void host_cgroups_done(struct host_cgroups *cgroups);

#endif
