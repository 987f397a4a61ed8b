# SPDX-License-Identifier: Apache-2.0
"""Rules about requests in every door of the package: run, prepared runs, Jar, Pool. The program runs on a host of the test's own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import internet, paths  # noqa: E402
from harness.bounds import BOUND  # noqa: E402
from harness.host import need  # noqa: E402
from harness.site import Site  # noqa: E402
from package_case import PackageCase, tearDownModule  # noqa: E402, F401

PROGRAM = r"""
import inspect, json, os, sys, urllib.error, urllib.request
import belljar

HOST = sys.argv[1]
ASK = '''
import sys, urllib.error, urllib.request
def ask(host, path):
    try:
        return urllib.request.urlopen(f"https://{host}{path}", timeout=40).status
    except urllib.error.HTTPError as error:
        return error.code
'''
exec(ASK)
RULES = [{"host": HOST, "paths": ["/hello"]}]


def both(host):
    return [ask(host, "/hello"), ask(host, "/other")]


command = ["python3", "-c", ASK + f"print(ask({HOST!r}, '/hello'), ask({HOST!r}, '/other'))"]
said = {"runs": [belljar.run(command, allow_net=RULES, workdir=None).stdout for _ in range(4)]}
with belljar.Jar(allow_net=RULES, workdir=None) as jar:
    said["jar"] = [jar.run(command).stdout for _ in range(2)]
    jar.deny_net(HOST)
    said["denied"] = jar.run(command).exit_code
    jar.allow_net({"host": HOST, "paths": ["/other"]})
    said["changed"] = jar.run(command).stdout
with belljar.Jar(net="gate", workdir=None) as jar:
    try:
        jar.allow_net(RULES[0])
    except belljar.BelljarError as error:
        said["late"] = str(error)
with belljar.Pool(allow_net=RULES) as pool:
    said["calls"] = [pool.call(both, HOST) for _ in range(3)]


def header(host):
    request = urllib.request.Request(f"https://{host}/drip", headers={"Authorization": os.environ["DOOR_KEY"]})
    return urllib.request.urlopen(request, timeout=40).read().decode()


secret = {"allow_net": [HOST], "secrets": [f"DOOR_KEY@{HOST}"]}
shown = "import os, urllib.request\n" + inspect.getsource(header) + f"print(header({HOST!r}), end='')"
said["secret runs"] = [belljar.run(["python3", "-c", shown], workdir=None, **secret).stdout for _ in range(3)]
with belljar.Jar(workdir=None, **secret) as jar:
    said["secret jar"] = jar.run(["python3", "-c", shown]).stdout
with belljar.Pool(**secret) as pool:
    said["secret call"] = pool.call(header, HOST)
print(json.dumps(said))
"""


KEY = "a key of the caller's"


class Doors(PackageCase):
    """One program that uses them all."""

    said: Dict[str, Any]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        need("userns")
        folder = Path(tempfile.mkdtemp(prefix="bjt-site-", dir="/tmp"))
        cls.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o755)
        world = internet.Internet().start()
        cls.addClassCleanup(world.stop)
        site = Site(folder, internet.SITE_NAME)
        site.start(world, internet.SITE)
        gate = os.path.join(os.path.dirname(paths.belljar()), "belljar-gate")
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "SSL_CERT_FILE": str(site.authority), "BELLJAR_GATE": gate, "DOOR_KEY": KEY}
        program = folder / "program.py"
        program.write_text(PROGRAM)
        done = subprocess.run(
            [sys.executable, str(program), f"www.{internet.SITE_NAME}"],
            capture_output=True, text=True, env=env, timeout=BOUND, check=False, preexec_fn=world.enter,
        )  # fmt: skip
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        cls.said = json.loads(done.stdout)

    def test_every_door_decides_by_request(self) -> None:
        self.assertEqual(self.said["runs"], ["200 403\n"] * 4)
        self.assertEqual(self.said["jar"], ["200 403\n"] * 2)
        self.assertEqual(self.said["calls"], [[200, 403]] * 3)

    def test_every_door_puts_secrets_in(self) -> None:
        expected = f"<Bearer {'*' * len(KEY)}>" * 3
        self.assertEqual(self.said["secret runs"], [expected] * 3)
        self.assertEqual((self.said["secret jar"], self.said["secret call"]), (expected, expected))

    def test_rules_of_a_jar_that_stands(self) -> None:
        self.assertEqual((self.said["denied"], self.said["changed"]), (1, "403 404\n"))
        self.assertIn("without a gate that reads requests", self.said["late"])


if __name__ == "__main__":
    unittest.main()
