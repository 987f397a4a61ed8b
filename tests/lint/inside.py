# SPDX-License-Identifier: Apache-2.0
"""Between clone and exec: no allocation, no stdio, no locks. The symbols that the objects need say whether it is so.

The processes of a jar are copies of the engine, made while other threads of a program may hold any lock, and on the landlock rung
they watch over the command with all memory of the engine. What they run may call the functions that are named here, and no other.
"""

from __future__ import annotations

import pathlib
import subprocess

from lint.check import WARNING

# What runs between clone and exec, or in a process of a jar that stays. One file or pattern each; a pattern that meets nothing fails.
INSIDE = (
    "src/base/descriptors.c",
    "src/base/directory.c",
    "src/base/paths.c",
    "src/base/processor.c",
    "src/base/sys/*.c",
    "src/base/reap/reap_*.c",
    "src/engine/jar/jar_start.c",
    "src/inside/*.c",
    "src/inside/answer/*.c",
    "src/inside/task/*.c",
    "src/inside/build/*.c",
    "src/inside/init/*.c",
    "src/inside/call/*.c",
)
# One system call each.
CALLS = """
    _exit access bind chdir chmod chroot clock_gettime clone close connect dup2 dup3 fchdir fchmod fchmodat fchownat fcntl flock fstat
    fstatat fstatfs fstatvfs ftruncate geteuid getpid getppid getrlimit getrusage inotify_add_watch inotify_init1 ioctl kill listen lseek
    lstat memfd_create mkdir mkdirat mmap mount munmap open openat poll ppoll prctl pread prlimit process_vm_readv read readlink recv
    recvmsg removexattr renameat sched_getcpu send sendmsg setgroups sethostname setns setresgid setresuid setrlimit setsid setsockopt
    setxattr sigaction sigprocmask sigtimedwait socket socketpair stat statfs syscall time umask unlinkat vfork wait4 waitid waitpid write
"""
# They work on the memory that they are given.
PURE = """
    __errno_location __popcountdi2 __stack_chk_fail atoi htonl htons memchr memcmp memcpy memmove memset ntohs sigaddset sigdelset
    sigemptyset sigfillset strchr strcmp strlen strncmp strrchr strspn strstr strtol strtoull
"""
# What is neither, and why it may be used.
OTHERS = {
    "fork": "these processes have one thread, for which musl's takes no lock",
    "inet_ntop": "musl's formats with snprintf",
    "snprintf": "musl's formats integers and strings on the stack, into the buffer that it is given; the lock of that stream is off",
    "sscanf": "the same, from a string",
    "sysconf": "for the size of a page and of a tick: musl's knows both",
}
# Functions of one file that run in the engine, before the copy is made.
BEFORE = {
    "src/engine/jar/jar_start.c": {"error_set", "strerror"},
    "src/inside/command.c": {"text_append", "text_write_all"},
}


def objects_of(root: pathlib.Path, source: str) -> list[pathlib.Path]:
    """The objects that the release build has of a source file."""
    return sorted((root / "build").glob(f"lib*.a.p/{source.replace('/', '_')}.o"))


def symbols(root: pathlib.Path, objects: list[pathlib.Path]) -> dict[pathlib.Path, tuple[set[str], set[str]]]:
    """For each object the names that it needs, and those that it has for others."""
    found: dict[pathlib.Path, tuple[set[str], set[str]]] = {path: (set(), set()) for path in objects}
    lines = subprocess.run(["nm", "-g", "-A", *map(str, objects)], capture_output=True, text=True, check=True).stdout.splitlines()
    for line in lines:
        path, _, rest = line.partition(":")
        words = rest.split()
        found[pathlib.Path(path)][0 if words[-2] == "U" else 1].add(words[-1])
    return found


def child_symbols(root: pathlib.Path) -> list[str]:
    """What runs between clone and exec calls only what allocates nothing, locks nothing and is no stdio."""
    problems = []
    sources: dict[pathlib.Path, str] = {}
    for pattern in INSIDE:
        matches = sorted(str(path.relative_to(root)) for path in root.glob(pattern))
        if not matches:
            problems.append(f"tests/lint/inside.py: no file is called {pattern}")
        for source in matches:
            made = objects_of(root, source)
            if not made:
                problems.append(f"{source}: the release build has no object of it")
            sources.update(dict.fromkeys(made, source))
    found = symbols(root, list(sources)) if sources else {}
    needed: dict[str, set[str]] = {}
    for path, (wanted, _) in found.items():
        needed.setdefault(sources[path], set()).update(wanted)
    own = set().union(*(given for _, given in found.values()))
    allowed = {*CALLS.split(), *PURE.split(), *OTHERS}
    for source, names in needed.items():
        for name in sorted(names - own - allowed - BEFORE.get(source, set())):
            problems.append(f"{source}: calls {name}(), which tests/lint/inside.py does not allow between clone and exec")
    used = set().union(*needed.values()) if needed else set()
    unused = sorted((allowed | set().union(*BEFORE.values())) - used - {"memcpy", "memset"})
    if needed and not problems:
        # Another compiler may have a function of its own for one of them: no failure.
        problems += [f"{WARNING}tests/lint/inside.py: {name} is allowed and not used" for name in unused]
    return problems
