/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_plan_answer.c - calls that a filter asks about: that each has an answer, and which objects lie in a place
 *
 * What comes of real calls, and of those who race them, is in tests/adversarial/test_metadata.py.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inside/answer/answer.h"
#include "plan/seccomp/seccomp_rules.h"
#include "test.h"

static void test_every_call_that_is_asked_for_has_an_answer(void)
{
	size_t asked = 0;

	for (size_t i = 0; i < seccomp_rule_count; i++) {
		int number = syscall_number(seccomp_rules[i].call, syscall_native_arch());

		if (seccomp_rules[i].answer != SECCOMP_RET_USER_NOTIF || number < 0)
			continue;
		asked++;
		CHECK(answer_knows(number) == !(seccomp_rules[i].part & SECCOMP_TRACE));
		CHECK(answer_traces(number) == !!(seccomp_rules[i].part & SECCOMP_TRACE));
	}
	CHECK(asked >= 11);
	CHECK(!answer_knows(-1));
	CHECK(!answer_knows(syscall_number(SYSCALL_openat, syscall_native_arch())));
}

static void put(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	close(fd);
}

static bool lies_inside(const struct answer_places *places, const char *name, int flags)
{
	AUTO_CLOSE int fd = open(name, flags | O_CLOEXEC, 0600);
	struct stat status;

	CHECK(fd >= 0 && fstat(fd, &status) == 0);
	return answer_is_in_place(places, fd, &status);
}

static void test_what_lies_in_a_place(void)
{
	char scratch[] = "/tmp/belljar-places-XXXXXX";
	struct answer_place items[2];
	struct answer_places places = {.items = items};
	AUTO_CLOSE int before_fd = open(".", O_PATH | O_CLOEXEC);
	AUTO_CLOSE int nameless_fd = -1;
	struct stat status;

	CHECK(mkdtemp(scratch) && chdir(scratch) == 0);
	CHECK(mkdir("work", 0700) == 0 && mkdir("work/inner", 0700) == 0 && mkdir("other", 0700) == 0);
	put("work/file");
	put("work/inner/named (deleted)");
	put("other/file");
	put("single");
	CHECK(symlink("../other/file", "work/link") == 0 && mkfifo("work/fifo", 0600) == 0);
	CHECK(stat("work", &status) == 0);
	items[places.count++] = (struct answer_place){status.st_dev, status.st_ino};
	CHECK(stat("single", &status) == 0);
	items[places.count++] = (struct answer_place){status.st_dev, status.st_ino};
	CHECK(lies_inside(&places, "work", O_PATH));
	CHECK(lies_inside(&places, "work/inner", O_PATH));
	CHECK(lies_inside(&places, "work/file", O_PATH));
	CHECK(lies_inside(&places, "work/fifo", O_PATH));
	CHECK(lies_inside(&places, "work/inner/named (deleted)", O_RDONLY));
	CHECK(lies_inside(&places, "work/link", O_PATH | O_NOFOLLOW));
	CHECK(lies_inside(&places, "single", O_PATH));
	CHECK(lies_inside(&places, "other", O_TMPFILE | O_RDWR)); /* no name: nobody else's */
	CHECK(!lies_inside(&places, "work/link", O_PATH));
	CHECK(!lies_inside(&places, "other/file", O_PATH));
	CHECK(!lies_inside(&places, "other", O_PATH));
	CHECK(!lies_inside(&places, ".", O_PATH));
	CHECK(!lies_inside(&places, "/", O_PATH));
	CHECK(!lies_inside(&places, "/dev/null", O_PATH));
	CHECK(!lies_inside(&places, "/proc/self/stat", O_PATH));
	/* A name that is gone, of a file that has another outside. */
	CHECK(link("other/file", "work/second") == 0);
	nameless_fd = open("work/second", O_RDONLY | O_CLOEXEC);
	CHECK(nameless_fd >= 0 && unlink("work/second") == 0 && fstat(nameless_fd, &status) == 0);
	CHECK(!answer_is_in_place(&places, nameless_fd, &status));
	/* A directory that its owner may not search. */
	CHECK(chmod("work/inner", 0) == 0);
	CHECK(lies_inside(&places, "work/inner", O_PATH));
	CHECK(chmod("work/inner", 0700) == 0);
	CHECK(unlink("work/file") == 0 && unlink("work/inner/named (deleted)") == 0 && unlink("other/file") == 0 &&
	      unlink("single") == 0 && unlink("work/link") == 0 && unlink("work/fifo") == 0);
	CHECK(rmdir("work/inner") == 0 && rmdir("work") == 0 && rmdir("other") == 0);
	CHECK(fchdir(before_fd) == 0 && rmdir(scratch) == 0);
}

static const struct test tests[] = {
	TEST(test_every_call_that_is_asked_for_has_an_answer),
	TEST(test_what_lies_in_a_place),
};

TEST_MAIN(tests)
