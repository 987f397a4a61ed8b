/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_result_outcome.c - from an observation to outcome, exit status, explanation and the result object
 */
#include "test.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>

#include "engine/result/result.h"

#define EXITED(code) ((code) << 8)
#define SIGNALED(number) (number)
#define DUMPED(number) ((number) | 0x80)

struct row {
	const char *about;
	enum cause cause;
	int cancel_signal;
	bool has_started, has_status;
	int status;
	enum stage stage;
	int errno_value;
	/* expected */
	const char *outcome;
	int exit_status;
	bool is_killed;
	const char *signal;
	int exit_code; /* -1: null */
};

static const struct row rows[] = {
	{"exit 0", CAUSE_NONE, 0, true, true, EXITED(0), STAGE_NONE, 0, "exited", 0, false, NULL, 0},
	{"exit 7", CAUSE_NONE, 0, true, true, EXITED(7), STAGE_NONE, 0, "exited", 7, false, NULL, 7},
	{"exit 255", CAUSE_NONE, 0, true, true, EXITED(255), STAGE_NONE, 0, "exited", 255, false, NULL, 255},
	{"imitates a timeout", CAUSE_NONE, 0, true, true, EXITED(124), STAGE_NONE, 0, "exited", 124, false, NULL, 124},
	{"imitates a kill", CAUSE_NONE, 0, true, true, EXITED(137), STAGE_NONE, 0, "exited", 137, false, NULL, 137},
	{"SIGTERM", CAUSE_NONE, 0, true, true, SIGNALED(SIGTERM), STAGE_NONE, 0, "signaled", 143, false, "SIGTERM", -1},
	{"kills itself", CAUSE_NONE, 0, true, true, SIGNALED(SIGKILL), STAGE_NONE, 0, "signaled", 137, false, "SIGKILL",
	 -1},
	{"crashes", CAUSE_NONE, 0, true, true, DUMPED(SIGSEGV), STAGE_NONE, 0, "signaled", 139, false, "SIGSEGV", -1},
	{"timeout, left by itself", CAUSE_TIMEOUT, 0, true, true, EXITED(0), STAGE_NONE, 0, "timeout", 124, true, NULL,
	 -1},
	{"timeout, killed", CAUSE_TIMEOUT, 0, true, true, SIGNALED(SIGKILL), STAGE_NONE, 0, "timeout", 124, true,
	 "SIGKILL", -1},
	{"timeout before it started", CAUSE_TIMEOUT, 0, false, false, 0, STAGE_NONE, 0, "timeout", 124, true, NULL, -1},
	{"cpu", CAUSE_CPU, 0, true, true, SIGNALED(SIGKILL), STAGE_NONE, 0, "cpu", 137, true, "SIGKILL", -1},
	{"memory", CAUSE_MEMORY, 0, true, true, SIGNALED(SIGKILL), STAGE_NONE, 0, "memory", 137, true, "SIGKILL", -1},
	{"disk", CAUSE_DISK, 0, true, true, SIGNALED(SIGKILL), STAGE_NONE, 0, "disk", 137, true, "SIGKILL", -1},
	{"output", CAUSE_OUTPUT, 0, true, true, SIGNALED(SIGKILL), STAGE_NONE, 0, "output", 137, true, "SIGKILL", -1},
	/* There is no outcome for it: what became of the main process is told. */
	{"pids", CAUSE_PIDS, 0, true, true, SIGNALED(SIGKILL), STAGE_NONE, 0, "signaled", 137, false, "SIGKILL", -1},
	{"pids, too late", CAUSE_PIDS, 0, true, true, EXITED(3), STAGE_NONE, 0, "exited", 3, false, NULL, 3},
	{"cancelled by INT", CAUSE_CANCELLED, SIGINT, true, true, SIGNALED(SIGINT), STAGE_NONE, 0, "cancelled", 130,
	 true, "SIGINT", -1},
	{"cancelled by TERM, exits 0", CAUSE_CANCELLED, SIGTERM, true, true, EXITED(0), STAGE_NONE, 0, "cancelled", 143,
	 true, NULL, -1},
	{"cancelled by HUP", CAUSE_CANCELLED, SIGHUP, true, true, SIGNALED(SIGKILL), STAGE_NONE, 0, "cancelled", 129,
	 true, "SIGKILL", -1},
	{"cancelled by QUIT", CAUSE_CANCELLED, SIGQUIT, true, true, DUMPED(SIGQUIT), STAGE_NONE, 0, "cancelled", 131,
	 true, "SIGQUIT", -1},
	{"nobody takes the output", CAUSE_OUTPUT_LOST, 0, true, true, SIGNALED(SIGKILL), STAGE_OUTPUT, EPIPE,
	 "cancelled", 125, true, "SIGKILL", -1},
	{"not found", CAUSE_NONE, 0, false, false, 0, STAGE_EXEC, ENOENT, "failed", 127, false, NULL, -1},
	{"not executable", CAUSE_NONE, 0, false, false, 0, STAGE_EXEC, EACCES, "failed", 126, false, NULL, -1},
	{"bad format", CAUSE_NONE, 0, false, false, 0, STAGE_EXEC, ENOEXEC, "failed", 126, false, NULL, -1},
	{"usage", CAUSE_NONE, 0, false, false, 0, STAGE_USAGE, EINVAL, "failed", 125, false, NULL, -1},
	{"policy", CAUSE_NONE, 0, false, false, 0, STAGE_POLICY, 0, "failed", 125, false, NULL, -1},
	{"host", CAUSE_NONE, 0, false, false, 0, STAGE_HOST, EPERM, "failed", 125, false, NULL, -1},
	{"plan", CAUSE_NONE, 0, false, false, 0, STAGE_PLAN, EINVAL, "failed", 125, false, NULL, -1},
	{"files, also with ENOENT", CAUSE_NONE, 0, false, false, 0, STAGE_FILES, ENOENT, "failed", 125, false, NULL,
	 -1},
	{"limits", CAUSE_NONE, 0, false, false, 0, STAGE_LIMITS, EOPNOTSUPP, "failed", 125, false, NULL, -1},
	{"isolate", CAUSE_NONE, 0, false, false, 0, STAGE_ISOLATE, EPERM, "failed", 125, false, NULL, -1},
	{"engine", CAUSE_NONE, 0, false, false, 0, STAGE_ENGINE, ENOMEM, "failed", 125, false, NULL, -1},
	{"started, and its end was never seen", CAUSE_NONE, 0, true, false, 0, STAGE_ENGINE, EIO, "failed", 125, false,
	 NULL, -1},
};

static void fill(const struct row *row, struct observation *seen)
{
	*seen = (struct observation){
		.cause = row->cause,
		.cancel_signal = row->cancel_signal,
		.has_started = row->has_started,
		.has_status = row->has_status,
		.status = row->status,
		.failed_step = -1,
		.error = {.stage = row->stage, .errno_value = row->errno_value, .message = "what went wrong"},
	};
}

static bool object_has(const struct text *object, const char *key, const char *json)
{
	char wanted[256];

	snprintf(wanted, sizeof(wanted), "\"%s\":%s", key, json);
	return strstr(text_string(object), wanted);
}

static void write_object(const struct result_source *source, struct text *out)
{
	struct json_writer writer = {.text = out};

	result_write(source, &writer, NULL);
}

static void test_every_cause_has_its_outcome_and_exit_status(void)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *row = &rows[i];
		struct observation seen;
		struct result_source source = {.seen = &seen};
		int failed_before = test_failed_checks;
		AUTO_TEXT object = {0};
		char json[64];

		fill(row, &seen);
		CHECK_STRING(result_outcome_name(result_outcome(&source)), row->outcome);
		CHECK_INT(result_exit_status(&source), row->exit_status);
		write_object(&source, &object);
		snprintf(json, sizeof(json), "\"%s\"", row->outcome);
		CHECK(object_has(&object, "outcome", json));
		CHECK(object_has(&object, "killed", row->is_killed ? "true" : "false"));
		CHECK(object_has(&object, "timed_out", row->cause == CAUSE_TIMEOUT ? "true" : "false"));
		snprintf(json, sizeof(json), row->signal ? "\"%s\"" : "null", row->signal);
		CHECK(object_has(&object, "signal", json));
		snprintf(json, sizeof(json), row->exit_code < 0 ? "null" : "%d", row->exit_code);
		CHECK(object_has(&object, "exit_code", json));
		if (row->stage == STAGE_NONE) {
			CHECK(object_has(&object, "error", "null"));
		} else {
			snprintf(json, sizeof(json), "{\"stage\":\"%s\"", stage_name(row->stage));
			CHECK(object_has(&object, "error", json));
		}
		if (test_failed_checks != failed_before)
			printf("in: %s: %s\n", row->about, text_string(&object));
	}
}

static void test_without_an_observation_it_failed(void)
{
	struct error error = {
		.stage = STAGE_USAGE, .errno_value = 0, .message = "no command", .hint = "say what to run"};
	struct result_source source = {.error = &error};
	AUTO_TEXT object = {0}, words = {0};

	CHECK_INT(result_outcome(&source), OUTCOME_FAILED);
	CHECK_INT(result_exit_status(&source), 125);
	write_object(&source, &object);
	CHECK(object_has(&object, "error",
			 "{\"stage\":\"usage\",\"errno\":null,\"errno_name\":null,\"message\":\"no command\","
			 "\"hint\":\"say what to run\"}"));
	CHECK(object_has(&object, "stdout", "null"));
	CHECK(object_has(&object, "stdout_bytes", "0"));
	CHECK(object_has(&object, "limits_hit", "[]"));
	CHECK(object_has(&object, "risky", "[]"));
	CHECK(object_has(&object, "missing", "[]"));
	CHECK(object_has(&object, "rung", "null"));
	CHECK(object_has(&object, "wall_ms", "null"));
	CHECK_INT(object.data[object.len - 1], '}');
	CHECK(!strchr(object.data, '\n'));
	result_explain(&source, &words);
	CHECK_STRING(text_string(&words), "");
}

static void test_the_exec_error_of_the_request_counts_too(void)
{
	struct error error = {.stage = STAGE_EXEC, .errno_value = ENOENT};
	struct result_source source = {.error = &error};

	CHECK_INT(result_exit_status(&source), 127);
}

/* --- enforced ----------------------------------------------------------------------------------------------- */

static struct plan_step steps[] = {
	{.kind = STEP_SCRATCH, .as.scratch.bytes = 4096},       {.kind = STEP_ENTER},    {.kind = STEP_LOOPBACK},
	{.kind = STEP_RLIMIT, .as.rlimit = {11, RLIMIT_NPROC}}, {.kind = STEP_LANDLOCK}, {.kind = STEP_SECCOMP},
};

static struct plan full_plan(void)
{
	return (struct plan){
		.rung = RUNG_NAMESPACE,
		.core = {.namespaces = CLONE_NEWPID | CLONE_NEWNET,
			 .steps = {steps, ARRAY_LEN(steps), ARRAY_LEN(steps)},
			 .landlock_abi = 7},
		.asked = (1U << GUARANTEE_COUNT) - 1,
		.limits = {.timeout_ns = 5000000000ULL, .output.total_bytes = 10240, .disk_bytes = 4096},
	};
}

static void write_enforced(const struct plan *plan, const struct observation *seen, struct text *out)
{
	struct json_writer writer = {.text = out};

	json_open_object(&writer, NULL);
	result_write_enforced(plan, seen, &writer);
	json_close_object(&writer);
}

static void test_enforced_names_what_was_carried_out(void)
{
	struct plan plan = full_plan();
	struct observation seen = {.has_started = true, .steps_done = ARRAY_LEN(steps)};
	AUTO_TEXT out = {0};

	write_enforced(&plan, &seen, &out);
	CHECK_STRING(text_string(&out),
		     "{\"enforced\":{\"rung\":\"namespace\",\"filesystem\":\"mount-ns+landlock7\","
		     "\"network\":\"net-ns\",\"processes\":\"pid-ns\",\"syscalls\":\"seccomp\",\"memory\":\"none\","
		     "\"pids\":\"rlimit\",\"cpu_time\":\"none\",\"disk\":\"tmpfs\",\"exec\":\"none\","
		     "\"speculation\":\"none\"}}");
}

static void test_a_step_that_was_not_reached_is_not_claimed(void)
{
	struct plan plan = full_plan();
	struct observation seen = {.has_started = true, .steps_done = 2};
	AUTO_TEXT out = {0};

	write_enforced(&plan, &seen, &out);
	CHECK(object_has(&out, "filesystem", "\"mount-ns\""));
	CHECK(object_has(&out, "network", "\"none\""));
	CHECK(object_has(&out, "syscalls", "\"none\""));
	CHECK(object_has(&out, "pids", "\"none\""));
}

static void test_what_was_not_asked_for_is_null(void)
{
	struct plan plan = full_plan();
	struct observation seen = {.has_started = true, .steps_done = ARRAY_LEN(steps)};
	AUTO_TEXT out = {0};

	plan.asked = 1U << GUARANTEE_RUNG;
	write_enforced(&plan, &seen, &out);
	CHECK(object_has(&out, "rung", "\"namespace\""));
	CHECK(object_has(&out, "filesystem", "null"));
	CHECK(object_has(&out, "pids", "null"));
}

static void test_a_run_that_never_started_enforced_nothing(void)
{
	struct plan plan = full_plan();
	struct observation seen = {.steps_done = 3};
	AUTO_TEXT out = {0};

	write_enforced(&plan, &seen, &out);
	CHECK(object_has(&out, "rung", "null"));
	CHECK(object_has(&out, "network", "null"));
}

static void test_walls_of_the_landlock_rung(void)
{
	static struct plan_step first[] = {{.kind = STEP_SUBREAPER}};
	static struct plan_step entry[] = {{.kind = STEP_PRIVILEGES}, {.kind = STEP_LANDLOCK}, {.kind = STEP_SECCOMP}};
	struct plan plan = {
		.rung = RUNG_LANDLOCK,
		.core = {.steps = {first, 1, 1}, .entry = {entry, 3, 3}, .landlock_abi = 4},
		.asked = 1U << GUARANTEE_FILESYSTEM | 1U << GUARANTEE_NETWORK | 1U << GUARANTEE_PROCESSES,
	};
	struct observation seen = {.has_started = true, .steps_done = 1, .entry_done = 3};
	AUTO_TEXT out = {0};

	write_enforced(&plan, &seen, &out);
	CHECK(object_has(&out, "filesystem", "\"landlock4\""));
	CHECK(object_has(&out, "network", "\"seccomp\""));
	CHECK(object_has(&out, "processes", "\"subreaper\""));
}

/* --- limits, words, names ----------------------------------------------------------------------------------- */

static void test_limits_that_were_hit_are_listed_with_evidence(void)
{
	struct observation seen = {.has_started = true, .has_status = true};
	struct result_source source = {.seen = &seen};
	AUTO_TEXT object = {0};

	seen.limits[LIMIT_OUTPUT] = (struct limit_hit){.is_hit = true,
						       .limit = 100,
						       .peak = 150,
						       .has_peak = true,
						       .enforced_by = "belljar",
						       .evidence = "150 bytes written"};
	seen.limits[LIMIT_PIDS] =
		(struct limit_hit){.is_hit = true, .limit = 10, .enforced_by = "rlimit", .evidence = "x"};
	write_object(&source, &object);
	CHECK(object_has(
		&object, "limits_hit",
		"[{\"name\":\"pids\",\"limit\":10,\"peak\":null,\"enforced_by\":\"rlimit\",\"evidence\":\"x\"},"
		"{\"name\":\"output\",\"limit\":100,\"peak\":150,\"enforced_by\":\"belljar\","
		"\"evidence\":\"150 bytes written\"}]"));
}

static void check_words(enum cause cause, int cancel_signal, int status, bool is_truncated, const char *expected)
{
	struct plan plan = full_plan();
	struct observation seen = {.has_started = true,
				   .has_status = true,
				   .cause = cause,
				   .cancel_signal = cancel_signal,
				   .status = status,
				   .is_truncated = is_truncated};
	struct result_source source = {.plan = &plan, .seen = &seen};
	AUTO_TEXT words = {0};

	seen.limits[LIMIT_OUTPUT] = (struct limit_hit){.is_hit = is_truncated, .limit = 10240};
	result_explain(&source, &words);
	CHECK_STRING(text_string(&words), expected);
}

static void test_the_stream_that_was_cut_is_named(void)
{
	struct plan plan = full_plan();
	struct observation seen = {.has_started = true,
				   .has_status = true,
				   .status = EXITED(0),
				   .is_truncated = true,
				   .overflowed = "stderr",
				   .limits[LIMIT_OUTPUT] = {.is_hit = true, .limit = 7}};
	struct result_source source = {.plan = &plan, .seen = &seen};
	AUTO_TEXT words = {0};

	result_explain(&source, &words);
	CHECK_STRING(text_string(&words), "stderr was cut at 7 bytes");
}

static void test_output_that_nobody_took_was_not_cut_by_a_limit(void)
{
	struct plan plan = full_plan();
	struct observation seen = {.has_started = true, .has_status = true, .status = EXITED(0), .is_truncated = true};
	struct result_source source = {.plan = &plan, .seen = &seen};
	AUTO_TEXT words = {0};

	result_explain(&source, &words);
	CHECK_STRING(text_string(&words), "Belljar dropped the rest of the output: its reader did not read it");
}

static void test_a_limit_that_could_not_be_held_ends_the_run(void)
{
	struct plan plan = full_plan();
	struct observation seen = {
		.has_started = true, .has_status = true, .status = SIGNALED(SIGKILL), .cause = CAUSE_UNHELD};
	struct result_source source = {.plan = &plan, .seen = &seen};

	error_set(&seen.error, STAGE_LIMITS, ENOENT, "x");
	CHECK_INT(result_outcome(&source), OUTCOME_CANCELLED);
	CHECK_INT(result_exit_status(&source), 125);
}

static void test_the_limit_that_ended_a_command_has_its_amount(void)
{
	static const struct {
		enum cause cause;
		enum limit_name name;
		uint64_t limit;
		const char *words;
	} ends[] = {
		{CAUSE_CPU, LIMIT_CPU_TIME, 10000, "ended by the CPU time limit of 10s"},
		{CAUSE_MEMORY, LIMIT_MEMORY, 536870912, "ended by the memory limit of 512M"},
		{CAUSE_DISK, LIMIT_DISK, 1048576, "ended by the disk limit of 1M"},
		{CAUSE_NET, LIMIT_NET_BYTES, 5000, "ended by the network limit of 5000"},
	};

	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		struct plan plan = full_plan();
		struct observation seen = {
			.has_started = true, .has_status = true, .cause = ends[i].cause, .status = SIGNALED(SIGKILL)};
		struct result_source source = {.plan = &plan, .seen = &seen};
		AUTO_TEXT words = {0};

		seen.limits[ends[i].name] = (struct limit_hit){.is_hit = true, .limit = ends[i].limit};
		result_explain(&source, &words);
		CHECK_STRING(text_string(&words), ends[i].words);
	}
}

static void test_people_are_told_about_an_end_that_was_not_the_commands_own(void)
{
	check_words(CAUSE_NONE, 0, EXITED(0), false, "");
	check_words(CAUSE_NONE, 0, EXITED(3), false, "");
	check_words(CAUSE_NONE, 0, EXITED(0), true, "output was cut at 10K");
	check_words(CAUSE_NONE, 0, SIGNALED(SIGSEGV), false, "the command was ended by SIGSEGV");
	check_words(CAUSE_TIMEOUT, 0, SIGNALED(SIGKILL), false, "ended by the time limit of 5s");
	check_words(CAUSE_OUTPUT, 0, SIGNALED(SIGKILL), true, "ended by the output limit of 10K");
	check_words(CAUSE_PIDS, 0, SIGNALED(SIGKILL), true,
		    "the command was ended by SIGKILL: it had more processes and threads than it may (--pids)");
	check_words(CAUSE_MEMORY, 0, SIGNALED(SIGKILL), false, "ended by the memory limit");
	check_words(CAUSE_CPU, 0, SIGNALED(SIGKILL), false, "ended by the CPU time limit");
	check_words(CAUSE_DISK, 0, SIGNALED(SIGKILL), false, "ended by the disk limit");
	check_words(CAUSE_CANCELLED, SIGTERM, SIGNALED(SIGTERM), false, "cancelled by SIGTERM");
	check_words(CAUSE_OUTPUT_LOST, 0, SIGNALED(SIGKILL), false, "");
}

static const char *doubt_of(struct observation seen)
{
	const struct plan_remark *doubt = result_doubt(&seen);

	return doubt ? strstr(doubt->why, "cannot know") ? "possible" : "proven" : "none";
}

static void test_a_shortage_of_the_hosts_is_no_limit_of_ours(void)
{
	struct observation killed = {.has_started = true, .has_status = true, .status = SIGNALED(SIGKILL)};
	struct observation exited = {.has_started = true, .has_status = true, .status = EXITED(0)};

	CHECK_STRING(doubt_of(killed), "none");
	killed.shortage = exited.shortage = SHORTAGE_SEEN;
	CHECK_STRING(doubt_of(killed), "possible");
	CHECK_STRING(doubt_of(exited), "none"); /* whoever was killed, it was not the main process */
	killed.shortage = exited.shortage = SHORTAGE_PROVEN;
	CHECK_STRING(doubt_of(killed), "proven");
	CHECK_STRING(doubt_of(exited), "proven"); /* a part of it was */
	killed.cause = CAUSE_TIMEOUT;
	CHECK_STRING(doubt_of(killed), "none"); /* we ended it */
	CHECK(!result_doubt(NULL));
}

static void test_signal_names(void)
{
	CHECK_STRING(signal_name(SIGKILL), "SIGKILL");
	CHECK_STRING(signal_name(SIGHUP), "SIGHUP");
	CHECK_STRING(signal_name(SIGSYS), "SIGSYS");
	CHECK_STRING(signal_name(SIGXCPU), "SIGXCPU");
	CHECK_STRING(signal_name(34), "SIGRTMIN+0");
	CHECK_STRING(signal_name(64), "SIGRTMIN+30");
	CHECK_STRING(signal_name(32), "SIG32"); /* the C library's own */
	for (int number = 1; number < 32; number++)
		CHECK(!strncmp(signal_name(number), "SIG", 3) && signal_name(number)[3] >= 'A');
}

static const struct test tests[] = {
	TEST(test_every_cause_has_its_outcome_and_exit_status),
	TEST(test_without_an_observation_it_failed),
	TEST(test_the_exec_error_of_the_request_counts_too),
	TEST(test_enforced_names_what_was_carried_out),
	TEST(test_a_step_that_was_not_reached_is_not_claimed),
	TEST(test_what_was_not_asked_for_is_null),
	TEST(test_a_run_that_never_started_enforced_nothing),
	TEST(test_walls_of_the_landlock_rung),
	TEST(test_limits_that_were_hit_are_listed_with_evidence),
	TEST(test_the_stream_that_was_cut_is_named),
	TEST(test_output_that_nobody_took_was_not_cut_by_a_limit),
	TEST(test_a_limit_that_could_not_be_held_ends_the_run),
	TEST(test_the_limit_that_ended_a_command_has_its_amount),
	TEST(test_people_are_told_about_an_end_that_was_not_the_commands_own),
	TEST(test_a_shortage_of_the_hosts_is_no_limit_of_ours),
	TEST(test_signal_names),
};

TEST_MAIN(tests)
