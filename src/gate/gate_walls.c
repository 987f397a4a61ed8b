/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/gate_walls.c - drop the rights of a gate's process before it reads an untrusted byte
 *
 * It reads bytes of hostile programs and hostile servers. An attacker who takes it over has a network, but no file, no
 * capability, no other process, and nothing of the engine's memory: exec() gave the process new memory.
 */
#include <errno.h>
#include <grp.h>
#include <string.h>
#include <sys/prctl.h>

#include "gate/gate_process.h"
#include "plan/plan_landlock.h"
#include "plan/seccomp/seccomp_compile.h"
#include "base/sys/calls.h"

#define FAMILY_INET 2
#define FAMILY_INET6 10
#define PROTECTION_EXECUTE 4

static const enum syscall_id allowed[] = {
	/* what it does */
	SYSCALL_accept4,
	SYSCALL_close,
	SYSCALL_connect,
	SYSCALL_epoll_ctl,
	SYSCALL_epoll_pwait,
	SYSCALL_epoll_pwait2,
	SYSCALL_epoll_wait,
	SYSCALL_fcntl,
	SYSCALL_getsockname,
	SYSCALL_getsockopt,
	SYSCALL_pipe2,
	SYSCALL_recvfrom,
	SYSCALL_recvmsg,
	SYSCALL_sendmsg,
	SYSCALL_sendto,
	SYSCALL_setsockopt,
	SYSCALL_shutdown,
	SYSCALL_socket,
	SYSCALL_splice,
	SYSCALL_write,
	/* memory, time, the end */
	SYSCALL_brk,
	SYSCALL_clock_gettime,
	SYSCALL_exit,
	SYSCALL_exit_group,
	SYSCALL_getrandom,
	SYSCALL_madvise,
	SYSCALL_mmap,
	SYSCALL_mprotect,
	SYSCALL_mremap,
	SYSCALL_munmap,
	SYSCALL_restart_syscall,
	SYSCALL_rt_sigreturn,
};

/* Other system calls of an inspecting gate's libraries. */
static const enum syscall_id allowed_too[] = {
	SYSCALL_futex,
	SYSCALL_getpid,
};

/* Internet sockets only, and no memory that can be executed. */
static const struct seccomp_rule rules[] = {
	{SYSCALL_socket,
	 SECCOMP_SOCKETS,
	 SECCOMP_RET_ERRNO | EAFNOSUPPORT,
	 "",
	 {{SECCOMP_TEST_DIFFERS, 0, FAMILY_INET, UINT32_MAX}, {SECCOMP_TEST_DIFFERS, 0, FAMILY_INET6, UINT32_MAX}}},
	{SYSCALL_mmap,
	 SECCOMP_PROCESS,
	 SECCOMP_RET_ERRNO | EPERM,
	 "",
	 {{SECCOMP_TEST_HAS_ANY, 2, 0, PROTECTION_EXECUTE}}},
	{SYSCALL_mprotect,
	 SECCOMP_PROCESS,
	 SECCOMP_RET_ERRNO | EPERM,
	 "",
	 {{SECCOMP_TEST_HAS_ANY, 2, 0, PROTECTION_EXECUTE}}},
};

static int load_filter(bool is_inspecting)
{
	enum syscall_id calls[ARRAY_LEN(allowed) + ARRAY_LEN(allowed_too)];
	size_t count = ARRAY_LEN(allowed) + (is_inspecting ? ARRAY_LEN(allowed_too) : 0);

	struct seccomp_profile profile = {.parts = SECCOMP_SOCKETS | SECCOMP_PROCESS | SECCOMP_UNKNOWN};
	struct sock_filter program[SECCOMP_PROGRAM_MAX];
	struct error error = {0};
	size_t len;
	int rc;

	memcpy(calls, allowed, sizeof(allowed));
	memcpy(calls + ARRAY_LEN(allowed), allowed_too, sizeof(allowed_too));
	rc = seccomp_compile_only(calls, count, rules, ARRAY_LEN(rules), &profile, syscall_native_arch(), program,
				  ARRAY_LEN(program), &len, &error);
	return rc < 0 ? rc : sys_seccomp_load(program, len);
}

static int leave_files(int abi)
{
	AUTO_CLOSE int ruleset_fd = -1;

	if (!abi)
		return 0;
	ruleset_fd =
		sys_landlock_create(plan_landlock_rights_of_abi(abi),
				    abi >= 6 ? SYS_LANDLOCK_SCOPE_ABSTRACT_UNIX | SYS_LANDLOCK_SCOPE_SIGNAL : 0, abi);
	return ruleset_fd < 0 ? ruleset_fd : sys_landlock_restrict(ruleset_fd, abi < 7 ? 0 : SYS_LANDLOCK_QUIET);
}

int gate_put_up_walls(const struct gate_page *page, bool is_inspecting)
{
	uid_t id = page->id;
	int rc;

	if (id && (setgroups(0, NULL) < 0 || setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0))
		return -errno;
	rc = sys_drop_bounding_set();
	if (rc < 0 && rc != -EPERM)
		return rc;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	rc = sys_drop_capabilities();
	if (rc == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		rc = -errno;
	if (rc == 0)
		rc = leave_files(page->landlock_abi);
	return rc < 0 ? rc : load_filter(is_inspecting);
}
