/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/reap/reap_children.h - find the children of processes in /proc
 *
 * Results may be out of date when the caller uses them: the kernel may have reused a pid for an unrelated process.
 */
#ifndef BELLJAR_BASE_REAP_REAP_CHILDREN_H
#define BELLJAR_BASE_REAP_REAP_CHILDREN_H

#include <sys/types.h>

#include "base/base.h"

/* Called for each number found. Returns false to stop. */
typedef bool reap_number_function(void *owner, pid_t number);

/*
 * Report some numeric entries of the directory @fd, from its current offset. Returns 0 at the end, or a negative
 * errno.
 */
long reap_some_numbers(int fd, reap_number_function *function, void *owner);
/*
 * Report each child that the thread @thread of the process @pid has forked or adopted; @proc_fd is a descriptor of a
 * /proc. Kernels without CONFIG_PROC_CHILDREN have no such list. Returns 0 or a negative errno.
 */
int reap_each_child(int proc_fd, pid_t pid, pid_t thread, reap_number_function *function, void *owner);
/* Return the part of a /proc/PID/stat line after the name, which may contain any character. NULL: malformed. */
const char *reap_after_name(const char *stat_line);
/* Read from /proc/PID/io how many bytes dirtied pages of files, less those cancelled before writeback. */
bool reap_parse_written(const char *content, uint64_t *bytes_out);
/* The same for the open file @io_fd; 0 if it cannot be read. */
uint64_t reap_written_bytes(int io_fd);
/* The unit in which getrusage() counts writes. */
#define REAP_BLOCK_BYTES 512
/* Return the bytes that reaped children wrote, cancelled ones too. A non-dumpable process cannot read /proc/self/io. */
uint64_t reap_written_by_children(void);

#endif
