/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/answer/answer_refusals.h - which system calls were refused, how often, and to whom first
 */
#ifndef BELLJAR_INSIDE_ANSWER_ANSWER_REFUSALS_H
#define BELLJAR_INSIDE_ANSWER_ANSWER_REFUSALS_H

#include "inside/answer/answer_listener.h"
#include "inside/control.h"

/* The call is refused; who asked still waits. */
void answer_note_refusal(const struct answer_question *question);
/* The name of a process; empty: it is not known. */
void answer_read_name(pid_t pid, char name[JAR_NAME_BYTES]);

#endif
