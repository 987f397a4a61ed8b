/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/run/failure.c - what to say of a command that could not be started
 */
#include "engine/run/failure.h"

#include <errno.h>
#include <string.h>

int run_failure_of_zygote(struct error *error, int errno_value)
{
	error_set(error, STAGE_ENGINE, errno_value,
		  "the process that Belljar forks calls from has ended, or did not answer");
	return error_hint(error, "a pool starts another one for the next call; this one may have run out of memory");
}

int run_failure_of_sending(struct error *error, int errno_value, struct failure_place place)
{
	if (errno_value == EPIPE && place.is_for_calls)
		return run_failure_of_zygote(error, errno_value);
	return error_set(error, STAGE_ENGINE, errno_value, "cannot send the command to its jar: %s",
			 strerror(errno_value));
}

int run_failure_of_step(struct error *error, const struct jar_message *message, struct failure_place place)
{
	bool is_of_run = message->step_failed.step >= 0;
	int errno_value = message->step_failed.error;

	if (!place.is_given || is_of_run)
		return error_set(error, STAGE_ISOLATE, errno_value, "cannot make the jar: %s", strerror(errno_value));
	if (errno_value == EAGAIN)
		return error_set(error, STAGE_LIMITS, errno_value, "no process can be made in the jar: %s",
				 strerror(errno_value));
	if (place.is_for_calls && (errno_value == EPIPE || errno_value == ECONNRESET))
		return run_failure_of_zygote(error, errno_value);
	return error_set(error, STAGE_ISOLATE, errno_value,
			 "the jar is ready, but Belljar cannot prepare a process in it for the run: %s",
			 strerror(errno_value));
}

int run_failure_of_exec(struct error *error, const struct jar_message *message, const char *command)
{
	error_set(error, STAGE_EXEC, message->exec_failed.error,
		  message->exec_failed.interpreter_missing
			  ? "cannot run '%s': the interpreter it names is not there (%s)"
			  : "cannot run '%s': %s",
		  command, strerror(message->exec_failed.error));
	if (message->exec_failed.error != ENOENT || message->exec_failed.interpreter_missing)
		return -message->exec_failed.error;
	return error_hint(error, strchr(command, '/') ? "the jar has no such file; --ro PATH shows one"
						      : "Belljar searched the command's own PATH");
}

int run_failure_for_memory(struct error *error)
{
	error_set(error, STAGE_LIMITS, ENOMEM, "the memory limit is too small even to start the command");
	return error_hint(error, "raise --memory; a small program needs about 2M");
}

int run_failure_of_jar(struct error *error, int status, struct failure_place place)
{
	if (place.is_for_calls)
		return run_failure_of_zygote(error, 0);
	return error_set(error, STAGE_ENGINE, 0,
			 place.is_given
				 ? "the jar, or the run's supervisor in it, died before the command began (status %d)"
				 : "the jar's first process died while making the jar (status %d)",
			 status);
}
