/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_ids.h - host ids for root's jars that no other engine uses
 */
#ifndef BELLJAR_SURVEY_SURVEY_IDS_H
#define BELLJAR_SURVEY_SURVEY_IDS_H

#include <sys/types.h>

#include "base/base.h"

/* An engine has so many; beyond them some of its jars share. */
#define HOST_IDS_IN_BLOCK 512

/* For root: the host id of a jar; @number tells apart those that this process has at the same time. */
uid_t survey_jar_id(unsigned number);

/*
 * Take one of @block_count blocks that nobody has who uses the same file; returns a descriptor that holds it while it is
 * open. A negative errno: *@block is one at random, and may be another's too.
 */
int survey_ids_reserve(const char *path, unsigned block_count, unsigned *block);

#endif
