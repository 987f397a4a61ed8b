/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/limits/limiter_parts.h - what the files of the limiter share, and nobody else needs
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

/* Is it held by looking? */
bool limiter_is_metered(const struct limiter *limiter, enum guarantee guarantee);
void limiter_tell(struct limiter *limiter, enum limit_name name, uint64_t limit, uint64_t peak, const char *enforced_by,
		  const char *evidence, enum cause cause);
void limiter_tell_cpu(struct limiter *limiter, uint64_t used_ns, const char *enforced_by, const char *source,
		      enum cause cause);
/* When the limit on CPU time could be reached at the soonest. */
uint64_t limiter_cpu_interval(const struct limiter *limiter, uint64_t used_ns);
/* Do in @interval what is next, unless what was told has ended the watch. */
void limiter_go_on(struct limiter *limiter, uint64_t interval);

/* --- limiter_cgroup.c --------------------------------------------------------------------------------------- */

/* Hear from the kernel when it kills for want of memory. */
void limiter_watch_cgroup(struct limiter *limiter);
/* What the cgroup has counted, and tell what that shows. *@reading stays as it is where there is no cgroup. */
void limiter_read_cgroup(struct limiter *limiter, struct cgroup_reading *reading);
/* Was a limit of the run's or its session's the reason for a kill? */
bool limiter_is_over_memory(const struct limiter *limiter, const struct cgroup_reading *reading);
bool limiter_has_cgroup_cpu(const struct limiter *limiter);
/* Which of its files counts CPU time. */
const char *limiter_cgroup_cpu_source(const struct limiter *limiter);
/* Returns the time until it must be looked at again. */
uint64_t limiter_check_cgroup_cpu(struct limiter *limiter);

/* --- limiter_look.c ----------------------------------------------------------------------------------------- */

/* Ask the looker. Returns the time until it must be asked for, or the next look. */
uint64_t limiter_begin_look(struct limiter *limiter);
/* It was asked and has not answered: does it wait for the run? */
void limiter_check_looker(struct limiter *limiter);

/* --- limiter_judge.c ---------------------------------------------------------------------------------------- */

/* How many processes and threads there may be; a session's own are beside the limit. LIMIT_NONE: nobody looks. */
uint64_t limiter_most_processes(const struct limiter *limiter);
/* What a look showed. Returns the time until the next one. */
uint64_t limiter_judge(struct limiter *limiter, const struct looker_answer *answer);
/* A look came to nothing, because of what @why says. */
void limiter_note_unseen(struct limiter *limiter, const char *why);
/* What is measured by looking is no longer held. */
void limiter_tell_unseen(struct limiter *limiter, const char *why);
void limiter_check_scratch(struct limiter *limiter, const struct meter_reading *reading);
void limiter_tell_growth(struct limiter *limiter, uint64_t grown_bytes, uint64_t used, enum cause cause);

/* --- limiter_account.c -------------------------------------------------------------------------------------- */

/* Of @cpu_ns, what the command used and not the making of its jar. */
uint64_t limiter_command_ns(const struct limiter *limiter, uint64_t cpu_ns);
/* How often the kernel has killed for want of memory on this host, whoever it was. 0: it does not say. */
uint64_t limiter_count_host_kills(void);

#endif
