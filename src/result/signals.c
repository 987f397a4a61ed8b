/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result/signals.c - the names of signals
 */
#include <signal.h>
#include <stdio.h>

#include "result/result.h"

#define REAL_TIME_FIRST 34

#define NAME(symbol) [symbol] = #symbol
static const char *const signal_names[] = {
	NAME(SIGHUP),    NAME(SIGINT),  NAME(SIGQUIT),  NAME(SIGILL),  NAME(SIGTRAP), NAME(SIGABRT),
	NAME(SIGBUS),    NAME(SIGFPE),  NAME(SIGKILL),  NAME(SIGUSR1), NAME(SIGSEGV), NAME(SIGUSR2),
	NAME(SIGPIPE),   NAME(SIGALRM), NAME(SIGTERM),  NAME(SIGCHLD), NAME(SIGCONT), NAME(SIGSTOP),
	NAME(SIGTSTP),   NAME(SIGTTIN), NAME(SIGTTOU),  NAME(SIGURG),  NAME(SIGXCPU), NAME(SIGXFSZ),
	NAME(SIGVTALRM), NAME(SIGPROF), NAME(SIGWINCH), NAME(SIGIO),   NAME(SIGPWR),  NAME(SIGSYS),
#ifdef SIGSTKFLT
	NAME(SIGSTKFLT),
#endif
};

const char *signal_name(int number)
{
	static char real_time[24];

	if (number > 0 && (size_t)number < ARRAY_LEN(signal_names) && signal_names[number])
		return signal_names[number];
	/* As the C library counts them: it keeps the first two for itself. */
	if (number >= REAL_TIME_FIRST)
		snprintf(real_time, sizeof(real_time), "SIGRTMIN+%d", number - REAL_TIME_FIRST);
	else
		snprintf(real_time, sizeof(real_time), "SIG%d", number);
	return real_time;
}
