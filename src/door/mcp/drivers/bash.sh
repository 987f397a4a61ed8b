# SPDX-License-Identifier: Apache-2.0
#
# src/door/mcp/drivers/bash.sh - inside a jar: run pieces of bash that arrive at descriptor 3, and answer each at descriptor 4.
# A piece is its number, a newline, its text and a NUL; an answer is JSON with that number, and a NUL. What runs has neither descriptor.
# shellcheck shell=bash
exec >&5 2>&6 5>&- 6>&-
while IFS= read -r -d '' -u 3 BELLJAR_CODE; do
	BELLJAR_NUMBER=${BELLJAR_CODE%%$'\n'*}
	eval "${BELLJAR_CODE#*$'\n'}" </dev/null 3<&- 4>&-
	printf '{"number":%d,"value":null,"error":null,"exit_code":%d}\0' "$BELLJAR_NUMBER" "$?" >&4
done
