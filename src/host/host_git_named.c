/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host/host_git_named.c - the keys of git's configuration that name programs, and files that git obeys
 *
 * Commands are shell text: whatever word of one is the name of a file is taken for a program or its script. The first word
 * counts only with a slash in it, since without one the shell looks for it in PATH. Text is cut into words twice: at every
 * character that could end one, which finds names within other words; and as a shell does it, which finds names with spaces,
 * behind what the shell puts in ("$(git rev-parse --show-toplevel)/x", "$PWD/x"), and in a directory that it changes to. What
 * a shell makes of patterns, and what a program finds by itself (`python3 -m x`), is not found.
 */
#include "host/host_git_named.h"

#include <stdio.h>
#include <string.h>

#include "host/host_git_index.h"

enum value_kind {
	VALUE_PATH,    /* relative to the top of the work tree */
	VALUE_INCLUDE, /* relative to the file that has it */
	VALUE_COMMAND,
	VALUE_BANG, /* a command if it begins with '!' */
};

struct named_key {
	const char *section;
	const char *name; /* NULL: any */
	enum value_kind kind;
};

/* With or without a subsection: git takes some both ways, and one that it does not take is only watched too well. */
static const struct named_key named_keys[] = {
	{"core", "hookspath", VALUE_PATH},
	{"core", "attributesfile", VALUE_PATH},
	{"core", "fsmonitor", VALUE_COMMAND},
	{"core", "sshcommand", VALUE_COMMAND},
	{"core", "editor", VALUE_COMMAND},
	{"core", "pager", VALUE_COMMAND},
	{"core", "askpass", VALUE_COMMAND},
	{"core", "gitproxy", VALUE_COMMAND},
	{"core", "alternaterefscommand", VALUE_COMMAND},
	{"include", "path", VALUE_INCLUDE},
	{"includeif", "path", VALUE_INCLUDE},
	{"init", "templatedir", VALUE_PATH},
	{"alias", NULL, VALUE_BANG},
	{"pager", NULL, VALUE_COMMAND},
	{"sequence", "editor", VALUE_COMMAND},
	{"diff", "external", VALUE_COMMAND},
	{"diff", "textconv", VALUE_COMMAND},
	{"diff", "command", VALUE_COMMAND},
	{"merge", "driver", VALUE_COMMAND},
	{"filter", "clean", VALUE_COMMAND},
	{"filter", "smudge", VALUE_COMMAND},
	{"filter", "process", VALUE_COMMAND},
	{"gpg", "program", VALUE_COMMAND},
	{"gpg", "defaultkeycommand", VALUE_COMMAND},
	{"credential", "helper", VALUE_COMMAND},
	{"difftool", "cmd", VALUE_COMMAND},
	{"difftool", "path", VALUE_COMMAND},
	{"mergetool", "cmd", VALUE_COMMAND},
	{"mergetool", "path", VALUE_COMMAND},
	{"man", "cmd", VALUE_COMMAND},
	{"man", "path", VALUE_COMMAND},
	{"browser", "cmd", VALUE_COMMAND},
	{"browser", "path", VALUE_COMMAND},
	{"guitool", "cmd", VALUE_COMMAND},
	{"interactive", "difffilter", VALUE_COMMAND},
	{"uploadpack", "packobjectshook", VALUE_COMMAND},
	{"remote", "uploadpack", VALUE_COMMAND},
	{"remote", "receivepack", VALUE_COMMAND},
	{"trailer", "command", VALUE_COMMAND},
	{"trailer", "cmd", VALUE_COMMAND},
	{"submodule", "update", VALUE_BANG},
	{"hook", "command", VALUE_COMMAND},
	{"sendemail", "smtpserver", VALUE_COMMAND},
	{"sendemail", "sendmailcmd", VALUE_COMMAND},
	{"sendemail", "tocmd", VALUE_COMMAND},
	{"sendemail", "cccmd", VALUE_COMMAND},
	{"sendemail", "headercmd", VALUE_COMMAND},
	{"imap", "tunnel", VALUE_COMMAND},
	{"tar", "command", VALUE_COMMAND},
	{"gc", "recentobjectshook", VALUE_COMMAND},
	{"instaweb", "httpd", VALUE_COMMAND},
	{"lfs", "path", VALUE_COMMAND},
	{"lfs", "args", VALUE_COMMAND},
	{"lfs", "clean", VALUE_COMMAND},
	{"lfs", "smudge", VALUE_COMMAND},
};

#define WORD_MAX 1024
#define BETWEEN_WORDS " \t\n\r\"'`;|&<>()$={},"

struct asking {
	git_named_function *each;
	void *context;
	struct git_configured *configured;
};

static void report_word(const struct asking *asking, const char *word)
{
	asking->each(asking->context, &(struct git_named){
					      .path = word,
					      .is_only_file = true,
					      .who = "git's configuration makes git run it",
				      });
}

static void report_pieces(const struct asking *asking, const char *command)
{
	bool is_first = true;

	while (*command) {
		char word[WORD_MAX];
		size_t len;

		command += strspn(command, BETWEEN_WORDS);
		len = strcspn(command, BETWEEN_WORDS);
		if (len && len < sizeof(word)) {
			memcpy(word, command, len);
			word[len] = '\0';
			if (word[0] != '-' && (!is_first || strchr(word, '/')))
				report_word(asking, word);
		}
		is_first &= !len;
		command += len;
	}
}

/* --- words as a shell has them ------------------------------------------------------------------------------ */

/* Stands for what the shell puts in. */
#define UNKNOWN '\1'

/* Behind "$" or "`": the end of "$NAME", "${NAME}", "$(COMMAND)" or "`COMMAND`". */
static const char *skip_substitution(const char *at)
{
	char open = *at++, end;
	size_t depth = 1;

	if (open == '$' && *at != '(' && *at != '{') {
		size_t len = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");

		return at + (len ? len : *at != '\0');
	}
	if (open == '$')
		open = *at++;
	end = open == '(' ? ')' : open == '{' ? '}' : '`';
	for (; *at && depth; at++)
		depth += *at == end ? -1UL : *at == open ? 1 : 0;
	return at;
}

/* The next word, without its quotes; what is too long is cut. Returns where it ends. */
static const char *read_word(const char *at, char word[WORD_MAX])
{
	size_t len = 0;
	char quote = '\0';

	while (*at && (quote || !strchr(" \t\n;|&<>()", *at))) {
		char character = *at;

		if (quote != '\'' && (character == '$' || character == '`')) {
			at = skip_substitution(at);
			character = UNKNOWN;
		} else if (character == quote || (!quote && (character == '"' || character == '\''))) {
			quote = quote ? '\0' : character;
			at++;
			continue;
		} else {
			if (character == '\\' && quote != '\'' && at[1])
				character = *++at;
			at++;
		}
		if (len + 1 < WORD_MAX)
			word[len++] = character;
	}
	word[len] = '\0';
	return at;
}

/* What is behind the last thing that the shell puts in, which most often is a directory: the top of the work tree, or home. */
static const char *known_part(const char *word)
{
	const char *unknown = strrchr(word, UNKNOWN);

	return unknown ? unknown + 1 + strspn(unknown + 1, "/") : word;
}

static void report_words(const struct asking *asking, const char *command)
{
	char word[WORD_MAX], inside[WORD_MAX] = "", path[2 * WORD_MAX];
	bool is_change = false;

	report_pieces(asking, command);
	while (*(command += strspn(command, " \t\n;|&<>()"))) {
		const char *known;

		command = read_word(command, word);
		known = known_part(word);
		if (is_change)
			snprintf(inside, sizeof(inside), "%s", known);
		is_change = !strcmp(word, "cd");
		if (!known[0] || known[0] == '-')
			continue;
		if (strchr(word, '/') || strchr(word, ' '))
			report_word(asking, known);
		if (known != word && (size_t)snprintf(path, sizeof(path), "~/%s", known) < sizeof(path))
			report_word(asking, path);
		if (inside[0] && (size_t)snprintf(path, sizeof(path), "%s/%s", inside, known) < sizeof(path))
			report_word(asking, path);
	}
}

static bool is_boolean(const char *value)
{
	static const char *const words[] = {"", "true", "false", "yes", "no", "on", "off", "0", "1"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (!strcasecmp(value, words[i]))
			return true;
	return false;
}

static void report_value(const struct asking *asking, const struct named_key *key, const char *value)
{
	if (is_boolean(value) || (key->kind == VALUE_BANG && value[0] != '!'))
		return;
	asking->configured->has_programs = true;
	if (key->kind == VALUE_COMMAND || key->kind == VALUE_BANG) {
		report_words(asking, value + (value[0] == '!'));
		return;
	}
	asking->each(asking->context,
		     &(struct git_named){
			     .path = value,
			     .is_beside_file = key->kind == VALUE_INCLUDE,
			     .is_include = key->kind == VALUE_INCLUDE,
			     .who = key->kind == VALUE_INCLUDE
					    ? "git's configuration includes it, and git runs programs that it names"
					    : "git's configuration names it, and git runs or obeys what is in it",
		     });
}

static void take_entry(void *context, const struct git_config_key *key, const char *value)
{
	const struct asking *asking = context;

	if (git_config_is(key, "extensions", "objectformat"))
		asking->configured->hash_bytes = strcasecmp(value, "sha256") ? GIT_HASH_BYTES : GIT_HASH_BYTES_MAX;
	for (size_t i = 0; i < ARRAY_LEN(named_keys); i++)
		if (!strcmp(key->section, named_keys[i].section) &&
		    (!named_keys[i].name || !strcmp(key->name, named_keys[i].name)))
			report_value(asking, &named_keys[i], value);
}

int git_config_named(const char *text, size_t len, git_named_function *each, void *context,
		     struct git_configured *configured)
{
	struct asking asking = {each, context, configured};

	return git_config_parse(text, len, take_entry, &asking);
}
