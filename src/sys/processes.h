/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys/processes.h - who is whose child, as /proc tells it
 *
 * The kernel lists the children of each thread (CONFIG_PROC_CHILDREN); where it does not, all of /proc is asked for its
 * parents. What is read may be out of date when it is used: a number that was free for a moment may be a stranger's.
 */
#ifndef BELLJAR_SYS_PROCESSES_H
#define BELLJAR_SYS_PROCESSES_H

#include <sys/types.h>

#include "base/base.h"

/* Called for each number that is found; @parent is what the caller asked about. */
typedef void sys_number_function(void *owner, pid_t number, pid_t parent);

/* Each number that names an entry of the directory @fd, from its beginning. */
void sys_each_number(int fd, pid_t parent, sys_number_function *function, void *owner);
/*
 * Each child of the process @parent, below @proc_fd, a descriptor of a /proc. Returns how many threads @parent has, 0 if
 * it is not there, or a negative errno.
 */
int sys_each_child(int proc_fd, pid_t parent, sys_number_function *function, void *owner);
/* The parent of @pid, or 0. */
pid_t sys_parent_of(int proc_fd, pid_t pid);
/* Of a line of /proc/PID/stat: what stands after the name, which may hold anything, brackets too. NULL: no such line. */
const char *sys_after_name(const char *stat_line);
/* Of a /proc/PID/io: bytes that made pages of a file dirty, less what was taken back before it was stored. */
bool sys_parse_written(const char *content, uint64_t *bytes_out);

#endif
