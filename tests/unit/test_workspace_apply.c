/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_workspace_apply.c - a workspace's changes in the workdir: what arrives, what is kept out, what is not lost
 */
#include "workspace_applying.h"

#include <signal.h>
#include <sys/wait.h>

#include "workspace/workspace_applied.h"
#include "workspace/workspace_journal.h"

static void fill_and_change(void)
{
	scene_reset();
	make_directory("/project/d/sub");
	put(workdir_fd, "modified", "old");
	put(workdir_fd, "gone", "old");
	put(workdir_fd, "d/gone", "old");
	put(workdir_fd, "d/sub/gone", "old");
	put(workdir_fd, "mode", "x");
	put(workdir_fd, "to_directory", "x");
	make_directory("/project/to_file/inner");
	put(workdir_fd, "to_file/inner/f", "x");
	scene_begin();
	put(workspace.upper_fd, "modified", "new");
	set_mark("modified", "user.overlay.origin", "");
	set_mark("modified", "user.kept", "yes");
	whiteout("gone");
	whiteout("d");
	put(workspace.upper_fd, "mode", "x");
	CHECK(fchmodat(workspace.upper_fd, "mode", 0600, 0) == 0);
	CHECK(mkdirat(workspace.upper_fd, "to_directory", 0755) == 0);
	put(workspace.upper_fd, "to_directory/f", "deep");
	put(workspace.upper_fd, "to_file", "file");
	CHECK(mkdirat(workspace.upper_fd, "new", 0755) == 0);
	CHECK(mkdirat(workspace.upper_fd, "new/closed", 0755) == 0);
	put(workspace.upper_fd, "new/closed/f", "in");
	CHECK(fchmodat(workspace.upper_fd, "new/closed", 0555, 0) == 0);
	CHECK(symlinkat("../modified", workspace.upper_fd, "new/link") == 0);
	put(workspace.upper_fd, "new/one", "shared");
	CHECK(linkat(workspace.upper_fd, "new/one", workspace.upper_fd, "new/two", 0) == 0);
}

static void check_changed(void)
{
	struct stat one, two;
	char value[16];
	char link[64] = "";

	CHECK_STRING(content("modified"), "new");
	CHECK_STRING(content("gone"), "(none)");
	CHECK(faccessat(workdir_fd, "d", F_OK, AT_SYMLINK_NOFOLLOW) < 0);
	CHECK_STRING(content("to_directory/f"), "deep");
	CHECK_STRING(content("to_file"), "file");
	CHECK_STRING(content("new/closed/f"), "in");
	CHECK(fstatat(workdir_fd, "new/closed", &one, 0) == 0 && (one.st_mode & 07777) == 0555);
	CHECK(fstatat(workdir_fd, "mode", &one, 0) == 0 && (one.st_mode & 07777) == 0600);
	CHECK(fstatat(workdir_fd, "new/one", &one, 0) == 0 && fstatat(workdir_fd, "new/two", &two, 0) == 0);
	CHECK_INT(one.st_ino, two.st_ino);
	CHECK_STRING(content("new/two"), "shared");
	CHECK(readlinkat(workdir_fd, "new/link", link, sizeof(link)) == 11);
	CHECK_STRING(link, "../modified");
	CHECK(getxattr(at("/project/modified"), "user.kept", value, sizeof(value)) == 3);
	CHECK(getxattr(at("/project/modified"), "user.overlay.origin", value, sizeof(value)) < 0);
	CHECK_INT(count_names("."), 5);
	CHECK_STRING(changes(), "");
	CHECK(fchmodat(workdir_fd, "new/closed", 0755, 0) == 0);
	CHECK(fchmodat(workspace.upper_fd, "new/closed", 0755, 0) == 0);
}

static void test_everything_arrives_moved_or_copied(void)
{
	for (int i = 0; i < 2; i++) {
		is_copying = i;
		fill_and_change();
		CHECK_INT(apply(), 0);
		CHECK_STRING(notes, "");
		CHECK_INT(outcome.applied, 18);
		check_changed();
	}
	is_copying = false;
}

static void test_a_named_path_takes_only_itself(void)
{
	fill_and_change();
	CHECK_INT(string_list_add(&paths, "new/closed/f"), 0);
	CHECK_INT(string_list_add(&paths, "gone"), 0);
	CHECK_INT(apply(), 0);
	CHECK_STRING(content("new/closed/f"), "in");
	CHECK_STRING(content("new/one"), "(none)");
	CHECK_STRING(content("gone"), "(none)");
	CHECK_STRING(content("modified"), "old");
	CHECK_STRING(content("d/sub/gone"), "old");
	CHECK_INT(outcome.applied, 4);
	/* ... and the rest is still there to be applied. */
	CHECK_INT(apply(), 0);
	check_changed();
}

static void test_a_dry_run_changes_nothing(void)
{
	fill_and_change();
	is_dry_run = true;
	CHECK_INT(apply(), 0);
	is_dry_run = false;
	CHECK_INT(outcome.applied, 18);
	CHECK_STRING(content("modified"), "old");
	CHECK_STRING(content("d/sub/gone"), "old");
	CHECK_STRING(content("new/one"), "(none)");
}

static void test_a_conflict_writes_nothing_of_that_file(void)
{
	fill_and_change();
	put(workdir_fd, "modified", "host's");
	put(workdir_fd, "d/sub/gone", "host's");
	put(workdir_fd, "to_file/inner/f", "host's");
	CHECK_INT(apply(), 0);
	CHECK_STRING(notes, "D d !\nD d/sub !\nD d/sub/gone !\nM modified !\nT to_file !\nD to_file/inner !\n"
			    "D to_file/inner/f !\n");
	CHECK_STRING(content("modified"), "host's");
	CHECK_STRING(content("d/sub/gone"), "host's");
	CHECK_STRING(content("to_file/inner/f"), "host's");
	CHECK_STRING(content("d/gone"), "(none)");
	CHECK_STRING(content("new/two"), "shared");
	CHECK_INT(outcome.conflicts, 7);
	CHECK_INT(string_list_add(&theirs, "modified"), 0);
	CHECK_INT(string_list_add(&ours, "d"), 0);
	CHECK_INT(apply(), 0);
	CHECK_STRING(content("modified"), "new");
	CHECK_STRING(content("d/sub/gone"), "host's");
	CHECK_INT(outcome.conflicts, 3);
	CHECK(fchmodat(workdir_fd, "new/closed", 0755, 0) == 0);
}

static void test_its_own_work_is_no_conflict_later(void)
{
	scene_reset();
	put(workdir_fd, "f", "0");
	put(workdir_fd, "g", "0");
	scene_begin();
	is_copying = true;
	put(workspace.upper_fd, "f", "1");
	put(workspace.upper_fd, "g", "1");
	CHECK_INT(string_list_add(&paths, "f"), 0);
	CHECK_INT(apply(), 0);
	put(workspace.upper_fd, "f", "2");
	CHECK_INT(apply(), 0);
	CHECK_STRING(notes, "");
	CHECK_STRING(content("f"), "2");
	put(workspace.upper_fd, "f", "3");
	put(workdir_fd, "f", "host's");
	CHECK_INT(apply(), 0);
	CHECK_STRING(notes, "M f !\n");
	is_copying = false;
}

/* Saved by the host after its turn, and before the apply had ended. */
static void test_what_the_host_saved_meanwhile_is_not_taken_for_its_own_work(void)
{
	struct workspace_view view = {0};
	struct change_list list = {0};

	scene_reset();
	put(workdir_fd, "f", "0");
	scene_begin();
	put(workspace.upper_fd, "f", "1");
	put(workdir_fd, "f", "host's");
	CHECK_INT(workspace_view_open(&home, &workspace, &view, fresh()), 0);
	CHECK_INT(workspace_changes(&view, &list, fresh()), 0);
	for (size_t i = 0; i < list.count; i++)
		list.items[i].flags |= CHANGE_IS_DONE;
	workspace_applied_note(&view, &workspace, &list);
	workspace_change_list_done(&list);
	workspace_view_done(&view);
	CHECK_STRING(changes(), "M f !\n");
}

static void test_what_other_programs_obey_is_refused(void)
{
	scene_reset();
	make_directory("/project/.git/hooks");
	make_directory("/project/.github/workflows");
	put(workdir_fd, ".git/config", "c");
	put(workdir_fd, ".github/workflows/w", "w");
	scene_begin();
	CHECK(mkdirat(workspace.upper_fd, ".git", 0755) == 0);
	CHECK(mkdirat(workspace.upper_fd, ".git/hooks", 0755) == 0);
	put(workspace.upper_fd, ".git/hooks/pre-commit", "evil");
	put(workspace.upper_fd, ".git/index", "fine");
	put(workspace.upper_fd, ".envrc", "evil");
	put(workspace.upper_fd, ".ENVRC.local", "evil");
	whiteout(".github");
	CHECK(mkdirat(workspace.upper_fd, "sub", 0755) == 0);
	put(workspace.upper_fd, "sub/.git", "gitdir: /elsewhere");
	CHECK(mkdirat(workspace.upper_fd, "innocent", 0755) == 0);
	CHECK(mkdirat(workspace.upper_fd, "innocent/objects", 0755) == 0);
	put(workspace.upper_fd, "innocent/objects/1", "x");
	put(workspace.upper_fd, "innocent/HEAD", "ref");
	put(workspace.upper_fd, "innocent/config", "evil");
	CHECK(symlinkat("sub", workspace.upper_fd, ".vscode") == 0);
	CHECK(symlinkat("sub", workspace.upper_fd, ".claude") == 0);
	CHECK_INT(apply(), 0);
	CHECK_STRING(
		notes,
		"A .ENVRC.local refused\nA .claude refused\nA .envrc refused\nA .git/hooks/pre-commit refused\n"
		"D .github ! refused\nD .github/workflows ! refused\nD .github/workflows/w refused\n"
		"A .vscode refused\nA innocent/HEAD refused\nA innocent/config refused\nA innocent/objects refused\n"
		"A innocent/objects/1 refused\nA sub/.git refused\n");
	CHECK_STRING(content(".git/index"), "fine");
	CHECK_STRING(content(".git/hooks/pre-commit"), "(none)");
	CHECK_STRING(content(".github/workflows/w"), "w");
	CHECK_INT(string_list_add(&allowed, ".git/hooks"), 0);
	CHECK_INT(apply(), 0);
	CHECK_STRING(content(".git/hooks/pre-commit"), "evil");
	CHECK_STRING(content(".envrc"), "(none)");
}

static void test_git_renamed_or_replaced_is_refused_as_a_whole(void)
{
	scene_reset();
	make_directory("/project/.git/objects");
	put(workdir_fd, ".git/HEAD", "ref");
	scene_begin();
	whiteout(".git");
	CHECK_INT(apply(), 0);
	CHECK_STRING(content(".git/HEAD"), "ref");
	CHECK_INT(outcome.applied, 0);
	scene_reset();
	scene_begin();
	CHECK(mkdirat(workspace.upper_fd, ".git", 0755) == 0);
	put(workspace.upper_fd, ".git/HEAD", "ref");
	put(workspace.upper_fd, ".git/anything", "x");
	CHECK_INT(apply(), 0);
	CHECK_STRING(notes, "A .git refused\nA .git/HEAD refused\nA .git/anything refused\n");
	CHECK(faccessat(workdir_fd, ".git", F_OK, AT_SYMLINK_NOFOLLOW) < 0);
}

/* What git obeys comes first, in a directory that is no repository, and what makes it one comes later, in any order. */
static void test_a_repository_in_two_steps_is_refused(void)
{
	static const char *const orders[][2] = {{"z/HEAD", "z/objects"}, {"z/objects", "z/HEAD"}};

	for (size_t i = 0; i < ARRAY_LEN(orders); i++) {
		scene_reset();
		make_directory("/project/z");
		put(workdir_fd, "z/config", "[core]\n\tfsmonitor = ./evil\n");
		make_directory("/project/z/refs");
		scene_begin();
		CHECK(mkdirat(workspace.upper_fd, "z", 0755) == 0);
		put(workspace.upper_fd, orders[i][0], "");
		CHECK_INT(apply(), 0);
		CHECK_STRING(notes, "");
		scene_reset();
		make_directory("/project/z");
		put(workdir_fd, "z/config", "[core]\n\tfsmonitor = ./evil\n");
		put(workdir_fd, orders[i][0], "");
		scene_begin();
		CHECK(mkdirat(workspace.upper_fd, "z", 0755) == 0);
		put(workspace.upper_fd, "z/else", "x");
		CHECK(mkdirat(workspace.upper_fd, orders[i][1], 0755) == 0);
		CHECK_INT(apply(), 0);
		CHECK_STRING(notes, i ? "A z/HEAD refused\n" : "A z/objects refused\n");
		CHECK_STRING(content("z/else"), "x");
	}
	/* What is new in a repository that was there before is not. */
	scene_reset();
	make_directory("/project/z/objects");
	put(workdir_fd, "z/config", "");
	put(workdir_fd, "z/HEAD", "ref");
	scene_begin();
	CHECK(mkdirat(workspace.upper_fd, "z", 0755) == 0);
	CHECK(mkdirat(workspace.upper_fd, "z/objects", 0755) == 0);
	put(workspace.upper_fd, "z/objects/1", "x");
	put(workspace.upper_fd, "z/HEAD", "refs/heads/other");
	CHECK_INT(apply(), 0);
	CHECK_STRING(notes, "");
}

static void test_set_id_bits_and_special_files_stay_out(void)
{
	scene_reset();
	put(workdir_fd, "plain", "x");
	scene_begin();
	put(workspace.upper_fd, "suid", "x");
	CHECK(fchmodat(workspace.upper_fd, "suid", 04755, 0) == 0);
	put(workspace.upper_fd, "plain", "x");
	CHECK(fchmodat(workspace.upper_fd, "plain", 02755, 0) == 0);
	CHECK(mknodat(workspace.upper_fd, "pipe", S_IFIFO | 0644, 0) == 0);
	CHECK(mknodat(workspace.upper_fd, "socket", S_IFSOCK | 0644, 0) == 0);
	CHECK(symlinkat("/etc/passwd", workspace.upper_fd, "out") == 0);
	CHECK(symlinkat("../x", workspace.upper_fd, "up") == 0);
	CHECK(symlinkat("plain", workspace.upper_fd, "fine") == 0);
	CHECK_INT(apply(), 0);
	CHECK_STRING(
		notes,
		"A out refused\nA pipe refused\nm plain refused\nA socket refused\nA suid refused\nA up refused\n");
	CHECK_INT(count_names("."), 2);
	CHECK_INT(string_list_add(&allowed, "suid"), 0);
	CHECK_INT(string_list_add(&allowed, "pipe"), 0);
	CHECK_INT(apply(), 0);
	CHECK_INT(count_names("."), 4);
}

static void test_links_that_lead_out_are_known(void)
{
	CHECK(workspace_link_leads_out("/p", "l", "/etc"));
	CHECK(workspace_link_leads_out("/p", "l", ".."));
	CHECK(workspace_link_leads_out("/p", "l", "a/.."));
	CHECK(workspace_link_leads_out("/p", "a/l", "../.."));
	CHECK(workspace_link_leads_out("/p", "a/b/l", "../c/../../../x"));
	CHECK(workspace_link_leads_out("/p", "l", "/pp/x"));
	CHECK(workspace_link_leads_out("/p", "l", "/p/../x"));
	CHECK(workspace_link_leads_out("/p", "l", "./../x"));
	CHECK(workspace_link_leads_out("/p", "l", ".//.."));
	CHECK(!workspace_link_leads_out("/p", "l", "/p/x"));
	CHECK(!workspace_link_leads_out("/p", "l", "a"));
	CHECK(!workspace_link_leads_out("/p", "l", "..a/..b"));
	CHECK(!workspace_link_leads_out("/p", "a/l", "../b"));
	CHECK(!workspace_link_leads_out("/p", "l", "."));
}

static void test_links_in_the_way_are_not_followed(void)
{
	scene_reset();
	make_directory("/outside");
	make_directory("/project/d");
	put(workdir_fd, "d/f", "x");
	scene_begin();
	CHECK(mkdirat(workspace.upper_fd, "d", 0755) == 0);
	put(workspace.upper_fd, "d/f", "new");
	put(workspace.upper_fd, "d/g", "new");
	/* The host's tree has a link now, where the directory was. */
	CHECK(renameat(workdir_fd, "d", workdir_fd, "e") == 0);
	CHECK(symlinkat(at("/outside"), workdir_fd, "d") == 0);
	CHECK_INT(apply(), 0);
	CHECK(access(at("/outside/f"), F_OK) < 0 && access(at("/outside/g"), F_OK) < 0);
}

static void test_sparse_files_stay_sparse(void)
{
	struct stat status;
	int fd;

	for (int i = 0; i < 2; i++) {
		is_copying = i;
		scene_reset();
		scene_begin();
		fd = openat(workspace.upper_fd, "huge", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
		CHECK(ftruncate(fd, (off_t)1 << 40) == 0);
		CHECK(pwrite(fd, "x", 1, (off_t)1 << 39) == 1);
		close(fd);
		CHECK_INT(apply(), 0);
		CHECK(fstatat(workdir_fd, "huge", &status, 0) == 0);
		CHECK_INT(status.st_size, (off_t)1 << 40);
		CHECK(status.st_blocks < 1024);
	}
	is_copying = false;
}

static void test_many_levels_arrive(void)
{
	int fd, next;

	scene_reset();
	scene_begin();
	fd = dup(workspace.upper_fd);
	for (int i = 0; i < 1000; i++) {
		CHECK(mkdirat(fd, "a-name", 0755) == 0);
		next = openat(fd, "a-name", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = next;
	}
	put(fd, "deep\n\xff", "x");
	close(fd);
	CHECK_INT(apply(), 0);
	CHECK_INT(outcome.applied, 1001);
	CHECK_STRING(changes(), "");
}

/* A host process that saves files of its own, in place or by a rename, while others are applied over them: it never loses. */
static void test_a_host_that_saves_meanwhile_never_loses(void)
{
	enum { FILES = 24, ROUNDS = 12 };
	size_t won = 0, applied = 0;

	for (int round = 0; round < ROUNDS; round++) {
		bool wrote[FILES] = {0};
		int result[2];
		pid_t writer;

		scene_reset();
		for (int i = 0; i < FILES; i++) {
			char name[16];

			snprintf(name, sizeof(name), "f%d", i);
			put(workdir_fd, name, "old");
		}
		scene_begin();
		for (int i = 0; i < FILES; i++) {
			char name[16];

			snprintf(name, sizeof(name), "f%d", i);
			put(workspace.upper_fd, name, "theirs");
		}
		CHECK(pipe(result) == 0);
		writer = fork();
		if (writer == 0) {
			usleep((useconds_t)(round * 37));
			for (int i = 0; i < FILES; i += 1 + round % 3) {
				char name[16];

				snprintf(name, sizeof(name), "f%d", i);
				if (i % 2) {
					put(workdir_fd, ".saving", "host's");
					renameat(workdir_fd, ".saving", workdir_fd, name);
				} else {
					int fd = openat(workdir_fd, name, O_WRONLY | O_CLOEXEC);

					usleep(50);
					if (fd < 0 || write(fd, "host's", 6) != 6)
						_exit(1);
					close(fd);
				}
				wrote[i] = true;
			}
			if (write(result[1], wrote, sizeof(wrote)) != sizeof(wrote))
				_exit(1);
			_exit(0);
		}
		is_copying = round % 2;
		CHECK_INT(apply(), 0);
		CHECK(read(result[0], wrote, sizeof(wrote)) == sizeof(wrote));
		waitpid(writer, NULL, 0);
		close(result[0]);
		close(result[1]);
		applied += outcome.applied;
		for (int i = 0; i < FILES; i++) {
			char name[16];

			snprintf(name, sizeof(name), "f%d", i);
			if (wrote[i]) {
				CHECK_STRING(content(name), "host's");
				won++;
			}
		}
		CHECK_INT(outcome.saved.count, 0);
		CHECK_INT(count_names("."), FILES);
	}
	is_copying = false;
	CHECK(won > 0 && applied > 0);
}

static void test_a_record_is_read_as_it_was_written_and_nothing_else_is(void)
{
	struct journal_record record = {.kind = JOURNAL_EXCHANGE,
					.is_moved = true,
					.new_inode = 7,
					.old = {.mode = S_IFREG, .inode = 8, .size = 9, .mtime_ns = 10},
					.temporary = ".belljar-apply-x",
					.path = (char[]){"a/b"},
					.upper_path = (char[]){"c/d"}};
	struct journal_record read_back = {0};
	char bytes[4096];
	ssize_t len;
	int fd = open(at("/journal"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	CHECK_INT(workspace_journal_read(fd, &read_back), -ENODATA);
	CHECK_INT(workspace_journal_write(fd, &record), 0);
	CHECK_INT(workspace_journal_read(fd, &read_back), 0);
	CHECK_STRING(read_back.path, "a/b");
	CHECK_STRING(read_back.upper_path, "c/d");
	CHECK_STRING(read_back.temporary, ".belljar-apply-x");
	CHECK_INT(read_back.old.size, 9);
	workspace_journal_record_done(&read_back);
	len = pread(fd, bytes, sizeof(bytes), 0);
	for (ssize_t i = 0; i < len; i++) {
		bytes[i] ^= 1;
		CHECK_INT(workspace_journal_parse(bytes, (size_t)len, &read_back), -ENODATA);
		bytes[i] ^= 1;
		CHECK_INT(workspace_journal_parse(bytes, (size_t)i, &read_back), -ENODATA);
	}
	record.path = (char[]){"../b"};
	CHECK_INT(workspace_journal_write(fd, &record), 0);
	CHECK_INT(workspace_journal_read(fd, &read_back), -EBADMSG);
	close(fd);
}

static void test_after_a_reset_the_workspace_begins_anew(void)
{
	scene_reset();
	put(workdir_fd, "f", "0");
	scene_begin();
	put(workspace.upper_fd, "f", "1");
	CHECK_INT(workspace_checkpoint(&home, &workspace, NULL, fresh()), 0);
	put(workspace.upper_fd, "g", "1");
	CHECK_INT(apply(), 0);
	CHECK_STRING(content("f"), "1");
	CHECK_INT(workspace_reset(&home, &workspace, fresh()), 0);
	CHECK_INT(workspace.meta.layers.count, 0);
	put(workspace.upper_fd, "f", "2");
	CHECK_STRING(changes(), "M f\n");
	CHECK_INT(apply(), 0);
	CHECK_STRING(content("f"), "2");
}

static void test_what_was_applied_from_a_new_directory_is_not_taken_for_removed(void)
{
	scene_reset();
	make_directory("/project/again");
	put(workdir_fd, "again/old", "old");
	scene_begin();
	CHECK(mkdirat(workspace.upper_fd, "new", 0755) == 0);
	set_mark("new", "user.overlay.opaque", "y");
	put(workspace.upper_fd, "new/f", "f");
	put(workspace.upper_fd, "new/g", "g");
	CHECK(mkdirat(workspace.upper_fd, "again", 0755) == 0);
	set_mark("again", "user.overlay.opaque", "y");
	put(workspace.upper_fd, "again/f", "f");
	CHECK(mkdirat(workspace.upper_fd, "again/sub", 0755) == 0);
	put(workspace.upper_fd, "again/sub/f", "f");
	put(workspace.upper_fd, ".envrc", "refused");
	CHECK_INT(string_list_add(&paths, "new/f"), 0);
	CHECK_INT(string_list_add(&paths, "again/f"), 0);
	CHECK_INT(string_list_add(&paths, "again/sub"), 0);
	CHECK_INT(apply(), 0);
	CHECK_STRING(changes(), "A .envrc\nD again/old\nA new/g\n");
	CHECK_INT(apply(), 0);
	CHECK_STRING(changes(), "A .envrc\n");
	CHECK_STRING(content("new/f"), "f");
	CHECK_STRING(content("again/sub/f"), "f");
	CHECK_STRING(content("again/old"), "(none)");
}

static void test_a_part_of_a_renamed_directory_leaves_the_rest_to_be_had(void)
{
	if (geteuid() != 0)
		return;
	scene_reset();
	make_directory("/project/old/sub");
	put(workdir_fd, "old/f", "f");
	put(workdir_fd, "old/g", "g");
	put(workdir_fd, "old/sub/h", "h");
	scene_begin();
	workspace.meta.has_user_xattrs = false;
	CHECK(mkdirat(workspace.upper_fd, "new", 0755) == 0);
	set_mark("new", "trusted.overlay.redirect", "old");
	put(workspace.upper_fd, "new/g", "changed");
	whiteout("old");
	put(workspace.upper_fd, ".envrc", "refused");
	CHECK_INT(string_list_add(&paths, "new/f"), 0);
	CHECK_INT(string_list_add(&paths, "old"), 0);
	CHECK_INT(apply(), 0);
	CHECK_INT(outcome.applied, 7);
	CHECK_STRING(changes(), "A .envrc\nA new/g\nA new/sub\nA new/sub/h\n");
	CHECK_INT(apply(), 0);
	CHECK_STRING(content("new/f"), "f");
	CHECK_STRING(content("new/g"), "changed");
	CHECK_STRING(content("new/sub/h"), "h");
	CHECK(faccessat(workdir_fd, "old", F_OK, AT_SYMLINK_NOFOLLOW) < 0);
	CHECK_STRING(changes(), "A .envrc\n");
}

static const struct test tests[] = {
	TEST(test_what_was_applied_from_a_new_directory_is_not_taken_for_removed),
	TEST(test_a_part_of_a_renamed_directory_leaves_the_rest_to_be_had),
	TEST(test_everything_arrives_moved_or_copied),
	TEST(test_a_named_path_takes_only_itself),
	TEST(test_a_dry_run_changes_nothing),
	TEST(test_a_conflict_writes_nothing_of_that_file),
	TEST(test_its_own_work_is_no_conflict_later),
	TEST(test_what_the_host_saved_meanwhile_is_not_taken_for_its_own_work),
	TEST(test_what_other_programs_obey_is_refused),
	TEST(test_git_renamed_or_replaced_is_refused_as_a_whole),
	TEST(test_a_repository_in_two_steps_is_refused),
	TEST(test_set_id_bits_and_special_files_stay_out),
	TEST(test_links_that_lead_out_are_known),
	TEST(test_links_in_the_way_are_not_followed),
	TEST(test_sparse_files_stay_sparse),
	TEST(test_many_levels_arrive),
	TEST(test_a_host_that_saves_meanwhile_never_loses),
	TEST(test_a_record_is_read_as_it_was_written_and_nothing_else_is),
	TEST(test_after_a_reset_the_workspace_begins_anew),
};

int main(void)
{
	return scratch_main(tests, ARRAY_LEN(tests), scene_prepare);
}
