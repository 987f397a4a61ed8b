/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/reap/reap.h - end every process of a tree, and remove a run's own directory, where no namespace does either
 *
 * On the landlock rung, and in a session jar for each run, the kernel does not end a tree by itself: whoever is in charge of
 * it is a subreaper and ends it with these.
 */
#ifndef BELLJAR_BASE_REAP_REAP_H
#define BELLJAR_BASE_REAP_REAP_H

#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"

/* Children of this process that are nobody's orphans: see reap_orphans(). */
struct reap_family {
	pid_t *items;
	size_t count;
	size_t capacity;
	unsigned hunters; /* of these, so many are at work: see reap_start_hunter() */
};
/* By the engine, in family.c. 0 or -ENOMEM; both accept NULL, for a process that has no other children. */
int reap_family_add(struct reap_family *family, pid_t pid);
void reap_family_remove(struct reap_family *family, pid_t pid);

/* --- reap_hunt.c: by whoever is in charge of a tree; no allocation, no stdio, no locks ---------------------------- */

/*
 * Kill every descendant of this process, a subreaper, until none is left; all but the children @spared (NULL: none). False:
 * it was not done by @until_ns.
 */
bool reap_hunt(const struct reap_family *spared, uint64_t until_ns);
/* Send a signal to the process that @pidfd is of. */
void reap_signal(int pidfd, int signal_number);
/* Send a signal to every descendant once. */
void reap_signal_tree(int signal_number);

/* --- reap_directory.c -------------------------------------------------------------------------------------------- */

/* Make a run's own directory and its parts; a descriptor that holds it as long as it is open, or a negative errno. */
int reap_make_directory(const char *path);
/* Remove it and all in it. */
void reap_sweep(const char *path);
/* The same for any directory in one that is open, whoever made what is in it: 0 or a negative errno. */
int reap_sweep_at(int parent, const char *name);
/* Remove those beside @run_directory that nobody holds any more. */
void reap_sweep_abandoned(const char *run_directory);

/* --- reap_hunt.c: by the engine ----------------------------------------------------------------------------------- */

/*
 * The jar's first process was killed before it could do its work, on a rung without a pid namespace: what it left are
 * children of this process now (jar_start_process() has made it a subreaper). None of these three waits for anything.
 *
 * Reap those children that have ended, and kill the others; all but the @spared. True: there was none, and so nothing
 * below any either. Those that were killed and not reaped, @max at most, are in @found. @is_patient: not those that are
 * dead and traced by somebody else, who may take his time.
 */
bool reap_orphans(const struct reap_family *spared, bool is_patient, pid_t *found, size_t max, size_t *count_out);
/*
 * Make a process that ends all that is below @roots, which are children of this process: a tree that grows in its depth
 * outruns who kills only children. Until it has left, nothing may be reaped that is not in the family. It must be reaped
 * itself. Its pid or a negative errno.
 */
pid_t reap_start_hunter(const pid_t *roots, size_t count);
/* The same, to remove a directory and all in it. */
pid_t reap_start_sweeper(const char *directory);

#endif
