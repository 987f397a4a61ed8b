# SPDX-License-Identifier: Apache-2.0
"""PathRules: which arguments of a tool are paths, and whether they stay inside.

A check before the call. It keeps honest tools in place; hostile ones only a jar can hold.
"""

from __future__ import annotations

import os
from collections.abc import Mapping as MappingABC
from pathlib import Path
from typing import Any, Iterable, List, Mapping, Optional, Tuple, Union

MAX_ARGUMENT_DEPTH = 64
MAX_PATH_BYTES = 4096

# Arguments that are paths by their names: these words alone, or at the beginning or end of a longer name.
PATH_WORDS = frozenset(
    "path paths file files filename filenames filepath filepaths dir dirs directory directories folder folders cwd"
    " workdir".split()
)


class PathRules:
    """The roots in which paths must stay, links resolved, however deep in the arguments they are.

    path_args: names of arguments that are paths. auto_detect: so are those with names like path, output_file or src_dir, and
    texts that begin like a path (/, ~, ./, ../). Relative paths start at the current directory.
    """

    def __init__(
        self,
        roots: Iterable[Union[str, "os.PathLike[str]"]],
        path_args: Optional[Iterable[str]] = None,
        auto_detect: bool = True,
    ) -> None:
        places: List[Any] = [roots] if isinstance(roots, (str, os.PathLike)) else list(roots or ())
        if not places:
            raise ValueError("FilesystemSandbox needs at least one root")
        self.roots: Tuple[Path, ...] = tuple(Path(os.path.realpath(os.path.expanduser(place))) for place in places)
        self._names = frozenset([path_args] if isinstance(path_args, str) else path_args or ())
        self._auto_detect = auto_detect

    def refusal(self, args: Mapping[str, Any]) -> Optional[str]:
        """Why a call with these arguments is denied; None if it is not."""
        return self._refusal("args", args, False, MAX_ARGUMENT_DEPTH)

    def _refusal(self, name: str, value: Any, is_path: bool, depth: int) -> Optional[str]:
        """Why a value may not be passed; is_path: a name further out says that texts in it are paths."""
        if isinstance(value, (str, bytes, os.PathLike)):
            return self._outside(name, value, is_path)
        if not isinstance(value, (MappingABC, list, tuple, set, frozenset)):
            return None
        if depth == 0:
            return f"argument {name!r} is nested too deep to check that its paths do not lead outside"
        if isinstance(value, MappingABC):
            items = [(str(key), item, is_path or self._is_path_name(key)) for key, item in value.items()]
            items += [(name, key, False) for key in value if isinstance(key, (str, bytes, os.PathLike))]
        else:
            items = [(name, item, is_path) for item in value]
        for inner_name, item, is_inner_path in items:
            reason = self._refusal(inner_name, item, is_inner_path, depth - 1)
            if reason is not None:
                return reason
        return None

    def _is_path_name(self, name: Any) -> bool:
        if name in self._names:
            return True
        if not self._auto_detect or not isinstance(name, str):
            return False
        words = name.lower().replace("-", "_").split("_")
        return words[0] in PATH_WORDS or words[-1] in PATH_WORDS

    def _outside(self, name: str, value: Any, is_path: bool) -> Optional[str]:
        text = os.fsdecode(value)
        if text.startswith("file://"):
            text, is_path = text[len("file://") :], True
        if not is_path and not isinstance(value, os.PathLike) and not (self._auto_detect and _looks_like_path(text)):
            return None
        try:
            resolved = Path(os.path.realpath(os.path.expanduser(text)))
        except (ValueError, OSError, RuntimeError):
            resolved = None
        if resolved is not None and any(resolved == root or root in resolved.parents for root in self.roots):
            return None
        shown = text if len(text) <= 200 else text[:197] + "..."
        return f"argument {name!r}: the path {shown!r} leads outside the allowed roots"


def _looks_like_path(text: str) -> bool:
    if "\n" in text or len(text) > MAX_PATH_BYTES:
        return False
    return text.startswith(("/", "~", "./", "../")) or text == ".." or "/../" in text or text.endswith("/..")
