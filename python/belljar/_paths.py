# SPDX-License-Identifier: Apache-2.0
"""Where a call imports from: which directories of the caller's sys.path it can use, and which must be made visible for that.

Nothing that a jar could write is ever imported by a later call. So a directory that the policy makes writable is no place to
import from, unless `import_paths` names it, and neither is a writable directory further down in one that is. The interpreter
and what belongs to it are read-only wherever they are. A directory that holds more than modules - a home, /tmp, / - is not
made visible because a script happens to lie in it: functions from there are sent by value.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

from ._errors import PolicyError
from ._policy import Policy, PolicyLike, encode

PathLike = Union[str, "os.PathLike[str]"]

# The operating system, which a jar sees anyway.
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt")
# Not made visible for a module's sake, nor anything that contains them; what is below may be.
UNFIT = ("/tmp", "/var/tmp", "/home", "/root", "/run", "/dev", "/proc", "/sys", "/etc", "/var", "/srv", "/mnt", "/media", "/boot")
# What an environment, or an installation of Python, has at its top; the engine has the same names (survey/survey_names.c).
PREFIX_NAMES = ("bin", "include", "lib", "lib64", "man", "pyvenv.cfg", "share")
CONDA_NAMES = (
    *("aarch64-conda-linux-gnu", "compiler_compat", "conda-meta", "condabin", "etc", "libexec", "sbin", "ssl"),
    "x86_64-conda-linux-gnu",
)


# What every jar can write, wherever its policy does not say otherwise; runs in a kept jar share it.
PRIVATE = ("/tmp", "/var/tmp", "/dev/shm", "/run")


class Places(NamedTuple):
    """What an interpreter for calls needs."""

    paths: Tuple[str, ...]  # its sys.path
    ro: Tuple[str, ...]  # to be made visible, read-only
    writable: Tuple[str, ...]  # directories that the jar can write: nothing there is imported


def is_within(path: str, folder: str) -> bool:
    """Whether it is the folder or below it. Both without links."""
    return path == folder or folder == "/" or path.startswith(folder + "/")


def _is_file(name: str) -> bool:
    """Whether the name of a policy is that of a file, not of a preset."""
    return "/" in name or name.endswith(".json")


def _pattern_prefix(text: str) -> Optional[str]:
    """The directory in which a pattern begins; None: it is no pattern."""
    plain = re.sub(r"\\[*?\[\]\\]", "..", text)
    found = re.search(r"[*?]|\[[!^]?\]?[^]/]*\]", plain)
    return None if found is None else text[: text.rfind("/", 0, found.start()) + 1]


def _anchored_path(path: Any, base: str) -> Any:
    if isinstance(path, Mapping):
        return {**path, "path": _anchored_path(path.get("path", ""), base)}
    if isinstance(path, (str, bytes, os.PathLike)):
        text = os.fsdecode(path)
        if _pattern_prefix(text) is not None:
            return text  # which begins in the work directory
        return base if text == "." else text if text.startswith(("/", "~")) else os.path.join(base, text)
    return path  # which the engine refuses


def anchored(keys: Mapping[str, Any], base: Optional[str]) -> Dict[str, Any]:
    """The keys with relative paths below a directory: what they mean is fixed now, wherever the program goes later."""
    if base is None:
        return dict(keys)
    fixed = {
        name: [_anchored_path(entry, base) for entry in keys[name]]
        for name in ("ro", "rw", "hide", "tmpfs")
        if isinstance(keys.get(name), (list, tuple, set, frozenset))
    }
    if keys.get("workdir") is not None:
        fixed["workdir"] = _anchored_path(keys["workdir"], base)
    return {**keys, **fixed}


def fixed_policy(policy: PolicyLike, base: Optional[str]) -> PolicyLike:
    """The same policy, whose relative paths start at this directory from now on."""
    if policy is None or base is None:
        return policy
    if isinstance(policy, Policy):
        return policy if policy._base is not None else Policy._make(policy._text, base)
    if isinstance(policy, Mapping):
        return Policy._make(encode(dict(policy)), base)
    if isinstance(policy, str) and not _is_file(policy):
        return policy
    return os.path.join(base, os.path.expanduser(policy))


def loaded_policy(policy: PolicyLike, base: Optional[str]) -> PolicyLike:
    """The same, with what a policy file says now."""
    fixed = fixed_policy(policy, base)
    return Policy.load(fixed) if isinstance(fixed, str) and _is_file(fixed) else fixed


def keys_of(policy: PolicyLike) -> Dict[str, Any]:
    """The keys of a policy, with those of the preset or file that it extends. A default is missing or None."""
    if policy is None or policy == "agent":
        return {}
    if isinstance(policy, Policy):
        keys, base = policy.to_dict(), policy._base
    elif isinstance(policy, Mapping):
        keys, base = dict(policy), None
    else:
        return _shown(os.fspath(policy) if isinstance(policy, str) else os.path.abspath(os.fspath(policy)))
    extends = keys.get("extends")
    if isinstance(extends, str) and base is not None and _is_file(extends):
        extends = os.path.join(base, extends)
    keys = anchored(keys, base)
    return {**keys_of(extends), **keys} if isinstance(extends, str) else keys


def _shown(name: str) -> Dict[str, Any]:
    from ._policy import check
    from ._program import ask_program

    status, words = ask_program(["policy", "show", name], stream=1)
    if status != 0:
        check(name)
        raise PolicyError(f"the engine cannot show the policy '{name}'")
    keys = json.loads(words)
    assert isinstance(keys, dict)
    return keys


def _split_dest(text: str) -> Tuple[str, str]:
    """PATH or PATH:DEST, where \\: is a colon."""
    parts = text.replace("\\:", "\0").split(":")
    path = parts[0].replace("\0", ":")
    return path, parts[1].replace("\0", ":") if len(parts) > 1 else path


def _inside_places(items: Any, workdir: Optional[str]) -> List[str]:
    """Where entries of ro or rw are, as seen inside. Of a pattern it is the directory in which it begins: without a workdir to begin
    in, patterns are left out."""
    found = []
    for item in items if isinstance(items, (list, tuple)) else ():
        if isinstance(item, Mapping):
            path = os.fsdecode(item.get("path", ""))
            dest = item.get("dest") or path
        else:
            path, dest = _split_dest(os.fsdecode(item))
        prefix = _pattern_prefix(path)
        if prefix is not None and workdir is None:
            continue
        if prefix is not None:
            dest = os.path.join(os.path.expanduser(str(workdir)), os.path.expanduser(prefix))
        found.append(os.path.realpath(os.path.expanduser(os.fsdecode(dest))))
    return found


class Rights:
    """Which places of a jar can be written, by the policy and keys it is made from."""

    def __init__(self, policy_keys: Mapping[str, Any], keys: Mapping[str, Any], workdir: Optional[str]) -> None:
        # What a pattern of `ro` matches is not known here, so nothing counts as read-only because of it.
        self._readonly = _inside_places(policy_keys.get("ro"), None) + _inside_places(keys.get("ro"), None)
        start = workdir or os.getcwd()
        self._writable = _inside_places(policy_keys.get("rw"), start) + _inside_places(keys.get("rw"), start)
        if workdir is not None:
            mode = keys.get("workdir_mode", policy_keys.get("workdir_mode"))
            (self._readonly if mode == "ro" else self._writable).append(os.path.realpath(os.path.expanduser(workdir)))

    @property
    def writable(self) -> List[str]:
        """The places themselves."""
        return list(self._writable)

    def may_write(self, path: str) -> bool:
        """The most specific of the places that hold the path decides."""
        longest, found = -1, False
        for places, answer in ((self._readonly, False), (self._writable, True)):
            for place in places:
                if is_within(path, place) and len(place) > longest:
                    longest, found = len(place), answer
        return found


def prefixes(python: str) -> List[str]:
    """Where the interpreter and what belongs to it are."""
    if python == sys.executable:
        found = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix]
    else:
        found = [os.path.dirname(os.path.dirname(os.path.abspath(name))) for name in (python, os.path.realpath(python))]
    return list(dict.fromkeys(path for path in map(os.path.abspath, found) if path not in ("/", "/usr")))


def parts(prefix: str) -> List[str]:
    """What of a prefix belongs to the interpreter: a project may lie around it, with secrets (`python -m venv .`). All of it where
    nothing there has the usual names."""
    names = (*PREFIX_NAMES, *CONDA_NAMES) if os.path.isdir(os.path.join(prefix, "conda-meta")) else PREFIX_NAMES
    found = [os.path.join(prefix, name) for name in names]
    return [path for path in found if os.path.lexists(path)] or [prefix]


def is_fit(path: str) -> bool:
    """Whether a directory may be made visible because modules are in it."""
    real = os.path.realpath(path)
    home = os.path.realpath(os.path.expanduser("~"))
    return not any(is_within(place, real) for place in (*UNFIT, home))


def caller_paths() -> Tuple[str, ...]:
    """The caller's sys.path without the current directory."""
    return tuple(os.path.abspath(path) for path in sys.path if path and isinstance(path, str))


def plan(python: str, named: Iterable[PathLike], policy: PolicyLike, keys: Mapping[str, Any], paths: Sequence[str]) -> Places:
    """The places for jars of this policy."""
    policy_keys = keys_of(policy)
    rights = Rights(policy_keys, keys, keys["workdir"] if "workdir" in keys else policy_keys.get("workdir"))
    wanted = [os.path.abspath(os.path.expanduser(os.fsdecode(path))) for path in named]
    ro: List[str] = []
    for home in prefixes(python):
        real = os.path.realpath(home)
        if not is_within(real, "/usr"):
            # In a place that is writable all of it must be read-only; there is nothing to hide there.
            ro += [home] if rights.may_write(real) else parts(home)
    own = [os.path.realpath(path) for path in ro]
    found: List[str] = []
    for path in dict.fromkeys([*(path for path in wanted if path not in paths), *paths]):
        real = os.path.realpath(path)
        is_known = any(is_within(real, place) for place in (*SYSTEM, *own))
        if not os.path.exists(path):
            continue
        if not is_known and path not in wanted and (rights.may_write(real) or not is_fit(path)):
            continue
        found.append(path)
        if not is_known and not rights.may_write(real):
            ro.append(path)
    package = os.path.dirname(os.path.abspath(__file__))
    if not any(is_within(package, os.path.realpath(place)) for place in (*SYSTEM, *ro)):
        ro.append(package)
    writable = [place for place in rights.writable if not any(is_within(os.path.realpath(path), place) for path in wanted)]
    return Places(tuple(found), tuple(dict.fromkeys(ro)), tuple(writable))


def ro_entries(places: Places) -> List[Dict[str, Any]]:
    """For the policy key."""
    return [{"path": path, "optional": True} for path in places.ro]
