#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# tools/one-object.sh - one-object.sh IN.a OUT.a: link an archive into one object that shows only its public symbols
#
# Public is what was not compiled with hidden visibility. Used by the build only.
set -eu

object=$2.o
ld -r -o "$object" --whole-archive "$1"
objcopy --localize-hidden "$object"
rm -f "$2"
ar rcsD "$2" "$object"
rm -f "$object"
