/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove/prove_stage.h - plant the objects of a proof on the host, and check them afterwards
 */
#ifndef BELLJAR_PROVE_PROVE_STAGE_H
#define BELLJAR_PROVE_PROVE_STAGE_H

#include <sys/resource.h>

#include "prove/prove.h"

enum {
	LISTEN_TCP,
	LISTEN_UDP,
	LISTEN_STREAM,
	LISTEN_DATAGRAM,
	LISTEN_ABSTRACT_STREAM,
	LISTEN_ABSTRACT_DATAGRAM,
	LISTEN_COUNT
};

struct prove_stage {
	struct prove_facts facts;
	char top[PROVE_PATH_MAX]; /* of everything; removed at the end */
	char work[PROVE_PATH_MAX + 8];
	int listeners[LISTEN_COUNT];
	int fifo;
	pid_t server;  /* answers at gate_port; 0: none */
	int leaked_fd; /* not close-on-exec, on purpose */
	char *victim_page;
	struct rlimit victim_limit;
	int victim_priority;
};

/* Zero-initialised, with every descriptor -1, is empty; prove_stage_done() may be called on it in any state. */
void prove_stage_init(struct prove_stage *stage);
int prove_stage_build(struct prove_stage *stage, struct error *error);
void prove_stage_done(struct prove_stage *stage);

/* Return what an attempt changed outside, in words; NULL: nothing. */
const char *prove_stage_look(const struct prove_stage *stage);

#endif
