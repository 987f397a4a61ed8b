/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/hook.h - what the files of `hook` share: the agents, and their settings
 */
#ifndef BELLJAR_DOOR_CLI_HOOK_H
#define BELLJAR_DOOR_CLI_HOOK_H

#include "base/json_read.h"
#include "door/cli/commands.h"

#define HOOK_EVENT_MAX ((size_t)4 << 20)

/* The words of an agent for the common parts. */
struct agent {
	const char *name;
	const char *event;     /* of its hooks */
	const char *tool;      /* that runs shell commands */
	const char *rewritten; /* member of the answer that has the tool's new input */
	const char *directory; /* in the project: all of its configuration, which can turn hooks off */
	const char *settings;  /* in that directory */
	const char *project;   /* environment variable of a hook that names the project; NULL: the hook starts in it */
	const char *remark;    /* what else has to be done; NULL: nothing */
	bool has_failure_key;  /* "onFailure": "block": a hook that cannot be started blocks the command too */
	bool can_ask;          /* its user, about the command that it was given */
};

/* As a shell reads it back: one word. */
void cli_hook_append_quoted(struct text *out, const char *word);

/*
 * Show the change to the agent's settings in the current directory, and make it if the user agreed. @command: what the
 * agent shall run. @out: what there is to print.
 */
int cli_hook_install(const struct agent *agent, const char *command, bool is_agreed, struct text *out,
		     struct error *error);
/* The same for taking every entry of this agent's out that runs `belljar hook`, wherever that program is. */
int cli_hook_uninstall(const struct agent *agent, bool is_agreed, struct text *out, struct error *error);

#endif
