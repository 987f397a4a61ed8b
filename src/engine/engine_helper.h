/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_helper.h - processes that read and search what commands wrote, so that the engine need not
 *
 * A helper is a copy of the engine behind walls. It finds what other programs obey before a run, remembers it, lists
 * directories while the command works, and compares after it. It may take as long as it likes: the engine's loop hears of
 * the answer. Each work directory has a helper of its own, so one that is slow to search delays no other.
 */
#ifndef BELLJAR_ENGINE_ENGINE_HELPER_H
#define BELLJAR_ENGINE_ENGINE_HELPER_H

#include "base/loop.h"
#include "survey/survey_pack.h"
#include "base/reap/reap.h"

struct engine_helper;

/* Those of one engine. Zero, but for the first three. */
struct engine_helpers {
	struct loop *loop;
	struct reap_family *family;
	size_t idle_max;             /* so many stay when nothing needs them: they know their directories */
	struct engine_helper *first; /* the one used last */
};
/* Their processes end soon: loop_drain(). Nothing uses them any more. */
void engine_helpers_done(struct engine_helpers *helpers);

struct engine_helper *engine_helper_hold(struct engine_helper *helper);
/* Accepts NULL. */
void engine_helper_release(struct engine_helper *helper);
/* It has ended, and answers nothing. */
bool engine_helper_is_lost(const struct engine_helper *helper);
/* Is it of no use when the search is over that it is asked for now? */
bool engine_helper_is_for_one(const struct engine_helper *helper);
/* A number that this helper has not used yet. */
uint64_t engine_helper_number(struct engine_helper *helper);

/* The number of a baseline that every helper has: nothing was there, so all that is there now is new. */
#define HELPER_NOTHING 0

enum helper_kind {
	HELPER_PROJECT,        /* its number, and facts */
	HELPER_FORGET_PROJECT, /* a number */
	HELPER_LOOK, /* a project, the number of a new baseline; answer: 0 and what is protected, or an errno */
	HELPER_FORGET_BASELINE, /* a number */
	HELPER_GROW,            /* a project: list its directories */
	/* A project, a baseline, the number of the next one, was_protected, and is it the last; answer: what is risky. */
	HELPER_SEARCH,
	HELPER_SYNC, /* answer: nothing. Everything before it is done */
	HELPER_KIND_COUNT,
};

/* @answer NULL: the helper has ended. Called from within the loop, once. */
typedef void engine_answer_function(void *owner, struct unpack *answer);

/* Something that the helper was asked for. */
struct engine_question {
	struct engine_helper *helper; /* NULL: nothing is asked */
	struct engine_question *next;
	uint64_t number;
	engine_answer_function *answered;
	void *owner;
	struct loop_timer lost; /* the helper had ended before it was asked */
};
/* Nobody waits for the answer any more. */
void engine_question_done(struct engine_question *question);

/* Send what @payload has, if the helper has not ended. @question NULL: there is no answer. Else it has answered() and owner. */
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
/* The helper for what @host lets a command write; started if there is none. 0 or a negative errno. */
int engine_project_open(struct engine_project *project, struct engine_helpers *helpers, const struct host *host);
void engine_project_close(struct engine_project *project);

/* --- engine_helper_process.c: in the helper --- */

struct helper_header {
	uint32_t len; /* of what follows */
	uint32_t kind;
	uint64_t question; /* 0: none */
};
/* More is no message of ours. */
#define HELPER_MESSAGE_MAX ((size_t)64 << 20)

void engine_helper_main(int socket_fd, pid_t engine_pid) __attribute__((noreturn));

#endif
