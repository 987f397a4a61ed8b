/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_why.h - may a command do this? By which rule, and what is the smallest change?
 */
#ifndef BELLJAR_ENGINE_ENGINE_WHY_H
#define BELLJAR_ENGINE_ENGINE_WHY_H

#include "engine/engine.h"
#include "policy/policy_musts.h"

/*
 * Answer a question about a path, a host or a system call for the jar of @request, and run nothing. @access of a path is "read",
 * "write" or "exec"; NULL: all three are answered. 1 if it is refused (a path: if it may not be read), 0 if not, or a negative errno.
 */
int engine_why(const struct engine_request *request, const char *question, const char *access, bool is_json,
	       struct text *out, struct error *error);
/*
 * The same for a host alone, or a request to it, by the policy: the host is not looked at. @method and @path may be NULL.
 * *@is_answered is false, and nothing was said: that is no host.
 */
int engine_why_host(const struct policy *policy, const char *question, const char *method, const char *path,
		    bool *is_answered, struct text *out, struct error *error);

/* The names of the caller's variables that the jar of @request does not get, without those that are secrets. */
int engine_withheld_variables(const struct engine_request *request, struct string_list *out, struct error *error);

/*
 * Does the jar of @request keep what a policy file says of itself? @name is the file's, @home what '~' stands for. Says which line does not
 * hold. 0, 1 if something does not hold, or a negative errno.
 */
int engine_test_policy(const struct engine_request *request, const struct policy_must_list *musts, const char *name,
		       const char *home, struct text *out, struct error *error);

#endif
