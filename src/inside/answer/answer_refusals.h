/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/answer/answer_refusals.h - which system calls were refused, how often, and to whom first
 */
#ifndef BELLJAR_INSIDE_ANSWER_ANSWER_REFUSALS_H
#define BELLJAR_INSIDE_ANSWER_ANSWER_REFUSALS_H

#include "inside/answer/answer_listener.h"
#include "inside/control.h"

/* Note that the call is refused. Its caller still waits. */
void answer_note_refusal(const struct answer_question *question);
/* Read the name of a process; empty: unknown. */
void answer_read_name(pid_t pid, char name[JAR_NAME_BYTES]);

#endif
