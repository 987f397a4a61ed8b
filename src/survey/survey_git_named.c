/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_git_named.c - the keys of git's configuration that name programs, and files that git reads
 */
#include "survey/survey_git_named.h"

#include <stdio.h>
#include <string.h>

#define BETWEEN_PIECES " \t\n\r\"'`;|&<>()$={},"
/* What ends a variable or a substitution. */
#define PUT_IN "$)}`"

enum value_kind {
	VALUE_PATH,    /* relative to the top of the work tree */
	VALUE_INCLUDE, /* relative to the file that has it */
	VALUE_COMMAND,
	VALUE_BANG,    /* a command if it begins with '!' */
	VALUE_ALIAS,   /* the same; else arguments of git, some of which are commands: `rebase -x ./x` */
	VALUE_ADDRESS, /* a command behind "ext::" */
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
	{"alias", NULL, VALUE_ALIAS},
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
	{"remote", "url", VALUE_ADDRESS},
	{"remote", "pushurl", VALUE_ADDRESS},
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
	{"svn", "authorsprog", VALUE_COMMAND},
	{"svn-remote", "authorsprog", VALUE_COMMAND},
	{"instaweb", "httpd", VALUE_COMMAND},
	{"lfs", "path", VALUE_COMMAND},
	{"lfs", "args", VALUE_COMMAND},
	{"lfs", "clean", VALUE_COMMAND},
	{"lfs", "smudge", VALUE_COMMAND},
};

struct asking {
	git_named_function *each;
	void *context;
	struct git_configured *configured;
};

/* --- commands ----------------------------------------------------------------------------------------------- */

struct pieces {
	git_named_function *each;
	void *context;
	bool is_over; /* @each has heard enough */
};

static void report_piece(struct pieces *pieces, const char *path)
{
	if (path[0] && !pieces->is_over)
		pieces->is_over = !pieces->each(pieces->context,
						&(struct git_named){.path = path,
								    .is_only_file = true,
								    .who = "git's configuration makes git run it"});
}

/* @piece follows what the shell puts in, which most often is the top of the work tree, or home. */
static void report_rest(struct pieces *pieces, const char *piece)
{
	const char *slash = strchr(piece, '/');
	char path[PATH_MAX + 2];

	if (!slash)
		return;
	slash += strspn(slash, "/");
	report_piece(pieces, slash);
	if (slash[0] && snprintf(path, sizeof(path), "~/%s", slash) < (int)sizeof(path))
		report_piece(pieces, path);
}

void survey_git_command_named(const char *command, git_named_function *each, void *context)
{
	struct pieces pieces = {each, context, false};
	bool is_first = true, is_behind = false;

	while (*command && !pieces.is_over) {
		char piece[PATH_MAX];
		size_t gap = strspn(command, BETWEEN_PIECES), end = gap, len;

		/* In "$PWD"/x a quote comes between. */
		while (end && strchr("\"'", command[end - 1]))
			end--;
		is_behind = end ? strchr(PUT_IN, command[end - 1]) != NULL : gap && is_behind;
		command += gap;
		len = strcspn(command, BETWEEN_PIECES);
		if (len && len < sizeof(piece)) {
			memcpy(piece, command, len);
			piece[len] = '\0';
			if (piece[0] != '-' && (!is_first || strchr(piece, '/')))
				report_piece(&pieces, piece);
			if (is_behind)
				report_rest(&pieces, piece);
		}
		is_first &= !len;
		command += len;
	}
}

/* --- keys --------------------------------------------------------------------------------------------------- */

static bool is_boolean(const char *value)
{
	static const char *const words[] = {"", "true", "false", "yes", "no", "on", "off", "0", "1"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (!strcasecmp(value, words[i]))
			return true;
	return false;
}

/* Where the command in @value begins; NULL: it is none. */
static const char *command_in(const struct named_key *key, const char *value)
{
	switch (key->kind) {
	case VALUE_COMMAND:
	case VALUE_ALIAS:
		return value + (value[0] == '!');
	case VALUE_BANG:
		return value[0] == '!' ? value + 1 : NULL;
	case VALUE_ADDRESS:
		return strncmp(value, "ext::", 5) ? NULL : value + 5;
	case VALUE_PATH:
	case VALUE_INCLUDE:
		return NULL;
	}
	return NULL;
}

static void report_value(const struct asking *asking, const struct named_key *key, const char *value)
{
	const char *command = command_in(key, value);

	if (is_boolean(value) || (!command && key->kind != VALUE_PATH && key->kind != VALUE_INCLUDE))
		return;
	asking->configured->has_programs |= key->kind != VALUE_ALIAS || value[0] == '!';
	if (command) {
		survey_git_command_named(command, asking->each, asking->context);
		return;
	}
	asking->each(
		asking->context,
		&(struct git_named){
			.path = value,
			.is_beside_file = key->kind == VALUE_INCLUDE,
			.is_include = key->kind == VALUE_INCLUDE,
			.who = key->kind == VALUE_INCLUDE
				       ? "git's configuration includes it, and git runs programs that it names"
				       : "git's configuration names it, and git runs it or reads its configuration from it",
		});
}

static void take_entry(void *context, const struct git_config_key *key, const char *value)
{
	const struct asking *asking = context;

	if (survey_git_config_is(key, "core", "worktree") && strlen(value) < sizeof(asking->configured->worktree))
		memcpy(asking->configured->worktree, value, strlen(value) + 1);
	for (size_t i = 0; i < ARRAY_LEN(named_keys); i++)
		if (!strcmp(key->section, named_keys[i].section) &&
		    (!named_keys[i].name || !strcmp(key->name, named_keys[i].name)))
			report_value(asking, &named_keys[i], value);
}

int survey_git_config_named(const char *text, size_t len, git_named_function *each, void *context,
			    struct git_configured *configured)
{
	struct asking asking = {each, context, configured};

	return survey_git_config_parse(text, len, take_entry, &asking);
}
