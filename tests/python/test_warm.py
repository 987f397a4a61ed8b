# SPDX-License-Identifier: Apache-2.0
"""Warm interpreters: calls are forks of one, and none of them leaves a trace in it, in the next call, or beside it."""

from __future__ import annotations

import concurrent.futures
import ctypes
import errno
import marshal
import os
import random
import select
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple
from unittest import mock

import belljar
from belljar import _boot
from harness import census
from package_case import BOUND_SECONDS, PackageCase, engine_pid, tearDownModule  # noqa: F401

MODULE = "import secrets\nIDENTITY = secrets.token_hex(8)\nCHANGED = []\n"
# More than are made ahead.
ROUNDS = 30
# An ioctl: the number of a mount namespace, which no other ever has. Linux 6.11 and later.
NS_GET_MNTNS_ID = 0x8008B705


# --- what runs in jars ---


def of_module(name: str) -> Any:
    return sys.modules[name].IDENTITY


def change_module(name: str) -> Any:
    module: Any = sys.modules[name]
    module.CHANGED.append(1)
    return len(module.CHANGED)


def see_processes() -> Tuple[int, int, List[str]]:
    return os.getpid(), os.getppid(), sorted(name for name in os.listdir("/proc") if name.isdigit())


def namespace_number() -> int:
    """0 where there are none."""
    import fcntl

    with open("/proc/self/ns/mnt") as file:
        try:
            return int.from_bytes(fcntl.ioctl(file, NS_GET_MNTNS_ID, bytes(8)), sys.byteorder)
        except OSError:
            return 0


def numbers() -> Tuple[float, bytes, str]:
    return random.random(), os.urandom(8), next(tempfile._get_candidate_names())  # type: ignore[attr-defined]


def places() -> List[str]:
    return ["/tmp", "/var/tmp", "/dev/shm", "/run", os.environ["HOME"], os.getcwd()]


def leave_files() -> List[str]:
    for place in places():
        Path(place, "left").write_text("something")
    return places()


def see_files() -> List[str]:
    return [place for place in places() if os.path.exists(os.path.join(place, "left"))]


def times_of_places() -> List[int]:
    return [os.stat(place).st_mtime_ns for place in places()]


def set_time(place: str) -> None:
    os.utime(place, ns=(1, 1))


def leave_shared_memory() -> int:
    return ctypes.CDLL(None, use_errno=True).shmget(0x626A, 4096, 0o1666)  # type: ignore[no-any-return]


def see_shared_memory() -> int:
    return ctypes.CDLL(None, use_errno=True).shmget(0x626A, 4096, 0o666)  # type: ignore[no-any-return]


def leave_queue() -> int:
    """0, or why it could not be made."""
    made = ctypes.CDLL(None, use_errno=True).mq_open(b"/left", os.O_CREAT | os.O_RDWR, 0o600, None)
    return 0 if made >= 0 else ctypes.get_errno()


def see_queue() -> int:
    return int(ctypes.CDLL(None).mq_open(b"/left", os.O_RDWR))


def talk_to_itself() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        there, _ = server.accept()
        with there:
            there.sendall(b"x")
            return len(client.recv(1))


def packets() -> List[str]:
    line = next(line for line in Path("/proc/net/dev").read_text().splitlines() if "lo:" in line)
    return line.partition(":")[2].split()


def use_terminals() -> int:
    """What of them belongs to the call's own user can be changed, and is touched by use."""
    master, slave = os.openpty()
    os.write(master, b"x")
    os.close(slave)
    os.close(master)
    os.chmod("/dev/pts/ptmx", 0o600)
    return 1


def see_terminals() -> Tuple[int, List[str]]:
    return stat.S_IMODE(os.stat("/dev/pts/ptmx").st_mode), os.listdir("/dev/pts")


def send_nowhere() -> List[str]:
    """No packet leaves for a place to which there is no way, but the attempt is counted."""
    found = []
    for family, address in ((socket.AF_INET, ("192.0.2.1", 9)), (socket.AF_INET6, ("2001:db8::1", 9))):
        with socket.socket(family, socket.SOCK_DGRAM) as sock:
            try:
                sock.sendto(b"x", address)
            except OSError as error:
                found.append(errno.errorcode[error.errno or 0])
    return found


def failed_attempts() -> List[int]:
    lines = Path("/proc/net/snmp").read_text().splitlines()
    names, values = (line.split() for line in lines[:2])
    more = dict(line.split() for line in Path("/proc/net/snmp6").read_text().splitlines())
    return [int(values[names.index("OutNoRoutes")]), int(more["Ip6OutNoRoutes"])]


def keep_a_flow_label() -> None:
    """It lingers for a minute."""
    wanted = socket.inet_pton(socket.AF_INET6, "::1") + struct.pack("=IBBHHHI", 0, 0, 255, 1, 60, 60, 0)
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.IPPROTO_IPV6, 32, wanted)  # IPV6_FLOWLABEL_MGR


def flow_labels() -> List[str]:
    return Path("/proc/net/ip6_flowlabel").read_text().splitlines()[1:]


def look_up_a_route() -> None:
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
        sock.connect(("::1", 9))


def routes() -> str:
    return Path("/proc/net/rt6_stats").read_text()


def join_groups() -> None:
    """The report of it goes out some milliseconds later."""
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
        group = socket.inet_pton(socket.AF_INET6, "ff02::1234")
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, group + struct.pack("=I", 1))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        group = socket.inet_aton("239.1.2.3")
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group + socket.inet_aton("127.0.0.1"))


def packets_soon() -> List[str]:
    time.sleep(0.02)
    return packets()


def make_unnamed_files(count: int) -> List[int]:
    """Their numbers."""
    found = []
    for place in places():
        for _ in range(count):
            fd = os.open(place, os.O_TMPFILE | os.O_RDWR)
            found.append(os.fstat(fd).st_ino)
            os.close(fd)
    return found


def make_a_sibling() -> int:
    """The pid, or why there is none."""
    libc = ctypes.CDLL(None, use_errno=True)
    clone = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
    pid = libc.syscall(ctypes.c_long(clone), ctypes.c_long(0x8000 | signal.SIGCHLD), None, None, None, None)  # CLONE_PARENT
    if pid == 0:
        os._exit(0)
    return pid if pid > 0 else -ctypes.get_errno()


def change_proc() -> List[str]:
    """What of it belongs to a user who is root inside, or to everybody."""
    done = []
    for path, content in (("/proc/sys/kernel/pid_max", "400"), ("/proc/self/projid_map", "0 7 3\n")):
        try:
            Path(path).write_text(content)
            done.append(path)
        except OSError:
            pass
    for folder in ("/proc/net", "/proc/sys/kernel", "/proc/sys/net/ipv4"):
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            try:
                os.chmod(path, stat.S_IMODE(os.stat(path).st_mode) & 0o440)
                done.append(path)
            except OSError:
                pass
            try:
                os.utime(path, ns=(1, 1))
                done.append(path)
            except OSError:
                pass
    return done


def see_proc() -> List[Any]:
    modes = [os.stat(os.path.join("/proc/net", name)).st_mode for name in sorted(os.listdir("/proc/net"))]
    return [Path("/proc/sys/kernel/pid_max").read_text(), Path("/proc/self/projid_map").read_text(), modes]


def listen_and_wait(seconds: float) -> int:
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind("\0belljar-warm")
    abstract.listen()
    with socket.create_server(("127.0.0.1", 45678)):
        print("up", flush=True)
        time.sleep(seconds)
    return 1


def connect() -> List[bool]:
    found = []
    for family, address in ((socket.AF_INET, ("127.0.0.1", 45678)), (socket.AF_UNIX, "\0belljar-warm")):
        with socket.socket(family) as sock:
            found.append(sock.connect_ex(address) == 0)
    return found


def kill_everything() -> int:
    for number in (signal.SIGKILL, signal.SIGSTOP):
        for target in (-1, 1):
            try:
                os.kill(target, number)
            except (ProcessLookupError, PermissionError):
                pass
    return 1


def reach_out() -> Dict[str, str]:
    """What a hostile call would try to get out of its fork of the zygote."""
    libc = ctypes.CDLL(None, use_errno=True)
    found = {}
    calls = {
        "setns": lambda: libc.setns(os.open("/proc/self/ns/mnt", os.O_RDONLY), 0),
        "unshare": lambda: libc.unshare(0x10000000),
        "mount": lambda: libc.mount(b"none", b"/tmp", b"tmpfs", 0, None),
        "umount": lambda: libc.umount2(b"/tmp", 2),
        "chroot": lambda: libc.chroot(b"/tmp"),
        "trace": lambda: libc.ptrace(16, 1, 0, 0),
    }
    for name, call in calls.items():
        found[name] = "done" if call() >= 0 else os.strerror(ctypes.get_errno())
    for path in ("/proc/1/mem", "/proc/1/environ", "/proc/1/maps", "/proc/1/fd", "/proc/1/root"):
        try:
            found[path] = repr(os.listdir(path) if path.endswith(("fd", "root")) else open(path, "rb").read(1))
        except OSError as error:
            found[path] = type(error).__name__
    return found


def status_lines() -> Dict[str, str]:
    lines = Path("/proc/self/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def descriptors() -> List[str]:
    return sorted(os.listdir("/proc/self/fd"), key=int)


def threads() -> int:
    return threading.active_count()


def write_outside(paths: List[str]) -> List[str]:
    done = []
    for path in paths:
        try:
            Path(path, "written").write_text("x")
            done.append(path)
        except OSError:
            pass
    return done


def hold(size: int) -> None:
    """For longer than anybody takes to look."""
    held = bytearray(size)
    time.sleep(1000)
    del held


def leave_a_child(marker: str) -> int:
    """Which stands there for all to see: a program that has just been executed has no arguments for a moment."""
    script = "echo here; while :; do kill -STOP $$; done"
    child = subprocess.Popen(["/bin/sh", "-c", script, marker], stdout=subprocess.PIPE, start_new_session=True)
    assert child.stdout is not None
    child.stdout.readline()
    return child.pid


def has_hung_up(sock: socket.socket) -> bool:
    poll = select.poll()
    poll.register(sock, 0)
    return bool(poll.poll(0))


class WarmCase(PackageCase):
    """One pool for all tests of a class, with a module that can be told apart from one loaded anew."""

    folder: "tempfile.TemporaryDirectory[str]"
    pool: belljar.Pool
    concurrency = 1
    name = "bjt_module_loaded_ahead"

    @classmethod
    def setUpClass(cls) -> None:
        if belljar.run(["true"], workdir=None).enforced["rung"] != "namespace":
            raise unittest.SkipTest("needs:userns calls are forks of a zygote only on the rung namespace")
        cls.folder = tempfile.TemporaryDirectory(prefix="bjt-")
        os.chmod(cls.folder.name, 0o755)
        Path(cls.folder.name, cls.name + ".py").write_text(MODULE)
        cls.pool = belljar.Pool([cls.name], import_paths=[cls.folder.name], concurrency=cls.concurrency, env={"A": "pool"})

    @classmethod
    def tearDownClass(cls) -> None:
        cls.pool.close()
        cls.folder.cleanup()

    def identity(self) -> Any:
        return self.pool.call(of_module, self.name)


class Forks(WarmCase):
    """One interpreter, many calls."""

    def test_what_was_loaded_ahead_is_loaded_once(self) -> None:
        self.assertEqual(len({self.identity() for _ in range(ROUNDS)}), 1)

    def test_what_a_call_changes_is_changed_for_itself_only(self) -> None:
        self.assertEqual({self.pool.call(change_module, self.name) for _ in range(ROUNDS)}, {1})

    def test_nobody_was_in_the_namespaces_of_a_call_before(self) -> None:
        if not self.pool.call(namespace_number):
            self.skipTest("needs:numbers of mount namespaces, which Linux 6.11 gives")
        self.assertEqual(len({self.pool.call(namespace_number) for _ in range(ROUNDS)}), ROUNDS)

    def test_numbers_are_not_the_same_in_every_call(self) -> None:
        for drawn in zip(*(self.pool.call(numbers) for _ in range(5))):
            self.assertEqual(len(set(drawn)), 5)

    def test_a_fork_looks_like_a_program_of_its_own(self) -> None:
        self.assertEqual(self.pool.call(descriptors), ["0", "1", "2", "3", "4"])  # one is where the answer goes, one lists them
        self.assertEqual(self.pool.call(threads), 1)
        self.assertEqual(self.pool.call(os.getcwd), "/workspace")

    def test_the_environment_of_a_call(self) -> None:
        self.assertEqual(self.pool.call(os.getenv, "A"), "pool")
        self.assertEqual(self.pool.call(os.getenv, "B", env={"B": "call"}), "call")
        self.assertEqual(self.pool.call(os.getenv, "A", env={"B": "call"}), "pool")
        os.environ["BJT_LATER"] = "said after the opening"
        self.addCleanup(os.environ.pop, "BJT_LATER")
        self.assertEqual(self.pool.call(os.getenv, "BJT_LATER", pass_env=["BJT_LATER"]), "said after the opening")
        self.assertIsNone(self.pool.call(os.getenv, "BJT_LATER"))


class Ahead(WarmCase):
    """A run that waits for its call."""

    def held(self) -> Any:
        self.pool.call(len, "")
        zygote: Any = self.pool._zygotes._zygote  # type: ignore[union-attr]
        return zygote._forks

    def test_there_is_one_after_a_call_and_calls_use_it(self) -> None:
        for size in (0, 1000, 60_000, 70_000, 3_000_000):
            waiting = self.held()[0]
            self.assertEqual(self.pool.call(len, "x" * size), size)
            self.assertNotIn(waiting, self.held())

    def test_one_that_has_died_is_not_noticed(self) -> None:
        for _ in range(3):
            waiting = self.held()[0]
            waiting.channel.cancel()
            waiting.channel.cancel()
            self.wait_for(lambda: waiting.channel.socket.recv(65536) == b"", "the run is over")
            # Where it had no process yet, the engine has its end of the link, and closes that as the last.
            self.wait_for(lambda: has_hung_up(waiting.link), "nobody can read what is sent to it")
            self.assertEqual(self.pool.call(len, "xy"), 2)

    def test_options_are_not_lost_on_it(self) -> None:
        self.assertTrue(self.held())
        self.assertEqual(self.pool.call(os.getenv, "B", env={"B": "b"}), "b")
        self.assertTrue(self.held())
        with self.assertRaises(belljar.CallTimeout):
            self.pool.call(time.sleep, 1000, timeout=0.1)
        seen: List[bytes] = []
        self.pool.call(print, "told", on_output=lambda stream, data: seen.append(data))
        self.assertEqual(b"".join(seen), b"told\n")

    def test_its_time_begins_with_the_call(self) -> None:
        with belljar.Pool(timeout=3) as pool:
            pool.call(len, "")
            time.sleep(3.2)
            self.assertEqual(pool.call(len, "x"), 1)
            with self.assertRaises(belljar.CallTimeout):
                pool.call(time.sleep, 1000)


class Gone(PackageCase):
    """A zygote that has died, as for want of memory."""

    def zygote_pid(self) -> int:
        """The only interpreter that stands in the jar's own pid namespace, not in that of a call."""
        for pid in census.descendants(engine_pid()):
            try:
                status = Path(f"/proc/{pid}/status").read_text()
            except OSError:
                continue
            names = dict(line.split(":", 1) for line in status.splitlines())
            if names["Name"].strip().startswith("python") and len(names["NSpid"].split()) == 2:
                return pid
        raise AssertionError("there is no zygote")

    def test_a_call_hears_of_it_at_once_and_the_next_has_another(self) -> None:
        if belljar.run(["true"], workdir=None).enforced["rung"] != "namespace":
            self.skipTest("needs:userns calls are forks of a zygote only on the rung namespace")
        seen = []
        for _ in range(10):
            with belljar.Pool(timeout=20) as pool:
                self.assertEqual(pool.call(len, ""), 0)
                os.kill(self.zygote_pid(), signal.SIGKILL)
                for _ in range(5):
                    try:
                        pool.call(len, "")
                    except belljar.CallTimeout as error:
                        self.fail(f"a call was given to a process that will never be there: {error}")
                    except (belljar.EngineError, belljar.CallEnded) as error:
                        seen.append(error)
                self.assertEqual(pool.call(len, "ab"), 2)
        words = [error for error in seen if "Belljar forks calls from" in str(error)]
        self.assertTrue(words, seen)
        self.assertIn("another one", words[0].hint or "")


class WithoutThreads(PackageCase):
    """A host that may start no more of them."""

    def test_calls_go_on_and_the_pool_can_be_closed(self) -> None:
        with belljar.Pool() as pool:
            self.assertEqual(pool.call(len, "a"), 1)
            with mock.patch.object(threading.Thread, "start", side_effect=RuntimeError("can't start new thread")):
                pool._zygotes._maintain_soon()
            self.assertEqual(pool.call(len, "ab"), 2)


def unsharing(kind: int) -> Tuple[str, str]:
    """A fork that goes one step too far."""
    return "    os.setsid()\n", f"    os.setsid()\n    _check(_libc.unshare({kind}))\n"


class Checked(PackageCase):
    """A zygote that makes a mistake: nothing is let into a fork that does not stand where it should."""

    MISTAKES = {
        "no pid namespace": ("            _check(_libc.setns(parts[1][0], NEW_PID))\n", ""),
        "no mount namespace": ("if flag != NEW_PID:", "if flag not in (NEW_PID, NEW_MOUNTS):"),
        "no IPC namespace": ("if flag != NEW_PID:", "if flag not in (NEW_PID, NEW_IPC):"),
        "no network namespace": ("if flag != NEW_PID:", "if flag not in (NEW_PID, NEW_NETWORK):"),
        "children elsewhere": unsharing(0x20000000),
        "another user namespace": unsharing(0x10000000),
        "another name of the host": unsharing(0x04000000),
        "another cgroup namespace": unsharing(0x02000000),
        "another root": ("    os.setsid()\n", "    os.setsid()\n    os.chroot('/usr')\n"),
        "capabilities": ("    _call(capset,", "    0 and _call(capset,"),
        "no Landlock": ("    if ruleset >= 0:", "    if ruleset >= 1 << 20:"),
        "no filter": ("    listener = _load_filter(seccomp, program)", "    listener = 0"),
        "another pid": ("WORD.pack(READY, os.getpid(),", "WORD.pack(READY, 1,"),
    }
    # Landlock shows itself from this version on.
    LANDLOCK_SEEN = 5

    def zygote_with(self, old: str, new: str) -> Any:
        """Zygotes are made of another text as long as this is entered."""
        plain = _boot._modules

        def modules(is_same: bool, names: Any) -> Any:
            found = list(plain(is_same, names))
            if names[-1] == _boot.ZYGOTE:
                source = Path(found[-1][1]).read_text()
                self.assertEqual(source.count(old), 1, old)
                found[-1] = (*found[-1][:2], marshal.dumps(compile(source.replace(old, new), found[-1][1], "exec")))
            return found

        return mock.patch.object(_boot, "_modules", modules)

    def test_mistakes(self) -> None:
        told = belljar.run(["true"], workdir=None).enforced
        if told["rung"] != "namespace":
            self.skipTest("needs:userns calls are forks of a zygote only on the rung namespace")
        is_landlock_seen = int((told["filesystem"] or "").partition("landlock")[2] or 0) >= self.LANDLOCK_SEEN
        with belljar.Pool(workdir=self.work) as pool:
            pool.call(leave_files)
        self.assertTrue((self.work / "left").exists())
        for name, (old, new) in self.MISTAKES.items():
            if name == "no Landlock" and not is_landlock_seen:
                continue
            (self.work / "left").unlink(missing_ok=True)
            with self.subTest(name), self.zygote_with(old, new), belljar.Pool(workdir=self.work) as pool:
                with self.assertRaises(belljar.BelljarError) as caught:
                    pool.call(leave_files)
                self.assertNotIsInstance(caught.exception, belljar.CallError)
                self.assertFalse((self.work / "left").exists())


class AtOnce(WarmCase):
    """Several calls at the same time."""

    concurrency = 4

    def test_they_do_not_reach_each_other(self) -> None:
        with concurrent.futures.ThreadPoolExecutor(1) as threads_of_host:
            pool = belljar.Pool(concurrency=4, timeout=None)
            self.addCleanup(pool.close)
            pool.call(len, "")
            is_up = threading.Event()
            server = threads_of_host.submit(pool.call, listen_and_wait, 120.0, on_output=lambda *_: is_up.set())
            self.assertTrue(is_up.wait(BOUND_SECONDS))
            for _ in range(5):
                self.assertEqual(pool.call(connect), [False, False])
                self.assertEqual(pool.call(see_processes)[2], ["1", "2"])
            self.assertFalse(server.done())
            pool.close()
            with self.assertRaises(belljar.CallEnded):
                server.result()

    def test_closing_leaves_nothing(self) -> None:
        before = set(census.descendants(os.getpid()))
        with belljar.Pool(concurrency=4) as pool, concurrent.futures.ThreadPoolExecutor(4) as threads_of_host:
            self.assertEqual(list(threads_of_host.map(lambda i: pool.call(len, "x" * i), range(40))), list(range(40)))

        def is_gone() -> bool:
            left = set(census.descendants(os.getpid())) - before
            # What the first calls, made before the zygote stood, have had made ahead stays for a while: two processes each.
            return len(left) <= 4 and not any("python" in census.command_line(pid) for pid in left)

        self.wait_for(is_gone, "no process is left")


class Apart(WarmCase):
    """What a call can see and reach of the zygote, of other calls, and of those before it."""

    def test_processes(self) -> None:
        for _ in range(ROUNDS):
            self.assertEqual(self.pool.call(see_processes), (2, 0, ["1", "2"]))

    def test_files(self) -> None:
        for _ in range(5):
            self.assertEqual(self.pool.call(leave_files), self.pool.call(places))
            self.assertEqual(self.pool.call(see_files), [])

    def test_times_of_directories(self) -> None:
        for place in self.pool.call(places):
            self.pool.call(set_time, place)
            for _ in range(4):
                self.assertNotIn(1, self.pool.call(times_of_places))

    def test_objects_that_outlive_processes(self) -> None:
        for _ in range(5):
            self.assertGreaterEqual(self.pool.call(leave_shared_memory), 0)
            self.assertEqual(self.pool.call(see_shared_memory), -1)
            self.assertIn(self.pool.call(leave_queue), (0, errno.ENOSYS, errno.EACCES))  # Landlock lets nobody make one
            self.assertEqual(self.pool.call(see_queue), -1)

    def test_the_network(self) -> None:
        for _ in range(5):
            self.assertEqual(self.pool.call(talk_to_itself), 1)
            self.assertEqual(set(self.pool.call(packets)), {"0"})

    def assert_no_trace(self, leave: Callable[[], Any], see: Callable[[], Any]) -> None:
        """Of `leave` in any of the calls after it."""
        before = self.pool.call(see)
        for _ in range(5):
            self.pool.call(leave)
            for _ in range(4):
                self.assertEqual(self.pool.call(see), before)

    def test_attempts_that_the_network_counts(self) -> None:
        self.assertEqual(self.pool.call(send_nowhere), ["ENETUNREACH"] * 2)
        self.assert_no_trace(send_nowhere, failed_attempts)

    def test_what_the_network_keeps_without_a_packet(self) -> None:
        self.assert_no_trace(keep_a_flow_label, flow_labels)
        self.assert_no_trace(look_up_a_route, routes)

    def test_what_the_network_says_later(self) -> None:
        self.assert_no_trace(join_groups, packets_soon)

    def test_terminals(self) -> None:
        self.assert_no_trace(use_terminals, see_terminals)

    def test_numbers_of_files(self) -> None:
        count = 100
        for _ in range(3):
            before = self.pool.call(make_unnamed_files, 1)
            self.pool.call(make_unnamed_files, count)
            for _ in range(4):
                self.assertLess(max(self.pool.call(make_unnamed_files, 1)), max(before) + count)

    def test_children_of_the_zygote(self) -> None:
        for _ in range(5):
            self.assertEqual(self.pool.call(make_a_sibling), -errno.EINVAL)
            self.assertEqual(self.pool.call(see_processes), (2, 0, ["1", "2"]))

    def test_what_the_kernel_shows_of_itself(self) -> None:
        self.assertEqual(self.pool.call(change_proc), [])
        self.assert_no_trace(change_proc, see_proc)

    def test_signals(self) -> None:
        first = self.identity()
        for _ in range(3):
            self.assertEqual(self.pool.call(kill_everything), 1)
        self.assertEqual(self.identity(), first)

    def test_a_hostile_call_reaches_nothing(self) -> None:
        found = self.pool.call(reach_out)
        self.assertNotIn("done", found.values(), found)
        for path in ("/proc/1/mem", "/proc/1/environ", "/proc/1/maps", "/proc/1/fd", "/proc/1/root"):
            self.assertEqual(found[path], "PermissionError", path)

    def test_the_kernel_says_the_same(self) -> None:
        found = self.pool.call(status_lines)
        self.assertEqual((found["NoNewPrivs"], found["Seccomp"]), ("1", "2"))
        for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            self.assertEqual(int(found[name], 16), 0, name)

    def test_what_is_shown_is_read_only(self) -> None:
        outside = ["/", "/etc", "/usr", "/proc", "/proc/sys/kernel", self.folder.name, "/dev"]
        self.assertEqual(self.pool.call(write_outside, outside), [])

    def test_children_end_with_the_call(self) -> None:
        for _ in range(5):
            self.pool.call(leave_a_child, self.marker)
        self.wait_for(lambda: not self.marked(), "no child is left")

    def test_limits_are_each_call_s_own(self) -> None:
        with self.assertRaises(belljar.CallEnded) as caught:
            self.pool.call(hold, 400 << 20, memory="200M")
        self.assertEqual(caught.exception.result.outcome, "memory")
        self.assertEqual(caught.exception.result.limits_hit[0]["limit"], 200 << 20)
        self.assertEqual(self.pool.call(len, "x"), 1)
        with self.assertRaises(belljar.CallTimeout):
            self.pool.call(time.sleep, 1000, timeout=0.2)
        self.assertEqual(self.pool.call(len, "x"), 1)


if __name__ == "__main__":
    unittest.main()
