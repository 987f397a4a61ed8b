/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper/ledger_look.h - is what a traced command asks for there on the host, and does the jar refuse it?
 */
#ifndef BELLJAR_HELPER_LEDGER_LOOK_H
#define BELLJAR_HELPER_LEDGER_LOOK_H

#include "plan/explain/denial.h"

/* Who looks at this host, as the caller; @home may be NULL. */
struct plan_looker helper_ledger_host(const char *home);

/*
 * The process that looks: hears JAR_TRIED and JAR_TRIED_AGAIN, sends what was refused as soon as it knows, and at the end all of it again,
 * in groups. Never returns.
 */
void helper_ledger_look(int socket_fd, const struct plan *plan) __attribute__((noreturn));

/* Does a directory have something in it that nobody should be shown by the way? */
bool helper_ledger_holds_secret(const struct plan_looker *looker, const char *directory);

/*
 * One path is one entry: who may not write to it and then may not read it either needs to write. Where three or more of a directory were refused alike, and
 * nothing speaks against it, the directory stands for them.
 */
void helper_ledger_group(const struct plan *plan, const struct plan_looker *looker, struct denial_list *denials);

/* --- what the process says: ledger_record.c ------------------------------------------------------------------ */

enum ledger_word { LEDGER_FOUND, LEDGER_ANEW /* what was found so far is told again, in groups */ };

int helper_ledger_send(int socket_fd, enum ledger_word word, const struct denial *denial);
/* 1, 0 at the end, -EAGAIN, another negative errno. The denial's path is the caller's to free. */
int helper_ledger_receive(int socket_fd, enum ledger_word *word, struct denial *denial);
/* The path of a denial with what is to be said of it; NULL: no memory. */
struct denial_path *helper_ledger_path(enum plan_access access, const char *const texts[5]);

#endif
