/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jar/jar_network.h - a network namespace made beside the mounts
 *
 * It is the dearest of all namespaces (half a millisecond), and nothing else needs it before the end: a thread makes it
 * and brings its loopback up while the first thread builds the file system.
 */
#ifndef BELLJAR_JAR_JAR_NETWORK_H
#define BELLJAR_JAR_JAR_NETWORK_H

#include "jar/jar_thread.h"

struct jar_network {
	struct jar_thread thread;
	int namespace_fd;
	int error; /* a negative errno; 0: none */
};

/* Begin. A failure is told by jar_network_join(). */
void jar_network_start(struct jar_network *network);
/* Wait until its thread is gone, if there is one. */
void jar_network_wait(struct jar_network *network);
/* Wait for it and enter it. 0 or a negative errno. */
int jar_network_join(struct jar_network *network);

#endif
