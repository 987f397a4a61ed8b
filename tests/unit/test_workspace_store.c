/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_workspace_store.c - stores of workspaces: made, locked, found, frozen, removed
 */
#include "scratch_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "workspace/workspace_store.h"

/* Where nobody reads it. */
static struct error *fresh(void)
{
	static struct error error;

	error = (struct error){0};
	return &error;
}

static struct workspace_home home;
static int workdir_fd;

static void prepare(void)
{
	static char state[PATH_MAX + 32];
	char *environment[] = {state, NULL};
	struct error error = {0};

	make_directory("/project");
	snprintf(state, sizeof(state), "XDG_STATE_HOME=%s/state", top);
	if (workspace_home_open(environment, &home, &error) < 0)
		printf("no home: %s\n", error.message);
	workdir_fd = open(at("/project"), O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int create(const char *name, const struct workspace_meta *base, struct workspace *out)
{
	const struct workspace_request request = {.workdir_fd = workdir_fd,
						  .workdir = at("/project"),
						  .name = name,
						  .has_user_xattrs = geteuid() != 0,
						  .base = base};
	struct error error = {0};
	int rc = workspace_create(&home, &request, out, &error);

	if (rc < 0 && rc != -EEXIST && rc != -EINVAL)
		printf("create: %s\n", error.message);
	return rc;
}

static size_t count_entries(const char *path)
{
	DIR *directory = opendir(path);
	size_t count = 0;

	while (directory && readdir(directory))
		count++;
	if (directory)
		closedir(directory);
	return count > 2 ? count - 2 : 0;
}

static void write_file(int parent, const char *name, const char *text)
{
	int fd = openat(parent, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static void test_ids_can_be_read_aloud(void)
{
	char id[WORKSPACE_ID_SIZE];

	workspace_id_make(0x7f000001, id);
	CHECK_STRING(id, "lusab-babad");
	CHECK(workspace_id_is_valid(id));
	CHECK(!workspace_id_is_valid("lusab-baba"));
	CHECK(!workspace_id_is_valid("lusab_babad"));
	CHECK(!workspace_id_is_valid("../ab-babad"));
	CHECK(!workspace_id_is_valid("lusab-babaa"));
	CHECK(!workspace_name_is_valid(id));
	CHECK(!workspace_name_is_valid("a/b"));
	CHECK(!workspace_name_is_valid(".."));
	CHECK(!workspace_name_is_valid("-f"));
	CHECK(!workspace_name_is_valid(""));
	CHECK(workspace_name_is_valid("fix-1.2_b"));
}

static void test_a_store_is_its_owners_only_and_the_upper_looks_like_the_workdir(void)
{
	struct workspace workspace;
	struct stat status;

	CHECK(chmod(at("/project"), 0750) == 0);
	CHECK_INT(create(NULL, NULL, &workspace), 0);
	CHECK(fstat(workspace.fd, &status) == 0 && (status.st_mode & 07777) == 0700);
	CHECK(fstat(workspace.upper_fd, &status) == 0 && (status.st_mode & 07777) == 0750);
	CHECK(workspace.meta.stamp_ns > 0);
	CHECK_INT(workspace_remove(&home, &workspace, fresh()), 0);
	CHECK_INT(count_entries(home.path), 0);
	CHECK(chmod(at("/project"), 0755) == 0);
}

static void test_what_was_written_before_is_older_than_the_stamp(void)
{
	struct workspace workspace;
	struct stat before, after;

	write_file(AT_FDCWD, at("/project/before"), "x");
	CHECK_INT(create(NULL, NULL, &workspace), 0);
	write_file(AT_FDCWD, at("/project/after"), "x");
	CHECK(stat(at("/project/before"), &before) == 0 && stat(at("/project/after"), &after) == 0);
	CHECK(after.st_ctim.tv_sec * 1000000000LL + after.st_ctim.tv_nsec >= workspace.meta.stamp_ns);
	CHECK(before.st_ctim.tv_sec * 1000000000LL + before.st_ctim.tv_nsec <= workspace.meta.stamp_ns);
	CHECK_INT(workspace_remove(&home, &workspace, fresh()), 0);
}

static void test_one_process_writes_and_others_look(void)
{
	struct workspace first, second, look;
	char id[WORKSPACE_ID_SIZE];

	CHECK_INT(create("one", NULL, &first), 0);
	memcpy(id, first.meta.id, sizeof(id));
	CHECK_INT(workspace_open(&home, id, WORKSPACE_WRITE, &second, fresh()), -EBUSY);
	CHECK_INT(workspace_open(&home, id, WORKSPACE_LOOK, &look, fresh()), 0);
	CHECK_STRING(look.meta.name, "one");
	CHECK_STRING(look.meta.workdir, at("/project"));
	CHECK_INT(look.meta.stamp_ns, first.meta.stamp_ns);
	/* A failed lock must not cost the layer. */
	CHECK_INT(workspace_remove(&home, &look, fresh()), -EBUSY);
	CHECK(access(first.path, F_OK) == 0);
	workspace_done(&first);
	CHECK_INT(workspace_open(&home, id, WORKSPACE_WRITE, &second, fresh()), 0);
	CHECK_INT(workspace_remove(&home, &second, fresh()), 0);
	CHECK_INT(workspace_open(&home, id, WORKSPACE_LOOK, &look, fresh()), -ENOENT);
}

/* Its lock is given up with it, whatever process was made meanwhile and has a copy of every descriptor. */
static void test_a_copy_of_the_descriptor_keeps_no_lock(void)
{
	struct workspace first, second;
	char id[WORKSPACE_ID_SIZE];
	pid_t child;

	CHECK_INT(create("one", NULL, &first), 0);
	memcpy(id, first.meta.id, sizeof(id));
	child = fork();
	if (child == 0)
		for (;;)
			pause();
	workspace_done(&first);
	CHECK_INT(workspace_open(&home, id, WORKSPACE_WRITE, &second, fresh()), 0);
	CHECK_INT(workspace_remove(&home, &second, fresh()), 0);
	kill(child, SIGKILL);
	CHECK_INT(waitpid(child, NULL, 0), child);
}

static void test_a_workspace_is_found_by_name_id_and_workdir(void)
{
	struct workspace first, second, third;
	struct stat status;
	char id[WORKSPACE_ID_SIZE];

	CHECK(fstat(workdir_fd, &status) == 0);
	CHECK_INT(workspace_find(&home, NULL, status.st_dev, status.st_ino, id, fresh()), -ENOENT);
	CHECK_INT(create("blue", NULL, &first), 0);
	CHECK_INT(create(NULL, NULL, &second), 0);
	CHECK_INT(create("blue", NULL, &third), -EEXIST);
	CHECK_INT(create("../blue", NULL, &third), -EINVAL);
	CHECK_INT(workspace_find(&home, NULL, status.st_dev, status.st_ino, id, fresh()), 0);
	CHECK_STRING(id, second.meta.id);
	CHECK_INT(workspace_find(&home, "blue", status.st_dev, status.st_ino, id, fresh()), 0);
	CHECK_STRING(id, first.meta.id);
	CHECK_INT(workspace_find(&home, "blue", 0, 0, id, fresh()), 0);
	CHECK_STRING(id, first.meta.id);
	CHECK_INT(workspace_find(&home, second.meta.id, 0, 0, id, fresh()), 0);
	CHECK_STRING(id, second.meta.id);
	CHECK_INT(workspace_find(&home, "../..", status.st_dev, status.st_ino, id, fresh()), -ENOENT);
	CHECK_INT(workspace_remove(&home, &first, fresh()), 0);
	CHECK_INT(workspace_remove(&home, &second, fresh()), 0);
}

static void test_removal_takes_deep_trees_and_directories_without_permissions(void)
{
	struct workspace workspace;
	int at_fd, next;

	CHECK_INT(create(NULL, NULL, &workspace), 0);
	CHECK(mkdirat(workspace.parts_fd, "work/work", 0) == 0);
	at_fd = dup(workspace.upper_fd);
	for (int i = 0; i < 3000; i++) {
		CHECK(mkdirat(at_fd, "directory", 0700) == 0);
		next = openat(at_fd, "directory", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(at_fd);
		at_fd = next;
	}
	CHECK(symlinkat(at("/project"), at_fd, "out") == 0);
	close(at_fd);
	write_file(AT_FDCWD, at("/project/stays"), "x");
	CHECK_INT(workspace_remove(&home, &workspace, fresh()), 0);
	CHECK_INT(count_entries(home.path), 0);
	CHECK(access(at("/project/stays"), F_OK) == 0);
}

static void test_a_checkpoint_freezes_what_was_written_and_rollback_drops_the_rest(void)
{
	struct workspace workspace;
	char first[WORKSPACE_ID_SIZE];
	int layer;

	CHECK_INT(create("steps", NULL, &workspace), 0);
	write_file(workspace.upper_fd, "one", "1");
	CHECK_INT(workspace_checkpoint(&home, &workspace, "first", fresh()), 0);
	CHECK_INT(workspace.meta.layers.count, 1);
	snprintf(first, sizeof(first), "%s", workspace.meta.layers.items[0]);
	CHECK(faccessat(workspace.upper_fd, "one", F_OK, 0) < 0);
	layer = workspace_open_layer(&home, &workspace, 0, NULL, fresh());
	CHECK(layer >= 0 && faccessat(layer, "one", F_OK, 0) == 0);
	close(layer);
	write_file(workspace.upper_fd, "two", "2");
	CHECK_INT(workspace_checkpoint(&home, &workspace, NULL, fresh()), 0);
	write_file(workspace.upper_fd, "three", "3");
	CHECK_INT(workspace_rollback(&home, &workspace, NULL, fresh()), 0);
	CHECK(faccessat(workspace.upper_fd, "three", F_OK, 0) < 0);
	CHECK_INT(workspace.meta.layers.count, 2);
	CHECK_INT(workspace_rollback(&home, &workspace, "lusab-babad", fresh()), -ENOENT);
	CHECK_INT(workspace_rollback(&home, &workspace, first, fresh()), 0);
	CHECK_INT(workspace.meta.layers.count, 1);
	CHECK_INT(count_entries(home.path), 2);
	CHECK_INT(workspace_remove(&home, &workspace, fresh()), 0);
	CHECK_INT(count_entries(home.path), 0);
}

static void test_a_layer_stays_while_a_fork_stands_on_it(void)
{
	struct workspace workspace, forks[16];
	int layer;

	CHECK_INT(create(NULL, NULL, &workspace), 0);
	write_file(workspace.upper_fd, "one", "1");
	CHECK_INT(workspace_checkpoint(&home, &workspace, NULL, fresh()), 0);
	for (size_t i = 0; i < 16; i++) {
		CHECK_INT(create(NULL, &workspace.meta, &forks[i]), 0);
		CHECK_INT(forks[i].meta.stamp_ns, workspace.meta.stamp_ns);
	}
	CHECK_INT(workspace_remove(&home, &workspace, fresh()), 0);
	for (size_t i = 0; i < 15; i++)
		CHECK_INT(workspace_remove(&home, &forks[i], fresh()), 0);
	workspace_sweep(&home);
	layer = workspace_open_layer(&home, &forks[15], 0, NULL, fresh());
	CHECK(layer >= 0 && faccessat(layer, "one", F_OK, 0) == 0);
	close(layer);
	CHECK_INT(workspace_remove(&home, &forks[15], fresh()), 0);
	CHECK_INT(count_entries(home.path), 0);
}

static void test_sweep_removes_what_was_never_finished_and_nothing_else(void)
{
	struct workspace workspace;
	char id[WORKSPACE_ID_SIZE];

	CHECK_INT(create(NULL, NULL, &workspace), 0);
	memcpy(id, workspace.meta.id, sizeof(id));
	write_file(workspace.upper_fd, "f", "x");
	workspace_done(&workspace);
	CHECK(mkdirat(home.fd, "lusab-babad", 0700) == 0);
	CHECK(mkdirat(home.fd, ".gone-lusab-babab", 0700) == 0);
	CHECK(mkdirat(home.fd, "somebody's", 0700) == 0);
	workspace_sweep(&home);
	CHECK_INT(count_entries(home.path), 2);
	CHECK(unlinkat(home.fd, "somebody's", AT_REMOVEDIR) == 0);
	CHECK_INT(workspace_open(&home, id, WORKSPACE_WRITE, &workspace, fresh()), 0);
	CHECK_INT(workspace_remove(&home, &workspace, fresh()), 0);
}

static void test_sweep_removes_what_a_killed_run_did_not_use(void)
{
	struct workspace empty, used, named, half, changed;
	struct workspace_request copy = {.workdir_fd = workdir_fd,
					 .workdir = at("/project"),
					 .kind = WORKSPACE_COPY,
					 .has_user_xattrs = geteuid() != 0};
	char ids[2][WORKSPACE_ID_SIZE];

	CHECK_INT(create(NULL, NULL, &empty), 0);
	CHECK_INT(create(NULL, NULL, &used), 0);
	CHECK_INT(create("named", NULL, &named), 0);
	CHECK_INT(create(NULL, NULL, &changed), 0);
	CHECK_INT(workspace_create(&home, &copy, &half, fresh()), 0);
	write_file(changed.upper_fd, "f", "x");
	write_file(half.upper_fd, "f", "x");
	memcpy(ids[0], named.meta.id, WORKSPACE_ID_SIZE);
	memcpy(ids[1], changed.meta.id, WORKSPACE_ID_SIZE);
	workspace_done(&empty);
	workspace_done(&named);
	workspace_done(&changed);
	workspace_done(&half);
	workspace_sweep(&home);
	CHECK_INT(count_entries(home.path), 3);
	workspace_done(&used);
	workspace_sweep(&home);
	CHECK_INT(count_entries(home.path), 2);
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		CHECK_INT(workspace_open(&home, ids[i], WORKSPACE_WRITE, &named, fresh()), 0);
		CHECK_INT(workspace_remove(&home, &named, fresh()), 0);
	}
}

static void forget_spare(void)
{
	struct workspace workspace;

	CHECK_INT(create(NULL, NULL, &workspace), 0);
	CHECK_INT(workspace_remove(&home, &workspace, fresh()), 0);
	CHECK_INT(count_entries(home.path), 0);
}

static void test_one_store_without_changes_is_put_by_and_becomes_the_next(void)
{
	struct workspace first, second;
	struct workspace_list list;
	struct stat before, after;

	CHECK_INT(create("one", NULL, &first), 0);
	CHECK_INT(create(NULL, NULL, &second), 0);
	CHECK(fstat(first.fd, &before) == 0);
	CHECK_INT(workspace_put_by(&home, &first, fresh()), 0);
	CHECK_INT(workspace_put_by(&home, &second, fresh()), 0);
	CHECK_INT(count_entries(home.path), 1);
	CHECK_INT(workspace_list(&home, &list, NULL, fresh()), 0);
	CHECK_INT(list.count, 0);
	workspace_list_done(&list);
	workspace_sweep(&home);

	CHECK(chmod(at("/project"), 0711) == 0);
	CHECK_INT(create("longer-than-before", NULL, &first), 0);
	CHECK(fstat(first.fd, &after) == 0 && after.st_ino == before.st_ino);
	CHECK(fstat(first.upper_fd, &after) == 0 && (after.st_mode & 07777) == 0711);
	CHECK_INT(workspace_open(&home, first.meta.id, WORKSPACE_WRITE, &second, fresh()), -EBUSY);
	CHECK_INT(workspace_open(&home, first.meta.id, WORKSPACE_LOOK, &second, fresh()), 0);
	CHECK_STRING(second.meta.name, "longer-than-before");
	workspace_done(&second);
	CHECK_INT(workspace_put_by(&home, &first, fresh()), 0);
	CHECK(chmod(at("/project"), 0755) == 0);
	forget_spare();
}

static void test_what_a_command_had_is_not_used_again(void)
{
	struct workspace workspace;
	struct stat before, after;
	int held;

	CHECK_INT(create(NULL, NULL, &workspace), 0);
	/* As the kernel leaves it. */
	CHECK(mkdirat(workspace.fd, "work/work", 0700) == 0 && mkdirat(workspace.fd, "work/work/incompat", 0000) == 0);
	CHECK(fchmodat(workspace.fd, "work/work", 0000, 0) == 0);
	held = fcntl(workspace.upper_fd, F_DUPFD_CLOEXEC, 0);
	CHECK(held >= 0 && fstat(held, &before) == 0);
	CHECK_INT(workspace_put_by(&home, &workspace, fresh()), 0);
	CHECK_INT(create(NULL, NULL, &workspace), 0);
	CHECK(fstat(workspace.upper_fd, &after) == 0 && after.st_ino != before.st_ino);
	CHECK_INT(faccessat(workspace.fd, "work/work", F_OK, 0), -1);
	workspace_tidy(&workspace);
	CHECK_INT(count_entries(workspace.path), 4);
	CHECK(mkdirat(held, "planted", 0700) < 0 && errno == ENOENT);
	close(held);
	CHECK_INT(workspace_remove(&home, &workspace, fresh()), 0);
	CHECK_INT(count_entries(home.path), 0);
}

static void test_a_store_with_anything_in_it_is_not_put_by(void)
{
	struct workspace workspace;

	CHECK_INT(create(NULL, NULL, &workspace), 0);
	write_file(workspace.upper_fd, "same", "x");
	CHECK_INT(workspace_put_by(&home, &workspace, fresh()), 0);
	CHECK_INT(count_entries(home.path), 0);
	CHECK_INT(create(NULL, NULL, &workspace), 0);
	write_file(workspace.fd, "applied", "x");
	CHECK_INT(workspace_put_by(&home, &workspace, fresh()), 0);
	CHECK_INT(count_entries(home.path), 0);
	CHECK(mkdirat(home.fd, ".spare", 0700) == 0);
	CHECK_INT(create(NULL, NULL, &workspace), 0);
	CHECK_INT(count_entries(home.path), 1);
	CHECK_INT(workspace_put_by(&home, &workspace, fresh()), 0);
	/* One that a host that crashed has left without a part is as good as none. */
	CHECK(unlinkat(home.fd, ".spare/upper", AT_REMOVEDIR) == 0);
	CHECK_INT(create(NULL, NULL, &workspace), 0);
	CHECK_INT(count_entries(home.path), 1);
	CHECK_INT(workspace_remove(&home, &workspace, fresh()), 0);
}

static void test_a_damaged_store_keeps_every_layer(void)
{
	struct workspace workspace;
	char path[PATH_MAX];
	struct workspace_list list;
	size_t damaged;

	CHECK_INT(create(NULL, NULL, &workspace), 0);
	CHECK_INT(workspace_checkpoint(&home, &workspace, NULL, fresh()), 0);
	snprintf(path, sizeof(path), "%s/meta.json", workspace.path);
	write_file(AT_FDCWD, path, "{\"version\": 1}");
	CHECK_INT(workspace_list(&home, &list, &damaged, NULL), 0);
	CHECK_INT(damaged, 1);
	workspace_list_done(&list);
	workspace_sweep(&home);
	CHECK(faccessat(home.fd, workspace.meta.layers.items[0], F_OK, 0) == 0);
	CHECK_INT(workspace_save(&workspace, NULL), 0);
	CHECK_INT(workspace_remove(&home, &workspace, fresh()), 0);
}

static void test_a_killed_checkpoint_is_finished_by_the_next(void)
{
	struct workspace workspace;
	char id[WORKSPACE_ID_SIZE], path[PATH_MAX], moved[PATH_MAX + 8];

	CHECK_INT(create(NULL, NULL, &workspace), 0);
	memcpy(id, workspace.meta.id, sizeof(id));
	CHECK_INT(workspace_checkpoint(&home, &workspace, NULL, fresh()), 0);
	write_file(workspace.upper_fd, "one", "1");
	/* As if the upper had not been moved yet. */
	snprintf(path, sizeof(path), "%s/%s/upper", home.path, workspace.meta.layers.items[0]);
	CHECK(rmdir(path) == 0);
	workspace_done(&workspace);
	CHECK_INT(workspace_open(&home, id, WORKSPACE_WRITE, &workspace, fresh()), 0);
	snprintf(moved, sizeof(moved), "%s/one", path);
	CHECK(access(moved, F_OK) == 0);
	CHECK(faccessat(workspace.upper_fd, "one", F_OK, 0) < 0);
	CHECK_INT(workspace_remove(&home, &workspace, fresh()), 0);
}

static void test_state_inside_the_workdir_is_refused(void)
{
	struct workspace workspace;
	struct error error = {0};
	int fd = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const struct workspace_request request = {.workdir_fd = fd, .workdir = top};

	CHECK_INT(workspace_create(&home, &request, &workspace, &error), -EINVAL);
	CHECK(strstr(error.hint, "XDG_STATE_HOME") != NULL);
	close(fd);
}

/* In a store whose file system cannot be an upper layer, as in a container, the layer has another place. */
static void test_a_layer_without_its_place_can_only_be_dropped(void)
{
	AUTO(string_list_done) struct string_list places = {0};
	char id[WORKSPACE_ID_SIZE];
	struct workspace workspace;
	struct error why = {0};
	int fd = open(at("/project"), O_PATH | O_DIRECTORY | O_CLOEXEC);

	CHECK_INT(workspace_create(&home, &(struct workspace_request){.workdir_fd = fd, .workdir = at("/project")},
				   &workspace, fresh()),
		  0);
	CHECK(workspace.meta.place == NULL);
	CHECK(!workspace_missing(&home, &workspace.meta));
	workspace.meta.place = strdup("/nowhere/.belljar-ws-0");
	CHECK_INT(workspace_save(&workspace, fresh()), 0);
	memcpy(id, workspace.meta.id, sizeof(id));
	CHECK(!strcmp(workspace_missing(&home, &workspace.meta), "layer"));
	workspace_done(&workspace);
	close(fd);
	CHECK_INT(workspace_open(&home, id, WORKSPACE_WRITE, &workspace, &why), -ENOENT);
	CHECK(strstr(why.hint, "workspace remove") != NULL);
	CHECK_INT(workspace_open(&home, id, WORKSPACE_DROP, &workspace, fresh()), 0);
	CHECK(!workspace_has_layer(&workspace));
	CHECK_INT(workspace_remove(&home, &workspace, fresh()), 0);
	CHECK_INT(workspace_open(&home, id, WORKSPACE_DROP, &workspace, fresh()), -ENOENT);
	CHECK_INT(workspace_places(home.path, &places), 0);
	CHECK_INT(places.count, 0);
}

static void test_another_file_systems_workdir_has_its_layer_in_the_home(void)
{
	char path[] = "/dev/shm/belljar-unit-XXXXXX";
	struct workspace workspace;
	struct stat here, there;
	int fd;

	if (stat("/dev/shm", &there) < 0 || stat(top, &here) < 0 || here.st_dev == there.st_dev || !mkdtemp(path))
		return;
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < 2; i++) {
		const struct workspace_request request = {
			.workdir_fd = fd, .workdir = path, .kind = i ? WORKSPACE_COPY : WORKSPACE_OVERLAY};

		CHECK_INT(workspace_create(&home, &request, &workspace, fresh()), 0);
		CHECK(workspace.meta.place == NULL);
		CHECK(fstat(workspace.upper_fd, &there) == 0 && here.st_dev == there.st_dev);
		CHECK_INT(workspace_remove(&home, &workspace, fresh()), 0);
	}
	close(fd);
	rmdir(path);
}

static const struct test tests[] = {
	TEST(test_ids_can_be_read_aloud),
	TEST(test_a_store_is_its_owners_only_and_the_upper_looks_like_the_workdir),
	TEST(test_what_was_written_before_is_older_than_the_stamp),
	TEST(test_one_process_writes_and_others_look),
	TEST(test_a_copy_of_the_descriptor_keeps_no_lock),
	TEST(test_a_workspace_is_found_by_name_id_and_workdir),
	TEST(test_removal_takes_deep_trees_and_directories_without_permissions),
	TEST(test_a_checkpoint_freezes_what_was_written_and_rollback_drops_the_rest),
	TEST(test_a_layer_stays_while_a_fork_stands_on_it),
	TEST(test_sweep_removes_what_was_never_finished_and_nothing_else),
	TEST(test_sweep_removes_what_a_killed_run_did_not_use),
	TEST(test_one_store_without_changes_is_put_by_and_becomes_the_next),
	TEST(test_what_a_command_had_is_not_used_again),
	TEST(test_a_store_with_anything_in_it_is_not_put_by),
	TEST(test_a_damaged_store_keeps_every_layer),
	TEST(test_a_killed_checkpoint_is_finished_by_the_next),
	TEST(test_state_inside_the_workdir_is_refused),
	TEST(test_a_layer_without_its_place_can_only_be_dropped),
	TEST(test_another_file_systems_workdir_has_its_layer_in_the_home),
};

int main(void)
{
	return scratch_main(tests, ARRAY_LEN(tests), prepare);
}
