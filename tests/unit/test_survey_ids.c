/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_survey_ids.c - blocks of host ids: nobody's twice, given back, and a chance where there can be no lock
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "survey/survey_ids.h"
#include "scratch_tree.h"

#define FEW 8

static void test_nobody_has_anothers_block(void)
{
	bool is_taken[FEW] = {false};
	int fds[FEW], count = 0;
	unsigned block;

	for (int i = 0; i < 20 * FEW && count < FEW; i++) {
		int fd = survey_ids_reserve(at("/ids"), FEW, &block);

		if (fd < 0)
			continue; /* with so few blocks chance may not find the last free one */
		CHECK(block < FEW && !is_taken[block]);
		is_taken[block] = true;
		fds[count++] = fd;
	}
	CHECK_INT(count, FEW);
	CHECK_INT(survey_ids_reserve(at("/ids"), FEW, &block), -EAGAIN);
	CHECK(block < FEW);
	/* Who leaves gives it back, with nothing to be cleaned up. */
	for (int i = 0; i < count; i++)
		close(fds[i]);
	fds[0] = survey_ids_reserve(at("/ids"), FEW, &block);
	CHECK(fds[0] >= 0);
	close(fds[0]);
}

static void test_other_processes_are_kept_out_until_they_end(void)
{
	unsigned block = 99;
	int fd = survey_ids_reserve(at("/one"), 1, &block);
	int status = -1;
	pid_t child;

	CHECK(fd >= 0);
	CHECK_INT(block, 0);
	child = fork();
	if (!child)
		_exit(survey_ids_reserve(at("/one"), 1, &block) == -EAGAIN ? 0 : 1);
	CHECK(waitpid(child, &status, 0) == child);
	CHECK_INT(status, 0);
	close(fd);
	child = fork();
	if (!child)
		_exit(survey_ids_reserve(at("/one"), 1, &block) >= 0 ? 0 : 1);
	CHECK(waitpid(child, &status, 0) == child);
	CHECK_INT(status, 0);
	fd = survey_ids_reserve(at("/one"), 1, &block);
	CHECK(fd >= 0);
	close(fd);
}

static void test_without_a_good_file_it_is_a_chance(void)
{
	unsigned block = 99;

	CHECK(survey_ids_reserve(at("/none/ids"), FEW, &block) < 0);
	CHECK(block < FEW);
	make_directory("/directory");
	CHECK(survey_ids_reserve(at("/directory"), FEW, &block) < 0);
	CHECK(symlink(at("/ids"), at("/link")) == 0);
	CHECK(survey_ids_reserve(at("/link"), FEW, &block) < 0);
	CHECK(mkfifo(at("/fifo"), 0600) == 0);
	CHECK(survey_ids_reserve(at("/fifo"), FEW, &block) < 0);
	/* Others could hold all the locks. */
	close(open(at("/open"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	CHECK(chmod(at("/open"), 0644) == 0);
	CHECK_INT(survey_ids_reserve(at("/open"), FEW, &block), -EPERM);
}

static void test_jars_of_one_engine_differ_and_children_have_their_own(void)
{
	uid_t first = survey_jar_id(0), second = survey_jar_id(1), childs = 0;
	int ends[2];

	CHECK(first >= 1900000000U && first % HOST_IDS_IN_BLOCK == 1900000000U % HOST_IDS_IN_BLOCK);
	CHECK_INT(second, first + 1);
	CHECK_INT(survey_jar_id(0), first);
	CHECK_INT(survey_jar_id(HOST_IDS_IN_BLOCK), first);
	CHECK(pipe(ends) == 0);
	if (fork() == 0) {
		childs = survey_jar_id(0);
		_exit(write(ends[1], &childs, sizeof(childs)) == sizeof(childs) ? 0 : 1);
	}
	CHECK(read(ends[0], &childs, sizeof(childs)) == sizeof(childs));
	CHECK(wait(NULL) > 0);
	CHECK(childs != first);
	close(ends[0]);
	close(ends[1]);
}

static const struct test tests[] = {
	TEST(test_nobody_has_anothers_block),
	TEST(test_other_processes_are_kept_out_until_they_end),
	TEST(test_without_a_good_file_it_is_a_chance),
	TEST(test_jars_of_one_engine_differ_and_children_have_their_own),
};

int main(void)
{
	return scratch_main(tests, ARRAY_LEN(tests), NULL);
}
