/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/start.h - the first things that main() of a program of ours does
 */
#ifndef BELLJAR_BASE_START_H
#define BELLJAR_BASE_START_H

#include "base/base.h"

/* Appended to the engine's own path: the program that makes the attempts of `belljar doctor --prove`. */
#define PROVE_SUFFIX "-prove"

/*
 * Descriptors 0, 1 and 2 are in use from here on, so that nothing opened later is mistaken for one of them. A missing
 * stdout or stderr becomes one that nothing can be written to: losing output must be noticed. Returns whether there was a stdin.
 */
bool start_fill_descriptors(void);

/* Memory of arguments and environment, which lie one behind the other; /proc shows it. *@start is NULL if there is none. */
void start_find_argv_memory(int argc, char *const *argv, char **start, size_t *len);

#endif
