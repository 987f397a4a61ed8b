/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/policy_value.c - check one value, from a flag or a document, and put it into a policy
 *
 * The same code reads a flag's word and a JSON string, so that they cannot mean different things. Each type has a row
 * in kinds[]: how to read a text, how to read a JSON value (of a list: one entry), and how to empty the list before a
 * document replaces it.
 */
#include "policy/policy_value.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "base/units.h"
#include "policy/net_secrets.h"
#include "policy/policy_lists.h"
#include "policy/policy_paths.h"
#include "policy/policy_patterns.h"
#include "policy/publish.h"

typedef int read_text_fn(struct policy *policy, const char *text, const struct policy_origin *origin);
typedef int read_json_fn(struct policy *policy, const struct json_value *value, const struct policy_origin *origin);
typedef void clear_fn(struct policy *policy, const struct policy_key *key);

struct kind {
	const char *expected; /* in a document, for messages; of a list: an entry */
	bool is_list;
	read_text_fn *read_text;
	read_json_fn *read_json;
	clear_fn *clear;
};

static const struct kind kinds[POLICY_TYPE_COUNT];

static const struct kind *kind_of(const struct policy_origin *origin)
{
	return &kinds[origin->key->type];
}

static struct policy_origin origin_at(const struct policy_origin *origin, unsigned line, unsigned column)
{
	struct policy_origin moved = *origin;

	moved.line = line;
	moved.column = column;
	return moved;
}

static int refuse_type(const struct policy_origin *origin, const struct json_value *value)
{
	const struct kind *kind = kind_of(origin);

	return policy_refuse(origin, NULL, "%s be %s, not %s", kind->is_list ? "an entry must" : "must", kind->expected,
			     json_type_name(value->type));
}

static int refuse_word(const struct policy_origin *origin, const char *word, const char *const *words)
{
	const char *near = suggest_from(word, words);
	AUTO_TEXT known = {0};

	for (; *words; words++)
		text_append_format(&known, "%s%s", known.len ? ", " : "", *words);
	if (near)
		return policy_refuse(origin, word, "not one of %s (did you mean '%s'?)", text_string(&known), near);
	return policy_refuse(origin, word, "not one of %s", text_string(&known));
}

/* Return the index of @word in @words, or -ENOENT. */
static int find_word(const char *word, const char *const *words)
{
	for (int i = 0; words[i]; i++) {
		if (strcmp(words[i], word) == 0)
			return i;
	}
	return -ENOENT;
}

static int set_string(char **member, const char *text, const struct policy_origin *origin)
{
	char *copy = text ? strdup(text) : NULL;

	if (text && !copy)
		return policy_refuse_errno(origin, -ENOMEM);
	free(*member);
	*member = copy;
	return 0;
}

/* --- most JSON values are strings that read like the word after a flag --- */

static int json_string(struct policy *policy, const struct json_value *value, const struct policy_origin *origin)
{
	if (value->type != JSON_STRING)
		return refuse_type(origin, value);
	return kind_of(origin)->read_text(policy, value->string.bytes, origin);
}

static int json_string_or_null(struct policy *policy, const struct json_value *value,
			       const struct policy_origin *origin)
{
	if (value->type == JSON_NULL && origin->key->may_be_none)
		return set_string(policy_member(policy, origin->key), NULL, origin);
	return json_string(policy, value, origin);
}

/* --- bools and words --- */

static int text_bool(struct policy *policy, const char *text, const struct policy_origin *origin)
{
	bool *member = policy_member(policy, origin->key);

	if (text)
		return policy_refuse(origin, text, "takes no value; the opposite is --no-%s", origin->key->flag);
	*member = !origin->is_negated;
	return 0;
}

static int json_bool(struct policy *policy, const struct json_value *value, const struct policy_origin *origin)
{
	bool *member = policy_member(policy, origin->key);

	if (value->type != JSON_BOOL)
		return refuse_type(origin, value);
	*member = value->boolean;
	return 0;
}

static int text_word(struct policy *policy, const char *text, const struct policy_origin *origin)
{
	int *member = policy_member(policy, origin->key);
	int index = find_word(text, origin->key->words);

	_Static_assert(sizeof(enum net_mode) == sizeof(*member), "enums are stored as int");
	if (index < 0)
		return refuse_word(origin, text, origin->key->words);
	*member = index;
	return 0;
}

/* The flag has no value. */
static int text_switch(struct policy *policy, const char *text, const struct policy_origin *origin)
{
	if (text && policy_is_flag(origin))
		return policy_refuse(origin, text, "takes no value; the opposite is --no-%s", origin->key->flag);
	return text_word(policy, text ? text : origin->key->words[!origin->is_negated], origin);
}

/* --- limits --- */

static const struct {
	int (*parse)(const char *string, uint64_t *out);
	const char *what;
} limit_units[POLICY_TYPE_COUNT] = {
	[POLICY_DURATION] = {units_parse_duration, "a duration (such as 500ms, 30s, 5m, 1h)"},
	[POLICY_SIZE] = {units_parse_size, "a size in bytes (such as 100K, 512M, 2G)"},
	[POLICY_COUNT] = {units_parse_count, "a count (such as 64)"},
	[POLICY_OUTPUT] = {units_parse_size,
			   "a size in bytes (such as 100K, 512M, 2G), or one for each: stdout=SIZE,stderr=SIZE"},
};

static int refuse_too_small(const char *shown, const struct policy_origin *origin)
{
	AUTO_TEXT least = {0};

	if (origin->key->type == POLICY_SIZE)
		units_format_size(&least, origin->key->least);
	else
		text_append_format(&least, "%" PRIu64, origin->key->least);
	return policy_refuse(origin, shown, "too small; the minimum is %s", text_string(&least));
}

static int check_limit(uint64_t limit, const char *shown, const struct policy_origin *origin)
{
	const char *no_limit = policy_is_flag(origin) ? "none" : "null";

	if (limit == LIMIT_NONE && !origin->key->may_be_none)
		return policy_refuse(origin, shown, "must be a duration; 0 leaves no time at all");
	if (limit == 0 && !origin->key->may_be_zero)
		return policy_refuse(origin, shown, "0 is not a limit; write %s for no limit", no_limit);
	return limit < origin->key->least ? refuse_too_small(shown, origin) : 0;
}

/* @shown is the value as it was written. */
static int read_limit(const char *text, const char *shown, const struct policy_origin *origin, uint64_t *out)
{
	uint64_t limit = 0;
	int rc = limit_units[origin->key->type].parse(text, &limit);

	if (rc == -ERANGE)
		return policy_refuse(origin, shown, "too large");
	if (rc < 0)
		return policy_refuse(origin, shown, "not %s", limit_units[origin->key->type].what);
	rc = check_limit(limit, shown, origin);
	if (rc < 0)
		return rc;
	*out = limit;
	return 0;
}

static int text_limit(struct policy *policy, const char *text, const struct policy_origin *origin)
{
	return read_limit(text, text, origin, policy_member(policy, origin->key));
}

/* Read a number exactly, from its digits; only a number with an exponent goes through the double. */
static int read_number(const struct json_value *value, const struct policy_origin *origin, uint64_t *out)
{
	const char *digits = value->number.digits;
	char expanded[48];
	double real;

	if (value->type == JSON_INTEGER || !strpbrk(digits, "eE") || digits[0] == '-')
		return read_limit(digits, digits, origin, out);
	real = value->number.real;
	if (real >= (double)INT64_MAX)
		return policy_refuse(origin, digits, "too large");
	if (real == (double)(int64_t)real)
		snprintf(expanded, sizeof(expanded), "%" PRId64, (int64_t)real);
	else
		snprintf(expanded, sizeof(expanded), "%" PRId64 ".%09d", (int64_t)real,
			 (int)((real - (double)(int64_t)real) * 1e9));
	return read_limit(expanded, digits, origin, out);
}

static int read_json_limit(const struct json_value *value, const struct policy_origin *origin, uint64_t *out)
{
	int rc;

	if (value->type == JSON_INTEGER || value->type == JSON_REAL)
		return read_number(value, origin, out);
	if (value->type == JSON_NULL) {
		rc = check_limit(LIMIT_NONE, "null", origin);
		if (rc == 0)
			*out = LIMIT_NONE;
		return rc;
	}
	if (value->type != JSON_STRING || origin->key->type == POLICY_COUNT)
		return refuse_type(origin, value);
	if (strcmp(value->string.bytes, "none") == 0 && origin->key->may_be_none)
		return policy_refuse(origin, "none", "write null for no limit");
	return read_limit(value->string.bytes, value->string.bytes, origin, out);
}

static int json_limit(struct policy *policy, const struct json_value *value, const struct policy_origin *origin)
{
	return read_json_limit(value, origin, policy_member(policy, origin->key));
}

/* --- output: a limit for both streams together, or one for each --- */

static const char *const stream_words[] = {"stdout", "stderr", NULL};

#define NO_OUTPUT_LIMIT ((struct output_limit){LIMIT_NONE, {LIMIT_NONE, LIMIT_NONE}})

static int set_streams(struct policy *policy, const struct output_limit *limit, unsigned seen,
		       const struct policy_origin *origin)
{
	if (seen != 3)
		return policy_refuse(origin, NULL, "must name both streams, stdout and stderr");
	policy->limits.output = *limit;
	return 0;
}

/* Read "stdout=SIZE,stderr=SIZE", in either order. */
static int text_streams(struct policy *policy, const char *text, const struct policy_origin *origin)
{
	struct output_limit limit = NO_OUTPUT_LIMIT;
	unsigned seen = 0;

	for (const char *at = text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
		size_t len = strcspn(at, ",");
		const char *equals = memchr(at, '=', len);
		AUTO_FREE char *name = strndup(at, equals ? (size_t)(equals - at) : len);
		AUTO_FREE char *size = equals ? strndup(equals + 1, len - (size_t)(equals + 1 - at)) : NULL;
		int index = name ? find_word(name, stream_words) : -ENOENT, rc;

		if (!name || (equals && !size))
			return policy_refuse_errno(origin, -ENOMEM);
		if (index < 0)
			return refuse_word(origin, name, stream_words);
		if (!size || seen >> index & 1)
			return policy_refuse(origin, text, "must be stdout=SIZE,stderr=SIZE");
		seen |= 1U << index;
		rc = read_limit(size, size, origin, &limit.stream_bytes[index]);
		if (rc < 0)
			return rc;
	}
	return set_streams(policy, &limit, seen, origin);
}

static int text_output(struct policy *policy, const char *text, const struct policy_origin *origin)
{
	struct output_limit limit = NO_OUTPUT_LIMIT;
	int rc;

	if (strchr(text, '='))
		return text_streams(policy, text, origin);
	rc = read_limit(text, text, origin, &limit.total_bytes);
	if (rc == 0)
		policy->limits.output = limit;
	return rc;
}

static int json_output(struct policy *policy, const struct json_value *value, const struct policy_origin *origin)
{
	struct output_limit limit = NO_OUTPUT_LIMIT;
	unsigned seen = 0;
	int rc;

	if (value->type == JSON_STRING && strchr(value->string.bytes, '='))
		return text_streams(policy, value->string.bytes, origin);
	if (value->type != JSON_OBJECT) {
		rc = read_json_limit(value, origin, &limit.total_bytes);
		if (rc == 0)
			policy->limits.output = limit;
		return rc;
	}
	for (size_t i = 0; i < value->object.count; i++) {
		const struct json_member *member = &value->object.members[i];
		struct policy_origin at_name = origin_at(origin, member->line, member->column);
		struct policy_origin at_value = origin_at(origin, member->value.line, member->value.column);
		int index = find_word(member->name, stream_words);

		if (index < 0)
			return refuse_word(&at_name, member->name, stream_words);
		seen |= 1U << index;
		rc = read_json_limit(&member->value, &at_value, &limit.stream_bytes[index]);
		if (rc < 0)
			return rc;
	}
	return set_streams(policy, &limit, seen, origin);
}

/* --- single paths and names --- */

/* Of a host, or of a workspace. */
static int text_name(struct policy *policy, const char *text, const struct policy_origin *origin)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
	const char *what = origin->key->offset == offsetof(struct policy, hostname) ? "a host name" : "such a name";
	size_t len = strlen(text);

	if (len == 0 || len > POLICY_MAX_HOSTNAME_BYTES)
		return policy_refuse(origin, text, "%s has 1 to %d characters", what, POLICY_MAX_HOSTNAME_BYTES);
	if (strspn(text, letters) != len || text[0] == '-' || text[0] == '.')
		return policy_refuse(origin, text,
				     "%s is made of letters, digits, '-', '_' and '.', and begins with none of '-.'",
				     what);
	return set_string(policy_member(policy, origin->key), text, origin);
}

static int text_inside_path(struct policy *policy, const char *text, const struct policy_origin *origin)
{
	AUTO_FREE char *path = NULL;
	int rc = policy_clean_path(text, PATH_INSIDE, origin, &path);

	return rc < 0 ? rc : set_string(policy_member(policy, origin->key), path, origin);
}

static int set_workdir(struct policy *policy, const char *path, const struct policy_origin *origin)
{
	int rc = set_string(&policy->workdir, path, origin);

	if (rc == 0)
		policy->workdir_choice = path ? WORKDIR_NAMED : WORKDIR_PRIVATE;
	return rc;
}

static int named_workdir(struct policy *policy, const char *text, const struct policy_origin *origin)
{
	AUTO_FREE char *path = NULL;
	int rc = policy_clean_path(text, PATH_HOST, origin, &path);

	return rc < 0 ? rc : set_workdir(policy, path, origin);
}

static int text_workdir(struct policy *policy, const char *text, const struct policy_origin *origin)
{
	if (strcmp(text, "none") == 0)
		return set_workdir(policy, NULL, origin);
	return named_workdir(policy, text, origin);
}

static int json_workdir(struct policy *policy, const struct json_value *value, const struct policy_origin *origin)
{
	if (value->type == JSON_NULL)
		return set_workdir(policy, NULL, origin);
	if (value->type != JSON_STRING)
		return refuse_type(origin, value);
	return named_workdir(policy, value->string.bytes, origin);
}

/* --- mounts --- */

static int add_mount(struct policy *policy, const char *path, const char *dest, bool is_optional,
		     const struct policy_origin *origin)
{
	AUTO_FREE char *clean_path = NULL, *clean_dest = NULL;
	bool is_pattern;
	int rc = policy_clean_pattern(path, dest, origin, &is_pattern, &clean_path);

	if (rc == 0 && dest)
		rc = policy_clean_path(dest, PATH_DEST, origin, &clean_dest);
	if (rc < 0)
		return rc;
	rc = policy_add_mount(policy, clean_path, clean_dest ? clean_dest : clean_path, policy_key_access(origin->key),
			      is_optional);
	if (rc < 0)
		return policy_refuse_errno(origin, rc);
	policy->mounts.items[policy->mounts.count - 1].is_pattern = is_pattern;
	return 0;
}

static int text_mount(struct policy *policy, const char *text, const struct policy_origin *origin)
{
	AUTO_FREE char *path = NULL, *dest = NULL;
	int rc = policy_split_path(text, origin, &path, &dest);

	return rc < 0 ? rc : add_mount(policy, path, dest, false, origin);
}

/* The members of {"path", "dest", "optional"}. */
static int json_mount_object(struct policy *policy, const struct json_value *value, const struct policy_origin *origin)
{
	static const char *const names[] = {"path", "dest", "optional", NULL};
	static const enum json_type types[] = {JSON_STRING, JSON_STRING, JSON_BOOL};
	const struct json_value *found[ARRAY_LEN(types)] = {0};

	for (size_t i = 0; i < value->object.count; i++) {
		const struct json_member *member = &value->object.members[i];
		struct policy_origin at_name = origin_at(origin, member->line, member->column);
		struct policy_origin at_value = origin_at(origin, member->value.line, member->value.column);
		int index = find_word(member->name, names);

		if (index < 0)
			return refuse_word(&at_name, member->name, names);
		if (member->value.type != types[index])
			return policy_refuse(&at_value, member->name, "must be %s, not %s",
					     json_type_name(types[index]), json_type_name(member->value.type));
		found[index] = &member->value;
	}
	if (!found[0])
		return policy_refuse(origin, NULL, "an entry needs a \"path\"");
	return add_mount(policy, found[0]->string.bytes, found[1] ? found[1]->string.bytes : NULL,
			 found[2] && found[2]->boolean, origin);
}

static int json_mount(struct policy *policy, const struct json_value *value, const struct policy_origin *origin)
{
	if (value->type == JSON_OBJECT)
		return json_mount_object(policy, value, origin);
	return json_string(policy, value, origin);
}

static void clear_mounts(struct policy *policy, const struct policy_key *key)
{
	policy_clear_mounts(policy, policy_key_access(key));
}

/* --- private directories --- */

static int text_tmpfs(struct policy *policy, const char *text, const struct policy_origin *origin)
{
	AUTO_FREE char *path = NULL, *size = NULL, *clean_path = NULL;
	uint64_t size_bytes = LIMIT_NONE;
	int rc = policy_split_path(text, origin, &path, &size);

	if (rc < 0)
		return rc;
	rc = policy_clean_path(path, PATH_PLACE, origin, &clean_path);
	if (rc < 0)
		return rc;
	if (strcmp(clean_path, "/") == 0)
		return policy_refuse(origin, text, "a private directory cannot take the place of the whole jar");
	rc = size ? units_parse_size(size, &size_bytes) : 0;
	if (rc == -ERANGE)
		return policy_refuse(origin, text, "the size is too large");
	if (rc < 0 || (size && (size_bytes == 0 || size_bytes == LIMIT_NONE)))
		return policy_refuse(origin, text, "what follows ':' is not a size (such as 100K, 512M, 2G)");
	rc = policy_add_tmpfs(policy, clean_path, size_bytes);
	return rc < 0 ? policy_refuse_errno(origin, rc) : 0;
}

static void clear_tmpfs(struct policy *policy, const struct policy_key *key)
{
	(void)key;
	policy_clear_tmpfs(policy);
}

/* --- lists of strings --- */

static int add_string(struct policy *policy, const char *text, const struct policy_origin *origin)
{
	int rc = policy_add_string(policy_member(policy, origin->key), text);

	return rc < 0 ? policy_refuse_errno(origin, rc) : 0;
}

static int text_host_path(struct policy *policy, const char *text, const struct policy_origin *origin)
{
	AUTO_FREE char *path = NULL;
	int rc = policy_clean_path(text, PATH_HOST, origin, &path);

	return rc < 0 ? rc : add_string(policy, path, origin);
}

static int text_pattern(struct policy *policy, const char *text, const struct policy_origin *origin)
{
	AUTO_FREE char *pattern = NULL;
	int rc = policy_read_pattern(text, origin, &pattern);

	return rc < 0 ? rc : add_string(policy, pattern, origin);
}

/* Messages never show the text, since it is a secret. */
static int text_redact(struct policy *policy, const char *text, const struct policy_origin *origin)
{
	if (strlen(text) < POLICY_MIN_REDACT_BYTES)
		return policy_refuse(origin, NULL, "a text must have at least %d bytes; this one has %zu",
				     POLICY_MIN_REDACT_BYTES, strlen(text));
	return add_string(policy, text, origin);
}

static int text_variable(struct policy *policy, const char *text, const struct policy_origin *origin)
{
	const char *star = strchr(text, '*');

	if (!*text)
		return policy_refuse(origin, text, "the name of a variable is empty");
	if (strchr(text, '='))
		return policy_refuse(origin, NULL, "the name of a variable has no '='; to set one, use %s",
				     policy_is_flag(origin) ? "--env" : "env");
	if (star && star[1])
		return policy_refuse(origin, text, "'*' may be at the end only");
	return add_string(policy, text, origin);
}

/* --- rules of the network --- */

static int add_rule(struct policy *policy, const struct net_rule *rule, const struct policy_origin *origin)
{
	AUTO_TEXT text = {0};

	net_rule_format(rule, &text);
	return text_failed(&text) ? policy_refuse_errno(origin, -ENOMEM)
				  : add_string(policy, text_string(&text), origin);
}

static int refuse_rule(const struct policy_origin *origin, const char *text, const struct net_refusal *refusal)
{
	int rc = policy_refuse(origin, text, "%s", refusal->why);

	return refusal->hint[0] ? error_hint(origin->source->error, "%s", refusal->hint) : rc;
}

static int text_rule(struct policy *policy, const char *text, const struct policy_origin *origin)
{
	struct net_refusal refusal;
	struct net_rule rule;

	if (net_rule_parse(text, &rule, &refusal) < 0)
		return refuse_rule(origin, text, &refusal);
	return add_rule(policy, &rule, origin);
}

static int json_rule(struct policy *policy, const struct json_value *value, const struct policy_origin *origin)
{
	struct net_refusal refusal;
	struct net_rule rule;

	if (value->type != JSON_OBJECT)
		return json_string(policy, value, origin);
	if (net_rule_parse_object(value, &rule, &refusal) < 0)
		return refuse_rule(origin, NULL, &refusal);
	return add_rule(policy, &rule, origin);
}

/* --- ports of the jar --- */

static int text_port(struct policy *policy, const char *text, const struct policy_origin *origin)
{
	const char *why = policy_publish_add(policy_member(policy, origin->key), text);

	return why ? policy_refuse(origin, text, "%s", why) : 0;
}

static int json_port(struct policy *policy, const struct json_value *value, const struct policy_origin *origin)
{
	if (value->type != JSON_INTEGER)
		return json_string(policy, value, origin);
	return text_port(policy, value->number.digits, origin);
}

/* --- secrets: messages do not show the text, since the user may have given the secret itself --- */

static int add_secret(struct policy *policy, const struct net_secret *secret, const struct policy_origin *origin)
{
	AUTO_TEXT text = {0};

	if (policy->secrets.count == NET_SECRETS_MAX)
		return policy_refuse(origin, NULL, "there are more than %d secrets", NET_SECRETS_MAX);
	net_secret_format(secret, &text);
	return text_failed(&text) ? policy_refuse_errno(origin, -ENOMEM)
				  : add_string(policy, text_string(&text), origin);
}

static int text_secret(struct policy *policy, const char *text, const struct policy_origin *origin)
{
	struct net_refusal refusal;
	struct net_secret secret;

	if (net_secret_parse(text, &secret, &refusal) < 0)
		return policy_refuse(origin, NULL, "%s", refusal.why);
	return add_secret(policy, &secret, origin);
}

static int json_secret(struct policy *policy, const struct json_value *value, const struct policy_origin *origin)
{
	struct net_refusal refusal;
	struct net_secret secret;

	if (value->type != JSON_OBJECT)
		return json_string(policy, value, origin);
	if (net_secret_parse_object(value, &secret, &refusal) < 0)
		return policy_refuse(origin, NULL, "%s", refusal.why);
	return add_secret(policy, &secret, origin);
}

static void clear_strings(struct policy *policy, const struct policy_key *key)
{
	string_list_clear(policy_member(policy, key));
}

bool policy_name_matches(const char *pattern, const char *name)
{
	size_t len = strlen(pattern);

	if (len && pattern[len - 1] == '*')
		return strncmp(pattern, name, len - 1) == 0;
	return strcmp(pattern, name) == 0;
}

/* --- the environment; messages do not show values, which may be secrets --- */

static int add_env(struct policy *policy, const char *name, const char *value, const struct policy_origin *origin)
{
	int rc;

	if (!*name || strchr(name, '='))
		return policy_refuse(origin, NULL, "the name of a variable may not be empty, nor have a '=' in it");
	rc = policy_add_env(policy, name, value);
	return rc < 0 ? policy_refuse_errno(origin, rc) : 0;
}

static int text_env(struct policy *policy, const char *text, const struct policy_origin *origin)
{
	const char *equals = strchr(text, '=');
	AUTO_FREE char *name = NULL;

	if (!equals) {
		policy_refuse(origin, NULL, "must be NAME=VALUE");
		return error_hint(origin->source->error,
				  "--pass-env NAME copies a variable from the caller's environment");
	}
	name = strndup(text, (size_t)(equals - text));
	if (!name)
		return policy_refuse_errno(origin, -ENOMEM);
	return add_env(policy, name, equals + 1, origin);
}

static int json_env(struct policy *policy, const struct json_value *value, const struct policy_origin *origin)
{
	if (value->type != JSON_OBJECT)
		return refuse_type(origin, value);
	for (size_t i = 0; i < value->object.count; i++) {
		const struct json_member *member = &value->object.members[i];
		struct policy_origin at_name = origin_at(origin, member->line, member->column);
		struct policy_origin at_value = origin_at(origin, member->value.line, member->value.column);
		int rc;

		if (member->value.type != JSON_STRING)
			return policy_refuse(&at_value, member->name, "must be a string, not %s",
					     json_type_name(member->value.type));
		rc = add_env(policy, member->name, member->value.string.bytes, &at_name);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static void clear_env(struct policy *policy, const struct policy_key *key)
{
	(void)key;
	policy_clear_env(policy);
}

/* --- guarantees that may be missing --- */

static int text_guarantee(struct policy *policy, const char *text, const struct policy_origin *origin)
{
	int index = find_word(text, policy_guarantee_names);

	if (index < 0)
		return refuse_word(origin, text, policy_guarantee_names);
	policy->optional |= UINT32_C(1) << index;
	return 0;
}

static void clear_guarantees(struct policy *policy, const struct policy_key *key)
{
	(void)key;
	policy->optional = 0;
}

/* --- keys of a file only --- */

static int json_version(struct policy *policy, const struct json_value *value, const struct policy_origin *origin)
{
	(void)policy;
	if (value->type != JSON_INTEGER)
		return refuse_type(origin, value);
	if (value->number.integer != POLICY_FORMAT_VERSION)
		return policy_refuse(origin, value->number.digits, "this engine knows version %d only",
				     POLICY_FORMAT_VERSION);
	return 0;
}

/* Loading a document has applied `extends` before any other key. */
static int json_extends(struct policy *policy, const struct json_value *value, const struct policy_origin *origin)
{
	(void)policy;
	return value->type == JSON_STRING ? 0 : refuse_type(origin, value);
}

static const struct kind kinds[] = {
	[POLICY_BOOL] = {"true or false", false, text_bool, json_bool, NULL},
	[POLICY_WORD] = {"a string", false, text_word, json_string, NULL},
	[POLICY_SWITCH] = {"a string", false, text_switch, json_string, NULL},
	[POLICY_DURATION] = {"a duration: a number of seconds, or a string such as \"500ms\"", false, text_limit,
			     json_limit, NULL},
	[POLICY_SIZE] = {"a size: a number of bytes, or a string such as \"512M\"", false, text_limit, json_limit,
			 NULL},
	[POLICY_COUNT] = {"a number", false, text_limit, json_limit, NULL},
	[POLICY_OUTPUT] = {"a size, or {\"stdout\": SIZE, \"stderr\": SIZE}", false, text_output, json_output, NULL},
	[POLICY_STRING] = {"a string", false, text_name, json_string_or_null, NULL},
	[POLICY_WORKDIR] = {"a path or null", false, text_workdir, json_workdir, NULL},
	[POLICY_PATH] = {"a path", false, text_inside_path, json_string_or_null, NULL},
	[POLICY_MOUNTS] = {"\"PATH\", \"PATH:DEST\" or {\"path\", \"dest\", \"optional\"}", true, text_mount,
			   json_mount, clear_mounts},
	[POLICY_PATHS] = {"a path", true, text_host_path, json_string, clear_strings},
	[POLICY_PATTERNS] = {"a path or a pattern", true, text_pattern, json_string, clear_strings},
	[POLICY_TMPFS] = {"\"PATH\" or \"PATH:SIZE\"", true, text_tmpfs, json_string, clear_tmpfs},
	[POLICY_STRINGS] = {"a string", true, text_redact, json_string, clear_strings},
	[POLICY_RULES] =
		{"\"HOST[:PORTS]\" or {\"host\", \"ports\", \"methods\", \"paths\", \"tls\", \"private\", \"deny\", \"reason\"}",
		 true, text_rule, json_rule, clear_strings},
	[POLICY_PORTS] = {"a number, or \"HOSTPORT:PORT\"", true, text_port, json_port, clear_strings},
	[POLICY_SECRETS] =
		{"\"NAME@HOST[:HEADER]\" or {\"name\", \"host\", \"header\", \"format\", \"from_env\", \"from_file\"}",
		 true, text_secret, json_secret, clear_strings},
	[POLICY_NAMES] = {"the name of a variable", true, text_variable, json_string, clear_strings},
	[POLICY_ENV] = {"an object of strings", false, text_env, json_env, clear_env},
	[POLICY_GUARANTEES] = {"a string", true, text_guarantee, json_string, clear_guarantees},
	[POLICY_VERSION] = {"a number", false, NULL, json_version, NULL},
	[POLICY_EXTENDS] = {"the name of a preset or a file", false, NULL, json_extends, NULL},
};
_Static_assert(ARRAY_LEN(kinds) == POLICY_TYPE_COUNT, "every type has a row");

int policy_set_text(struct policy *policy, const char *text, const struct policy_origin *origin)
{
	return kind_of(origin)->read_text(policy, text, origin);
}

int policy_set_json(struct policy *policy, const struct json_value *value, bool is_append,
		    const struct policy_origin *origin)
{
	const struct kind *kind = kind_of(origin);

	if (kind->clear && !is_append)
		kind->clear(policy, origin->key);
	if (!kind->is_list)
		return kind->read_json(policy, value, origin);
	if (value->type != JSON_LIST)
		return policy_refuse(origin, NULL, "must be a list, not %s", json_type_name(value->type));
	for (size_t i = 0; i < value->list.count; i++) {
		const struct json_value *entry = &value->list.items[i];
		struct policy_origin at_entry = origin_at(origin, entry->line, entry->column);
		int rc = kind->read_json(policy, entry, &at_entry);

		if (rc < 0)
			return rc;
	}
	return 0;
}
