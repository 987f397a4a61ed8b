/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/redact/redact_pem.c - private keys in PEM blocks, from BEGIN to END, whatever their length
 *
 * A block is swallowed as it comes; nothing waits for its end, which may never come. So that a BEGIN alone does not
 * swallow the rest of a log, what follows must look like a block: a few header lines, then lines of base64 no longer
 * than the first, and after a shorter one only a checksum or the end. Everything else ends the secret and is shown.
 *
 * Lines may be parted by what keys meet on their way through tools: indentation, quotes, the marks of a diff or a
 * quotation, "\n" written out, and, where a shell has split the key into words, a space.
 */
#include "base/redact/redact_shapes.h"

#include <string.h>

#define LABEL_MAX 64
#define GAP_MAX 64
#define HEADER_COUNT_MAX 4
#define HEADER_LEN_MAX 256
#define SPLIT_LINE_MIN 32 /* a space ends a line from this length on; ordinary words are shorter */

static const char dashes[] = "-----";
#define DASHES_LEN (sizeof(dashes) - 1)

/* Is @string at @at? */
static enum verdict stands_at(const struct shape_text *text, size_t at, const char *string)
{
	size_t len = strlen(string), there = MIN_OF(len, text->len - at);

	if (memcmp(text->bytes + at, string, there) != 0)
		return VERDICT_NO;
	return there == len ? VERDICT_YES : redact_shape_cut(text);
}

/* Match from the label on: "RSA PRIVATE KEY-----". */
static enum verdict label_end(const struct shape_text *text, size_t at, size_t *label_len_out)
{
	size_t len = redact_shape_run(text, at, CLASS_LABEL, LABEL_MAX);

	*label_len_out = len;
	return at + len == text->len && len < LABEL_MAX ? redact_shape_cut(text) : stands_at(text, at + len, dashes);
}

enum verdict redact_pem_begin(const struct shape_text *text, size_t at, size_t *end_out)
{
	size_t label = at + strlen("-----BEGIN "), label_len;
	enum verdict verdict = label_end(text, label, &label_len);

	if (verdict != VERDICT_YES)
		return verdict;
	if (!memmem(text->bytes + label, label_len, "PRIVATE KEY", strlen("PRIVATE KEY")))
		return VERDICT_NO;
	*end_out = label + label_len + DASHES_LEN;
	return VERDICT_YES;
}

/* The dashes at @at, five or more, and what follows them: the block's last line? */
static enum verdict block_end(const struct shape_text *text, size_t at, size_t dash_count, size_t *end_out)
{
	size_t end = at + dash_count, label_len;
	enum verdict verdict = stands_at(text, end, "END ");

	if (verdict != VERDICT_YES)
		return verdict;
	end += strlen("END ");
	verdict = label_end(text, end, &label_len);
	*end_out = end + label_len + DASHES_LEN;
	return verdict;
}

/* Measure the gap between two lines, and find whether it certainly separates them. */
static enum verdict measure_gap(const struct shape_text *text, size_t at, size_t *end_out, bool *has_break_out)
{
	size_t end = at;
	bool has_break = false;

	for (; end < text->len && end - at < GAP_MAX; end++) {
		unsigned char byte = text->bytes[end];

		if (byte == '\\') {
			/* "\n", "\r", and "\\n" where a string was quoted twice. */
			if (end + 1 == text->len)
				return redact_shape_cut(text);
			byte = text->bytes[end + 1];
			if (byte != 'n' && byte != 'r' && byte != '\\' && byte != '"')
				return VERDICT_NO;
			if (byte != '\\')
				end++;
			has_break |= byte == 'n' || byte == 'r';
		} else if (redact_shape_is_in(text, end, CLASS_PEM_GAP)) {
			has_break |= byte == '\n' || byte == '\r';
		} else {
			break;
		}
	}
	if (end == text->len)
		return redact_shape_cut(text);
	*end_out = end;
	*has_break_out = has_break;
	return end - at < GAP_MAX ? VERDICT_YES : VERDICT_NO;
}

/* A line has ended. May another begin with @byte? */
static bool may_begin_line(struct pem_state *state, unsigned char byte)
{
	if (state->is_in_header) {
		state->is_in_header = false;
	} else if (state->line_len > 0) {
		if (state->width == 0)
			state->width = state->line_len;
		else if (state->line_len < state->width)
			state->is_last_line = true;
	}
	state->line_len = 0;
	return !state->is_last_line || byte == '=';
}

/*
 * The text at @at is not part of the line. If the block continues, return YES; *@end_out is then behind its next byte
 * (or behind its end, if *@is_over). NO: this is not part of a block.
 */
static enum verdict next_line(const struct shape_text *text, size_t at, struct pem_state *state, size_t *end_out,
			      bool *is_over)
{
	size_t start, dash_count;
	bool has_break;
	enum verdict verdict = measure_gap(text, at, &start, &has_break);

	if (verdict != VERDICT_YES)
		return verdict;
	dash_count = 0;
	while (start + dash_count < text->len && dash_count <= DASHES_LEN && text->bytes[start + dash_count] == '-')
		dash_count++;
	if (start + dash_count == text->len)
		return redact_shape_cut(text);
	if (dash_count >= DASHES_LEN) {
		*is_over = true;
		return block_end(text, start, dash_count, end_out);
	}
	/* "Proc-Type: 4,ENCRYPTED", a header's name; and the line that a diff takes away. */
	if (start == at && dash_count == 1 && state->width == 0 && !state->is_in_header) {
		*end_out = at + 1;
		state->line_len++;
		return VERDICT_YES;
	}
	if (start == at || dash_count > 1 || !(has_break || state->line_len >= SPLIT_LINE_MIN || state->line_len == 0))
		return VERDICT_NO;
	start += dash_count;
	if (!redact_shape_is_in(text, start, CLASS_BASE64) || !may_begin_line(state, text->bytes[start]))
		return VERDICT_NO;
	state->line_len = 1;
	*end_out = start + 1;
	return VERDICT_YES;
}

size_t redact_pem_swallow(const struct shape_text *text, size_t at, struct pem_state *state, enum verdict *verdict)
{
	bool is_over = false;

	*verdict = VERDICT_MORE;
	while (at < text->len && !is_over) {
		unsigned char byte = text->bytes[at];

		if (state->is_in_header && byte != '\n' && byte != '\r' && byte != '\\') {
			if (++state->line_len > HEADER_LEN_MAX)
				break;
			at++;
		} else if (!state->is_in_header && state->line_len > 0 && redact_shape_is_in(text, at, CLASS_BASE64)) {
			if (state->width != 0 && state->line_len == state->width)
				break;
			state->line_len++;
			at++;
		} else if (byte == ':' && state->width == 0 && state->line_len > 0 &&
			   state->header_count < HEADER_COUNT_MAX) {
			state->header_count++;
			state->is_in_header = true;
			at++;
		} else if (state->line_len == 0 && redact_shape_is_in(text, at, CLASS_BASE64)) {
			/* Right behind BEGIN: a key whose line breaks are gone altogether. */
			state->line_len = 1;
			at++;
		} else {
			size_t end;

			*verdict = next_line(text, at, state, &end, &is_over);
			if (*verdict == VERDICT_MORE)
				return at;
			if (*verdict == VERDICT_NO)
				break;
			at = end;
		}
	}
	*verdict = at < text->len || is_over || text->is_final ? VERDICT_YES : VERDICT_MORE;
	return at;
}
