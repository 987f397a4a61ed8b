/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_helper.h - processes that read and search what commands wrote, so that the engine need not
 *
 * A helper is a copy of the engine behind walls. Before a run it finds and remembers files that other programs run.
 * It lists directories while the command works, and compares afterwards. It may take long: the engine's loop
 * receives the answer. Each work directory has its own helper, so one that is slow to search delays no other.
 */
#ifndef BELLJAR_ENGINE_ENGINE_HELPER_H
#define BELLJAR_ENGINE_ENGINE_HELPER_H

#include "base/loop.h"
#include "survey/survey_pack.h"
#include "base/reap/reap.h"

struct engine_helper;

/* The helpers of one engine. The caller sets the first three members and zeroes the rest. */
struct engine_helpers {
	struct loop *loop;
	struct reap_family *family;
	size_t idle_max;             /* unused helpers to keep, because they know their directories */
	struct engine_helper *first; /* the one used last */
};
/* End all helpers. Their processes end soon, see loop_drain(). */
void engine_helpers_done(struct engine_helpers *helpers);

struct engine_helper *engine_helper_hold(struct engine_helper *helper);
/* Accepts NULL. */
void engine_helper_release(struct engine_helper *helper);
/* Whether the helper has ended. */
bool engine_helper_is_lost(const struct engine_helper *helper);
/* Whether the helper ends after the search that it was started for. */
bool engine_helper_is_for_one(const struct engine_helper *helper);
/* Return a number that this helper has not used yet. */
uint64_t engine_helper_number(struct engine_helper *helper);

/* The number of the empty baseline that every helper has: every file found is new. */
#define HELPER_NOTHING 0

enum helper_kind {
	HELPER_PROJECT,        /* its number, and facts */
	HELPER_FORGET_PROJECT, /* a number */
	HELPER_LOOK, /* a project, the number of a new baseline; answer: 0 and what is protected, or an errno */
	HELPER_FORGET_BASELINE, /* a number */
	HELPER_GROW,            /* a project: list its directories */
	/* A project, a baseline, the next one's number, was_protected, whether it is the last; answer: risky files. */
	HELPER_SEARCH,
	HELPER_SYNC, /* answer: empty, once everything before it is done */
	HELPER_KIND_COUNT,
};

/* @answer NULL: the helper has ended. Called from within the loop, once. */
typedef void engine_answer_function(void *owner, struct unpack *answer);

/* A question to the helper. */
struct engine_question {
	struct engine_helper *helper; /* NULL: no question is open */
	struct engine_question *next;
	uint64_t number;
	engine_answer_function *answered;
	void *owner;
	struct loop_timer lost; /* the helper had ended before it was asked */
};
/* Drop the question: its answer is not needed any more. */
void engine_question_done(struct engine_question *question);

/* Send @payload, unless the helper has ended. @question has answered() and owner; NULL: no answer is wanted. */
void engine_helper_send(struct engine_helper *helper, enum helper_kind kind, const struct text *payload,
			struct engine_question *question);
/* The same with numbers. */
void engine_helper_tell(struct engine_helper *helper, enum helper_kind kind, struct engine_question *question,
			const uint64_t *numbers, size_t count);

/* A project that a helper knows. */
struct engine_project {
	struct engine_helper *helper; /* NULL: none */
	uint64_t number;
};
/* Get or start the helper for what @host lets a command write. 0 or a negative errno. */
int engine_project_open(struct engine_project *project, struct engine_helpers *helpers, const struct host *host);
void engine_project_close(struct engine_project *project);

/* --- engine_helper_process.c: in the helper --- */

struct helper_header {
	uint32_t len; /* of what follows */
	uint32_t kind;
	uint64_t question; /* 0: none */
};
/* A longer message is invalid. */
#define HELPER_MESSAGE_MAX ((size_t)64 << 20)

void engine_helper_main(int socket_fd, pid_t engine_pid) __attribute__((noreturn));

#endif
