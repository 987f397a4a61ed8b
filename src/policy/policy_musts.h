/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/policy_musts.h - what a policy file promises: must_allow and must_deny, for `belljar policy test`
 *
 * Lists of questions: "PATH ACCESS" with read, write or exec, HOST:PORT, or a system call. They change nothing.
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

/* Remove them from @document, which messages call @name. @out may be NULL: then they are only checked. */
int policy_musts_take(struct json_value *document, const char *name, struct policy_must_list *out, struct error *error);

#endif
