# SPDX-License-Identifier: Apache-2.0
"""smolagents: the code of a CodeAgent in an interpreter that lives in a jar.

    with JarPythonExecutor(memory="1G", timeout=60) as executor:
        CodeAgent(model=model, tools=[], executor=executor)
"""

from __future__ import annotations

from typing import Any, Dict

from .._interpreter import Interpreter
from .._policy import PolicyLike
from ._common import missing

try:
    from smolagents.local_python_executor import CodeOutput, PythonExecutor
    from smolagents.tools import get_tools_definition_code
except ImportError as error:
    raise missing(__name__, "smolagents>=1.26", error) from error

# Whatever the tool final_answer returns ends the step, and is asked for by name.
_FINAL = """
class FinalAnswer(BaseException):
    pass

def _final(tool):
    def final_answer(*args, **kwargs):
        global _final_answer
        _final_answer = tool(*args, **kwargs)
        raise FinalAnswer
    return final_answer

final_answer = _final(final_answer)
"""


class JarPythonExecutor(PythonExecutor):  # type: ignore[misc]
    """Variables, imports and tools stay from step to step. JarPythonExecutor(policy, **keys): those of belljar.Interpreter.

    Tools run in the jar too, from their source. Variables go in and answers come out as data; nothing is unpickled. The interpreter
    has the packages of this one and installs none. What the agent's code prints is its log, also when it fails.
    """

    def __init__(self, policy: PolicyLike = None, **keys: Any) -> None:
        self.interpreter = Interpreter(policy=policy, **keys)
        # The framework looks here for what was printed before a step failed.
        self.state: Dict[str, str] = {}
        self._tools: Dict[str, Any] = {}
        self._variables: Dict[str, Any] = {}

    def send_tools(self, tools: Dict[str, Any]) -> None:
        """Define the tools in the interpreter."""
        self._tools = tools
        code = get_tools_definition_code(tools)
        self.interpreter.run(code + _FINAL if "final_answer" in tools else code).check()

    def send_variables(self, variables: Dict[str, Any]) -> None:
        """Set variables in the interpreter."""
        self._variables = variables
        for name, value in variables.items():
            self.interpreter.set(name, value)

    def __call__(self, code_action: str) -> CodeOutput:
        """Run a step: its last value, or what the tool final_answer returned."""
        cell = self.interpreter.run(code_action)
        logs = cell.stdout + cell.stderr
        self.state["_print_outputs"] = logs
        if cell.error is None:
            return CodeOutput(cell.value, logs, False)
        if cell.error.type_name.endswith("FinalAnswer"):
            return CodeOutput(self.interpreter.get("_final_answer"), logs, True)
        why = cell.error.traceback or f"{cell.error.type_name}: {cell.error.message}"
        if cell.error.traceback and cell.error.kind == "timeout":
            why += f"\n{cell.error.message}"
        if cell.error.state_lost:
            self.interpreter.reset()
            self.send_variables(self._variables)
            self.send_tools(self._tools)
            why += "\nThe interpreter was started again: variables and imports of earlier steps are gone."
        raise RuntimeError(why)

    def cleanup(self) -> None:
        """End the interpreter."""
        self.interpreter.close()

    def __enter__(self) -> JarPythonExecutor:
        return self

    def __exit__(self, *_: object) -> None:
        self.cleanup()
