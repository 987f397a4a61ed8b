/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_task_task.c - tasks are read strictly, carried out where they are told, and given up when nobody waits
 */
#include "inside/task/task.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "test.h"

static char directory[] = "/tmp/bjt-task-XXXXXX";
static int own_end, other_end;

static int send_and_read(const struct jar_task *order, const char *text, size_t len, size_t fd_count, struct task *out)
{
	static struct jar_attached attached;
	struct jar_message message = {.kind = JAR_TASK, .task = *order};
	int fds[2] = {other_end, other_end}, rc;

	CHECK_INT(control_send_all(own_end, &message, text, len, fds, fd_count), 0);
	CHECK_INT(control_receive_all(other_end, &message, &attached), 1);
	rc = task_read(&message, &attached, out);
	if (rc < 0)
		for (size_t i = 0; i < attached.passed.count; i++)
			close(attached.passed.fds[i]);
	return rc;
}

static void test_what_is_no_task_is_refused(void)
{
	struct task task;
	const struct jar_task stat_task = {.operation = TASK_STAT}, rename_task = {.operation = TASK_RENAME};

	CHECK_INT(control_socket_pair(&own_end, &other_end), 0);
	CHECK_INT(send_and_read(&stat_task, "a/b", 4, 1, &task), 0);
	CHECK_STRING(task.path, "a/b");
	close(task.reply_fd);
	CHECK_INT(send_and_read(&rename_task, "a\0b", 4, 1, &task), 0);
	CHECK_STRING(task.to, "b");
	close(task.reply_fd);
	CHECK_INT(send_and_read(&stat_task, "a/b", 4, 0, &task), -EPROTO);
	CHECK_INT(send_and_read(&stat_task, "a/b", 4, 2, &task), -EPROTO);
	CHECK_INT(send_and_read(&stat_task, "a/b", 3, 1, &task), -EPROTO);
	CHECK_INT(send_and_read(&stat_task, "a\0b", 4, 1, &task), -EPROTO);
	CHECK_INT(send_and_read(&rename_task, "a/b", 4, 1, &task), -EPROTO);
	CHECK_INT(send_and_read(&stat_task, NULL, 0, 1, &task), -EPROTO);
	CHECK_INT(send_and_read(&(struct jar_task){.operation = TASK_OPERATION_COUNT}, NULL, 0, 1, &task), -EPROTO);
	CHECK_INT(send_and_read(&(struct jar_task){.operation = TASK_STAT, .flags = 8}, "a", 2, 1, &task), -EPROTO);
	close(own_end);
	close(other_end);
}

/* Carry one out here, and hear what came of it; a descriptor in *@fd. */
static int carry_out(enum task_operation operation, uint32_t flags, const char *path, const char *to, int *fd)
{
	struct task task = {.order = {.operation = operation, .flags = flags, .number = 0755}, .path = path, .to = to};
	struct jar_message message = {0};
	int came = -1;

	CHECK_INT(control_socket_pair(&own_end, &task.reply_fd), 0);
	task_carry_out(&task);
	CHECK_INT(control_receive(own_end, &message, &came), 1);
	CHECK_INT(message.kind, JAR_TASK_DONE);
	close(task.reply_fd);
	close(own_end);
	if (fd)
		*fd = came;
	else if (came >= 0)
		close(came);
	return -message.task_done.error;
}

static void make_file(const char *path)
{
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

static void test_names_that_are_no_names_of_their_own(void)
{
	for (const char *const *at = (const char *const[]){".", "..", "/", "//", "a/..", "a/.", NULL}; *at; at++) {
		CHECK_INT(carry_out(TASK_REMOVE, TASK_RECURSIVE, *at, "", NULL), -EINVAL);
		CHECK_INT(carry_out(TASK_RENAME, 0, *at, "x", NULL), -EINVAL);
		CHECK_INT(carry_out(TASK_MAKE_DIRECTORY, 0, *at, "", NULL), -EEXIST);
	}
	CHECK_INT(carry_out(TASK_REMOVE, 0, "", "", NULL), -ENOENT);
	CHECK_INT(carry_out(TASK_STAT, 0, "/proc/self/stat", "", NULL), -EACCES);
	CHECK_INT(carry_out(TASK_MAKE_DIRECTORY, 0, "/proc/self/cwd/x", "", NULL), -ELOOP);
}

static void test_a_tree_is_removed_and_a_link_is_not_followed(void)
{
	CHECK_INT(carry_out(TASK_MAKE_DIRECTORY, TASK_PARENTS, "tree/a/b", "", NULL), 0);
	CHECK_INT(carry_out(TASK_MAKE_DIRECTORY, 0, "keep", "", NULL), 0);
	make_file("keep/file");
	CHECK_INT(symlink("../keep", "tree/link"), 0);
	CHECK_INT(symlink("tree", "link"), 0);
	CHECK_INT(carry_out(TASK_REMOVE, TASK_RECURSIVE, "link", "", NULL), 0);
	CHECK_INT(carry_out(TASK_REMOVE, 0, "tree", "", NULL), -ENOTEMPTY);
	CHECK_INT(carry_out(TASK_REMOVE, TASK_RECURSIVE, "tree", "", NULL), 0);
	CHECK_INT(access("tree", F_OK), -1);
	CHECK_INT(access("keep/file", F_OK), 0);
	CHECK_INT(carry_out(TASK_REMOVE, TASK_RECURSIVE, "keep", "", NULL), 0);
}

/* Deeper than there are descriptors. */
static void test_a_deep_tree_needs_few_descriptors(void)
{
	CHECK_INT(mkdir("deep", 0700), 0);
	CHECK_INT(chdir("deep"), 0);
	for (int i = 0; i < 3000; i++)
		if (mkdir("d", 0700) < 0 || chdir("d") < 0)
			CHECK(false);
	CHECK_INT(chdir(directory), 0);
	CHECK_INT(carry_out(TASK_REMOVE, TASK_RECURSIVE, "deep", "", NULL), 0);
	CHECK_INT(access("deep", F_OK), -1);
}

static void test_a_removal_is_given_up_when_nobody_waits(void)
{
	struct task task = {.order = {.operation = TASK_REMOVE, .flags = TASK_RECURSIVE}, .path = "many", .to = ""};
	char name[32];

	CHECK_INT(mkdir("many", 0700), 0);
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "many/%d", i);
		make_file(name);
	}
	CHECK_INT(control_socket_pair(&own_end, &task.reply_fd), 0);
	close(own_end);
	task_carry_out(&task);
	close(task.reply_fd);
	CHECK_INT(access("many", F_OK), 0);
	CHECK_INT(carry_out(TASK_REMOVE, TASK_RECURSIVE, "many", "", NULL), 0);
}

static void test_fifos_and_links_do_not_block(void)
{
	int fd;

	CHECK_INT(mkfifo("fifo", 0600), 0);
	CHECK_INT(symlink("file", "link"), 0);
	CHECK_INT(carry_out(TASK_READ, 0, "fifo", "", NULL), -EINVAL);
	CHECK_INT(carry_out(TASK_WRITE, 0, "fifo", "", NULL), -ENXIO);
	CHECK_INT(carry_out(TASK_WATCH, 0, "fifo", "", NULL), -EINVAL);
	CHECK_INT(carry_out(TASK_WRITE, 0, "link", "", NULL), -ELOOP);
	CHECK_INT(carry_out(TASK_WRITE, TASK_PARENTS, "p/q//r", "", &fd), 0);
	CHECK(fd >= 0);
	close(fd);
	CHECK_INT(carry_out(TASK_RENAME, 0, "link", "p/link", NULL), 0);
	CHECK_INT(carry_out(TASK_REMOVE, TASK_RECURSIVE, "p", "", NULL), 0);
	CHECK_INT(carry_out(TASK_REMOVE, 0, "fifo", "", NULL), 0);
}

static const struct test tests[] = {
	TEST(test_what_is_no_task_is_refused),
	TEST(test_names_that_are_no_names_of_their_own),
	TEST(test_a_tree_is_removed_and_a_link_is_not_followed),
	TEST(test_a_deep_tree_needs_few_descriptors),
	TEST(test_a_removal_is_given_up_when_nobody_waits),
	TEST(test_fifos_and_links_do_not_block),
};

int main(void)
{
	int rc;

	if (!mkdtemp(directory) || chdir(directory) < 0)
		return 1;
	rc = test_main(tests, ARRAY_LEN(tests));
	rmdir(directory);
	return rc;
}
