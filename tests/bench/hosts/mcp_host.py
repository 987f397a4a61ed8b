# SPDX-License-Identifier: Apache-2.0
"""A Python program that is a client of `belljar mcp`, through each of its doors, beside subprocess. Arguments: rounds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List

from bench.pss import kib, tree
from bench.turns import Way, take_turns
from harness.mcp import HttpServer, Server

IDLE_SECONDS = 0.02
SHELL = ["/bin/bash", "-c", "/bin/true"]


def check(data: Dict[str, Any]) -> None:
    """The call went well."""
    if data.get("exit_code", 0) != 0 or data.get("error"):
        raise RuntimeError(f"it did not go well: {data}")


def is_ours(pid: int) -> bool:
    """A process of Belljar's that has not ended meanwhile."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().startswith("belljar")
    except OSError:
        return False


def memory(pid: int) -> List[float]:
    """Of a server and its engines, without what runs in jars."""
    return [sum(kib(member, "Pss") for member in tree(pid) if is_ours(member))]


def measure(rounds: int, stdio: Server, http: HttpServer) -> Dict[str, Dict[str, List[float]]]:
    """Microseconds from request to answer; KiB of each server."""
    stdio.result("ping")
    used: Dict[str, List[float]] = {"stdio, nothing asked": memory(stdio.process.pid), "HTTP, nothing asked": memory(http.process.pid)}
    session = http.open_session()
    connection = http.connect()

    def ask(request: bytes) -> None:
        connection.sendall(request)
        check(http.read(connection).data)

    def in_session(tool: str, **arguments: str) -> Callable[[], None]:
        call = {"name": tool, "arguments": arguments}
        return lambda: ask(http.request(http.message("tools/call", call), Mcp_Session_Id=session))

    def stateless(tool: str, **arguments: str) -> Callable[[], None]:
        return lambda: ask(http.modern("tools/call", {"name": tool, "arguments": arguments}))

    code = {"language": "bash", "code": ":"}
    runs = take_turns(
        [
            Way("subprocess", lambda: subprocess.run(SHELL, capture_output=True, check=True)),
            Way("stdio", lambda: check(stdio.data("run", command="/bin/true"))),
            Way("HTTP, in a session", in_session("run", command="/bin/true")),
            Way("HTTP, without one", stateless("run", command="/bin/true")),
        ],
        rounds,
        IDLE_SECONDS,
    )
    used["stdio, one jar"] = memory(stdio.process.pid)
    used["HTTP, a session with a jar, and calls without one"] = memory(http.process.pid)
    ways = [Way("stdio", lambda: check(stdio.data("run_code", **code))), Way("HTTP, in a session", in_session("run_code", **code))]
    kept = take_turns(ways, rounds, IDLE_SECONDS)
    connection.close()
    return {"runs": runs, "kept": kept, "memory": used}


def main() -> None:
    """Both servers end, whatever happens."""
    env, work = dict(os.environ), Path.cwd()
    http = HttpServer(env, work)
    try:
        stdio = Server(env, work)
        try:
            print(json.dumps(measure(stdio=stdio, http=http, **json.loads(sys.argv[1]))))
        finally:
            stdio.close()
    finally:
        http.close()


if __name__ == "__main__":
    main()
