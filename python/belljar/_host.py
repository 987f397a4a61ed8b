# SPDX-License-Identifier: Apache-2.0
"""What this host can enforce, and an environment without secrets for programs outside of jars."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, Mapping, Optional

from . import _engine, _wire
from ._errors import EngineError
from ._policy import PolicyLike, normal_keys
from ._request import check_frame, json_frame
from ._result import failure

# The variables that the preset `agent` passes on; `*` stands for any ending.
SAFE_NAMES = (
    "PATH HOME USER LOGNAME LANG LANGUAGE LC_* TERM COLORTERM NO_COLOR SHELL TMPDIR TZ GIT_AUTHOR_* GIT_COMMITTER_*"
).split()


def _is_listed(name: str, patterns: Iterable[str]) -> bool:
    return any(name == item or (item.endswith("*") and name.startswith(item[:-1])) for item in patterns)


def safe_env(pass_env: Iterable[str] = (), extra: Optional[Mapping[str, str]] = None) -> Dict[str, str]:
    """Of the environment, the variables that a jar would get and those named in pass_env (`*` at the end is allowed), if
    they are set; then extra. Nothing else: no keys, no tokens."""
    if isinstance(pass_env, str):
        raise TypeError("pass_env must be a list of names, not one string")
    patterns = [*SAFE_NAMES, *pass_env]
    env = {name: value for name, value in os.environ.items() if _is_listed(name, patterns)}
    env.update(extra or {})
    return env


def _answer_to(frame: bytes) -> Dict[str, Any]:
    channel = _engine.open_channel(frame)
    try:
        kind, payload, _ = channel.answer()
    finally:
        channel.close()
    answer = _wire.parse(payload)
    if kind == _wire.FAILED:
        raise failure(answer.get("error"), answer.get("missing"))
    if kind != _wire.ANSWER:
        raise EngineError(f"the engine answered with a frame of type {kind}, which does not answer a question")
    assert isinstance(answer, dict)
    return answer


def capabilities() -> Dict[str, Any]:
    """What this host can enforce, and how to get more: `belljar doctor --json`."""
    return _answer_to(json_frame(_wire.ASK, {"what": "capabilities"}))


def check_keys(policy: PolicyLike, keys: Mapping[str, Any]) -> None:
    """PolicyError, with the engine's own words, if no jar can have this policy and these keys."""
    _answer_to(check_frame(policy, normal_keys({**keys})))
