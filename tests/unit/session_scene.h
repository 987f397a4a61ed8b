/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/session_scene.h - sessions and prepared jars on this very host, on every rung it has, and runs in them
 *
 * The jars are real. Started as root the table is gone through once as root and once as an ordinary user. A jar that
 * cannot be made here is a skip, with a reason, and never a success.
 */
#ifndef BELLJAR_TESTS_UNIT_SESSION_SCENE_H
#define BELLJAR_TESTS_UNIT_SESSION_SCENE_H

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/text.h"
#include "survey/survey_cgroup.h"
#include "plan/plan.h"
#include "policy/policy_build.h"
#include "engine/jar/jar.h"
#include "engine/run/run.h"
#include "base/sys/calls.h"
#include "test.h"

#define ORDINARY_ID 47123
#define PATIENCE_NS 100000000000ULL
#define RUNS_MAX 64
#define TESTS_MAX 64

/* Jars are made as where there are no cgroups. */
static bool is_without_cgroups;

static const enum rung rungs[] = {RUNG_NAMESPACE, RUNG_LANDLOCK};

struct scene {
	struct loop *loop;
	struct policy policy;
	struct host host;
	struct plan plan;
	struct reap_family family;
	struct session *jar;
	struct error error;
	bool is_ready, is_gone;
};

struct one {
	struct scene *scene;
	struct policy policy;
	struct string_list argv;
	struct plan plan;
	struct run *run;
	struct error error;
	bool has_started, is_done;
	char output[2][4096];
	size_t len[2];
};

static char home[] = "/tmp/belljar-session-XXXXXX";
static char home_variable[64];
static const struct policy_context context = {.current_directory = "/", .home = home};
static char *const environment[] = {(char *)"PATH=/usr/local/bin:/usr/bin:/bin", home_variable, NULL};

/* --- the loop ----------------------------------------------------------------------------------------------- */

static inline void on_wake(struct loop_timer *timer)
{
	(void)timer;
}

static inline bool wait_for(struct scene *scene, const bool *flag)
{
	struct loop_timer wake = {0};
	uint64_t end = sys_monotonic_ns() + PATIENCE_NS;

	while (!*flag && sys_monotonic_ns() < end) {
		loop_arm(scene->loop, &wake, sys_monotonic_ns() + 50000000, on_wake, NULL);
		loop_turn(scene->loop);
		loop_disarm(&wake);
	}
	return *flag;
}

static inline void pass_time(struct scene *scene, uint64_t ns)
{
	struct loop_timer wake = {0};
	uint64_t end = sys_monotonic_ns() + ns;

	while (sys_monotonic_ns() < end) {
		loop_arm(scene->loop, &wake, end, on_wake, NULL);
		loop_turn(scene->loop);
		loop_disarm(&wake);
	}
}

/* --- jars --------------------------------------------------------------------------------------------------- */

static inline void on_ready(void *owner, struct session *jar)
{
	(void)jar;
	((struct scene *)owner)->is_ready = true;
}

static inline void on_gone(void *owner, struct session *jar)
{
	(void)jar;
	((struct scene *)owner)->is_gone = true;
}

static inline void set_flags(struct policy *policy, const char *const *flags)
{
	struct error error = {0};

	for (; flags && flags[0]; flags += 2)
		if (policy_set_flag(policy, policy_key_by_flag(flags[0]), flags[1], false, &context, &error) < 0) {
			printf("flag --%s %s: %s\n", flags[0], flags[1], error.message);
			test_failed_checks++;
		}
}

static inline int begin_jar(struct scene *scene)
{
	static const struct jar_argv_memory no_area;
	struct session_request request = {.plan = &scene->plan,
					  .argv_memory = &no_area,
					  .family = &scene->family,
					  .listener = {scene, on_ready, on_gone}};

	return jar_open(scene->loop, &request, &scene->jar, &scene->error);
}

/* False: this rung is not to be had here. */
static inline bool open_jar(struct scene *scene, enum rung rung, enum plan_kind kind, const char *const *flags)
{
	static const char *const standard[] = {"workdir", "none", NULL};
	int rc;

	*scene = (struct scene){.loop = loop_new()};
	CHECK_INT(policy_init(&scene->policy, &context, &scene->error), 0);
	set_flags(&scene->policy, standard);
	set_flags(&scene->policy, flags);
	rc = survey_probe(&scene->host, environment, &scene->error);
	if (rung == RUNG_LANDLOCK)
		scene->host.has_user_namespaces = false;
	if (rc == 0)
		rc = survey_host(&scene->host, &scene->policy, NULL, &scene->error);
	if (rc == 0 && !is_without_cgroups)
		rc = survey_cgroups(&scene->host, &scene->policy);
	if (rc == 0)
		rc = plan_compile_jar(&scene->plan, kind, &scene->policy, &scene->host, NULL, &scene->error);
	if (rc == 0 && scene->plan.rung != rung)
		rc = -EOPNOTSUPP;
	if (rc == 0)
		rc = begin_jar(scene);
	if (rc < 0) {
		printf("no jar: %s\n", scene->error.message);
		test_failed_checks++;
		return false;
	}
	return true;
}

static inline bool stand(struct scene *scene)
{
	struct loop_timer wake = {0};
	uint64_t end = sys_monotonic_ns() + PATIENCE_NS;

	while (!scene->is_ready && !scene->is_gone && sys_monotonic_ns() < end) {
		loop_arm(scene->loop, &wake, sys_monotonic_ns() + 50000000, on_wake, NULL);
		loop_turn(scene->loop);
		loop_disarm(&wake);
	}
	if (!scene->is_ready) {
		printf("the jar does not stand: %s\n", jar_observation(scene->jar)->error.message);
		test_failed_checks++;
	}
	return scene->is_ready;
}

static inline int open_fds(void)
{
	DIR *directory = opendir("/proc/self/fd");
	int count = 0;

	while (directory && readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static inline void close_jar(struct scene *scene)
{
	if (scene->jar) {
		jar_close(scene->jar);
		CHECK(wait_for(scene, &scene->is_gone));
		jar_free(scene->jar);
	}
	/* Who looked for the limits has been killed, and takes a moment to be gone. */
	loop_drain(scene->loop, sys_monotonic_ns() + 10000000000ULL);
	CHECK_INT(scene->family.count, 0);
	free(scene->family.items);
	plan_done(&scene->plan);
	survey_done(&scene->host);
	policy_done(&scene->policy);
	loop_free(scene->loop);
	/* Nothing of it is our child any more, whether dead or alive. */
	CHECK_INT(waitpid(-1, NULL, WNOHANG | __WALL), -1);
	CHECK_INT(errno, ECHILD);
}

/* --- runs --------------------------------------------------------------------------------------------------- */

static inline void on_started(void *owner, struct run *run)
{
	(void)run;
	((struct one *)owner)->has_started = true;
}

static inline bool on_output(void *owner, enum stream_index stream, const void *bytes, size_t len)
{
	struct one *one = owner;
	size_t room = sizeof(one->output[stream]) - 1 - one->len[stream];

	len = MIN_OF(len, room);
	memcpy(one->output[stream] + one->len[stream], bytes, len);
	one->len[stream] += len;
	return false;
}

static inline void on_done(void *owner, struct run *run)
{
	(void)run;
	((struct one *)owner)->is_done = true;
}

struct extras {
	const char *const *flags;
	const int *fds;
	size_t fd_count;
	bool is_merged, has_pty;
};

static inline int start_argv(struct one *one, struct scene *scene, const struct extras *extras)
{
	struct plan_request request = {.argv = &one->argv, .is_captured = true};
	struct run_request run = {
		.plan = &one->plan,
		.jar = scene->jar,
		.listener = {.owner = one, .started = on_started, .output = on_output, .done = on_done},
		.is_captured = true,
		.stdin_fd = -1,
		.relay_fd = -1};
	int rc;

	one->scene = scene;
	CHECK_INT(policy_copy(&scene->policy, &one->policy), 0);
	if (extras) {
		set_flags(&one->policy, extras->flags);
		run.extra_fds = extras->fds;
		run.extra_count = extras->fd_count;
		run.is_merged = extras->is_merged;
		run.has_pty = extras->has_pty;
	}
	rc = plan_compile_run(&one->plan, &scene->plan, &one->policy, &scene->host, &request, &one->error);
	return rc < 0 ? rc : run_start(scene->loop, &run, &one->run, &one->error);
}

static inline int start(struct one *one, struct scene *scene, const char *script, const struct extras *extras)
{
	*one = (struct one){0};
	string_list_add(&one->argv, "/bin/sh");
	string_list_add(&one->argv, "-c");
	string_list_add(&one->argv, script);
	return start_argv(one, scene, extras);
}

static inline void finish(struct one *one)
{
	run_free(one->run);
	plan_done(&one->plan);
	policy_done(&one->policy);
	string_list_done(&one->argv);
}

static inline const struct observation *ended(struct one *one)
{
	CHECK(wait_for(one->scene, &one->is_done));
	return run_observation(one->run);
}

/* What ended it; with a word about the rest where that is not what it should be. */
static inline void check_cause(struct one *one, enum cause cause)
{
	const struct observation *seen = ended(one);

	if (seen->cause != cause)
		printf("started %d, status %#x, peak memory %" PRIu64 " by %s, shortage %d, error '%s', stderr '%s'\n",
		       seen->has_started, (unsigned)seen->status, seen->peak_memory_bytes,
		       seen->memory_by ? seen->memory_by : "nobody", (int)seen->shortage, seen->error.message,
		       one->output[STREAM_STDERR]);
	CHECK_INT(seen->cause, cause);
}

/* A script that must exit with @status; its standard output stays in @one. */
static inline void run_script(struct scene *scene, struct one *one, const char *script, int status)
{
	const struct observation *seen;

	CHECK_INT(start(one, scene, script, NULL), 0);
	seen = ended(one);
	CHECK(seen->has_started);
	CHECK_STRING(seen->error.message, "");
	CHECK_INT(seen->cause, CAUSE_NONE);
	CHECK(WIFEXITED(seen->status));
	CHECK_INT(WEXITSTATUS(seen->status), status);
	if (one->len[STREAM_STDERR])
		printf("stderr: %s\n", one->output[STREAM_STDERR]);
}

#define FOR_EACH_RUNG(scene, kind, flags)                                                                              \
	for (size_t rung_index = 0; rung_index < ARRAY_LEN(rungs); rung_index++)                                       \
		if (open_jar(&(scene), rungs[rung_index], kind, flags))

/* --- as both users ------------------------------------------------------------------------------------------ */

static inline int as_ordinary_user(const struct test *tests, size_t count)
{
	static struct test renamed[TESTS_MAX];
	static char names[TESTS_MAX][128];

	if (count > TESTS_MAX || setgroups(0, NULL) < 0 || setresgid(ORDINARY_ID, ORDINARY_ID, ORDINARY_ID) < 0 ||
	    setresuid(ORDINARY_ID, ORDINARY_ID, ORDINARY_ID) < 0)
		return 1;
	for (size_t i = 0; i < count; i++) {
		snprintf(names[i], sizeof(names[i]), "%s_as_an_ordinary_user", tests[i].name);
		renamed[i] = (struct test){.name = names[i], .function = tests[i].function};
	}
	return test_main(renamed, count);
}

/* What main() does. */
static inline int session_main(const struct test *tests, size_t count)
{
	int failed, status = 0;
	pid_t child;

	descriptors_raise_limit();
	if (!mkdtemp(home))
		return 1;
	snprintf(home_variable, sizeof(home_variable), "HOME=%s", home);
	failed = test_main(tests, count);
	if (geteuid() == 0 && chown(home, ORDINARY_ID, ORDINARY_ID) == 0) {
		fflush(stdout);
		child = fork();
		if (child == 0)
			exit(as_ordinary_user(tests, count));
		waitpid(child, &status, 0);
	}
	rmdir(home);
	return failed || status != 0;
}

#endif
