/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/seccomp/syscall_numbers.c - look up a system call by id, or by number
 */
#include "plan/seccomp/syscall_numbers.h"

#include <assert.h>
#include <stddef.h>

#include "base/base.h"

struct syscall_entry {
	const char *name;
	int16_t numbers[SECCOMP_ARCH_COUNT];
};

#define SYSCALL_ENTRY(name, x86_64, aarch64) [SYSCALL_##name] = {#name, {x86_64, aarch64}},
static const struct syscall_entry syscalls[] = {SYSCALL_LIST(SYSCALL_ENTRY)};
#undef SYSCALL_ENTRY

static const char *const arch_names[] = {
	[SECCOMP_ARCH_X86_64] = "x86_64",
	[SECCOMP_ARCH_AARCH64] = "aarch64",
};
_Static_assert(ARRAY_LEN(arch_names) == SECCOMP_ARCH_COUNT, "every architecture has a name");

enum seccomp_arch syscall_native_arch(void)
{
#if defined(__x86_64__) && !defined(__ILP32__)
	return SECCOMP_ARCH_X86_64;
#elif defined(__aarch64__) && !defined(__ILP32__)
	return SECCOMP_ARCH_AARCH64;
#else
	return SECCOMP_ARCH_COUNT;
#endif
}

const char *syscall_arch_name(enum seccomp_arch arch)
{
	assert(arch < SECCOMP_ARCH_COUNT);
	return arch_names[arch];
}

int syscall_number(enum syscall_id id, enum seccomp_arch arch)
{
	assert(id < SYSCALL_ID_COUNT && arch < SECCOMP_ARCH_COUNT);
	return syscalls[id].numbers[arch];
}

const char *syscall_id_name(enum syscall_id id)
{
	assert(id < SYSCALL_ID_COUNT);
	return syscalls[id].name;
}

const char *syscall_name(uint32_t number, enum seccomp_arch arch)
{
	for (size_t i = 0; i < ARRAY_LEN(syscalls); i++)
		if (syscalls[i].numbers[arch] >= 0 && (uint32_t)syscalls[i].numbers[arch] == number)
			return syscalls[i].name;
	return NULL;
}
