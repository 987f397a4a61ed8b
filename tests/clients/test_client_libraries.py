# SPDX-License-Identifier: Apache-2.0
"""Libraries of Python and Node through the gate, with the versions that pip and npm fetch."""

from __future__ import annotations

import json
import unittest
from typing import Any

from harness.internet import SITE_NAME
from harness.site_case import SiteCase

WWW = f"www.{SITE_NAME}"
EVIL = f"evil.{SITE_NAME}"
HELLO = f"hello from {WWW}"


class Libraries(SiteCase):
    """Each asks a host that is allowed, over HTTP and HTTPS, and one that is not."""

    has_bad_weather = True

    def python(self, module: str, code: str) -> Any:
        """What a program that uses a module has put into `said`."""
        python, options = self.fetched("python", "bin", "python")
        probe = self.shell([], f"{python} -c 'import {module}' 2>&1 || echo absent", options=options)
        if probe.strip():
            self.skipTest(f"needs:{module} which could not be fetched")
        urls = f"urls = ['http://{WWW}/hello', 'https://{WWW}/hello', 'https://{EVIL}/hello']\n"
        words = [python, "-c", f"import json, {module}\n{urls}{code}\nprint(json.dumps(said))"]
        said = json.loads(self.client([WWW], *words, options=options))
        self.assertEqual(self.asked_of_site(), [WWW])
        return said

    def test_requests(self) -> None:
        said = self.python(
            "requests",
            """
def get(url):
    try:
        return session.get(url, timeout=40).text.strip()
    except requests.ConnectionError as error:
        return "ConnectionError"
session = requests.Session()
said = [get(url) for url in urls * 2]""",
        )
        self.assertEqual(said, [HELLO, HELLO, "ConnectionError"] * 2)

    def test_httpx(self) -> None:
        said = self.python(
            "httpx",
            """
import asyncio, os, ssl
trusted = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
def get(url):
    try:
        return client.get(url).text.strip()
    except httpx.ConnectError:
        return "ConnectError"
async def get_all():
    async with httpx.AsyncClient(verify=trusted, timeout=40) as client:
        return [answer.text.strip() for answer in await asyncio.gather(*[client.get(url) for url in urls[:2] * 10])]
with httpx.Client(verify=trusted, timeout=40) as client:
    said = [get(url) for url in urls]
said.append(len(set(asyncio.run(get_all()))))""",
        )
        self.assertEqual(said, [HELLO, HELLO, "ConnectError", 1])

    def test_aiohttp(self) -> None:
        said = self.python(
            "aiohttp",
            """
import asyncio
async def get(session, url):
    try:
        async with session.get(url) as answer:
            return (await answer.text()).strip()
    except aiohttp.ClientConnectorError:
        return "ClientConnectorError"
async def get_all():
    async with aiohttp.ClientSession() as session:
        return await asyncio.gather(*[get(session, url) for url in urls * 5])
said = asyncio.run(get_all())""",
        )
        self.assertEqual(said, [HELLO, HELLO, "ClientConnectorError"] * 5)

    def test_undici(self) -> None:
        # Any program of that folder shows that it is there.
        _, options = self.fetched("node", "node_modules", ".bin", "pnpm")
        folder = options[1] / "node" / "node_modules" / "undici"
        if not folder.is_dir():
            self.skipTest("needs:undici which could not be fetched")
        node = self.find("node")
        said = self.client(
            [WWW], node, "-e",
            f"""
const {{ request, fetch, Agent, setGlobalDispatcher }} = require("{folder}");
setGlobalDispatcher(new Agent({{ connect: {{ ca: require("fs").readFileSync(process.env.SSL_CERT_FILE) }} }}));
(async () => {{
  const said = [];
  for (const url of ["http://{WWW}/hello", "https://{WWW}/hello", "https://{EVIL}/hello"]) {{
    said.push(await request(url).then(r => r.body.text()).then(t => t.trim()).catch(e => e.code));
    said.push(await fetch(url).then(r => r.text()).then(t => t.trim()).catch(e => e.cause.code));
  }}
  console.log(JSON.stringify(said));
}})();""",
            options=options,
        )
        self.assertEqual(json.loads(said), [HELLO] * 4 + ["ENOTFOUND"] * 2)


if __name__ == "__main__":
    unittest.main()
