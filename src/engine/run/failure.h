/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/run/failure.h - error messages for a command that could not start
 */
#ifndef BELLJAR_ENGINE_RUN_FAILURE_H
#define BELLJAR_ENGINE_RUN_FAILURE_H

#include "base/error.h"
#include "inside/jar.h"

/* Where it would have run. */
struct failure_place {
	bool is_given;     /* in a jar that was given to the run */
	bool is_for_calls; /* and that is one for calls */
};

/* All return what error_set() does. */
int run_failure_of_zygote(struct error *error, int errno_value);
/* The command could not be sent to a given jar. If that jar could not be made, @error already says so. */
int run_failure_of_sending(struct error *error, int errno_value, struct failure_place place);
int run_failure_of_step(struct error *error, const struct jar_message *message, struct failure_place place);
int run_failure_of_exec(struct error *error, const struct jar_message *message, const char *command);
int run_failure_for_memory(struct error *error);
/* The jar's first process or minder died without a report; @status is its wait status. */
int run_failure_of_jar(struct error *error, int status, struct failure_place place);

#endif
