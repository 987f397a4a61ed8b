# SPDX-License-Identifier: Apache-2.0
"""Descriptors as a way out: inherited ones, standard input, the engine's own, and those handed from jar to jar."""

from __future__ import annotations

import os
import socket
import subprocess
import unittest
from typing import List

from adversarial_support import AttackCase, contents, host, picture
from harness import paths, runner
from harness.bounds import BOUND
from harness.case import on_ways
from harness.result import parse_line
from harness.runner import LANDLOCK, NAMESPACE, PROCESS, Arg, Completed
from harness.terminal import Terminal

F_SETPIPE_SZ = 1031


@on_ways(NAMESPACE, LANDLOCK, PROCESS)
class Inherited(AttackCase):
    """Layer: the engine closes all but 0, 1 and 2 before anything of the command runs."""

    def leaked(self, numbers: List[int], options: List[str], *args: Arg) -> Completed:
        """Belljar with directories, sockets, memory files and pipes open at these numbers."""
        leak = [paths.tool("attack_leak"), str(self.outside), *map(str, numbers), "--"]
        words = [os.fsencode(word) for word in leak] + runner.command([*options, *args], self.way)
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.work, env=self.env
        )
        self.addCleanup(self._stop, process)
        done = runner.finish(process)
        self.assertEqual(done.status, 0, done)
        return done

    def list_open(self, numbers: List[int], options: List[str]) -> bytes:
        return self.leaked(numbers, options, "--", self.tool("fdlist")).stdout.strip()

    def test_low_numbers(self) -> None:
        """Low ones are those that the engine uses itself: one that it does not use must not stay open."""
        for options in ([], ["--stdin", "null"], ["--json"], ["--pty"], ["--pty", "--stdin", "null"], ["--events"]):
            for numbers in ([3], [4], [5], [6], [7], [3, 4, 5, 6, 7, 8, 9, 10, 11, 12]):
                with self.subTest(options=options, numbers=numbers):
                    said = self.list_open(numbers, options)
                    if options in (["--json"], ["--events"]):
                        self.assertIn(b"0 1 2\\n", said)
                    else:
                        self.assertEqual(said, b"0 1 2")

    def test_many_and_high_numbers(self) -> None:
        for options in ([], ["--pty"]):
            with self.subTest(options=options):
                self.assertEqual(self.list_open([*range(20, 1000, 7), 1000, 1020], options), b"0 1 2")

    def test_the_status_descriptor_cannot_be_written_by_the_command(self) -> None:
        """With it a command could tell its own result. (The fourth kind is a file that can be written.)"""
        for number in (3, 4, 5, 6, 7):
            for options in ([], ["--pty"]):
                with self.subTest(number=number, options=options):
                    done = self.leaked(
                        [300, 301, 302, number], ["--status-fd", str(number), *options], "--", self.tool("fdlist")
                    )
                    self.assertEqual(done.stdout.strip(), b"0 1 2")


@on_ways(NAMESPACE, LANDLOCK)
class Stdin(AttackCase):
    """Layer: the engine hands over only what cannot lead anywhere, and relays the rest."""

    PROBE = """
import stat
print("kind", "relay" if stat.S_ISFIFO(os.fstat(0).st_mode) else "direct")
attempt("fchdir", lambda: os.fchdir(0))
attempt("openat", lambda: os.open("secret", os.O_RDONLY, dir_fd=0))
attempt("openat_up", lambda: os.open("..", os.O_RDONLY, dir_fd=0))
attempt("through_proc", lambda: os.listdir("/proc/self/fd/0/"))
attempt("reopen_write", lambda: os.open("/proc/self/fd/0", os.O_WRONLY | os.O_NONBLOCK))
attempt("reopen_both", lambda: os.open("/proc/self/fd/0", os.O_RDWR | os.O_NONBLOCK))
attempt("truncate", lambda: os.truncate("/proc/self/fd/0", 0))
attempt("ftruncate", lambda: os.ftruncate(0, 0))
attempt("write", lambda: os.write(0, b"attack"))
attempt("fchmod", lambda: os.fchmod(0, 0o777))
attempt("connect", lambda: socket.socket(fileno=os.dup(0)).connect("/nowhere"))
attempt("tiocsti", lambda: fcntl.ioctl(0, 0x5412, b"x"))
"""

    def probe(self, stdin: int, *options: str) -> "dict[str, str]":
        done = self.jar(*options, *self.python(self.PROBE), stdin=stdin)
        self.assertEqual(done.status, 0, done)
        return self.answers(done.stdout.decode())

    def test_a_directory_is_refused(self) -> None:
        descriptor = os.open(self.outside, os.O_RDONLY)
        self.addCleanup(os.close, descriptor)
        for options in ([], ["--pty"]):
            done, result = self.status(*options, *self.sh("touch ran"), stdin=descriptor)
            self.assertEqual((done.status, result["error"]["stage"]), (125, "files"))
        self.assertFalse((self.work / "ran").exists())

    def test_a_path_descriptor_is_no_way_in(self) -> None:
        for target in (self.outside, self.secret):
            descriptor = os.open(target, os.O_PATH)
            self.addCleanup(os.close, descriptor)
            before = contents(self.outside)
            done = self.jar(*self.python(self.PROBE), stdin=descriptor)
            answers = self.answers(done.stdout.decode())
            ways = ("fchdir", "openat", "openat_up", "through_proc", "connect")
            self.assertNotIn("ok", [answers.get(name) for name in ways], done)
            self.assertEqual(contents(self.outside), before)

    def check_file(self, answers: "dict[str, str]") -> None:
        """Layers: a relay, so that the file is not there at all; or Landlock (EACCES), which keeps it from being opened."""
        if answers["kind"] == "direct":
            self.assertEqual({answers[name] for name in ("reopen_write", "reopen_both", "truncate")}, {"EACCES"})
            self.assertNotEqual(answers["fchmod"], "ok")
        self.assertNotEqual(answers["ftruncate"], "ok")
        self.assertNotEqual(answers["write"], "ok")

    def test_a_file_opened_for_reading_cannot_be_written(self) -> None:
        before = picture(self.outside)
        with open(self.secret, "rb") as stream:
            self.check_file(self.probe(stream.fileno()))
        self.assertEqual(picture(self.outside), before)

    def test_a_file_opened_for_both_cannot_be_written_either(self) -> None:
        """It is the command's input; that the caller's descriptor can do more is nobody's invitation."""
        before = picture(self.outside)
        with open(self.secret, "r+b") as stream:
            answers = self.probe(stream.fileno())
        if answers["kind"] == "relay":
            self.assertEqual(picture(self.outside), before)

    def test_a_file_named_with_the_option_cannot_be_written(self) -> None:
        before = picture(self.outside)
        done = self.jar("--stdin", self.secret, *self.python(self.PROBE))
        self.check_file(self.answers(done.stdout.decode()))
        self.assertEqual(picture(self.outside), before)

    def test_a_socket_is_relayed(self) -> None:
        ours, theirs = socket.socketpair()
        self.addCleanup(ours.close)
        self.addCleanup(theirs.close)
        ours.shutdown(socket.SHUT_WR)
        answers = self.probe(theirs.fileno())
        self.assertNotEqual(answers["write"], "ok")
        ours.setblocking(False)
        with self.assertRaises(BlockingIOError):
            ours.recv(10)

    def test_nothing_can_be_put_back_into_a_pipe(self) -> None:
        """In `while read x; do belljar run ...; done` the loop reads the same pipe: what the command writes, it obeys."""
        reader, writer = os.pipe()
        os.write(writer, b"one\ntwo\n")
        script = "import os\nos.read(0, 4)\nattempt('inject', lambda: os.write(os.open('/proc/self/fd/0', os.O_WRONLY), b'INJECTED'))"
        done = self.jar(*self.python(script), stdin=reader)
        os.close(writer)
        rest = os.read(reader, 100)
        os.close(reader)
        self.assertNotIn(b"INJECTED", rest, done)

    def test_a_terminal_cannot_be_typed_into(self) -> None:
        """Layers: the terminal is relayed, so there is none to type into; and the filter refuses the call."""
        terminal = Terminal()
        self.addCleanup(terminal.close)
        script = """
for fd in (0, 1, 2):
    for command in (0x5412, 0x100005412, 0xffffffff00005412, 0x541c, 0xdead0000541c, 0x5423):
        try:
            call(16 if os.uname().machine == "x86_64" else 29, fd, ctypes.c_ulong(command), b"!")
            print("typed", fd, hex(command))
        except OSError as error:
            print("refused", error.errno)
try:
    os.open("/dev/tty", os.O_RDWR)
    print("has a terminal")
except OSError:
    print("no terminal")
print("END")
"""
        for options in ([], ["--pty"]):
            with self.subTest(options=options):
                terminal.start([*options, *self.python(script)], way=self.way, env=self.env, cwd=self.work)
                terminal.expect(b"END")
                terminal.end()
                screen = terminal.screen()
                self.assertNotIn(b"typed", screen)
                self.assertEqual(screen.count(b"refused 1\r"), screen.count(b"refused"))
                if not options:
                    self.assertIn(b"no terminal", screen)
                terminal.output = b""
                terminal.told = b""


@on_ways(NAMESPACE, LANDLOCK)
class Engine(AttackCase):
    def test_the_executable_cannot_be_overwritten(self) -> None:
        """Layer: process 1 and the keeper are not dumpable (EACCES), and the command's own exe is not belljar's."""
        before = os.stat(paths.belljar())
        script = """
for pid in ("self", "1", str(os.getppid()), "thread-self"):
    attempt(pid + " read", lambda: os.open(f"/proc/{pid}/exe", os.O_RDONLY) if pid not in ("self", "thread-self") else None)
    attempt(pid + " write", lambda: os.open(f"/proc/{pid}/exe", os.O_WRONLY))
    attempt(pid + " truncate", lambda: os.open(f"/proc/{pid}/exe", os.O_RDONLY | os.O_TRUNC))
    attempt(pid + " map_files", lambda: os.listdir(f"/proc/{pid}/map_files") if pid not in ("self", "thread-self") else None)
print("compare", os.path.basename(os.readlink("/proc/self/exe")))
"""
        answers = self.answers(self.json(*self.python(script))["stdout"])
        for name, answer in answers.items():
            if name.endswith(("write", "truncate")):
                self.assertIn(answer, ("EACCES", "EROFS", "ETXTBSY", "EPERM", "ENOENT"), name)
            elif name.startswith(("1", *"23456789")):
                self.assertIn(answer, ("EACCES", "EPERM"), name)
        after = os.stat(paths.belljar())
        self.assertEqual((before.st_mtime_ns, before.st_ino, before.st_size), (after.st_mtime_ns, after.st_ino, after.st_size))

    def test_streams_reopened_the_other_way_round_stay_in_the_jar(self) -> None:
        script = """
for fd in (1, 2):
    attempt(f"read back {fd}", lambda: os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_NONBLOCK))
print("still here")
"""
        result = self.json(*self.python(script))
        self.assertEqual(result["outcome"], "exited")


@on_ways(NAMESPACE)
class Handed(AttackCase):
    """Two jars with one workdir can hand each other descriptors over a Unix socket in it."""

    RECEIVE = """
server = socket.socket(socket.AF_UNIX)
server.bind("meeting")
server.listen(1)
server.settimeout(60)
print("ready", flush=True)
peer, _ = server.accept()
data, ancillary, _, _ = peer.recvmsg(10, socket.CMSG_SPACE(4))
fd = array.array("i", ancillary[0][2])[0]
"""
    SEND = """
peer = socket.socket(socket.AF_UNIX)
peer.settimeout(60)
peer.connect("meeting")
peer.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [FD]))])
peer.recv(1)
"""

    def receive(self, script: str) -> "subprocess.Popen[bytes]":
        """A jar that waits for a descriptor."""
        server = self.start(*self.python(self.RECEIVE + script))
        assert server.stdout is not None
        runner.read_until(server.stdout, b"ready")
        return server

    def test_a_stranger_who_writes_to_our_output_does_not_hold_our_end(self) -> None:
        """Layer: the engine drains what is in the pipe when the jar is gone, not what others add."""
        writer = self.tool("writer")
        receiver = f"""
try:
    fcntl.fcntl(fd, {F_SETPIPE_SZ}, 1 << 20)
except OSError:
    pass
writers = [subprocess.Popen([{writer!r}, "o:0:1048576"], stdout=fd) for _ in range(4)]
time.sleep(0.3)
peer.close()
for _ in range(12000):
    if os.path.exists("over"): break
    time.sleep(0.01)
for one in writers: one.kill()
"""
        for options in (["--json"], ["--events", "--redact-secrets"], ["--json", "--redact-secrets", "--redact", "abcd"]):
            with self.subTest(options=options):
                for name in ("meeting", "over"):
                    (self.work / name).unlink(missing_ok=True)
                server = self.receive(receiver)
                # They write until they hear that it is over, which is longer than any bound.
                done = self.jar(*options, *self.python(self.SEND.replace("FD", "1")))
                self.assertIsNone(server.poll())
                (self.work / "over").touch()
                server.communicate(timeout=BOUND)
                self.assertEqual(done.status, 0)
                result = parse_line(done.stdout) if "--json" in options else parse_line(done.stdout.splitlines()[-1] + b"\n")["result"]
                self.assertGreater(result["stdout_bytes"], 0, "the strangers wrote nothing meanwhile")

    def test_a_directory_from_another_jar_shows_nothing_more(self) -> None:
        """Layer: Landlock: what a jar may open does not depend on the descriptor it starts from."""
        host.need("landlock")
        receiver = """
attempt("open", lambda: os.open("secret", os.O_RDONLY, dir_fd=fd))
attempt("list", lambda: os.listdir(fd))
attempt("write", lambda: os.open("new", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
peer.close()
"""
        sender = self.SEND.replace("FD", f'os.open("{self.outside}", os.O_RDONLY)')
        server = self.receive(receiver)
        self.jar("--rw", self.outside, *self.python(sender))
        said, _ = server.communicate(timeout=BOUND)
        answers = self.answers(said.decode())
        self.assertEqual({answers.get("open"), answers.get("write")}, {"EACCES"}, said)


class Piped(AttackCase):
    def test_a_closed_reader_is_noticed(self) -> None:
        process = self.start("--json", "--", "sleep", "1000", self.marker, stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        process.wait(BOUND)


if __name__ == "__main__":
    unittest.main()
