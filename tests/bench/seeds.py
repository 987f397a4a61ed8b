# SPDX-License-Identifier: Apache-2.0
"""How programs without a sandbox do it: the usual mechanisms in a few lines each, as references. Safe they are not."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
from typing import Any, Callable

TIMEOUT_SECONDS = 30
UNPICKLE_AND_CALL = (
    "import pickle, sys; fn, args = pickle.loads(sys.stdin.buffer.read());"
    " sys.stdout.buffer.write(pickle.dumps(fn(*args)))"
)


def shell_in_session(command: str) -> int:
    """A shell in a session of its own, its output kept, its group killed when time is up."""
    with subprocess.Popen(
        command, shell=True, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            process.communicate(timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
        return process.wait()


def _answer(pipe: Any, fn: Callable[..., Any], args: Any) -> None:
    pipe.send(fn(*args))


def spawned_process(fn: Callable[..., Any], *args: Any) -> Any:
    """A fresh interpreter by multiprocessing, its answer through a pipe."""
    context = multiprocessing.get_context("spawn")
    reader, writer = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(writer, fn, args))
    process.start()
    writer.close()
    value = reader.recv()
    process.join(TIMEOUT_SECONDS)
    reader.close()
    return value


def python_with_pickles(fn: Callable[..., Any], *args: Any) -> Any:
    """`python -c` that reads a pickle and writes one."""
    done = subprocess.run(
        [sys.executable, "-c", UNPICKLE_AND_CALL],
        input=pickle.dumps((fn, args)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=TIMEOUT_SECONDS,
        check=True,
    )
    return pickle.loads(done.stdout)


def forked(fn: Callable[..., Any], *args: Any) -> Any:
    """A fork of this interpreter, its answer through a pipe: the least that a call in a process of its own can cost."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(writer, pickle.dumps(fn(*args)))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        value = pickle.loads(file.read())
    os.waitpid(pid, 0)
    return value
