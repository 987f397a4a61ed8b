/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jar/jar_thread.h - a second hand for the jar's first process while it builds
 *
 * It shares everything with the first thread, the C library's thread-local data included: what it runs makes system
 * calls only, and neither of the two may decide by errno while both live.
 */
#ifndef BELLJAR_JAR_JAR_THREAD_H
#define BELLJAR_JAR_JAR_THREAD_H

#include <sys/types.h>

#include "base/base.h"

#define JAR_THREAD_STACK (32 << 10)

struct jar_thread {
	_Alignas(16) char stack[JAR_THREAD_STACK];
	void (*function)(void *argument);
	void *argument;
	pid_t id;
	int is_alive; /* cleared by the kernel when the thread has left our memory */
};

/* Forks that were refused for want of room while the jar was made: not the command's. */
extern uint32_t jar_refused_forks;

/* Begin; 0 or a negative errno. */
int jar_thread_start(struct jar_thread *thread, void (*function)(void *argument), void *argument);
/* Wait until it is gone for good. */
void jar_thread_join(struct jar_thread *thread);

#endif
