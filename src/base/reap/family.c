/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/reap/family.c - the engine's own children, which no hunt for orphans may end
 */
#include <errno.h>

#include "base/list.h"
#include "base/reap/reap.h"

int reap_family_add(struct reap_family *family, pid_t pid)
{
	pid_t *member = family ? list_add(family) : NULL;

	if (!member)
		return family ? -ENOMEM : 0;
	*member = pid;
	return 0;
}

void reap_family_remove(struct reap_family *family, pid_t pid)
{
	for (size_t i = 0; family && i < family->count; i++) {
		if (family->items[i] == pid) {
			family->items[i] = family->items[--family->count];
			return;
		}
	}
}
