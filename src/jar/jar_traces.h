/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jar/jar_traces.h - is there a trace of a call in what its keeper leaves to the next one?
 *
 * A keeper without one can be had for another call, which is cheaper than a new keeper by far. Every doubt says no.
 */
#ifndef BELLJAR_JAR_JAR_TRACES_H
#define BELLJAR_JAR_JAR_TRACES_H

#include "jar/jar_inside.h"

/* The plan watches no more than this. */
#define JAR_WATCHED_MAX 128

/* The keeper, while it can write to /proc: see to it that no trace comes later than a call's end. */
void jar_traces_prevent(const struct plan *plan);
/* The keeper, with everything fresh: remember what it looks like. */
void jar_traces_note(const struct plan *plan);
/* The keeper, before it lets a call begin. */
void jar_traces_begin(void);
/* The keeper, with everything of the call gone. */
bool jar_is_traceless(const struct jar_inside *inside);

#endif
