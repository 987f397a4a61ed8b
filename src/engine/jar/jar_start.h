/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/jar/jar_start.h - make the first process of a jar
 */
#ifndef BELLJAR_ENGINE_JAR_JAR_START_H
#define BELLJAR_ENGINE_JAR_JAR_START_H

#include "inside/jar.h"

struct jar {
	pid_t pid;
	int pidfd;
	int control_fd;
};

/*
 * Make the jar of @plan. With @main NULL its first process starts the plan's command and leaves with it. Else
 * it calls @main after all steps, and @streams may be NULL. @times may be NULL.
 */
int jar_start_process(const struct jar_plan *plan, jar_main_function *main, const struct jar_streams *streams,
		      const struct jar_argv_memory *argv_memory, struct jar_times *times, struct jar *jar,
		      struct error *error);

#endif
