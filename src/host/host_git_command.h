/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host/host_git_command.h - which files a command in git's configuration names, to the shell or to the tool it starts
 */
#ifndef BELLJAR_HOST_HOST_GIT_COMMAND_H
#define BELLJAR_HOST_HOST_GIT_COMMAND_H

#include "host/host_git_named.h"

/* A call for each name, until one gives false. False: something was too long, or too much. */
bool git_command_named(const char *command, git_named_function *each, void *context);

/*
 * One name of a path and a shell's pattern: '*', '?', '[...]', which stands for any character here, and '\' before what means
 * itself. A '.' in front matches only itself.
 */
bool git_pattern_matches(const char *pattern, size_t pattern_len, const char *name);
/* Has it a character that means others? */
bool git_pattern_is(const char *pattern, size_t len);
/* Without the '\' before what means itself; in place. */
void git_pattern_plain(char *pattern);

#endif
