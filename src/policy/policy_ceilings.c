/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/policy_ceilings.c - keep a run within the limits of its jar
 *
 * A limit that was given for the jar is a ceiling for each run in it, whichever program asks for the run. A default
 * does not count as a ceiling: Belljar chose it, not the owner of the jar. A limit on the jar as a whole, such as its
 * memory, is always a ceiling, because no run can have more than its jar.
 */
#include "policy/policy_build.h"

#include <string.h>

#include "policy/policy_value.h"

static uint64_t bit_of(const struct policy_key *key)
{
	return UINT64_C(1) << (key - policy_keys);
}

static bool is_limit(const struct policy_key *key)
{
	return key->tightening == TIGHTEN_LOWER && key->scope != SCOPE_JAR &&
	       (key->type == POLICY_DURATION || key->type == POLICY_SIZE || key->type == POLICY_COUNT ||
		key->type == POLICY_OUTPUT);
}

static bool is_shared(const struct policy_key *key, enum policy_sharing sharing)
{
	if (sharing == SHARES_FILES)
		return key->offset == offsetof(struct policy, limits.disk_bytes);
	return sharing == SHARES_ALL && key->scope == SCOPE_BOTH;
}

/* A given timeout makes its grace a ceiling too: else a run could name an hour of grace after a second of time. */
static bool is_ceiling(const struct policy *jar, const struct policy_key *key, enum policy_sharing sharing)
{
	if (key->offset == offsetof(struct policy, limits.grace_ns) && policy_is_given(jar, "timeout"))
		return true;
	return policy_is_given(jar, key->name) || is_shared(key, sharing);
}

/* Fit both streams into @total, with at least half of it for a stream that wants that much. */
static struct output_limit fit_streams(const uint64_t *stream_bytes, uint64_t total)
{
	struct output_limit fit = {.total_bytes = LIMIT_NONE};
	uint64_t out = MIN_OF(stream_bytes[0], total), rest = total - out;

	fit.stream_bytes[1] = MIN_OF(stream_bytes[1], rest > total / 2 ? rest : total / 2);
	fit.stream_bytes[0] = MIN_OF(out, total - fit.stream_bytes[1]);
	return fit;
}

static bool is_same_output(const struct output_limit *a, const struct output_limit *b)
{
	return a->total_bytes == b->total_bytes && a->stream_bytes[0] == b->stream_bytes[0] &&
	       a->stream_bytes[1] == b->stream_bytes[1];
}

/* If one limit is for both streams together and the other for each, apply both. */
static bool lower_output(struct output_limit *run, const struct output_limit *jar)
{
	const struct output_limit before = *run;
	uint64_t most = MIN_OF(run->total_bytes, jar->total_bytes), sum;

	for (int i = 0; i < 2; i++)
		run->stream_bytes[i] = MIN_OF(run->stream_bytes[i], jar->stream_bytes[i]);
	run->total_bytes = most;
	if (policy_output_is_split(run) && most != LIMIT_NONE) {
		if (__builtin_add_overflow(run->stream_bytes[0], run->stream_bytes[1], &sum) || sum > most)
			*run = fit_streams(run->stream_bytes, most);
		run->total_bytes = LIMIT_NONE;
	}
	return !is_same_output(run, &before) || is_same_output(run, jar);
}

/* Returns whether the jar's value applies, as it does if both are equal. */
static bool lower(struct policy *run, const struct policy *jar, const struct policy_key *key)
{
	uint64_t own, most;

	if (key->type == POLICY_OUTPUT)
		return lower_output(&run->limits.output, &jar->limits.output);
	memcpy(&own, policy_const_member(run, key), sizeof(own));
	memcpy(&most, policy_const_member(jar, key), sizeof(most));
	if (own < most)
		return false;
	memcpy(policy_member(run, key), &most, sizeof(most));
	return true;
}

void policy_hold(struct policy *run, const struct policy *jar, uint64_t named_keys, enum policy_sharing sharing)
{
	run->own_limits = 0;
	for (size_t i = 0; i < policy_key_count; i++) {
		const struct policy_key *key = &policy_keys[i];
		bool is_jars = is_limit(key) && is_ceiling(jar, key, sharing) && lower(run, jar, key);

		if (is_limit(key) && !is_jars)
			run->own_limits |= named_keys & bit_of(key);
	}
}

bool policy_is_own_limit(uint64_t own_limits, const char *key_name)
{
	const struct policy_key *key = policy_key_by_name(key_name);

	return key && own_limits & bit_of(key);
}
