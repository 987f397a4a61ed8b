/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/ledger/ledger.h - the engine's side of the ledger: what a traced run asked for and did not get
 *
 * The jar reports what may be refused (JAR_TRIED); the engine adds a command that cannot be executed. A helper
 * checks the host and reports the refusals that count. The first attempt starts it. It delays nothing: the
 * engine counts what it does not take as lost, and kills it if it does not finish soon after the run.
 */
#ifndef BELLJAR_ENGINE_LEDGER_LEDGER_H
#define BELLJAR_ENGINE_LEDGER_LEDGER_H

#include "base/loop.h"
#include "inside/control.h"
#include "plan/explain/denial.h"
#include "base/reap/reap.h"

struct ledger {
	struct loop *loop;
	const struct plan *plan;
	struct reap_family *family;
	void (*found)(void *owner, const struct denial *denial); /* a first refusal */
	void (*finished)(void *owner);
	void *owner;

	pid_t pid; /* 0: there is no process */
	int pidfd, socket_fd;
	struct loop_watch socket;
	struct loop_timer late;
	bool is_closed; /* takes nothing more */
	bool is_anew;   /* the helper reports all again */
	struct denial_list denials;
	uint64_t lost;
	unsigned turns; /* waits for it to finish */
	uint32_t asked; /* candidates for the command */
};

/* Pass JAR_TRIED or JAR_TRIED_AGAIN to the helper, unless the run is not traced or the ledger is closed. */
void ledger_hear(struct ledger *ledger, const struct jar_message *message);
/* Ask about a candidate for the command, which the engine itself tried to execute; traced or not. */
void ledger_ask_command(struct ledger *ledger, const char *path);
/* Take nothing more. True: finished() is called when all is known. False: all is known. */
bool ledger_close(struct ledger *ledger);
/* Move the refusals to @out. */
void ledger_take(struct ledger *ledger, struct denied_seen *out);
void ledger_done(struct ledger *ledger);
/* Free what a list holds. */
void ledger_denials_done(struct denial_list *denials);

#endif
