/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/call/call.h - a jar for calls: the zygote, and minders whose command is a fork of it
 *
 * The zygote is a program of the host's choice that runs in the jar and forks on request: an interpreter
 * with everything loaded. The minder of a call has its own pid, mount, IPC and network namespace, with
 * fresh private places, made ahead. A fork of the zygote enters them, restricts itself and waits. A
 * process in a call can see neither the zygote nor another call.
 *
 * docs/protocol.md has the messages between minders, zygote and forks.
 */
#ifndef BELLJAR_INSIDE_CALL_CALL_H
#define BELLJAR_INSIDE_CALL_CALL_H

#include "inside/init/init_session.h"

/* Run the first process of a jar for calls. */
void call_first_main(struct jar_inside *inside);

#endif
