# SPDX-License-Identifier: Apache-2.0
"""Real work under a layer: what arrives by `belljar apply` is what the same work makes of the directory itself.

Each job runs in a directory twice, at the same path: outside, and then with --cow, followed by an apply. Names, kinds, modes, link texts and contents must be the
same; of files that differ between any two runs (`varies`) only the names and kinds. `after` looks at the result from outside, and must say the same.
"""

from __future__ import annotations

import fnmatch
import os
import shutil
import stat
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Sequence, Tuple

from compat import cases

# Whatever the file systems' and the programs' clocks and chance put in.
DATED = {
    "GIT_AUTHOR_DATE": "2001-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2001-01-01T00:00:00Z",
    "GIT_AUTHOR_NAME": "n", "GIT_AUTHOR_EMAIL": "e", "GIT_COMMITTER_NAME": "n", "GIT_COMMITTER_EMAIL": "e", "SOURCE_DATE_EPOCH": "1000000000",
}  # fmt: skip


@dataclass(frozen=True)
class Job:
    """`before` makes the directory, `script` is the work, `after` looks at it."""

    name: str
    needs: Tuple[str, ...]
    before: str
    script: str
    after: str
    files: Mapping[str, str] = field(default_factory=dict)
    varies: Tuple[str, ...] = ()
    seconds: int = 120


REPOSITORY = (
    "git init -q -b main .; for i in 1 2 3 4 5 6; do mkdir -p d$i; for k in 1 2 3; do echo $i $k > d$i/$k; done; git add -A; git commit -qm c$i; done;"
    "git branch side HEAD~3; git checkout -q side; echo side > side; git add side; git commit -qm side; git checkout -q main"
)
GIT_VARIES = (".git/index", ".git/logs/*", ".git/ORIG_HEAD", ".git/gc.log", ".git/COMMIT_EDITMSG", ".git/objects/*")
GIT_AFTER = "git fsck --strict; git status --short; git log --all --format=%T%s; git stash list --format=%T"

JOBS: Sequence[Job] = (
    Job("git checkout", ("git",), REPOSITORY, "git checkout -q side; git checkout -q -b other main~2; git rm -rq d1; git commit -qm less", GIT_AFTER,
        varies=GIT_VARIES),
    Job("git rebase", ("git",), REPOSITORY, "git checkout -q side; git rebase -q main; git merge-base --is-ancestor main side", GIT_AFTER, varies=GIT_VARIES),
    Job("git stash", ("git",), REPOSITORY,
        "echo changed > d1/1; rm d2/2; git stash -q; echo more > d3/3; git commit -qam more; git stash pop -q; git stash -q; git gc -q --prune=now",
        GIT_AFTER, varies=GIT_VARIES + (".git/packed-refs", ".git/info/*", ".git/refs/*")),
    Job("make, again after a change", ("make", "gcc"), "make -s; sed -i 's/hello/goodbye/' b.c", "make -s", "./x; make -q",
        {"Makefile": "x: a.o b.o\n\tgcc -o x a.o b.o\n%.o: %.c\n\tgcc -c -o $@ $<\n",
         "a.c": "void b(void);\nint main(void) { b(); return 0; }\n", "b.c": "#include <stdio.h>\nvoid b(void) { puts(\"hello\"); }\n"}),
    Job("npm install", ("npm", "node"), "cd lib; npm pack --silent > /dev/null; cd ..; mv lib/lib-1.0.0.tgz .",
        "npm install --silent --offline --no-audit --no-fund ./lib-1.0.0.tgz; node use.js", "node use.js; npm ls --offline",
        {"package.json": "{\"name\": \"x\", \"version\": \"1.0.0\"}\n", "use.js": "console.log(require('lib'))\n",
         "lib/package.json": "{\"name\": \"lib\", \"version\": \"1.0.0\", \"main\": \"i.js\", \"bin\": {\"lib\": \"i.js\"}}\n",
         "lib/i.js": "#!/usr/bin/env node\nmodule.exports = 'from lib'\n"}, seconds=240),
    Job("cargo build", ("cargo",), "cargo init -q --name x --vcs none", "cargo build -q --offline; cargo test -q --offline", "./target/debug/x",
        varies=("target/*",), seconds=300),
    Job("pip install -e", ("python3",), "python3 -m venv --system-site-packages v",
        "v/bin/python -m pip install -q --no-index --no-build-isolation --no-deps -e .; v/bin/python -c 'import pkg; print(pkg.word)'",
        "v/bin/python -c 'import pkg; print(pkg.word)'; v/bin/tool",
        {"setup.py": "from setuptools import setup\nsetup(name='pkg', version='1', py_modules=['pkg'], entry_points={'console_scripts': ['tool=pkg:main']})\n",
         "pkg.py": "word = 'editable'\ndef main(): print(word)\n"}, varies=("*.pyc", "*/RECORD"), seconds=240),
    Job("sqlite", ("sqlite3",), "sqlite3 x.db 'create table t(a); insert into t values(1)'",
        "sqlite3 x.db 'pragma journal_mode=wal; insert into t select a+1 from t; create table u as select * from t; vacuum'",
        "sqlite3 x.db 'pragma integrity_check; select sum(a) from u'", varies=("x.db",)),
    Job("postgres", ("initdb", "pg_ctl", "psql", "user", "account"), "initdb -D data -A trust > /dev/null",
        "mkdir -p /tmp/s; pg_ctl -s -w -D data -o '-p 5498 -k /tmp/s -h \"\"' -l log start;"
        "psql -q -h /tmp/s -p 5498 -d postgres -c 'create table t(a int); insert into t select generate_series(1, 10000); checkpoint';"
        "pg_ctl -s -w -D data -m fast stop",
        "d=$(mktemp -d); pg_ctl -s -w -D data -o \"-p 5498 -k $d -h ''\" -l log start; psql -h $d -p 5498 -d postgres -Atc 'select sum(a) from t';"
        "pg_ctl -s -w -D data -m fast stop; rm -r $d", varies=("data/*", "log"), seconds=240),
)  # fmt: skip


def look(top: Path, varies: Sequence[str]) -> Dict[str, Tuple[Any, ...]]:
    found: Dict[str, Tuple[Any, ...]] = {}
    for directory, names, files in os.walk(top):
        for name in [*names, *files]:
            path = Path(directory) / name
            below = str(path.relative_to(top))
            facts = path.lstat()
            kind, mode = stat.S_IFMT(facts.st_mode), stat.S_IMODE(facts.st_mode)
            if any(fnmatch.fnmatch(below, pattern) for pattern in varies):
                # What has a number or a hash in its name, and how large it is, differs between two runs.
                continue
            if kind == stat.S_IFLNK:
                found[below] = (kind, os.readlink(path))
            elif kind == stat.S_IFREG:
                found[below] = (kind, mode, facts.st_nlink > 1, path.read_bytes())
            else:
                found[below] = (kind, mode)
    return found


Run = Callable[..., Tuple[int, str]]


def work(person: Any, job: Job, folder: Path, belljar: str, run: Run, is_inside: bool) -> Tuple[Optional[Tuple[Any, str]], str]:
    """What the directory is then, and what `after` says of it; or None, and what went wrong."""
    folder.mkdir()
    for name, text in job.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    subprocess.run(["chown", "-R", f"{person.uid}:{person.gid}", str(folder)], check=True)
    shell = ["/bin/sh", "-eu", "-c"]
    given = [word for name, value in DATED.items() for word in ("--env", f"{name}={value}")]
    inside = [belljar, "run", "-q", "--cow", "--fds", "4096", *given, "--", *shell, job.script]
    steps = [[*shell, job.before], inside if is_inside else [*shell, job.script]]
    if is_inside:
        steps.append([belljar, "apply", "-q", "--allow-risky", "."])
    for step in steps:
        status, text = run(person, step, folder, job.seconds)
        if status:
            return None, f"{' '.join(step)[:200]}: status {status}\n{text[-3000:]}"
    tree = look(folder, job.varies)
    status, text = run(person, [*shell, job.after], folder, job.seconds)
    return ((tree, text), "") if status == 0 else (None, f"after: status {status}\n{text[-3000:]}")


def differences(one: Dict[str, Tuple[Any, ...]], other: Dict[str, Tuple[Any, ...]]) -> str:
    wrong = [path for path in sorted({*one, *other}) if one.get(path) != other.get(path)]
    return "\n".join(f"{path}: outside {str(one.get(path))[:200]}, applied {str(other.get(path))[:200]}" for path in wrong[:20])


def run_all(person: Any, base: Path, belljar: str, run: Run, filters: Sequence[str]) -> Iterator[Tuple[str, str, str]]:
    """("ok" | "FAIL" | "skip", name, detail) of each."""
    person = type(person)(person.name, person.uid, person.gid, {**person.env, **DATED})
    for job in JOBS:
        name = f"workspace: {job.name}"
        if filters and not any(word in name for word in filters):
            continue
        lacking = cases.lacking(cases.Case(job.name, job.needs, ""), person.env, person.uid)
        if lacking:
            yield "skip", name, f"not installed or not possible here: {lacking}"
            continue
        place = Path(tempfile.mkdtemp(prefix="work-", dir=base))
        os.chown(place, person.uid, person.gid)
        person.env["XDG_STATE_HOME"] = str(place / "state")
        try:
            outside, why = work(person, job, place / "project", belljar, run, False)
            if outside is None:
                yield "skip", name, f"does not work outside either: {why}"
                continue
            shutil.rmtree(place / "project")
            applied, why = work(person, job, place / "project", belljar, run, True)
            if applied is not None:
                why = differences(outside[0], applied[0])
                if not why and outside[1] != applied[1]:
                    why = f"outside it says:\n{outside[1][-1500:]}\napplied:\n{applied[1][-1500:]}"
            yield ("FAIL", name, why) if why else ("ok", name, "")
        finally:
            shutil.rmtree(place, ignore_errors=True)
