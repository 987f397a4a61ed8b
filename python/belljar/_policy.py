# SPDX-License-Identifier: Apache-2.0
"""Policy: a policy as data. What the keys mean, and which values are good, only the engine knows."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple, Union

from ._errors import PolicyError, public

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._keys import PolicyKeys

PolicyLike = Union["Policy", "Mapping[str, Any]", str, "os.PathLike[str]", None]

# A string, or a comment, or a comma before a closing bracket: whichever comes first in the text.
_JSON_EXTRAS = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/|,(?=(?:\s|//[^\n]*|/\*.*?\*/)*[}\]])', re.DOTALL)


def plain(value: Any) -> Any:
    """JSON for types that have none: paths and bytes become text, mappings objects, sets lists."""
    if isinstance(value, (bytes, os.PathLike)):
        return os.fsdecode(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"a policy cannot hold a value of type {type(value).__name__}: {value!r}")


_encoder = json.JSONEncoder(allow_nan=False, separators=(",", ":"), default=plain)


def encode(value: Any) -> str:
    """JSON in ASCII; stray bytes of file names travel as escaped lone surrogates."""
    try:
        return _encoder.encode(value)
    except (TypeError, ValueError) as error:
        raise PolicyError(str(error)) from None


# Keys with a list of texts or paths.
_LISTS = frozenset(("ro", "rw", "hide", "cow_dirs", "tmpfs", "allow_net", "secrets", "publish", "pass_env", "redact", "optional"))
# Keywords of subprocess that are none here, and what to do instead.
_OF_SUBPROCESS = {
    "bufsize": "leave it out",
    "capture_output": "leave it out: what a command writes is in its result",
    "close_fds": "leave it out: a jar has only 0, 1 and 2",
    "encoding": "leave it out: text is UTF-8, and text=False gives bytes",
    "executable": "name the program as the first of args",
    "pass_fds": "a jar has only 0, 1 and 2; use stdin=",
    "preexec_fn": "nothing of yours runs in the jar before the command does",
    "start_new_session": "leave it out: a jar has a session of its own",
    "stderr": "leave it out: it is in the result, or a stream of spawn(); stderr_to_stdout=True joins it to stdout",
    "stdout": "leave it out: it is in the result, or a stream of spawn(); on_output= gets it as it comes",
    "universal_newlines": "use text=True or text=False",
}


def normal_keys(keys: Dict[str, Any]) -> Dict[str, Any]:
    """Keywords as the engine takes them, changed in place: cwd= is another name for workdir=, one text or path stands for a list of
    one, and env=None for no env. PolicyError says what to write in place of a keyword of subprocess."""
    if "cwd" in keys:
        if "workdir" in keys:
            raise TypeError("cwd and workdir are the same key; give one of them")
        keys["workdir"] = keys.pop("cwd")
    if "env" in keys and keys["env"] is None:
        del keys["env"]
    for name, value in keys.items():
        if name in _LISTS and isinstance(value, (str, bytes, os.PathLike)):
            keys[name] = [value]
        elif name == "publish" and isinstance(value, int) and not isinstance(value, bool):
            keys[name] = [value]
        elif name in _OF_SUBPROCESS:
            raise PolicyError(f"unknown key {name!r}; {_OF_SUBPROCESS[name]}")
        elif isinstance(value, (int, float)) and value < 0:
            raise PolicyError(f"{name}={value!r}: it must not be negative; None means no limit")
    return keys


@public
class Policy:
    """What is allowed, as a frozen value: the object of a policy file.

    `Policy(timeout=5, ro=["/data"])`, `Policy.load("policy.json")`, `Policy.preset("strict")`. As in a file, a list replaces
    that of the preset it extends; keywords of run() add to it. Relative paths start at the current directory when the policy
    is used, those of a loaded one at its file's directory. The engine checks keys and values when the policy is made:
    PolicyError says what is wrong.
    """

    __slots__ = ("_base", "_text")
    _base: Optional[str]
    _text: str

    def __init__(self, **keys: Unpack[PolicyKeys]) -> None:
        object.__setattr__(self, "_text", encode(normal_keys({**keys})))
        object.__setattr__(self, "_base", None)
        check_now(self, {})

    @classmethod
    def _make(cls, text: str, base: Optional[str]) -> Policy:
        policy = cls.__new__(cls)
        object.__setattr__(policy, "_text", text)
        object.__setattr__(policy, "_base", base)
        return policy

    @classmethod
    def load(cls, path: Union[str, os.PathLike[str]]) -> Policy:
        """Read and check a policy file; PolicyError names line and column. Later changes of the file have no effect."""
        name = os.path.abspath(os.path.expanduser(os.fspath(path)))
        check(name)
        try:
            with open(name, encoding="utf-8") as file:
                text = _JSON_EXTRAS.sub(lambda match: match.group(1) or " ", file.read())
            keys = json.loads(text)
        except (OSError, ValueError) as error:
            raise PolicyError(f"cannot read the policy '{name}': {error}") from error
        return cls._make(encode(keys), os.path.dirname(name))

    @classmethod
    def preset(cls, name: str) -> Policy:
        """One of the built-in policies: agent, readonly, strict."""
        if not isinstance(name, str) or "/" in name or name.endswith(".json"):
            raise PolicyError(f"{name!r} is not the name of a preset")
        check(name)
        return cls(extends=name)

    def replace(self, **keys: Unpack[PolicyKeys]) -> Policy:
        """A copy with some keys changed."""
        made = self._make(encode({**self.to_dict(), **normal_keys({**keys})}), self._base)
        check_now(made, {})
        return made

    def to_dict(self) -> Dict[str, Any]:
        """The keys that are set, as plain data."""
        keys = json.loads(self._text)
        assert isinstance(keys, dict)
        return keys

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Policy cannot be changed; use replace()")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a Policy cannot be changed; use replace()")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Policy):
            return NotImplemented
        return self._base == other._base and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self._base, json.dumps(self.to_dict(), sort_keys=True)))

    def __repr__(self) -> str:
        return f"Policy({', '.join(f'{key}={value!r}' for key, value in self.to_dict().items())})"

    def __reduce__(self) -> Tuple[Any, ...]:
        return (Policy._make, (self._text, self._base))


def check_now(policy: PolicyLike, keys: Mapping[str, Any]) -> None:
    """PolicyError for what no jar could have. Where there can be no jars, in a jar and on other systems than Linux, modules that
    make policies and tools can still be imported: nothing is checked."""
    inside = sys.modules.get((__package__ or "belljar") + "._inside")
    if (inside is not None and inside.is_inside) or not sys.platform.startswith("linux"):
        return
    from ._host import check_keys

    check_keys(policy, keys)


def check(name: str) -> None:
    """Have the engine's program look at a policy file or preset."""
    from ._program import ask_program

    status, words = ask_program(["policy", "check", "--color=never", name])
    if status != 0:
        message, _, hint = words.strip().partition("\n")
        hint = hint.strip()
        raise PolicyError(message.replace("belljar: ", "", 1) or f"the policy '{name}' is not valid").with_(
            hint=hint[len("hint: ") :] if hint.startswith("hint: ") else hint or None
        )


def wire_form(policy: PolicyLike, cwd: Optional[str]) -> Tuple[str, Optional[str]]:
    """A policy as the members `policy` (JSON; empty: not given) and `base` of a request."""
    if policy is None:
        return "", None
    if isinstance(policy, Policy):
        return policy._text, policy._base or cwd
    if isinstance(policy, str):
        return encode(policy), cwd
    if isinstance(policy, os.PathLike):
        # Always a file: without a slash it would be taken for a preset.
        return encode(os.path.abspath(os.fspath(policy))), cwd
    if isinstance(policy, Mapping):
        return encode(dict(policy)), cwd
    raise TypeError(f"policy must be a Policy, a mapping, the name of a preset or a path, not {type(policy).__name__}")
