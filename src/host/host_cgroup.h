/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host/host_cgroup.h - where cgroups of a run's own can be made
 */
#ifndef BELLJAR_HOST_HOST_CGROUP_H
#define BELLJAR_HOST_HOST_CGROUP_H

#include "host/host.h"

/* True if @policy has a limit that a cgroup would hold better than anything else on @host. */
bool host_wants_cgroups(const struct host *host, const struct policy *policy);
/* Look, and make nothing. 0, or -ENOMEM. */
int host_find_cgroups(struct host_cgroups *cgroups);
void host_cgroups_done(struct host_cgroups *cgroups);

#endif
