# SPDX-License-Identifier: Apache-2.0
"""on_ask: the program is asked about connections that no rule decides. It runs on a host of the test's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any, Dict, List

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import internet  # noqa: E402
from harness.bounds import BOUND  # noqa: E402
from harness.host import need  # noqa: E402
from package_case import PackageCase, tearDownModule  # noqa: E402, F401

PROGRAM = r"""
import asyncio, dataclasses, json, os, shlex, sys, threading, warnings
import belljar

TALK = '''
import json, socket, sys
def talk(host, port=7000):
    try:
        with socket.create_connection((host, port)) as s:
            s.settimeout(40)
            s.sendall(b"hi")
            return s.recv(9).decode()
    except OSError as error:
        return type(error).__name__
'''
said = {}


def command(*hosts):
    return ["python3", "-c", TALK + f"print(json.dumps([talk(host) for host in {hosts!r}]))"]


class Asker:
    "Answers as it was told, in order; the last answer stays."

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def __call__(self, question):
        self.asked.append(question)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def later(self, question):
        await asyncio.sleep(0.01)
        return self(question)

    def hosts(self):
        return [question.host for question in self.asked]


def told(result, asker):
    return [json.loads(result.stdout), asker.hosts()]


asker = Asker("once", "run", "deny")
said["answers"] = told(belljar.run(command("good.test", *["www.good.test"] * 2, *["other.test"] * 2, "good.test"), on_ask=asker, workdir=None), asker)
said["question"] = dataclasses.asdict(asker.asked[0])
said["denied"] = [[entry.what, entry.why] for entry in belljar.run(command("other.test"), on_ask=Asker("deny"), workdir=None).denied]
said["rules"] = told(belljar.run(command("good.test", "other.test"), on_ask=(asker := Asker("deny")), allow_net="good.test:7000", workdir=None), asker)
for _ in range(3):  # prepared jars too
    asker = Asker("run")
    said["prepared"] = told(belljar.run(command("good.test"), on_ask=asker, workdir=None), asker)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    wrong = [belljar.run(command("good.test"), on_ask=Asker(answer), workdir=None) for answer in (None, True, "always", ValueError("no"))]
    wrong.append(belljar.run(command("good.test"), on_ask=asker.later, workdir=None))
    said["wrong"] = [json.loads(result.stdout) for result in wrong]
    said["warnings"] = len([entry for entry in caught if issubclass(entry.category, RuntimeWarning) and "deny" in str(entry.message)])
try:
    belljar.run(command("good.test"), on_ask=Asker(KeyboardInterrupt()), workdir=None)
except KeyboardInterrupt:
    said["interrupted"] = True
said["late"] = json.loads(belljar.run(command("good.test"), on_ask=lambda question: threading.Event().wait(1) or "run", ask_timeout=0.3, workdir=None).stdout)


async def in_a_loop():
    asker = Asker("once")
    result = await belljar.run_async(command("good.test"), on_ask=asker.later, workdir=None)
    said["async"] = told(result, asker)
    asker = Asker("once")
    async with await belljar.spawn_async(command("good.test"), on_ask=asker, workdir=None) as process:
        said["async spawn"] = [json.loads(await process.stdout.read()), asker.hosts()]


asyncio.run(in_a_loop())
asker = Asker("once")
with belljar.spawn(command("good.test"), on_ask=asker, workdir=None) as process:
    process.wait()
    said["spawn"] = [json.loads(process.stdout.read()), asker.hosts()]

# --- kept jars ---

# A run that has an asker, and stays until it is told to go.
WAIT = ["sh", "-c", "echo on; read x"]
asker, own = Asker("run"), Asker("once")
with belljar.Jar(on_ask=asker, workdir=None) as jar:
    said["jar"] = told(jar.run(command("good.test", "good.test")), asker)
    said["next run"] = told(jar.run(command("good.test")), asker)
    said["own"] = told(jar.run(command("good.test"), on_ask=own), own)
    jar.deny_net("other.test")
    said["jar denied"] = told(jar.run(command("other.test"), on_ask=(never := Asker("once"))), never)

# Two runs at once: the older one is asked. When it ends with the question open, the other is asked; when nobody is left, it is refused.
with belljar.Jar(ask="net", workdir=None) as jar:
    held, answered = threading.Event(), []

    def older(question):
        answered.append("older")
        held.set()
        threading.Event().wait(0.5)
        return "once"

    def wait_for(process):
        try:
            process.wait()
        except belljar.BelljarError:
            pass

    with jar.spawn(WAIT, stdin=belljar.PIPE, on_ask=older) as first:
        first.stdout.readline()
        reader = threading.Thread(target=wait_for, args=(first,))
        reader.start()
        said["older is asked"] = [json.loads(jar.run(command("good.test"), on_ask=Asker("deny")).stdout), answered[:]]
        first.kill()
        reader.join()

    def slow(question):
        held.set()
        release.wait(20)
        return "once"

    for name, other in (("handed on", Asker("once")), ("nobody left", None)):
        held.clear()
        release = threading.Event()
        with jar.spawn(WAIT, stdin=belljar.PIPE, on_ask=slow) as first:
            first.stdout.readline()
            reader = threading.Thread(target=wait_for, args=(first,))
            reader.start()
            results = []
            second = threading.Thread(target=lambda: results.append(jar.run(command("good.test"), on_ask=other)))
            second.start()
            held.wait(20)
            first.kill()
            second.join()
            release.set()
            reader.join()
            said[name] = json.loads(results[0].stdout)
    # A rule answers what waits.
    held.clear()
    release = threading.Event()
    results = []
    second = threading.Thread(target=lambda: results.append(jar.run(command("good.test"), on_ask=slow)))
    second.start()
    held.wait(20)
    jar.allow_net("good.test:7000")
    release.set()
    second.join()
    said["allowed meanwhile"] = json.loads(results[0].stdout)

# --- calls, and what keeps state ---



def talk_there(host):
    import socket
    try:
        with socket.create_connection((host, 7000)) as s:
            s.settimeout(40)
            s.sendall(b"hi")
            return s.recv(9).decode()
    except OSError as error:
        return type(error).__name__


asker = Asker("once", "deny")
said["call"] = [[belljar.call(talk_there, host, on_ask=asker) for host in ("good.test", "other.test")], asker.hosts()]
tooled = Asker("once")
said["tool"] = [belljar.tool(on_ask=tooled)(talk_there)("good.test"), tooled.hosts()]
pooled, own = Asker("run"), Asker("once")
with belljar.Pool(on_ask=pooled) as pool:
    # A fork that waits has somebody who answers too.
    said["pool"] = [[pool.call(talk_there, "good.test") for _ in range(3)], pooled.hosts()]
    said["pool own"] = [pool.call(talk_there, "good.test", on_ask=own), own.hosts(), len(pooled.asked)]
    said["pool map"] = list(pool.map(talk_there, ["good.test", "www.good.test"]))
with belljar.Pool() as pool:
    try:
        pool.call(talk_there, "good.test", on_ask=own)
    except belljar.BelljarError as error:
        said["not in this pool"] = str(error)


async def calls_in_a_loop():
    asker = Asker("once")
    said["async call"] = [await belljar.call_async(talk_there, "good.test", on_ask=asker.later), asker.hosts()]
    asker = Asker("once")
    async with await belljar.Interpreter.open_async(on_ask=asker.later) as python:
        said["async interpreter"] = [(await python.run_async(TALK + "talk('good.test')")).value, asker.hosts()]


asyncio.run(calls_in_a_loop())
asker = Asker("once", "run", "deny")
with belljar.Interpreter(on_ask=asker) as python:
    python.run(TALK)
    said["interpreter"] = [[python.run(f"talk('{host}.test')").value for host in ("good", "www.good", "www.good", "other")], asker.hosts()]
    with python.fork() as twin:
        said["fork"] = twin.run("talk('www.good.test')").value
    asker.answers = [asker.later(None)]
    try:
        python.run("talk('good.test')")
    except TypeError:
        said["coroutine in a thread"] = True
with belljar.Interpreter(on_ask=lambda question: threading.Event().wait(1) or "once", timeout=0.7) as python:
    python.run(TALK)
    said["time to answer"] = python.run("talk('good.test')").value
asker, own = Asker("once"), Asker("once")
with belljar.Jar(on_ask=asker, workdir=None) as jar:
    said["jar call"] = jar.call(talk_there, "good.test")
    with jar.python() as python, jar.python(on_ask=own) as another:
        python.run(TALK)
        another.run(TALK)
        said["jar python"] = python.run("talk('www.good.test')").value
    with jar.shell() as shell:
        words = " ".join(shlex.quote(word) for word in command("a.b.good.test"))
        said["jar shell"] = json.loads(shell.run(words).stdout)[0]
    said["jar doors"] = asker.hosts()
with belljar.Jar(workdir=None) as jar:
    try:
        jar.run(["true"], on_ask=Asker("once"))
    except belljar.BelljarError as error:
        said["not in this jar"] = str(error)
print(json.dumps(said))
"""

RESET = "ConnectionResetError"


class Asking(PackageCase):
    """One program with everything in it: the engine must be started inside the host of the test's own."""

    said: Dict[str, Any]
    log: List[str]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        need("userns")
        net = internet.Internet().start()
        cls.addClassCleanup(net.stop)
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], preexec_fn=net.enter, env=env, capture_output=True, text=True, timeout=4 * BOUND
        )
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        cls.said, cls.log = json.loads(done.stdout), net.log()

    def test_once_run_and_deny(self) -> None:
        self.assertEqual(
            self.said["answers"],
            [["hi"] * 3 + [RESET] * 3, ["good.test", "www.good.test", "other.test", "good.test"]],
        )
        self.assertEqual(
            self.said["question"],
            {"kind": "net", "host": "good.test", "port": 7000, "address": None, "rule": "good.test:7000", "timeout": 60.0},
        )

    def test_what_rules_decide_is_not_asked(self) -> None:
        self.assertEqual(self.said["rules"], [["hi", RESET], ["other.test"]])
        self.assertEqual(self.said["jar denied"], [["gaierror"], []])

    def test_the_result_tells_what_was_denied(self) -> None:
        self.assertEqual([what for what, _ in self.said["denied"]], ["other.test:7000"])
        self.assertIn("the answer to the question about it was no", self.said["denied"][0][1])

    def test_denied_names_are_asked_of_nobody(self) -> None:
        self.assertNotIn("name other.test", self.log)

    def test_prepared_jars_ask(self) -> None:
        self.assertEqual(self.said["prepared"], [["hi"], ["good.test"]])

    def test_wrong_answers_and_exceptions_are_denials(self) -> None:
        self.assertEqual((self.said["wrong"], self.said["warnings"]), ([[RESET]] * 5, 5))
        self.assertTrue(self.said["interrupted"])

    def test_an_answer_that_comes_late_is_none(self) -> None:
        self.assertEqual(self.said["late"], [RESET])

    def test_loops_and_processes(self) -> None:
        for name in ("async", "async spawn", "spawn"):
            self.assertEqual(self.said[name], [["hi"], ["good.test"]], name)

    def test_a_jar_answers_for_its_runs_and_a_rule_of_a_run_ends_with_it(self) -> None:
        self.assertEqual(self.said["jar"], [["hi", "hi"], ["good.test"]])
        self.assertEqual(self.said["next run"], [["hi"], ["good.test", "good.test"]])
        self.assertEqual(self.said["own"], [["hi"], ["good.test"]])

    def test_of_two_runs_the_older_is_asked_then_the_other_then_nobody(self) -> None:
        self.assertEqual(self.said["older is asked"], [["hi"], ["older"]])
        self.assertEqual(self.said["handed on"], ["hi"])
        self.assertEqual(self.said["nobody left"], [RESET])

    def test_a_rule_answers_what_waits(self) -> None:
        self.assertEqual(self.said["allowed meanwhile"], ["hi"])

    def test_a_jar_that_asks_nothing_says_so(self) -> None:
        for name in ("not in this jar", "not in this pool"):
            self.assertIn("this jar asks no questions", self.said[name])

    def test_calls_and_tools(self) -> None:
        self.assertEqual(self.said["call"], [["hi", RESET], ["good.test", "other.test"]])
        self.assertEqual(self.said["tool"], ["hi", ["good.test"]])
        self.assertEqual(self.said["async call"], ["hi", ["good.test"]])

    def test_a_pool_answers_for_its_calls(self) -> None:
        """Each call is a run: what was allowed for one is asked again for the next."""
        self.assertEqual(self.said["pool"], [["hi"] * 3, ["good.test"] * 3])
        self.assertEqual(self.said["pool own"], ["hi", ["good.test"], 3])
        self.assertEqual(self.said["pool map"], ["hi", "hi"])

    def test_kept_interpreters(self) -> None:
        self.assertEqual(self.said["interpreter"], [["hi", "hi", "hi", RESET], ["good.test", "www.good.test", "other.test"]])
        self.assertEqual((self.said["fork"], self.said["async interpreter"]), ("hi", ["hi", ["good.test"]]))
        self.assertTrue(self.said["coroutine in a thread"])

    def test_the_time_to_answer_is_not_the_cells(self) -> None:
        self.assertEqual(self.said["time to answer"], "hi")

    def test_a_jar_answers_for_what_it_keeps(self) -> None:
        self.assertEqual([self.said[f"jar {name}"] for name in ("call", "python", "shell")], ["hi"] * 3)
        self.assertEqual(self.said["jar doors"], ["good.test", "www.good.test", "a.b.good.test"])


if __name__ == "__main__":
    unittest.main()
