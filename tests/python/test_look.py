# SPDX-License-Identifier: Apache-2.0
"""What cells, commands of a shell, calls and processes that live on leave for other programs: told at their end, or on request."""

from __future__ import annotations

import asyncio
import os
import time
import unittest
from pathlib import Path
from typing import Any, Dict, List, Set

import belljar
from harness.bounds import BOUND, SLOWNESS
from package_case import PackageCase, tearDownModule  # noqa: F401


def plant(path: str) -> int:
    """A function for calls."""
    return Path(path).write_text("x")


class Looks(PackageCase):
    """A jar over a project of the caller's."""

    def setUp(self) -> None:
        super().setUp()
        self.project = self.work

    def names(self, entries: List[Dict[str, Any]]) -> Set[str]:
        return {os.path.relpath(entry["path"], self.project) for entry in entries}

    def open(self, **keys: Any) -> belljar.Jar:
        jar = belljar.Jar(workdir=str(self.project), **keys)
        self.addCleanup(jar.close)
        return jar

    def wait_until_there(self, name: str) -> None:
        deadline = time.monotonic() + BOUND
        while not (self.project / name).exists():
            self.assertLess(time.monotonic(), deadline, name)
            time.sleep(0.01)

    def test_a_cell_says_what_it_left(self) -> None:
        """Once, unless it left that within a tick of the file system's clock before its end."""
        jar = self.open()
        with jar.python() as it:
            self.assertEqual(self.names(it.run("import os, time; os.mkdir('sub'); open('sub/.envrc', 'w').close(); time.sleep(0.05)").risky), {"sub/.envrc"})
            self.assertEqual(it.run("open('fine', 'w').close()").risky, [])
            self.assertEqual(self.names(it.run("open('AGENTS.md', 'w').write('x'); 1 / 0").risky), {"AGENTS.md"})
            late = it.run("open('CLAUDE.md', 'w').close()\nwhile True: pass", timeout=1)
            self.assertEqual((late.error.kind, self.names(late.risky)), ("timeout", {"CLAUDE.md"}))
            # Its run is over, whose result has all that was left since it began.
            gone = it.run("open('GEMINI.md', 'w').close(); os._exit(3)")
            self.assertIn("GEMINI.md", self.names(gone.risky))
        jar.close()
        self.assertEqual(self.names(jar.risky), {"sub/.envrc", "AGENTS.md", "CLAUDE.md", "GEMINI.md"})

    def test_a_warm_interpreter_says_it_too(self) -> None:
        with belljar.Interpreter(workdir=str(self.project)) as it:
            cell = asyncio.run(it.run_async("open('AGENTS.md', 'w').close()"))
            if it._jar is not None:  # elsewhere it is a run of its own
                self.assertEqual(self.names(cell.risky), {"AGENTS.md"})

    def test_a_command_of_a_shell_says_what_it_left(self) -> None:
        jar = self.open()
        with jar.shell() as shell:
            self.assertEqual(self.names(shell.run("echo x > .envrc").risky), {".envrc"})
            self.assertEqual(shell.run("true").risky, [])
            self.assertIn("AGENTS.md", self.names(shell.run("echo x > AGENTS.md; exit 4").risky))

    def test_a_process_that_lives_on_is_seen_by_a_look(self) -> None:
        jar = self.open()
        result = jar.run(["sh", "-c", "(while ! test -e go; do sleep 0.01; done; echo x > AGENTS.md; touch went; exec sleep 600) &"], detach=True)
        self.assertEqual((result.risky, jar.look()), ([], []))
        (self.project / "go").touch()
        self.wait_until_there("went")
        self.assertEqual(self.names(jar.look()), {"AGENTS.md"})
        self.assertEqual(self.names(asyncio.run(jar.look_async())), {"AGENTS.md"})
        # A result has what no result had before, also where an answer had it; the next one does not.
        self.assertEqual(self.names(jar.run(["true"]).risky), {"AGENTS.md"})
        self.assertEqual(jar.run(["true"]).risky, [])

    def test_a_jar_whose_time_is_over_says_what_was_left(self) -> None:
        jar = self.open(ttl=2 * SLOWNESS)
        jar.run(["sh", "-c", "(echo x > AGENTS.md; exec sleep 600) &"], detach=True)
        deadline = time.monotonic() + BOUND
        with self.assertRaisesRegex(belljar.EngineError, "time to live is over"):
            while time.monotonic() < deadline:
                jar.run(["true"])
                time.sleep(0.1)
        jar.close()
        self.assertEqual(self.names(jar.risky), {"AGENTS.md"})

    def test_calls_are_seen_by_a_look(self) -> None:
        with belljar.Pool(workdir=str(self.project)) as pool:
            pool.call(plant, str(self.project / "AGENTS.md"))
            if pool._zygotes._cold is None:
                self.assertEqual(self.names(pool.look()), {"AGENTS.md"})
        jar = self.open()
        jar.call(plant, str(self.project / ".envrc"))
        self.assertEqual(self.names(jar.look()), {".envrc"})

    def test_many_looks_at_once_and_at_the_end(self) -> None:
        jar = self.open()

        async def all_at_once() -> None:
            await asyncio.gather(*(jar.look_async() for _ in range(20)))

        jar.run(["sh", "-c", "for i in $(seq 300); do mkdir d$i; done"])
        asyncio.run(all_at_once())
        frame = belljar._request.json_frame(belljar._wire.LOOK, {})
        waiting = [jar._ask(frame, ()) for _ in range(20)]
        for channel in waiting[::2]:
            channel.kill()
        jar.close()
        for channel in waiting[1::2]:
            channel.kill()
        self.assertEqual(jar.risky, [])

    def test_a_jar_without_a_place_to_plant_is_not_searched(self) -> None:
        with belljar.Jar(workdir=None) as jar:
            self.assertFalse(jar._is_searched)
            self.assertEqual(jar.look(), [])


if __name__ == "__main__":
    unittest.main()
