#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A web site in the world of harness/internet.py: files, git repositories, HTTP and HTTPS, for every name below site.test.

Most registries of packages are files and nothing else, so this is one for each of them. As a program it serves; Site makes the
authority that its certificate is from, starts it, and knows what it was asked for.
"""

from __future__ import annotations

import gzip
import http.server
import os
import shutil
import socketserver
import ssl
import subprocess
import sys
import threading
import unittest
from pathlib import Path
from typing import List

HERE = Path(__file__).resolve().parent
# Everything that git asks for by these goes to its own program; the rest are files.
GIT_PLACE = "/git/"
BACKEND = "/usr/lib/git-core/git-http-backend"


class Handler(http.server.BaseHTTPRequestHandler):
    """Files of a folder."""

    protocol_version = "HTTP/1.1"
    folder: Path
    went = threading.Event()
    wbufsize = 65536

    def log_message(self, *_: object) -> None:
        pass

    def _note(self) -> None:
        line = f"{self.command} {self.headers.get('Host', '')} {self.path}\n"
        with open(self.folder / "log", "a", encoding="utf-8") as log:
            log.write(line)

    def _drip(self, body: bytes) -> None:
        """The same three times, in the head, and in the body as chunks of three bytes each."""
        self.send_response(200)
        self.send_header("X-Said", body.decode())
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        body *= 3
        for at in range(0, len(body), 3):
            piece = body[at : at + 3]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def _lines(self) -> None:
        """An event, and another one when /go was asked for."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in (b"data: one\n\n", b"data: two\n\n"):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
            self.wfile.flush()
            self.went.wait(60)
        self.wfile.write(b"0\r\n\r\n")

    def _answer(self, code: int, body: bytes, kind: str = "", encoding: str = "") -> None:
        self.send_response(code)
        if encoding:
            self.send_header("Content-Encoding", encoding)
        self.send_header("Content-Length", str(len(body)))
        if kind:
            self.send_header("Content-Type", kind)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def do_GET(self) -> None:  # noqa: N802
        body = self._body()
        self._note()
        path, _, query = self.path.partition("?")
        if path.startswith(GIT_PLACE):
            self._git(path, query, body)
        elif path == "/hello":
            self._answer(200, f"hello from {self.headers['Host']}\n".encode(), "text/plain")
        elif path == "/echo":
            self._answer(200, body, "application/octet-stream")
        elif path == "/seen":
            self._answer(200, f"{self.command} {self.path}\n{self.headers}".encode(), "text/plain")
        elif path == "/drip":
            self._drip(f"<{self.headers.get('Authorization', '')}>".encode())
        elif path == "/lines":
            self._lines()
        elif path == "/go":
            self.went.set()
            self._answer(200, b"gone\n", "text/plain")
        elif path == "/packed":
            self._answer(200, gzip.compress(str(self.headers).encode()), encoding="gzip")
        elif path == "/moved":
            self.send_response(302)
            self.send_header("Location", f"https://{query}/hello")
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            self._file(path)

    do_HEAD = do_POST = do_PUT = do_GET  # noqa: N815

    def _file(self, path: str) -> None:
        root = (self.folder / "files").resolve()
        found = (root / path.lstrip("/")).resolve()
        if found.is_dir():
            found = found / "index.html"
        if root not in found.parents or not found.is_file():
            self._answer(404, b"there is no such file\n", "text/plain")
            return
        kinds = {".html": "text/html", ".json": "application/json", ".txt": "text/plain"}
        self._answer(200, found.read_bytes(), kinds.get(found.suffix, "application/octet-stream"))

    def _git(self, path: str, query: str, body: bytes) -> None:
        env = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.folder / "git"),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path[len(GIT_PLACE) - 1 :],
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "REMOTE_USER": "tester",
            "REMOTE_ADDR": self.client_address[0],
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        said = subprocess.run([BACKEND], input=body, stdout=subprocess.PIPE, env=env, check=False).stdout
        head, _, rest = said.partition(b"\r\n\r\n")
        lines = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        self._answer(int(lines.get("Status", "200").split()[0]), rest, lines.get("Content-Type", ""))


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """One address and port, with TLS or without. The handshake is the connection's own thread's."""

    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        pass

    def server_bind(self) -> None:
        # HTTPServer would look for the address's name.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])


def serve(folder: Path, address: str) -> None:
    """For ever."""
    Handler.folder = folder
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "site.crt", folder / "site.key")
    plain = Server((address, 80), Handler)
    encrypted = Server((address, 443), Handler)
    encrypted.socket = context.wrap_socket(encrypted.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=plain.serve_forever, daemon=True).start()
    print("ready", flush=True)
    encrypted.serve_forever()


class Site:
    """Its folder has `files`, and `git` with repositories; `authority` is the file that clients are to trust."""

    def __init__(self, folder: Path, name: str) -> None:
        if shutil.which("openssl") is None:
            raise unittest.SkipTest("needs:openssl which makes certificates")
        self.folder = folder
        self.name = name
        for part in ("files", "git"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        (folder / "log").touch()
        self.authority = folder / "authority.crt"
        self._make_certificates()

    def _openssl(self, *words: str) -> None:
        subprocess.run(["openssl", *words], check=True, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def _make_certificates(self) -> None:
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        (self.folder / "names").write_text(
            f"subjectAltName=DNS:{self.name},DNS:*.{self.name}\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n"
        )
        self._openssl(
            "req", "-x509", *key, "-keyout", "authority.key", "-out", "authority.crt", "-days", "2", "-subj", "/CN=test authority",
            "-addext", "keyUsage=critical,keyCertSign,cRLSign",
        )
        self._openssl("req", *key, "-keyout", "site.key", "-out", "site.csr", "-subj", f"/CN={self.name}")
        self._openssl(
            "x509", "-req", "-in", "site.csr", "-CA", "authority.crt", "-CAkey", "authority.key", "-CAcreateserial",
            "-out", "site.crt", "-days", "2", "-extfile", "names",
        )
        self.authority.chmod(0o644)

    def start(self, internet: "object", address: str) -> None:
        """In the world of an Internet."""
        command = ["/usr/bin/python3", str(HERE / "site.py"), str(self.folder), address]
        program = internet.start_in_world(command, stdout=subprocess.PIPE)  # type: ignore[attr-defined]
        if program.stdout.readline() != b"ready\n":
            raise AssertionError("the site did not come up")

    def log(self) -> List[str]:
        """Lines such as "GET www.site.test /hello"."""
        return (self.folder / "log").read_text().splitlines()

    def forget(self) -> None:
        """What was asked until now."""
        (self.folder / "log").write_text("")


if __name__ == "__main__":
    serve(Path(sys.argv[1]), sys.argv[2])
