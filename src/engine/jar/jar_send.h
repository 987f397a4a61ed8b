/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/jar/jar_send.h - what the engine sends to the first process of a session, and to minders
 */
#ifndef BELLJAR_ENGINE_JAR_JAR_SEND_H
#define BELLJAR_ENGINE_JAR_JAR_SEND_H

#include "inside/jar.h"

/*
 * Send @plan's command to a first process or minder, ready or not yet. @is_detached: the command's other
 * processes outlive it (JAR_LEFT).
 */
int jar_send_run(int control_fd, const struct jar_plan *plan, bool is_metered, bool is_detached,
		 const struct jar_streams *streams);
/*
 * Ask for minder @number, which is not 0, with the control socket @minder_end. It enters cgroups by their
 * member files @cgroup_fds, then sends JAR_READY or JAR_STEP_FAILED there. JAR_MINDER_GONE on @control_fd
 * always reports its end.
 */
int jar_send_minder(int control_fd, uint32_t number, int minder_end, const int *cgroup_fds, size_t cgroup_count);

#endif
