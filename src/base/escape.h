/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/escape.h - make untrusted names harmless for terminals, logs and models
 */
#ifndef BELLJAR_BASE_ESCAPE_H
#define BELLJAR_BASE_ESCAPE_H

#include "base/text.h"

/*
 * Append @string, at most @max bytes of it, with everything but printable characters escaped: control characters,
 * bytes that are not UTF-8, and the Unicode controls that reorder or end a line.
 */
void escape_append(struct text *out, const char *string, size_t max);

#endif
