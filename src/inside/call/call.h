/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/call/call.h - a jar for calls: the zygote, and minders whose command is a fork of it
 *
 * The zygote is a program of the host's choice that stands in the jar and forks on request: an interpreter with everything
 * loaded. The minder of a call has a pid, mount, IPC and network namespace of its own, with fresh private places, made
 * ahead; a fork of the zygote enters them, puts the walls up and waits. Nothing that runs in a call can see the zygote or
 * another call.
 *
 * docs/protocol.md has the messages between minders, zygote and forks.
 */
#ifndef BELLJAR_INSIDE_CALL_CALL_H
#define BELLJAR_INSIDE_CALL_CALL_H

#include "inside/init/init_session.h"

/* The first process of a jar for calls. */
void call_first_main(struct jar_inside *inside);

#endif
