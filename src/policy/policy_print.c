/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/policy_print.c - a policy as JSON, every key in full
 */
#include "base/json_write.h"
#include "base/units.h"
#include "policy/policy_build.h"
#include "policy/policy_paths.h"
#include "policy/policy_patterns.h"
#include "policy/policy_presets.h"
#include "policy/policy_value.h"
#include "policy/secret_files.h"

#include <string.h>

typedef void print_fn(struct json_writer *writer, const struct policy *policy, const struct policy_key *key);

static void print_bool(struct json_writer *writer, const struct policy *policy, const struct policy_key *key)
{
	const bool *member = policy_const_member(policy, key);

	json_write_bool(writer, key->name, *member);
}

static void print_word(struct json_writer *writer, const struct policy *policy, const struct policy_key *key)
{
	const int *member = policy_const_member(policy, key);

	json_write_string(writer, key->name, key->words[*member]);
}

static void print_limit(struct json_writer *writer, const struct policy *policy, const struct policy_key *key)
{
	const uint64_t *member = policy_const_member(policy, key);
	AUTO_TEXT text = {0};

	if (*member == LIMIT_NONE) {
		json_write_null(writer, key->name);
		return;
	}
	if (key->type == POLICY_COUNT) {
		json_write_unsigned(writer, key->name, *member);
		return;
	}
	if (key->type == POLICY_DURATION)
		units_format_duration(&text, *member);
	else
		units_format_size(&text, *member);
	json_write_string(writer, key->name, text_string(&text));
}

static void print_size(struct json_writer *writer, const char *name, uint64_t size_bytes)
{
	AUTO_TEXT text = {0};

	units_format_size(&text, size_bytes);
	json_write_string(writer, name, size_bytes == LIMIT_NONE ? NULL : text_string(&text));
}

static void print_output(struct json_writer *writer, const struct policy *policy, const struct policy_key *key)
{
	const struct output_limit *limit = policy_const_member(policy, key);

	if (!policy_output_is_split(limit)) {
		print_size(writer, key->name, limit->total_bytes);
		return;
	}
	json_open_object(writer, key->name);
	print_size(writer, "stdout", limit->stream_bytes[0]);
	print_size(writer, "stderr", limit->stream_bytes[1]);
	json_close_object(writer);
}

static void print_string(struct json_writer *writer, const struct policy *policy, const struct policy_key *key)
{
	char *const *member = policy_const_member(policy, key);

	json_write_string(writer, key->name, *member);
}

static void print_workdir(struct json_writer *writer, const struct policy *policy, const struct policy_key *key)
{
	if (policy->workdir_choice != WORKDIR_DEFAULT)
		json_write_string(writer, key->name, policy->workdir);
}

static void print_mount(struct json_writer *writer, const struct policy_mount *mount)
{
	AUTO_TEXT text = {0}, path = {0};

	if (mount->is_pattern)
		text_append_string(&path, mount->path);
	else
		policy_pattern_quote(&path, mount->path);
	if (strcmp(mount->path, mount->dest) == 0 && !mount->is_optional) {
		policy_escape_path(&text, text_string(&path));
		json_write_string(writer, NULL, text_string(&text));
		return;
	}
	json_open_object(writer, NULL);
	json_write_string(writer, "path", text_string(&path));
	if (strcmp(mount->path, mount->dest) != 0)
		json_write_string(writer, "dest", mount->dest);
	json_write_bool(writer, "optional", mount->is_optional);
	json_close_object(writer);
}

static void print_mounts(struct json_writer *writer, const struct policy *policy, const struct policy_key *key)
{
	json_open_array(writer, key->name);
	for (size_t i = 0; i < policy->mounts.count; i++) {
		if (policy->mounts.items[i].access == policy_key_access(key))
			print_mount(writer, &policy->mounts.items[i]);
	}
	json_close_array(writer);
}

static void print_tmpfs(struct json_writer *writer, const struct policy *policy, const struct policy_key *key)
{
	json_open_array(writer, key->name);
	for (size_t i = 0; i < policy->tmpfs.count; i++) {
		const struct policy_tmpfs *tmpfs = &policy->tmpfs.items[i];
		AUTO_TEXT text = {0};

		policy_escape_path(&text, tmpfs->path);
		if (tmpfs->size_bytes != LIMIT_NONE) {
			/* A slash keeps a backslash at the end of the name away from the colon. */
			text_append_string(&text, tmpfs->path[strlen(tmpfs->path) - 1] == '\\' ? "/:" : ":");
			units_format_size(&text, tmpfs->size_bytes);
		}
		json_write_string(writer, NULL, text_string(&text));
	}
	json_close_array(writer);
}

static void print_strings(struct json_writer *writer, const struct policy *policy, const struct policy_key *key)
{
	const struct string_list *list = policy_const_member(policy, key);

	json_open_array(writer, key->name);
	for (size_t i = 0; i < list->count; i++)
		json_write_string(writer, NULL, list->items[i]);
	json_close_array(writer);
}

static void print_rules(struct json_writer *writer, const struct policy *policy, const struct policy_key *key)
{
	const struct string_list *list = policy_const_member(policy, key);

	json_open_array(writer, key->name);
	for (size_t i = 0; i < list->count; i++) {
		if (list->items[i][0] == '{')
			json_write_raw(writer, NULL, list->items[i], strlen(list->items[i]));
		else
			json_write_string(writer, NULL, list->items[i]);
	}
	json_close_array(writer);
}

static void print_env(struct json_writer *writer, const struct policy *policy, const struct policy_key *key)
{
	json_open_object(writer, key->name);
	for (size_t i = 0; i < policy->env.count; i++)
		json_write_string(writer, policy->env.items[i].name, policy->env.items[i].value);
	json_close_object(writer);
}

static void print_guarantees(struct json_writer *writer, const struct policy *policy, const struct policy_key *key)
{
	json_open_array(writer, key->name);
	for (size_t i = 0; i < GUARANTEE_COUNT; i++) {
		if (policy->optional >> i & 1)
			json_write_string(writer, NULL, policy_guarantee_names[i]);
	}
	json_close_array(writer);
}

static void print_version(struct json_writer *writer, const struct policy *policy, const struct policy_key *key)
{
	(void)policy;
	json_write_integer(writer, key->name, POLICY_FORMAT_VERSION);
}

/* Whatever the policy was made from: everything that differs from `agent` is printed. */
static void print_extends(struct json_writer *writer, const struct policy *policy, const struct policy_key *key)
{
	(void)policy;
	json_write_string(writer, key->name, POLICY_PRESET_AGENT);
}

static print_fn *const printers[] = {
	[POLICY_BOOL] = print_bool,       [POLICY_WORD] = print_word,
	[POLICY_SWITCH] = print_word,     [POLICY_DURATION] = print_limit,
	[POLICY_SIZE] = print_limit,      [POLICY_COUNT] = print_limit,
	[POLICY_STRING] = print_string,   [POLICY_WORKDIR] = print_workdir,
	[POLICY_PATH] = print_string,     [POLICY_MOUNTS] = print_mounts,
	[POLICY_PATHS] = print_strings,   [POLICY_PATTERNS] = print_strings,
	[POLICY_TMPFS] = print_tmpfs,     [POLICY_STRINGS] = print_strings,
	[POLICY_RULES] = print_rules,     [POLICY_PORTS] = print_strings,
	[POLICY_SECRETS] = print_rules,   [POLICY_NAMES] = print_strings,
	[POLICY_ENV] = print_env,         [POLICY_GUARANTEES] = print_guarantees,
	[POLICY_OUTPUT] = print_output,   [POLICY_VERSION] = print_version,
	[POLICY_EXTENDS] = print_extends,
};
_Static_assert(ARRAY_LEN(printers) == POLICY_TYPE_COUNT, "every type is printed");

void policy_print_jar(const struct policy *policy, struct text *out)
{
	struct json_writer writer = {.text = out, .has_byte_escapes = true};

	json_open_object(&writer, NULL);
	for (size_t i = 0; i < policy_key_count; i++)
		if (policy_keys[i].scope != SCOPE_RUN || !strcmp(policy_keys[i].name, "cpu_time"))
			printers[policy_keys[i].type](&writer, policy, &policy_keys[i]);
	json_write_bool(&writer, "pids_given", policy_is_given(policy, "pids"));
	json_close_object(&writer);
}

void policy_print(const struct policy *policy, struct text *out, int indent)
{
	struct json_writer writer = {.text = out, .indent = indent};

	json_open_object(&writer, NULL);
	for (size_t i = 0; i < policy_key_count; i++)
		printers[policy_keys[i].type](&writer, policy, &policy_keys[i]);
	if (policy->has_hide_secrets)
		policy_secret_files_write(&writer, SECRET_GLOBS_MEMBER);
	json_close_object(&writer);
}
