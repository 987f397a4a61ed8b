/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/imagined_plan.h - a policy, an imagined host of an ordinary user's, and what was planned from both
 */
#ifndef BELLJAR_TESTS_UNIT_IMAGINED_PLAN_H
#define BELLJAR_TESTS_UNIT_IMAGINED_PLAN_H

#include "test.h"

#include "imagined_host.h"
#include "plan/plan.h"
#include "policy/policy_build.h"

static const struct policy_context imagined_context = {.current_directory = "/home/u/p", .home = "/home/u"};

struct imagined_plan {
	struct policy policy;
	struct host host;
	struct plan plan; /* the test compiles it, with the result in `rc` */
	struct error error;
	struct imagined_files files;
	struct string_list argv;
	int rc;
};

/*
 * @files: lines of imagined_host.h beside the workdir /home/u/p. @flags: name, value, name, value ... of policy keys. Both end
 * with NULL, or are NULL.
 */
static inline void imagine(struct imagined_plan *made, const char *const *files, const char *const *flags,
			   char *const *environment, const char *argument)
{
	*made = (struct imagined_plan){0};
	imagine_file(&made->files, "/home/u/p/");
	for (; files && *files; files++)
		imagine_file(&made->files, *files);
	CHECK_INT(policy_init(&made->policy, &imagined_context, &made->error), 0);
	for (; flags && flags[0]; flags += 2)
		CHECK_INT(policy_set_flag(&made->policy, policy_key_by_flag(flags[0]), flags[1][0] ? flags[1] : NULL,
					  false, &imagined_context, &made->error),
			  0);
	made->host = (struct host){
		.has_user_namespaces = true,
		.has_seccomp = true,
		.has_seccomp_listeners = true,
		.landlock_abi = 7,
		.uid = 1000,
		.gid = 1000,
		.home = strdup("/home/u"),
		.real_home = strdup("/home/u"),
		.run_directory = strdup("/tmp/run"),
		.environment = environment,
		.argument_bytes_max = 1 << 20,
		.memory_bytes = 1 << 30,
	};
	imagined_survey(&made->host, &made->files, &made->policy, "/home/u/p", NULL);
	string_list_add(&made->argv, argument);
}

static inline void imagined_plan_done(struct imagined_plan *made)
{
	made->host.environment = NULL; /* the test's own */
	plan_done(&made->plan);
	survey_done(&made->host);
	policy_done(&made->policy);
	string_list_done(&made->argv);
}

#endif
