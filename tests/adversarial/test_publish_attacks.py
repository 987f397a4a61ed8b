# SPDX-License-Identifier: Apache-2.0
"""Attacks on published ports: from the jar, from the host, and on who holds them."""

from __future__ import annotations

import os
import resource
import select
import signal
import socket
import subprocess
import time
import unittest
from pathlib import Path
from typing import List, Set

from harness.bounds import BOUND
from harness.publish_case import PublishCase

# So many connections are open at a time.
ROOM = 1024


def sockets_of(pid: int) -> Set[str]:
    """The inodes of a process's sockets."""
    found = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue
        if target.startswith("socket:["):
            found.add(target[8:-1])
    return found


def listener_of(port: int) -> str:
    """The inode of what listens on the host's 127.0.0.1."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        if words[1] == f"0100007F:{port:04X}" and words[3] == "0A":
            return words[9]
    raise AssertionError("nobody listens")


def children(pid: int) -> List[int]:
    """All that a process has started."""
    found = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return found + [child for one in found for child in children(one)]


class FromInside(PublishCase):
    """A jar that wants more than its port."""

    @unittest.skipUnless(os.getuid() == 0, "only root may look at descriptors of such processes")
    def test_no_socket_of_the_hosts_network_is_in_the_jar(self) -> None:
        """Layer: the hand-over of sockets. The listener is the gate's alone."""
        process, port = self.serve("each(echo)")
        self.assertEqual(self.talk(port), b"hi")
        inode = listener_of(port)
        [gate] = self.gates(process)
        holders = [pid for pid in [process.pid, *children(process.pid)] if inode in sockets_of(pid)]
        self.assertEqual(holders, [gate])
        host = os.stat("/proc/self/ns/net").st_ino
        inside = [pid for pid in children(process.pid) if os.stat(f"/proc/{pid}/ns/net").st_ino != host]
        self.assertGreaterEqual(len(inside), 2)
        for pid in inside:
            mine = {line.split()[9] for name in ("tcp", "tcp6") for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]}
            unix = {line.split()[6] for line in Path(f"/proc/{pid}/net/unix").read_text().splitlines()[1:]}
            hosts_unix = {line.split()[6] for line in Path("/proc/net/unix").read_text().splitlines()[1:]}
            self.assertLessEqual(sockets_of(pid), mine | unix | hosts_unix)

    def test_a_jar_that_fills_the_port_where_sockets_are_made(self) -> None:
        """Layer: whatever is accepted there becomes a socket of the gate's."""
        code = """
def flood():
    held = []
    while True:
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(('127.0.0.1', 2))
        held = held[-200:] + [s]
        time.sleep(0.0005)
for _ in range(2):
    threading.Thread(target=flood, daemon=True).start()
each(echo)
"""
        _, port = self.serve(code)
        self.assertEqual([self.talk(port) for _ in range(20)], [b"hi"] * 20)

    def test_a_jar_that_comes_back_to_itself_through_the_host(self) -> None:
        """Layer: bounds of the gate. Each visitor makes another one, until there is no room; then the run ends as it should."""
        code = """
def again(c):
    with c:
        port = int(c.recv(9))
        count.append(1)
        with socket.create_connection(('host.belljar.internal', port)) as s:
            s.sendall(b'%d' % port)
            s.recv(1)
count = []
each(again)
"""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        process, _ = self.serve(code, "--allow-net", f"host:{port}", "--fds", "200", publish=f"{port}:8000")
        first = self.connect(port)
        first.sendall(b"%d" % port)
        first.settimeout(BOUND)
        [gate] = self.gates(process)
        if os.getuid() == 0:
            self.wait_for(lambda: self.fd_count(gate) > 100, "they come back")
            self.assertLess(self.fd_count(gate), 1000)
        self.assertEqual(self.result(process)["outcome"], "cancelled")
        self.assertEqual(self.talk(port), "ConnectionRefusedError")


class FromOutside(PublishCase):
    """Users of the host who want to fill a jar's gate."""

    def many(self, port: int, count: int) -> List[socket.socket]:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, count + 200), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        made = []
        for _ in range(count):
            one = socket.socket()
            self.addCleanup(one.close)
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
            made.append(one)
        return made

    def test_more_connections_than_there_is_room_for(self) -> None:
        """Layer: bounds of the gate. The others wait, and come in when the first leave."""
        if not os.environ.get("BELLJAR_TEST_SOAK"):
            self.skipTest("1,084 clients and as many threads take seconds; BELLJAR_TEST_SOAK runs it")
        process, port = self.serve(
            "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))\nthreading.stack_size(65536)\n"
            "held = []\ndef keep(c):\n held.append(c)\n c.sendall(b'x')\neach(keep, backlog=4096)",
            "--fds", "4096", "--pids", "4096",
        )
        made = self.many(port, ROOM + 60)
        poll = select.poll()
        for one in made:
            poll.register(one, select.POLLIN)
        self.wait_for(lambda: len(poll.poll(0)) >= ROOM, "as many as there is room for are served")
        if os.getuid() == 0:
            [gate] = self.gates(process)
            self.assertLess(self.fd_count(gate), 2 * ROOM + 200)
        time.sleep(0.3)
        ready = {fd for fd, _ in poll.poll(0)}
        self.assertEqual(len(ready), ROOM)
        for one in made:
            if one.fileno() in ready:
                poll.unregister(one)
                one.close()
        self.wait_for(lambda: len(poll.poll(0)) == 60, "the others are served then")

    def test_a_burst_while_the_gate_has_no_time(self) -> None:
        """Layer: the length of the listener's queue. With a short one the kernel forgets clients that think they are connected."""
        count = 300
        if int(Path("/proc/sys/net/core/somaxconn").read_text()) < count:
            self.skipTest("needs:somaxconn: this host lets only few connections wait")
        process, port = self.serve("def keep(c):\n held.append(c)\n c.sendall(b'x')\nheld = []\neach(keep, backlog=4096)", "--pids", "4096")
        self.assertEqual(self.talk(port, b"", 1), b"x")
        [gate] = self.gates(process)
        os.kill(gate, signal.SIGSTOP)
        try:
            made = self.many(port, count)
            poll = select.poll()
            for one in made:
                poll.register(one, select.POLLOUT)
            self.wait_for(lambda: len(poll.poll(0)) == count, "all of them wait in the queue")
        finally:
            os.kill(gate, signal.SIGCONT)
        for one in made:
            one.settimeout(BOUND)
            self.assertEqual(one.recv(1), b"x")

    def test_those_who_send_slowly_or_never_read(self) -> None:
        """Layer: each connection has pipes of its own, and only while something is in them."""
        _, port = self.serve("def serve(c):\n n = c.recv(1)\n c.sendall(b'x' * (1 << 24) if n == b'g' else n)\n time.sleep(1000)\neach(serve)")
        greedy = [self.connect(port) for _ in range(8)]
        for one in greedy:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.sendall(b"g")
        slow = [self.connect(port) for _ in range(150)]
        self.assertEqual([self.talk(port, b"q") for _ in range(20)], [b"q"] * 20)
        for one in greedy + slow:
            one.close()

    def test_connections_that_are_gone_before_they_are_served(self) -> None:
        """Layer: what is over is let go."""
        process, port = self.serve("each(echo)")
        for number in range(600):
            with socket.socket() as one:
                one.connect(("127.0.0.1", port))
                if number % 2:
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.assertEqual(self.talk(port), b"hi")
        if os.getuid() == 0:
            [gate] = self.gates(process)
            self.wait_for(lambda: self.fd_count(gate) < 60, "they are let go")

    def test_nobody_is_ever_connected_to_himself(self) -> None:
        """Layer: the gate looks at its own port. The published port is one that connecting sockets are given."""
        _, port = self.serve("say('up')\ntime.sleep(1000)", publish="40000")
        self.assertEqual({self.talk(port) for _ in range(300)}, {"ConnectionResetError"})


class Moments(PublishCase):
    """The port is free again, whenever somebody is killed."""

    def test_an_engine_that_is_killed_at_any_moment(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        for number in range(12):
            process = self.start("--publish", f"{port}:8000", "-C", "none", "--", "sleep", "1000", self.marker, stdout=subprocess.DEVNULL)
            time.sleep(number * 0.003)
            process.kill()
            process.wait(BOUND)
            self.wait_for(lambda: self.talk(port) == "ConnectionRefusedError", "the port is free")


if __name__ == "__main__":
    unittest.main()
