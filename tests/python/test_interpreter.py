# SPDX-License-Identifier: Apache-2.0
"""A kept interpreter: cells share variables, their output is told apart, limits keep or end the state, and nothing is believed."""

from __future__ import annotations

import asyncio
import datetime
import gc
import importlib
import importlib.util
import os
import subprocess
import threading
import unittest
import warnings
from pathlib import Path
from typing import Any, Dict, List
from unittest import mock

import belljar
from belljar import Interpreter, _interpreter_start
from harness.bounds import SLOWNESS
from package_case import PackageCase, again_and_again, open_fds, tearDownModule  # noqa: F401

# What a cell writes to the socket of its own interpreter.
FORGE = """
import os, socket, struct
from belljar import _answer, _codec
def links():
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                found.append(int(name))
        except OSError:
            pass
    return found
def forge(value, kind=0):
    _answer.send_answer(links()[0], kind, [_codec.encode(value)])
"""


class Case(PackageCase):
    """One interpreter, closed at the end."""

    def open(self, *args: Any, **options: Any) -> Interpreter:
        made = Interpreter(*args, **options)
        self.addCleanup(made.close)
        return made

    def setUp(self) -> None:
        super().setUp()
        self.it = self.open()

    def value(self, code: str) -> Any:
        """The value of a cell that has no error."""
        cell = self.it.run(code)
        self.assertIsNone(cell.error, cell)
        return cell.value


class Cells(Case):
    """What a cell gives."""

    def test_variables_functions_and_imports_stay(self) -> None:
        self.value("import math\nx = 20\ndef double(n): return 2 * n + y")
        self.value("y = 2")
        self.assertEqual(self.value("double(x)"), 42)
        self.assertEqual(self.value("math.floor(1.5)"), 1)

    def test_the_last_expression_is_the_value(self) -> None:
        for code, value in [("1; 2", 2), ("x = 1", None), ("", None), ("# nothing", None), ("None", None), ("if True:\n    5", None)]:
            self.assertEqual(self.value(code), value, code)

    def test_values_come_back_as_data_of_their_types(self) -> None:
        self.assertEqual(self.value("(1, {2: [b'x', {3}]}, -0.0, None)"), (1, {2: [b"x", {3}]}, -0.0, None))
        self.assertEqual(self.value("import datetime; datetime.date(2026, 1, 2)"), datetime.date(2026, 1, 2))
        self.assertEqual(self.value("bytes(10**6)"), bytes(10**6))

    def test_a_value_that_is_no_data_is_its_repr(self) -> None:
        cell = self.it.run("class Thing:\n    def __repr__(self): return '<a thing>'\nThing()")
        self.assertEqual((cell.value, cell.is_data), ("<a thing>", False))
        cell = self.it.run("class Bad:\n    def __repr__(self): 1/0\nBad()")
        self.assertEqual(cell.value, "<__main__.Bad whose repr() raised ZeroDivisionError>")

    def test_an_array_is_no_data_for_a_host_without_numpy(self) -> None:
        # A stand-in: what counts is that the jar has a module of that name.
        self.value("import sys, types; numpy = sys.modules['numpy'] = types.ModuleType('numpy')")
        cell = self.it.run("class ndarray:\n    def __repr__(self): return 'array([])'\nnumpy.ndarray = ndarray\nndarray()")
        self.assertEqual((cell.value, cell.is_data), ("array([])", False))
        self.value("x = numpy.ndarray()")
        with self.assertRaises(belljar.ResultError) as caught:
            self.it.get("x")
        self.assertIn("is not data", str(caught.exception))
        self.assertEqual(self.value("1"), 1)

    def test_a_long_value_is_shown_in_part_and_comes_whole(self) -> None:
        cell = self.it.run("list(range(10**5))")
        self.assertEqual(cell.value, list(range(10**5)))
        self.assertLess(len(cell.display[0]["text/plain"]), 200_000)

    def test_an_error_shows_the_lines_of_its_cell(self) -> None:
        self.value("def fail():\n    raise KeyError('here')")
        error = self.it.run("a = 1\nfail()").error
        assert error is not None
        self.assertEqual((error.kind, error.type_name, error.message), ("raised", "KeyError", "'here'"))
        self.assertEqual(
            [line for line in error.traceback.splitlines() if "~" not in line and "^" not in line],
            [
                "Traceback (most recent call last):",
                '  File "<cell 2>", line 2, in <module>',
                "    fail()",
                '  File "<cell 1>", line 2, in fail',
                "    raise KeyError('here')",
                "KeyError: 'here'",
            ],
        )
        self.assertFalse(error.state_lost)
        self.assertEqual(self.value("a"), 1)

    def test_check_raises_what_the_cell_raised(self) -> None:
        with self.assertRaises(belljar.CallError) as caught:
            self.it.run("1/0").check()
        self.assertEqual(caught.exception.type_name, "ZeroDivisionError")
        self.assertEqual(self.it.run("1").check().value, 1)

    def test_syntax_errors_and_magics(self) -> None:
        error = self.it.run("x = 1\ny = = 2").error
        assert error is not None
        self.assertEqual(error.type_name, "SyntaxError")
        self.assertIn('File "<cell 1>", line 2', error.traceback)
        self.assertIn("y = = 2", error.traceback)
        for code in ("%matplotlib inline", "!ls", "x?"):
            error = self.it.run(code).error
            assert error is not None
            self.assertIn("not supported", error.message, code)

    def test_exit_ends_the_cell_and_not_the_interpreter(self) -> None:
        self.value("x = 3")
        for code in ("exit()", "import sys; sys.exit(4)", "raise SystemExit"):
            error = self.it.run(code).error
            assert error is not None
            self.assertEqual((error.type_name, error.state_lost), ("SystemExit", False))
        self.assertEqual(self.value("x"), 3)

    def test_awaits_at_the_top(self) -> None:
        self.value("import asyncio\nasync def get():\n    await asyncio.sleep(0)\n    return 7")
        self.assertEqual(self.value("await get()"), 7)
        self.assertEqual(self.value("z = await get()\nz + 1"), 8)
        self.assertEqual(self.value("asyncio.run(get())"), 7)
        error = self.it.run("await asyncio.wait_for(asyncio.sleep(9), 0)").error
        assert error is not None
        self.assertIn("Timeout", error.type_name)

    def test_classes_of_cells_can_be_pickled_and_are_dataclasses(self) -> None:
        self.value("import pickle, dataclasses\n@dataclasses.dataclass\nclass Point:\n    x: int\n    y: 'int' = 0")
        self.assertEqual(self.value("pickle.loads(pickle.dumps(Point(1))) == Point(1)"), True)
        self.assertEqual(self.value("Point.__module__"), "__main__")
        self.value("def source():\n    return 'of it'")
        self.assertIn("'of it'", self.value("import inspect; inspect.getsource(source)"))

    def test_a_module_that_the_cell_wrote_can_be_imported(self) -> None:
        self.value("open('mine.py', 'w').write('answer = 42')")
        self.assertEqual(self.value("import mine; mine.answer"), 42)

    def test_code_of_any_length_and_text(self) -> None:
        self.assertEqual(self.value("x = '" + "é" * 200_000 + "'\nlen(x)"), 200_000)
        self.assertEqual(self.value("'\\udc80'"), "\udc80")
        with self.assertRaises(TypeError):
            self.it.run(b"1")  # type: ignore[arg-type]

    def test_set_get_and_variables(self) -> None:
        self.it.set("data", {"a": [1, (2,)], "b": b"\0" * 300_000})
        self.assertEqual(self.value("data['a'][1][0] + len(data['b'])"), 300_002)
        self.assertEqual(self.it.get("data")["a"], [1, (2,)])
        self.value("import os\nthing = object()\ndel data")
        found = self.it.variables()
        self.assertEqual({name: row.type_name for name, row in found.items()}, {"os": "module", "thing": "object"})
        self.assertIn("<object object", found["thing"].text)
        with self.assertRaises(KeyError):
            self.it.get("nobody")
        with self.assertRaises(belljar.ResultError):
            self.it.get("thing")
        for name in ("a.b", "class", "", 3):
            with self.assertRaises(ValueError):
                self.it.set(name, 1)  # type: ignore[arg-type]
        with self.assertRaises(belljar.SendError):
            self.it.set("x", object())
        self.assertEqual(self.value("1"), 1)

    def test_input_is_answered_or_refused(self) -> None:
        error = self.it.run("input('name? ')").error
        assert error is not None
        self.assertEqual(error.type_name, "EOFError")
        self.assertIn("on_input", error.message)
        asked: List[str] = []

        def answer(prompt: str) -> str:
            asked.append(prompt)
            return f"n{len(asked)}"

        self.assertEqual(self.it.run("[input('a'), input('b')]", on_input=answer).value, ["n1", "n2"])
        self.assertEqual(asked, ["a", "b"])

    def test_an_exception_of_on_input_leaves_and_keeps_the_state(self) -> None:
        def answer(prompt: str) -> str:
            raise LookupError(prompt)

        self.value("x = 5")
        with self.assertRaises(LookupError):
            self.it.run("y = input('p')", on_input=answer)
        self.assertEqual(self.value("x"), 5)
        self.assertEqual(sorted(self.it.variables()), ["x"])

    def test_on_input_cannot_run_a_cell_and_does_not_hang(self) -> None:
        self.value("x = 5")
        for use in (lambda: self.it.run("x"), self.it.variables, self.it.fork, self.it.reset):
            with self.assertRaises(RuntimeError):
                self.it.run("input()", on_input=lambda prompt, use=use: str(use()))  # type: ignore[misc]
        self.assertEqual(self.value("x"), 5)

        async def ask(prompt: str) -> str:
            return str(await self.it.run_async("x"))

        async def begin_afresh(prompt: str) -> str:
            return str(await self.it.reset_async())

        for answer in (ask, begin_afresh):
            with self.assertRaises(RuntimeError):
                asyncio.run(self.it.run_async("input()", on_input=answer))
        self.assertEqual(self.value("x"), 5)

    def test_preloaded_modules_and_their_errors(self) -> None:
        it = self.open(["json"])
        self.assertEqual(it.run("import sys; 'json' in sys.modules").value, True)
        with self.assertRaises(belljar.CallError) as caught:
            Interpreter(["no_such_module"])
        self.assertIn("no_such_module", str(caught.exception))


class Output(Case):
    """Each cell has its own output, whoever writes it."""

    def test_output_of_python_of_children_and_of_c(self) -> None:
        cell = self.it.run(
            "import os, sys, subprocess, ctypes\n"
            "print('python'); print('err', file=sys.stderr)\n"
            "subprocess.run(['sh', '-c', 'echo child; echo childerr >&2'])\n"
            "ctypes.CDLL(None).printf(b'from c, no newline')\n"
            "os.write(1, b'raw')"
        )
        self.assertEqual(sorted(cell.stdout.split("\n")[:2]), ["child", "python"])
        self.assertIn("raw", cell.stdout)
        self.assertIn("from c, no newline", cell.stdout)
        self.assertEqual(cell.stderr, "err\nchilderr\n")
        self.assertEqual(self.it.run("1").stdout, "")

    def test_the_boundary_is_exact_for_many_cells(self) -> None:
        for number in range(50):
            cell = self.it.run(f"print({number}, end='')")
            self.assertEqual(cell.stdout, str(number))

    def test_late_output_is_the_next_cell_s(self) -> None:
        self.value("import threading\ngo = threading.Event()\ndone = threading.Event()")
        self.value("def late():\n    go.wait(); print('late', flush=True); done.set()\nthreading.Thread(target=late).start()")
        cell = self.it.run("go.set(); done.wait(); None")
        self.assertEqual(cell.stdout, "late\n")

    def test_a_background_writer_does_not_keep_the_reader(self) -> None:
        self.value("import subprocess; p = subprocess.Popen(['sh', '-c', 'while :; do echo yyyyyyyyyyyyyyyy; done'])")
        for _ in range(5):
            self.assertEqual(self.value("1"), 1)
        self.value("p.kill()")

    def test_the_cap_holds_for_each_cell_and_is_told(self) -> None:
        it = self.open(output="1K")
        cell = it.run("print('x' * 5000)")
        self.assertEqual((len(cell.stdout) + len(cell.stderr), cell.truncated), (1024, True))
        cell = it.run("print('é' * 700, end='')")
        self.assertEqual((cell.stdout, cell.truncated), ("é" * 512, True))
        cell = it.run("print('short')")
        self.assertEqual((cell.stdout, cell.truncated), ("short\n", False))
        cell = it.run("import sys\nfor _ in range(2000): sys.stdout.write('x' * 1000)")
        self.assertIsNone(cell.error)
        self.assertEqual(len(cell.stdout), 1024)

    def test_replaced_and_closed_streams(self) -> None:
        self.value("import sys, io\nsys.stdout = io.StringIO(); print('kept inside')")
        self.assertEqual(self.value("sys.stdout.getvalue()"), "kept inside\n")
        self.value("sys.stdout = sys.__stdout__")
        self.assertEqual(self.it.run("print('back')").stdout, "back\n")
        self.value("import os; os.close(1); os.close(2)")
        self.assertEqual(self.value("1 + 1"), 2)

    def test_keys_that_would_not_hold_are_refused(self) -> None:
        for keys in ({"redact": ["secret"]}, {"redact_secrets": True}, {"keep": "tail"}, {"overflow": "kill"}):
            with self.assertRaises(belljar.PolicyError):
                Interpreter(**keys)
        for keys in ({"output": None}, {"timeout": "soon"}, {"cell_memory": -1}, {"tiemout": 3}):
            with self.assertRaises(belljar.PolicyError):
                Interpreter(**keys)


class Display(Case):
    """Rich forms of values."""

    def test_every_form_of_a_value(self) -> None:
        cell = self.it.run(
            "class Rich:\n"
            "    def __repr__(self): return 'plain'\n"
            "    def _repr_html_(self): return '<b>x</b>'\n"
            "    def _repr_markdown_(self): return '*x*'\n"
            "    def _repr_svg_(self): return '<svg/>'\n"
            "    def _repr_png_(self): return b'\\x89PNG'\n"
            "    def _repr_json_(self): return {'a': [1]}\n"
            "    def _repr_jpeg_(self): 1/0\n"
            "    def _repr_latex_(self): return None\n"
            "display(Rich(), 5)\nRich()"
        )
        rich = {
            "text/plain": "plain",
            "text/html": "<b>x</b>",
            "text/markdown": "*x*",
            "image/svg+xml": "<svg/>",
            "image/png": b"\x89PNG",
            "application/json": {"a": [1]},
        }
        self.assertEqual(cell.display, [rich, {"text/plain": "5"}, rich])

    def test_a_bundle_of_a_value(self) -> None:
        cell = self.it.run(
            "class Many:\n"
            "    def _repr_mimebundle_(self, include=None, exclude=None):\n"
            "        return {'text/html': 'h', 'image/png': 'aGk=', 'x/y': object(), 3: 'n'}, {'meta': 1}\n"
            "    def __repr__(self): return 'm'\nMany()"
        )
        self.assertEqual(cell.display, [{"text/plain": "m", "text/html": "h", "image/png": b"hi"}])

    def test_displays_are_bounded(self) -> None:
        cell = self.it.run("for n in range(1000): display(n)")
        self.assertIsNone(cell.error)
        self.assertEqual(len(cell.display), 65)
        self.assertIn("left out", cell.display[-1]["text/plain"])
        cell = self.it.run("class Big:\n    def _repr_html_(self): return 'x' * (30 << 20)\nfor n in range(5): display(Big())")
        self.assertEqual(len(cell.display), 1)

    def test_figures_that_are_open_are_shown_and_closed(self) -> None:
        # A stand-in with the few names that are used: the real one is not everywhere.
        self.value(
            "import sys, types, os\n"
            "figures = types.ModuleType('matplotlib.figure'); plots = types.ModuleType('matplotlib.pyplot')\n"
            "class Figure:\n"
            "    def savefig(self, file, format, **more): file.write(b'PNG'); assert format == 'png'\n"
            "    def __repr__(self): return '<Figure>'\n"
            "figures.Figure, plots.shown = Figure, {}\n"
            "plots.get_fignums = lambda: list(plots.shown)\n"
            "plots.figure = lambda n: plots.shown.setdefault(n, Figure())\n"
            "plots.close = lambda what: plots.shown.clear()\n"
            "sys.modules.update({'matplotlib.figure': figures, 'matplotlib.pyplot': plots})"
        )
        shown = {"text/plain": "<Figure>", "image/png": b"PNG"}
        self.assertEqual(self.it.run("plots.figure(1); plots.figure(2); None").display, [shown, shown])
        self.assertEqual(self.it.run("plots.figure(1)").display, [shown])
        self.assertEqual(self.it.run("None").display, [])
        self.assertEqual(self.value("os.environ['MPLBACKEND']"), "Agg")


class Limits(Case):
    """Time, memory and interrupts."""

    def test_a_timeout_interrupts_and_keeps_the_state(self) -> None:
        self.value("x = 11")
        cell = self.it.run("import time; print('begun'); time.sleep(60)", timeout=0.2 * SLOWNESS)
        assert cell.error is not None
        self.assertEqual((cell.error.kind, cell.error.type_name, cell.error.state_lost), ("timeout", "KeyboardInterrupt", False))
        self.assertNotIn("_cell.py", cell.error.traceback)
        self.assertEqual(cell.stdout, "begun\n")
        with self.assertRaises(belljar.CallTimeout):
            cell.check()
        self.assertEqual(self.value("x"), 11)

    def test_a_timeout_reaches_children_and_tasks(self) -> None:
        self.value("x = 12")
        for code in (
            "import subprocess; subprocess.run(['sleep', '60'])",
            "import os; os.system('sleep 60')",
            "import asyncio; await asyncio.sleep(60)",
            "while True: pass",
        ):
            cell = self.it.run(code, timeout=0.2)
            assert cell.error is not None
            self.assertEqual((cell.error.kind, cell.error.state_lost), ("timeout", False), code)
        self.assertEqual(self.value("x"), 12)

    def test_a_cell_that_does_not_stop_is_killed_and_reset_begins_afresh(self) -> None:
        it = self.open(grace=0.2)
        cell = it.run("import signal, time; x = 1; signal.signal(signal.SIGINT, signal.SIG_IGN)\nprint(1)\nwhile True: pass", timeout=0.2)
        assert cell.error is not None
        self.assertEqual((cell.error.kind, cell.error.state_lost, cell.stdout), ("timeout", True, "1\n"))
        assert cell.error.result is not None
        self.assertEqual(cell.error.result.outcome, "cancelled")
        with self.assertRaises(belljar.CallEnded) as caught:
            it.run("1")
        self.assertIn("reset()", str(caught.exception))
        it.reset()
        self.assertEqual(it.run("'x' in globals()").value, False)
        self.assertEqual(it.run("2").number, 2)

    def test_the_default_timeout_is_the_interpreter_s(self) -> None:
        it = self.open(timeout="200ms")
        wait = "import time; time.sleep(60)"
        for cell in (it.run("while True: pass"), it.run(wait), it.run(wait, timeout="none"), it.run(wait, timeout=50)):
            assert cell.error is not None
            self.assertEqual(cell.error.kind, "timeout")

    def test_interrupt_from_another_thread(self) -> None:
        self.value("x = 13; import time")
        for _ in range(5):
            with again_and_again(self.it.interrupt, 0.1):
                cell = self.it.run("time.sleep(60)")
            assert cell.error is not None
            self.assertEqual((cell.error.kind, cell.error.type_name), ("interrupted", "KeyboardInterrupt"))
        self.assertEqual(self.value("x"), 13)

    def test_an_interrupt_never_hits_a_later_cell(self) -> None:
        self.it.interrupt()  # nothing runs
        self.assertEqual(self.value("1"), 1)
        stop = threading.Event()

        def annoy() -> None:
            while not stop.is_set():
                self.it.interrupt()

        thread = threading.Thread(target=annoy)
        thread.start()
        try:
            for _ in range(200):
                cell = self.it.run("1")
                self.assertIn(cell.error.type_name if cell.error else None, (None, "KeyboardInterrupt"))
                self.assertFalse(cell.error and cell.error.state_lost)
        finally:
            stop.set()
            thread.join()
        for _ in range(20):
            self.assertEqual(self.value("2"), 2)

    def test_a_sigint_that_the_cell_sends_itself(self) -> None:
        error = self.it.run("import os, signal; os.kill(os.getpid(), signal.SIGINT); 'after'").error
        assert error is not None
        self.assertEqual((error.kind, error.type_name), ("raised", "KeyboardInterrupt"))

    def test_memory_of_a_cell_keeps_the_state(self) -> None:
        self.value("x = 14")
        error = self.it.run("y = bytearray(200 << 20)", memory="64M").error
        assert error is not None
        self.assertEqual((error.type_name, error.state_lost), ("MemoryError", False))
        self.assertIsNone(self.it.run("y = bytearray(200 << 20); del y").error)
        it = self.open(cell_memory="64M")
        for _ in range(3):
            error = it.run("y = [0] * (64 << 20)").error
            assert error is not None
            self.assertEqual(error.type_name, "MemoryError")
        self.assertEqual(self.value("x"), 14)

    def test_the_jar_s_memory_ends_the_interpreter_and_says_so(self) -> None:
        it = self.open(memory="100M")
        cell = it.run("y = b'x' * (300 << 20); import time; time.sleep(60)")
        assert cell.error is not None and cell.error.result is not None
        self.assertEqual((cell.error.kind, cell.error.state_lost), ("ended", True))
        self.assertEqual(cell.error.result.outcome, "memory")
        it.reset()
        self.assertEqual(it.run("1").value, 1)

    def test_the_end_of_the_process_is_told_as_the_engine_saw_it(self) -> None:
        for code, outcome, number in (
            ("import os; os._exit(3)", "exited", 3),
            ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "signaled", None),
            ("import os; os.execv('/bin/sh', ['sh', '-c', 'exit 7'])", "exited", 7),
        ):
            it = self.open()
            cell = it.run("print('last words', flush=True)\n" + code)
            assert cell.error is not None and cell.error.result is not None
            self.assertEqual((cell.error.kind, cell.stdout), ("ended", "last words\n"))
            self.assertEqual((cell.error.result.outcome, cell.error.result.exit_code), (outcome, number))


class Forks(Case):
    """Copies of the state."""

    def test_a_copy_has_the_variables_and_its_own_life(self) -> None:
        self.value("x = [1]; import random, os")
        twin = self.it.fork()
        self.addCleanup(twin.close)
        self.assertEqual(twin.run("x.append(2); print('twin'); x").value, [1, 2])
        cell = self.it.run("print('first'); x")
        self.assertEqual((cell.value, cell.stdout), ([1], "first\n"))
        self.assertNotEqual(self.value("random.random()"), twin.run("random.random()").value)
        self.assertNotEqual(self.value("os.getpid()"), twin.run("os.getpid()").value)

    def test_an_interrupt_or_a_kill_is_for_one_of_them(self) -> None:
        twin, other = self.it.fork(), self.it.fork()
        self.addCleanup(twin.close)
        self.addCleanup(other.close)
        waiting: List[Any] = []
        thread = threading.Thread(target=lambda: waiting.append(other.run("import time; time.sleep(1.5); 'slept'")))
        thread.start()
        cell = twin.run("while True: pass", timeout=0.2)
        assert cell.error is not None
        self.assertEqual(cell.error.state_lost, False)
        twin._settings.grace = 0.1
        cell = twin.run("import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass", timeout=0.2)
        assert cell.error is not None
        self.assertEqual((cell.error.kind, cell.error.state_lost), ("timeout", True))
        self.assertEqual(self.value("1"), 1)
        thread.join()
        self.assertEqual(waiting[0].value, "slept")

    def test_copies_outlive_the_close_of_the_first_and_not_its_death(self) -> None:
        first = Interpreter()
        first.run("x = 9")
        twin = first.fork()
        self.addCleanup(twin.close)
        first.close()
        self.assertEqual(twin.run("x").value, 9)
        again = twin.fork()
        self.addCleanup(again.close)
        twin.close()
        self.assertEqual(again.run("x + 1").value, 10)
        twin = self.it.fork()
        self.addCleanup(twin.close)
        self.it.run("import os; os._exit(1)")
        error = twin.run("1").error
        assert error is not None
        self.assertEqual((error.kind, error.state_lost), ("ended", True))
        twin.reset()
        self.assertEqual(twin.run("3").value, 3)

    def test_threads_forbid_it(self) -> None:
        self.value("import threading\ngo = threading.Event()\nthreading.Thread(target=go.wait, daemon=True).start()")
        with self.assertRaises(belljar.UnavailableError):
            self.it.fork()
        self.assertEqual(self.value("go.set(); 5"), 5)

    def test_many_copies_leave_nothing(self) -> None:
        before = len(open_fds())
        for number in range(20):
            with self.it.fork() as twin:
                self.assertEqual(twin.run(f"{number}").value, number)
        self.assertEqual(len(open_fds()), before)
        self.assertEqual(self.value("1"), 1)


class Hostile(Case):
    """What a cell can say and do, and what it cannot."""

    def refused(self, code: str) -> None:
        """The answer is not believed, and the interpreter is ended."""
        with Interpreter() as it:
            it.run(FORGE)
            with self.assertRaises(belljar.ResultError):
                it.run(code + "\nimport time\ntime.sleep(60)")
            with self.assertRaises(belljar.CallEnded):
                it.run("1")
            it.reset()
            self.assertEqual(it.run("1").value, 1)

    def test_malformed_answers_are_refused(self) -> None:
        for code in (
            "os.write(links()[0], b'x' * 100)",
            "os.write(links()[0], b'BJAN' + b'\\xff' * 60)",
            "os.write(links()[0], struct.pack('<4sBBHIQ', b'BJAN', 1, 0, 0, 0, 1 << 60))",
            "forge(5)",
            "forge([])",
            "forge([2, 'cell'])",
            "forge([2, 'cell', 1, 2, 3, 4])",
            "forge([2, 'cell', 0, None, {'type': 1, 'message': '', 'traceback': ''}, []])",
            "forge([2, 'cell', 2, 5, None, []])",
            "forge([2, 'cell', 1, 5, None, [{1: 2}]])",
            "forge([2, 'cell', 1, 5, None, [{'text/html': 'h'}]])",
            "forge([2, 'cell', True, 5, None, []])",
            "forge([2, ['cell'], 0])",
            "forge([2])",
            "forge([1, 'cell', 1, 5, None, []])",
            "forge([True, 'cell', 1, 5, None, []])",
            "forge([2, 'input', 5])",
            "forge([2, 'done', 5])",
            "forge([2, 'cell', 1, 5, None, []], kind=3)",
        ):
            with self.subTest(code=code):
                self.refused(code)

    def test_descriptors_that_are_no_sealed_files_are_refused_and_closed(self) -> None:
        self.refused("forge(5)")
        gc.collect()
        before = len(open_fds())
        self.refused(
            "s = socket.socket(fileno=os.dup(links()[0])); a, b = socket.socketpair()\n"
            "head = struct.pack('<4sBBHIQ', b'BJAN', 1, 0, 1, 0, 3)\n"
            "s.sendmsg([head + b'abc'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack('i', a.fileno()))])"
        )
        self.assertEqual(len(open_fds()), before)

    def test_files_that_come_with_answers_are_closed(self) -> None:
        with Interpreter(on_input=lambda prompt: "yes") as it:
            it.run(FORGE)
            before = len(open_fds())
            for _ in range(5):
                self.assertEqual(it.run("(input(), bytes(10**6))").value, ("yes", bytes(10**6)))
            self.assertEqual(len(open_fds()), before)

    def test_a_cell_can_forge_its_own_value_and_nothing_else(self) -> None:
        self.value(FORGE)
        cell = self.it.run("forge([2, 'cell', 1, 'forged', None, []])\nimport os; os._exit(0)")
        self.assertIn(cell.value, ("forged", None))
        with self.assertRaises(belljar.CallEnded):
            self.it.run("1").check()

    def test_an_answer_that_came_too_early_is_none(self) -> None:
        self.value(FORGE)
        with self.assertRaises(belljar.ResultError):
            self.it.run("forge([2, 'cell', 1, 5, None, []]); forge([2, 'cell', 1, 6, None, []])")
            self.it.run("7")

    def test_a_closed_or_silent_link_is_an_end_and_no_hang(self) -> None:
        it = self.open()
        it.run(FORGE)
        cell = it.run("for fd in links(): os.close(fd)\nimport time\ntime.sleep(60)")
        assert cell.error is not None and cell.error.result is not None
        self.assertEqual((cell.error.kind, cell.error.result.outcome), ("ended", "cancelled"))
        it = self.open(grace=0.1)
        it.run(FORGE)
        cell = it.run("os.write(links()[0], b'BJAN')\nwhile True:\n    try: time.sleep(9)\n    except BaseException: import time", timeout=0.3)
        assert cell.error is not None
        self.assertEqual((cell.error.kind, cell.error.state_lost), ("timeout", True))

    def test_children_that_come_back_do_not_answer(self) -> None:
        self.assertEqual(self.value("import os\npid = os.fork()\n'both'"), "both")
        for number in range(5):
            self.assertEqual(self.value(str(number)), number)

    def test_a_cell_may_break_its_own_python(self) -> None:
        for code in (
            "import sys; sys.settrace(lambda *a: 1/0)",
            "import sys; sys.setprofile(lambda *a: None)",
            "import sys; sys.modules.clear()",
            "import sys; sys.setrecursionlimit(20)",
            "import builtins; builtins.len = builtins.type = None",
            "import os; os.closerange(3, 1024)",
            "import gc; gc.disable(); __builtins__ = {}",
        ):
            with self.subTest(code=code):
                it = self.open(grace=0.2)
                it.run(code, timeout=2)
                try:
                    cell = it.run("1 + 1", timeout=2)
                    self.assertTrue(cell.value == 2 or cell.error is not None)
                except belljar.CallEnded:
                    pass
                it.reset()
                self.assertEqual(it.run("1 + 1").value, 2)

    def test_nothing_is_unpickled(self) -> None:
        cell = self.it.run("class Evil:\n    def __reduce__(self): return (print, ('never',))\nEvil()")
        self.assertFalse(cell.is_data)


class Life(Case):
    """Opening, closing, threads, forks of the host."""

    def test_close_ends_a_cell_that_runs(self) -> None:
        it = Interpreter()
        cells: List[Any] = []
        thread = threading.Thread(target=lambda: cells.append(it.run("import time; time.sleep(60)")))
        thread.start()
        self.wait_for(lambda: it._is_busy, "the cell runs")
        it.close()
        thread.join()
        self.assertEqual(cells[0].error.kind, "ended")
        it.close()
        with self.assertRaises(belljar.EngineError):
            it.run("1")
        with self.assertRaises(belljar.EngineError):
            it.reset()

    def test_a_second_cell_waits_for_the_first(self) -> None:
        self.value("order = []; import time")
        threads = [
            threading.Thread(target=self.it.run, args=(f"order.append({n}); time.sleep(0.05); order.append({n})",)) for n in range(5)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        order = self.value("order")
        self.assertEqual(order[::2], order[1::2])
        self.assertEqual(sorted(order[::2]), list(range(5)))

    def test_nothing_is_left_open(self) -> None:
        self.value("1")
        with Interpreter() as it:
            it.run("1")
        before = len(open_fds())
        for _ in range(10):
            with Interpreter() as it:
                it.run("x = 1")
                it.reset()
                it.run("import os; os._exit(0)")
        self.assertEqual(len(open_fds()), before)

    def test_one_that_is_forgotten_is_closed_with_a_warning(self) -> None:
        it = Interpreter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            del it
            gc.collect()
        self.assertIn("never closed", str(caught[0].message))

    def test_in_a_forked_host_it_is_not_there(self) -> None:
        out = self.host(
            "import belljar, os\n"
            "it = belljar.Interpreter()\n"
            "it.run('x = 1')\n"
            "pid = os.fork()\n"
            "if pid == 0:\n"
            "    try:\n"
            "        it.run('x')\n"
            "    except belljar.EngineError as error:\n"
            "        print('refused', flush=True)\n"
            "    with belljar.Interpreter() as other:\n"
            "        print(other.run('2').value, flush=True)\n"
            "    os._exit(0)\n"
            "os.waitpid(pid, 0)\n"
            "print(it.run('x').value)\n"
            "it.close()\n"
        )
        self.assertEqual(out, "refused\n2\n1\n")

    def test_control_c_in_the_host_interrupts_the_cell_and_keeps_the_state(self) -> None:
        out = self.host(
            "import belljar, os, signal, threading\n"
            "it = belljar.Interpreter()\n"
            "it.run('x = 1; import time')\n"
            "threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
            "try:\n"
            "    it.run('time.sleep(60)')\n"
            "except KeyboardInterrupt:\n"
            "    print('left', it.run('x').value)\n"
            "it.close()\n"
        )
        self.assertEqual(out, "left 1\n")

    def test_interpreters_share_a_zygote_only_if_they_are_made_alike(self) -> None:
        def names(**options: Any) -> List[str]:
            with Interpreter(**options) as it:
                return list(it.run("import os, socket; [socket.gethostname(), os.environ.get('A', '')]").value)

        class Opaque(Dict[str, Any]):
            def __repr__(self) -> str:
                return "a policy"

        file = self.base / "policy.json"
        for name in ("one", "two"):
            for policy in (belljar.Policy(hostname=name), Opaque(hostname=name), {"hostname": name}):
                self.assertEqual(names(policy=policy), [name, ""])
            file.write_text(f'{{"hostname": "{name}"}}')
            self.assertEqual(names(policy=str(file)), [name, ""])
            self.assertEqual(names(hostname=name, env={"A": name}), [name, name])
        before = len(_interpreter_start._zygotes)
        names(hostname="one", env={"A": "one"})
        self.assertEqual(len(_interpreter_start._zygotes), before)

    def test_cold_where_there_are_no_zygotes(self) -> None:
        with mock.patch("belljar._warm.Zygotes._current", side_effect=belljar.UnavailableError("none here")):
            it = self.open(hostname="cold")
        it.run("x = 4")
        self.assertEqual(it.run("x").value, 4)
        twin = it.fork()
        self.addCleanup(twin.close)
        self.assertEqual(twin.run("x + 1").value, 5)
        error = it.run("import time; time.sleep(60)", timeout=0.2).error
        assert error is not None
        self.assertFalse(error.state_lost)


IN_ENVIRONMENT = """
import belljar
with belljar.Jar() as jar, jar.python() as it:
    print(it.run("import of_the_environment; of_the_environment.value").check().value, it.run("import sys; sys.prefix").value)
"""


class InJars(PackageCase):
    """jar.python()."""

    def test_it_shares_the_files_of_the_jar(self) -> None:
        with belljar.Jar() as jar:
            jar.write_file("data.txt", "abc")
            jar.write_file("helper.py", "def twice(x): return 2 * x")
            with jar.python() as it:
                self.assertEqual(it.run("import helper; helper.twice(open('data.txt').read())").value, "abcabc")
                it.run("open('out.txt', 'w').write('from the cell')")
                self.assertEqual(jar.run(["cat", "out.txt"]).stdout, "from the cell")
                error = it.run("import time; time.sleep(60)", timeout=0.2).error
                assert error is not None
                self.assertFalse(error.state_lost)
                it.reset()
                self.assertEqual(it.run("open('out.txt').read()").value, "from the cell")

    def test_options(self) -> None:
        with belljar.Jar() as jar:
            with jar.python(env={"A": "b"}, timeout=9, preload=["json"], on_input=lambda prompt: "yes") as it:
                self.assertEqual(it.run("import os, sys; (os.environ['A'], 'json' in sys.modules, input())").value, ("b", True, "yes"))
            with self.assertRaises(belljar.PolicyError):
                jar.python(ro=["/"])
        with belljar.Jar(redact=["secret"]) as jar, self.assertRaises(belljar.PolicyError):
            jar.python()

    def test_an_environment_in_the_work_directory_is_used(self) -> None:
        import venv

        venv.create(self.work / "env", symlinks=True)
        site = next((self.work / "env/lib").glob("python3.*")) / "site-packages"
        (site / "of_the_environment.py").write_text("value = 8")
        done = subprocess.run(
            [self.work / "env/bin/python", "-c", IN_ENVIRONMENT],
            env={**os.environ, "PYTHONPATH": str(Path(belljar.__file__).parent.parent)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        self.assertEqual((done.stdout, done.stderr), (f"8 {self.work / 'env'}\n", ""))

    def test_it_ends_with_the_jar(self) -> None:
        jar = belljar.Jar()
        self.addCleanup(jar.close)
        it = jar.python()
        jar.close()
        error = it.run("1").error
        assert error is not None
        self.assertEqual(error.kind, "ended")
        it.close()


async def cells_under_trio() -> List[Any]:
    """What a scope of trio's cancels is interrupted, and the state stays."""
    trio: Any = importlib.import_module("trio")
    async with await Interpreter.open_async() as it:
        await it.run_async("x = 6; import time")
        with trio.move_on_after(0.3) as scope:
            await it.run_async("time.sleep(60)")

        async def answer(prompt: str) -> str:
            await trio.sleep(0)
            return prompt + "!"

        return [scope.cancelled_caught, await it.get_async("x"), (await it.run_async("input('a')", on_input=answer)).value]


class InLoops(Case):
    """The _async twins."""

    def test_all_of_them(self) -> None:
        async def main() -> None:
            async with await Interpreter.open_async() as it:
                self.assertEqual((await it.run_async("x = 1; print('o'); x")).stdout, "o\n")
                await it.set_async("y", 2)
                self.assertEqual(await it.get_async("y"), 2)
                self.assertEqual(sorted(await it.variables_async()), ["x", "y"])
                twin = await it.fork_async()
                self.assertEqual((await twin.run_async("x")).value, 1)
                await twin.close_async()
                asyncio.get_running_loop().call_later(0.1, it.interrupt)
                cell = await it.run_async("import time; time.sleep(60)")
                assert cell.error is not None
                self.assertEqual(cell.error.kind, "interrupted")
                await it.interrupt_async()
                await it.reset_async()
                self.assertEqual(await it.variables_async(), {})

                async def answer(prompt: str) -> str:
                    await asyncio.sleep(0)
                    return prompt + "!"

                self.assertEqual((await it.run_async("input('a')", on_input=answer)).value, "a!")
                with self.assertRaises(TypeError):
                    it.run("input('a')", on_input=answer)

        asyncio.run(main())

    def test_cancelling_interrupts_and_keeps_the_state(self) -> None:
        async def main() -> None:
            async with await Interpreter.open_async() as it:
                await it.run_async("x = 6; import time")
                task = asyncio.ensure_future(it.run_async("time.sleep(60)"))
                await asyncio.sleep(0.2)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                self.assertEqual((await it.run_async("x")).value, 6)

        asyncio.run(main())

    def test_under_trio_and_anyio_too(self) -> None:
        for name, more in (("trio", {}), ("anyio", {"backend": "trio"})):
            if importlib.util.find_spec(name) is not None and importlib.util.find_spec("trio") is not None:
                kit: Any = importlib.import_module(name)
                self.assertEqual(kit.run(cells_under_trio, **more), [True, 6, "a!"])

    def test_cells_of_two_interpreters_run_at_once(self) -> None:
        async def main() -> None:
            async with await Interpreter.open_async() as one, await Interpreter.open_async() as two:
                cells = await asyncio.gather(*(it.run_async("import time; time.sleep(0.3); 1") for it in (one, two, one)))
                self.assertEqual([cell.value for cell in cells], [1, 1, 1])

        asyncio.run(main())

    def test_in_a_jar(self) -> None:
        async def main() -> None:
            async with belljar.Jar() as jar:
                it = await jar.python_async()
                self.assertEqual((await it.run_async("1")).value, 1)
                await it.close_async()

        asyncio.run(main())


if __name__ == "__main__":
    unittest.main()
