/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/tools/attack_abi.c - run a command that takes this kernel's Landlock for an older one
 *
 * attack_abi N CMD [ARG...]   the question for the Landlock ABI is answered with N, everything else as ever: what a
 * program leaves out because of that, the kernel leaves ungoverned, as an older kernel would. Exit status: CMD's.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALL_LANDLOCK_CREATE_RULESET 444
#define FLAG_VERSION 1U
#define LOAD_WORD 0x20
#define JUMP_EQUAL 0x15
#define RETURN 0x06
#define RETURN_ALLOW 0x7fff0000U
#define RETURN_NOTIFY 0x7fc00000U
#define SET_FILTER 1
#define FLAG_NEW_LISTENER 8U
#define NOTIFY_RECEIVE 0xc0502100U
#define NOTIFY_SEND 0xc0182101U
#define ANSWER_CONTINUE 1U

struct filter {
	uint16_t code;
	uint8_t jump_true, jump_false;
	uint32_t value;
};

struct program {
	unsigned short len;
	struct filter *filter;
};

struct call_data {
	int32_t number;
	uint32_t arch;
	uint64_t instruction_pointer;
	uint64_t args[6];
};

struct notice {
	uint64_t id;
	uint32_t pid, flags;
	struct call_data data;
};

struct answer {
	uint64_t id;
	int64_t value;
	int32_t error;
	uint32_t flags;
};

static int open_listener(void)
{
	struct filter filter[] = {
		{LOAD_WORD, 0, 0, offsetof(struct call_data, number)},
		{JUMP_EQUAL, 0, 1, CALL_LANDLOCK_CREATE_RULESET},
		{RETURN, 0, 0, RETURN_NOTIFY},
		{RETURN, 0, 0, RETURN_ALLOW},
	};
	struct program program = {sizeof(filter) / sizeof(filter[0]), filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return (int)syscall(SYS_seccomp, SET_FILTER, FLAG_NEW_LISTENER, &program);
}

static void answer_one(int listener, int abi)
{
	struct notice notice;
	struct answer answer;

	memset(&notice, 0, sizeof(notice));
	memset(&answer, 0, sizeof(answer));
	if (ioctl(listener, (int)NOTIFY_RECEIVE, &notice) < 0)
		return;
	answer.id = notice.id;
	if (notice.data.args[0] == 0 && notice.data.args[2] == FLAG_VERSION)
		answer.value = abi;
	else
		answer.flags = ANSWER_CONTINUE;
	ioctl(listener, (int)NOTIFY_SEND, &answer);
}

int main(int argc, char **argv)
{
	int abi = argc > 2 ? atoi(argv[1]) : 0;
	int listener, status;
	pid_t child;

	if (abi <= 0)
		return 2;
	listener = open_listener();
	if (listener < 0) {
		perror("attack_abi: cannot listen");
		return 2;
	}
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		close(listener);
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	for (;;) {
		struct pollfd poller = {.fd = listener, .events = POLLIN};

		if (poll(&poller, 1, 20) > 0)
			answer_one(listener, abi);
		if (waitpid(child, &status, WNOHANG) == child)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
}
