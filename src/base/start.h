/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/start.h - the first steps of main() in Belljar's programs
 */
#ifndef BELLJAR_BASE_START_H
#define BELLJAR_BASE_START_H

#include "base/base.h"

/* Appended to the engine's own path: the program that makes the attempts of `belljar doctor --prove`. */
#define PROVE_SUFFIX "-prove"

/*
 * Fill descriptors 0, 1 and 2, so that no file opened later is mistaken for one of them. A missing stdout or stderr
 * becomes one that refuses writes, so that the program notices lost output. Returns whether there was a stdin.
 */
bool start_fill_descriptors(void);

/* Find the contiguous memory of arguments and environment, which /proc shows. *@start is NULL if there is none. */
void start_find_argv_memory(int argc, char *const *argv, char **start, size_t *len);

#endif
