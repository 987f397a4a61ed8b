/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_jar_command.c - a command written into a memory file comes out as it was, and nothing else comes out
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plan/plan.h"
#include "inside/command.h"
#include "test.h"

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static int write_file(const struct plan *plan, const struct jar_streams *streams)
{
	AUTO_TEXT spec = {0};

	CHECK_INT(inside_command_write(&plan->core, false, streams, &spec), 0);
	return inside_command_file(&spec);
}

static void make_plan(struct plan *plan)
{
	struct plan_step *step;

	*plan = (struct plan){.kind = PLAN_RUN};
	string_list_add(&plan->core.argv, "prog");
	string_list_add(&plan->core.argv, "");
	string_list_add(&plan->core.argv, "a b\xff");
	string_list_add(&plan->core.env, "A=1");
	string_list_add(&plan->core.candidates, "/bin/prog");
	step = list_add(&plan->core.entry);
	*step = (struct plan_step){.kind = STEP_RLIMIT, .as.rlimit = {1024, 7}};
	step = list_add(&plan->core.entry);
	*step = (struct plan_step){.kind = STEP_WORKDIR, .target = "/some/where", .device = 3, .inode = 9};
}

static void test_a_command_comes_out_as_it_went_in(void)
{
	struct jar_streams streams = {.extra_count = 2};
	struct jar_command command = {0};
	struct plan plan;
	int fd;

	make_plan(&plan);
	fd = write_file(&plan, &streams);
	CHECK(fd >= 0);
	CHECK_INT(inside_command_map(fd, 5, &command), 0);
	CHECK_INT(command.argv_count, 3);
	CHECK_STRING(command.argv[0], "prog");
	CHECK_STRING(command.argv[1], "");
	CHECK_STRING(command.argv[2], "a b\xff");
	CHECK(!command.argv[3]);
	CHECK_INT(command.env_count, 1);
	CHECK_STRING(command.env[0], "A=1");
	CHECK(!command.env[1]);
	CHECK_INT(command.candidate_count, 1);
	CHECK_STRING(command.candidates[0], "/bin/prog");
	CHECK_INT(command.entry.count, 2);
	CHECK_INT(command.entry.items[0].kind, STEP_RLIMIT);
	CHECK_INT(command.entry.items[0].as.rlimit.limit, 1024);
	CHECK_STRING(command.entry.items[1].target, "/some/where");
	CHECK_INT(command.entry.items[1].inode, 9);
	CHECK(!command.has_pty);
	/* The descriptors that came with it must be as many as it says. */
	CHECK_INT(inside_command_map(fd, 4, &command), -EBADMSG);
	CHECK_INT(inside_command_map(fd, 0, &command), -EBADMSG);
	close(fd);
	plan_done(&plan);
}

static void test_a_short_one_needs_no_file(void)
{
	struct jar_streams streams = {.has_pty = true};
	struct jar_command command = {0};
	AUTO_TEXT spec = {0};
	struct plan plan;

	make_plan(&plan);
	CHECK_INT(inside_command_write(&plan.core, false, &streams, &spec), 0);
	CHECK_INT(inside_command_parse(text_string(&spec), spec.len, 0, &command), 0);
	CHECK_INT(command.argv_count, 3);
	CHECK_STRING(command.argv[2], "a b\xff");
	CHECK_STRING(command.env[0], "A=1");
	CHECK_INT(command.entry.count, 2);
	CHECK(command.has_pty);
	inside_command_done(&command);
	for (size_t len = 0; len < spec.len; len++)
		CHECK_INT(inside_command_parse(text_string(&spec), len, 0, &command), -EBADMSG);
	plan_done(&plan);
}

static void test_a_step_that_is_not_a_commands_is_refused(void)
{
	static const enum step_kind kinds[] = {STEP_BIND, STEP_BECOME, STEP_ENTER, STEP_HOSTNAME, STEP_METER};
	struct jar_command command;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct plan plan;
		int fd;

		make_plan(&plan);
		plan.core.entry.items[0].kind = kinds[i];
		fd = write_file(&plan, &(struct jar_streams){0});
		CHECK_INT(inside_command_map(fd, 3, &command), -EBADMSG);
		close(fd);
		plan_done(&plan);
	}
}

static int file_with(const char *bytes, size_t len, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHECK_INT(write(fd, bytes, len), (long long)len);
	if (seals)
		CHECK_INT(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static size_t sound_bytes(char *bytes, size_t capacity)
{
	struct plan plan;
	ssize_t len;
	int fd;

	make_plan(&plan);
	fd = write_file(&plan, &(struct jar_streams){0});
	len = pread(fd, bytes, capacity, 0);
	close(fd);
	plan_done(&plan);
	return len > 0 ? (size_t)len : 0;
}

static void test_garbage_is_refused(void)
{
	char sound[4096], bytes[4096];
	size_t len = sound_bytes(sound, sizeof(sound));
	struct jar_command command;
	unsigned seed = 1;
	int fd;

	CHECK(len > 0);
	/* What can still be changed is not read. */
	fd = file_with(sound, len, 0);
	CHECK_INT(inside_command_map(fd, 3, &command), -EBADMSG);
	close(fd);
	fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	CHECK_INT(inside_command_map(fd, 3, &command), -EBADMSG);
	close(fd);
	/* Every length but the right one. */
	for (size_t cut = 0; cut < len; cut++) {
		fd = file_with(sound, cut, SEALS);
		CHECK_INT(inside_command_map(fd, 3, &command), -EBADMSG);
		close(fd);
	}
	/* Bytes changed at random: refused, or a command all of which lies in the file. */
	for (int round = 0; round < 5000; round++) {
		memcpy(bytes, sound, len);
		for (int i = 0; i < 3; i++)
			bytes[(size_t)rand_r(&seed) % len] = (char)rand_r(&seed);
		fd = file_with(bytes, len, SEALS);
		command = (struct jar_command){0};
		if (inside_command_map(fd, 3, &command) == 0) {
			size_t total = 0;

			for (size_t i = 0; i < command.argv_count; i++)
				total += strlen(command.argv[i]) + 1;
			for (size_t i = 0; i < command.env_count; i++)
				total += strlen(command.env[i]) + 1;
			CHECK(command.argv_count > 0 && total < len);
		}
		close(fd);
	}
}

static const struct test tests[] = {
	TEST(test_a_command_comes_out_as_it_went_in),
	TEST(test_a_short_one_needs_no_file),
	TEST(test_a_step_that_is_not_a_commands_is_refused),
	TEST(test_garbage_is_refused),
};

TEST_MAIN(tests)
