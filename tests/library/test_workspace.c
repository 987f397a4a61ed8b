/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/library/test_workspace.c - what was changed under a layer, from a program with libbelljar
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "support.h"

static struct belljar_engine *engine;
static char place[] = "/tmp/belljar-library-XXXXXX"; /* home, with the directory `work` in it */

/* NULL: this host has only copies, which have no checkpoints. */
static struct belljar_jar *open_layered(const char *name)
{
	const char *const options[] = {"workspace=cow", name, NULL};
	struct belljar_jar_options policy = {.size = sizeof(policy), .options = options};
	struct belljar_error *error = NULL;
	struct belljar_jar *jar = NULL;
	int rc = belljar_jar_open(engine, &policy, &jar, &error);

	if (rc < 0)
		printf("cannot open the jar: %s\n", belljar_error_message(error));
	CHECK_INT(rc, 0);
	belljar_error_free(error);
	if (strstr(belljar_jar_info(jar), "\"kind\":\"overlay\""))
		return jar;
	belljar_jar_close(jar);
	return NULL;
}

static void check_script(struct belljar_jar *jar, const char *script, const char *expected)
{
	struct belljar_command command = {.size = sizeof(command),
					  .argv = (const char *const[]){"sh", "-c", script, NULL}};
	struct belljar_result *result = NULL;

	CHECK_INT(belljar_jar_run(jar, &command, &result, NULL), 0);
	CHECK_STRING(belljar_result_stdout(result, NULL), expected);
	belljar_result_free(result);
}

static struct belljar_workspace *workspace_of(struct belljar_jar *jar)
{
	struct belljar_workspace *workspace = NULL;

	CHECK_INT(belljar_jar_workspace(jar, &workspace, NULL), 0);
	return workspace;
}

static void check_has(char *text, const char *part)
{
	if (!strstr(text, part))
		printf("no %s in %s\n", part, text);
	CHECK(strstr(text, part) != NULL);
	free(text);
}

static void test_changes_are_seen_applied_and_dropped(void)
{
	struct belljar_apply_options options = {.size = sizeof(options), .paths = (const char *const[]){"a", NULL}};
	struct belljar_jar *jar = open_layered(NULL);
	struct belljar_workspace *workspace;
	char *text = NULL;
	size_t len = 0;

	if (!jar)
		return;
	check_script(jar, "echo 1 > a; echo 2 > b", "");
	workspace = workspace_of(jar);
	CHECK_INT(belljar_workspace_diff(workspace, NULL, &text, NULL), 0);
	check_has(text, "\"path\":\"b\"");
	CHECK_INT(belljar_workspace_patch(workspace, options.paths, &text, &len, NULL), 0);
	CHECK_INT(strlen(text), len);
	check_has(text, "+++ b/a\n");
	CHECK_INT(access("a", F_OK), -1);
	CHECK_INT(belljar_workspace_apply(workspace, &options, &text, NULL), 0);
	check_has(text, "\"applied\":1,");
	CHECK_INT(access("a", F_OK), 0);
	CHECK_INT(access("b", F_OK), -1);
	/* A conflict: the host has one too by now. */
	close(open("b", O_CREAT | O_WRONLY, 0644));
	CHECK_INT(belljar_workspace_apply(workspace, NULL, &text, NULL), 1);
	check_has(text, "\"reason\":\"conflict\"");
	CHECK_INT(belljar_workspace_discard(workspace, NULL, NULL, NULL), 0);
	check_script(jar, "cat a b", "1\n");
	CHECK(strstr(belljar_jar_info(jar), "\"added\":0") != NULL);
	belljar_workspace_free(workspace);
	belljar_jar_close(jar);
	CHECK_INT(unlink("a") | unlink("b"), 0);
}

static void test_there_is_a_way_back_and_several_ways_on(void)
{
	struct belljar_jar *jar = open_layered("workspace_name=attempt"), *fork;
	struct belljar_workspace *workspace, *other = NULL;
	char *mark = NULL, *text = NULL, name[64] = "workspace_name=";

	if (!jar)
		return;
	workspace = workspace_of(jar);
	CHECK_INT(belljar_workspace_checkpoint(workspace, NULL, &mark, NULL), 0);
	CHECK_STRING(mark, "origin");
	free(mark);
	check_script(jar, "echo 1 > n", "");
	CHECK_INT(belljar_workspace_checkpoint(workspace, "one", &mark, NULL), 0);
	check_script(jar, "echo 2 > n; cat n", "2\n");
	CHECK_INT(belljar_workspace_rollback(workspace, mark, NULL), 0);
	check_script(jar, "cat n", "1\n");
	CHECK_INT(belljar_workspace_fork(workspace, 1, &text, NULL), 0);
	CHECK_INT(sscanf(text, "{\"forks\":[\"%11[a-z-]\"]}", name + strlen(name)), 1);
	free(text);
	fork = open_layered(name);
	check_script(fork, "cat n; echo 3 > n", "1\n");
	belljar_jar_close(fork);
	check_script(jar, "cat n", "1\n");
	CHECK_INT(belljar_workspace_open(engine, name + strlen("workspace_name="), &other, NULL), 0);
	CHECK_INT(belljar_workspace_discard(other, NULL, NULL, NULL), 0);
	belljar_workspace_free(other);
	/* A jar has it: it can be looked at only. */
	CHECK_INT(belljar_workspace_open(engine, "attempt", &other, NULL), 0);
	CHECK_INT(belljar_workspace_show(other, &text, NULL), 0);
	check_has(text, mark);
	CHECK_INT(belljar_workspace_discard(other, NULL, NULL, NULL), -EBUSY);
	CHECK_INT(belljar_workspace_rollback(workspace, "origin", NULL), 0);
	free(mark);
	belljar_workspace_free(workspace);
	belljar_jar_close(jar);
	CHECK_INT(belljar_workspace_show(other, &text, NULL), -ENOENT);
	belljar_workspace_free(other);
}

static void test_what_is_wrong_is_said(void)
{
	static const char *const none[] = {NULL};
	struct belljar_jar_options policy = {.size = sizeof(policy), .options = plain_options};
	struct belljar_error *error = NULL;
	struct belljar_workspace *workspace = NULL;
	struct belljar_jar *jar = NULL;
	char *text = NULL;

	CHECK_INT(belljar_workspace_open(engine, "nobody", &workspace, &error), -ENOENT);
	CHECK_INT(belljar_workspace_open(engine, NULL, &workspace, &error), -EINVAL);
	CHECK_INT(belljar_workspace_diff(NULL, NULL, &text, &error), -EINVAL);
	CHECK_INT(belljar_jar_open(engine, &policy, &jar, &error), 0);
	CHECK_INT(belljar_jar_workspace(jar, &workspace, &error), -EINVAL);
	CHECK_STRING(belljar_error_message(error), "this jar has no workspace");
	belljar_jar_close(jar);
	jar = open_layered(NULL);
	if (jar) {
		workspace = workspace_of(jar);
		CHECK_INT(belljar_workspace_apply(workspace, &(struct belljar_apply_options){.size = 8, .flags = 1},
						  NULL, &error),
			  -EINVAL);
		CHECK_INT(belljar_workspace_discard(workspace, none, NULL, &error), -EINVAL);
		CHECK_INT(belljar_workspace_fork(workspace, 0, &text, &error), -EINVAL);
		CHECK_INT(belljar_workspace_rollback(workspace, "nobody", &error), -ENOENT);
		check_script(jar, "echo up", "up\n");
		belljar_workspace_free(workspace);
		belljar_jar_close(jar);
	}
	belljar_workspace_free(NULL);
	belljar_error_free(error);
}

static const struct test tests[] = {
	TEST(test_changes_are_seen_applied_and_dropped),
	TEST(test_there_is_a_way_back_and_several_ways_on),
	TEST(test_what_is_wrong_is_said),
};

int main(void)
{
	char command[64];
	int status;

	if (!mkdtemp(place) || chdir(place) < 0 || mkdir("work", 0755) < 0 || chdir("work") < 0)
		return 1;
	setenv("HOME", place, 1);
	unsetenv("XDG_STATE_HOME");
	status = library_main(&engine, tests, sizeof(tests) / sizeof(tests[0]));
	snprintf(command, sizeof(command), "rm -rf %s", place);
	return system(command) != 0 || status;
}
