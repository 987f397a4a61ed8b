/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/jar/jar_start.c - the engine's side: make the jar's first process
 */
#include "engine/jar/jar_start.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/processor.h"
#include "inside/init/init.h"
#include "base/sys/calls.h"

int jar_start_process(const struct jar_plan *plan, jar_main_function *main, const struct jar_streams *streams,
		      const struct jar_argv_memory *argv_memory, struct jar_times *times, struct jar *jar,
		      struct error *error)
{
	AUTO_CLOSE int engine_end = -1;
	AUTO_CLOSE int jar_end = -1;
	AUTO_CLOSE int cgroup_fd = -1;
	struct processors processors = {0};
	int rc = control_socket_pair(&engine_end, &jar_end);
	pid_t pid;

	if (rc < 0)
		return error_set(error, STAGE_ENGINE, -rc, "cannot make a control socket: %s", strerror(-rc));
	if (!(plan->namespaces & CLONE_NEWPID)) {
		/* Should the jar's first process be killed, its orphans must come to us. */
		prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
		/* The command runs as the same user beside us: our environment and memory are not for it. */
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	}
	if (times)
		times->begun_ns = sys_monotonic_ns();
	if (plan->birth_cgroup) {
		cgroup_fd = open(plan->birth_cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (cgroup_fd < 0)
			return error_set(error, STAGE_LIMITS, errno, "cannot open the run's cgroup: %s",
					 strerror(errno));
	}
	/* An engine that makes a jar ahead needs its processor meanwhile. */
	if (!main)
		processor_stay(&processors);
	pid = sys_fork(plan->namespaces & ~(uint64_t)CLONE_NEWNET, cgroup_fd, &jar->pidfd);
	/* Without clone3 no process starts in a cgroup; STEP_CGROUP joins it. Another refusal shows in that step. */
	if (pid < 0 && cgroup_fd >= 0)
		pid = sys_fork(plan->namespaces & ~(uint64_t)CLONE_NEWNET, -1, &jar->pidfd);
	processor_roam(&processors);
	if (pid < 0)
		return error_set(error, STAGE_ISOLATE, -pid, "cannot make the jar's first process: %s", strerror(-pid));
	if (pid == 0) {
		/* This is a copy: the engine's own command line and environment stay as they are. */
		if (argv_memory->len)
			memset(argv_memory->start, 0, argv_memory->len);
		init_main(plan, main, streams, times, jar_end);
	}
	jar->pid = pid;
	jar->control_fd = take_fd(&engine_end);
	return 0;
}
