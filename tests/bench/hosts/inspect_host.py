# SPDX-License-Identifier: Apache-2.0
"""Requests with and without a look inside of TLS, in the network namespaces of harness/internet.py; the answer is of all ways and rounds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Dict, List

from harness import internet
from harness.site import Site

from bench.turns import Way, take_turns

API = f"api.{internet.SITE_NAME}"
PORT = 8443
URL = f"https://{API}:{PORT}"
BENCH = Path(__file__).resolve().parent.parent
INSPECTED = json.dumps({"host": API, "ports": PORT, "methods": ["GET"]})


def lines_of(site: Site, count: int, mebibytes: int) -> Dict[str, List[str]]:
    """What is run for each way."""
    jar = [os.environ["BELLJAR_BIN"], "run", "-C", "none", "--ro", str(BENCH), "--ro", str(site.folder)]
    trust = f"NODE_EXTRA_CA_CERTS={site.authority}"
    passed = [*jar, "--allow-net", f"{API}:{PORT}", "--env", trust, "--"]
    inspected = [*jar, "--allow-net", INSPECTED, "--"]
    client = ["node", str(BENCH / "programs" / "exchange.js"), URL]
    return {
        f"{name}, HTTP/{version}": [*begin, *client, version[0], str(count), str(mebibytes)]
        for version in ("1.1", "2")
        for name, begin in (("no sandbox", ["env", trust]), ("belljar, gate", passed), ("belljar, inspected", inspected))
    }


def main() -> None:
    asked = json.loads(sys.argv[1])
    seconds: Dict[str, List[float]] = {}

    def measure(net: internet.Internet, site: Site) -> None:
        lines = lines_of(site, asked["count"], asked["mebibytes"])
        if asked["is_quick"]:
            lines = {name: lines[name] for name in ("no sandbox, HTTP/1.1", "belljar, inspected, HTTP/2")}
        env = {**os.environ, "SSL_CERT_FILE": str(site.authority)}
        server = ["node", str(BENCH.parent / "harness" / "site_http2.js"), str(site.folder), internet.SITE, str(PORT)]
        program = net.start_in_world(server, stdout=subprocess.PIPE)
        assert program.stdout
        program.stdout.readline()

        def run(name: str) -> float:
            said = subprocess.run(lines[name], stdout=subprocess.PIPE, env=env, preexec_fn=net.enter, check=True, timeout=600).stdout.split()
            seconds.setdefault(name, []).append(int(said[1]) / 1e9)
            return int(said[0]) / 1000

        values = take_turns([Way(name, lambda name=name: run(name), has_own_value=True) for name in lines], asked["rounds"])
        rates = {name: [(asked["mebibytes"] << 20) / 1e6 / value for value in list_] for name, list_ in seconds.items()}
        shown = {str(BENCH): "tests/bench", str(site.folder): "SITE", os.environ["BELLJAR_BIN"]: "belljar"}
        commands = {name: " ".join(line) for name, line in lines.items()}
        for path, word in shown.items():
            commands = {name: line.replace(path, word) for name, line in commands.items()}
        print(json.dumps({"requests": values, "rates": rates, "commands": commands}))

    def with_site(net: internet.Internet) -> None:
        # The log that the server writes for each request is nobody's here.
        with tempfile.TemporaryDirectory(prefix="belljar-bench-site-") as folder:
            os.chmod(folder, 0o755)
            site = Site(Path(folder), internet.SITE_NAME)
            (site.folder / "log").unlink()
            measure(net, site)

    internet.main(with_site)


if __name__ == "__main__":
    main()
