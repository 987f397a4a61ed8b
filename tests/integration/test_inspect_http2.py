# SPDX-License-Identifier: Apache-2.0
"""belljar-gate with HTTP/2: the host and the client speak the same protocol, and what is asked over each stream decides.

What nghttp2 can be made to say is in tests/unit/test_inspect_http2.c; here are other programs, TLS, and the whole way.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import unittest
from pathlib import Path
from typing import Any

from harness.internet import SITE, SITE_NAME

from integration.test_inspect import ASK
from integration.test_secrets import HOLDER, STARS, SecretCase

API = f"api.{SITE_NAME}"
PORT = 8443
SERVER = Path(__file__).parent.parent / "harness" / "site_http2.js"
# Frames by hand: headers are literals.
FRAMES = (
    ASK
    + f"""
def block(*headers):
    return b"".join(b"\\0" + bytes([len(n)]) + n + bytes([len(v)]) + v for n, v in headers)
def frame(kind, flags, stream, data=b""):
    return len(data).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + data
def connect(host="{API}", port={PORT}, protocols=("h2",)):
    context = ssl.create_default_context()
    context.set_alpn_protocols(protocols)
    return context.wrap_socket(socket.create_connection((host, port), 40), server_hostname=host)
def read_frames(t, until):
    "Kinds, flags, streams and bytes of frames, up to the one for which `until` is true; or until the end."
    found, got = [], b""
    while True:
        while len(got) >= 9 and len(got) >= 9 + int.from_bytes(got[:3], "big"):
            size = 9 + int.from_bytes(got[:3], "big")
            found.append([got[3], got[4], int.from_bytes(got[5:9], "big"), got[9:size]])
            got = got[size:]
            if until(found[-1]):
                return found
        try:
            piece = t.recv(65536)
        except OSError:
            piece = b""
        if not piece:
            return found
        got += piece
PREFACE = b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n" + frame(4, 0, 0)
P = [(b":method", b"GET"), (b":scheme", b"https"), (b":path", b"/hello")]
A = (b":authority", b"{API}:{PORT}")
"""
)

WEBSOCKET = (
    FRAMES
    + f"""
import os
def websocket(path, *texts, **headers):
    "The status, the rest of the head, and what came back for each text."
    lines = ["GET %s HTTP/1.1" % path, "Host: {API}:{PORT}", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="] + ["%s: %s" % pair for pair in headers.items()]
    with connect(protocols=("http/1.1",)) as t, t.makefile("rb") as file:
        t.sendall("\\r\\n".join(lines + ["", ""]).encode())
        head = [line.decode() for line in iter(lambda: file.readline().rstrip(), b"")]
        got = []
        for text in texts:
            t.sendall(bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text.encode())
            got.append(file.read(file.read(2)[1]).decode())
        return [int(head[0].split()[1]), [line for line in head if line.startswith("X-Said")], got]
"""
)


def rule(**members: Any) -> str:
    return json.dumps({"host": API, "ports": PORT, **members})


class Http2Case(SecretCase):
    """Beside the site there is a server that speaks HTTP/2 and HTTP/1.1."""

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        if shutil.which("node") is None:
            raise unittest.SkipTest("needs:node which serves HTTP/2")
        command = ["node", str(SERVER), str(cls.site.folder), SITE, str(PORT)]
        program = cls.internet.start_in_world(command, stdout=subprocess.PIPE)
        assert program.stdout
        if program.stdout.readline() != b"ready\n":
            raise AssertionError("the server did not come up")


class Http2(Http2Case):
    """Clients and hostile frames."""

    def test_curl_speaks_what_the_host_speaks(self) -> None:
        self.find("curl")
        url, show = f"https://{API}:{PORT}", "curl -sS -w '%{http_version} %{http_code}\\n'"
        said = self.client(
            [rule(methods=["GET", "POST"]), json.dumps({"host": f"www.{SITE_NAME}", "tls": "inspect"})],
            "sh", "-c",
            f"{show} {url}/hello; {show} --http1.1 {url}/hello; {show} https://www.{SITE_NAME}/hello; {show} -X DELETE {url}/hello;"
            f"head -c 3000000 /dev/zero > big; {show} -o got --data-binary @big {url}/echo; cmp big got && echo same;"
            f"curl -sS -Z {' '.join(f'{url}/hello?{i}' for i in range(20))} | sort | uniq -c",
        ).splitlines()  # fmt: skip
        hello = f"hello from {API}:{PORT} over"
        self.assertEqual(said[:6], [f"{hello} 2.0", "2 200", f"{hello} 1.1", "1.1 200", f"hello from www.{SITE_NAME}", "1.1 200"])
        self.assertEqual(said[6], f"belljar: DELETE /hello is not allowed for {API} by this jar's policy")
        self.assertEqual(said[7:10], ["2 403", "2 200", "same"])
        self.assertEqual(said[10].split(), ["20", *hello.split(), "2.0"])
        self.assertNotIn("DELETE", "\n".join(self.site.log()))
        denied = self.result["denied"][0]
        self.assertEqual((denied["kind"], denied["what"], denied["count"]), ("http", f"DELETE {API}:{PORT}/hello", 1))

    def test_a_client_that_insists(self) -> None:
        """It is told by TLS that the host speaks HTTP/1.1 only, as the host would tell it."""
        said = self.inspect(
            [rule(tls="inspect"), json.dumps({"host": f"www.{SITE_NAME}", "tls": "inspect"})],
            FRAMES
            + f"""
for host, port, protocols in (("{API}", {PORT}, ["h2"]), ("{API}", {PORT}, ["http/1.1", "h2"]), ("{API}", {PORT}, ["http/1.1"]),
                              ("www.{SITE_NAME}", 443, ["h2", "http/1.1"]), ("www.{SITE_NAME}", 443, ["h2"]), ("{API}", {PORT}, ["x"])):
    try:
        with connect(host, port, protocols) as t:
            said.append(t.selected_alpn_protocol())
    except OSError as error:
        said.append(str(error).lower())
""",
        )
        self.assertEqual(said[:4], ["h2", "h2", "http/1.1", "http/1.1"])
        self.assertIn("alert", said[4])
        self.assertIn("alert", said[5])

    def test_a_host_that_cannot_be_trusted(self) -> None:
        del self.env["SSL_CERT_FILE"]
        said = self.inspect(
            [rule(tls="inspect")],
            FRAMES
            + """
with connect() as t:
    t.sendall(PREFACE + frame(1, 5, 1, block(*P, A)))
    said = read_frames(t, lambda f: f[0] == 0)[-1][3].decode()
""",
        )
        self.assertIn(f"no secure connection to {API}", said)

    def test_tricks(self) -> None:
        """Refused streams have an answer or are reset; the connection goes on, and the host hears nothing."""
        said = self.inspect(
            [rule(tls="inspect")],
            FRAMES
            + f"""
tricks = [P + [A, A], P + [A, (b":authority", b"evil.test")], P + [(b":authority", b"evil.test")], P + [A, (b"host", b"evil.test")],
          P + [A, (b"x", b"a\\r\\nhost: evil.test")], P + [A, (b"connection", b"close")], P[:2] + [A], P + [A, (b"x", b"1"), (b":path", b"/2")],
          [(b":method", b"CONNECT"), A], P + [A, (b"X-Up", b"1")]]
with connect() as t:
    t.sendall(PREFACE)
    for i, trick in enumerate(tricks):
        t.sendall(frame(1, 5, 2 * i + 1, block(*trick)))
        # The first header of an answer is its status, out of the static table or not.
        found = read_frames(t, lambda f: f[2] == 2 * i + 1)[-1]
        said.append("reset" if found[0] == 3 else "answer" if found[0] == 1 and found[3][:1] != b"\\x88" else "passed")
    last = 2 * len(tricks) + 1
    t.sendall(frame(1, 5, last, block(*P, A)))
    said.append(read_frames(t, lambda f: f[2] == last and f[0] == 0)[-1][3].decode())
""",
        )
        self.assertEqual(said[-1], f"hello from {API}:{PORT} over 2.0\n")
        self.assertNotIn("passed", said)
        self.assertEqual(self.site.log(), [f"GET {API}:{PORT} /hello 2.0"])
        self.assertEqual({entry["kind"] for entry in self.result["denied"]}, {"http"})

    def test_ten_thousand_resets(self) -> None:
        """The connection ends, and the next one works."""
        said = self.inspect(
            [rule(tls="inspect")],
            FRAMES
            + """
with connect() as t:
    t.sendall(PREFACE)
    try:
        for i in range(10000):
            t.sendall(frame(1, 5, 2 * i + 1, block(*P, A)) + frame(3, 0, 2 * i + 1, bytes(4)))
    except OSError:
        pass
    found = read_frames(t, lambda f: f[0] == 7)
    said.append(found[-1][3][4:8].hex() if found and found[-1][0] == 7 else "reset")
with connect() as t:
    t.sendall(PREFACE + frame(1, 5, 1, block(*P, A)))
    said.append(len(read_frames(t, lambda f: f[0] == 0)) > 0)
""",
        )
        # ENHANCE_YOUR_CALM, unless the reset was faster.
        self.assertIn(said[0], ("0000000b", "reset"))
        self.assertTrue(said[1])
        self.assertLess(len(self.site.log()), 2000)

    def test_a_secret_over_http2(self) -> None:
        self.find("curl")
        url = f"https://{API}:{PORT}"
        said = self.client(
            [rule(tls="inspect")],
            "sh", "-c",
            f'curl -sS --raw -D - -H "Authorization: Bearer $TOKEN" {url}/drip; echo; curl -sS -H "Authorization: $TOKEN" --compressed {url}/seen;'
            f' curl -sS -H "X: $TOKEN" {url}/seen; curl -sS {url}/seen?$TOKEN',
            options=["--secret", f"TOKEN@{API}"],
        )  # fmt: skip
        self.assertIn(f"x-said: <Bearer {STARS}>", said)
        self.assertIn(f"\n<Bearer {STARS}>", said)
        self.assertIn(f"x-end: <Bearer {STARS}>", said)
        seen = json.loads(said[said.index("{") : said.index("}") + 1])
        self.assertEqual((seen["authorization"], seen["accept-encoding"]), (f"Bearer {STARS}", "identity"))
        self.assertEqual(said.count("the placeholder of the secret TOKEN"), 2)
        self.assertNotIn(HOLDER, said)
        self.assertEqual(len(self.site.log()), 2)

    def test_websockets(self) -> None:
        """Rules call it a method; what passes is searched; an answer that never ends does not hang."""
        code = WEBSOCKET + """
said = [websocket("/live", "one", "AUTH two", Authorization=os.environ["TOKEN"]), websocket("/other"), websocket("/endless")[:1]]
"""
        said = self.inspect(
            [rule(methods=["WEBSOCKET"], paths=["/live", "/endless"])], code, "--secret", f"TOKEN@{API}"
        )
        shown = f"Bearer {STARS}"
        self.assertEqual(said, [[101, [f"X-Said: {shown}"], ["one", f"{shown} two"]], [403, [], []], [502]])
        self.assertEqual(self.site.log(), [f"GET {API}:{PORT} /live upgrade", f"GET {API}:{PORT} /endless upgrade"])
        self.assertEqual(self.result["denied"][0]["what"], f"WEBSOCKET {API}:{PORT}/other")
        cure = self.result["denied"][0]["cure"]["policy"]["allow_net"][0]
        self.assertEqual((cure["methods"], cure["paths"]), (["WEBSOCKET"], ["/other"]))
