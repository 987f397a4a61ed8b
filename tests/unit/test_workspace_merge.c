/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_workspace_merge.c - texts that both sides changed: what is merged, what stays a conflict, and with which base
 */
#include "workspace_applying.h"

#include "workspace/workspace_base.h"
#include "workspace/workspace_merge.h"

/* What comes of it; "(conflict)". */
static const char *merged(const char *base, const char *one, const char *other)
{
	static char result[65536];
	struct text texts[3] = {{0}}, out = {0};
	const char *const words[] = {base, one, other};
	int rc;

	for (int i = 0; i < 3; i++)
		text_append_string(&texts[i], words[i]);
	rc = merge_texts(&texts[0], &texts[1], &texts[2], &out);
	snprintf(result, sizeof(result), "%s", rc == 1 ? text_string(&out) : rc == 0 ? "(conflict)" : "(error)");
	for (int i = 0; i < 3; i++)
		text_done(&texts[i]);
	text_done(&out);
	return result;
}

static void test_known_merges(void)
{
	static const struct {
		const char *base, *one, *other, *result;
	} cases[] = {
		{"a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n", "A\nb\nC\n"},
		{"a\nb\nc\n", "a\nb\nc\n", "a\nb\nC\n", "a\nb\nC\n"},
		{"a\nb\nc\n", "x\nb\nc\n", "x\nb\nc\n", "x\nb\nc\n"},
		{"a\nb\nc\n", "x\nb\nc\n", "y\nb\nc\n", "(conflict)"},
		/* Beside each other is too near. */
		{"a\nb\nc\n", "A\nb\nc\n", "a\nB\nc\n", "(conflict)"},
		/* Inserted, removed, at the ends. */
		{"a\nb\nc\n", "0\na\nb\nc\n", "a\nb\nc\nd\n", "0\na\nb\nc\nd\n"},
		{"a\nb\nc\nd\ne\n", "a\nc\nd\ne\n", "a\nb\nc\nd\n", "a\nc\nd\n"},
		{"a\nb\nc\n", "a\nb\nc\nd\n", "a\nb\nc\ne\n", "(conflict)"},
		{"a\nb\nc\n", "a\nb\nc\nd\n", "a\nb\nc\nd\n", "a\nb\nc\nd\n"},
		{"a\nb\nc\n", "", "a\nb\nC\n", "(conflict)"},
		{"a\nb\nc\n", "", "", ""},
		{"", "a\n", "", "a\n"},
		{"", "a\n", "b\n", "(conflict)"},
		/* No newline at the end. */
		{"a\nb\nc", "A\nb\nc", "a\nb\nc\n", "A\nb\nc\n"},
		{"a\nb\nc", "A\nb\nc", "a\nb\nc\nd", "A\nb\nc\nd"},
		{"a\nb\nc\n", "A\nb\nc\n", "a\nb\nc", "A\nb\nc"},
		{"a\nb\nc", "a\nb\nc\nd", "a\nb\nc\n", "(conflict)"},
		/* Lines that end otherwise are other lines. */
		{"a\r\nb\r\nc\r\n", "A\r\nb\r\nc\r\n", "a\r\nb\r\nC\r\n", "A\r\nb\r\nC\r\n"},
		{"a\nb\nc\n", "a\r\nb\r\nc\r\n", "a\nb\nC\n", "(conflict)"},
		/* The same edit, and one more on either side. */
		{"a\nb\nc\nd\ne\n", "A\nb\nC\nd\ne\n", "A\nb\nc\nd\nE\n", "A\nb\nC\nd\nE\n"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CHECK_STRING(merged(cases[i].base, cases[i].one, cases[i].other), cases[i].result);
		CHECK_STRING(merged(cases[i].base, cases[i].other, cases[i].one), cases[i].result);
	}
}

static unsigned next_random(unsigned *seed)
{
	*seed = *seed * 1103515245 + 12345;
	return *seed >> 16;
}

/* Each line is changed by one side, by nobody, or by both alike, and lines that nobody changed stand between. */
static void test_edits_apart_are_all_there(void)
{
	for (unsigned seed = 1; seed <= 2000; seed++) {
		unsigned state = seed;
		char texts[4][4096] = {"", "", "", ""};

		for (int line = 0; line < 40; line++) {
			unsigned who = next_random(&state) % 5, what = next_random(&state) % 3;
			char old[32], new[96];

			snprintf(old, sizeof(old), "line %d%s", line, seed % 4 ? "\n" : "\r\n");
			snprintf(new, sizeof(new), "%s%s", what == 0 ? "" : "new ",
				 what == 0   ? ""
				 : what == 1 ? old
					     : "two\nlines\n");
			if (line % 2)
				who = 4;
			strcat(texts[0], old);
			strcat(texts[1], who == 0 || who == 2 ? new : old);
			strcat(texts[2], who == 1 || who == 2 ? new : old);
			strcat(texts[3], who <= 2 ? new : old);
		}
		CHECK_STRING(merged(texts[0], texts[1], texts[2]), texts[3]);
	}
}

/* Whatever the texts are: the order of the sides does not matter, and against the base itself an edit is taken whole. */
static void test_any_texts_keep_the_rules(void)
{
	for (unsigned seed = 1; seed <= 3000; seed++) {
		unsigned state = seed;
		char texts[3][256] = {"", "", ""}, result[65536];

		for (int i = 0; i < 3; i++)
			for (unsigned line = next_random(&state) % 8; line > 0; line--)
				strcat(texts[i], (const char *[]){"a\n", "b\n", "c\n", "\n"}[next_random(&state) % 4]);
		snprintf(result, sizeof(result), "%s", merged(texts[0], texts[1], texts[2]));
		CHECK_STRING(merged(texts[0], texts[2], texts[1]), result);
		CHECK_STRING(merged(texts[0], texts[1], texts[0]), texts[1]);
		CHECK_STRING(merged(texts[0], texts[1], texts[1]), texts[1]);
	}
}

/* --- of files ----------------------------------------------------------------------------------------------------- */

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

static void merge_f(void)
{
	CHECK_INT(string_list_add(&merge, "f"), 0);
	CHECK_INT(apply(), 0);
}

static void test_a_conflict_is_merged_only_if_asked_for(void)
{
	both_change("a\nb\nc\n", "a\nb\nC\n", "A\nb\nc\n");
	CHECK_INT(apply(), 0);
	CHECK_STRING(notes, "M f !\n");
	CHECK_STRING(content("f"), "A\nb\nc\n");
	CHECK_INT(outcome.merged, 0);
	is_dry_run = true;
	merge_f();
	is_dry_run = false;
	CHECK_INT(outcome.merged, 1);
	CHECK_STRING(content("f"), "A\nb\nc\n");
	CHECK_STRING(changes(), "M f !\n");
	merge_f();
	CHECK_STRING(notes, "");
	CHECK_INT(outcome.applied, 1);
	CHECK_INT(outcome.merged, 1);
	CHECK_STRING(content("f"), "A\nb\nC\n");
	CHECK_STRING(changes(), "");
}

static void test_what_cannot_be_merged_is_left_alone(void)
{
	static const char binary[] = "a\nb\nc\n";

	both_change("a\nb\nc\n", "a\nB\nc\n", "a\nx\nc\n");
	merge_f();
	CHECK_STRING(notes, "M f !\n");
	CHECK_STRING(content("f"), "a\nx\nc\n");
	CHECK_STRING(changes(), "M f !\n");
	/* One side removed it. */
	both_change("a\nb\nc\n", "a\nb\nC\n", "A\nb\nc\n");
	CHECK(unlinkat(workspace.upper_fd, "f", 0) == 0);
	whiteout("f");
	merge_f();
	CHECK_STRING(notes, "D f !\n");
	CHECK_STRING(content("f"), "A\nb\nc\n");
	both_change("a\nb\nc\n", "a\nb\nC\n", "A\nb\nc\n");
	set_mark("f", "user.overlay.origin", "");
	CHECK(unlinkat(workdir_fd, "f", 0) == 0);
	merge_f();
	CHECK_STRING(notes, "A f !\n");
	CHECK_STRING(content("f"), "(none)");
	/* Something has the layer mounted. */
	both_change("a\nb\nc\n", "a\nb\nC\n", "A\nb\nc\n");
	is_copying = true;
	merge_f();
	is_copying = false;
	CHECK_STRING(notes, "M f !\n");
	/* No text. */
	both_change("a\nb\nc\n", "a\nb\nC\n", "A\nb\nc\n");
	{
		int fd = openat(workdir_fd, "f", O_WRONLY | O_CLOEXEC);

		CHECK(write(fd, binary, sizeof(binary)) == sizeof(binary));
		close(fd);
	}
	merge_f();
	CHECK_STRING(notes, "M f !\n");
	/* Attributes that only one side has. */
	both_change("a\nb\nc\n", "a\nb\nC\n", "A\nb\nc\n");
	set_mark("f", "user.kept", "yes");
	merge_f();
	CHECK_STRING(notes, "M f !\n");
}

static void test_permissions_are_merged_too(void)
{
	struct stat status;

	both_change("a\nb\nc\n", "a\nb\nC\n", "A\nb\nc\n");
	CHECK(fchmodat(workdir_fd, "f", 0600, 0) == 0);
	merge_f();
	CHECK(fstatat(workdir_fd, "f", &status, 0) == 0 && (status.st_mode & 07777) == 0600);
	both_change("a\nb\nc\n", "a\nb\nC\n", "A\nb\nc\n");
	CHECK(fchmodat(workspace.upper_fd, "f", 0755, 0) == 0);
	merge_f();
	CHECK(fstatat(workdir_fd, "f", &status, 0) == 0 && (status.st_mode & 07777) == 0755);
	both_change("a\nb\nc\n", "a\nb\nC\n", "A\nb\nc\n");
	CHECK(fchmodat(workspace.upper_fd, "f", 0755, 0) == 0);
	CHECK(fchmodat(workdir_fd, "f", 0600, 0) == 0);
	merge_f();
	CHECK_STRING(notes, "M f !\n");
}

/* A wrong base would undo somebody's work without a word: better none. */
static void test_a_base_that_is_no_more_is_not_used(void)
{
	/* The host was first: what the command began with is not known. */
	scene_reset();
	put(workdir_fd, "f", "a\nb\nc\n");
	scene_begin();
	put(workdir_fd, "f", "A\nb\nc\n");
	put(workspace.upper_fd, "f", "a\nb\nC\n");
	end_run();
	merge_f();
	CHECK_STRING(notes, "M f !\n");
	/* It was applied, and the workspace goes on from there. */
	scene_reset();
	put(workdir_fd, "f", "a\nb\nc\n");
	scene_begin();
	put(workspace.upper_fd, "f", "a\nb\nC\n");
	put(workspace.upper_fd, ".envrc", "refused, so that the workspace goes on");
	end_run();
	CHECK_INT(string_list_add(&paths, "f"), 0);
	CHECK_INT(apply(), 0);
	put(workdir_fd, "f", "a\nb\nc\n");
	put(workspace.upper_fd, "f", "A\nb\nC\n");
	merge_f();
	CHECK_STRING(content("f"), "a\nb\nc\n");
	/* ... and from what the last run ended with, a base is to be had again. */
	CHECK_INT(string_list_add(&theirs, "f"), 0);
	CHECK_INT(string_list_add(&paths, "f"), 0);
	CHECK_INT(apply(), 0);
	put(workspace.upper_fd, "f", "A\nb\nC\nd\n");
	end_run();
	put(workdir_fd, "f", "1\nA\nb\nC\n");
	merge_f();
	CHECK_STRING(content("f"), "1\nA\nb\nC\nd\n");
	/* The user took the workdir's side: the command begins with that. */
	both_change("a\nb\nc\n", "a\nb\nC\n", "A\nb\nc\n");
	CHECK_INT(string_list_add(&ours, "f"), 0);
	CHECK_INT(apply(), 0);
	put(workspace.upper_fd, "f", "A\nb\nC\n");
	put(workdir_fd, "f", "a\nb\nc\n");
	merge_f();
	CHECK_STRING(content("f"), "a\nb\nc\n");
	/* Back at a checkpoint the workdir shows through. */
	both_change("a\nb\nc\n", "a\nb\nC\n", "A\nb\nc\n");
	CHECK_INT(workspace_rollback(&home, &workspace, NULL, fresh()), 0);
	put(workspace.upper_fd, "f", "A\nb\nC\n");
	merge_f();
	CHECK_STRING(content("f"), "A\nb\nc\n");
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
	TEST(test_known_merges),
	TEST(test_edits_apart_are_all_there),
	TEST(test_any_texts_keep_the_rules),
	TEST(test_a_conflict_is_merged_only_if_asked_for),
	TEST(test_what_cannot_be_merged_is_left_alone),
	TEST(test_permissions_are_merged_too),
	TEST(test_a_base_that_is_no_more_is_not_used),
	TEST(test_what_is_kept_is_bounded),
};

int main(void)
{
	return scratch_main(tests, ARRAY_LEN(tests), scene_prepare);
}
