/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/limits/limiter.h - hold a run, or a jar with all its runs, to its limits on memory, processes, CPU time and disk, and know which was reached
 *
 * It uses the run's cgroup or the meter, as the plan chose for each limit. It reports a limit that ends the run
 * at once, and one that does not (a refused fork, a full private place) at the end.
 */
#ifndef BELLJAR_ENGINE_LIMITS_LIMITER_H
#define BELLJAR_ENGINE_LIMITS_LIMITER_H

#include <sys/resource.h>

#include "base/loop.h"
#include "inside/jar.h"
#include "engine/limits/cgroup.h"
#include "helper/looker.h"
#include "engine/limits/observation.h"

/* A limit was reached. @cause is the cause of the run's end; CAUSE_NONE: the run continues. */
typedef void limiter_function(void *owner, enum limit_name name, const struct limit_hit *hit, enum cause cause);

struct limiter {
	struct loop *loop;
	const struct plan *plan;
	limiter_function *function; /* NULL: it was stopped */
	void *owner;
	const struct limiter *jar; /* of a run in a session: the jar's, where memory may run out too; else NULL */
	struct reap_family *family;
	unsigned cpu_count;
	bool is_over;     /* a limit that ends the run was reported */
	uint32_t metered; /* 1 << enum guarantee: what the looker measures */
	struct loop_timer timer;

	/* Limits that the cgroup holds. */
	struct cgroup cgroup;
	struct loop_watch notice;
	struct loop_timer recheck; /* the kernel sends its notice before it kills */
	unsigned rechecks_left;
	struct cgroup_reading last_reading; /* once nothing was left */
	bool has_last_reading;

	/* Limits that are measured. */
	struct meter meter;
	struct looker *looker; /* NULL: not started yet */
	bool is_looking;       /* it was asked, and has not answered */
	unsigned blocked_times;
	unsigned unseen_looks;        /* in a row */
	struct meter_reading reading; /* of the last look */
	uint64_t peak_memory_bytes, peak_processes;
	uint64_t excess_bytes; /* by how much the last look was above the last weighing */
	uint64_t weighed_ns;   /* in the looker: the last weighing, and its duration */
	uint64_t weighing_ns;

	/* Use that is not the command's. */
	uint64_t launch_user_us, launch_system_us; /* CPU time that making the jar took */
	uint64_t clock_ns;                         /* the part of it that the meter's clock has seen */
	uint64_t host_kills; /* for want of memory, on the whole host, since it was started; as the command began */
};

/* Prepare the limits before the jar is made. On failure nothing is left behind. */
int limiter_open(struct limiter *limiter, struct loop *loop, const struct plan *plan, struct reap_family *family,
		 limiter_function *function, void *owner, struct error *error);
/*
 * Prepare the limits of one run in the session of @jar, which must outlive it. The limiter owns @cgroup, made
 * ahead, from here on and sets the limits of @plan on it. On failure limiter_done() must follow too.
 */
int limiter_open_run(struct limiter *limiter, struct loop *loop, const struct plan *plan, const struct limiter *jar,
		     const struct cgroup *cgroup, limiter_function *function, void *owner, struct error *error);
/* Measure below the run's minder, @pid inside the jar. 0 or a negative errno. */
int limiter_join(struct limiter *limiter, pid_t pid);
/* Take a descriptor from the jar and own it. A clock was at @clock_ns before the command began. */
void limiter_take(struct limiter *limiter, enum jar_view view, int fd, uint64_t clock_ns);
/* Note the bytes that ended processes have written. */
void limiter_written(struct limiter *limiter, uint64_t bytes);
/* Leave out @making, the cost of making the jar, from the command's account. */
void limiter_leave_out(struct limiter *limiter, const struct rusage *making);
/* Start to measure: the command runs below @pid. False: its limits cannot be held. */
bool limiter_start(struct limiter *limiter, pid_t pid);
/* Measure now, and report limits that are reached. The looker's results come later. */
void limiter_look(struct limiter *limiter);
/* Check once after the command's end, for which a limit may be the reason. @is_last: its tree is gone. */
void limiter_check(struct limiter *limiter, bool is_last);
/* The use now and so far; UINT64_MAX: not counted. */
struct limiter_usage {
	uint64_t memory_bytes, peak_memory_bytes;
	uint64_t processes, peak_processes; /* threads are counted; the jar's own processes too */
	uint64_t cpu_us;
};

void limiter_usage(const struct limiter *limiter, struct limiter_usage *out);
/* The use of the resource @name at the last look. */
uint64_t limiter_share(const struct limiter *limiter, enum limit_name name);
/* Write the use so far into @seen: @usage and the limiter's own numbers. */
void limiter_report(struct limiter *limiter, const struct rusage *usage, struct observation *seen);
/* Take last readings after the end, and write them and @usage into @seen. The limiter reports nothing after this. */
void limiter_finish(struct limiter *limiter, const struct rusage *usage, struct observation *seen);
/* Stop looking and reporting. The plan may be freed after this. */
void limiter_stop(struct limiter *limiter);
/* Remove the cgroup, which must be empty. */
void limiter_done(struct limiter *limiter);

#endif
