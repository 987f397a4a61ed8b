/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/command.h - a command on its way into a jar that stands already
 *
 * The engine writes argv, environment and entry steps down; a short one goes with the message, a long one in a sealed memory
 * file, which whoever starts the command maps. The jar's first process and its minders allocate nothing, and a file
 * has room for all that the kernel takes as arguments.
 */
#ifndef BELLJAR_INSIDE_COMMAND_H
#define BELLJAR_INSIDE_COMMAND_H

#include "base/text.h"
#include "inside/jar.h"

int inside_command_write(const struct jar_plan *plan, bool is_metered, const struct jar_streams *streams,
			 struct text *out);
/* A sealed memory file with @spec, or a negative errno. */
int inside_command_file(struct text *spec);

/*
 * The command in @bytes, which must stay, all but its descriptors, of which there must be @fd_count. -EBADMSG: that is no
 * specification. inside_command_done() lets go of what this has mapped.
 */
int inside_command_parse(const char *bytes, size_t len, size_t fd_count, struct jar_command *command);
/* The same for the file @fd. */
int inside_command_map(int fd, size_t fd_count, struct jar_command *command);
void inside_command_done(struct jar_command *command);

#endif
