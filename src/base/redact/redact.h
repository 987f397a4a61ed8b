/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/redact/redact.h - replace secrets in a byte stream, wherever the writes cut it
 *
 * One redactor holds the compiled patterns; each stream has its own state. The redactor examines every byte a bounded
 * number of times, and holds back a bounded number of bytes: those that may still turn out to belong to a secret.
 */
#ifndef BELLJAR_BASE_REDACT_REDACT_H
#define BELLJAR_BASE_REDACT_REDACT_H

#include "base/error.h"
#include "base/text.h"

#define REDACT_MARK "[REDACTED]"

struct redactor;
struct redact_stream;

/*
 * @literals are exact texts (each 4 bytes or more; the caller has checked); @has_shapes adds the built-in secret
 * shapes. NULL in *@out with success where there is nothing to redact.
 */
int redactor_new(const struct string_list *literals, bool has_shapes, struct redactor **out, struct error *error);
void redactor_free(struct redactor *redactor);

struct redact_stream *redact_stream_new(const struct redactor *redactor); /* NULL: out of memory */
void redact_stream_free(struct redact_stream *stream);

/* Take @len more bytes; append to @out the bytes that cannot belong to a secret. */
void redact_feed(struct redact_stream *stream, const void *bytes, size_t len, struct text *out);
/* The stream has ended: append whatever was held back. */
void redact_finish(struct redact_stream *stream, struct text *out);

/* Redact a whole text. @redactor NULL: copy it. Out of memory: append only the mark. */
void redact_string(const struct redactor *redactor, const char *string, struct text *out);

#endif
