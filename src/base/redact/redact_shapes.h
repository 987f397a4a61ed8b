/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/redact/redact_shapes.h - the shapes secrets have: one table, and the search for them in a stream
 *
 * belljar-policy(5) lists the rows of the table by name and example.
 */
#ifndef BELLJAR_BASE_REDACT_REDACT_SHAPES_H
#define BELLJAR_BASE_REDACT_REDACT_SHAPES_H

#include "base/base.h"
#include "base/redact/redact_filter.h"
#include "base/redact/redact_spans.h"

/* The most text that deciding about a shape needs, and so the most of a stream that is held back. */
#define REDACT_LOOK_MAX 1280

/* Sets of bytes. A shape's alphabet is one of them. */
enum byte_class {
	CLASS_DIGIT = 1 << 0,
	CLASS_ALNUM = 1 << 1,
	CLASS_UPPER = 1 << 2,     /* capitals and digits */
	CLASS_WORD = 1 << 3,      /* letters, digits, _ */
	CLASS_DASHED = 1 << 4,    /* letters, digits, - */
	CLASS_BASE64URL = 1 << 5, /* letters, digits, - _ */
	CLASS_DOTTED = 1 << 6,    /* letters, digits, - _ . */
	CLASS_BASE64 = 1 << 7,    /* letters, digits, + / = */
	CLASS_BEARER = 1 << 8,    /* RFC 6750: letters, digits, - . _ ~ + / = */
	CLASS_VALUE = 1 << 9, /* an unquoted value: up to space, quote, comma, semicolon, ampersand, closing bracket */
	CLASS_URL_USER = 1 << 10,     /* up to space, quote, angle bracket, slash, at, colon */
	CLASS_URL_PASSWORD = 1 << 11, /* the same, with colon */
	CLASS_LABEL = 1 << 12,        /* of a PEM block: capitals, digits, space */
	CLASS_PEM_GAP = 1 << 13,      /* what may stand between two lines of a PEM block */
	CLASS_PATH = 1 << 14,         /* letters, digits, / */
};

enum shape_kind {
	SHAPE_TOKEN,      /* a prefix and a run of the alphabet; all of it is secret */
	SHAPE_JWT,        /* two runs with a dot between them, and what follows; all of it is secret */
	SHAPE_PEM,        /* a block from BEGIN to END; all of it is secret */
	SHAPE_BEARER,     /* a word, spaces, a run of the alphabet, which is secret */
	SHAPE_ASSIGNMENT, /* a name, = or :, a value, which is secret; quotes and an authorization scheme are not */
	SHAPE_URL,        /* scheme://user:PASSWORD@ */
	SHAPE_KIND_COUNT,
};

#define SHAPE_PREFIX_MAX 12

struct redact_shape {
	const char *name;
	const char *example; /* something the shape finds; the tests hold it to that */
	enum shape_kind kind;
	uint16_t alphabet;      /* enum byte_class */
	uint16_t min_len;       /* of the run after the prefix, or of the value */
	uint16_t max_len;       /* 0: none, and the run is secret to its end */
	uint16_t plain_min_len; /* the least length where there is no digit and no quote, against prose; 0: min_len */
	const char *prefixes[SHAPE_PREFIX_MAX]; /* 3 bytes or more; names are in lower case and match in any */
};

extern const struct redact_shape redact_shapes[];
extern const size_t redact_shape_count;

/* The table, prepared for searching. */
struct redact_shape_index {
	uint16_t classes[256]; /* enum byte_class, by byte */
	struct shape_prefix *prefixes;
	int16_t first_prefix[256]; /* by first byte; -1: none */
	struct redact_filter filter;
};

int redact_shape_index_init(struct redact_shape_index *index); /* -ENOMEM */
void redact_shape_index_done(struct redact_shape_index *index);

/* A part of the stream, its beginning known and its end perhaps still to come. */
struct shape_text {
	const unsigned char *bytes;
	size_t len;
	bool is_final; /* nothing follows */
	const uint16_t *classes;
};

enum verdict { VERDICT_NO, VERDICT_YES, VERDICT_MORE /* it depends on bytes that have not come yet */ };

/* How to swallow the rest of a recognised secret, however long it is. */
enum swallow_kind { SWALLOW_NOTHING, SWALLOW_CLASS, SWALLOW_QUOTED, SWALLOW_PEM };

struct pem_state {
	size_t width;    /* of the body's first line; 0: the body has not begun, or its first line has not ended */
	size_t line_len; /* so far */
	unsigned header_count;
	bool is_in_header;
	bool is_last_line; /* shorter than the first: only the end may follow */
};

struct swallow {
	enum swallow_kind kind;
	uint16_t alphabet;    /* SWALLOW_CLASS */
	unsigned char quote;  /* SWALLOW_QUOTED: what ends it */
	bool is_escaped;      /* SWALLOW_QUOTED: the last byte was a backslash */
	struct pem_state pem; /* SWALLOW_PEM */
};

struct shape_match {
	size_t from, to; /* YES: what is secret so far. MORE: @from is the first byte that may be */
	struct swallow swallow;
};

typedef enum verdict shape_match_fn(const struct shape_text *text, const struct redact_shape *shape, size_t at,
				    size_t value, struct shape_match *match);

struct shape_kind_row {
	shape_match_fn *match;
	bool is_name;        /* the prefix is no secret, and matches in any case */
	uint16_t not_before; /* what may not stand before the prefix */
	uint16_t before;     /* what must; 0: anything */
};

extern const struct shape_kind_row redact_shape_kinds[SHAPE_KIND_COUNT];

/* Where the search stands in one window. */
struct shape_state {
	size_t at;            /* the next byte to decide */
	size_t hold;          /* the first byte that a shape may still claim */
	unsigned char before; /* the byte before the window; 0 at the beginning of the stream */
	struct swallow swallow;
};

/* Look at the window up to @len and note what is found. @is_final: the stream ends there, and all of it is decided. */
void redact_shapes_run(const struct redact_shape_index *index, struct shape_state *state, const unsigned char *bytes,
		       size_t len, bool is_final, struct redact_spans *spans);

static inline bool redact_shape_is_in(const struct shape_text *text, size_t at, uint16_t alphabet)
{
	return text->classes[text->bytes[at]] & alphabet;
}

/* Count the bytes from @at on that are of the alphabet, up to @max. */
static inline size_t redact_shape_run(const struct shape_text *text, size_t at, uint16_t alphabet, size_t max)
{
	size_t len = 0;

	while (len < max && at + len < text->len && redact_shape_is_in(text, at + len, alphabet))
		len++;
	return len;
}

/* Return the verdict where the text ends: no secret at the end of the stream, else wait for more. */
static inline enum verdict redact_shape_cut(const struct shape_text *text)
{
	return text->is_final ? VERDICT_NO : VERDICT_MORE;
}

/* Count the bytes of a quoted text from @at on, up to @max; *@is_escaped carries a backslash over. */
size_t redact_shape_quoted_run(const struct shape_text *text, size_t at, size_t max, unsigned char quote,
			       bool *is_escaped);

bool redact_shape_equals_folded(const unsigned char *bytes, const char *lower, size_t len);

/* -----BEGIN is at @at: is it the first line of a private key? Its end goes to *@end_out. */
enum verdict redact_pem_begin(const struct shape_text *text, size_t at, size_t *end_out);

/*
 * Continue through a block from @at. Returns where the secret ends so far. *@verdict: YES, the block ended there
 * (properly, or because the rest cannot be part of a block); MORE, it depends on bytes that have not arrived yet.
 */
size_t redact_pem_swallow(const struct shape_text *text, size_t at, struct pem_state *state, enum verdict *verdict);

#endif
