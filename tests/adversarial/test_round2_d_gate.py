# SPDX-License-Identifier: Apache-2.0
"""Secrets that the gate keeps: what comes back says nothing of them, and no command reads the file that they come from."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, List

from harness import paths
from harness.case import JarCase, on_ways
from harness.runner import ANY, LANDLOCK
from integration.test_inspect_http2 import API, WEBSOCKET, Http2Case
from integration.test_inspect_http2 import rule as http2_rule
from integration.test_secrets import STARS, VALUE, SecretCase

# The host sends the header back, three times, in chunks of three bytes: how do they come?
GUESS = """
def chunks(guess):
    "The bytes of each chunk of the answer, and the text."
    answer = raw(("GET /drip HTTP/1.1\\r\\nHost: www.site.test\\r\\nConnection: close\\r\\nAuthorization: " + guess + "\\r\\n\\r\\n").encode())
    body, sizes, text = answer.partition("\\r\\n\\r\\n")[2], [], ""
    while body:
        size, _, body = body.partition("\\r\\n")
        sizes.append(int(size, 16))
        text += body[:sizes[-1]]
        body = body[sizes[-1] + 2:]
    return [sizes, text]
"""


class Oracles(SecretCase):
    def test_a_right_guess_comes_back_as_a_wrong_one_does(self) -> None:
        """A guess of every length at once, so that each of its ends stands at the end of some chunk."""
        guesses = [VALUE[:end] + "~" * (len(VALUE) - end) for end in range(0, len(VALUE), 3)]
        said = self.secret(GUESS + f"said = [chunks(guess) for guess in {guesses!r}]")
        sizes = [entry[0] for entry in said]
        self.assertEqual([entry[1] for entry in said], [f"<{guess}>" * 3 for guess in guesses])
        self.assertEqual(sizes, [sizes[0]] * len(guesses))

    def test_a_host_that_sends_lines_is_heard_at_once(self) -> None:
        """What waits waits for no line: an event that has come whole is there before the next one."""
        said = self.secret(
            """
with socket.create_connection(("www.site.test", 443), 40) as s, ssl.create_default_context().wrap_socket(s, server_hostname="www.site.test") as t:
    t.sendall(b"GET /lines HTTP/1.1\\r\\nHost: www.site.test\\r\\nConnection: close\\r\\n\\r\\n")
    got = b""
    while b"\\n\\n" not in got.partition(b"\\r\\n\\r\\n")[2]:
        got += t.recv(65536)
    # The host says nothing more before this has come.
    urllib.request.urlopen("https://www.site.test/go").read()
    while piece := t.recv(65536):
        got += piece
    said = got.decode()
""".replace("with socket", "import urllib.request\nwith socket", 1)
        )
        self.assertIn("data: one\n\n", said)
        self.assertIn("data: two\n\n", said)


class Frames(Http2Case):
    def test_a_value_that_frames_of_a_message_cut_does_not_come_back(self) -> None:
        code = WEBSOCKET + f"""
def message(t):
    "The text of the next message, and how many frames it had."
    text, count = b"", 0
    while True:
        first, size = t.read(2)
        part = t.read(size)
        if first & 8:
            continue
        text, count = text + part, count + 1
        if first & 0x80:
            return [text.decode(), count]
lines = ["GET /live HTTP/1.1", "Host: {API}:8443", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
         "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Authorization: " + os.environ["TOKEN"], "", ""]
with connect(protocols=("http/1.1",)) as t, t.makefile("rb") as file:
    t.sendall("\\r\\n".join(lines).encode())
    while file.readline().rstrip():
        pass
    for text in (b"CUT AUTH and AUTH", b"AUTH", b"CUT" + b"x" * 100):
        t.sendall(bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text)
        said.append(message(file))
"""
        said = self.inspect([http2_rule(tls="inspect")], code, "--secret", f"TOKEN@{API}")
        shown = f"Bearer {STARS}"
        self.assertEqual([entry[0] for entry in said], [f"CUT {shown} and {shown}", shown, "CUT" + "x" * 100])
        self.assertEqual([entry[1] for entry in said], [-(-len(said[0][0]) // 5), 1, 21])


@on_ways(ANY, LANDLOCK)
class Files(JarCase):
    """from_file: what a jar can read is no secret of the gate's."""

    def plan(self, source: "str | Path", *options: "str | Path") -> "subprocess.CompletedProcess[str]":
        entry = json.dumps({"name": "TOKEN", "host": "api.site.test", "from_file": str(source)})
        words: List[Any] = [paths.tool("deny"), *self.way.deny, "--"] if self.way.deny else []
        words += [paths.belljar(), "plan", "--json", "--allow-net", "api.site.test", "--secret", entry, *options, "--", "true"]
        env = {**self.env, "PATH": paths.SYSTEM_PATH, "BELLJAR_GATE": os.environ.get("BELLJAR_GATE", "")}
        return subprocess.run(words, capture_output=True, text=True, env=env, cwd=self.work, check=False)

    def refused(self, source: "str | Path", *options: "str | Path") -> None:
        done = self.plan(source, *options)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        if self.way is not LANDLOCK:
            self.assertIn(f"the secret TOKEN: the command could read '{source}'", done.stderr)
            self.assertIn("hint", done.stderr)

    def key(self, directory: Path, name: str = "key") -> Path:
        path = directory / name
        path.write_text("a-secret-value")
        path.chmod(0o600)
        return path

    def test_a_file_that_the_jar_shows_is_refused(self) -> None:
        keys, other = self.directory("keys"), self.directory("other")
        inside, outside = self.key(self.work), self.key(keys)
        if self.way is not LANDLOCK:
            self.assertEqual(self.plan(outside).returncode, 0, self.plan(outside).stderr)
            # Hidden is not shown.
            done = self.plan(inside, "--hide", inside)
            self.assertEqual(done.returncode, 0, done.stderr)
            done = self.plan(inside, "-C", "none")
            self.assertEqual(done.returncode, 0, done.stderr)
        for options in ([], ["--workdir-mode", "ro"], ["--cow"]):
            self.refused(inside, *options)
        self.refused(outside, "--ro", keys)
        self.refused(outside, "--ro", outside)
        self.refused(outside, "--ro", f"{keys}:/tmp/else")
        self.refused(outside, "--rw", self.base, "-C", "none")
        # A link outside to a file inside; and one that a command may have put there.
        (other / "link").symlink_to(inside)
        self.refused(other / "link")
        (self.work / "link").symlink_to(outside)
        self.refused(self.work / "link")
        (self.work / "way").symlink_to(keys)
        self.refused(self.work / "way" / "key")
        # The same file by another name, wherever that is.
        os.link(outside, other / "twin")
        self.refused(outside)
