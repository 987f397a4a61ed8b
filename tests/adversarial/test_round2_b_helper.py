# SPDX-License-Identifier: Apache-2.0
"""A helper of the engine's reads and searches what commands wrote: behind walls, and however long that takes.

Layer: the helper's process (engine_helper_process.c), of which each work directory has its own.
"""

from __future__ import annotations

import os
import pathlib
import select
import signal
import subprocess
import time
import unittest
from typing import Any, Dict, List, Set, Tuple

from harness import census, runner, wire
from harness.case import JarCase, on_ways
from harness.engine_case import KeptJarCase
from harness.runner import LANDLOCK, NAMESPACE
from harness.wire import ANSWER, LOOK, OUTPUT, STARTED

CAP_DAC_READ_SEARCH = 1 << 2


@on_ways(NAMESPACE, LANDLOCK)
class Helpers(KeptJarCase):
    """An engine whose helpers are looked at from outside."""

    def helpers(self) -> Set[int]:
        with open(f"/proc/{self.engine.pid}/task/{self.engine.pid}/children", encoding="ascii") as file:
            return {int(word) for word in file.read().split() if census.name(int(word)) == "belljar-helper"}

    def planting(self) -> wire.Channel:
        """A run that plants a file when there is a file `go`; it has started."""
        channel = self.engine.start(self.script("echo up; while [ ! -e go ]; do sleep 0.01; done; echo evil > AGENTS.md"), sink="frames")
        self.assertEqual([channel.read().kind, channel.read().kind], [STARTED, OUTPUT])
        return channel

    def has_frame(self, channel: wire.Channel) -> bool:
        return bool(select.select([channel.sock], [], [], 0)[0])

    def look(self, jar: wire.Channel) -> Dict[str, Any]:
        """What a search finds now that no search before it has."""
        frame = self.ask(jar, LOOK).last
        assert frame is not None and frame.kind == ANSWER, frame
        return dict(frame.json)

    def risky(self, result: Dict[str, Any]) -> List[str]:
        return [os.path.basename(entry["path"]) for entry in result["risky"]]

    def test_a_search_that_never_ends_delays_no_neighbour(self) -> None:
        """The helper is stopped, which is slower than any file that it could have to read."""
        other = self.directory("other")
        slow = self.planting()
        (helper,) = self.helpers()
        os.kill(helper, signal.SIGSTOP)
        try:
            (self.work / "go").write_text("")
            # One that has to be looked at before it starts waits too.
            late = self.engine.start(self.script("true"))
            for _ in range(3):
                outcome = self.engine.run(self.script("echo x > CLAUDE.md"), top={"cwd": str(other)})
                self.assertEqual(outcome.result["exit_code"], 0, outcome.result)
                self.assertEqual(self.risky(outcome.result), ["CLAUDE.md"])
                time.sleep(0.03)
            self.wait_for(lambda: (self.work / "AGENTS.md").exists(), "the slow one's command has ended")
            self.assertFalse(self.has_frame(slow))
            self.assertFalse(self.has_frame(late))
            self.assertGreater(len(self.helpers()), 1)
        finally:
            os.kill(helper, signal.SIGCONT)
        self.assertEqual(self.risky(wire.finish(slow).result), ["AGENTS.md"])
        self.assertEqual(wire.finish(late).result["exit_code"], 0)

    def test_a_run_that_waits_for_its_helper_can_be_killed(self) -> None:
        self.engine.run(["true"])
        (helper,) = self.helpers()
        os.kill(helper, signal.SIGSTOP)
        try:
            channel = self.engine.start(self.script("echo x > planted"))
            channel.send(wire.CANCEL, wire.number(signal.SIGKILL))
            gone = self.engine.start(self.script("echo x > planted"))
            gone.close()
        finally:
            os.kill(helper, signal.SIGCONT)
        self.assertIn(wire.finish(channel).result["outcome"], ("cancelled", "error"))
        self.assertEqual(self.engine.run(["true"]).result["exit_code"], 0)

    def test_the_helper_is_behind_walls(self) -> None:
        self.engine.run(["true"])
        (helper,) = self.helpers()
        with open(f"/proc/{helper}/status", encoding="ascii") as file:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
        self.assertEqual((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))
        wanted = CAP_DAC_READ_SEARCH if os.geteuid() == 0 else 0
        self.assertEqual(int(status["CapEff"], 16) & ~wanted, 0)
        self.assertEqual(int(status["CapPrm"], 16) & ~wanted, 0)
        if os.geteuid() == 0:
            open_files = {os.readlink(f"/proc/{helper}/fd/{fd}").partition(":")[0] for fd in os.listdir(f"/proc/{helper}/fd")}
            self.assertTrue(open_files <= {"socket", "anon_inode", str(self.work)}, open_files)

    def test_a_helper_that_was_killed_is_told_and_replaced(self) -> None:
        jar = self.open()
        self.run_in(jar, self.script("true"))
        (helper,) = self.helpers()
        run = self.join(jar, self.script("echo up; while [ ! -e go ]; do sleep 0.01; done; echo evil > AGENTS.md"), sink="frames")
        while run.read().kind != OUTPUT:
            pass
        os.kill(helper, signal.SIGKILL)
        (self.work / "go").write_text("")
        result = wire.finish(run).result
        self.assertEqual(result["exit_code"], 0, result)
        self.assertIn("the process that searches it has ended", str(result))
        result = self.run_in(jar, self.script("echo evil > CLAUDE.md")).result
        self.assertEqual(self.risky(result), ["CLAUDE.md"])
        self.assertNotIn("the process that searches it has ended", str(result))

    def test_a_configuration_that_the_host_changes_between_two_runs_is_read_again(self) -> None:
        """Within one tick of the clock, in place, and as long as before."""
        config = self.work / ".git" / "config"
        (self.work / ".git" / "objects").mkdir(parents=True)
        (self.work / ".git" / "refs").mkdir()
        (self.work / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        config.write_text("[include]\n\tpath = ../first\n")
        jar = self.open()
        self.run_in(jar, self.script("true"))
        for number in range(20, 30):
            with config.open("r+") as file:
                file.write(f"[include]\n\tpath = ../inc{number}\n")
            self.assertEqual(self.risky(self.run_in(jar, self.script(f"echo x > inc{number}")).result), [f"inc{number}"])

    def test_a_look_after_a_helper_was_killed_compares_with_what_there_was_then(self) -> None:
        """No run begins meanwhile, so the look itself has another helper remember what there is."""
        jar = self.open()
        script = "echo up; while [ ! -e go ]; do sleep 0.01; done; echo evil > CLAUDE.md; while [ ! -e end ]; do sleep 0.01; done"
        run = self.join(jar, self.script(script), sink="frames")
        while run.read().kind != OUTPUT:
            pass
        (helper,) = self.helpers()
        os.kill(helper, signal.SIGKILL)
        self.assertIn("the process that searches it has ended", str(self.look(jar)))
        (self.work / "go").write_text("")
        self.wait_for(lambda: (self.work / "CLAUDE.md").exists(), "the command has planted a file")
        found = self.look(jar)
        self.assertEqual([os.path.basename(entry["path"]) for entry in found["new"]], ["CLAUDE.md"])
        (self.work / "end").write_text("")
        self.assertEqual(wire.finish(run).result["exit_code"], 0)


@on_ways(NAMESPACE, LANDLOCK)
class SingleRuns(JarCase):
    """`belljar run`, whose helper is for this run only."""

    def plant(self, directory: pathlib.Path) -> Tuple[bool, List[str]]:
        """Had the run a helper while the command worked? And what is risky after it."""
        script = "echo up; read line; echo evil > AGENTS.md; mkdir -p deep/er; echo evil > deep/er/CLAUDE.md"
        process, status = self.start_status("--", "/bin/sh", "-c", script, cwd=directory, stdin=subprocess.PIPE)
        assert process.stdout
        runner.read_until(process.stdout, b"up")
        has_helper = bool(census.living(process.pid, "belljar-helper"))
        result = runner.check_answer(runner.finish(process, b"\n"), status.read())
        return has_helper, sorted(os.path.relpath(entry["path"], directory) for entry in result["risky"])

    def test_an_empty_directory_is_searched_only_if_something_is_in_it_after_the_run(self) -> None:
        empty, other = self.directory("empty"), self.directory("other")
        (other / "file").write_text("")
        planted = ["AGENTS.md", "deep/er/CLAUDE.md"]
        self.assertEqual(self.plant(empty), (False, planted))
        self.assertEqual(self.plant(other), (True, planted))
        below = self.directory("repository") / "below"
        below.mkdir()
        os.chown(below, os.geteuid(), os.getegid())
        (below.parent / ".git" / "objects").mkdir(parents=True)
        (below.parent / ".git" / "refs").mkdir()
        (below.parent / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        self.assertEqual(self.plant(below), (True, planted))

    def test_a_run_ends_though_its_helper_is_stopped(self) -> None:
        """On older kernels a command of the rung landlock can stop it. The engine waits for 20 seconds."""
        (self.work / "file").write_text("")
        process, status = self.start_status("--", "/bin/sh", "-c", "echo up; read line; echo evil > AGENTS.md", stdin=subprocess.PIPE)
        assert process.stdout
        runner.read_until(process.stdout, b"up")
        (helper,) = census.living(process.pid, "belljar-helper")
        os.kill(helper, signal.SIGSTOP)
        result = runner.check_answer(runner.finish(process, b"\n"), status.read())
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 0))
        self.assertIn("the process that searches it has ended", result["risky_search"]["why"])
        self.assertFalse(os.path.exists(f"/proc/{helper}"))


if __name__ == "__main__":
    unittest.main()
