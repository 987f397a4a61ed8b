/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/signals.h - the names of signals
 */
#ifndef BELLJAR_BASE_SIGNALS_H
#define BELLJAR_BASE_SIGNALS_H

#include "base/base.h"

/* Return "SIGKILL"; "SIGRTMIN+3" or "SIG32" for those without their own name. Static storage, never NULL. */
const char *signal_name(int number);
/* The other way round; 0: no such name. */
int signal_number(const char *name);

#endif
