/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/base64.h - bytes as base64 text (RFC 4648, the usual alphabet, padded), for exact bytes inside JSON
 */
#ifndef BELLJAR_BASE_BASE64_H
#define BELLJAR_BASE_BASE64_H

#include "base/text.h"

/* Append the encoding of @len bytes to @out, without line breaks. */
void base64_append(struct text *out, const void *bytes, size_t len);

#endif
