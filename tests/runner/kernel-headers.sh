#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# tests/runner/kernel-headers.sh CC... - make a folder of links to the kernel's headers, and print where it is
#
# musl brings no kernel headers. Adding all of /usr/include would bring glibc's headers in as well, and let a file
# compile that includes something musl does not have.
set -eu

multiarch=$("$@" -print-multiarch)
mkdir -p "$KERNEL_HEADERS_DIR"
for name in linux asm asm-generic; do
	for candidate in "/usr/include/$multiarch/$name" "/usr/include/$name"; do
		if [ -d "$candidate" ]; then
			ln -sfn "$candidate" "$KERNEL_HEADERS_DIR/$name"
			break
		fi
	done
	[ -e "$KERNEL_HEADERS_DIR/$name" ] || { echo "no kernel headers <$name/...>: install linux-libc-dev" >&2; exit 1; }
done
printf '%s\n' "$KERNEL_HEADERS_DIR"
