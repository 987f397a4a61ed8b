# SPDX-License-Identifier: Apache-2.0
"""What happens where the host refuses a layer: never silently less, and the same behaviour on an older kernel."""

from __future__ import annotations

import unittest

from harness import host
from harness.case import JarCase
from harness.runner import Way


class Refusal(JarCase):
    def test_the_best_rung_is_taken(self) -> None:
        host.need("userns")
        self.assertEqual(self.json("--", "true")["enforced"]["rung"], "namespace")
        self.assertEqual(self.json("--rung", "process", "--", "true")["enforced"]["rung"], "namespace")

    def test_without_namespaces_landlock_is_the_default(self) -> None:
        host.need("landlock")
        result = self.json("--", "true", way=Way("denied", ("userns",)))
        self.assertEqual((result["outcome"], result["enforced"]["rung"]), ("exited", "landlock"))

    def test_less_than_the_rung_is_refused(self) -> None:
        cases = [
            (("userns",), ["--rung", "namespace"]),
            (("userns", "landlock"), []),
            (("userns", "landlock"), ["--rung", "landlock"]),
        ]
        for denied, options in cases:
            with self.subTest(denied=denied, options=options):
                done, result = self.status(*options, *self.sh("touch ran"), way=Way("denied", denied))
                self.assertEqual((done.status, result["outcome"], result["error"]["stage"]), (125, "failed", "host"))
                self.assertTrue(result["error"]["hint"])
                self.assertFalse((self.work / "ran").exists())

    def test_the_strict_preset_needs_namespaces(self) -> None:
        done = self.jar("--policy", "strict", "--", "true", way=Way("denied", ("userns",)))
        self.assertEqual((done.status, done.stdout), (125, b""))

    def test_what_a_rung_cannot_do_is_refused(self) -> None:
        host.need("landlock")
        for options in (["--hide", "/usr/share"], ["--ro", "/usr/share:/elsewhere"], ["--tmpfs", "/scratch"]):
            with self.subTest(options=options):
                done, result = self.status(*options, *self.sh("touch ran"), way=Way("denied", ("userns",)))
                self.assertEqual((done.status, result["outcome"]), (125, "failed"))
                self.assertFalse((self.work / "ran").exists())

    def test_the_weakest_rung_runs_where_it_was_named(self) -> None:
        done, result = self.status("--rung", "process", "--", "true", way=Way("denied", ("userns", "landlock")))
        self.assertEqual((done.status, result["enforced"]["rung"]), (0, "process"))


class OlderKernels(JarCase):
    """The whole thing once more where single calls answer ENOSYS: it works, or says why not; it never does less."""

    def test_single_calls_are_missing(self) -> None:
        for word in (
            "clone3",
            "pidfd",
            "close_range",
            "openat2",
            "epoll_pwait2",
            "newmount",
            "mount_setattr",
            "open_tree_attr",
            "filtered_open_tree_attr",
            "landlock",
        ):
            with self.subTest(word=word):
                way = Way(word, (word,))
                script = "echo out; touch made; sleep 1000 & exit 3"
                done, result = self.status(*self.sh(script), way=way, timeout=15)
                if result["outcome"] == "failed":
                    self.assertEqual(done.status, 125)
                    self.assertNotIn(result["error"]["stage"], ("exec", "engine"), result["error"])
                    self.assertFalse((self.work / "made").exists())
                else:
                    self.assertEqual((done.status, done.stdout), (3, b"out\n"))
                    (self.work / "made").unlink()

    def test_mounts_are_the_same_without_open_tree_attr(self) -> None:
        seen = []
        for words in ((), ("open_tree_attr",), ("filtered_open_tree_attr",)):
            result = self.json("--", "cat", "/proc/self/mountinfo", way=Way("x", words))
            lines = [line.split() for line in result["stdout"].splitlines()]
            self.assertTrue(lines, result)
            seen.append([(line[4], line[5], "idmapped" in line) for line in lines])
        self.assertEqual(seen[1], seen[0])
        self.assertEqual(seen[2], seen[0])

    def test_descriptors_are_closed_without_close_range(self) -> None:
        for way in (Way("x", ("close_range",)), Way("y", ("close_range", "userns"))):
            with open("/dev/null", "rb") as extra:
                done = self.jar("--", self.tool("fdlist"), way=way, pass_fds=(extra.fileno(),))
            if done.status != 125:
                self.assertEqual(done.stdout, b"0 1 2\n")

    def test_a_timeout_without_pidfds(self) -> None:
        for way in (Way("x", ("pidfd",)), Way("y", ("pidfd", "userns"))):
            args = [
                "--timeout",
                "400ms",
                "--grace",
                "200ms",
                "--",
                self.tool("leftover"),
                "setsid",
                "ignore",
                "hold",
                "stay",
            ]
            done, result = self.status(*args, "--", self.marker, way=way, timeout=15)
            if result["outcome"] != "failed":
                self.assertEqual((done.status, result["outcome"]), (124, "timeout"))


if __name__ == "__main__":
    unittest.main()
