# SPDX-License-Identifier: Apache-2.0
"""Clients of other protocols than HTTP through the gate, each with a real server outside: databases, ssh, gRPC."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import time
import unittest
from pathlib import Path
from typing import Any, List, Sequence

from harness.bounds import BOUND
from harness.internet import SITE, SITE_NAME
from harness.site_case import SiteCase

NOBODY = 65534
PG_PORT, REDIS_PORT, MYSQL_PORT, SSH_PORT, GRPC_PORT = 5432, 6379, 3306, 22, 50051

GRPC_SERVER = """
import sys, grpc
from concurrent import futures
answer = grpc.unary_unary_rpc_method_handler(lambda data, context: b"hello " + data)
many = grpc.unary_stream_rpc_method_handler(lambda data, context: (data for _ in range(1000)))
server = grpc.server(futures.ThreadPoolExecutor(4))
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Demo", {"Hello": answer, "Many": many}),))
server.add_insecure_port(sys.argv[1])
server.add_secure_port(sys.argv[2], grpc.ssl_server_credentials([(open(sys.argv[3], "rb").read(), open(sys.argv[4], "rb").read())]))
server.start()
server.wait_for_termination()
"""
GRPC_CLIENT = """
import sys, grpc
plain, encrypted, denied, authority = sys.argv[1:5]
trusted = grpc.ssl_channel_credentials(open(authority, "rb").read())
for channel in (grpc.insecure_channel(plain), grpc.secure_channel(encrypted, trusted)):
    print(channel.unary_unary("/test.Demo/Hello")(b"you", timeout=40).decode(), len(list(channel.unary_stream("/test.Demo/Many")(b"x" * 1000, timeout=40))))
try:
    grpc.insecure_channel(denied).unary_unary("/test.Demo/Hello")(b"you", timeout=40)
except grpc.RpcError as error:
    print(error.code().name)
"""


class Servers(SiteCase):
    """A server each, started in the world."""

    has_bad_weather = True

    def serve(self, command: Sequence[str], port: int, address: str = SITE, **options: Any) -> "subprocess.Popen[bytes]":
        """Start a server, and wait until somebody listens."""
        log = open(self.base / "server.log", "wb")
        self.addCleanup(log.close)
        server = self.internet.start_in_world(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, **options)
        deadline = time.monotonic() + BOUND
        while not self.is_listening(address, port):
            if server.poll() is not None or time.monotonic() > deadline:
                self.skipTest(f"needs:{Path(command[0]).name} which works here: {(self.base / 'server.log').read_text()[-400:]!r}")
            time.sleep(0.05)
        return server

    def is_listening(self, address: str, port: int) -> bool:
        code = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)"
        words = [sys.executable, "-c", code, address, str(port)]
        return subprocess.run(words, preexec_fn=self.internet.enter, stderr=subprocess.DEVNULL, check=False).returncode == 0

    def unprivileged(self, folder: Path) -> List[str]:
        """What to begin with where a server does not want to be root's."""
        if os.geteuid() != 0:
            return []
        os.chown(folder, NOBODY, NOBODY)
        return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]

    def need_account(self) -> str:
        """Some programs want their user to have a name."""
        try:
            return pwd.getpwuid(os.geteuid()).pw_name
        except KeyError:
            self.skipTest("needs:account of the user who runs the tests")

    def test_psql(self) -> None:
        self.need_account()
        psql, initdb, postgres = self.find("psql"), self.find_database("initdb"), self.find_database("postgres")
        folder = self.directory("pg")
        words = self.unprivileged(folder)
        made = subprocess.run(
            [*words, initdb, "-D", folder / "data", "-U", "tester", "-A", "trust", "--no-sync"], capture_output=True, text=True, check=False,
            cwd="/",
        )
        self.assertEqual(made.returncode, 0, made.stderr)
        with (folder / "data" / "pg_hba.conf").open("a") as rules:
            rules.write("host all all 0.0.0.0/0 trust\n")
        options = {"unix_socket_directories": "", "listen_addresses": SITE, "ssl": "on", "fsync": "off"}
        for name, file in (("ssl_cert_file", "site.crt"), ("ssl_key_file", "site.key")):
            options[name] = shutil.copy(self.site.folder / file, folder)
            os.chmod(options[name], 0o600)
            os.chown(options[name], *((NOBODY, NOBODY) if words else (-1, -1)))
        self.serve([*words, postgres, "-D", str(folder / "data"), *[w for n, v in options.items() for w in ("-c", f"{n}={v}")]], PG_PORT, cwd="/")
        host = f"db.{SITE_NAME}"
        said = self.shell(
            [f"{host}:{PG_PORT}"],
            f"""for mode in disable verify-full; do {psql} "host={host} user=tester dbname=postgres sslmode=$mode sslrootcert=authority.crt" \
-Atc 'select sum(n) from generate_series(1, 1000) n; select ssl from pg_stat_ssl where pid = pg_backend_pid()'; done
{psql} "host=evil.{SITE_NAME} user=tester" -c 'select 1' 2>/dev/null || echo refused""",
        )
        self.assertEqual(said.split(), ["500500", "f", "500500", "t", "refused"])

    def find_database(self, name: str) -> str:
        """Debian has the servers of databases in folders of their own."""
        folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
        self.path = os.pathsep.join([*map(str, folders), self.path])
        return self.find(name)

    def test_redis(self) -> None:
        client, server = self.find("redis-cli"), self.find("redis-server")
        folder = self.directory("redis")
        self.serve([server, "--bind", SITE, "--port", str(REDIS_PORT), "--save", "", "--protected-mode", "no", "--dir", str(folder)], REDIS_PORT)
        host = f"cache.{SITE_NAME}"
        said = self.shell(
            [f"{host}:{REDIS_PORT}"],
            f"{client} -h {host} set key value; {client} -h {host} get key; head -c 3000000 /dev/zero | tr '\\0' x | {client} -h {host} -x set big;"
            f" {client} -h {host} strlen big; {client} -h evil.{SITE_NAME} ping 2>/dev/null || echo refused",
        )
        self.assertEqual(said.split(), ["OK", "value", "OK", "3000000", "refused"])

    def test_mysql(self) -> None:
        client, server = self.find("mysql"), self.find("mysqld")
        folder = self.directory("mysql")
        words = self.unprivileged(folder)
        install = self.find("mysql_install_db")
        made = subprocess.run(
            [*words, install, "--no-defaults", f"--datadir={folder}/data", f"--tmpdir={folder}", "--innodb-use-native-aio=0", "--skip-test-db", "--auth-root-authentication-method=normal"],
            capture_output=True, text=True, check=False, cwd="/",
        )
        if made.returncode:
            self.skipTest(f"needs:mysql_install_db which works here: {made.stderr[-300:]}")
        self.serve(
            [*words, server, "--no-defaults", f"--datadir={folder}/data", f"--bind-address={SITE}", f"--port={MYSQL_PORT}",
             f"--socket={folder}/socket", f"--tmpdir={folder}", "--innodb-use-native-aio=0", "--skip-grant-tables", "--skip-networking=0"], MYSQL_PORT, cwd="/",
        )
        host = f"sql.{SITE_NAME}"
        said = self.shell(
            [f"{host}:{MYSQL_PORT}"],
            f"{client} --no-defaults -h {host} -u root -N -e 'select 6 * 7; select length(repeat(\"x\", 1000000))';"
            f" {client} --no-defaults -h evil.{SITE_NAME} -u root -e 'select 1' 2>/dev/null || echo refused",
        )
        self.assertEqual(said.split(), ["42", "1000000", "refused"])

    def test_ssh_and_git_over_it(self) -> None:
        me = self.need_account()
        ssh, server, keygen, git = self.find("ssh"), self.find("sshd"), self.find("ssh-keygen"), self.find("git")
        folder = self.directory("ssh")
        for name in ("host", "user"):
            subprocess.run([keygen, "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
        (folder / "config").write_text(
            f"ListenAddress {SITE}:{SSH_PORT}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/user.pub\nStrictModes no\nUsePAM no\n"
            f"PidFile none\nPermitRootLogin prohibit-password\n"
        )
        if os.geteuid() == 0:
            # Its own user for the part that talks to strangers needs an empty folder.
            place = Path("/run/sshd")
            if not place.exists():
                place.mkdir(mode=0o755)
                self.addCleanup(place.rmdir)
        self.serve([server, "-D", "-e", "-f", str(folder / "config")], SSH_PORT)
        repository = self.directory("repository")
        identity = "-c user.name=t -c user.email=t@localhost"
        script = f"git init -q . && echo words > file && git add . && git {identity} commit -qm one"
        subprocess.run(["sh", "-ec", script], cwd=repository, check=True, env=self.env)
        shutil.copy(folder / "user", self.work / "key")
        os.chmod(self.work / "key", 0o600)
        host = f"ssh.{SITE_NAME}"
        options = "-F none -i key -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=known"
        said = self.shell(
            [f"{host}:{SSH_PORT}"],
            f"{ssh} {options} {me}@{host} 'echo hello; head -c 2000000 /dev/zero' | wc -c;"
            f" GIT_SSH_COMMAND='{ssh} {options}' {git} clone -q ssh://{me}@{host}{repository} copy; cat copy/file;"
            f" {ssh} {options} {me}@evil.{SITE_NAME} true 2>/dev/null || echo $?",
        )
        self.assertEqual(said.split(), ["2000006", "words", "255"])

    def test_grpc(self) -> None:
        python, options = self.fetched("python", "bin", "python")
        if subprocess.run([python, "-c", "import grpc"], capture_output=True, check=False).returncode:
            self.skipTest("needs:grpcio which could not be fetched")
        # The site has port 443 of its own address.
        words = [f"{SITE}:{GRPC_PORT}", f"{SITE}:{GRPC_PORT + 1}", str(self.site.folder / "site.key"), str(self.site.folder / "site.crt")]
        self.serve([python, "-c", GRPC_SERVER, *words], GRPC_PORT)
        host = f"rpc.{SITE_NAME}"
        said = self.client(
            [f"{host}:{GRPC_PORT},{GRPC_PORT + 1}"], python, "-c", GRPC_CLIENT,
            f"{host}:{GRPC_PORT}", f"{host}:{GRPC_PORT + 1}", f"evil.{SITE_NAME}:{GRPC_PORT}", self.authority, options=options,
        )
        self.assertEqual(said.splitlines(), ["hello you 1000", "hello you 1000", "UNAVAILABLE"])


if __name__ == "__main__":
    unittest.main()
