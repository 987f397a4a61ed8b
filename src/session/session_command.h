/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/session_command.h - a command on its way into a jar that stands already
 *
 * The engine writes argv, environment and entry steps down; a short one goes with the message, a long one in a sealed memory
 * file, which whoever starts the command maps. The jar's first process and its minders allocate nothing, and a file
 * has room for all that the kernel takes as arguments.
 */
#ifndef BELLJAR_SESSION_SESSION_COMMAND_H
#define BELLJAR_SESSION_SESSION_COMMAND_H

#include "base/text.h"
#include "jar/jar_inside.h"

int session_command_write(const struct jar_plan *plan, bool is_metered, const struct jar_streams *streams,
			  struct text *out);
/* A sealed memory file with @spec, or a negative errno. */
int session_command_file(struct text *spec);

/*
 * The command in @bytes, which must stay, all but its descriptors, of which there must be @fd_count. -EBADMSG: that is no
 * specification. session_command_done() lets go of what this has mapped.
 */
int session_command_parse(const char *bytes, size_t len, size_t fd_count, struct jar_command *command);
/* The same for the file @fd. */
int session_command_map(int fd, size_t fd_count, struct jar_command *command);
void session_command_done(struct jar_command *command);

#endif
