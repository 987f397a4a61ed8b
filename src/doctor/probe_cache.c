/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor/probe_cache.c - what jars can leave for later jars here
 */
#include "doctor/probe.h"

#include <errno.h>

#include "engine/engine_skeleton.h"

void probe_root_cache(struct finding *finding)
{
	struct error error = {0};
	struct host host = {0};
	ssize_t count = -1;

	if (host_probe(&host, environ, &error) == 0 && engine_skeletons_find(&host) == 0)
		count = engine_skeletons_count(&host);
	finding->is_found = count >= 0;
	if (count >= 0)
		finding_value(finding, "%zd kept in %s", count, host.skeletons.path);
	else if (host.skeletons.path)
		finding_value(finding,
			      count == -ENOENT ? "there is no %s" : "%s is not a directory that only you can change",
			      host.skeletons.path);
	if (count < 0)
		finding_remedy(finding, "log in so that systemd-logind makes /run/user/UID, or have root make it\n");
	host_done(&host);
}
