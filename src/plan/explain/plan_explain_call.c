/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/explain/plan_explain_call.c - may a command make this system call?
 */
#include <errno.h>
#include <string.h>

#include "plan/explain/plan_explain.h"
#include "plan/seccomp/seccomp_rules.h"

static bool is_about(const struct seccomp_rule *rule, const char *name, uint32_t parts)
{
	return rule->part & parts & ~(uint32_t)SECCOMP_TRACE && !strcmp(syscall_id_name(rule->call), name);
}

static void append_answer(const struct seccomp_rule *rule, struct text *out)
{
	int number = seccomp_answer_errno(rule->answer);

	if (rule->answer == SECCOMP_RET_USER_NOTIF)
		text_append_string(out, "carried out by Belljar, in writable places only,");
	else if (!number)
		text_append_string(out, "ignored");
	else
		text_append_format(out, "refused with %s", errno_name(number));
}

static bool is_known(const char *name)
{
	for (int i = 0; i < SYSCALL_ID_COUNT; i++)
		if (!strcmp(syscall_id_name((enum syscall_id)i), name))
			return true;
	return false;
}

bool plan_explain_call(const struct plan *plan, const char *name, bool was_told, struct plan_explanation *out)
{
	uint32_t parts = (plan->jar ? plan->jar : plan)->filter_parts;
	bool is_namespace_call = false;

	if (!is_known(name))
		return false;
	out->is_allowed = true;
	/* The first row that holds gives the answer; behind one without conditions no other counts. */
	for (size_t i = 0; i < seccomp_rule_count; i++) {
		const struct seccomp_rule *rule = &seccomp_rules[i];

		if (!is_about(rule, name, parts) || (was_told && !seccomp_is_told(rule)))
			continue;
		is_namespace_call |= rule->part == SECCOMP_NAMESPACES && seccomp_is_told(rule);
		if (out->why.len)
			text_append_string(&out->why, ", ");
		append_answer(rule, &out->why);
		if (rule->when[0]) {
			text_append_format(&out->why, " if %s", rule->when);
			continue;
		}
		text_append_string(&out->why, " by the filter");
		out->is_allowed = !seccomp_answer_errno(rule->answer);
		break;
	}
	if (!out->why.len)
		text_append_string(&out->why,
				   parts ? "the system call filter does not restrict it" : "there is no filter");
	if (is_namespace_call)
		text_append_string(
			&out->warning,
			"no option allows a sandbox in a jar; a program that makes one of its own can often do "
			"without it here, as chromium does with --no-sandbox");
	else if (!out->is_allowed)
		text_append_string(&out->warning, "no option allows it");
	return true;
}
