# SPDX-License-Identifier: Apache-2.0
"""belljar-gate: rules about methods and paths, which need a look inside of TLS."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from typing import Any, Sequence

from harness import paths
from harness.internet import SITE_NAME
from harness.site_case import SiteCase

WWW = f"www.{SITE_NAME}"
# What programs in the jar begin with.
ASK = r"""
import http.client, json, socket, ssl, sys
said = []
def ask(method, path, body=None, headers={}, host="%s", port=443):
    "Status and body of an answer, or the name of the error."
    kind = http.client.HTTPSConnection if port != 80 else http.client.HTTPConnection
    connection = kind(host, port, timeout=40)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return [answer.status, answer.read().decode(errors="replace")]
    except OSError as error:
        return type(error).__name__
    finally:
        connection.close()
def raw(data, host="%s", port=443, count=1):
    "What comes back for these bytes."
    with socket.create_connection((host, port), 40) as s:
        with ssl.create_default_context().wrap_socket(s, server_hostname=host) as t:
            t.sendall(data)
            got = b""
            while piece := t.recv(65536):
                got += piece
            return got.decode(errors="replace")
""" % (WWW, WWW)


def rule(**members: Any) -> str:
    return json.dumps({"host": WWW, **members})


class InspectCase(SiteCase):
    """A jar behind a gate that looks into requests. Belljar is told whom to trust outside; the jar is told nothing."""

    def setUp(self) -> None:
        super().setUp()
        self.variables = {}
        self.env["SSL_CERT_FILE"] = str(self.site.authority)

    def inspect(self, rules: Sequence[str], code: str, *options: str) -> Any:
        """What the program has put into `said`."""
        return json.loads(self.client(rules, "python3", "-c", ASK + code + "\nprint(json.dumps(said))", options=options))


class Requests(InspectCase):
    """What is asked decides."""

    def test_methods_and_paths(self) -> None:
        said = self.inspect(
            [rule(methods=["GET"], paths=["/hello", "/v1/*"])],
            "said = [ask('GET', '/hello'), ask('POST', '/hello', 'x'), ask('GET', '/other'), ask('GET', '/v1/../hello'),"
            " ask('GET', '/v1/%2e%2e/hello'), ask('GET', '//hello'), ask('GET', '/v1/hell%6f?x=/../y')]",
        )
        self.assertEqual(said[0], [200, f"hello from {WWW}\n"])
        self.assertEqual([entry[0] for entry in said], [200, 403, 403, 403, 403, 403, 404])
        self.assertIn(f"POST /hello is not allowed for {WWW}", said[1][1])
        self.assertEqual(self.site.log(), [f"GET {WWW} /hello", f"GET {WWW} /v1/hell%6f?x=/../y"])
        self.assertEqual(self.result["network"]["hosts"][0]["connections"], 7)
        denied = {entry["what"]: entry for entry in self.result["denied"]}
        self.assertEqual({(entry["kind"], entry["access"]) for entry in denied.values()}, {("http", "request")})
        self.assertEqual(
            denied[f"POST {WWW}:443/hello"]["cure"]["policy"]["allow_net"],
            [{"host": WWW, "ports": "443", "methods": ["POST"], "paths": ["/hello"], "tls": "inspect"}],
        )
        self.assertIsNone(denied[f"GET {WWW}:443/v1/../hello"]["cure"])

    def test_what_servers_take_for_the_method_path_and_next_request(self) -> None:
        """Headers in place of the first line; and the body of a GET, which some servers do not read: they are to read nothing more."""
        said = self.inspect(
            [rule(methods=["GET", "POST"], paths=["/hello", "/seen"])],
            """
for name, value in (("X-HTTP-Method-Override", "POST"), ("X-HTTP-Method-Override", "PUT"), ("x-method-override", "DELETE"),
                    ("X-Original-URL", "/seen?x"), ("X-Original-URL", "/other"), ("X-Rewrite-URL", "/seen/../other")):
    said.append(ask("GET", "/hello", headers={name: value})[0])
said.append([ask(method, "/seen", "body")[1] for method in ("GET", "POST")])
""",
        )
        self.assertEqual(said[:6], [200, 403, 403, 200, 403, 403])
        self.assertEqual(["Connection: close" in text for text in said[6]], [True, False])
        self.assertIn(f"PUT {WWW}:443/hello", [entry["what"] for entry in self.result["denied"]])

    def test_rules_add_up_and_the_reason_reaches_who_is_refused(self) -> None:
        said = self.inspect(
            [rule(methods=["GET"]), rule(methods=["PUT"], paths=["/echo"], reason="use the mirror")],
            "said = [ask('GET', '/hello'), ask('PUT', '/echo', 'x'), ask('PUT', '/hello', 'x')]",
        )
        self.assertEqual([entry[0] for entry in said], [200, 200, 403])
        said = self.inspect([rule(methods=["PUT"], reason="use the mirror")], "said = ask('GET', '/hello')")
        self.assertEqual(said[0], 403)
        self.assertIn("policy: use the mirror", said[1])

    def test_many_requests_over_one_connection(self) -> None:
        """Also after one that was refused, and with bodies of either kind, larger than every buffer."""
        said = self.inspect(
            [rule(methods=["GET", "HEAD", "POST"])],
            r"""
connection = http.client.HTTPSConnection("%s", timeout=40)
def one(method, path, body=None, **more):
    connection.request(method, path, body, **more)
    answer = connection.getresponse()
    return [answer.status, len(answer.read())]
data = bytes(range(256)) * 4000
said = [one("GET", "/hello"), one("DELETE", "/hello"), one("HEAD", "/hello"), one("POST", "/echo", data),
        one("POST", "/echo", iter([data[:1], data[1:70000], data[70000:]]), encode_chunked=True,
            headers={"Transfer-Encoding": "chunked"}), one("GET", "/hello")]
"""
            % WWW,
        )
        hello = len(f"hello from {WWW}\n")
        self.assertEqual([said[0], said[2], said[3], said[4], said[5]], [[200, hello], [200, 0]] + [[200, 1024000]] * 2 + [[200, hello]])
        self.assertEqual(said[1][0], 403)
        self.assertEqual([host["connections"] for host in self.result["network"]["hosts"]], [1])
        self.assertGreater(self.result["network"]["hosts"][0]["bytes_in"], 2048000)

    def test_plain_http_is_looked_at_too(self) -> None:
        said = self.inspect(
            [rule(methods=["GET"])], "said = [ask('GET', '/hello', port=80), ask('POST', '/hello', 'x', port=80)]"
        )
        self.assertEqual([entry[0] for entry in said], [200, 403])

    def test_hosts_without_such_a_rule_pass_untouched(self) -> None:
        code = r"""
def issuer(host):
    context = ssl.create_default_context()
    with socket.create_connection((host, 443), 40) as s, context.wrap_socket(s, server_hostname=host) as t:
        return dict(x[0] for x in t.getpeercert()["issuer"])["commonName"]
said = [issuer("%s"), issuer("api.%s")]
""" % (WWW, SITE_NAME)
        said = self.inspect([rule(tls="inspect"), f"api.{SITE_NAME}"], code)
        self.assertEqual(said, ["Belljar, for one jar", "test authority"])
        # A rule that allows a host as a whole allows it unseen.
        self.assertEqual(self.inspect([rule(methods=["GET"]), f"*.{SITE_NAME}"], code), ["test authority"] * 2)

    def test_what_is_not_trusted_outside_is_not_reached(self) -> None:
        """Another authority; a certificate for another name; no TLS at all."""
        said = self.inspect(
            [rule(methods=["GET"]), json.dumps({"host": "good.test", "ports": 443, "tls": "inspect"})],
            "said = [ask('GET', '/hello'), ask('GET', '/hello', host='good.test')]",
        )
        self.assertEqual([entry[0] for entry in said], [200, 502])
        del self.env["SSL_CERT_FILE"]
        self.site.forget()
        said = self.inspect([rule(methods=["GET"])], "said = ask('GET', '/hello')")
        self.assertEqual((said[0], self.site.log()), (502, []))
        self.assertRegex(said[1], f"no secure connection to {WWW}: .*certificate")
        self.assertIn("cannot be trusted", self.result["denied"][0]["why"])

    def test_bytes_are_counted_and_limited(self) -> None:
        result = self.json(
            "-C", "none", "--net-bytes", "100K", *self.rules(rule(methods=["POST"])), "--", "python3", "-c",
            ASK + "print(ask('POST', '/echo', bytes(1 << 20)))", preexec_fn=self.internet.enter,
        )  # fmt: skip
        self.assertEqual(result["outcome"], "net", result)
        host = result["network"]["hosts"][0]
        self.assertEqual(host["bytes_out"] + host["bytes_in"], 100 << 10)


    def test_more_connections_than_a_gate_reads_at_once(self) -> None:
        """Those beyond are reset; when there is room again, all goes on."""
        said = self.inspect(
            [rule(tls="inspect")],
            f"""
import time
context, held = ssl.create_default_context(), []
for _ in range(256):
    s = socket.create_connection(("{WWW}", 443), 40)
    held.append(context.wrap_socket(s, server_hostname="{WWW}"))
try:
    context.wrap_socket(socket.create_connection(("{WWW}", 443), 40), server_hostname="{WWW}")
    said.append("connected")
except OSError as error:
    said.append(type(error).__name__)
for t in held:
    t.close()
for _ in range(100):
    answer = ask("GET", "/hello")
    if answer[0] == 200:
        break
    time.sleep(0.1)
said.append(answer[0])
""",
        )
        self.assertIn(said[0], ("ConnectionResetError", "SSLEOFError", "SSLZeroReturnError"))
        self.assertEqual(said[1], 200)


class Framing(InspectCase):
    """What could be read in two ways reaches no server."""

    def refused(self, *requests: str) -> Any:
        code = f"said = [raw(r.encode('latin-1')) for r in {list(requests)!r}]"
        return self.inspect([rule(tls="inspect")], code)

    def test_requests_that_are_not_passed_on(self) -> None:
        get, post, host = "GET /hello HTTP/1.1\r\n", "POST /echo HTTP/1.1\r\n", f"Host: {WWW}\r\n"
        smuggled = f"0\r\n\r\n{get}{host}\r\n"
        cases = {
            f"{post}{host}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n{smuggled}": "both a Content-Length",
            f"{post}{host}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n{smuggled}": "Transfer-Encoding",
            f"{post}{host}Transfer-Encoding: xchunked\r\n\r\n{smuggled}": "Transfer-Encoding",
            f"{post}{host}Content-Length: 5\r\nContent-Length: 6\r\n\r\nxxxxxx": "Content-Length",
            f"{post}{host}Content-Length: +5\r\n\r\nxxxxx": "Content-Length",
            f"{get}{host}X: a\r\n b\r\n\r\n": "next line",
            f"{get}{host}X: a\nY: b\r\n\r\n": "CR LF",
            f"{get}{host}X: a\rY: b\r\n\r\n": "CR LF",
            f"{get}{host}X: a\0b\r\n\r\n": "NUL",
            f"{get}{host}X : a\r\n\r\n": "name",
            f"{get}{host}{host}\r\n": "two Host",
            f"{get}\r\n": "no Host",
            f"{get}Host: evil.test\r\n\r\n": "Host header is not",
            f"{get}Host: {WWW}:80\r\n\r\n": "Host header is not",
            f"CONNECT evil.test:443 HTTP/1.1\r\n{host}\r\n": "CONNECT",
            f"GET https://evil.test/hello HTTP/1.1\r\n{host}\r\n": "begin with",
            f"GET /hello HTTP/1.0\r\n{host}\r\n": "HTTP/1.1",
            f"GET  /hello HTTP/1.1\r\n{host}\r\n": "target",
            f"{get}{host}Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n": "invalid request for a WebSocket",
            f"{get}{host}Upgrade: h2c\r\nConnection: Upgrade\r\n\r\n": "another protocol than WebSocket",
            f"{get}{host}X: {'a' * 70000}": "64 KiB",
            "\r\n" + f"{get}{host}\r\n": "",
        }
        said = self.refused(*cases)
        for (request, expected), answer in zip(cases.items(), said):
            with self.subTest(request[:100]):
                self.assertRegex(answer, "^HTTP/1.1 (400|403|421) ")
                self.assertIn(expected, answer)
        self.assertEqual(self.site.log(), [])
        self.assertIn("the gate does not pass on two Host headers", [entry["why"] for entry in self.result["denied"]])

    def test_a_body_that_is_no_body_ends_the_connection(self) -> None:
        head = f"POST /echo HTTP/1.1\r\nHost: {WWW}\r\nTransfer-Encoding: chunked\r\n\r\n"
        code = f"""
for body in ("5\\nhello\\n0\\n\\n", "5\\r\\nhello!\\r\\n0\\r\\n\\r\\n", "-1\\r\\n", "ffffffffffffffffffff\\r\\n"):
    try:
        said.append(raw({head!r}.encode() + body.encode()))
    except OSError as error:
        said.append(type(error).__name__)
"""
        said = self.inspect([rule(tls="inspect")], code)
        self.assertTrue(all(answer in ("", "ConnectionResetError", "SSLEOFError") for answer in said), said)
        self.assertEqual(self.site.log(), [])


class Trust(InspectCase):
    """Programs trust the jar's authority without being told."""

    def get(self, *words: str) -> str:
        return self.client([rule(methods=["GET"])], "sh", "-c", shlex.join(words))

    def test_curl_python_and_node(self) -> None:
        hello = f"hello from {WWW}\n"
        self.find("curl")
        self.assertEqual(self.get("curl", "-sS", f"https://{WWW}/hello"), hello)
        python = f"import urllib.request as u; print(u.urlopen('https://{WWW}/hello').read().decode(), end='')"
        self.assertEqual(self.get("python3", "-c", python), hello)
        self.find("node")
        node = f"fetch('https://{WWW}/hello').then(a => a.text()).then(t => process.stdout.write(t))"
        self.assertEqual(self.get("node", "-e", node), hello)

    def test_java(self) -> None:
        self.find("keytool")
        listed = self.get("keytool", "-list", "-cacerts", "-storepass", "changeit", "-alias", "belljar")
        self.assertIn("trustedCertEntry", listed)

    def test_a_client_that_trusts_others_only_is_refused(self) -> None:
        said = self.inspect(
            [rule(methods=["GET"])],
            f"""
try:
    ssl.create_default_context(cafile="{self.authority}").wrap_socket(socket.create_connection(("{WWW}", 443)), server_hostname="{WWW}")
except ssl.SSLError as error:
    said = [str(error), ask("GET", "/hello")[0]]
""",
        )
        self.assertIn("CERTIFICATE_VERIFY_FAILED", said[0])
        self.assertEqual((said[1], self.site.log()), (200, [f"GET {WWW} /hello"]))
        self.assertIn("does not trust the jar's own certificate authority", self.result["denied"][0]["why"])


class Program(InspectCase):
    """belljar-gate itself."""

    def test_without_the_program_the_policy_is_refused(self) -> None:
        alone = self.work / "belljar"
        shutil.copy(paths.belljar(), alone)
        words = [str(alone), "run", "-C", "none", *self.rules(rule(methods=["GET"])), "--", "true"]
        done = subprocess.run(words, capture_output=True, text=True, env={**self.env, "PATH": paths.SYSTEM_PATH}, check=False)
        self.assertEqual(done.returncode, 125)
        self.assertIn("need the program belljar-gate", done.stderr)
        self.assertIn("meson install", done.stderr)
        # Not from a directory that a project has put into PATH.
        planted = self.directory("planted")
        (planted / "belljar-gate").symlink_to("/bin/true")
        env = {**self.env, "PATH": f"{planted}:{paths.SYSTEM_PATH}"}
        self.assertEqual(subprocess.run(words, capture_output=True, env=env, check=False).returncode, 125)
        done = subprocess.run(words, capture_output=True, text=True, env={**self.env, "BELLJAR_GATE": "/bin/false"}, check=False)
        self.assertEqual(done.returncode, 125)
        self.assertIn("cannot be run\n  hint: belljar-gate must be of version", done.stderr)
        gate = os.path.join(os.path.dirname(paths.belljar()), "belljar-gate")
        env = {**self.env, "PATH": paths.SYSTEM_PATH, "BELLJAR_GATE": gate}
        done = subprocess.run(words, capture_output=True, text=True, env=env, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_plan_starts_nothing_and_has_no_key(self) -> None:
        words = [paths.belljar(), "plan", "--json", "-C", "none", *self.rules(rule(methods=["GET"])), "--", "true"]
        done = subprocess.run(words, capture_output=True, text=True, env={**self.env, "PATH": paths.SYSTEM_PATH}, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("ca-certificates.crt", done.stdout)
        self.assertNotIn("PRIVATE KEY", done.stdout)
        self.assertNotIn("BEGIN CERTIFICATE", done.stdout)
