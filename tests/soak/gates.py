#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""./dev soak gates [COUNT]: 200 jars at once, each with a gate of its own and a published port.

One server of the test's on the host's loopback; each jar reaches it through its gate, and each has a server that is reached from the host. All are
open at the same time. A gate may have MEMORY_MAX of its own and FDS_MAX descriptors, the engine ENGINE_FDS for each jar. Then all are closed: no
process and no port may be left. Exit status 0: all held.
"""

from __future__ import annotations

import concurrent.futures
import os
import socket
import socketserver
import sys
import threading
import time
from pathlib import Path
from typing import List, Tuple

sys.dont_write_bytecode = True
sys.path[:0] = [str(Path(__file__).resolve().parent.parent.parent / "python"), str(Path(__file__).resolve().parent.parent)]

from harness import paths  # noqa: E402

os.environ.setdefault("BELLJAR_BIN", paths.belljar())

import belljar  # noqa: E402
from belljar import _engine  # noqa: E402

COUNT = 200
# Private and shared pages, without those of the program that all gates have in common.
MEMORY_MAX = 2 << 20
FDS_MAX = 40
ENGINE_FDS = 30
WORKERS = 8

INSIDE = """
import socket, sys
with socket.create_connection(('host.belljar.internal', int(sys.argv[1]))) as s:
    s.sendall(sys.argv[2].encode())
    out = s.recv(99)
server = socket.create_server(('127.0.0.1', 8000))
print(out.decode(), flush=True)
while True:
    c, _ = server.accept()
    c.sendall(sys.argv[2].encode())
    c.close()
"""


class Echo(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        self.request.sendall(self.request.recv(99))


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 1024


def gates(engine: int) -> List[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if b"gate-process" in (path / "cmdline").read_bytes() and int((path / "stat").read_bytes().rpartition(b")")[2].split()[1]) == engine:
                found.append(int(path.name))
        except OSError:
            continue
    return found


def memory(pid: int) -> int:
    """Bytes that are there because of this process: its share of pages that it has with others."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) << 10
    return 0


def open_one(number: int, port: int) -> Tuple[belljar.Jar, belljar.Process]:
    jar = belljar.Jar(allow_net=[f"host:{port}"], publish=[8000], workdir=None, memory=None, pids=16)
    process = jar.spawn(["python3", "-c", INSIDE, str(port), f"jar {number}"])
    assert process.stdout is not None
    said = process.stdout.readline().decode()
    assert said == f"jar {number}\n", (number, said)
    return jar, process


def visit(number: int, jar: belljar.Jar) -> None:
    with socket.create_connection(("127.0.0.1", jar.published[8000]), 60) as made:
        said = made.recv(99)
        assert said == b"jar %d" % number, (number, said)


def main(words: List[str]) -> int:
    count = int(words[0]) if words else COUNT
    server = Server(("127.0.0.1", 0), Echo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    before = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as workers:
        made = list(workers.map(lambda number: open_one(number, port), range(count)))
        opened = time.monotonic()
        list(workers.map(lambda number: visit(number, made[number][0]), range(count)))
        engine = _engine.current().pid
        pids = gates(engine)
        sizes, fds = [], []
        if os.geteuid() == 0:
            sizes = sorted(memory(pid) for pid in pids)
            fds = sorted(len(os.listdir(f"/proc/{pid}/fd")) for pid in pids)
        engine_fds = len(os.listdir(f"/proc/{engine}/fd")) if os.geteuid() == 0 else 0
        ports = [jar.published[8000] for jar, _ in made]
        list(workers.map(lambda pair: pair[0].close(), made))
    left = len(gates(engine))
    taken = sum(socket.socket().connect_ex(("127.0.0.1", number)) == 0 for number in ports)
    server.shutdown()
    print(f"{count} jars in {opened - before:.1f} s, {len(pids)} gates, {left} left, {taken} ports left, engine: {engine_fds} descriptors")
    if sizes:
        print(f"a gate: {sizes[len(sizes) // 2] >> 10} KiB (most {sizes[-1] >> 10}), {fds[len(fds) // 2]} descriptors (most {fds[-1]})")
    held = len(pids) == count and not left and not taken
    held = held and (not sizes or (sizes[-1] <= MEMORY_MAX and fds[-1] <= FDS_MAX and engine_fds <= 60 + ENGINE_FDS * count))
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
