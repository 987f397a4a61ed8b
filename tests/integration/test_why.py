# SPDX-License-Identifier: Apache-2.0
"""`belljar why`: what it says is what the kernel does, and its cures work."""

from __future__ import annotations

import json
import os
import re
import unittest
from typing import Any, Dict, List, Sequence

from harness.case import JarCase
from harness.runner import LANDLOCK, NAMESPACE

# Tries everything, and says what worked.
PROBE = r"""
import json, os, sys
def can(path, access):
    try:
        if access == "exec":
            return os.path.isfile(path) and os.access(path, os.X_OK)
        if os.path.isdir(path):
            if access == "read":
                os.listdir(path)
            else:
                name = path + "/.probe"
                os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
                os.unlink(name)
            return True
        if access == "write" and not os.path.exists(path):
            path = os.path.realpath(path)  # a link may lead to where nothing is yet
        made = access == "write" and not os.path.lexists(path)
        above = []
        while made and not os.path.lexists(os.path.dirname(above[-1] if above else path)):
            above.append(os.path.dirname(above[-1] if above else path))
        for directory in reversed(above):
            os.mkdir(directory)
        fd = os.open(path, os.O_RDONLY if access == "read" else os.O_WRONLY | (os.O_CREAT if made else 0))
        os.close(fd)
        if made:
            os.unlink(path)
            for directory in above:
                os.rmdir(directory)
        return True
    except OSError:
        return False
print(json.dumps({path: {access: can(path, access) for access in ("read", "write", "exec")} for path in sys.stdin.read().split("\0")}))
"""

EVERYWHERE = [
    "/", "/bin", "/bin/sh", "/etc", "/etc/passwd", "/etc/shadow", "/etc/hostname", "/etc/ssl/certs", "/etc/ssh", "/etc/mtab",
    "/etc/alternatives", "/usr", "/usr/bin/env", "/usr/lib", "/usr/sbin", "/lib", "/lib64", "/opt", "/home", "/root/.bashrc",
    "/var", "/var/log", "/var/lib/dpkg/status", "/run/docker.sock", "/dev/null", "/dev/zero", "/dev/mem", "/dev/kmsg", "/srv",
    "/mnt", "/boot", "/media", "/nowhere", "/nowhere/deeper", "/usr/bin/../../etc/passwd", "/usr/nothing", "/etc/passwd/x",
    "/proc/version", "/proc/sys/kernel/hostname",
]


# Of more than this in one policy Belljar says that the list is too long.
MUSTS_MAX = 900
# What stands there depends on the descriptors or the network of the process that looks, and not on the host.
OF_THE_LOOKER = re.compile(r"/proc/[0-9]+$|/proc/net$|/proc/(self|thread-self)/(fd|fdinfo|map_files|net|task)$|/proc/sys/net$|/dev/(mqueue|pts|shm)$")


def names_in(folder: str, depth: int) -> List[str]:
    """Whatever a directory of the host's has in it."""
    paths = sorted(entry.path for entry in os.scandir(folder) if not OF_THE_LOOKER.search(entry.path) and "\n" not in entry.path)
    inner = [path for path in paths if depth and os.path.isdir(path) and not os.path.islink(path) and os.access(path, os.R_OK | os.X_OK)]
    return paths + [path for folder in inner for path in names_in(folder, depth - 1)]


class Why(JarCase):
    """Asked from outside, and tried from within."""

    def why(self, *words: str, status: Sequence[int] = (0, 1)) -> List[Dict[str, Any]]:
        done = self.belljar("why", *self.way.options, "--json", *words)
        self.assertIn(done.status, status, done.stderr)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(done.status, 0 if answers[0]["allowed"] else 1)
        return answers

    def try_all(self, paths: List[str], *options: str) -> Dict[str, Dict[str, bool]]:
        """What a command can do with each path."""
        done = self.jar(*options, "--", "python3", "-c", PROBE, stdin="\0".join(paths).encode())
        self.assertEqual(done.status, 0, done.stderr)
        tried: Dict[str, Dict[str, bool]] = json.loads(done.stdout)
        return tried

    def compare_many(self, paths: List[str], accesses: Sequence[str]) -> None:
        """The same as compare(), of many paths at once: `policy test` asks what `why` asks."""
        tried = self.try_all(paths)
        musts = [(path, access) for path in paths for access in accesses]
        wrong = []
        for start in range(0, len(musts), MUSTS_MAX):
            some = musts[start : start + MUSTS_MAX]
            lists = {is_allowed: [f"{path} {access}" for path, access in some if tried[path][access] == is_allowed] for is_allowed in (True, False)}
            policy = self.base / "musts.json"
            policy.write_text(json.dumps({"must_allow": lists[True], "must_deny": lists[False]}))
            done = self.belljar("policy", "test", str(policy), timeout=120)
            self.assertIn(done.status, (0, 1), done.stderr)
            wrong += [line for line in done.stdout.decode().splitlines() if "must_" in line]
        self.assertEqual(wrong, [])

    def link_to_kernel(self) -> List[str]:
        """Links in the workdir to what the kernel makes, absolute, relative and over one another."""
        up = "../" * len(self.work.parts)
        targets = [
            "/proc/self/mounts", "/proc/mounts", f"{up}proc/self/mounts", f"{up}proc/thread-self/mounts", "/proc/self/comm", "/proc/self",
            "/proc/self/environ", "/proc/self/clear_refs", "/proc/self/oom_score_adj", "/proc/self/setgroups", "/proc/self/no-such",
            "/proc/self/root", "/proc/self/root/etc/passwd", "/proc/self/cwd", "/proc/self/cwd/new", "/proc/self/ns/net", "/proc/self/exe",
            "/proc/thread-self/status", "/proc/sys/kernel/hostname", "/proc/sys/kernel/random/boot_id", "/proc/no-such", "/proc",
            "/sys", "/sys/kernel", "/sys/class/net", f"{up}sys/kernel/mm", "/dev/null", "/dev/tty", "/dev/fd", "/dev/fd/0", "/dev/pts", "/dev/ptmx",
            "/dev/pts/900", "/dev/stdin", "/dev", f"{up}dev/zero",
        ]
        for number, target in enumerate(targets):
            (self.work / f"link{number}").symlink_to(target)
            (self.work / f"again{number}").symlink_to(f"link{number}")
        return [str(self.work / f"{name}{number}") for number in range(len(targets)) for name in ("link", "again")]

    def of_the_kernel(self) -> List[str]:
        """What /proc and /dev have on this host, but for what depends on the process that looks."""
        folders = (("/proc", 0), ("/proc/self", 1), ("/proc/thread-self", 0), ("/proc/sys/kernel", 1), ("/proc/sys/vm", 0), ("/dev", 0))
        return [folder for folder, _ in folders] + [path for folder, depth in folders for path in names_in(folder, depth)]

    def compare(self, paths: List[str], *options: str, exec_too: bool = True) -> None:
        tried = self.try_all(paths, *options)
        for path in paths:
            said = {answer["access"]: answer["allowed"] for answer in self.why(*options, path)}
            accesses = ("read", "write", "exec") if exec_too else ("read", "write")
            self.assertEqual([said[a] for a in accesses], [tried[path][a] for a in accesses], f"why of {path} says {said}")

    def make_files(self) -> List[str]:
        """In the workdir: all kinds of things; returns their paths."""
        for name in ("plain", "tool", "closed", ".bashrc"):
            (self.work / name).write_text("x")
        (self.work / "tool").chmod(0o755)
        (self.work / "closed").chmod(0)
        (self.work / "sub").mkdir()
        (self.work / "shut").mkdir()
        (self.work / "shut" / "in").write_text("x")
        (self.work / "shut").chmod(0)
        self.addCleanup((self.work / "shut").chmod, 0o755)
        (self.home / "secret").write_text("x")
        for name, target in (("out", str(self.home / "secret")), ("inward", "plain"), ("round", "round"), ("up", "../home"),
                             ("gone", "nothing")):
            (self.work / name).symlink_to(target)
        names = "plain tool closed .bashrc shut shut/in out inward round up up/secret new new/deeper sub/../plain".split()
        return [str(self.work), *(str(self.work / name) for name in names), str(self.home), str(self.home / "secret")]


class WithMounts(Why):
    way = NAMESPACE

    def test_the_kernel_agrees_on_what_a_host_has(self) -> None:
        private = ["/tmp", "/tmp/new", "/var/tmp/new", "/run/new", "/dev/shm/new"]
        self.compare([*EVERYWHERE, *private])

    def test_the_kernel_agrees_on_links_to_what_it_makes(self) -> None:
        self.compare_many(self.link_to_kernel(), ("read", "write", "exec"))

    def test_the_kernel_agrees_on_proc_and_dev(self) -> None:
        self.compare_many(self.of_the_kernel(), ("read", "write", "exec"))

    def test_the_kernel_agrees_in_and_around_the_workdir(self) -> None:
        self.compare(self.make_files())

    def test_the_kernel_agrees_on_what_options_show_and_hide(self) -> None:
        data, changed = self.directory("data"), self.directory("changed")
        for directory in (data, changed, self.work):
            (directory / "file").write_text("x")
            if os.getuid() == 0:
                (directory / "file").chmod(0o644)
        (self.work / "hidden").mkdir()
        (self.work / "hidden" / "file").write_text("x")
        self.compare(
            [str(data / "file"), "/elsewhere/file", "/elsewhere", str(changed / "file"), str(changed / "new"),
             str(self.work / "hidden" / "file"), "/own", "/own/new", str(data)],
            "--ro", f"{data}:/elsewhere", "--rw", str(changed), "--hide", str(self.work / "hidden"), "--tmpfs", "/own",
        )

    def test_a_layer_is_planned_and_not_made(self) -> None:
        if self.way is NAMESPACE:
            (answer,) = self.why("--cow", str(self.work / "new"), "write")
            self.assertTrue(answer["allowed"])
            self.assertEqual(list(self.home.rglob("*")), [])

    def test_cures_work_and_secrets_have_none(self) -> None:
        data = self.directory("data")
        (data / "a:b c").write_text("x")
        (answer,) = self.why(str(data / "a:b c"), "read")
        self.assertEqual(answer["cure"]["policy"], {"ro": [str(data / "a\\:b c")]})
        policy = self.base / "cured.json"
        policy.write_text(json.dumps(answer["cure"]["policy"]))
        self.assertTrue(self.why("--policy", str(policy), str(data / "a:b c"), "read")[0]["allowed"])
        self.assertEqual(self.jar("--policy", str(policy), "--", "cat", str(data / "a:b c")).stdout, b"x")
        (self.home / ".ssh").mkdir()
        (self.home / ".ssh" / "id").write_text("x")
        for name in (".config/gcloud", ".config/tool", "project"):
            (self.home / name).mkdir(parents=True)
        (self.home / "project" / ".netrc").write_text("x")
        for name, has_cure in ((".config/tool", True), (".config", False), (".config/gcloud", False), ("project", False)):
            (answer,) = self.why(str(self.home / name), "read", status=(1,))
            self.assertEqual((answer["cure"] is not None, answer["warning"] is None), (has_cure, has_cure), answer)
        (answer,) = self.why(str(self.home / ".ssh" / "id"), "read", status=(1,))
        self.assertIsNone(answer["cure"])
        self.assertIn("keys", answer["warning"])
        (answer,) = self.why("/usr/bin/env", "write", status=(1,))
        self.assertIsNone(answer["cure"])

    def test_words_and_exit_status(self) -> None:
        done = self.belljar("why", "mount")
        self.assertEqual((done.status, done.stdout.splitlines()[0]), (1, b"refused: mount: refused with EPERM by the filter"))
        done = self.belljar("why", "--allow-net", "good.test", "good.test:22")
        self.assertEqual(done.stdout.splitlines()[1], b"  allowed with: --allow-net good.test:22")
        self.assertEqual(self.belljar("why", "--allow-net", "good.test", "good.test:443").status, 0)
        for bad in (["no call and no host!"], ["/etc", "sideways"], []):
            self.assertEqual(self.belljar("why", *bad).status, 125, bad)


class WithLandlock(Why):
    way = LANDLOCK

    def test_the_kernel_agrees_on_what_a_host_has(self) -> None:
        self.compare(EVERYWHERE)

    # access(2), by which the probe finds programs, does not ask Landlock.
    def test_the_kernel_agrees_on_links_to_what_it_makes(self) -> None:
        self.compare_many(self.link_to_kernel(), ("read", "write"))

    def test_the_kernel_agrees_on_proc_and_dev(self) -> None:
        self.compare_many(self.of_the_kernel(), ("read", "write"))

    def test_the_kernel_agrees_in_and_around_the_workdir(self) -> None:
        self.compare(self.make_files())

    def test_the_cure_works(self) -> None:
        data = self.directory("data")
        (data / "file").write_text("x")
        (answer,) = self.why(str(data / "file"), "read", status=(1,))
        self.assertEqual(self.jar(*answer["cure"]["flag"].split(), "--", "cat", str(data / "file")).stdout, b"x")


class Proof(Why):
    """Every row of `doctor --prove` that a question can be about."""

    way = NAMESPACE
    CALLS = {
        "secret-memory": "memfd_secret", "aio": "io_setup", "remount": "mount", "mount": "mount", "chroot": "chroot",
        "unshare-user": "unshare", "clone-user": "clone", "clone3-user": "clone3", "setns": "setns", "bpf": "bpf",
        "perf": "perf_event_open", "keyctl": "keyctl", "io-uring": "io_uring_setup", "userfaultfd": "userfaultfd",
        "kexec": "kexec_load", "module": "init_module", "file-handle": "open_by_handle_at", "reboot": "reboot",
        "packet-socket": "socket", "vsock": "socket", "tcp-ulp": "setsockopt", "verity": "ioctl", "encryption-key": "ioctl",
        "page-cache": "mincore", "kcmp": "kcmp", "vmsplice": "vmsplice", "out-of-band": "sendto", "socket-filter": "setsockopt",
        "personality": "personality", "tiocsti": "ioctl", "limit-init": "prlimit64", "schedule-init": "sched_setscheduler",
    }
    PATHS = {
        "read-outside": "read", "stat-outside": "read", "list-outside": "read", "write-outside": "write", "create-outside": "write",
        "remove-outside": "write", "link-outside": "read", "truncate-outside": "write", "chmod-outside": "write",
        "chmod-descriptor": "write", "times-outside": "write", "attribute-outside": "write", "unix-stream": "write",
        "unix-datagram": "write",
    }
    # About processes, descriptors, limits and what the kernel does with them: no path, host or call decides.
    OTHERS = set(
        "read-by-engine move-above guard-config guard-link guard-gitlink overwrite-engine descriptor environment abstract-stream "
        "abstract-datagram pair-datagram abstract-name signal-engine signal-other pidfd-other owner-other trace-engine trace-other "
        "write-memory other-environ other-mem see-other limit-other renice-other init-environ init-cmdline shared-memory outlive "
        "fork-bomb hidden-memory terminals inotify queued-signals message-queues foreign-call terminal raise-limit setuid "
        "capabilities proc-sys protected tcp tcp-fast-open udp gate mark replace-engine shared-roots link-workdir uncover".split()
    )

    def test_no_answer_contradicts_the_proof(self) -> None:
        done = self.belljar("doctor", "--prove", "--json", "--rung", "namespace", timeout=120)
        rows = {row["name"]: row for row in json.loads(done.stdout)["attempts"]}
        self.assertEqual(set(rows), set(self.CALLS) | set(self.PATHS) | self.OTHERS, "say what the new row is about")
        outside = "/mnt"
        for name, row in rows.items():
            if not row["stopped"]:
                continue
            if name in self.PATHS:
                self.assertFalse(self.why(outside, self.PATHS[name])[0]["allowed"], name)
            if name in self.CALLS:
                (answer,) = self.why(self.CALLS[name])
                self.assertTrue(not answer["allowed"] or " if " in answer["why"], (name, answer))
        self.assertFalse(self.why("/proc/sys/kernel/hostname", "write")[0]["allowed"])
        self.assertFalse(self.why("203.0.113.7:80")[0]["allowed"])


if __name__ == "__main__":
    unittest.main()
