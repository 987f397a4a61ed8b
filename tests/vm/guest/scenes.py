# SPDX-License-Identifier: Apache-2.0
"""What runs in the virtual machine: as whom, in which cgroup, on what host, and which modules."""

from __future__ import annotations

import dataclasses

ROOT_CGROUP = "system.slice/tests.service"
# As systemd lays it out: the manager of a user's units owns the tree below it, a login's own scope is root's.
USER_MANAGER = "user.slice/user-1000.slice/user@1000.service"
USER_CGROUP = f"{USER_MANAGER}/app.slice/run-test.scope"
LOGIN_CGROUP = "user.slice/user-1000.slice/session-1.scope"
# A service with Delegate=yes whose main process went one down: its own cgroup is its user's, what is above it is not.
SERVICE = "system.slice/delegated.service"
SERVICE_CGROUP = f"{SERVICE}/main"

# A module, and after a colon the tests of it that show something here. Two modules run at a time, so a long one is halved.
LIMITS = (
    "integration/test_limits:OnBest",
    "vm/test_back_ends",
    "integration/test_limits_sweep",
    "integration/test_usage:OnNamespace.test_memory,OnNamespace.test_processes,OnNamespace.test_cpu_time",
)
IN_NAMESPACES = (
    "integration/test_doctor:Proof.test_nothing,Proof.test_the_table,Doctor",
    "integration/test_end_of_run:OnNamespace",
    "integration/test_rungs",
    "integration/test_paths:OnNamespace",
    "adversarial/test_processes:OnNamespace",
    "adversarial/test_path_calls:OnNamespace",
    "adversarial/test_kernel:OnNamespace",
    "adversarial/test_services:OnNamespace",
    "adversarial/test_older_landlock:OnNamespace",
)
# What root's scene has shown of this kernel needs no second showing; these depend on who asks.
AS_USER = (
    "integration/test_doctor:Proof.test_nothing,Proof.test_the_table",
    "integration/test_rungs",
    "integration/test_paths:OnNamespace",
    "adversarial/test_processes:OnNamespace",
    "adversarial/test_path_calls:OnNamespace",
    "adversarial/test_round2_g_sockets",
)
# The network of jars: nf_tables and TPROXY of this kernel lead connections to a gate. What opens thousands of connections is left
# out: an emulated processor does not get them through within a gate's own time limits.
GATE = (
    "integration/test_gate",
    "adversarial/test_gate_attacks:WaysToSend,Outside,NoProcess,Neighbours",
    "integration/test_publish",
    "adversarial/test_publish_attacks:FromInside,Moments",
    "integration/test_inspect",
)
# The same programs for everybody, once.
ABOVE_GATE = (
    "integration/test_ask",
    "adversarial/test_ask_attacks",
    "adversarial/test_hostile_gate:FirstBytes,LyingNames,OtherWays",
    "integration/test_inspect_http2",
    "integration/test_secrets",
    "integration/test_gate_clients",
)
# Overlays; what a filter that asks can tell; roots that are made once.
FILES = (
    "integration/test_workspace",
    "integration/test_apply",
    "integration/test_trace:OnNamespace,Net",
    "adversarial/test_trace_attacks:OnNamespace",
    "integration/test_ledger",
    "adversarial/test_refused_calls:OnNamespace",
    "integration/test_why:WithMounts,Proof",
    "adversarial/test_skeletons",
)
KEPT_BY_ENGINE = (
    "adversarial/test_sessions:OnNamespace,AgainstTheNextRun",
    "integration/test_engine_ready",
    "integration/test_learn",
    "integration/test_mcp_server",
)
RESIDUE = "integration/test_residue:OnNamespace"
# Jars that stay: there each run has a cgroup below the jar's.
KEPT = "integration/test_engine_jar:KeptJarsOnNamespace"
# The host's want of memory, once with a cgroup that tells and once without.
HOST_MEMORY = "vm/test_host_memory"
WITHOUT_NAMESPACES = (
    "integration/test_doctor:Proof.test_nothing,Proof.test_the_table",
    "integration/test_limits:MemoryOnLandlock,DiskOnLandlock",
    "integration/test_limits:CpuTimeOnLandlock,PidsOnLandlock,PerProcessOnLandlock,NoLimitOnLandlock",
    "integration/test_rungs",
    "integration/test_end_of_run:OnLandlock",
    "adversarial/test_processes:OnLandlock",
    "adversarial/test_path_calls:OnLandlock",
    "adversarial/test_kernel:OnLandlock",
    "adversarial/test_services:OnLandlock",
    "adversarial/test_older_landlock:OnLandlock",
    "integration/test_residue:OnLandlock",
    "integration/test_gate:WhereThereIsNone",
    "integration/test_publish:OnLandlock",
    "integration/test_workspace:Copies",
    "integration/test_workspace_bounds:Copies",
    "integration/test_ledger:Elsewhere",
    "integration/test_trace:OnLandlock",
    "integration/test_why:WithLandlock",
    "adversarial/test_trace_attacks:OnLandlock",
    "adversarial/test_refused_calls:OnLandlock",
)


@dataclasses.dataclass(frozen=True)
class Scene:
    """`expected` is what `enforced` must say of a run with every limit; `sysctl` is set for the scene and then undone."""

    name: str
    uid: int
    cgroup: str
    modules: tuple[str, ...]
    expected: tuple[tuple[str, str], ...]
    sysctl: tuple[tuple[str, str], ...] = ()


def held_by(rung: str, memory: str, pids: str, cpu_time: str) -> tuple[tuple[str, str], ...]:
    """Shorter to read."""
    return (("rung", rung), ("memory", memory), ("pids", pids), ("cpu_time", cpu_time))


CGROUP2 = ("cgroup2", "cgroup2", "cgroup2")
METER = ("meter", "rlimit", "meter")
METERED = ("meter", "meter", "meter")

SCENES = (
    Scene(
        "root",
        0,
        ROOT_CGROUP,
        (*LIMITS, *IN_NAMESPACES, RESIDUE, HOST_MEMORY, *FILES, *KEPT_BY_ENGINE, *GATE, *ABOVE_GATE),
        held_by("namespace", *CGROUP2),
    ),
    Scene("delegated", 1000, USER_CGROUP, (*LIMITS, *AS_USER, RESIDUE, KEPT, "vm/test_no_attributes", *FILES, *GATE), held_by("namespace", *CGROUP2)),
    Scene(
        "undelegated",
        1000,
        LOGIN_CGROUP,
        (
            "integration/test_limits:MemoryOnMeter,DiskOnMeter",
            "integration/test_limits:CpuTimeOnMeter,PidsOnMeter,PerProcessOnMeter,NoLimitOnMeter,TogetherOnMeter",
            "vm/test_back_ends",
            HOST_MEMORY,
        ),
        held_by("namespace", *METER),
    ),
    Scene("service", 1000, SERVICE_CGROUP, ("vm/test_back_ends", "vm/test_service"), held_by("namespace", *METER)),
    Scene(
        "no-namespaces",
        1000,
        USER_CGROUP,
        ("vm/test_back_ends", *WITHOUT_NAMESPACES),
        held_by("landlock", *CGROUP2),
        (("user/max_user_namespaces", "0"),),
    ),
    Scene(
        "no-user-namespaces",
        1000,
        LOGIN_CGROUP,
        ("vm/test_back_ends", "integration/test_rungs", "integration/test_trace:OnLandlock"),
        held_by("landlock", *METERED),
        (("kernel/unprivileged_userns_clone", "0"), ("kernel/yama/ptrace_scope", "1")),
    ),
    Scene("hidden-memory", 1000, LOGIN_CGROUP, ("vm/test_yama",), held_by("namespace", *METER), (("kernel/yama/ptrace_scope", "2"),)),
)
