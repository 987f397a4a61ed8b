# SPDX-License-Identifier: Apache-2.0
"""The base of tests that run clients through a gate: a site outside (harness/site.py), whose authority they are told to trust."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Sequence, Tuple

from harness import paths
from harness.gate_case import GateCase
from harness.internet import SITE, SITE_NAME
from harness.site import Site

# Whose libraries read one of them needs no option. Java and wget do not.
TRUST_VARIABLES = (
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "CARGO_HTTP_CAINFO",
    "COMPOSER_CAFILE",
    "npm_config_cafile",
)


class SiteCase(GateCase):
    """A gate with a web site outside."""

    site: Site

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.folder = Path(tempfile.mkdtemp(prefix="bjt-site-", dir="/tmp"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.folder.chmod(0o755)
        cls.site = Site(cls.folder, SITE_NAME)
        cls.site.start(cls.internet, SITE)

    def setUp(self) -> None:
        super().setUp()
        self.site.forget()
        self.authority = str(self.work / "authority.crt")
        shutil.copy(self.site.authority, self.authority)
        # Whoever runs the tests may have programs that the distribution does not have, or has older ones of.
        self.path = os.pathsep.join([os.environ.get("BELLJAR_TEST_PATH", ""), paths.SYSTEM_PATH]).strip(os.pathsep)
        self.variables: Dict[str, str] = {name: self.authority for name in TRUST_VARIABLES}

    def find(self, program: str) -> str:
        """Its path; without it the test is skipped."""
        found = shutil.which(program, path=self.path)
        if found is None or not os.access(os.path.realpath(found), os.X_OK):
            self.skipTest(f"needs:{program} which is not installed, or not for everybody")
        return found

    def client(self, rules: Sequence[str], *words: str, options: Sequence[Any] = (), status: int = 0) -> str:
        """What a client has said. It starts in the workdir."""
        given = [word for name, value in self.variables.items() for word in ("--env", f"{name}={value}")]
        result: Any = self.json(
            "-C", self.work, *given, *self.rules(*rules), *options, "--", *words, self.marker, preexec_fn=self.internet.enter
        )
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", status), result)
        self.result = result
        return str(result["stdout"])

    def shell(self, rules: Sequence[str], script: str, **options: Any) -> str:
        """The same for a script; it ends where a command fails."""
        return self.client(rules, "sh", "-ec", script, **options)

    def fetched(self, *parts: str) -> "Tuple[str, List[Any]]":
        """A program that the runner has fetched, and the options that show it in the jar."""
        folder = Path(os.environ.get("BELLJAR_TEST_CLIENTS", "/nonexistent"))
        program = folder.joinpath(*parts)
        if not os.access(program, os.X_OK) or not os.access(os.path.realpath(program), os.X_OK):
            self.skipTest(f"needs:{parts[-1]} which could not be fetched, or not for everybody")
        return str(program), ["--ro", folder]

    def asked_of_site(self) -> List[str]:
        """The hosts that the site was asked for."""
        return sorted({line.split()[1] for line in self.site.log()})
