/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/seccomp/seccomp_container.h - a seccomp profile for containers in which Belljar is to run
 */
#ifndef BELLJAR_PLAN_SECCOMP_SECCOMP_CONTAINER_H
#define BELLJAR_PLAN_SECCOMP_SECCOMP_CONTAINER_H

#include "base/json_write.h"

/* Append the profile as JSON, for `docker run --security-opt seccomp=FILE`. */
void seccomp_write_container_profile(struct text *out);

#endif
