# SPDX-License-Identifier: Apache-2.0
"""Layers of workspaces: no jar reaches them, what is applied is what was shown, and no mark on the host bends a later layer."""

from __future__ import annotations

import json
import mmap
import os
import tempfile
from pathlib import Path
from typing import Dict, List

from adversarial_support import PREAMBLE, PYTHON, AttackCase
from harness import trees
from harness.case import on_ways
from harness.runner import LANDLOCK, NAMESPACE

# What a jar sees of the directory in its first argument, and whether it can write or move there.
REACH = (
    PREAMBLE
    + """
top = sys.argv[1]
print("seen", sorted(os.path.join(at, name)[len(top):] for at, names, files in os.walk(top) for name in names + files))
attempt("make", lambda: os.mkdir(top + "/made"))
attempt("move", lambda: os.rename(top, top + ".moved"))
attempt("move-above", lambda: os.rename(os.path.dirname(top), os.path.dirname(top) + ".moved"))
"""
)

# Every way to leave a mark of overlayfs on files of the work directory.
MARKS = (
    PREAMBLE
    + """
attempt("device", lambda: os.mknod("device", 0o20644, 0))
open("moved", "w").close()
attempt("whiteout", lambda: call(316, -100, b"moved", -100, b"there", 4))
for name in ("whiteout", "metacopy", "opaque", "redirect"):
    for path in ("empty", "full", "d", os.open("empty", os.O_RDWR)):
        attempt("%s %s" % (name, path), lambda: os.setxattr(path, "user.overlay." + name, b"y"))
attempt("at", lambda: call(463, -100, b"empty", 0, b"user.overlay.whiteout", 0, 16))
"""
)


class LayerCase(AttackCase):
    def stores(self) -> Path:
        return self.home / ".local/state/belljar/ws"

    def layer(self, name: str = "w", script: str = "echo layer > f") -> Path:
        """A workspace of the work directory: where its layer is."""
        self.assertEqual(self.jar("-q", "--workspace", name, *self.sh(script)).status, 0)
        found = json.loads(self.belljar("workspace", "show", name, "--json").stdout)
        return Path(found["upper"]) / "upper"

    def reach(self, *options: object, **more: object) -> str:
        words = ["-q", *map(str, options), "--", PYTHON, "-I", "-c", REACH, str(self.stores()), self.marker]
        return self.jar(*words, **more).stdout.decode()  # type: ignore[arg-type]


@on_ways(NAMESPACE)
class Hidden(LayerCase):
    def check_nothing_seen(self, seen: str) -> None:
        self.assertIn("seen []", seen)
        answers = self.answers(seen)
        self.assertNotIn("ok", [answers[name] for name in ("make", "move", "move-above")], seen)

    def test_no_directory_of_a_policy_shows_a_store(self) -> None:
        layer = self.layer()
        for shown in (self.home, self.base, self.home / ".local", self.home / ".local/state/belljar"):
            for option in ("--rw", "--ro"):
                self.check_nothing_seen(self.reach(option, shown))
        for inside in (self.stores(), layer, layer.parent):
            seen = self.jar("-q", "--rw", inside, *self.sh(f"find {inside} -type f; echo evil > {layer}/f"))
            self.assertEqual(seen.stdout, b"", seen)
        self.assertEqual((layer / "f").read_text(), "layer\n")

    def test_a_store_that_is_made_while_a_jar_lives_is_not_seen_by_it(self) -> None:
        script = f"echo ready; until [ -e go ]; do sleep 0.02; done; find {self.stores()} -type f; echo end"
        process = self.start("-q", "--rw", self.home, *self.sh(script))
        assert process.stdout
        self.assertEqual(process.stdout.readline(), b"ready\n")
        self.layer()
        (self.work / "go").touch()
        self.assertEqual(process.stdout.read(), b"end\n")

    def test_stores_of_another_environment_are_hidden_too(self) -> None:
        self.layer()
        env = {**self.env, "XDG_STATE_HOME": str(self.directory("elsewhere"))}
        self.check_nothing_seen(self.reach("--rw", self.home, env=env))

    def test_a_layer_is_not_beside_the_data(self) -> None:
        """On another file system, where every jar that is shown the data would see it."""
        other = Path(tempfile.mkdtemp(prefix="bjt-", dir="/dev/shm"))
        self.addCleanup(trees.remove, other)
        other.chmod(0o755)
        done = self.jar("-q", "--workspace", "w", *self.sh("echo x > f"), cwd=other)
        self.assertEqual(done.status, 0, done)
        self.assertEqual([name for name in os.listdir("/dev/shm") if name.startswith(".belljar-ws")], [])
        self.assertEqual(self.belljar("apply", "w", cwd=other).status, 0)
        self.assertEqual((other / "f").read_text(), "x\n")


@on_ways(LANDLOCK)
class Refused(LayerCase):
    def test_a_directory_that_shows_stores_is_refused(self) -> None:
        self.assertEqual(self.jar("--rw", self.home, *self.sh("true")).status, 0, "there is none")
        self.assert_failed(self.jar("--cow", "--rw", self.home, *self.sh("true")), "workspaces")
        self.layer()
        for shown in (self.home, self.base, self.home / ".local/state"):
            for option in ("--rw", "--ro"):
                self.assert_failed(self.jar(option, shown, *self.sh("true")), "workspaces")
        beside = self.home / "beside"
        beside.mkdir()
        self.assertEqual(self.jar("--rw", beside, *self.sh("true")).status, 0)

    def test_a_layer_of_another_jar_cannot_be_named(self) -> None:
        layer = self.layer()
        self.assert_failed(self.jar("--rw", layer, *self.sh("true")), "workspaces")
        self.assertEqual(self.jar("-q", *self.sh(f"echo evil > {layer}/f")).status, 2)
        self.assertEqual((layer / "f").read_text(), "layer\n")


@on_ways(NAMESPACE, LANDLOCK)
class Shown(LayerCase):
    def refused(self, *words: str) -> Dict[str, str]:
        done = self.belljar("apply", "w", "--json", *words)
        found: List[Dict[str, str]] = json.loads(done.stdout)["not_applied"]
        self.assertEqual(done.status, 1 if found else 0, done)
        return {entry["path"]: entry["why"] for entry in found}

    def test_what_changed_after_it_was_shown_is_not_applied(self) -> None:
        self.layer(script="echo good > changed; echo good > same; ln -s same link; mkdir d; echo good > d/f; chmod 600 same")
        self.assertEqual(self.belljar("diff", "w").status, 0)
        self.layer(script="echo evil > changed; rm link; ln -s / link; echo evil > new; echo evil > d/new; chmod 755 d/f; touch d/f")
        why = self.refused()
        self.assertEqual(sorted(why), ["changed", "d/f", "d/new", "link", "new"])
        self.assertEqual({why["new"], why["d/new"]}, {"is newer than what was shown"})
        self.assertEqual(sorted(os.listdir(self.work)), ["attacker", "d", "same"])
        # Whoever looks again has seen it.
        self.assertEqual(self.belljar("diff", "w").status, 0)
        self.assertEqual(set(self.refused()), {"link"})
        self.assertEqual((self.work / "changed").read_text(), "evil\n")

    def test_a_look_at_some_paths_is_one_at_those(self) -> None:
        self.layer(script="mkdir a b; echo good > a/f; echo good > b/f")
        self.assertEqual(self.belljar("diff", "w", "a").status, 0)
        self.layer(script="echo evil > a/f; echo evil > a/new; echo other > b/f")
        self.assertEqual(sorted(self.refused()), ["a/f", "a/new"])
        self.assertEqual((self.work / "b/f").read_text(), "other\n")

    def test_a_look_at_some_paths_does_not_stand_for_all(self) -> None:
        self.layer(script="echo good > a; echo good > b")
        self.assertEqual(self.belljar("diff", "w").status, 0)
        self.layer(script="echo evil > a; echo evil > b")
        self.assertEqual(self.belljar("diff", "w", "a").status, 0)
        self.assertEqual(sorted(self.refused()), ["b"])

    def test_allowing_and_settling_lifts_nothing(self) -> None:
        self.layer(script="echo good > f")
        self.assertEqual(self.belljar("diff", "w").status, 0)
        self.layer(script="echo evil > f")
        self.assertEqual(sorted(self.refused("--theirs", "f", "--allow-risky", "f")), ["f"])
        self.assertFalse((self.work / "f").exists())

    def test_a_file_that_is_mapped_for_writing_is_not_applied(self) -> None:
        """Such a file changes without a new time of change: whoever has it may be in another jar, or on the host."""
        layer = self.layer(script="echo good > f; echo good > other")
        with open(layer / "f", "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
            memory[0:1] = b"g"
            self.assertEqual(self.belljar("diff", "w").status, 0)
            before = os.stat(layer / "f").st_ctime_ns
            memory[0:4] = b"evil"
            self.assertEqual(os.stat(layer / "f").st_ctime_ns, before)
            self.assertIn("open to write", self.refused("f")["f"])
        self.assertEqual(self.refused(), {"f": "changed since it was shown"})
        self.assertEqual((self.work / "other").read_text(), "good\n")
        self.assertEqual(self.belljar("diff", "w").status, 0)
        self.assertEqual(self.refused(), {})


@on_ways(NAMESPACE, LANDLOCK)
class Marks(LayerCase):
    def test_a_command_leaves_no_mark_that_a_later_layer_obeys(self) -> None:
        (self.work / "empty").touch()
        (self.work / "full").write_text("full\n")
        (self.work / "d").mkdir()
        (self.work / "d/f").write_text("f\n")
        result = self.json("--", PYTHON, "-I", "-c", MARKS, self.marker)
        answers = self.answers(result["stdout"])
        self.assertEqual([name for name, answer in answers.items() if answer == "ok"], [], answers)
        self.assertEqual(len(answers), 19, answers)
        seen = self.jar("-q", "--cow", *self.sh("cat full d/f; find . -name empty; find . -name moved")).stdout
        self.assertEqual(seen, b"full\nf\n./empty\n./moved\n")

    def test_attributes_work_where_they_leave_no_mark(self) -> None:
        """Over a layer the kernel keeps the command's attributes apart from its own; none comes to the host."""
        script = "import os; os.setxattr('full', 'user.x', b'x')"
        (self.work / "full").write_text("full\n")
        self.assertEqual(self.jar("-q", "--workspace", "w", "--", PYTHON, "-I", "-c", script, self.marker).status, 0)
        self.assertEqual(self.belljar("apply", "w").status, 0)
        self.assertEqual(os.listxattr(self.work / "full"), ["user.x"])
