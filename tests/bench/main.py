# SPDX-License-Identifier: Apache-2.0
"""The command line of ./dev bench: measure, print, draw, compare.

All measures go to docs/bench, for they are what the documentation points at; a choice of them, or --quick, to build/bench.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, List

from bench import compare, machine, report, svg
from bench.context import BUILD, ROOT, Bench
from bench.measures import MEASURES
from bench.table import Table

DOCUMENT_VERSION = 1
DOCS = ROOT / "docs" / "bench"
BASELINE = DOCS / "baseline.json"
DEFAULT_ROUNDS = 200


def parse(arguments: List[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="./dev bench", description="measure Belljar beside everything else, in one run")
    parser.add_argument("measures", metavar="MEASURE", nargs="*", help=f"all, or some of: {' '.join(MEASURES)}")
    parser.add_argument("--rounds", type=int, default=DEFAULT_ROUNDS, help="values of the fastest measures; others have fewer")
    parser.add_argument("--quick", action="store_true", help="see that everything works; the numbers say nothing")
    parser.add_argument("--json", metavar="FILE", help="write the numbers there too")
    parser.add_argument("--out", metavar="DIR", help="where pictures, tables and numbers go")
    parser.add_argument("--from", metavar="FILE", dest="stored", help="measure nothing: show and draw what is stored there")
    parser.add_argument("--compare", metavar="FILE", nargs="?", const=str(BASELINE), help="print the differences from a run")
    parser.add_argument("--store-baseline", action="store_true", help="what was measured is what is compared with later")
    parser.add_argument("--verbose", action="store_true", help="print the command lines")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.measures if name not in MEASURES]
    if unknown:
        parser.error(f"no measure is called '{unknown[0]}'; there are: {' '.join(MEASURES)}")
    if options.rounds < 1:
        parser.error("--rounds is a positive number")
    if options.store_baseline and (options.quick or options.measures):
        parser.error("a baseline is of all measures, and not --quick")
    if options.compare and not Path(options.compare).is_file():
        parser.error(f"there is no {options.compare} to compare with; --store-baseline makes one")
    return options


def take(options: argparse.Namespace) -> Dict[str, Any]:
    """Measure. The document is what is stored as JSON."""
    document: Dict[str, Any] = {
        "version": DOCUMENT_VERSION,
        "machine": machine.describe(),
        "versions": machine.versions(),
        "options": {"rounds": options.rounds, "quick": options.quick},
        "seconds": {},
        "measures": {},
    }
    with Bench(options.rounds, options.quick) as bench:
        for name in options.measures or MEASURES:
            print(f"bench: {name}", file=sys.stderr, flush=True)
            begin = time.monotonic()
            try:
                tables = MEASURES[name].measure(bench)
            except (OSError, RuntimeError, subprocess.SubprocessError) as error:
                # The others have cost minutes, and are worth as much without it.
                print(f"bench: {name} could not be measured: {error}", file=sys.stderr)
                continue
            document["seconds"][name] = round(time.monotonic() - begin, 1)
            document["measures"][name] = {key: table.to_dict() for key, table in tables.items()}
            for table in tables.values():
                report.print_table(table, options.verbose)
            sys.stdout.flush()
    return document


def tables_of(document: Dict[str, Any]) -> Dict[str, Dict[str, Table]]:
    """The tables of a document, by measure and name."""
    if document.get("version") != DOCUMENT_VERSION:
        sys.exit("bench: what is stored is of another version")
    return {
        name: {key: Table.from_dict(table) for key, table in tables.items()} for name, tables in document["measures"].items()
    }


def captions(document: Dict[str, Any]) -> List[str]:
    """What a picture says of where its numbers come from."""
    made, versions = document["machine"], document["versions"]
    words = [f"{name}: {version}" for name, version in versions.items()]
    where = f"{made['date']} · {made['processor']}, {made['cores']} cores · {made['kernel']} · {made['distribution']}"
    rows = [" · ".join(words[start : start + 3]) for start in range(0, len(words), 3)]
    quick = ["--quick: these numbers say nothing"] if document["options"]["quick"] else []
    return [f"{where} · {made['user']}", *rows, *quick]


def write(document: Dict[str, Any], folder: Path) -> None:
    """Numbers, pictures and tables."""
    folder.mkdir(parents=True, exist_ok=True)
    measures = tables_of(document)
    (folder / "latest.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    for name, tables in measures.items():
        title = MEASURES[name].__doc__.splitlines()[0].rstrip(".")
        (folder / f"{name}.svg").write_text(svg.draw(title, tables, captions(document)))
    (folder / "README.md").write_text(report.markdown(document, measures))
    print(f"\nbench: written to {folder}", file=sys.stderr)


def main(arguments: List[str]) -> int:
    """Exit status 0 whatever the numbers are; 1 where something could not be measured."""
    options = parse(arguments)
    if options.stored:
        document = json.loads(Path(options.stored).read_text())
        for tables in tables_of(document).values():
            for table in tables.values():
                report.print_table(table, options.verbose)
    else:
        document = take(options)
    is_whole = set(document["measures"]) == set(MEASURES) and not document["options"]["quick"]
    folder = Path(options.out) if options.out else DOCS if is_whole else BUILD / "bench"
    write(document, folder)
    if options.json:
        Path(options.json).write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    if options.compare:
        stored = tables_of(json.loads(Path(options.compare).read_text()))
        print(f"\nfrom {options.compare}:")
        print("\n".join(compare.compare(tables_of(document), stored)))
    if options.store_baseline and is_whole:
        BASELINE.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / "latest.json", BASELINE)
    wanted = set() if options.stored else set(options.measures or MEASURES)
    return 0 if wanted <= set(document["measures"]) else 1
