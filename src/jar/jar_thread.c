/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jar/jar_thread.c - threads without a threads library
 */
#include "jar/jar_thread.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>

uint32_t jar_refused_forks;

static int thread_main(void *argument)
{
	struct jar_thread *thread = argument;

	thread->function(thread->argument);
	return 0;
}

int jar_thread_start(struct jar_thread *thread, void (*function)(void *argument), void *argument)
{
	thread->function = function;
	thread->argument = argument;
	thread->is_alive = 1;
	thread->id = clone(thread_main, thread->stack + sizeof(thread->stack),
			   CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
				   CLONE_CHILD_CLEARTID,
			   thread, NULL, NULL, &thread->is_alive);
	if (thread->id >= 0)
		return 0;
	thread->is_alive = 0;
	jar_refused_forks += errno == EAGAIN;
	return -errno;
}

void jar_thread_join(struct jar_thread *thread)
{
	while (__atomic_load_n(&thread->is_alive, __ATOMIC_ACQUIRE))
		syscall(SYS_futex, &thread->is_alive, FUTEX_WAIT, 1, NULL, NULL, 0);
	/*
	 * It has left our memory, but the kernel may still count it: a process with two threads may not change its user
	 * namespace. It is gone for good when it cannot be signalled any more.
	 */
	while (thread->id > 0 && syscall(SYS_tgkill, getpid(), thread->id, 0) == 0)
		sched_yield();
}
