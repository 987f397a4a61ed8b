/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/processor.h - choose where and how soon this process runs: for speed alone, correctness does not depend on it
 *
 * May be called between clone and exec: no allocation, no locks.
 */
#ifndef BELLJAR_BASE_PROCESSOR_H
#define BELLJAR_BASE_PROCESSOR_H

#include "base/base.h"

/* Processors that a process may run on. */
struct processors {
	unsigned long bits[1024 / (8 * sizeof(long))];
	size_t len; /* in bytes; 0: nothing was changed */
};

/*
 * Stay on this processor: a child forked now begins here, where its parent is about to sleep. Elsewhere it might
 * wait for milliseconds behind other work, or for a processor to wake. Child and parent must both roam again with
 * @before. Neither call reports a failure, since only speed is at stake.
 */
void processor_stay(struct processors *before);
void processor_roam(const struct processors *before);

/*
 * Have the kernel run this process, not its children, soon after it wakes, in short turns. It gets no larger share of a
 * processor, but need not wait behind thousands of others. Before Linux 6.12 nothing changes.
 */
void processor_be_prompt(void);

#endif
