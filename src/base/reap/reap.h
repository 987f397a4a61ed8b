/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/reap/reap.h - end every process of a tree, and remove a run's own directory, where no namespace does either
 *
 * On the landlock rung, and in a session jar for each run, the kernel does not end a tree by itself. The process in
 * charge of the tree is a subreaper and ends it with these functions.
 */
#ifndef BELLJAR_BASE_REAP_REAP_H
#define BELLJAR_BASE_REAP_REAP_H

#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"

/* Children that this process forked itself, in contrast to adopted orphans: see reap_orphans(). */
struct reap_family {
	pid_t *items;
	size_t count;
	size_t capacity;
	unsigned hunters; /* how many of these are hunters at work: see reap_start_hunter() */
};
/* For the engine; in family.c. Returns 0 or -ENOMEM. Both accept NULL: the process has no other children. */
int reap_family_add(struct reap_family *family, pid_t pid);
void reap_family_remove(struct reap_family *family, pid_t pid);

/* --- reap_hunt.c: for the process in charge of a tree; no allocation, no stdio, no locks -------------------------- */

/*
 * Kill every descendant of this process, a subreaper, until none is left, except the children @spared (NULL: none).
 * Returns false if some are left at @until_ns.
 */
bool reap_hunt(const struct reap_family *spared, uint64_t until_ns);
/* Send a signal to the process of @pidfd. */
void reap_signal(int pidfd, int signal_number);
/* Send a signal to every descendant once. */
void reap_signal_tree(int signal_number);

/* --- reap_directory.c -------------------------------------------------------------------------------------------- */

/* Make a run's own directory and its parts. Returns a descriptor that holds its lock, or a negative errno. */
int reap_make_directory(const char *path);
/* Remove it and all in it. */
void reap_sweep(const char *path);
/* Remove the directory @name of @parent, whose content may be hostile. Returns 0 or a negative errno. */
int reap_sweep_at(int parent, const char *name);
/* Remove the run directories beside @run_directory that no process keeps locked. */
void reap_sweep_abandoned(const char *run_directory);

/* --- reap_hunt.c: for the engine ---------------------------------------------------------------------------------- */

/*
 * Without a pid namespace, if the jar's first process is killed, the processes that it left become children of this one
 * (jar_start_process() has made it a subreaper). None of these three functions waits.
 *
 * Reap the children that have ended and kill the others, except the @spared. Returns true if there were none, and so
 * no descendants either. @found gets those killed and not reaped, @max at most. @is_patient: leave out dead ones that
 * another process traces, since the kernel notifies that tracer first.
 */
bool reap_orphans(const struct reap_family *spared, bool is_patient, pid_t *found, size_t max, size_t *count_out);
/*
 * Fork a process that ends everything below @roots, children of this process: killing direct children never catches up
 * with a deep tree. Until that process has ended, reap only members of the family. The caller reaps it. Returns its pid
 * or a negative errno.
 */
pid_t reap_start_hunter(const pid_t *roots, size_t count);
/* Fork a process that removes a directory and everything in it. Returns its pid or a negative errno. */
pid_t reap_start_sweeper(const char *directory);

#endif
