/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/run/capture.h - keep at most N bytes of two streams together, or of each: the first, the last, or the first and last half
 *
 * The bytes counted are those after redaction. Memory grows with what is kept, never with what was written.
 */
#ifndef BELLJAR_ENGINE_RUN_CAPTURE_H
#define BELLJAR_ENGINE_RUN_CAPTURE_H

#include "base/text.h"
#include "engine/limits/observation.h"
#include "policy/policy.h"

struct capture;

struct capture *run_capture_new(const struct output_limit *limit, enum keep_mode keep); /* NULL: out of memory */
void run_capture_free(struct capture *capture);
/* Returns -ENOMEM if what should be kept could not be. */
int run_capture_add(struct capture *capture, enum stream_index stream, const void *bytes, size_t len);
/* True once a byte was dropped. */
bool run_capture_is_truncated(const struct capture *capture);
/* Exact kept bytes of one stream, appended to @out. */
void run_capture_bytes(const struct capture *capture, enum stream_index stream, struct text *out);
/*
 * The same for reading as text: a character that the cap cut (at the end of a kept head, at the beginning of a kept
 * tail) is dropped; other invalid bytes are left for the JSON writer to repair. *@is_lossy: such bytes are there.
 */
void run_capture_text(const struct capture *capture, enum stream_index stream, struct text *out, bool *is_lossy);
/* How many of the kept bytes belong to a character that the cap cut; they are together, from *@start_out on. */
size_t run_capture_cut(const struct capture *capture, enum stream_index stream, size_t *start_out);
/* Offset into the kept bytes of the stream where bytes are missing, or -1: nothing is missing. For run_capture_text()'s
 * result @in_text is true. */
int64_t run_capture_elided_at(const struct capture *capture, enum stream_index stream, bool in_text);

#endif
