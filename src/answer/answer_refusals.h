/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer/answer_refusals.h - which system calls were refused, how often, and to whom first
 */
#ifndef BELLJAR_ANSWER_ANSWER_REFUSALS_H
#define BELLJAR_ANSWER_ANSWER_REFUSALS_H

#include "answer/answer_listener.h"

/* The call is refused; who asked still waits. */
void answer_note_refusal(const struct answer_question *question);

#endif
