/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/ledger/ledger.h - what a traced run asks for and is refused: the engine's side
 *
 * The jar tells what may be refused (JAR_TRIED), and a command that cannot be executed is asked about in every run. A process of the engine's looks at the host, says what counts, and is asked for all
 * of it at the end. It is made when the first attempt is told. It delays nothing: what it does not take is lost and counted, and if it
 * has not finished soon after the run, it is killed.
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
	void (*found)(void *owner, const struct denial *denial); /* something was refused for the first time */
	void (*finished)(void *owner);
	void *owner;

	pid_t pid; /* 0: there is no process */
	int pidfd, socket_fd;
	struct loop_watch socket;
	struct loop_timer late;
	bool is_closed; /* nothing more is taken */
	bool is_anew;   /* all of it is told again */
	struct denial_list denials;
	uint64_t lost;
	unsigned turns; /* of waiting for it to finish */
	uint32_t asked; /* files that were to be the command */
};

/* What JAR_TRIED or JAR_TRIED_AGAIN says; nothing if the run is not traced or the ledger is closed. */
void ledger_hear(struct ledger *ledger, const struct jar_message *message);
/* The same for what the engine itself has tried for its caller, traced or not: a file that was to be the command. */
void ledger_ask_command(struct ledger *ledger, const char *path);
/* Nothing more comes. True: finished() is called when all is known; false: all is known. */
bool ledger_close(struct ledger *ledger);
/* Give @out what was refused. */
void ledger_take(struct ledger *ledger, struct denied_seen *out);
void ledger_done(struct ledger *ledger);
/* Free what a list holds. */
void ledger_denials_done(struct denial_list *denials);

#endif
