/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/utf8.h - find where UTF-8 is broken, and where it is merely not finished yet
 */
#ifndef BELLJAR_BASE_UTF8_H
#define BELLJAR_BASE_UTF8_H

#include "base/base.h"

/*
 * Length of the valid character at @bytes (1 to 4), or 0 if the bytes there are no character. Where the bytes are a
 * proper prefix of a character that @len cuts off, *@is_cut is set and 0 returned.
 */
size_t utf8_character(const unsigned char *bytes, size_t len, bool *is_cut);

/* Return how many bytes one U+FFFD replaces at an invalid place: the maximal well-formed prefix, at least 1. */
size_t utf8_bad_span(const unsigned char *bytes, size_t len);

/* Return how many bytes at the end of @bytes begin an incomplete character: 0 to 3. */
size_t utf8_cut_tail(const unsigned char *bytes, size_t len);

bool utf8_is_valid(const unsigned char *bytes, size_t len);

#endif
