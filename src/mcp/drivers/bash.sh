# SPDX-License-Identifier: Apache-2.0
#
# src/mcp/drivers/bash.sh - inside a jar: run pieces of bash that arrive at descriptor 3, and answer each at descriptor 4.
# A piece is its text and a NUL; an answer is JSON and a NUL. What runs has neither descriptor.
exec >&5 2>&6 5>&- 6>&-
while IFS= read -r -d '' -u 3 BELLJAR_CODE; do
	eval "$BELLJAR_CODE" </dev/null 3<&- 4>&-
	printf '{"value":null,"error":null,"exit_code":%d}\0' "$?" >&4
done
