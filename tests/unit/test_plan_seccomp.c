/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_plan_seccomp.c - the system call filter: what it answers to every call, how large it is, and that the
 * kernel takes it
 *
 * Two independent readings check the compiled program: a plain walk over the rule table, for every number and many
 * arguments, and a list of expected answers written by hand, which would notice a wrong table too.
 */
#include <errno.h>
#include <linux/audit.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bpf_simulator.h"
#include "inside/jar_plan.h"
#include "inside/build/build.h"
#include "plan/seccomp/seccomp_compile.h"
#include "test.h"

#define MINDER 4711
#define ENGINE 4194303
#define OWN_USER 1000
#define OWN_GROUP 1100

static const uint32_t audit_archs[] = {AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64};

struct filter {
	struct sock_filter program[BPF_MAXINSNS];
	size_t len;
	enum seccomp_arch arch;
};

static uint64_t random_state = 88172645463325252ULL;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void compile(struct filter *filter, const struct seccomp_profile *profile, enum seccomp_arch arch)
{
	struct error error = {0};

	filter->arch = arch;
	filter->len = 0;
	CHECK_INT(seccomp_compile(profile, arch, filter->program, SECCOMP_PROGRAM_MAX, &filter->len, &error), 0);
	CHECK_STRING(error.message, "");
	CHECK(simulator_accepts(filter->program, filter->len));
}

static int ask(const struct filter *filter, uint32_t number, const uint64_t args[6])
{
	struct seccomp_data data = {.nr = (int)number, .arch = audit_archs[filter->arch]};

	memcpy(data.args, args, sizeof(data.args));
	return simulator_answer(filter->program, filter->len, &data);
}

/* The table read naively: no ranges, no tree, no order but its own. */

static bool holds(const struct seccomp_condition *condition, const struct seccomp_profile *profile,
		  const uint64_t args[6])
{
	uint64_t argument = args[condition->argument];
	bool is_protected = false;

	switch (condition->test) {
	case SECCOMP_TEST_NONE:
		return true;
	case SECCOMP_TEST_EQUALS:
		return (argument & 0xffffffff & condition->mask) == condition->value;
	case SECCOMP_TEST_DIFFERS:
		return (argument & 0xffffffff) != condition->value;
	case SECCOMP_TEST_HAS_ANY:
		return (argument & condition->mask) != 0;
	case SECCOMP_TEST_PROTECTED:
	case SECCOMP_TEST_PROTECTED_GROUP:
		for (size_t i = 0; i < profile->protected_count; i++) {
			int pid = profile->protected_pids[i];

			if (condition->test == SECCOMP_TEST_PROTECTED_GROUP)
				pid = -pid;
			is_protected = is_protected || (int)(uint32_t)argument == pid;
		}
		return is_protected;
	case SECCOMP_TEST_FOREIGN_USER:
		return (uint32_t)argument != UINT32_MAX && (uint32_t)argument != profile->uid;
	case SECCOMP_TEST_FOREIGN_GROUP:
		return (uint32_t)argument != UINT32_MAX && (uint32_t)argument != profile->gid;
	}
	return false;
}

static int expected_answer(const struct seccomp_rule *rules, size_t rule_count, const struct seccomp_profile *profile,
			   enum seccomp_arch arch, uint32_t number, const uint64_t args[6])
{
	const char *name = syscall_name(number, arch);

	if (arch == SECCOMP_ARCH_X86_64 && (number & 0xc0000000))
		return ENOSYS;
	if (!name)
		return profile->parts & SECCOMP_UNKNOWN ? ENOSYS : 0;
	for (size_t i = 0; i < rule_count; i++) {
		bool is_hit = (rules[i].part & profile->parts) && !strcmp(syscall_id_name(rules[i].call), name);

		for (size_t j = 0; is_hit && j < SECCOMP_CONDITION_MAX; j++)
			is_hit = holds(&rules[i].conditions[j], profile, args);
		if (is_hit)
			return simulator_verdict(rules[i].answer);
	}
	return 0;
}

/* An argument near a border of some rule, or anything. */
static uint64_t interesting_argument(const struct seccomp_rule *rules, size_t rule_count)
{
	const struct seccomp_rule *rule = &rules[next_random() % rule_count];
	const struct seccomp_condition *condition = &rule->conditions[next_random() % SECCOMP_CONDITION_MAX];
	uint64_t bases[] = {0,
			    1,
			    UINT32_MAX,
			    UINT64_MAX,
			    condition->value,
			    condition->mask,
			    ~condition->mask,
			    MINDER,
			    -MINDER,
			    ENGINE,
			    -ENGINE,
			    OWN_USER,
			    OWN_GROUP,
			    next_random(),
			    next_random() % 64,
			    UINT64_C(1) << next_random() % 64};
	uint64_t value = bases[next_random() % ARRAY_LEN(bases)];

	switch (next_random() % 6) {
	case 0:
		return value | next_random() << 32;
	case 1:
		return value + 1;
	case 2:
		return value ^ UINT64_C(1) << next_random() % 64;
	default:
		return value;
	}
}

static bool has_conditions(const struct seccomp_rule *rules, size_t rule_count, enum seccomp_arch arch, uint32_t number)
{
	for (size_t i = 0; i < rule_count; i++)
		if (rules[i].when[0] && syscall_number(rules[i].call, arch) == (int)number)
			return true;
	return false;
}

static size_t compare_all(const struct filter *filter, const struct seccomp_rule *rules, size_t rule_count,
			  const struct seccomp_profile *profile, int tries)
{
	size_t differences = 0;

	for (uint32_t number = 0; number <= 600; number++) {
		int rounds = has_conditions(rules, rule_count, filter->arch, number) ? tries : 2;

		for (int i = 0; i < rounds; i++) {
			uint64_t args[6];
			int expected, actual;

			for (size_t j = 0; j < 6; j++)
				args[j] = interesting_argument(rules, rule_count);
			/* A rule that looks at several arguments is seldom hit by chance: start from one that holds. */
			if (i % 2) {
				size_t pick = next_random() % rule_count;

				for (size_t k = 0; k < rule_count; k++) {
					const struct seccomp_rule *rule = &rules[(pick + k) % rule_count];

					if (syscall_number(rule->call, filter->arch) != (int)number)
						continue;
					for (size_t c = 0; c < seccomp_condition_count(rule); c++)
						if (rule->conditions[c].test == SECCOMP_TEST_EQUALS)
							args[rule->conditions[c].argument] = rule->conditions[c].value;
					break;
				}
			}
			expected = expected_answer(rules, rule_count, profile, filter->arch, number, args);
			actual = ask(filter, number, args);
			if (actual == expected)
				continue;
			if (!differences++)
				printf("arch %d call %u (%s) args %#llx %#llx %#llx: %d, not %d\n", filter->arch,
				       number, syscall_name(number, filter->arch), (unsigned long long)args[0],
				       (unsigned long long)args[1], (unsigned long long)args[2], actual, expected);
		}
	}
	return differences;
}

static void protect(struct seccomp_profile *profile)
{
	profile->uid = OWN_USER;
	profile->gid = OWN_GROUP;
	profile->protected_pids[0] = MINDER;
	profile->protected_pids[1] = ENGINE;
	profile->protected_count = 2;
}

static void test_number_table_is_sound(void)
{
	int max = -1;

	for (int arch = 0; arch < SECCOMP_ARCH_COUNT; arch++) {
		bool is_taken[SYSCALL_NUMBER_MAX + 1] = {false};

		for (int id = 0; id < SYSCALL_ID_COUNT; id++) {
			int number = syscall_number(id, arch);

			CHECK(number >= -1 && number <= SYSCALL_NUMBER_MAX);
			if (number < 0)
				continue;
			CHECK(!is_taken[number]);
			is_taken[number] = true;
			max = MAX_OF(max, number);
			CHECK_STRING(syscall_name((uint32_t)number, arch), syscall_id_name(id));
		}
		/* From here on the two architectures number alike. */
		for (int number = 424; number <= SYSCALL_NUMBER_MAX; number++)
			CHECK_STRING(syscall_name((uint32_t)number, arch), syscall_name((uint32_t)number, 0));
	}
	CHECK_INT(max, SYSCALL_NUMBER_MAX);
	CHECK(!syscall_name(SYSCALL_NUMBER_MAX + 1, SECCOMP_ARCH_X86_64));
	CHECK(!syscall_name(UINT32_MAX, SECCOMP_ARCH_AARCH64));
}

static void test_numbers_agree_with_the_build_machine(void)
{
#if defined(__x86_64__) || defined(__aarch64__)
	enum seccomp_arch arch = syscall_native_arch();

#define AGREES(name) CHECK_INT(syscall_number(SYSCALL_##name, arch), SYS_##name)
	AGREES(read);
	AGREES(clone);
	AGREES(ioctl);
	AGREES(socket);
	AGREES(mount);
	AGREES(prlimit64);
	AGREES(bpf);
	AGREES(keyctl);
	AGREES(unshare);
	AGREES(ptrace);
	AGREES(io_pgetevents);
	AGREES(clone3);
#undef AGREES
#endif
}

/* Every rung, every part alone with what it needs, and every part left out of the whole. */
static void test_every_number_is_answered_as_the_table_says(void)
{
	static struct filter filter;

	for (int arch = 0; arch < SECCOMP_ARCH_COUNT; arch++) {
		for (int i = 0; i < 4; i++) {
			struct seccomp_profile profile;

			seccomp_profile_init(&profile, i & 1 ? RUNG_NAMESPACE : RUNG_LANDLOCK,
					     i & 2 ? NET_NONE : NET_HOST);
			protect(&profile);
			compile(&filter, &profile, arch);
			CHECK_INT(compare_all(&filter, seccomp_rules, seccomp_rule_count, &profile, 3000), 0);
		}
		for (uint32_t bit = 1; bit < SECCOMP_PART_ALL; bit <<= 1) {
			struct seccomp_profile profile = {.parts = bit};

			if (bit == SECCOMP_NO_UNIX_CONNECT)
				profile.parts |= SECCOMP_NO_INET;
			protect(&profile);
			compile(&filter, &profile, arch);
			CHECK_INT(compare_all(&filter, seccomp_rules, seccomp_rule_count, &profile, 300), 0);
			profile.parts = SECCOMP_PART_ALL & ~profile.parts;
			if (!(profile.parts & SECCOMP_NO_INET))
				profile.parts &= ~(uint32_t)SECCOMP_NO_UNIX_CONNECT;
			profile.protected_count = bit & 1;
			compile(&filter, &profile, arch);
			CHECK_INT(compare_all(&filter, seccomp_rules, seccomp_rule_count, &profile, 300), 0);
		}
	}
}

struct vector {
	enum syscall_id call;
	uint64_t args[6];
	int on_namespace, on_landlock; /* both without network */
};

#define ASKED SIMULATOR_ASKED
#define HIGH (UINT64_C(0xdeadbeef) << 32)

static const struct vector vectors[] = {
	{SYSCALL_read, {0}, 0, 0},
	{SYSCALL_execve, {0}, 0, 0},
	{SYSCALL_openat2, {0}, 0, 0},
	{SYSCALL_ptrace, {16, 77}, 0, 0},
	{SYSCALL_seccomp, {1}, 0, 0},
	{SYSCALL_landlock_restrict_self, {0}, 0, 0},
	{SYSCALL_set_mempolicy, {0}, 0, 0},
	{SYSCALL_mount, {0}, EPERM, EPERM},
	{SYSCALL_umount2, {0}, EPERM, EPERM},
	{SYSCALL_open_tree_attr, {0}, EPERM, EPERM},
	{SYSCALL_move_mount, {0}, EPERM, EPERM},
	{SYSCALL_finit_module, {0}, EPERM, EPERM},
	{SYSCALL_kexec_file_load, {0}, EPERM, EPERM},
	{SYSCALL_bpf, {0}, EPERM, EPERM},
	{SYSCALL_perf_event_open, {0}, EPERM, EPERM},
	{SYSCALL_userfaultfd, {0}, EPERM, EPERM},
	{SYSCALL_keyctl, {0}, EPERM, EPERM},
	{SYSCALL_open_by_handle_at, {0}, EPERM, EPERM},
	{SYSCALL_name_to_handle_at, {0}, EOPNOTSUPP, EOPNOTSUPP},
	{SYSCALL_io_uring_setup, {0}, ENOSYS, ENOSYS},
	{SYSCALL_io_uring_enter, {0}, ENOSYS, ENOSYS},
	/* The ids of the jar are 0 here. */
	{SYSCALL_fchownat, {0, 1, 1000, 0}, EPERM, ASKED},
	{SYSCALL_fchownat, {0, 1, 0, 1000}, EPERM, ASKED},
	{SYSCALL_fchownat, {0, 1, UINT32_MAX, UINT64_MAX}, 0, ASKED},
	{SYSCALL_fchownat, {0, 1, HIGH, 0}, 0, ASKED},
	{SYSCALL_fchown, {0, 0, 0}, 0, ASKED},
	{SYSCALL_setuid, {1}, EPERM, 0},
	{SYSCALL_setgid, {1}, EPERM, 0},
	{SYSCALL_setresuid, {UINT32_MAX, UINT32_MAX, 7}, EPERM, 0},
	{SYSCALL_setresgid, {UINT32_MAX, 0, 0}, 0, 0},
	{SYSCALL_clone3, {0}, ENOSYS, ENOSYS},
	{SYSCALL_setns, {3, 0}, EPERM, EPERM},
	{SYSCALL_clone, {0x01200011}, 0, 0},         /* fork */
	{SYSCALL_clone, {0x003d0f00}, 0, 0},         /* a thread */
	{SYSCALL_clone, {0x80 | 17}, 0, 0},          /* not CLONE_NEWTIME: part of the exit signal */
	{SYSCALL_clone, {0x10000011}, EPERM, EPERM}, /* CLONE_NEWUSER */
	{SYSCALL_clone, {HIGH | 0x10000011}, EPERM, EPERM},
	{SYSCALL_clone, {HIGH | 17}, 0, 0},
	{SYSCALL_clone, {0x00020011}, EPERM, EPERM},
	{SYSCALL_clone, {0x02000011}, EPERM, EPERM},
	{SYSCALL_clone, {0x04000011}, EPERM, EPERM},
	{SYSCALL_clone, {0x08000011}, EPERM, EPERM},
	{SYSCALL_clone, {0x20000011}, EPERM, EPERM},
	{SYSCALL_clone, {0x40000011}, EPERM, EPERM},
	{SYSCALL_unshare, {0}, 0, 0},
	{SYSCALL_unshare, {0x400 | 0x200 | 0x40000}, 0, 0},
	{SYSCALL_unshare, {0x80}, EPERM, EPERM}, /* CLONE_NEWTIME */
	{SYSCALL_unshare, {0x10000000}, EPERM, EPERM},
	{SYSCALL_unshare, {0x10000400}, EPERM, EPERM},
	{SYSCALL_unshare, {UINT64_C(1) << 37}, EPERM, EPERM},
	{SYSCALL_ioctl, {0, 0x5412}, EPERM, EPERM},
	{SYSCALL_ioctl, {0, HIGH | 0x5412}, EPERM, EPERM},
	{SYSCALL_ioctl, {0, UINT64_C(1) << 63 | 0x541c}, EPERM, EPERM},
	{SYSCALL_ioctl, {0, 0x5423}, EPERM, EPERM},
	{SYSCALL_ioctl, {0, 0x5401}, 0, 0}, /* TCGETS */
	{SYSCALL_ioctl, {0, 0x8902}, 0, 0},
	{SYSCALL_personality, {0}, 0, 0},
	{SYSCALL_personality, {0xffffffff}, 0, 0},
	{SYSCALL_personality, {UINT64_MAX}, 0, 0},
	{SYSCALL_personality, {0x0040000}, 0, 0},
	{SYSCALL_personality, {8}, EPERM, EPERM},
	{SYSCALL_personality, {0x0400000}, EPERM, EPERM}, /* READ_IMPLIES_EXEC */
	{SYSCALL_personality, {0x0440000}, EPERM, EPERM},
	{SYSCALL_personality, {HIGH | 0x0400000}, EPERM, EPERM},
	{SYSCALL_prctl, {15}, 0, 0},
	{SYSCALL_prctl, {38, 1}, 0, 0},
	{SYSCALL_prctl, {35}, EPERM, EPERM},
	{SYSCALL_prctl, {HIGH | 62}, EPERM, EPERM},
	{SYSCALL_socket, {1, 1, 0}, 0, 0},
	{SYSCALL_socket, {1, 1 | 02000000, 0}, 0, 0},
	{SYSCALL_socket, {1, 5, 0}, 0, 0},
	{SYSCALL_socket, {1, 2, 0}, 0, ESOCKTNOSUPPORT},
	{SYSCALL_socket, {1, 2 | 02000000, 0}, 0, ESOCKTNOSUPPORT},
	{SYSCALL_socket, {1, HIGH | 3 | 04000, 0}, 0, ESOCKTNOSUPPORT},
	{SYSCALL_socket, {2, 1, 0}, 0, EAFNOSUPPORT},
	{SYSCALL_socket, {2, 1, 6}, 0, EAFNOSUPPORT},
	{SYSCALL_socket, {10, 2, 17}, 0, EAFNOSUPPORT},
	{SYSCALL_socket, {10, 2, 58}, 0, EAFNOSUPPORT},
	{SYSCALL_socket, {2, 1, 132}, EPROTONOSUPPORT, EAFNOSUPPORT}, /* SCTP */
	{SYSCALL_socket, {2, 1, 262}, EPROTONOSUPPORT, EAFNOSUPPORT}, /* MPTCP */
	{SYSCALL_socket, {10, 6, 33}, EPROTONOSUPPORT, EAFNOSUPPORT}, /* DCCP */
	{SYSCALL_socket, {16, 3, 0}, 0, EAFNOSUPPORT},
	{SYSCALL_socket, {16, 3, HIGH}, 0, EAFNOSUPPORT},
	{SYSCALL_socket, {16, 3, 9}, EPROTONOSUPPORT, EAFNOSUPPORT}, /* audit */
	{SYSCALL_socket, {0, 1, 0}, EAFNOSUPPORT, EAFNOSUPPORT},
	{SYSCALL_socket, {17, 3, 0}, EAFNOSUPPORT, EAFNOSUPPORT}, /* packet */
	{SYSCALL_socket, {38, 5, 0}, EAFNOSUPPORT, EAFNOSUPPORT}, /* AF_ALG */
	{SYSCALL_socket, {40, 1, 0}, EAFNOSUPPORT, EAFNOSUPPORT}, /* vsock */
	{SYSCALL_socket, {HIGH | 40, 1, 0}, EAFNOSUPPORT, EAFNOSUPPORT},
	{SYSCALL_socketpair, {1, 1}, 0, 0},
	{SYSCALL_socketpair, {1, 2}, 0, ESOCKTNOSUPPORT},
	{SYSCALL_socketpair, {30, 1}, EOPNOTSUPP, EOPNOTSUPP}, /* TIPC */
	{SYSCALL_connect, {3}, 0, EACCES},
	{SYSCALL_sendto, {3, 0, 0, 0}, 0, 0},
	{SYSCALL_sendmsg, {3}, 0, 0},
	{SYSCALL_bind, {3}, 0, EACCES},
	{SYSCALL_setsockopt, {3, 6, 31}, ENOENT, ENOENT},
	{SYSCALL_setsockopt, {3, 6, 1}, 0, 0},
	{SYSCALL_setsockopt, {3, 1, 31}, 0, 0},
	{SYSCALL_setsockopt, {3, HIGH | 1, HIGH | 60}, ENOPROTOOPT, ENOPROTOOPT}, /* SO_ZEROCOPY */
	{SYSCALL_setsockopt, {3, 6, 60}, 0, 0},
	{SYSCALL_shmctl, {0, HIGH | 11}, EPERM, ENOSYS}, /* SHM_LOCK */
	{SYSCALL_shmctl, {0, 12}, 0, ENOSYS},
	{SYSCALL_shmget, {0, 4096, 05600}, EPERM, ENOSYS}, /* SHM_HUGETLB */
	{SYSCALL_shmget, {0, 4096, 01600}, 0, ENOSYS},
	{SYSCALL_ioctl, {3, 0x800c6613}, EOPNOTSUPP, EOPNOTSUPP},
	{SYSCALL_ioctl, {3, HIGH | 0xc0506617}, EOPNOTSUPP, EOPNOTSUPP},
	{SYSCALL_ioctl, {3, 0x40806685}, EOPNOTSUPP, EOPNOTSUPP},
	{SYSCALL_ioctl, {3, 0xc0046686}, 0, 0},          /* FS_IOC_MEASURE_VERITY reads */
	{SYSCALL_ioctl, {3, 0x40086602}, 0, EOPNOTSUPP}, /* FS_IOC_SETFLAGS */
	{SYSCALL_ioctl, {3, 0x80086601}, 0, 0},          /* FS_IOC_GETFLAGS */
	{SYSCALL_ioctl, {3, 0x401c5820}, 0, EOPNOTSUPP},
	{SYSCALL_ioctl, {3, 0x5000940e}, 0, ENOTTY}, /* BTRFS_IOC_SUBVOL_CREATE */
	{SYSCALL_ioctl, {3, 0x4008941a}, 0, ENOTTY},
	{SYSCALL_ioctl, {3, 0x40049409}, 0, 0},  /* FICLONE */
	{SYSCALL_ioctl, {3, 0xc0189436}, 0, 0},  /* FIDEDUPERANGE */
	{SYSCALL_seccomp, {1, 8}, EBUSY, EBUSY}, /* a listener */
	{SYSCALL_seccomp, {1, 8 | 32}, EBUSY, EBUSY},
	{SYSCALL_seccomp, {1, 1}, 0, 0},
	{SYSCALL_utimensat, {3, 0, 0, 0}, 0, ASKED},
	{SYSCALL_utime, {1}, 0, ASKED},
	{SYSCALL_setxattr, {1}, 0, ASKED},
	{SYSCALL_fsetxattr, {3}, 0, ASKED},
	{SYSCALL_lremovexattr, {1}, 0, ASKED},
	{SYSCALL_getxattr, {1}, 0, 0},
	{SYSCALL_setxattrat, {1}, 0, ENOSYS},
	{SYSCALL_prlimit64, {1, 0, 0x1000}, EPERM, EPERM},
	{SYSCALL_prlimit64, {HIGH | 1, 0, HIGH}, EPERM, EPERM},
	{SYSCALL_prlimit64, {1, 0, 0}, 0, 0},
	{SYSCALL_sched_setaffinity, {1}, EPERM, EPERM},
	{SYSCALL_sched_setscheduler, {1}, EPERM, EPERM},
	{SYSCALL_sched_setparam, {1}, EPERM, EPERM},
	{SYSCALL_sched_setattr, {1}, EPERM, EPERM},
	{SYSCALL_setpriority, {0, 1}, EPERM, EPERM},
	{SYSCALL_setpriority, {1, 1}, EPERM, EPERM},
	{SYSCALL_ioprio_set, {1, 1}, EPERM, EPERM},
	{SYSCALL_ioprio_set, {2, 1}, EPERM, EPERM},
	{SYSCALL_chmod, {0, 0755}, 0, ASKED},
	{SYSCALL_chmod, {0, 04755}, EPERM, EPERM},
	{SYSCALL_fchmod, {3, HIGH | 04111}, EPERM, EPERM},
	{SYSCALL_fchmod, {3, 02755}, 0, ASKED},
	{SYSCALL_fchmodat, {3, 0, 06755}, EPERM, EPERM},
	{SYSCALL_fchmodat2, {3, 0, 04000}, EPERM, EPERM},
	{SYSCALL_prlimit64, {0, 0, 0x1000}, 0, 0},
	{SYSCALL_prlimit64, {99, 0, 0}, 0, 0},
	{SYSCALL_prlimit64, {99, 0, 0x1000}, 0, EPERM},
	{SYSCALL_prlimit64, {99, 0, UINT64_C(1) << 32}, 0, EPERM},
	{SYSCALL_prlimit64, {HIGH, 0, 1}, 0, 0},
	{SYSCALL_sched_setaffinity, {0}, 0, 0},
	{SYSCALL_sched_setaffinity, {99}, 0, EPERM},
	{SYSCALL_sched_setattr, {99}, 0, EPERM},
	{SYSCALL_setpriority, {0, 0}, 0, 0},
	{SYSCALL_setpriority, {0, 99}, 0, EPERM},
	{SYSCALL_setpriority, {1, 0}, 0, EPERM},
	{SYSCALL_setpriority, {2, 0}, EPERM, EPERM},
	{SYSCALL_ioprio_set, {1, 0}, 0, 0},
	{SYSCALL_ioprio_set, {1, 99}, 0, EPERM},
	{SYSCALL_ioprio_set, {3, 0}, EPERM, EPERM},
	{SYSCALL_pidfd_getfd, {3}, 0, EPERM},
	{SYSCALL_kill, {0, 9}, 0, 0},
	{SYSCALL_kill, {99, 9}, 0, 0},
	{SYSCALL_kill, {MINDER, 9}, 0, EPERM},
	{SYSCALL_kill, {HIGH | MINDER, 9}, 0, EPERM},
	{SYSCALL_kill, {-(uint64_t)ENGINE, 9}, 0, EPERM},
	{SYSCALL_kill, {(uint32_t)-ENGINE, 9}, 0, EPERM},
	{SYSCALL_kill, {UINT64_MAX, 9}, 0, EPERM},
	{SYSCALL_kill, {UINT32_MAX, 9}, 0, EPERM},
	{SYSCALL_tkill, {ENGINE, 9}, 0, EPERM},
	{SYSCALL_tgkill, {ENGINE, ENGINE, 9}, 0, EPERM},
	{SYSCALL_rt_sigqueueinfo, {MINDER, 9}, 0, EPERM},
	{SYSCALL_rt_tgsigqueueinfo, {MINDER, MINDER}, 0, EPERM},
	{SYSCALL_pidfd_open, {MINDER}, 0, EPERM},
	{SYSCALL_pidfd_open, {99}, 0, 0},
	{SYSCALL_ptrace, {16, MINDER}, 0, EPERM},
	{SYSCALL_process_vm_writev, {ENGINE}, 0, EPERM},
	{SYSCALL_shmat, {1}, 0, ENOSYS},
	{SYSCALL_msgget, {1}, 0, ENOSYS},
	{SYSCALL_mq_open, {1}, 0, ENOSYS},
	{SYSCALL_memfd_secret, {0}, ENOSYS, ENOSYS},
	{SYSCALL_sendto, {3, 0, 0, 0x4001}, EOPNOTSUPP, EOPNOTSUPP},            /* MSG_OOB */
	{SYSCALL_sendto, {3, 0, 0, HIGH | 0x20000000}, EOPNOTSUPP, EOPNOTSUPP}, /* MSG_FASTOPEN */
	{SYSCALL_sendto, {3, 1, 1, 0x4000}, 0, 0},
	{SYSCALL_recvfrom, {3, 1, 1, 2}, 0, 0},
	{SYSCALL_sendmsg, {3, 0, 1}, EOPNOTSUPP, EOPNOTSUPP},
	{SYSCALL_sendmsg, {3, 0, 0x20000000}, EOPNOTSUPP, EOPNOTSUPP},
	{SYSCALL_sendmsg, {3, 1, 0x4000, 1}, 0, 0},
	{SYSCALL_recvmsg, {3, 1, 0x40}, 0, 0},
	{SYSCALL_sendmmsg, {3, 0, 1, 1}, EOPNOTSUPP, EOPNOTSUPP},
	{SYSCALL_sendmmsg, {3, 0, 1, 0x20000000}, EOPNOTSUPP, EOPNOTSUPP},
	{SYSCALL_setsockopt, {3, 6, 30}, ENOPROTOOPT, ENOPROTOOPT},
	{SYSCALL_setsockopt, {3, 1, 26}, EPERM, EPERM},
	{SYSCALL_setsockopt, {3, 1, HIGH | 50}, EPERM, EPERM},
	{SYSCALL_setsockopt, {3, 1, 51}, EPERM, EPERM},
	{SYSCALL_setsockopt, {3, 1, 52}, EPERM, EPERM},
	{SYSCALL_setsockopt, {3, 1, 49}, 0, 0},
	{SYSCALL_setsockopt, {3, 6, 26}, 0, 0},
	{SYSCALL_setsockopt, {3, 1, 23}, 0, 0},
	{SYSCALL_mincore, {0}, ENOSYS, ENOSYS},
	{SYSCALL_cachestat, {3}, ENOSYS, ENOSYS},
	{SYSCALL_kcmp, {1, 2}, ENOSYS, ENOSYS},
	{SYSCALL_vmsplice, {3}, ENOSYS, ENOSYS},
	{SYSCALL_madvise, {0, 4096, 12}, EINVAL, EINVAL},
	{SYSCALL_madvise, {0, 4096, 4}, 0, 0},
	{SYSCALL_prctl, {67, 1}, EINVAL, EINVAL},
	{SYSCALL_move_pages, {1}, EPERM, EPERM},
	{SYSCALL_move_pages, {0, 1}, 0, 0},
	{SYSCALL_migrate_pages, {1}, EPERM, EPERM},
	{SYSCALL_migrate_pages, {0, 1}, 0, 0},
	{SYSCALL_mbind, {0, 4096, 1, 0, 1, 4}, EPERM, EPERM},
	{SYSCALL_mbind, {0, 4096, 1, 0, 1, 3}, 0, 0},
	{SYSCALL_io_setup, {1}, ENOSYS, ENOSYS},
	{SYSCALL_file_setattr, {0}, 0, ENOSYS}, /* the newest that is known */
};

static void test_answers_are_those_written_down(void)
{
	static struct filter namespace_filter, landlock_filter;

	for (int arch = 0; arch < SECCOMP_ARCH_COUNT; arch++) {
		struct seccomp_profile profile;

		seccomp_profile_init(&profile, RUNG_NAMESPACE, NET_NONE);
		compile(&namespace_filter, &profile, arch);
		seccomp_profile_init(&profile, RUNG_LANDLOCK, NET_NONE);
		protect(&profile);
		compile(&landlock_filter, &profile, arch);
		for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
			const struct vector *vector = &vectors[i];
			int number = syscall_number(vector->call, arch);
			int on_namespace, on_landlock;

			if (number < 0)
				continue;
			on_namespace = ask(&namespace_filter, (uint32_t)number, vector->args);
			on_landlock = ask(&landlock_filter, (uint32_t)number, vector->args);
			if (on_namespace != vector->on_namespace || on_landlock != vector->on_landlock)
				printf("vector %zu, %s, arch %d\n", i, syscall_id_name(vector->call), arch);
			CHECK_INT(on_namespace, vector->on_namespace);
			CHECK_INT(on_landlock, vector->on_landlock);
		}
	}
}

static void test_parts_that_no_rung_has_by_default(void)
{
	static struct filter filter;
	struct seccomp_profile profile = {.parts = SECCOMP_KEEP_CORE_LIMIT | SECCOMP_NO_SIGNAL_DETOURS |
						   SECCOMP_NO_SETGID_FILES | SECCOMP_COUNTED_WRITES | SECCOMP_METERED |
						   SECCOMP_TRUSTED_EXEC};
	static const uint32_t reserving[] = {0x40305828, 0x4030582a, 0x40305839, 0x4030580a,
					     0x4030580b, 0x40305824, 0x40305825, 0x401c5820};

#define ASK(name, ...)                                                                                                 \
	ask(&filter, (uint32_t)syscall_number(SYSCALL_##name, SECCOMP_ARCH_X86_64), (const uint64_t[6]){__VA_ARGS__})
	compile(&filter, &profile, SECCOMP_ARCH_X86_64);
	CHECK_INT(ASK(fallocate, 3, 0), EOPNOTSUPP);
	CHECK_INT(ASK(fallocate, 3, 1), EOPNOTSUPP);
	CHECK_INT(ASK(fallocate, 3, 3), 0);
	CHECK_INT(ASK(copy_file_range, 3), EOPNOTSUPP);
	CHECK_INT(ASK(ioctl, 3, 0x40049409), EOPNOTSUPP);
	CHECK_INT(ASK(ioctl, 3, HIGH | 0x4020940d), EOPNOTSUPP);
	for (size_t i = 0; i < sizeof(reserving) / sizeof(reserving[0]); i++) {
		CHECK_INT(ASK(ioctl, 3, reserving[i]), EOPNOTSUPP);
		CHECK_INT(ASK(ioctl, 3, HIGH | reserving[i]), EOPNOTSUPP);
	}
	CHECK_INT(ASK(ioctl, 3, 0x4030582b), 0); /* FS_IOC_UNRESVSP64 makes a hole */
	CHECK_INT(ASK(file_setattr, 3), EOPNOTSUPP);
	CHECK_INT(ASK(prctl, 4, 0), EPERM);
	CHECK_INT(ASK(prctl, 4, 1), 0);
	CHECK_INT(ASK(prctl, 3), 0);
	CHECK_INT(ASK(mmap, 0, 4096, 3, 0x40022), ENOMEM);
	CHECK_INT(ASK(mmap, 0, 4096, 3, 0x22), 0);
	CHECK_INT(ASK(memfd_create, 1, 4), ENOMEM);
	CHECK_INT(ASK(memfd_create, 1, 3), EACCES);
	CHECK_INT(ASK(memfd_create, 1, 0x10), EACCES); /* MFD_EXEC */
	CHECK_INT(ASK(memfd_create, 1, HIGH | 0x9), 0);
	CHECK_INT(ASK(fchmod, 3, 0644), 0);
	CHECK_INT(ASK(fchmod, 3, 02755), EPERM);
	CHECK_INT(ASK(setrlimit, 4), SIMULATOR_IGNORED);
	CHECK_INT(ASK(setrlimit, 7), 0);
	CHECK_INT(ASK(prlimit64, 0, HIGH | 4, HIGH), SIMULATOR_IGNORED);
	CHECK_INT(ASK(prlimit64, 0, 4, 0), 0);
	CHECK_INT(ASK(prlimit64, 0, 7, 1), 0);
	CHECK_INT(ASK(fcntl, 3, 8, 99), EPERM);
	CHECK_INT(ASK(fcntl, 3, 8, 0), 0);
	CHECK_INT(ASK(fcntl, 3, 8, (uint64_t)-99), EPERM);
	CHECK_INT(ASK(fcntl, 3, HIGH | 15), EPERM);
	CHECK_INT(ASK(fcntl, 3, 4, 2048), 0);
	CHECK_INT(ASK(ioctl, 3, 0x8901), EPERM);
	CHECK_INT(ASK(ioctl, 3, 0x8902), EPERM);
	CHECK_INT(ASK(ioctl, 3, 0x5412), 0);
	CHECK_INT(ASK(pidfd_send_signal, 3, 9), ENOSYS);
	CHECK_INT(ASK(mount, 0), 0);
#undef ASK
}

static void test_foreign_and_unknown_calls_do_not_exist(void)
{
	static const uint32_t foreign[] = {AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_S390X, AUDIT_ARCH_RISCV64, 0,
					   UINT32_MAX};
	static struct filter filter;
	const uint64_t none[6] = {0};

	for (int i = 0; i < 4; i++) {
		struct seccomp_profile profile = {.parts = SECCOMP_UNKNOWN * (i & 1)};
		enum seccomp_arch arch = i & 2 ? SECCOMP_ARCH_AARCH64 : SECCOMP_ARCH_X86_64;
		int unknown = i & 1 ? ENOSYS : 0;

		compile(&filter, &profile, arch);
		for (size_t j = 0; j < ARRAY_LEN(foreign); j++) {
			struct seccomp_data data = {.nr = 0, .arch = foreign[j]};

			CHECK_INT(simulator_answer(filter.program, filter.len, &data), ENOSYS);
			data.nr = 20; /* getpid of i386 */
			CHECK_INT(simulator_answer(filter.program, filter.len, &data), ENOSYS);
			data.arch = audit_archs[!arch];
			CHECK_INT(simulator_answer(filter.program, filter.len, &data), ENOSYS);
		}
		CHECK_INT(ask(&filter, SYSCALL_NUMBER_MAX, none), 0);
		CHECK_INT(ask(&filter, SYSCALL_NUMBER_MAX + 1, none), unknown);
		CHECK_INT(ask(&filter, 512, none),
			  unknown); /* x32's own numbers, reachable without its bit on old kernels */
		CHECK_INT(ask(&filter, 547, none), unknown);
		CHECK_INT(ask(&filter, 400, none), unknown); /* a gap below the highest */
		CHECK_INT(ask(&filter, 0x3fffffff, none), unknown);
		if (arch == SECCOMP_ARCH_X86_64) {
			CHECK_INT(ask(&filter, 0x40000000, none), ENOSYS);
			CHECK_INT(ask(&filter, 0x40000000 | 59, none), ENOSYS);
			CHECK_INT(ask(&filter, 0x40000000 | 520, none), ENOSYS);
			CHECK_INT(ask(&filter, UINT32_MAX, none), ENOSYS);
		}
	}
}

static void test_program_is_small_and_flat(void)
{
	static struct filter filter;

	for (int arch = 0; arch < SECCOMP_ARCH_COUNT; arch++) {
		for (int i = 0; i < 3; i++) {
			static const char *const names[] = {"namespace", "landlock", "every part"};
			struct seccomp_profile profile;
			size_t deepest = 0, total = 0;

			seccomp_profile_init(&profile, i == 0 ? RUNG_NAMESPACE : RUNG_LANDLOCK, NET_NONE);
			protect(&profile);
			if (i == 2) {
				profile.parts = SECCOMP_PART_ALL;
				profile.protected_count = SECCOMP_PROTECTED_MAX;
				profile.protected_pids[2] = 1234;
				profile.protected_pids[3] = 1235;
			}
			compile(&filter, &profile, arch);
			for (int number = 0; number <= SYSCALL_NUMBER_MAX; number++) {
				struct seccomp_data data = {.nr = number, .arch = audit_archs[arch]};
				size_t steps = 0;

				simulator_run(filter.program, filter.len, &data, &steps);
				deepest = MAX_OF(deepest, steps);
				total += steps;
			}
			printf("# %s, %s: %zu instructions, deepest %zu, mean depth %.1f\n", syscall_arch_name(arch),
			       names[i], filter.len, deepest, (double)total / (SYSCALL_NUMBER_MAX + 1));
			CHECK(filter.len <= (i == 0 ? 300 : i == 1 ? 310 : 500));
			CHECK(deepest <= (i == 2 ? 50 : 40));
		}
	}
}

/* A table so large that the two ends of the program are out of each other's reach. */
static void test_far_jumps_are_bridged(void)
{
	static struct seccomp_rule rules[SECCOMP_RULE_MAX];
	static struct filter filter;
	static const uint32_t answers[] = {SECCOMP_RET_ERRNO | EPERM,  SECCOMP_RET_ERRNO | ENOSYS,
					   SECCOMP_RET_ERRNO | EACCES, SECCOMP_RET_USER_NOTIF,
					   SECCOMP_RET_ERRNO | EINVAL, SECCOMP_RET_ERRNO};

	for (int round = 0; round < 20; round++) {
		struct seccomp_profile profile = {.parts = SECCOMP_PART_ALL};
		struct error error = {0};
		int rc;

		protect(&profile);
		for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
			size_t conditions = 1 + next_random() % SECCOMP_CONDITION_MAX;

			rules[i] = (struct seccomp_rule){
				.call = next_random() % (round % 2 ? SYSCALL_ID_COUNT : 12),
				.part = UINT32_C(1) << next_random() % 16,
				.answer = answers[next_random() % ARRAY_LEN(answers)],
				.when = "it is so",
			};
			for (size_t j = 0; j < conditions; j++) {
				enum seccomp_test test = SECCOMP_TEST_EQUALS + next_random() % 5;
				uint32_t mask = next_random() % 2 ? UINT32_MAX : 0xff;

				rules[i].conditions[j] = (struct seccomp_condition){
					.test = test,
					.argument = (uint8_t)(next_random() % 2 ? i % 6 : next_random() % 6),
					.value = (uint32_t)(next_random() % 2),
					.mask = test == SECCOMP_TEST_HAS_ANY && next_random() % 2
							? (UINT64_C(1) << 32 | mask)
							: mask,
				};
			}
		}
		filter.arch = round % 4 < 2 ? SECCOMP_ARCH_X86_64 : SECCOMP_ARCH_AARCH64;
		rc = seccomp_compile_rules(rules, ARRAY_LEN(rules), &profile, filter.arch, filter.program,
					   ARRAY_LEN(filter.program), &filter.len, &error);
		CHECK_INT(rc, 0);
		CHECK(filter.len > 600);
		CHECK(simulator_accepts(filter.program, filter.len));
		CHECK_INT(compare_all(&filter, rules, ARRAY_LEN(rules), &profile, 200), 0);
	}
}

static void test_program_is_the_same_each_time_and_fits_exactly(void)
{
	static struct filter first, second;
	struct seccomp_profile profile;
	struct error error = {0};
	size_t len = 99;

	seccomp_profile_init(&profile, RUNG_LANDLOCK, NET_NONE);
	compile(&first, &profile, SECCOMP_ARCH_AARCH64);
	CHECK_INT(seccomp_compile(&profile, SECCOMP_ARCH_AARCH64, second.program, first.len, &second.len, &error), 0);
	CHECK_INT(second.len, first.len);
	CHECK(!memcmp(first.program, second.program, first.len * sizeof(first.program[0])));
	CHECK_INT(seccomp_compile(&profile, SECCOMP_ARCH_AARCH64, second.program, first.len - 1, &len, &error), -E2BIG);
	CHECK_INT(seccomp_compile(&profile, SECCOMP_ARCH_AARCH64, NULL, 0, &len, NULL), -E2BIG);
	CHECK_INT(len, 99);
	CHECK_INT(error.stage, STAGE_PLAN);
}

static void test_contradictions_are_refused(void)
{
	static struct filter filter;
	struct seccomp_profile profile = {.parts = SECCOMP_NO_UNIX_CONNECT};
	struct error error = {0};

#define COMPILE(arch) seccomp_compile(&profile, arch, filter.program, SECCOMP_PROGRAM_MAX, &filter.len, &error)
	CHECK_INT(COMPILE(SECCOMP_ARCH_X86_64), -EINVAL);
	CHECK(error.message[0]);
	profile = (struct seccomp_profile){.parts = SECCOMP_GUARD_PIDS, .protected_pids = {0}, .protected_count = 1};
	CHECK_INT(COMPILE(SECCOMP_ARCH_X86_64), -EINVAL);
	profile.protected_pids[0] = -1;
	CHECK_INT(COMPILE(SECCOMP_ARCH_X86_64), -EINVAL);
	profile.protected_count = SECCOMP_PROTECTED_MAX + 1;
	CHECK_INT(COMPILE(SECCOMP_ARCH_X86_64), -EINVAL);
	profile.protected_count = 0;
	CHECK_INT(COMPILE(SECCOMP_ARCH_COUNT), -EINVAL);
#undef COMPILE
}

static void test_pids_are_put_in_later(void)
{
	static struct filter planned, direct;
	struct seccomp_profile profile;
	struct jar_filter filter;

	seccomp_profile_init(&profile, RUNG_LANDLOCK, NET_NONE);
	protect(&profile);
	compile(&direct, &profile, SECCOMP_ARCH_X86_64);
	profile.protected_pids[0] = JAR_PID_PLACEHOLDER(0);
	profile.protected_pids[1] = JAR_PID_PLACEHOLDER(1);
	compile(&planned, &profile, SECCOMP_ARCH_X86_64);
	filter = (struct jar_filter){planned.program, planned.len};
	CHECK(build_set_filter_pid(&filter, 0, MINDER) >= 3);
	CHECK(build_set_filter_pid(&filter, 1, ENGINE) >= 3);
	CHECK_INT(build_set_filter_pid(&filter, 1, ENGINE), 0);
	CHECK_INT(planned.len, direct.len);
	CHECK(!memcmp(planned.program, direct.program, direct.len * sizeof(direct.program[0])));
}

#define CLONE3_AS_JSON "{\"call\":\"clone3\",\"answer\":\"ENOSYS\",\"part\":\"namespaces\",\"when\":null}"

static void test_rules_are_printed(void)
{
	AUTO_TEXT human = {0};
	AUTO_TEXT machine = {0};
	struct json_writer writer = {.text = &machine};
	struct seccomp_profile profile;

	seccomp_profile_init(&profile, RUNG_NAMESPACE, NET_NONE);
	seccomp_print(&profile, SECCOMP_ARCH_X86_64, &human);
	CHECK(strstr(text_string(&human), "ENOSYS           statmount listmount memfd_secret io_setup io_uring_setup"));
	CHECK(strstr(text_string(&human), "EPERM            ioctl: if the command is TIOCSTI\n"));
	CHECK(strstr(text_string(&human), "EPERM            chmod fchmod fchmodat fchmodat2: if the mode has"));
	CHECK(!strstr(text_string(&human), "connect"));
	CHECK(strstr(text_string(&human), "iopl"));
	for (const char *line = text_string(&human), *end; (end = strchr(line, '\n')); line = end + 1)
		CHECK(end - line <= 110);
	text_clear(&human);
	seccomp_print(&profile, SECCOMP_ARCH_AARCH64, &human);
	CHECK(!strstr(text_string(&human), "iopl"));
	seccomp_print_json(&profile, SECCOMP_ARCH_X86_64, &writer, NULL);
	CHECK(strstr(text_string(&machine), CLONE3_AS_JSON));
	CHECK(strstr(text_string(&machine), "a namespace flag is set"));
	CHECK_STRING(seccomp_part_name(SECCOMP_KERNEL), "kernel");
	CHECK_STRING(seccomp_part_name(SECCOMP_NO_INET), "no-inet");
	CHECK_STRING(seccomp_part_name(SECCOMP_OWN_PID_ONLY), "own-pid-only");
	CHECK_STRING(seccomp_part_name(SECCOMP_ASK_METADATA), "ask-metadata");
	text_clear(&human);
	text_clear(&machine);
	seccomp_profile_init(&profile, RUNG_LANDLOCK, NET_NONE);
	profile.parts |= SECCOMP_KEEP_CORE_LIMIT;
	seccomp_print(&profile, SECCOMP_ARCH_X86_64, &human);
	CHECK(strstr(text_string(&human), "  ask              chmod fchmod fchmodat"));
	CHECK(strstr(text_string(&human), "  ignore           setrlimit: if it is the limit of core dumps\n"));
	seccomp_print_json(&profile, SECCOMP_ARCH_X86_64, &writer, NULL);
	CHECK(strstr(text_string(&machine), "{\"call\":\"chmod\",\"answer\":\"ask\",\"part\":\"ask-metadata\""));
}

/* With the real kernel. The child's exit status is the number of the first call that was answered otherwise. */

#define EXPECT(call, expected)                                                                                         \
	do {                                                                                                           \
		count++;                                                                                               \
		errno = 0;                                                                                             \
		if ((call) >= 0 ? (expected) != 0 : errno != (expected))                                               \
			_exit(count);                                                                                  \
	} while (0)

static void try_namespace_filter(void)
{
	int count = 0, pair[2];
	pid_t child;

	EXPECT(syscall(SYS_getpid), 0);
	EXPECT(syscall(SYS_mount, "none", "/", NULL, 0, NULL), EPERM);
	EXPECT(syscall(SYS_unshare, CLONE_NEWUSER), EPERM);
	EXPECT(syscall(SYS_unshare, CLONE_FILES), 0);
	EXPECT(syscall(SYS_setns, -1, 0), EPERM);
	EXPECT(syscall(435, NULL, 0), ENOSYS); /* clone3 */
	EXPECT(syscall(425, 1, NULL), ENOSYS); /* io_uring_setup */
	EXPECT(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0), EPERM);
	EXPECT(syscall(SYS_ioctl, 0, (1UL << 40) | TIOCSTI, "x"), EPERM);
	EXPECT(syscall(SYS_personality, 0xffffffff), 0);
	EXPECT(syscall(SYS_personality, READ_IMPLIES_EXEC), EPERM);
	EXPECT(syscall(SYS_keyctl, 0, 0), EPERM);
	EXPECT(syscall(SYS_bpf, 0, NULL, 0), EPERM);
	EXPECT(syscall(SYS_socket, 40, SOCK_STREAM, 0), EAFNOSUPPORT);
	EXPECT(syscall(SYS_socket, AF_INET, SOCK_STREAM, 132), EPROTONOSUPPORT);
	EXPECT(syscall(SYS_socket, AF_UNIX, SOCK_DGRAM, 0), 0);
	EXPECT(syscall(SYS_socket, AF_INET, SOCK_STREAM, 0), 0);
	EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	EXPECT(syscall(SYSCALL_NUMBER_MAX + 1), ENOSYS);
	EXPECT(child = fork(), 0);
	if (!child)
		_exit(0);
	EXPECT(waitpid(child, NULL, 0), 0);
}

static void try_landlock_filter(void)
{
	struct rlimit limit = {0, 0};
	int count = 0, pair[2];

	EXPECT(syscall(SYS_socket, AF_INET, SOCK_STREAM, 0), EAFNOSUPPORT);
	EXPECT(syscall(SYS_socket, AF_UNIX, SOCK_DGRAM, 0), ESOCKTNOSUPPORT);
	EXPECT(syscall(SYS_socket, AF_UNIX, SOCK_STREAM, 0), 0);
	EXPECT(syscall(SYS_connect, 0, NULL, 0), EACCES);
	EXPECT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	EXPECT(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), ESOCKTNOSUPPORT);
	EXPECT(syscall(SYS_prlimit64, getppid(), RLIMIT_CPU, &limit, NULL), EPERM);
	EXPECT(syscall(SYS_prlimit64, getppid(), RLIMIT_CPU, NULL, &limit), 0);
	EXPECT(syscall(SYS_prlimit64, 0, RLIMIT_CORE, NULL, &limit), 0);
	EXPECT(syscall(SYS_prlimit64, 0, RLIMIT_CORE, &limit, NULL), 0);
	EXPECT(syscall(SYS_kill, getppid(), 0), EPERM);
	EXPECT(syscall(SYS_kill, getpid(), 0), 0);
	EXPECT(syscall(SYS_kill, -1, 0), EPERM);
	EXPECT(syscall(SYS_pidfd_open, getppid(), 0), EPERM);
	EXPECT(syscall(SYS_setpriority, PRIO_PROCESS, getppid(), 19), EPERM);
	EXPECT(syscall(SYS_setpriority, PRIO_PROCESS, 0, 19), 0);
	EXPECT(syscall(SYS_sched_setaffinity, getppid(), 0, NULL), EPERM);
	EXPECT(syscall(SYS_shmget, 0, 4096, 0600), ENOSYS);
	EXPECT(syscall(SYS_fchmod, 0, 04755), EPERM);
	/* Nobody listens: what is asked for does not happen. */
	EXPECT(syscall(SYS_fchmod, 0, 0755), ENOSYS);
	EXPECT(syscall(SYS_utimensat, 0, NULL, NULL, 0), ENOSYS);
}

static void load_and_try(enum rung rung, void (*try)(void))
{
	enum seccomp_arch arch = syscall_native_arch();
	static struct filter filter;
	struct seccomp_profile profile;
	int status = -1;
	pid_t child;

	if (arch == SECCOMP_ARCH_COUNT)
		return;
	seccomp_profile_init(&profile, rung, NET_NONE);
	profile.protected_pids[0] = getpid();
	profile.protected_count = 1;
	compile(&filter, &profile, arch);
	child = fork();
	if (!child) {
		struct sock_fprog load = {(unsigned short)filter.len, filter.program};

		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &load))
			_exit(200);
		try();
		_exit(0);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK_INT(status & 0x7f, 0);
	CHECK_INT(status >> 8, 0);
}

static void test_kernel_answers_as_the_namespace_filter_says(void)
{
	load_and_try(RUNG_NAMESPACE, try_namespace_filter);
}

static void test_kernel_answers_as_the_landlock_filter_says(void)
{
	load_and_try(RUNG_LANDLOCK, try_landlock_filter);
}

/* 32-bit calls from 64-bit code: int 0x80 goes through the i386 table. Where the kernel has none this is a fault. */
static void test_i386_calls_do_not_exist(void)
{
#if defined(__x86_64__)
	static struct filter filter;
	struct seccomp_profile profile;
	int status = -1;
	pid_t child;

	seccomp_profile_init(&profile, RUNG_NAMESPACE, NET_NONE);
	compile(&filter, &profile, SECCOMP_ARCH_X86_64);
	child = fork();
	if (!child) {
		struct sock_fprog load = {(unsigned short)filter.len, filter.program};
		long answer = 20; /* getpid */

		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &load))
			_exit(200);
		signal(SIGSEGV, SIG_DFL);
		__asm__ volatile("int $0x80" : "+a"(answer) : : "memory", "r8", "r9", "r10", "r11");
		_exit((int)answer == -ENOSYS ? 0 : 1);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK(WIFSIGNALED(status) ? WTERMSIG(status) == SIGSEGV : WEXITSTATUS(status) == 0);
#endif
}

static const struct test tests[] = {
	TEST(test_number_table_is_sound),
	TEST(test_numbers_agree_with_the_build_machine),
	TEST(test_every_number_is_answered_as_the_table_says),
	TEST(test_answers_are_those_written_down),
	TEST(test_parts_that_no_rung_has_by_default),
	TEST(test_foreign_and_unknown_calls_do_not_exist),
	TEST(test_program_is_small_and_flat),
	TEST(test_far_jumps_are_bridged),
	TEST(test_program_is_the_same_each_time_and_fits_exactly),
	TEST(test_contradictions_are_refused),
	TEST(test_pids_are_put_in_later),
	TEST(test_rules_are_printed),
	TEST(test_kernel_answers_as_the_namespace_filter_says),
	TEST(test_kernel_answers_as_the_landlock_filter_says),
	TEST(test_i386_calls_do_not_exist),
};

TEST_MAIN(tests)
