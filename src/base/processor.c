/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/processor.c - choose where and how soon this process runs, for speed alone
 */
#include "base/processor.h"

#include <sched.h>
#include <string.h>
#include <sys/syscall.h>

void processor_stay(struct processors *before)
{
	struct processors here = {0};
	int processor = sched_getcpu();
	int len = (int)syscall(SYS_sched_getaffinity, 0, sizeof(before->bits), before->bits);
	size_t word = (size_t)processor / (8 * sizeof(long));

	before->len = 0;
	/* Skip machines with more processors than the set has bits. */
	if (len <= 0 || processor < 0 || word >= ARRAY_LEN(here.bits))
		return;
	here.bits[word] = 1UL << (size_t)processor % (8 * sizeof(long));
	if (syscall(SYS_sched_setaffinity, 0, len, here.bits) == 0)
		before->len = (size_t)len;
}

void processor_roam(const struct processors *before)
{
	struct processors all;

	if (!before->len || syscall(SYS_sched_setaffinity, 0, before->len, before->bits) == 0)
		return;
	/* The process lost those processors meanwhile: use any that it is allowed. */
	memset(all.bits, 0xff, sizeof(all.bits));
	(void)syscall(SYS_sched_setaffinity, 0, sizeof(all.bits), all.bits);
}

struct scheduling {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns, deadline_ns, period_ns;
};

/* The shortest time slice that the kernel accepts. */
#define PROMPT_RUNTIME_NS 100000
#define SCHEDULING_NOT_FOR_CHILDREN 1

void processor_be_prompt(void)
{
	struct scheduling wanted = {.size = sizeof(wanted)};

	if (syscall(SYS_sched_getattr, 0, &wanted, sizeof(wanted), 0U) < 0 || wanted.policy != SCHED_OTHER)
		return;
	wanted.size = sizeof(wanted);
	wanted.flags |= SCHEDULING_NOT_FOR_CHILDREN;
	wanted.runtime_ns = PROMPT_RUNTIME_NS;
	(void)syscall(SYS_sched_setattr, 0, &wanted, 0U);
}
