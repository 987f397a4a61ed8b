# SPDX-License-Identifier: Apache-2.0
"""Clients that know nothing of a gate, through one: what the distribution has of them, against a site of the test's own.

All others are in tests/clients, which ./dev test clients runs.
"""

from __future__ import annotations

import json
import subprocess
import unittest
from pathlib import Path

from harness.gate_case import CLIENT, GateCase
from harness.internet import ECHO_PORT, SITE, SITE_NAME
from harness.site import BACKEND
from harness.site_case import SiteCase

WWW = f"www.{SITE_NAME}"
HELLO = f"hello from {WWW}"


class Clients(SiteCase):
    """Each is run as on any host."""

    def test_curl_and_wget(self) -> None:
        self.find("curl"), self.find("wget")
        self.site.folder.joinpath("files", "big").write_bytes(bytes(3 << 20))
        urls = f"http://{WWW}/hello https://{WWW}/hello"
        said = self.client(
            [WWW, f"other.{SITE_NAME}"],
            "sh", "-c",
            f"curl -sS {urls}; curl -sSL 'https://{WWW}/moved?other.{SITE_NAME}'; curl -sS https://{WWW}/big | wc -c;"
            f" curl -sS -d some=thing https://{WWW}/echo; echo; wget -q --ca-certificate={self.authority} -O - {urls};"
            f" curl -sS --max-time 30 https://evil.{SITE_NAME}/ 2>&1; echo $?;"
            f" curl -sS --max-time 30 --resolve evil.{SITE_NAME}:443:{SITE} https://evil.{SITE_NAME}/ 2>/dev/null; echo $?;"
            f" curl -sS --max-time 30 --connect-to ::{WWW}: https://evil.{SITE_NAME}/hello 2>/dev/null; echo $?",
        ).splitlines()
        self.assertEqual(said[:4], [HELLO, HELLO, f"hello from other.{SITE_NAME}", str(3 << 20)])
        self.assertEqual(said[4:7], ["some=thing", HELLO, HELLO])
        self.assertIn("Could not resolve host", said[7])
        # No such name; refused; reset, for the name inside of TLS is another.
        self.assertEqual([said[8], said[9], said[10]], ["6", "7", "35"])
        self.assertFalse([line for line in self.site.log() if "evil" in line])
        hosts = {(host["host"], host["port"]): host for host in self.result["network"]["hosts"]}
        self.assertGreater(hosts[WWW, 443]["bytes_in"], 3 << 20)

    def test_git_over_https(self) -> None:
        self.find("git")
        if not Path(BACKEND).exists():
            self.skipTest("needs:git-http-backend which git serves with")
        identity = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main", "-c", "commit.gpgsign=false"]
        repository = self.site.folder / "git" / "one.git"
        for words in (["init", "-q", "--bare", str(repository)], ["-C", str(repository), "config", "http.receivepack", "true"]):
            subprocess.run(["git", *identity, *words], check=True, env=self.env)
        said = self.client(
            [WWW],
            "sh", "-ec",
            f"""git() {{ command git {' '.join(identity)} "$@"; }}
git init -q first; cd first; seq 100000 > numbers; git add .; git commit -qm one; git push -q https://{WWW}/git/one.git HEAD:main
cd ..; git clone -q https://{WWW}/git/one.git second; wc -l < second/numbers
git -C second fetch -q --depth 1; git ls-remote http://{WWW}/git/one.git | wc -l
git ls-remote https://evil.{SITE_NAME}/git/one.git 2>/dev/null || echo $?""",
        )
        self.assertEqual(said.split(), ["100000", "2", "128"])

    def test_python(self) -> None:
        said = self.client(
            [WWW, f"good.test:{ECHO_PORT}"],
            "python3", "-c",
            CLIENT
            + f"""
import asyncio, http.client, select, urllib.error, urllib.request
def get(url):
    try:
        return urllib.request.urlopen(url, timeout=40).read().decode().strip()
    except urllib.error.URLError as error:
        return type(error.reason).__name__
async def stream():
    reader, writer = await asyncio.open_connection("good.test", {ECHO_PORT})
    writer.write(b"async"); await writer.drain()
    said = (await reader.readexactly(5)).decode()
    writer.close()
    return said
def late():
    "A socket that does not wait."
    s = socket.socket(); s.setblocking(False)
    code = s.connect_ex((socket.gethostbyname("good.test"), {ECHO_PORT}))
    select.select([], [s], [], 40)
    s.send(b"late"); select.select([s], [], [], 40)
    return s.recv(9).decode()
connection = http.client.HTTPSConnection("{WWW}", timeout=40)
kept = []
for _ in range(3):
    connection.request("GET", "/hello")
    kept.append(connection.getresponse().read().decode().strip())
said = [get("http://{WWW}/hello"), get("https://{WWW}/hello"), get("https://evil.{SITE_NAME}/"), kept == ["{HELLO}"] * 3,
        asyncio.run(stream()), late()]
print(json.dumps(said))""",
        )
        self.assertEqual(json.loads(said), [HELLO, HELLO, "gaierror", True, "async", "late"])

    def test_node(self) -> None:
        self.find("node")
        said = self.client(
            [WWW, f"good.test:{ECHO_PORT}"],
            "node", "-e",
            f"""
const net = require("net"), https = require("https"), dns = require("dns").promises;
const wait = f => new Promise((good, bad) => f(good, bad));
(async () => {{
  const said = [];
  for (const url of ["http://{WWW}/hello", "https://{WWW}/hello", "https://evil.{SITE_NAME}/"])
    said.push(await fetch(url).then(r => r.text()).catch(e => e.cause.code));
  said.push(await wait(good => https.get("https://{WWW}/hello", r => {{ let t = ""; r.on("data", d => t += d); r.on("end", () => good(t)); }})));
  said.push(await wait(good => {{ const s = net.connect({ECHO_PORT}, "good.test", () => s.write("net")); s.on("data", d => {{ good("" + d); s.end(); }}); }}));
  said.push((await dns.resolve4("{WWW}")).length, await dns.resolve4("evil.test").catch(e => e.code));
  console.log(JSON.stringify(said.map(x => typeof x == "string" ? x.trim() : x)));
}})();""",
        )
        self.assertEqual(json.loads(said), [HELLO, HELLO, "ENOTFOUND", HELLO, "net", 1, "ENOTFOUND"])


class BadWeather(GateCase):
    """Packets come late, and some never."""

    has_bad_weather = True

    def test_everything_arrives(self) -> None:
        said = self.say(
            [f"*.good.test:{ECHO_PORT}", f"good.test:{ECHO_PORT}"],
            f"""
data = os.urandom(300000)
def echo(name):
    got = b""
    with socket.create_connection((name, {ECHO_PORT}), timeout=60) as s:
        sender = threading.Thread(target=lambda: (s.sendall(data), s.shutdown(socket.SHUT_WR)))
        sender.start()
        while part := s.recv(65536):
            got += part
        sender.join()
    return got == data
said = [echo(name) for name in ("good.test", "www.good.test", "a.b.good.test")]
""",
        )
        self.assertEqual(said, [True] * 3)


if __name__ == "__main__":
    unittest.main()
