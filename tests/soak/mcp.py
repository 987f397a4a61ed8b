#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""./dev soak mcp [CALLS] [AT_ONCE] [KILLS]: many calls of `belljar mcp` at once, through every door, then clients that are killed in the middle.

Defaults: 10000 calls, 200 at once, 500 kills. A third of the calls go through standard input and output, a third over HTTP in eight sessions, a
third over HTTP without one, where each call has a jar of its own. Each must have the answer that is right for it. A client is a process of its own
that begins a call and gets SIGKILL at a random moment: it has started a server, or has a session, or has none. Memory of the server of HTTP is read
before and after. In the end the server is ended, and nothing may be left: no process, mount, cgroup or file. Exit status 0: all held.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Callable, Dict, List

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import census, paths, runner  # noqa: E402
from harness.mcp import HttpServer, Server  # noqa: E402

SETTLE_SECONDS = 60.0
SESSIONS = 8
GROWTH_MAX = 4 << 20
KILL_SECONDS = 0.15


def server_bytes(pid: int) -> int:
    """What the process alone has of the machine's memory."""
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGESIZE")


class Soak:
    """Counts what happened and notes what must not."""

    def __init__(self, folder: Path) -> None:
        self.work = folder / "work"
        self.env = runner.clean_env(folder / "home")
        for path in (self.work, folder / "home"):
            path.mkdir()
        self.seen: Counter[str] = Counter()
        self.wrong: List[str] = []
        self.lock = threading.Lock()

    def note(self, text: str) -> None:
        with self.lock:
            self.wrong.append(text[:600])

    def check(self, way: str, number: int, data: Dict[str, object]) -> None:
        """The call was `echo NUMBER; exit NUMBER % 7`."""
        with self.lock:
            self.seen[way] += 1
        if (data.get("stdout"), data.get("exit_code")) != (f"{number}\n", number % 7):
            self.note(f"{way}: call {number} came to {data}")

    @staticmethod
    def command(number: int) -> str:
        return f"echo {number}; exit {number % 7}"

    def stdio(self, count: int, at_once: int) -> None:
        """One server, that many calls under way."""
        server = Server(self.env, self.work)
        waiting: Dict[int, int] = {}
        begun = 0
        while begun < count or waiting:
            while begun < count and len(waiting) < at_once:
                waiting[server.begin("tools/call", {"name": "run", "arguments": {"command": self.command(begun)}})] = begun
                begun += 1
            message = server.read()
            self.check("stdio", waiting.pop(message["id"]), message["result"].get("structuredContent", message))
        if server.close() != 0:
            self.note("stdio: the server ended with a failure")

    def http(self, way: str, count: int, at_once: int, request: Callable[[int], bytes], server: HttpServer) -> None:
        """That many connections, each with one call after the other."""
        numbers = iter(range(count))

        def work() -> None:
            with server.connect() as connection:
                while True:
                    with self.lock:
                        number = next(numbers, None)
                    if number is None:
                        return
                    connection.sendall(request(number))
                    answer = server.read(connection)
                    found = answer.messages[-1] if answer.body else {"status": answer.status}
                    self.check(way, number, found.get("result", {}).get("structuredContent", found))

        def guarded() -> None:
            try:
                work()
            except Exception as error:  # noqa: BLE001 - whatever it is, it is wrong
                self.note(f"{way}: {error!r}")

        threads = [threading.Thread(target=guarded) for _ in range(at_once)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def doomed(self, way: str, server: HttpServer, session: str) -> None:
        """A client's life: begin a call that lasts, and wait."""
        call = {"name": "run", "arguments": {"command": "sleep 300 & sleep 300"}}
        if way == "stdio":
            own = Server(self.env, self.work)
            own.begin("tools/call", {"name": "run_code", "arguments": {"language": "bash", "code": "sleep 300"}})
            own.begin("tools/call", call)
        else:
            for _ in range(3):
                connection = server.connect()
                connection.sendall(server.modern("tools/call", call) if way == "stateless" else server.request(server.message("tools/call", call), Mcp_Session_Id=session))
                connection.detach()
        time.sleep(300)

    def kills(self, count: int, server: HttpServer) -> None:
        """SIGKILL of a client at a random moment."""
        session = server.open_session()
        for number in range(count):
            way = ("stdio", "session", "stateless")[number % 3]
            pid = os.fork()
            if pid == 0:
                try:
                    self.doomed(way, server, session)
                finally:
                    os._exit(1)
            time.sleep(random.random() * KILL_SECONDS)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            self.seen[f"killed, {way}"] += 1
        answer = server.tool(session, "run", command="echo alive")
        if answer.data.get("stdout") != "alive\n":
            self.note(f"the session that many clients were killed in says {answer.body[:300]!r}")

    def sweep(self) -> None:
        """An empty cgroup is all that a killed engine leaves; whoever makes the next one there removes it."""
        subprocess.run([paths.belljar(), "run", "-C", "none", "--memory", "64M", "--", "true"], env=self.env, check=False)


def sleepers() -> List[int]:
    """Commands of killed clients that are still there."""
    return [pid for pid in census.descendants(os.getpid()) if census.command_line(pid).startswith("sleep 300")]


def wait_for(condition: Callable[[], bool]) -> bool:
    """Until it holds, or not for ever."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            return False
        census.reap()
        time.sleep(0.1)
    return True


def main(arguments: List[str]) -> int:
    """See the file's header."""
    defaults = ["10000", "200", "500"]
    calls, at_once, kills = (int(word) for word in [*arguments, *defaults[len(arguments) :]])
    census.adopt_orphans()
    folder = Path(tempfile.mkdtemp(prefix="bjt-soak-", dir="/tmp"))
    try:
        soak = Soak(folder)
        before = census.picture()
        begun = time.monotonic()
        soak.stdio(calls - 2 * (calls // 3), at_once)
        server = HttpServer(soak.env, soak.work)
        sessions = [server.open_session() for _ in range(SESSIONS)]
        early = server_bytes(server.process.pid)

        def in_session(number: int) -> bytes:
            call = {"name": "run", "arguments": {"command": soak.command(number)}}
            return server.request(server.message("tools/call", call), Mcp_Session_Id=sessions[number % SESSIONS])

        soak.http("session", calls // 3, at_once, in_session, server)
        soak.http("stateless", calls // 3, at_once, lambda number: server.modern("tools/call", {"name": "run", "arguments": {"command": soak.command(number)}}), server)
        called = time.monotonic()
        soak.kills(kills, server)
        if not wait_for(lambda: not sleepers()):
            soak.note(f"{len(sleepers())} commands outlive their clients")
        late = server_bytes(server.process.pid)
        if late > early + GROWTH_MAX:
            soak.note(f"the server had {early} bytes, and has {late}")
        ended = time.monotonic()
        server.close()
        after = census.picture()
        new = {kind: after[kind] - before[kind] for kind in before}

        def is_clean() -> bool:
            soak.sweep()
            now = census.picture()
            # Others use this host too: what comes only now is not ours, and what they have goes again.
            for kind in new:
                new[kind] &= now[kind]
            return not any(new.values()) and not census.descendants(os.getpid())

        if not wait_for(is_clean):
            soak.note(f"left: {new} {[census.command_line(pid) for pid in census.descendants(os.getpid())][:20]}")
        for name, count in sorted(soak.seen.items()):
            print(f"{count:6} {name}")
        print(f"{calls} calls in {called - begun:.1f} s, {kills} kills in {ended - called:.1f} s; the server of HTTP: {early >> 10} KiB early, {late >> 10} KiB late")
        for text in soak.wrong[:20]:
            print(f"WRONG {text}")
        print(json.dumps({"wrong": len(soak.wrong)}))
        return 1 if soak.wrong else 0
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
