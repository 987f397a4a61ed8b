/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/processor.h - where this process runs, and how soon: it is all about time, and nothing depends on it
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
 * Stay on this processor: a child that is made now begins here, where its parent is about to sleep. Elsewhere it might
 * wait behind other work for milliseconds, or for a processor that sleeps. Child and parent must roam again, with what was
 * @before; neither call can fail, it is only about time.
 */
void processor_stay(struct processors *before);
void processor_roam(const struct processors *before);

/*
 * Have this process, not its children, run soon after it wakes, in short turns: it gets no more of a processor than others,
 * but what wakes in a crowd of thousands need not wait for them. Before Linux 6.12 nothing changes.
 */
void processor_be_prompt(void);

#endif
