/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_plan_etc.c - what of /etc is copied into a jar, what is mounted, and what is written anew
 */
#include "test.h"

#include "imagined_plan.h"

static char *no_environment[] = {NULL};
static const char *const files[] = {"/usr/bin/", "/etc/passwd", "/etc/hosts", "/etc/alternatives/", NULL};

static void imagine_etc(struct imagined_plan *made, const char *const *flags)
{
	imagine(made, files, flags, no_environment, "true");
}

static struct host_path *find_path(struct imagined_plan *made, const char *path)
{
	for (size_t i = 0; i < made->host.etc.count; i++)
		if (!strcmp(made->host.etc.items[i].path, path))
			return &made->host.etc.items[i];
	abort();
}

static const struct plan_step *find_step(const struct imagined_plan *made, const char *target)
{
	static const struct plan_step none = {.kind = STEP_KIND_COUNT};

	for (size_t i = 0; i < made->plan.core.steps.count; i++)
		if (made->plan.core.steps.items[i].target && !strcmp(made->plan.core.steps.items[i].target, target))
			return &made->plan.core.steps.items[i];
	return &none;
}

static void compile(struct imagined_plan *made)
{
	made->rc = plan_compile(&made->plan, &made->policy, &made->host, &(struct plan_request){.argv = &made->argv},
				&made->error);
	CHECK_INT(made->rc, 0);
}

static void test_small_public_files_are_copied(void)
{
	const struct plan_step *step;
	struct imagined_plan made;

	imagine_etc(&made, NULL);
	compile(&made);
	step = find_step(&made, "/etc/passwd");
	CHECK_INT(step->kind, STEP_COPY);
	CHECK_INT(step->mode, 0444);
	CHECK(step->inode != 0);
	CHECK_INT(find_step(&made, "/etc/alternatives")->kind, STEP_BIND);
	CHECK(find_step(&made, "/etc/alternatives")->inode != 0);
	imagined_plan_done(&made);
}

static void test_others_are_mounted(void)
{
	struct imagined_plan made;

	imagine_etc(&made, NULL);
	find_path(&made, "/etc/passwd")->mode = 0640;
	find_path(&made, "/etc/hosts")->size_bytes = JAR_COPY_BYTES_MAX + 1;
	compile(&made);
	CHECK_INT(find_step(&made, "/etc/passwd")->kind, STEP_BIND);
	CHECK_INT(find_step(&made, "/etc/hosts")->kind, STEP_BIND);
	imagined_plan_done(&made);
}

static void test_nothing_is_copied_where_etc_changes(void)
{
	struct imagined_plan made;

	imagine_etc(&made, NULL);
	made.host.has_unsteady_etc = true;
	compile(&made);
	CHECK_INT(find_step(&made, "/etc/passwd")->kind, STEP_BIND);
	imagined_plan_done(&made);
}

static void test_nothing_is_copied_into_a_private_place(void)
{
	static const char *const flags[] = {"tmpfs", "/etc", NULL};
	const struct plan_step *step;
	struct imagined_plan made;

	imagine_etc(&made, flags);
	compile(&made);
	step = find_step(&made, "/etc/passwd");
	CHECK(step->kind != STEP_COPY);
	imagined_plan_done(&made);
}

static void check_hosts(const char *content, const char *const *flags, const char *expected)
{
	const struct plan_step *step;
	struct imagined_plan made;

	imagine_etc(&made, flags);
	made.host.hosts = strdup(content);
	compile(&made);
	step = find_step(&made, "/etc/hosts");
	CHECK_INT(step->kind, expected ? STEP_FILE : STEP_COPY);
	if (expected && step->kind == STEP_FILE)
		CHECK_STRING(step->source, expected);
	imagined_plan_done(&made);
}

static void test_a_network_of_its_own_has_a_name_for_its_loopback(void)
{
	static const char line[] = "127.0.0.1 localhost\n\n::1\tlocalhost ip6-localhost ip6-loopback\n";
	static const char *const host_network[] = {"net", "host", NULL};

	check_hosts("127.0.0.1 localhost\n", NULL, line);
	check_hosts("fe80::1 other\n", NULL, "fe80::1 other\n\n::1\tlocalhost ip6-localhost ip6-loopback\n");
	check_hosts("127.0.0.1 localhost\n::1 localhost\n", NULL, NULL);
	check_hosts("::1\tlocalhost\n", NULL, NULL);
	check_hosts("127.0.0.1 localhost\n", host_network, NULL);
}

static const struct test tests[] = {
	TEST(test_small_public_files_are_copied),
	TEST(test_others_are_mounted),
	TEST(test_nothing_is_copied_where_etc_changes),
	TEST(test_nothing_is_copied_into_a_private_place),
	TEST(test_a_network_of_its_own_has_a_name_for_its_loopback),
};

TEST_MAIN(tests)
