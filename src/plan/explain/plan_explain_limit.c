/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/explain/plan_explain_limit.c - a limit was reached: which, and what would leave more room
 *
 * How much a command needs is not known when it was stopped short of it, so the change that is proposed is twice as much.
 */
#include "base/units.h"
#include "plan/explain/plan_explain.h"
#include "policy/policy_keys.h"

#define NANOSECONDS_PER_MILLISECOND 1000000

static void append_amount(const struct policy_key *key, uint64_t amount, struct text *out)
{
	uint64_t nanoseconds;

	if (key->type == POLICY_COUNT)
		text_append_format(out, "%llu", (unsigned long long)amount);
	else if (key->type != POLICY_DURATION)
		units_format_size(out, amount);
	else if (!__builtin_mul_overflow(amount, NANOSECONDS_PER_MILLISECOND, &nanoseconds))
		units_format_duration(out, nanoseconds);
}

void plan_explain_limit(const char *name, uint64_t limit, struct plan_explanation *out)
{
	const struct policy_key *key = policy_key_by_name(name);
	struct json_writer writer = {.text = &out->policy};
	AUTO_TEXT more = {0};
	uint64_t twice;

	if (!key)
		return;
	text_append_string(&out->why, "the limit of ");
	append_amount(key, limit, &out->why);
	text_append_string(&out->why, " was reached");
	if (!limit || __builtin_mul_overflow(limit, 2, &twice))
		return;
	append_amount(key, twice, &more);
	text_append_format(&out->flag, "--%s %s", key->flag, text_string(&more));
	json_open_object(&writer, NULL);
	if (key->type == POLICY_COUNT)
		json_write_unsigned(&writer, key->name, twice);
	else
		json_write_string(&writer, key->name, text_string(&more));
	json_close_object(&writer);
}
