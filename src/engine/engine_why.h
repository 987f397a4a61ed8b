/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_why.h - say whether a command may do something, by which rule, and the smallest change
 */
#ifndef BELLJAR_ENGINE_ENGINE_WHY_H
#define BELLJAR_ENGINE_ENGINE_WHY_H

#include "engine/engine.h"
#include "policy/policy_musts.h"

/*
 * Answer a question about a path, a host or a system call for the jar of @request. @access to a path is "read",
 * "write" or "exec"; NULL: all three. 1 if the jar refuses it (a path: reading), 0 if not, or a negative errno.
 */
int engine_why(const struct engine_request *request, const char *question, const char *access, bool is_json,
	       struct text *out, struct error *error);
/*
 * Answer for a network host, or a request to it, from the policy alone, without a survey. @method and @path may
 * be NULL. *@is_answered false: @question is not a network host, and @out stays empty.
 */
int engine_why_host(const struct policy *policy, const char *question, const char *method, const char *path,
		    bool *is_answered, struct text *out, struct error *error);

/* List the caller's variables that the jar of @request does not get, without secrets. */
int engine_withheld_variables(const struct engine_request *request, struct string_list *out, struct error *error);

/*
 * Check the expectations @musts of the policy file @name against the jar of @request; '~' means @home. Reports
 * each line that does not hold. 0 if all hold, 1 if one does not, or a negative errno.
 */
int engine_test_policy(const struct engine_request *request, const struct policy_must_list *musts, const char *name,
		       const char *home, struct text *out, struct error *error);

#endif
