/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_survey_pack.c - facts and findings as bytes, and what is made of bytes that are none
 */
#include "test.h"

#include <errno.h>

#include "survey/survey_pack.h"
#include "survey/survey_paths.h"
#include "scratch_tree.h"

static struct unpack from_text(const struct text *text)
{
	return (struct unpack){.at = text->data, .end = text->data + text->len};
}

static void fill_host(struct host *host)
{
	make_directory("/project/.git/hooks");
	make_directory("/grant");
	CHECK_INT(survey_look(&host->workdir.path, at("/project")), 0);
	CHECK_INT(survey_look(&host->workdir.git, at("/project/.git")), 0);
	CHECK_INT(survey_path_list_look(&host->grants, at("/grant")), 0);
	CHECK_INT(string_list_add(&host->git_files, "/etc/gitconfig"), 0);
	CHECK_INT(string_list_add(&host->git_commands, "vi -x"), 0);
	host->workdir.is_searched = true;
	host->real_home = strdup("/home/u");
	host->uid = 1234;
}

static void test_a_project_is_the_same_behind_the_bytes(void)
{
	struct host host = {0}, other = {0}, broken;
	AUTO_TEXT bytes = {0};
	struct unpack from;

	fill_host(&host);
	survey_pack_project(&bytes, &host);
	from = from_text(&bytes);
	CHECK_INT(survey_unpack_project(&from, &other), 0);
	CHECK(from.at == from.end && other.uid == 1234 && other.workdir.is_searched && !other.workdir.has_git_file);
	CHECK_STRING(other.real_home, "/home/u");
	CHECK_STRING(other.workdir.path.path, host.workdir.path.path);
	CHECK(other.workdir.git.inode == host.workdir.git.inode && other.workdir.top.kind == PATH_ABSENT);
	CHECK(other.grants.count == 1 && other.git_files.count == 1 && other.git_commands.count == 1);
	for (size_t len = 0; len < bytes.len; len++) {
		broken = (struct host){0};
		from = (struct unpack){.at = bytes.data, .end = bytes.data + len};
		CHECK_INT(survey_unpack_project(&from, &broken), -EBADMSG);
		survey_done(&broken);
	}
	survey_done(&host);
	survey_done(&other);
}

/* As a helper would say it that a file has taken over. */
static int take(struct host *host, const char *path)
{
	AUTO_TEXT bytes = {0};
	struct unpack from;

	survey_pack_number(&bytes, 1);
	survey_pack_string(&bytes, path);
	survey_pack_number(&bytes, 0);
	from = from_text(&bytes);
	survey_path_list_done(&host->workdir.protected);
	return survey_take_protected(&from, host);
}

static void test_only_what_a_command_may_write_is_protected(void)
{
	struct host host = {0};

	fill_host(&host);
	make_directory("/secret/x");
	CHECK_INT(symlink(at("/secret"), at("/project/link")), 0);
	CHECK_INT(take(&host, at("/project/.git/hooks")), 0);
	CHECK(host.workdir.protected.count == 1 && host.workdir.protected.items[0].kind == PATH_DIRECTORY);
	CHECK_INT(take(&host, at("/grant")), 0);
	CHECK_INT(host.workdir.protected.count, 1);
	/* What went meanwhile, and what is behind a link. */
	CHECK_INT(take(&host, at("/project/gone")), 0);
	CHECK_INT(host.workdir.protected.count, 0);
	CHECK_INT(take(&host, at("/project/link/x")), 0);
	CHECK_INT(host.workdir.protected.count, 0);
	CHECK_INT(take(&host, at("/secret/x")), -EBADMSG);
	CHECK_INT(take(&host, at("/project/../secret/x")), -EBADMSG);
	CHECK_INT(take(&host, "work"), -EBADMSG);
	CHECK_INT(take(&host, NULL), -EBADMSG);
	survey_done(&host);
}

static void test_strings_with_a_nul_in_them_and_endless_lists_are_refused(void)
{
	AUTO_TEXT bytes = {0}, list = {0};
	struct risky_list risky = {0};
	struct unpack from;

	survey_pack_number(&bytes, 4);
	text_append(&bytes, "a\0b", 4);
	from = from_text(&bytes);
	CHECK(!survey_unpack_string(&from) && from.has_failed);
	survey_pack_number(&list, 0);
	survey_pack_number(&list, 0);
	survey_pack_number(&list, UINT64_MAX);
	from = from_text(&list);
	CHECK_INT(survey_unpack_risky(&from, &risky), -EBADMSG);
	survey_risky_done(&risky);
}

static void test_findings_are_the_same_behind_the_bytes(void)
{
	struct risky_list risky = {.unsearched = RISKY_IS_MOVED, .looked_at = 7}, other = {0};
	AUTO_TEXT bytes = {0};
	struct unpack from;

	survey_risky_add(&risky, "/project/.envrc", "appeared", "direnv runs it");
	survey_risky_leave_out(&risky, "/project", "big");
	survey_pack_risky(&bytes, &risky);
	from = from_text(&bytes);
	CHECK_INT(survey_unpack_risky(&from, &other), 0);
	CHECK(other.looked_at == 7 && other.unsearched == RISKY_IS_MOVED && other.count == 1);
	CHECK_STRING(other.items[0].path, "/project/.envrc");
	CHECK_STRING(other.items[0].why, risky.items[0].why);
	CHECK_STRING(other.left_out.items[0], "/project/big");
	survey_risky_done(&risky);
	survey_risky_done(&other);
}

static const struct test tests[] = {
	TEST(test_a_project_is_the_same_behind_the_bytes),
	TEST(test_only_what_a_command_may_write_is_protected),
	TEST(test_strings_with_a_nul_in_them_and_endless_lists_are_refused),
	TEST(test_findings_are_the_same_behind_the_bytes),
};

int main(void)
{
	return scratch_main_in("/tmp", tests, ARRAY_LEN(tests), NULL);
}
