/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/seccomp/seccomp_print.c - the filter's rules in words, for `belljar plan`
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "plan/seccomp/seccomp_compile.h"

#define LINE_WIDTH 100

static const char *const part_names[] = {
	"kernel",          "namespaces",      "terminal",          "process",          "sockets",
	"no-setuid-files", "no-setgid-files", "unknown",           "no-inet",          "no-unix-connect",
	"own-pid-only",    "guard-pids",      "no-signal-detours", "no-host-ipc",      "ask-metadata",
	"counted-writes",  "no-truncate",     "no-siblings",       "own-ids",          "guard-first",
	"keep-core-limit", "metered",         "trace-files",       "trace-access",     "trace-stat",
	"trace-changes",   "one-listener",    "trusted-exec",      "no-overlay-marks", "no-attributes",
};
_Static_assert((UINT32_C(1) << ARRAY_LEN(part_names)) - 1 == SECCOMP_PART_ALL, "every part has a name");

const char *seccomp_part_name(uint32_t part)
{
	assert(part && !(part & (part - 1)) && part <= SECCOMP_PART_ALL);
	return part_names[__builtin_ctz(part)];
}

static const char *answer_name(const struct seccomp_rule *rule)
{
	uint32_t answer = rule->answer;

	if (answer == SECCOMP_RET_USER_NOTIF)
		return rule->part & SECCOMP_TRACE ? "note" : "ask";
	return answer == SECCOMP_RET_ERRNO ? "ignore" : errno_name(seccomp_answer_errno(answer));
}

static bool is_in_force(const struct seccomp_rule *rule, const struct seccomp_profile *profile, enum seccomp_arch arch)
{
	return (rule->part & profile->parts) && syscall_number(rule->call, arch) >= 0;
}

/* One paragraph: the calls that get @answer whatever their arguments, in the table's order. */
static void print_plain(const struct seccomp_profile *profile, enum seccomp_arch arch, uint32_t answer,
			struct text *out)
{
	size_t column = 0;

	for (size_t i = 0; i < seccomp_rule_count; i++) {
		const struct seccomp_rule *rule = &seccomp_rules[i];
		const char *name = syscall_id_name(rule->call);

		if (rule->when[0] || rule->answer != answer || !is_in_force(rule, profile, arch))
			continue;
		if (column && column + strlen(name) + 1 > LINE_WIDTH) {
			text_append_string(out, "\n");
			column = 0;
		}
		if (!column)
			text_append_format(out, "  %-16s", answer_name(rule));
		text_append_format(out, " %s", name);
		column = (column ? column : 18) + 1 + strlen(name);
	}
	if (column)
		text_append_string(out, "\n");
}

/* Whether an earlier row has the same answer already, so that its paragraph is printed. */
static bool is_answer_new(size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (seccomp_rules[i].answer == seccomp_rules[index].answer)
			return false;
	return true;
}

static bool is_same_condition(const struct seccomp_rule *one, const struct seccomp_rule *other)
{
	return one->when[0] && one->answer == other->answer && !strcmp(one->when, other->when);
}

/* One line: the call of row @index, and those of the rows that follow it with the same answer on the same condition. */
static void print_conditional(const struct seccomp_profile *profile, enum seccomp_arch arch, size_t index,
			      struct text *out)
{
	const struct seccomp_rule *first = &seccomp_rules[index];

	text_append_format(out, "  %-16s %s", answer_name(first), syscall_id_name(first->call));
	for (size_t i = index + 1; i < seccomp_rule_count && is_same_condition(first, &seccomp_rules[i]); i++)
		if (is_in_force(&seccomp_rules[i], profile, arch))
			text_append_format(out, " %s", syscall_id_name(seccomp_rules[i].call));
	text_append_format(out, ": if %s\n", first->when);
}

void seccomp_print(const struct seccomp_profile *profile, enum seccomp_arch arch, struct text *out)
{
	const struct seccomp_rule *printed = NULL;

	for (size_t i = 0; i < seccomp_rule_count; i++)
		if (is_answer_new(i))
			print_plain(profile, arch, seccomp_rules[i].answer, out);
	for (size_t i = 0; i < seccomp_rule_count; i++) {
		const struct seccomp_rule *rule = &seccomp_rules[i];

		if (printed && !is_same_condition(printed, rule))
			printed = NULL;
		if (printed || !rule->when[0] || !is_in_force(rule, profile, arch))
			continue;
		print_conditional(profile, arch, i, out);
		printed = rule;
	}
	text_append_format(out, "  %-16s calls of other architectures than %s\n", "ENOSYS", syscall_arch_name(arch));
	if (profile->parts & SECCOMP_UNKNOWN)
		text_append_format(out, "  %-16s calls newer than Linux 6.18\n", "ENOSYS");
}

void seccomp_print_json(const struct seccomp_profile *profile, enum seccomp_arch arch, struct json_writer *writer,
			const char *key)
{
	json_open_object(writer, key);
	json_write_string(writer, "arch", syscall_arch_name(arch));
	json_write_string(writer, "foreign", "ENOSYS");
	json_write_string(writer, "unknown", profile->parts & SECCOMP_UNKNOWN ? "ENOSYS" : "allow");
	json_open_array(writer, "rules");
	for (size_t i = 0; i < seccomp_rule_count; i++) {
		const struct seccomp_rule *rule = &seccomp_rules[i];

		if (!is_in_force(rule, profile, arch))
			continue;
		json_open_object(writer, NULL);
		json_write_string(writer, "call", syscall_id_name(rule->call));
		json_write_string(writer, "answer", answer_name(rule));
		json_write_string(writer, "part", seccomp_part_name(rule->part));
		json_write_string(writer, "when", rule->when[0] ? rule->when : NULL);
		json_close_object(writer);
	}
	json_close_array(writer);
	json_close_object(writer);
}
