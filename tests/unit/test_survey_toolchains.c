/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_survey_toolchains.c - which parts of a home directory PATH makes visible, and which links count
 */
#include "test.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "survey/survey_paths.h"
#include "survey/survey_toolchains.h"
#include "scratch_tree.h"

static void make_file(const char *directory, const char *name, mode_t mode)
{
	char path[PATH_MAX];
	int fd;

	make_directory(directory);
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(at(path), O_CREAT | O_WRONLY | O_CLOEXEC, mode);
	CHECK(fd >= 0);
	close(fd);
}

static void make_link(const char *target, const char *name)
{
	unlink(at(name));
	CHECK_INT(symlink(target, at(name)), 0);
}

/* The toolchains for a PATH of one directory below @top, without the prefix, joined. */
static const char *found_for(const char *name)
{
	static char found[4096];
	char variable[PATH_MAX * 3], *environment[] = {variable, NULL};
	struct host host = {.real_home = strdup(at("/home/u")), .environment = environment, .uid = getuid()};
	const struct policy policy = {0};

	snprintf(variable, sizeof(variable), "PATH=/usr/bin::relative:%s:/nonexistent", at(name));
	CHECK_INT(survey_find_toolchains(&host, &policy), 0);
	found[0] = '\0';
	for (size_t i = 0; i < host.toolchains.count; i++) {
		size_t len = strlen(found);

		snprintf(found + len, sizeof(found) - len, "%s%s", len ? " " : "",
			 host.toolchains.items[i].path + strlen(top));
	}
	host.environment = NULL;
	survey_done(&host);
	return found;
}

static void test_known_directories_come_with_what_they_need(void)
{
	make_file("/home/u/.cargo/bin", "cargo", 0755);
	make_file("/home/u/.cargo", "credentials.toml", 0600);
	make_directory("/home/u/.rustup");
	CHECK_STRING(found_for("/home/u/.cargo/bin"), "/home/u/.cargo/bin /home/u/.rustup");
}

static void test_unknown_directories_come_with_their_root(void)
{
	make_directory("/home/u/tools/x/bin");
	make_directory("/home/u/scripts");
	make_directory("/home/u/.config/bin");
	CHECK_STRING(found_for("/home/u/tools/x/bin"), "/home/u/tools/x");
	CHECK_STRING(found_for("/home/u/scripts"), "/home/u/scripts");
	CHECK_STRING(found_for("/home/u/.config/bin"), "/home/u/.config/bin");
	CHECK_STRING(found_for("/home/u"), "");
	CHECK_STRING(found_for("/home"), "");
	CHECK_STRING(found_for("/elsewhere"), "");
}

static void test_links_of_home_and_of_tools_count(void)
{
	make_directory("/home/u/.sdkman/candidates/java/21/bin");
	make_link("21", "/home/u/.sdkman/candidates/java/current");
	CHECK_STRING(found_for("/home/u/.sdkman/candidates/java/current/bin"),
		     "/home/u/.sdkman/candidates/java/21 /home/u/.sdkman/candidates/java/current");
	/* home itself is nobody's workdir, nor is what holds it */
	make_directory("/home/u/big/disk/tools/bin");
	make_link("big/disk/tools", "/home/u/tools-link");
	CHECK_STRING(found_for("/home/u/tools-link/bin"), "/home/u/big/disk/tools /home/u/tools-link");
	make_link("home", "/homes");
	CHECK_STRING(found_for("/homes/u/tools-link/bin"), "/home/u/big/disk/tools /home/u/tools-link");
	/* what a tool needs may lie elsewhere, and is found by the same name */
	make_directory("/home/u/big/disk/share/pipx");
	make_directory("/home/u/.local/bin");
	make_link("../big/disk/share", "/home/u/.local/share");
	CHECK_STRING(found_for("/home/u/.local/bin"), "/home/u/.local/bin");
	unlink(at("/home/u/.local/share"));
	make_directory("/home/u/big/disk/cargo/bin");
	make_link("big/disk/cargo", "/home/u/.cargo-link");
	CHECK_STRING(found_for("/home/u/.cargo-link/bin"), "/home/u/big/disk/cargo /home/u/.cargo-link");
}

/* A command that ran in ~/project wrote the link; the next one must not see where it leads. */
static void test_links_that_lead_out_do_not_count(void)
{
	make_directory("/home/u/project/.venv");
	make_file("/home/u/.ssh", "id", 0600);
	make_link("../../.ssh", "/home/u/project/.venv/bin");
	CHECK_STRING(found_for("/home/u/project/.venv/bin"), "");
	make_link(at("/home/u/.ssh"), "/home/u/project/.venv/bin");
	CHECK_STRING(found_for("/home/u/project/.venv/bin"), "");
	make_link("../hop", "/home/u/project/.venv/bin");
	make_link("../.ssh", "/home/u/project/hop");
	CHECK_STRING(found_for("/home/u/project/.venv/bin"), "");
	make_link("project/hop", "/home/u/innocent");
	CHECK_STRING(found_for("/home/u/innocent"), "");
	make_directory("/srv/project");
	make_link(at("/home/u/.ssh"), "/srv/project/bin");
	CHECK_STRING(found_for("/srv/project/bin"), "");
	/* Within the project too: what it leads to may have been hidden from the command that wrote it. */
	make_directory("/home/u/project/conf/bin");
	make_link("conf", "/home/u/project/tools");
	CHECK_STRING(found_for("/home/u/project/tools/bin"), "");
	make_link(".", "/home/u/project/tools");
	CHECK_STRING(found_for("/home/u/project/tools/bin"), "");
	/* Everybody writes there. */
	make_directory("/shared");
	CHECK_INT(chmod(at("/shared"), 01777), 0);
	make_link(at("/home/u/project"), "/shared/link");
	CHECK_STRING(found_for("/shared/link/conf/bin"), "");
	/* A tool's own tree is left by no link. */
	make_directory("/home/u/.nvm/versions");
	make_link("../../.ssh", "/home/u/.nvm/versions/bin");
	CHECK_STRING(found_for("/home/u/.nvm/versions/bin"), "");
	make_link("../..", "/home/u/.nvm/versions/up");
	CHECK_STRING(found_for("/home/u/.nvm/versions/up/.ssh"), "");
	make_link("..", "/home/u/.nvm/versions/whole");
	CHECK_STRING(found_for("/home/u/.nvm/versions/whole"), "");
	make_link("loop", "/home/u/project/loop");
	CHECK_STRING(found_for("/home/u/project/loop/bin"), "");
}

static void test_a_link_of_an_installer_shows_one_program(void)
{
	make_file("/home/u/opt/tool/bin", "tool", 0755);
	make_file("/home/u/src/one", "script.sh", 0755);
	make_file("/home/u/src/one", "secret", 0644);
	make_file("/home/u/.local/share/bin", "x", 0755);
	make_file("/home/u/.local/bin", "own", 0755);
	make_link("../../opt/tool/bin/tool", "/home/u/.local/bin/tool");
	make_link("../../src/one/script.sh", "/home/u/.local/bin/script");
	make_link("../../src/one/secret", "/home/u/.local/bin/secret");
	make_link("../../src/one", "/home/u/.local/bin/directory");
	make_link("own", "/home/u/.local/bin/alias");
	make_link("../share/bin/x", "/home/u/.local/bin/x");
	make_link("/usr/bin/env", "/home/u/.local/bin/env");
	make_link("nowhere", "/home/u/.local/bin/dangling");
	{
		const char *found = found_for("/home/u/.local/bin");

		CHECK(strstr(found, "/home/u/.local/bin"));
		CHECK(strstr(found, "/home/u/opt/tool/bin/tool"));
		CHECK(strstr(found, "/home/u/src/one/script.sh"));
		CHECK(strstr(found, "/home/u/.local/share/bin/x"));
		CHECK(!strstr(found, "secret"));
		CHECK_INT(strlen(found),
			  strlen("/home/u/.local/bin /home/u/opt/tool/bin/tool /home/u/src/one/script.sh "
				 "/home/u/.local/share/bin/x"));
	}
}

static void test_a_program_of_a_tools_own_tree_comes_with_its_directory(void)
{
	make_file("/home/u/.local/share/pypoetry/venv/bin", "poetry", 0755);
	make_file("/home/u/.nvm/versions/v20/bin", "node", 0755);
	make_link("v20", "/home/u/.nvm/versions/default");
	make_link("../share/pypoetry/venv/bin/poetry", "/home/u/.local/bin/poetry");
	make_link("../../.nvm/versions/default/bin/node", "/home/u/.local/bin/node");
	CHECK(strstr(found_for("/home/u/.local/bin"), "/home/u/.local/share/pypoetry/venv"));
	CHECK(!strstr(found_for("/home/u/.local/bin"), "/home/u/.local/share/pypoetry/venv/bin"));
	CHECK(strstr(found_for("/home/u/.local/bin"), "/home/u/.nvm/versions/v20 "));
	CHECK(strstr(found_for("/home/u/.local/bin"), "/home/u/.nvm/versions/default"));
	unlink(at("/home/u/.local/bin/poetry"));
	unlink(at("/home/u/.local/bin/node"));
}

/* ~/.local/bin/cli is the caller's link; what it leads to is in a project, where a command replaces it. */
static void test_a_program_in_a_project_is_shown_only_as_a_file(void)
{
	static const char *const planted[] = {"../.ssh", "../.ssh/id", "../secret/bin/run", "bin", ".", "real"};

	make_file("/home/u/.ssh", "id", 0755);
	make_file("/home/u/secret/bin", "run", 0755);
	make_file("/home/u/proj/bin", "run", 0755);
	make_file("/home/u/proj", "real", 0755);
	make_link("../../proj/cli", "/home/u/.local/bin/cli");
	for (size_t i = 0; i < ARRAY_LEN(planted); i++) {
		make_link(planted[i], "/home/u/proj/cli");
		CHECK(!strstr(found_for("/home/u/.local/bin"), "/home/u/proj"));
		CHECK(!strstr(found_for("/home/u/.local/bin"), "/home/u/.ssh"));
		CHECK(!strstr(found_for("/home/u/.local/bin"), "/home/u/secret"));
	}
	/* The same with a directory on the way. */
	make_link("../../proj/tools/bin/run", "/home/u/.local/bin/cli");
	make_link("../secret", "/home/u/proj/tools");
	CHECK(!strstr(found_for("/home/u/.local/bin"), "/home/u/secret"));
	unlink(at("/home/u/proj/tools"));
	make_file("/home/u/proj/tools/bin", "run", 0755);
	CHECK(strstr(found_for("/home/u/.local/bin"), "/home/u/proj/tools/bin/run"));
	unlink(at("/home/u/.local/bin/cli"));
}

static const struct test tests[] = {
	TEST(test_known_directories_come_with_what_they_need),
	TEST(test_unknown_directories_come_with_their_root),
	TEST(test_links_of_home_and_of_tools_count),
	TEST(test_links_that_lead_out_do_not_count),
	TEST(test_a_link_of_an_installer_shows_one_program),
	TEST(test_a_program_of_a_tools_own_tree_comes_with_its_directory),
	TEST(test_a_program_in_a_project_is_shown_only_as_a_file),
};

int main(void)
{
	return scratch_main(tests, ARRAY_LEN(tests), NULL);
}
