/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_host_notes.c - notes hold as long as another look would find the same, and no longer
 */
#include "scratch_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "host/host.h"
#include "host/host_notes.h"
#include "host/host_paths.h"

static struct host_notes notes;

/* What this test made a moment ago counts as old: it waits for nothing. */
static void begin(void)
{
	host_notes_done(&notes);
	host_notes_take(&notes);
	notes.settled_ns = INT64_MAX;
}

static bool holds(void)
{
	host_notes_take(NULL);
	return host_notes_hold(&notes);
}

static void write_file(const char *name, const char *content)
{
	FILE *file = fopen(at(name), "w");

	CHECK(file && fputs(content, file) >= 0 && fclose(file) == 0);
}

/* Until the file system's clock has gone on: then a change shows. */
static void await_tick(const char *name)
{
	struct stat before, after;

	write_file("/tick", "");
	CHECK(stat(at(name), &before) == 0);
	do {
		usleep(1000);
		write_file("/tick", "x");
		CHECK(stat(at("/tick"), &after) == 0);
	} while (after.st_ctim.tv_sec == before.st_ctim.tv_sec && after.st_ctim.tv_nsec == before.st_ctim.tv_nsec);
}

static void look(const char *name)
{
	struct host_path found = {0};

	CHECK_INT(host_look(&found, at(name)), 0);
	host_path_done(&found);
}

static void look_through(const char *name)
{
	struct host_path found = {0};

	CHECK_INT(host_look_through(&found, at(name)), 0);
	host_path_done(&found);
}

static void test_no_notes_hold_for_nothing(void)
{
	host_notes_done(&notes);
	CHECK(!host_notes_hold(&notes));
	look("/absent"); /* nobody takes any */
	CHECK(!host_notes_hold(&notes));
	CHECK(notes.list.count == 0);
}

static void test_what_is_replaced_shows(void)
{
	make_directory("/directory");
	write_file("/file", "1");
	begin();
	look("/directory");
	look("/file");
	look("/absent");
	CHECK(holds());
	write_file("/directory/new", "in it, nobody looked");
	CHECK(holds());
	CHECK(rename(at("/directory"), at("/moved")) == 0);
	CHECK(!holds());
	make_directory("/directory");
	CHECK(!holds());
	CHECK(remove(at("/directory")) == 0 && rename(at("/moved"), at("/directory")) == 0);
	CHECK(holds());
	make_directory("/absent");
	CHECK(!holds());
	CHECK(rmdir(at("/absent")) == 0);
	CHECK(holds());
	await_tick("/file");
	write_file("/file", "2");
	CHECK(!holds());
}

static void test_a_link_that_is_made_again_shows(void)
{
	CHECK(symlink("directory", at("/link")) == 0);
	begin();
	look("/link");
	CHECK(holds());
	await_tick("/link");
	/* As likely as not under the same number. */
	CHECK(unlink(at("/link")) == 0 && symlink("elsewhere", at("/link")) == 0);
	CHECK(!holds());
}

static void test_the_way_is_noted_too(void)
{
	make_directory("/way/to/it");
	begin();
	look_through("/way/to/it");
	CHECK(holds());
	/* The same object by the same name, but through a link now. */
	CHECK(rename(at("/way/to"), at("/way/other")) == 0 && symlink("other", at("/way/to")) == 0);
	CHECK(!holds());
	begin();
	look_through("/way/to/it");
	CHECK(!holds()); /* links are followed where notes cannot */
}

static void test_absent_ways_are_noted(void)
{
	begin();
	CHECK_INT(host_is_plain(at("/not/there")), -ENOENT);
	CHECK(holds());
	make_directory("/not/there");
	CHECK(!holds());
}

static void test_names_beneath_a_directory(void)
{
	struct host_path_list list = {0};
	const char *absent = NULL;
	char directory[PATH_MAX * 2];
	int fd;

	make_directory("/project/known");
	write_file("/project/known/file", "1");
	snprintf(directory, sizeof(directory), "%s", at("/project"));
	fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	begin();
	CHECK_INT(host_path_list_look_beneath(&list, fd, directory, "known/file"), 1);
	CHECK_INT(host_path_list_look_beneath(&list, fd, directory, "known/none"), 0);
	CHECK(host_is_in_absent(fd, directory, ".tool/a", &absent));
	CHECK(host_is_in_absent(fd, directory, ".tool/b", &absent));
	CHECK(holds());
	write_file("/project/known/none", "1");
	CHECK(!holds());
	CHECK(unlink(at("/project/known/none")) == 0);
	CHECK(holds());
	make_directory("/project/.tool/b");
	CHECK(!holds());
	host_path_list_done(&list);
	close(fd);
}

static void test_content_and_what_a_link_leads_to(void)
{
	write_file("/config", "1");
	make_directory("/listed");
	CHECK(symlink("config", at("/to-config")) == 0);
	begin();
	host_note_content(at("/listed"));
	CHECK(holds());
	await_tick("/listed");
	write_file("/listed/new", "");
	CHECK(!holds());
	begin();
	host_note_followed(at("/to-config"));
	CHECK(holds());
	await_tick("/config");
	write_file("/config", "2");
	CHECK(!holds());
	begin();
	host_note_followed(at("/to-nothing"));
	CHECK(holds());
	write_file("/to-nothing", "");
	CHECK(!holds());
}

static void test_what_is_new_may_change_unseen(void)
{
	write_file("/new", "1");
	host_notes_done(&notes);
	host_notes_take(&notes);
	look("/new");
	CHECK(!holds());
	begin();
	look("/new");
	CHECK(holds());
	begin();
	look("/new");
	host_notes_break_off();
	CHECK(!holds());
}

static void test_each_path_is_noted_once(void)
{
	char name[32];

	begin();
	for (int i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "/none-%d", i % 300);
		look(name);
	}
	CHECK(notes.list.count == 300);
	/* Beyond what there is room to find again, none is lost. */
	for (int i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "/none-%d", i);
		look(name);
	}
	CHECK(notes.list.count >= 2000);
	CHECK(holds());
	write_file("/none-1999", "");
	CHECK(!holds());
	host_notes_done(&notes);
}

static const struct test tests[] = {
	TEST(test_no_notes_hold_for_nothing),
	TEST(test_what_is_replaced_shows),
	TEST(test_a_link_that_is_made_again_shows),
	TEST(test_the_way_is_noted_too),
	TEST(test_absent_ways_are_noted),
	TEST(test_names_beneath_a_directory),
	TEST(test_content_and_what_a_link_leads_to),
	TEST(test_what_is_new_may_change_unseen),
	TEST(test_each_path_is_noted_once),
};

int main(void)
{
	return scratch_main(tests, ARRAY_LEN(tests), NULL);
}
