/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/inspect/inspect_request.h - what becomes of a request, and of an answer, whatever protocol they came in
 */
#ifndef BELLJAR_GATE_INSPECT_INSPECT_REQUEST_H
#define BELLJAR_GATE_INSPECT_INSPECT_REQUEST_H

#include "gate/inspect/inspect.h"
#include "base/http.h"

/* An answer in place of the host's. */
struct own_answer {
	int status;
	bool is_by_rule; /* the request is understood, and so will be what follows */
	char sentence[1024];
};

void inspect_own_answer_set(struct own_answer *answer, int status, const char *format, ...) PRINTF_LIKE(3, 4);
const char *inspect_own_answer_phrase(const struct own_answer *answer);

/* Have it in the ledger. */
void inspect_request_record(const struct inspection *inspection, enum denial_reason reason, const char *detail);
/* False: it is refused, and recorded; *@answer is for the jar. */
bool inspect_request_check(const struct inspection *inspection, const struct http_head *head,
			   struct own_answer *answer);
/* It cannot be read at all. */
void inspect_request_refuse(const struct inspection *inspection, const char *why, struct own_answer *answer);
/* Does a placeholder stand in this header, or any other text? A name of "" is none. */
enum secret_use inspect_request_look(const struct inspection *inspection, const struct http_header *header,
				     const struct secret **out);
/* Is this header only a question for answers that could not be searched? */
bool inspect_request_is_for_search(const struct inspection *inspection, const struct http_header *header);

/* Why an answer that can be read is not passed on; NULL: it is. */
const char *inspect_answer_fault(const struct inspection *inspection, const struct http_head *head);

#endif
