/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_skeleton_skeleton.c - skeletons of roots: made once and whole, found again, never somebody else's, swept
 */
#include "scratch_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/skeleton/skeleton.h"
#include "survey/survey_paths.h"
#include "survey/survey_risky.h"
#include "base/reap/reap.h"

#define KEPT_MAX 32

/* The plan of a jar with a copy, a link, a file and a mount point. */
struct scene {
	struct host host;
	struct plan plan;
	struct engine_skeleton skeleton;
	char source[PATH_MAX];
};

static void write_text(const char *name, const char *text)
{
	FILE *file = fopen(at(name), "w");

	fputs(text, file);
	fclose(file);
}

static struct plan_step *add(struct plan_step_list *list, enum step_kind kind, const char *target, const char *source,
			     mode_t mode)
{
	struct plan_step *step = list_add(list);

	step->kind = kind;
	step->target = target;
	step->source = source;
	step->mode = mode;
	return step;
}

/* @changed_ns is when the copied file changed, as the survey says. */
static void scene_init(struct scene *scene, int64_t changed_ns)
{
	struct plan_step *copy;
	struct stat status;

	*scene = (struct scene){0};
	write_text("/passwd", "root:x:0:0\n");
	snprintf(scene->source, sizeof(scene->source), "%s", at("/passwd"));
	CHECK_INT(stat(scene->source, &status), 0);
	CHECK_INT(survey_look(&scene->host.skeletons, at("/skeletons")), 0);
	add(&scene->plan.core.steps, STEP_SKELETON, NULL, NULL, 0);
	add(&scene->plan.skeleton, STEP_DIRECTORY, "/usr", NULL, 0755);
	add(&scene->plan.skeleton, STEP_SYMLINK, "/bin", "usr/bin", 0);
	add(&scene->plan.skeleton, STEP_FILE, "/etc/hostname", "jar\n", 0444);
	copy = add(&scene->plan.skeleton, STEP_COPY, "/etc/passwd", scene->source, status.st_mode & 0555);
	copy->device = status.st_dev;
	copy->inode = status.st_ino;
	copy->as.copy.changed_ns = changed_ns;
}

static void scene_done(struct scene *scene)
{
	skeleton_close(&scene->skeleton);
	survey_path_done(&scene->host.skeletons);
	plan_done(&scene->plan);
}

static int open_once(struct scene *scene)
{
	return skeleton_open(&scene->skeleton, &scene->host, &scene->plan);
}

static const struct plan_step *step_of(const struct scene *scene)
{
	return &scene->plan.core.steps.items[0];
}

/* Every name in the directory of skeletons that begins so. */
static int count_names(const char *beginning)
{
	DIR *directory = opendir(at("/skeletons"));
	const struct dirent *entry;
	int count = 0;

	while (directory && (entry = readdir(directory)))
		count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
			 !strncmp(entry->d_name, beginning, strlen(beginning));
	if (directory)
		closedir(directory);
	return count;
}

static void begin(void)
{
	reap_sweep(at("/skeletons"));
	CHECK_INT(mkdir(at("/skeletons"), 0700), 0);
}

static void read_text(const char *directory, const char *name, char *out, size_t size)
{
	char path[2 * PATH_MAX];
	FILE *file;
	size_t len;

	snprintf(path, sizeof(path), "%s%s", directory, name);
	file = fopen(path, "r");
	len = file ? fread(out, 1, size - 1, file) : 0;
	out[len] = '\0';
	if (file)
		fclose(file);
}

static void test_the_second_start_makes_it_and_the_third_finds_it(void)
{
	mode_t mask = umask(077);
	struct scene scene;
	struct stat status;
	char content[64], path[2 * PATH_MAX];
	ino_t inode;

	begin();
	scene_init(&scene, 1);
	CHECK_INT(open_once(&scene), -EAGAIN);
	CHECK_INT(skeletons_count(&scene.host), 0);
	CHECK_INT(open_once(&scene), 0);
	CHECK_INT(skeletons_count(&scene.host), 1);
	CHECK_INT(count_names("."), 0);
	inode = step_of(&scene)->inode;
	CHECK_INT(stat(step_of(&scene)->source, &status), 0);
	CHECK_INT(status.st_ino, inode);
	CHECK_INT(status.st_mode & 07777, 0755);
	read_text(step_of(&scene)->source, "/etc/passwd", content, sizeof(content));
	CHECK_STRING(content, "root:x:0:0\n");
	read_text(step_of(&scene)->source, "/etc/hostname", content, sizeof(content));
	CHECK_STRING(content, "jar\n");
	/* Whatever mask the caller has. */
	snprintf(path, sizeof(path), "%s/usr", step_of(&scene)->source);
	CHECK(stat(path, &status) == 0 && (status.st_mode & 07777) == 0755);
	snprintf(path, sizeof(path), "%s/etc/hostname", step_of(&scene)->source);
	CHECK(stat(path, &status) == 0 && (status.st_mode & 07777) == 0444);
	CHECK_INT(umask(mask), 077);
	CHECK_INT(open_once(&scene), 0);
	CHECK_INT(step_of(&scene)->inode, inode);
	scene_done(&scene);
}

static void test_every_fact_has_a_name_of_its_own(void)
{
	struct scene first, second;

	begin();
	scene_init(&first, 1);
	CHECK_INT(open_once(&first), -EAGAIN);
	CHECK_INT(open_once(&first), 0);
	for (int fact = 0; fact < 8; fact++) {
		struct plan_step *copy, *file;

		scene_init(&second, 1);
		copy = &second.plan.skeleton.items[3];
		file = &second.plan.skeleton.items[2];
		if (fact < 4)
			*(fact == 0   ? (uint64_t *)&copy->as.copy.changed_ns
			  : fact == 1 ? &copy->as.copy.size_bytes
			  : fact == 2 ? (uint64_t *)&copy->inode
				      : (uint64_t *)&copy->device) += 1;
		else if (fact == 4)
			copy->mode ^= 0111;
		else if (fact == 5)
			file->source = "another\n";
		else if (fact == 6)
			file->target = "/etc/hostnames";
		else
			second.plan.skeleton.items[1].source = "usr/sbin";
		CHECK_INT(open_once(&second), -EAGAIN);
		scene_done(&second);
	}
	scene_done(&first);
}

static void test_a_file_that_has_just_changed_is_not_kept(void)
{
	struct scene scene;

	begin();
	scene_init(&scene, survey_settled_ns() + 1000000000);
	CHECK_INT(open_once(&scene), -EAGAIN);
	CHECK_INT(open_once(&scene), -EAGAIN);
	CHECK_INT(count_names(""), 0);
	scene_done(&scene);
}

static void test_what_cannot_be_made_leaves_nothing(void)
{
	struct scene scene;

	begin();
	scene_init(&scene, 1);
	CHECK_INT(open_once(&scene), -EAGAIN);
	unlink(scene.source);
	CHECK_INT(open_once(&scene), -ENOENT);
	CHECK_INT(open_once(&scene), -ENOENT);
	CHECK_INT(count_names("."), 0);
	CHECK(!step_of(&scene)->source);
	scene_done(&scene);
}

static void test_a_directory_that_is_not_the_callers_alone_is_not_used(void)
{
	struct scene scene;

	begin();
	scene_init(&scene, 1);
	CHECK_INT(open_once(&scene), -EAGAIN);
	CHECK_INT(open_once(&scene), 0);
	CHECK_INT(chmod(at("/skeletons"), 0710), 0);
	CHECK_INT(open_once(&scene), -EPERM);
	CHECK_INT(skeletons_count(&scene.host), -EPERM);
	CHECK_INT(chmod(at("/skeletons"), 0700), 0);
	/* Another one stands there now. */
	CHECK_INT(rename(at("/skeletons"), at("/moved")), 0);
	CHECK_INT(mkdir(at("/skeletons"), 0700), 0);
	CHECK_INT(open_once(&scene), -EPERM);
	CHECK_INT(rmdir(at("/skeletons")), 0);
	CHECK_INT(symlink(at("/moved"), at("/skeletons")), 0);
	CHECK(open_once(&scene) < 0);
	CHECK_INT(unlink(at("/skeletons")), 0);
	CHECK_INT(rename(at("/moved"), at("/skeletons")), 0);
	if (geteuid() == 0) {
		CHECK_INT(chown(at("/skeletons"), 1, 1), 0);
		CHECK_INT(open_once(&scene), -EPERM);
		CHECK_INT(chown(at("/skeletons"), 0, 0), 0);
	}
	CHECK_INT(open_once(&scene), 0);
	scene_done(&scene);
}

static void test_a_skeleton_that_somebody_changed_is_not_used(void)
{
	struct scene scene;
	char path[PATH_MAX];

	begin();
	scene_init(&scene, 1);
	CHECK_INT(open_once(&scene), -EAGAIN);
	CHECK_INT(open_once(&scene), 0);
	snprintf(path, sizeof(path), "%s", step_of(&scene)->source);
	CHECK_INT(chmod(path, 0777), 0);
	CHECK_INT(open_once(&scene), -EPERM);
	CHECK_INT(chmod(path, 0755), 0);
	if (geteuid() == 0) {
		CHECK_INT(chown(path, 1, 1), 0);
		CHECK_INT(open_once(&scene), -EPERM);
		CHECK_INT(chown(path, 0, 0), 0);
	}
	CHECK_INT(open_once(&scene), 0);
	CHECK_INT(rename(path, at("/elsewhere")), 0);
	CHECK_INT(symlink(at("/elsewhere"), path), 0);
	CHECK(open_once(&scene) < 0);
	reap_sweep(at("/elsewhere"));
	scene_done(&scene);
}

static void test_many_at_once_have_the_same_one(void)
{
	struct scene scene;
	int status = 0;

	begin();
	scene_init(&scene, 1);
	CHECK_INT(open_once(&scene), -EAGAIN);
	for (int i = 0; i < 6; i++)
		if (fork() == 0) {
			int rc = open_once(&scene);
			char content[64] = "";

			if (rc == 0)
				read_text(step_of(&scene)->source, "/etc/passwd", content, sizeof(content));
			_exit(rc == 0 && strcmp(content, "root:x:0:0\n") != 0);
		}
	for (int i = 0; i < 6; i++) {
		wait(&status);
		CHECK_INT(status, 0);
	}
	CHECK_INT(open_once(&scene), 0);
	CHECK_INT(skeletons_count(&scene.host), 1);
	scene_done(&scene);
}

static void test_what_nobody_uses_is_swept(void)
{
	struct timespec long_ago[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
	struct timespec a_while_ago[2] = {{.tv_sec = time(NULL) - 100}, {.tv_sec = time(NULL) - 100}};
	struct scene old, used, next;
	char name[96];
	int fd;

	begin();
	/* Of two that nobody has asked for lately, one is in use. */
	scene_init(&old, 1);
	scene_init(&used, 2);
	CHECK_INT(open_once(&old), -EAGAIN);
	CHECK_INT(open_once(&old), 0);
	CHECK_INT(open_once(&used), -EAGAIN);
	CHECK_INT(open_once(&used), 0);
	CHECK_INT(utimensat(AT_FDCWD, step_of(&old)->source, long_ago, 0), 0);
	CHECK_INT(utimensat(AT_FDCWD, step_of(&used)->source, long_ago, 0), 0);
	skeleton_close(&old.skeleton);
	/* One that a killed start left, and one that is being made. */
	make_directory("/skeletons/.unfinished-0000000000000001/etc");
	make_directory("/skeletons/.unfinished-0000000000000002");
	fd = open(at("/skeletons/.unfinished-0000000000000002"), O_RDONLY | O_DIRECTORY);
	CHECK_INT(flock(fd, LOCK_SH), 0);
	for (int i = 0; i < 2 * KEPT_MAX; i++) {
		snprintf(name, sizeof(name), "/skeletons/%064d", i);
		write_text(name, "");
		CHECK_INT(utimensat(AT_FDCWD, at(name), a_while_ago, 0), 0);
	}
	scene_init(&next, 3);
	CHECK_INT(open_once(&next), -EAGAIN);
	CHECK_INT(access(step_of(&old)->source, F_OK), -1);
	CHECK_INT(access(step_of(&used)->source, F_OK), 0);
	CHECK_INT(count_names("."), 1);
	CHECK(count_names("") <= KEPT_MAX + 2);
	/* It is asked for again, and made. */
	CHECK_INT(open_once(&next), 0);
	close(fd);
	/* Using it says so. */
	CHECK_INT(open_once(&used), 0);
	CHECK_INT(utimensat(AT_FDCWD, step_of(&next)->source, long_ago, 0), 0);
	CHECK_INT(open_once(&next), 0);
	skeleton_close(&next.skeleton);
	scene_done(&old);
	scene_init(&old, 4);
	CHECK_INT(open_once(&old), -EAGAIN);
	CHECK_INT(access(step_of(&next)->source, F_OK), 0);
	CHECK_INT(count_names("."), 0);
	scene_done(&old);
	scene_done(&used);
	scene_done(&next);
}

static void test_one_that_cannot_be_mounted_is_not_tried_again(void)
{
	struct scene scene;

	begin();
	scene_init(&scene, 1);
	CHECK_INT(open_once(&scene), -EAGAIN);
	CHECK_INT(open_once(&scene), 0);
	skeleton_refuse(&scene.skeleton, &scene.host, &scene.plan);
	CHECK_INT(open_once(&scene), -EOPNOTSUPP);
	CHECK_INT(skeletons_count(&scene.host), 0);
	scene_done(&scene);
}

/* One place, by the user's number alone, and none where the system made no directory for the user. */
static void test_where_they_are_kept(void)
{
	struct host nobodys = {.uid = 2147483000, .real_home = (char *)top}, own = {.uid = geteuid()};
	char expected[64];

	make_directory("/.cache");
	CHECK_INT(skeletons_find(&nobodys), 0);
	CHECK_STRING(nobodys.skeletons.path, "/run/user/2147483000/belljar/skeletons");
	CHECK_INT(nobodys.skeletons.kind, PATH_ABSENT);
	CHECK_INT(access(at("/.cache/belljar"), F_OK), -1);
	survey_path_done(&nobodys.skeletons);
	snprintf(expected, sizeof(expected), own.uid ? "/run/user/%u/belljar/skeletons" : "/run/belljar/skeletons",
		 (unsigned)own.uid);
	CHECK_INT(skeletons_find(&own), 0);
	CHECK_STRING(own.skeletons.path, expected);
	survey_path_done(&own.skeletons);
}

static const struct test tests[] = {
	TEST(test_the_second_start_makes_it_and_the_third_finds_it),
	TEST(test_every_fact_has_a_name_of_its_own),
	TEST(test_a_file_that_has_just_changed_is_not_kept),
	TEST(test_what_cannot_be_made_leaves_nothing),
	TEST(test_a_directory_that_is_not_the_callers_alone_is_not_used),
	TEST(test_a_skeleton_that_somebody_changed_is_not_used),
	TEST(test_many_at_once_have_the_same_one),
	TEST(test_what_nobody_uses_is_swept),
	TEST(test_one_that_cannot_be_mounted_is_not_tried_again),
	TEST(test_where_they_are_kept),
};

int main(void)
{
	return scratch_main(tests, ARRAY_LEN(tests), NULL);
}
