# SPDX-License-Identifier: Apache-2.0
"""Files that look like a virtual environment, laid out by an earlier command or by somebody else.

PATH and VIRTUAL_ENV are the caller's, what lies there may not be. Layer: the survey's care (survey/survey_python.c): what a
command of the same policy could have written, or another user owns, makes nothing visible; and whatever is made to look
like an environment or a Python installation shows the names of one only.
"""

from __future__ import annotations

import os
import unittest
from pathlib import Path
from typing import Any, List

from adversarial_support import AttackCase
from harness import pythons
from harness.case import on_ways
from harness.runner import LANDLOCK, NAMESPACE

SECRET = "top-secret-word"


@on_ways(NAMESPACE, LANDLOCK)
class Environments(AttackCase):
    def setUp(self) -> None:
        super().setUp()
        self.secrets = self.home / ".ssh"
        self.secrets.mkdir(exist_ok=True)
        self.put_secret(self.secrets / "key")
        self.put_secret(self.home / "notes")

    def put_secret(self, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{SECRET}\n")
        return path

    def use(self, *directories: Path) -> None:
        self.env["PATH"] = ":".join([*map(str, directories), "/usr/bin:/bin"])

    def assert_kept(self, *paths: Any, options: "tuple[Any, ...]" = ()) -> None:
        """No command sees what is in these files."""
        done = self.jar(*options, *self.sh(f"cat {' '.join(map(str, paths))}; true"))
        self.assertEqual(done.status, 0, done)
        self.assertNotIn(SECRET.encode(), done.stdout)

    def notes(self, *options: Any) -> List[str]:
        return [note["why"] for note in self.json(*options, *self.sh("true"))["notes"] if note["name"] == "toolchains"]

    def test_home_names_something_that_is_no_installation(self) -> None:
        made = pythons.virtual_environment(self.base / "env", "/usr/bin")
        self.use(made / "bin")
        self.put_secret(self.home / "bin" / "word")
        (self.home / "lib").mkdir()
        self.put_secret(self.home / "other" / "bin" / "word")
        homes = ["/etc", "/", "/bin", "", ".", "..", self.secrets, self.home, self.home / "bin", self.home / "other" / "bin"]
        homes += [f"{self.home}/other/../other/bin", f"{self.home}//other/bin", self.base, self.base / "nowhere" / "bin"]
        for home in homes:
            with self.subTest(home=str(home)):
                (made / "pyvenv.cfg").write_text(f"home = {home}\n")
                self.assert_kept(
                    self.secrets / "key", self.home / "notes", self.home / "bin" / "word", self.home / "other/bin/word", "/etc/shadow"
                )

    def test_an_installation_by_links_is_none(self) -> None:
        """bin, lib, the library and the program are looked at themselves: a link in their place leads nowhere."""
        made = pythons.virtual_environment(self.base / "env", self.base / "planted" / "bin")
        self.use(made / "bin")
        (self.secrets / "key").chmod(0o755)
        for name in ("bin", "bin/python3.12", "lib", "lib/python3.12"):
            with self.subTest(name):
                planted = pythons.installation(self.base / "planted")
                target = self.secrets / "key" if name.startswith("bin/") else self.secrets
                (planted / name).rename(self.base / "away")
                (planted / name).symlink_to(target)
                self.assert_kept(self.secrets / "key", planted / name / "key", planted / name, planted / "secret")
                self.assertEqual(len(self.notes()), 1)
                os.system(f"rm -rf {planted} {self.base}/away")

    def test_what_the_command_wrote_in_its_workdir_leads_nowhere(self) -> None:
        base = pythons.installation(self.base / "elsewhere")
        self.put_secret(base / "lib" / "word")
        (self.work / "bin").mkdir()
        self.use(self.work / "bin")
        script = f"mkdir -p lib/python3.12 && echo home = {base}/bin > pyvenv.cfg && ln -s {base}/bin/python3 bin/python"
        self.assertEqual(self.jar(*self.sh(script)).status, 0)
        self.assert_kept(base / "lib" / "word")
        self.assertEqual(len(self.notes()), 1)
        # Nor where the workdir is only read, or another one is used and this one is writable too.
        self.assert_kept(base / "lib" / "word", options=("--workdir-mode", "ro"))
        self.assert_kept(base / "lib" / "word", options=("-C", self.directory("other"), "--rw", self.work))

    def test_a_configuration_that_is_writable_by_itself_leads_nowhere(self) -> None:
        base = pythons.installation(self.base / "elsewhere")
        word = self.put_secret(base / "lib" / "word")
        made = pythons.virtual_environment(self.base / "env", "/usr/bin")
        self.use(made / "bin")
        script = f"echo home = {base}/bin > {made}/pyvenv.cfg"
        self.assertEqual(self.jar("--rw", made / "pyvenv.cfg", *self.sh(script)).status, 0)
        self.assert_kept(word, options=("--rw", made / "pyvenv.cfg"))

    def test_a_project_made_to_look_like_an_environment_keeps_its_secrets(self) -> None:
        """A command that was not shown .env makes a pyvenv.cfg beside a directory of PATH; the next jar is elsewhere."""
        project = self.directory("project")
        (project / "bin").mkdir()
        kept = [self.put_secret(project / name) for name in (".env", "conf/key", ".git/config", "etc/key", "src/key")]
        self.use(project / "bin")
        script = "mkdir -p lib/python3.12 conda-meta && touch pyvenv.cfg conda-meta/history"
        self.assertEqual(self.jar("-C", project, *self.sh(script)).status, 0)
        (project / "conda-meta").rename(project / "not-conda")
        self.assert_kept(*kept)
        done = self.jar(*self.sh(f"ls {project}"))
        if self.way is NAMESPACE:
            self.assertEqual(done.stdout.split(), [b"bin", b"lib", b"pyvenv.cfg"])

    def test_a_link_in_the_workdir_on_the_way(self) -> None:
        base = pythons.installation(self.base / "elsewhere")
        made = pythons.virtual_environment(self.base / "private", base / "bin")
        self.put_secret(made / "lib" / "word")
        (self.work / "env").symlink_to(made)
        self.use(self.work / "env" / "bin")
        self.assert_kept(made / "lib" / "word")
        self.env["VIRTUAL_ENV"] = str(self.work / "env")
        self.assert_kept(made / "lib" / "word")

    def test_no_environment_is_a_home_or_holds_one(self) -> None:
        for path in (self.home, self.base, self.home / ".local", self.home / ".config"):
            with self.subTest(str(path)):
                for name in ("bin", "lib/python3.12", "share"):
                    (path / name).mkdir(parents=True, exist_ok=True)
                (path / "pyvenv.cfg").write_text("home = /usr/bin\n")
                word = self.put_secret(path / "share" / "word")
                self.use(path / "bin")
                self.env["VIRTUAL_ENV"] = str(path)
                self.assert_kept(word, self.home / "notes")
                (note,) = self.notes()
                self.assertIn(f"does not show the virtual environment '{path}': it ", note)
                (path / "pyvenv.cfg").unlink()
        for path in ("/", "/etc", "/tmp", "/var", "/var/lib", "relative", "", "/nowhere", "/dev/null", "/proc/self/root"):
            with self.subTest(path):
                self.env["VIRTUAL_ENV"] = path
                self.assert_kept(self.home / "notes")

    def test_odd_files_in_the_place_of_a_configuration(self) -> None:
        base = pythons.installation(self.base / "elsewhere")
        made = pythons.virtual_environment(self.base / "env", base / "bin")
        word, configuration = self.put_secret(base / "lib" / "word"), made / "pyvenv.cfg"
        text = configuration.read_text()
        self.use(made / "bin")
        self.assertIn(SECRET.encode(), self.jar(*self.sh(f"cat {word}")).stdout)

        def link() -> None:
            configuration.symlink_to(self.base / "planted")

        (self.base / "planted").write_text(text)
        makers = {
            "fifo": lambda: os.mkfifo(configuration),
            "directory": configuration.mkdir,
            "link": link,
            "dangling": lambda: configuration.symlink_to("nowhere"),
            "loop": lambda: configuration.symlink_to("pyvenv.cfg"),
            "device": lambda: configuration.symlink_to("/dev/zero"),
            "long": lambda: configuration.write_bytes(b"# \n" * 100000 + text.encode()),
            "zeros": lambda: configuration.write_bytes(b"home\0 = " + bytes(base / "bin") + b"\n"),
            "long path": lambda: configuration.write_text(f"home = {'/x' * 1900}/bin\n"),
            "no newline": lambda: configuration.write_text("home"),
            "empty": lambda: configuration.write_text(""),
            "of everybody": lambda: (configuration.write_text(text), configuration.chmod(0o666)),
        }
        for name, make in makers.items():
            with self.subTest(name):
                if configuration.is_dir() and not configuration.is_symlink():
                    configuration.rmdir()
                else:
                    configuration.unlink()
                make()
                self.assert_kept(word)

    @unittest.skipUnless(os.getuid() == 0, "only root can give files away")
    def test_what_belongs_to_somebody_else_counts_for_nothing(self) -> None:
        base = pythons.installation(self.base / "elsewhere")
        made = pythons.virtual_environment(self.base / "env", base / "bin")
        (self.base / "link").symlink_to("env")
        word, own = self.put_secret(base / "lib" / "word"), self.put_secret(made / "lib" / "word")
        rows = [
            (made, made, [word, own]),
            (made, made / "pyvenv.cfg", [word, own]),
            (made, made / "bin", [word, own]),
            (made, made / "lib", [own]),
            (made, base, [word]),
            (made, base / "lib", [word]),
            (made, base / "lib" / "python3.12", [word]),
            (made, base / "bin", [word]),
            (made, base / "bin" / "python3.12", [word]),
            (self.base / "link", self.base / "link", [word, own]),
        ]
        for used, path, kept in rows:
            with self.subTest(str(path)):
                self.use(used / "bin")
                os.chown(path, 12345, 12345, follow_symlinks=False)
                self.assert_kept(*kept)
                os.chown(path, 0, 0, follow_symlinks=False)
                for file in kept:
                    self.assertIn(SECRET.encode(), self.jar(*self.sh(f"cat {file}")).stdout)


if __name__ == "__main__":
    unittest.main()
