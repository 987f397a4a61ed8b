/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host/host_toolchains.h - tools below the caller's home directory that PATH leads to, with what they need
 */
#ifndef BELLJAR_HOST_HOST_TOOLCHAINS_H
#define BELLJAR_HOST_HOST_TOOLCHAINS_H

#include "host/host.h"

/* Into host->toolchains. -ENOMEM only: what cannot be found is left out. */
int host_find_toolchains(struct host *host);

#endif
