/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/mcp/mcp_drivers.h - the small programs of drivers/ that run code inside a jar, as texts
 */
#ifndef BELLJAR_DOOR_MCP_MCP_DRIVERS_H
#define BELLJAR_DOOR_MCP_MCP_DRIVERS_H

extern const char mcp_driver_python[];
extern const char mcp_driver_javascript[];
extern const char mcp_driver_bash[];

#endif
