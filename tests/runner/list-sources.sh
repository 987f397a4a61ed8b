#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# tests/runner/list-sources.sh - the C files of a folder, or those of a pattern, or the one file named, in a fixed order
#
# list-sources.sh PATH [PATTERN]; prints nothing where there are none.
# The main() of a program is in no library: main.c is listed only when asked for by name.
set -eu

if [ -f "$1" ]; then
	printf '%s\n' "$1"
elif [ -d "$1" ]; then
	find "$1" -maxdepth 1 -name "${2:-*.c}" ! -path "src/*/main.c" | sed 's|^[.]/||' | LC_ALL=C sort
fi
