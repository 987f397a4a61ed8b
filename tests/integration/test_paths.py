# SPDX-License-Identifier: Apache-2.0
"""What the path options show, hide and make private; each seen from inside."""

from __future__ import annotations

import os
import unittest
from pathlib import Path

from harness.case import JarCase, every_way, on_ways
from harness.runner import LANDLOCK, NAMESPACE


class PathCase(JarCase):
    def setUp(self) -> None:
        super().setUp()
        self.data = self.base / "data"
        (self.data / "sub").mkdir(parents=True)
        (self.data / "file").write_text("contents\n")
        (self.data / "sub" / "inner").write_text("inner\n")

    def out(self, *args: object, **options: object) -> str:
        done = self.jar(*args, **options)
        self.assertEqual(done.status, 0, done)
        return done.stdout.decode()


@on_ways(NAMESPACE, LANDLOCK)
class Shown(PathCase):
    def test_a_path_that_nobody_named_is_not_there(self) -> None:
        done = self.jar("--", "cat", self.data / "file")
        self.assertNotEqual(done.status, 0)
        self.assertEqual(done.stdout, b"")

    def test_ro_can_be_read_and_not_changed(self) -> None:
        script = f"cat {self.data}/file; echo x > {self.data}/file; touch {self.data}/new; rm {self.data}/file; true"
        self.assertEqual(self.out("--ro", self.data, *self.sh(script)), "contents\n")
        self.assertEqual((self.data / "file").read_text(), "contents\n")
        self.assertEqual(sorted(os.listdir(self.data)), ["file", "sub"])

    def test_rw_can_be_changed(self) -> None:
        self.out("--rw", self.data, *self.sh(f"echo changed > {self.data}/file; mkdir {self.data}/made"))
        self.assertEqual((self.data / "file").read_text(), "changed\n")
        made = (self.data / "made").stat()
        self.assertEqual((made.st_uid, made.st_gid), (os.getuid(), os.getgid()))

    def test_a_single_file(self) -> None:
        script = f"cat {self.data}/file; ls {self.data}/sub 2>/dev/null; true"
        self.assertEqual(self.out("--ro", self.data / "file", *self.sh(script)), "contents\n")

    def test_a_missing_source_is_an_error_that_names_it(self) -> None:
        done, result = self.status("--ro", self.base / "missing", *self.sh("touch ran"))
        self.assertEqual((done.status, result["outcome"], result["error"]["stage"]), (125, "failed", "files"))
        self.assertIn("missing", result["error"]["message"])
        self.assertFalse((self.work / "ran").exists())

    def test_a_link_in_the_workdir_that_leads_out_is_refused(self) -> None:
        (self.work / "planted").symlink_to(self.data)
        for option in ("--ro", "--rw"):
            done, result = self.status(option, "./planted", *self.sh("touch ran"), cwd=self.work)
            self.assertEqual((done.status, result["outcome"], result["error"]["stage"]), (125, "failed", "plan"))
            self.assertIn(str(self.data), result["error"]["hint"])
        self.assertFalse((self.work / "ran").exists())
        self.assertEqual(self.out("--ro", self.data, "--", "cat", self.data / "file"), "contents\n")


@on_ways(NAMESPACE)
class Placed(PathCase):
    def test_dest_is_another_name(self) -> None:
        script = f"cat /models/file; ls -d {self.data} 2>/dev/null; echo x > /models/file; true"
        self.assertEqual(self.out("--ro", f"{self.data}:/models", *self.sh(script)), "contents\n")

    def test_a_colon_in_a_name(self) -> None:
        odd = self.base / "a:b"
        odd.mkdir()
        (odd / "file").write_text("odd\n")
        escaped = str(odd).replace(":", "\\:")
        self.assertEqual(self.out("--ro", escaped, "--", "cat", odd / "file"), "odd\n")
        self.assertEqual(self.out("--ro", f"{escaped}:/odd", "--", "cat", "/odd/file"), "odd\n")

    def test_the_inner_of_nested_paths_wins_in_any_order(self) -> None:
        outer, inner = ["--ro", self.data], ["--rw", self.data / "sub"]
        script = f"echo x > {self.data}/sub/inner && ! echo x 2>/dev/null > {self.data}/file"
        for options in (outer + inner, inner + outer):
            (self.data / "sub" / "inner").write_text("inner\n")
            self.out(*options, *self.sh(script))
            self.assertEqual((self.data / "sub" / "inner").read_text(), "x\n")
            self.assertEqual((self.data / "file").read_text(), "contents\n")

    def test_of_the_same_path_twice_the_last_wins(self) -> None:
        script = f"echo x 2>/dev/null > {self.data}/file; true"
        self.out("--rw", self.data, "--ro", self.data, *self.sh(script))
        self.assertEqual((self.data / "file").read_text(), "contents\n")
        self.out("--ro", self.data, "--rw", self.data, *self.sh(script))
        self.assertEqual((self.data / "file").read_text(), "x\n")

    def test_hide_wins_over_everything(self) -> None:
        secret = self.data / "sub"
        script = f"cat {self.data}/file; ls {secret} 2>/dev/null; cat {secret}/inner 2>/dev/null; true"
        show = ["--ro", self.data, "--rw", secret, "--ro", secret / "inner"]
        for options in (["--hide", secret, *show], [*show, "--hide", secret]):
            self.assertEqual(self.out(*options, *self.sh(script)), "contents\n")
        self.assertEqual((secret / "inner").read_text(), "inner\n")

    def test_hide_in_the_workdir(self) -> None:
        (self.work / ".env").write_text("SECRET=1\n")
        (self.work / "keys").mkdir()
        (self.work / "keys" / "key").write_text("SECRET=2\n")
        script = "cat .env 2>/dev/null; cat keys/key 2>/dev/null; ls keys; grep -r SECRET . 2>/dev/null; true"
        self.assertEqual(self.out("--hide", ".env", "--hide", "keys", *self.sh(script), cwd=self.work), "")
        self.assertEqual((self.work / ".env").read_text(), "SECRET=1\n")

    def test_a_hidden_path_under_another_name(self) -> None:
        script = "cat /copy/sub/inner 2>/dev/null; true"
        self.assertEqual(self.out("--ro", f"{self.data}:/copy", "--hide", self.data / "sub", *self.sh(script)), "")

    def test_tmpfs_is_private_and_bounded(self) -> None:
        script = "touch /scratch/x && df -k --output=size /scratch | tail -1; dd if=/dev/zero of=/scratch/big bs=1M count=9"
        done = self.jar("--tmpfs", "/scratch:4M", *self.sh(script))
        self.assertNotEqual(done.status, 0)
        self.assertEqual(done.stdout.split(), [b"4096"])
        self.assertFalse(Path("/scratch").exists())

    def test_tmpfs_over_a_directory_of_the_workdir(self) -> None:
        (self.work / "cache").mkdir()
        (self.work / "cache" / "old").write_text("")
        listing = self.out("--tmpfs", self.work / "cache", *self.sh("ls cache; touch cache/new; ls cache"))
        self.assertEqual(listing, "new\n")
        self.assertEqual(os.listdir(self.work / "cache"), ["old"])

    def test_nothing_is_created_on_the_host_for_a_place(self) -> None:
        done, result = self.status("--ro", f"{self.data}:{self.work}/place", "--", "true")
        self.assertEqual((done.status, result["error"]["stage"]), (125, "plan"))
        self.assertEqual(os.listdir(self.work), [])
        (self.work / "place").mkdir()
        self.assertEqual(self.out("--ro", f"{self.data}:{self.work}/place", "--", "cat", "place/file"), "contents\n")
        self.assertEqual(os.listdir(self.work / "place"), [])

    def test_a_symbolic_link_as_source_shows_what_it_leads_to(self) -> None:
        link = self.base / "link"
        link.symlink_to(self.data)
        self.assertEqual(self.out("--ro", link, "--", "cat", link / "file"), "contents\n")
        self.assertEqual(self.out("--ro", f"{link}:/there", "--", "cat", "/there/file"), "contents\n")

    def test_a_place_whose_parents_do_not_exist(self) -> None:
        done = self.jar("--ro", f"{self.data}:/srv/deep/er", "--", "cat", "/srv/deep/er/file")
        self.assertEqual((done.status, done.stdout), (0, b"contents\n"), done)


@on_ways(LANDLOCK)
class WithoutMounts(PathCase):
    def test_what_needs_mounts_is_refused_and_says_so(self) -> None:
        for options in (
            ["--ro", f"{self.data}:/models"],
            ["--hide", self.work / "x"],
            ["--tmpfs", "/scratch"],
            ["--hostname", "jar"],
        ):
            with self.subTest(options=[str(o) for o in options]):
                (self.work / "x").write_text("")
                done, result = self.status(*options, *self.sh("touch ran"))
                self.assertEqual((done.status, result["outcome"], result["error"]["stage"]), (125, "failed", "host"))
                self.assertTrue(result["error"]["hint"])
                self.assertFalse((self.work / "ran").exists())


@every_way
class Cd(PathCase):
    def test_cd_starts_below_the_workdir(self) -> None:
        (self.work / "sub").mkdir()
        self.assertEqual(self.out("--cd", "sub", "--", "pwd"), f"{self.work}/sub\n")


if __name__ == "__main__":
    unittest.main()
