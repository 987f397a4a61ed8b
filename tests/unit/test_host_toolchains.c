/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_host_toolchains.c - which parts of a home directory PATH makes visible, and which links count
 */
#include "test.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/host_paths.h"
#include "host/host_toolchains.h"
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
	struct host host = {.real_home = strdup(at("/home/u")), .environment = environment};

	snprintf(variable, sizeof(variable), "PATH=/usr/bin::relative:%s:/nonexistent", at(name));
	CHECK_INT(host_find_toolchains(&host), 0);
	found[0] = '\0';
	for (size_t i = 0; i < host.toolchains.count; i++) {
		size_t len = strlen(found);

		snprintf(found + len, sizeof(found) - len, "%s%s", len ? " " : "",
			 host.toolchains.items[i].path + strlen(top));
	}
	host.environment = NULL;
	host_done(&host);
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

static void test_links_within_the_directory_that_holds_them_count(void)
{
	make_directory("/home/u/.sdkman/candidates/java/21/bin");
	make_link("21", "/home/u/.sdkman/candidates/java/current");
	CHECK_STRING(found_for("/home/u/.sdkman/candidates/java/current/bin"), "/home/u/.sdkman/candidates/java/21");
	/* home itself is nobody's workdir, nor is what holds it */
	make_directory("/home/u/big/disk/tools/bin");
	make_link("big/disk/tools", "/home/u/tools-link");
	CHECK_STRING(found_for("/home/u/tools-link/bin"), "/home/u/big/disk/tools");
	make_link("home", "/homes");
	CHECK_STRING(found_for("/homes/u/tools-link/bin"), "/home/u/big/disk/tools");
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
	make_link("loop", "/home/u/project/loop");
	CHECK_STRING(found_for("/home/u/project/loop/bin"), "");
}

static void test_programs_behind_links_of_an_installer_come_with_their_root(void)
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
		CHECK(strstr(found, "/home/u/opt/tool"));
		CHECK(!strstr(found, "/home/u/opt/tool/bin"));
		CHECK(strstr(found, "/home/u/src/one/script.sh"));
		CHECK(strstr(found, "/home/u/.local/share/bin/x"));
		CHECK(!strstr(found, "secret"));
		CHECK_INT(strlen(found), strlen("/home/u/.local/bin /home/u/opt/tool /home/u/src/one/script.sh "
						"/home/u/.local/share/bin/x"));
	}
}

static const struct test tests[] = {
	TEST(test_known_directories_come_with_what_they_need),
	TEST(test_unknown_directories_come_with_their_root),
	TEST(test_links_within_the_directory_that_holds_them_count),
	TEST(test_links_that_lead_out_do_not_count),
	TEST(test_programs_behind_links_of_an_installer_come_with_their_root),
};

int main(void)
{
	return scratch_main(tests, ARRAY_LEN(tests), NULL);
}
