/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper/ledger_look.h - check whether the host has what a traced command asks for, and whether the jar refuses it
 */
#ifndef BELLJAR_HELPER_LEDGER_LOOK_H
#define BELLJAR_HELPER_LEDGER_LOOK_H

#include "plan/explain/denial.h"

/* Return the caller's view of this host; @home may be NULL. */
struct plan_looker helper_ledger_host(const char *home);

/*
 * Run the ledger's helper: receive JAR_TRIED and JAR_TRIED_AGAIN, and report each refusal as soon as it is
 * known. At the end report all of them again, in groups. Never returns.
 */
void helper_ledger_look(int socket_fd, const struct plan *plan) __attribute__((noreturn));

/* Whether a directory contains a secret, so that no proposal should show all of it. */
bool helper_ledger_holds_secret(const struct plan_looker *looker, const char *directory);

/*
 * Merge the denials: one entry for each path, where a refused write includes a refused read. If three or more files
 * of a directory were refused alike, one entry for the directory replaces them, unless it would show a secret.
 */
void helper_ledger_group(const struct plan *plan, const struct plan_looker *looker, struct denial_list *denials);

/* --- the messages of the helper: ledger_record.c ------------------------------------------------------------ */

enum ledger_word { LEDGER_FOUND, LEDGER_ANEW /* forget the earlier ones: all follow again, in groups */ };

int helper_ledger_send(int socket_fd, enum ledger_word word, const struct denial *denial);
/* 1, 0 at the end, -EAGAIN, another negative errno. The caller frees the denial's path. */
int helper_ledger_receive(int socket_fd, enum ledger_word *word, struct denial *denial);
/* Make the path of a denial with its texts. NULL: no memory. */
struct denial_path *helper_ledger_path(enum plan_access access, const char *const texts[5]);

#endif
