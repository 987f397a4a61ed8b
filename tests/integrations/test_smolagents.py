# SPDX-License-Identifier: Apache-2.0
"""belljar.integrations.smolagents with the framework: steps, tools, answers, and steps that go wrong."""

from __future__ import annotations

import datetime
import unittest
from typing import Any, Dict

import belljar
from belljar.integrations.smolagents import JarPythonExecutor
from integration_case import IntegrationCase
from package_case import tearDownModule  # noqa: F401
from smolagents import FinalAnswerTool, tool


@tool
def shout(text: str) -> str:
    """Makes text loud.

    Args:
        text: the text
    """
    return text.upper()


class Smolagents(IntegrationCase):
    """Code executors."""

    def setUp(self) -> None:
        super().setUp()
        self.executor = JarPythonExecutor(timeout=20)
        self.addCleanup(self.executor.cleanup)
        self.executor.send_variables({"given": {"when": datetime.date(2020, 1, 2)}})
        self.executor.send_tools({"shout": shout, "final_answer": FinalAnswerTool()})

    def test_the_example(self) -> None:
        self.check_example("smolagents")

    def test_state_stays(self) -> None:
        self.executor("import math\nx = [math.pi]")
        done = self.executor("print('seen', len(x)); shout('loud') + str(given['when'].year)")
        self.assertEqual((done.output, done.logs, done.is_final_answer), ("LOUD2020", "seen 1\n", False))

    def test_the_final_answer_is_data(self) -> None:
        done = self.executor("print('log'); final_answer({1, 2}); print('never')")
        self.assertEqual((done.output, done.logs, done.is_final_answer), ({1, 2}, "log\n", True))
        # The agent sends its tools again with each of its runs.
        self.executor.send_tools({"shout": shout, "final_answer": FinalAnswerTool()})
        self.assertEqual(self.executor("final_answer(given)").output, {"when": datetime.date(2020, 1, 2)})
        with self.assertRaises(belljar.BelljarError):
            self.executor("final_answer(object())")

    def test_errors_show_the_step_and_what_it_printed(self) -> None:
        with self.assertRaisesRegex(RuntimeError, r"(?s)print\('before'\); 1/0.*ZeroDivisionError"):
            self.executor("print('before'); 1/0")
        self.assertEqual(self.executor.state["_print_outputs"], "before\n")

    def test_a_step_that_ends_the_interpreter_does_not_end_the_agent(self) -> None:
        with self.assertRaisesRegex(RuntimeError, "started again"):
            self.executor("import os; x = 1; os._exit(3)")
        self.assertEqual(self.executor("shout(given['when'].isoformat() + 'z')").output, "2020-01-02Z")

    def test_a_step_sees_no_home_and_no_network(self) -> None:
        with self.assertRaisesRegex(RuntimeError, "OSError|gaierror"):
            self.executor("import socket; socket.create_connection(('192.0.2.1', 80), 5)")
        self.assertIs(self.executor("import os; os.path.exists(os.path.expanduser('~/.ssh'))").output, False)

    def test_the_owners_limits_hold_and_are_named(self) -> None:
        def see(keys: Dict[str, Any], command: str) -> str:
            executor = JarPythonExecutor(**keys)
            try:
                code = f"import subprocess; done = subprocess.run({command!r}, shell=True, capture_output=True, text=True)\n"
                if "memory" in keys:
                    code = "x = b'x' * (1 << 30)\n"
                if "cpu_time" in keys:
                    code = "while True: pass\n"
                if "pids" in keys:
                    code = "import resource\nclass done: stdout = 'of 24'\n"
                return str(executor(f"{code}done.stdout").output)
            except RuntimeError as error:
                return str(error)
            finally:
                executor.cleanup()

        self.check_limits(see)

    def test_a_preset_and_mistakes(self) -> None:
        with self.assertRaisesRegex(belljar.PolicyError, "did you mean 'memory'"):
            JarPythonExecutor("agent", memroy="1G")
        self.check_wrong_keys(lambda **keys: JarPythonExecutor(**keys).cleanup())

    def test_what_is_no_data_is_named_by_its_own_place(self) -> None:
        with self.assertRaisesRegex(belljar.BelljarError, r"at \$ is not data"):
            self.executor("final_answer(object())")


if __name__ == "__main__":
    unittest.main()
