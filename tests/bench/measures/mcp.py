# SPDX-License-Identifier: Apache-2.0
"""MCP: calls of `belljar mcp`, from request to answer, over standard input and output and over HTTP."""

from __future__ import annotations

from typing import Dict

from bench.context import Bench
from bench.table import Table, make_table

PART = 0.5
COMMANDS = {
    "subprocess": "subprocess.run(['/bin/bash', '-c', '/bin/true']), outside any jar",
    "stdio": "belljar mcp",
    "HTTP, in a session": "belljar-mcp-http, versions up to 2025-11-25: one jar for all calls",
    "HTTP, without one": "the same, 2026-07-28: a jar for each call",
}


def measure(bench: Bench) -> Dict[str, Table]:
    """Tables for `run`, for `run_code` in an interpreter that waits, and for the memory of the server and its engines."""
    found = bench.host("mcp_host", rounds=bench.rounds(PART))
    return {
        "runs": make_table("The tool run: bash -c /bin/true", "µs", "subprocess", found["runs"], commands=COMMANDS),
        "kept": make_table("The tool run_code: bash, ':'", "µs", "stdio", found["kept"], commands=COMMANDS),
        "memory": make_table(
            "Memory of the server (PSS)", "KiB", "stdio, nothing asked", found["memory"], commands={row: "the server and its engines" for row in found["memory"]}
        ),
    }
