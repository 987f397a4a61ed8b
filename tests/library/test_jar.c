/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/library/test_jar.c - kept jars: many runs with the same private files, files in and out, closing
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>

#include "support.h"

static struct belljar_engine *engine;

static struct belljar_jar *open_jar_with(const char *const *options)
{
	struct belljar_jar_options jar_options = {.size = sizeof(jar_options), .options = options};
	struct belljar_error *error = NULL;
	struct belljar_jar *jar = NULL;
	int rc = belljar_jar_open(engine, &jar_options, &jar, &error);

	if (rc < 0)
		printf("%s: %s\n", belljar_error_stage(error), belljar_error_message(error));
	CHECK_INT(rc, 0);
	belljar_error_free(error);
	return jar;
}

static struct belljar_jar *open_jar(void)
{
	return open_jar_with(plain_options);
}

static struct belljar_command in_jar(const char *const *argv)
{
	return (struct belljar_command){.size = sizeof(struct belljar_command), .argv = argv};
}

#define JAR_COMMAND(...) in_jar((const char *const[]){__VA_ARGS__, NULL})

static struct belljar_result *run_in(struct belljar_jar *jar, const struct belljar_command *command)
{
	struct belljar_error *error = NULL;
	struct belljar_result *result = NULL;
	int rc = belljar_jar_run(jar, command, &result, &error);

	if (rc < 0)
		printf("%s: %s\n", belljar_error_stage(error), belljar_error_message(error));
	CHECK_INT(rc, 0);
	belljar_error_free(error);
	return result;
}

static void check_run(struct belljar_jar *jar, const char *script, const char *expected)
{
	struct belljar_command command = JAR_COMMAND("sh", "-c", script);
	struct belljar_result *result = run_in(jar, &command);

	check_stdout(result, expected);
	belljar_result_free(result);
}

static void test_runs_in_a_jar_share_its_files(void)
{
	struct belljar_jar *jar = open_jar(), *other = open_jar();

	CHECK(belljar_jar_info(jar) && strstr(belljar_jar_info(jar), "\"rung\"") != NULL);
	check_run(jar, "echo kept > file; echo also > /tmp/file", "");
	check_run(jar, "cat file /tmp/file", "kept\nalso\n");
	check_run(other, "ls; cat /tmp/file 2>/dev/null", "");
	belljar_jar_close(jar);
	belljar_jar_close(other);
	belljar_jar_close(NULL);
}

static void test_each_run_has_its_own_limits_and_result(void)
{
	struct belljar_jar *jar = open_jar_with((const char *const[]){"workdir=none", "memory=256M", NULL});
	struct belljar_command command = JAR_COMMAND("sleep", "1000");
	struct belljar_error *error = NULL;
	struct belljar_result *result;

	command.options = (const char *const[]){"timeout=100ms", NULL};
	result = run_in(jar, &command);
	CHECK_INT(belljar_result_outcome(result), BELLJAR_TIMEOUT);
	belljar_result_free(result);
	command = JAR_COMMAND("sh", "-c", "echo in; exit 5");
	result = run_in(jar, &command);
	CHECK_INT(belljar_result_exit_code(result), 5);
	belljar_result_free(result);

	/* A run that asks for more than its jar has gets the jar's limit. */
	command.options = (const char *const[]){"memory=512M", NULL};
	result = run_in(jar, &command);
	CHECK_INT(belljar_result_exit_code(result), 5);
	belljar_result_free(result);
	/* What is the jar's is not the run's to say. */
	command.options = (const char *const[]){"net=host", NULL};
	result = NULL;
	CHECK_INT(belljar_jar_run(jar, &command, &result, &error), -EINVAL);
	CHECK_STRING(belljar_error_stage(error), "policy");
	command.options = NULL;
	command.policy = "strict";
	CHECK_INT(belljar_jar_run(jar, &command, &result, &error), -EINVAL);
	CHECK_STRING(belljar_error_stage(error), "usage");
	belljar_error_free(error);
	check_run(jar, "echo fine", "fine\n");
	belljar_jar_close(jar);
}

static void test_runs_at_the_same_time(void)
{
	struct belljar_jar *jar = open_jar();
	struct belljar_command waiter = JAR_COMMAND("sh", "-c", "while ! test -e go; do sleep 0.01; done; echo went");
	struct belljar_handle *handle = NULL;
	struct belljar_result *result;

	CHECK_INT(belljar_jar_start(jar, &waiter, &handle, NULL), 0);
	check_run(jar, "echo > go", "");
	result = finish(handle);
	check_stdout(result, "went\n");
	belljar_result_free(result);
	belljar_jar_close(jar);
}

static void *run_some(void *data)
{
	for (int i = 0; i < 10; i++)
		check_run(data, "echo hi", "hi\n");
	return NULL;
}

static void test_threads_share_a_jar(void)
{
	struct belljar_jar *jar = open_jar();
	pthread_t threads[8];

	for (size_t i = 0; i < 8; i++)
		CHECK_INT(pthread_create(&threads[i], NULL, run_some, jar), 0);
	for (size_t i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	belljar_jar_close(jar);
}

static void test_files_go_in_and_out(void)
{
	struct belljar_jar *jar = open_jar();
	struct belljar_error *error = NULL;
	char data[] = "some\0bytes";
	void *bytes = NULL;
	size_t len = 0;
	int fd;

	CHECK_INT(belljar_jar_write_file(jar, "in.bin", data, sizeof(data), 0600, &error), 0);
	check_run(
		jar,
		"wc -c < in.bin; stat -c %a in.bin; cp in.bin out.bin; mkdir folder; ln -s /etc/passwd link; mkfifo fifo",
		"11\n600\n");
	CHECK_INT(belljar_jar_read_file(jar, "out.bin", 100, &bytes, &len, &error), 0);
	CHECK_INT(len, sizeof(data));
	CHECK(bytes && memcmp(bytes, data, len) == 0);
	free(bytes);
	bytes = NULL;
	CHECK_INT(belljar_jar_read_file(jar, "out.bin", 10, &bytes, &len, &error), -EFBIG);
	CHECK_INT(belljar_jar_read_file(jar, "none", 10, &bytes, &len, &error), -ENOENT);
	CHECK_STRING(belljar_error_stage(error), "files");
	CHECK(belljar_jar_read_file(jar, "folder", 10, &bytes, &len, &error) < 0);
	CHECK(belljar_jar_read_file(jar, "fifo", 10, &bytes, &len, &error) < 0);
	CHECK(belljar_jar_write_file(jar, "link", "x", 1, 0644, &error) < 0);
	CHECK(belljar_jar_read_file(jar, "/etc/shadow", 10, &bytes, &len, &error) < 0);
	CHECK_INT(belljar_jar_open_file(jar, "x", 9, 0, &error), -EINVAL);
	CHECK(bytes == NULL);

	fd = belljar_jar_open_file(jar, ".", BELLJAR_FILE_LIST, 0, &error);
	CHECK(fd > 2);
	CHECK_INT(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	CHECK_INT(faccessat(fd, "in.bin", F_OK, 0), 0);
	close(fd);
	belljar_jar_close(jar);
	belljar_error_free(error);
}

static void test_closing_ends_what_runs_in_it(void)
{
	struct belljar_jar *jar = open_jar();
	struct belljar_command command = JAR_COMMAND("sh", "-c", "trap '' TERM; sleep 1000");
	struct belljar_handle *handle = NULL;
	struct belljar_result *result;

	command.options = (const char *const[]){"timeout=none", NULL};
	CHECK_INT(belljar_jar_start(jar, &command, &handle, NULL), 0);
	CHECK_INT(belljar_wait(handle, 100, NULL), 0);
	belljar_jar_close(jar);
	result = finish(handle);
	CHECK_INT(belljar_result_outcome(result), BELLJAR_CANCELLED);
	belljar_result_free(result);
}

static void test_a_bad_policy_opens_nothing(void)
{
	struct belljar_jar_options options = {.size = sizeof(options), .policy = "no-such-preset"};
	struct belljar_error *error = NULL;
	struct belljar_jar *jar = NULL;

	CHECK_INT(belljar_jar_open(engine, &options, &jar, &error), -EINVAL);
	CHECK_STRING(belljar_error_stage(error), "policy");
	options.policy = NULL;
	options.flags = 1;
	CHECK_INT(belljar_jar_open(engine, &options, &jar, &error), -EINVAL);
	CHECK(jar == NULL);
	belljar_error_free(error);
}

static struct belljar_jar *inherited;

static void use_inherited(void)
{
	struct belljar_command command = JAR_COMMAND("true");
	struct belljar_result *result = NULL;

	CHECK_INT(belljar_jar_run(inherited, &command, &result, NULL), -ECHILD);
	CHECK_INT(belljar_jar_open_file(inherited, "x", BELLJAR_FILE_READ, 0, NULL), -ECHILD);
	belljar_jar_close(inherited);
}

static void test_a_forked_child_has_no_part_in_it(void)
{
	inherited = open_jar();
	in_child(use_inherited);
	check_run(inherited, "echo still", "still\n");
	belljar_jar_close(inherited);
}

static void test_files_are_made_looked_at_renamed_and_removed(void)
{
	struct belljar_jar *jar = open_jar();
	struct belljar_error *error = NULL;
	uint64_t size = 0;
	uint32_t mode = 0;
	int64_t modified = 0;
	int fd;

	CHECK_INT(belljar_jar_mkdir(jar, "a", 0700, 0, &error), 0);
	CHECK_INT(belljar_jar_mkdir(jar, "a", 0700, 0, &error), -EEXIST);
	CHECK_STRING(belljar_error_stage(error), "files");
	CHECK_INT(belljar_jar_mkdir(jar, "a/b/c", 0755, BELLJAR_PARENTS, &error), 0);
	fd = belljar_jar_open_file(jar, "a/d/file", BELLJAR_FILE_WRITE | (int)BELLJAR_PARENTS, 0640, &error);
	CHECK(fd >= 0);
	CHECK_INT(write(fd, "12345", 5), 5);
	close(fd);
	CHECK_INT(belljar_jar_stat(jar, "a/d/file", 0, &size, &mode, &modified, &error), BELLJAR_TYPE_FILE);
	CHECK_INT(size, 5);
	CHECK_INT(mode, 0640);
	CHECK(modified > 0);
	check_run(jar, "ln -s a link; mkfifo fifo", "");
	CHECK_INT(belljar_jar_stat(jar, "link", 0, NULL, NULL, NULL, &error), BELLJAR_TYPE_LINK);
	CHECK_INT(belljar_jar_stat(jar, "link", BELLJAR_FOLLOW, NULL, NULL, NULL, &error), BELLJAR_TYPE_DIRECTORY);
	CHECK_INT(belljar_jar_stat(jar, "fifo", 0, NULL, NULL, NULL, &error), BELLJAR_TYPE_OTHER);
	CHECK_INT(belljar_jar_stat(jar, "absent", 0, NULL, NULL, NULL, &error), -ENOENT);
	CHECK_INT(belljar_jar_rename(jar, "a/d/file", "moved", &error), 0);
	CHECK_INT(belljar_jar_remove(jar, "a", 0, &error), -ENOTEMPTY);
	CHECK_INT(belljar_jar_remove(jar, "a", BELLJAR_RECURSIVE, &error), 0);
	check_run(jar, "ls", "fifo\nlink\nmoved\n");
	fd = belljar_jar_open_file(jar, ".", BELLJAR_FILE_WATCH, 0, &error);
	CHECK(fd >= 0);
	close(fd);

	/* What makes no sense. */
	CHECK_INT(belljar_jar_mkdir(jar, NULL, 0755, 0, &error), -EINVAL);
	CHECK_INT(belljar_jar_mkdir(jar, "x", 0755, BELLJAR_RECURSIVE, &error), -EINVAL);
	CHECK_INT(belljar_jar_remove(jar, "x", BELLJAR_PARENTS, &error), -EINVAL);
	CHECK_INT(belljar_jar_rename(jar, "x", NULL, &error), -EINVAL);
	CHECK_INT(belljar_jar_open_file(jar, "x", BELLJAR_FILE_READ | (int)BELLJAR_PARENTS, 0, &error), -EINVAL);
	CHECK_INT(belljar_jar_stat(NULL, "x", 0, NULL, NULL, NULL, &error), -EINVAL);
	CHECK_STRING(belljar_error_stage(error), "usage");
	belljar_error_free(error);
	belljar_jar_close(jar);
}

static void test_what_a_command_leaves_running_is_listed_and_ended(void)
{
	struct belljar_jar *jar = open_jar();
	struct belljar_command command = JAR_COMMAND("sh", "-c", "sleep 1000 & echo $!");
	struct belljar_error *error = NULL;
	struct belljar_result *result;
	char *json = NULL;
	int pid;

	command.flags = BELLJAR_DETACH;
	result = run_in(jar, &command);
	pid = atoi(belljar_result_stdout(result, NULL));
	belljar_result_free(result);
	CHECK_INT(belljar_jar_processes(jar, &json, &error), 0);
	CHECK(strstr(json, "\"pid\":") != NULL);
	free(json);
	CHECK_INT(belljar_jar_usage(jar, &json, &error), 0);
	CHECK(strstr(json, "\"runs\":1") != NULL);
	free(json);
	CHECK_INT(belljar_jar_kill(jar, pid, 9, &error), 0);
	do {
		CHECK_INT(belljar_jar_processes(jar, &json, &error), 0);
		pid = strcmp(json, "{\"processes\":[]}");
		free(json);
	} while (pid);
	CHECK_INT(belljar_jar_kill(jar, 1, 9, &error), -EINVAL);
	CHECK_INT(belljar_jar_kill(jar, 9999, 9, &error), -ESRCH);
	command.flags |= BELLJAR_PTY;
	CHECK_INT(belljar_jar_run(jar, &command, &result, &error), -EINVAL);
	CHECK_INT(belljar_jar_connect(jar, 0, &error), -EINVAL);
	pid = belljar_jar_connect(jar, 9, &error);
	CHECK(pid == -ECONNREFUSED || pid == -EOPNOTSUPP);
	belljar_error_free(error);
	belljar_jar_close(jar);
}

static int wait_until_readable(const struct belljar_jar *jar)
{
	struct pollfd readable = {.fd = belljar_jar_fd(jar), .events = POLLIN};

	return poll(&readable, 1, 60000);
}

static void test_a_jar_is_opened_without_waiting_and_tells_its_end(void)
{
	struct belljar_jar_options options = {.size = sizeof(options), .options = plain_options, .ttl = "300ms"};
	struct belljar_error *error = NULL;
	struct belljar_jar *jar = NULL;
	struct belljar_command command = JAR_COMMAND("true");
	struct belljar_result *result = NULL;
	int rc;

	CHECK_INT(belljar_jar_begin(engine, &options, &jar, &error), 0);
	CHECK_INT(belljar_jar_run(jar, &command, &result, &error), -EAGAIN);
	while ((rc = belljar_jar_process(jar, &error)) == 0)
		CHECK_INT(wait_until_readable(jar), 1);
	CHECK_INT(rc, 1);
	CHECK(belljar_jar_info(jar) != NULL);
	CHECK_INT(belljar_jar_process(jar, &error), 1);
	result = run_in(jar, &command);
	belljar_result_free(result);
	CHECK_INT(wait_until_readable(jar), 1);
	CHECK_INT(belljar_jar_process(jar, &error), -ETIME);
	CHECK(strstr(belljar_error_message(error), "time to live") != NULL);
	CHECK_INT(belljar_jar_process(jar, &error), -ESHUTDOWN);
	belljar_jar_close(jar);

	/* One that cannot be made, and one that is closed before it stands. */
	options.ttl = "soon";
	CHECK_INT(belljar_jar_begin(engine, &options, &jar, &error), 0);
	CHECK_INT(wait_until_readable(jar), 1);
	CHECK_INT(belljar_jar_process(jar, &error), -EINVAL);
	CHECK_STRING(belljar_error_stage(error), "policy");
	belljar_jar_close(jar);
	options.ttl = NULL;
	CHECK_INT(belljar_jar_begin(engine, &options, &jar, &error), 0);
	belljar_jar_close(jar);
	CHECK_INT(belljar_jar_fd(NULL), -EINVAL);
	CHECK_INT(belljar_jar_process(NULL, &error), -EINVAL);
	belljar_error_free(error);
}

static void test_the_engine_says_which_protocol_it_speaks(void)
{
	char *json = NULL;

	CHECK_INT(belljar_protocol(engine, &json, NULL), 0);
	CHECK(strstr(json, "\"version\":2") != NULL && strstr(json, "\"files\"") != NULL);
	free(json);
}

static void test_the_rules_of_a_network_change_while_it_lives(void)
{
	const char *const gate[] = {"net=gate", NULL};
	struct belljar_jar_options options = {.size = sizeof(options), .options = gate};
	struct belljar_jar *jar = open_jar();
	struct belljar_error *error = NULL;

	CHECK_INT(belljar_jar_allow_net(jar, "good.test", &error), -EINVAL);
	CHECK(strstr(belljar_error_hint(error), "net=\"gate\""));
	belljar_jar_close(jar);
	/* Rungs without a gate have none to change. */
	if (belljar_jar_open(engine, &options, &jar, &error) < 0) {
		CHECK(strstr(belljar_error_message(error), "namespace"));
		belljar_error_free(error);
		return;
	}
	CHECK_INT(belljar_jar_allow_net(jar, "good.test", &error), 0);
	CHECK_INT(belljar_jar_allow_net(jar, "{\"host\":\"other.test\",\"ports\":5432}", &error), 0);
	CHECK_INT(belljar_jar_deny_net(jar, "good.test", &error), 0);
	CHECK_INT(belljar_jar_allow_net(jar, "10.0.0.1", &error), -EINVAL);
	CHECK_INT(belljar_jar_allow_net(jar, NULL, &error), -EINVAL);
	belljar_error_free(error);
	belljar_jar_close(jar);
}

static void test_no_descriptor_leaks(void)
{
	struct belljar_jar *jar = open_jar();
	size_t before;
	void *bytes;
	size_t len;

	check_run(jar, "echo hi", "hi\n"); /* it leaves its channel for the next */
	before = open_descriptors();
	for (int i = 0; i < 20; i++) {
		check_run(jar, "echo hi", "hi\n");
		CHECK_INT(belljar_jar_read_file(jar, "none", 1, &bytes, &len, NULL), -ENOENT);
		belljar_jar_close(open_jar());
	}
	CHECK_INT(open_descriptors(), before);
	belljar_jar_close(jar);
}

static void check_has(const char *json, const char *words, bool has)
{
	if ((strstr(json, words) != NULL) != has)
		printf("%s\n", json);
	CHECK((strstr(json, words) != NULL) == has);
}

static void test_what_processes_leave_is_told(void)
{
	char directory[] = "/tmp/belljar-look-XXXXXX", option[64];
	const char *const options[] = {option, NULL};
	struct belljar_jar_options jar_options = {.size = sizeof(jar_options), .options = options, .ttl = "2s"};
	struct belljar_command command = JAR_COMMAND("sh", "-c", "echo x > AGENTS.md; touch there; exec sleep 600");
	struct belljar_handle *handle = NULL;
	struct belljar_error *error = NULL;
	struct pollfd readable = {.events = POLLIN};
	struct belljar_jar *jar;
	char *json = NULL;

	CHECK(mkdtemp(directory) != NULL);
	snprintf(option, sizeof(option), "workdir=%s", directory);
	jar = open_jar_with(options);
	CHECK_INT(belljar_jar_start(jar, &command, &handle, &error), 0);
	while (belljar_jar_stat(jar, "there", 0, NULL, NULL, NULL, NULL) < 0)
		usleep(10000);
	CHECK_INT(belljar_jar_look(jar, &json, &error), 0);
	check_has(json, "\"new\":[{\"path\":", true);
	check_has(json, "AGENTS.md", true);
	free(json);
	CHECK_INT(belljar_jar_look(jar, &json, &error), 0);
	check_has(json, "\"new\":[]", true);
	check_has(json, "\"risky\":[{", true);
	free(json);
	for (int i = 0; i < 2; i++) {
		CHECK_INT(belljar_jar_finish(jar, &json, &error), 0);
		check_has(json, "AGENTS.md", true);
		check_has(json, "\"error\"", false);
		free(json);
	}
	belljar_free(handle);
	belljar_jar_close(jar);
	/* One that ends by itself. */
	CHECK_INT(belljar_jar_open(engine, &jar_options, &jar, &error), 0);
	command = JAR_COMMAND("sh", "-c", "echo x > .envrc; exec sleep 600");
	CHECK_INT(belljar_jar_start(jar, &command, &handle, &error), 0);
	readable.fd = belljar_jar_fd(jar);
	CHECK_INT(poll(&readable, 1, -1), 1);
	CHECK(belljar_jar_process(jar, &error) < 0);
	CHECK(strstr(belljar_error_message(error), "time to live") != NULL);
	belljar_error_free(error);
	error = NULL;
	CHECK_INT(belljar_jar_finish(jar, &json, &error), 0);
	check_has(json, ".envrc", true);
	check_has(json, "\"error\"", true);
	free(json);
	CHECK_INT(belljar_jar_finish(NULL, &json, NULL), -EINVAL);
	CHECK_INT(belljar_jar_look(NULL, &json, NULL), -EINVAL);
	belljar_free(handle);
	belljar_jar_close(jar);
	for (size_t i = 0; i < 3; i++) {
		static const char *const names[] = {"AGENTS.md", ".envrc", "there"};
		char path[64];

		snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
		CHECK_INT(unlink(path), 0);
	}
	CHECK_INT(rmdir(directory), 0);
}

static const struct test tests[] = {
	TEST(test_runs_in_a_jar_share_its_files),
	TEST(test_each_run_has_its_own_limits_and_result),
	TEST(test_runs_at_the_same_time),
	TEST(test_threads_share_a_jar),
	TEST(test_files_go_in_and_out),
	TEST(test_closing_ends_what_runs_in_it),
	TEST(test_a_bad_policy_opens_nothing),
	TEST(test_a_forked_child_has_no_part_in_it),
	TEST(test_files_are_made_looked_at_renamed_and_removed),
	TEST(test_what_a_command_leaves_running_is_listed_and_ended),
	TEST(test_a_jar_is_opened_without_waiting_and_tells_its_end),
	TEST(test_the_engine_says_which_protocol_it_speaks),
	TEST(test_the_rules_of_a_network_change_while_it_lives),
	TEST(test_what_processes_leave_is_told),
	TEST(test_no_descriptor_leaks),
};

int main(void)
{
	return library_main(&engine, tests, sizeof(tests) / sizeof(tests[0]));
}
