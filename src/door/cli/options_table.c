/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/options_table.c - the commands, and the options that are no policy keys
 *
 * The order of the rows is the order of --help and of the man page. An option that means something different to
 * another command has a second row for it.
 */
#include "door/cli/options.h"

#include <string.h>

#define COMMANDS_WITH_POLICY                                                                                           \
	(COMMAND_RUN | COMMAND_TRY | COMMAND_LEARN | COMMAND_SHELL | COMMAND_PLAN | COMMAND_NET | COMMAND_WHY |        \
	 COMMAND_MCP | COMMAND_HOOK | COMMAND_MCP_WRAP)
#define COMMANDS_OF_WORKSPACES (COMMAND_DIFF | COMMAND_APPLY | COMMAND_DISCARD | COMMAND_WORKSPACE)
#define COMMANDS_ALL                                                                                                   \
	(COMMANDS_WITH_POLICY | COMMANDS_OF_WORKSPACES | COMMAND_DOCTOR | COMMAND_POLICY | COMMAND_COMPLETION |        \
	 COMMAND_HELP | COMMAND_ENGINE)

static const char *const policy_actions[] = {"show", "check", "schema", "test", "diff", NULL};
static const char *const net_actions[] = {"check", NULL};
static const char *const workspace_actions[] = {"list", "show",   "checkpoint", "rollback",
						"fork", "export", "remove",     NULL};
static const char *const hook_words[] = {"claude", "codex", "gemini", "install", "uninstall", NULL};
static const char *const completion_shells[] = {"bash", "zsh", "fish", NULL};
static const char *const command_names[] = {"run",  "try", "learn",    "shell", "plan",    "doctor",    "policy",
					    "net",  "why", "diff",     "apply", "discard", "workspace", "completion",
					    "help", "mcp", "mcp-wrap", "hook",  "engine",  NULL};

const struct command_row cli_commands[] = {
	{
		.command = COMMAND_RUN,
		.name = "run",
		.arguments = "[options] [--] COMMAND [ARG...]",
		.summary = "run one command in a fresh jar",
		.takes_command_line = true,
		.takes_policy = true,
	},
	{
		.command = COMMAND_TRY,
		.name = "try",
		.arguments = "[options] [--] COMMAND [ARG...]",
		.summary = "run a command, show what it changed, then apply, pick or drop it",
		.takes_command_line = true,
		.takes_policy = true,
	},
	{
		.command = COMMAND_LEARN,
		.name = "learn",
		.arguments = "[options] [--] COMMAND [ARG...]",
		.summary = "run a command once, and write a policy that allows what it was refused",
		.takes_command_line = true,
		.takes_policy = true,
	},
	{
		.command = COMMAND_SHELL,
		.name = "shell",
		.arguments = "[options]",
		.summary = "interactive shell in a jar, on a terminal of its own",
		.takes_policy = true,
	},
	{
		.command = COMMAND_PLAN,
		.name = "plan",
		.arguments = "[options] [--] COMMAND [ARG...]",
		.summary = "print what would be done; run nothing",
		.takes_command_line = true,
		.takes_policy = true,
	},
	{
		.command = COMMAND_DOCTOR,
		.name = "doctor",
		.arguments = "[--json] [--prove [--rung RUNG]] | --profile NAME",
		.summary = "what this host can enforce, and how to get more",
	},
	{
		.command = COMMAND_POLICY,
		.name = "policy",
		.arguments = "show|check|schema [FILE] | test FILE | diff A B",
		.summary = "effective policy; errors with line and column; JSON Schema; tests; differences",
		.first_words = policy_actions,
		.word_count_min = 1,
		.word_count_max = 3,
	},
	{
		.command = COMMAND_NET,
		.name = "net",
		.arguments = "check [options] [FILE] HOST:PORT [METHOD PATH]",
		.summary = "what a gate would decide, and by which rule; runs nothing",
		.first_words = net_actions,
		.word_count_min = 2,
		.word_count_max = 5,
		.takes_policy = true,
	},
	{
		.command = COMMAND_WHY,
		.name = "why",
		.arguments = "[options] PATH|HOST:PORT|SYSCALL [read|write|exec]",
		.summary = "is it allowed, by which rule, and what would allow it; runs nothing",
		.word_count_min = 1,
		.word_count_max = 2,
		.takes_policy = true,
	},
	{
		.command = COMMAND_MCP,
		.name = "mcp",
		.arguments = "[options]",
		.summary = "give an AI agent tools that work in jars (Model Context Protocol)",
		.takes_policy = true,
	},
	{
		.command = COMMAND_DIFF,
		.name = "diff",
		.arguments = "[options] [ID] [PATH...]",
		.summary = "show what a workspace changes",
		.word_count_max = OPTIONS_WORDS_MAX,
		.takes_paths = true,
	},
	{
		.command = COMMAND_APPLY,
		.name = "apply",
		.arguments = "[options] [ID] [PATH...]",
		.summary = "put a workspace's changes into its workdir",
		.word_count_max = OPTIONS_WORDS_MAX,
		.takes_paths = true,
	},
	{
		.command = COMMAND_DISCARD,
		.name = "discard",
		.arguments = "[options] [ID] [PATH...]",
		.summary = "drop a workspace, or some of its changes",
		.word_count_max = OPTIONS_WORDS_MAX,
		.takes_paths = true,
	},
	{
		.command = COMMAND_WORKSPACE,
		.name = "workspace",
		.arguments = "list|show|checkpoint|rollback|fork|export|remove [ID] [...]",
		.summary = "list, freeze, fork, export and remove workspaces",
		.first_words = workspace_actions,
		.word_count_min = 1,
		.word_count_max = 3,
	},
	{
		.command = COMMAND_MCP_WRAP,
		.name = "mcp-wrap",
		.arguments = "[options] [--] COMMAND [ARG...]",
		.summary = "run an MCP server in a jar, and choose which of its tools can be used",
		.takes_command_line = true,
		.takes_policy = true,
	},
	{
		.command = COMMAND_HOOK,
		.name = "hook",
		.arguments = "[install|uninstall] claude|codex|gemini [options]",
		.summary = "run a coding agent's commands in jars",
		.first_words = hook_words,
		.word_count_min = 1,
		.word_count_max = 2,
		.takes_policy = true,
	},
	{
		.command = COMMAND_COMPLETION,
		.name = "completion",
		.arguments = "bash|zsh|fish",
		.summary = "print completions for a shell",
		.first_words = completion_shells,
		.word_count_min = 1,
		.word_count_max = 1,
	},
	{
		.command = COMMAND_HELP,
		.name = "help",
		.arguments = "[COMMAND]",
		.summary = "print help, as --help does",
		.first_words = command_names,
		.word_count_max = 1,
	},
	{
		.command = COMMAND_ENGINE,
		.name = "engine",
		.arguments = "[--stdio]",
		.summary = "serve one client program over a socket, or over standard input and output",
		.is_for_programs = true,
	},
};
const size_t cli_command_count = ARRAY_LEN(cli_commands);
_Static_assert(ARRAY_LEN(command_names) == ARRAY_LEN(cli_commands) + 1, "every command has a name to complete");

const struct command_row *cli_command_row_by_name(const char *name)
{
	for (size_t i = 0; i < cli_command_count; i++)
		if (strcmp(cli_commands[i].name, name) == 0)
			return &cli_commands[i];
	return NULL;
}

const struct command_row *cli_command_row_of(enum cli_command command)
{
	for (size_t i = 0; i < cli_command_count; i++)
		if (cli_commands[i].command == command)
			return &cli_commands[i];
	return NULL;
}

static const char *const stdin_words[] = {"inherit", "null", NULL};
static const char *const profile_words[] = {"seccomp", "apparmor", NULL};
static const char *const color_words[] = {"auto", "always", "never", NULL};

static const struct option_row cli_options[] = {
	{
		.id = OPTION_POLICY,
		.flag = "policy",
		.placeholder = "FILE|PRESET",
		.help = "start from this policy, wherever the option stands; a value with a / or ending in .json is a "
			"file, else a preset",
		.default_text = "agent",
		.heading = "Policy",
		.value_kind = VALUE_FILE,
		.words = policy_preset_names,
		.commands = COMMANDS_WITH_POLICY,
	},
	{
		.id = OPTION_TIGHTEN,
		.flag = "tighten",
		.placeholder = "FILE",
		.help = "apply a policy file that may only tighten, after all other options; what loosens is refused",
		.value_kind = VALUE_FILE,
		.is_repeatable = true,
		.commands = COMMANDS_WITH_POLICY & ~COMMAND_LEARN,
	},
	{
		.id = OPTION_SHELL,
		.flag = "shell",
		.help = "COMMAND is one string for /bin/sh -c",
		.heading = "Command",
		.commands = COMMAND_RUN | COMMAND_TRY | COMMAND_LEARN | COMMAND_PLAN,
	},
	{
		.id = OPTION_STDIN,
		.flag = "stdin",
		.placeholder = "inherit|null|FILE",
		.help = "where the command reads from: Belljar's own standard input, nothing, or a file",
		.default_text = "inherit",
		.value_kind = VALUE_FILE,
		.words = stdin_words,
		.commands = COMMAND_RUN | COMMAND_TRY | COMMAND_LEARN | COMMAND_PLAN,
	},
	{
		.id = OPTION_PTY,
		.flag = "pty",
		.help = "give the command a terminal of its own; without it stdout and stderr are pipes",
		.commands = COMMAND_RUN | COMMAND_TRY | COMMAND_LEARN | COMMAND_PLAN,
	},
	{
		.id = OPTION_DIE_WITH_PARENT,
		.flag = "die-with-parent",
		.help = "cancel the run when the process that started Belljar is gone",
		.commands = COMMAND_RUN | COMMAND_SHELL,
	},
	{
		.id = OPTION_NO_ROOT_CACHE,
		.flag = "no-root-cache",
		.help = "build the jar's root from scratch, and keep nothing of it for later jars",
		.commands = COMMAND_RUN | COMMAND_TRY | COMMAND_SHELL,
	},
	{
		.id = OPTION_JSON,
		.flag = "json",
		.help = "capture the output, and print the result object as one line on stdout when the run is over",
		.heading = "Result",
		.commands = COMMAND_RUN,
	},
	{
		.id = OPTION_JSON,
		.flag = "json",
		.help = "print JSON instead of text",
		.commands =
			COMMAND_PLAN | COMMAND_DOCTOR | COMMAND_WHY | COMMAND_DIFF | COMMAND_APPLY | COMMAND_WORKSPACE,
	},
	{
		.id = OPTION_BYTES,
		.flag = "bytes",
		.help = "with --json or --events: give the exact bytes of the output too, in base64",
		.commands = COMMAND_RUN,
	},
	{
		.id = OPTION_EVENTS,
		.flag = "events",
		.help = "print one JSON object per line on stdout as things happen, the result last",
		.commands = COMMAND_RUN,
	},
	{
		.id = OPTION_STATUS_FD,
		.flag = "status-fd",
		.placeholder = "N",
		.help = "write the result object as one line to descriptor N (3 or more, open), then close it",
		.value_kind = VALUE_ANY,
		.commands = COMMAND_RUN | COMMAND_SHELL,
	},
	{
		.id = OPTION_PROVE,
		.flag = "prove",
		.help = "try each forbidden thing inside a real jar, and say which layer stopped it",
		.commands = COMMAND_DOCTOR,
	},
	{
		.id = OPTION_PROVE_RUNG,
		.flag = "rung",
		.placeholder = "namespace|landlock|process",
		.help = "with --prove: prove this rung, as on a host that has no better one",
		.default_text = "the best there is",
		.value_kind = VALUE_WORD,
		.words = policy_rung_names,
		.commands = COMMAND_DOCTOR,
	},
	{
		.id = OPTION_PROFILE,
		.flag = "profile",
		.placeholder = "seccomp|apparmor",
		.help = "print what lets Belljar run elsewhere: a seccomp profile for containers, or an AppArmor profile",
		.value_kind = VALUE_WORD,
		.words = profile_words,
		.commands = COMMAND_DOCTOR,
	},
	{
		.id = OPTION_ALLOW_TOOL,
		.flag = "allow-tool",
		.placeholder = "PATTERN",
		.help = "let the client see and call only tools that match this pattern",
		.heading = "Tools",
		.is_repeatable = true,
		.commands = COMMAND_MCP_WRAP,
	},
	{
		.id = OPTION_DENY_TOOL,
		.flag = "deny-tool",
		.placeholder = "PATTERN",
		.help = "hide tools that match this pattern, even if another option allows them",
		.is_repeatable = true,
		.commands = COMMAND_MCP_WRAP,
	},
	{
		.id = OPTION_LOG,
		.flag = "log",
		.placeholder = "FILE",
		.help = "add a line of JSON for each call",
		.value_kind = VALUE_FILE,
		.commands = COMMAND_MCP_WRAP,
	},
	{
		.id = OPTION_ANSWER_MAX,
		.flag = "answer-max",
		.placeholder = "SIZE",
		.help = "end a server that sends a longer message",
		.default_text = "16M",
		.commands = COMMAND_MCP_WRAP,
	},
	{
		.id = OPTION_RATE,
		.flag = "rate",
		.placeholder = "N",
		.help = "most messages of the server that Belljar passes on in a second; the rest wait",
		.default_text = "none",
		.commands = COMMAND_MCP_WRAP,
	},
	{
		.id = OPTION_IDLE,
		.flag = "idle",
		.placeholder = "DURATION",
		.help = "close a jar that no call uses for this long",
		.heading = "Jars",
		.default_text = "30m",
		.commands = COMMAND_MCP,
	},
	{
		.id = OPTION_ALLOW_APPLY,
		.flag = "allow-apply",
		.placeholder = "PATTERN",
		.help = "with --cow: let the agent apply its changes to paths that match; '*' matches all. Without it the agent can only show them",
		.is_repeatable = true,
		.commands = COMMAND_MCP,
	},
	{
		.id = OPTION_YES,
		.flag = "yes",
		.help = "with install and uninstall: change the agent's settings, instead of only showing the change",
		.commands = COMMAND_HOOK,
	},
	{
		.id = OPTION_CONFIRM,
		.flag = "confirm",
		.help = "have the agent ask its user before each command, which then runs in a jar; Claude Code can",
		.commands = COMMAND_HOOK,
	},
	{
		.id = OPTION_STDIO,
		.flag = "stdio",
		.help = "serve over standard input and output instead of a socket; see docs/protocol.md",
		.heading = "Transport",
		.commands = COMMAND_ENGINE,
	},
	{
		.id = OPTION_PATCH,
		.flag = "patch",
		.help = "print a patch, which `git apply` takes",
		.heading = "Changes",
		.commands = COMMAND_DIFF,
	},
	{
		.id = OPTION_STAT,
		.flag = "stat",
		.help = "count the lines that were added and removed in each file",
		.commands = COMMAND_DIFF,
	},
	{
		.id = OPTION_TAR,
		.flag = "tar",
		.help = "with export: an archive of the files that were added and changed, instead of a patch",
		.commands = COMMAND_WORKSPACE,
	},
	{
		.id = OPTION_DRY_RUN,
		.flag = "dry-run",
		.help = "say what would be applied; change nothing",
		.commands = COMMAND_APPLY,
	},
	{
		.id = OPTION_THEIRS,
		.flag = "theirs",
		.placeholder = "PATH",
		.help = "in a conflict below PATH take the workspace's side",
		.value_kind = VALUE_FILE,
		.is_repeatable = true,
		.commands = COMMAND_APPLY,
	},
	{
		.id = OPTION_OURS,
		.flag = "ours",
		.placeholder = "PATH",
		.help = "keep what the workdir has below PATH, and drop the workspace's changes there",
		.value_kind = VALUE_FILE,
		.is_repeatable = true,
		.commands = COMMAND_APPLY,
	},
	{
		.id = OPTION_YES,
		.flag = "yes",
		.help = "apply everything that is neither in conflict nor risky; ask nothing",
		.commands = COMMAND_TRY,
	},
	{
		.id = OPTION_APPLY,
		.flag = "apply",
		.placeholder = "PATTERN",
		.help = "apply what matches, such as 'src/*.c', and keep the rest; ask nothing",
		.value_kind = VALUE_ANY,
		.is_repeatable = true,
		.commands = COMMAND_TRY,
	},
	{
		.id = OPTION_DISCARD,
		.flag = "discard",
		.help = "drop everything; ask nothing",
		.commands = COMMAND_TRY,
	},
	{
		.id = OPTION_OUT,
		.flag = "out",
		.placeholder = "FILE",
		.help = "write the policy to FILE, which must not be there yet",
		.default_text = "standard output",
		.heading = "Learning",
		.value_kind = VALUE_FILE,
		.commands = COMMAND_LEARN,
	},
	{
		.id = OPTION_SUGGEST,
		.flag = "suggest",
		.placeholder = "FILE",
		.help = "look harder at what is refused, and write a policy that allows it to FILE, which must not exist",
		.heading = "Learning",
		.value_kind = VALUE_FILE,
		.commands = COMMAND_RUN,
	},
	{
		.id = OPTION_ALLOW_RISKY,
		.flag = "allow-risky",
		.placeholder = "PATH",
		.help = "apply changes below PATH even if other programs run them or take instructions from them, if links lead out, or if they have set-id bits",
		.value_kind = VALUE_FILE,
		.is_repeatable = true,
		.commands = COMMAND_APPLY | COMMAND_TRY,
	},
	{
		.id = OPTION_TIMING,
		.flag = "timing",
		.help = "say on stderr how long each stage took",
		.heading = "Messages",
		.commands = COMMAND_RUN | COMMAND_SHELL,
	},
	{
		.id = OPTION_VERBOSE,
		.flag = "verbose",
		.short_flag = 'v',
		.help = "say more on stderr; of -v and -q the last one counts",
		.commands = COMMANDS_WITH_POLICY | COMMAND_DOCTOR | COMMANDS_OF_WORKSPACES,
	},
	{
		.id = OPTION_QUIET,
		.flag = "quiet",
		.short_flag = 'q',
		.help = "say nothing on stderr but errors",
		.commands = COMMANDS_WITH_POLICY | COMMAND_DOCTOR | COMMANDS_OF_WORKSPACES,
	},
	{
		.id = OPTION_COLOR,
		.flag = "color",
		.placeholder = "auto|always|never",
		.help = "colours in Belljar's own messages; --color alone means always; auto respects NO_COLOR",
		.default_text = "auto",
		.value_kind = VALUE_WORD,
		.words = color_words,
		.is_value_optional = true,
		.commands = COMMANDS_WITH_POLICY | COMMAND_DOCTOR | COMMAND_POLICY | COMMANDS_OF_WORKSPACES,
	},
	{
		.id = OPTION_HELP,
		.flag = "help",
		.short_flag = 'h',
		.help = "print this help",
		.commands = COMMANDS_ALL,
	},
};

/* The key table is in the order of the policy, which is by subject: a heading holds from its first flag on. */
static const struct {
	const char *first_flag;
	const char *heading;
} key_headings[] = {
	{"workdir", "Files"},  {"net", "Network and environment"}, {"timeout", "Limits"}, {"output", "Output"},
	{"rung", "Isolation"},
};

static enum value_kind value_kind_of(enum policy_type type)
{
	switch (type) {
	case POLICY_BOOL:
	case POLICY_SWITCH:
		return VALUE_NONE;
	case POLICY_WORD:
	case POLICY_GUARANTEES:
		return VALUE_WORD;
	case POLICY_WORKDIR:
	case POLICY_TMPFS:
		return VALUE_DIRECTORY;
	case POLICY_PATH:
	case POLICY_PATHS:
	case POLICY_PATTERNS:
	case POLICY_MOUNTS:
		return VALUE_FILE;
	case POLICY_DURATION:
	case POLICY_SIZE:
	case POLICY_COUNT:
	case POLICY_OUTPUT:
	case POLICY_STRING:
	case POLICY_RULES:
	case POLICY_PORTS:
	case POLICY_SECRETS:
	case POLICY_STRINGS:
	case POLICY_NAMES:
	case POLICY_ENV:
	case POLICY_VERSION:
	case POLICY_EXTENDS:
		return VALUE_ANY;
	}
	return VALUE_ANY;
}

static bool is_list(enum policy_type type)
{
	return type == POLICY_MOUNTS || type == POLICY_PATHS || type == POLICY_PATTERNS || type == POLICY_TMPFS ||
	       type == POLICY_STRINGS || type == POLICY_NAMES || type == POLICY_ENV || type == POLICY_GUARANTEES;
}

static struct option_row row_of_key(const struct policy_key *key)
{
	return (struct option_row){
		.id = OPTION_KEY,
		.flag = key->flag,
		.short_flag = key->short_flag,
		.placeholder = key->placeholder,
		.help = key->help,
		.default_text = key->default_text,
		.value_kind = value_kind_of(key->type),
		.words = key->type == POLICY_GUARANTEES ? policy_guarantee_names : key->words,
		.is_negatable = policy_key_is_switch(key),
		.is_repeatable = is_list(key->type),
		.commands = COMMANDS_WITH_POLICY,
		.key = key,
	};
}

static const char *key_heading(const char *flag)
{
	for (size_t i = 0; i < ARRAY_LEN(key_headings); i++)
		if (strcmp(key_headings[i].first_flag, flag) == 0)
			return key_headings[i].heading;
	return NULL;
}

bool cli_options_next(struct option_cursor *cursor, struct option_row *out)
{
	while (cursor->index < policy_key_count && !policy_keys[cursor->index].flag)
		cursor->index++;

	size_t index = cursor->index;

	if (index >= policy_key_count + ARRAY_LEN(cli_options))
		return false;
	if (index < policy_key_count) {
		*out = row_of_key(&policy_keys[index]);
		out->heading = key_heading(out->flag);
	} else {
		*out = cli_options[index - policy_key_count];
	}
	if (out->heading)
		cursor->heading = out->heading;
	out->heading = cursor->heading;
	cursor->index++;
	return true;
}
