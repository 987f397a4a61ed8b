# SPDX-License-Identifier: Apache-2.0
"""How long the gate waits for a client: too long to be tried in every run of the tests."""

from __future__ import annotations

import unittest

from harness.gate_case import GateCase
from harness.internet import ECHO_PORT

RESET = "ConnectionResetError"


class Patience(GateCase):
    """Ten seconds for the first words, however they come; no limit after that."""

    def test_first_words_have_ten_seconds(self) -> None:
        said = self.say(
            ["good.test", f"good.test:{ECHO_PORT}"],
            f"""
def trickle(name, port, data, pause):
    with socket.create_connection((name, port)) as s:
        s.settimeout(40)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        begun = time.monotonic()
        try:
            for i in range(len(data)):
                s.send(data[i:i + 1])
                time.sleep(pause)
            said[port, data[:1]] = len(s.recv(100))
        except OSError as error:
            said[port, data[:1]] = type(error).__name__
        times[port, data[:1]] = time.monotonic() - begun
times = {{}}
request = (REQUEST % "good.test").encode()
threads = [threading.Thread(target=trickle, args=arguments) for arguments in (
    ("good.test", 80, request, 2), ("good.test", 443, b"\\x16\\3\\1" + bytes(100), 1), ("good.test", 443, b"G" * 100, 2),
    ("good.test", {ECHO_PORT}, b"x" * 14, 1), ("good.test", {ECHO_PORT}, b"GETGETGETGETGETGETGET", 2), ("good.test", {ECHO_PORT}, b"\\r\\n" * 20, 2))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
said = [[port, first.decode(), answer if isinstance(answer, str) else answer > 0, times[port, first] > 9] for (port, first), answer in sorted(said.items())]
""",
        )
        self.assertEqual(
            sorted(map(tuple, said)),  # type: ignore[arg-type]
            [
                (80, "G", RESET, True),
                # A record that is empty is refused before that.
                (443, "\x16", RESET, False),
                (443, "G", RESET, True),
                (ECHO_PORT, "\r", RESET, True),
                (ECHO_PORT, "G", RESET, True),
                (ECHO_PORT, "x", True, True),
            ],
        )

    def test_an_idle_connection_stays(self) -> None:
        said = self.say(
            [f"good.test:{ECHO_PORT}"],
            f"""
with socket.create_connection(("good.test", {ECHO_PORT}), timeout=40) as s:
    said = []
    for pause in (0, 12, 0):
        time.sleep(pause)
        s.sendall(b"hi")
        said.append(s.recv(2).decode())
""",
        )
        self.assertEqual(said, ["hi"] * 3)


if __name__ == "__main__":
    unittest.main()
