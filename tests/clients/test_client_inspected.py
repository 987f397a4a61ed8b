# SPDX-License-Identifier: Apache-2.0
"""Clients of HTTP/2 and WebSocket through a gate that looks into requests: gRPC, httpx, Node."""

from __future__ import annotations

import json
import shutil
import subprocess
import unittest
from pathlib import Path
from typing import Any, List

from harness.internet import SITE, SITE_NAME
from harness.site_case import SiteCase

API = f"api.{SITE_NAME}"
PORT, GRPC_PORT = 8443, 50051
VALUE = "s3cr3t-value-of-a-client"
STARS = "*" * len(VALUE)
SERVER = Path(__file__).parent.parent / "harness" / "site_http2.js"
GRPC_SERVER = """
import sys, grpc
from concurrent import futures
def key(context):
    return dict(context.invocation_metadata()).get("authorization", "").encode()
def hello(data, context):
    context.set_trailing_metadata((("x-key", key(context).decode()),))
    return b"hello " + data + b" " + key(context)
def fail(data, context):
    context.abort(grpc.StatusCode.NOT_FOUND, "no " + key(context).decode())
def many(data, context):
    return (data for _ in range(1000))
def both(requests, context):
    for request in requests:
        yield request
handlers = {"Hello": grpc.unary_unary_rpc_method_handler(hello), "Many": grpc.unary_stream_rpc_method_handler(many),
            "Fail": grpc.unary_unary_rpc_method_handler(fail), "Both": grpc.stream_stream_rpc_method_handler(both),
            "Denied": grpc.unary_unary_rpc_method_handler(hello)}
server = grpc.server(futures.ThreadPoolExecutor(4))
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Demo", handlers),))
server.add_secure_port(sys.argv[1], grpc.ssl_server_credentials([(open(sys.argv[2], "rb").read(), open(sys.argv[3], "rb").read())]))
server.start()
print("ready", flush=True)
server.wait_for_termination()
"""
# The next message is sent when the last one has come back whole: each ends with the letter that the secret begins with.
GRPC_CLIENT = """
import json, os, queue, sys, grpc
trusted = grpc.ssl_channel_credentials(open("/etc/ssl/certs/ca-certificates.crt", "rb").read())
channel = grpc.secure_channel(sys.argv[1], trusted, options=[("grpc.max_receive_message_length", 1 << 26)])
metadata = (("authorization", "Bearer " + os.environ["TOKEN"]),)
def call(name, data=b"you", given=metadata):
    try:
        answer, details = channel.unary_unary("/test.Demo/" + name).with_call(data, timeout=60, metadata=given)
        return [answer.decode(), dict(details.trailing_metadata()).get("x-key", "")]
    except grpc.RpcError as error:
        return [error.code().name, error.details()]
to_send = queue.Queue()
answers = channel.stream_stream("/test.Demo/Both")(iter(to_send.get, None), timeout=60, metadata=metadata)
got = []
for i in range(5):
    to_send.put(b"words" * i + b"s")
    got.append(len(next(answers)))
to_send.put(None)
said = [call("Hello"), len(list(channel.unary_stream("/test.Demo/Many")(b"x" * 1000, timeout=60))), got, list(answers), call("Fail"),
        call("Denied"), call("Hello", given=(("x-other", os.environ["TOKEN"]),)), len(call("Hello", b"y" * 3000000)[0])]
print(json.dumps(said))
"""
NODE_CLIENT = """
const http2 = require('http2');
const session = http2.connect(process.argv[1]);
const ask = (headers, body) => new Promise((resolve, reject) => {
  const stream = session.request(headers, {endStream: !body});
  let status, text = '';
  stream.on('response', (found) => { status = found[':status']; });
  stream.on('data', (piece) => { text += piece; });
  stream.on('end', () => resolve([status, text.length > 100 ? text.length : text])).on('error', reject);
  if (body) stream.end(body);
});
Promise.all([ask({':path': '/hello'}), ask({':path': '/denied'}), ask({':path': '/echo', ':method': 'POST'}, 'x'.repeat(500000)),
  ...Array.from({length: 50}, () => ask({':path': '/hello'}))]).then((all) => { console.log(JSON.stringify(all)); session.close(); });
"""


def rule(port: int, **members: Any) -> str:
    return json.dumps({"host": API, "ports": port, **members})


class Inspected(SiteCase):
    """The jar trusts its own authority; belljar is told whom to trust outside."""

    has_bad_weather = True

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        if shutil.which("node") is None:
            raise unittest.SkipTest("needs:node which serves HTTP/2")
        cls.serve(["node", str(SERVER), str(cls.site.folder), SITE, str(PORT)])

    @classmethod
    def serve(cls, command: List[str]) -> None:
        program = cls.internet.start_in_world(command, stdout=subprocess.PIPE)
        assert program.stdout
        if program.stdout.readline() != b"ready\n":
            raise AssertionError("the server did not come up")

    def setUp(self) -> None:
        super().setUp()
        self.variables = {}
        self.env["SSL_CERT_FILE"] = str(self.site.authority)
        self.env["TOKEN"] = VALUE

    def python(self, module: str) -> "tuple[str, List[Any]]":
        python, options = self.fetched("python", "bin", "python")
        if subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode:
            self.skipTest(f"needs:{module} which could not be fetched")
        return python, options

    def test_grpc(self) -> None:
        python, options = self.python("grpc")
        self.serve([python, "-c", GRPC_SERVER, f"{SITE}:{GRPC_PORT}", str(self.site.folder / "site.key"), str(self.site.folder / "site.crt")])
        paths = [f"/test.Demo/{name}" for name in ("Hello", "Many", "Fail", "Both")]
        said = json.loads(
            self.client(
                [rule(GRPC_PORT, methods=["POST"], paths=paths, reason="not today")], python, "-c", GRPC_CLIENT, f"{API}:{GRPC_PORT}",
                options=[*options, "--secret", f"TOKEN@{API}"],
            )  # fmt: skip
        )
        shown = f"Bearer {STARS}"
        self.assertEqual(said[:5], [[f"hello you {shown}", shown], 1000, [1, 6, 11, 16, 21], [], ["NOT_FOUND", f"no {shown}"]])
        self.assertEqual(said[5][0], "PERMISSION_DENIED")
        self.assertIn("POST /test.Demo/Denied is not allowed", said[5][1])
        self.assertIn("not today", said[5][1])
        self.assertEqual(said[6][0], "PERMISSION_DENIED")
        self.assertIn("the placeholder of the secret TOKEN", said[6][1])
        self.assertGreater(said[7], 3000000)
        self.assertEqual({entry["kind"] for entry in self.result["denied"]}, {"http"})

    def test_httpx(self) -> None:
        python, options = self.python("h2, httpx")
        code = f"""
import asyncio, httpx, ssl
async def main():
    async with httpx.AsyncClient(http2=True, verify=ssl.create_default_context(), timeout=60) as client:
        some = await asyncio.gather(*(client.get("https://{API}:{PORT}/hello") for _ in range(20)), client.post("https://{API}:{PORT}/echo", content=b"x"))
        print({{(a.status_code, a.http_version) for a in some[:-1]}}, some[-1].status_code, some[-1].http_version)
asyncio.run(main())
"""
        said = self.client([rule(PORT, methods=["GET"])], python, "-c", code, options=options)
        self.assertEqual(said.strip(), "{(200, 'HTTP/2')} 403 HTTP/2")

    def test_node(self) -> None:
        self.find("node")
        said = json.loads(self.client([rule(PORT, paths=["/hello", "/echo"])], "node", "-e", NODE_CLIENT, f"https://{API}:{PORT}"))
        self.assertEqual([entry[0] for entry in said], [200, 403] + [200] * 51)
        self.assertEqual(said[2][1], 500000)

    def test_go(self) -> None:
        """Its client speaks HTTP/2 by itself, and brings no list of authorities."""
        self.find("go")
        (self.work / "main.go").write_text(
            f"""package main
import ("fmt"; "io"; "net/http")
func main() {{
	for _, path := range []string{{"/hello", "/denied"}} {{
		answer, err := http.Get("https://{API}:{PORT}" + path)
		if err != nil {{ panic(err) }}
		io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		fmt.Println(answer.StatusCode, answer.Proto)
	}}
}}
"""
        )
        said = self.shell(
            [rule(PORT, paths=["/hello"])], "GOCACHE=$PWD/cache GOPATH=$PWD/path GO111MODULE=off go run main.go", options=["--timeout", "300"]
        )
        self.assertEqual(said.splitlines(), ["200 HTTP/2.0", "403 HTTP/2.0"])


if __name__ == "__main__":
    unittest.main()
