/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/limits/limiter.h - hold a run, or a jar with all its runs, to its limits on memory, processes, CPU time and disk, and know which was reached
 *
 * Behind it stand the run's cgroup and the meter, whichever the plan chose for each limit. The limiter reports a
 * limit that ends the run when it sees that, and one that does not (a refused fork, a full private place) at the end.
 */
#ifndef BELLJAR_ENGINE_LIMITS_LIMITER_H
#define BELLJAR_ENGINE_LIMITS_LIMITER_H

#include <sys/resource.h>

#include "base/loop.h"
#include "inside/jar.h"
#include "engine/limits/cgroup.h"
#include "helper/looker.h"
#include "engine/limits/observation.h"

/* A limit was reached. @cause is what it ends the run for; CAUSE_NONE if the run goes on. */
typedef void limiter_function(void *owner, enum limit_name name, const struct limit_hit *hit, enum cause cause);

struct limiter {
	struct loop *loop;
	const struct plan *plan;
	limiter_function *function; /* NULL: it was stopped */
	void *owner;
	const struct limiter *jar; /* of a run in a session: the jar's, where memory may run out too; else NULL */
	struct reap_family *family;
	unsigned cpu_count;
	bool is_over;     /* a limit that ends the run was told */
	uint32_t metered; /* 1 << enum guarantee: what is really being looked at */
	struct loop_timer timer;

	/* What the cgroup holds. */
	struct cgroup cgroup;
	struct loop_watch notice;
	struct loop_timer recheck; /* the kernel says so before it kills */
	unsigned rechecks_left;
	struct cgroup_reading last_reading; /* once nothing was left */
	bool has_last_reading;

	/* What is measured. */
	struct meter meter;
	struct looker *looker; /* NULL: nobody looks yet */
	bool is_looking;       /* it was asked, and has not answered */
	unsigned blocked_times;
	unsigned unseen_looks;        /* in a row */
	struct meter_reading reading; /* of the last look */
	uint64_t peak_memory_bytes, peak_processes;
	uint64_t excess_bytes; /* by how much the last look was above the last weighing */
	uint64_t weighed_ns;   /* in the looker: when, and how long it took */
	uint64_t weighing_ns;

	/* What is no part of the command's account. */
	uint64_t launch_user_us, launch_system_us; /* CPU time that making the jar took */
	uint64_t clock_ns;                         /* the part of it that the meter's clock has seen */
	uint64_t host_kills; /* for want of memory, on the whole host, since it was started; as the command began */
};

/* Make what must be there before the jar. On failure nothing is left behind. */
int limiter_open(struct limiter *limiter, struct loop *loop, const struct plan *plan, struct reap_family *family,
		 limiter_function *function, void *owner, struct error *error);
/*
 * For one run in the session of @jar, which must outlive it. @cgroup, made ahead, is the limiter's from here on; the limits
 * of @plan are put on it. On failure limiter_done() must follow too.
 */
int limiter_open_run(struct limiter *limiter, struct loop *loop, const struct plan *plan, const struct limiter *jar,
		     const struct cgroup *cgroup, limiter_function *function, void *owner, struct error *error);
/* The run's minder is @pid inside the jar. 0 or a negative errno. */
int limiter_join(struct limiter *limiter, pid_t pid);
/* A descriptor from the jar; the limiter's from here on. A clock stood at @clock_ns before the command began. */
void limiter_take(struct limiter *limiter, enum jar_view view, int fd, uint64_t clock_ns);
/* What ended processes have written. */
void limiter_written(struct limiter *limiter, uint64_t bytes);
/* Making the jar took @making of what will be counted: that is not the command's. */
void limiter_leave_out(struct limiter *limiter, const struct rusage *making);
/* The command runs, as a descendant of @pid. False: it cannot be held to its limits. */
bool limiter_start(struct limiter *limiter, pid_t pid);
/* Go on now with what is done from time to time: measure, and report what is over. What the looker finds comes later. */
void limiter_look(struct limiter *limiter);
/* Look once, now: the command has ended, and the reason may be one of ours. @is_last: nothing of it is left. */
void limiter_check(struct limiter *limiter, bool is_last);
/* What is used now and was used so far; UINT64_MAX: nobody counts it. */
struct limiter_usage {
	uint64_t memory_bytes, peak_memory_bytes;
	uint64_t processes, peak_processes; /* threads are counted; the jar's own processes too */
	uint64_t cpu_us;
};

void limiter_usage(const struct limiter *limiter, struct limiter_usage *out);
/* Of what @name limits, how much the last look has seen. */
uint64_t limiter_share(const struct limiter *limiter, enum limit_name name);
/* What was used so far, @usage and what the limiter has seen, into @seen. */
void limiter_report(struct limiter *limiter, const struct rusage *usage, struct observation *seen);
/* All is over, and has used @usage: last readings, into @seen too. The limiter reports nothing after this. */
void limiter_finish(struct limiter *limiter, const struct rusage *usage, struct observation *seen);
/* Look no more, and report nothing. The plan may go after this. */
void limiter_stop(struct limiter *limiter);
/* Removes the cgroup: nothing may be in it any more. */
void limiter_done(struct limiter *limiter);

#endif
