/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/limits/cgroup.h - the cgroups of a jar, and of a run in a session: make them before, read, remove them after
 */
#ifndef BELLJAR_ENGINE_LIMITS_CGROUP_H
#define BELLJAR_ENGINE_LIMITS_CGROUP_H

#include <limits.h>

#include "base/error.h"
#include "base/loop.h"
#include "plan/plan.h"

enum cgroup_part { CGROUP_MEMORY, CGROUP_PIDS, CGROUP_CPU, CGROUP_PART_COUNT };

#define CGROUP_NAME_MAX 32

struct cgroup {
	int version;
	const char *paths[CGROUP_PART_COUNT]; /* the plan's; NULL: not used. In version 2 all used ones are the same */
	int fds[CGROUP_PART_COUNT];           /* the directories, locked; -1: not made */
	const struct cgroup
		*parent; /* of a run in a session: the jar's cgroup, where this one is @name; it must outlive this */
	char name[CGROUP_NAME_MAX];
	uint64_t memory_bytes, pids; /* the limits it has; 0: none was set */
	int room_fd;   /* version 2: our own cgroup, if the run's is below it; -1: the run's is beside it */
	int engine_fd; /* the child cgroup that the engine moved to, locked */
	char engine_path[PATH_MAX];
	int notice_fd; /* readable (version 1) or exceptional (version 2) when the kernel has killed for memory; -1: none */
};

/* The kernel's counts; a number is valid only if its flag is set. */
struct cgroup_reading {
	bool has_peak_memory, has_peak_pids, has_cpu;
	uint64_t peak_memory_bytes;
	uint64_t killed_for_memory; /* processes of this cgroup, for any cgroup's limit */
	uint64_t memory_refusals;   /* version 2: kills for this cgroup's own limit */
	uint64_t peak_pids;
	uint64_t refused_pids; /* forks */
	uint64_t cpu_ns;
	uint64_t user_ns, system_ns; /* its parts; both 0 where the kernel does not say */
};

/* Make and set up the cgroups of @plan, and remove those that killed engines left. On failure nothing is left. */
int limits_cgroup_open(struct cgroup *cgroup, const struct plan *plan, struct error *error);
/*
 * Make a cgroup ahead for a run in the session of @jar, without limits yet. Minders enter it by writing to the
 * *@member_count descriptors @member_fds, which the caller owns.
 */
int limits_cgroup_open_run(struct cgroup *cgroup, const struct cgroup *jar, uint32_t number,
			   int member_fds[CGROUP_PART_COUNT], size_t *member_count);
/* Set the limits of a run on it. 0 or a negative errno. */
int limits_cgroup_limit(struct cgroup *cgroup, const struct limits *limits);
/* Raise a kept jar's limit on processes by its number of @minders. 0 or a negative errno. */
int limits_cgroup_make_room(const struct cgroup *cgroup, const struct limits *limits, size_t minders);
/*
 * Remove them; they must be empty. The kernel may refuse just after a process has left. Then this tries again
 * from @loop, which loop_drain() waits for. @loop NULL: they were always empty.
 */
void limits_cgroup_done(struct cgroup *cgroup, struct loop *loop);

void limits_cgroup_read(const struct cgroup *cgroup, struct cgroup_reading *reading);
uint64_t limits_cgroup_cpu_ns(const struct cgroup *cgroup);
/* Read the use at this moment. False: the kernel does not report it, or no cgroup counts it. */
bool limits_cgroup_memory_now(const struct cgroup *cgroup, uint64_t *bytes_out);
bool limits_cgroup_processes_now(const struct cgroup *cgroup, uint64_t *count_out);
/* "cgroup1", "cgroup2" */
const char *limits_cgroup_word(const struct cgroup *cgroup);

#endif
