# SPDX-License-Identifier: Apache-2.0
"""What people would use instead, each with walls as near to the preset `agent` as it can have.

That is: the operating system read-only, the workdir writable at its own path, private /tmp and /run, no network, processes of
its own, no capabilities, no new privileges, a system call filter. `walls` says what a candidate has less or more of. A
candidate that is not installed, or does not work here, is named with the reason.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from typing import Callable, Dict, List, Optional

from bench.context import BELLJAR, Bench

PROBE_TIMEOUT_SECONDS = 20
# A candidate that is slower takes part in fewer rounds: others would have too few in the same time.
SLOW_SECONDS = 0.05
SYSTEM_FOLDERS = [name for name in ("/usr", "/etc", "/opt") if os.path.isdir(name)]
# Top names that are links into /usr, or folders of their own on older systems.
TOP_NAMES = [name for name in ("/bin", "/sbin", "/lib", "/lib64") if os.path.exists(name)]
REFUSED_CALLS = (
    "mount umount2 pivot_root setns unshare bpf perf_event_open keyctl add_key ptrace kexec_load init_module".split()
)
CONTAINER_ID = "belljar-bench"
ISOLATE_BOX = "--box-id=999"


@dataclasses.dataclass(frozen=True)
class Sandbox:
    """One other system. `line` gives the words that run a command, and writes what files it needs."""

    name: str
    program: str
    package: str
    walls: str
    line: Callable[[Bench, List[str]], List[str]]

    def path(self) -> Optional[str]:
        """Where it is."""
        return shutil.which(self.program)


def links_and_folders() -> Dict[str, Optional[str]]:
    """Each top name with what it links to; None: a folder."""
    return {name: os.readlink(name) if os.path.islink(name) else None for name in TOP_NAMES}


def make_root(bench: Bench) -> Path:
    """A root directory with every place that a candidate mounts something on."""
    root = bench.make_folder("root")
    for name in (*SYSTEM_FOLDERS, "/proc", "/dev", "/sys", "/tmp", "/run", "/var/tmp", str(bench.workdir)):
        (root / name.lstrip("/")).mkdir(parents=True, exist_ok=True)
    for name, target in links_and_folders().items():
        if target is None:
            (root / name.lstrip("/")).mkdir(exist_ok=True)
        else:
            (root / name.lstrip("/")).symlink_to(target)
    return root


def shown_folders() -> List[str]:
    """The operating system, as folders to be mounted read-only."""
    return SYSTEM_FOLDERS + [name for name, target in links_and_folders().items() if target is None]


# --- one function each ---


def bubblewrap(bench: Bench, command: List[str]) -> List[str]:
    """Mounts are options."""
    work = str(bench.workdir)
    words = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    for name in shown_folders():
        words += ["--ro-bind", name, name]
    for name, target in links_and_folders().items():
        words += ["--symlink", target, name] if target else []
    words += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/run"]
    return [*words, "--bind", work, work, "--chdir", work, *command]


def bubblewrap_same_view(bench: Bench, command: List[str]) -> List[str]:
    """The places that a jar shows, one by one, as its plan has them: no more of /etc, of the home, of /dev."""
    words = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--dev", "/dev", "--proc", "/proc"]
    plan = json.loads(subprocess.check_output([BELLJAR, "plan", "--json", "-C", str(bench.workdir), "--", *command]))
    for step in plan["steps"]:
        target = step.get("target", "")
        if not target.startswith("/") or target == "/dev" or target.startswith("/dev/"):
            continue  # --dev has made what is there
        if step["step"] == "bind":
            words += ["--ro-bind" if "read-only" in step["flags"] else "--bind", step["source"], target]
        elif step["step"] == "symlink":
            words += ["--symlink", step["source"], target]
        elif step["step"] == "private":
            words += ["--tmpfs", target]
    return [*words, "--chdir", str(bench.workdir), *command]


def firejail(bench: Bench, command: List[str]) -> List[str]:
    """Its own filter; the workdir takes the place of the home."""
    walls = "--net=none --seccomp --caps.drop=all --nonewprivs --private-tmp --private-dev --ipc-namespace --read-only=/usr"
    return ["firejail", "--quiet", "--noprofile", *walls.split(), f"--private={bench.workdir}", "--", *command]


def container_mounts(bench: Bench) -> List[Dict[str, object]]:
    """The mounts of a container's configuration."""
    bind = ["rbind", "nosuid", "nodev"]
    mounts: List[Dict[str, object]] = [
        {"destination": name, "type": "bind", "source": name, "options": [*bind, "ro"]} for name in shown_folders()
    ]
    mounts.append({"destination": "/proc", "type": "proc", "source": "proc"})
    for name in ("/dev", "/tmp", "/run"):
        mounts.append({"destination": name, "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]})
    work = str(bench.workdir)
    return [*mounts, {"destination": work, "type": "bind", "source": work, "options": bind}]


def write_bundle(bench: Bench, command: List[str]) -> Path:
    """A bundle: what crun and runc run."""
    folder = bench.make_folder("bundle")
    spaces = ["pid", "network", "ipc", "uts", "mount", "cgroup", *([] if os.getuid() == 0 else ["user"])]
    linux: Dict[str, object] = {
        "namespaces": [{"type": name} for name in spaces],
        "seccomp": {
            "defaultAction": "SCMP_ACT_ALLOW",
            "syscalls": [{"names": REFUSED_CALLS, "action": "SCMP_ACT_ERRNO"}],
        },
    }
    if os.getuid() != 0:
        linux["uidMappings"] = [{"containerID": 0, "hostID": os.getuid(), "size": 1}]
        linux["gidMappings"] = [{"containerID": 0, "hostID": os.getgid(), "size": 1}]
    none: List[str] = []
    sets = ("bounding", "effective", "inheritable", "permitted", "ambient")
    config = {
        "ociVersion": "1.0.2",
        "root": {"path": str(make_root(bench)), "readonly": True},
        "hostname": "jar",
        "mounts": container_mounts(bench),
        "linux": linux,
        "process": {
            "terminal": False,
            "user": {"uid": 0, "gid": 0},
            "args": command,
            "env": ["PATH=/usr/local/bin:/usr/bin:/bin"],
            "cwd": str(bench.workdir),
            "capabilities": {name: none for name in sets},
            "noNewPrivileges": True,
        },
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    return folder


def crun(bench: Bench, command: List[str]) -> List[str]:
    """Without a cgroup: a jar without limits has none either."""
    state = str(bench.make_folder("state"))
    bundle = str(write_bundle(bench, command))
    return ["crun", "--root", state, "--cgroup-manager=disabled", "run", "--bundle", bundle, CONTAINER_ID]


def runc(bench: Bench, command: List[str]) -> List[str]:
    """It cannot go without a cgroup."""
    state = str(bench.make_folder("state"))
    return ["runc", "--root", state, "run", "--bundle", str(write_bundle(bench, command)), CONTAINER_ID]


def nsjail(bench: Bench, command: List[str]) -> List[str]:
    """A root in memory, as a jar's."""
    words = ["nsjail", "--really_quiet", "-Mo", "--time_limit", "0", "--disable_rlimits"]
    for name in shown_folders():
        words += ["--bindmount_ro", name]
    for name, target in links_and_folders().items():
        words += ["--symlink", f"{target}:{name}"] if target else []
    words += ["--tmpfsmount", "/tmp", "--tmpfsmount", "/run", "--bindmount", str(bench.workdir), "--cwd", str(bench.workdir)]
    words += ["--bindmount", "/dev/null", "--seccomp_string", f"ERRNO(1) {{ {', '.join(REFUSED_CALLS)} }} DEFAULT ALLOW"]
    return [*words, "--", *command]


def minijail(bench: Bench, command: List[str]) -> List[str]:
    """Mounts onto an empty root."""
    work = str(bench.workdir)
    words = ["minijail0", "-U", f"-m0 {os.getuid()} 1", f"-M0 {os.getgid()} 1", "-p", "-v", "-e", "-l", "-N", "--uts", "-n"]
    words += ["-c", "0", "-P", str(make_root(bench)), "-k", "proc,/proc,proc,0xe"]
    for name in shown_folders():
        words += ["-b", f"{name},{name}"]
    words += ["-k", "tmpfs,/tmp,tmpfs,0xe", "-k", "tmpfs,/run,tmpfs,0xe", "-b", f"{work},{work},1", "-b", "/dev/null,/dev/null"]
    (Path(words[words.index("-P") + 1]) / "dev" / "null").touch()
    return [*words, "--", *command]


def isolate(bench: Bench, command: List[str]) -> List[str]:
    """A box is made once, outside of what is timed, and used for every run."""
    subprocess.run(["isolate", ISOLATE_BOX, "--init"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    bench.at_end(
        lambda: subprocess.run(["isolate", ISOLATE_BOX, "--cleanup"], stderr=subprocess.DEVNULL, check=False)
    )
    work = str(bench.workdir)
    return ["isolate", ISOLATE_BOX, "--silent", f"--dir={work}={work}:rw", f"--chdir={work}", "--run", "--", *command]


def systemd_nspawn(bench: Bench, command: List[str]) -> List[str]:
    """A container without an init system of its own."""
    words = ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--as-pid2", "--private-network", "--read-only"]
    words += ["--no-new-privileges=yes", "--drop-capability=all", "--console=pipe", "--resolv-conf=off", "--timezone=off"]
    words += [f"--directory={make_root(bench)}", "--tmpfs=/tmp", f"--bind={bench.workdir}", f"--chdir={bench.workdir}"]
    return [*words, *(f"--bind-ro={name}" for name in shown_folders()), "--", *command]


def unshare(bench: Bench, command: List[str]) -> List[str]:
    """As little as can be called a sandbox."""
    spaces = "--user --map-current-user --mount --pid --fork --kill-child --net --ipc --uts --cgroup"
    return ["unshare", *spaces.split(), *command]


def srt(bench: Bench, command: List[str]) -> List[str]:
    """Settings are a file; the command is one string for a shell."""
    settings = bench.make_folder("srt") / "settings.json"
    files = {"denyRead": ["~/.ssh", "~/.aws"], "allowWrite": [str(bench.workdir)], "denyWrite": []}
    settings.write_text(json.dumps({"network": {"allowedDomains": [], "deniedDomains": []}, "filesystem": files}))
    return ["srt", "--settings", str(settings), "-c", shlex.join(command)]


def codex(bench: Bench, command: List[str]) -> List[str]:
    """Its sandbox alone, without a model."""
    return ["codex", "sandbox", "-c", 'sandbox_mode="workspace-write"', "--", *command]


SANDBOXES = [
    Sandbox("bubblewrap", "bwrap", "bubblewrap", "no system call filter, no second wall, no limits", bubblewrap),
    Sandbox(
        "bubblewrap-same-view", "bwrap", "bubblewrap",
        "shows what a jar shows; no system call filter, no second wall, no limits", bubblewrap_same_view,
    ),
    Sandbox("firejail", "firejail", "firejail", "set-user-id root; its own filter; the whole root is seen", firejail),
    Sandbox("crun", "crun", "crun", "a short filter; no cgroup; no second wall", crun),
    Sandbox("runc", "runc", "runc", "a short filter; a cgroup; no second wall", runc),
    Sandbox("nsjail", "nsjail", "nsjail, or from source", "a short filter; no second wall", nsjail),
    Sandbox("minijail", "minijail0", "minijail, or from source", "no system call filter, no second wall", minijail),
    Sandbox("isolate", "isolate", "isolate, or from source", "set-user-id root; no filter; its box is made ahead", isolate),
    Sandbox("systemd-nspawn", "systemd-nspawn", "systemd-container", "root only; its own filter", systemd_nspawn),
    Sandbox("unshare", "unshare", "util-linux", "namespaces only: every file is seen and can be written", unshare),
    Sandbox("srt", "srt", "@anthropic-ai/sandbox-runtime (npm)", "bubblewrap with its own filter and proxies", srt),
    Sandbox("codex", "codex", "@openai/codex (npm)", "every file can be read; Landlock and seccomp, or bubblewrap", codex),
]


def belljar(bench: Bench, command: List[str]) -> List[str]:
    """The preset `agent`, as it is."""
    return [BELLJAR, "run", "-C", str(bench.workdir), "--", *command]


def problem(words: List[str], cwd: Path) -> str:
    """Why a command line does not work here; nothing where it does."""
    try:
        done = subprocess.run(
            words,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            timeout=PROBE_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"not done after {PROBE_TIMEOUT_SECONDS} s"
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    if done.returncode == 0:
        return ""
    errors = [line for line in lines if "error" in line.lower()] + lines[-1:] + ["no message"]
    return f"status {done.returncode}: {errors[0][:200]}"


class Field:
    """The candidates that were found to run one command, and why others were not."""

    def __init__(self, bench: Bench, command: List[str], names: Optional[List[str]] = None, bare: str = "bare") -> None:
        self.lines: Dict[str, List[str]] = {bare: command, "belljar": belljar(bench, command)}
        self.missing: Dict[str, str] = {}
        self.every: Dict[str, int] = {}  # slow ones: only in every so many rounds
        for sandbox in SANDBOXES:
            if names is None or sandbox.name in names:
                self._try(bench, sandbox, command)

    def _try(self, bench: Bench, sandbox: Sandbox, command: List[str]) -> None:
        path = sandbox.path()
        if path is None:
            self.missing[sandbox.name] = f"not installed; package {sandbox.package}"
            return
        words = sandbox.line(bench, command)
        words[0] = path
        begin = time.monotonic()
        why = problem(words, bench.workdir)
        self.every[sandbox.name] = max(1, int((time.monotonic() - begin) / SLOW_SECONDS))
        if why:
            self.missing[sandbox.name] = f"installed, but does not work here: {why}"
        else:
            self.lines[sandbox.name] = words

    def commands(self, bench: Bench) -> Dict[str, str]:
        """The command lines, without the names of directories that are gone afterwards."""
        places = {str(bench.workdir): "WORKDIR", str(bench.folder): "FOLDER", BELLJAR: "belljar"}
        lines = {}
        for name, words in self.lines.items():
            line = shlex.join(words)
            for place, word in places.items():
                line = line.replace(place, word)
            lines[name] = line
        return lines
