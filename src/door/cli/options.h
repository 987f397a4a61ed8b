/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/options.h - the commands, their options, and what a command line asks for
 *
 * Options come from two tables: policy_keys[] (what is allowed) and the table in options_table.c (everything else).
 * Parsing, --help, the man pages and the shell completions all read them through cli_options_next(), so that a new
 * row is a new option everywhere.
 */
#ifndef BELLJAR_DOOR_CLI_OPTIONS_H
#define BELLJAR_DOOR_CLI_OPTIONS_H

#include "policy/policy_build.h"

/* Bits, so that an option can say which commands accept it. */
enum cli_command {
	COMMAND_RUN = 1 << 0,
	COMMAND_SHELL = 1 << 1,
	COMMAND_PLAN = 1 << 2,
	COMMAND_DOCTOR = 1 << 3,
	COMMAND_POLICY = 1 << 4,
	COMMAND_COMPLETION = 1 << 5,
	COMMAND_HELP = 1 << 6,
	COMMAND_ENGINE = 1 << 7,
	COMMAND_NET = 1 << 8,
	COMMAND_WHY = 1 << 9,
	COMMAND_MCP = 1 << 10,
	COMMAND_DIFF = 1 << 11,
	COMMAND_APPLY = 1 << 12,
	COMMAND_DISCARD = 1 << 13,
	COMMAND_WORKSPACE = 1 << 14,
	COMMAND_HOOK = 1 << 15,
	COMMAND_MCP_WRAP = 1 << 16,
	COMMAND_TRY = 1 << 17,
	COMMAND_LEARN = 1 << 18,
};

struct command_row {
	enum cli_command command;
	const char *name;               /* "run" */
	const char *arguments;          /* "[options] [--] COMMAND [ARG...]" */
	const char *summary;            /* one line, no full stop */
	const char *const *first_words; /* what the first word may be, NULL-terminated; NULL: anything */
	int word_count_min;
	int word_count_max;      /* of words that are not options; where a command line follows, it does not count */
	bool takes_command_line; /* the first word that is not an option ends the options and begins COMMAND */
	bool takes_policy;       /* accepts the policy keys as options */
	bool takes_paths;        /* words after the first are paths */
	bool is_for_programs;    /* left out where people look for what they could do */
};

extern const struct command_row cli_commands[];
extern const size_t cli_command_count;

const struct command_row *cli_command_row_by_name(const char *name); /* NULL: no such command */
const struct command_row *cli_command_row_of(enum cli_command command);

/* The value of an option, for completions. */
enum value_kind {
	VALUE_NONE, /* a switch */
	VALUE_ANY,
	VALUE_WORD, /* one of words */
	VALUE_FILE, /* a path, or one of words where there are any */
	VALUE_DIRECTORY,
};

/* The options; all policy keys share OPTION_KEY. */
enum option_id {
	OPTION_KEY,
	OPTION_POLICY,
	OPTION_TIGHTEN,
	OPTION_SHELL,
	OPTION_STDIN,
	OPTION_PTY,
	OPTION_JSON,
	OPTION_BYTES,
	OPTION_EVENTS,
	OPTION_STATUS_FD,
	OPTION_DIE_WITH_PARENT,
	OPTION_PROVE,
	OPTION_PROVE_RUNG,
	OPTION_PROFILE,
	OPTION_STDIO,
	OPTION_YES,
	OPTION_CONFIRM,
	OPTION_IDLE,
	OPTION_ALLOW_APPLY,
	OPTION_ALLOW_TOOL,
	OPTION_DENY_TOOL,
	OPTION_LOG,
	OPTION_ANSWER_MAX,
	OPTION_RATE,
	OPTION_PATCH,
	OPTION_STAT,
	OPTION_TAR,
	OPTION_DRY_RUN,
	OPTION_THEIRS,
	OPTION_OURS,
	OPTION_ALLOW_RISKY,
	OPTION_APPLY,
	OPTION_DISCARD,
	OPTION_OUT,
	OPTION_SUGGEST,
	OPTION_NO_ROOT_CACHE,
	OPTION_TIMING,
	OPTION_VERBOSE,
	OPTION_QUIET,
	OPTION_COLOR,
	OPTION_HELP,
	OPTION_COUNT,
};

/* One option as help, manual and completions see it, whichever table it comes from. */
struct option_row {
	enum option_id id;
	const char *flag;         /* without the dashes */
	char short_flag;          /* 0: none */
	const char *placeholder;  /* NULL: a switch */
	const char *help;         /* one sentence, no full stop */
	const char *default_text; /* NULL: nothing to say */
	const char *heading;      /* the group it stands in */
	enum value_kind value_kind;
	const char *const *words;     /* NULL-terminated; may be NULL */
	bool is_value_optional;       /* --color alone is allowed */
	bool is_negatable;            /* has a --no- form */
	bool is_repeatable;           /* a list: may be given more than once */
	unsigned commands;            /* commands that accept it */
	const struct policy_key *key; /* NULL: no policy key */
};

/* The position of a walk over both tables; begin with all zeroes. */
struct option_cursor {
	size_t index;
	const char *heading;
};

/* The next row, those of policy_keys[] first; false at the end. Keys without a flag are left out. */
bool cli_options_next(struct option_cursor *cursor, struct option_row *out);

enum stdin_choice { STDIN_INHERIT, STDIN_NULL, STDIN_FILE };
enum color_choice { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

#define OPTIONS_WORDS_MAX 4096
#define OPTIONS_CAPTURED_OUTPUT_BYTES (100 * 1024)
#define OPTIONS_ANSWER_BYTES_MAX ((uint64_t)16 << 20)
#define OPTIONS_IDLE_NS ((uint64_t)30 * 60 * 1000000000)
#define OPTIONS_AGENT_TIMEOUT_NS ((uint64_t)120 * 1000000000)
#define OPTIONS_AGENT_MEMORY_BYTES ((uint64_t)2 << 30)
#define OPTIONS_AGENT_OUTPUT_BYTES ((uint64_t)1 << 20)

/* Strings are borrowed from argv, and live as long as it does; only the policy is owned. */
struct run_options {
	struct policy policy;
	const char *policy_name; /* as given to --policy; NULL: the default, "agent" */
	bool is_shell_string;    /* command[0] is for /bin/sh -c */
	enum stdin_choice stdin_choice;
	const char *stdin_path; /* STDIN_FILE only */
	bool has_pty;           /* always true for `shell` */
	bool has_json;
	bool has_bytes;
	bool has_events;
	bool has_no_root_cache;
	bool has_timing;
	bool is_dying_with_parent;
	bool has_prove;                    /* doctor */
	bool has_stdio;                    /* engine */
	bool has_patch, has_stat;          /* diff */
	bool has_tar;                      /* workspace export */
	bool is_dry_run;                   /* apply */
	bool has_discard;                  /* try */
	bool is_tried;                     /* of `try`, which reports the changes itself */
	struct string_list apply_patterns; /* try, mcp */
	struct string_list theirs, ours;   /* apply */
	struct string_list risky;          /* apply: what may be applied though it is risky */
	const char *prove_rung;            /* doctor; NULL: the best */
	const char *profile;               /* doctor: print this profile instead; NULL: not asked for */
	bool has_help;                     /* --help was given: nothing else was looked at, print the command's help */
	struct string_list allowed_tools, denied_tools; /* mcp-wrap */
	const char *log_path;                           /* mcp-wrap; NULL: none */
	uint64_t answer_bytes_max, rate_max;            /* mcp-wrap */
	uint64_t idle_ns;                               /* mcp */
	bool is_agreed;                                 /* hook: make the change that was shown */
	bool has_confirm;                               /* hook: the agent's user is asked first */
	const char *out_path;                           /* learn, run --suggest; NULL: standard output, none */
	bool is_learning;                               /* set by the command: write a policy after the run */
	bool is_output_beside;                          /* set by the command: its output goes to stderr */
	struct string_list given;                       /* hook: the options for `run`, their paths absolute */
	bool has_relative_path;                         /* hook: one of them was relative */
	int status_fd; /* -1: not asked for; else 3 or more, and open for writing when it was looked at */
	int verbosity; /* -1 quiet, 0, 1 */
	enum color_choice color;
	char *const *command; /* run, try, learn, plan: what to run, up to the end of argv; NULL for other commands */
	int command_count;
	const char **words; /* the other commands: words that are not options */
	int word_count;
};

/*
 * Parse the words after the command's name: @argv[0] is the first option or word; @argv may be NULL if @argc is 0.
 * If @argv[@argc] is NULL, so is command[command_count].
 *
 * On failure (stage `usage`, or `policy` for what policy files say) there is no policy, but has_json, has_events,
 * status_fd, color and verbosity hold what could be made out, because the result object is written after a usage error
 * too. With --json and --events both asked for (an error) both are set; the object for --json is then meant.
 */
int cli_options_parse(enum cli_command command, int argc, char *const *argv, const struct policy_context *context,
		      struct run_options *out, struct error *error);
void cli_options_done(struct run_options *options);

#endif
