# SPDX-License-Identifier: Apache-2.0
"""What a jar was refused, why, and the smallest change that would allow it."""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, List, Optional

from ._errors import public


@public
@dataclasses.dataclass(frozen=True)
class Cure:
    """The smallest change that would allow it: as an option of the command line, and as keys of a policy.

    Nothing is changed by itself. `policy` holds the keys to add: lists are added to those that the policy has.
    """

    flag: str
    policy: Dict[str, Any]


@public
@dataclasses.dataclass(frozen=True)
class Denial:
    """One thing that was refused, `count` times.

    `kind` is file, exec, net, name, syscall, http or limit; `what` the path, host, name, call or limit; `access` what was tried.
    `process` is the name of the first process that tried, None where it is not known. `cure` is None where no change is
    proposed; `warning` then says why. `certainty` is "seen", or "inferred" where a command could have made it up. `sentence`
    is one sentence for whoever decides what to do next, a model among them.
    """

    kind: str
    what: str
    access: str
    count: int
    process: Optional[str]
    why: str
    cure: Optional[Cure] = None
    certainty: str = "seen"
    warning: Optional[str] = None
    sentence: str = ""

    def to_dict(self) -> Dict[str, Any]:
        """As it stands in the result object."""
        return dataclasses.asdict(self)


def _make_cure(data: Any) -> Optional[Cure]:
    if not isinstance(data, dict):
        return None
    policy = data.get("policy")
    return Cure(str(data.get("flag", "")), policy if isinstance(policy, dict) else {})


def make_denials(data: Any) -> List[Denial]:
    """From the engine's answer; what is no entry is left out."""
    names = [field.name for field in dataclasses.fields(Denial)]
    made = []
    for entry in data if isinstance(data, list) else []:
        if not isinstance(entry, dict):
            continue
        known = {name: entry[name] for name in names if name in entry}
        known["cure"] = _make_cure(entry.get("cure"))
        try:
            made.append(Denial(**known))
        except TypeError:
            continue
    return made
