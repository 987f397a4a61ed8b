/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/seccomp/seccomp_compile.c - a filter program from the rule table
 *
 * Loading a filter makes the kernel run it once for every call number, to learn which calls it always allows, and from
 * then on those calls skip it. So the depth of the program counts at start-up, and afterwards only for calls whose
 * arguments are looked at. Hence a search tree over the ranges of numbers that share a fate:
 *
 *	rules -> for each number a chain of rows -> ranges of equal fate -> tree -> instructions
 *
 * Instructions are made from the last to the first. A jump goes forward only, so whatever it leads to exists
 * already when the jump is made, its distance is known, and one past the 255 that a conditional jump can reach is
 * bridged on the spot. A "place" is the number of instructions from there to the end of the program, the one at
 * the place included.
 */
#include "plan/seccomp/seccomp_compile.h"

#include <assert.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <string.h>

#define JUMP_MAX 255
#define X32_BIT 0x40000000U
#define ANSWER_MAX 16
#define EXCEPTION_MAX 3
#define ANSWER_NO_CALL (SECCOMP_RET_ERRNO | ENOSYS)

static const uint32_t audit_archs[] = {
	[SECCOMP_ARCH_X86_64] = AUDIT_ARCH_X86_64,
	[SECCOMP_ARCH_AARCH64] = AUDIT_ARCH_AARCH64,
};
_Static_assert(ARRAY_LEN(audit_archs) == SECCOMP_ARCH_COUNT, "every architecture has its audit number");

/* Call numbers from @first to the next range's that share a fate: an answer, or rows that look at arguments. */
struct range {
	uint32_t first;
	uint32_t answer;
	int16_t row; /* the first of them; -1: none */
};

struct compiler {
	const struct seccomp_rule *rules;
	const struct seccomp_profile *profile;
	const enum syscall_id *allowed; /* nothing else is; NULL: all that no row refuses */
	size_t allowed_count;
	/* The rows of each call number, in the table's order; -1 ends a chain. */
	int16_t first_row[SYSCALL_NUMBER_MAX + 1];
	int16_t next_row[SECCOMP_RULE_MAX];
	struct range ranges[SYSCALL_NUMBER_MAX + 3];
	size_t range_count;
	size_t chain_places[SECCOMP_RULE_MAX]; /* of chains by their first row; 0: not made yet */

	struct sock_filter *program; /* filled from its end */
	size_t capacity;
	size_t len; /* grows past the capacity without storing: the end finds out */
	struct {
		uint32_t answer;
		size_t place;
	} returns[ANSWER_MAX]; /* the latest return instruction for each answer */
	size_t return_count;
};

/* A row that names protected pids cannot hold where there are none. */
static bool can_hold(const struct seccomp_rule *rule, const struct seccomp_profile *profile)
{
	for (size_t i = 0; i < seccomp_condition_count(rule); i++) {
		enum seccomp_test test = rule->conditions[i].test;

		if ((test == SECCOMP_TEST_PROTECTED || test == SECCOMP_TEST_PROTECTED_GROUP) &&
		    !profile->protected_count)
			return false;
	}
	return true;
}

static void collect_rows(struct compiler *compiler, size_t rule_count, enum seccomp_arch arch)
{
	for (size_t number = 0; number < ARRAY_LEN(compiler->first_row); number++)
		compiler->first_row[number] = -1;
	for (size_t i = rule_count; i-- > 0;) {
		const struct seccomp_rule *rule = &compiler->rules[i];
		int number = syscall_number(rule->call, arch);

		if (number < 0 || !(rule->part & compiler->profile->parts) || !can_hold(rule, compiler->profile))
			continue;
		compiler->next_row[i] = compiler->first_row[number];
		compiler->first_row[number] = (int16_t)i;
	}
}

static uint32_t answer_of(const struct compiler *compiler, const struct seccomp_rule *rule)
{
	return compiler->profile->tells && seccomp_is_told(rule) ? SECCOMP_RET_USER_NOTIF : rule->answer;
}

static bool is_same_row(const struct compiler *compiler, const struct seccomp_rule *one,
			const struct seccomp_rule *other)
{
	bool is_same = answer_of(compiler, one) == answer_of(compiler, other);

	for (size_t i = 0; is_same && i < SECCOMP_CONDITION_MAX; i++) {
		const struct seccomp_condition *a = &one->conditions[i], *b = &other->conditions[i];

		is_same =
			a->test == b->test && a->argument == b->argument && a->value == b->value && a->mask == b->mask;
	}
	return is_same;
}

static bool is_same_chain(const struct compiler *compiler, int16_t one, int16_t other)
{
	while (one >= 0 && other >= 0 && is_same_row(compiler, &compiler->rules[one], &compiler->rules[other])) {
		one = compiler->next_row[one];
		other = compiler->next_row[other];
	}
	return one < 0 && other < 0;
}

/* The chain that is looked at for @row: the first that says the same, so that chmod and fchmod share their code. */
static int16_t shared_chain(const struct compiler *compiler, int16_t row)
{
	for (size_t i = 0; i < compiler->range_count; i++)
		if (compiler->ranges[i].row >= 0 && is_same_chain(compiler, compiler->ranges[i].row, row))
			return compiler->ranges[i].row;
	return row;
}

static void add_range(struct compiler *compiler, uint32_t first, uint32_t answer, int16_t row)
{
	struct range *last = compiler->range_count ? &compiler->ranges[compiler->range_count - 1] : NULL;

	if (last && last->row == row && last->answer == answer)
		return;
	compiler->ranges[compiler->range_count++] = (struct range){first, answer, row};
}

static bool is_allowed(const struct compiler *compiler, uint32_t number, enum seccomp_arch arch)
{
	for (size_t i = 0; i < compiler->allowed_count; i++)
		if (syscall_number(compiler->allowed[i], arch) == (int)number)
			return true;
	return !compiler->allowed;
}

static void collect_ranges(struct compiler *compiler, enum seccomp_arch arch)
{
	uint32_t unknown_answer = compiler->profile->parts & SECCOMP_UNKNOWN ? ANSWER_NO_CALL : SECCOMP_RET_ALLOW;
	bool is_known[SYSCALL_NUMBER_MAX + 1] = {false};

	for (int id = 0; id < SYSCALL_ID_COUNT; id++)
		if (syscall_number(id, arch) >= 0)
			is_known[syscall_number(id, arch)] = true;
	for (uint32_t number = 0; number <= SYSCALL_NUMBER_MAX; number++) {
		int16_t row = compiler->first_row[number];

		if (is_known[number] && !is_allowed(compiler, number, arch))
			add_range(compiler, number, SECCOMP_RET_ERRNO | EPERM, -1);
		else if (row < 0)
			add_range(compiler, number, is_known[number] ? SECCOMP_RET_ALLOW : unknown_answer, -1);
		else if (seccomp_condition_count(&compiler->rules[row]) == 0)
			add_range(compiler, number, answer_of(compiler, &compiler->rules[row]), -1);
		else
			add_range(compiler, number, SECCOMP_RET_ALLOW, shared_chain(compiler, row));
	}
	add_range(compiler, SYSCALL_NUMBER_MAX + 1, unknown_answer, -1);
	/*
	 * x32 calls have x86-64's architecture and this bit in their number: refused whatever the parts, as
	 * foreign ones are.
	 */
	if (arch == SECCOMP_ARCH_X86_64)
		add_range(compiler, X32_BIT, ANSWER_NO_CALL, -1);
}

static size_t emit(struct compiler *compiler, unsigned code, uint32_t value, size_t if_true, size_t if_false)
{
	compiler->len++;
	if (compiler->len <= compiler->capacity)
		compiler->program[compiler->capacity - compiler->len] =
			(struct sock_filter)BPF_JUMP((uint16_t)code, value, (uint8_t)if_true, (uint8_t)if_false);
	return compiler->len;
}

/* @place, or a bridge to it, where a conditional jump can reach it even if @more instructions come in between. */
static size_t within_reach(struct compiler *compiler, size_t place, size_t more)
{
	size_t distance = compiler->len - place;

	return distance + more <= JUMP_MAX ? place : emit(compiler, BPF_JMP | BPF_JA, (uint32_t)distance, 0, 0);
}

static size_t emit_jump(struct compiler *compiler, unsigned comparison, uint32_t value, size_t on_true, size_t on_false)
{
	on_true = within_reach(compiler, on_true, 1);
	on_false = within_reach(compiler, on_false, 0);
	return emit(compiler, BPF_JMP | comparison | BPF_K, value, compiler->len - on_true, compiler->len - on_false);
}

static size_t emit_load(struct compiler *compiler, uint32_t offset)
{
	return emit(compiler, BPF_LD | BPF_W | BPF_ABS, offset, 0, 0);
}

/* The place of an instruction that returns @answer: one that is there already, if it is not too far off. */
static size_t return_place(struct compiler *compiler, uint32_t answer)
{
	size_t i = 0;

	while (i < compiler->return_count && compiler->returns[i].answer != answer)
		i++;
	if (i < compiler->return_count && compiler->len - compiler->returns[i].place < JUMP_MAX)
		return compiler->returns[i].place;
	if (i == compiler->return_count)
		compiler->return_count++;
	assert(compiler->return_count <= ANSWER_MAX);
	compiler->returns[i].answer = answer;
	compiler->returns[i].place = emit(compiler, BPF_RET | BPF_K, answer, 0, 0);
	return compiler->returns[i].place;
}

/* Both architectures are little-endian: an argument's low word comes first. */
static uint32_t low_word(const struct seccomp_condition *condition)
{
	return (uint32_t)(offsetof(struct seccomp_data, args) + condition->argument * sizeof(uint64_t));
}

/* Whether, once the condition was tested, whatever the outcome, the argument's unchanged low word is still loaded. */
static bool keeps_low_word(const struct seccomp_condition *condition)
{
	if (condition->test == SECCOMP_TEST_HAS_ANY)
		return condition->mask <= UINT32_MAX;
	return condition->test != SECCOMP_TEST_EQUALS || condition->mask == UINT32_MAX;
}

static bool needs_load(const struct seccomp_condition *condition, const struct seccomp_condition *before)
{
	bool starts_with_low_word = condition->test != SECCOMP_TEST_HAS_ANY || condition->mask <= UINT32_MAX;

	return !starts_with_low_word || before->argument != condition->argument || !keeps_low_word(before);
}

/* The test itself; the low word, or for a wide mask nothing yet, is loaded. */
static void emit_test(struct compiler *compiler, const struct seccomp_condition *condition, size_t on_true,
		      size_t on_false)
{
	const struct seccomp_profile *profile = compiler->profile;
	uint32_t mask = (uint32_t)condition->mask, high_mask = (uint32_t)(condition->mask >> 32);

	switch (condition->test) {
	case SECCOMP_TEST_NONE:
		break;
	case SECCOMP_TEST_EQUALS:
		emit_jump(compiler, BPF_JEQ, condition->value, on_true, on_false);
		if (mask != UINT32_MAX)
			emit(compiler, BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
		break;
	case SECCOMP_TEST_DIFFERS:
		emit_jump(compiler, BPF_JEQ, condition->value, on_false, on_true);
		break;
	case SECCOMP_TEST_HAS_ANY:
		emit_jump(compiler, BPF_JSET, mask, on_true, on_false);
		if (high_mask) {
			size_t low = emit_load(compiler, low_word(condition));

			emit_jump(compiler, BPF_JSET, high_mask, on_true, low);
		}
		break;
	case SECCOMP_TEST_PROTECTED:
		for (size_t i = 0; i < profile->protected_count; i++)
			on_false =
				emit_jump(compiler, BPF_JEQ, (uint32_t)profile->protected_pids[i], on_true, on_false);
		break;
	case SECCOMP_TEST_PROTECTED_GROUP:
		for (size_t i = 0; i < profile->protected_count; i++)
			on_false =
				emit_jump(compiler, BPF_JEQ, -(uint32_t)profile->protected_pids[i], on_true, on_false);
		break;
	case SECCOMP_TEST_FOREIGN_USER:
	case SECCOMP_TEST_FOREIGN_GROUP:
		on_true = emit_jump(compiler, BPF_JEQ, UINT32_MAX, on_false, on_true);
		emit_jump(compiler, BPF_JEQ, condition->test == SECCOMP_TEST_FOREIGN_USER ? profile->uid : profile->gid,
			  on_false, on_true);
		break;
	}
}

static void emit_condition_load(struct compiler *compiler, const struct seccomp_condition *condition)
{
	bool is_wide = condition->test == SECCOMP_TEST_HAS_ANY && condition->mask > UINT32_MAX;

	emit_load(compiler, low_word(condition) + (is_wide ? sizeof(uint32_t) : 0));
}

/* Where control enters the code of a chain. */
struct entry {
	size_t start; /* 0: none, since the row before tests the first condition */
	size_t inner; /* the second condition of its first row, where the first is known to hold; 0: its argument may not be loaded */
	size_t past; /* behind all rows with that first condition, where it is known not to hold */
};

static bool is_same_condition(const struct seccomp_condition *a, const struct seccomp_condition *b)
{
	return a->test == b->test && a->argument == b->argument && a->value == b->value && a->mask == b->mask;
}

/* Rows that follow each other and begin with the same condition test it once. */
static bool can_share(const struct seccomp_rule *rule, const struct seccomp_rule *next, const struct entry *entry)
{
	return next && entry->inner && seccomp_condition_count(rule) > 1 &&
	       is_same_condition(&rule->conditions[0], &next->conditions[0]);
}

/* One row; @previous is the row before it in the chain, from every condition of which control may come. */
static struct entry emit_row(struct compiler *compiler, const struct seccomp_rule *rule,
			     const struct seccomp_rule *previous, const struct seccomp_rule *next, struct entry after)
{
	bool is_shared = can_share(rule, next, &after), is_load_needed = !previous;
	struct entry entry = {.past = is_shared ? after.past : after.start};
	size_t place = return_place(compiler, answer_of(compiler, rule));

	for (size_t i = seccomp_condition_count(rule); i-- > 0;) {
		if (i == 0 && previous && can_share(previous, rule, &entry))
			return entry;
		emit_test(compiler, &rule->conditions[i], place,
			  !i          ? entry.past
			  : is_shared ? after.inner
				      : after.start);
		if (i > 0 && needs_load(&rule->conditions[i], &rule->conditions[i - 1])) {
			emit_condition_load(compiler, &rule->conditions[i]);
			entry.inner = i == 1 ? compiler->len : 0;
		}
		place = compiler->len;
	}
	for (size_t i = 0; previous && i < seccomp_condition_count(previous); i++)
		is_load_needed = is_load_needed || needs_load(&rule->conditions[0], &previous->conditions[i]);
	if (is_load_needed)
		emit_condition_load(compiler, &rule->conditions[0]);
	entry.start = compiler->len;
	return entry;
}

static struct entry emit_chain(struct compiler *compiler, int16_t row, const struct seccomp_rule *previous)
{
	const struct seccomp_rule *rule = row < 0 ? NULL : &compiler->rules[row];
	const struct seccomp_rule *next;
	struct entry after;

	if (!rule || seccomp_condition_count(rule) == 0) {
		size_t place = return_place(compiler, rule ? answer_of(compiler, rule) : SECCOMP_RET_ALLOW);

		return (struct entry){place, 0, place};
	}
	after = emit_chain(compiler, compiler->next_row[row], rule);
	next = compiler->next_row[row] < 0 ? NULL : &compiler->rules[compiler->next_row[row]];
	return emit_row(compiler, rule, previous, next, after);
}

static size_t emit_fate(struct compiler *compiler, const struct range *range)
{
	if (range->row < 0)
		return return_place(compiler, range->answer);
	if (!compiler->chain_places[range->row])
		compiler->chain_places[range->row] = emit_chain(compiler, range->row, NULL).start;
	return compiler->chain_places[range->row];
}

/*
 * Whether all ranges of a span get the one @answer, with a few single numbers excepted. Each of those then costs one
 * comparison, where the tree would need two, one for each of its borders.
 */
static bool is_rule_with_exceptions(const struct compiler *compiler, size_t from, size_t to, uint32_t answer)
{
	const struct range *ranges = compiler->ranges;
	size_t exceptions = 0;

	for (size_t i = from; i < to; i++) {
		if (ranges[i].row < 0 && ranges[i].answer == answer)
			continue;
		if (i + 1 == compiler->range_count || ranges[i + 1].first != ranges[i].first + 1)
			return false;
		exceptions++;
	}
	return exceptions <= EXCEPTION_MAX && exceptions + 1 < to - from;
}

static size_t emit_exceptions(struct compiler *compiler, size_t from, size_t to, uint32_t answer)
{
	size_t place = return_place(compiler, answer);

	for (size_t i = from; i < to; i++) {
		const struct range *range = &compiler->ranges[i];

		if (range->row >= 0 || range->answer != answer)
			place = emit_jump(compiler, BPF_JEQ, range->first, emit_fate(compiler, range), place);
	}
	return place;
}

static size_t emit_tree(struct compiler *compiler, size_t from, size_t to)
{
	const struct range *ranges = compiler->ranges;
	size_t middle = from + (to - from) / 2;
	size_t below, above;

	if (to - from == 1)
		return emit_fate(compiler, &ranges[from]);
	for (size_t i = from; i < from + 2; i++)
		if (ranges[i].row < 0 && is_rule_with_exceptions(compiler, from, to, ranges[i].answer))
			return emit_exceptions(compiler, from, to, ranges[i].answer);
	above = emit_tree(compiler, middle, to);
	below = emit_tree(compiler, from, middle);
	return emit_jump(compiler, BPF_JGE, ranges[middle].first, above, below);
}

static void emit_program(struct compiler *compiler, enum seccomp_arch arch)
{
	size_t tree = emit_tree(compiler, 0, compiler->range_count);
	size_t native, foreign;

	if (tree != compiler->len)
		emit(compiler, BPF_JMP | BPF_JA, (uint32_t)(compiler->len - tree), 0, 0);
	native = emit_load(compiler, offsetof(struct seccomp_data, nr));
	/* ENOSYS, not a kill: i386 code then ends by its own error message, as on a kernel that cannot run it. */
	foreign = return_place(compiler, ANSWER_NO_CALL);
	emit_jump(compiler, BPF_JEQ, audit_archs[arch], native, foreign);
	emit_load(compiler, offsetof(struct seccomp_data, arch));
}

static int check_profile(const struct seccomp_profile *profile, struct error *error)
{
	if (profile->protected_count > SECCOMP_PROTECTED_MAX)
		return error_set(error, STAGE_PLAN, EINVAL, "the filter can protect %d processes, not %zu",
				 SECCOMP_PROTECTED_MAX, profile->protected_count);
	for (size_t i = 0; i < profile->protected_count; i++)
		if (profile->protected_pids[i] <= 1)
			return error_set(error, STAGE_PLAN, EINVAL, "the filter cannot protect pid %d",
					 (int)profile->protected_pids[i]);
	if ((profile->parts & SECCOMP_NO_UNIX_CONNECT) && !(profile->parts & SECCOMP_NO_INET))
		return error_set(error, STAGE_PLAN, EINVAL,
				 "the filter cannot refuse Unix connections and leave others");
	return 0;
}

int seccomp_compile_only(const enum syscall_id *allowed, size_t allowed_count, const struct seccomp_rule *rules,
			 size_t rule_count, const struct seccomp_profile *profile, enum seccomp_arch arch,
			 struct sock_filter *program, size_t capacity, size_t *len_out, struct error *error)
{
	struct compiler compiler = {
		.allowed = allowed,
		.allowed_count = allowed_count,
		.rules = rules,
		.profile = profile,
		.program = program,
		.capacity = capacity,
	};
	int rc = check_profile(profile, error);

	if (rc < 0)
		return rc;
	if (arch >= SECCOMP_ARCH_COUNT || rule_count > SECCOMP_RULE_MAX)
		return error_set(error, STAGE_PLAN, EINVAL, "there is no system call filter for this architecture");
	collect_rows(&compiler, rule_count, arch);
	collect_ranges(&compiler, arch);
	emit_program(&compiler, arch);
	if (compiler.len > capacity)
		return error_set(error, STAGE_PLAN, E2BIG, "the system call filter needs %zu instructions, not %zu",
				 compiler.len, capacity);
	memmove(program, program + capacity - compiler.len, compiler.len * sizeof(*program));
	*len_out = compiler.len;
	return 0;
}

int seccomp_compile_rules(const struct seccomp_rule *rules, size_t rule_count, const struct seccomp_profile *profile,
			  enum seccomp_arch arch, struct sock_filter *program, size_t capacity, size_t *len_out,
			  struct error *error)
{
	return seccomp_compile_only(NULL, 0, rules, rule_count, profile, arch, program, capacity, len_out, error);
}

int seccomp_compile(const struct seccomp_profile *profile, enum seccomp_arch arch, struct sock_filter *program,
		    size_t capacity, size_t *len_out, struct error *error)
{
	return seccomp_compile_rules(seccomp_rules, seccomp_rule_count, profile, arch, program, capacity, len_out,
				     error);
}
