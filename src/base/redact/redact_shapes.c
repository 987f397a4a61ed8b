/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/redact/redact_shapes.c - find text that has the shape of a secret, wherever the writes cut it
 *
 * At each place where a prefix of the table stands, the rows that have it are asked in the table's order. A row
 * answers yes, no, or that it depends on bytes to come, and the answer for a place depends on nothing but the text,
 * so it is the same however the text arrives. After a yes the secret is swallowed to its end and the search goes on
 * behind it; a place that depends on bytes to come blocks the search, and the next write asks again.
 *
 * Every question is bounded by REDACT_LOOK_MAX bytes. Rows that could ask that far (JWT, URL) do not begin inside their
 * own runs, so the time stays linear.
 *
 * Only bytes that may be replaced are held back: a row that waits says where its secret would begin. A name before a
 * value is shown at once, and so is a prompt.
 */
#include "base/redact/redact_shapes.h"

#include <errno.h>
#include <string.h>

struct shape_prefix {
	const struct redact_shape *shape;
	const char *text;
	uint8_t len;
	bool is_folded;  /* matches in any case */
	int16_t next[2]; /* with the same first byte: [0] as written, [1] as a capital */
};

/* --- sets of bytes --- */

struct class_row {
	uint16_t class;
	bool has_letters; /* and digits */
	const char *others;
};

static const struct class_row class_rows[] = {
	{CLASS_DIGIT, false, "0123456789"},
	{CLASS_ALNUM, true, ""},
	{CLASS_UPPER, false, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"},
	{CLASS_WORD, true, "_"},
	{CLASS_DASHED, true, "-"},
	{CLASS_BASE64URL, true, "-_"},
	{CLASS_DOTTED, true, "-_."},
	{CLASS_BASE64, true, "+/="},
	{CLASS_BEARER, true, "-._~+/="},
	{CLASS_LABEL, false, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 "},
	{CLASS_PEM_GAP, false, " \t\r\n>|\"',"},
	{CLASS_PATH, true, "/"},
};

/* These list the bytes that they exclude: bytes above 127 belong to passwords in UTF-8. */
static const struct class_row open_class_rows[] = {
	{CLASS_VALUE, true, "\"'`\\,;&)]}<>"},
	{CLASS_URL_USER, true, "\"'`\\<>/@:"},
	{CLASS_URL_PASSWORD, true, "\"'`\\<>/@"},
};

static bool is_alnum(unsigned byte)
{
	return (byte >= '0' && byte <= '9') || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z');
}

static void fill_classes(uint16_t classes[256])
{
	for (unsigned byte = 1; byte < 256; byte++) {
		for (size_t i = 0; i < ARRAY_LEN(class_rows); i++) {
			const struct class_row *row = &class_rows[i];

			if ((row->has_letters && is_alnum(byte)) || strchr(row->others, (int)byte))
				classes[byte] |= row->class;
		}
		for (size_t i = 0; i < ARRAY_LEN(open_class_rows); i++) {
			if (byte > ' ' && byte != 0x7f && !strchr(open_class_rows[i].others, (int)byte))
				classes[byte] |= open_class_rows[i].class;
		}
	}
}

/* --- the table, prepared --- */

static void add_to_filter(struct redact_shape_index *index, const struct redact_shape *shape, const char *prefix)
{
	unsigned char group[REDACT_FILTER_GROUP];

	if (strlen(prefix) >= sizeof(group)) {
		redact_filter_add(&index->filter, prefix);
		return;
	}
	memcpy(group, prefix, sizeof(group) - 1);
	for (unsigned byte = 0; byte < 256; byte++) {
		if (index->classes[byte] & shape->alphabet) {
			group[sizeof(group) - 1] = (unsigned char)byte;
			redact_filter_add(&index->filter, group);
		}
	}
}

static void link_prefix(struct redact_shape_index *index, size_t number)
{
	struct shape_prefix *prefix = &index->prefixes[number];
	unsigned char first = (unsigned char)prefix->text[0];

	prefix->next[0] = index->first_prefix[first];
	index->first_prefix[first] = (int16_t)number;
	if (prefix->is_folded) {
		first = (unsigned char)(first & ~0x20);
		prefix->next[1] = index->first_prefix[first];
		index->first_prefix[first] = (int16_t)number;
	}
}

int redact_shape_index_init(struct redact_shape_index *index)
{
	size_t count = 0;

	fill_classes(index->classes);
	index->filter.stride = 1;
	memset(index->first_prefix, 0xff, sizeof(index->first_prefix));
	index->prefixes = calloc(redact_shape_count * SHAPE_PREFIX_MAX, sizeof(*index->prefixes));
	if (!index->prefixes)
		return -ENOMEM;
	for (size_t row = 0; row < redact_shape_count; row++) {
		const struct redact_shape *shape = &redact_shapes[row];

		for (size_t i = 0; i < SHAPE_PREFIX_MAX && shape->prefixes[i]; i++) {
			index->prefixes[count++] = (struct shape_prefix){
				.shape = shape,
				.text = shape->prefixes[i],
				.len = (uint8_t)strlen(shape->prefixes[i]),
				.is_folded = redact_shape_kinds[shape->kind].is_name,
			};
			add_to_filter(index, shape, shape->prefixes[i]);
		}
	}
	/* From the last to the first, so that each list is in the table's order. */
	while (count > 0)
		link_prefix(index, --count);
	return 0;
}

void redact_shape_index_done(struct redact_shape_index *index)
{
	free(index->prefixes);
	index->prefixes = NULL;
}

/* --- the search --- */

static enum verdict ask_row(const struct shape_text *text, const struct shape_prefix *prefix, unsigned char before,
			    size_t at, struct shape_match *match)
{
	const struct shape_kind_row *kind = &redact_shape_kinds[prefix->shape->kind];
	size_t there = MIN_OF((size_t)prefix->len, text->len - at);

	if ((text->classes[before] & kind->not_before) || (kind->before && !(text->classes[before] & kind->before)))
		return VERDICT_NO;
	if (prefix->is_folded ? !redact_shape_equals_folded(text->bytes + at, prefix->text, there)
			      : memcmp(text->bytes + at, prefix->text, there) != 0)
		return VERDICT_NO;
	*match = (struct shape_match){.from = kind->is_name ? text->len : at};
	if (there < prefix->len)
		return redact_shape_cut(text);
	return kind->match(text, prefix->shape, at, at + there, match);
}

/* The first row in table order that does not return NO decides. Lower *@hold to the first byte that a row may claim. */
static enum verdict ask_place(const struct redact_shape_index *index, const struct shape_text *text,
			      unsigned char before, size_t at, struct shape_match *match_out, size_t *hold)
{
	enum verdict decision = VERDICT_NO;
	const struct shape_prefix *prefix;
	unsigned char first = text->bytes[at];

	for (int number = index->first_prefix[first]; number >= 0;
	     number = prefix->next[first != (unsigned char)prefix->text[0]]) {
		struct shape_match match;
		enum verdict verdict;
		size_t last;

		prefix = &index->prefixes[number];
		/* The last byte rules out most prefixes, without a call. */
		last = at + prefix->len - 1;
		if (last < text->len && ((prefix->text[prefix->len - 1] ^ text->bytes[last]) & ~0x20))
			continue;
		verdict = ask_row(text, prefix, before, at, &match);
		if (verdict == VERDICT_NO)
			continue;
		*hold = MIN_OF(*hold, match.from);
		if (decision == VERDICT_NO) {
			decision = verdict;
			*match_out = match;
		}
	}
	return decision;
}

static unsigned char byte_before(const struct shape_text *text, const struct shape_state *state, size_t at)
{
	return at > 0 ? text->bytes[at - 1] : state->before;
}

/* The blocked search may still get a NO. Then the places behind count, so hold the bytes that they may claim. */
static void hold_behind(const struct redact_shape_index *index, const struct shape_text *text,
			struct shape_state *state)
{
	struct shape_match match;

	assert(text->len - state->at <= REDACT_LOOK_MAX);
	for (size_t at = state->at + 1; at < state->hold; at++) {
		at = redact_filter_skip(&index->filter, text->bytes, at, text->len);
		if (at < state->hold)
			ask_place(index, text, byte_before(text, state, at), at, &match, &state->hold);
	}
}

static void end_swallow(struct shape_state *state)
{
	state->swallow = (struct swallow){.kind = SWALLOW_NOTHING};
}

/* Returns false if the next byte depends on bytes to come. */
static bool swallow(const struct shape_text *text, struct shape_state *state, struct redact_spans *spans)
{
	struct swallow *swallow = &state->swallow;
	enum verdict verdict = VERDICT_YES;
	size_t end = state->at;

	switch (swallow->kind) {
	case SWALLOW_NOTHING:
		return true;
	case SWALLOW_CLASS:
		end += redact_shape_run(text, end, swallow->alphabet, SIZE_MAX);
		break;
	case SWALLOW_QUOTED:
		end += redact_shape_quoted_run(text, end, SIZE_MAX, swallow->quote, &swallow->is_escaped);
		break;
	case SWALLOW_PEM:
		end = redact_pem_swallow(text, end, &swallow->pem, &verdict);
		break;
	}
	if (end > state->at)
		redact_spans_add(spans, state->at, end);
	state->at = end;
	if (verdict == VERDICT_MORE)
		return false;
	/* At the window's end the secret may continue; redact_pem_swallow() reports the end of a PEM block. */
	if (end < text->len || swallow->kind == SWALLOW_PEM)
		end_swallow(state);
	return true;
}

void redact_shapes_run(const struct redact_shape_index *index, struct shape_state *state, const unsigned char *bytes,
		       size_t len, bool is_final, struct redact_spans *spans)
{
	const struct shape_text text = {.bytes = bytes, .len = len, .is_final = is_final, .classes = index->classes};

	while (state->at < len) {
		struct shape_match match;
		size_t hold = len;

		if (state->swallow.kind != SWALLOW_NOTHING && !swallow(&text, state, spans)) {
			state->hold = state->at;
			return;
		}
		if (state->at < len)
			state->at = redact_filter_skip(&index->filter, bytes, state->at, len);
		if (state->at >= len)
			break;
		switch (ask_place(index, &text, byte_before(&text, state, state->at), state->at, &match, &hold)) {
		case VERDICT_NO:
			state->at++;
			break;
		case VERDICT_YES:
			redact_spans_add(spans, match.from, match.to);
			state->at = match.to;
			state->swallow = match.swallow;
			break;
		case VERDICT_MORE:
			state->hold = hold;
			hold_behind(index, &text, state);
			return;
		}
	}
	state->hold = len;
}
