/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/error.c - fill the error record, once
 */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int returned_errno(const struct error *error)
{
	return error->errno_value ? -error->errno_value : -EINVAL;
}

int(error_set)(struct error *error, enum stage stage, int errno_value, const char *format, ...)
{
	va_list arguments;

	if (!error)
		return errno_value ? -errno_value : -EINVAL;
	if (error->stage != STAGE_NONE)
		return returned_errno(error);
	error->stage = stage;
	error->errno_value = errno_value;
	va_start(arguments, format);
	vsnprintf(error->message, sizeof(error->message), format, arguments);
	va_end(arguments);
	return returned_errno(error);
}

int error_hint(struct error *error, const char *format, ...)
{
	va_list arguments;

	if (!error)
		return -EINVAL;
	if (!error->hint[0]) {
		va_start(arguments, format);
		vsnprintf(error->hint, sizeof(error->hint), format, arguments);
		va_end(arguments);
	}
	return returned_errno(error);
}

static const char *const stage_names[] = {
	[STAGE_NONE] = "none",     [STAGE_USAGE] = "usage", [STAGE_POLICY] = "policy", [STAGE_HOST] = "host",
	[STAGE_PLAN] = "plan",     [STAGE_FILES] = "files", [STAGE_LIMITS] = "limits", [STAGE_ISOLATE] = "isolate",
	[STAGE_ENGINE] = "engine", [STAGE_EXEC] = "exec",   [STAGE_OUTPUT] = "output",
};
_Static_assert(ARRAY_LEN(stage_names) == STAGE_COUNT, "every stage has a name");

const char *stage_name(enum stage stage)
{
	return stage_names[stage];
}

/* The names that a jar can meet; others are given by number. */
#define NAME(symbol) [symbol] = #symbol
static const char *const errno_names[] = {
	NAME(EPERM),
	NAME(ENOENT),
	NAME(ESRCH),
	NAME(EINTR),
	NAME(EIO),
	NAME(ENXIO),
	NAME(E2BIG),
	NAME(ENOEXEC),
	NAME(EBADF),
	NAME(ECHILD),
	NAME(EAGAIN),
	NAME(ENOMEM),
	NAME(EACCES),
	NAME(EFAULT),
	NAME(ENOTBLK),
	NAME(EBUSY),
	NAME(EEXIST),
	NAME(EXDEV),
	NAME(ENODEV),
	NAME(ENOTDIR),
	NAME(EISDIR),
	NAME(EINVAL),
	NAME(ENFILE),
	NAME(EMFILE),
	NAME(ETOOMANYREFS),
	NAME(ENOTTY),
	NAME(ETXTBSY),
	NAME(EFBIG),
	NAME(ENOSPC),
	NAME(ESPIPE),
	NAME(EROFS),
	NAME(EMLINK),
	NAME(EPIPE),
	NAME(EDOM),
	NAME(ERANGE),
	NAME(EDEADLK),
	NAME(ENAMETOOLONG),
	NAME(ENOLCK),
	NAME(ENOSYS),
	NAME(ENOTEMPTY),
	NAME(ELOOP),
	NAME(ENODATA),
	NAME(EOVERFLOW),
	NAME(ELIBBAD),
	NAME(EUSERS),
	NAME(EOPNOTSUPP),
	NAME(EAFNOSUPPORT),
	NAME(ECONNRESET),
	NAME(ETIMEDOUT),
	NAME(ESTALE),
	NAME(EDQUOT),
	NAME(ECANCELED),
	NAME(ESOCKTNOSUPPORT),
	NAME(EPROTONOSUPPORT),
	NAME(EPROTO),
	NAME(ENOPROTOOPT),
	NAME(ECONNREFUSED),
	NAME(ENETUNREACH),
	NAME(EADDRINUSE),
	NAME(EADDRNOTAVAIL),
	NAME(EIDRM),
};

const char *errno_name(int errno_value)
{
	if (errno_value > 0 && (size_t)errno_value < ARRAY_LEN(errno_names) && errno_names[errno_value])
		return errno_names[errno_value];
	return "unknown error";
}
