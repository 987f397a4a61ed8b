# SPDX-License-Identifier: Apache-2.0
"""Answers of calls from those who mean harm: nothing is executed, nothing is made beyond the bound, nothing hangs."""

from __future__ import annotations

import array
import fcntl
import os
import random
import signal
import socket
import struct
import sys
import tempfile
import time
import tracemalloc
import unittest
from typing import Any, List, Sequence

import belljar
from belljar import _answer, _codec, _codec_types
from belljar._answer import Answer, send_answer
from belljar._codec import Codec
from belljar._discard import discard
from belljar._errors import ResultError
from harness.bounds import SLOWNESS
from package_case import PackageCase, engine_pid, open_fds, tearDownModule  # noqa: F401

SLEEP = 1000
# Longer than any test may take.
LINGER_SECONDS = int(400 * SLOWNESS)
ALL_SEALS = _answer.SEALS | fcntl.F_SEAL_SEAL


def head(kind: int = 0, files: int = 0, length: int = 1, magic: bytes = b"BJAN", version: int = 1, zero: int = 0) -> bytes:
    """A header, right or wrong."""
    return _answer.HEADER.pack(magic, version, kind, files, zero, length)


class Reading(unittest.TestCase):
    """The host's side, fed by hand."""

    def setUp(self) -> None:
        before = sorted(os.listdir("/proc/self/fd"))
        self.addCleanup(lambda: self.assertEqual(sorted(os.listdir("/proc/self/fd")), before, "a descriptor is left"))
        self.ours, self.theirs = socket.socketpair()
        self.addCleanup(self.ours.close)
        self.addCleanup(self.theirs.close)

    def read(self, codec: Codec = _codec._plain) -> Any:
        """What the answer comes to; None if it never was whole."""
        answer = Answer(codec)
        self.theirs.close()
        try:
            while not answer.is_whole:
                if not answer.receive(self.ours):
                    return None
            return answer.kind, answer.value()
        finally:
            discard(answer.take_files())

    def refused(self, data: bytes, fds: Sequence[int] = (), codec: Codec = _codec._plain) -> str:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.theirs.sendmsg([data], rights)
        for fd in fds:
            os.close(fd)
        with self.assertRaises(ResultError) as caught:
            self.read(codec)
        return str(caught.exception)

    def memory(self, data: bytes, seals: int = ALL_SEALS) -> int:
        fd = os.memfd_create("t", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.write(fd, data)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
        return fd

    def test_what_is_sent_is_read(self) -> None:
        codec = Codec()
        value = {"a": [1, b"x" * 500], "b": (None,)}
        parts, files = codec.encode_parts(value, 400, 8)
        self.assertEqual(len(files), 1)
        send_answer(self.theirs.fileno(), _answer.VALUE, parts, files)
        self.assertEqual(self.read(), (_answer.VALUE, value))

    def test_byte_by_byte(self) -> None:
        message = _codec.encode("text")
        answer = Answer(Codec())
        for byte in head(length=len(message)) + message:
            self.assertFalse(answer.is_whole)
            self.theirs.send(bytes([byte]))
            self.assertTrue(answer.receive(self.ours))
        self.assertEqual((answer.is_whole, answer.value()), (True, "text"))

    def test_what_ends_early_is_no_answer(self) -> None:
        for data in (b"", b"BJ", head(), head(length=5) + b"\xf6"):
            ours, theirs = socket.socketpair()
            with ours, theirs:
                theirs.send(data)
                theirs.close()
                answer = Answer(Codec())
                while answer.receive(ours):
                    pass
                self.assertFalse(answer.is_whole)

    def test_headers_that_nobody_writes(self) -> None:
        wrong = [head(magic=b"XXXX"), head(version=2), head(kind=5), head(files=65), head(zero=1), b"\x80\x04" + b"." * 40]
        for data in wrong:
            self.ours, self.theirs = socket.socketpair()
            with self.ours, self.theirs:
                self.assertIn("does not begin as an answer does", self.refused(data + b"\xf6"))

    def test_lengths_are_looked_at_before_anything_is_made(self) -> None:
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        self.assertIn("more than", self.refused(head(length=1 << 40) + b"\xf6"))
        self.assertLess(tracemalloc.get_traced_memory()[1], 1 << 20)

    def test_words_have_their_own_bound(self) -> None:
        self.assertIn("more than", self.refused(head(kind=1, length=2 << 20)))

    def test_something_follows(self) -> None:
        self.assertIn("after its end", self.refused(head(length=1) + b"\xf6\xf6"))

    def test_messages_that_nobody_writes(self) -> None:
        deep = b"\x81" * 5000 + b"\xf6"
        wide = b"\x9b" + struct.pack(">Q", 1 << 60)
        for message in (deep, wide, b"\x5b" + struct.pack(">Q", 1 << 62), b"\xff", b"\xd9\xbe\x0d\x00", b"\xd9\xbe\x0e\x00"):
            self.ours, self.theirs = socket.socketpair()
            with self.ours, self.theirs:
                self.assertIn("malformed", self.refused(head(length=len(message)) + message))

    def test_files_that_could_change_are_not_read(self) -> None:
        message = _codec_types.own_head(_codec_types.TAG_FILE) + b"\0"
        with tempfile.TemporaryFile() as plain:
            plain.write(b"x")
            plain.flush()
            wrong = [
                os.dup(plain.fileno()),
                os.open("/dev/zero", os.O_RDONLY),
                os.open("/proc/self/status", os.O_RDONLY),
                self.memory(b"x", 0),
                self.memory(b"x", fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW),
                self.memory(b"x", fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW),
            ]
            for fd in wrong:
                self.ours, self.theirs = socket.socketpair()
                with self.ours, self.theirs:
                    self.assertIn("can still change", self.refused(head(files=1, length=len(message)) + message, [fd]))

    def test_files_beyond_the_bound_are_not_read(self) -> None:
        fd = os.memfd_create("t", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.truncate(fd, 1 << 40)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, ALL_SEALS)
        message = _codec_types.own_head(_codec_types.TAG_FILE) + b"\0"
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        self.assertIn("max_result", self.refused(head(files=1, length=len(message)) + message, [fd]))
        self.assertLess(tracemalloc.get_traced_memory()[1], 1 << 20)

    def test_their_sum_counts(self) -> None:
        fds = [self.memory(bytes(600)) for _ in range(2)]
        message = b"\x82" + b"".join(_codec_types.own_head(_codec_types.TAG_FILE) + bytes([i]) for i in range(2))
        self.assertIn("max_result", self.refused(head(files=2, length=len(message)) + message, fds, Codec(max_bytes=1000)))

    def test_files_too_many_too_few_or_out_of_turn(self) -> None:
        tag = _codec_types.own_head(_codec_types.TAG_FILE)
        cases = [
            (b"\xf6", 2, 1),
            (b"\xf6", 0, 1),
            (b"\xf6", 1, 0),
            (tag + b"\1", 1, 1),
            (b"\x82" + 2 * (tag + b"\0"), 1, 1),
            (b"\xf6", 64, 65),
            (tag + b"\x20", 1, 1),
        ]
        for message, promised, sent in cases:
            self.ours, self.theirs = socket.socketpair()
            with self.ours, self.theirs:
                fds = [self.memory(b"x") for _ in range(sent)]
                self.assertIn("malformed", self.refused(head(files=promised, length=len(message)) + message, fds))

    def test_mutated_answers_are_read_or_refused(self) -> None:
        seed = random.SystemRandom().randrange(2**32)
        source = random.Random(seed)
        codec = Codec()
        value = {"a": [1, b"x" * 40, "text"], "b": (b"y" * 50, None, {b"z" * 60})}
        parts, buffers = codec.encode_parts(value, 30, 4)
        whole = head(files=len(buffers), length=sum(map(len, parts))) + b"".join(parts)
        for _ in range(2000):
            data = bytearray(whole)
            for _ in range(source.randrange(1, 4)):
                data[source.randrange(len(data))] = source.choice([0, 1, 255, source.randrange(256)])
            ours, theirs = socket.socketpair()
            fds = [self.memory(buffer, source.choice([ALL_SEALS, ALL_SEALS, 0])) for buffer in buffers]
            with ours, theirs:
                theirs.sendmsg(
                    [data[: source.choice([len(data), source.randrange(1, len(data))])]],
                    [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))],
                )
                theirs.close()
                answer = Answer(codec)
                try:
                    while not answer.is_whole and answer.receive(ours):
                        pass
                    if answer.is_whole:
                        answer.value()
                except ResultError:
                    pass
                except BaseException as error:
                    self.fail(f"seed {seed}: {error!r} of {bytes(data)!r}")
                finally:
                    discard(answer.take_files())
                    for fd in fds:
                        os.close(fd)

    def test_descriptors_that_come_late_are_refused(self) -> None:
        answer = Answer(Codec())
        self.theirs.send(head(length=2) + b"\x81")
        answer.receive(self.ours)
        fd = self.memory(b"x")
        self.theirs.sendmsg([b"\xf6"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd] * 50))])
        os.close(fd)
        answer.receive(self.ours)
        with self.assertRaisesRegex(ResultError, "too many"):
            answer.value()
        discard(answer.take_files())

    def test_files_that_cannot_be_read(self) -> None:
        message = _codec_types.own_head(_codec_types.TAG_FILE) + b"\0"
        fd = os.memfd_create("t", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.write(fd, b"x" * 100)
        for flags in (os.O_WRONLY, os.O_PATH):
            forged = os.open(f"/proc/self/fd/{fd}", flags | os.O_CLOEXEC)
            if flags == os.O_WRONLY:
                fcntl.fcntl(fd, fcntl.F_ADD_SEALS, ALL_SEALS)
            self.ours, self.theirs = socket.socketpair()
            with self.ours, self.theirs:
                self.assertIn("malformed", self.refused(head(files=1, length=len(message)) + message, [forged]))
        os.close(fd)

    def test_an_end_at_each_byte(self) -> None:
        codec = Codec()
        parts, buffers = codec.encode_parts([b"x" * 500, "text", 1.5], 400, 8)
        whole = head(files=len(buffers), length=sum(map(len, parts))) + b"".join(parts)
        for count in range(1, len(whole) + 1):
            fds = [self.memory(buffer) for buffer in buffers]
            self.ours, self.theirs = socket.socketpair()
            with self.ours, self.theirs:
                self.theirs.sendmsg([whole[:count]], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
                for fd in fds:
                    os.close(fd)
                self.assertEqual(self.read(codec) is None, count < len(whole), count)


# --- in jars ---


def write_answer(*pieces: bytes, pause: float = 0, wait: bool = False) -> None:
    """In a jar: write to the descriptor of the answer, and leave."""
    for piece in pieces:
        os.write(4, piece)
        time.sleep(pause)
    if wait:
        time.sleep(SLEEP)
    os._exit(0)


def send_file(seals: int, size: int, count: int) -> None:
    """In a jar: answer with a file that is not what it should be."""
    fd = os.memfd_create("t", os.MFD_ALLOW_SEALING)
    os.truncate(fd, size)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    message = b"\xd9\xbe\x0d\x00"
    data = struct.pack("<4sBBHIQ", b"BJAN", 1, 0, 1, 0, len(message)) + message
    with socket.socket(fileno=4) as link:
        link.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd] * count))])
    os._exit(0)


def tcp_that_lingers() -> List[int]:
    """In a jar: a socket whose last close waits, and the other end, which keeps it waiting."""
    server = socket.create_server(("127.0.0.1", 0))
    here, there = socket.create_connection(server.getsockname()), server.accept()[0]
    here.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, LINGER_SECONDS))
    here.setblocking(False)
    try:
        while True:
            here.send(bytes(1 << 16))
    except BlockingIOError:
        pass
    return [here.detach(), there.detach()]


def send_lingering(way: str, begins: bytes) -> None:
    """In a jar: something before, beside or in place of an answer that takes long to close."""
    fds = tcp_that_lingers()
    kind = socket.SOCK_SEQPACKET if way == "packets" else socket.SOCK_STREAM
    if way in ("queue", "packets"):
        near, far = socket.socketpair(socket.AF_UNIX, kind)
        if way == "packets":
            far.send(b"")
        far.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
        fds = [near.detach()]
    elif way == "listener":
        server, client = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        server.bind("/tmp/s")
        server.listen()
        client.connect("/tmp/s")
        client.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
        fds = [server.detach()]
    link = socket.socket(fileno=4)
    if begins:
        link.send(begins)
    link.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
    os._exit(0)


def send_many_files() -> None:
    """In a jar: descriptors without end."""
    with socket.socket(fileno=4) as link:
        for _ in range(20):
            link.sendmsg([b"B"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * 200))])
    os._exit(0)


def fail_to_be_made() -> None:
    raise ValueError("not here")


class Unmade:
    """Cannot be made where it arrives."""

    def __reduce__(self) -> Any:
        return fail_to_be_made, ()


def write_everywhere() -> str:
    """In a jar: every descriptor there is."""
    for fd in range(1, 100):
        try:
            os.write(fd, b"\x80\x04garbage" * 10)
        except OSError:
            pass
    return "done"


def kill_everything() -> List[int]:
    """In a jar of its own pid namespace: whoever can be seen."""
    seen = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    for pid in (-1, os.getppid(), *seen):
        if pid not in (os.getpid(), 0):
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
    return seen


def trace_everything() -> List[int]:
    """In a jar: which processes other than itself can be traced."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    traced = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid() and libc.ptrace(16, int(name), 0, 0) == 0:
            traced.append(int(name))
    return traced


def read_descriptors() -> List[Any]:
    """In a jar: what comes out of the call's own descriptors."""
    found: List[Any] = []
    for fd in (3, 4):
        try:
            os.set_blocking(fd, False)
            found.append(os.read(fd, 100))
        except OSError as error:
            found.append(error.errno)
    return found


class Hostile(PackageCase):
    """Functions that attack whoever called them."""

    def setUp(self) -> None:
        super().setUp()
        self.pool = belljar.Pool(concurrency=1, timeout=20)
        self.addCleanup(self.pool.close)
        self.pool.call(len, "")

    def refused(self, fn: Any, *args: Any, **options: Any) -> belljar.ResultError:
        with self.assertRaises(belljar.ResultError) as caught:
            self.pool.call(fn, *args, **options)
        self.assertIsNotNone(caught.exception.result)
        self.assertEqual(self.pool.call(len, "ab"), 2)
        return caught.exception

    def test_forged_answers(self) -> None:
        deep = b"\x81" * 5000 + b"\xf6"
        for data in (
            b"\x80\x04" + b"x" * 100,
            head(length=1 << 50),
            head(kind=9),
            head(length=len(deep)) + deep,
            head(length=9) + b"\x5b" + struct.pack(">Q", 1 << 62),
            head(length=1) + b"\xf6\xf6",
            head(kind=1, length=1) + b"\xf6",
            head(kind=3, length=1) + b"\x80",
            head(kind=1, length=3) + b"\xa1\x60\x60",
            head(files=1) + b"\xf6",
        ):
            with self.subTest(data[:30]):
                self.refused(write_answer, data)

    def test_one_that_stays_after_nonsense_is_ended(self) -> None:
        def stay() -> None:
            write_answer(b"nonsense" * 10, wait=True)

        error = self.refused(stay, timeout=None)
        assert error.result is not None
        self.assertEqual(error.result.outcome, "cancelled")
        with self.assertRaises(belljar.ResultError):
            self.pool.call(stay, timeout=None, on_output=print)

    def test_an_early_end(self) -> None:
        for data in (b"", b"BJ", head(length=100), head(length=100) + b"\xf6"):
            with self.assertRaises(belljar.CallEnded) as caught:
                self.pool.call(write_answer, data)
            assert caught.exception.result is not None
            self.assertEqual(caught.exception.result.outcome, "exited")

    def test_a_trickle_ends_with_the_timeout(self) -> None:
        pieces = [head(length=1000), *[b"\xf6"] * 500]
        with self.assertRaises(belljar.CallTimeout):
            self.pool.call(lambda: write_answer(*pieces, pause=0.1), timeout=1, grace=0)

    def test_files(self) -> None:
        # One more: the end of the last run may be still to come, and a zygote may be on its way.
        before = open_fds()
        for seals, size, count in ((0, 100, 1), (ALL_SEALS, 1 << 40, 1), (ALL_SEALS, 5, 2), (ALL_SEALS, 5, 200)):
            self.refused(send_file, seals, size, count)
            self.wait_for(lambda: len(open_fds()) <= len(before) + 1, "the descriptors are closed")
        self.assertEqual(self.pool.call(send_file, ALL_SEALS, 5, 1), bytes(5))
        self.refused(send_many_files)
        self.wait_for(lambda: len(open_fds()) <= len(before) + 1, "the descriptors are closed")

    def test_descriptors_that_take_long_to_close(self) -> None:
        if belljar.run(["true"], workdir=None).enforced["rung"] != "namespace":
            self.skipTest("needs:userns there is no loopback without a network namespace")
        whole = head(length=1) + b"\xf6"
        begun = time.monotonic()
        for way in ("plain", "queue", "packets", "listener"):
            for begins in (b"", head(length=9), whole):
                with self.subTest(way, begins=begins):
                    for options in ({}, {"on_output": lambda *piece: None}):
                        try:
                            self.pool.call(send_lingering, way, begins, **options)
                        except (belljar.ResultError, belljar.CallEnded):
                            pass
        self.assertEqual(self.pool.call(len, "ab"), 2)
        self.assertLess(time.monotonic() - begun, LINGER_SECONDS)

    def test_nothing_that_is_said_inside_means_that_nothing_ran(self) -> None:
        words = _codec.encode({"type": "belljar.SendError", "message": "nothing ran", "traceback": ""})
        for kind in range(1, 5):
            with self.assertRaises(belljar.CallError) as caught:
                self.pool.call(write_answer, head(kind=kind, length=len(words)) + words)
            self.assertNotIsInstance(caught.exception, (belljar.SendError, belljar.StartError, belljar.PolicyError))
            assert caught.exception.result is not None
            self.assertEqual(caught.exception.result.outcome, "exited")

    def test_arguments_that_come_to_nothing_inside(self) -> None:
        with self.assertRaises(belljar.CallError) as caught:
            self.pool.call(len, Unmade())
        self.assertEqual((caught.exception.type_name, caught.exception.message), ("ValueError", "not here"))

    def test_every_descriptor(self) -> None:
        self.refused(write_everywhere)
        found = self.pool.call(read_descriptors)
        self.assertNotIsInstance(found[1], bytes)

    def test_killing_and_tracing_whatever_it_sees(self) -> None:
        if belljar.run(["true"], workdir=None).enforced["rung"] != "namespace":
            self.skipTest("needs:a pid namespace, or a hole would hit whoever runs the tests")
        engine = engine_pid()
        with self.pool, belljar.Pool(concurrency=1) as other:
            try:
                seen = other.call(kill_everything)
                self.assertNotIn(engine, seen)
            except belljar.CallEnded:
                pass  # it hit itself
            self.assertEqual(other.call(trace_everything), [])
            self.assertEqual(other.call(len, "ab"), 2)
        self.assertEqual(engine_pid(), engine)

    def test_answers_are_data_only(self) -> None:
        # What would name a class or a function is only text or bytes.
        self.assertEqual(self.pool.call(lambda: "cos\nsystem\n(S'true'\ntR."), "cos\nsystem\n(S'true'\ntR.")


class Sizes(PackageCase):
    """What large values cost the host."""

    def growth(self, script: str) -> float:
        """How far the peak of a host grows, in payloads of 100 MB."""
        text = self.host(
            "import belljar, resource, os\n"
            "belljar.call(len, '')\n"
            "size = 100 << 20\n"
            "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10\n"
            + script
            + "\nprint((peak() - before) / size)"
        )
        return float(text)

    def test_a_large_result(self) -> None:
        script = "before = peak()\nvalue = belljar.call(bytes, size, max_result='200M', memory='1G')\nassert len(value) == size"
        self.assertLess(self.growth(script), 2.1)

    def test_a_large_text(self) -> None:
        script = "before = peak()\nvalue = belljar.call(lambda: 'x' * size, max_result='200M', memory='1G')\n"
        script += "assert len(value) == size"
        self.assertLess(self.growth(script), 2.1)

    def test_a_large_argument(self) -> None:
        script = "data = bytearray(os.urandom(1 << 20) * 100)\nbefore = peak()\n"
        script += "assert belljar.call(len, data, memory='1G') == size"
        self.assertLess(self.growth(script), 2.1)
        script = "data = os.urandom(1 << 20) * 100\nbefore = peak()\nassert belljar.call(len, data, memory='1G') == size"
        self.assertLess(self.growth(script), 2.1)


class Arrays(PackageCase):
    """numpy arrays, where numpy is."""

    def setUp(self) -> None:
        super().setUp()
        try:
            import numpy
        except ImportError:
            self.skipTest("needs:numpy")
        self.numpy = numpy

    def test_arrays_cross(self) -> None:
        numpy = self.numpy
        values = [
            numpy.arange(12, dtype="<f8").reshape(3, 4),
            numpy.asfortranarray(numpy.arange(6).reshape(2, 3)),
            numpy.zeros((0, 3), "u1"),
            numpy.array(5.5),
            numpy.array([True, False]),
            numpy.array(["ab", "c"]),
            numpy.array(["2024-01-01"], "M8[ns]"),
            numpy.arange(200_000, dtype=">i4"),
            numpy.array([1 + 2j]),
        ]
        for value in values:
            parts, files = Codec().encode_parts([value], 1000, 8)
            self.assertEqual(len(files), int(value.nbytes >= 1000))
            ours, theirs = socket.socketpair()
            with ours, theirs:
                send_answer(theirs.fileno(), 0, parts, files)
                answer = Answer(Codec())
                while not answer.is_whole:
                    answer.receive(ours)
                (back,) = answer.value()
                discard(answer.take_files())
            self.assertEqual((back.dtype, back.shape, type(back)), (value.dtype, value.shape, numpy.ndarray))
            self.assertTrue(numpy.array_equal(back, value))
            self.assertTrue(back.flags.writeable)

    def test_what_is_no_plain_array(self) -> None:
        numpy = self.numpy
        for value in (numpy.array([object()]), numpy.zeros(2, "i4,f8"), numpy.float64(1), numpy.ma.array([1])):
            with self.assertRaises(ResultError):
                Codec().encode([value])

    def test_forged_arrays(self) -> None:
        text = lambda word: bytes([0x60 | len(word)]) + word.encode()  # noqa: E731
        data = b"\x48" + bytes(8)
        tag = _codec_types.own_head(_codec_types.TAG_ARRAY)
        for dtype, shape in (("|O8", b"\x81\1"), ("<f8", b"\x81\2"), ("<f8", b"\x81\x20"), ("f8", b"\x81\1"), ("<f9", b"\x81\1")):
            with self.assertRaises(ResultError):
                Codec().decode(tag + b"\x83" + text(dtype) + shape + data)
        with self.assertRaises(ResultError):
            Codec().decode(tag + b"\x83" + text("<f8") + b"\x81\x1b" + struct.pack(">Q", (1 << 61) + 1) + data)
        self.assertEqual(Codec().decode(tag + b"\x83" + text("<f8") + b"\x81\1" + data)[0], 0.0)


class WithoutArrays(unittest.TestCase):
    def test_nothing_is_imported_because_of_a_result(self) -> None:
        if "numpy" in sys.modules:
            self.skipTest("needs:a process without numpy")
        tag = _codec_types.own_head(_codec_types.TAG_ARRAY)
        with self.assertRaisesRegex(ResultError, "numpy is not loaded"):
            Codec().decode(tag + b"\x83\x63<f8\x81\1\x48" + bytes(8))
        self.assertNotIn("numpy", sys.modules)


if __name__ == "__main__":
    unittest.main()
