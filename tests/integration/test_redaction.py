# SPDX-License-Identifier: Apache-2.0
"""Secrets are replaced before anything leaves the engine, wherever the writes cut them."""

from __future__ import annotations

import base64
import re
import subprocess
import unittest

from harness.case import JarCase
from harness.result import stream_bytes, stream_text
from harness.runner import finish, read_until

MARK = "[REDACTED]"
SECRET = "s3cr3t-v4lue"


class Literal(JarCase):
    def test_a_text_is_replaced_everywhere(self) -> None:
        script = f"echo a {SECRET} b {SECRET}{SECRET}; echo e {SECRET} >&2"
        result = self.json("--redact", SECRET, *self.sh(script))
        self.assertRegex(result["stdout"], rf"\Aa {re.escape(MARK)} b ({re.escape(MARK)})+\n\Z")
        self.assertEqual(result["stderr"], f"e {MARK}\n")

    def test_counts_are_of_what_the_command_wrote(self) -> None:
        result = self.json("--redact", SECRET, *self.sh(f"printf '%s' {SECRET}"))
        self.assertEqual((result["stdout"], result["stdout_bytes"]), (MARK, len(SECRET)))

    def test_a_passed_through_run(self) -> None:
        done, result = self.status("--redact", SECRET, *self.sh(f"echo x{SECRET}y; echo {SECRET} >&2"))
        self.assertEqual((done.stdout, done.stderr), (f"x{MARK}y\n".encode(), f"{MARK}\n".encode()))
        self.assertEqual(result["stdout_bytes"], len(SECRET) + 3)

    def test_an_event_stream(self) -> None:
        events = self.events("--redact", SECRET, *self.sh(f"echo x{SECRET}y"))
        self.assertEqual(stream_text(events, "stdout"), f"x{MARK}y\n")

    def test_a_secret_that_begins_with_dashes(self) -> None:
        """A key is taken as a value; what is taken for an option is not repeated in the message."""
        key = "-----BEGIN KEY-----\nabcDEF123456\n-----END KEY-----"
        self.assertEqual(self.json("--redact", key, "--", "printf", "%s", key)["stdout"], MARK)
        for verb in ("--json", "--events"):
            done = self.jar(verb, "--redact", f"--{SECRET}", "--", "true")
            self.assertEqual(done.status, 125)
            self.assertNotIn(SECRET.encode(), done.stdout + done.stderr)

    def test_base64_is_redacted_too(self) -> None:
        result = self.json("--bytes", "--redact", SECRET, *self.sh(f"echo {SECRET}"))
        self.assertEqual(base64.b64decode(result["stdout_base64"]), f"{MARK}\n".encode())
        events = self.events("--bytes", "--redact", SECRET, *self.sh(f"echo {SECRET}"))
        self.assertEqual(stream_bytes(events, "stdout"), f"{MARK}\n".encode())

    def test_a_terminal(self) -> None:
        result = self.json("--pty", "--redact", SECRET, *self.sh(f"echo {SECRET}"))
        self.assertEqual(result["stdout"].strip(), MARK)

    def test_several_lines_behind_a_terminal(self) -> None:
        secret = "first line\nand a second\r\nand\n"
        (self.work / "secret").write_bytes(secret.encode())
        for words in ([], ["--pty"]):
            result = self.json(*words, "--redact", secret, *self.sh("echo begin; cat secret; echo end"))
            self.assertEqual(re.sub(r"\s", "", result["stdout"]), f"begin{MARK}end")
        env = {**self.env, "MY_KEY": secret}
        result = self.json("--pty", "--redact-env", *self.sh("cat secret"), env=env)
        self.assertEqual(result["stdout"], MARK)

    def test_the_start_event(self) -> None:
        start = self.events("--redact", SECRET, *self.sh(f": x{SECRET}y"))[0]
        self.assertEqual(start["event"], "start")
        self.assertNotIn(SECRET, str(start))
        self.assertIn(f"x{MARK}y", str(start["argv"]))
        env = {**self.env, "MY_TOKEN": SECRET}
        self.assertNotIn(SECRET, str(self.events("--redact-env", *self.sh(f": {SECRET}"), env=env)[0]))
        # Names of our own are no secrets.
        self.assertEqual(self.events("--redact", "name", *self.sh(":"))[0]["enforced"], start["enforced"])

    def test_messages(self) -> None:
        env = {**self.env, "MY_TOKEN": SECRET}
        wrong = (
            ["--", f"/absent/{SECRET}"],
            ["--ro", f"/absent/{SECRET}", "--", "true"],
            ["-C", f"/absent/{SECRET}", "--", "true"],
            ["--cd", f"/absent/{SECRET}", "--", "true"],
            ["--rw", f"/absent/{SECRET}:/x", "--", "true"],
        )
        for words in wrong:
            for secret in (["--redact", SECRET], ["--redact-env"]):
                with self.subTest(words):
                    for mode in ([], ["--json"], ["--events"]):
                        done = self.jar(*mode, *secret, *words, env=env)
                        self.assertNotEqual(done.status, 0)
                        self.assertNotIn(SECRET.encode(), done.stdout + done.stderr)
                    self.assertIn(MARK.encode(), done.stderr)

    def test_a_text_split_across_writes(self) -> None:
        for count in (1, 2, 3, 5, 7):
            data = f"a{SECRET}b{SECRET[:6]}c{SECRET}".encode().hex()
            want = f"a{MARK}b{SECRET[:6]}c{MARK}"
            with self.subTest(count=count):
                words = ["--redact", SECRET, "--", self.tool("drip"), "8", data, str(count)]
                self.assertEqual(self.json(*words)["stdout"], want)
                self.assertEqual(stream_text(self.events(*words), "stdout"), want)
                self.assertEqual(self.jar(*words).stdout.decode(), want)

    def test_texts_that_begin_alike(self) -> None:
        result = self.json(
            "--redact", "abcd", "--redact", "abcdefgh", "--redact", "bcdx", *self.sh("echo abcdefgh abcd bcdx abce")
        )
        self.assertEqual(result["stdout"], f"{MARK} {MARK} {MARK} abce\n")

    def test_a_text_that_overlaps_itself(self) -> None:
        result = self.json("--redact", "aaaa", *self.sh("printf aaabaaaab"))
        self.assertEqual(result["stdout"], f"aaab{MARK}b")

    def test_a_text_of_odd_bytes(self) -> None:
        result = self.json("--bytes", "--redact", b"\xff\n\xfe\x01", *self.sh("printf 'a\\377\\n\\376\\001b'"))
        self.assertEqual(base64.b64decode(result["stdout_base64"]), f"a{MARK}b".encode())

    def test_a_text_over_a_megabyte(self) -> None:
        filler = "x" * 65530
        (self.work / "data").write_text((filler + SECRET) * 20)
        done = self.jar("--redact", SECRET, "--", "cat", "data")
        self.assertEqual(done.stdout.decode(), (filler + MARK) * 20)

    def test_the_beginning_of_a_secret_at_the_end_arrives(self) -> None:
        result = self.json("--redact", SECRET, *self.sh(f"printf '%s' {SECRET[:-1]}"))
        self.assertEqual(result["stdout"], SECRET[:-1])

    def test_live_output_is_not_held_back(self) -> None:
        process = self.start(
            "--redact", SECRET, "--redact-secrets", *self.sh("echo hello; read x"), stdin=subprocess.PIPE
        )
        assert process.stdout
        read_until(process.stdout, b"hello\n")
        self.assertEqual(finish(process, b"\n").status, 0)

    def test_a_prompt_is_not_held_back(self) -> None:
        process = self.start("--redact", SECRET, *self.sh("printf 'name: '; read x"), stdin=subprocess.PIPE)
        assert process.stdout
        read_until(process.stdout, b"name: ")
        self.assertEqual(finish(process, b"\n").status, 0)

    def test_the_cap_counts_what_is_left_after_redaction(self) -> None:
        result = self.json("--output", str(len(MARK)), "--redact", SECRET, *self.sh(f"printf '%s' {SECRET}"))
        self.assertEqual((result["stdout"], result["truncated"]), (MARK, False))

    def test_the_cap_never_uncovers_a_secret(self) -> None:
        for cap in range(1, 30):
            result = self.json("--output", str(cap), "--redact", SECRET, *self.sh(f"printf 'ab%s%s' {SECRET} tail"))
            self.assertEqual(result["stdout"], f"ab{MARK}tail"[:cap])

    def test_a_timeout_uncovers_nothing(self) -> None:
        result = self.json(
            "--timeout", "400ms", "--grace", "0", "--redact", SECRET, *self.sh(f"printf 'x%s' {SECRET}; sleep 1000")
        )
        self.assertEqual(result["stdout"], f"x{MARK}")

    def test_short_texts_are_refused(self) -> None:
        for word in ("", "a", "abc"):
            done = self.jar("--redact", word, *self.sh("touch ran"))
            self.assert_failed(done)
            self.assertFalse((self.work / "ran").exists())

    def test_the_secret_is_in_no_part_of_the_result(self) -> None:
        done = self.jar("--json", "--redact", SECRET, "--output", "20", *self.sh(f"echo {SECRET[:5]}''{SECRET[5:]}"))
        self.assertNotIn(SECRET.encode(), done.stdout)


class Shapes(JarCase):
    def test_known_shapes_are_replaced(self) -> None:
        samples = {
            "bearer": ("Authorization: Bearer abcdef1234567890abcdef1234567890", "abcdef1234567890"),
            "basic": ("Authorization: Basic dXNlcjpwYXNzd29yZDEyMzQ1Ng==", "dXNlcjpwYXNzd29yZDEyMzQ1Ng"),
            "aws": ("id AKIAIOSFODNN7EXAMPLE end", "AKIAIOSFODNN7EXAMPLE"),
            "github": ("ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8", "a1B2c3D4e5F6g7H8"),
            "gitlab": ("glpat-" + "a1B2c3D4e5F6g7H8i9J0", "a1B2c3D4e5F6g7H8i9J0"),
            "slack": ("xoxb-" + "123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx", "AbCdEfGhIjKlMnOpQrStUvWx"),
            "stripe": ("sk_live_" + "a1B2c3D4e5F6g7H8i9J0k1L2", "a1B2c3D4e5F6g7H8i9J0k1L2"),
            "password": ("password=hunter2hunter2", "hunter2hunter2"),
            "api_key": ('api_key: "abcdef0123456789abcdef"', "abcdef0123456789abcdef"),
        }
        for name, (text, secret) in samples.items():
            with self.subTest(shape=name):
                (self.work / "data").write_text(f"before {text}\nafter\n")
                result = self.json("--redact-secrets", "--", "cat", "data")
                self.assertNotIn(secret, result["stdout"])
                self.assertIn(MARK, result["stdout"])
                self.assertTrue(result["stdout"].startswith("before "), result["stdout"])
                self.assertTrue(result["stdout"].endswith("after\n"), result["stdout"])
                dripped = self.json(
                    "--redact-secrets", "--", self.tool("drip"), "1", f"before {text}\nafter\n".encode().hex(), "3"
                )
                self.assertEqual(dripped["stdout"], result["stdout"])

    def test_a_private_key_block(self) -> None:
        body = "\n".join(["MIIEpAIBAAKCAQEAx" + "b" * 47] * 30)
        text = f"a\n-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----\nz\n"
        (self.work / "data").write_text(text)
        result = self.json("--redact-secrets", "--", "cat", "data")
        self.assertNotIn("MIIEpA", result["stdout"])
        self.assertTrue(result["stdout"].startswith("a\n") and result["stdout"].endswith("z\n"))

    def test_ordinary_text_stays(self) -> None:
        text = "The password policy is strict. basic tokens of appreciation; key: value\ncommit 0123456789abcdef\n"
        (self.work / "data").write_text(text)
        self.assertEqual(self.json("--redact-secrets", "--", "cat", "data")["stdout"], text)

    def test_without_the_option_they_stay(self) -> None:
        (self.work / "data").write_text("AKIAIOSFODNN7EXAMPLE")
        self.assertEqual(self.json("--", "cat", "data")["stdout"], "AKIAIOSFODNN7EXAMPLE")


class Variables(JarCase):
    def echo(self, name: str, value: str, text: str, *options: str) -> str:
        """What is left of a text if the caller has this variable."""
        (self.work / "data").write_text(text)
        env = {**self.env, name: value}
        return str(self.json("--redact-env", *options, "--", "cat", "data", env=env)["stdout"])

    def test_values_of_secret_looking_names(self) -> None:
        value = "V4lue-of-8-or-more"
        for name in (
            "OPENAI_API_KEY GITHUB_TOKEN MY_SECRET DB_PASSWORD PASSPHRASE CREDENTIALS SESSION_COOKIE AUTH_HEADER "
            "PRIVATE_THING SENTRY_DSN"
        ).split():
            with self.subTest(name=name):
                self.assertEqual(self.echo(name, value, f"<{value}>"), f"<{MARK}>")

    def test_values_of_other_names_stay(self) -> None:
        value = "V4lue-of-8-or-more"
        for name in ("EDITOR", "SSH_AUTH_SOCK", "MY_AUTH_SOCK", "PATHX", "COLOR"):
            with self.subTest(name=name):
                self.assertEqual(self.echo(name, value, f"<{value}>"), f"<{value}>")

    def test_short_values_stay(self) -> None:
        self.assertEqual(self.echo("GITHUB_TOKEN", "1234567", "<1234567>"), "<1234567>")
        self.assertEqual(self.echo("GITHUB_TOKEN", "12345678", "<12345678>"), f"<{MARK}>")

    def test_passed_variables_stay(self) -> None:
        value = "V4lue-of-8-or-more"
        self.assertEqual(self.echo("GITHUB_TOKEN", value, value, "--pass-env", "GITHUB_TOKEN"), value)

    def test_the_password_of_an_address(self) -> None:
        text = "postgres://user:p4ssw0rd-long@db.example/x and p4ssw0rd-long and db.example"
        left = self.echo("DATABASE_URL", "postgres://user:p4ssw0rd-long@db.example/x", text)
        self.assertNotIn("p4ssw0rd-long", left)
        self.assertIn("db.example", left)

    def test_without_the_option_they_stay(self) -> None:
        value = "V4lue-of-8-or-more"
        (self.work / "data").write_text(value)
        self.assertEqual(self.json("--", "cat", "data", env={**self.env, "GITHUB_TOKEN": value})["stdout"], value)

    def test_the_value_of_an_inside_variable_is_not_taken(self) -> None:
        result = self.json("--redact-env", "--env", "MY_TOKEN=inside-value", *self.sh("echo $MY_TOKEN"))
        self.assertEqual(result["stdout"], "inside-value\n")


if __name__ == "__main__":
    unittest.main()
