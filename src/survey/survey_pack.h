/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_pack.h - facts and findings as bytes, between the engine and the process that searches for it
 *
 * The engine trusts no byte that it unpacks: the search reads what hostile commands wrote. What cannot be read fails, and a
 * path counts only where a command may write, as the engine itself finds it there.
 */
#ifndef BELLJAR_SURVEY_SURVEY_PACK_H
#define BELLJAR_SURVEY_SURVEY_PACK_H

#include "base/text.h"
#include "survey/survey.h"
#include "survey/survey_risky.h"

struct unpack {
	const char *at, *end;
	bool has_failed; /* what follows is 0, NULL and nothing */
};

void survey_pack_number(struct text *out, uint64_t number);
/* NULL is another string than "". */
void survey_pack_string(struct text *out, const char *string);
uint64_t survey_unpack_number(struct unpack *from);
/* Borrowed from the bytes. */
const char *survey_unpack_string(struct unpack *from);

/* What survey_watch() and the search after a run need to know of @host. */
void survey_pack_project(struct text *out, const struct host *host);
/* Fill @host, which is zero; -EBADMSG, -ENOMEM. */
int survey_unpack_project(struct unpack *from, struct host *host);

/* What is to be read-only, and what must not move. */
void survey_pack_protected(struct text *out, const struct watch_list *watched, const struct host_path_list *pinned);
/* Fill workdir.protected and workdir.pinned of @host. Each path is looked up beneath a directory that the command may write. */
int survey_take_protected(struct unpack *from, struct host *host);

void survey_pack_risky(struct text *out, const struct risky_list *risky);
/* Fill @risky, which is empty. */
int survey_unpack_risky(struct unpack *from, struct risky_list *risky);

#endif
