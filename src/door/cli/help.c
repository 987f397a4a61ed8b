/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/help.c - help texts, made from the tables of commands and options
 *
 * An entry has its name on the left and its meaning, wrapped, from one column on; a name too long for the left side
 * gets a line of its own. Only examples and closing words are written here.
 */
#include "door/cli/help.h"

#include <string.h>

/* The build says which; a build by hand does not. */
#ifndef BELLJAR_VERSION
#define BELLJAR_VERSION "unknown"
#endif

#define MEANING_COLUMN 34
#define OVERVIEW_MEANING_COLUMN 18

struct example {
	enum cli_command command;
	const char *line;
	const char *meaning;
};

static const struct example examples[] = {
	{COMMAND_RUN, "belljar run -- make test", "writes below the current directory only, no network"},
	{COMMAND_RUN, "belljar run --timeout 2m --memory 1G --json -- python3 job.py",
	 "bounded; the result is one line of JSON"},
	{COMMAND_RUN, "belljar run --policy strict --ro ~/data:/data --shell 'wc -l /data/*.csv | sort -n'",
	 "private and empty but for one read-only directory"},
	{COMMAND_RUN, "belljar run --allow-net '*.example.org' -- make fetch", "these hosts can be reached, no others"},
	{COMMAND_SHELL, "belljar shell -C ~/src/project", "look around as a command would"},
	{COMMAND_SHELL, "belljar shell --policy readonly --memory 2G", "change nothing, use no more than 2 GiB"},
	{COMMAND_PLAN, "belljar plan -- make test", "the steps, for people"},
	{COMMAND_PLAN, "belljar plan --policy ./policy.json --json -- make test", "the steps, for programs"},
	{COMMAND_DOCTOR, "belljar doctor", "what holds on this host, and what to install or change"},
	{COMMAND_DOCTOR, "belljar doctor --prove --json", "try it, and report to a program"},
	{COMMAND_POLICY, "belljar policy show strict", "a preset in full"},
	{COMMAND_POLICY, "belljar policy check ./policy.json", "exit 0, or 125 and the line and column"},
	{COMMAND_POLICY, "belljar policy schema > belljar.schema.json", "for an editor"},
	{COMMAND_POLICY, "belljar policy test ./policy.json", "exit 0 if it allows and denies what it says it must"},
	{COMMAND_POLICY, "belljar policy diff agent ./policy.json", "what the second allows and limits otherwise"},
	{COMMAND_NET, "belljar net check --allow-net '*.example.org' www.example.org:443",
	 "exit 0: it may be reached; 1: not"},
	{COMMAND_NET, "belljar net check ./policy.json 10.1.2.3:5432", "with the rules of a file"},
	{COMMAND_WHY, "belljar why ~/data/model.bin", "may a command read, write, execute it?"},
	{COMMAND_WHY, "belljar why --allow-net '*.example.org' api.example.org:8443", "and what would allow it"},
	{COMMAND_WHY, "belljar why --json mount", "for programs; exit 0: allowed, 1: refused"},
	{COMMAND_MCP, "belljar mcp -C ~/src/project", "what an agent's settings name as a server"},
	{COMMAND_MCP, "belljar mcp --policy ./policy.json --allow-net '*.example.org'",
	 "what its tools may do; it can only ask for less"},
	{COMMAND_MCP, "belljar mcp -C ~/src/project --cow --allow-apply 'src/*'",
	 "the agent changes a layer, and may apply what it changed there"},
	{COMMAND_MCP_WRAP, "belljar mcp-wrap -C ~/notes --deny-tool 'delete_*' -- npx some-mcp-server",
	 "a server that you did not write"},
	{COMMAND_HOOK, "belljar hook install claude", "show the change to the project's settings; --yes makes it"},
	{COMMAND_HOOK, "belljar hook uninstall claude --yes", "take the hook out again"},
	{COMMAND_HOOK, "belljar hook claude --policy /etc/belljar/agent.json",
	 "what these settings name; reads an event"},
	{COMMAND_COMPLETION, "belljar completion bash > ~/.local/share/bash-completion/completions/belljar",
	 "for new shells from now on"},
	{COMMAND_COMPLETION, "belljar completion fish > ~/.config/fish/completions/belljar.fish", "the same for fish"},
	{COMMAND_ENGINE, "belljar engine",
	 "started by libbelljar and the Python package, with a socket as descriptor 3"},
	{COMMAND_HELP, "belljar help run", "the same as 'belljar run --help'"},
	{COMMAND_TRY, "belljar try -- ./agent.sh", "then decide about each file"},
	{COMMAND_TRY, "belljar try --apply 'src/*' -- make format", "in a script: only what is below src"},
	{COMMAND_LEARN, "belljar learn --out policy.json -- make test", "then `belljar run --policy ./policy.json`"},
	{COMMAND_LEARN, "belljar learn --out policy.json --ro ~/data -- ./job.sh", "go on from what is known"},
	{COMMAND_DIFF, "belljar diff", "what the last workspace of this directory changes"},
	{COMMAND_DIFF, "belljar diff --patch src", "as a patch, below src only"},
	{COMMAND_APPLY, "belljar apply", "all of it that is neither in conflict nor risky"},
	{COMMAND_APPLY, "belljar apply src --theirs src/a.c", "below src; src/a.c whatever the workdir has now"},
	{COMMAND_DISCARD, "belljar discard", "drop the last workspace of this directory"},
	{COMMAND_WORKSPACE, "belljar workspace list", "all that are kept"},
	{COMMAND_WORKSPACE, "belljar workspace fork NAME 4", "four more with the same state, for four attempts"},
};

static void pad(struct text *out, size_t count)
{
	while (count-- > 0)
		text_append_char(out, ' ');
}

/* Append @words, which begin at column @indent, broken between words so that no line passes HELP_COLUMNS. */
static void wrap(struct text *out, const char *words, size_t indent)
{
	size_t column = indent;
	bool is_first = true;

	while (*words) {
		size_t len = strcspn(words, " ");

		if (!is_first && column + 1 + len > HELP_COLUMNS) {
			text_append_char(out, '\n');
			pad(out, indent);
			column = indent;
		} else if (!is_first) {
			text_append_char(out, ' ');
			column++;
		}
		text_append(out, words, len);
		column += len;
		words += len;
		words += strspn(words, " ");
		is_first = false;
	}
	text_append_char(out, '\n');
}

static void print_entry(struct text *out, const char *name, const char *meaning, size_t meaning_column)
{
	size_t column = 2 + strlen(name);

	text_append_format(out, "  %s", name);
	if (column + 2 > meaning_column) {
		text_append_char(out, '\n');
		column = 0;
	}
	pad(out, meaning_column - column);
	wrap(out, meaning, meaning_column);
}

static void print_option(struct text *out, const struct option_row *row)
{
	AUTO_TEXT name = {0};
	AUTO_TEXT meaning = {0};

	if (row->short_flag)
		text_append_format(&name, "-%c, ", row->short_flag);
	else
		pad(&name, 4);
	text_append_format(&name, "--%s", row->flag);
	if (row->placeholder)
		text_append_format(&name, row->is_value_optional ? "[=%s]" : " %s", row->placeholder);
	text_append_string(&meaning, row->help);
	if (row->is_negatable)
		text_append_format(&meaning, "; --no-%s: not", row->flag);
	if (row->default_text)
		text_append_format(&meaning, " (default: %s)", row->default_text);
	print_entry(out, text_string(&name), text_string(&meaning), MEANING_COLUMN);
}

static void print_options(struct text *out, enum cli_command command)
{
	struct option_cursor cursor = {0};
	struct option_row row;
	const char *heading = NULL;

	while (cli_options_next(&cursor, &row)) {
		if (!(row.commands & command))
			continue;
		if (row.heading != heading)
			text_append_format(out, "\n%s:\n", row.heading);
		heading = row.heading;
		print_option(out, &row);
	}
}

static void print_examples(struct text *out, unsigned commands)
{
	bool is_first = true;

	for (size_t i = 0; i < ARRAY_LEN(examples); i++) {
		if (!(examples[i].command & commands))
			continue;
		if (is_first)
			text_append_string(out, "\nExamples:\n");
		is_first = false;
		text_append_format(out, "  %s\n      %s\n", examples[i].line, examples[i].meaning);
	}
}

void cli_help_print_overview(struct text *out)
{
	text_append_string(
		out,
		"Belljar runs untrusted commands in a sandbox, called a jar. A command sees little, can change\nlittle, cannot outlive its limits, and Belljar reports exactly how it ended.\n\n"
		"Usage: belljar COMMAND [options]\n\nCommands:\n");
	for (size_t i = 0; i < cli_command_count; i++)
		if (!cli_commands[i].is_for_programs)
			print_entry(out, cli_commands[i].name, cli_commands[i].summary, OVERVIEW_MEANING_COLUMN);
	text_append_string(out, "\nOptions:\n");
	print_entry(out, "-h, --help", "print this help; 'belljar COMMAND --help' says more about a command",
		    OVERVIEW_MEANING_COLUMN);
	print_entry(out, "    --version", "print the version", OVERVIEW_MEANING_COLUMN);
	print_examples(out, COMMAND_RUN);
	text_append_string(out, "\nManual: man belljar, man belljar-run, man 5 belljar-policy\n");
}

static void print_closing_words(struct text *out, const struct command_row *command)
{
	if (command->takes_policy)
		text_append_string(
			out,
			"\nDurations: 500ms, 30s, 5m, 1h, plain seconds. Sizes: 100K, 512M, 2G, plain bytes "
			"(1024-based).\n'none' means no limit. Options end at '--' or at the first word that is not an option.\nThe policy keys are described in belljar-policy(5).\n");
	if (command->command != COMMAND_COMPLETION && command->command != COMMAND_HELP)
		text_append_format(out, "\nManual: man belljar-%s\n", command->name);
}

void cli_help_print_command(enum cli_command command, struct text *out)
{
	const struct command_row *row = cli_command_row_of(command);

	text_append_format(out, "Usage: belljar %s%s%s\n\n", row->name, row->arguments[0] ? " " : "", row->arguments);
	text_append_format(out, "belljar %s: %s.\n", row->name, row->summary);
	print_options(out, command);
	print_examples(out, command);
	print_closing_words(out, row);
}

void cli_help_print_version(struct text *out)
{
	text_append_string(out, "belljar " BELLJAR_VERSION "\n");
}
