/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_oracle_seccomp.c - libseccomp as a second opinion on our numbers and our compiler
 *
 * Link with -lseccomp; a test only, the engine never does. The same refusals are told to libseccomp in its own
 * terms, its program is exported, and both are run in the simulator over every number and many arguments.
 * libseccomp knows no order among the rules of a call and no "differs" on the low half of an argument, so each of
 * our rows is taken apart into masked comparisons that do not overlap in their answers.
 */
#include <errno.h>
#include <linux/audit.h>
#include <seccomp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf_simulator.h"
#include "plan/seccomp/seccomp_compile.h"
#include "test.h"

#define NUMBER_END 600
#define KEEPER 4711
#define ENGINE 70000
#define OWN_USER 1000
#define OWN_GROUP 1100

static const uint32_t audit_archs[] = {AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64};
static const uint32_t library_archs[] = {SCMP_ARCH_X86_64, SCMP_ARCH_AARCH64};

static void test_numbers_agree_with_libseccomp(void)
{
	for (int arch = 0; arch < SECCOMP_ARCH_COUNT; arch++) {
		int known = 0;

		for (int id = 0; id < SYSCALL_ID_COUNT; id++) {
			const char *name = syscall_id_name(id);
			int theirs = seccomp_syscall_resolve_name_arch(library_archs[arch], name);

			/*
			 * Negative: a number of libseccomp's own for a call the architecture, or this version, has
			 * not.
			 */
			if (theirs < 0)
				continue;
			known++;
			if (theirs != syscall_number(id, arch))
				printf("%s on %s\n", name, syscall_arch_name(arch));
			CHECK_INT(syscall_number(id, arch), theirs);
		}
		/* And the other way round: nothing it knows is missing from our table. */
		for (int number = 0; number <= SYSCALL_NUMBER_MAX; number++) {
			char *name = seccomp_syscall_resolve_num_arch(library_archs[arch], number);

			if (name)
				CHECK_STRING(syscall_name((uint32_t)number, arch), name);
			free(name);
		}
		printf("# %s: %d numbers confirmed\n", syscall_arch_name(arch), known);
		CHECK(known > 290);
	}
}

/*
 * What to tell libseccomp for our @number: it takes numbers of the architecture it runs on, whatever it compiles
 * for, and translates by name. -1 where it cannot, since it has not heard of the name.
 */
static int library_number(uint32_t number, enum seccomp_arch arch)
{
	const char *name = syscall_name(number, arch);
	int translated;

	if (library_archs[arch] == seccomp_arch_native())
		return (int)number;
	translated = name ? seccomp_syscall_resolve_name(name) : -1;
	return translated >= 0 ? translated : -1;
}

struct oracle {
	scmp_filter_ctx context;
	enum seccomp_arch arch;
	int failures;
};

/* libseccomp's words for an answer are the kernel's. */
static void add(struct oracle *oracle, uint32_t answer, int number, const struct scmp_arg_cmp *comparisons,
		unsigned count)
{
	int rc = seccomp_rule_add_exact_array(oracle->context, answer, number, count, comparisons);

	/* -EEXIST: said before. */
	if (rc < 0 && rc != -EEXIST && !oracle->failures++)
		printf("libseccomp refuses a rule for call %d: %d\n", number, rc);
}

/* Conditions on one argument as a list of masked values, any of which makes them all true. */
struct alternatives {
	struct scmp_arg_cmp items[256];
	unsigned count;
};

/* All values whose bits above @bits_left are @prefix, but for those in @except: as few aligned blocks as it takes. */
static void add_blocks(struct alternatives *out, unsigned argument, uint32_t prefix, unsigned bits_left,
		       const uint32_t *except, size_t except_count)
{
	uint32_t mask = bits_left == 32 ? 0 : ~UINT32_C(0) << bits_left;
	bool has_exception = false;

	for (size_t i = 0; i < except_count; i++)
		has_exception = has_exception || (except[i] & mask) == prefix;
	if (!has_exception) {
		out->items[out->count++] = SCMP_CMP64(argument, SCMP_CMP_MASKED_EQ, mask, prefix);
		return;
	}
	if (bits_left == 0)
		return;
	add_blocks(out, argument, prefix, bits_left - 1, except, except_count);
	add_blocks(out, argument, prefix | UINT32_C(1) << (bits_left - 1), bits_left - 1, except, except_count);
}

/* All conditions of @rule on @argument. Several are all DIFFERS, or one alone: the table has nothing else. */
static void find_alternatives(struct alternatives *out, const struct seccomp_rule *rule, unsigned argument,
			      const struct seccomp_profile *profile)
{
	uint32_t except[SECCOMP_CONDITION_MAX];
	size_t except_count = 0;

	out->count = 0;
	for (size_t i = 0; i < seccomp_condition_count(rule); i++) {
		const struct seccomp_condition *condition = &rule->conditions[i];

		if (condition->argument != argument)
			continue;
		switch (condition->test) {
		case SECCOMP_TEST_NONE:
			break;
		case SECCOMP_TEST_EQUALS:
			out->items[out->count++] =
				SCMP_CMP64(argument, SCMP_CMP_MASKED_EQ, condition->mask, condition->value);
			break;
		case SECCOMP_TEST_DIFFERS:
			except[except_count++] = condition->value;
			break;
		case SECCOMP_TEST_HAS_ANY:
			if (condition->mask == UINT64_MAX) {
				out->items[out->count++] = SCMP_CMP64(argument, SCMP_CMP_NE, 0, 0);
				break;
			}
			for (unsigned bit = 0; bit < 64; bit++)
				if (condition->mask >> bit & 1)
					out->items[out->count++] = SCMP_CMP64(argument, SCMP_CMP_MASKED_EQ,
									      UINT64_C(1) << bit, UINT64_C(1) << bit);
			break;
		case SECCOMP_TEST_PROTECTED:
		case SECCOMP_TEST_PROTECTED_GROUP:
			for (size_t j = 0; j < profile->protected_count; j++) {
				uint32_t pid = (uint32_t)profile->protected_pids[j];

				out->items[out->count++] =
					SCMP_CMP64(argument, SCMP_CMP_MASKED_EQ, UINT32_MAX,
						   condition->test == SECCOMP_TEST_PROTECTED ? pid : -pid);
			}
			break;
		case SECCOMP_TEST_FOREIGN_USER:
		case SECCOMP_TEST_FOREIGN_GROUP:
			except[except_count++] = UINT32_MAX;
			except[except_count++] =
				condition->test == SECCOMP_TEST_FOREIGN_USER ? profile->uid : profile->gid;
			break;
		}
	}
	if (except_count)
		add_blocks(out, argument, 0, 32, except, except_count);
}

/* Every combination of one alternative per argument. */
static void add_combinations(struct oracle *oracle, const struct seccomp_rule *rule, int number, unsigned argument,
			     struct scmp_arg_cmp *chosen, unsigned chosen_count, const struct seccomp_profile *profile)
{
	struct alternatives alternatives;
	bool is_free = true;

	if (argument == 6) {
		add(oracle, rule->answer, number, chosen, chosen_count);
		return;
	}
	for (size_t i = 0; i < seccomp_condition_count(rule); i++)
		is_free = is_free && rule->conditions[i].argument != argument;
	if (is_free) {
		add_combinations(oracle, rule, number, argument + 1, chosen, chosen_count, profile);
		return;
	}
	find_alternatives(&alternatives, rule, argument, profile);
	for (unsigned i = 0; i < alternatives.count; i++) {
		chosen[chosen_count] = alternatives.items[i];
		add_combinations(oracle, rule, number, argument + 1, chosen, chosen_count + 1, profile);
	}
}

/* Rows of one call with different answers must not overlap here; an earlier row without conditions ends the call. */
static void add_rules(struct oracle *oracle, const struct seccomp_profile *profile)
{
	bool is_settled[SYSCALL_ID_COUNT] = {false};

	for (size_t i = 0; i < seccomp_rule_count; i++) {
		const struct seccomp_rule *rule = &seccomp_rules[i];
		int number = syscall_number(rule->call, oracle->arch);
		struct scmp_arg_cmp chosen[6];

		if (number >= 0)
			number = library_number((uint32_t)number, oracle->arch);
		if (number < 0 || !(rule->part & profile->parts) || is_settled[rule->call])
			continue;
		add_combinations(oracle, rule, number, 0, chosen, 0, profile);
		is_settled[rule->call] = seccomp_condition_count(rule) == 0;
	}
	for (uint32_t number = 0; number <= NUMBER_END; number++)
		if (!syscall_name(number, oracle->arch) && library_number(number, oracle->arch) >= 0)
			add(oracle, SECCOMP_RET_ERRNO | ENOSYS, (int)number, NULL, 0);
}

static size_t export_program(scmp_filter_ctx context, struct sock_filter *program, size_t capacity)
{
	AUTO_CLOSE int fd = memfd_create("oracle", MFD_CLOEXEC);
	ssize_t len;

	CHECK(fd >= 0);
	CHECK_INT(seccomp_export_bpf(context, fd), 0);
	len = pread(fd, program, capacity * sizeof(*program), 0);
	CHECK(len > 0);
	return len > 0 ? (size_t)len / sizeof(*program) : 0;
}

static uint64_t random_state = 88172645463325252ULL;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static uint64_t any_argument(enum seccomp_arch arch, uint32_t number)
{
	static const uint64_t values[] = {
		0,      1,       2,       3,          5,          6,          8,          10,       15,
		16,     17,      35,      40,         58,         62,         132,        0x5412,   0x541c,
		0x5423, 0x8901,  0x8902,  0x40000,    0x400000,   04755,      02755,      0755,     KEEPER,
		ENGINE, -KEEPER, -ENGINE, UINT32_MAX, UINT64_MAX, 0x10000000, 0x01200011, OWN_USER, OWN_GROUP};
	uint64_t value = values[next_random() % ARRAY_LEN(values)];

	/* Half of the time something this very call is asked about. */
	if (next_random() % 2) {
		size_t pick = next_random() % seccomp_rule_count;

		for (size_t i = 0; i < seccomp_rule_count; i++) {
			const struct seccomp_rule *rule = &seccomp_rules[(pick + i) % seccomp_rule_count];

			if (syscall_number(rule->call, arch) != (int)number || !rule->when[0])
				continue;
			value = rule->conditions[next_random() % seccomp_condition_count(rule)].value;
			break;
		}
	}
	switch (next_random() % 8) {
	case 0:
		return value | next_random() << 32;
	case 1:
		return value ^ UINT64_C(1) << next_random() % 64;
	case 2:
		return next_random();
	default:
		return value;
	}
}

static void compare(const struct seccomp_profile *profile, enum seccomp_arch arch)
{
	static struct sock_filter ours[SECCOMP_PROGRAM_MAX], theirs[BPF_MAXINSNS];
	struct oracle oracle = {.context = seccomp_init(SCMP_ACT_ALLOW), .arch = arch};
	bool is_comparable[NUMBER_END + 1];
	size_t our_len = 0, their_len;
	int differences = 0;
	long asked = 0;

	CHECK_INT(seccomp_compile(profile, arch, ours, ARRAY_LEN(ours), &our_len, NULL), 0);
	CHECK(oracle.context != NULL);
	if (library_archs[arch] != seccomp_arch_native()) {
		CHECK_INT(seccomp_arch_add(oracle.context, library_archs[arch]), 0);
		CHECK_INT(seccomp_arch_remove(oracle.context, seccomp_arch_native()), 0);
	}
	CHECK_INT(seccomp_attr_set(oracle.context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS)), 0);
	add_rules(&oracle, profile);
	CHECK_INT(oracle.failures, 0);
	their_len = export_program(oracle.context, theirs, ARRAY_LEN(theirs));
	CHECK(simulator_accepts(theirs, their_len));

	for (uint32_t number = 0; number <= NUMBER_END; number++)
		is_comparable[number] = library_number(number, arch) >= 0;
	/* A letter with exceptions, which is not translated for it above. */
	if (profile->parts & SECCOMP_ASK_METADATA)
		is_comparable[syscall_number(SYSCALL_ioctl, arch)] = false;
	for (uint32_t i = 0; i <= NUMBER_END * 500; i++) {
		uint32_t number = i % (NUMBER_END + 1);
		struct seccomp_data data = {.nr = (int)number, .arch = audit_archs[arch]};
		int our_answer, their_answer;

		if (!is_comparable[number])
			continue;
		asked++;
		if (i % 97 == 0 && arch == SECCOMP_ARCH_X86_64)
			data.nr |= 0x40000000;
		if (i % 89 == 0)
			data.arch = AUDIT_ARCH_I386;
		for (size_t j = 0; j < 6; j++)
			data.args[j] = any_argument(arch, number);
		our_answer = simulator_answer(ours, our_len, &data);
		their_answer = simulator_answer(theirs, their_len, &data);
		if (our_answer != their_answer && !differences++)
			printf("%s(%#llx, %#llx, %#llx) on %s: ours %d, theirs %d\n", syscall_name(number, arch),
			       (unsigned long long)data.args[0], (unsigned long long)data.args[1],
			       (unsigned long long)data.args[2], syscall_arch_name(arch), our_answer, their_answer);
	}
	CHECK_INT(differences, 0);
	printf("# %s: %ld questions; %zu instructions, libseccomp's %zu\n", syscall_arch_name(arch), asked, our_len,
	       their_len);
	seccomp_release(oracle.context);
}

static void compare_both(struct seccomp_profile *profile)
{
	profile->protected_pids[0] = KEEPER;
	profile->protected_pids[1] = ENGINE;
	profile->protected_count = 2;
	profile->uid = OWN_USER;
	profile->gid = OWN_GROUP;
	for (int arch = 0; arch < SECCOMP_ARCH_COUNT; arch++)
		compare(profile, arch);
}

static void test_namespace_filter_decides_as_libseccomp_does(void)
{
	struct seccomp_profile profile;

	seccomp_profile_init(&profile, RUNG_NAMESPACE, NET_NONE);
	compare_both(&profile);
}

/* Without the parts whose rows overlap with different answers: there the order decides, and libseccomp has none. */
static void test_landlock_filter_decides_as_libseccomp_does(void)
{
	struct seccomp_profile profile;

	seccomp_profile_init(&profile, RUNG_LANDLOCK, NET_HOST);
	profile.parts |= SECCOMP_NO_SIGNAL_DETOURS | SECCOMP_NO_SETGID_FILES;
	profile.parts &= ~(uint32_t)SECCOMP_ASK_METADATA;
	compare_both(&profile);
}

static void test_calls_that_are_asked_for_are_those_that_libseccomp_asks_for(void)
{
	struct seccomp_profile profile = {.parts = SECCOMP_ASK_METADATA | SECCOMP_UNKNOWN | SECCOMP_KEEP_CORE_LIMIT};

	compare_both(&profile);
}

static void test_landlock_socket_rules_decide_as_libseccomp_does(void)
{
	struct seccomp_profile profile;

	seccomp_profile_init(&profile, RUNG_LANDLOCK, NET_NONE);
	profile.parts &= ~(uint32_t)(SECCOMP_SOCKETS | SECCOMP_ASK_METADATA);
	compare_both(&profile);
}

static const struct test tests[] = {
	TEST(test_numbers_agree_with_libseccomp),
	TEST(test_namespace_filter_decides_as_libseccomp_does),
	TEST(test_landlock_filter_decides_as_libseccomp_does),
	TEST(test_calls_that_are_asked_for_are_those_that_libseccomp_asks_for),
	TEST(test_landlock_socket_rules_decide_as_libseccomp_does),
};

TEST_MAIN(tests)
