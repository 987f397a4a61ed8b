/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_workspace_changes.c - what a layer changes, written as overlay writes it, and as a forger might
 */
#include "workspace_scene.h"

static void test_added_modified_deleted_mode_and_type(void)
{
	scene_reset();
	put(workdir_fd, "same", "same");
	put(workdir_fd, "modified", "old");
	put(workdir_fd, "mode", "x");
	put(workdir_fd, "gone", "x");
	put(workdir_fd, "type", "x");
	make_directory("/project/became_file/inner");
	put(workdir_fd, "became_file/inner/f", "x");
	CHECK(symlinkat("a", workdir_fd, "link") == 0);
	scene_begin();
	put(workspace.upper_fd, "same", "same");
	put(workspace.upper_fd, "modified", "new");
	put(workspace.upper_fd, "added", "new");
	put(workspace.upper_fd, "mode", "x");
	CHECK(fchmodat(workspace.upper_fd, "mode", 0755, 0) == 0);
	whiteout("gone");
	whiteout("never_was");
	CHECK(mkdirat(workspace.upper_fd, "type", 0755) == 0);
	put(workspace.upper_fd, "type/f", "new");
	put(workspace.upper_fd, "became_file", "x");
	CHECK(symlinkat("b", workspace.upper_fd, "link") == 0);
	CHECK_STRING(changes(), "A added\nT became_file\nD became_file/inner\nD became_file/inner/f\nD gone\nM link\n"
				"m mode\nM modified\nT type\nA type/f\n");
}

static void test_a_whiteout_can_be_an_attribute_too(void)
{
	scene_reset();
	put(workdir_fd, "gone", "x");
	put(workdir_fd, "emptied", "x");
	scene_begin();
	put(workspace.upper_fd, "gone", "");
	set_mark("gone", "user.overlay.whiteout", "y");
	put(workspace.upper_fd, "emptied", "");
	CHECK_STRING(changes(), "M emptied\nD gone\n");
}

static void test_an_opaque_directory_hides_what_was_in_it(void)
{
	scene_reset();
	make_directory("/project/d/sub");
	put(workdir_fd, "d/old", "x");
	put(workdir_fd, "d/kept", "x");
	put(workdir_fd, "d/sub/f", "x");
	scene_begin();
	CHECK(mkdirat(workspace.upper_fd, "d", 0755) == 0);
	set_mark("d", "user.overlay.opaque", "y");
	put(workspace.upper_fd, "d/kept", "x");
	put(workspace.upper_fd, "d/new", "new");
	CHECK_STRING(changes(), "A d/new\nD d/old\nD d/sub\nD d/sub/f\n");
}

static void test_only_what_the_layer_has_is_looked_at(void)
{
	scene_reset();
	make_directory("/project/d");
	put(workdir_fd, "d/other", "x");
	put(workdir_fd, "other", "x");
	scene_begin();
	CHECK(mkdirat(workspace.upper_fd, "d", 0755) == 0);
	CHECK_STRING(changes(), "");
}

static void test_attributes_of_other_mounts_mean_nothing(void)
{
	scene_reset();
	make_directory("/project/d");
	put(workdir_fd, "d/f", "x");
	scene_begin();
	workspace.meta.has_user_xattrs = false;
	CHECK(mkdirat(workspace.upper_fd, "d", 0755) == 0);
	set_mark("d", "user.overlay.opaque", "y");
	CHECK_STRING(changes(), "");
}

static void test_what_the_host_touched_since_is_a_conflict(void)
{
	scene_reset();
	put(workdir_fd, "both", "old");
	put(workdir_fd, "alike", "old");
	put(workdir_fd, "removed", "old");
	scene_begin();
	put(workspace.upper_fd, "both", "theirs");
	put(workspace.upper_fd, "alike", "same");
	whiteout("removed");
	put(workdir_fd, "both", "ours");
	put(workdir_fd, "alike", "same");
	put(workdir_fd, "removed", "ours");
	CHECK_STRING(changes(), "M both !\nD removed !\n");
}

static void test_a_deletion_on_the_host_does_not_come_back_silently(void)
{
	scene_reset();
	put(workdir_fd, "f", "old");
	scene_begin();
	put(workspace.upper_fd, "f", "new");
	set_mark("f", "user.overlay.origin", "");
	put(workspace.upper_fd, "g", "new");
	CHECK(unlinkat(workdir_fd, "f", 0) == 0);
	CHECK_STRING(changes(), "A f !\nA g\n");
}

static void test_a_directory_that_goes_is_looked_at_as_a_whole(void)
{
	scene_reset();
	make_directory("/project/d/sub");
	put(workdir_fd, "d/sub/old", "x");
	scene_begin();
	whiteout("d");
	put(workdir_fd, "d/sub/new", "ours");
	CHECK_STRING(changes(), "D d\nD d/sub\nD d/sub/new !\nD d/sub/old\n");
}

static void test_renames_are_found_by_content(void)
{
	scene_reset();
	put(workdir_fd, "a", "some content");
	put(workdir_fd, "b", "same length!");
	scene_begin();
	whiteout("a");
	whiteout("b");
	put(workspace.upper_fd, "c", "same length!");
	put(workspace.upper_fd, "d", "other things");
	CHECK_STRING(changes(), "D a\nD b\nA c < b\nA d\n");
}

static void test_layers_stand_on_each_other(void)
{
	scene_reset();
	put(workdir_fd, "a", "0");
	put(workdir_fd, "b", "0");
	make_directory("/project/d");
	put(workdir_fd, "d/f", "0");
	scene_begin();
	put(workspace.upper_fd, "a", "1");
	put(workspace.upper_fd, "n", "1");
	CHECK(mkdirat(workspace.upper_fd, "d", 0755) == 0);
	put(workspace.upper_fd, "d/g", "1");
	CHECK_INT(workspace_checkpoint(&home, &workspace, NULL, fresh()), 0);
	put(workspace.upper_fd, "b", "2");
	whiteout("n");
	CHECK_STRING(changes(), "M a\nM b\nA d/g\n");
	CHECK_INT(workspace_checkpoint(&home, &workspace, NULL, fresh()), 0);
	whiteout("d");
	put(workspace.upper_fd, "a", "0");
	CHECK_STRING(changes(), "M b\nD d\nD d/f\n");
}

static void test_links_are_never_followed(void)
{
	scene_reset();
	make_directory("/elsewhere");
	put(AT_FDCWD, at("/elsewhere/f"), "secret");
	make_directory("/project/d");
	put(workdir_fd, "d/f", "x");
	scene_begin();
	CHECK(symlinkat(at("/elsewhere"), workspace.upper_fd, "d") == 0);
	CHECK_STRING(changes(), "T d\nD d/f\n");
	scene_reset();
	CHECK(symlinkat(at("/elsewhere"), workdir_fd, "d") == 0);
	scene_begin();
	CHECK(mkdirat(workspace.upper_fd, "d", 0755) == 0);
	put(workspace.upper_fd, "d/f", "mine");
	CHECK_STRING(changes(), "T d\nA d/f\n");
}

static void test_a_redirect_out_of_the_workdir_is_forged(void)
{
	static const char *const targets[] = {"/../x", "/", "..", ".", "/a//b", "/a/./b", "a/b", "", "/a/"};

	if (geteuid() != 0)
		return;
	for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
		scene_reset();
		make_directory("/project/a/b");
		scene_begin();
		workspace.meta.has_user_xattrs = false;
		CHECK(mkdirat(workspace.upper_fd, "d", 0755) == 0);
		set_mark("d", "trusted.overlay.redirect", targets[i]);
		CHECK(strstr(changes(), "forged") != NULL);
	}
}

static void test_a_renamed_directory_shows_what_it_had(void)
{
	if (geteuid() != 0)
		return;
	scene_reset();
	make_directory("/project/old/sub");
	put(workdir_fd, "old/f", "content of f");
	put(workdir_fd, "old/sub/g", "content g");
	scene_begin();
	workspace.meta.has_user_xattrs = false;
	CHECK(mkdirat(workspace.upper_fd, "new", 0755) == 0);
	set_mark("new", "trusted.overlay.redirect", "/old");
	put(workspace.upper_fd, "new/h", "x");
	whiteout("old");
	CHECK_STRING(changes(), "A new\nA new/f < old/f\nA new/h\nA new/sub\nA new/sub/g < old/sub/g\nD old\nD old/f\n"
				"D old/sub\nD old/sub/g\n");
}

static void test_a_copy_is_compared_by_what_was_touched_in_it(void)
{
	scene_reset();
	make_directory("/project/d");
	put(workdir_fd, "a", "0");
	put(workdir_fd, "b", "0");
	put(workdir_fd, "d/f", "0");
	put(workdir_fd, "d/g", "0");
	scene_begin_as(WORKSPACE_COPY);
	CHECK(mkdirat(workspace.upper_fd, "d", 0755) == 0);
	put(workspace.upper_fd, "a", "0");
	put(workspace.upper_fd, "b", "0");
	put(workspace.upper_fd, "d/f", "0");
	put(workspace.upper_fd, "d/g", "0");
	CHECK(strstr(changes(), "is incomplete") != NULL);
	CHECK_INT(workspace_copy_is_whole(&workspace, fresh()), 0);
	CHECK_STRING(changes(), "");
	put(workspace.upper_fd, "a", "1");
	CHECK(unlinkat(workspace.upper_fd, "d/f", 0) == 0);
	put(workspace.upper_fd, "new", "1");
	/* The host's own work meanwhile is nobody's change. */
	put(workdir_fd, "b", "host");
	put(workdir_fd, "hosts", "host");
	CHECK_STRING(changes(), "M a\nD d/f\nA new\n");
}

static void test_holes_are_not_read(void)
{
	int fd;

	scene_reset();
	fd = openat(workdir_fd, "huge", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	CHECK(ftruncate(fd, (off_t)1 << 40) == 0);
	close(fd);
	scene_begin();
	fd = openat(workspace.upper_fd, "huge", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	CHECK(ftruncate(fd, (off_t)1 << 40) == 0);
	CHECK_STRING(changes(), "");
	CHECK(pwrite(fd, "x", 1, ((off_t)1 << 39)) == 1);
	close(fd);
	CHECK_STRING(changes(), "M huge\n");
}

static void test_a_thousand_levels_and_odd_names(void)
{
	int fd, next;
	const char *found;

	scene_reset();
	scene_begin();
	fd = dup(workspace.upper_fd);
	for (int i = 0; i < 1000; i++) {
		CHECK(mkdirat(fd, "a-name-of-some-length", 0755) == 0);
		next = openat(fd, "a-name-of-some-length", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = next;
	}
	put(fd, "deep", "x");
	close(fd);
	put(workspace.upper_fd, "new\nline", "x");
	put(workspace.upper_fd, "\xff\xfe", "x");
	found = changes();
	CHECK(!strncmp(found, "A a-name", 8));
}

static void test_a_summary_counts(void)
{
	struct workspace_summary summary;

	scene_reset();
	put(workdir_fd, "a", "0");
	put(workdir_fd, "b", "0");
	scene_begin();
	CHECK_INT(workspace_summary(&home, &workspace, &summary, fresh()), 0);
	CHECK_INT(summary.added + summary.modified + summary.deleted + summary.bytes, 0);
	put(workspace.upper_fd, "a", "12345");
	put(workspace.upper_fd, "n", "123");
	whiteout("b");
	CHECK_INT(workspace_summary(&home, &workspace, &summary, fresh()), 0);
	CHECK_INT(summary.added, 1);
	CHECK_INT(summary.modified, 1);
	CHECK_INT(summary.deleted, 1);
	CHECK_INT(summary.bytes, 8);
	CHECK(!summary.is_rough);
}

static void test_another_directory_in_the_workdirs_place_is_noticed(void)
{
	scene_reset();
	scene_begin();
	CHECK(rename(at("/project"), at("/moved")) == 0);
	make_directory("/project");
	CHECK(strstr(changes(), "not the directory any more") != NULL);
	CHECK(rmdir(at("/project")) == 0 && rename(at("/moved"), at("/project")) == 0);
	scene_reset();
}

static const struct test tests[] = {
	TEST(test_added_modified_deleted_mode_and_type),
	TEST(test_a_whiteout_can_be_an_attribute_too),
	TEST(test_an_opaque_directory_hides_what_was_in_it),
	TEST(test_only_what_the_layer_has_is_looked_at),
	TEST(test_attributes_of_other_mounts_mean_nothing),
	TEST(test_what_the_host_touched_since_is_a_conflict),
	TEST(test_a_deletion_on_the_host_does_not_come_back_silently),
	TEST(test_a_directory_that_goes_is_looked_at_as_a_whole),
	TEST(test_renames_are_found_by_content),
	TEST(test_layers_stand_on_each_other),
	TEST(test_links_are_never_followed),
	TEST(test_a_redirect_out_of_the_workdir_is_forged),
	TEST(test_a_renamed_directory_shows_what_it_had),
	TEST(test_a_copy_is_compared_by_what_was_touched_in_it),
	TEST(test_holes_are_not_read),
	TEST(test_a_thousand_levels_and_odd_names),
	TEST(test_a_summary_counts),
	TEST(test_another_directory_in_the_workdirs_place_is_noticed),
};

int main(void)
{
	return scratch_main(tests, ARRAY_LEN(tests), scene_prepare);
}
