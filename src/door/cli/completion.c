/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/completion.c - completions for bash, zsh and fish, made from the tables of commands and options
 *
 * Each script has a fixed frame, which finds out where on the command line the cursor stands, and generated lists. In
 * all three the words from COMMAND on are completed as a command line of their own.
 */
#include "door/cli/completion.h"

#include <string.h>

#include "door/cli/options.h"

/* Append @string for use inside single quotes: @quote stands for one, and a '\' goes before each of @special. */
static void append_quoted(struct text *out, const char *string, const char *quote, const char *special)
{
	for (; *string; string++) {
		if (*string == '\'') {
			text_append_string(out, quote);
			continue;
		}
		if (strchr(special, *string))
			text_append_char(out, '\\');
		text_append_char(out, *string);
	}
}

static void append_words(struct text *out, const char *const *words)
{
	for (size_t i = 0; words && words[i]; i++)
		text_append_format(out, i ? " %s" : "%s", words[i]);
}

/* "-C|--workdir", or with another separator. */
static void append_names(struct text *out, const struct option_row *row, const char *separator)
{
	if (row->short_flag)
		text_append_format(out, "-%c%s", row->short_flag, separator);
	text_append_format(out, "--%s", row->flag);
}

/* The names of every option whose value may stand in the next word. */
static void append_names_with_value(struct text *out, const char *separator)
{
	struct option_cursor cursor = {0};
	struct option_row row;
	bool is_first = true;

	while (cli_options_next(&cursor, &row)) {
		if (!row.placeholder || row.is_value_optional)
			continue;
		if (!is_first)
			text_append_string(out, separator);
		append_names(out, &row, separator);
		is_first = false;
	}
}

/* bash */

static const char bash_frame[] =
	"_belljar_words()\n"
	"{\n"
	"\tlocal IFS=$' \\t\\n'\n"
	"\tCOMPREPLY+=($(compgen -W \"$1\" -- \"$2\"))\n"
	"}\n"
	"\n"
	"_belljar_paths()\n"
	"{\n"
	"\tlocal IFS=$'\\n'\n"
	"\tcompopt -o filenames 2>/dev/null\n"
	"\tCOMPREPLY+=($(compgen \"$1\" -- \"$2\"))\n"
	"}\n"
	"\n"
	"_belljar_command_line()\n"
	"{\n"
	"\tif declare -F _command_offset >/dev/null; then\n"
	"\t\t_command_offset \"$1\"\n"
	"\telif ((COMP_CWORD == $1)); then\n"
	"\t\tCOMPREPLY=($(compgen -c -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
	"\telse\n"
	"\t\t_belljar_paths -f \"${COMP_WORDS[COMP_CWORD]}\"\n"
	"\tfi\n"
	"}\n"
	"\n"
	"_belljar()\n"
	"{\n"
	"\tlocal current=${COMP_WORDS[COMP_CWORD]} command= pending= previous= word index words=0\n"
	"\n"
	"\tCOMPREPLY=()\n"
	"\tfor ((index = 1; index < COMP_CWORD; index++)); do\n"
	"\t\tword=${COMP_WORDS[index]}\n"
	"\t\tif [[ $word == = ]]; then\n"
	"\t\t\tpending=$previous\n"
	"\t\telif [[ $pending ]]; then\n"
	"\t\t\tpending=\n"
	"\t\telif [[ -z $command ]]; then\n"
	"\t\t\t[[ $word == -* ]] || command=$word\n"
	"\t\telif [[ $word == -- ]]; then\n"
	"\t\t\t_belljar_command_line $((index + 1))\n"
	"\t\t\treturn\n"
	"\t\telif [[ $word == -* ]]; then\n"
	"\t\t\t_belljar_takes_value \"$word\" && pending=$word\n"
	"\t\telif [[ $command == run || $command == try || $command == plan ]]; then\n"
	"\t\t\t_belljar_command_line \"$index\"\n"
	"\t\t\treturn\n"
	"\t\telse\n"
	"\t\t\t((++words))\n"
	"\t\tfi\n"
	"\t\tprevious=$word\n"
	"\tdone\n"
	"\tif [[ $current == = ]]; then\n"
	"\t\tpending=$previous\n"
	"\t\tcurrent=\n"
	"\tfi\n"
	"\tif [[ $pending ]]; then\n"
	"\t\t_belljar_value \"$pending\" \"$current\"\n"
	"\telif [[ $current == --*=* ]]; then\n"
	"\t\t_belljar_value \"${current%%=*}\" \"${current#*=}\"\n"
	"\t\tCOMPREPLY=(\"${COMPREPLY[@]/#/${current%%=*}=}\")\n"
	"\telif [[ $current == -* ]]; then\n"
	"\t\t_belljar_words \"$(_belljar_options \"$command\")\" \"$current\"\n"
	"\telif [[ $command == run || $command == try || $command == plan ]]; then\n"
	"\t\t_belljar_command_line \"$COMP_CWORD\"\n"
	"\telif [[ $command == diff || $command == apply || $command == discard ]]; then\n"
	"\t\t_belljar_value --theirs \"$current\"\n"
	"\telif [[ $words == 0 ]]; then\n"
	"\t\t_belljar_words \"$(_belljar_first_words \"$command\")\" \"$current\"\n"
	"\telif [[ $command == policy ]]; then\n"
	"\t\t_belljar_value --policy \"$current\"\n"
	"\tfi\n"
	"}\n"
	"complete -F _belljar belljar\n";

static void bash_value(struct text *out, const struct option_row *row)
{
	if (row->value_kind == VALUE_NONE || row->value_kind == VALUE_ANY)
		return;
	text_append_string(out, "\t");
	append_names(out, row, "|");
	text_append_string(out, ")\n");
	if (row->words) {
		text_append_string(out, "\t\t_belljar_words '");
		append_words(out, row->words);
		text_append_string(out, "' \"$2\"\n");
	}
	if (row->value_kind == VALUE_FILE)
		text_append_string(out, "\t\t_belljar_paths -f \"$2\"\n");
	if (row->value_kind == VALUE_DIRECTORY)
		text_append_string(out, "\t\t_belljar_paths -d \"$2\"\n");
	text_append_string(out, "\t\t;;\n");
}

static void bash_options_of(struct text *out, const struct command_row *command)
{
	struct option_cursor cursor = {0};
	struct option_row row;

	text_append_format(out, "\t%s) echo '", command->name);
	while (cli_options_next(&cursor, &row)) {
		if (!(row.commands & command->command))
			continue;
		append_names(out, &row, " ");
		text_append_char(out, ' ');
		if (row.is_negatable)
			text_append_format(out, "--no-%s ", row.flag);
	}
	text_append_string(out, "' ;;\n");
}

static void print_bash(struct text *out)
{
	struct option_cursor cursor = {0};
	struct option_row row;

	text_append_string(out, "# bash completion for belljar, made by 'belljar completion bash'\n\n");
	text_append_string(out, "_belljar_options()\n{\n\tcase $1 in\n\t'') echo '-h --help --version' ;;\n");
	for (size_t i = 0; i < cli_command_count; i++)
		bash_options_of(out, &cli_commands[i]);
	text_append_string(out, "\tesac\n}\n\n_belljar_first_words()\n{\n\tcase $1 in\n\t'') echo '");
	for (size_t i = 0; i < cli_command_count; i++)
		text_append_format(out, "%s ", cli_commands[i].name);
	text_append_string(out, "' ;;\n");
	for (size_t i = 0; i < cli_command_count; i++) {
		if (!cli_commands[i].first_words)
			continue;
		text_append_format(out, "\t%s) echo '", cli_commands[i].name);
		append_words(out, cli_commands[i].first_words);
		text_append_string(out, "' ;;\n");
	}
	text_append_string(out, "\tesac\n}\n\n_belljar_takes_value()\n{\n\tcase $1 in\n\t");
	append_names_with_value(out, "|");
	text_append_string(out, ") return 0 ;;\n\tesac\n\treturn 1\n}\n\n_belljar_value()\n{\n\tcase $1 in\n");
	while (cli_options_next(&cursor, &row))
		bash_value(out, &row);
	text_append_string(out, "\tesac\n}\n\n");
	text_append_string(out, bash_frame);
}

/* A file of policy, or a preset, may be the second word. */
static bool takes_presets(const struct command_row *command)
{
	return command->command & (COMMAND_POLICY | COMMAND_NET);
}

/* zsh */

#define ZSH_QUOTE "'\\''"
#define ZSH_SPECIAL "[]:\\"

static void zsh_action(struct text *out, const struct option_row *row)
{
	text_append_string(out, row->is_value_optional ? "::" : ":");
	append_quoted(out, row->placeholder, ZSH_QUOTE, ZSH_SPECIAL);
	text_append_char(out, ':');
	switch (row->value_kind) {
	case VALUE_NONE:
	case VALUE_ANY:
		text_append_char(out, ' ');
		break;
	case VALUE_WORD:
		text_append_char(out, '(');
		append_words(out, row->words);
		text_append_char(out, ')');
		break;
	case VALUE_FILE:
		text_append_string(out, row->words ? " _belljar_words_or_files " : "_files");
		append_words(out, row->words);
		break;
	case VALUE_DIRECTORY:
		text_append_string(out, "_files -/");
		break;
	}
}

/* One specification for _arguments, as its manual describes them. */
static void zsh_option(struct text *out, const struct option_row *row)
{
	const char *value_mark = !row->placeholder ? "" : row->is_value_optional ? "=-" : "=";

	text_append_string(out, "\t\t\t");
	if (row->is_repeatable)
		text_append_string(out, "'*'");
	else if (row->short_flag)
		text_append_format(out, "'(-%c --%s)'", row->short_flag, row->flag);
	if (row->short_flag)
		text_append_format(out, "{-%c%s,--%s%s}'[", row->short_flag, row->placeholder ? "+" : "", row->flag,
				   value_mark);
	else
		text_append_format(out, "'--%s%s[", row->flag, value_mark);
	append_quoted(out, row->help, ZSH_QUOTE, ZSH_SPECIAL);
	text_append_char(out, ']');
	if (row->placeholder)
		zsh_action(out, row);
	text_append_string(out, "' \\\n");
	if (row->is_negatable) {
		text_append_format(out, "\t\t\t'--no-%s[not\\: ", row->flag);
		append_quoted(out, row->help, ZSH_QUOTE, ZSH_SPECIAL);
		text_append_string(out, "]' \\\n");
	}
}

static void zsh_words(struct text *out, const struct command_row *command)
{
	if (command->takes_command_line) {
		text_append_string(out, "\t\t\t'*:::command:_normal'\n");
		return;
	}
	if (command->first_words) {
		text_append_string(out, "\t\t\t'1:word:(");
		append_words(out, command->first_words);
		text_append_string(out, ")' \\\n");
	}
	if (command->takes_paths)
		text_append_string(out, "\t\t\t'*:file:_files' \\\n");
	if (takes_presets(command)) {
		text_append_string(out, "\t\t\t'2:file: _belljar_words_or_files ");
		append_words(out, policy_preset_names);
		text_append_string(out, "' \\\n");
	}
	text_append_string(out, "\t\t\t&& return\n");
}

static void zsh_command(struct text *out, const struct command_row *command)
{
	struct option_cursor cursor = {0};
	struct option_row row;

	text_append_format(out, "\t(%s)\n\t\t_arguments -S%s \\\n", command->name,
			   command->takes_command_line ? " -A '-'" : "");
	while (cli_options_next(&cursor, &row))
		if (row.commands & command->command)
			zsh_option(out, &row);
	zsh_words(out, command);
	text_append_string(out, "\t\t;;\n");
}

static void print_zsh(struct text *out)
{
	text_append_string(out, "#compdef belljar\n# zsh completion for belljar, made by 'belljar completion zsh'\n\n"
				"_belljar_words_or_files() {\n"
				"\t_alternative \"words:word:($*)\" 'files:file:_files'\n}\n\n"
				"_belljar() {\n\tlocal curcontext=$curcontext state line\n\tlocal -a belljar_commands\n"
				"\ttypeset -A opt_args\n\n\t_arguments -C \\\n\t\t'(- *)'{-h,--help}'[print help]' \\\n"
				"\t\t'(- *)--version[print the version]' \\\n\t\t'1: :->command' \\\n"
				"\t\t'*:: :->argument' && return\n\n"
				"\tif [[ $state == command ]]; then\n\t\tbelljar_commands=(\n");
	for (size_t i = 0; i < cli_command_count; i++) {
		text_append_format(out, "\t\t\t'%s:", cli_commands[i].name);
		append_quoted(out, cli_commands[i].summary, ZSH_QUOTE, ":\\");
		text_append_string(out, "'\n");
	}
	text_append_string(out, "\t\t)\n\t\t_describe 'belljar command' belljar_commands\n\t\treturn\n\tfi\n"
				"\tcase $words[1] in\n");
	for (size_t i = 0; i < cli_command_count; i++)
		zsh_command(out, &cli_commands[i]);
	text_append_string(out, "\tesac\n}\n\n"
				"if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n\t_belljar \"$@\"\nelse\n"
				"\tcompdef _belljar belljar\nfi\n");
}

/* fish */

#define FISH_QUOTE "\\'"
#define FISH_SPECIAL "\\"

static const char fish_frame[] =
	"# Where COMMAND begins for run, try and plan; fails while options are still possible.\n"
	"function __belljar_command_start\n"
	"\tset --local words (commandline -opc)\n"
	"\tcontains -- \"$words[2]\" run try plan\n"
	"\tor return 1\n"
	"\tset --local index 3\n"
	"\twhile test $index -le (count $words)\n"
	"\t\tif test \"$words[$index]\" = --\n"
	"\t\t\tmath $index + 1\n"
	"\t\t\treturn 0\n"
	"\t\telse if contains -- \"$words[$index]\" $__belljar_with_value\n"
	"\t\t\tset index (math $index + 2)\n"
	"\t\telse if string match -q -- '-*' \"$words[$index]\"\n"
	"\t\t\tset index (math $index + 1)\n"
	"\t\telse\n"
	"\t\t\techo $index\n"
	"\t\t\treturn 0\n"
	"\t\tend\n"
	"\tend\n"
	"\treturn 1\n"
	"end\n"
	"\n"
	"# Is the command one of these, with options still possible?\n"
	"function __belljar_options_of\n"
	"\tset --local words (commandline -opc)\n"
	"\tcontains -- \"$words[2]\" $argv\n"
	"\tand not __belljar_command_start >/dev/null\n"
	"end\n"
	"\n"
	"function __belljar_needs_command\n"
	"\ttest (count (commandline -opc)) -eq 1\n"
	"end\n"
	"\n"
	"function __belljar_needs_first_word\n"
	"\tset --local words (commandline -opc)\n"
	"\ttest (count $words) -eq 2\n"
	"\tand test \"$words[2]\" = $argv[1]\n"
	"end\n"
	"\n"
	"# Complete what stands from COMMAND on as a command line of its own.\n"
	"function __belljar_command_line\n"
	"\tset --local words (commandline -opc)\n"
	"\tset --local start (__belljar_command_start)\n"
	"\tset --local rest\n"
	"\tif test -n \"$start\"; and test $start -le (count $words)\n"
	"\t\tset rest (string escape -- $words[$start..-1])\n"
	"\tend\n"
	"\tcomplete -C (string join ' ' -- $rest (commandline -ct))\n"
	"end\n"
	"\n"
	"function __belljar_may_begin_command\n"
	"\tset --local words (commandline -opc)\n"
	"\tcontains -- \"$words[2]\" run try plan\n"
	"\tand not contains -- \"$words[-1]\" $__belljar_with_value\n"
	"\tand begin\n"
	"\t\t__belljar_command_start >/dev/null\n"
	"\t\tor not string match -q -- '-*' (commandline -ct)\n"
	"\tend\n"
	"end\n"
	"\n"
	"complete -c belljar -f\n"
	"complete -c belljar -n __belljar_needs_command -s h -l help -d 'print help'\n"
	"complete -c belljar -n __belljar_needs_command -l version -d 'print the version'\n"
	"complete -c belljar -n __belljar_may_begin_command -a '(__belljar_command_line)'\n";

static void fish_condition(struct text *out, unsigned commands)
{
	text_append_string(out, "complete -c belljar -n '__belljar_options_of");
	for (size_t i = 0; i < cli_command_count; i++)
		if (commands & cli_commands[i].command)
			text_append_format(out, " %s", cli_commands[i].name);
	text_append_char(out, '\'');
}

static void fish_value(struct text *out, const struct option_row *row)
{
	switch (row->value_kind) {
	case VALUE_NONE:
		return;
	case VALUE_ANY:
		text_append_string(out, " -x");
		return;
	case VALUE_WORD:
		text_append_string(out, row->is_value_optional ? " -f" : " -x");
		break;
	case VALUE_FILE:
		text_append_string(out, " -r -F");
		break;
	case VALUE_DIRECTORY:
		text_append_string(out, " -x -a '(__fish_complete_directories)'");
		break;
	}
	if (row->words) {
		text_append_string(out, " -a '");
		append_words(out, row->words);
		text_append_char(out, '\'');
	}
}

static void fish_option(struct text *out, const struct option_row *row)
{
	fish_condition(out, row->commands);
	if (row->short_flag)
		text_append_format(out, " -s %c", row->short_flag);
	text_append_format(out, " -l %s", row->flag);
	fish_value(out, row);
	text_append_string(out, " -d '");
	append_quoted(out, row->help, FISH_QUOTE, FISH_SPECIAL);
	text_append_string(out, "'\n");
	if (row->is_negatable) {
		fish_condition(out, row->commands);
		text_append_format(out, " -l no-%s -d 'not: ", row->flag);
		append_quoted(out, row->help, FISH_QUOTE, FISH_SPECIAL);
		text_append_string(out, "'\n");
	}
}

static void fish_command(struct text *out, const struct command_row *command)
{
	text_append_format(out, "complete -c belljar -n __belljar_needs_command -a %s -d '", command->name);
	append_quoted(out, command->summary, FISH_QUOTE, FISH_SPECIAL);
	text_append_string(out, "'\n");
	if (command->first_words) {
		text_append_format(out, "complete -c belljar -n '__belljar_needs_first_word %s' -a '", command->name);
		append_words(out, command->first_words);
		text_append_string(out, "'\n");
	}
	if (command->takes_paths)
		text_append_format(out, "complete -c belljar -n '__belljar_options_of %s' -F\n", command->name);
	if (takes_presets(command)) {
		text_append_format(out,
				   "complete -c belljar -n '__belljar_options_of %s; and not "
				   "__belljar_needs_first_word %s' -F -a '",
				   command->name, command->name);
		append_words(out, policy_preset_names);
		text_append_string(out, "'\n");
	}
}

static void print_fish(struct text *out)
{
	struct option_cursor cursor = {0};
	struct option_row row;

	text_append_string(out, "# fish completion for belljar, made by 'belljar completion fish'\n\n"
				"set -g __belljar_with_value ");
	append_names_with_value(out, " ");
	text_append_string(out, "\n\n");
	text_append_string(out, fish_frame);
	for (size_t i = 0; i < cli_command_count; i++)
		fish_command(out, &cli_commands[i]);
	while (cli_options_next(&cursor, &row))
		fish_option(out, &row);
}

static const struct {
	const char *shell;
	void (*print)(struct text *out);
} shells[] = {
	{"bash", print_bash},
	{"zsh", print_zsh},
	{"fish", print_fish},
};

int cli_completion_print(const char *shell, struct text *out, struct error *error)
{
	for (size_t i = 0; i < ARRAY_LEN(shells); i++) {
		if (strcmp(shells[i].shell, shell) != 0)
			continue;
		shells[i].print(out);
		return 0;
	}
	error_set(error, STAGE_USAGE, 0, "there are no completions for '%.200s'", shell);
	return error_hint(error, "the shells are bash, zsh and fish");
}
