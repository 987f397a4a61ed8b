# SPDX-License-Identifier: Apache-2.0
"""Thirty programs that fail in a default jar, for one cause each: the first entry of `denied` names it, and its cure makes it work.

Where no change is proposed, the entry says why. One cause cannot be known: a variable that was not passed.
"""

from __future__ import annotations

import shlex
import socket
from typing import NamedTuple, Optional, Sequence, Tuple

from harness.case import JarCase
from harness.gate_case import CLIENT, GateCase
from harness.internet import ECHO_PORT, OTHER_SERVER
from harness.runner import NAMESPACE

CONNECT = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"


class Cause(NamedTuple):
    """A command that fails, and what the first entry has to say of it."""

    command: Sequence[str]
    kind: str
    what: str
    cure: Optional[str] = None
    warning: str = ""
    options: Tuple[str, ...] = ()


class CauseCase(JarCase):
    """Fails, is explained, is cured."""

    way = NAMESPACE

    def check(self, cause: Cause, *, level: str = "trace", **more: object) -> None:
        result = self.json(*cause.options, "--ledger", level, "--", *cause.command, **more)
        self.assertNotEqual((result["outcome"], result["exit_code"]), ("exited", 0), result)
        self.assertTrue(result["denied"], f"nothing is known of {cause}")
        entry = result["denied"][0]
        cure = entry["cure"] and entry["cure"]["flag"]
        self.assertEqual((entry["kind"], entry["what"], cure), (cause.kind, cause.what, cause.cure), result["denied"])
        self.assertIn(cause.what if cause.kind != "limit" else "limit", entry["sentence"])
        if cause.cure is None:
            self.assertRegex(entry["warning"], cause.warning)
            return
        result = self.json(*cause.options, *shlex.split(cause.cure), "--", *cause.command, **more)
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 0), result)


class Files(CauseCase):
    """What only a trace knows."""

    def put(self, name: str, content: str = "x\n", mode: int = 0o644) -> str:
        path = self.base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        path.chmod(mode)
        return str(path)

    def read(self, path: str) -> Cause:
        return Cause(["cat", path], "file", path, f"--ro {path}")

    def test_a_file_of_the_home(self) -> None:
        self.check(self.read(self.put("home/notes.txt")))

    def test_a_dot_directory_of_the_home(self) -> None:
        self.check(self.read(self.put("home/.tool/config")))

    def test_a_file_outside_the_workdir(self) -> None:
        self.check(self.read(self.put("data/model.bin")))

    def test_the_certificate_of_a_company(self) -> None:
        path = self.put("company/ca.pem")
        script = 'while read -r line; do echo "$line"; done < "$1"'
        self.check(Cause(["sh", "-c", script, "sh", path], "file", path, f"--ro {path}"))

    def test_writing_to_what_is_read_only(self) -> None:
        path = self.put("shown/list")
        self.check(Cause(["sh", "-c", f"echo y >> {path}"], "file", path, f"--rw {path}", options=("--ro", f"{self.base}/shown")))
        self.assertEqual((self.base / "shown" / "list").read_text(), "x\ny\n")

    def test_writing_outside(self) -> None:
        place = self.directory("results")
        self.check(Cause(["sh", "-c", f"echo y > {place}/new"], "file", f"{place}/new", f"--rw {place}"))
        self.assertEqual((place / "new").read_text(), "y\n")

    def test_a_program_outside_of_path(self) -> None:
        path = self.put("tools/hello", "#!/bin/sh\necho hello\n", 0o755)
        self.check(Cause(["sh", "-c", f"{path}"], "exec", path, f"--ro {path}"))

    def test_the_command_itself(self) -> None:
        """That is known without a trace."""
        path = self.put("tools/hello", "#!/bin/sh\necho hello\n", 0o755)
        self.check(Cause([path], "exec", path, f"--ro {path}"), level="basic")

    def test_a_socket_of_the_host(self) -> None:
        path = str(self.directory("run") / "agent.sock")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            (self.base / "run" / "agent.sock").chmod(0o777)
            listener.listen()
            self.check(Cause(["python3", "-c", CONNECT, path], "file", path, f"--ro {self.base}/run"))

    def test_a_file_above_the_workdir(self) -> None:
        path = self.put("above.txt")
        self.check(Cause(["cat", "../above.txt"], "file", f"{self.work}/../above.txt", f"--ro {path}"))

    def test_a_link_out_of_the_workdir(self) -> None:
        path = self.put("data/model.bin")
        (self.work / "model").symlink_to(path)
        self.check(Cause(["cat", "model"], "file", f"{self.work}/model", f"--ro {path}"))

    def test_a_virtual_environment(self) -> None:
        """All of it is needed, not the file that was asked for first."""
        self.put("venv/pyvenv.cfg")
        self.put("venv/lib/module.py")
        path = self.put("venv/bin/activate", f"cat {self.base}/venv/lib/module.py\n")
        self.check(Cause(["sh", "-c", f". {path}"], "file", path, f"--ro {self.base}/venv"))

    def test_a_database(self) -> None:
        """It is opened for writing, then for reading: writing is what is needed."""
        path = self.put("data/base.db")
        script = 'if ! (echo y >> "$1"); then cat "$1"; exit 1; fi'
        self.check(Cause(["sh", "-c", script, "sh", path], "file", path, f"--rw {path}"))

    def test_a_file_that_is_replaced(self) -> None:
        """What is shown alone cannot be renamed over: its directory is needed."""
        path = self.put("results/out.csv")
        self.check(Cause(["sh", "-c", f"echo y > new; mv new {path}"], "file", path, f"--rw {self.base}/results"))
        self.assertEqual((self.base / "results" / "out.csv").read_text(), "y\n")

    def test_a_directory_that_is_only_looked_for(self) -> None:
        """By stat(), which the level `files` sees."""
        self.put("data/model.bin")
        self.check(Cause(["ls", f"{self.base}/data"], "file", f"{self.base}/data", f"--ro {self.base}/data"), level="files")

    def test_a_name_without_a_gate(self) -> None:
        """Nobody knows which: that is in what would have been sent. A gate tells it."""
        code = "import socket; socket.socket(type=socket.SOCK_DGRAM).connect(('192.0.2.53', 53))"
        self.check(Cause(["python3", "-c", code], "net", "192.0.2.53:53", None, "--net gate"))

    def test_a_device(self) -> None:
        self.check(Cause(["cat", "/dev/kmsg"], "file", "/dev/kmsg", None, "devices are the machine's"))

    def test_a_terminal(self) -> None:
        self.check(Cause(["sh", "-c", "echo > /dev/tty"], "file", "/dev/tty", None, "--pty"))


class Walls(CauseCase):
    """What every run knows."""

    def limit(self, name: str, options: Tuple[str, str], cure: str, *command: str) -> None:
        self.check(Cause(command, "limit", name, cure, options=options), level="basic")

    def test_a_system_call(self) -> None:
        self.check(Cause(["mount", "-t", "tmpfs", "x", "/tmp"], "syscall", "mount", None, "no option allows it"), level="basic")

    def test_a_sandbox_in_the_jar(self) -> None:
        self.check(Cause(["unshare", "-r", "true"], "syscall", "unshare", None, "--no-sandbox"), level="basic")

    def test_time_of_the_processor(self) -> None:
        script = "[ -e late ] || { touch late; while :; do :; done; }"
        self.limit("cpu_time", ("--cpu-time", "100ms"), "--cpu-time 200ms", "sh", "-c", script)

    def test_memory(self) -> None:
        self.limit("memory", ("--memory", "32M"), "--memory 64M", "python3", "-c", "x = bytearray(40 << 20); import time; time.sleep(1)")

    def test_processes(self) -> None:
        script = "for i in 1 2 3 4 5; do read x & done; wait; [ $i = 5 ]"
        result = self.json("--pids", "4", "--", "sh", "-c", script)
        if result["enforced"]["pids"] == "rlimit" and not result["limits_hit"]:
            self.skipTest("needs:cgroup, or root: the kernel refuses, and tells nobody")
        self.limit("pids", ("--pids", "4"), "--pids 8", "sh", "-c", script)

    def test_room_for_files(self) -> None:
        self.limit("disk", ("--disk", "1M"), "--disk 2M", "sh", "-c", "head -c 1500000 /dev/zero > /tmp/x")

    def test_time(self) -> None:
        """Late the first time only: how long a machine takes is not judged."""
        script = "[ -e late ] || { touch late; exec sleep 1000; }"
        cause = Cause(["sh", "-c", script], "limit", "timeout", "--timeout 1s", options=("--timeout", "500ms"))
        result = self.json(*cause.options, "--", *cause.command)
        self.assertEqual([(e["kind"], e["what"], e["cure"]["flag"]) for e in result["denied"]], [(cause.kind, cause.what, cause.cure)])

    def test_output(self) -> None:
        script = "[ -e told ] && exec echo 0123456789; touch told; echo 0123456789; exec sleep 1000"
        self.limit("output", ("--output", "8", "--overflow", "kill"), "--output 16", "sh", "-c", script)


class Network(CauseCase, GateCase):
    """A gate that lets nothing through tells what no network cannot: `learn` has one."""

    def reach(self, host: str, port: int, kind: str, cure: str, rules: Sequence[str] = ()) -> None:
        code = CLIENT + f"sys.exit(talk({host!r}, {port}, b'hi') != 'hi')"
        what = host if kind == "name" else f"{host}:{port}"
        options = ("-C", "none", "--net", "gate", *self.rules(*rules))
        self.check(Cause(["python3", "-c", code], kind, what, cure, options=options), level="basic", preexec_fn=self.internet.enter)

    def test_a_name(self) -> None:
        cause = Cause(["python3", "-c", CLIENT + "sys.exit(not isinstance(look('good.test'), list))"], "name", "good.test",
                      "--allow-net good.test", options=("-C", "none", "--net", "gate"))
        self.check(cause, level="basic", preexec_fn=self.internet.enter)

    def test_an_address(self) -> None:
        self.reach(OTHER_SERVER, ECHO_PORT, "net", f"--allow-net {OTHER_SERVER}:{ECHO_PORT}")

    def test_a_port(self) -> None:
        self.reach("good.test", ECHO_PORT, "net", f"--allow-net good.test:{ECHO_PORT}", ["good.test"])


class Unknown(CauseCase):
    """What cannot be seen."""

    def test_a_variable_that_was_not_passed(self) -> None:
        """Nothing is made up; `learn` says which were withheld."""
        command = ("--", "sh", "-c", 'test -n "$WANTED"')
        env = {**self.env, "BELLJAR_PACKAGE": "/nowhere", "WANTED": "x"}
        self.assertEqual(self.json("--ledger", "trace", *command, env=env)["denied"], [])
        self.assertIn(b"withheld: WANTED", self.belljar("learn", *command, env=env).stderr)
        self.assertEqual(self.json("--pass-env", "WANTED", *command, env=env)["exit_code"], 0)
