/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_ledger_group.c - what was refused, in groups: one entry for one path, and a directory for many names in it
 *
 * A command chooses the names, so whatever it chooses: nothing is lost from the counts, no directory is proposed that nobody would be
 * shown by itself, and nothing is freed twice.
 */
#include "imagined_plan.h"
#include "engine/ledger/ledger.h"
#include "helper/ledger_look.h"

#include <stdio.h>
#include <sys/stat.h>

/* Directories end with a slash. */
static const char *const host_files[] = {
	"/",
	"/home/",
	"/home/u/",
	"/home/u/p/",
	"/home/u/data/",
	"/home/u/data/a",
	"/home/u/data/b",
	"/home/u/data/c",
	"/home/u/keys/",
	"/home/u/keys/a",
	"/home/u/keys/b",
	"/home/u/keys/c",
	"/home/u/keys/.npmrc",
	"/home/u/.config/",
	"/home/u/.config/a",
	"/home/u/.config/b",
	"/home/u/.config/c",
	"/home/u/.config/gh/",
	"/home/u/.ssh/",
	"/home/u/.ssh/id",
	"/srv/",
	"/srv/a",
	"/srv/b",
	"/srv/c",
};

static void look(void *owner, const char *path, struct plan_object *out)
{
	size_t len = strlen(path);

	(void)owner;
	*out = (struct plan_object){0};
	for (size_t i = 0; i < ARRAY_LEN(host_files); i++) {
		bool is_directory = host_files[i][strlen(host_files[i]) - 1] == '/';
		size_t own_len = strlen(host_files[i]) - (is_directory && host_files[i][1]);

		if (len == own_len && !strncmp(path, host_files[i], len))
			*out = (struct plan_object){
				.mode = is_directory ? S_IFDIR | 0755 : S_IFREG | 0644, .uid = 1000, .gid = 1000};
	}
}

struct case_data {
	struct imagined_plan made;
	struct plan_looker looker;
	struct denial_list denials;
};

static void begin(struct case_data *data)
{
	struct plan_request request = {.argv = NULL};

	*data = (struct case_data){
		.looker = {.look = look, .uid = 1000, .gid = 1000, .home = "/home/u", .was_refused = true}};
	imagine(&data->made, NULL, NULL, NULL, "true");
	request.argv = &data->made.argv;
	CHECK_INT(plan_compile(&data->made.plan, &data->made.policy, &data->made.host, &request, &data->made.error), 0);
}

static void end(struct case_data *data)
{
	ledger_denials_done(&data->denials);
	imagined_plan_done(&data->made);
}

/* As the looking process makes them. */
static void refuse(struct case_data *data, const char *path, enum plan_access access)
{
	AUTO(plan_explanation_done) struct plan_explanation explanation = {0};
	struct denial *added = list_add(&data->denials);

	CHECK(added);
	plan_explain_path(&data->made.plan, &data->looker, path, access, &explanation);
	*added = (struct denial){.kind = DENIAL_FILE, .count = 1, .last_ns = data->denials.count};
	added->path = helper_ledger_path(
		access, (const char *const[]){path, text_string(&explanation.why), text_string(&explanation.flag),
					      text_string(&explanation.policy), text_string(&explanation.warning)});
}

static void group(struct case_data *data)
{
	helper_ledger_group(&data->made.plan, &data->looker, &data->denials);
}

static void check(const struct case_data *data, size_t number, const char *path, const char *flag, uint64_t count)
{
	CHECK(number < data->denials.count);
	CHECK_STRING(data->denials.items[number].path->path, path);
	CHECK_STRING(data->denials.items[number].path->flag, flag);
	CHECK_INT(data->denials.items[number].count, count);
}

static void test_three_names_are_their_directory(void)
{
	struct case_data data;

	begin(&data);
	refuse(&data, "/home/u/data/a", PLAN_READ);
	refuse(&data, "/srv/a", PLAN_READ);
	refuse(&data, "/home/u/data/b", PLAN_READ);
	refuse(&data, "/srv/b", PLAN_READ);
	refuse(&data, "/home/u/data/c", PLAN_READ);
	group(&data);
	CHECK_INT(data.denials.count, 3);
	check(&data, 0, "/home/u/data", "--ro /home/u/data", 3);
	CHECK_INT(data.denials.items[0].last_ns, 5);
	CHECK(strstr(data.denials.items[0].path->why, "3 names in it"));
	check(&data, 1, "/srv/a", "--ro /srv/a", 1);
	check(&data, 2, "/srv/b", "--ro /srv/b", 1);
	end(&data);
}

static void test_another_access_is_another_group(void)
{
	struct case_data data;

	begin(&data);
	refuse(&data, "/home/u/data/a", PLAN_READ);
	refuse(&data, "/home/u/data/b", PLAN_READ);
	refuse(&data, "/home/u/data/c", PLAN_WRITE);
	group(&data);
	CHECK_INT(data.denials.count, 3);
	end(&data);
}

/* What opens for writing and then for reading needs to write, in whichever order it was seen. */
static void test_one_path_is_one_entry(void)
{
	struct case_data data;

	begin(&data);
	refuse(&data, "/home/u/data/a", PLAN_WRITE);
	refuse(&data, "/home/u/data/b", PLAN_READ);
	refuse(&data, "/home/u/data/a", PLAN_READ);
	refuse(&data, "/home/u/data/b", PLAN_WRITE);
	refuse(&data, "/home/u/data/a", PLAN_READ);
	group(&data);
	CHECK_INT(data.denials.count, 2);
	check(&data, 0, "/home/u/data/a", "--rw /home/u/data/a", 3);
	CHECK_INT(data.denials.items[0].last_ns, 5);
	check(&data, 1, "/home/u/data/b", "--rw /home/u/data/b", 2);
	end(&data);
}

/* Reading may be allowed where writing may not be: both are said. */
static void test_writing_that_has_no_cure_stands_for_nothing(void)
{
	struct case_data data;

	begin(&data);
	refuse(&data, "/home/u/data/a", PLAN_READ);
	refuse(&data, "/home/u/data/a", PLAN_WRITE);
	free(data.denials.items[1].path);
	data.denials.items[1].path =
		helper_ledger_path(PLAN_WRITE, (const char *const[]){"/home/u/data/a", "why", "", "", "a warning"});
	group(&data);
	CHECK_INT(data.denials.count, 2);
	end(&data);
}

static void test_no_directory_with_a_secret_in_it(void)
{
	static const char *const directories[] = {"/home/u/keys", "/home/u/.config"};
	struct case_data data;
	char path[64];

	for (size_t i = 0; i < ARRAY_LEN(directories); i++) {
		begin(&data);
		for (const char *name = "abc"; *name; name++) {
			snprintf(path, sizeof(path), "%s/%c", directories[i], *name);
			refuse(&data, path, PLAN_READ);
		}
		group(&data);
		CHECK_INT(data.denials.count, 3);
		end(&data);
	}
}

/* Nobody is shown a whole home, the root of everything, or what is warned of. */
static void test_what_cannot_be_proposed_is_not(void)
{
	static const char *const names[][3] = {{"/home/u/x", "/home/u/y", "/home/u/z"},
					       {"/x", "/y", "/z"},
					       {"/home/u/.ssh/id", "/home/u/.ssh/x", "/home/u/.ssh/y"}};
	struct case_data data;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		begin(&data);
		for (size_t j = 0; j < 3; j++)
			refuse(&data, names[i][j], PLAN_READ);
		group(&data);
		CHECK_INT(data.denials.count, 3);
		for (size_t j = 0; j < 3; j++)
			CHECK_STRING(data.denials.items[j].path->path, names[i][j]);
		end(&data);
	}
}

static void test_what_is_no_file_stays(void)
{
	struct case_data data;
	struct denial *added;

	begin(&data);
	added = list_add(&data.denials);
	*added = (struct denial){.kind = DENIAL_NET, .count = 7, .what = "9.9.9.9", .port = 9};
	group(&data);
	CHECK_INT(data.denials.count, 1);
	CHECK_INT(data.denials.items[0].count, 7);
	end(&data);
	begin(&data);
	group(&data);
	CHECK_INT(data.denials.count, 0);
	end(&data);
}

static const char *hostile_path(size_t seed, char *room, size_t size)
{
	static const char *const beginnings[] = {"/",        "//", "/home/u/data/", "/home/u/.config/", "/srv/",
						 "relative", "",   "/proc/self/fd/"};
	static const char *const ends[] = {"", "/", "a", "b", "..", "\n--rw /", "\x1b[2J", "%s%n"};
	size_t len = (size_t)snprintf(room, size, "%s%s", beginnings[seed % 8], ends[seed / 8 % 8]);

	/* As long as a path can be, and longer than some of what it is put together with. */
	if (seed % 16 == 7) {
		memset(room + len, 'x', size - len - 1);
		room[size - 1] = '\0';
	}
	return room;
}

static void test_whatever_names_are_chosen_nothing_is_lost(void)
{
	static char path[PATH_MAX];
	struct case_data data;
	uint64_t sum = 0;

	begin(&data);
	for (size_t i = 0; i < DENIALS_MAX; i++)
		refuse(&data, hostile_path(i * 7 + i / 64, path, sizeof(path)),
		       (enum plan_access)(i % PLAN_ACCESS_COUNT));
	group(&data);
	for (size_t i = 0; i < data.denials.count; i++) {
		CHECK(data.denials.items[i].path);
		sum += data.denials.items[i].count;
	}
	CHECK_INT(sum, DENIALS_MAX);
	CHECK(data.denials.count < DENIALS_MAX);
	/* What is in groups is in no smaller ones. */
	sum = data.denials.count;
	group(&data);
	CHECK_INT(data.denials.count, sum);
	end(&data);
}

static const struct test tests[] = {
	TEST(test_three_names_are_their_directory),
	TEST(test_another_access_is_another_group),
	TEST(test_one_path_is_one_entry),
	TEST(test_writing_that_has_no_cure_stands_for_nothing),
	TEST(test_no_directory_with_a_secret_in_it),
	TEST(test_what_cannot_be_proposed_is_not),
	TEST(test_what_is_no_file_stays),
	TEST(test_whatever_names_are_chosen_nothing_is_lost),
};

TEST_MAIN(tests)
