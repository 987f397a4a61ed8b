/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_survey_survey.c - what the survey finds in real directories made for it
 *
 * A tree below /tmp with a home, projects, a repository and links; each test builds a policy about it and looks at the
 * facts.
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "survey/survey.h"
#include "survey/survey_paths.h"
#include "survey/survey_nested.h"
#include "survey/survey_risky.h"
#include "survey/survey_trees.h"
#include "survey/survey_watch.h"
#include "policy/policy_build.h"
#include "scratch_tree.h"

static void make_file(const char *name)
{
	int fd;

	make_directory(name);
	rmdir(at(name));
	fd = open(at(name), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	CHECK(fd >= 0);
	close(fd);
}

static void make_tree(void)
{
	make_directory("/home/u/plain");
	make_directory("/home/u/repo/pkg/a");
	make_file("/home/u/repo/.git/HEAD");
	make_file("/home/u/repo/.git/config");
	make_directory("/home/u/repo/.git/objects");
	make_directory("/home/u/repo/.git/refs");
	make_directory("/home/u/repo/.git/hooks");
	make_file("/home/u/repo/.git/info/attributes");
	make_directory("/home/u/repo/.github/workflows");
	make_file("/home/u/repo/pkg/a/.envrc");
	make_file("/home/u/worktree/.git");
	make_file("/home/u/worktree/file");
	make_directory("/home/u/.cargo/bin");
	make_directory("/home/u/.rustup");
	make_directory("/home/u/tools/x/bin");
	make_file("/srv/data/secret");
	make_directory("/srv/data/sub");
	make_directory("/srv/sub");
	CHECK_INT(symlink("data", at("/srv/link")), 0);
	CHECK_INT(symlink("/nowhere/at/all", at("/srv/dangling")), 0);
	CHECK_INT(symlink("loop", at("/srv/loop")), 0);
}

/* One survey: a policy of flags, and the facts. */
struct survey {
	struct policy policy;
	struct host host;
	struct error error;
	char path_variable[PATH_MAX * 8];
	char *environment[3];
	int rc;
};

static void survey(struct survey *survey, const char *current_directory, const char *const (*flags)[2])
{
	char home[PATH_MAX * 2], directory[PATH_MAX * 2];
	struct policy_context context = {.current_directory = directory, .home = home};

	snprintf(home, sizeof(home), "%s/home/u", top);
	snprintf(directory, sizeof(directory), "%s%s", top, current_directory);
	*survey = (struct survey){0};
	survey->environment[0] = survey->path_variable;
	snprintf(survey->path_variable, sizeof(survey->path_variable),
		 "PATH=/usr/bin::%s/.cargo/bin:relative:%s/tools/x/bin:%s", home, home, home);
	survey->host = (struct host){
		.home = strdup(home), .real_home = strdup(home), .environment = survey->environment, .uid = getuid()};
	CHECK_INT(policy_init(&survey->policy, &context, &survey->error), 0);
	for (; flags && (*flags)[0]; flags++)
		CHECK_INT(policy_set_flag(&survey->policy, policy_key_by_flag((*flags)[0]), (*flags)[1], false,
					  &context, &survey->error),
			  0);
	/* The survey holds the default workdir to the directory that this process stands in. */
	if (chdir(directory) < 0)
		printf("cannot enter %s\n", directory);
	survey->rc = survey_host(&survey->host, &survey->policy, directory, &survey->error);
}

static void forget_survey(struct survey *survey)
{
	survey->host.environment = NULL;
	survey_done(&survey->host);
	policy_done(&survey->policy);
}

static bool has(const struct host_path_list *list, const char *name, enum path_kind kind)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->items[i].path, at(name)))
			return list->items[i].kind == kind && list->items[i].inode;
	return false;
}

static void test_a_plain_directory_has_no_repository(void)
{
	struct survey seen;

	survey(&seen, "/home/u/plain", NULL);
	CHECK_INT(seen.rc, 0);
	CHECK_STRING(seen.host.workdir.path.path, at("/home/u/plain"));
	CHECK(!seen.host.workdir.unfit);
	CHECK_INT(seen.host.workdir.top.kind, PATH_ABSENT);
	CHECK_INT(seen.host.workdir.git.kind, PATH_ABSENT);
	CHECK_INT(seen.host.workdir.protected.count, 0);
	CHECK_INT(seen.host.workdir.pinned.count, 0);
	forget_survey(&seen);
}

static void test_a_repository_is_found_from_its_top(void)
{
	struct survey seen;

	survey(&seen, "/home/u/repo", NULL);
	CHECK_INT(seen.host.workdir.top.kind, PATH_ABSENT);
	CHECK_STRING(seen.host.workdir.git.path, at("/home/u/repo/.git"));
	CHECK(has(&seen.host.workdir.protected, "/home/u/repo/.git/config", PATH_FILE));
	CHECK(has(&seen.host.workdir.protected, "/home/u/repo/.git/hooks", PATH_DIRECTORY));
	CHECK(has(&seen.host.workdir.protected, "/home/u/repo/.git/info/attributes", PATH_FILE));
	CHECK(has(&seen.host.workdir.protected, "/home/u/repo/.github/workflows", PATH_DIRECTORY));
	CHECK_INT(seen.host.workdir.protected.count, 4);
	CHECK(has(&seen.host.workdir.pinned, "/home/u/repo/.git", PATH_DIRECTORY));
	CHECK(has(&seen.host.workdir.pinned, "/home/u/repo/.git/info", PATH_DIRECTORY));
	CHECK(has(&seen.host.workdir.pinned, "/home/u/repo/.github", PATH_DIRECTORY));
	CHECK_INT(seen.host.workdir.pinned.count, 3);
	forget_survey(&seen);
}

static void test_a_repository_is_found_from_a_subdirectory(void)
{
	struct survey seen;

	survey(&seen, "/home/u/repo/pkg/a", NULL);
	CHECK_STRING(seen.host.workdir.top.path, at("/home/u/repo"));
	CHECK_INT(seen.host.workdir.top.kind, PATH_DIRECTORY);
	CHECK_STRING(seen.host.workdir.git.path, at("/home/u/repo/.git"));
	CHECK(has(&seen.host.workdir.protected, "/home/u/repo/pkg/a/.envrc", PATH_FILE));
	CHECK(has(&seen.host.workdir.protected, "/home/u/repo/.git/hooks", PATH_DIRECTORY));
	forget_survey(&seen);
}

static void test_a_git_file_is_guarded_and_not_followed(void)
{
	struct survey seen;

	survey(&seen, "/home/u/worktree", NULL);
	CHECK_INT(seen.host.workdir.git.kind, PATH_ABSENT);
	CHECK_INT(seen.host.workdir.protected.count, 1);
	CHECK(has(&seen.host.workdir.protected, "/home/u/worktree/.git", PATH_FILE));
	forget_survey(&seen);
}

static void test_a_home_in_git_is_no_project(void)
{
	struct survey seen;

	make_directory("/home/u/.git");
	survey(&seen, "/home/u/plain", NULL);
	CHECK_INT(seen.host.workdir.top.kind, PATH_ABSENT);
	CHECK_INT(seen.host.workdir.git.kind, PATH_ABSENT);
	forget_survey(&seen);
	CHECK_INT(rmdir(at("/home/u/.git")), 0);
}

static void test_unfit_directories_say_why(void)
{
	static const struct {
		const char *directory, *why;
	} rows[] = {
		{"/home/u", "it is a home directory"},
		{"/home", "it contains a home directory"},
		{"", "it contains a home directory"},
	};
	struct survey seen;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		survey(&seen, rows[i].directory, NULL);
		CHECK_INT(seen.rc, 0);
		CHECK_STRING(seen.host.workdir.unfit, rows[i].why);
		forget_survey(&seen);
	}
	survey(&seen, "/home/u/plain", (const char *const[][2]){{"workdir", "/"}, {0}});
	CHECK_STRING(seen.host.workdir.unfit, "it is the root directory");
	forget_survey(&seen);
	survey(&seen, "/home/u/plain", (const char *const[][2]){{"workdir", "/usr/bin"}, {0}});
	CHECK_STRING(seen.host.workdir.unfit, "it is a system directory");
	forget_survey(&seen);
}

static void test_a_workdir_is_resolved_and_must_be_a_directory(void)
{
	struct survey seen;

	survey(&seen, "/home/u/plain", (const char *const[][2]){{"workdir", "../../../srv/link"}, {0}});
	CHECK_INT(seen.rc, 0);
	CHECK_STRING(seen.host.workdir.path.path, at("/srv/data"));
	forget_survey(&seen);
	survey(&seen, "/home/u/plain", (const char *const[][2]){{"workdir", "missing"}, {0}});
	CHECK_INT(seen.rc, -ENOENT);
	CHECK_INT(seen.error.stage, STAGE_FILES);
	forget_survey(&seen);
	survey(&seen, "/home/u/worktree", (const char *const[][2]){{"workdir", "file"}, {0}});
	CHECK_INT(seen.rc, -ENOTDIR);
	forget_survey(&seen);
	survey(&seen, "/home/u/plain", (const char *const[][2]){{"workdir", "none"}, {0}});
	CHECK_INT(seen.rc, 0);
	CHECK(!seen.host.workdir.path.path);
	forget_survey(&seen);
}

static void test_toolchains_of_path_with_what_they_need(void)
{
	struct survey seen;

	survey(&seen, "/home/u/plain", NULL);
	CHECK(has(&seen.host.toolchains, "/home/u/.cargo/bin", PATH_DIRECTORY));
	CHECK(has(&seen.host.toolchains, "/home/u/.rustup", PATH_DIRECTORY));
	CHECK(has(&seen.host.toolchains, "/home/u/tools/x", PATH_DIRECTORY));
	CHECK_INT(seen.host.toolchains.count, 3); /* home itself is in PATH too, and is not shown for it */
	forget_survey(&seen);
}

static void test_every_named_path_has_its_fact(void)
{
	struct survey seen;
	const char *data = strdup(at("/srv/data")), *dest = strdup(at("/srv/data:/data"));

	survey(&seen, "/home/u/plain",
	       (const char *const[][2]){
		       {"ro", "../../../srv/link"}, {"ro", dest}, {"ro", "missing"}, {"rw", "../../../srv/loop"}, {0}});
	CHECK_INT(seen.host.mounts.count, 4);
	CHECK_INT(seen.host.places.count, 4);
	CHECK_STRING(seen.host.mounts.items[0].path, data);
	CHECK_INT(seen.host.mounts.items[0].kind, PATH_DIRECTORY);
	CHECK_STRING(seen.host.mounts.items[1].path, data);
	CHECK_INT(seen.host.places.items[1].kind, PATH_ABSENT);
	CHECK_INT(seen.host.mounts.items[2].kind, PATH_ABSENT);
	CHECK_INT(seen.host.mounts.items[2].error, ENOENT);
	CHECK_INT(seen.host.mounts.items[3].error, ELOOP);
	forget_survey(&seen);
	free((void *)data);
	free((void *)dest);
}

/* What is hidden is named as the jar sees it; the fact is about the host's object behind it. */
static void test_hidden_paths_are_found_behind_mounts_and_links(void)
{
	struct survey seen;
	char dest[PATH_MAX * 2], nested[PATH_MAX * 3];

	snprintf(dest, sizeof(dest), "%s/srv/data:/data", top);
	snprintf(nested, sizeof(nested), "%s/srv:/data/sub", top);
	survey(&seen, "/home/u/plain",
	       (const char *const[][2]){{"ro", dest},
					{"ro", nested},
					{"hide", "/data/secret"},
					{"hide", "/data/sub/data/secret"},
					{"hide", at("/srv/link/secret")},
					{"hide", at("/srv/dangling")},
					{0}});
	CHECK_INT(seen.host.hidden.count, 4);
	for (int i = 0; i < 3; i++) {
		CHECK_STRING(seen.host.hidden.items[i].path, at("/srv/data/secret"));
		CHECK_INT(seen.host.hidden.items[i].kind, PATH_FILE);
	}
	CHECK_INT(seen.host.hidden.items[3].kind, PATH_ABSENT);
	CHECK_INT(seen.host.hidden.items[3].error, ENOENT);
	/* the place of the nested mount is in the outer one's source */
	CHECK_STRING(seen.host.places.items[1].path, at("/srv/data/sub"));
	CHECK_INT(seen.host.places.items[1].kind, PATH_DIRECTORY);
	forget_survey(&seen);
}

/* A mount at its own place inside another one's destination is nearer than that. */
static void test_a_nearer_mount_at_its_own_place_counts(void)
{
	struct survey seen;
	char dest[PATH_MAX * 3], own[PATH_MAX * 2], hidden[PATH_MAX * 3];

	snprintf(dest, sizeof(dest), "%s/srv:%s/home", top, top);
	snprintf(own, sizeof(own), "%s/home/u/repo", top);
	snprintf(hidden, sizeof(hidden), "%s/.git/config", own);
	survey(&seen, "/srv/sub", (const char *const[][2]){{"ro", dest}, {"ro", own}, {"hide", hidden}, {0}});
	CHECK_STRING(seen.host.hidden.items[0].path, at("/home/u/repo/.git/config"));
	CHECK_INT(seen.host.hidden.items[0].kind, PATH_FILE);
	forget_survey(&seen);
}

/* --- what is risky ------------------------------------------------------------------------------------------ */

static void write_file(const char *name, const char *content)
{
	FILE *file;

	make_file(name);
	file = fopen(at(name), "we");
	CHECK(file && fputs(content, file) >= 0 && fclose(file) == 0);
}

/* As an engine that could list no directory while the run worked. */
static void search(struct risky_request *request, struct risky_list *risky)
{
	struct tree_list trees = {0};
	struct risk_look look;

	survey_trees_open(&trees, request->host, NULL);
	request->trees = trees.items;
	request->tree_count = trees.count;
	survey_look_begin(&look, request, risky);
	while (survey_look_go(&look, 1, risky))
		;
	survey_look_end(&look);
	survey_trees_done(&trees);
}

static void find_risky(const struct survey *seen, struct risky_list *risky)
{
	struct risky_request request = {
		.host = &seen->host, .before = &seen->host.workdir.watched, .was_protected = true};

	survey_risky_done(risky);
	survey_moment_now(&request.start);
	search(&request, risky);
}

static const char *why(const struct risky_list *risky, const char *name)
{
	for (size_t i = 0; i < risky->count; i++)
		if (!strcmp(risky->items[i].path, at(name)))
			return risky->items[i].why;
	return NULL;
}

static bool is_watched(const struct survey *seen, const char *name, enum watch_kind kind)
{
	const struct watch_list *list = &seen->host.workdir.watched;

	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->items[i].path.path, at(name)))
			return list->items[i].kind == kind;
	return false;
}

static void test_what_appears_or_is_replaced_is_risky(void)
{
	struct survey seen;
	struct risky_list risky = {0};

	survey(&seen, "/home/u/repo/pkg/a", NULL);
	find_risky(&seen, &risky);
	CHECK_INT(risky.count, 0);
	make_directory("/home/u/repo/pkg/a/.vscode");
	make_file("/home/u/repo/.git/commondir");
	make_file("/home/u/repo/pkg/a/new");
	CHECK_INT(rename(at("/home/u/repo/pkg/a/new"), at("/home/u/repo/pkg/a/.envrc")), 0);
	find_risky(&seen, &risky);
	CHECK_INT(risky.count, 3);
	for (size_t i = 0; i < risky.count; i++) {
		bool is_replaced = strstr(risky.items[i].path, ".envrc");

		CHECK(!strncmp(risky.items[i].why, is_replaced ? "it was replaced" : "it appeared", 11));
	}
	survey_risky_done(&risky);
	CHECK_INT(rmdir(at("/home/u/repo/pkg/a/.vscode")), 0);
	CHECK_INT(unlink(at("/home/u/repo/.git/commondir")), 0);
	forget_survey(&seen);
}

static void test_a_change_that_leaves_every_time_as_it_was_is_seen(void)
{
	struct survey seen;
	struct watch_list before = {0};
	struct risky_list risky = {0};
	struct risky_request request = {.host = &seen.host, .before = &before, .was_protected = true};

	write_file("/srv/fresh/.envrc", "one");
	write_file("/srv/fresh/AGENTS.md", "one");
	survey(&seen, "/srv/fresh", NULL);
	CHECK(is_watched(&seen, "/srv/fresh/.envrc", WATCH_PROTECTED) &&
	      is_watched(&seen, "/srv/fresh/AGENTS.md", WATCH_REPORTED));
	CHECK_INT(survey_watch(&seen.host, 0, &before, NULL), 0);
	search(&request, &risky);
	CHECK_INT(risky.count, 0);
	/* As a file system with a slow clock would leave it: only what is in them has changed. */
	for (size_t i = 0; i < before.count; i++)
		before.items[i].content[0] = '!';
	search(&request, &risky);
	CHECK(why(&risky, "/srv/fresh/.envrc") && why(&risky, "/srv/fresh/AGENTS.md"));
	survey_risky_done(&risky);
	survey_watch_done(&before);
	forget_survey(&seen);
}

static void test_what_the_configuration_names_is_guarded(void)
{
	static const char config[] = "[core]\n\thooksPath = .githooks\n\tfsmonitor = ./tools/monitor --fast\n"
				     "[include]\n\tpath = ../more\n[filter \"x\"]\n\tclean = python3 clean.py %f\n"
				     "[alias]\n\tst = status\n[diff \"y\"]\n\ttextconv = \"sh ./absent\"\n";
	struct survey seen;
	struct risky_list risky = {0};

	make_directory("/srv/named/.githooks");
	make_directory("/srv/named/tools");
	write_file("/srv/named/.git/config", config);
	write_file("/srv/named/.git/HEAD", "ref: refs/heads/main\n");
	write_file("/srv/named/tools/monitor", "");
	write_file("/srv/named/clean.py", "");
	write_file("/srv/named/status", "");
	write_file("/srv/named/more", "[core]\n\teditor = ~/ed\n[core]\n\tpager = tools/../tools/pager\n");
	write_file("/srv/named/tools/pager", "");
	survey(&seen, "/srv/named", NULL);
	CHECK(is_watched(&seen, "/srv/named/.githooks", WATCH_PROTECTED));
	CHECK(is_watched(&seen, "/srv/named/tools/monitor", WATCH_PROTECTED));
	CHECK(is_watched(&seen, "/srv/named/tools/pager", WATCH_PROTECTED));
	CHECK(is_watched(&seen, "/srv/named/clean.py", WATCH_PROTECTED));
	CHECK(is_watched(&seen, "/srv/named/more", WATCH_PROTECTED));
	CHECK(!is_watched(&seen, "/srv/named/status", WATCH_PROTECTED));
	CHECK(has(&seen.host.workdir.pinned, "/srv/named/tools", PATH_DIRECTORY));
	write_file("/srv/named/absent", "");
	find_risky(&seen, &risky);
	CHECK_INT(risky.count, 1);
	CHECK(why(&risky, "/srv/named/absent"));
	survey_risky_done(&risky);
	forget_survey(&seen);
}

static void test_a_configuration_that_names_the_work_tree_does_not_close_it(void)
{
	static const char *const values[] = {".", "..", "/", "sub/..", "./"};

	make_directory("/srv/whole/sub");
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		struct survey seen;
		char config[128];

		snprintf(config, sizeof(config), "[core]\n\thooksPath = %s\n\tfsmonitor = sh . sub\n", values[i]);
		write_file("/srv/whole/.git/config", config);
		survey(&seen, "/srv/whole", NULL);
		for (size_t j = 0; j < seen.host.workdir.protected.count; j++)
			CHECK_STRING(seen.host.workdir.protected.items[j].path, at("/srv/whole/.git/config"));
		forget_survey(&seen);
	}
}

static void test_every_link_on_the_way_counts(void)
{
	struct survey seen;
	struct risky_list risky = {0};

	make_directory("/srv/links/x");
	write_file("/srv/links/x/settings.json", "");
	write_file("/srv/links/c", "");
	CHECK_INT(symlink("x", at("/srv/links/.claude")), 0);
	CHECK_INT(symlink("b", at("/srv/links/.envrc")), 0);
	CHECK_INT(symlink("./x/../c", at("/srv/links/b")), 0);
	CHECK_INT(symlink("later", at("/srv/links/.npmrc")), 0);
	CHECK_INT(symlink(".bashrc", at("/srv/links/.bashrc")), 0);
	CHECK_INT(symlink("/etc/passwd", at("/srv/links/.profile")), 0);
	survey(&seen, "/srv/links", NULL);
	CHECK(is_watched(&seen, "/srv/links/.claude", WATCH_PROTECTED));
	CHECK(is_watched(&seen, "/srv/links/x/settings.json", WATCH_PROTECTED));
	CHECK(is_watched(&seen, "/srv/links/b", WATCH_PROTECTED) && is_watched(&seen, "/srv/links/c", WATCH_PROTECTED));
	CHECK(has(&seen.host.workdir.pinned, "/srv/links/x", PATH_DIRECTORY));
	for (size_t i = 0; i < seen.host.workdir.watched.count; i++)
		CHECK(strcmp(seen.host.workdir.watched.items[i].path.path, "/etc/passwd") != 0);
	find_risky(&seen, &risky);
	CHECK_INT(risky.count, 0);
	write_file("/srv/links/later", "");
	CHECK_INT(unlink(at("/srv/links/b")), 0);
	CHECK_INT(symlink("c", at("/srv/links/b")), 0);
	find_risky(&seen, &risky);
	CHECK(why(&risky, "/srv/links/later") && why(&risky, "/srv/links/b"));
	CHECK_INT(risky.count, 2);
	survey_risky_done(&risky);
	forget_survey(&seen);
}

static void test_repositories_and_instructions_below_are_found(void)
{
	struct survey seen;
	struct risky_list risky = {0};

	make_directory("/srv/nest/old/.git/hooks");
	write_file("/srv/nest/old/.git/config", "[core]\n");
	survey(&seen, "/srv/nest", NULL);
	find_risky(&seen, &risky);
	CHECK_INT(risky.count, 0);
	usleep(30000); /* longer than a tick: what comes now is surely later */
	{
		struct risky_request request = {.host = &seen.host, .before = &seen.host.workdir.watched};

		survey_moment_now(&request.start);
		usleep(30000);
		write_file("/srv/nest/a/b/.git/config", "[core]\n\tfsmonitor = evil\n");
		make_directory("/srv/nest/bare/objects");
		make_directory("/srv/nest/bare/refs");
		write_file("/srv/nest/bare/HEAD", "ref: refs/heads/main\n");
		write_file("/srv/nest/bare/config", "");
		write_file("/srv/nest/a/AGENTS.md", "");
		write_file("/srv/nest/a/.hg/hgrc", "");
		search(&request, &risky);
	}
	CHECK(why(&risky, "/srv/nest/a/b/.git/config") && why(&risky, "/srv/nest/bare/config"));
	CHECK(why(&risky, "/srv/nest/bare/HEAD") && why(&risky, "/srv/nest/a/AGENTS.md"));
	CHECK(why(&risky, "/srv/nest/a/.hg/hgrc"));
	CHECK_INT(risky.count, 5);
	CHECK(!risky.unsearched);
	CHECK_INT(risky.left_out.count, 0);
	CHECK(risky.looked_at >= 8);
	survey_risky_done(&risky);
	forget_survey(&seen);
}

/* What git takes for one has HEAD, and either the other two or `commondir`. */
static void test_a_work_directory_that_is_a_repository_is_guarded(void)
{
	struct survey seen;

	make_directory("/srv/top/objects");
	make_directory("/srv/top/refs");
	write_file("/srv/top/config", "[core]\n");
	survey(&seen, "/srv/top", NULL);
	CHECK(!is_watched(&seen, "/srv/top/config", WATCH_PROTECTED));
	forget_survey(&seen);
	write_file("/srv/top/HEAD", "ref: refs/heads/main\n");
	survey(&seen, "/srv/top", NULL);
	CHECK(is_watched(&seen, "/srv/top/config", WATCH_PROTECTED) && is_watched(&seen, "/srv/top/HEAD", WATCH_NEW));
	forget_survey(&seen);
}

static const struct test tests[] = {
	TEST(test_a_plain_directory_has_no_repository),
	TEST(test_a_repository_is_found_from_its_top),
	TEST(test_a_repository_is_found_from_a_subdirectory),
	TEST(test_a_git_file_is_guarded_and_not_followed),
	TEST(test_a_home_in_git_is_no_project),
	TEST(test_unfit_directories_say_why),
	TEST(test_a_workdir_is_resolved_and_must_be_a_directory),
	TEST(test_toolchains_of_path_with_what_they_need),
	TEST(test_every_named_path_has_its_fact),
	TEST(test_hidden_paths_are_found_behind_mounts_and_links),
	TEST(test_a_nearer_mount_at_its_own_place_counts),
	TEST(test_what_appears_or_is_replaced_is_risky),
	TEST(test_a_change_that_leaves_every_time_as_it_was_is_seen),
	TEST(test_what_the_configuration_names_is_guarded),
	TEST(test_a_configuration_that_names_the_work_tree_does_not_close_it),
	TEST(test_every_link_on_the_way_counts),
	TEST(test_repositories_and_instructions_below_are_found),
	TEST(test_a_work_directory_that_is_a_repository_is_guarded),
};

int main(void)
{
	return scratch_main(tests, ARRAY_LEN(tests), make_tree);
}
