/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/ask.h - questions about what no rule decides, on the terminal
 *
 * On the controlling terminal itself, not on standard input or output, which are the command's. While somebody is asked, what is
 * typed is the answer: the command's input waits, and a terminal in raw mode is put back for that time.
 */
#ifndef BELLJAR_DOOR_CLI_ASK_H
#define BELLJAR_DOOR_CLI_ASK_H

#include "door/cli/commands.h"
#include "door/cli/terminal.h"
#include "policy/policy_edit.h"

#define ASK_QUEUE_MAX 16

struct asking {
	int fd; /* of the terminal; -1: there is none */
	struct loop *loop;
	struct loop_watch watch;
	struct engine_run *engine; /* set once it is there */
	struct terminal *terminal; /* borrowed; raw while the command has a terminal of its own */
	struct policy_edit file;   /* to which "always" adds a rule; all zeroes: there is none */
	const struct invocation *invocation;
	struct net_question *queue; /* of ASK_QUEUE_MAX, made for the first question; the first is shown, if any is */
	size_t count;
	bool is_shown;
	bool is_dumb; /* the terminal knows no sequences */
};

/* False: there is no terminal, or others have it. */
bool cli_ask_open(struct asking *asking, struct loop *loop, const struct invocation *invocation,
		  const struct run_options *options, struct terminal *terminal);
void cli_ask_done(struct asking *asking);

/* For engine_request.asker; the owner is a struct asking. */
void cli_ask_on_question(void *owner, const struct net_question *question);
void cli_ask_on_withdrawn(void *owner, uint32_t id);
/* We were stopped, and others have written to the terminal, or set it, meanwhile. */
void cli_ask_again(struct asking *asking);

#endif
