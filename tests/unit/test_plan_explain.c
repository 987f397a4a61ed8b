/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_plan_explain.c - what a plan allows, by which rule, and the smallest change
 */
#include "plan/explain/plan_explain.h"

#include <stdio.h>
#include <sys/stat.h>

#include "imagined_plan.h"

/* --- hosts -------------------------------------------------------------------------------------------------- */

static void check_host(const char *const *flags, const char *text, bool is_allowed, const char *why, const char *flag)
{
	AUTO(plan_explanation_done) struct plan_explanation explanation = {0};
	AUTO(imagined_plan_done) struct imagined_plan made;
	struct plan_request request = {.argv = NULL};
	struct plan_network_rules network;
	struct plan_endpoint endpoint;

	imagine(&made, NULL, flags, NULL, "true");
	request.argv = &made.argv;
	CHECK_INT(plan_compile(&made.plan, &made.policy, &made.host, &request, &made.error), 0);
	CHECK(plan_read_endpoint(text, &endpoint));
	network = plan_network_rules(&made.plan);
	network.is_asked = made.plan.gate.may_ask;
	plan_explain_host(&network, &endpoint, &explanation);
	CHECK_INT(explanation.is_allowed, is_allowed);
	CHECK_STRING(text_string(&explanation.why), why);
	CHECK_STRING(text_string(&explanation.flag), flag);
	CHECK(!explanation.policy.len == !explanation.flag.len);
}

static void test_the_smallest_rule_for_a_host(void)
{
	static const char *const rules[] = {"allow-net", "good.test", "allow-net", "0.0.0.0/0:443", NULL};
	static const char *const none[] = {NULL};
	static const char *const asked[] = {"ask", "net", NULL};
	static const char *const all[] = {"net", "host", NULL};
	static const char nobody[] = "no rule of allow_net matches it";

	check_host(rules, "good.test:443", true, "by the rule good.test", "");
	check_host(rules, "good.test:22", false, nobody, "--allow-net good.test:22");
	check_host(rules, "Other.test.", false, nobody, "--allow-net other.test");
	check_host(rules, "9.9.9.9:443", true, "by the rule 0.0.0.0/0:443", "");
	check_host(rules, "9.9.9.9:80", false, nobody, "--allow-net 9.9.9.9:80");
	check_host(rules, "10.0.0.1:443", false, "the rule 0.0.0.0/0:443 is too wide for an address of this kind",
		   "--allow-net 10.0.0.1:443");
	check_host(rules, "169.254.169.254:80", false, nobody, "");
	check_host(rules, "[2001:db9::1]:80", false, nobody, "--allow-net [2001:db9::1]:80");
	check_host(rules, "host.belljar.internal:5432", false, nobody, "--allow-net host:5432");
	check_host(rules, "127.0.0.1:80", true, "it is the jar's own loopback, not the host's", "");
	check_host(asked, "good.test:443", false, "no rule of allow_net matches it: it is asked about",
		   "--allow-net good.test:443");
	check_host(asked, "169.254.169.254:80", false, nobody, "");
	check_host(asked, "host.belljar.internal:5432", false, nobody, "--allow-net host:5432");
	check_host(none, "good.test:443", false, "net is 'none'", "--allow-net good.test:443");
	check_host(none, "localhost:80", true, "it is the jar's own loopback, not the host's", "");
	check_host(all, "good.test:443", true, "net is 'host'", "");
}

static void test_a_rule_that_denies_has_no_cure(void)
{
	static const char *const rules[] = {"allow-net", "*.good.test", "allow-net",
					    "{\"host\":\"ads.good.test\",\"deny\":true,\"reason\":\"use the mirror\"}",
					    NULL};

	check_host(rules, "ads.good.test:443", false,
		   "by the rule {\"host\":\"ads.good.test\",\"ports\":\"*\",\"deny\":true,\"reason\":\"use the "
		   "mirror\"}: use the mirror",
		   "");
}

static void test_endpoints(void)
{
	static const char *const texts[] = {"good.test:1", "good.test", "1.2.3.4:65535", "[::1]:80", "::1"};
	static const char *const bad[] = {
		"", ":80", "good.test:", "good.test:0", "good.test:65536", "good.test:8x", "a b:80", "[::1]:x"};
	struct plan_endpoint endpoint;

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		AUTO_TEXT again = {0};

		CHECK(plan_read_endpoint(texts[i], &endpoint));
		plan_format_endpoint(&endpoint, &again);
		CHECK_STRING(text_string(&again), texts[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(!plan_read_endpoint(bad[i], &endpoint));
}

/* --- paths -------------------------------------------------------------------------------------------------- */

struct imagined_object {
	const char *path;
	mode_t mode;
	const char *link;
};

/* Ordinary files of the caller's, but for these; nothing is where "nothing" is. */
static const struct imagined_object objects[] = {
	{"/home/u/p/closed", S_IFREG, NULL},
	{"/home/u/p/out", S_IFLNK | 0777, "/srv/data"},
	{"/home/u/p/secret", S_IFLNK | 0777, "../.ssh/id"},
	{"/home/u/p/round", S_IFLNK | 0777, "round"},
	{"/home/u/p/shut", S_IFDIR, NULL},
	{"/usr/bin/tool", S_IFREG | 0755, NULL},
	{"/usr/bin/link", S_IFLNK | 0777, "tool"},
	{"/proc/mounts", S_IFLNK | 0777, "self/mounts"},
	{"/proc/self/mounts", S_IFREG | 0444, NULL},
	{"/proc/thread-self/mounts", S_IFREG | 0444, NULL},
	{"/proc/self/comm", S_IFREG | 0644, NULL},
	{"/proc/thread-self/environ", S_IFREG | 0400, NULL},
	{"/proc/self/environ", S_IFREG | 0400, NULL},
	{"/proc/self/clear_refs", S_IFREG | 0200, NULL},
	{"/proc/self/root", S_IFLNK | 0777, "/of/the/looker"},
	{"/proc/self/cwd", S_IFLNK | 0777, "/of/the/looker"},
	{"/home/u/p/mtab", S_IFLNK | 0777, "../../../proc/self/mounts"},
	{"/home/u/p/mtab2", S_IFLNK | 0777, "/proc/mounts"},
	{"/home/u/p/sysfs", S_IFLNK | 0777, "/sys/kernel/id"},
	{"/home/u/p/input", S_IFLNK | 0777, "/dev/stdin"},
	{"/home/u/p/terminal", S_IFLNK | 0777, "/dev/tty"},
};

static void look_around(void *owner, const char *path, struct plan_object *out)
{
	const char *last = strrchr(path, '/') + 1;

	*out = (struct plan_object){.mode = S_IFDIR | 0755, .uid = 1000, .gid = 1000};
	if (strstr(path, "nothing"))
		out->mode = 0;
	else if (strchr(last, '.') || !strcmp(last, "id") || !strcmp(last, "file"))
		out->mode = S_IFREG | 0644;
	for (size_t i = 0; i < ARRAY_LEN(objects); i++) {
		if (strcmp(path, objects[i].path) != 0)
			continue;
		out->mode = objects[i].mode;
		if (objects[i].link)
			snprintf(out->link, sizeof(out->link), "%s", objects[i].link);
	}
	(void)owner;
}

static const char *const shown[] = {"ro", "/data:/elsewhere", "rw", "/changed", "hide", "/home/u/p/hidden", NULL};
static const char *const shown_files[] = {"/usr/", "/data/", "/changed/", "/home/u/p/hidden/", "/home/u/p/.bashrc",
					  NULL};

static void check_path(const char *path, enum plan_access access, bool is_allowed, const char *why, const char *flag)
{
	static const struct plan_looker looker = {.look = look_around, .uid = 1000, .gid = 1000, .home = "/home/u"};
	AUTO(plan_explanation_done) struct plan_explanation explanation = {0};
	AUTO(imagined_plan_done) struct imagined_plan made;
	struct plan_request request = {.argv = NULL};

	imagine(&made, shown_files, shown, NULL, "true");
	request.argv = &made.argv;
	CHECK_INT(plan_compile(&made.plan, &made.policy, &made.host, &request, &made.error), 0);
	plan_explain_path(&made.plan, &looker, path, access, &explanation);
	CHECK_INT(explanation.is_allowed, is_allowed);
	CHECK_STRING(text_string(&explanation.why), why);
	CHECK_STRING(text_string(&explanation.flag), flag);
}

static void test_paths_with_mounts(void)
{
	check_path("/home/u/p/file", PLAN_WRITE, true, "'/home/u/p' is shown", "");
	check_path("/home/u/p/closed", PLAN_READ, false, "the permissions of the file or directory do not allow it",
		   "");
	check_path("/home/u/p/shut/file", PLAN_READ, false,
		   "the permissions of a directory above it keep the command out", "");
	check_path("/home/u/p/out/file", PLAN_READ, false, "the jar does not show it", "--ro /srv/data/file");
	check_path("/home/u/p/secret", PLAN_READ, false, "'/home/u' is private and empty", "");
	check_path("/home/u/p/round", PLAN_READ, false, "its symbolic links form a loop, or are too long", "");
	check_path("/home/u/p/hidden/file", PLAN_READ, false, "'/home/u/p/hidden' is hidden", "");
	check_path("/home/u/p/nothing", PLAN_READ, false, "the host has nothing there", "");
	check_path("/home/u/p/nothing", PLAN_WRITE, true, "'/home/u/p' is shown", "");
	check_path("/home/u/p/../x", PLAN_WRITE, true, "'/home/u' is private: it is the jar's own, and not the host's",
		   "");
	check_path("/home/u/p/.bashrc", PLAN_WRITE, false, "it is protected: a shell runs it when it starts or ends",
		   "--rw /home/u/p/.bashrc");
	check_path("/usr/bin/link", PLAN_EXECUTE, true, "'/usr' is shown read-only", "");
	check_path("/usr/bin/link", PLAN_WRITE, false, "'/usr' is shown read-only", "");
	check_path("/elsewhere/file", PLAN_READ, true, "'/elsewhere' is shown read-only", "");
	check_path("/elsewhere/file", PLAN_WRITE, false, "'/elsewhere' is shown read-only", "--rw /data/file");
	check_path("/data/file", PLAN_READ, false, "the jar does not show it", "--ro /data/file");
	check_path("/changed/file", PLAN_WRITE, true, "'/changed' is shown", "");
	check_path("/srv/it's here/file", PLAN_READ, false, "the jar does not show it",
		   "--ro '/srv/it'\\''s here/file'");
	check_path("/srv/a:b/file", PLAN_READ, false, "the jar does not show it", "--ro '/srv/a\\:b/file'");
	check_path("/home/other/.ssh/id", PLAN_READ, false, "the jar does not show it", "");
	check_path("/home", PLAN_WRITE, false, "it is the jar's own, and read-only", "");
	check_path("/run/docker.sock", PLAN_WRITE, true, "'/run' is private: it is the jar's own, and not the host's",
		   "");
	check_path("/run/docker.sock", PLAN_READ, false, "'/run' is private and empty", "");
}

/* A look at the host sees the looker's part of /proc, which is another user's, and its links. */
static void test_paths_that_the_kernel_makes(void)
{
	static const char owns[] = "the jar has a /proc of its own",
			  mode[] = "the permissions of the file or directory do not allow it";
	static const char *const mounts[] = {
		"/proc/self/mounts",        "/proc/mounts",   "/proc/thread-self/mounts", "/proc/4/mounts",
		"/proc/self/task/4/mounts", "/home/u/p/mtab", "/home/u/p/mtab2"};

	for (size_t i = 0; i < ARRAY_LEN(mounts); i++) {
		check_path(mounts[i], PLAN_READ, true, owns, "");
		check_path(mounts[i], PLAN_WRITE, false, mode, "");
		check_path(mounts[i], PLAN_EXECUTE, false, mode, "");
	}
	check_path("/proc/self/comm", PLAN_WRITE, true, owns, "");
	check_path("/proc/self/environ", PLAN_READ, true, owns, "");
	check_path("/proc/1/environ", PLAN_READ, false, mode, "");
	check_path("/proc/1/comm", PLAN_WRITE, false, mode, "");
	check_path("/proc/self/clear_refs", PLAN_READ, false, mode, "");
	check_path("/proc/self/nothing", PLAN_READ, false, "the kernel has nothing there", "");
	check_path("/proc/self", PLAN_WRITE, false, "nothing can be made there", "");
	check_path("/proc/self/root/home/u/p/file", PLAN_WRITE, true, "'/home/u/p' is shown", "");
	check_path("/proc/self/cwd/file", PLAN_WRITE, true, "'/home/u/p' is shown", "");
	check_path("/proc/self/fd/9", PLAN_WRITE, true, owns, "");
	check_path("/home/u/p/input", PLAN_READ, true, owns, "");
	check_path("/home/u/p/sysfs", PLAN_READ, false, "the jar does not show it", "");
	check_path("/home/u/p/terminal", PLAN_READ, false, "the command has no terminal of its own", "");
	check_path("/dev/pts", PLAN_WRITE, false, "nothing can be made there", "");
	check_path("/dev/ptmx", PLAN_WRITE, true, "the jar has terminals of its own", "");
	check_path("/dev/pts/0", PLAN_READ, false, "no terminal has that name", "");
}

/* --- system calls ------------------------------------------------------------------------------------------- */

static void check_call(const char *name, bool is_allowed, const char *why)
{
	AUTO(plan_explanation_done) struct plan_explanation explanation = {0};
	AUTO(imagined_plan_done) struct imagined_plan made;
	struct plan_request request = {.argv = NULL};

	imagine(&made, NULL, NULL, NULL, "true");
	request.argv = &made.argv;
	CHECK_INT(plan_compile(&made.plan, &made.policy, &made.host, &request, &made.error), 0);
	CHECK(plan_explain_call(&made.plan, name, false, &explanation));
	CHECK_INT(explanation.is_allowed, is_allowed);
	CHECK_STRING(text_string(&explanation.why), why);
	CHECK(!explanation.flag.len);
}

static void test_system_calls(void)
{
	struct plan nobody = {0};
	struct plan_explanation explanation = {0};

	check_call("mount", false, "refused with EPERM by the filter");
	check_call("io_uring_setup", false, "refused with ENOSYS by the filter");
	check_call("clone", true, "refused with EPERM if a namespace flag is set");
	check_call("openat", true, "the system call filter does not restrict it");
	CHECK(!plan_explain_call(&nobody, "nosuchcall", false, &explanation));
}

static const struct test tests[] = {
	TEST(test_the_smallest_rule_for_a_host),
	TEST(test_a_rule_that_denies_has_no_cure),
	TEST(test_endpoints),
	TEST(test_paths_with_mounts),
	TEST(test_paths_that_the_kernel_makes),
	TEST(test_system_calls),
};

TEST_MAIN(tests)
