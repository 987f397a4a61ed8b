# SPDX-License-Identifier: Apache-2.0
"""`belljar doctor`: what it finds, what it proves, and that the proof would notice a layer that is not there."""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any, Callable, Dict, List, Sequence, Set, Tuple

from harness import host, paths
from harness.bounds import BOUND
from harness.case import JarCase
from harness.runner import Completed, Way

NO_USERNS = Way("denied", ("userns",))
NO_WALLS = Way("denied", ("userns", "landlock"))
CAPABILITY_KEYS = {"name", "found", "value", "purpose", "remedy"}
ATTEMPT_KEYS = {"name", "what", "layer", "stopped", "how", "covered", "expected"}
FILES = [
    "read-outside",
    "list-outside",
    "write-outside",
    "create-outside",
    "remove-outside",
    "link-outside",
    "truncate-outside",
]
CALLS = [
    "chroot",
    "unshare-user",
    "clone-user",
    "clone3-user",
    "setns",
    "perf",
    "keyctl",
    "personality",
    "tiocsti",
    "tcp-ulp",
    "verity",
    "encryption-key",
    "schedule-init",
    "aio",
    "page-cache",
    "kcmp",
    "vmsplice",
    "out-of-band",
    "socket-filter",
]
METADATA = ["chmod-outside", "chmod-descriptor", "times-outside"]
# What is not promised on the landlock rung.
GUARDS = ["protected", "guard-config", "guard-link", "guard-gitlink"]
# Without a cgroup no look at processes shows such memory, and `missing` says so.
METER_GAPS = {"hidden-memory"}
LANDLOCK_GAPS = {*METER_GAPS, "stat-outside", *GUARDS, "move-above", "gate", "see-other", "init-cmdline", "inotify"}

# Rung, layers left out, what then gets through as anybody, as an ordinary user only, as root only. Where a second wall
# stands behind the first, both are left out.
HOLES: List[Tuple[str, str, List[str], List[str], List[str]]] = [
    ("namespace", "mount-ns,landlock", [*FILES, "stat-outside", *GUARDS, "move-above", "replace-engine", "unix-stream", "unix-datagram"], METADATA, []),
    ("namespace", "net-ns", ["tcp", "udp"], [], []),
    ("namespace", "net-ns,seccomp", ["tcp-fast-open"], [], []),
    ("namespace", "net-ns,landlock", ["abstract-stream", "abstract-datagram", "pair-datagram", "abstract-name"], [], []),
    ("namespace", "pid-ns", ["see-other", "init-cmdline", "outlive"], ["limit-other", "renice-other"], []),
    ("namespace", "pid-ns,landlock", [], ["signal-engine", "signal-other", "pidfd-other", "owner-other"], []),
    ("namespace", "ipc-ns", ["shared-memory"], [], []),
    ("namespace", "seccomp", [*CALLS, "limit-init"], [], []),
    ("namespace", "privileges", ["capabilities"], [], ["setuid"]),
    ("namespace", "limits", ["fork-bomb", "queued-signals"], ["inotify"], []),
    (
        "landlock",
        "landlock",
        [*FILES, "signal-other", "pidfd-other", "owner-other"],
        ["trace-other", "write-memory", "other-environ", "other-mem"],
        ["proc-sys"],
    ),
    (
        "landlock",
        "seccomp",
        [*CALLS, *METADATA, "abstract-name", "tcp", "tcp-fast-open", "udp", "unix-stream", "unix-datagram", "limit-other", "shared-memory"],
        ["renice-other"],
        [],
    ),
    (
        "landlock",
        "landlock,seccomp",
        ["abstract-stream", "abstract-datagram", "pair-datagram", "signal-engine"],
        [],
        [],
    ),
    (
        "landlock",
        "privileges,landlock,seccomp",
        ["capabilities", "setuid"],
        [],
        ["trace-engine", "overwrite-engine", "read-by-engine", "mount"],
    ),
    ("landlock", "tree", ["outlive"], [], []),
]


def stages() -> Set[str]:
    """What proofs of this user have planted and not cleared away."""
    return {str(path) for path in Path("/tmp").glob("belljar-prove-*") if owner(path) == os.getuid()}


def cgroups() -> Set[str]:
    """What doctors have made there and not removed."""
    return {str(path) for path in Path("/sys/fs/cgroup").glob("**/belljar-doctor-*")}


def owner(path: Path) -> int:
    """The uid of its owner; -1 where it is gone."""
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_uid
    return -1


@functools.cache
def can_be_tried(rung: str) -> bool:
    return host.has_userns() if rung == "namespace" else host.landlock_abi() > 0


class DoctorCase(JarCase):
    def assert_clean(self, look: Callable[[], Set[str]], before: Set[str]) -> None:
        """What is new is gone, or goes: another program's doctor may be at work at the same time."""
        new = look() - before
        self.wait_for(lambda: not new & look(), f"gone: {new}")


class Doctor(DoctorCase):
    def doctor(self, *args: str, **options: Any) -> Completed:
        return self.belljar("doctor", *args, timeout=90, **options)

    def found(self, **options: Any) -> Tuple[int, Dict[str, Any]]:
        done = self.doctor("--json", **options)
        return done.status, json.loads(done.stdout)

    def test_the_object_has_its_keys(self) -> None:
        status, answer = self.found()
        self.assertEqual(answer["version"], 1)
        self.assertIn(answer["best_rung"], ("namespace", "landlock", "process"))
        self.assertEqual(status, 1 if answer["best_rung"] == "process" else 0)
        names = [capability["name"] for capability in answer["capabilities"]]
        self.assertEqual(len(names), len(set(names)))
        for name in ("kernel", "user-namespaces", "proc-mount", "landlock", "seccomp", "cgroup2", "cgroup1-memory", "pidfd", "nf-tables", "ipv6"):
            self.assertIn(name, names)
        self.assertEqual("id-mapped-mounts" in names, os.geteuid() == 0)
        for capability in answer["capabilities"]:
            self.assertEqual(set(capability), CAPABILITY_KEYS)
            self.assertIsInstance(capability["found"], bool)
            self.assertTrue(capability["purpose"])
        self.assertEqual([rung["name"] for rung in answer["rungs"]], ["namespace", "landlock", "process"])
        self.assertNotIn("attempts", answer)

    def test_what_a_gate_can_do(self) -> None:
        """Each fact is tried: where the kernel refuses, or a program is not there, it says so."""
        host.need("userns")

        def facts(**options: Any) -> Dict[str, Any]:
            return {item["name"]: item for item in self.found(**options)[1]["capabilities"]}

        self.assertIs(facts(way=Way("ports", ("nftables",)))["nf-tables"]["found"], False)
        self.assertIn("nft_tproxy", facts(way=Way("ports", ("nftables",)))["nf-tables"]["remedy"])
        count = sum(line.split()[:1] == ["nameserver"] for line in Path("/etc/resolv.conf").read_text().splitlines())
        self.assertEqual(facts()["name-servers"]["found"], count > 0)
        program = self.directory("programs") / "belljar-gate"
        version = subprocess.run([paths.belljar(), "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
        for says, is_found in ((f"belljar-gate {version} (x)", True), (f"belljar-gate {version}1 (x)", False), ("", False)):
            program.write_text(f"#!/bin/sh\necho '{says}'\n")
            program.chmod(0o755)
            found = facts(env={**self.env, "BELLJAR_GATE": str(program)})["belljar-gate"]
            self.assertEqual((found["found"], found["value"]), (is_found, f"{program}: {says or 'it does not run here'}"))
            self.assertEqual("meson install" in (found["remedy"] or ""), not is_found)

    def test_the_best_rung_is_what_a_run_gets(self) -> None:
        for way in (Way("any"), NO_USERNS, *(Way(word, (word,)) for word in ("newmount", "mount_setattr", "clone3", "pidfd"))):
            with self.subTest(way=way):
                answer = self.found(way=way)[1]
                result = self.json("--rung", "process", "--", "true", way=way)
                self.assertEqual(answer["best_rung"], result["enforced"]["rung"])

    def test_what_is_missing_comes_with_a_remedy(self) -> None:
        status, answer = self.found(way=NO_USERNS)
        missing = {item["name"]: item for item in answer["capabilities"] if not item["found"]}
        for name in ("user-namespaces", "pid-namespace", "proc-mount", "mount-api"):
            self.assertTrue(missing[name]["remedy"], name)
        self.assertIn("security-opt", missing["user-namespaces"]["remedy"])
        # The filter that takes namespaces away makes it look like a container, unless it is one of a known kind.
        self.assertIn(answer["place"]["name"], ("container", "docker", "podman"))
        self.assertIn("security-opt", answer["place"]["cure"])
        if host.landlock_abi():
            self.assertEqual((status, answer["best_rung"]), (0, "landlock"))

    def test_without_any_wall_the_status_is_one(self) -> None:
        done = self.doctor(way=NO_WALLS)
        self.assertEqual(done.status, 1)
        self.assertIn(b"cannot isolate", done.stdout.splitlines()[0])

    def test_one_line_for_each_capability(self) -> None:
        lines = self.doctor().stdout.decode().splitlines()
        names = {item["name"] for item in self.found()[1]["capabilities"]}
        self.assertLessEqual(names, {line.split()[0] for line in lines if len(line.split()) > 1 and line.split()[1] in ("yes", "no")})

    def test_a_line_with_no_has_no_second_no(self) -> None:
        (self.work / ".env").touch()
        (line,) = (line for line in self.doctor(cwd=self.work).stdout.decode().splitlines() if line.startswith("project-secrets"))
        self.assertRegex(line, r"^project-secrets +no +the current directory is free of files that usually hold secrets \(it has 1\)$")

    def test_the_verdict_comes_first_then_what_to_do(self) -> None:
        full = self.doctor().stdout.decode().splitlines()
        self.assertIn(f"rung '{self.found()[1]['best_rung']}'", full[0])
        if host.landlock_abi():
            lines = self.doctor(way=NO_USERNS).stdout.decode().splitlines()
            self.assertIn("less isolation (rung 'landlock')", lines[0])
            cure = next(number for number, line in enumerate(lines) if "security-opt" in line)
            table = lines.index("What Belljar looked for:")
            self.assertLess(cure, table)
            self.assertTrue(any("a private loopback" in line for line in lines[cure:table]))

    def test_places_are_recognised_by_what_they_leave(self) -> None:
        answer = json.loads(self.doctor("--json", way=NO_USERNS, env={**self.env, "KUBERNETES_SERVICE_HOST": "10.0.0.1"}).stdout)
        self.assertEqual(answer["place"]["name"], "kubernetes")
        self.assertIn("procMount: Unmasked", answer["place"]["cure"])

    def test_colours_are_for_terminals(self) -> None:
        self.assertNotIn(b"\x1b[", self.doctor().stdout)
        self.assertIn(b"\x1b[", self.doctor("--color=always").stdout)
        self.assertNotIn(b"\x1b[", self.doctor("--color=always", "--json").stdout)

    def test_the_seccomp_profile_adds_what_makes_a_jar(self) -> None:
        profile = json.loads(self.doctor("--profile", "seccomp").stdout)
        let_through, sockets, refused = profile["syscalls"]
        for name in ("clone3", "unshare", "mount", "fsopen", "move_mount", "landlock_restrict_self", "read", "mmap2"):
            self.assertIn(name, let_through["names"])
        for name in ("init_module", "bpf", "kexec_load", "keyctl", "userfaultfd", "perf_event_open", "kcmp"):
            self.assertNotIn(name, let_through["names"])
            self.assertIn(name, refused["names"])
        self.assertEqual((let_through["action"], refused["action"]), ("SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO"))
        self.assertEqual(sockets["args"][0]["value"], 40)
        self.assertEqual(profile["defaultErrnoRet"], errno.ENOSYS)

    def test_the_apparmor_profile_names_this_program(self) -> None:
        profile = self.doctor("--profile", "apparmor").stdout.decode()
        self.assertIn("userns,", profile)
        self.assertRegex(profile, r'profile belljar "/[^"]+" flags=\(unconfined\)')
        self.assert_failed(self.doctor("--profile", "selinux"), "profile")

    def test_it_changes_nothing(self) -> None:
        mounts, before = Path("/proc/self/mountinfo").read_bytes(), cgroups()
        self.doctor()
        self.assertEqual(Path("/proc/self/mountinfo").read_bytes(), mounts)
        self.assert_clean(cgroups, before)

    def test_an_attempt_alone_is_refused(self) -> None:
        for name, words in (("read-outside", "--prove"), ("nonsense", "nonsense")):
            done = subprocess.run([f"{paths.belljar()}-prove", "--attempt", name], capture_output=True, timeout=BOUND, check=False)
            self.assertEqual((done.returncode, done.stdout), (125, b""))
            self.assertIn(words, done.stderr.decode())
        self.assert_failed(self.doctor("--attempt", "read-outside"), "--attempt")

    def test_the_prover_is_found_beside_the_engine_only(self) -> None:
        engine = self.directory("alone") / "belljar"
        shutil.copy(paths.belljar(), engine)
        planted = self.directory("planted")
        (planted / "belljar-prove").write_text("#!/bin/sh\necho planted\n")
        (planted / "belljar-prove").chmod(0o755)
        done = subprocess.run(
            [engine, "doctor", "--prove"], env={**self.env, "PATH": f"{planted}:/usr/bin:/bin"}, cwd=planted, capture_output=True,
            timeout=BOUND, check=False,
        )
        self.assertEqual((done.returncode, done.stdout), (125, b""))
        self.assertIn(f"'{engine}-prove': No such file or directory\n  hint: belljar-prove is installed beside belljar", done.stderr.decode())

    def test_a_prover_of_another_version_is_refused(self) -> None:
        done = subprocess.run([f"{paths.belljar()}-prove", "--of", "0.0.1"], capture_output=True, timeout=BOUND, check=False)
        self.assertEqual((done.returncode, done.stdout), (125, b""))
        self.assertRegex(done.stderr.decode(), "of version .*, and belljar of version 0.0.1\n  hint: install both")

    def test_the_engine_has_no_attack_in_it(self) -> None:
        of_attacks = (b"belljar-attempt", b"belljar-victim", b"belljar-prove-XXXXXX")
        engine, prover = (Path(name).read_bytes() for name in (paths.belljar(), f"{paths.belljar()}-prove"))
        for word in of_attacks:
            self.assertNotIn(word, engine)
            self.assertIn(word, prover)

    def test_an_unknown_rung_is_a_usage_error(self) -> None:
        self.assert_failed(self.doctor("--prove", "--rung", "moon"), "rung")


class Proof(DoctorCase):
    """Every attempt, on every rung the host has, with the program users run."""

    def prove(self, *args: str, program: str = "", **options: Any) -> Tuple[int, Dict[str, Any]]:
        if program:
            env = {**self.env, **options}
            done = subprocess.run(
                [program, "doctor", "--prove", "--json", *args], env=env, cwd=self.work, capture_output=True, timeout=120, check=False
            )
            self.assertIn(done.returncode, (0, 1), done.stderr)
            return done.returncode, json.loads(done.stdout)
        finished = self.belljar("doctor", "--prove", "--json", *args, timeout=120, **options)
        self.assertIn(finished.status, (0, 1), finished.stderr)
        return finished.status, json.loads(finished.stdout)

    def check_all_stopped(self, rung: str, status: int, answer: Dict[str, Any]) -> None:
        self.assertEqual(answer["proved_rung"], rung)
        self.assertGreater(len(answer["attempts"]), 60)
        for attempt in answer["attempts"]:
            with self.subTest(rung=rung, attempt=attempt["name"]):
                self.assertEqual(set(attempt), ATTEMPT_KEYS)
                if attempt["covered"] and attempt["stopped"] is not None:
                    self.assertTrue(attempt["stopped"], attempt)
                    self.assertTrue(attempt["expected"], attempt)
        self.assertEqual(status, 0)

    def test_nothing_gets_through_on_the_namespace_rung(self) -> None:
        host.need("userns")
        status, answer = self.prove("--rung", "namespace")
        self.check_all_stopped("namespace", status, answer)
        self.assertLessEqual({item["name"] for item in answer["attempts"] if not item["covered"]}, METER_GAPS)

    def test_nothing_gets_through_on_the_landlock_rung(self) -> None:
        host.need("landlock")
        status, answer = self.prove("--rung", "landlock")
        self.check_all_stopped("landlock", status, answer)
        if host.landlock_abi() >= 6:
            uncovered = {item["name"] for item in answer["attempts"] if not item["covered"]}
            self.assertLessEqual(uncovered, LANDLOCK_GAPS)

    def test_a_host_without_user_namespaces_is_proved_on_landlock(self) -> None:
        host.need("landlock")
        status, answer = self.prove(way=NO_USERNS)
        self.check_all_stopped("landlock", status, answer)

    def test_the_process_rung_says_that_it_covers_nothing(self) -> None:
        status, answer = self.prove("--rung", "process")
        by_name = {item["name"]: item for item in answer["attempts"]}
        self.assertEqual(status, 0)
        for name in ("read-outside", "tcp", "signal-other", "bpf"):
            self.assertFalse(by_name[name]["covered"], name)
        # The attempts are real: with no wall they succeed.
        for name in ("read-outside", "write-outside", "tcp", "udp", "unix-stream", "abstract-datagram", "signal-other"):
            self.assertIs(by_name[name]["stopped"], False, name)
        for name in ("descriptor", "environment", "outlive", "capabilities"):
            self.assertTrue(by_name[name]["covered"] and by_name[name]["stopped"], name)

    def test_the_table_is_for_people(self) -> None:
        done = self.belljar("doctor", "--prove", timeout=120)
        self.assertIn(b"0 got through", done.stdout.splitlines()[-1])

    def test_a_hole_is_status_one(self) -> None:
        self.assertEqual(self.prove_without("namespace" if host.has_userns() else "landlock", "seccomp")[0], 1)

    def test_it_leaves_nothing(self) -> None:
        before = stages()
        self.prove()
        self.assert_clean(stages, before)

    def test_it_leaves_nothing_when_interrupted(self) -> None:
        before = stages()
        ends = set()
        for delay in (0.02, 0.1, 0.2):
            process = self.start("doctor", "--prove", verb="")
            time.sleep(delay)
            process.send_signal(signal.SIGINT)
            ends.add(process.wait(BOUND))
            self.assert_clean(stages, before)
        self.assertLessEqual(ends, {0, -signal.SIGINT})
        self.assertIn(-signal.SIGINT, ends, "it was over each time")

    # --- the proof proves itself ---

    def prove_without(self, rung: str, layers: str, attempts: Sequence[str] = ()) -> Tuple[int, Dict[str, Any]]:
        """A proof without some layers: of all attempts, or of those that are named."""
        program = os.environ.get("BELLJAR_TEST_BIN", "")
        if not os.access(program, os.X_OK):
            self.skipTest("needs:testing there is no test build of belljar in BELLJAR_TEST_BIN")
        chosen = {"BELLJAR_TEST_ATTEMPTS": ",".join(attempts)} if attempts else {}
        return self.prove("--rung", rung, program=program, BELLJAR_TEST_WITHOUT=layers, **chosen)

    def test_without_a_layer_the_attempt_gets_through(self) -> None:
        for rung, layers, always, as_user, as_root in HOLES:
            if not can_be_tried(rung) or (host.landlock_abi() < 6 and "landlock" in (rung, *layers.split(","))):
                continue
            wanted = [*always, *(as_root if os.geteuid() == 0 else as_user)]
            if not wanted:
                continue
            status, answer = self.prove_without(rung, layers, wanted)
            by_name = {item["name"]: item for item in answer["attempts"]}
            for name in wanted:
                with self.subTest(rung=rung, without=layers, attempt=name):
                    self.assertIs(by_name[name]["stopped"], False, by_name[name])
            self.assertEqual((status, set(by_name)), (1, set(wanted)))

    def test_a_layer_that_does_not_exist_is_an_error(self) -> None:
        program = os.environ.get("BELLJAR_TEST_BIN", "")
        if not os.access(program, os.X_OK):
            self.skipTest("needs:testing there is no test build of belljar in BELLJAR_TEST_BIN")
        env = {**self.env, "BELLJAR_TEST_WITHOUT": "moat"}
        done = subprocess.run([program, "run", "--", "true"], env=env, cwd=self.work, capture_output=True, timeout=30, check=False)
        self.assertEqual(done.returncode, 125)

    def test_the_program_users_run_cannot_leave_a_layer_out(self) -> None:
        if os.environ.get("BELLJAR_TEST_SANITIZER"):
            self.skipTest("needs:release this is a test build")
        with tempfile.TemporaryDirectory(dir="/tmp") as outside:
            secret = Path(outside) / "secret"
            secret.write_text("secret")
            env = {**self.env, "BELLJAR_TEST_WITHOUT": "mount-ns,landlock,seccomp"}
            done = self.jar("--", "cat", secret, env=env)
        self.assertNotEqual(done.status, 0)
        self.assertEqual(done.stdout, b"")


if __name__ == "__main__":
    unittest.main()
