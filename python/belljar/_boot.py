# SPDX-License-Identifier: Apache-2.0
"""Start a fresh interpreter in a jar, for one call or as a zygote: its command line, and a file with the modules it needs.

The package itself need not be visible in the jar: a kept jar was opened long before anybody thought of calls. The few modules
that work inside travel as a sealed file in memory, as byte code if the interpreter is the same, else as text. Isolated
mode (-I) keeps everything out that a jar could have written: the current directory, the user's site, variables. The site of the
interpreter itself is begun later (-S), by _inside, which looks at what it would load.
"""

from __future__ import annotations

import importlib.util
import marshal
import os
import sys
import threading
from typing import Any, Dict, List, Sequence, Tuple

from ._answer import memory_file
from ._send import ALWAYS_INSIDE

BOOT_FD = 5
# The module whose main() is called: for one call, or to be a zygote.
INSIDE, ZYGOTE = ((__package__ or "belljar") + end for end in ("._inside", "._zygote"))
# Tables that every version reads.
MARSHAL_VERSION = 2

_LOADER = """
def load(modules, folder, entry, arguments):
    import importlib.machinery, marshal, sys, types
    for name, file, code in modules:
        module = types.ModuleType(name)
        spec = importlib.machinery.ModuleSpec(name, None, origin=file, is_package=name == "belljar")
        module.__file__, module.__spec__, module.__package__ = file, spec, "belljar"
        if name == "belljar":
            module.__path__ = spec.submodule_search_locations = [folder]
        sys.modules[name] = module
        if type(code) is bytes:
            code = marshal.loads(code)
        else:
            code = compile(code, file, "exec", dont_inherit=True)
        exec(code, module.__dict__)
        if name != "belljar":
            setattr(sys.modules["belljar"], name.partition(".")[2], module)
    sys.modules[entry].main(*arguments)
"""
_WORDS = (
    "import marshal,os;b=marshal.loads(os.pread({fd},os.fstat({fd}).st_size,0));os.close({fd});s={{}};"
    "exec(b[0],s);s['load'](*b[1:])"
)

_lock = threading.Lock()
_sources: Dict[Tuple[bool, Sequence[str]], List[Tuple[str, str, Any]]] = {}


def _modules(is_same: bool, names: Sequence[str]) -> List[Tuple[str, str, Any]]:
    """Name, file and code of each, as byte code or text. Loaded once per process."""
    found = _sources.get((is_same, names))
    if found is None:
        found = []
        for name in names:
            spec: Any = importlib.util.find_spec(name)
            loader = spec.loader
            code = marshal.dumps(loader.get_code(name)) if is_same else loader.get_source(name)
            found.append((name, str(spec.origin), code))
        _sources[is_same, names] = found
    return found


def boot_file(
    python: str,
    paths: Sequence[str],
    preload: Sequence[str],
    writable: Sequence[str],
    entry: str = INSIDE,
) -> int:
    """A file for BOOT_FD; the caller's to close."""
    folder = os.path.dirname(os.path.abspath(__file__))
    with _lock:
        modules = _modules(python == sys.executable, tuple(dict.fromkeys([*ALWAYS_INSIDE, entry])))
    arguments = (list(paths), list(preload), list(writable))
    return memory_file("belljar-boot", [marshal.dumps((_LOADER, modules, folder, entry, arguments), MARSHAL_VERSION)])


def boot_words(python: str) -> List[str]:
    """The command of a cold call, or of a zygote."""
    return [python, "-I", "-S", "-c", _WORDS.format(fd=BOOT_FD)]


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
