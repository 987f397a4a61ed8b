/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/options.c - read a command line
 *
 * First the words are scanned from left to right: options without a policy key take effect, flags of the policy are
 * only noted. Then the policy is made in its own order: preset or file, noted flags, the door's defaults, tightening.
 *
 * A scan goes on after a mistake, because the result object is owed after a usage error too, and the flag that asks
 * for it may come later. Only the first mistake is reported.
 */
#include "door/cli/options.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "base/units.h"

/* A flag of the policy as it was met, or a file for --tighten (then @key is NULL). */
struct flag_use {
	const struct policy_key *key;
	const char *value;
	bool is_negated;
};

struct scan {
	const struct command_row *command;
	struct run_options *options;
	struct error *error;
	int rc; /* of the first mistake */
	int argc;
	char *const *argv;
	int index;             /* of the word that comes next */
	const char *directory; /* where relative paths start; NULL: it no longer exists */
	struct flag_use *uses;
	size_t use_count;
	int skippable_words; /* after an unknown option: words that may be its value */
};

/* Report a mistake unless there was one before. @hint may be NULL. */
static PRINTF_LIKE(3, 4) void refuse(struct scan *scan, const char *hint, const char *format, ...)
{
	char message[sizeof(scan->error->message)];
	va_list arguments;

	if (scan->rc)
		return;
	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	scan->rc = error_set(scan->error, STAGE_USAGE, 0, "%s", message);
	if (hint)
		error_hint(scan->error, "%s", hint);
}

static void set_policy(struct scan *scan, const char *value)
{
	if (scan->options->policy_name) {
		refuse(scan, "one policy file can build on another with \"extends\"",
		       "--policy is given twice: '%s' and '%s'", scan->options->policy_name, value);
		return;
	}
	scan->options->policy_name = value;
}

static void set_tighten(struct scan *scan, const char *value)
{
	scan->uses[scan->use_count++] = (struct flag_use){.value = value};
}

static void set_stdin(struct scan *scan, const char *value)
{
	struct run_options *options = scan->options;

	options->stdin_path = NULL;
	if (strcmp(value, "inherit") == 0) {
		options->stdin_choice = STDIN_INHERIT;
	} else if (strcmp(value, "null") == 0) {
		options->stdin_choice = STDIN_NULL;
	} else {
		options->stdin_choice = STDIN_FILE;
		options->stdin_path = value;
	}
}

/* Digits only, as strtol() would also take blanks and signs. -1: not a number, or too big for a descriptor. */
static int parse_descriptor(const char *value)
{
	int number = 0;

	for (const char *digit = value; *digit; digit++) {
		if (*digit < '0' || *digit > '9' || __builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, *digit - '0', &number))
			return -1;
	}
	return number;
}

static void set_status_fd(struct scan *scan, const char *value)
{
	static const char hint[] = "for example: belljar run --status-fd 3 -- COMMAND 3>result.json";
	int fd = parse_descriptor(value);
	int flags;

	scan->options->status_fd = -1;
	if (fd < 0) {
		refuse(scan, hint, "--status-fd needs the number of a descriptor, not '%s'", value);
		return;
	}
	if (fd < 3) {
		refuse(scan, hint, "--status-fd must be 3 or more: 0, 1 and 2 belong to the command");
		return;
	}
	if (fcntl(fd, F_GETFD) < 0) {
		refuse(scan, hint, "--status-fd: descriptor %d is not open", fd);
		return;
	}
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || (flags & O_PATH) || (flags & O_ACCMODE) == O_RDONLY) {
		refuse(scan, hint, "--status-fd: descriptor %d is not open for writing", fd);
		return;
	}
	scan->options->status_fd = fd;
}

static void set_verbose(struct scan *scan, const char *value)
{
	(void)value;
	scan->options->verbosity = 1;
}

static void set_quiet(struct scan *scan, const char *value)
{
	(void)value;
	scan->options->verbosity = -1;
}

/* @value is NULL for --color alone, else one of the row's words. */
static void set_color(struct scan *scan, const char *value)
{
	if (!value || strcmp(value, "always") == 0)
		scan->options->color = COLOR_ALWAYS;
	else
		scan->options->color = strcmp(value, "never") == 0 ? COLOR_NEVER : COLOR_AUTO;
}

static void set_prove_rung(struct scan *scan, const char *value)
{
	scan->options->prove_rung = value;
}

static void set_profile(struct scan *scan, const char *value)
{
	scan->options->profile = value;
}

static void add_path(struct scan *scan, struct string_list *list, const char *value)
{
	if (string_list_add(list, value) < 0 && !scan->rc)
		scan->rc = error_set(scan->error, STAGE_ENGINE, ENOMEM, "no memory to read the command line");
}

static void add_allowed_tool(struct scan *scan, const char *value)
{
	add_path(scan, &scan->options->allowed_tools, value);
}

static void add_denied_tool(struct scan *scan, const char *value)
{
	add_path(scan, &scan->options->denied_tools, value);
}

static void set_log(struct scan *scan, const char *value)
{
	scan->options->log_path = value;
}

static void set_answer_max(struct scan *scan, const char *value)
{
	if (units_parse_size(value, &scan->options->answer_bytes_max) < 0 || scan->options->answer_bytes_max < 4096 ||
	    scan->options->answer_bytes_max > (uint64_t)1 << 30)
		refuse(scan, "such as 1M", "--answer-max must be a size from 4K to 1G");
}

static void set_rate(struct scan *scan, const char *value)
{
	if (units_parse_count(value, &scan->options->rate_max) < 0 || !scan->options->rate_max)
		refuse(scan, "such as 100", "--rate must be a number of messages in a second, or 'none'");
}

static void set_idle(struct scan *scan, const char *value)
{
	if (units_parse_duration(value, &scan->options->idle_ns) < 0 || !scan->options->idle_ns)
		refuse(scan, "such as 30m", "--idle must be a duration, or 'none'");
}

static void add_theirs(struct scan *scan, const char *value)
{
	add_path(scan, &scan->options->theirs, value);
}

static void add_ours(struct scan *scan, const char *value)
{
	add_path(scan, &scan->options->ours, value);
}

static void add_risky(struct scan *scan, const char *value)
{
	add_path(scan, &scan->options->risky, value);
}

static void add_pattern(struct scan *scan, const char *value)
{
	add_path(scan, &scan->options->apply_patterns, value);
}

static void set_out(struct scan *scan, const char *value)
{
	scan->options->out_path = value;
}

/* The effect of each option: a function call, or a bool in struct run_options that becomes true. */
static const struct {
	void (*set)(struct scan *scan, const char *value);
	size_t bool_offset;
} option_actions[] = {
	[OPTION_KEY] = {0},
	[OPTION_POLICY] = {.set = set_policy},
	[OPTION_TIGHTEN] = {.set = set_tighten},
	[OPTION_SHELL] = {.bool_offset = offsetof(struct run_options, is_shell_string)},
	[OPTION_STDIN] = {.set = set_stdin},
	[OPTION_PTY] = {.bool_offset = offsetof(struct run_options, has_pty)},
	[OPTION_JSON] = {.bool_offset = offsetof(struct run_options, has_json)},
	[OPTION_BYTES] = {.bool_offset = offsetof(struct run_options, has_bytes)},
	[OPTION_EVENTS] = {.bool_offset = offsetof(struct run_options, has_events)},
	[OPTION_STATUS_FD] = {.set = set_status_fd},
	[OPTION_DIE_WITH_PARENT] = {.bool_offset = offsetof(struct run_options, is_dying_with_parent)},
	[OPTION_PROVE] = {.bool_offset = offsetof(struct run_options, has_prove)},
	[OPTION_PROVE_RUNG] = {.set = set_prove_rung},
	[OPTION_PROFILE] = {.set = set_profile},
	[OPTION_ALLOW_TOOL] = {.set = add_allowed_tool},
	[OPTION_DENY_TOOL] = {.set = add_denied_tool},
	[OPTION_LOG] = {.set = set_log},
	[OPTION_ANSWER_MAX] = {.set = set_answer_max},
	[OPTION_RATE] = {.set = set_rate},
	[OPTION_IDLE] = {.set = set_idle},
	[OPTION_ALLOW_APPLY] = {.set = add_pattern},
	[OPTION_YES] = {.bool_offset = offsetof(struct run_options, is_agreed)},
	[OPTION_CONFIRM] = {.bool_offset = offsetof(struct run_options, has_confirm)},
	[OPTION_STDIO] = {.bool_offset = offsetof(struct run_options, has_stdio)},
	[OPTION_PATCH] = {.bool_offset = offsetof(struct run_options, has_patch)},
	[OPTION_STAT] = {.bool_offset = offsetof(struct run_options, has_stat)},
	[OPTION_TAR] = {.bool_offset = offsetof(struct run_options, has_tar)},
	[OPTION_DRY_RUN] = {.bool_offset = offsetof(struct run_options, is_dry_run)},
	[OPTION_THEIRS] = {.set = add_theirs},
	[OPTION_OURS] = {.set = add_ours},
	[OPTION_ALLOW_RISKY] = {.set = add_risky},
	[OPTION_APPLY] = {.set = add_pattern},
	[OPTION_OUT] = {.set = set_out},
	[OPTION_SUGGEST] = {.set = set_out},
	[OPTION_DISCARD] = {.bool_offset = offsetof(struct run_options, has_discard)},
	[OPTION_NO_ROOT_CACHE] = {.bool_offset = offsetof(struct run_options, has_no_root_cache)},
	[OPTION_TIMING] = {.bool_offset = offsetof(struct run_options, has_timing)},
	[OPTION_VERBOSE] = {.set = set_verbose},
	[OPTION_QUIET] = {.set = set_quiet},
	[OPTION_COLOR] = {.set = set_color},
	[OPTION_HELP] = {.bool_offset = offsetof(struct run_options, has_help)},
};
_Static_assert(ARRAY_LEN(option_actions) == OPTION_COUNT, "every option does something");

static bool is_relative_path(const struct option_row *row, const char *value)
{
	size_t len = strlen(value);

	if (*value == '/' || *value == '~')
		return false;
	if (row->id == OPTION_POLICY)
		return strchr(value, '/') || (len > 5 && strcmp(value + len - 5, ".json") == 0);
	if (!row->key)
		return row->id == OPTION_TIGHTEN;
	return (row->key->type == POLICY_WORKDIR && strcmp(value, "none") != 0) || row->key->type == POLICY_MOUNTS ||
	       row->key->type == POLICY_PATHS || row->key->type == POLICY_TMPFS;
}

/* A hook's options are read again later, in whatever directory an agent is then. */
static void note_given(struct scan *scan, const struct option_row *row, const char *value, bool is_negated)
{
	struct string_list *given = &scan->options->given;
	bool is_relative = value && is_relative_path(row, value);
	/* A value that looks like an option stays in the word of its option. */
	bool is_one_word = value && *value == '-';
	int rc = string_list_add_format(given, "--%s%s%s%s", is_negated ? "no-" : "", row->flag, is_one_word ? "=" : "",
					is_one_word ? value : "");

	/* "." and "./" only say that the path begins here. */
	while (is_relative && scan->directory && value[0] == '.' && (value[1] == '/' || !value[1]))
		value += strspn(value + 1, "/") + 1;
	if (rc == 0 && value && !is_one_word)
		rc = string_list_add_format(given, "%s%s%s", is_relative && scan->directory ? scan->directory : "",
					    is_relative && *value ? "/" : "", value);
	scan->options->has_relative_path |= is_relative;
	if (rc < 0 && !scan->rc)
		scan->rc = error_set(scan->error, STAGE_ENGINE, ENOMEM, "no memory to read the command line");
}

static void apply_option(struct scan *scan, const struct option_row *row, const char *value, bool is_negated)
{
	if (scan->command->command == COMMAND_HOOK && row->id != OPTION_YES && row->id != OPTION_CONFIRM)
		note_given(scan, row, value, is_negated);
	if (row->id == OPTION_KEY)
		scan->uses[scan->use_count++] =
			(struct flag_use){.key = row->key, .value = value, .is_negated = is_negated};
	else if (option_actions[row->id].set)
		option_actions[row->id].set(scan, value);
	else
		*(bool *)((char *)scan->options + option_actions[row->id].bool_offset) = true;
}

static bool is_one_of(const char *word, const char *const *words)
{
	for (; words && *words; words++)
		if (strcmp(word, *words) == 0)
			return true;
	return false;
}

static bool name_is(const char *flag, const char *name, size_t len)
{
	return strlen(flag) == len && memcmp(flag, name, len) == 0;
}

/*
 * Find a long option by the @len bytes at @name, without dashes. A row that the command accepts wins over one that
 * only others accept.
 */
static bool find_long(const struct scan *scan, const char *name, size_t len, struct option_row *found, bool *is_negated)
{
	struct option_cursor cursor = {0};
	struct option_row row;
	bool is_found = false;

	while (cli_options_next(&cursor, &row)) {
		bool is_no_form = row.is_negatable && len > 3 && memcmp(name, "no-", 3) == 0 &&
				  name_is(row.flag, name + 3, len - 3);

		if (!is_no_form && !name_is(row.flag, name, len))
			continue;
		if (is_found && !(row.commands & scan->command->command))
			continue;
		*found = row;
		*is_negated = is_no_form;
		is_found = true;
	}
	return is_found;
}

static bool find_short(const struct scan *scan, char letter, struct option_row *found)
{
	struct option_cursor cursor = {0};

	while (cli_options_next(&cursor, found))
		if (found->short_flag == letter && (found->commands & scan->command->command))
			return true;
	return false;
}

/* The flag the user may have meant by @name (without dashes); NULL if nothing is near. */
static const char *suggest_flag(const struct scan *scan, const char *name, bool needs_negatable)
{
	struct suggestion suggestion = {.word = name};
	struct option_cursor cursor = {0};
	struct option_row row;

	while (cli_options_next(&cursor, &row))
		if ((row.commands & scan->command->command) && (!needs_negatable || row.is_negatable))
			suggest_consider(&suggestion, row.flag);
	return suggestion.best;
}

/* Options that there were, and where what they did is now. */
static const struct {
	enum cli_command command;
	const char *flag, *what, *hint;
} former_options[] = {
	{COMMAND_MCP, "--http", "'belljar mcp' does not serve HTTP any more",
	 "the service belljard will; have the client start 'belljar mcp' itself, or use a bridge from HTTP to MCP servers"},
	{COMMAND_MCP, "--token-file", "'belljar mcp' needs no token: it serves the client that started it",
	 "with HTTP, the service belljard will take a token"},
};

static bool refuse_former(struct scan *scan, const char *word)
{
	size_t len = strcspn(word, "=");

	for (size_t i = 0; i < ARRAY_LEN(former_options); i++)
		if (scan->command->command == former_options[i].command && strlen(former_options[i].flag) == len &&
		    !strncmp(word, former_options[i].flag, len)) {
			refuse(scan, former_options[i].hint, "%s", former_options[i].what);
			return true;
		}
	return false;
}

static void refuse_unknown(struct scan *scan, const char *word)
{
	char name[64], hint[128];
	size_t len;
	bool is_negated;
	const char *near = NULL;

	if (scan->rc || refuse_former(scan, word))
		return;
	len = strcspn(word, "=");
	if (word[1] == '-' && len - 2 < sizeof(name)) {
		snprintf(name, sizeof(name), "%.*s", (int)(len - 2), word + 2);
		is_negated = strncmp(name, "no-", 3) == 0;
		near = suggest_flag(scan, is_negated ? name + 3 : name, is_negated);
		if (near)
			snprintf(hint, sizeof(hint), "did you mean --%s%s?", is_negated ? "no-" : "", near);
	}
	if (!near)
		snprintf(hint, sizeof(hint), "'belljar %s --help' lists the options", scan->command->name);
	refuse(scan, hint, "unknown option '%.*s'", (int)MIN_OF(len, 200), word);
}

/*
 * Skip the word after an unknown option: it may be its value or the command. If a "--" is still to come, everything
 * before it is an option or a value, so skip all words up to it; else skip one word.
 */
static void skip_value_of_unknown(struct scan *scan)
{
	scan->skippable_words = 1;
	for (int i = scan->index; i < scan->argc; i++)
		if (strcmp(scan->argv[i], "--") == 0)
			scan->skippable_words = INT_MAX;
}

static void refuse_foreign(struct scan *scan, const struct option_row *row)
{
	char hint[128];

	for (size_t i = 0; i < cli_command_count; i++) {
		if (!(row->commands & cli_commands[i].command))
			continue;
		snprintf(hint, sizeof(hint), "it belongs to 'belljar %s'", cli_commands[i].name);
		refuse(scan, hint, "--%s is not an option of 'belljar %s'", row->flag, scan->command->name);
		return;
	}
}

/*
 * The value of an option in the words that follow; NULL, and a mistake reported, if there is none. A word with two
 * dashes is never taken: "--timeout --json" is a value forgotten. With three it is no option: "-----BEGIN" is a key to
 * redact. The word is not repeated in the message, since it may be a secret.
 */
static const char *take_value(struct scan *scan, const struct option_row *row)
{
	const char *next = scan->index < scan->argc ? scan->argv[scan->index] : NULL;
	char hint[160];

	if (next && (strncmp(next, "--", 2) != 0 || next[2] == '-')) {
		scan->index++;
		return next;
	}
	if (next && next[2]) {
		snprintf(hint, sizeof(hint), "if the next word is the value, write --%s=VALUE", row->flag);
		refuse(scan, hint, "--%s needs a value (%s)", row->flag, row->placeholder);
	} else {
		refuse(scan, NULL, "--%s needs a value (%s)", row->flag, row->placeholder);
	}
	return NULL;
}

/* A value that may be left out is taken from the next word only if it is one of the row's words. */
static const char *take_optional_value(struct scan *scan, const struct option_row *row)
{
	if (scan->index < scan->argc && is_one_of(scan->argv[scan->index], row->words))
		return scan->argv[scan->index++];
	return NULL;
}

/* Check the value of an option without a policy key; the policy checks its own. */
static bool check_value(struct scan *scan, const struct option_row *row, const char *value)
{
	if (row->key)
		return true;
	if (!*value) {
		refuse(scan, NULL, "--%s needs a value (%s)", row->flag, row->placeholder);
		return false;
	}
	if (row->value_kind == VALUE_WORD && !is_one_of(value, row->words)) {
		refuse(scan, NULL, "--%s must be one of %s, not '%.200s'", row->flag, row->placeholder, value);
		return false;
	}
	return true;
}

/* @value is what stood in the same word, after '=' or a short option's letter; NULL if nothing did. */
static void scan_option(struct scan *scan, const struct option_row *row, const char *value, bool is_negated)
{
	char hint[128];

	if (!(row->commands & scan->command->command))
		refuse_foreign(scan, row);
	if (!row->placeholder) {
		if (value && row->is_negatable)
			snprintf(hint, sizeof(hint), "write --%s or --no-%s", row->flag, row->flag);
		if (value)
			refuse(scan, row->is_negatable ? hint : NULL, "--%s%s takes no value", is_negated ? "no-" : "",
			       row->flag);
		apply_option(scan, row, NULL, is_negated);
		return;
	}
	if (!value && row->is_value_optional)
		value = take_optional_value(scan, row);
	else if (!value && !(value = take_value(scan, row)))
		return;
	if (value && !check_value(scan, row, value))
		return;
	apply_option(scan, row, value, is_negated);
}

static void scan_long(struct scan *scan, const char *word)
{
	const char *name = word + 2;
	const char *equals = strchr(name, '=');
	size_t len = equals ? (size_t)(equals - name) : strlen(name);
	struct option_row row;
	bool is_negated;

	if (find_long(scan, name, len, &row, &is_negated)) {
		scan_option(scan, &row, equals ? equals + 1 : NULL, is_negated);
		return;
	}
	refuse_unknown(scan, word);
	if (!equals)
		skip_value_of_unknown(scan);
}

static void scan_short(struct scan *scan, const char *word)
{
	struct option_row row;

	if (!find_short(scan, word[1], &row)) {
		refuse_unknown(scan, word);
		skip_value_of_unknown(scan);
		return;
	}
	if (word[2] && !row.placeholder) {
		refuse(scan, "short options cannot be joined; write them apart", "unknown option '%.200s'", word);
		return;
	}
	scan_option(scan, &row, word[2] ? word + 2 : NULL, false);
}

/* A word that is no option, for a command that takes no command line. */
static void scan_word(struct scan *scan, const char *word)
{
	struct run_options *options = scan->options;

	if (options->word_count < scan->command->word_count_max) {
		options->words[options->word_count++] = word;
		return;
	}
	refuse(scan,
	       scan->command->command == COMMAND_SHELL ? "to run a command on a terminal: belljar run --pty -- COMMAND"
						       : NULL,
	       "'belljar %s' does not take '%.200s'", scan->command->name, word);
}

static void scan_rest(struct scan *scan)
{
	if (!scan->command->takes_command_line) {
		while (scan->index < scan->argc)
			scan_word(scan, scan->argv[scan->index++]);
		return;
	}
	scan->options->command = &scan->argv[scan->index];
	scan->options->command_count = scan->argc - scan->index;
	scan->index = scan->argc;
}

static void scan_words(struct scan *scan)
{
	while (scan->index < scan->argc) {
		const char *word = scan->argv[scan->index];
		bool is_option = word[0] == '-' && word[1];

		if (!is_option && scan->skippable_words > 0) {
			scan->skippable_words--;
			scan->index++;
			continue;
		}
		if (!is_option && scan->command->takes_command_line) {
			scan_rest(scan);
			return;
		}
		scan->index++;
		if (!is_option) {
			scan_word(scan, word);
		} else if (word[1] != '-') {
			scan_short(scan, word);
		} else if (word[2]) {
			scan_long(scan, word);
		} else {
			scan_rest(scan);
			return;
		}
		/* Help wins over missing arguments; a mistake before it is reported first. */
		if (scan->options->has_help && !scan->rc)
			return;
	}
}

static void check_words(struct scan *scan)
{
	const struct command_row *command = scan->command;
	const struct run_options *options = scan->options;
	char hint[160];
	const char *near;

	snprintf(hint, sizeof(hint), "usage: belljar %s %s", command->name, command->arguments);
	if (command->takes_command_line && options->command_count == 0)
		refuse(scan, hint, "'belljar %s' needs a command to run", command->name);
	if (options->word_count < command->word_count_min)
		refuse(scan, hint, "'belljar %s' needs %s", command->name,
		       command->first_words ? "a subcommand" : "an argument");
	if (!command->first_words || options->word_count == 0 || is_one_of(options->words[0], command->first_words))
		return;
	near = suggest_from(options->words[0], command->first_words);
	if (near)
		snprintf(hint, sizeof(hint), "did you mean '%s'?", near);
	refuse(scan, hint, "'belljar %s' does not know '%.200s'", command->name, options->words[0]);
}

static bool has_tightening(const struct scan *scan)
{
	for (size_t i = 0; i < scan->use_count; i++)
		if (!scan->uses[i].key)
			return true;
	return false;
}

static void check_combinations(struct scan *scan)
{
	const struct run_options *options = scan->options;

	if (options->is_shell_string && options->command_count > 1)
		refuse(scan, "quote the whole command, or leave --shell out",
		       "--shell takes the command as one string, but %d words were given", options->command_count);
	if (options->has_json && options->has_events)
		refuse(scan, "the last event holds the same result object",
		       "--json and --events cannot go together: both write to stdout");
	if (options->is_agreed + options->has_discard + (options->apply_patterns.count > 0) > 1)
		refuse(scan, NULL, "of --yes, --apply and --discard only one can be given");
	if (options->has_patch + options->has_stat + options->has_json > 1 && scan->command->command == COMMAND_DIFF)
		refuse(scan, NULL, "of --patch, --stat and --json only one can be given");
	if (options->out_path && scan->command->command == COMMAND_RUN && has_tightening(scan))
		refuse(scan, "a learned line would loosen what --tighten holds",
		       "--suggest and --tighten cannot go together");
	if (options->has_bytes && !options->has_json && !options->has_events)
		refuse(scan, "add --json or --events", "--bytes has no object to add the bytes to");
}

/*
 * Set the defaults of the command line, for keys that are not given. A person watches the run: no limits on time and
 * memory, and a cap on output that is held in memory. An agent waits for its tools, and its model reads their output:
 * a limit on everything.
 */
static void set_door_defaults(struct policy *policy, enum cli_command command, bool is_captured)
{
	bool is_agent = command == COMMAND_MCP;

	if (!policy_is_given(policy, "timeout"))
		policy->limits.timeout_ns = is_agent ? OPTIONS_AGENT_TIMEOUT_NS : LIMIT_NONE;
	if (!policy_is_given(policy, "memory"))
		policy->limits.memory_bytes = is_agent ? OPTIONS_AGENT_MEMORY_BYTES : LIMIT_NONE;
	if (!policy_is_given(policy, "output"))
		policy->limits.output.total_bytes = is_agent      ? OPTIONS_AGENT_OUTPUT_BYTES
						    : is_captured ? OPTIONS_CAPTURED_OUTPUT_BYTES
								  : LIMIT_NONE;
}

static bool has_flag_use(const struct scan *scan, const char *key_name)
{
	for (size_t i = 0; i < scan->use_count; i++)
		if (scan->uses[i].key && strcmp(scan->uses[i].key->name, key_name) == 0)
			return true;
	return false;
}

/* Rules between the policy and where the output goes. Nothing runs for `plan`, so nothing is captured or passed on. */
static void check_output(struct scan *scan, struct policy *policy, bool is_captured)
{
	if (scan->command->command == COMMAND_PLAN)
		return;
	if (is_captured && !policy_output_is_bounded(&policy->limits.output))
		refuse(scan, "give a size, such as --output 10M, or take --events, which keeps nothing in memory",
		       "captured output (--json) needs a limit: output cannot be none");
	if (is_captured || policy->limits.keep == KEEP_HEAD)
		return;
	if ((policy->limits.output.total_bytes != LIMIT_NONE || policy_output_is_split(&policy->limits.output)) &&
	    has_flag_use(scan, "keep"))
		refuse(scan, "add --json, or leave --keep out",
		       "--keep %s needs captured output: Belljar cannot take back output that it passed on",
		       policy->limits.keep == KEEP_TAIL ? "tail" : "both");
	/* A file may say it for captured runs; here it has no meaning. */
	policy->limits.keep = KEEP_HEAD;
}

static int build_policy(struct scan *scan, const struct policy_context *context)
{
	struct policy *policy = &scan->options->policy;
	bool is_captured = (scan->options->has_json && scan->command->command == COMMAND_RUN) ||
			   scan->command->command == COMMAND_MCP;
	int rc = policy_init(policy, context, scan->error);

	if (rc < 0)
		return rc;
	if (scan->options->policy_name)
		rc = policy_load(policy, scan->options->policy_name, context, scan->error);
	for (size_t i = 0; rc >= 0 && i < scan->use_count; i++) {
		const struct flag_use *use = &scan->uses[i];

		if (use->key)
			rc = policy_set_flag(policy, use->key, use->value, use->is_negated, context, scan->error);
	}
	/* Before tightening, so that a project's file cannot lift what would have held without it. */
	if (rc >= 0)
		set_door_defaults(policy, scan->command->command, is_captured);
	for (size_t i = 0; rc >= 0 && i < scan->use_count; i++)
		if (!scan->uses[i].key)
			rc = policy_tighten(policy, scan->uses[i].value, context, scan->error);
	if (rc < 0)
		return rc;
	check_output(scan, policy, is_captured);
	return scan->rc;
}

int cli_options_parse(enum cli_command command, int argc, char *const *argv, const struct policy_context *context,
		      struct run_options *out, struct error *error)
{
	/* Every word makes at most one use. */
	AUTO_FREE struct flag_use *uses = calloc((size_t)MAX_OF(argc, 0) + 1, sizeof(*uses));
	struct scan scan = {
		.command = cli_command_row_of(command),
		.options = out,
		.error = error,
		.argc = argc,
		.argv = argv,
		.directory = context->current_directory,
		.uses = uses,
	};
	int rc;

	*out = (struct run_options){.status_fd = -1,
				    .has_pty = command == COMMAND_SHELL,
				    .words = calloc((size_t)MAX_OF(argc, 0) + 1, sizeof(*out->words)),
				    .answer_bytes_max = OPTIONS_ANSWER_BYTES_MAX,
				    .rate_max = LIMIT_NONE,
				    .idle_ns = OPTIONS_IDLE_NS};
	if (!uses || !out->words)
		return error_set(error, STAGE_ENGINE, ENOMEM, "no memory to read the command line");
	scan_words(&scan);
	if (!scan.rc && out->has_help)
		return 0;
	check_words(&scan);
	check_combinations(&scan);
	if (scan.rc || !scan.command->takes_policy)
		return scan.rc;
	rc = build_policy(&scan, context);
	if (rc < 0) {
		policy_done(&out->policy);
		out->policy = (struct policy){0};
	}
	return rc;
}

void cli_options_done(struct run_options *options)
{
	if (!options)
		return;
	policy_done(&options->policy);
	free(options->words);
	string_list_done(&options->given);
	string_list_done(&options->allowed_tools);
	string_list_done(&options->denied_tools);
	string_list_done(&options->theirs);
	string_list_done(&options->ours);
	string_list_done(&options->risky);
	string_list_done(&options->apply_patterns);
	*options = (struct run_options){.status_fd = -1};
}
