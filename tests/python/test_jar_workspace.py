# SPDX-License-Identifier: Apache-2.0
"""Jars with a layer: what their runs share, and what becomes of it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import belljar
from harness import trees
from package_case import PackageCase, tearDownModule  # noqa: F401


class WorkspaceCase(PackageCase):
    """With files to change, and stores of its own."""

    def setUp(self) -> None:
        super().setUp()
        state = tempfile.mkdtemp(prefix="bjt-", dir="/tmp")
        self.addCleanup(trees.remove, state)
        self.state = Path(state)
        before = os.environ.get("XDG_STATE_HOME")
        os.environ["XDG_STATE_HOME"] = state
        self.addCleanup(lambda: os.environ.pop("XDG_STATE_HOME") if before is None else os.environ.update(XDG_STATE_HOME=before))
        for name in ("a", "b", "c"):
            (self.work / name).write_text(f"{name}\n")

    def stores(self) -> int:
        top = self.state / "belljar/ws"
        return sum(not path.name.startswith(".") for path in top.iterdir()) if top.exists() else 0


class Sharing(WorkspaceCase):
    """One layer for a jar."""

    def test_runs_calls_and_interpreters_share_one_layer(self) -> None:
        with belljar.Jar(workspace="cow") as jar:
            jar.run(self.sh("echo run >> a"))
            self.assertEqual(jar.call(lambda: open("a").read()), "a\nrun\n")
            with jar.python() as python:
                python.run("open('b', 'w').write('cell')")
            result = jar.run(self.sh("cat b; rm c"))
            self.assertEqual(result.stdout, "cell")
            assert result.workspace
            self.assertEqual([result.workspace[key] for key in ("modified", "deleted")], [2, 1])
            jar.write_file("d", "task")
            self.assertEqual(jar.run(self.sh("cat d")).stdout, "task")
        self.assertEqual(sorted(os.listdir(self.work)), ["a", "b", "c"])
        self.assertEqual([(self.work / name).read_text() for name in "abc"], ["a\n", "b\n", "c\n"])
        self.assertEqual(self.stores(), 1)

    def test_calls_of_a_pool(self) -> None:
        def work() -> str:
            with open("a", "a") as file:
                file.write("x")
            return open("a").read()

        with belljar.Pool(workspace="cow", workdir=str(self.work)) as pool:
            self.assertEqual((pool.call(work), pool.call(work)), ("a\nx", "a\nxx"))
        self.assertEqual((self.work / "a").read_text(), "a\n")

    def test_runs_of_their_own_have_layers_of_their_own(self) -> None:
        for _ in range(4):
            result = belljar.run(self.sh("cat a; echo x >> a"), workspace="cow")
            self.assertEqual(result.stdout, "a\n")
        self.assertEqual(self.stores(), 4)

    def test_a_jar_that_changes_nothing_leaves_nothing(self) -> None:
        with belljar.Jar(workspace="cow") as jar:
            self.assertEqual(jar.run(self.sh("cat a")).stdout, "a\n")
            self.assertEqual(self.stores(), 1)
        self.assertEqual(self.stores(), 0)

    def test_a_jar_without_one_says_so(self) -> None:
        with belljar.Jar() as jar:
            with self.assertRaisesRegex(belljar.EngineError, "no workspace"):
                jar.diff()
            self.assertIsNone(jar.run(self.sh("true")).workspace)


class Deciding(WorkspaceCase):
    """From a jar's own methods."""

    def test_what_changed_after_it_was_shown_is_not_applied(self) -> None:
        with belljar.Jar(workspace="cow") as jar:
            jar.run(self.sh("echo good > a; echo good > b"))
            self.assertEqual(len(jar.diff()), 2)
            jar.run(self.sh("echo evil > a; echo evil > new"))
            with self.assertRaises(belljar.WorkspaceError) as caught:
                jar.apply()
            self.assertEqual([entry["path"] for entry in caught.exception.not_applied], ["a", "new"])
            self.assertEqual([(self.work / name).read_text() for name in "ab"], ["a\n", "good\n"])
            # The terminal has seen nothing, and the program must look again.
            jar.diff()
            jar.apply()
            self.assertEqual((self.work / "a").read_text(), "evil\n")

    def test_diff_apply_discard(self) -> None:
        with belljar.Jar(workspace="cow") as jar:
            self.assertEqual(jar.diff(), [])
            jar.run(self.sh("echo more >> a; rm b; echo new > n"))
            self.assertEqual([(change.path, change.change) for change in jar.diff()], [("a", "modified"), ("b", "deleted"), ("n", "added")])
            jar.apply(["a"])
            self.assertEqual((self.work / "a").read_text(), "a\nmore\n")
            self.assertTrue((self.work / "b").exists())
            self.assertEqual([change.path for change in jar.diff()], ["b", "n"])
            self.assertEqual(jar.run(self.sh("ls")).stdout, "a\nc\nn\n")
            jar.discard(["n"])
            self.assertEqual(jar.run(self.sh("ls")).stdout, "a\nc\n")
            jar.discard()
            self.assertEqual(jar.run(self.sh("ls")).stdout, "a\nb\nc\n")
            jar.run(self.sh("rm a b c"))
            jar.apply()
            self.assertEqual(os.listdir(self.work), [])
        self.assertEqual(self.stores(), 0)

    def test_a_conflict_is_an_error_that_names_the_path(self) -> None:
        with belljar.Jar(workspace="cow") as jar:
            jar.run(self.sh("printf '\\0x' > a; printf '\\0x' > n"))
            (self.work / "a").write_bytes(b"\0host")
            with self.assertRaises(belljar.WorkspaceError) as caught:
                jar.apply()
            self.assertEqual([(item["path"], item["reason"]) for item in caught.exception.not_applied], [("a", "conflict")])
            self.assertEqual((self.work / "a").read_bytes(), b"\0host")
            jar.apply(theirs=["a"])
            self.assertEqual((self.work / "a").read_bytes(), b"\0x")

    def test_the_patch_of_a_conflict_says_what_the_command_changed(self) -> None:
        (self.work / "a").write_text("1\n2\n3\n")
        with belljar.Jar(workspace="cow") as jar:
            jar.run(self.sh("echo 4 >> a"))
            (self.work / "a").write_text("0\n1\n2\n3\n")
            self.assertIn("@@ -1,3 +1,4 @@\n 1\n 2\n 3\n+4\n", jar.patch())
            with self.assertRaises(TypeError):
                jar.apply(merge=["a"])

    def test_checkpoint_and_rollback(self) -> None:
        with belljar.Jar(workspace="cow") as jar:
            origin = jar.checkpoint()
            jar.run(self.sh("echo one >> a"))
            one = jar.checkpoint("one")
            jar.run(self.sh("echo two >> a; rm b"))
            two = jar.checkpoint()
            jar.run(self.sh("rm a"))
            jar.rollback()
            self.assertEqual(jar.run(self.sh("cat a; ls")).stdout, "a\none\ntwo\na\nc\n")
            jar.rollback(one)
            self.assertEqual(jar.run(self.sh("cat a; ls")).stdout, "a\none\na\nb\nc\n")
            with self.assertRaises(belljar.WorkspaceError):
                jar.rollback(two)
            self.assertEqual(jar.run(self.sh("tail -n 1 a")).stdout, "one\n", "the jar is there all the same")
            jar.rollback(origin)
            self.assertEqual(jar.run(self.sh("cat a")).stdout, "a\n")
        self.assertEqual(self.stores(), 0)

    def test_sixteen_forks_and_the_best_is_applied(self) -> None:
        with belljar.Jar(workspace="cow") as jar:
            jar.run(self.sh("echo base > base"))
            forks = jar.fork(16)
            try:
                for number, fork in enumerate(forks):
                    self.assertEqual(fork.run(self.sh(f"cat base; echo {number} > answer")).stdout, "base\n")
                self.assertEqual([fork.run(self.sh("cat answer")).stdout for fork in forks], [f"{number}\n" for number in range(16)])
                self.assertEqual(jar.run(self.sh("ls")).stdout, "a\nb\nbase\nc\n")
                forks[11].apply()
                self.assertEqual((self.work / "answer").read_text(), "11\n")
                self.assertEqual((self.work / "base").read_text(), "base\n")
                for fork in forks:
                    fork.discard()
            finally:
                for fork in forks:
                    fork.close()
            jar.discard()
        self.assertEqual(self.stores(), 0)

    def test_everything_and_nothing_are_not_confused(self) -> None:
        with belljar.Jar(workspace="cow") as jar:
            jar.run(self.sh("echo x > n"))
            for method in (jar.apply, jar.discard, jar.diff):
                with self.assertRaises(ValueError):
                    method([])
                with self.assertRaises(TypeError):
                    method("n")
            jar.discard()

    def test_forks_of_nothing_and_layers_of_other_directories(self) -> None:
        other = self.work.parent / "other"
        other.mkdir()
        with belljar.Jar(workspace_name="attempt", cow_dirs=[str(other)]) as jar:
            forks = jar.fork(2)
            self.assertEqual([fork.run(self.sh("ls")).stdout for fork in forks], ["a\nb\nc\n"] * 2)
            for fork in forks:
                fork.close()
            jar.run(self.sh(f"echo x > n; echo y > {other}/kept"))
            jar.apply()
            self.assertEqual(jar.run(self.sh(f"cat n {other}/kept")).stdout, "x\ny\n")
            jar.run(self.sh(f"rm {other}/kept"))
        self.assertEqual(((self.work / "n").read_text(), os.listdir(other), self.stores()), ("x\n", [], 0))

    def test_a_workspace_is_found_again(self) -> None:
        result = belljar.run(self.sh("echo x > n"), workspace_name="attempt")
        assert result.workspace
        for word in ("attempt", result.workspace["id"]):
            found = belljar.Workspace.open(word)
            self.assertEqual([change.path for change in found.diff()], ["n"])
        self.assertIn("+x", found.patch())
        found.apply()
        self.assertEqual((self.work / "n").read_text(), "x\n")
        with self.assertRaises(belljar.WorkspaceError):
            belljar.Workspace.open("nothing")

    def test_the_example_applies_the_smallest_fix_that_works(self) -> None:
        example = Path(__file__).resolve().parents[2] / "examples/best_of.py"
        if not example.exists():
            self.skipTest("the examples are not here")
        fixes = ["echo 1 > a", "echo 2 > a; rm b", "echo 2 > a", "false"]
        found = subprocess.run(
            [sys.executable, str(example), "touch junk; grep -q 2 a", *fixes],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        self.assertEqual((found.returncode, found.stdout), (0, "applied: echo 2 > a\n"), found)
        self.assertEqual(sorted(os.listdir(self.work)), ["a", "b", "c"])
        self.assertEqual((self.work / "a").read_text(), "2\n")
        self.assertEqual(self.stores(), 0)

    def test_in_an_event_loop(self) -> None:
        async def main() -> None:
            async with await belljar.Jar.open_async(workspace="cow") as jar:
                await jar.run_async(self.sh("echo x > n"))
                self.assertEqual([change.path for change in await jar.diff_async()], ["n"])
                mark = await jar.checkpoint_async()
                await jar.run_async(self.sh("rm n"))
                await jar.rollback_async(mark)
                (fork,) = await jar.fork_async(1)
                async with fork:
                    await fork.apply_async(["n"])
                await jar.discard_async()

        asyncio.run(main())
        self.assertEqual((self.work / "n").read_text(), "x\n")

    def test_one_that_a_run_left_in_an_event_loop(self) -> None:
        async def main() -> None:
            result = await belljar.run_async(self.sh("echo x > n; echo y > m"), workspace="cow")
            assert result.workspace
            workspace = await belljar.Workspace.open_async(result.workspace["id"])
            self.assertEqual((await workspace.show_async())["id"], workspace.id)
            self.assertEqual([change.path for change in await workspace.diff_async(["n"])], ["n"])
            self.assertIn("+x", await workspace.patch_async())
            (fork,) = await workspace.fork_async(1)
            await fork.discard_async()
            await workspace.apply_async(["n"])
            await workspace.discard_async()
            self.assertFalse(await workspace.exists_async())
            with self.assertRaises(belljar.WorkspaceError):
                await belljar.Workspace.open_async(workspace.id)

        asyncio.run(main())
        self.assertEqual((self.work / "n").read_text(), "x\n")
        self.assertFalse((self.work / "m").exists())


if __name__ == "__main__":
    unittest.main()
