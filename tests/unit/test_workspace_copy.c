/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_workspace_copy.c - a whole copy in place of a layer: every kind of file, and nothing that is too much
 */
#include "workspace_scene.h"

#include "workspace/workspace_copy.h"

static int copy_workdir(void)
{
	scene_begin_as(WORKSPACE_COPY);
	return workspace_copy(&workspace, workdir_fd, fresh());
}

static bool has_same(const char *path)
{
	struct stat a, b;

	return fstatat(workdir_fd, path, &a, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fstatat(workspace.upper_fd, path, &b, AT_SYMLINK_NOFOLLOW) == 0 && a.st_mode == b.st_mode &&
	       a.st_uid == b.st_uid && a.st_gid == b.st_gid && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
	       a.st_mtim.tv_nsec == b.st_mtim.tv_nsec && (S_ISDIR(a.st_mode) || a.st_size == b.st_size);
}

static const char *copied_text(const char *path)
{
	static char text[256];
	int fd = openat(workspace.upper_fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	close(fd);
	text[len < 0 ? 0 : len] = '\0';
	return len < 0 ? "(none)" : text;
}

static void test_every_kind_of_file_is_copied(void)
{
	const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 2000, .tv_nsec = 3}};
	char link[64] = "", value[8] = "";
	struct stat one, two;

	scene_reset();
	make_directory("/project/d/e");
	put(workdir_fd, "d/e/f", "deep");
	put(workdir_fd, "empty", "");
	put(workdir_fd, "program", "#!/bin/sh\n");
	CHECK(fchmodat(workdir_fd, "program", 0755, 0) == 0);
	CHECK(setxattr(at("/project/program"), "user.kept", "yes", 3, 0) == 0);
	CHECK(setxattr(at("/project/program"), "user.overlay.origin", "x", 1, 0) == 0);
	CHECK(linkat(workdir_fd, "program", workdir_fd, "d/also", 0) == 0);
	CHECK(symlinkat("/nowhere/at/all", workdir_fd, "link") == 0);
	CHECK(mkfifoat(workdir_fd, "pipe", 0640) == 0);
	CHECK(mknodat(workdir_fd, "socket", S_IFSOCK | 0600, 0) == 0);
	CHECK(fchmodat(workdir_fd, "d/e", 0555, 0) == 0);
	CHECK(utimensat(workdir_fd, "d/e", times, 0) == 0);
	CHECK_INT(copy_workdir(), 0);
	CHECK(has_same("d") && has_same("d/e") && has_same("d/e/f") && has_same("empty") && has_same("program") &&
	      has_same("link"));
	CHECK_STRING(copied_text("d/e/f"), "deep");
	CHECK(readlinkat(workspace.upper_fd, "link", link, sizeof(link) - 1) == 15);
	CHECK_STRING(link, "/nowhere/at/all");
	CHECK(fstatat(workspace.upper_fd, "pipe", &one, 0) == 0 && S_ISFIFO(one.st_mode));
	CHECK(faccessat(workspace.upper_fd, "socket", F_OK, AT_SYMLINK_NOFOLLOW) < 0);
	CHECK(fstatat(workspace.upper_fd, "program", &one, 0) == 0 &&
	      fstatat(workspace.upper_fd, "d/also", &two, 0) == 0);
	CHECK_INT(one.st_ino, two.st_ino);
	{
		int fd = openat(workspace.upper_fd, "program", O_RDONLY | O_CLOEXEC);

		CHECK_INT(fgetxattr(fd, "user.kept", value, sizeof(value)), 3);
		CHECK(fgetxattr(fd, "user.overlay.origin", value, sizeof(value)) < 0);
		close(fd);
	}
	CHECK(fchmodat(workdir_fd, "d/e", 0755, 0) == 0);
	CHECK(fchmodat(workspace.upper_fd, "d/e", 0755, 0) == 0);
}

static void test_holes_stay_holes(void)
{
	struct stat status;
	int fd;

	scene_reset();
	fd = openat(workdir_fd, "huge", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	CHECK(ftruncate(fd, (off_t)1 << 40) == 0);
	CHECK(pwrite(fd, "x", 1, (off_t)1 << 39) == 1);
	close(fd);
	CHECK_INT(copy_workdir(), 0);
	CHECK(fstatat(workspace.upper_fd, "huge", &status, 0) == 0);
	CHECK_INT(status.st_size, (off_t)1 << 40);
	CHECK(status.st_blocks < 1024);
}

static void test_links_are_not_followed(void)
{
	scene_reset();
	make_directory("/outside");
	put(workdir_fd, "../outside/secret", "s");
	CHECK(symlinkat("../outside", workdir_fd, "d") == 0);
	CHECK(symlinkat("../outside/secret", workdir_fd, "f") == 0);
	CHECK_INT(copy_workdir(), 0);
	CHECK_STRING(copied_text("f"), "(none)");
	CHECK_STRING(copied_text("../outside/secret"), "(none)");
}

/* Told with the numbers, before anything is copied. */
static void test_too_much_is_refused(void)
{
	int fd;

	scene_reset();
	fd = openat(workdir_fd, "big", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	/* Blocks that are taken count, also where nothing was written yet. */
	if (fallocate(fd, 0, 0, (off_t)WORKSPACE_COPY_BYTES_MAX + 4096) == 0) {
		CHECK_INT(copy_workdir(), -EFBIG);
		CHECK(strstr(scene_error.message, "512 MB") && strstr(scene_error.message, "1 entries"));
		CHECK_STRING(copied_text("big"), "(none)");
	}
	close(fd);
	/* Deeper than is worth it. */
	scene_reset();
	fd = dup(workdir_fd);
	for (int i = 0; i < 300; i++) {
		int next;

		CHECK(mkdirat(fd, "d", 0755) == 0);
		next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = next;
	}
	close(fd);
	CHECK_INT(copy_workdir(), -ENAMETOOLONG);
}

static const struct test tests[] = {
	TEST(test_every_kind_of_file_is_copied),
	TEST(test_holes_stay_holes),
	TEST(test_links_are_not_followed),
	TEST(test_too_much_is_refused),
};

int main(void)
{
	return scratch_main(tests, ARRAY_LEN(tests), scene_prepare);
}
