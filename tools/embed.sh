#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# tools/embed.sh - a text file as a C string: embed.sh NAME FILE > OUT.c
set -eu

printf '/* Made from %s by tools/embed.sh. */\n#include "door/mcp/mcp_drivers.h"\n\nconst char %s[] =\n' "${2##*/}" "$1"
sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/	/\\t/g' -e 's/^/	"/' -e 's/$/\\n"/' "$2"
printf '\t;\n'
