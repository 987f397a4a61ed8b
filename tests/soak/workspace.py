#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""./dev soak workspace [PART...]: what may happen to a workspace while it is applied, often.

kills:  500 times an apply is killed at a random moment and applied again: the workdir is as if the command had worked in it.
edits:  a host process saves 10,000 files while they are applied, in place or by a rename: what it saved last is there.
twice:  two applies of one workspace at once, and of two workspaces over the same files: no file is torn, none is lost.
full:   the disk is full in the middle: every file is the old or the new one; with room again the next apply goes on. Root only.
large:  a million empty files, a file of a tebibyte with a hole, a thousand levels: diff, apply and discard in bounded time and memory.
systems: random changes on btrfs, xfs, ext4, tmpfs and an overlay, natively and under a layer with a checkpoint: the same tree. Root only; also
         as an ordinary user.

All of them without a name. BELLJAR_SOAK_PART scales the numbers (0.1: a tenth). Exit status 0: all held.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable, Dict, List, Optional, Tuple

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import paths  # noqa: E402
from harness.workspace_case import CHANGES, RANDOM_CHANGES, fill, tree  # noqa: E402

PART = float(os.environ.get("BELLJAR_SOAK_PART", "1"))
BOUND_SECONDS = 600
# Of a command that decides about a million changes.
MEMORY_MAX = 1 << 30
EDITED_FILES = 250


def scaled(count: int) -> int:
    return max(1, int(count * PART))


class Soak:
    """A folder with a workdir and stores of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.wrong: List[str] = []
        self.environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}

    def check(self, is_right: bool, text: str) -> None:
        if not is_right:
            self.wrong.append(text)
            print(f"WRONG {text}", flush=True)

    def start(self, *words: str, work: Optional[Path] = None) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [paths.belljar(), *words], cwd=work or self.work, env=self.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def belljar(self, *words: str, work: Optional[Path] = None) -> Tuple[int, bytes, bytes]:
        process = self.start(*words, work=work)
        out, errors = process.communicate(timeout=BOUND_SECONDS)
        return process.returncode, out, errors

    def must(self, *words: str, status: int = 0, work: Optional[Path] = None) -> bytes:
        code, out, errors = self.belljar(*words, work=work)
        self.check(code == status, f"belljar {' '.join(words)[:80]} ended with {code}: {errors.decode(errors='replace')[-400:]}")
        return out

    def cow(self, *command: str, work: Optional[Path] = None) -> Dict[str, object]:
        found: Dict[str, object] = json.loads(self.must("run", "--json", "--cow", "--", *command, work=work))["workspace"]
        return found

    def begin(self) -> None:
        subprocess.run(["rm", "-rf", str(self.work)], check=True)
        self.work.mkdir()

    def stores(self) -> List[str]:
        top = self.folder / "state/belljar/ws"
        return [path.name for path in top.glob("*") if not path.name.startswith(".")] if top.exists() else []


MORE = "\nfor i in $(seq 40); do echo $i > new$i; mkdir -p d$((i % 5)); echo $i > d$((i % 5))/$i; done\nln new1 also1"


def kills(soak: Soak) -> None:
    native = soak.folder / "native"
    native.mkdir()
    fill(native)
    (native / "hard2").unlink()  # a second name for a file is a file of its own in a layer
    (native / "hard2").write_text("hard1\n")
    before = soak.folder / "before"
    shutil.copytree(native, before, symlinks=True)
    subprocess.run(["sh", "-c", CHANGES + MORE], cwd=native, check=True)
    expected = tree(native)
    killed = 0
    took = 0.02
    rounds = scaled(500)
    for number in range(rounds):
        shutil.rmtree(soak.work, ignore_errors=True)
        shutil.copytree(before, soak.work, symlinks=True)
        identity = str(soak.cow("sh", "-c", CHANGES + MORE)["id"])
        begun = time.monotonic()
        apply = soak.start("apply", identity)
        if number:
            time.sleep(random.uniform(0, took * 1.1))
            apply.kill()
        apply.communicate()
        if not number:
            took = time.monotonic() - begun
        if apply.returncode == -signal.SIGKILL:
            killed += 1
            code, _, errors = soak.belljar("apply", identity)
            # Killed after the last change, when the store was being removed.
            gone = code == 125 and b"no workspace" in errors
            soak.check(code == 0 or gone, f"kill {number}: the second apply ended with {code}: {errors!r}")
        soak.check(tree(soak.work) == expected, f"kill {number}: the workdir differs")
        one, also = os.stat(soak.work / "new1"), os.stat(soak.work / "also1")
        soak.check(one.st_ino == also.st_ino, f"kill {number}: a link is lost")
        if soak.wrong:
            break
    soak.must("workspace", "list")
    soak.check(not soak.stores(), f"stores are left: {soak.stores()[:5]}")
    print(f"kills: {killed} of {rounds} applies killed, applied again, {len(soak.wrong)} wrong", flush=True)


WRITER = """
import os, random, sys, time
files, seed, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
dice = random.Random(seed)
order = list(range(files))
dice.shuffle(order)
print("ready", flush=True)
sys.stdin.readline()
begun = time.monotonic()
for at, number in enumerate(order):
    # As long as the apply takes, so that the two meet.
    time.sleep(max(0, begun + seconds * at / files - time.monotonic()))
    name = "f%d" % number
    how = dice.randrange(3)
    text = b"host %d %d\\n" % (seed, number)
    if how == 0:
        with open(".saving", "wb") as file:
            file.write(text)
        os.rename(".saving", name)
    else:
        file = os.open(name, os.O_WRONLY | (os.O_TRUNC if how == 1 else 0))
        time.sleep(dice.choice([0, 0, 0.0002]))
        os.write(file, text)
        os.ftruncate(file, len(text))
        os.close(file)
"""


def edits(soak: Soak) -> None:
    rounds = scaled(10_000) // EDITED_FILES or 1
    applied = conflicts = saved = 0
    took = 0.02
    for number in range(rounds):
        soak.begin()
        for name in range(EDITED_FILES):
            (soak.work / f"f{name}").write_text(f"old {name}\n")
        identity = str(soak.cow("sh", "-c", f"for i in $(seq 0 {EDITED_FILES - 1}); do echo theirs $i > f$i; done")["id"])
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(EDITED_FILES), str(number), str(took)],
            cwd=soak.work, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert writer.stdin and writer.stdout
        writer.stdout.readline()
        begun = time.monotonic()
        apply = soak.start("apply", "--json", identity)
        writer.stdin.write(b"\n")
        writer.stdin.flush()
        out, errors = apply.communicate(timeout=BOUND_SECONDS)
        took = time.monotonic() - begun
        soak.check(writer.wait(BOUND_SECONDS) == 0, "the writer failed")
        soak.check(apply.returncode in (0, 1), f"edits {number}: apply ended with {apply.returncode}: {errors!r}")
        answer = json.loads(out)
        applied += answer["applied"]
        conflicts += answer["conflicts"]
        saved += len(answer["saved"])
        for name in range(EDITED_FILES):
            text = (soak.work / f"f{name}").read_bytes()
            soak.check(text == b"host %d %d\n" % (number, name), f"edits {number}: f{name} has {text!r}")
        left = [path.name for path in soak.work.iterdir() if path.name.startswith(".belljar")]
        soak.check(not left, f"edits {number}: left {left}")
        soak.belljar("discard", identity)
        if soak.wrong:
            break
    print(
        f"edits: {rounds * EDITED_FILES} files saved by the host while they were applied: {applied} applied first, {conflicts} conflicts, "
        f"{saved} kept aside, {len(soak.wrong)} wrong", flush=True,
    )  # fmt: skip


def twice(soak: Soak) -> None:
    refused = 0
    rounds = scaled(100)
    for number in range(rounds):
        soak.begin()
        for name in range(40):
            (soak.work / f"f{name}").write_text("old\n")
        # One workspace, two applies.
        identity = str(soak.cow("sh", "-c", "for i in $(seq 0 39); do echo new > f$i; echo new > n$i; done")["id"])
        both = [soak.start("apply", identity) for _ in range(2)]
        ends = [(process.communicate(timeout=BOUND_SECONDS), process.returncode) for process in both]
        refused += sum(code == 125 for _, code in ends)
        soak.check(0 in [code for _, code in ends], f"twice {number}: {ends}")
        texts = {(soak.work / f"{kind}{name}").read_text() for name in range(40) for kind in "fn"}
        soak.check(texts == {"new\n"}, f"twice {number}: {texts}")
        # Two workspaces over the same files.
        pair = [str(soak.cow("sh", "-c", f"for i in $(seq 0 39); do echo {word} > f$i; echo {word} > m$i; done")["id"]) for word in "ab"]
        both = [soak.start("apply", "--json", identity) for identity in pair]
        answers = [json.loads(process.communicate(timeout=BOUND_SECONDS)[0]) for process in both]
        for kind in "fm":
            for name in range(40):
                text = (soak.work / f"{kind}{name}").read_text()
                soak.check(text in ("a\n", "b\n"), f"twice {number}: {kind}{name} has {text!r}")
        total = sum(answer["applied"] for answer in answers)
        soak.check(total == 80, f"twice {number}: {total} changes applied, and each file once would be 80: {answers}")
        for identity in pair:
            soak.belljar("discard", identity)
        soak.check(not soak.stores(), f"twice {number}: left {soak.stores()}")
        if soak.wrong:
            break
    print(f"twice: {rounds} pairs of applies of one workspace ({refused} refused), {rounds} pairs over the same files, {len(soak.wrong)} wrong", flush=True)


def full(soak: Soak) -> None:
    if os.geteuid() != 0:
        print("full: skipped, it mounts a file system", flush=True)
        return
    small = soak.folder / "small"
    small.mkdir()
    stopped = 0
    rounds = scaled(40)
    for number in range(rounds):
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(small)], check=True)
        try:
            # The layer beside the workdir, or on another file system: moved, or copied.
            work = small / "work" if number % 2 else small
            work.mkdir(exist_ok=True)
            for name in range(20):
                (work / f"f{name}").write_bytes(b"old" * 1000)
            made = soak.cow("sh", "-c", "for i in $(seq 0 19); do head -c 40000 /dev/zero > f$i; mkdir -p d$i; echo x > d$i/n; done; ln -s f0 link", work=work)
            ballast = small / (".ballast" if number % 2 else "ballast")
            with open(ballast, "wb", buffering=0) as file:
                try:
                    while file.write(bytes(4096)):
                        pass
                except OSError:
                    pass
            room = random.randrange(0, 1 << 20)
            os.truncate(ballast, max(0, ballast.stat().st_size - room))
            code, _, errors = soak.belljar("apply", str(made["id"]), work=work)
            stopped += code == 125
            soak.check(code == 0 or b"No space left" in errors, f"full {number}: {code} {errors!r}")
            for name in range(20):
                text = (work / f"f{name}").read_bytes()
                soak.check(text in (b"old" * 1000, bytes(40000)), f"full {number}: f{name} has {len(text)} bytes")
            ballast.unlink()
            if code:
                soak.must("apply", str(made["id"]), work=work)
            for name in range(20):
                soak.check((work / f"f{name}").read_bytes() == bytes(40000), f"full {number}: f{name} is not applied")
                soak.check((work / f"d{name}/n").read_text() == "x\n", f"full {number}: d{name} is not applied")
            left = [path.name for path in work.iterdir() if path.name.startswith(".belljar-apply")]
            soak.check(not left, f"full {number}: left {left}")
        finally:
            subprocess.run(["umount", str(small)], check=True)
        if soak.wrong:
            break
    print(f"full: {stopped} of {rounds} applies stopped by a full disk and went on later, {len(soak.wrong)} wrong", flush=True)


MANY = "import os, sys\nfor i in range(int(sys.argv[1])):\n if i % 1000 == 0: os.mkdir('d%d' % i)\n os.close(os.open('d%d/%d' % (i - i % 1000, i), os.O_CREAT | os.O_WRONLY))"
DEEP = "import os\nfor i in range(1000):\n os.mkdir('a-name')\n os.chdir('a-name')\nopen('bottom', 'w').write('x')"
SPARSE = "f = open('huge', 'wb'); f.truncate(1 << 40); f.seek(1 << 39); f.write(b'x')"


def large(soak: Soak) -> None:
    count = scaled(1_000_000)
    for name, command in (
        (f"{count} empty files", ["python3", "-c", MANY, str(count)]),
        ("a tebibyte with a hole", ["python3", "-c", SPARSE]),
        ("1,000 levels", ["python3", "-c", DEEP]),
    ):
        times: Dict[str, float] = {}
        sizes: Dict[str, int] = {}

        def timed(step: str, action: Callable[[], object]) -> object:
            begun = time.monotonic()
            found = action()
            times[step] = time.monotonic() - begun
            sizes[step] = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
            return found

        soak.begin()
        made = timed("run", lambda: soak.cow(*command))
        assert isinstance(made, dict)
        identity = str(made["id"])
        timed("diff", lambda: soak.must("diff", "--stat", identity))
        timed("json", lambda: soak.must("diff", "--json", identity))
        timed("apply", lambda: soak.must("apply", identity))
        soak.cow(*command[:2], command[2].replace("'d%d'", "'e%d'").replace("'d%d/", "'e%d/").replace("huge", "huge2").replace("a-name", "b-name"), *command[3:])
        timed("discard", lambda: soak.must("discard"))
        for step, size in sizes.items():
            soak.check(size <= MEMORY_MAX, f"large, {name}: {step} took {size >> 20} MiB")
            soak.check(times[step] <= BOUND_SECONDS, f"large, {name}: {step} took {times[step]:.0f} s")
        soak.check(not soak.stores(), f"large, {name}: left {soak.stores()}")
        words = ", ".join(f"{step} {seconds:.1f} s" for step, seconds in times.items())
        print(f"large: {name}: {words}; at most {max(sizes.values()) >> 20} MiB", flush=True)


# How to make a file system in a file; what is not installed is skipped.
SYSTEMS = {"btrfs": ["mkfs.btrfs", "-q"], "xfs": ["mkfs.xfs", "-q"], "ext4": ["mkfs.ext4", "-q"], "tmpfs": [], "overlay": []}
ORDINARY = 47123


def mount_new(soak: Soak, name: str, place: Path) -> bool:
    image = soak.folder / f"{name}.image"
    if name == "overlay":
        # As in a container: the workdir is on an overlay, and the stores are elsewhere.
        for part in ("lower", "upper", "inner"):
            (soak.folder / part).mkdir()
        options = ",".join(f"{key}={soak.folder / part}" for key, part in (("lowerdir", "lower"), ("upperdir", "upper"), ("workdir", "inner")))
        return subprocess.run(["mount", "-t", "overlay", "-o", options, "overlay", str(place)], check=False).returncode == 0
    if not SYSTEMS[name]:
        return subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400m", "tmpfs", str(place)], check=False).returncode == 0
    if not shutil.which(SYSTEMS[name][0]):
        return False
    with open(image, "wb") as file:
        file.truncate(400 << 20)
    made = subprocess.run([*SYSTEMS[name], str(image)], stdout=subprocess.DEVNULL, check=False)
    return made.returncode == 0 and subprocess.run(["mount", "-o", "loop", str(image), str(place)], check=False).returncode == 0


def compare_random(soak: Soak, place: Path, seed: int, uid: int, label: str) -> None:
    work, native = place / "work", place / "native"

    def run(command: List[str], folder: Path) -> "subprocess.CompletedProcess[bytes]":
        return subprocess.run(
            command, cwd=folder, env=soak.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            user=uid, group=uid, extra_groups=[], check=False,
        )  # fmt: skip

    change = ["/usr/bin/python3", "-c", RANDOM_CHANGES]
    for top in (work, native):
        subprocess.run(["rm", "-rf", str(top)], check=True)
        top.mkdir()
        os.chown(top, uid, uid)
        run([*change, str(seed), "60"], top)
        for path in top.rglob("*"):
            # Links between what was there before are broken by a layer; begin without any.
            if path.is_file() and not path.is_symlink() and path.lstat().st_nlink > 1:
                run(["sh", "-c", 'cp -p "$1" copy.tmp && mv copy.tmp "$1"', "sh", str(path)], top)
    made: Dict[str, object] = {}
    for part in (1, 2):
        # A layer breaks links between what was there before, and so does a checkpoint.
        more = [*change, str(seed + part * (1 << 31)), "60", *(["no-links"] if part == 1 else [])]
        run(more, native)
        done = run([paths.belljar(), "run", "--json", "--workspace", "soak", "--", *more], work)
        soak.check(done.returncode == 0, f"{label}: run ended with {done.returncode}: {done.stderr!r}")
        made = json.loads(done.stdout)["workspace"] if done.returncode == 0 else {}
        soak.check(made.get("kind") == "overlay", f"{label}: {made}")
        if made.get("id") and part == 1:
            done = run([paths.belljar(), "workspace", "checkpoint", "soak"], work)
            soak.check(done.returncode == 0, f"{label}: checkpoint ended with {done.returncode}: {done.stderr!r}")
    if made.get("id"):
        done = run([paths.belljar(), "apply", "soak"], work)
        soak.check(done.returncode == 0, f"{label}: apply ended with {done.returncode}: {done.stderr!r}")
        run([paths.belljar(), "discard", "soak"], work)
    soak.check(tree(work) == tree(native), f"{label}: the trees differ")


def systems(soak: Soak) -> None:
    if os.geteuid() != 0:
        print("systems: skipped, it mounts file systems", flush=True)
        return
    soak.folder.chmod(0o755)
    place = soak.folder / "place"
    place.mkdir()
    state = soak.folder / "state"
    for name in SYSTEMS:
        if not mount_new(soak, name, place):
            print(f"systems: {name} skipped: it cannot be made or mounted here", flush=True)
            continue
        place.chmod(0o777)
        try:
            for uid in (0, ORDINARY):
                subprocess.run(["rm", "-rf", str(state)], check=True)
                state.mkdir()
                os.chown(state, uid, uid)
                rounds = scaled(40)
                for number in range(rounds):
                    seed = random.randrange(1 << 30)
                    compare_random(soak, place, seed, uid, f"systems: {name}, uid {uid}, seed {seed}")
                    if soak.wrong:
                        return
                print(f"systems: {name}, uid {uid}: {rounds} random trees the same", flush=True)
        finally:
            subprocess.run(["umount", "-l", str(place)], check=True)


PARTS: Dict[str, Callable[[Soak], None]] = {"kills": kills, "edits": edits, "twice": twice, "full": full, "large": large, "systems": systems}


def main(arguments: List[str]) -> int:
    """See the file's header."""
    wrong = 0
    for name in arguments or list(PARTS):
        folder = Path(tempfile.mkdtemp(prefix="bjt-soak-ws-", dir=os.environ.get("BELLJAR_SOAK_DIR", "/tmp")))
        soak = Soak(folder)
        soak.begin()
        try:
            PARTS[name](soak)
        finally:
            # Deeper than a path can be long, which Python's own cannot remove.
            subprocess.run(["chmod", "-R", "u+rwx", str(folder)], check=False)
            subprocess.run(["rm", "-rf", str(folder)], check=False)
        wrong += len(soak.wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
