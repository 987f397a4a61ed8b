/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_build_copy.c - STEP_COPY copies the object that the planner saw, and nothing else
 */
#include "scratch_tree.h"

#include <errno.h>
#include <fcntl.h>

#include "inside/build/build.h"

static struct jar_build build = {.root_fd = -1};

static void write_file(const char *name, size_t len)
{
	FILE *file = fopen(at(name), "w");

	for (size_t i = 0; i < len; i++)
		fputc('a' + (int)(i % 26), file);
	fclose(file);
}

/* Copy @source, seen as it was when this is called, to @target; @between happens in between. */
static int copy(const char *source, const char *target, void (*between)(void))
{
	struct plan_step step = {.kind = STEP_COPY, .target = target};
	char path[PATH_MAX * 2];
	struct stat status;

	snprintf(path, sizeof(path), "%s", at(source));
	CHECK_INT(stat(path, &status), 0);
	step.mode = status.st_mode & 0555;
	step.source = path;
	step.device = status.st_dev;
	step.inode = status.st_ino;
	if (between)
		between();
	return build_step(&build, &step);
}

static void prepare(void)
{
	make_directory("/root");
	build.root_fd = open(at("/root"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	umask(0);
}

static void test_the_content_and_the_mode_are_there(void)
{
	struct stat status;
	char content[8] = {0};
	FILE *file;

	write_file("/small", 5);
	CHECK_INT(copy("/small", "/etc/deep/small", NULL), 0);
	CHECK_INT(stat(at("/root/etc/deep/small"), &status), 0);
	CHECK_INT(status.st_mode & 07777, 0444);
	CHECK_INT(status.st_size, 5);
	file = fopen(at("/root/etc/deep/small"), "r");
	CHECK(file && fread(content, 1, sizeof(content), file) == 5);
	CHECK_STRING(content, "abcde");
	fclose(file);
}

static void test_what_is_too_long_is_refused(void)
{
	write_file("/most", JAR_COPY_BYTES_MAX);
	CHECK_INT(copy("/most", "/most", NULL), 0);
	write_file("/long", JAR_COPY_BYTES_MAX + 1);
	CHECK_INT(copy("/long", "/long", NULL), -EFBIG);
}

static void replace(void)
{
	write_file("/other", 3);
	CHECK_INT(rename(at("/other"), at("/replaced")), 0);
}

static void replace_by_link(void)
{
	CHECK_INT(rename(at("/linked"), at("/away")), 0);
	CHECK_INT(symlink("away", at("/linked")), 0);
}

static void replace_by_fifo(void)
{
	CHECK_INT(unlink(at("/piped")), 0);
	CHECK_INT(mkfifo(at("/piped"), 0666), 0);
}

static void withdraw(void)
{
	CHECK_INT(chmod(at("/withdrawn"), 0600), 0);
}

static void test_what_has_been_replaced_is_refused(void)
{
	write_file("/replaced", 5);
	CHECK_INT(copy("/replaced", "/replaced", replace), -ESTALE);
	write_file("/linked", 5);
	CHECK_INT(copy("/linked", "/linked", replace_by_link), -ELOOP);
	write_file("/piped", 5);
	CHECK_INT(copy("/piped", "/piped", replace_by_fifo), -ESTALE);
	write_file("/withdrawn", 5);
	CHECK_INT(copy("/withdrawn", "/withdrawn", withdraw), -ESTALE);
	CHECK(access(at("/root/replaced"), F_OK) < 0);
}

static void test_what_stands_at_the_target_stays(void)
{
	write_file("/small", 5);
	CHECK_INT(symlink("../outside", at("/root/link")), 0);
	CHECK_INT(copy("/small", "/link", NULL), -EEXIST);
	CHECK(access(at("/outside"), F_OK) < 0);
}

static const struct test tests[] = {
	TEST(test_the_content_and_the_mode_are_there),
	TEST(test_what_is_too_long_is_refused),
	TEST(test_what_has_been_replaced_is_refused),
	TEST(test_what_stands_at_the_target_stays),
};

int main(void)
{
	return scratch_main(tests, ARRAY_LEN(tests), prepare);
}
