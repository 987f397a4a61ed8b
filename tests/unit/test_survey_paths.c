/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_survey_paths.c - which directories are the system's, and what a path is
 */
#include "test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "survey/survey_names.h"
#include "survey/survey_paths.h"

static void test_system_directories_are_no_work_directories(void)
{
	static const char *const yes[] = {
		"/",        "/usr",         "/usr/bin",  "/usr/local",     "/usr/local/bin", "/usr/share/x",
		"/bin",     "/sbin",        "/lib",      "/lib/x86",       "/lib64",         "/etc",
		"/etc/ssh", "/boot",        "/boot/efi", "/dev",           "/dev/pts",       "/proc",
		"/proc/1",  "/sys",         "/sys/fs",   "/nix/store",     "/nix/store/x",   "/nix",
		"/gnu",     "/gnu/store/x", "/usr/src",  "/usr/local/src", "/dev/shm",       "/tmp",
		"/var",     "/var/tmp",     "/var/lib",  "/var/log",       "/var/cache",     "/var/spool",
		"/run",     "/run/user",    "/opt",      "/home",
	};

	for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
		if (!survey_is_system_directory(yes[i]))
			printf("%s\n", yes[i]);
		CHECK(survey_is_system_directory(yes[i]));
	}
}

static void test_projects_are_no_system_directories(void)
{
	static const char *const no[] = {
		"/home/u",        "/home/u/p",
		"/root",          "/root/p",
		"/usr/src/linux", "/usr/local/src/x",
		"/dev/shm/x",     "/tmp/x",
		"/var/tmp/x",     "/var/lib/jenkins",
		"/var/www",       "/run/user/1000",
		"/opt/project",   "/srv",
		"/workspace",     "/data",
		"/mnt/usr",       "/usrlocal",
		"/etcetera",      "/libx",
		"/bin2",          "/nix/storefront",
		"/home2",         "/project/usr",
	};

	for (size_t i = 0; i < ARRAY_LEN(no); i++) {
		if (survey_is_system_directory(no[i]))
			printf("%s\n", no[i]);
		CHECK(!survey_is_system_directory(no[i]));
	}
}

/* Lists that contradict each other would be noticed by nobody else. */
static void test_the_lists_agree(void)
{
	for (const char *const *name = survey_system_exceptions; *name; name++) {
		bool is_in_tree = false, is_top = false;

		for (const char *const *tree = survey_system_trees; *tree; tree++)
			is_in_tree |= path_is_within(*name, *tree);
		for (const char *const *top = survey_system_tops; *top; top++)
			is_top |= !strcmp(*name, *top);
		CHECK(is_in_tree && is_top);
	}
	for (size_t i = 0; i < 2; i++)
		for (const struct host_name *name = i ? survey_instruction_names : survey_protected_names; name->name;
		     name++) {
			CHECK(name->name[0] != '/' && !strstr(name->name, "..") && name->who);
			CHECK(name->name[strlen(name->name) - 1] != '/');
		}
	for (const struct host_toolchain *toolchain = survey_toolchains; toolchain->directory; toolchain++)
		CHECK(toolchain->directory[0] != '/' && toolchain->needs[0]);
}

/* Neither it nor a directory around it is shown, nor anything in it. */
static void check_kept_out(const char *secret)
{
	for (const char *const *name = survey_etc_names; *name; name++) {
		char path[256];

		snprintf(path, sizeof(path), "/etc/%s", *name);
		CHECK(!path_is_within(path, secret) && !path_is_within(secret, path));
	}
	for (const char *const *name = survey_system_names; *name; name++)
		CHECK(!path_is_within(*name, secret) && !path_is_within(secret, *name));
}

static void test_nothing_that_holds_credentials_is_shown(void)
{
	static const char *const secrets[] = {
		"/etc/shadow",
		"/etc/gshadow",
		"/etc/ssh",
		"/etc/sudoers",
		"/etc/sudoers.d",
		"/etc/krb5.keytab",
		"/etc/machine-id",
		"/etc/ssl/private",
		"/etc/mysql",
		"/etc/redis",
		"/etc/apt",
		"/etc/npmrc",
		"/etc/pip.conf",
		"/etc/environment",
		"/etc/fstab",
		"/etc/wgetrc",
		"/etc/docker",
		"/etc/kubernetes",
		"/etc/letsencrypt",
		"/etc/ppp",
		"/etc/subversion",
		"/etc/mercurial",
		"/etc/nginx/nginx.conf",
		"/etc/nginx/conf.d",
		"/etc/apache2",
		"/etc/NetworkManager",
		"/etc/wireguard",
		"/var/lib/mysql",
		"/var/lib/postgresql",
		"/var/lib/redis",
		"/var/lib/private",
		"/var/lib/docker",
		"/var/lib/systemd",
		"/var/lib/dbus",
		"/var/lib/sss",
		"/var/cache/debconf",
		"/var/cache/apt",
		"/var/spool",
		"/var/mail",
		"/var/log",
		"/var/backups",
		"/root",
		"/home",
		"/run",
		"/var/run",
	};

	for (size_t i = 0; i < ARRAY_LEN(secrets); i++)
		check_kept_out(secrets[i]);
	for (const char *const *name = survey_etc_names; *name; name++) {
		CHECK((*name)[0] != '/' && !strstr(*name, ".."));
		CHECK(!name[1] || strcmp(name[0], name[1]) < 0);
	}
	for (const char *const *name = survey_system_names; *name; name++)
		CHECK((*name)[0] == '/' && !strstr(*name, ".."));
}

static char top[] = "/tmp/belljar-paths-XXXXXX";

static const char *below(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", top, name);
	return path;
}

static void check_look(const char *name, enum path_kind kind, const char *target)
{
	struct host_path path;

	CHECK_INT(survey_look(&path, below(name)), 0);
	CHECK_STRING(path.path, below(name));
	CHECK_INT(path.kind, kind);
	if (target)
		CHECK_STRING(path.target, target);
	else
		CHECK(!path.target);
	CHECK((kind == PATH_ABSENT) == (path.inode == 0));
	survey_path_done(&path);
	survey_path_done(&path);
	CHECK(!path.path);
}

static void test_look_says_what_a_path_is_and_follows_nothing(void)
{
	struct host_path_list list = {0};

	CHECK(mkdtemp(top));
	CHECK_INT(mkdir(below("dir"), 0700), 0);
	close(open(below("file"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	CHECK_INT(symlink("dir", below("link")), 0);
	CHECK_INT(symlink("nowhere", below("dangling")), 0);
	CHECK_INT(mkfifo(below("fifo"), 0600), 0);
	check_look("dir", PATH_DIRECTORY, NULL);
	check_look("file", PATH_FILE, NULL);
	check_look("link", PATH_SYMLINK, "dir");
	check_look("dangling", PATH_SYMLINK, "nowhere");
	check_look("fifo", PATH_OTHER, NULL);
	check_look("missing", PATH_ABSENT, NULL);
	check_look("file/below", PATH_ABSENT, NULL);

	CHECK_INT(survey_path_list_look(&list, below("missing")), 0);
	CHECK_INT(list.count, 0);
	CHECK_INT(survey_path_list_look(&list, below("link")), 0);
	CHECK_INT(list.count, 1);
	CHECK_INT(list.items[0].kind, PATH_SYMLINK);
	survey_path_list_done(&list);
	CHECK(!list.items);
	for (const char *const *name = (const char *const[]){"file", "link", "dangling", "fifo", NULL}; *name; name++)
		unlink(below(*name));
	rmdir(below("dir"));
	CHECK_INT(rmdir(top), 0);
}

static const struct test tests[] = {
	TEST(test_system_directories_are_no_work_directories),
	TEST(test_projects_are_no_system_directories),
	TEST(test_the_lists_agree),
	TEST(test_nothing_that_holds_credentials_is_shown),
	TEST(test_look_says_what_a_path_is_and_follows_nothing),
};

TEST_MAIN(tests)
