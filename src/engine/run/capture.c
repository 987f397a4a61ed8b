/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/run/capture.c - keep at most N bytes of two streams together, or of each: the first, the last, or the first and last half
 *
 * What is kept is a head and a tail, either of which may be empty: all head for KEEP_HEAD, all tail for KEEP_TAIL, and
 * for KEEP_BOTH a half each, the head taking the odd byte. The head needs no order: its bytes go to their stream's text
 * until the two together are full. The tail is one ring for both streams in the order of arrival, with one bit beside
 * each byte that says whose it is: an eighth more memory whatever the pattern of writes, where a list of writes would
 * take many times the limit if a command wrote single bytes to both streams in turn.
 *
 * Where each stream has a cap of its own there are two such stores, each with bytes of one stream only.
 *
 * The store remembers the three dropped bytes next to each cut. They distinguish a character that the cap cut
 * from bytes that never were one.
 */
#include "engine/run/capture.h"

#include <errno.h>
#include <string.h>

#include "base/utf8.h"

_Static_assert(STREAM_COUNT == 2, "one bit tells the streams of the tail apart");

#define RING_FIRST_CAPACITY 4096
#define WORD_BITS 64
#define EDGE_MAX 3 /* a character has at most three bytes on one side of a cut */

struct ring {
	unsigned char *bytes;
	uint64_t *tags; /* bit n: the stream of byte n */
	size_t start, len, capacity;
	uint64_t limit;
};

struct edge {
	unsigned char bytes[EDGE_MAX];
	size_t len;
};

struct store {
	struct text head[STREAM_COUNT];
	uint64_t head_limit;
	struct ring tail;
	uint64_t dropped[STREAM_COUNT];
	struct edge after_head[STREAM_COUNT];  /* the stream's first bytes that were too late for the head */
	struct edge before_tail[STREAM_COUNT]; /* the last bytes that the tail has dropped */
};

struct capture {
	struct store stores[STREAM_COUNT]; /* the first is for both streams, unless it is split */
	bool is_split;
};

static void store_init(struct store *store, uint64_t limit_bytes, enum keep_mode keep)
{
	switch (keep) {
	case KEEP_HEAD:
		break;
	case KEEP_TAIL:
		store->tail.limit = limit_bytes;
		break;
	case KEEP_BOTH:
		store->tail.limit = limit_bytes / 2;
		break;
	}
	store->head_limit = limit_bytes - store->tail.limit;
}

static void store_done(struct store *store)
{
	for (int stream = 0; stream < STREAM_COUNT; stream++)
		text_done(&store->head[stream]);
	free(store->tail.bytes);
	free(store->tail.tags);
}

static const struct store *store_of(const struct capture *capture, enum stream_index stream)
{
	return &capture->stores[capture->is_split ? stream : 0];
}

struct capture *run_capture_new(const struct output_limit *limit, enum keep_mode keep)
{
	struct capture *capture = calloc(1, sizeof(*capture));

	if (!capture)
		return NULL;
	capture->is_split = policy_output_is_split(limit);
	for (int i = 0; i < STREAM_COUNT; i++)
		store_init(&capture->stores[i], capture->is_split ? limit->stream_bytes[i] : limit->total_bytes, keep);
	return capture;
}

void run_capture_free(struct capture *capture)
{
	if (!capture)
		return;
	for (int i = 0; i < STREAM_COUNT; i++)
		store_done(&capture->stores[i]);
	free(capture);
}

static void edge_add_first(struct edge *edge, const unsigned char *bytes, size_t len)
{
	size_t part = MIN_OF(len, EDGE_MAX - edge->len);

	memcpy(edge->bytes + edge->len, bytes, part);
	edge->len += part;
}

static void edge_add_last(struct edge *edge, const unsigned char *bytes, size_t len)
{
	size_t part = MIN_OF(len, (size_t)EDGE_MAX);
	size_t kept = MIN_OF(edge->len, EDGE_MAX - part);

	memmove(edge->bytes, edge->bytes + edge->len - kept, kept);
	memcpy(edge->bytes + kept, bytes + len - part, part);
	edge->len = kept + part;
}

/* --- the ring --- */

static int ring_grow(struct ring *ring, size_t needed)
{
	size_t capacity = MAX_OF(ring->capacity, (size_t)RING_FIRST_CAPACITY);
	size_t word_count, old_word_count = ring->tags ? ring->capacity / WORD_BITS + 1 : 0;
	unsigned char *bytes;
	uint64_t *tags;

	if (needed <= ring->capacity)
		return 0;
	while (capacity < needed)
		capacity = capacity > SIZE_MAX / 2 ? needed : capacity * 2;
	capacity = (size_t)MIN_OF((uint64_t)capacity, ring->limit);
	word_count = capacity / WORD_BITS + 1;
	bytes = realloc(ring->bytes, capacity);
	if (!bytes)
		return -ENOMEM;
	ring->bytes = bytes;
	tags = realloc(ring->tags, word_count * sizeof(*tags));
	if (!tags)
		return -ENOMEM;
	memset(tags + old_word_count, 0, (word_count - old_word_count) * sizeof(*tags));
	ring->tags = tags;
	ring->capacity = capacity;
	return 0;
}

static void set_tags(uint64_t *tags, size_t at, size_t len, enum stream_index stream)
{
	while (len > 0) {
		size_t bit = at % WORD_BITS, part = MIN_OF(len, WORD_BITS - bit);
		uint64_t mask = (part == WORD_BITS ? ~UINT64_C(0) : (UINT64_C(1) << part) - 1) << bit;

		if (stream == STREAM_STDERR)
			tags[at / WORD_BITS] |= mask;
		else
			tags[at / WORD_BITS] &= ~mask;
		at += part;
		len -= part;
	}
}

/* Count the bytes from @at on, up to @max, of one stream, and find which; 64 at a time. */
static size_t measure_run(const uint64_t *tags, size_t at, size_t max, enum stream_index *stream_out)
{
	uint64_t is_stderr = tags[at / WORD_BITS] >> (at % WORD_BITS) & 1;
	uint64_t flip = is_stderr ? ~UINT64_C(0) : 0;
	size_t len = 0;

	*stream_out = is_stderr ? STREAM_STDERR : STREAM_STDOUT;
	while (len < max) {
		size_t bit = (at + len) % WORD_BITS;
		uint64_t others = (tags[(at + len) / WORD_BITS] ^ flip) >> bit;

		if (others != 0)
			return MIN_OF(max, len + (size_t)__builtin_ctzll(others));
		len += WORD_BITS - bit;
	}
	return max;
}

/* The run at @offset from the ring's oldest byte. */
static size_t ring_run(const struct ring *ring, size_t offset, size_t max, const unsigned char **bytes_out,
		       enum stream_index *stream_out)
{
	size_t to_end = ring->capacity - ring->start;
	size_t at = offset < to_end ? ring->start + offset : offset - to_end;

	*bytes_out = ring->bytes + at;
	return measure_run(ring->tags, at, MIN_OF(max, ring->capacity - at), stream_out);
}

static void drop(struct store *store, enum stream_index stream, const unsigned char *bytes, size_t len)
{
	store->dropped[stream] += len;
	edge_add_last(&store->before_tail[stream], bytes, len);
}

static void ring_drop_oldest(struct store *store, size_t count)
{
	struct ring *ring = &store->tail;

	while (count > 0) {
		const unsigned char *bytes;
		enum stream_index stream;
		size_t part = ring_run(ring, 0, count, &bytes, &stream);

		drop(store, stream, bytes, part);
		ring->start = ring->start + part == ring->capacity ? 0 : ring->start + part;
		ring->len -= part;
		count -= part;
	}
}

/* There is room for all of it. */
static void ring_append(struct ring *ring, enum stream_index stream, const unsigned char *bytes, size_t len)
{
	while (len > 0) {
		size_t to_end = ring->capacity - ring->start;
		size_t at = ring->len < to_end ? ring->start + ring->len : ring->len - to_end;
		size_t part = MIN_OF(len, ring->capacity - at);

		memcpy(ring->bytes + at, bytes, part);
		set_tags(ring->tags, at, part, stream);
		ring->len += part;
		bytes += part;
		len -= part;
	}
}

static int tail_add(struct store *store, enum stream_index stream, const unsigned char *bytes, size_t len)
{
	struct ring *ring = &store->tail;
	uint64_t total = (uint64_t)ring->len + len;
	int rc = ring_grow(ring, (size_t)MIN_OF(total, ring->limit));

	if (rc < 0)
		return rc;
	/* The ring turns only once it has its full size: until then nothing is dropped, and growing moves nothing. */
	if (total > ring->limit)
		ring_drop_oldest(store, (size_t)MIN_OF(total - ring->limit, (uint64_t)ring->len));
	if (len > ring->limit) {
		size_t excess = len - (size_t)ring->limit;

		drop(store, stream, bytes, excess);
		bytes += excess;
		len -= excess;
	}
	ring_append(ring, stream, bytes, len);
	return 0;
}

/* --- in --- */

int run_capture_add(struct capture *capture, enum stream_index stream, const void *bytes, size_t len)
{
	struct store *store = &capture->stores[capture->is_split ? stream : 0];
	const unsigned char *from = bytes;
	uint64_t room = store->head_limit - store->head[STREAM_STDOUT].len - store->head[STREAM_STDERR].len;
	size_t part = (size_t)MIN_OF(room, (uint64_t)len);

	if (part > 0) {
		text_append(&store->head[stream], from, part);
		if (text_failed(&store->head[stream]))
			return -ENOMEM;
	}
	if (part == len)
		return 0;
	edge_add_first(&store->after_head[stream], from + part, len - part);
	return tail_add(store, stream, from + part, len - part);
}

/* --- out --- */

bool run_capture_is_truncated(const struct capture *capture)
{
	for (int i = 0; i < STREAM_COUNT; i++)
		if (store_of(capture, (enum stream_index)i)->dropped[i] != 0)
			return true;
	return false;
}

static void append_tail(const struct store *store, enum stream_index stream, struct text *out)
{
	const struct ring *ring = &store->tail;

	for (size_t offset = 0, part; offset < ring->len; offset += part) {
		const unsigned char *bytes;
		enum stream_index of_stream;

		part = ring_run(ring, offset, ring->len - offset, &bytes, &of_stream);
		if (of_stream == stream)
			text_append(out, bytes, part);
	}
}

void run_capture_bytes(const struct capture *capture, enum stream_index stream, struct text *out)
{
	const struct store *store = store_of(capture, stream);

	text_append(out, store->head[stream].data, store->head[stream].len);
	append_tail(store, stream, out);
}

/*
 * @before are the bytes in front of a cut, @after those behind it. Returns how many bytes in front belong to a character
 * that the cut goes through, and how many behind.
 */
static size_t find_cut(const struct edge *before, const struct edge *after, size_t *behind_out)
{
	unsigned char bytes[2 * EDGE_MAX];
	size_t front = utf8_cut_tail(before->bytes, before->len);
	size_t len = front + after->len, character;
	bool is_cut;

	*behind_out = 0;
	if (front == 0)
		return 0;
	memcpy(bytes, before->bytes + before->len - front, front);
	memcpy(bytes + front, after->bytes, after->len);
	character = utf8_character(bytes, len, &is_cut);
	if (character == 0 && !is_cut)
		return 0;
	*behind_out = (is_cut ? len : character) - front;
	return front;
}

/* Count the bytes at the end of the head of a character whose rest was dropped. */
static size_t cut_at_head(const struct store *store, enum stream_index stream)
{
	const struct text *head = &store->head[stream];
	struct edge before = {.len = 0};
	size_t behind;

	if (store->dropped[stream] == 0 || head->len == 0)
		return 0;
	edge_add_last(&before, (const unsigned char *)head->data, head->len);
	return find_cut(&before, &store->after_head[stream], &behind);
}

/* Count the bytes at the beginning of the tail of a character whose beginning was dropped. */
static size_t cut_at_tail(const struct store *store, enum stream_index stream, const char *tail, size_t tail_len)
{
	const struct text *head = &store->head[stream];
	struct edge before = {.len = 0}, after = {.len = 0};
	size_t behind;

	if (store->dropped[stream] == 0 || tail_len == 0)
		return 0;
	if (head->len > 0)
		edge_add_last(&before, (const unsigned char *)head->data, head->len);
	edge_add_last(&before, store->before_tail[stream].bytes, store->before_tail[stream].len);
	edge_add_first(&after, (const unsigned char *)tail, tail_len);
	find_cut(&before, &after, &behind);
	return behind;
}

size_t run_capture_cut(const struct capture *capture, enum stream_index stream, size_t *start_out)
{
	const struct store *store = store_of(capture, stream);
	size_t before = cut_at_head(store, stream);
	AUTO_TEXT tail = {0};

	if (store->dropped[stream] != 0)
		append_tail(store, stream, &tail);
	*start_out = store->head[stream].len - before;
	return before + cut_at_tail(store, stream, tail.data, tail.len);
}

void run_capture_text(const struct capture *capture, enum stream_index stream, struct text *out, bool *is_lossy)
{
	size_t start = out->len, at, cut = run_capture_cut(capture, stream, &at);

	*is_lossy = false;
	run_capture_bytes(capture, stream, out);
	if (text_failed(out))
		return;
	if (cut > 0) {
		memmove(out->data + start + at, out->data + start + at + cut, out->len - start - at - cut);
		out->len -= cut;
		out->data[out->len] = '\0';
	}
	*is_lossy = out->len > start && !utf8_is_valid((const unsigned char *)out->data + start, out->len - start);
}

int64_t run_capture_elided_at(const struct capture *capture, enum stream_index stream, bool in_text)
{
	const struct store *store = store_of(capture, stream);

	if (store->dropped[stream] == 0)
		return -1;
	return (int64_t)(store->head[stream].len - (in_text ? cut_at_head(store, stream) : 0));
}
