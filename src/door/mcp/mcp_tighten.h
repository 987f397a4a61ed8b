/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/mcp/mcp_tighten.h - what a client may add to a policy must not ask the host anything
 */
#ifndef BELLJAR_DOOR_MCP_MCP_TIGHTEN_H
#define BELLJAR_DOOR_MCP_MCP_TIGHTEN_H

#include "policy/policy_build.h"

/* As policy_tighten_document(), for a client. On failure @policy is worthless. */
int mcp_tighten(struct policy *policy, const char *document, size_t len, const struct policy_context *context,
		struct error *error);

#endif
