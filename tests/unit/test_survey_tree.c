/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_survey_tree.c - directories that are listed once, and again only when they have changed
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "survey/survey_paths.h"
#include "survey/survey_risky.h"
#include "survey/survey_tree.h"
#include "survey/survey_trees.h"
#include "scratch_tree.h"

/* Longer than a tick of any file system's clock, and than a directory counts as fresh. */
static void pause_for_clock(void)
{
	usleep(40000);
}

static void make_file(const char *name)
{
	int fd = open(at(name), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

	CHECK(fd >= 0);
	close(fd);
}

static struct tree *new_tree(const char *name)
{
	struct host_path path = {0};
	struct tree *tree;

	CHECK_INT(survey_look(&path, at(name)), 0);
	tree = survey_tree_new(&path, false);
	CHECK(tree);
	survey_path_done(&path);
	return tree;
}

/* A search: which directories were listed, and which names are in them. */
struct look {
	struct string_list listed, names;
	size_t skimmed;
	size_t visited;
	int64_t old_ns; /* 0: everything is older than the run */
};

static void note_name(void *context, const struct tree_entry *entry)
{
	struct look *look = context;

	CHECK_INT(string_list_add(&look->names, entry->name), 0);
}

static void look_at(struct tree *tree, struct look *look, bool may_skim)
{
	struct tree_check check = {look->old_ns ? look->old_ns : INT64_MAX, may_skim, note_name, look};

	string_list_done(&look->listed);
	string_list_done(&look->names);
	look->skimmed = look->visited = 0;
	survey_tree_take_events(tree);
	for (size_t i = 0; (i = survey_tree_next_to_look(tree, i, check.old_ns)) < tree->nodes.count; i++) {
		enum tree_news news = survey_tree_check(tree, i, &check);

		if (news == TREE_LISTED && !(tree->nodes.items[i].flags & TREE_IS_GONE))
			CHECK_INT(string_list_add(&look->listed, tree->nodes.items[i].path), 0);
		look->skimmed += news == TREE_SKIMMED;
		look->visited++;
		survey_tree_looked(tree, i, false);
	}
	survey_tree_end_search(tree);
}

static void look_done(struct look *look)
{
	string_list_done(&look->listed);
	string_list_done(&look->names);
}

static bool has(const struct string_list *list, const char *name)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->items[i], name))
			return true;
	return false;
}

static struct tree_node *node_of(struct tree *tree, const char *path)
{
	for (size_t i = 0; i < tree->nodes.count; i++)
		if (!strcmp(tree->nodes.items[i].path, path) && !(tree->nodes.items[i].flags & TREE_IS_GONE))
			return &tree->nodes.items[i];
	return NULL;
}

/* A tree of three directories that is listed and old; the kernel may watch it. */
static struct tree *grown(const char *name, bool is_watched)
{
	char path[64];
	static const char *const names[] = {"a/b", "c"};
	struct tree *tree;

	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", name, names[i]);
		make_directory(path);
	}
	pause_for_clock();
	tree = new_tree(name);
	if (is_watched)
		survey_tree_watch(tree, 0);
	while (survey_tree_grow(tree, 1))
		;
	CHECK_INT(tree->nodes.count, 4);
	return tree;
}

static void test_only_changed_directories_are_listed_again(void)
{
	for (int is_watched = 0; is_watched < 2; is_watched++) {
		const char *name = is_watched ? "/watched" : "/asked";
		struct tree *tree = grown(name, is_watched);
		struct look look = {0};
		char path[64];

		look_at(tree, &look, false);
		CHECK_INT(look.listed.count, 0);
		snprintf(path, sizeof(path), "%s/a/b/new", name);
		make_file(path);
		look_at(tree, &look, false);
		CHECK_INT(look.listed.count, 1);
		CHECK(has(&look.listed, "a/b") && has(&look.names, "new"));
		look_done(&look);
		survey_tree_free(tree);
	}
}

static void test_a_search_visits_no_directory_that_the_kernel_watches_and_that_is_as_it_was(void)
{
	struct tree *tree = grown("/quiet", true);
	struct look look = {0};

	if (tree->watch_fd < 0) {
		survey_tree_free(tree);
		return;
	}
	look_at(tree, &look, false);
	CHECK_INT(look.visited, 4);
	look_at(tree, &look, false);
	CHECK_INT(look.visited, 0);
	/* What changed is visited, and what is new. */
	make_directory("/quiet/a/b/d");
	make_file("/quiet/a/b/new");
	look_at(tree, &look, false);
	CHECK_INT(look.visited, 2);
	CHECK(has(&look.listed, "a/b") && has(&look.listed, "a/b/d") && has(&look.names, "new"));
	/* Below a directory that went everything went. */
	CHECK_INT(rename(at("/quiet/a"), at("/quiet-a")), 0);
	make_file("/quiet/x");
	look_at(tree, &look, false);
	CHECK(!node_of(tree, "a") && !node_of(tree, "a/b") && !node_of(tree, "a/b/d"));
	CHECK_INT(tree->gone, 3);
	/* A run that began before a directory was listed sees what is in it. */
	look_at(tree, &look, false);
	look.old_ns = tree->newest_ns;
	make_file("/quiet/c/new");
	look_at(tree, &look, false);
	CHECK(has(&look.names, "new") && look.visited == tree->nodes.count);
	look_done(&look);
	survey_tree_free(tree);
}

static void test_moved_and_replaced_directories_are_listed_where_they_are(void)
{
	for (int is_watched = 0; is_watched < 2; is_watched++) {
		const char *name = is_watched ? "/moved-watched" : "/moved";
		struct tree *tree = grown(name, is_watched);
		struct look look = {0};
		char from[2][64], to[2][64];

		snprintf(from[0], sizeof(from[0]), "%s/a", name);
		snprintf(to[0], sizeof(to[0]), "%s/c/a", name);
		CHECK_INT(rename(at(from[0]), at(to[0])), 0);
		look_at(tree, &look, false);
		CHECK(has(&look.listed, "c") && has(&look.listed, "c/a") && has(&look.listed, "c/a/b"));
		/* Under its new name it is known like any other, and under its old one no longer. */
		pause_for_clock();
		look_at(tree, &look, false);
		CHECK(!node_of(tree, "a") && !node_of(tree, "a/b"));
		snprintf(from[1], sizeof(from[1]), "%s/c/a/b/new", name);
		make_file(from[1]);
		look_at(tree, &look, false);
		CHECK(has(&look.listed, "c/a/b") && has(&look.names, "new"));
		/* Another directory of the same name. */
		CHECK_INT(rename(at(to[0]), at(from[0])), 0);
		make_directory(to[0]);
		snprintf(to[1], sizeof(to[1]), "%s/c/a/other", name);
		make_file(to[1]);
		look_at(tree, &look, false);
		CHECK(has(&look.names, "other") && has(&look.names, "new") && node_of(tree, "a/b"));
		look_done(&look);
		survey_tree_free(tree);
	}
}

static void test_a_change_within_the_tick_of_its_listing_is_seen(void)
{
	struct tree *tree;
	struct look look = {0};
	struct stat status;

	make_directory("/tick/a");
	tree = new_tree("/tick");
	survey_tree_grow(tree, SIZE_MAX);
	make_file("/tick/a/new");
	/* As a slow clock would leave it. */
	CHECK_INT(stat(at("/tick/a"), &status), 0);
	node_of(tree, "a")->changed_ns = (int64_t)status.st_ctim.tv_sec * 1000000000 + status.st_ctim.tv_nsec;
	look_at(tree, &look, false);
	CHECK(has(&look.listed, "a") && has(&look.names, "new"));
	look_done(&look);
	survey_tree_free(tree);
}

/* What another search has listed since a run began is still news for that run. */
static void test_two_searches_see_the_same_change(void)
{
	struct tree *tree = grown("/two", true);
	struct look look = {0};
	struct tree_check check = {.each = note_name, .context = &look};
	size_t index;

	check.old_ns = node_of(tree, "c")->changed_ns + 1;
	make_file("/two/c/new");
	look_at(tree, &look, false);
	CHECK(has(&look.names, "new"));
	string_list_clear(&look.names);
	index = (size_t)(node_of(tree, "c") - tree->nodes.items);
	CHECK_INT(survey_tree_check(tree, index, &check), TREE_LISTED);
	CHECK(has(&look.names, "new"));
	look_done(&look);
	survey_tree_free(tree);
}

static void test_events_that_the_kernel_drops_cost_time_and_nothing_else(void)
{
	struct tree *tree = grown("/overflow", true);
	struct look look = {0};
	FILE *file = fopen("/proc/sys/fs/inotify/max_queued_events", "re");
	unsigned long most = 0;

	CHECK(file && fscanf(file, "%lu", &most) == 1);
	if (file)
		fclose(file);
	if (tree->watch_fd < 0 || most > 100000) {
		survey_tree_free(tree);
		return;
	}
	for (unsigned long i = 0; i <= most; i++) {
		char name[64];

		snprintf(name, sizeof(name), "/overflow/c/%lu", i);
		make_file(name);
	}
	make_file("/overflow/a/b/new");
	look_at(tree, &look, false);
	CHECK(has(&look.names, "new"));
	look_done(&look);
	survey_tree_free(tree);
}

static void test_directories_that_get_no_watch_are_asked(void)
{
	struct tree *tree;
	struct look look = {0};

	make_directory("/few/a/b");
	make_directory("/few/c");
	pause_for_clock();
	tree = new_tree("/few");
	survey_tree_watch(tree, 0);
	tree->watch_max = 1;
	survey_tree_grow(tree, SIZE_MAX);
	CHECK(tree->watch_count <= 1);
	look_at(tree, &look, false);
	CHECK_INT(look.listed.count, 0);
	make_file("/few/a/b/new");
	make_file("/few/new");
	look_at(tree, &look, false);
	CHECK(has(&look.listed, "a/b") && has(&look.listed, ""));
	look_done(&look);
	survey_tree_free(tree);
}

static void test_a_huge_directory_is_left_out_and_told(void)
{
	struct tree *tree;
	struct look look = {0};

	make_directory("/huge/a");
	for (unsigned i = 0; i <= TREE_ENTRIES_MAX; i++) {
		char name[64];

		snprintf(name, sizeof(name), "/huge/a/%u", i);
		make_file(name);
	}
	make_directory("/huge/b");
	tree = new_tree("/huge");
	survey_tree_grow(tree, SIZE_MAX);
	CHECK(node_of(tree, "a")->flags & TREE_IS_LEFT_OUT);
	CHECK(!(node_of(tree, "b")->flags & TREE_IS_LEFT_OUT));
	look_at(tree, &look, true);
	CHECK(node_of(tree, "a")->flags & TREE_IS_LEFT_OUT);
	look_done(&look);
	survey_tree_free(tree);
}

static void test_a_closed_directory_is_left_out_until_it_is_open(void)
{
	static const uid_t nobody = 65534;
	uid_t own = geteuid();
	struct tree *tree;
	struct look look = {0};

	make_directory("/closed/a");
	make_file("/closed/a/new");
	CHECK_INT(chmod(top, 0755), 0);
	CHECK_INT(chmod(at("/closed/a"), 0), 0);
	if (own == 0)
		CHECK(chown(at("/closed/a"), nobody, nobody) == 0 && seteuid(nobody) == 0);
	tree = new_tree("/closed");
	survey_tree_grow(tree, SIZE_MAX);
	CHECK(node_of(tree, "a")->flags & TREE_IS_LEFT_OUT);
	look_at(tree, &look, false);
	CHECK(node_of(tree, "a")->flags & TREE_IS_LEFT_OUT && !has(&look.names, "new"));
	CHECK_INT(chmod(at("/closed/a"), 0755), 0);
	look_at(tree, &look, false);
	CHECK(has(&look.names, "new") && !(node_of(tree, "a")->flags & TREE_IS_LEFT_OUT));
	if (own == 0)
		CHECK_INT(seteuid(own), 0);
	look_done(&look);
	survey_tree_free(tree);
}

static void test_old_leaves_are_skimmed_and_listed_when_they_change(void)
{
	struct host_moment moment;
	struct tree *tree;
	struct look look = {0};

	make_directory("/skim/a/b");
	make_directory("/skim/c");
	make_file("/skim/c/old");
	pause_for_clock();
	tree = new_tree("/skim");
	if (!tree->counts_directories) {
		survey_tree_free(tree);
		return;
	}
	look_at(tree, &look, true);
	CHECK_INT(look.skimmed, 2);
	CHECK(has(&look.listed, "a") && !has(&look.names, "old"));
	survey_moment_now(&moment);
	look.old_ns = moment.earliest_ns;
	pause_for_clock();
	make_file("/skim/c/new");
	look_at(tree, &look, true);
	CHECK(has(&look.listed, "c") && has(&look.names, "new"));
	CHECK_INT(look.skimmed, 1);
	/* A tree that goes on growing knows them all. */
	while (survey_tree_grow(tree, 1))
		;
	CHECK(node_of(tree, "a/b")->flags & TREE_IS_LISTED);
	look_done(&look);
	survey_tree_free(tree);
}

static void test_links_are_not_followed(void)
{
	struct tree *tree = grown("/links", false);
	struct look look = {0};

	make_directory("/outside/b");
	make_file("/outside/b/secret");
	CHECK_INT(rename(at("/links/a"), at("/outside/a")), 0);
	CHECK_INT(symlink("../outside", at("/links/a")), 0);
	look_at(tree, &look, true);
	CHECK(!has(&look.names, "secret") && !node_of(tree, "a/b"));
	look_done(&look);
	survey_tree_free(tree);
}

static void test_directories_that_tools_fill_are_not_entered(void)
{
	struct tree *tree;

	make_directory("/filled/node_modules/x/y");
	make_directory("/filled/node_modules/.git/hooks");
	make_file("/filled/node_modules/AGENTS.md");
	tree = new_tree("/filled");
	survey_tree_grow(tree, SIZE_MAX);
	CHECK(node_of(tree, "node_modules") && node_of(tree, "node_modules/.git"));
	CHECK(!node_of(tree, "node_modules/x"));
	CHECK(has(&node_of(tree, "node_modules")->names, "AGENTS.md"));
	CHECK(survey_tree_is_filled("__pycache__") && !survey_tree_is_filled("src"));
	survey_tree_free(tree);
}

static void test_trees_are_kept_for_runs_to_come(void)
{
	struct tree_list kept = {0};

	for (int i = 0; i < TREES_KEPT_MAX + 2; i++) {
		struct host host = {.workdir.is_searched = true};
		struct tree_list first = {0}, second = {0};
		char name[32];

		snprintf(name, sizeof(name), "/kept%d", i);
		make_directory(name);
		CHECK_INT(survey_look(&host.workdir.path, at(name)), 0);
		survey_trees_open(&first, &host, &kept);
		CHECK_INT(first.items[0]->watch_fd, -1);
		survey_trees_done(&first);
		survey_trees_open(&first, &host, &kept);
		survey_trees_open(&second, &host, &kept);
		CHECK(first.count == 1 && second.count == 1 && first.items[0] == second.items[0]);
		CHECK(first.items[0]->watch_fd < 0 || i < TREES_WATCHED_MAX);
		survey_trees_done(&first);
		CHECK(!survey_trees_grow(&second, SIZE_MAX) && second.items[0]->nodes.count == 1);
		survey_trees_done(&second);
		survey_path_done(&host.workdir.path);
	}
	CHECK_INT(kept.count, TREES_KEPT_MAX);
	CHECK(strstr(kept.items[0]->path, kept.items[0]->watch_fd >= 0 ? "/kept0" : "/kept2"));
	survey_trees_done(&kept);
}

static const struct test tests[] = {
	TEST(test_only_changed_directories_are_listed_again),
	TEST(test_a_search_visits_no_directory_that_the_kernel_watches_and_that_is_as_it_was),
	TEST(test_moved_and_replaced_directories_are_listed_where_they_are),
	TEST(test_a_change_within_the_tick_of_its_listing_is_seen),
	TEST(test_two_searches_see_the_same_change),
	TEST(test_events_that_the_kernel_drops_cost_time_and_nothing_else),
	TEST(test_directories_that_get_no_watch_are_asked),
	TEST(test_a_huge_directory_is_left_out_and_told),
	TEST(test_a_closed_directory_is_left_out_until_it_is_open),
	TEST(test_old_leaves_are_skimmed_and_listed_when_they_change),
	TEST(test_links_are_not_followed),
	TEST(test_directories_that_tools_fill_are_not_entered),
	TEST(test_trees_are_kept_for_runs_to_come),
};

int main(void)
{
	/* Tens of thousands of files are made fastest in memory. */
	return scratch_main_in(access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", tests, ARRAY_LEN(tests), NULL);
}
