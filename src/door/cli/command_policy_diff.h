/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/command_policy_diff.h - `policy diff A B`: what B allows and limits otherwise than A, in words
 */
#ifndef BELLJAR_DOOR_CLI_COMMAND_POLICY_DIFF_H
#define BELLJAR_DOOR_CLI_COMMAND_POLICY_DIFF_H

#include "base/text.h"
#include "policy/policy_build.h"

/* @a and @b are files or presets. Nothing is said where they are the same. 0 or a negative errno. */
int cli_policy_diff(const char *a, const char *b, const struct policy_context *context, struct text *out,
		    struct error *error);

#endif
