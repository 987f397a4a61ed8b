/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/reap/reap_children.h - who is whose child, as /proc tells it
 *
 * What is read may be out of date when it is used: a number that was free for a moment may be a stranger's.
 */
#ifndef BELLJAR_BASE_REAP_REAP_CHILDREN_H
#define BELLJAR_BASE_REAP_REAP_CHILDREN_H

#include <sys/types.h>

#include "base/base.h"

/* Called for each number that is found. False: that is enough. */
typedef bool reap_number_function(void *owner, pid_t number);

/*
 * Some of the numbers that name entries of the directory @fd, from where it was left. 0: there are no more; a negative
 * errno.
 */
long reap_some_numbers(int fd, reap_number_function *function, void *owner);
/*
 * Each child that the thread @thread of the process @pid has made or adopted, below @proc_fd, a descriptor of a /proc. Kernels
 * without CONFIG_PROC_CHILDREN have no such list. 0 or a negative errno.
 */
int reap_each_child(int proc_fd, pid_t pid, pid_t thread, reap_number_function *function, void *owner);
/* Of a line of /proc/PID/stat: what stands after the name, which may hold anything, brackets too. NULL: no such line. */
const char *reap_after_name(const char *stat_line);
/* Of a /proc/PID/io: bytes that made pages of a file dirty, less what was taken back before it was stored. */
bool reap_parse_written(const char *content, uint64_t *bytes_out);
/* The same of the open file @io_fd; 0 if it cannot be read. */
uint64_t reap_written_bytes(int io_fd);
/* What getrusage() counts writing in. */
#define REAP_BLOCK_BYTES 512
/* What was written by those that this process has reaped, and what was taken back too: /proc/self/io is not to be had once a process is not dumpable. */
uint64_t reap_written_by_children(void);

#endif
