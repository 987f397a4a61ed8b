/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host/host_git_command.c - the names in a command: words, patterns, and files that a tool looks for by itself
 *
 * This is no shell: it names what a command could mean, and whoever asks looks which of it is there. Text is cut into words
 * twice: at every character that could end one, which finds names within other words; and as a shell does it, which finds names
 * with spaces, behind what the shell puts in ("$(git rev-parse --show-toplevel)/x", "$PWD/x"), in directories that the
 * command changes to or gives to a tool ("cd x", "-C x", "PATH=x:$PATH"), and patterns. A quoted word may be a command again
 * (`sh -c '...'`). What tools look for by themselves (`make`, `python3 -m x`) is a table.
 */
#include "host/host_git_command.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define WORD_MAX 1024
#define BETWEEN_PIECES " \t\n\r\"'`;|&<>()$={},"
#define BETWEEN_WORDS " \t\n;|&<>()"
#define PATTERN_CHARACTERS "*?["
/* Commands in commands, directories that names are looked up in, braces in braces, and what is made of braces. */
#define NESTING_MAX 3
#define PLACES_MAX 4
#define BRACES_MAX 6
#define ALTERNATIVES_MAX 256
/* Options in one word. */
#define OPTIONS_MAX 4
/* Stands for what the shell puts in. */
#define UNKNOWN '\1'

static const char who_runs[] = "git's configuration makes git run it";

/* --- tools -------------------------------------------------------------------------------------------------- */

/* What a tool looks for in its directory, and what each word behind it may stand for: '@' is the word. */
struct tool {
	const char *name; /* without a version: python is python3.11 too */
	const char *files[5];
	const char *words[5];
	bool has_modules; /* "-m a.b" is a/b.py or a/b/, and modules may come from where the script is */
};

static const struct tool tools[] = {
	{"python", {NULL}, {NULL}, true},
	{"pypy", {NULL}, {NULL}, true},
	{"node", {NULL}, {"@.js", "@.cjs", "@.mjs", "@/index.js", "@/package.json"}},
	{"nodejs", {NULL}, {"@.js", "@.cjs", "@.mjs", "@/index.js", "@/package.json"}},
	{"tsx", {"tsconfig.json"}, {"@.ts", "@.js", "@/index.ts"}},
	{"ts-node", {"tsconfig.json"}, {"@.ts", "@.js", "@/index.ts"}},
	{"deno", {"deno.json", "deno.jsonc", "package.json"}, {NULL}},
	{"bun", {"package.json", "bunfig.toml"}, {"node_modules/.bin/@", "@.ts", "@.js"}},
	{"bunx", {"package.json"}, {"node_modules/.bin/@"}},
	{"npm", {"package.json", ".npmrc"}, {"node_modules/.bin/@"}},
	{"npx", {"package.json", ".npmrc"}, {"node_modules/.bin/@"}},
	{"pnpm", {"package.json", ".pnpmfile.cjs"}, {"node_modules/.bin/@"}},
	{"pnpx", {"package.json", ".pnpmfile.cjs"}, {"node_modules/.bin/@"}},
	{"yarn", {"package.json", ".yarnrc.yml", ".yarnrc"}, {"node_modules/.bin/@"}},
	{"lint-staged", {"package.json", ".lintstagedrc", "lint-staged.config.js"}, {NULL}},
	{"ruby", {NULL}, {"@.rb", "lib/@.rb"}},
	{"rake", {"Rakefile", "rakefile", "Rakefile.rb", "rakefile.rb"}, {NULL}},
	{"bundle", {"Gemfile", ".bundle/config"}, {"bin/@"}},
	{"perl", {NULL}, {"@.pm", "lib/@.pm"}},
	{"lua", {NULL}, {"@.lua", "@/init.lua"}},
	{"composer", {"composer.json"}, {"vendor/bin/@"}},
	{"make", {"GNUmakefile", "makefile", "Makefile"}, {NULL}},
	{"gmake", {"GNUmakefile", "makefile", "Makefile"}, {NULL}},
	{"bmake", {"BSDmakefile", "makefile", "Makefile"}, {NULL}},
	{"ninja", {"build.ninja"}, {NULL}},
	{"cmake", {"CMakeLists.txt", "CMakePresets.json"}, {NULL}},
	{"meson", {"meson.build"}, {NULL}},
	{"just", {"justfile", "Justfile", ".justfile", "JUSTFILE"}, {NULL}},
	{"task", {"Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml"}, {NULL}},
	{"go", {"go.mod", "go.work"}, {"@/main.go", "@.go"}},
	{"cargo", {"Cargo.toml", "build.rs", ".cargo/config.toml", ".cargo/config"}, {NULL}},
	{"gradle", {"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"}, {NULL}},
	{"mvn", {"pom.xml", ".mvn/extensions.xml", ".mvn/jvm.config"}, {NULL}},
	{"tox", {"tox.ini", "setup.cfg", "pyproject.toml"}, {NULL}},
	{"nox", {"noxfile.py"}, {NULL}},
	{"pytest", {"conftest.py", "pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"}, {NULL}},
	{"uv", {"pyproject.toml", "uv.toml"}, {".venv/bin/@"}},
	{"uvx", {"pyproject.toml", "uv.toml"}, {NULL}},
	{"poetry", {"pyproject.toml", "poetry.toml"}, {".venv/bin/@"}},
	{"pdm", {"pyproject.toml", "pdm.toml"}, {".venv/bin/@"}},
	{"pipenv", {"Pipfile", ".env"}, {".venv/bin/@"}},
	{"hatch", {"pyproject.toml", "hatch.toml"}, {NULL}},
	{"pre-commit", {".pre-commit-config.yaml"}, {NULL}},
	{"lefthook", {"lefthook.yml", ".lefthook.yml", "lefthook.yaml", "lefthook.toml"}, {NULL}},
	{"direnv", {".envrc", ".env"}, {NULL}},
	{"nix", {"flake.nix", "default.nix", "shell.nix"}, {NULL}},
	{"nix-shell", {"shell.nix", "default.nix"}, {NULL}},
	{"nix-build", {"default.nix"}, {NULL}},
};

static const char *last_name(const char *word)
{
	const char *slash = strrchr(word, '/');

	return slash ? slash + 1 : word;
}

static const struct tool *find_tool(const char *word)
{
	const char *name = last_name(word);

	for (size_t i = 0; i < ARRAY_LEN(tools); i++) {
		size_t len = strlen(tools[i].name);

		if (!strncmp(name, tools[i].name, len) && strspn(name + len, "-.0123456789") == strlen(name + len))
			return &tools[i];
	}
	return NULL;
}

/* --- one command -------------------------------------------------------------------------------------------- */

/* Of a command, and of all commands in it. */
struct progress {
	size_t alternatives;
	bool is_over;    /* whoever asked has heard enough */
	bool is_cut_off; /* something was too long, or too much */
};

struct shell {
	git_named_function *each;
	void *context;
	int depth;
	struct progress *progress;
	bool is_first; /* no word yet: without a slash it is looked for in PATH */
	const struct tool *tool;
	char before[WORD_MAX]; /* the word before, if it was an option or a command that wants another; "" else */
	char places[PLACES_MAX][WORD_MAX];
	size_t place_count;
};

static void take_command(const struct shell *outer, const char *command);

static void tell(const struct shell *shell, const struct git_named *named)
{
	if (!shell->progress->is_over)
		shell->progress->is_over = !shell->each(shell->context, named);
}

/* @is_told: it was not named as it is. */
static void report(const struct shell *shell, char *path, bool is_told)
{
	bool is_pattern = git_pattern_is(path, strlen(path));

	if (!is_pattern)
		git_pattern_plain(path);
	tell(shell,
	     &(struct git_named){
		     .path = path,
		     .is_only_file = true,
		     .is_pattern = is_pattern,
		     .is_told = is_told || is_pattern,
		     .who = is_pattern ? "git's configuration makes git run what matches a pattern, and this does"
			    : is_told  ? "git's configuration makes git run a program that looks for it"
				       : who_runs,
	     });
}

/* In the directory that git starts the command in, and in those that it names. @word may be a pattern. */
static void report_everywhere(const struct shell *shell, const char *word, bool is_told)
{
	char path[2 * WORD_MAX + 2];

	for (size_t i = 0; i <= (word[0] == '/' ? 0 : shell->place_count) && !shell->progress->is_over; i++) {
		snprintf(path, sizeof(path), "%s%s%s", i ? shell->places[i - 1] : "", i ? "/" : "", word);
		report(shell, path, is_told);
	}
}

static void report_files(const struct shell *shell, const char *directory)
{
	char path[2 * WORD_MAX];

	for (size_t i = 0; shell->tool && i < ARRAY_LEN(shell->tool->files) && shell->tool->files[i]; i++) {
		snprintf(path, sizeof(path), "%s%s%s", directory, directory[0] ? "/" : "", shell->tool->files[i]);
		report_everywhere(shell, path, true);
	}
}

static void add_place(struct shell *shell, const char *directory)
{
	if (!directory[0] || !strcmp(directory, ".") || shell->place_count == PLACES_MAX)
		return;
	for (size_t i = 0; i < shell->place_count; i++)
		if (!strcmp(shell->places[i], directory))
			return;
	snprintf(shell->places[shell->place_count++], WORD_MAX, "%s", directory);
	report_files(shell, "");
}

/* "a.b": a/b.py, a/b/, and what Python runs on the way there. */
static void report_module(const struct shell *shell, const char *module)
{
	static const char *const ends[] = {".py", "/__main__.py", "/__init__.py"};
	char path[WORD_MAX], name[WORD_MAX + 32];

	snprintf(path, sizeof(path), "%s", module);
	for (char *dot = strchr(path, '.'); dot; dot = strchr(dot, '.')) {
		*dot = '\0';
		snprintf(name, sizeof(name), "%s/__init__.py", path);
		report_everywhere(shell, name, true);
		*dot++ = '/';
	}
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		snprintf(name, sizeof(name), "%s%s", path, ends[i]);
		report_everywhere(shell, name, true);
	}
}

/* What Python imports may lie beside its script: a new module there comes before the one that was meant. */
static void report_beside(const struct shell *shell, const char *script)
{
	static const char *const modules[] = {"*.py", "*.so", "*/__init__.py"};
	char path[2 * WORD_MAX];

	for (size_t i = 0; i < ARRAY_LEN(modules); i++) {
		snprintf(path, sizeof(path), "%.*s%s", (int)(last_name(script) - script), script, modules[i]);
		tell(shell,
		     &(struct git_named){
			     .path = path,
			     .is_only_file = true,
			     .is_pattern = true,
			     .is_only_new = true,
			     .who = "git's configuration makes git run Python, which takes modules from this directory",
		     });
	}
}

static void take_tool_word(const struct shell *shell, const char *word)
{
	char path[2 * WORD_MAX];

	for (size_t i = 0; i < ARRAY_LEN(shell->tool->words) && shell->tool->words[i]; i++) {
		const char *form = shell->tool->words[i], *at = strchr(form, '@');

		snprintf(path, sizeof(path), "%.*s%s%s", (int)(at - form), form, word, at + 1);
		/* A module's name has its own marks: Perl's A::B. */
		for (char *colons = strstr(path, "::"); colons; colons = strstr(path, "::")) {
			colons[0] = '/';
			memmove(colons + 1, colons + 2, strlen(colons + 2) + 1);
		}
		report_everywhere(shell, path, true);
	}
	if (shell->tool->has_modules && strlen(word) > 3 && !strcmp(word + strlen(word) - 3, ".py"))
		report_beside(shell, word);
	report_files(shell, word);
}

/* What is behind the last thing that the shell puts in, which most often is a directory: the top of the work tree, or home. */
static const char *known_part(const char *word)
{
	const char *unknown = strrchr(word, UNKNOWN);

	return unknown ? unknown + 1 + strspn(unknown + 1, "/") : word;
}

/* The same with '*' for what is put in between; "" if that says too little to be a name. */
static void guessed_part(const struct shell *shell, const char *word, char guess[WORD_MAX])
{
	const char *from = word;
	bool has_name = false;

	while (from[0] == UNKNOWN && from[1] == '/')
		from += 1 + strspn(from + 1, "/");
	snprintf(guess, WORD_MAX, "%s", strchr(from, UNKNOWN) ? from : "");
	for (char *at = guess; *at; at++) {
		has_name |= isalnum((unsigned char)*at) != 0;
		if (*at == UNKNOWN)
			*at = '*';
	}
	if (!has_name || !(strchr(guess, '/') || shell->tool))
		guess[0] = '\0';
}

static void take_option(struct shell *shell, const char *word)
{
	const char *value = strchr(word, '=');
	char text[WORD_MAX];

	snprintf(text, sizeof(text), "%s", value ? value + 1 : word[1] && word[1] != '-' ? word + 2 : "");
	if (shell->tool && shell->tool->has_modules && (word[1] == 'm' || word[1] == 'c'))
		report_beside(shell, "");
	if (!text[0])
		return;
	if (shell->tool && shell->tool->has_modules && word[1] == 'm')
		report_module(shell, text);
	else if (shell->tool)
		take_tool_word(shell, text);
	report_everywhere(shell, known_part(text), false);
	add_place(shell, known_part(text));
	/* Some options in one: "-sCtools". */
	for (size_t i = 1; !value && i < OPTIONS_MAX && text[i]; i++)
		report_files(shell, text + i);
}

/* NAME=VALUE: a directory, or some with ':' between them. */
static bool take_setting(struct shell *shell, char *word)
{
	size_t len = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
	char *rest;

	if (!len || word[len] != '=')
		return false;
	for (char *part = strtok_r(word + len + 1, ":", &rest); part; part = strtok_r(NULL, ":", &rest))
		add_place(shell, known_part(part));
	return true;
}

/* Commands whose next word is a directory. */
static bool is_change(const char *word)
{
	return !strcmp(word, "cd") || !strcmp(word, "pushd");
}

static bool wants_command(const char *before)
{
	return !strcmp(before, "eval") || (before[0] == '-' && before[1] != '-' && before[strlen(before) - 1] == 'c');
}

static void take_word(struct shell *shell, char word[WORD_MAX])
{
	char plain[WORD_MAX], guess[WORD_MAX], path[WORD_MAX + 2];
	const char *known = known_part(word);
	bool is_first = shell->is_first, is_after_option = shell->before[0] == '-';
	bool is_command = wants_command(shell->before), is_place = is_after_option || is_change(shell->before);
	bool is_module = is_after_option && shell->before[strlen(shell->before) - 1] == 'm';

	snprintf(plain, sizeof(plain), "%s", word);
	git_pattern_plain(plain);
	snprintf(shell->before, sizeof(shell->before), "%s",
		 plain[0] == '-' || is_change(plain) || !strcmp(plain, "eval") ? plain : "");
	if (plain[0] == '-') {
		take_option(shell, plain);
		return;
	}
	if (strpbrk(plain, " \t\n") || is_command)
		take_command(shell, plain);
	snprintf(path, sizeof(path), "%s", plain);
	if (take_setting(shell, path))
		return;
	shell->is_first = false;
	/* A slash, a pattern or a directory: other words are found among the pieces. */
	if (known[0] && (strchr(word, '/') || strchr(word, ' ') || shell->place_count ||
			 (!is_first && git_pattern_is(word, strlen(word)))))
		report_everywhere(shell, known, false);
	if (known[0] && known != word) {
		snprintf(path, sizeof(path), "~/%s", known);
		report(shell, path, false);
	}
	guessed_part(shell, word, guess);
	if (guess[0])
		report_everywhere(shell, guess, true);
	if (shell->tool && known[0] && is_module && shell->tool->has_modules)
		report_module(shell, known);
	else if (shell->tool && known[0])
		take_tool_word(shell, known);
	if (find_tool(plain)) {
		shell->tool = find_tool(plain);
		report_files(shell, "");
	}
	if (is_place)
		add_place(shell, known);
}

/* --- braces ------------------------------------------------------------------------------------------------- */

/* The end of what @at opens, or NULL; *@comma_out: the first ',' of it that is not in braces of its own. */
static char *closing_brace(char *at, char **comma_out)
{
	size_t depth = 0;

	*comma_out = NULL;
	for (; *at; at++) {
		if (*at == '\\' && at[1]) {
			at++;
			continue;
		}
		depth += *at == '{' ? 1 : 0;
		if (*at == ',' && depth == 1 && !*comma_out)
			*comma_out = at;
		if (*at == '}' && --depth == 0)
			return at;
	}
	return NULL;
}

/* The first brace of @word that the shell would take apart: "{a,b}" or "{1..9}". */
static char *find_brace(char *word, char **comma_out, char **close_out)
{
	for (char *open = strchr(word, '{'); open; open = strchr(open + 1, '{')) {
		*close_out = open > word && open[-1] == '\\' ? NULL : closing_brace(open, comma_out);
		if (*close_out && (*comma_out || memmem(open, (size_t)(*close_out - open), "..", 2)))
			return open;
	}
	return NULL;
}

/* Where the shell knows braces, "{a,b}" is either; "{1..9}" becomes '*'. */
static void take_alternatives(struct shell *shell, char word[WORD_MAX], int depth)
{
	char copy[WORD_MAX], *open, *comma, *close;

	while ((open = find_brace(word, &comma, &close))) {
		if (depth == BRACES_MAX || shell->progress->alternatives++ == ALTERNATIVES_MAX) {
			shell->progress->is_cut_off = true;
			return;
		}
		if (!comma) {
			*open = '*';
			memmove(open + 1, close + 1, strlen(close + 1) + 1);
			continue;
		}
		snprintf(copy, sizeof(copy), "%.*s%.*s%s", (int)(open - word), word, (int)(comma - open - 1), open + 1,
			 close + 1);
		take_alternatives(shell, copy, depth + 1);
		/* The rest: in braces as long as there is another ','. */
		memmove(open + 1, comma + 1, strlen(comma + 1) + 1);
		close = closing_brace(open, &comma);
		if (close && !comma) {
			memmove(close, close + 1, strlen(close + 1) + 1);
			memmove(open, open + 1, strlen(open + 1) + 1);
		}
	}
	take_word(shell, word);
}

/* --- words -------------------------------------------------------------------------------------------------- */

/* Behind "$" or "`": the end of "$NAME", "${NAME}", "$(COMMAND)" or "`COMMAND`"; what is in it is a command, or has names in it. */
static const char *take_substitution(const struct shell *shell, const char *at)
{
	char open = *at++, end, text[WORD_MAX];
	const char *from;
	size_t depth = 1;

	if (open == '$' && *at != '(' && *at != '{') {
		size_t len = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");

		return at + (len ? len : *at != '\0');
	}
	if (open == '$')
		open = *at++;
	end = open == '(' ? ')' : open == '{' ? '}' : '`';
	for (from = at; *at && depth; at++)
		depth += *at == end ? -1UL : *at == open ? 1 : 0;
	/* "${NAME:-./x}": behind the name and a mark or two. */
	if (open == '{')
		from += strcspn(from, "-=+");
	if ((size_t)(at - from) >= sizeof(text)) {
		shell->progress->is_cut_off = true;
	} else if (from < at) {
		snprintf(text, sizeof(text), "%.*s", (int)(at - from - (depth == 0)), from);
		take_command(shell, text + (open == '{' && text[0] != '\0'));
	}
	return at;
}

static void put(const struct shell *shell, char word[WORD_MAX], size_t *len, char character, bool is_quoted)
{
	bool is_escaped = is_quoted && strchr("*?[{,}\\", character);

	if (*len + 1 + is_escaped >= WORD_MAX) {
		shell->progress->is_cut_off = true;
		return;
	}
	if (is_escaped)
		word[(*len)++] = '\\';
	word[(*len)++] = character;
}

/* The next word, as a pattern: what was quoted means itself. What is too long is cut. Returns where it ends. */
static const char *read_word(const struct shell *shell, const char *at, char word[WORD_MAX])
{
	size_t len = 0;
	char quote = '\0';

	while (*at && (quote || !strchr(BETWEEN_WORDS, *at))) {
		char character = *at;

		if (quote != '\'' && (character == '$' || character == '`')) {
			at = take_substitution(shell, at);
			put(shell, word, &len, UNKNOWN, false);
		} else if (character == quote || (!quote && (character == '"' || character == '\''))) {
			quote = quote ? '\0' : character;
			at++;
		} else if (character == '\\' && quote != '\'' && at[1]) {
			put(shell, word, &len, at[1], true);
			at += 2;
		} else {
			put(shell, word, &len, character, quote != '\0');
			at++;
		}
	}
	word[len] = '\0';
	return at;
}

static void take_command(const struct shell *outer, const char *command)
{
	struct shell shell = {
		.each = outer->each,
		.context = outer->context,
		.depth = outer->depth + 1,
		.progress = outer->progress,
		.is_first = true,
	};
	char word[WORD_MAX];

	if (shell.depth > NESTING_MAX)
		return;
	for (size_t i = 0; i < outer->place_count; i++)
		add_place(&shell, outer->places[i]);
	while (*command && !shell.progress->is_over) {
		size_t len = strspn(command, BETWEEN_WORDS);

		if (strcspn(command, ";|&()\n") < len) {
			shell.tool = NULL;
			shell.before[0] = '\0';
		}
		command += len;
		if (!*command)
			break;
		command = read_word(&shell, command, word);
		take_alternatives(&shell, word, 0);
	}
}

/* --- pieces ------------------------------------------------------------------------------------------------- */

static void report_pieces(const struct shell *shell, const char *command)
{
	bool is_first = true;

	while (*command) {
		char word[PATH_MAX];
		size_t len;

		command += strspn(command, BETWEEN_PIECES);
		len = strcspn(command, BETWEEN_PIECES);
		if (len && len < sizeof(word)) {
			memcpy(word, command, len);
			word[len] = '\0';
			if (word[0] != '-' && (!is_first || strchr(word, '/')))
				tell(shell, &(struct git_named){.path = word, .is_only_file = true, .who = who_runs});
		}
		is_first &= !len;
		command += len;
	}
}

bool git_command_named(const char *command, git_named_function *each, void *context)
{
	struct progress progress = {0};
	struct shell shell = {.each = each, .context = context, .progress = &progress};

	report_pieces(&shell, command);
	take_command(&shell, command);
	return !progress.is_cut_off;
}

/* --- patterns ----------------------------------------------------------------------------------------------- */

bool git_pattern_is(const char *pattern, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (pattern[i] == '\\')
			i++;
		else if (strchr(PATTERN_CHARACTERS, pattern[i]))
			return true;
	}
	return false;
}

void git_pattern_plain(char *pattern)
{
	char *to = pattern;

	for (; *pattern; pattern++) {
		if (*pattern == '\\' && pattern[1])
			pattern++;
		*to++ = *pattern;
	}
	*to = '\0';
}

/* How much of @pattern stands for one character. */
static size_t one_character(const char *pattern, size_t len)
{
	size_t end = 1;

	if (pattern[0] == '\\' && len > 1)
		return 2;
	if (pattern[0] != '[')
		return 1;
	end += end < len && (pattern[end] == '!' || pattern[end] == '^');
	end += end < len && pattern[end] == ']';
	while (end < len && pattern[end] != ']')
		end += 1 + (pattern[end] == '\\' && end + 1 < len);
	return end < len ? end + 1 : 1;
}

static bool is_one(const char *pattern, size_t len, char character)
{
	if (len == 1)
		return pattern[0] == '?' || pattern[0] == character;
	return pattern[0] == '[' || pattern[1] == character;
}

/* Only the last '*' is ever tried again, so that no pattern takes longer than its length times the name's. */
bool git_pattern_matches(const char *pattern, size_t pattern_len, const char *name)
{
	const char *end = pattern + pattern_len, *star = NULL, *star_name = NULL;

	if (name[0] == '.' &&
	    (!pattern_len || !(pattern[0] == '.' || (pattern[0] == '\\' && pattern_len > 1 && pattern[1] == '.'))))
		return false;
	while (*name || pattern < end) {
		size_t len = pattern < end ? one_character(pattern, (size_t)(end - pattern)) : 0;

		if (len == 1 && *pattern == '*') {
			star = ++pattern;
			star_name = name;
		} else if (len && *name && is_one(pattern, len, *name)) {
			pattern += len;
			name++;
		} else if (star && *star_name) {
			pattern = star;
			name = ++star_name;
		} else {
			return false;
		}
	}
	return true;
}
