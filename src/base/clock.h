/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/clock.h - the clock of all deadlines: monotonic, and the same in every process of the host
 */
#ifndef BELLJAR_BASE_CLOCK_H
#define BELLJAR_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

#endif
