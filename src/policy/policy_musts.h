/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/policy_musts.h - what a policy file says of itself: must_allow and must_deny, for `belljar policy test`
 *
 * Lists of questions: "PATH ACCESS" with read, write or exec, HOST:PORT, or the name of a system call. They change nothing.
 */
#ifndef BELLJAR_POLICY_POLICY_MUSTS_H
#define BELLJAR_POLICY_POLICY_MUSTS_H

#include "base/json_read.h"
#include "base/list.h"

struct policy_must {
	bool is_allowed; /* must_allow */
	unsigned line, column;
	char *question;
	const char *access; /* of a path: "read", "write", "exec"; else NULL */
};

LIST_TYPE(struct policy_must, policy_must_list);

void policy_musts_done(struct policy_must_list *musts);

/* Take them out of @document, which stands as @name in messages. @out may be NULL: then they are only looked at. */
int policy_musts_take(struct json_value *document, const char *name, struct policy_must_list *out, struct error *error);

#endif
