# SPDX-License-Identifier: Apache-2.0
"""Walls that a policy may choose, and calls that the filter refuses to every jar."""

from __future__ import annotations

import unittest

from adversarial_support import PREAMBLE, PYTHON, AttackCase
from harness.case import on_ways
from harness.runner import LANDLOCK, NAMESPACE

# Each prints "NAME ERRNO": the filter's own answer, not the kernel's behind it.
CALLS = (
    PREAMBLE
    + """
a, b = socket.socketpair()
attempt("oob", lambda: a.send(b"x", socket.MSG_OOB))
attempt("plain", lambda: a.send(b"x"))
attempt("cbpf", lambda: a.setsockopt(socket.SOL_SOCKET, 26, struct.pack("HP", 0, 0)))
attempt("ebpf", lambda: a.setsockopt(socket.SOL_SOCKET, 50, 0))
attempt("reuseport-cbpf", lambda: a.setsockopt(socket.SOL_SOCKET, 51, struct.pack("HP", 0, 0)))
attempt("reuseport-ebpf", lambda: a.setsockopt(socket.SOL_SOCKET, 52, 0))
page = ctypes.create_string_buffer(8192)
attempt("mincore", lambda: call(27, 0, 4096, page))
attempt("cachestat", lambda: call(451, 0, page, page, 0))
attempt("kcmp", lambda: call(312, os.getpid(), os.getpid(), 0, 0, 0))
attempt("vmsplice", lambda: call(278, 0, page, 1, 0))
attempt("mergeable", lambda: call(28, 0, 4096, 12))
attempt("memory-merge", lambda: call(157, 67, 1, 0, 0, 0))
attempt("move-pages", lambda: call(279, os.getppid(), 0, 0, 0, 0, 0))
attempt("migrate-pages", lambda: call(256, os.getppid(), 0, 0, 0))
"""
)
ANSWERS = {
    "oob": "ENOTSUP", "plain": "ok", "cbpf": "EPERM", "ebpf": "EPERM", "reuseport-cbpf": "EPERM", "reuseport-ebpf": "EPERM",
    "mincore": "ENOSYS", "cachestat": "ENOSYS", "kcmp": "ENOSYS", "vmsplice": "ENOSYS", "mergeable": "EINVAL",
    "memory-merge": "EINVAL", "move-pages": "EPERM", "migrate-pages": "EPERM",
}  # fmt: skip

# A program, a library, a script and a file in memory, each in a place that the command can write.
EXECUTE = (
    PREAMBLE
    + """
import shutil, tempfile
def run(*words):
    return subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
def planted(directory):
    path = os.path.join(directory, "planted")
    shutil.copy("/bin/true", path)
    attempt("program " + directory, lambda: run(path))
    print("loader", directory, "ok" if run(LOADER, path) == 0 else "refused")
    shutil.copy(LIBRARY, path + ".so")
    try:
        ctypes.CDLL(path + ".so")
        print("library", directory, "ok")
    except OSError:
        print("library", directory, "refused")
    os.unlink(path); os.unlink(path + ".so")
LOADER = next(l.split()[0] for l in subprocess.check_output(["ldd", "/bin/true"], text=True).splitlines() if "ld-linux" in l)
LIBRARY = next(l.split()[2] for l in subprocess.check_output(["ldd", "/bin/true"], text=True).splitlines() if "libc.so" in l)
for directory in (os.getcwd(), "/tmp", "/dev/shm", os.environ["HOME"], "/run"):
    planted(directory)
attempt("memory", lambda: os.memfd_create("m"))
attempt("memory-exec", lambda: os.memfd_create("m", 0x10))
attempt("system", lambda: run("/bin/true"))
open("script", "w").write("#!/bin/sh\\n"); os.chmod("script", 0o755)
attempt("script", lambda: run("./script"))
print("interpreter", "ok" if run("/bin/sh", "./script") == 0 else "refused")
"""
)


@on_ways(NAMESPACE, LANDLOCK)
class Calls(AttackCase):
    def test_calls_about_the_memory_and_sockets_of_others_are_refused(self) -> None:
        result = self.json("--", PYTHON, "-c", CALLS)
        self.assertEqual(self.answers(result["stdout"]), ANSWERS, result)


@on_ways(NAMESPACE, LANDLOCK)
class Chosen(AttackCase):
    def test_only_what_the_command_cannot_write_is_executed(self) -> None:
        result = self.json("--exec", "trusted", "--", PYTHON, "-c", EXECUTE)
        if self.way is LANDLOCK:
            self.assertEqual((result["outcome"], result["error"]["stage"]), ("failed", "host"))
            self.assertIn("namespace", result["error"]["message"])
            return
        lines = [line.rsplit(" ", 1) for line in result["stdout"].splitlines()]
        self.assertEqual({answer for name, answer in lines if name.startswith("program ")}, {"EACCES"}, result)
        self.assertEqual({answer for name, answer in lines if name.startswith(("loader ", "library "))}, {"refused"}, result)
        answers = dict(lines)
        self.assertEqual([answers[name] for name in ("memory", "memory-exec", "script")], ["EACCES"] * 3, result)
        self.assertEqual((answers["system"], answers["interpreter"]), ("ok", "ok"), "scripts are data for an interpreter")
        self.assertEqual(result["enforced"]["exec"], "noexec-mounts+seccomp")

    def test_what_is_shown_read_only_stays_executable(self) -> None:
        if self.way is LANDLOCK:
            self.skipTest("refused there")
        tools = self.base / "tools"
        tools.mkdir()
        (tools / "tool").write_text("#!/bin/sh\necho ran\n")
        (tools / "tool").chmod(0o755)
        result = self.json("--exec", "trusted", "--ro", tools, "--", tools / "tool")
        self.assertEqual(result["stdout"], "ran\n", result)
        copied = self.json("--exec", "trusted", "--cow", "--", "sh", "-c", "cp /bin/true x; ./x")
        self.assertEqual((copied["exit_code"], "Permission denied" in copied["stderr"]), (126, True), copied)

    def test_what_an_earlier_command_planted_under_a_protected_name_is_not_executed(self) -> None:
        if self.way is LANDLOCK:
            self.skipTest("refused there")
        planted = self.json(*self.sh("mkdir -p .husky && cp /bin/true .husky/planted && .husky/planted"))
        self.assertEqual(planted["exit_code"], 0, planted)
        result = self.json("--exec", "trusted", *self.sh(".husky/planted"))
        self.assertEqual((result["exit_code"], "Permission denied" in result["stderr"]), (126, True), result)

    def test_without_the_choice_nothing_changes(self) -> None:
        result = self.json("--", "sh", "-c", "cp /bin/true x && ./x && rm x")
        self.assertEqual((result["exit_code"], result["enforced"]["exec"], result["enforced"]["speculation"]), (0, None, None), result)

    def test_speculation_is_turned_off_or_the_run_is_refused(self) -> None:
        show = "import re; print(re.findall('^Speculation.*', open('/proc/self/status').read(), re.M))"
        result = self.json("--speculation", "off", "--", PYTHON, "-c", show)
        if result["outcome"] == "failed":
            self.assertEqual(result["error"]["stage"], "host", result)
            self.assertIn("--optional speculation", result["error"]["hint"])
            optional = self.json("--speculation", "off", "--optional", "speculation", "--", PYTHON, "-c", show)
            self.assertIn("speculation", [item["name"] for item in optional["missing"]], optional)
            return
        self.assertIn(result["enforced"]["speculation"], ("prctl", "kernel", "prctl+kernel"))
        self.assertNotIn("vulnerable", result["stdout"], "the command could be attacked")

    def test_the_machine_is_known_by_no_number(self) -> None:
        read = "cat /proc/sys/kernel/random/boot_id /proc/cmdline"
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as boot, open("/proc/cmdline", encoding="utf-8") as line:
            own = (boot.read() + line.read()).strip()
        few, host = self.json(*self.sh(read)), self.json("--machine-facts", "host", *self.sh(read))
        self.assertEqual(host["stdout"].strip(), own, host)
        if self.way is LANDLOCK:
            self.assertIn("machine_facts", [item["name"] for item in few["missing"]], few)
            refused = self.json("--machine-facts", "none", "--", "true")
            self.assertEqual((refused["outcome"], refused["error"]["stage"]), ("failed", "host"), refused)
            return
        self.assertEqual(few["stdout"].split(), ["00000000-0000-4000-8000-000000000000"], few)
        undone = self.json(*self.sh("umount /proc/cmdline; mount -t proc proc /proc; rm -f /proc/cmdline; " + read))
        self.assertEqual(undone["stdout"].split(), ["00000000-0000-4000-8000-000000000000"], undone)
        none = self.json("--machine-facts", "none", *self.sh("cat /proc/uptime /proc/loadavg /proc/diskstats; nproc"))
        self.assertEqual(none["stdout"].splitlines()[:2], ["0.00 0.00", "0.00 0.00 0.00 1/1 1"], none)


if __name__ == "__main__":
    unittest.main()
