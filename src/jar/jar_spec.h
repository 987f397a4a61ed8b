/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jar/jar_spec.h - a command on its way into a jar that stands already
 *
 * The engine writes argv, environment and entry steps into a sealed memory file; whoever starts the command maps it. The
 * jar's first process and its keepers allocate nothing, and a file has room for all that the kernel takes as arguments.
 */
#ifndef BELLJAR_JAR_JAR_SPEC_H
#define BELLJAR_JAR_JAR_SPEC_H

#include "jar/jar_inside.h"

/* A sealed memory file, or a negative errno. */
int jar_spec_write(const struct plan *plan, const struct jar_streams *streams);
/*
 * The command in the file @fd, all but its descriptors, of which there must be @fd_count. What it points at is mapped until
 * jar_spec_done(). -EBADMSG: that is no such file.
 */
int jar_spec_read(int fd, size_t fd_count, struct jar_command *command);
void jar_spec_done(struct jar_command *command);

#endif
