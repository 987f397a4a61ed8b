/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/command.h - a command on its way into an existing jar
 *
 * The engine writes argv, environment and entry steps down. A short specification goes with the message,
 * a long one in a sealed memory file, which the starter maps. The jar's first process and its minders
 * allocate nothing, and a file has room for the longest arguments that the kernel takes.
 */
#ifndef BELLJAR_INSIDE_COMMAND_H
#define BELLJAR_INSIDE_COMMAND_H

#include "base/text.h"
#include "inside/jar.h"

int inside_command_write(const struct jar_plan *plan, bool is_metered, const struct jar_streams *streams,
			 struct text *out);
/* Make a sealed memory file with @spec. The descriptor, or a negative errno. */
int inside_command_file(struct text *spec);

/*
 * Parse the command in @bytes, which must stay, without its descriptors; it must name @fd_count of them.
 * -EBADMSG: not a specification. inside_command_done() releases what this has mapped.
 */
int inside_command_parse(const char *bytes, size_t len, size_t fd_count, struct jar_command *command);
/* The same for the file @fd. */
int inside_command_map(int fd, size_t fd_count, struct jar_command *command);
void inside_command_done(struct jar_command *command);

#endif
