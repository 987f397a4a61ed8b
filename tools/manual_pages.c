/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tools/manual_pages.c - fill the templates of the man pages from the tables of options, policy keys and secret shapes
 *
 * The output is mdoc(7) that `mandoc -T lint` has nothing to say about: short input lines, every dash of a flag a real
 * minus, nothing at the start of a line that could be taken for a request.
 */
#include "manual_pages.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "door/cli/options.h"
#include "survey/survey_names.h"
#include "base/redact/redact_shapes.h"

#define MARKER ".\\\" BELLJAR: "
#define LINE_MAX_BYTES 78

/* For one word on a macro line or in text. */
static void append_escaped(struct text *out, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (bytes[i] == '\\')
			text_append_string(out, "\\e");
		else if (bytes[i] == '-')
			text_append_string(out, "\\-");
		else if (bytes[i] == '"')
			text_append_string(out, "\\(dq");
		else if (bytes[i] == '~')
			text_append_string(out, "\\(ti");
		else
			text_append_char(out, bytes[i]);
	}
}

/* Lines of text, filled to LINE_MAX_BYTES; a sentence begins a new line, as mdoc wants it. */
static void append_paragraph(struct text *out, const char *words)
{
	size_t column = 0;
	bool is_sentence_over = false;

	while (*words) {
		AUTO_TEXT word = {0};
		size_t len = strcspn(words, " ");

		append_escaped(&word, words, len);
		if (column > 0 && (is_sentence_over || column + 1 + word.len > LINE_MAX_BYTES)) {
			text_append_char(out, '\n');
			column = 0;
		} else if (column > 0) {
			text_append_char(out, ' ');
			column++;
		}
		if (column == 0 && (words[0] == '.' || words[0] == '\''))
			text_append_string(out, "\\&");
		text_append_string(out, text_string(&word));
		is_sentence_over = len > 0 && strchr(".?!", words[len - 1]);
		column += word.len;
		words += len;
		words += strspn(words, " ");
	}
	text_append_char(out, '\n');
}

/* "where it starts" becomes "Where it starts." */
static void append_sentence(struct text *out, const char *help, const char *default_text)
{
	AUTO_TEXT sentence = {0};

	text_append_string(&sentence, help);
	if (sentence.len > 0)
		sentence.data[0] = (char)toupper((unsigned char)sentence.data[0]);
	text_append_char(&sentence, '.');
	if (default_text)
		text_append_format(&sentence, " Default: %s.", default_text);
	append_paragraph(out, text_string(&sentence));
}

static void append_flag(struct text *out, const char *prefix, const char *flag)
{
	text_append_format(out, " Fl -%s", prefix);
	append_escaped(out, flag, strlen(flag));
}

static void append_option(struct text *out, const struct option_row *row)
{
	text_append_string(out, ".It");
	if (row->short_flag)
		text_append_format(out, " Fl %c ,", row->short_flag);
	append_flag(out, "", row->flag);
	if (row->is_value_optional)
		text_append_string(out, " Ns Op = Ns Ar ");
	else if (row->placeholder)
		text_append_string(out, " Ar ");
	if (row->placeholder)
		append_escaped(out, row->placeholder, strlen(row->placeholder));
	if (row->is_negatable) {
		text_append_string(out, " ,");
		append_flag(out, "no\\-", row->flag);
	}
	text_append_char(out, '\n');
	append_sentence(out, row->help, row->default_text);
}

static int append_options(struct text *out, const char *argument, struct error *error)
{
	const struct command_row *command = cli_command_row_by_name(argument);
	struct option_cursor cursor = {0};
	struct option_row row;
	const char *heading = NULL;

	if (!command)
		return error_set(error, STAGE_USAGE, 0, "there is no command '%s' to list the options of", argument);
	while (cli_options_next(&cursor, &row)) {
		if (!(row.commands & command->command))
			continue;
		if (row.heading != heading)
			text_append_format(out, "%s.Ss %s\n.Bl -tag -width Ds\n", heading ? ".El\n" : "", row.heading);
		heading = row.heading;
		append_option(out, &row);
	}
	text_append_string(out, heading ? ".El\n" : "");
	return 0;
}

static const char *const type_texts[] = {
	[POLICY_BOOL] = "true or false",
	[POLICY_WORD] = "one of",
	[POLICY_SWITCH] = "one of",
	[POLICY_DURATION] = "duration",
	[POLICY_SIZE] = "size",
	[POLICY_COUNT] = "count",
	[POLICY_OUTPUT] = "size, or an object of two sizes, stdout and stderr",
	[POLICY_STRING] = "string",
	[POLICY_WORKDIR] = "path or null",
	[POLICY_PATH] = "path",
	[POLICY_MOUNTS] = "list of paths, with a destination",
	[POLICY_PATHS] = "list of paths",
	[POLICY_TMPFS] = "list of paths, with a size",
	[POLICY_STRINGS] = "list of strings",
	[POLICY_NAMES] = "list of names",
	[POLICY_ENV] = "object of strings",
	[POLICY_GUARANTEES] = "list of keys of the result's enforced",
	[POLICY_VERSION] = "the number 1; in files only",
	[POLICY_EXTENDS] = "preset name or file; in files only",
};
_Static_assert(ARRAY_LEN(type_texts) == POLICY_EXTENDS + 1, "every type has a name in the manual");

static const char *const scope_texts[] = {
	[SCOPE_JAR] = "fixed for the jar",
	[SCOPE_RUN] = "may differ per run",
	[SCOPE_BOTH] = "may be lowered per run",
};

static void append_key(struct text *out, const struct policy_key *key)
{
	AUTO_TEXT type = {0};
	bool is_file_only = key->type == POLICY_VERSION || key->type == POLICY_EXTENDS;

	text_append_format(out, ".It Ic %s\n", key->name);
	append_sentence(out, key->help, key->default_text);
	text_append_format(&type, "Type: %s", type_texts[key->type]);
	for (size_t i = 0; key->words && key->words[i]; i++)
		text_append_format(&type, "%s \"%s\"", i ? "," : "", key->words[i]);
	text_append_format(&type, "%s%s", key->may_be_none && key->type != POLICY_WORKDIR ? ", or null" : "",
			   key->may_be_zero ? ", 0 allowed" : "");
	if (!is_file_only)
		text_append_format(&type, "; %s", scope_texts[key->scope]);
	text_append_string(&type, ".");
	if (key->flag && key->placeholder)
		text_append_format(&type, " Option: --%s %s.", key->flag, key->placeholder);
	else if (key->flag)
		text_append_format(&type, " Options: --%s, --no-%s.", key->flag, key->flag);
	append_paragraph(out, text_string(&type));
}

static int append_keys(struct text *out, const char *argument, struct error *error)
{
	(void)argument;
	(void)error;
	text_append_string(out, ".Bl -tag -width Ds\n");
	for (size_t i = 0; i < policy_key_count; i++)
		append_key(out, &policy_keys[i]);
	text_append_string(out, ".El\n");
	return 0;
}

static int append_environment(struct text *out, const char *argument, struct error *error)
{
	static const struct policy_context context = {.current_directory = "/", .home = "/home/user"};
	AUTO(policy_done) struct policy policy = {0};
	int rc = policy_init(&policy, &context, error);

	(void)argument;
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < policy.pass_env.count; i++)
		text_append_format(out, ".Ev %s%s\n", policy.pass_env.items[i],
				   i + 1 < policy.pass_env.count ? " ," : " .");
	return 0;
}

static int append_paths(struct text *out, const char *const *names)
{
	for (; *names; names++) {
		text_append_string(out, ".Pa ");
		append_escaped(out, *names, strlen(*names));
		text_append_string(out, names[1] ? " ,\n" : " .\n");
	}
	return 0;
}

static int append_system(struct text *out, const char *argument, struct error *error)
{
	(void)argument;
	(void)error;
	return append_paths(out, survey_system_names);
}

static int append_etc(struct text *out, const char *argument, struct error *error)
{
	(void)argument;
	(void)error;
	return append_paths(out, survey_etc_names);
}

static int append_presets(struct text *out, const char *argument, struct error *error)
{
	(void)argument;
	(void)error;
	for (size_t i = 0; policy_preset_names[i]; i++)
		text_append_format(out, ".Cm %s%s\n", policy_preset_names[i], policy_preset_names[i + 1] ? " ," : " .");
	return 0;
}

/* Of an example of several lines the first will do. */
static int append_shapes(struct text *out, const char *argument, struct error *error)
{
	(void)argument;
	(void)error;
	text_append_string(out, ".Bl -tag -width Ds -compact\n");
	for (size_t i = 0; i < redact_shape_count; i++) {
		const struct redact_shape *shape = &redact_shapes[i];

		text_append_format(out, ".It %s\n.Ql \"", shape->name);
		append_escaped(out, shape->example, strcspn(shape->example, "\n"));
		text_append_string(out, "\"\n");
	}
	text_append_string(out, ".El\n");
	return 0;
}

/* One line for all names that are there for the same reason. */
static void append_names(struct text *out, const struct host_name *rows)
{
	for (; rows->name; rows++) {
		bool is_first = rows == survey_protected_names || rows == survey_instruction_names ||
				strcmp(rows[-1].who, rows->who) != 0;
		bool is_last = !rows[1].name || strcmp(rows[1].who, rows->who) != 0;

		text_append_string(out, is_first ? ".It\n.Pa " : ".Pa ");
		append_escaped(out, rows->name, strlen(rows->name));
		text_append_string(out, is_last ? "\n" : " ,\n");
	}
}

static int append_protected(struct text *out, const char *argument, struct error *error)
{
	(void)argument;
	(void)error;
	append_names(out, survey_protected_names);
	return 0;
}

static int append_instructions(struct text *out, const char *argument, struct error *error)
{
	(void)argument;
	(void)error;
	append_names(out, survey_instruction_names);
	return 0;
}

static const struct {
	const char *name;
	int (*append)(struct text *out, const char *argument, struct error *error);
} markers[] = {
	{"options", append_options},           {"keys", append_keys},     {"environment", append_environment},
	{"presets", append_presets},           {"shapes", append_shapes}, {"protected", append_protected},
	{"instructions", append_instructions}, {"system", append_system}, {"etc", append_etc},
};

/* @line is what follows the marker: a name, and perhaps a word for it. */
static int append_marked(struct text *out, const char *line, size_t len, struct error *error)
{
	char name[32], argument[32] = "";
	char copy[80];

	snprintf(copy, sizeof(copy), "%.*s", (int)MIN_OF(len, sizeof(copy) - 1), line);
	if (sscanf(copy, "%31s %31s", name, argument) < 1)
		return error_set(error, STAGE_USAGE, 0, "a marker without a name");
	for (size_t i = 0; i < ARRAY_LEN(markers); i++)
		if (strcmp(markers[i].name, name) == 0)
			return markers[i].append(out, argument, error);
	return error_set(error, STAGE_USAGE, 0, "unknown marker '%s'", name);
}

int manual_fill(const char *template, struct text *out, struct error *error)
{
	int rc = 0;

	while (*template && rc >= 0) {
		size_t len = strcspn(template, "\n");
		size_t line_len = len + (template[len] == '\n');

		if (strncmp(template, MARKER, strlen(MARKER)) == 0)
			rc = append_marked(out, template + strlen(MARKER), len - strlen(MARKER), error);
		else
			text_append(out, template, line_len);
		template += line_len;
	}
	return rc;
}
