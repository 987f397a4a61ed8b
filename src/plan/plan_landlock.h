/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan_landlock.h - which rights to files Landlock of each ABI governs
 */
#ifndef BELLJAR_PLAN_PLAN_LANDLOCK_H
#define BELLJAR_PLAN_PLAN_LANDLOCK_H

#include <stdint.h>

/* Connect or send to a Unix socket by its path, if a process outside of the Landlock domain made the socket. */
#define LANDLOCK_RESOLVE_UNIX (1ULL << 16)

/* Return every right that @abi governs: 13 rights in ABI 1, one more in ABI 2, 3, 5 and 9. */
static inline uint64_t plan_landlock_rights_of_abi(int abi)
{
	unsigned count = abi >= 9 ? 17 : abi >= 5 ? 16 : abi >= 3 ? 15 : abi >= 2 ? 14 : 13;

	return (1ULL << count) - 1;
}

#endif
