/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_plan_environment.c - the variables a command gets, what of the rest is redacted, and how much fits
 */
#include "test.h"

#include <errno.h>

#include "imagined_plan.h"

/* @flags: name, value, name, value ..., NULL. */
static void make(struct imagined_plan *made, char *const *environment, const char *const *flags, const char *argument)
{
	imagine(made, NULL, flags, environment, argument);
	made->rc = plan_compile(&made->plan, &made->policy, &made->host, &(struct plan_request){.argv = &made->argv},
				&made->error);
}

static bool list_has(const struct string_list *list, const char *text)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->items[i], text))
			return true;
	return false;
}

static bool is_set(const struct plan *plan, const char *name)
{
	for (size_t i = 0; i < plan->core.env.count; i++)
		if (!strncmp(plan->core.env.items[i], name, strlen(name)) &&
		    plan->core.env.items[i][strlen(name)] == '=')
			return true;
	return false;
}

#define ENVIRONMENT(...) ((char *[]){__VA_ARGS__, NULL})
/* Literals are const; the kernel's environment is not. */
#define V(text) ((char[]){text})

static void test_only_allowed_names_are_passed(void)
{
	struct imagined_plan made;

	make(&made,
	     ENVIRONMENT(V("PATH=/bin"), V("LC_TIME=C"), V("LC_=odd"), V("LCX=no"), V("LANG=C"), V("LANGX=no"),
			 V("PAT=no"), V("GIT_AUTHOR_NAME=me"), V("GIT_DIR=/x"), V("LD_PRELOAD=/x.so"), V("AWS_KEY=k"),
			 V("EMPTY"), V("=odd")),
	     NULL, "true");
	CHECK_INT(made.rc, 0);
	CHECK(list_has(&made.plan.core.env, "PATH=/bin"));
	CHECK(list_has(&made.plan.core.env, "LC_TIME=C"));
	CHECK(list_has(&made.plan.core.env, "LC_=odd"));
	CHECK(list_has(&made.plan.core.env, "LANG=C"));
	CHECK(list_has(&made.plan.core.env, "GIT_AUTHOR_NAME=me"));
	CHECK(list_has(&made.plan.core.env, "HOME=/home/u"));
	CHECK(list_has(&made.plan.core.env, "TMPDIR=/tmp"));
	CHECK_INT(made.plan.core.env.count, 7);
	CHECK(!made.plan.core.env.items[7]);
	imagined_plan_done(&made);
}

static void test_home_and_tmpdir_point_inside_and_only_env_changes_them(void)
{
	struct imagined_plan made;

	make(&made, ENVIRONMENT(V("HOME=/root"), V("TMPDIR=/var/evil")), NULL, "true");
	CHECK(list_has(&made.plan.core.env, "HOME=/home/u"));
	CHECK(list_has(&made.plan.core.env, "TMPDIR=/tmp"));
	CHECK_INT(made.plan.core.env.count, 2);
	imagined_plan_done(&made);
	make(&made, ENVIRONMENT(V("HOME=/root")), (const char *const[]){"env", "HOME=/tmp/h", NULL}, "true");
	CHECK(list_has(&made.plan.core.env, "HOME=/tmp/h"));
	CHECK_INT(made.plan.core.env.count, 2);
	imagined_plan_done(&made);
}

static void test_env_wins_over_pass_env_and_the_first_of_two_inherited_counts(void)
{
	struct imagined_plan made;

	make(&made, ENVIRONMENT(V("CI=1"), V("CI=2"), V("TERM=a"), V("TERM=b")),
	     (const char *const[]){"pass-env", "CI", "env", "CI=set", NULL}, "true");
	CHECK(list_has(&made.plan.core.env, "CI=set"));
	CHECK(!list_has(&made.plan.core.env, "CI=1"));
	CHECK(list_has(&made.plan.core.env, "TERM=a"));
	CHECK(!list_has(&made.plan.core.env, "TERM=b"));
	imagined_plan_done(&made);
}

static void test_nothing_is_redacted_unless_asked_for(void)
{
	struct imagined_plan made;

	make(&made, ENVIRONMENT(V("API_KEY=0123456789")), NULL, "true");
	CHECK_INT(made.plan.redact.count, 0);
	CHECK(!is_set(&made.plan, "API_KEY"));
	imagined_plan_done(&made);
}

static void test_withheld_secrets_are_redacted(void)
{
	static const char *const names[] = {"API_KEY",     "github_token",       "MY_SECRET_X",
					    "DB_PASSWORD", "GOOGLE_CREDENTIALS", "COOKIEJAR",
					    "BASIC_AUTH",  "PRIVATE_PEM",        "SENTRY_DSN"};
	struct imagined_plan made;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char variable[64], expected[32];

		snprintf(expected, sizeof(expected), "secret-value-%zu", i);
		snprintf(variable, sizeof(variable), "%s=%s", names[i], expected);
		make(&made, ENVIRONMENT(variable), (const char *const[]){"redact-env", "", NULL}, "true");
		CHECK_INT(made.plan.redact.count, 1);
		CHECK(list_has(&made.plan.redact, expected));
		imagined_plan_done(&made);
	}
}

static void test_what_is_no_secret_is_left_alone(void)
{
	struct imagined_plan made;

	make(&made,
	     ENVIRONMENT(V("EDITOR=something long"), V("SSH_AUTH_SOCK=/run/user/1000/agent"), V("API_KEY=7 bytes"),
			 V("TOKEN="), V("URL=https://example.org/a:b@c"), V("NO_SCHEME=user:password@host"),
			 V("P=://u:password1@h")),
	     (const char *const[]){"redact-env", "", NULL}, "true");
	for (size_t i = 0; i < made.plan.redact.count; i++)
		printf("redacted: %s\n", made.plan.redact.items[i]);
	CHECK_INT(made.plan.redact.count, 0);
	imagined_plan_done(&made);
}

static void test_of_a_url_the_password_is_redacted(void)
{
	struct imagined_plan made;

	make(&made,
	     ENVIRONMENT(V("DATABASE_URL=postgres://u:p:ss@word@db:5432/x?y=z"), V("PROXY=http://u:12345678@proxy"),
			 V("SHORT=http://u:1234567@proxy"), V("WEAK_DSN=mysql://u:pw@db/name")),
	     (const char *const[]){"redact-env", "", NULL}, "true");
	CHECK_INT(made.plan.redact.count, 3);
	CHECK(list_has(&made.plan.redact, "p:ss@word"));
	CHECK(list_has(&made.plan.redact, "12345678"));
	/* too short by itself, but the name says that the whole is one */
	CHECK(list_has(&made.plan.redact, "mysql://u:pw@db/name"));
	imagined_plan_done(&made);
}

static void test_a_made_up_value_does_not_save_the_real_one_from_redaction(void)
{
	struct imagined_plan made;

	make(&made, ENVIRONMENT(V("A_TOKEN=the real one"), V("B_TOKEN=given to it"), V("C_TOKEN=passed on")),
	     (const char *const[]){"redact-env", "", "env", "A_TOKEN=fake", "env", "B_TOKEN=given to it", "pass-env",
				   "C_TOKEN", NULL},
	     "true");
	CHECK_INT(made.plan.redact.count, 1);
	CHECK(list_has(&made.plan.redact, "the real one"));
	CHECK(list_has(&made.plan.core.env, "A_TOKEN=fake"));
	CHECK(list_has(&made.plan.core.env, "C_TOKEN=passed on"));
	imagined_plan_done(&made);
}

static void test_without_mounts_home_and_tmpdir_are_in_the_runs_directory(void)
{
	struct imagined_plan made;

	make(&made, ENVIRONMENT(V("PATH=/bin")), NULL, "true");
	plan_done(&made.plan);
	made.host.has_user_namespaces = false;
	made.rc = plan_compile(&made.plan, &made.policy, &made.host, &(struct plan_request){.argv = &made.argv},
			       &made.error);
	CHECK_INT(made.rc, 0);
	CHECK(list_has(&made.plan.core.env, "HOME=/tmp/run/home"));
	CHECK(list_has(&made.plan.core.env, "TMPDIR=/tmp/run/tmp"));
	CHECK_INT(made.plan.core.env.count, 3);
	imagined_plan_done(&made);
}

static void test_one_argument_has_the_kernels_bound(void)
{
	static char argument[(128 << 10) + 1];
	struct imagined_plan made;

	memset(argument, 'x', sizeof(argument) - 1);
	make(&made, NULL, NULL, argument);
	CHECK_INT(made.rc, -E2BIG);
	CHECK_INT(made.error.stage, STAGE_USAGE);
	CHECK_STRING(made.error.message, "argument 0 is 131072 bytes long; the kernel takes 131071 at most");
	imagined_plan_done(&made);
	argument[sizeof(argument) - 2] = '\0';
	make(&made, NULL, NULL, argument);
	CHECK_INT(made.rc, 0);
	imagined_plan_done(&made);
}

static const struct test tests[] = {
	TEST(test_only_allowed_names_are_passed),
	TEST(test_home_and_tmpdir_point_inside_and_only_env_changes_them),
	TEST(test_env_wins_over_pass_env_and_the_first_of_two_inherited_counts),
	TEST(test_nothing_is_redacted_unless_asked_for),
	TEST(test_withheld_secrets_are_redacted),
	TEST(test_what_is_no_secret_is_left_alone),
	TEST(test_of_a_url_the_password_is_redacted),
	TEST(test_a_made_up_value_does_not_save_the_real_one_from_redaction),
	TEST(test_without_mounts_home_and_tmpdir_are_in_the_runs_directory),
	TEST(test_one_argument_has_the_kernels_bound),
};

TEST_MAIN(tests)
