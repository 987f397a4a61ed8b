/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/inspect/inspect_request.h - decide about requests and responses, of any protocol
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

/* Record a refusal in the ledger. */
void inspect_request_record(const struct inspection *inspection, enum denial_reason reason, const char *detail);
/* Check a request. False: refused and recorded; *@answer is for the jar. */
bool inspect_request_check(const struct inspection *inspection, const struct http_head *head,
			   struct own_answer *answer);
/* Refuse a request that cannot be parsed. */
void inspect_request_refuse(const struct inspection *inspection, const char *why, struct own_answer *answer);
/* Look for a placeholder in a header, or in any other text (its name is ""). */
enum secret_use inspect_request_look(const struct inspection *inspection, const struct http_header *header,
				     const struct secret **out);
/* Report whether this header only asks for responses that could not be searched. */
bool inspect_request_is_for_search(const struct inspection *inspection, const struct http_header *header);

/* Return why a response that was parsed is not passed on; NULL: it is. */
const char *inspect_answer_fault(const struct inspection *inspection, const struct http_head *head);

#endif
