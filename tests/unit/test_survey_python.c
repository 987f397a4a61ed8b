/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_survey_python.c - which virtual environments and Python installations are shown, and which names of them
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

static void write_file(const char *name, const char *text)
{
	int fd = open(at(name), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);

	CHECK(fd >= 0);
	CHECK_INT(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void make_installation(const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/bin", name);
	make_directory(path);
	snprintf(path, sizeof(path), "%s/bin/python3.12", name);
	write_file(path, "");
	CHECK_INT(chmod(at(path), 0755), 0);
	snprintf(path, sizeof(path), "%s/bin/python3", name);
	unlink(at(path));
	CHECK_INT(symlink("python3.12", at(path)), 0);
	snprintf(path, sizeof(path), "%s/lib/python3.12", name);
	make_directory(path);
	snprintf(path, sizeof(path), "%s/lib/python3.12/os.py", name);
	write_file(path, "");
	snprintf(path, sizeof(path), "%s/secret", name);
	write_file(path, "");
}

static void make_environment(const char *name, const char *configuration)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/bin", name);
	make_directory(path);
	snprintf(path, sizeof(path), "%s/lib/python3.12", name);
	make_directory(path);
	snprintf(path, sizeof(path), "%s/pyvenv.cfg", name);
	write_file(path, configuration);
}

/* What is shown for a VIRTUAL_ENV, or for prefixes, without the path of the tree; then what is not, with the reason. */
static const char *found_for(const char *virtual_env, const char *prefix)
{
	static char found[4096];
	char variable[PATH_MAX * 3], named[PATH_MAX * 2], *environment[] = {variable, NULL},
							  *prefixes[] = {named, NULL};
	const struct policy policy = {0};
	struct host host = {.real_home = strdup(at("/home/u")), .environment = environment, .uid = getuid()};

	snprintf(variable, sizeof(variable), "%s=%s", virtual_env ? "VIRTUAL_ENV" : "OTHER",
		 virtual_env ? at(virtual_env) : "");
	if (prefix)
		snprintf(named, sizeof(named), "%s", at(prefix));
	host.prefixes = prefix ? prefixes : NULL;
	CHECK_INT(survey_find_toolchains(&host, &policy), 0);
	found[0] = '\0';
	for (size_t i = 0; i < host.toolchains.count; i++) {
		size_t len = strlen(found);

		snprintf(found + len, sizeof(found) - len, "%s%s", len ? " " : "",
			 host.toolchains.items[i].path + strlen(top));
	}
	for (size_t i = 0; i < host.unshown.count; i++) {
		size_t len = strlen(found);

		snprintf(found + len, sizeof(found) - len, "%s!%s", len ? " " : "", host.unshown.items[i].why);
	}
	host.environment = host.prefixes = NULL;
	survey_done(&host);
	return found;
}

#define SHOWN "/srv/env/bin /srv/env/lib /srv/env/pyvenv.cfg"

static void test_the_line_home_is_read_as_python_reads_it(void)
{
	static const struct {
		const char *format, *found;
	} rows[] = {
		{"home = %s/bin\n", " /srv/py/bin /srv/py/lib"},
		{"home=%s/bin", " /srv/py/bin /srv/py/lib"},
		{"x = 1\r\n\t HOME \t=\t %s/bin \r\n", " /srv/py/bin /srv/py/lib"},
		{"home = /usr/bin\nhome = %s/bin\n", " !it is a system directory"},
		{"homes = %s/bin\n", ""},
		{"# home: %s/bin\n", ""},
		{"home = \"%s/bin\"\n", ""},
		{"home = %s/bin/\n", ""},
		{"home = %s\n", " !its pyvenv.cfg names no directory 'bin'"},
		{"home = %s/lib/../bin\n", ""},
		{"home = %s/nowhere/bin\n", ""},
		{"home = bin\nhome = %s/bin\n", ""},
		{"", ""},
	};
	char configuration[PATH_MAX * 2], expected[256];

	make_installation("/srv/py");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		snprintf(configuration, sizeof(configuration), rows[i].format, at("/srv/py"));
		snprintf(expected, sizeof(expected), "%s%s", SHOWN, rows[i].found);
		make_environment("/srv/env", configuration);
		CHECK_STRING(found_for("/srv/env", NULL), expected);
	}
}

static void test_an_environment_must_have_all_its_parts(void)
{
	make_environment("/srv/env", "");
	CHECK_STRING(found_for("/srv/env", NULL), SHOWN);
	CHECK_INT(rename(at("/srv/env/bin"), at("/srv/env/bim")), 0);
	CHECK_STRING(found_for("/srv/env", NULL), "");
	CHECK_INT(rename(at("/srv/env/bim"), at("/srv/env/bin")), 0);
	CHECK_INT(chmod(at("/srv/env"), 0777), 0);
	CHECK_STRING(found_for("/srv/env", NULL), "!another user owns it or can change it");
	CHECK_INT(chmod(at("/srv/env"), 0755), 0);
	CHECK_INT(unlink(at("/srv/env/pyvenv.cfg")), 0);
	CHECK_STRING(found_for("/srv/env", NULL), "");
}

static void test_an_installation_must_have_all_its_parts(void)
{
	static const char *const libraries[] = {"python3.13t", "pypy3.10", "python3.12"};
	static const char *const programs[] = {"/usr/bin/env", "../lib/python3.12/os.py", "nowhere", "python3", "."};
	char previous[PATH_MAX] = "/srv/py/lib/python3.12", next[PATH_MAX];

	make_installation("/srv/py");
	for (size_t i = 0; i < ARRAY_LEN(libraries); i++) {
		snprintf(next, sizeof(next), "/srv/py/lib/%s", libraries[i]);
		CHECK_INT(rename(at(previous), at(next)), 0);
		CHECK_STRING(found_for(NULL, "/srv/py"), "/srv/py/bin /srv/py/lib");
		memcpy(previous, next, sizeof(next));
	}
	CHECK_INT(rename(at("/srv/py/lib/python3.12"), at("/srv/py/lib/python2.7")), 0);
	CHECK_STRING(found_for(NULL, "/srv/py"), "");
	CHECK_INT(rename(at("/srv/py/lib/python2.7"), at("/srv/py/lib/python3.12")), 0);
	CHECK_INT(chmod(at("/srv/py/lib/python3.12/os.py"), 0755), 0);
	/* `make altinstall` makes no python3. */
	CHECK_INT(unlink(at("/srv/py/bin/python3")), 0);
	CHECK_STRING(found_for(NULL, "/srv/py"), "/srv/py/bin /srv/py/lib");
	CHECK_INT(rename(at("/srv/py/bin/python3.12"), at("/srv/py/bin/other")), 0);
	CHECK_STRING(found_for(NULL, "/srv/py"), "");
	CHECK_INT(symlink("other", at("/srv/py/bin/python3")), 0);
	CHECK_STRING(found_for(NULL, "/srv/py"), "/srv/py/bin /srv/py/lib");
	for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
		CHECK_INT(unlink(at("/srv/py/bin/python3")), 0);
		CHECK_INT(symlink(programs[i], at("/srv/py/bin/python3")), 0);
		CHECK_STRING(found_for(NULL, "/srv/py"), "");
	}
	CHECK_INT(unlink(at("/srv/py/bin/python3")), 0);
	CHECK_INT(rename(at("/srv/py/bin/other"), at("/srv/py/bin/python3.12")), 0);
	CHECK_INT(symlink("python3.12", at("/srv/py/bin/python3")), 0);
	CHECK_STRING(found_for(NULL, "/srv/py"), "/srv/py/bin /srv/py/lib");
	CHECK_INT(chmod(at("/srv/py/bin/python3.12"), 0644), 0);
	CHECK_STRING(found_for(NULL, "/srv/py"), "");
	CHECK_INT(chmod(at("/srv/py/bin/python3.12"), 0755), 0);
}

/* No tool makes one from another: `home` of one that was written by somebody does not show a second. */
static void test_an_environment_is_no_installation(void)
{
	char configuration[PATH_MAX * 2];

	make_installation("/srv/other");
	write_file("/srv/other/pyvenv.cfg", "");
	snprintf(configuration, sizeof(configuration), "home = %s/bin\n", at("/srv/other"));
	make_environment("/srv/env", configuration);
	CHECK_STRING(found_for("/srv/env", NULL), SHOWN " !its pyvenv.cfg names no installation of Python");
}

static void test_conda_has_names_of_its_own(void)
{
	make_directory("/srv/conda/conda-meta");
	make_directory("/srv/conda/etc");
	make_directory("/srv/conda/pkgs");
	make_directory("/srv/conda/ssl");
	CHECK_STRING(found_for("/srv/conda", NULL), "");
	make_directory("/srv/conda/bin");
	CHECK_STRING(found_for("/srv/conda", NULL),
		     "/srv/conda/bin /srv/conda/conda-meta /srv/conda/etc /srv/conda/ssl");
}

/* The caller's own interpreter: an installation will do. VIRTUAL_ENV names environments. */
static void test_prefixes_may_be_installations(void)
{
	char configuration[PATH_MAX * 2];

	make_installation("/srv/py");
	make_environment("/srv/env", "");
	CHECK_STRING(found_for(NULL, "/srv/py"), "/srv/py/bin /srv/py/lib");
	CHECK_STRING(found_for("/srv/py", NULL), "");
	CHECK_STRING(found_for(NULL, "/srv/env"), SHOWN);
	CHECK_STRING(found_for(NULL, "/srv"), "");
	CHECK_STRING(found_for(NULL, "/srv/nowhere"), "");
	CHECK_STRING(found_for(NULL, "/srv/./py"), "");
	/* Whoever can write it: the caller runs it. */
	CHECK_INT(chmod(at("/srv/py"), 0777), 0);
	CHECK_INT(chmod(at("/srv/py/lib"), 0777), 0);
	CHECK_STRING(found_for(NULL, "/srv/py"), "/srv/py/bin /srv/py/lib");
	CHECK_INT(chmod(at("/srv/py"), 0755), 0);
	CHECK_INT(chmod(at("/srv/py/lib"), 0755), 0);
	/* What an environment's configuration says is not asked: the interpreter names its installation itself. */
	snprintf(configuration, sizeof(configuration), "home = %s/bin\n", at("/srv/py"));
	make_environment("/srv/env", configuration);
	CHECK_STRING(found_for(NULL, "/srv/env"), SHOWN);
	CHECK_STRING(found_for("/srv/env", NULL), SHOWN " /srv/py/bin /srv/py/lib");
}

static void test_no_prefix_is_a_home_or_a_collection(void)
{
	static const struct {
		const char *path, *why;
	} rows[] = {
		{"/home/u", "!it is a home directory"},
		{"/home", "!it contains a home directory"},
		{"", "!it contains a home directory"},
		{"/home/u/.local", "!it holds data of other programs"},
		{"/home/u/.local/share", "!it holds data of other programs"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		make_environment(rows[i].path, "");
		CHECK_STRING(found_for(rows[i].path, NULL), rows[i].why);
		CHECK_STRING(found_for(NULL, rows[i].path), rows[i].why);
	}
}

static void test_links_on_the_way_are_the_callers_own(void)
{
	make_environment("/srv/env", "");
	CHECK_INT(symlink("env", at("/srv/current")), 0);
	CHECK_STRING(found_for("/srv/current", NULL), SHOWN " /srv/current");
	CHECK_INT(chmod(at("/srv"), 0777), 0);
	CHECK_STRING(found_for("/srv/current", NULL),
		     "!its path leads through a symbolic link that another user can change");
	CHECK_INT(chmod(at("/srv"), 01777), 0);
	CHECK_STRING(found_for("/srv/current", NULL), SHOWN " /srv/current");
	CHECK_INT(chmod(at("/srv"), 0755), 0);
	CHECK_INT(symlink("dangling", at("/srv/dangling")), 0);
	CHECK_STRING(found_for("/srv/dangling", NULL), "");
}

static const struct test tests[] = {
	TEST(test_the_line_home_is_read_as_python_reads_it),
	TEST(test_an_environment_must_have_all_its_parts),
	TEST(test_an_installation_must_have_all_its_parts),
	TEST(test_an_environment_is_no_installation),
	TEST(test_conda_has_names_of_its_own),
	TEST(test_prefixes_may_be_installations),
	TEST(test_no_prefix_is_a_home_or_a_collection),
	TEST(test_links_on_the_way_are_the_callers_own),
};

int main(void)
{
	return scratch_main(tests, ARRAY_LEN(tests), NULL);
}
