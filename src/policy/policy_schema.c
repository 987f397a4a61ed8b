/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/policy_schema.c - the table of keys as a JSON Schema, for editors and other people's programs
 *
 * The schema accepts every valid policy. It cannot express everything that the parser refuses: that "0s" is no timeout,
 * or that a path is too long.
 */
#include "base/json_write.h"
#include "policy/policy_build.h"
#include "policy/policy_lists.h"
#include "policy/policy_value.h"
#include "policy/publish.h"
#include "policy/secret_files.h"

#define DURATION_PATTERN "^[0-9]+(\\.[0-9]+)?(ms|s|m|h)?$"
#define SIZE_PATTERN "^[0-9]+(\\.[0-9]+)?[KMGTkmgt]?$"
#define OUTPUT_PATTERN "^([0-9]+(\\.[0-9]+)?[KMGTkmgt]?|std(out|err)=[0-9A-Za-z.]+,std(out|err)=[0-9A-Za-z.]+)$"
#define HOSTNAME_PATTERN "^[A-Za-z0-9_][A-Za-z0-9._-]*$"
#define PUBLISH_PATTERN "^([0-9]{1,5}:)?[0-9]{4,5}$"
#define VARIABLE_PATTERN "^([^=*]+\\*?|\\*)$"

typedef void schema_fn(struct json_writer *writer, const struct policy_key *key);

/* "type": one name, or a list where null is allowed too. */
static void write_types(struct json_writer *writer, const char *first, const char *second, bool may_be_null)
{
	json_open_array(writer, "type");
	json_write_string(writer, NULL, first);
	if (second)
		json_write_string(writer, NULL, second);
	if (may_be_null)
		json_write_string(writer, NULL, "null");
	json_close_array(writer);
}

static void write_enum(struct json_writer *writer, const char *const *words)
{
	json_open_array(writer, "enum");
	for (; *words; words++)
		json_write_string(writer, NULL, *words);
	json_close_array(writer);
}

static void schema_bool(struct json_writer *writer, const struct policy_key *key)
{
	(void)key;
	json_write_string(writer, "type", "boolean");
}

static void schema_word(struct json_writer *writer, const struct policy_key *key)
{
	write_enum(writer, key->words);
}

static void schema_limit(struct json_writer *writer, const struct policy_key *key)
{
	bool is_count = key->type == POLICY_COUNT, is_duration = key->type == POLICY_DURATION;

	write_types(writer, is_duration ? "number" : "integer", is_count ? NULL : "string", key->may_be_none);
	json_write_integer(writer, key->may_be_zero || key->least ? "minimum" : "exclusiveMinimum",
			   (int64_t)key->least);
	if (!is_count)
		json_write_string(writer, "pattern", is_duration ? DURATION_PATTERN : SIZE_PATTERN);
}

static void write_size_type(struct json_writer *writer, const char *name, const char *pattern)
{
	json_open_object(writer, name);
	write_types(writer, "integer", "string", true);
	json_write_integer(writer, "minimum", 0);
	json_write_string(writer, "pattern", pattern);
	json_close_object(writer);
}

static void schema_output(struct json_writer *writer, const struct policy_key *key)
{
	(void)key;
	json_open_array(writer, "anyOf");
	write_size_type(writer, NULL, OUTPUT_PATTERN);
	json_open_object(writer, NULL);
	json_write_string(writer, "type", "object");
	json_open_object(writer, "properties");
	write_size_type(writer, "stdout", SIZE_PATTERN);
	write_size_type(writer, "stderr", SIZE_PATTERN);
	json_close_object(writer);
	json_open_array(writer, "required");
	json_write_string(writer, NULL, "stdout");
	json_write_string(writer, NULL, "stderr");
	json_close_array(writer);
	json_write_bool(writer, "additionalProperties", false);
	json_close_object(writer);
	json_close_array(writer);
}

static void schema_hostname(struct json_writer *writer, const struct policy_key *key)
{
	write_types(writer, "string", NULL, key->may_be_none);
	json_write_string(writer, "pattern", HOSTNAME_PATTERN);
	json_write_integer(writer, "maxLength", POLICY_MAX_HOSTNAME_BYTES);
}

static void schema_path(struct json_writer *writer, const struct policy_key *key)
{
	write_types(writer, "string", NULL, key->may_be_none);
	json_write_integer(writer, "minLength", 1);
}

/* A list whose entries are strings of a shape. */
static void write_list_of_strings(struct json_writer *writer, int min_len, const char *pattern)
{
	json_write_string(writer, "type", "array");
	json_write_integer(writer, "maxItems", POLICY_MAX_ENTRIES);
	json_open_object(writer, "items");
	json_write_string(writer, "type", "string");
	json_write_integer(writer, "minLength", min_len);
	if (pattern)
		json_write_string(writer, "pattern", pattern);
	json_close_object(writer);
}

static void schema_paths(struct json_writer *writer, const struct policy_key *key)
{
	(void)key;
	write_list_of_strings(writer, 1, NULL);
}

/* The least length counts characters here and bytes in the parser: a text of 4 bytes can have a single character. */
static void schema_strings(struct json_writer *writer, const struct policy_key *key)
{
	(void)key;
	write_list_of_strings(writer, 1, NULL);
}

static void schema_names(struct json_writer *writer, const struct policy_key *key)
{
	(void)key;
	write_list_of_strings(writer, 1, VARIABLE_PATTERN);
}

static void write_typed_property(struct json_writer *writer, const char *name, const char *type)
{
	json_open_object(writer, name);
	json_write_string(writer, "type", type);
	json_close_object(writer);
}

static void write_mount_object(struct json_writer *writer)
{
	json_open_object(writer, NULL);
	json_write_string(writer, "type", "object");
	json_open_object(writer, "properties");
	write_typed_property(writer, "path", "string");
	write_typed_property(writer, "dest", "string");
	write_typed_property(writer, "optional", "boolean");
	json_close_object(writer);
	json_open_array(writer, "required");
	json_write_string(writer, NULL, "path");
	json_close_array(writer);
	json_write_bool(writer, "additionalProperties", false);
	json_close_object(writer);
}

static void write_rule_object(struct json_writer *writer)
{
	static const char *const tls_words[] = {"pass", "inspect", NULL};

	json_open_object(writer, NULL);
	json_write_string(writer, "type", "object");
	json_open_object(writer, "properties");
	write_typed_property(writer, "host", "string");
	json_open_object(writer, "ports");
	json_open_array(writer, "type");
	json_write_string(writer, NULL, "string");
	json_write_string(writer, NULL, "integer");
	json_write_string(writer, NULL, "array");
	json_close_array(writer);
	json_close_object(writer);
	write_typed_property(writer, "private", "boolean");
	write_typed_property(writer, "deny", "boolean");
	write_typed_property(writer, "reason", "string");
	write_typed_property(writer, "methods", "array");
	write_typed_property(writer, "paths", "array");
	json_open_object(writer, "tls");
	write_enum(writer, tls_words);
	json_close_object(writer);
	json_close_object(writer);
	json_open_array(writer, "required");
	json_write_string(writer, NULL, "host");
	json_close_array(writer);
	json_write_bool(writer, "additionalProperties", false);
	json_close_object(writer);
}

static void write_list_of_either(struct json_writer *writer, void (*write_object)(struct json_writer *writer))
{
	json_write_string(writer, "type", "array");
	json_write_integer(writer, "maxItems", POLICY_MAX_ENTRIES);
	json_open_object(writer, "items");
	json_open_array(writer, "anyOf");
	write_typed_property(writer, NULL, "string");
	write_object(writer);
	json_close_array(writer);
	json_close_object(writer);
}

static void write_secret_object(struct json_writer *writer)
{
	static const char *const names[] = {"name", "host", "header", "format", "from_env", "from_file"};

	json_open_object(writer, NULL);
	json_write_string(writer, "type", "object");
	json_open_object(writer, "properties");
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		write_typed_property(writer, names[i], "string");
	json_close_object(writer);
	json_open_array(writer, "required");
	json_write_string(writer, NULL, "name");
	json_write_string(writer, NULL, "host");
	json_close_array(writer);
	json_write_bool(writer, "additionalProperties", false);
	json_close_object(writer);
}

static void schema_secrets(struct json_writer *writer, const struct policy_key *key)
{
	(void)key;
	write_list_of_either(writer, write_secret_object);
}

static void schema_rules(struct json_writer *writer, const struct policy_key *key)
{
	(void)key;
	write_list_of_either(writer, write_rule_object);
}

static void schema_ports(struct json_writer *writer, const struct policy_key *key)
{
	(void)key;
	json_write_string(writer, "type", "array");
	json_write_integer(writer, "maxItems", PUBLISH_MAX);
	json_open_object(writer, "items");
	write_types(writer, "integer", "string", false);
	json_write_integer(writer, "minimum", PUBLISH_PORT_MIN);
	json_write_integer(writer, "maximum", UINT16_MAX);
	json_write_string(writer, "pattern", PUBLISH_PATTERN);
	json_close_object(writer);
}

static void schema_mounts(struct json_writer *writer, const struct policy_key *key)
{
	(void)key;
	write_list_of_either(writer, write_mount_object);
}

static void schema_env(struct json_writer *writer, const struct policy_key *key)
{
	(void)key;
	json_write_string(writer, "type", "object");
	json_write_integer(writer, "maxProperties", POLICY_MAX_ENTRIES);
	json_open_object(writer, "propertyNames");
	json_write_string(writer, "pattern", "^[^=]+$");
	json_close_object(writer);
	write_typed_property(writer, "additionalProperties", "string");
}

static void schema_guarantees(struct json_writer *writer, const struct policy_key *key)
{
	(void)key;
	json_write_string(writer, "type", "array");
	json_write_integer(writer, "maxItems", POLICY_MAX_ENTRIES);
	json_open_object(writer, "items");
	write_enum(writer, policy_guarantee_names);
	json_close_object(writer);
}

static void schema_version(struct json_writer *writer, const struct policy_key *key)
{
	(void)key;
	json_write_integer(writer, "const", POLICY_FORMAT_VERSION);
}

static schema_fn *const schemas[] = {
	[POLICY_BOOL] = schema_bool,       [POLICY_WORD] = schema_word,
	[POLICY_SWITCH] = schema_word,     [POLICY_DURATION] = schema_limit,
	[POLICY_SIZE] = schema_limit,      [POLICY_COUNT] = schema_limit,
	[POLICY_STRING] = schema_hostname, [POLICY_WORKDIR] = schema_path,
	[POLICY_PATH] = schema_path,       [POLICY_MOUNTS] = schema_mounts,
	[POLICY_PATHS] = schema_paths,     [POLICY_PATTERNS] = schema_paths,
	[POLICY_TMPFS] = schema_paths,     [POLICY_STRINGS] = schema_strings,
	[POLICY_RULES] = schema_rules,     [POLICY_PORTS] = schema_ports,
	[POLICY_SECRETS] = schema_secrets, [POLICY_NAMES] = schema_names,
	[POLICY_ENV] = schema_env,         [POLICY_GUARANTEES] = schema_guarantees,
	[POLICY_OUTPUT] = schema_output,   [POLICY_VERSION] = schema_version,
	[POLICY_EXTENDS] = schema_path,
};
_Static_assert(ARRAY_LEN(schemas) == POLICY_TYPE_COUNT, "every type has a schema");

static void write_description(struct json_writer *writer, const struct policy_key *key)
{
	AUTO_TEXT text = {0};

	text_append_string(&text, key->help);
	if (key->default_text)
		text_append_format(&text, " (default: %s)", key->default_text);
	json_write_string(writer, "description", text_string(&text));
}

/* must_allow and must_deny are not keys of a policy: `belljar policy test` compares them with it. */
static void write_musts(struct json_writer *writer, const char *name, const char *description)
{
	json_open_object(writer, name);
	json_write_string(writer, "description", description);
	json_write_string(writer, "type", "array");
	json_open_object(writer, "items");
	json_write_string(writer, "type", "string");
	json_close_object(writer);
	json_close_object(writer);
}

void policy_print_schema(struct text *out)
{
	struct json_writer writer = {.text = out, .indent = 2};

	json_open_object(&writer, NULL);
	json_write_string(&writer, "$schema", "https://json-schema.org/draft/2020-12/schema");
	json_write_string(&writer, "title", "Belljar policy");
	json_write_string(&writer, "type", "object");
	json_open_object(&writer, "properties");
	for (size_t i = 0; i < policy_key_count; i++) {
		json_open_object(&writer, policy_keys[i].name);
		write_description(&writer, &policy_keys[i]);
		schemas[policy_keys[i].type](&writer, &policy_keys[i]);
		json_close_object(&writer);
	}
	write_musts(&writer, "must_allow",
		    "what `belljar policy test` must find allowed: \"PATH read|write|exec\", HOST:PORT, a call");
	write_musts(&writer, "must_deny", "the same for what must be refused");
	json_close_object(&writer);
	/* No key either: it may be repeated, and not changed. */
	json_open_object(&writer, "patternProperties");
	write_musts(&writer, "^" SECRET_GLOBS_MEMBER "$",
		    "what `hide_secrets` hides, as `belljar policy show` prints it");
	json_close_object(&writer);
	json_write_bool(&writer, "additionalProperties", false);
	json_close_object(&writer);
}
