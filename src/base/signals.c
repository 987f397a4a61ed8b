/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/signals.c - the names of signals
 */
#include "base/signals.h"

#include <signal.h>
#include <string.h>

#define NAME(symbol) [symbol] = #symbol
/* As the C library counts them: it reserves the first two. */
#define REAL_TIME(number) [34 + (number)] = "SIGRTMIN+" #number

static const char *const signal_names[] = {
	NAME(SIGHUP),    NAME(SIGINT),   NAME(SIGQUIT), NAME(SIGILL),    NAME(SIGTRAP), NAME(SIGABRT),  NAME(SIGBUS),
	NAME(SIGFPE),    NAME(SIGKILL),  NAME(SIGUSR1), NAME(SIGSEGV),   NAME(SIGUSR2), NAME(SIGPIPE),  NAME(SIGALRM),
	NAME(SIGTERM),   NAME(SIGCHLD),  NAME(SIGCONT), NAME(SIGSTOP),   NAME(SIGTSTP), NAME(SIGTTIN),  NAME(SIGTTOU),
	NAME(SIGURG),    NAME(SIGXCPU),  NAME(SIGXFSZ), NAME(SIGVTALRM), NAME(SIGPROF), NAME(SIGWINCH), NAME(SIGIO),
	NAME(SIGPWR),    NAME(SIGSYS),
#ifdef SIGSTKFLT
	NAME(SIGSTKFLT),
#endif
	[32] = "SIG32",  [33] = "SIG33", REAL_TIME(0),  REAL_TIME(1),    REAL_TIME(2),  REAL_TIME(3),   REAL_TIME(4),
	REAL_TIME(5),    REAL_TIME(6),   REAL_TIME(7),  REAL_TIME(8),    REAL_TIME(9),  REAL_TIME(10),  REAL_TIME(11),
	REAL_TIME(12),   REAL_TIME(13),  REAL_TIME(14), REAL_TIME(15),   REAL_TIME(16), REAL_TIME(17),  REAL_TIME(18),
	REAL_TIME(19),   REAL_TIME(20),  REAL_TIME(21), REAL_TIME(22),   REAL_TIME(23), REAL_TIME(24),  REAL_TIME(25),
	REAL_TIME(26),   REAL_TIME(27),  REAL_TIME(28), REAL_TIME(29),   REAL_TIME(30),
};

const char *signal_name(int number)
{
	if (number > 0 && (size_t)number < ARRAY_LEN(signal_names) && signal_names[number])
		return signal_names[number];
	return "no signal";
}

int signal_number(const char *name)
{
	for (size_t i = 1; i < ARRAY_LEN(signal_names); i++) {
		if (signal_names[i] && strcmp(signal_names[i], name) == 0)
			return (int)i;
	}
	return 0;
}
