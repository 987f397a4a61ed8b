# SPDX-License-Identifier: Apache-2.0
"""Secrets: the gate puts a value into one header of one host, and nobody in the jar ever has it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, List, Sequence

from harness import paths
from harness.bounds import BOUND
from harness.internet import SITE_NAME

from integration.test_inspect import ASK, WWW, InspectCase, rule

# Another one for each process: modules run at the same time.
VALUE = f"s3cr3t-value-{os.getpid():010d}"
HOLDER = "belljar-placeholder-for-TOKEN"
STARS = "*" * len(VALUE)


class SecretCase(InspectCase):
    """The caller has a variable TOKEN, and the jar has not."""

    def setUp(self) -> None:
        super().setUp()
        self.env["TOKEN"] = VALUE

    def secret(self, code: str, *options: str, rules: Sequence[str] = (WWW, f"api.{SITE_NAME}"), secret: str = f"TOKEN@{WWW}") -> Any:
        return self.inspect(rules, "import os\ntoken = os.environ['TOKEN']\n" + code, "--secret", secret, *options)


class Headers(SecretCase):
    """Where it goes."""

    def test_the_value_goes_into_the_header(self) -> None:
        said = self.secret(
            "said = [token, ask('GET', '/drip', headers={'Authorization': 'Bearer ' + token}),"
            " ask('GET', '/drip', headers={'authorization': token}), ask('GET', '/drip', headers={'Authorization': 'other'})]"
        )
        self.assertEqual(said[0], HOLDER)
        # What comes back has stars: it was the value, as the format has it, whatever stood around the placeholder.
        self.assertEqual(said[1], [200, f"<Bearer {STARS}>" * 3])
        self.assertEqual(said[2], said[1])
        self.assertEqual(said[3], [200, "<other>" * 3])

    def test_another_header_format_and_source(self) -> None:
        # Not in the workdir, which the command could read.
        file = Path(tempfile.mkdtemp(prefix="bjt-key-")) / "token"
        self.addCleanup(shutil.rmtree, file.parent)
        file.write_text(f"{VALUE}\n")
        entry = {"name": "TOKEN", "host": WWW, "header": "X-Api-Key", "format": "v1:{}", "from_file": str(file)}
        said = self.secret("said = ask('GET', '/seen', headers={'X-Api-Key': token})[1]", secret=json.dumps(entry))
        self.assertIn(f"X-Api-Key: v1:{STARS}\n", said)
        said = self.secret("said = ask('GET', '/seen', headers={'X-Key': token})[1]", secret=f"TOKEN@{WWW}:X-Key")
        self.assertIn(f"X-Key: {STARS}\n", said)

    def test_a_placeholder_stands_nowhere_else(self) -> None:
        said = self.secret(
            f"""
said = [ask('GET', '/seen', headers={{'X-Other': 'a ' + token}}), ask('GET', '/seen?' + token), ask('GET', '/seen', headers={{token: 'a'}}),
        ask('GET', '/seen', headers={{'Authorization': token}}, port=80), ask('GET', '/seen', headers={{'Authorization': token}}, host='api.{SITE_NAME}'),
        raw(('GET /seen HTTP/1.1\\r\\nHost: {WWW}\\r\\nAuthorization: a\\r\\nAuthorization: ' + token + '\\r\\n\\r\\n').encode()),
        ask('POST', '/echo', token), ask('GET', '/seen', headers={{'Authorization': token + '2'}})]
""",
            rules=[WWW, json.dumps({"host": f"api.{SITE_NAME}", "tls": "inspect"})],
        )
        self.assertEqual([entry[0] for entry in said[:5]], [403] * 5)
        for entry in said[:5]:
            self.assertIn("the placeholder of the secret TOKEN", entry[1])
        self.assertIn("HTTP/1.1 403", said[5])
        # Bodies are not looked into; and a longer word is another one.
        self.assertEqual(said[6], [200, HOLDER])
        self.assertIn(f"Authorization: {HOLDER}2\n", said[7][1])
        self.assertEqual(self.site.log(), [f"POST {WWW} /echo", f"GET {WWW} /seen"])

    def test_a_redirect_takes_the_placeholder_and_nothing_else(self) -> None:
        self.find("curl")
        said = self.client(
            [WWW, f"api.{SITE_NAME}"],
            "sh", "-c",
            f"curl -sSL --location-trusted -H \"Authorization: Bearer $TOKEN\" 'https://{WWW}/moved?api.{SITE_NAME}'",
            options=["--secret", f"TOKEN@{WWW}"],
        )  # fmt: skip
        self.assertEqual(said, f"hello from api.{SITE_NAME}\n")

    def test_answers_that_cannot_be_searched(self) -> None:
        said = self.secret(
            """
said = [ask('GET', '/packed', headers={'Authorization': token}), ask('GET', '/seen', headers={'Accept-Encoding': 'gzip', 'Range': 'bytes=0-3'})]
"""
        )
        self.assertEqual(said[0][0], 502)
        self.assertIn("compressed", said[0][1])
        self.assertIn("Accept-Encoding: identity\n", said[1][1])
        self.assertNotIn("gzip", said[1][1])
        self.assertNotIn("Range", said[1][1])

    def test_rules_about_requests_hold_beside_it(self) -> None:
        said = self.secret(
            "said = [ask('GET', '/seen', headers={'Authorization': token})[0], ask('PUT', '/seen', headers={'Authorization': token})[0]]",
            rules=[rule(methods=["GET"])],
        )
        self.assertEqual(said, [200, 403])


class Nowhere(SecretCase):
    """Where it is not."""

    def everything(self, pid: int) -> List[bytes]:
        """What there is to be read of a process."""
        found = []
        for name in ("cmdline", "environ", "status"):
            try:
                found.append(Path(f"/proc/{pid}/{name}").read_bytes())
            except OSError:
                pass
        return found

    def test_not_in_processes_plans_events_and_results(self) -> None:
        # It looks for one half that the other follows, so that it does not bring the value itself.
        half = len(VALUE) // 2
        code = ASK + f"""
import glob, os, re
ask('GET', '/seen', headers={{'Authorization': os.environ['TOKEN']}})
whole, found = re.compile(b"{VALUE[:half]}(?={VALUE[half:]})"), 0
for path in glob.glob('/proc/[0-9]*/environ') + glob.glob('/proc/[0-9]*/cmdline'):
    try:
        found += len(whole.findall(open(path, 'rb').read()))
    except OSError:
        pass
for line in open('/proc/self/maps'):
    if line.split()[1].startswith('r') and '[v' not in line:
        begin, end = (int(x, 16) for x in line.split()[0].split('-'))
        try:
            with open('/proc/self/mem', 'rb', 0) as memory:
                memory.seek(begin)
                found += len(whole.findall(memory.read(end - begin)))
        except OSError:
            pass
print('FOUND', found, 'WA' + 'IT', flush=True)
sys.stdin.readline()
"""
        process = self.start(
            "--events", "-C", "none", *self.rules(WWW), "--secret", f"TOKEN@{WWW}", "--", "python3", "-c", code,
            preexec_fn=self.internet.enter, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert process.stdout and process.stdin
        said = b""
        while b"WAIT" not in said:
            line = process.stdout.readline()
            self.assertTrue(line, said)
            said += line
        # The caller's own variable is where it was; nobody else has it, the gate neither.
        children = [int(pid) for pid in os.listdir("/proc") if pid.isdigit()]
        holders = [pid for pid in children if any(VALUE.encode() in text for text in self.everything(pid))]
        self.assertTrue(set(holders) <= {process.pid}, holders)
        rest, errors = process.communicate(b"\n", timeout=BOUND)
        self.assertEqual(process.returncode, 0, said + rest + errors)
        self.assertNotIn(VALUE.encode(), said + rest + errors)
        self.assertIn(b"FOUND 0 WAIT", said)

    def test_not_in_a_plan(self) -> None:
        env = {**self.env, "PATH": paths.SYSTEM_PATH}
        options = [*self.rules(WWW), "--secret", f"TOKEN@{WWW}"]
        for words in (["plan", *options, "--", "true"], ["plan", "--json", *options, "--", "true"]):
            done = subprocess.run([paths.belljar(), *words], capture_output=True, text=True, env=env, check=False, cwd="/")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn(VALUE, done.stdout + done.stderr)

    def refused(self, *options: str, **env: str) -> str:
        words = [paths.belljar(), "run", "-C", "none", *options, "--", "true"]
        given = {**self.env, "PATH": paths.SYSTEM_PATH, **env}
        done = subprocess.run(words, capture_output=True, text=True, env=given, check=False)
        self.assertEqual(done.returncode, 125, done.stderr)
        self.assertNotIn(VALUE, done.stderr)
        return done.stderr

    def test_what_will_not_do_is_refused_without_showing_it(self) -> None:
        self.assertIn("which no rule allows", self.refused("--allow-net", "a.test", "--secret", f"TOKEN@{WWW}"))
        self.assertIn("net is 'none'", self.refused("--secret", f"TOKEN@{WWW}"))
        self.assertIn("is not set", self.refused("--allow-net", WWW, "--secret", f"ABSENT@{WWW}"))
        # And without a hint about something else.
        self.assertRegex(self.refused("--allow-net", WWW, "--secret", f"TOKEN@{WWW}", TOKEN="short"), r"fewer than 8 bytes\n$")
        self.assertIn("control", self.refused("--allow-net", WWW, "--secret", f"TOKEN@{WWW}", TOKEN=f"{VALUE}\r\nX: y"))
        self.assertIn("cannot be in this header", self.refused("--allow-net", WWW, "--secret", f"TOKEN@{WWW}:Host"))
        self.assertIn("one host", self.refused("--allow-net", WWW, "--secret", "TOKEN@*.test"))
        self.assertIn("NAME@HOST", self.refused("--allow-net", WWW, "--secret", VALUE))
        entry = json.dumps({"name": "TOKEN", "host": WWW, "value": VALUE})
        self.assertIn("from_env", self.refused("--allow-net", WWW, "--secret", entry))
        entry = json.dumps({"name": "TOKEN", "host": WWW, "from_file": "/nonexistent/token"})
        self.assertIn("cannot read the secret", self.refused("--allow-net", WWW, "--secret", entry))
