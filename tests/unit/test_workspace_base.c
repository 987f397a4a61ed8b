/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_workspace_base.c - which version of a text the patch of a conflict begins with
 */
#include "workspace_applying.h"

#include "workspace/workspace_base.h"
#include "workspace/workspace_patch.h"

static void end_run(void)
{
	struct workspace_summary summary;

	CHECK_INT(workspace_run_ended(&home, &workspace, &summary, fresh()), 0);
}

/* The command made @theirs_text of it, then the host @ours_text. */
static void both_change(const char *base, const char *theirs_text, const char *ours_text)
{
	scene_reset();
	put(workdir_fd, "f", base);
	scene_begin();
	put(workspace.upper_fd, "f", theirs_text);
	end_run();
	put(workdir_fd, "f", ours_text);
}

/* What `git apply --3way` takes as the version that both began with, of a file "f" of one line; "" without a base. */
static const char *base_of_f(void)
{
	static char text[4096];
	struct stat status;
	AUTO_CLOSE int fd = workspace_base_open(&workspace, "f", &status);
	ssize_t len = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	CHECK(len >= 0 && workspace_base_is_known(&workspace, "f") == (fd >= 0));
	text[len] = '\0';
	return text;
}

/* The patch of all changes. */
static const char *patch(void)
{
	static char result[4096];
	struct workspace_view view = {0};
	struct change_list list = {0};
	struct text out = {0};

	CHECK_INT(workspace_view_open(&home, &workspace, &view, fresh()), 0);
	CHECK_INT(workspace_changes(&view, &list, fresh()), 0);
	for (size_t i = 0; i < list.count; i++)
		CHECK_INT(workspace_patch_print(&view, &workspace, &list.items[i], &out), 0);
	snprintf(result, sizeof(result), "%s", text_string(&out));
	text_done(&out);
	workspace_change_list_done(&list);
	workspace_view_done(&view);
	return result;
}

static void test_the_patch_of_a_conflict_says_what_the_command_changed(void)
{
	/* What `git hash-object` says of the two. */
	static const char expected[] = "diff --git a/f b/f\n"
				       "index de980441c3ab03a8c07dda1ad27b8a11f39deb1e.."
				       "6dcce7d0cfdbcdb3076b2dca72674fb9d7d13ef8 100644\n";

	both_change("a\nb\nc\n", "a\nb\nC\n", "A\nb\nc\n");
	CHECK_STRING(base_of_f(), "a\nb\nc\n");
	CHECK(!strncmp(patch(), expected, strlen(expected)));
	CHECK(strstr(patch(), "@@ -1,3 +1,3 @@\n a\n b\n-c\n+C\n"));
	CHECK_INT(apply(), 0);
	CHECK_STRING(notes, "M f !\n");
	CHECK_STRING(content("f"), "A\nb\nc\n");
}

static void test_a_patch_without_a_base_begins_with_the_workdir(void)
{
	both_change("a\nb\nc\n", "a\nb\nC\n", "A\nb\nc\n");
	workspace_base_forget(&workspace, "f");
	CHECK(strstr(patch(), "@@ -1,3 +1,3 @@\n-A\n+a\n b\n-c\n+C\n"));
}

static void test_the_permissions_of_the_base_are_kept(void)
{
	both_change("a\nb\nc\n", "a\nb\nC\n", "A\nb\nc\n");
	CHECK(fchmodat(workdir_fd, "f", 0755, 0) == 0);
	CHECK(!strstr(patch(), "mode 100755"));
	CHECK(fchmodat(workspace.upper_fd, "f", 0755, 0) == 0);
	CHECK(strstr(patch(), "old mode 100644\nnew mode 100755\n"));
}

/* A patch with a wrong base would undo the host's work without a word: better none. */
static void test_a_base_that_is_no_more_is_not_used(void)
{
	/* The host was first: what the command began with is not known. */
	scene_reset();
	put(workdir_fd, "f", "a\nb\nc\n");
	scene_begin();
	put(workdir_fd, "f", "A\nb\nc\n");
	put(workspace.upper_fd, "f", "a\nb\nC\n");
	end_run();
	CHECK_STRING(base_of_f(), "");
	/* It was applied, and the workspace goes on from there. */
	scene_reset();
	put(workdir_fd, "f", "a\nb\nc\n");
	scene_begin();
	put(workspace.upper_fd, "f", "a\nb\nC\n");
	put(workspace.upper_fd, ".envrc", "refused, so that the workspace goes on");
	end_run();
	CHECK_INT(string_list_add(&paths, "f"), 0);
	CHECK_INT(apply(), 0);
	CHECK_STRING(base_of_f(), "");
	/* The next run ends with a base again. */
	put(workspace.upper_fd, "f", "A\nb\nC\nd\n");
	end_run();
	put(workdir_fd, "f", "1\nA\nb\nC\n");
	CHECK_STRING(base_of_f(), "a\nb\nC\n");
	/* The user took the workdir's side: the command begins with that. */
	both_change("a\nb\nc\n", "a\nb\nC\n", "A\nb\nc\n");
	CHECK_INT(string_list_add(&ours, "f"), 0);
	CHECK_INT(apply(), 0);
	CHECK_STRING(base_of_f(), "");
	/* Back at a checkpoint the workdir shows through. */
	both_change("a\nb\nc\n", "a\nb\nC\n", "A\nb\nc\n");
	CHECK_INT(workspace_rollback(&home, &workspace, NULL, fresh()), 0);
	CHECK_STRING(base_of_f(), "");
}

static void test_what_is_kept_is_bounded(void)
{
	static char large[BASE_FILE_BYTES_MAX + 2];

	memset(large, 'x', sizeof(large) - 1);
	both_change("a\nb\nc\n", "a\nb\nC\n", "A\nb\nc\n");
	scene_reset();
	put(workdir_fd, "large", large);
	put(workdir_fd, "small", "s");
	scene_begin();
	put(workspace.upper_fd, "large", "l");
	put(workspace.upper_fd, "small", "S");
	put(workspace.upper_fd, "new", "n");
	end_run();
	end_run();
	{
		int fd = openat(workspace.fd, "bases", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		char buffer[4096];
		struct directory list = {.fd = fd, .buffer = buffer, .size = sizeof(buffer)};
		size_t count = 0;

		while (directory_next(&list))
			count++;
		CHECK_INT(count, 1);
		close(fd);
	}
	/* Begun anew, nothing of it is left. */
	CHECK_INT(workspace_reset(&home, &workspace, fresh()), 0);
	CHECK(faccessat(workspace.fd, "bases", F_OK, 0) < 0);
}

static const struct test tests[] = {
	TEST(test_the_patch_of_a_conflict_says_what_the_command_changed),
	TEST(test_a_patch_without_a_base_begins_with_the_workdir),
	TEST(test_the_permissions_of_the_base_are_kept),
	TEST(test_a_base_that_is_no_more_is_not_used),
	TEST(test_what_is_kept_is_bounded),
};

int main(void)
{
	return scratch_main(tests, ARRAY_LEN(tests), scene_prepare);
}
