# SPDX-License-Identifier: Apache-2.0
"""Real packages from the registries that this machine reaches, through a gate on this machine's own network.

No host is named here: each client is first run outside of any jar, as it is configured, and says which hosts it asks. Where that
fails there is nothing to test. The jar may then reach those hosts and no others.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import unittest
from pathlib import Path
from typing import Any, Dict, List

from harness import paths
from harness.case import JarCase
from harness.runner import NAMESPACE

URL = re.compile(r"https?://([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)")
OUTSIDE_SECONDS = 120


class Registries(JarCase):
    """Outside, then inside, into folders of their own."""

    way = NAMESPACE

    def setUp(self) -> None:
        super().setUp()
        self.path = os.pathsep.join([os.environ.get("BELLJAR_TEST_PATH", ""), paths.SYSTEM_PATH]).strip(os.pathsep)
        home = os.environ.get("BELLJAR_TEST_HOME", "")
        # What whoever runs the tests has set up holds for them, where we may read it.
        self.configured = {**self.env, "PATH": self.path, "HOME": home if os.access(home, os.R_OK | os.X_OK) else str(self.home)}

    def find(self, program: str) -> str:
        """Its path; without it the test is skipped."""
        found = shutil.which(program, path=self.path)
        if found is None:
            self.skipTest(f"needs:{program} which is not installed, or not for everybody")
        return found

    def ask(self, *words: str) -> str:
        """A client's configuration, as it is outside."""
        done = subprocess.run(words, env=self.configured, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
        said = done.stdout.strip()
        return "" if done.returncode or said in ("null", "undefined") else said

    def fetch(self, script: str, variables: Dict[str, str], *options: Any) -> Path:
        """Run a script outside and inside; the folder that it was run in inside."""
        outside = self.directory("outside")
        env = {**self.env, "PATH": self.path, **variables}
        try:
            done = subprocess.run(
                ["sh", "-ec", script], cwd=outside, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=OUTSIDE_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            self.skipTest("needs:registry the client does not end outside either")
        said = done.stdout.decode(errors="replace")
        if done.returncode:
            self.skipTest(f"needs:registry {said[-300:]}")
        hosts = sorted(set(URL.findall(said)))
        self.assertTrue(hosts, said[-2000:])
        # A registry may be a mirror in a private network.
        rules = [word for host in hosts for word in ("--allow-net", json.dumps({"host": host, "private": True}))]
        given = [word for name, value in {"PATH": self.path, **variables}.items() for word in ("--env", f"{name}={value}")]
        result: Any = self.json("-C", self.work, *given, *rules, *options, "--", "sh", "-ec", script, self.marker, timeout=OUTSIDE_SECONDS)
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 0), result)
        reached = {host["host"]: host["bytes_in"] for host in result["network"]["hosts"]}
        self.assertLessEqual(set(reached), set(hosts))
        self.assertGreater(sum(reached.values()), 0)
        return self.work

    def test_pip(self) -> None:
        python = "/usr/bin/python3"
        if not self.ask(python, "-m", "pip", "--version"):
            self.skipTest("needs:pip of the system's Python")
        variables = {}
        for key, name in (("global.index-url", "PIP_INDEX_URL"), ("global.cert", "PIP_CERT")):
            value = self.ask(python, "-m", "pip", "config", "get", key)
            if value:
                variables[name] = value
        words = "-vvv --disable-pip-version-check --no-cache-dir --no-deps --target out six"
        folder = self.fetch(f"{python} -m pip install {words}", variables)
        self.assertTrue((folder / "out" / "six.py").is_file())

    def test_npm(self) -> None:
        npm = self.find("npm")
        variables = {}
        for key in ("registry", "cafile"):
            value = self.ask(npm, "config", "get", key)
            if value:
                variables[f"npm_config_{key}"] = value
        folder = self.fetch(f"echo '{{}}' > package.json; {npm} install --loglevel http --no-audit --no-fund --cache ./cache ms", variables)
        self.assertTrue((folder / "node_modules" / "ms" / "package.json").is_file())

    def test_cargo(self) -> None:
        compiler = self.find("rustc")
        found = self.ask(compiler, "--print", "sysroot")
        if not found or not os.access(f"{found}/bin/cargo", os.X_OK):
            self.skipTest("needs:cargo beside rustc")
        version = tuple(map(int, self.ask(f"{found}/bin/cargo", "--version").split()[1].split(".")[:2]))
        if version < (1, 70):
            self.skipTest("needs:cargo of a version that asks registries over HTTPS")
        configuration = Path(self.configured.get("CARGO_HOME") or Path(self.configured["HOME"]) / ".cargo") / "config.toml"
        copied = f"cat > home/config.toml <<'END'\n{configuration.read_text()}\nEND" if os.access(configuration, os.R_OK) else ":"
        manifest = '[package]\\nname = "user"\\nversion = "0.1.0"\\n[dependencies]\\ncfg-if = "1"\\n'
        # What it asks for packages is what the index says.
        script = f"""mkdir -p src home; {copied}
echo > src/lib.rs; printf '{manifest}' > Cargo.toml; CARGO_HOME=$PWD/home CARGO_LOG=network=debug PATH={found}/bin:$PATH cargo fetch
cat home/registry/index/*/config.json; for name in home/registry/index/*; do name=${{name##*/}}; echo https://${{name%-*}}; done"""
        folder = self.fetch(script, {}, *(["--ro", found] if not found.startswith("/usr") else []))
        self.assertTrue(list((folder / "home" / "registry" / "cache").glob("*/cfg-if-*.crate")))

    def test_go(self) -> None:
        go = self.find("go")
        variables = {name: value for name in ("GOPROXY", "GOSUMDB", "GONOSUMDB", "GOPRIVATE") if (value := self.ask(go, "env", name))}
        variables.update(GOFLAGS="-mod=mod -modcacherw", GOTOOLCHAIN="local")
        # One that its own library uses.
        listed = Path(self.ask(go, "env", "GOROOT")) / "src" / "vendor" / "modules.txt"
        modules: List[str] = [line.split()[1:3] for line in listed.read_text().splitlines() if line.startswith("# ")][0] if listed.exists() else []
        if len(modules) != 2:
            self.skipTest("needs:modules.txt of the go installation")
        name, version = modules
        # Whom it asks about sums, if it does, it does not say.
        sums = f"echo https://{variables['GOSUMDB']}" if re.fullmatch(r"[a-z.]+\.[a-z]+", variables.get("GOSUMDB", "")) else ":"
        folder = self.fetch(
            f"printf 'module user\\n\\ngo 1.16\\n' > go.mod; {sums}; GOPATH=$PWD/go GOCACHE=$PWD/cache {go} mod download -x {name}@{version}", variables
        )
        self.assertTrue((folder / "go" / "pkg" / "mod" / f"{name}@{version}").is_dir())


if __name__ == "__main__":
    unittest.main()
