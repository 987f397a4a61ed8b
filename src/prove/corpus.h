/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove/corpus.h - attacks as data: belljar-prove makes some of them, and tests/tools all of a table, one after the other
 *
 * A row is one system call, or a file of another process's directory in /proc, or a function. If possible, the
 * arguments make the kernel return another error than the filter. A call that succeeds does no harm.
 */
#ifndef BELLJAR_PROVE_CORPUS_H
#define BELLJAR_PROVE_CORPUS_H

#include <sys/types.h>

/* The target of attacks; a table needs the members that its rows name. */
struct corpus_target {
	pid_t pid;
	const char *path;
	const char *own;   /* a file of the attacker's */
	const char *fresh; /* a name in the attacker's directory that is free */
	int fd, flags;
};

/* Placeholders for arguments that are known only when the call is made. */
enum corpus_slot {
	CORPUS_PID = 0x7c0ffe01,
	CORPUS_GROUP, /* of processes */
	CORPUS_PIDFD,
	CORPUS_PROC, /* a descriptor of /proc/PID */
	CORPUS_SELF,
	CORPUS_UID,
	CORPUS_GID,
	CORPUS_PATH,
	CORPUS_OWN,
	CORPUS_FRESH,
	CORPUS_FD,
	CORPUS_FLAGS,
};

struct corpus_call {
	const char *name;
	long number;
	long arguments[6];
	const char *word; /* the name of the call for people; NULL: @name */
	const char *file; /* instead of a call: open this file of /proc/PID; argument 0 has the flags */
	long (*function)(const struct corpus_target *target); /* instead of both */
};

/* All end with a row without a name. */
extern const struct corpus_call prove_corpus_calls[];   /* calls that a jar does not need */
extern const struct corpus_call prove_corpus_process[]; /* on another process of the same user */
extern const struct corpus_call prove_corpus_paths[];   /* on a path, with two names of the attacker's */

/* Find a row, which must exist. */
const struct corpus_call *prove_corpus_find(const struct corpus_call *rows, const char *name);
const char *prove_corpus_word(const struct corpus_call *call);
/* Make the call: 0 or more, or -1 with errno. A process that it makes exits at once, and is waited for. */
long prove_corpus_make(const struct corpus_call *call, const struct corpus_target *target);
/*
 * Call getpid() as a system call of another architecture, in a child, since a kernel without that ends it with a
 * signal. Returns the child's status, 0 if the call was made, or -1 with errno.
 */
int prove_corpus_foreign_call(void);

#endif
