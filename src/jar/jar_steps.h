/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jar/jar_steps.h - one function per kind of step; jar_steps.c has the table
 */
#ifndef BELLJAR_JAR_JAR_STEPS_H
#define BELLJAR_JAR_JAR_STEPS_H

#include "jar/jar_inside.h"

#define STEP_DECLARATION(kind, function, ...) jar_step_function function;
JAR_STEPS(STEP_DECLARATION)

/* Is this the object that the planner saw? An inode of 0: any is. 0, -ESTALE, another negative errno. */
int jar_check_object(int fd, dev_t device, ino_t inode);
/* STEP_BIND with the detached mount that is to stand there, which is closed. */
int jar_attach_tree(struct jar_build *build, const struct plan_step *step, int mount_fd);

#endif
