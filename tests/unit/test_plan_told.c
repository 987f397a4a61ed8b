/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_plan_told.c - a filter that tells refuses exactly what one refuses that does not
 */
#include "plan/seccomp/seccomp_compile.h"

#include <linux/audit.h>
#include <stdlib.h>

#include "bpf_simulator.h"
#include "test.h"

#define QUESTIONS 300000

static const uint32_t audit_arches[] = {
	[SECCOMP_ARCH_X86_64] = AUDIT_ARCH_X86_64, [SECCOMP_ARCH_AARCH64] = AUDIT_ARCH_AARCH64};

/* Numbers and arguments that rows are about, more often than chance would have it. */
static void ask_something(struct seccomp_data *data, enum seccomp_arch arch)
{
	const struct seccomp_rule *rule = &seccomp_rules[(size_t)rand() % seccomp_rule_count];

	*data = (struct seccomp_data){.arch = audit_arches[arch], .nr = rand() % (SYSCALL_NUMBER_MAX + 10)};
	if (rand() % 8 && syscall_number(rule->call, arch) >= 0)
		data->nr = syscall_number(rule->call, arch);
	for (size_t i = 0; i < 6; i++)
		data->args[i] = rand() % 4 ? (uint64_t)(unsigned)rand() : 0;
	for (size_t i = 0; i < seccomp_condition_count(rule); i++)
		if (rand() % 4)
			data->args[rule->conditions[i].argument] = rule->conditions[i].test == SECCOMP_TEST_HAS_ANY
									   ? rule->conditions[i].mask
									   : rule->conditions[i].value;
}

static void check(enum rung rung, enum seccomp_arch arch)
{
	static struct sock_filter plain[SECCOMP_PROGRAM_MAX], telling[SECCOMP_PROGRAM_MAX];
	bool is_asked[SYSCALL_NUMBER_MAX + 1] = {false}, is_told[SYSCALL_NUMBER_MAX + 1] = {false};
	struct seccomp_profile profile = {0};
	size_t plain_len, telling_len, told = 0;

	seccomp_profile_init(&profile, rung, NET_NONE);
	CHECK_INT(seccomp_compile(&profile, arch, plain, SECCOMP_PROGRAM_MAX, &plain_len, NULL), 0);
	profile.tells = true;
	CHECK_INT(seccomp_compile(&profile, arch, telling, SECCOMP_PROGRAM_MAX, &telling_len, NULL), 0);
	CHECK(simulator_accepts(telling, telling_len));
	for (size_t i = 0; i < QUESTIONS; i++) {
		struct seccomp_data data;
		uint32_t expected, found;

		ask_something(&data, arch);
		expected = simulator_run(plain, plain_len, &data, NULL);
		found = simulator_run(telling, telling_len, &data, NULL);
		if (expected == SECCOMP_RET_USER_NOTIF && data.nr <= SYSCALL_NUMBER_MAX)
			is_asked[data.nr] = true;
		if (found == expected)
			continue;
		/* Whoever answers says EPERM to everything that it does not carry out. */
		CHECK(expected == (SECCOMP_RET_ERRNO | EPERM) && found == SECCOMP_RET_USER_NOTIF);
		if (data.nr <= SYSCALL_NUMBER_MAX)
			is_told[data.nr] = true;
		told++;
	}
	CHECK(told > 1000);
	/* Who answers goes by the number alone. */
	for (size_t i = 0; i <= SYSCALL_NUMBER_MAX; i++)
		CHECK(!(is_asked[i] && is_told[i]));
	CHECK(is_told[syscall_number(SYSCALL_mount, arch)] && is_told[syscall_number(SYSCALL_unshare, arch)]);
	CHECK(!is_told[syscall_number(SYSCALL_clone3, arch)] && !is_told[syscall_number(SYSCALL_io_uring_setup, arch)]);
}

/* What the kernel takes of what two filters say: the action that ranks higher, and of the same that of the later one. */
static uint32_t take(uint32_t later, uint32_t earlier)
{
	return (later & SECCOMP_RET_ACTION_FULL) <= (earlier & SECCOMP_RET_ACTION_FULL) ? later : earlier;
}

/* The filter of a session's first process, which nobody listens to, and over it the one of a run, which has a listener. */
static void check_two(enum seccomp_arch arch)
{
	static struct sock_filter plain[SECCOMP_PROGRAM_MAX], first[SECCOMP_PROGRAM_MAX], own[SECCOMP_PROGRAM_MAX];
	struct seccomp_profile profile = {0};
	size_t plain_len, first_len, own_len, told = 0;

	seccomp_profile_init(&profile, RUNG_NAMESPACE, NET_NONE);
	CHECK_INT(seccomp_compile(&profile, arch, plain, SECCOMP_PROGRAM_MAX, &plain_len, NULL), 0);
	profile.tells = true;
	profile.parts &= ~(uint32_t)SECCOMP_ONE_LISTENER;
	CHECK_INT(seccomp_compile(&profile, arch, first, SECCOMP_PROGRAM_MAX, &first_len, NULL), 0);
	profile.parts = SECCOMP_TOLD | SECCOMP_ONE_LISTENER;
	CHECK_INT(seccomp_compile(&profile, arch, own, SECCOMP_PROGRAM_MAX, &own_len, NULL), 0);
	for (size_t i = 0; i < QUESTIONS; i++) {
		struct seccomp_data data;
		uint32_t expected, of_first, of_own;

		ask_something(&data, arch);
		expected = simulator_run(plain, plain_len, &data, NULL);
		of_first = simulator_run(first, first_len, &data, NULL);
		of_own = simulator_run(own, own_len, &data, NULL);
		if (take(of_own, of_first) != SECCOMP_RET_USER_NOTIF) {
			CHECK_INT(take(of_own, of_first), expected);
			continue;
		}
		/* Who listens is asked, and never the first process alone. */
		CHECK(expected == (SECCOMP_RET_ERRNO | EPERM) && of_own == SECCOMP_RET_USER_NOTIF);
		told++;
	}
	CHECK(told > 1000);
}

static void test_the_same_is_refused_by_two(void)
{
	check_two(SECCOMP_ARCH_X86_64);
	check_two(SECCOMP_ARCH_AARCH64);
}

/* Who answers goes by the number alone: what is refused must not be taken for what is only noted, and goes on. */
static void test_nothing_that_is_told_is_traced(void)
{
	for (size_t i = 0; i < seccomp_rule_count; i++)
		for (size_t j = 0; seccomp_is_told(&seccomp_rules[i]) && j < seccomp_rule_count; j++)
			CHECK(seccomp_rules[i].call != seccomp_rules[j].call ||
			      seccomp_rules[j].answer != SECCOMP_RET_USER_NOTIF);
}

static void test_the_same_is_refused_with_mounts(void)
{
	check(RUNG_NAMESPACE, SECCOMP_ARCH_X86_64);
	check(RUNG_NAMESPACE, SECCOMP_ARCH_AARCH64);
}

static void test_the_same_is_refused_without(void)
{
	check(RUNG_LANDLOCK, SECCOMP_ARCH_X86_64);
	check(RUNG_LANDLOCK, SECCOMP_ARCH_AARCH64);
}

static const struct test tests[] = {
	TEST(test_the_same_is_refused_with_mounts),
	TEST(test_the_same_is_refused_without),
	TEST(test_the_same_is_refused_by_two),
	TEST(test_nothing_that_is_told_is_traced),
};

TEST_MAIN(tests)
