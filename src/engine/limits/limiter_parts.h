/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/limits/limiter_parts.h - private to the files of the limiter
 */
#ifndef BELLJAR_ENGINE_LIMITS_LIMITER_PARTS_H
#define BELLJAR_ENGINE_LIMITS_LIMITER_PARTS_H

#include "engine/limits/limiter.h"

/* Time between two looks: close to a limit, and where nothing but time has to pass. */
#define LIMITER_INTERVAL_MIN_NS 5000000ULL
#define LIMITER_INTERVAL_SHORT_NS 20000000ULL
#define LIMITER_INTERVAL_MAX_NS 250000000ULL
#define LIMITER_MILLISECOND_NS UINT64_C(1000000)

/* --- limiter.c ---------------------------------------------------------------------------------------------- */

/* Whether looks hold this limit, not a cgroup. */
bool limiter_is_metered(const struct limiter *limiter, enum guarantee guarantee);
void limiter_tell(struct limiter *limiter, enum limit_name name, uint64_t limit, uint64_t peak, const char *enforced_by,
		  const char *evidence, enum cause cause);
void limiter_tell_cpu(struct limiter *limiter, uint64_t used_ns, const char *enforced_by, const char *source,
		      enum cause cause);
/* The shortest time until the limit on CPU time can be reached. */
uint64_t limiter_cpu_interval(const struct limiter *limiter, uint64_t used_ns);
/* Continue after @interval, unless a reported limit has ended the watch. */
void limiter_go_on(struct limiter *limiter, uint64_t interval);

/* --- limiter_cgroup.c --------------------------------------------------------------------------------------- */

/* Watch for the kernel's notice that it killed a process for memory. */
void limiter_watch_cgroup(struct limiter *limiter);
/* Read the cgroup's counters, and report limits that they show. Without a cgroup *@reading stays as it is. */
void limiter_read_cgroup(struct limiter *limiter, struct cgroup_reading *reading);
/* Whether a limit of the run or its session was the reason for a kill. */
bool limiter_is_over_memory(const struct limiter *limiter, const struct cgroup_reading *reading);
bool limiter_has_cgroup_cpu(const struct limiter *limiter);
/* The cgroup's file that counts CPU time. */
const char *limiter_cgroup_cpu_source(const struct limiter *limiter);
/* Check the cgroup's CPU time. Returns the time until the next check. */
uint64_t limiter_check_cgroup_cpu(struct limiter *limiter);

/* --- limiter_look.c ----------------------------------------------------------------------------------------- */

/* Ask the looker. Returns the time until its answer is due, or until the next look. */
uint64_t limiter_begin_look(struct limiter *limiter);
/* Check whether the run blocks the looker, which was asked and has not answered. */
void limiter_check_looker(struct limiter *limiter);

/* --- limiter_judge.c ---------------------------------------------------------------------------------------- */

/* The most processes and threads, with a session's own beside the limit. LIMIT_NONE: this is not measured. */
uint64_t limiter_most_processes(const struct limiter *limiter);
/* Judge the result of a look. Returns the time until the next one. */
uint64_t limiter_judge(struct limiter *limiter, const struct looker_answer *answer);
/* Note a look that failed because of @why. */
void limiter_note_unseen(struct limiter *limiter, const char *why);
/* Report that measured limits are not held any more. */
void limiter_tell_unseen(struct limiter *limiter, const char *why);
void limiter_check_scratch(struct limiter *limiter, const struct meter_reading *reading);
void limiter_tell_growth(struct limiter *limiter, uint64_t grown_bytes, uint64_t used, enum cause cause);

/* --- limiter_account.c -------------------------------------------------------------------------------------- */

/* The command's part of @cpu_ns, without the making of its jar. */
uint64_t limiter_command_ns(const struct limiter *limiter, uint64_t cpu_ns);
/* How many processes the kernel has killed for memory on the whole host. 0: unknown. */
uint64_t limiter_count_host_kills(void);

#endif
