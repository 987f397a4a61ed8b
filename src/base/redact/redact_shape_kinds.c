/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/redact/redact_shape_kinds.c - one question for each kind of shape: is this a secret, and where does it begin?
 *
 * A prefix stands at @at and @value is the place behind it. A question that reaches the end of the text answers MORE,
 * and says where the secret would begin. It may answer early, but never differently from what it would answer with more
 * text: that is what makes the output independent of how the text arrived. No question looks further than
 * REDACT_LOOK_MAX bytes.
 */
#include "base/redact/redact_shapes.h"

#include <string.h>

#define SPACES_MAX 16
#define NAME_END_MAX 4 /* quotes and a bracket between a name and its = or : */
#define URL_USER_MAX 128

static const char *const authorization_schemes[] = {
	"bearer", "basic", "token", "digest", "negotiate", "apikey", "oauth", "dpop", "aws4-hmac-sha256",
};

static enum verdict match_token(const struct shape_text *text, const struct redact_shape *shape, size_t at,
				size_t value, struct shape_match *match)
{
	size_t len = redact_shape_run(text, value, shape->alphabet, shape->max_len ? shape->max_len : shape->min_len);

	match->to = value + len;
	if (len < shape->min_len)
		return match->to == text->len ? redact_shape_cut(text) : VERDICT_NO;
	if (shape->max_len == 0) {
		match->swallow = (struct swallow){.kind = SWALLOW_CLASS, .alphabet = shape->alphabet};
		return VERDICT_YES;
	}
	/* A bounded run has to end as a word does. */
	if (match->to == text->len)
		return text->is_final ? VERDICT_YES : VERDICT_MORE;
	return redact_shape_is_in(text, match->to, CLASS_ALNUM) ? VERDICT_NO : VERDICT_YES;
}

static enum verdict match_jwt(const struct shape_text *text, const struct redact_shape *shape, size_t at, size_t value,
			      struct shape_match *match)
{
	size_t len = redact_shape_run(text, value, shape->alphabet, shape->max_len);

	if (value + len == text->len)
		return redact_shape_cut(text);
	if (len < shape->min_len || text->bytes[value + len] != '.')
		return VERDICT_NO;
	value += len + 1;
	len = redact_shape_run(text, value, shape->alphabet, shape->min_len);
	match->to = value + len;
	if (len < shape->min_len)
		return value + len == text->len ? redact_shape_cut(text) : VERDICT_NO;
	match->swallow = (struct swallow){.kind = SWALLOW_CLASS, .alphabet = CLASS_DOTTED};
	return VERDICT_YES;
}

static enum verdict match_pem(const struct shape_text *text, const struct redact_shape *shape, size_t at, size_t value,
			      struct shape_match *match)
{
	match->swallow = (struct swallow){.kind = SWALLOW_PEM};
	return redact_pem_begin(text, at, &match->to);
}

/* Match the run at @value, if long enough for a secret. @is_plain: it may be prose, so apply stricter tests. */
static enum verdict match_run(const struct shape_text *text, const struct redact_shape *shape, size_t value,
			      bool is_plain, struct shape_match *match)
{
	size_t enough = is_plain && shape->plain_min_len ? shape->plain_min_len : shape->min_len;
	size_t len = 0;
	bool has_digit = false;

	match->from = value;
	while (value + len < text->len && len < enough && redact_shape_is_in(text, value + len, shape->alphabet)) {
		has_digit |= redact_shape_is_in(text, value + len, CLASS_DIGIT);
		len++;
		if (has_digit)
			enough = shape->min_len;
	}
	match->to = value + len;
	match->swallow = (struct swallow){.kind = SWALLOW_CLASS, .alphabet = shape->alphabet};
	if (len >= enough)
		return VERDICT_YES;
	return value + len == text->len ? redact_shape_cut(text) : VERDICT_NO;
}

/* Skip spaces at @at, at least @min; *@end_out is their end. MORE if they may continue. */
static enum verdict skip_spaces(const struct shape_text *text, size_t at, size_t min, size_t *end_out)
{
	size_t end = at;

	while (end < text->len && end - at <= SPACES_MAX && (text->bytes[end] == ' ' || text->bytes[end] == '\t'))
		end++;
	if (end - at > SPACES_MAX)
		return VERDICT_NO;
	if (end == text->len)
		return redact_shape_cut(text);
	*end_out = end;
	return end - at >= min ? VERDICT_YES : VERDICT_NO;
}

static enum verdict match_bearer(const struct shape_text *text, const struct redact_shape *shape, size_t at,
				 size_t value, struct shape_match *match)
{
	enum verdict verdict = skip_spaces(text, value, 1, &value);

	match->from = text->len;
	return verdict == VERDICT_YES ? match_run(text, shape, value, true, match) : verdict;
}

size_t redact_shape_quoted_run(const struct shape_text *text, size_t at, size_t max, unsigned char quote,
			       bool *is_escaped)
{
	size_t len = 0;

	for (; len < max && at + len < text->len; len++) {
		unsigned char byte = text->bytes[at + len];

		if (byte == '\n' || byte == '\r' || (byte == quote && !*is_escaped))
			break;
		*is_escaped = byte == '\\' && !*is_escaped;
	}
	return len;
}

static enum verdict match_quoted(const struct shape_text *text, const struct redact_shape *shape, size_t value,
				 unsigned char quote, struct shape_match *match)
{
	bool is_escaped = false;
	size_t len = redact_shape_quoted_run(text, value, shape->min_len, quote, &is_escaped);

	match->from = value;
	match->to = value + len;
	match->swallow = (struct swallow){.kind = SWALLOW_QUOTED, .quote = quote, .is_escaped = is_escaped};
	if (len == shape->min_len)
		return VERDICT_YES;
	return value + len == text->len ? redact_shape_cut(text) : VERDICT_NO;
}

bool redact_shape_equals_folded(const unsigned char *bytes, const char *lower, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char byte = bytes[i];

		if ((byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte) != (unsigned char)lower[i])
			return false;
	}
	return true;
}

/* Skip "Bearer " and the like in front of the value. MORE if a word may still become one of them. */
static enum verdict skip_scheme(const struct shape_text *text, size_t *value)
{
	for (size_t i = 0; i < ARRAY_LEN(authorization_schemes); i++) {
		size_t len = strlen(authorization_schemes[i]), there = MIN_OF(len, text->len - *value), end;
		enum verdict verdict;

		if (!redact_shape_equals_folded(text->bytes + *value, authorization_schemes[i], there))
			continue;
		if (there < len) {
			if (!text->is_final)
				return VERDICT_MORE;
			continue;
		}
		verdict = skip_spaces(text, *value + len, 1, &end);
		if (verdict == VERDICT_MORE)
			return VERDICT_MORE;
		if (verdict == VERDICT_YES) {
			*value = end;
			return VERDICT_YES;
		}
	}
	return VERDICT_YES;
}

/* Skip from behind a name to behind its = or :, and spaces. @is_spaced_out: as in prose or source code. */
static enum verdict skip_assignment(const struct shape_text *text, size_t at, size_t *value_out, bool *is_spaced_out)
{
	size_t name_end = at, sign;
	enum verdict verdict;

	for (; at < text->len && at - name_end < NAME_END_MAX && text->bytes[at] && strchr("\"'`]\\", text->bytes[at]);
	     at++)
		;
	if (at == text->len)
		return redact_shape_cut(text);
	verdict = skip_spaces(text, at, 0, &sign);
	if (verdict != VERDICT_YES)
		return verdict;
	if (text->bytes[sign] != '=' && text->bytes[sign] != ':')
		return VERDICT_NO;
	/* "=>", "==", ":=" are operators too; "::" parts names. */
	at = sign + 1;
	if (at == text->len)
		return redact_shape_cut(text);
	if (text->bytes[sign] == ':' && text->bytes[at] == ':')
		return VERDICT_NO;
	if (text->bytes[at] == '=' || text->bytes[at] == '>')
		at++;
	verdict = skip_spaces(text, at, 0, value_out);
	if (verdict == VERDICT_YES)
		*is_spaced_out = *value_out > at;
	return verdict;
}

/*
 * Skip the quotation mark before a value, and a backslash or a letter (b"..") before the mark. If it is escaped, the
 * value ends at the next backslash. Returns YES or MORE; *@quote_out is 0 if there is no mark.
 */
static enum verdict skip_quote(const struct shape_text *text, size_t *value, unsigned char *quote_out)
{
	size_t at = *value;
	unsigned char first = text->bytes[at];

	*quote_out = 0;
	if (first && strchr("\\bfru", first)) {
		if (++at == text->len)
			return text->is_final ? VERDICT_YES : VERDICT_MORE;
	}
	if (text->bytes[at] && strchr("\"'`", text->bytes[at])) {
		*quote_out = first == '\\' ? '\\' : text->bytes[at];
		*value = at + 1;
	}
	return VERDICT_YES;
}

static enum verdict match_assignment(const struct shape_text *text, const struct redact_shape *shape, size_t at,
				     size_t value, struct shape_match *match)
{
	static const char dashes[] = "-----";
	unsigned char quote;
	bool is_spaced;
	enum verdict verdict;
	size_t there;

	match->from = text->len;
	verdict = skip_assignment(text, value, &value, &is_spaced);
	if (verdict != VERDICT_YES)
		return verdict;
	match->from = value;
	verdict = skip_quote(text, &value, &quote);
	if (verdict != VERDICT_YES)
		return verdict;
	match->from = value;
	if (value == text->len)
		return redact_shape_cut(text);
	verdict = skip_scheme(text, &value);
	if (verdict != VERDICT_YES)
		return verdict;
	match->from = value;
	if (value == text->len)
		return redact_shape_cut(text);
	/* A private key has its own row, which knows where it ends. */
	there = MIN_OF(sizeof(dashes) - 1, text->len - value);
	if (memcmp(text->bytes + value, dashes, there) == 0)
		return there == sizeof(dashes) - 1 ? VERDICT_NO : redact_shape_cut(text);
	return quote ? match_quoted(text, shape, value, quote, match) : match_run(text, shape, value, is_spaced, match);
}

static enum verdict match_url(const struct shape_text *text, const struct redact_shape *shape, size_t at, size_t value,
			      struct shape_match *match)
{
	size_t len = redact_shape_run(text, value, CLASS_URL_USER, URL_USER_MAX);

	match->from = text->len;
	value += len;
	if (value == text->len)
		return redact_shape_cut(text);
	if (text->bytes[value] != ':')
		return VERDICT_NO;
	value++;
	len = redact_shape_run(text, value, shape->alphabet, shape->max_len);
	match->from = value;
	match->to = value + len;
	if (match->to == text->len)
		return redact_shape_cut(text);
	return text->bytes[match->to] == '@' && len >= shape->min_len ? VERDICT_YES : VERDICT_NO;
}

const struct shape_kind_row redact_shape_kinds[] = {
	[SHAPE_TOKEN] = {.match = match_token, .not_before = CLASS_ALNUM},
	[SHAPE_JWT] = {.match = match_jwt, .not_before = CLASS_BASE64URL},
	[SHAPE_PEM] = {.match = match_pem},
	[SHAPE_BEARER] = {.match = match_bearer, .is_name = true, .not_before = CLASS_WORD},
	[SHAPE_ASSIGNMENT] = {.match = match_assignment, .is_name = true},
	[SHAPE_URL] = {.match = match_url, .is_name = true, .before = CLASS_ALNUM},
};
_Static_assert(ARRAY_LEN(redact_shape_kinds) == SHAPE_KIND_COUNT, "every kind of shape has a row");
