/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/error.h - one record of what went wrong: the stage, the cause, and what the user can do
 *
 * Functions return 0 or more on success and a negative errno on failure. The record keeps the first failure, which is
 * the cause; later ones are consequences.
 */
#ifndef BELLJAR_BASE_ERROR_H
#define BELLJAR_BASE_ERROR_H

#include "base/base.h"

enum stage {
	STAGE_NONE,
	STAGE_USAGE,   /* the command line or request itself */
	STAGE_POLICY,  /* a policy file or value */
	STAGE_HOST,    /* this host cannot enforce what was asked for */
	STAGE_PLAN,    /* the policy contradicts itself or the host's files */
	STAGE_FILES,   /* a path could not be opened or mounted */
	STAGE_LIMITS,  /* a limit could not be set */
	STAGE_ISOLATE, /* a wall could not be built */
	STAGE_ENGINE,  /* Belljar's own machinery */
	STAGE_EXEC,    /* the command could not be started */
	STAGE_OUTPUT,  /* the output could not be written */
	STAGE_COUNT,
};

struct error {
	enum stage stage;
	int errno_value; /* 0 where no system call failed */
	char message[1024];
	char hint[512];
};

/*
 * Record a failure unless one is recorded already. @errno_value may be 0 (then the function returns -EINVAL).
 * Returns the negative errno to hand up, always of the recorded, first failure. @error may be NULL.
 */
int error_set(struct error *error, enum stage stage, int errno_value, const char *format, ...) PRINTF_LIKE(4, 5);
#ifdef __clang_analyzer__
/* For the static analyser, which sees one file at a time: error_set() returns a negative errno. */
#define error_set(...)                                                                                                 \
	({                                                                                                             \
		int set_errno = (error_set)(__VA_ARGS__);                                                              \
		if (set_errno >= 0)                                                                                    \
			__builtin_unreachable();                                                                       \
		set_errno;                                                                                             \
	})
#endif

/* Add what the user can do, unless the record has a hint already. Returns what error_set() returned for the record. */
int error_hint(struct error *error, const char *format, ...) PRINTF_LIKE(2, 3);

/* The stage's name as it stands in a result: "usage", "policy", ... */
const char *stage_name(enum stage stage);

/* "ENOENT" for 2; "unknown error" for one this build has no name for. Static storage, never NULL. */
const char *errno_name(int errno_value);

#endif
