/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/answer/answer_trace.h - what a traced command opens, executes and connects to
 */
#ifndef BELLJAR_INSIDE_ANSWER_ANSWER_TRACE_H
#define BELLJAR_INSIDE_ANSWER_ANSWER_TRACE_H

#include "inside/answer/answer.h"

/* Note a traced call and let it continue. False: calls of this kind are not traced. */
bool answer_trace(const struct answer_places *places, int listener_fd, const struct answer_question *question);
/* See answer_next_refusal(). */
bool answer_next_attempt(struct jar_message *message, bool is_end);

#endif
