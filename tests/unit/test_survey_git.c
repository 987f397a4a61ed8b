/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_survey_git.c - git's configuration syntax, the caller's identity, and where a .git file may lead
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "survey/survey_git.h"
#include "survey/survey_paths.h"
#include "scratch_tree.h"

/* --- the syntax --------------------------------------------------------------------------------------------- */

struct told {
	char text[4096];
};

static void tell(void *context, const struct git_config_key *key, const char *value)
{
	struct told *told = context;
	size_t len = strlen(told->text);

	snprintf(told->text + len, sizeof(told->text) - len, "%s%s.%s=%s|", key->section, key->is_sub ? ".*" : "",
		 key->name, value);
}

static void test_values_are_what_git_says_they_are(void)
{
	static const struct {
		const char *text, *told;
		int rc;
	} rows[] = {
		{"", "", 0},
		{"[user]\n\tname = Ada Lovelace\n", "user.name=Ada Lovelace|", 0},
		{"[user]name=x", "user.name=x|", 0},
		{"[User]\nNAME=x\n", "user.name=x|", 0},
		{"\xef\xbb\xbf[user]\r\nname = x \r\nemail=y\r\n", "user.name=x|user.email=y|", 0},
		{"[user]\nname =   a  b \t # comment\n", "user.name=a  b|", 0},
		{"[user]\nname = a;comment\nemail=b#c\n", "user.name=a|user.email=b|", 0},
		{"[user]\nname = \"a # ; b \" c\n", "user.name=a # ; b  c|", 0},
		{"[user]\nname = a\" \"\n", "user.name=a |", 0},
		{"[user]\nname = \"\\\"q\\\" \\\\ \\t\\n\\b\"\n", "user.name=\"q\" \\ \t\n\b|", 0},
		{"[user]\nname = a\\\n b\n", "user.name=a b|", 0},
		{"[user]\nname\nemail = e\n", "user.email=e|", 0},
		{"[user]\nname =\n", "user.name=|", 0},
		{"; c\n# c\n[a]\n[user] # c\n name = x ; y\n", "user.name=x|", 0},
		{"[user \"sub\"]\nname=x\n[user \"a\\\"]b\"]\nname=y\n[user]\nname=z\n",
		 "user.*.name=x|user.*.name=y|user.name=z|", 0},
		{"[user.sub]\nname=x\n", "user.*.name=x|", 0},
		{"[include]\npath = /etc/passwd\n", "include.path=/etc/passwd|", 0},
		{"name = x\n[user]\nname = y\n", "user.name=y|", 0},
		{"[user]\nname = a\nname = b\\", "user.name=a|user.name=b|", 0},
		/* what git refuses too */
		{"[user\nname = x\n", "", -EINVAL},
		{"[]\n", "", -EINVAL},
		{"[user \"a\n\"]\nname = x\n", "", -EINVAL},
		{"[user]\nname = \"a\nemail = b\n", "", -EINVAL},
		{"[user]\nname = \\x\n", "", -EINVAL},
		{"[user]\n1name = x\n", "", -EINVAL},
		{"[user]\nna me = x\n", "", -EINVAL},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct told told = {""};

		CHECK_INT(survey_git_config_parse(rows[i].text, strlen(rows[i].text), tell, &told), rows[i].rc);
		CHECK_STRING(told.text, rows[i].told);
	}
}

static void test_bytes_that_are_no_text_are_refused(void)
{
	struct told told = {""};

	CHECK_INT(survey_git_config_parse("[user]\nname = a\0b\n", 18, tell, &told), -EINVAL);
	CHECK_INT(survey_git_config_parse("[us\0er]\n", 8, tell, &told), -EINVAL);
	CHECK_INT(survey_git_config_parse("\0", 1, tell, &told), -EINVAL);
	CHECK_STRING(told.text, "");
}

/* --- files -------------------------------------------------------------------------------------------------- */

static void write_text(const char *name, const char *content)
{
	FILE *file = fopen(at(name), "we");

	CHECK(file);
	if (!file)
		return;
	CHECK(fputs(content, file) >= 0);
	fclose(file);
}

static void check_identity(char *const *environment, const char *name, const char *email)
{
	AUTO_FREE char *found_name = NULL, *found_email = NULL;

	CHECK_INT(survey_git_identity(environment, at("/home"), &found_name, &found_email), 0);
	CHECK_STRING(found_name ? found_name : "(none)", name ? name : "(none)");
	CHECK_STRING(found_email ? found_email : "(none)", email ? email : "(none)");
}

static void test_the_identity_is_where_git_looks_for_it(void)
{
	char only[PATH_MAX * 2], xdg[PATH_MAX * 2], *environment[] = {NULL, NULL};

	make_directory("/home/.config/git");
	make_directory("/xdg/git");
	check_identity(environment, NULL, NULL);
	write_text("/home/.config/git/config", "[user]\nname=dot config\nemail=dot@config\n");
	check_identity(environment, "dot config", "dot@config");
	write_text("/home/.gitconfig", "[user]\nname=\"home\"\n");
	check_identity(environment, "home", "dot@config");
	write_text("/xdg/git/config", "[user]\nemail=xdg\n");
	snprintf(xdg, sizeof(xdg), "XDG_CONFIG_HOME=%s/xdg", top);
	environment[0] = xdg;
	check_identity(environment, "home", "xdg");
	write_text("/only", "[user]\nemail=first\nemail=last\n");
	snprintf(only, sizeof(only), "GIT_CONFIG_GLOBAL=%s/only", top);
	environment[0] = only;
	check_identity(environment, NULL, "last");
	environment[0] = (char[]){"GIT_CONFIG_GLOBAL=/dev/null"};
	check_identity(environment, NULL, NULL);
	environment[0] = (char[]){"GIT_CONFIG_GLOBAL="};
	check_identity(environment, NULL, NULL);
}

static void test_what_is_too_much_is_passed_over(void)
{
	char long_text[GIT_CONFIG_BYTES_MAX + 64];
	char *environment[] = {NULL};

	make_directory("/home");
	unlink(at("/home/.config/git/config"));
	snprintf(long_text, sizeof(long_text), "[user]\nemail=e\nname=%0*d\n", GIT_VALUE_MAX + 1, 0);
	write_text("/home/.gitconfig", long_text);
	check_identity(environment, NULL, "e");
	snprintf(long_text, sizeof(long_text), "[user]\nemail=e\n#%0*d\n", GIT_CONFIG_BYTES_MAX, 0);
	write_text("/home/.gitconfig", long_text);
	check_identity(environment, NULL, NULL);
	CHECK_INT(unlink(at("/home/.gitconfig")), 0);
	CHECK_INT(mkfifo(at("/home/.gitconfig"), 0600), 0);
	check_identity(environment, NULL, NULL); /* and returns */
	CHECK_INT(unlink(at("/home/.gitconfig")), 0);
	CHECK_INT(mkdir(at("/home/.gitconfig"), 0755), 0);
	check_identity(environment, NULL, NULL);
	CHECK_INT(rmdir(at("/home/.gitconfig")), 0);
}

/* --- .git files --------------------------------------------------------------------------------------------- */

static int follow(const char *git_file, struct host_path *git, struct host_path *own)
{
	survey_path_done(git);
	survey_path_done(own);
	return survey_git_follow(at(git_file), git, own);
}

static void write_pointer(const char *name, const char *format, const char *path)
{
	char content[PATH_MAX * 3];

	snprintf(content, sizeof(content), format, path);
	write_text(name, content);
}

static void test_a_linked_worktree_is_followed_if_the_repository_knows_it(void)
{
	struct host_path git = {0}, own = {0};
	struct stat status;

	make_directory("/main/.git/worktrees/t");
	make_directory("/tree");
	make_directory("/other");
	write_pointer("/tree/.git", "gitdir: %s\n", at("/main/.git/worktrees/t"));
	CHECK_INT(follow("/tree/.git", &git, &own), 0); /* no way back */
	write_pointer("/main/.git/worktrees/t/gitdir", "%s\n", at("/tree/.git"));
	CHECK_INT(follow("/tree/.git", &git, &own), 0); /* no commondir */
	write_text("/main/.git/worktrees/t/commondir", "../..\n");
	CHECK_INT(follow("/tree/.git", &git, &own), 1);
	CHECK_STRING(git.path, at("/main/.git"));
	CHECK_STRING(own.path, at("/main/.git/worktrees/t"));
	CHECK_INT(stat(at("/main/.git"), &status), 0);
	CHECK(git.inode == status.st_ino && git.device == status.st_dev && git.kind == PATH_DIRECTORY);
	/* relative, as newer gits can have it */
	write_text("/tree/.git", "gitdir: ../main/.git/worktrees/t\n");
	write_text("/main/.git/worktrees/t/gitdir", "../../../../tree/.git\n");
	CHECK_INT(follow("/tree/.git", &git, &own), 1);
	/* the way back leads to somebody else */
	write_pointer("/other/.git", "gitdir: %s\n", at("/main/.git/worktrees/t"));
	CHECK_INT(follow("/other/.git", &git, &own), 0);
	/* the common directory is another one */
	write_pointer("/main/.git/worktrees/t/commondir", "%s\n", at("/other"));
	CHECK_INT(follow("/tree/.git", &git, &own), 0);
	write_text("/main/.git/worktrees/t/commondir", "../..\n");
	/* a directory that is not called so */
	CHECK_INT(rename(at("/main/.git/worktrees"), at("/main/.git/trees")), 0);
	write_text("/tree/.git", "gitdir: ../main/.git/trees/t\n");
	CHECK_INT(follow("/tree/.git", &git, &own), 0);
	survey_path_done(&git);
	survey_path_done(&own);
}

static void test_a_way_back_through_a_link_does_not_count(void)
{
	struct host_path git = {0}, own = {0};

	make_directory("/linked/.git/worktrees/t");
	make_directory("/tree2");
	write_text("/tree2/.git", "gitdir: ../linked/.git/worktrees/t\n");
	write_text("/linked/.git/worktrees/t/commondir", "../..\n");
	write_pointer("/pointer", "%s\n", at("/tree2/.git"));
	CHECK_INT(symlink(at("/pointer"), at("/linked/.git/worktrees/t/gitdir")), 0);
	CHECK_INT(follow("/tree2/.git", &git, &own), 0);
	CHECK_INT(unlink(at("/linked/.git/worktrees/t/gitdir")), 0);
	CHECK_INT(symlink(at("/tree2/.git"), at("/tree2/alias")), 0);
	write_pointer("/linked/.git/worktrees/t/gitdir", "%s\n", at("/tree2/alias"));
	CHECK_INT(follow("/tree2/.git", &git, &own), 0);
	survey_path_done(&git);
	survey_path_done(&own);
}

static void test_a_submodule_is_followed_if_its_configuration_says_so(void)
{
	struct host_path git = {0}, own = {0};

	make_directory("/super/.git/modules/m");
	make_directory("/super/m");
	make_directory("/super/n");
	write_text("/super/m/.git", "gitdir: ../.git/modules/m\n");
	write_text("/super/n/.git", "gitdir: ../.git/modules/m\n");
	CHECK_INT(follow("/super/m/.git", &git, &own), 0);
	write_text("/super/.git/modules/m/config", "[core]\n\tbare = false\n\tworktree = ../../../m\n");
	CHECK_INT(follow("/super/m/.git", &git, &own), 1);
	CHECK_STRING(git.path, at("/super/.git/modules/m"));
	CHECK_INT(own.kind, PATH_ABSENT);
	CHECK_INT(follow("/super/n/.git", &git, &own), 0);
	write_text("/super/.git/modules/m/config", "[core]\n\tworktree = ../../../m\n broken");
	CHECK_INT(follow("/super/m/.git", &git, &own), 1); /* a name alone is fine */
	write_text("/super/.git/modules/m/config", "[core]\n\tworktree = ../../../m\n=broken");
	CHECK_INT(follow("/super/m/.git", &git, &own), 0);
	survey_path_done(&git);
	survey_path_done(&own);
}

static void test_a_repository_in_the_same_directory_is_followed(void)
{
	struct host_path git = {0}, own = {0};

	make_directory("/project/.bare");
	make_directory("/elsewhere");
	write_text("/project/.git", "gitdir: .bare");
	CHECK_INT(follow("/project/.git", &git, &own), 1);
	CHECK_STRING(git.path, at("/project/.bare"));
	CHECK_INT(symlink("../elsewhere", at("/project/link")), 0);
	write_text("/project/.git", "gitdir: link");
	CHECK_INT(follow("/project/.git", &git, &own), 0);
	survey_path_done(&git);
	survey_path_done(&own);
}

static void test_odd_git_files_lead_nowhere(void)
{
	static const char *const rows[] = {
		"", "gitdir: \n", "gitdir:x\n", "gitdir: /nonexistent\n", "gitdir: ../../..\n", "\n"};
	struct host_path git = {0}, own = {0};
	char long_text[GIT_POINTER_BYTES_MAX + 64];

	make_directory("/odd");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		write_text("/odd/.git", rows[i]);
		CHECK_INT(follow("/odd/.git", &git, &own), 0);
	}
	snprintf(long_text, sizeof(long_text), "gitdir: %0*d\n", GIT_POINTER_BYTES_MAX, 0);
	write_text("/odd/.git", long_text);
	CHECK_INT(follow("/odd/.git", &git, &own), 0);
	CHECK_INT(unlink(at("/odd/.git")), 0);
	CHECK_INT(mkfifo(at("/odd/.git"), 0600), 0);
	CHECK_INT(follow("/odd/.git", &git, &own), 0);
	CHECK_INT(unlink(at("/odd/.git")), 0);
	CHECK_INT(follow("/odd/.git", &git, &own), 0);
}

static void test_a_file_is_read_to_its_end_whatever_its_size_says(void)
{
	AUTO_CLOSE int listed = open("/proc/self/status", O_RDONLY | O_CLOEXEC); /* its size is 0 */
	AUTO_CLOSE int file = -1;
	AUTO_TEXT text = {0};
	char bytes[5001];

	CHECK_INT(survey_git_read_open(listed, 1 << 20, &text), 0);
	CHECK(text.len > 100 && strlen(text.data) == text.len && text.data[text.len - 1] == '\n');
	memset(bytes, 'x', sizeof(bytes) - 1);
	bytes[sizeof(bytes) - 1] = '\0';
	write_text("/long", bytes);
	file = open(at("/long"), O_RDONLY | O_CLOEXEC);
	CHECK_INT(survey_git_read_open(file, sizeof(bytes) - 1, &text), 0);
	CHECK_STRING(text.data, bytes);
	CHECK_INT(survey_git_read_open(file, sizeof(bytes) - 2, &text), -EINVAL);
}

static const struct test tests[] = {
	TEST(test_values_are_what_git_says_they_are),
	TEST(test_bytes_that_are_no_text_are_refused),
	TEST(test_the_identity_is_where_git_looks_for_it),
	TEST(test_what_is_too_much_is_passed_over),
	TEST(test_a_linked_worktree_is_followed_if_the_repository_knows_it),
	TEST(test_a_way_back_through_a_link_does_not_count),
	TEST(test_a_submodule_is_followed_if_its_configuration_says_so),
	TEST(test_a_repository_in_the_same_directory_is_followed),
	TEST(test_odd_git_files_lead_nowhere),
	TEST(test_a_file_is_read_to_its_end_whatever_its_size_says),
};

int main(void)
{
	return scratch_main(tests, ARRAY_LEN(tests), NULL);
}
