/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/ask.h - ask on the terminal about hosts that no rule decides about
 *
 * It uses the controlling terminal, not standard input or output, which are the command's. While a question is open,
 * typed text is the answer: the command's input waits, and raw mode is off for that time.
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

/* Open the terminal for questions. False: there is none, or this process is not in its foreground. */
bool cli_ask_open(struct asking *asking, struct loop *loop, const struct invocation *invocation,
		  const struct run_options *options, struct terminal *terminal);
void cli_ask_done(struct asking *asking);

/* For engine_request.asker; the owner is a struct asking. */
void cli_ask_on_question(void *owner, const struct net_question *question);
void cli_ask_on_withdrawn(void *owner, uint32_t id);
/* Show the question again after a stop: other programs may have used the terminal meanwhile. */
void cli_ask_again(struct asking *asking);

#endif
