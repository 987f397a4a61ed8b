/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/bpf_simulator.h - run a seccomp filter program as the kernel would, without a kernel
 *
 * Knows the classic BPF that seccomp allows, as far as our compiler and libseccomp use it, and is as strict as the
 * kernel's checker: every jump lands inside the program, loads are aligned and inside struct seccomp_data, the last
 * instruction returns.
 */
#ifndef BELLJAR_TESTS_UNIT_BPF_SIMULATOR_H
#define BELLJAR_TESTS_UNIT_BPF_SIMULATOR_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SIMULATOR_BAD UINT32_MAX

static inline bool simulator_accepts(const struct sock_filter *program, size_t len)
{
	if (len == 0 || len > BPF_MAXINSNS || BPF_CLASS(program[len - 1].code) != BPF_RET)
		return false;
	for (size_t i = 0; i < len; i++) {
		const struct sock_filter *at = &program[i];

		switch (at->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			if (at->k % 4 || at->k >= sizeof(struct seccomp_data))
				return false;
			break;
		case BPF_JMP | BPF_JA:
			if (at->k >= len - i - 1)
				return false;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
		case BPF_JMP | BPF_JGE | BPF_K:
		case BPF_JMP | BPF_JGT | BPF_K:
		case BPF_JMP | BPF_JSET | BPF_K:
			if (i + 1 + at->jt >= len || i + 1 + at->jf >= len)
				return false;
			break;
		case BPF_ALU | BPF_AND | BPF_K:
		case BPF_RET | BPF_K:
			break;
		default:
			return false;
		}
	}
	return true;
}

/* The filter's answer, or SIMULATOR_BAD; *@steps, where it is not NULL, is how many instructions it took. */
static inline uint32_t simulator_run(const struct sock_filter *program, size_t len, const struct seccomp_data *data,
				     size_t *steps)
{
	uint32_t accumulator = 0;
	size_t at = 0, taken = 0;

	while (at < len && taken++ <= len) {
		const struct sock_filter *now = &program[at++];

		switch (now->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			memcpy(&accumulator, (const char *)data + now->k, sizeof(accumulator));
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			accumulator &= now->k;
			break;
		case BPF_JMP | BPF_JA:
			at += now->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			at += accumulator == now->k ? now->jt : now->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			at += accumulator >= now->k ? now->jt : now->jf;
			break;
		case BPF_JMP | BPF_JGT | BPF_K:
			at += accumulator > now->k ? now->jt : now->jf;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			at += accumulator & now->k ? now->jt : now->jf;
			break;
		case BPF_RET | BPF_K:
			if (steps)
				*steps = taken;
			return now->k;
		default:
			return SIMULATOR_BAD;
		}
	}
	return SIMULATOR_BAD;
}

#define SIMULATOR_ASKED (-1)
#define SIMULATOR_IGNORED (-2)
#define SIMULATOR_OTHER (-3)

static inline int simulator_verdict(uint32_t verdict)
{
	if (verdict == SECCOMP_RET_ALLOW)
		return 0;
	if (verdict == SECCOMP_RET_USER_NOTIF)
		return SIMULATOR_ASKED;
	if (verdict == SECCOMP_RET_ERRNO)
		return SIMULATOR_IGNORED;
	if ((verdict & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO)
		return (int)(verdict & SECCOMP_RET_DATA);
	return SIMULATOR_OTHER;
}

/* 0 where the answer is "allow", the errno where it is one, else one of the above. */
static inline int simulator_answer(const struct sock_filter *program, size_t len, const struct seccomp_data *data)
{
	return simulator_verdict(simulator_run(program, len, data, NULL));
}

#endif
