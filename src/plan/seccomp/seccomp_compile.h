/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/seccomp/seccomp_compile.h - a filter program from the rule table, and the rules in words
 *
 * Pure functions: the same profile gives the same program, whatever the host; nothing is allocated and no system call
 * made, so they can run anywhere, also between fork and exec.
 */
#ifndef BELLJAR_PLAN_SECCOMP_SECCOMP_COMPILE_H
#define BELLJAR_PLAN_SECCOMP_SECCOMP_COMPILE_H

#include <linux/filter.h>

#include "base/error.h"
#include "base/json_write.h"
#include "plan/seccomp/seccomp_rules.h"

/* Room for the program of any profile of the rule table; a test compiles the largest. */
#define SECCOMP_PROGRAM_MAX 512

/*
 * Compile @profile for @arch. *@len_out instructions are at the start of @program; what @program holds on failure is
 * undefined. -EINVAL: the profile contradicts itself (see the parts). -E2BIG: @capacity is too small.
 */
int seccomp_compile(const struct seccomp_profile *profile, enum seccomp_arch arch, struct sock_filter *program,
		    size_t capacity, size_t *len_out, struct error *error);

/* The same for any table; at most SECCOMP_RULE_MAX rows. */
int seccomp_compile_rules(const struct seccomp_rule *rules, size_t rule_count, const struct seccomp_profile *profile,
			  enum seccomp_arch arch, struct sock_filter *program, size_t capacity, size_t *len_out,
			  struct error *error);

/* The other way round: only the @allowed calls, and those as far as no row of @rules holds. All others are refused with EPERM. */
int seccomp_compile_only(const enum syscall_id *allowed, size_t allowed_count, const struct seccomp_rule *rules,
			 size_t rule_count, const struct seccomp_profile *profile, enum seccomp_arch arch,
			 struct sock_filter *program, size_t capacity, size_t *len_out, struct error *error);

/*
 * What @profile refuses on @arch, for people: unconditional refusals in one paragraph per errno, the others line
 * by line. "ask" and "note": see seccomp_rules.h; "ignore": nothing is done, and the caller is told that it was.
 */
void seccomp_print(const struct seccomp_profile *profile, enum seccomp_arch arch, struct text *out);

/*
 * The same for programs, as a member @key: {"arch","foreign","unknown","rules":[{"call","answer","part","when"}]}.
 * "when" is null for a call that is refused whatever its arguments.
 */
void seccomp_print_json(const struct seccomp_profile *profile, enum seccomp_arch arch, struct json_writer *writer,
			const char *key);

/* "kernel", "no-inet" ...: one part's name. */
const char *seccomp_part_name(uint32_t part);

#endif
