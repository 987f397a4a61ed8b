# SPDX-License-Identifier: Apache-2.0
"""Two network namespaces of the test's own: a host for belljar to run on, and a world with servers around it.

    host 203.0.113.1  ──veth──  203.0.113.2 world, which has every other address: servers, a name server, private ones

Nothing leaves them, so tests may use addresses and names that mean something elsewhere. The host's resolv.conf is one of the
test's own too. Works for root, and for an ordinary user who may have user namespaces. A test may have programs of its own in the
world (harness/site.py is one), and bad weather between the two (harness/weather.py).
"""

from __future__ import annotations

import ctypes
import mmap
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import traceback
import unittest
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from harness import census, host, weather
from harness.bounds import BOUND

HOST = "203.0.113.1"
NAME_SERVER = "203.0.113.53"
SERVER = "203.0.113.10"
OTHER_SERVER = "203.0.113.11"
IPV6_SERVER = "2001:db8:1::10"
# In the world, and yet not to be reached by names.
PRIVATE = "10.9.9.9"
METADATA = "169.254.169.254"
# Where programs of a test's own may listen; every name below SITE_NAME is there.
SITE = "203.0.113.20"
SITE_NAME = "site.test"
ADDRESSES = (NAME_SERVER, SERVER, OTHER_SERVER, PRIVATE, METADATA, "203.0.113.12", SITE)
QUIET_ADDRESSES = ("203.0.113.12", SITE)

# What the name server says: addresses in order. A name that is not here does not exist.
ZONE: Dict[str, Tuple[str, ...]] = {
    "good.test": (SERVER,),
    "www.good.test": (OTHER_SERVER,),
    "a.b.good.test": (OTHER_SERVER,),
    "other.test": (OTHER_SERVER,),
    "private.test": (PRIVATE,),
    "meta.test": (METADATA,),
    "own.test": (HOST,),
    "loop.test": ("127.0.0.1",),
    "loop6.test": ("::1",),
    "mapped.test": ("::ffff:10.9.9.9",),
    "nat64.test": ("64:ff9b::a09:909",),
    "six.test": (IPV6_SERVER,),
    "both.test": (PRIVATE, SERVER),
    "dead.test": ("203.0.113.12", SERVER),
}
# Answers that no datagram holds: one whose stream has them all, and one whose stream ends at once.
BIG_NAME, HALF_NAME = "big.test", "half.test"
BIG = (SERVER, *(f"203.0.113.{number}" for number in range(100, 190)))
# Another name server, at this address, knows the names below this one and no others.
OTHER_NAME_SERVER, MOVED_NAME = OTHER_SERVER, "moved.test"
# Aliases: the answer has the chain and the addresses at its end.
ALIASES = {"alias.test": "good.test", "badalias.test": "private.test"}
BANNER = b"SSH-2.0-world\r\n"
WEB_PORTS = (80, 443)
ETH_P_ALL, ETH_P_ARP, ETH_P_IPV6, IPPROTO_HOPOPTS = 3, 0x806, 0x86DD, 0
ECHO_PORT, BANNER_PORT, SOURCE_PORT, SINK_PORT, SILENT_PORT, RETRY_PORT, URGENT_PORT = 7000, 7022, 7001, 7002, 7003, 7004, 7005
# A ServerHello that asks for another ClientHello: RFC 8446 says by which random bytes.
RETRY = bytes.fromhex("160303002c 02000028 0303 cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c 00 1301 00 0000")


def _setns(fd: int) -> None:
    if host.LIBC.setns(fd, 0) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def _unshare(flags: int) -> None:
    if host.LIBC.unshare(flags) != 0:
        raise OSError(ctypes.get_errno(), "unshare")


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, stdout=subprocess.DEVNULL)


class _Child:
    """A process that says when it is ready and lives until its pipe is closed."""

    def __init__(self, main: Callable[[], None]) -> None:
        ready_r, ready_w = os.pipe()
        leash_r, self._leash = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(self._leash)
                os.close(ready_r)
                main()
                os.write(ready_w, b"!")
                os.close(ready_w)
                os.read(leash_r, 1)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)
        census.SPARED.add(self.pid)
        os.close(ready_w)
        os.close(leash_r)
        self.is_ready = os.read(ready_r, 1) == b"!"
        os.close(ready_r)

    def stop(self) -> None:
        os.close(self._leash)
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
        census.SPARED.discard(self.pid)


class Internet:
    """Make it with start(); belljar runs there with `preexec_fn=internet.enter`.

    `bad_weather`: every packet between host and world is delayed, and some are lost.
    """

    def __init__(self, bad_weather: bool = False) -> None:
        self._has_bad_weather = bad_weather
        self.base = Path(tempfile.mkdtemp(prefix="bjt-net-", dir="/tmp"))
        self.base.chmod(0o755)
        self._log = self.base / "log"
        self._log.touch()
        self._log.chmod(0o666)
        self._children: List[_Child] = []
        self._programs: "List[subprocess.Popen[bytes]]" = []
        self._fds: List[int] = []
        self._world_net = -1
        self._world = 0
        # Packets that have arrived in the world, and whether anybody counts them; shared with its process.
        self._counts = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("Q")

    # --- making -------------------------------------------------------------------------------------------------

    def start(self) -> "Internet":
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def _start(self) -> None:
        if shutil.which("ip") is None:
            raise unittest.SkipTest("needs:ip this host has no iproute2")
        here = self._child(self._be_host)
        flags = [name for name in ("user", "net", "mnt") if name != "user" or os.geteuid() != 0]
        self._fds = [os.open(f"/proc/{here.pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in flags]
        world = self._child(self._be_world)
        self._world = world.pid
        self._world_net = os.open(f"/proc/{world.pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        between = self._child(self._be_between).pid if self._has_bad_weather else 0
        self._child(lambda: self._connect(world.pid, between)).stop()
        self._children.pop()
        # They have their interfaces only now.
        for pid in filter(None, (between, world.pid)):
            os.kill(pid, signal.SIGUSR1)
        deadline = time.monotonic() + BOUND
        while "READY" not in self.log() and time.monotonic() < deadline:
            time.sleep(0.01)
        if "READY" not in self.log():
            raise AssertionError("the world did not come up")

    def _child(self, main: Callable[[], None]) -> _Child:
        child = _Child(main)
        self._children.append(child)
        if not child.is_ready:
            raise AssertionError("a namespace could not be made")
        return child

    def _be_host(self) -> None:
        uid, gid = os.geteuid(), os.getegid()
        if uid != 0:
            _unshare(host.CLONE_NEWUSER)
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
            Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
        _unshare(host.CLONE_NEWNS | host.CLONE_NEWNET)
        for name, text in (("resolv.conf", f"nameserver {NAME_SERVER}\n"), ("hosts", "203.0.113.10 listed.test\n")):
            source = self.base / name
            source.write_text(text)
            source.chmod(0o644)
            target = os.path.realpath(f"/etc/{name}")
            if host.LIBC.mount(None, b"/", None, 0x4000 | 0x40000, None) != 0:
                raise OSError(ctypes.get_errno(), "private mounts")
            if host.LIBC.mount(os.fsencode(source), os.fsencode(target), None, 0x1000, None) != 0:
                raise OSError(ctypes.get_errno(), f"mount over {target}")

    def _enter_user(self) -> None:
        if os.geteuid() != 0:
            _setns(self._fds[0])

    def _be_world(self) -> None:
        self._enter_user()
        _unshare(host.CLONE_NEWNET)
        signal.signal(signal.SIGUSR1, lambda *_: threading.Thread(target=self._serve, daemon=True).start())
        signal.signal(signal.SIGUSR2, lambda *_: threading.Thread(target=self._count_packets, daemon=True).start())

    def _be_between(self) -> None:
        self._enter_user()
        _unshare(host.CLONE_NEWNET)
        signal.signal(signal.SIGUSR1, lambda *_: threading.Thread(target=weather.relay, args=("left", "right"), daemon=True).start())

    def _connect(self, world: int, between: int) -> None:
        middle = os.open(f"/proc/{between}/ns/net", os.O_RDONLY) if between else -1
        self.enter()
        self._capable()
        _ip("link", "set", "lo", "up")
        if between:
            _ip("link", "add", "out", "type", "veth", "peer", "name", "left", "netns", str(between))
            weather.keep_packets_whole("out")
        else:
            _ip("link", "add", "out", "type", "veth", "peer", "name", "in", "netns", str(world))
        _ip("addr", "add", f"{HOST}/24", "dev", "out")
        _ip("-6", "addr", "add", "2001:db8:1::1/64", "dev", "out", "nodad")
        _ip("link", "set", "out", "up")
        _ip("route", "add", "default", "via", "203.0.113.2")
        if between:
            _setns(middle)
            _ip("link", "add", "right", "type", "veth", "peer", "name", "in", "netns", str(world))
            for name in ("left", "right"):
                _ip("link", "set", name, "up")
        _setns(self._world_net)
        if between:
            weather.keep_packets_whole("in")
        _ip("link", "set", "lo", "up")
        _ip("addr", "add", "203.0.113.2/24", "dev", "in")
        _ip("-6", "addr", "add", f"{IPV6_SERVER}/64", "dev", "in", "nodad")
        _ip("link", "set", "in", "up")
        for address in ADDRESSES:
            _ip("addr", "add", f"{address}/32", "dev", "lo")

    @staticmethod
    def _capable() -> None:
        """What is executed by an ordinary user keeps the capabilities that entering the namespace gave."""
        if os.geteuid() == 0:
            return
        header, data = struct.pack("Ii", 0x20080522, 0), struct.pack("6I", *([0xFFFFFFFF] * 3), *([0x1FF] * 3))
        buffer = ctypes.create_string_buffer(24)
        host.LIBC.capget(header, buffer)
        effective, permitted, _, effective2, permitted2, _ = struct.unpack("6I", buffer.raw)
        data = struct.pack("6I", effective, permitted, permitted, effective2, permitted2, permitted2)
        host.LIBC.capset(header, data)
        for capability in range(41):
            host.LIBC.prctl(47, 2, capability, 0, 0)

    def enter(self) -> None:
        """Make the calling process one of the host's; for preexec_fn."""
        for fd in self._fds:
            _setns(fd)

    def _enter_world(self) -> None:
        self._enter_user()
        _setns(self._world_net)
        # A server of a user's own is to have ports below 1024 too.
        self._capable()

    def start_in_world(self, command: Sequence[str], **options: Any) -> "subprocess.Popen[bytes]":
        """A program in the world. It is killed with everything it has started when the internet is stopped."""
        program = subprocess.Popen(command, preexec_fn=self._enter_world, start_new_session=True, **options)
        census.SPARED.add(program.pid)
        self._programs.append(program)
        return program

    def stop(self) -> None:
        for program in self._programs:
            try:
                os.killpg(program.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            program.communicate()
            census.SPARED.discard(program.pid)
        self._programs = []
        for child in reversed(self._children):
            child.stop()
        self._children = []
        for fd in (*self._fds, self._world_net):
            if fd >= 0:
                os.close(fd)
        self._fds = []
        self._world_net = -1
        shutil.rmtree(self.base, ignore_errors=True)

    # --- what happened ------------------------------------------------------------------------------------------

    def log(self) -> List[str]:
        """Lines such as "name good.test", "stream big.test" for one asked by TCP, and "tcp 203.0.113.10:80", in order."""
        return self._log.read_text().splitlines()

    def forget(self) -> None:
        self._log.write_text("")

    def packets_out(self) -> int:
        """How many packets the host has sent, once nobody sends any more, however they were made: they are counted where they
        arrive. What kernels say to their neighbours does not count (ARP, and what IPv6 has in its place)."""
        if not self._counts[1]:
            os.kill(self._world, signal.SIGUSR2)
        count, deadline = -1, time.monotonic() + BOUND
        while (not self._counts[1] or count != self._counts[0]) and time.monotonic() < deadline:
            count = self._counts[0]
            time.sleep(0.3)
        if not self._counts[1]:
            raise AssertionError("nobody counts packets")
        return count

    def _count_packets(self) -> None:
        watcher = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
        watcher.bind(("in", ETH_P_ALL))
        self._counts[1] = 1
        while True:
            packet, (_, protocol, kind, *_rest) = watcher.recvfrom(128)
            is_neighbours = protocol == ETH_P_ARP or (protocol == ETH_P_IPV6 and packet[6] in (IPPROTO_HOPOPTS, socket.IPPROTO_ICMPV6))
            if kind != socket.PACKET_OUTGOING and not is_neighbours:
                self._counts[0] += 1

    # --- the world ----------------------------------------------------------------------------------------------

    def _note(self, line: str) -> None:
        fd = os.open(self._log, os.O_WRONLY | os.O_APPEND)
        os.write(fd, f"{line}\n".encode())
        os.close(fd)

    def _serve(self) -> None:
        try:
            for address, function in ((NAME_SERVER, self._answer), (OTHER_NAME_SERVER, self._answer_moved)):
                names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                names.bind((address, 53))
                threading.Thread(target=self._answer_names, args=(names, function), daemon=True).start()
            self._listen(socket.AF_INET, NAME_SERVER, 53, self._answer_by_stream)
            servers: Dict[int, Callable[[socket.socket], None]] = {
                80: self._web,
                443: self._echo,
                8080: self._web,
                ECHO_PORT: self._echo,
                URGENT_PORT: self._urgent,
                BANNER_PORT: self._banner,
                SOURCE_PORT: self._source,
                SINK_PORT: self._sink,
                SILENT_PORT: self._silent,
                RETRY_PORT: self._retry,
            }
            for port, function in servers.items():
                for address in ADDRESSES:
                    if address not in QUIET_ADDRESSES:
                        self._listen(socket.AF_INET, address, port, function)
                self._listen(socket.AF_INET6, IPV6_SERVER, port, function)
            self._note("READY")
        except BaseException:
            traceback.print_exc()

    def _listen(self, family: int, address: str, port: int, function: Callable[[socket.socket], None]) -> None:
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(1024)
        threading.Thread(target=self._accept, args=(listener, address, port, function), daemon=True).start()

    def _accept(self, listener: socket.socket, address: str, port: int, function: Callable[..., None]) -> None:
        while True:
            connection, _ = listener.accept()
            self._note(f"tcp {address}:{port}")
            threading.Thread(target=self._attend, args=(connection, function), daemon=True).start()

    @staticmethod
    def _attend(connection: socket.socket, function: Callable[..., None]) -> None:
        with connection:
            try:
                function(connection)
            except OSError:
                pass

    @staticmethod
    def _urgent(connection: socket.socket) -> None:
        """Every second part is one urgent byte."""
        for part in (b"abc", b"!", b"def", b"?", b"ghi"):
            connection.send(part, socket.MSG_OOB if len(part) == 1 else 0)
        connection.recv(1)

    @staticmethod
    def _echo(connection: socket.socket) -> None:
        while data := connection.recv(65536):
            connection.sendall(data)

    @staticmethod
    def _banner(connection: socket.socket) -> None:
        connection.sendall(BANNER)
        Internet._echo(connection)

    @staticmethod
    def _retry(connection: socket.socket) -> None:
        """Asks for a second ClientHello, in two pieces, and echoes that."""
        connection.recv(65536)
        connection.sendall(RETRY[:20])
        time.sleep(0.01)
        connection.sendall(RETRY[20:])
        Internet._echo(connection)

    @staticmethod
    def _web(connection: socket.socket) -> None:
        request = b""
        while b"\r\n\r\n" not in request:
            data = connection.recv(65536)
            if not data:
                return
            request += data
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")

    @staticmethod
    def _source(connection: socket.socket) -> None:
        """As many bytes as the first line says."""
        line = b""
        while not line.endswith(b"\n"):
            line += connection.recv(1)
        left = int(line)
        block = bytes(65536)
        while left:
            left -= connection.send(block[: min(left, len(block))])

    def _sink(self, connection: socket.socket) -> None:
        count = 0
        while data := connection.recv(65536):
            count += len(data)
        self._note(f"sink {count}")

    @staticmethod
    def _silent(connection: socket.socket) -> None:
        """Reads nothing and says nothing."""
        select.select([], [], [], 60)

    # --- names --------------------------------------------------------------------------------------------------

    def _answer_by_stream(self, connection: socket.socket) -> None:
        asked = connection.makefile("rb")
        while head := asked.read(2):
            question = asked.read(int.from_bytes(head, "big"))
            name, kind, end = self._read_question(question)
            self._note(f"stream {name}")
            if name == HALF_NAME:
                return
            addresses = [self._record(b"\xc0\x0c", 1, socket.inet_aton(address)) for address in BIG if kind == 1 and name == BIG_NAME]
            answer = self._message(question[:end], 0x8180, addresses)
            # In two pieces: a message need not come at once.
            connection.sendall(len(answer).to_bytes(2, "big") + answer[:20])
            time.sleep(0.01)
            connection.sendall(answer[20:])

    def _answer_moved(self, question: bytes, name: str, kind: int, times: int) -> Optional[bytes]:
        is_known = name.endswith(f".{MOVED_NAME}")
        addresses = [self._record(b"\xc0\x0c", 1, socket.inet_aton(SERVER))] if is_known and kind == 1 else []
        return self._message(question, 0x8180 if is_known else 0x8183, addresses)

    def _answer_names(self, names: socket.socket, function: Callable[[bytes, str, int, int], Optional[bytes]]) -> None:
        asked: Dict[str, int] = {}
        while True:
            question, sender = names.recvfrom(2048)
            name, kind, end = self._read_question(question)
            self._note(f"name {name}")
            asked[name] = asked.get(name, 0) + 1
            answer = function(question[:end], name, kind, asked[name])
            if answer is not None:
                names.sendto(answer, sender)

    @staticmethod
    def _read_question(question: bytes) -> Tuple[str, int, int]:
        labels, at = [], 12
        while question[at]:
            labels.append(question[at + 1 : at + 1 + question[at]].decode())
            at += question[at] + 1
        return ".".join(labels), int.from_bytes(question[at + 1 : at + 3], "big"), at + 5

    def _answer(self, question: bytes, name: str, kind: int, times: int) -> Optional[bytes]:
        if name == "never.test":
            return None
        if name in (BIG_NAME, HALF_NAME) and kind == 1:
            some = (self._record(b"\xc0\x0c", 1, socket.inet_aton(address)) for address in BIG[: name == HALF_NAME])
            return self._message(question, 0x8380, list(some))
        records = []
        target = ALIASES.get(name, name)
        addresses: Tuple[str, ...] = ZONE.get(target, ())
        if name == "rebind.test":
            # Public first, private ever after.
            addresses = (SERVER,) if times <= 2 else (PRIVATE,)
        if target.endswith(".many.test"):
            addresses = (SERVER,)
        if target.endswith(f".{SITE_NAME}"):
            addresses = (SITE,)
        if name in ALIASES:
            records.append(self._record(b"\xc0\x0c", 5, self._labels(target)))
        for address in addresses:
            family, number = (socket.AF_INET6, 28) if ":" in address else (socket.AF_INET, 1)
            if number == kind:
                records.append(self._record(b"\xc0\x0c", number, socket.inet_pton(family, address), 300 if name.startswith("kept.") else 1))
        code = 0 if addresses else 3
        return self._message(question, 0x8180 | code, records)

    @staticmethod
    def _message(question: bytes, flags: int, records: List[bytes]) -> bytes:
        return question[:2] + struct.pack(">HHHHH", flags, 1, len(records), 0, 0) + question[12:] + b"".join(records)

    @staticmethod
    def _labels(name: str) -> bytes:
        return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"

    @staticmethod
    def _record(owner: bytes, kind: int, data: bytes, ttl: int = 1) -> bytes:
        return owner + struct.pack(">HHIH", kind, 1, ttl, len(data)) + data


def main(run: Callable[[Internet], Any]) -> Any:
    """For programs that want one."""
    internet = Internet().start()
    try:
        return run(internet)
    finally:
        internet.stop()
