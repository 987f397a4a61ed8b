/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove/corpus_process.c - everything that one process can try on another of the same user
 *
 * Signals are 0 or SIGURG, which nothing minds. Limits and priorities are set to what lets the target live but shows:
 * a core limit of 4242, nice 19.
 */
#include "prove/corpus.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define CALL_PIDFD_SEND_SIGNAL 424
#define CALL_PIDFD_GETFD 438
#define CALL_PROCESS_MADVISE 440
#define SEIZE 0x4206
#define PAGE_OUT 21
#define BATCH 3
/* The kernel refuses this before its permission check. So EPERM comes from the filter. */
#define NO_SUCH_SIGNAL 12345
#define NO_SUCH_PROCESS 0x7ffffff0
#define NOTHING 9999

static char memory[64];
static const struct iovec mine = {memory, sizeof(memory)}, theirs = {(void *)0x400000, sizeof(memory)};
static const struct iovec page = {(void *)0x400000, 4096};
static const siginfo_t queued = {.si_code = SI_QUEUE};
static const uint64_t core_limit[2] = {4242, 4242};
static const unsigned long processor[16] = {1};
static const int priority;
static const uint32_t attributes[12] = {48, BATCH};
static void *robust_head;
static size_t robust_len;

/* The owner of a descriptor gets a signal when something arrives; what matters is whether it does. */
static long become_owner(const struct corpus_target *target)
{
	int ends[2], rc, error;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
		return -1;
	rc = fcntl(ends[0], F_SETOWN, target->pid);
	error = errno;
	if (rc == 0) {
		fcntl(ends[0], F_SETSIG, SIGURG);
		fcntl(ends[0], F_SETFL, O_ASYNC);
		if (write(ends[1], "x", 1) != 1)
			rc = -1;
	}
	close(ends[0]);
	close(ends[1]);
	errno = error;
	return rc;
}

/* clang-format off */
const struct corpus_call prove_corpus_process[] = {
	{"kill0", SYS_kill, {CORPUS_PID, 0}},
	{"kill", SYS_kill, {CORPUS_PID, SIGURG}},
	{"kill_group", SYS_kill, {CORPUS_GROUP, SIGURG}},
	{"tkill", SYS_tkill, {CORPUS_PID, SIGURG}},
	{"tgkill", SYS_tgkill, {CORPUS_PID, CORPUS_PID, SIGURG}},
	{"sigqueue", SYS_rt_sigqueueinfo, {CORPUS_PID, SIGURG, (long)&queued}},
	{"tgsigqueue", SYS_rt_tgsigqueueinfo, {CORPUS_PID, CORPUS_PID, SIGURG, (long)&queued}},
	{"pidfd_signal", CALL_PIDFD_SEND_SIGNAL, {CORPUS_PIDFD, SIGURG}},
	{"proc_signal", CALL_PIDFD_SEND_SIGNAL, {CORPUS_PROC, SIGURG}},
	{"sigio", .function = become_owner},
	{"kill_nothing", SYS_kill, {CORPUS_PID, NO_SUCH_SIGNAL}, "kill"},
	{"attach", SYS_ptrace, {PTRACE_ATTACH, CORPUS_PID}},
	{"seize", SYS_ptrace, {SEIZE, CORPUS_PID}, "ptrace"},
	{"peek", SYS_ptrace, {PTRACE_PEEKDATA, CORPUS_PID, 0, (long)memory}, "ptrace"}, /* of what is not traced: ESRCH */
	{"vm_read", SYS_process_vm_readv, {CORPUS_PID, (long)&mine, 1, (long)&theirs, 1}},
	{"vm_write", SYS_process_vm_writev, {CORPUS_PID, (long)&mine, 1, (long)&theirs, 1}},
	{"mem", .file = "mem", .arguments = {O_RDWR}},
	{"environ", .file = "environ", .arguments = {O_RDONLY}},
	{"fd", .file = "fd/0", .arguments = {O_RDONLY}},
	{"cwd", .file = "cwd/.", .arguments = {O_RDONLY}},
	{"root", .file = "root/.", .arguments = {O_RDONLY}},
	{"exe", .file = "exe", .arguments = {O_RDONLY}},
	{"exe_write", .file = "exe", .arguments = {O_WRONLY}},
	{"ns", .file = "ns/mnt", .arguments = {O_RDONLY}},
	{"pidfd_getfd", CALL_PIDFD_GETFD, {CORPUS_PIDFD}},
	{"process_madvise", CALL_PROCESS_MADVISE, {CORPUS_PIDFD, (long)&page, 1, PAGE_OUT}},
	{"kcmp", SYS_kcmp, {CORPUS_PID, CORPUS_SELF, 2}},
	{"robust_list", SYS_get_robust_list, {CORPUS_PID, (long)&robust_head, (long)&robust_len}},
	{"migrate_pages", SYS_migrate_pages, {CORPUS_PID, 2, (long)processor, (long)processor}},
	{"prlimit64", SYS_prlimit64, {CORPUS_PID, RLIMIT_CORE, (long)core_limit}},
	{"prlimit64_nothing", SYS_prlimit64, {CORPUS_PID, NOTHING, (long)core_limit}, "prlimit64"},
	{"sched_setaffinity", SYS_sched_setaffinity, {CORPUS_PID, sizeof(processor), (long)processor}},
	{"sched_setscheduler", SYS_sched_setscheduler, {CORPUS_PID, BATCH, (long)&priority}},
	{"sched_setscheduler_nothing", SYS_sched_setscheduler, {CORPUS_PID, NOTHING}, "sched_setscheduler"},
	{"sched_setparam", SYS_sched_setparam, {CORPUS_PID, (long)&priority}},
	{"sched_setattr", SYS_sched_setattr, {CORPUS_PID, (long)attributes}},
	{"setpriority", SYS_setpriority, {PRIO_PROCESS, CORPUS_PID, 19}},
	{"setpriority_nothing", SYS_setpriority, {PRIO_PROCESS, NO_SUCH_PROCESS, 19}, "setpriority"},
	{"setpriority_group", SYS_setpriority, {PRIO_PGRP, CORPUS_PID, 19}},
	{"ioprio_set", SYS_ioprio_set, {1, CORPUS_PID, 3 << 13}},
	{"oom_score_adj", .file = "oom_score_adj", .arguments = {O_WRONLY}},
	{"comm", .file = "comm", .arguments = {O_WRONLY}},
	{"timerslack_ns", .file = "timerslack_ns", .arguments = {O_WRONLY}},
	{"clear_refs", .file = "clear_refs", .arguments = {O_WRONLY}},
	{0},
};
/* clang-format on */
