/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_ids.h - host ids for root's jars that no other engine uses
 */
#ifndef BELLJAR_SURVEY_SURVEY_IDS_H
#define BELLJAR_SURVEY_SURVEY_IDS_H

#include <sys/types.h>

#include "base/base.h"

/* The ids of one engine. With more jars than that, some share an id. */
#define HOST_IDS_IN_BLOCK 512

/* Return the host id of a jar of root's; @number distinguishes the jars that this process has at the same time. */
uid_t survey_jar_id(unsigned number);

/*
 * Reserve one of @block_count blocks against other users of the same file. Returns a descriptor that holds the block
 * while open. On a negative errno *@block is random, and another engine may have it too.
 */
int survey_ids_reserve(const char *path, unsigned block_count, unsigned *block);

#endif
