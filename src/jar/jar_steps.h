/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jar/jar_steps.h - one function per kind of step; jar_steps.c has the table
 */
#ifndef BELLJAR_JAR_JAR_STEPS_H
#define BELLJAR_JAR_JAR_STEPS_H

#include "jar/jar_inside.h"

/* jar_steps.c: is this the object that the planner saw? An inode of 0: any is. 0, -ESTALE, another negative errno. */
int jar_check_object(int fd, dev_t device, ino_t inode);
/* jar_mounts.c */
jar_step_function jar_private_mounts, jar_root, jar_scratch, jar_directory, jar_symlink, jar_file, jar_copy, jar_bind,
	jar_private, jar_tmpfs, jar_hide, jar_pin, jar_devpts, jar_proc, jar_proc_lock, jar_seal, jar_enter;
/* STEP_BIND with the detached mount that is to stand there, which is closed. */
int jar_attach_tree(struct jar_build *build, const struct plan_step *step, int mount_fd);
/* jar_identity.c */
jar_step_function jar_become, jar_id_maps, jar_join, jar_privileges;
/* jar_directory.c */
jar_step_function jar_run_directory;
/* jar_limits.c */
jar_step_function jar_cgroup, jar_meter, jar_rlimit, jar_user_limit;
/* jar_places.c */
jar_step_function jar_places;
/* jar_steps.c */
jar_step_function jar_loopback, jar_hostname, jar_subreaper, jar_workdir, jar_landlock, jar_seccomp, jar_scope;

#endif
