/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove/corpus.h - attacks as data: belljar-prove makes some of them, and tests/tools all of a table, one after the other
 *
 * A row is one system call, or a file of another process's directory in /proc. Arguments are such that the kernel itself would
 * say something else than the filter does, where there are such. What succeeds harms nobody.
 */
#ifndef BELLJAR_PROVE_CORPUS_H
#define BELLJAR_PROVE_CORPUS_H

#include <sys/types.h>

/* In the place of an argument: what is known only when the call is made. */
#define CORPUS_PID ((long)0x7c0ffe01)
#define CORPUS_GROUP ((long)0x7c0ffe02)
#define CORPUS_PIDFD ((long)0x7c0ffe03)
#define CORPUS_PROC ((long)0x7c0ffe04) /* a descriptor of /proc/PID */
#define CORPUS_SELF ((long)0x7c0ffe05)

struct corpus_call {
	const char *name;
	long number;
	long arguments[6];
	const char *word;               /* what the call is called in words; NULL: @name */
	const char *file;               /* instead of a call: open this file of /proc/PID; argument 0 has the flags */
	long (*function)(pid_t target); /* instead of both */
};

/* Both end with a row without a name. */
extern const struct corpus_call corpus_calls[];   /* that a jar has no use for */
extern const struct corpus_call corpus_process[]; /* on the process @target, of the same user */

/* A row that must be there. */
const struct corpus_call *corpus_find(const struct corpus_call *rows, const char *name);
const char *corpus_word(const struct corpus_call *call);
/* 0 or more, or -1 with errno. A process that a call makes leaves at once, and is waited for. */
long corpus_make(const struct corpus_call *call, pid_t target);
/*
 * getpid() as a system call of another architecture, in a child, since a kernel without that ends it with a signal. Its status,
 * which is 0 if the call was made; or -1 with errno.
 */
int corpus_foreign_call(void);

#endif
