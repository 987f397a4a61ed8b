# SPDX-License-Identifier: Apache-2.0
"""The command's environment is the stated set and nothing else, and the caller's cannot be read back."""

from __future__ import annotations

import base64
import os
import secrets
import tarfile
import unittest
from pathlib import Path
from typing import Dict

from harness import census
from harness.case import JarCase, every_way
from harness.runner import NAMESPACE, read_until

SECRET_NAMES = (
    "AWS_SECRET_ACCESS_KEY GITHUB_TOKEN SSH_AUTH_SOCK DBUS_SESSION_BUS_ADDRESS DISPLAY XDG_RUNTIME_DIR LD_PRELOAD_X "
    "PYTHONPATH EDITOR PWD OLDPWD SHLVL _ MAIL GIT_DIR GIT_SSH_COMMAND LC LCX PATHX XHOME FOO BELLJAR_BIN"
).split()
PASSED: Dict[str, str] = {
    "USER": "someone",
    "LOGNAME": "someone",
    "LANG": "C.UTF-8",
    "LANGUAGE": "de:en",
    "LC_ALL": "C.UTF-8",
    "LC_CTYPE": "C.UTF-8",
    "LC_X_ODD": "odd",
    "TERM": "vt100",
    "COLORTERM": "truecolor",
    "NO_COLOR": "1",
    "SHELL": "/bin/sh",
    "TZ": "Europe/Paris",
    "GIT_AUTHOR_NAME": "A B",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "C D",
    "GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z",
}


def processors_of(pid: object) -> str:
    """Where a process may run, as the kernel writes it."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line.split(None, 1)[1] for line in lines if line.startswith("Cpus_allowed_list:"))


@every_way
class Processors(JarCase):
    """Making a jar keeps to one processor; nothing of that may be left."""

    def setUp(self) -> None:
        super().setUp()
        self.addCleanup(os.sched_setaffinity, 0, os.sched_getaffinity(0))

    def test_the_command_has_the_callers(self) -> None:
        every = os.sched_getaffinity(0)
        for allowed in (every, {max(every)}):
            os.sched_setaffinity(0, allowed)
            inside = self.json(*self.sh("grep Cpus_allowed_list /proc/self/status"))["stdout"]
            self.assertEqual(inside.split(None, 1)[1].strip(), processors_of("self"))

    def test_so_have_those_who_watch_over_it(self) -> None:
        process = self.start(*self.sh("echo ready; exec sleep 1000"))
        assert process.stdout
        read_until(process.stdout, b"ready")
        tree = [process.pid, *census.descendants(process.pid)]
        self.assertGreaterEqual(len(tree), 3)
        self.assertEqual({processors_of(pid) for pid in tree}, {processors_of("self")})


@every_way
class Environment(JarCase):
    def read_env(self, *options: object, env: Dict[str, str]) -> Dict[bytes, bytes]:
        result = self.json("--bytes", *[str(option) for option in options], "--", "/usr/bin/env", "-0", env=env)
        self.assertEqual(result["exit_code"], 0, result)
        entries = base64.b64decode(result["stdout_base64"]).split(b"\0")[:-1]
        pairs = [entry.split(b"=", 1) for entry in entries]
        self.assertEqual(len(pairs), len({name for name, _ in pairs}), "a name stands twice")
        if os.geteuid() == 0:
            pairs.remove([b"TAR_OPTIONS", b"--no-same-owner"])
        return {name: value for name, value in pairs}

    def test_the_set_is_exact(self) -> None:
        caller = {**self.env, **PASSED, "TMPDIR": "/nonexistent", **{name: "x" for name in SECRET_NAMES}}
        inside = self.read_env(env=caller)
        want = {name.encode(): value.encode() for name, value in {**PASSED, "PATH": caller["PATH"]}.items()}
        for name in (b"HOME", b"TMPDIR"):
            self.assertTrue(inside.pop(name).startswith(b"/"), name)
        self.assertEqual(inside, want)

    def test_an_empty_environment_still_has_a_home(self) -> None:
        inside = self.read_env(env={})
        self.assertLessEqual({b"HOME", b"TMPDIR"}, set(inside))
        self.assertLessEqual(set(inside), {b"HOME", b"TMPDIR", b"PATH", b"USER", b"LOGNAME", b"SHELL"})

    def test_only_root_is_told_about_owners(self) -> None:
        for options, want in (([], "--no-same-owner"), (["--env", "TAR_OPTIONS=-v"], "-v"), (["--env", "TAR_OPTIONS="], "")):
            with self.subTest(options=options):
                result = self.json(*options, *self.sh("echo ${TAR_OPTIONS-unset}"))
                self.assertEqual(result["stdout"], (want if options or os.geteuid() == 0 else "unset") + "\n")
        # Who lists the variables gets these and no others.
        policy = self.work / "own.json"
        policy.write_text('{"pass_env": ["PATH"]}')
        self.assertEqual(self.json("--policy", policy, *self.sh("echo ${TAR_OPTIONS-unset}"))["stdout"], "unset\n")
        caller = {**self.env, "TAR_OPTIONS": "--verbose"}
        self.assertEqual(self.json("--pass-env", "TAR_OPTIONS", *self.sh("echo $TAR_OPTIONS"), env=caller)["stdout"], "--verbose\n")

    def test_root_unpacks_what_belongs_to_others(self) -> None:
        with tarfile.open(self.work / "x.tar", "w") as tar:
            item = tarfile.TarInfo("f")
            item.uid = item.gid = 4711
            tar.addfile(item)
        self.assertEqual(self.jar(*self.sh("tar xf x.tar && test -O f && cp -a f g && tar cf y.tar f")).status, 0)

    def test_home_and_tmpdir_are_private_directories(self) -> None:
        (self.home / "secret").write_text("secret")
        script = (
            'cd "$HOME" && touch here && ls -A; cd "$TMPDIR" && touch there && test -f there && echo ok;'
            'cat "$HOME/secret"; test -f "$HOME/here" && echo home'
        )
        done = self.jar(*self.sh(script), env={**self.env, "TMPDIR": str(self.work)})
        self.assertIn(b"ok\n", done.stdout, done)
        self.assertIn(b"home\n", done.stdout, done)
        self.assertNotIn(b"secret\n", done.stdout, done)
        self.assertEqual([entry.name for entry in self.home.iterdir()], ["secret"])
        self.assertEqual(list(self.work.iterdir()), [])

    def test_variables_can_be_set(self) -> None:
        inside = self.read_env("--env", "A=1", "--env", "B=", "--env", "C=x=y z", "--env", "A=2", env=self.env)
        self.assertEqual((inside[b"A"], inside[b"B"], inside[b"C"]), (b"2", b"", b"x=y z"))

    def test_values_may_hold_any_bytes(self) -> None:
        result = self.json("--bytes", "--env", b"ODD=\xff\n\x01", *self.sh('printf %s "$ODD"'))
        self.assertEqual(base64.b64decode(result["stdout_base64"]), b"\xff\n\x01")

    def test_variables_can_be_passed(self) -> None:
        caller = {**self.env, "CI": "yes", "APP_ONE": "1", "APP_TWO": "2", "APPLE": "3", "OTHER": "4"}
        inside = self.read_env("--pass-env", "CI", "--pass-env", "APP_*", "--pass-env", "NOT_SET", env=caller)
        got = {name for name in inside if name in (b"CI", b"APP_ONE", b"APP_TWO", b"APPLE", b"OTHER", b"NOT_SET")}
        self.assertEqual(got, {b"CI", b"APP_ONE", b"APP_TWO"})

    def test_setting_wins_over_passing(self) -> None:
        caller = {**self.env, "CI": "outer"}
        for options in (["--env", "CI=set", "--pass-env", "CI"], ["--pass-env", "CI", "--env", "CI=set"]):
            self.assertEqual(self.read_env(*options, env=caller)[b"CI"], b"set")

    def test_setting_replaces_a_default_name(self) -> None:
        inside = self.read_env("--env", "LANG=C", "--env", "TERM=dumb", env=self.env)
        self.assertEqual((inside[b"LANG"], inside[b"TERM"]), (b"C", b"dumb"))

    def test_malformed_variables_are_refused(self) -> None:
        for options in (["--env", "NOVALUE"], ["--env", "=x"], ["--pass-env", ""], ["--pass-env", "A=B"]):
            with self.subTest(options=options):
                done = self.jar(*options, *self.sh("touch ran"))
                self.assert_failed(done)
                self.assertFalse((self.work / "ran").exists())

    def test_the_callers_environment_cannot_be_read_back(self) -> None:
        secret = "s" + secrets.token_hex(16)
        caller = {**self.env, "GITHUB_TOKEN": secret, "PASSED": "visible" + self.marker}
        scan = self.tool("procscan")
        script = f'"{scan}" {secret.encode().hex()}; "{scan}" {("visible" + self.marker).encode().hex()}'
        result = self.json("--pass-env", "PASSED", *self.sh(script), env=caller)
        secret_part, _, control_part = result["stdout"].partition("read ")
        self.assertEqual(secret_part, "", "a file in /proc holds the caller's secret")
        self.assertIn("environ", control_part, "the scan does not even find the jar's own environment")

    def test_the_parents_environment_cannot_be_read_back(self) -> None:
        secret = "s" + secrets.token_hex(16)
        script = "cat /proc/$PPID/environ /proc/1/environ /proc/self/environ | tr '\\0' '\\n' | rev"
        result = self.json(*self.sh(script), env={**self.env, "GITHUB_TOKEN": secret})
        self.assertNotIn(secret[::-1], result["stdout"])


class NamespaceEnvironment(JarCase):
    way = NAMESPACE

    def test_belljars_own_command_line_cannot_be_read(self) -> None:
        secret = "s" + secrets.token_hex(16)
        scan = self.tool("procscan")
        for option in (["--redact", secret], ["--hostname", secret[:20]], ["--redact=" + secret]):
            needle = secret[:20].encode().hex()
            result = self.json(*option, "--", scan, needle)
            self.assertRegex(result["stdout"], r"\Aread \d+\n\Z", option)


if __name__ == "__main__":
    unittest.main()
