/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host/host_risky.h - which files that other programs execute later have appeared, or changed, since the survey
 */
#ifndef BELLJAR_HOST_HOST_RISKY_H
#define BELLJAR_HOST_HOST_RISKY_H

#include "host/host.h"

struct risky_path {
	char *path;
	const char *why;
};

LIST_TYPE(struct risky_path, risky_list);

/* Memory running out leaves the list shorter. Only looks, never opens or follows what the command may have written. */
void host_find_risky(const struct host *host, struct risky_list *risky);
void host_risky_done(struct risky_list *risky);

#endif
