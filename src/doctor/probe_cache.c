/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor/probe_cache.c - what jars can leave for later jars here
 */
#include "doctor/probe.h"

#include <errno.h>

#include "engine/skeleton/skeleton.h"

void probe_root_cache(struct finding *finding)
{
	struct error error = {0};
	struct host host = {0};
	ssize_t count = -1;

	if (survey_probe(&host, environ, &error) == 0 && skeletons_find(&host) == 0)
		count = skeletons_count(&host);
	finding->is_found = count >= 0;
	if (count >= 0)
		doctor_finding_value(finding, "%zd kept in %s", count, host.skeletons.path);
	else if (host.skeletons.path)
		doctor_finding_value(
			finding, count == -ENOENT ? "there is no %s" : "%s is not a directory that only you can change",
			host.skeletons.path);
	if (count < 0)
		doctor_finding_remedy(finding,
				      "log in so that systemd-logind makes /run/user/UID, or have root make it\n");
	survey_done(&host);
}
