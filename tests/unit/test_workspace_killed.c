/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_workspace_killed.c - an apply that is killed before any of its changes, and applied again
 *
 * A tracer stops the apply at each system call that could change a file system, and kills it at the N-th, for every N: so
 * every state that a killed apply can leave is met. After a second apply the workdir must be what an undisturbed one makes of
 * it, and nothing may be left to apply.
 */
#include "workspace_applying.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/text.h"

/* --- killing at the N-th change ----------------------------------------------------------------------------------- */

static const int changing_calls[] = {
	SYS_write,
	SYS_pwrite64,
	SYS_pwritev,
	SYS_writev,
	SYS_ftruncate,
	SYS_fallocate,
	SYS_copy_file_range,
	SYS_sendfile,
	SYS_ioctl,
	SYS_fchmod,
	SYS_fchmodat,
	SYS_fchown,
	SYS_fchownat,
	SYS_fsetxattr,
	SYS_setxattr,
	SYS_lsetxattr,
	SYS_utimensat,
	SYS_fremovexattr,
	SYS_removexattr,
	SYS_lremovexattr,
	SYS_mkdirat,
	SYS_mknodat,
	SYS_linkat,
	SYS_symlinkat,
	SYS_unlinkat,
	SYS_renameat2,
#ifdef SYS_rename
	SYS_rename,
	SYS_renameat,
	SYS_unlink,
	SYS_rmdir,
	SYS_mkdir,
	SYS_mknod,
	SYS_link,
	SYS_symlink,
	SYS_chmod,
	SYS_chown,
	SYS_truncate,
#endif
};

/* Stop for the tracer at each of them, and where a file may be made. */
static int install_stops(void)
{
	struct sock_filter filter[2 * ARRAY_LEN(changing_calls) + 8];
	struct sock_fprog program = {.filter = filter};
	size_t len = 0;

	filter[len++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < ARRAY_LEN(changing_calls); i++) {
		filter[len++] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)changing_calls[i], 0, 1);
		filter[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
	}
	filter[len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3);
	filter[len++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2]));
	filter[len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_CREAT, 0, 1);
	filter[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
	filter[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	program.len = (unsigned short)len;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 ? -errno : 0;
}

/* An apply in a process of its own, killed before its @nth change: true. False: it had fewer, and has ended. */
static bool apply_killed_at(unsigned nth)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 || raise(SIGSTOP) != 0 || install_stops() < 0)
			_exit(2);
		_exit(apply() < 0);
	}
	CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
	CHECK(ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESECCOMP | PTRACE_O_EXITKILL) == 0);
	for (unsigned met = 0;;) {
		int signal = 0;

		CHECK(ptrace(PTRACE_CONT, child, NULL, signal) == 0);
		if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
			break;
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_SECCOMP << 8) && met++ == nth) {
			kill(child, SIGKILL);
			waitpid(child, &status, 0);
			return true;
		}
	}
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return false;
}

/* --- what the workdir is ------------------------------------------------------------------------------------------ */

static struct {
	ino_t inode;
	char path[PATH_MAX];
} shared[64];
static size_t shared_count;

/* The first name of a file that has several. */
static const char *first_name(ino_t inode, const char *path)
{
	for (size_t i = 0; i < shared_count; i++)
		if (shared[i].inode == inode)
			return shared[i].path;
	if (shared_count < ARRAY_LEN(shared)) {
		shared[shared_count].inode = inode;
		snprintf(shared[shared_count++].path, sizeof(shared[0].path), "%s", path);
	}
	return path;
}

static void describe_xattrs(struct text *out, const char *path)
{
	char names[1024], value[256];
	ssize_t len = llistxattr(path, names, sizeof(names));

	for (ssize_t i = 0; i < len; i += (ssize_t)strlen(names + i) + 1) {
		ssize_t value_len = lgetxattr(path, names + i, value, sizeof(value));

		text_append_format(out, " %s=%.*s", names + i, (int)value_len, value);
	}
}

static int by_string(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A line for each name: type, mode, owner, what is in it, which other name it shares, when it was written. */
static void describe(struct text *out, const char *directory)
{
	char whole[PATH_MAX * 2];
	char buffer[16384];
	int fd;
	struct directory list;
	const struct directory_entry *entry;
	struct string_list names = {0};

	snprintf(whole, sizeof(whole), "%s/%s", at("/project"), directory);
	fd = open(whole, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	list = (struct directory){.fd = fd, .buffer = buffer, .size = sizeof(buffer)};
	while ((entry = directory_next(&list)))
		CHECK_INT(string_list_add(&names, entry->name), 0);
	close(fd);
	if (names.count)
		qsort(names.items, names.count, sizeof(*names.items), by_string);
	for (size_t i = 0; i < names.count; i++) {
		char path[PATH_MAX], link[256] = "";
		struct stat status;

		snprintf(path, sizeof(path), "%s%s%s", directory, *directory ? "/" : "", names.items[i]);
		snprintf(whole, sizeof(whole), "%s/%s", at("/project"), path);
		CHECK(lstat(whole, &status) == 0);
		text_append_format(out, "%s %o %u:%u", path, status.st_mode, status.st_uid, status.st_gid);
		describe_xattrs(out, whole);
		if (S_ISLNK(status.st_mode) && readlink(whole, link, sizeof(link) - 1) > 0)
			text_append_format(out, " -> %s", link);
		if (S_ISREG(status.st_mode))
			text_append_format(out, " as %s, %ld: %s",
					   status.st_nlink > 1 ? first_name(status.st_ino, path) : path,
					   (long)status.st_mtim.tv_sec, content(path));
		text_append_char(out, '\n');
		if (S_ISDIR(status.st_mode))
			describe(out, path);
	}
	string_list_done(&names);
}

static char *workdir_text(void)
{
	struct text out = {0};

	shared_count = 0;
	describe(&out, "");
	text_append_char(&out, '\n');
	return out.data;
}

/* --- scenes ------------------------------------------------------------------------------------------------------- */

/* Files of the layer have a time that does not depend on when the scene was made. */
static void old_file(int parent, const char *path, const char *text)
{
	const struct timespec times[2] = {{.tv_sec = 1700000000}, {.tv_sec = 1700000000}};

	put(parent, path, text);
	CHECK(utimensat(parent, path, times, 0) == 0);
}

static void new_file(const char *path, const char *text)
{
	const struct timespec times[2] = {{.tv_sec = 1800000000}, {.tv_sec = 1800000000}};

	put(workspace.upper_fd, path, text);
	CHECK(utimensat(workspace.upper_fd, path, times, 0) == 0);
}

static void new_directory(const char *path, mode_t mode)
{
	CHECK(mkdirat(workspace.upper_fd, path, 0755) == 0);
	CHECK(fchmodat(workspace.upper_fd, path, mode, 0) == 0);
}

/* Every kind of change, at least once. */
static void every_change(void)
{
	make_directory("/project/d/sub");
	old_file(workdir_fd, "modified", "old");
	old_file(workdir_fd, "gone", "old");
	old_file(workdir_fd, "d/gone", "old");
	old_file(workdir_fd, "d/sub/gone", "old");
	old_file(workdir_fd, "mode", "x");
	old_file(workdir_fd, "to_directory", "x");
	make_directory("/project/to_file/inner");
	old_file(workdir_fd, "to_file/inner/f", "x");
	CHECK(symlinkat("modified", workdir_fd, "link") == 0);
	scene_begin();
	new_file("modified", "new");
	set_mark("modified", "user.overlay.origin", "");
	set_mark("modified", "user.kept", "yes");
	whiteout("gone");
	whiteout("d");
	new_file("mode", "x");
	set_mark("mode", "user.kept", "yes");
	CHECK(fchmodat(workspace.upper_fd, "mode", 0600, 0) == 0);
	new_directory("to_directory", 0755);
	set_mark("to_directory", "user.overlay.opaque", "y");
	new_file("to_directory/f", "deep");
	new_file("to_file", "file");
	CHECK(symlinkat("mode", workspace.upper_fd, "link") == 0);
	new_directory("new", 0755);
	set_mark("new", "user.overlay.opaque", "y");
	new_directory("new/empty", 0555);
	new_directory("new/closed", 0755);
	set_mark("new/closed", "user.overlay.opaque", "y");
	set_mark("new/closed", "user.kept", "yes");
	new_file("new/closed/f", "in");
	CHECK(fchmodat(workspace.upper_fd, "new/closed", 0555, 0) == 0);
	CHECK(symlinkat("../modified", workspace.upper_fd, "new/link") == 0);
}

/* Files with several names, in the layer and in the workdir; files that the command renamed. */
static void links_and_renames(void)
{
	static const char *const pairs[] = {"a", "b"};

	old_file(workdir_fd, "a", "old");
	CHECK(linkat(workdir_fd, "a", workdir_fd, "b", 0) == 0);
	old_file(workdir_fd, "x", "old");
	CHECK(linkat(workdir_fd, "x", workdir_fd, "y", 0) == 0);
	old_file(workdir_fd, "before", "renamed");
	old_file(workdir_fd, "linked", "linked");
	scene_begin();
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		new_file(pairs[i], "new");
		set_mark(pairs[i], "user.overlay.origin", "");
	}
	whiteout("x");
	whiteout("y");
	whiteout("before");
	new_file("after", "renamed");
	set_mark("after", "user.overlay.origin", "");
	new_file("later", "renamed");
	set_mark("later", "user.overlay.origin", "");
	new_directory("new", 0755);
	new_file("new/one", "shared");
	CHECK(linkat(workspace.upper_fd, "new/one", workspace.upper_fd, "new/two", 0) == 0);
	CHECK(linkat(workspace.upper_fd, "new/one", workspace.upper_fd, "three", 0) == 0);
}

/* A directory was removed and made anew, with other things in it. */
static void replaced_directory(void)
{
	make_directory("/project/again/sub");
	old_file(workdir_fd, "again/old", "old");
	old_file(workdir_fd, "again/both", "old");
	old_file(workdir_fd, "again/sub/old", "old");
	scene_begin();
	new_directory("again", 0755);
	set_mark("again", "user.overlay.opaque", "y");
	new_file("again/f", "f");
	new_file("again/both", "new");
	new_directory("again/sub", 0755);
	new_file("again/sub/f", "f");
	new_directory("again/other", 0755);
	set_mark("again/other", "user.overlay.opaque", "y");
	new_file("again/other/f", "f");
}

static void frozen_layers(void)
{
	make_directory("/project/d");
	old_file(workdir_fd, "d/f", "old");
	old_file(workdir_fd, "g", "old");
	scene_begin();
	new_directory("d", 0755);
	new_file("d/f", "new");
	new_file("h", "new");
	CHECK_INT(workspace_checkpoint(&home, &workspace, NULL, fresh()), 0);
	whiteout("g");
	whiteout("h");
	new_directory("e", 0755);
	set_mark("e", "user.overlay.opaque", "y");
	new_file("e/f", "f");
}

/* Root's overlay: renamed directories lead to what the workdir has elsewhere. */
static void renamed_directories(void)
{
	make_directory("/project/old/sub/inner");
	make_directory("/project/inner");
	make_directory("/project/left");
	make_directory("/project/right");
	old_file(workdir_fd, "old/f", "f");
	old_file(workdir_fd, "old/g", "g");
	old_file(workdir_fd, "old/gone", "gone");
	old_file(workdir_fd, "old/sub/h", "h");
	old_file(workdir_fd, "old/sub/inner/i", "i");
	old_file(workdir_fd, "inner/wrong", "wrong");
	old_file(workdir_fd, "left/f", "left");
	old_file(workdir_fd, "right/f", "right");
	scene_begin();
	workspace.meta.has_user_xattrs = false;
	new_directory("new", 0755);
	set_mark("new", "trusted.overlay.redirect", "old");
	new_file("new/g", "changed");
	whiteout("new/gone");
	new_directory("new/sub", 0755);
	/* Renamed in its directory: its mark is relative to where that is. */
	new_directory("new/sub/moved", 0755);
	set_mark("new/sub/moved", "trusted.overlay.redirect", "inner");
	CHECK(mknodat(workspace.upper_fd, "new/sub/inner", S_IFCHR, 0) == 0);
	whiteout("old");
	new_directory("left", 0755);
	set_mark("left", "trusted.overlay.redirect", "right");
	new_directory("right", 0755);
	set_mark("right", "trusted.overlay.redirect", "left");
}

/* A whole copy in place of a layer. */
static void whole_copy(void)
{
	make_directory("/project/d");
	old_file(workdir_fd, "d/f", "old");
	old_file(workdir_fd, "gone", "old");
	old_file(workdir_fd, "before", "renamed");
	scene_begin_as(WORKSPACE_COPY);
	new_directory("d", 0755);
	old_file(workspace.upper_fd, "d/f", "old");
	old_file(workspace.upper_fd, "gone", "old");
	old_file(workspace.upper_fd, "before", "renamed");
	workspace.meta.copied_ns = workspace.meta.stamp_ns;
	{
		struct stat status;

		/* Everything until now belongs to the copy; a moment later the command begins. */
		CHECK(fstatat(workspace.upper_fd, "before", &status, 0) == 0);
		workspace.meta.copied_ns = workspace_view_changed_ns(&status) + 1;
	}
	usleep(12000);
	new_file("d/f", "new");
	CHECK(unlinkat(workspace.upper_fd, "gone", 0) == 0);
	CHECK(renameat(workspace.upper_fd, "before", workspace.upper_fd, "after") == 0);
	new_directory("made", 0755);
	new_file("made/f", "f");
}

/* Everything, more often than the usual tests have time for. */
static bool is_soak(void)
{
	return getenv("BELLJAR_TEST_SOAK") != NULL;
}

/* Killed before the @nth change, and the next one before its @mth: true if there was an @mth. */
static bool kill_twice(void (*scene)(void), unsigned nth, unsigned mth, const char *expected)
{
	AUTO_FREE char *found = NULL;
	bool is_killed;

	scene_reset();
	scene();
	CHECK(apply_killed_at(nth));
	is_killed = apply_killed_at(mth);
	CHECK_INT(apply(), 0);
	found = workdir_text();
	CHECK_STRING(found, expected);
	CHECK_STRING(changes(), "");
	if (test_failed_checks)
		printf("killed before change %u, then before change %u\n", nth, mth);
	return is_killed;
}

static void walk_kills(void (*scene)(void), unsigned stride)
{
	AUTO_FREE char *expected = NULL;
	unsigned nth = 0;
	bool is_killed = true;

	scene_reset();
	scene();
	CHECK_INT(apply(), 0);
	CHECK_STRING(notes, "");
	CHECK_STRING(changes(), "");
	expected = workdir_text();
	for (; is_killed && !test_failed_checks; nth += stride) {
		AUTO_FREE char *found = NULL;

		scene_reset();
		scene();
		is_killed = apply_killed_at(nth);
		CHECK_INT(apply(), 0);
		CHECK_STRING(notes, "");
		found = workdir_text();
		CHECK_STRING(found, expected);
		CHECK_STRING(changes(), "");
		if (test_failed_checks)
			printf("killed before change %u\n", nth);
		for (unsigned mth = nth % 3; is_soak() && is_killed && !test_failed_checks; mth += 3)
			if (!kill_twice(scene, nth, mth, expected))
				break;
	}
	CHECK(nth > 10);
}

/* Files are moved out of the layer, or copied. */
static void walk_moved_and_copied(void (*scene)(void))
{
	walk_kills(scene, 1);
	is_copying = true;
	walk_kills(scene, is_soak() ? 1 : 4);
	is_copying = false;
}

static void test_every_kind_of_change_survives_every_kill(void)
{
	walk_moved_and_copied(every_change);
}

static void test_links_and_renames_survive_every_kill(void)
{
	walk_moved_and_copied(links_and_renames);
}

static void test_a_replaced_directory_survives_every_kill(void)
{
	walk_kills(replaced_directory, 1);
}

static void test_frozen_layers_survive_every_kill(void)
{
	walk_kills(frozen_layers, 1);
}

static void test_renamed_directories_survive_every_kill(void)
{
	if (geteuid() == 0)
		walk_moved_and_copied(renamed_directories);
}

static void test_a_copy_survives_every_kill(void)
{
	walk_kills(whole_copy, 1);
}

/* The layer must still say that the workdir had the file: what the host removes meanwhile does not come back. */
static void test_what_the_host_removes_after_the_kill_does_not_come_back(void)
{
	bool is_killed = true;

	for (unsigned nth = 0; is_killed; nth++) {
		scene_reset();
		old_file(workdir_fd, "f", "old");
		old_file(workdir_fd, "g", "old");
		scene_begin();
		new_file("f", "new");
		set_mark("f", "user.overlay.origin", "");
		new_file("g", "new");
		set_mark("g", "user.overlay.origin", "");
		is_killed = apply_killed_at(nth);
		CHECK(unlinkat(workdir_fd, "f", 0) == 0);
		CHECK_INT(apply(), 0);
		CHECK_STRING(content("f"), "(none)");
		CHECK_STRING(content("g"), "new");
	}
}

/* A file system on which making a file is cheap, if it keeps attributes: every kill needs a scene of its own. */
static const char *choose_place(void)
{
	char path[] = "/dev/shm/belljar-unit-XXXXXX";
	int fd = mkstemp(path);
	bool is_good = fd >= 0 && fsetxattr(fd, "user.kept", "x", 1, 0) == 0;

	if (fd >= 0)
		unlink(path);
	close(fd);
	return is_good ? "/dev/shm" : "/tmp";
}

static const struct test tests[] = {
	TEST(test_what_the_host_removes_after_the_kill_does_not_come_back),
	TEST(test_every_kind_of_change_survives_every_kill),
	TEST(test_links_and_renames_survive_every_kill),
	TEST(test_a_replaced_directory_survives_every_kill),
	TEST(test_frozen_layers_survive_every_kill),
	TEST(test_renamed_directories_survive_every_kill),
	TEST(test_a_copy_survives_every_kill),
};

int main(void)
{
	return scratch_main_in(choose_place(), tests, ARRAY_LEN(tests), scene_prepare);
}
