# SPDX-License-Identifier: Apache-2.0
"""Checks that run nothing: the rules of the code base, and the linters of the distribution. Each counts as one test."""

from __future__ import annotations

from lint import frames, inside, rooms, rules, tools
from lint.check import WARNING, Check

CHECKS = [
    Check("includes", rooms.includes),
    Check("core", rooms.core),
    Check("prefixes", rooms.prefixes),
    Check("budgets", rooms.budgets),
    Check("auditor-page", rooms.auditor_page),
    Check("tour", rooms.tour),
    Check("frames", frames.frames),
    Check("headers", rules.headers),
    Check("child-symbols", inside.child_symbols, programs=("nm",), builds=("release",)),
    Check("words", rules.words),
    Check("plain-words", rules.plain_words),
    Check("sizes", rules.sizes),
    Check("python", rules.python),
    Check("clang-format", tools.clang_format, programs=("clang-format",)),
    Check("shellcheck", tools.shellcheck, programs=("shellcheck",)),
    Check("man", tools.man, programs=("mandoc",), builds=("gcc",)),
    Check("cppcheck", tools.cppcheck, programs=("cppcheck",)),
    Check("clang-tidy", tools.clang_tidy, programs=("clang-tidy",), builds=("asan",), is_slow=True),
]

__all__ = ["CHECKS", "WARNING", "Check"]
