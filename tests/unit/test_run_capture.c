/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_run_capture.c - what is kept of two streams, against a model that remembers every byte
 */
#include <malloc.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "engine/run/capture.h"
#include "test.h"

static uint64_t random_state = 7;

static uint32_t random_below(uint32_t bound)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((random_state >> 33) % bound);
}

static struct capture *capture_of(uint64_t total_bytes, enum keep_mode keep)
{
	return run_capture_new(&(struct output_limit){total_bytes, {LIMIT_NONE, LIMIT_NONE}}, keep);
}

static void add(struct capture *capture, enum stream_index stream, const char *string)
{
	CHECK_INT(run_capture_add(capture, stream, string, strlen(string)), 0);
}

static void check_bytes(const struct capture *capture, enum stream_index stream, const char *expected)
{
	AUTO_TEXT out = {0};

	run_capture_bytes(capture, stream, &out);
	CHECK_STRING(text_string(&out), expected);
}

static void check_text(const struct capture *capture, enum stream_index stream, const char *expected, bool expect_lossy)
{
	AUTO_TEXT out = {0};
	bool is_lossy = !expect_lossy;

	run_capture_text(capture, stream, &out, &is_lossy);
	CHECK_STRING(text_string(&out), expected);
	CHECK_INT(is_lossy, expect_lossy);
}

static void test_each_stream_can_have_a_cap_of_its_own(void)
{
	static const struct {
		enum keep_mode keep;
		const char *stdout_kept, *stderr_kept;
		int stdout_elided_at;
	} rows[] = {{KEEP_HEAD, "abcd", "12345", 4}, {KEEP_TAIL, "efgh", "12345", 0}, {KEEP_BOTH, "abgh", "12345", 2}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct capture *capture = run_capture_new(&(struct output_limit){LIMIT_NONE, {4, 5}}, rows[i].keep);

		add(capture, STREAM_STDERR, "12345");
		add(capture, STREAM_STDOUT, "abcd");
		CHECK(!run_capture_is_truncated(capture));
		add(capture, STREAM_STDOUT, "efgh");
		CHECK(run_capture_is_truncated(capture));
		check_bytes(capture, STREAM_STDOUT, rows[i].stdout_kept);
		check_bytes(capture, STREAM_STDERR, rows[i].stderr_kept);
		CHECK_INT(run_capture_elided_at(capture, STREAM_STDOUT, false), rows[i].stdout_elided_at);
		CHECK_INT(run_capture_elided_at(capture, STREAM_STDERR, false), -1);
		run_capture_free(capture);
	}
}

static void test_head_keeps_the_first_bytes_of_both_streams(void)
{
	struct capture *capture = capture_of(8, KEEP_HEAD);

	add(capture, STREAM_STDOUT, "abc");
	add(capture, STREAM_STDERR, "12");
	CHECK(!run_capture_is_truncated(capture));
	CHECK_INT(run_capture_elided_at(capture, STREAM_STDOUT, false), -1);
	add(capture, STREAM_STDOUT, "defg");
	CHECK(run_capture_is_truncated(capture));
	check_bytes(capture, STREAM_STDOUT, "abcdef");
	check_bytes(capture, STREAM_STDERR, "12");
	CHECK_INT(run_capture_elided_at(capture, STREAM_STDOUT, false), 6);
	CHECK_INT(run_capture_elided_at(capture, STREAM_STDERR, false), -1);
	add(capture, STREAM_STDERR, "3");
	check_bytes(capture, STREAM_STDERR, "12");
	CHECK_INT(run_capture_elided_at(capture, STREAM_STDERR, false), 2);
	run_capture_free(capture);
}

static void test_tail_keeps_the_last_bytes_of_both_streams(void)
{
	struct capture *capture = capture_of(5, KEEP_TAIL);

	add(capture, STREAM_STDOUT, "abc");
	add(capture, STREAM_STDERR, "12");
	CHECK(!run_capture_is_truncated(capture));
	add(capture, STREAM_STDOUT, "d");
	check_bytes(capture, STREAM_STDOUT, "bcd");
	check_bytes(capture, STREAM_STDERR, "12");
	CHECK_INT(run_capture_elided_at(capture, STREAM_STDOUT, false), 0);
	CHECK_INT(run_capture_elided_at(capture, STREAM_STDERR, false), -1);
	add(capture, STREAM_STDERR, "3456789");
	check_bytes(capture, STREAM_STDOUT, "");
	check_bytes(capture, STREAM_STDERR, "56789");
	run_capture_free(capture);
}

static void test_both_keeps_the_first_and_the_last_half(void)
{
	struct capture *capture = capture_of(7, KEEP_BOTH);

	add(capture, STREAM_STDOUT, "abcdefg");
	CHECK(!run_capture_is_truncated(capture));
	check_bytes(capture, STREAM_STDOUT, "abcdefg");
	CHECK_INT(run_capture_elided_at(capture, STREAM_STDOUT, false), -1);
	add(capture, STREAM_STDOUT, "hij");
	/* The head takes the odd byte. */
	check_bytes(capture, STREAM_STDOUT, "abcdhij");
	CHECK_INT(run_capture_elided_at(capture, STREAM_STDOUT, false), 4);
	CHECK_INT(run_capture_elided_at(capture, STREAM_STDERR, false), -1);
	run_capture_free(capture);
}

static void test_limit_zero_keeps_nothing(void)
{
	static const enum keep_mode modes[] = {KEEP_HEAD, KEEP_TAIL, KEEP_BOTH};

	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		struct capture *capture = capture_of(0, modes[i]);

		CHECK(!run_capture_is_truncated(capture));
		CHECK_INT(run_capture_add(capture, STREAM_STDOUT, "", 0), 0);
		CHECK(!run_capture_is_truncated(capture));
		add(capture, STREAM_STDERR, "\xe2\x82\xac");
		CHECK(run_capture_is_truncated(capture));
		check_bytes(capture, STREAM_STDERR, "");
		check_text(capture, STREAM_STDERR, "", false);
		CHECK_INT(run_capture_elided_at(capture, STREAM_STDERR, true), 0);
		CHECK_INT(run_capture_elided_at(capture, STREAM_STDOUT, true), -1);
		run_capture_free(capture);
	}
}

static void test_no_limit_keeps_everything(void)
{
	static const enum keep_mode modes[] = {KEEP_HEAD, KEEP_TAIL, KEEP_BOTH};

	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		struct capture *capture = capture_of(LIMIT_NONE, modes[i]);
		AUTO_TEXT out = {0};

		for (int round = 0; round < 5000; round++)
			add(capture, round % 3 ? STREAM_STDOUT : STREAM_STDERR, "0123456789");
		run_capture_bytes(capture, STREAM_STDOUT, &out);
		CHECK_INT(out.len, 33330);
		CHECK(!run_capture_is_truncated(capture));
		run_capture_free(capture);
	}
}

static void test_character_cut_by_the_cap_is_dropped_from_text(void)
{
	struct capture *capture = capture_of(4, KEEP_HEAD);

	add(capture, STREAM_STDOUT, "ab\xe2\x82");
	/* The cap has not cut anything yet: this is how the stream is. */
	check_text(capture, STREAM_STDOUT, "ab\xe2\x82", true);
	add(capture, STREAM_STDOUT,
	    "\xac"
	    "c");
	check_bytes(capture, STREAM_STDOUT, "ab\xe2\x82");
	check_text(capture, STREAM_STDOUT, "ab", false);
	CHECK_INT(run_capture_elided_at(capture, STREAM_STDOUT, false), 4);
	CHECK_INT(run_capture_elided_at(capture, STREAM_STDOUT, true), 2);
	run_capture_free(capture);

	capture = capture_of(4, KEEP_TAIL);
	add(capture, STREAM_STDOUT,
	    "ab\xe2\x82\xac"
	    "cd");
	check_bytes(capture, STREAM_STDOUT,
		    "\x82\xac"
		    "cd");
	check_text(capture, STREAM_STDOUT, "cd", false);
	CHECK_INT(run_capture_elided_at(capture, STREAM_STDOUT, true), 0);
	run_capture_free(capture);

	/* One character over both cuts: a byte kept on either side, two dropped. */
	capture = capture_of(4, KEEP_BOTH);
	add(capture, STREAM_STDOUT,
	    "a\xf0\x9f\x98\x80"
	    "b");
	check_bytes(capture, STREAM_STDOUT,
		    "a\xf0\x80"
		    "b");
	check_text(capture, STREAM_STDOUT, "ab", false);
	CHECK_INT(run_capture_elided_at(capture, STREAM_STDOUT, true), 1);
	run_capture_free(capture);
}

static void test_bytes_that_are_no_character_are_left_at_a_cut(void)
{
	struct capture *capture = capture_of(2, KEEP_HEAD);

	add(capture, STREAM_STDOUT,
	    "a\xe2"
	    "bc");
	check_text(capture, STREAM_STDOUT, "a\xe2", true);
	CHECK_INT(run_capture_elided_at(capture, STREAM_STDOUT, true), 2);
	run_capture_free(capture);

	capture = capture_of(2, KEEP_TAIL);
	add(capture, STREAM_STDOUT,
	    "ab\x82"
	    "c");
	check_text(capture, STREAM_STDOUT,
		   "\x82"
		   "c",
		   true);
	run_capture_free(capture);
}

static void test_character_is_whole_although_the_streams_are_interleaved(void)
{
	struct capture *capture = capture_of(6, KEEP_TAIL);

	add(capture, STREAM_STDOUT, "x\xe2");
	add(capture, STREAM_STDERR, "12");
	add(capture, STREAM_STDOUT, "\x82");
	add(capture, STREAM_STDERR, "3");
	add(capture, STREAM_STDOUT, "\xac");
	check_bytes(capture, STREAM_STDOUT, "\xe2\x82\xac");
	check_text(capture, STREAM_STDOUT, "\xe2\x82\xac", false);
	check_text(capture, STREAM_STDERR, "123", false);
	add(capture, STREAM_STDERR, "4");
	check_text(capture, STREAM_STDOUT, "", false);
	check_text(capture, STREAM_STDERR, "1234", false);
	run_capture_free(capture);
}

static void test_out_is_appended_to(void)
{
	struct capture *capture = capture_of(4, KEEP_BOTH);
	AUTO_TEXT out = {0};
	bool is_lossy;

	text_append_string(&out, "\xff<");
	add(capture, STREAM_STDOUT,
	    "a\xc3\xa4\xc3\xa4"
	    "b");
	run_capture_text(capture, STREAM_STDOUT, &out, &is_lossy);
	CHECK_STRING(text_string(&out), "\xff<ab");
	CHECK(!is_lossy);
	run_capture_bytes(capture, STREAM_STDOUT, &out);
	CHECK_STRING(text_string(&out), "\xff<aba\xc3\xa4"
					"b");
	run_capture_free(capture);
}

/* --- against a model --- */

#define MODEL_MAX 30000

struct model {
	unsigned char bytes[MODEL_MAX];
	unsigned char streams[MODEL_MAX];
	size_t count;
};

static bool model_keeps(const struct model *model, size_t at, size_t limit, enum keep_mode keep)
{
	size_t tail = keep == KEEP_TAIL ? limit : keep == KEEP_BOTH ? limit / 2 : 0;

	return at < limit - tail || model->count - at <= tail;
}

static void check_against_model(const struct model *model, const struct capture *capture, size_t limit,
				enum keep_mode keep)
{
	bool is_truncated = false;

	for (int stream = 0; stream < STREAM_COUNT; stream++) {
		AUTO_TEXT expected = {0};
		AUTO_TEXT actual = {0};
		AUTO_TEXT text = {0};
		int64_t elided_at = -1, in_text;
		bool is_lossy;

		for (size_t at = 0; at < model->count; at++) {
			if (model->streams[at] != stream)
				continue;
			if (model_keeps(model, at, limit, keep))
				text_append_char(&expected, (char)model->bytes[at]);
			else if (elided_at < 0)
				elided_at = (int64_t)expected.len;
		}
		is_truncated |= elided_at >= 0;
		run_capture_bytes(capture, stream, &actual);
		CHECK_INT(actual.len, expected.len);
		CHECK(actual.len == expected.len &&
		      memcmp(text_string(&actual), text_string(&expected), actual.len) == 0);
		CHECK_INT(run_capture_elided_at(capture, stream, false), elided_at);
		run_capture_text(capture, stream, &text, &is_lossy);
		CHECK_INT(is_lossy, !utf8_is_valid((const unsigned char *)text_string(&text), text.len));
		in_text = run_capture_elided_at(capture, stream, true);
		CHECK(elided_at < 0 ? in_text == -1 : in_text <= elided_at && in_text + 3 >= elided_at);
		CHECK(text.len <= actual.len && text.len + 6 >= actual.len);
	}
	CHECK_INT(run_capture_is_truncated(capture), is_truncated);
}

static void run_against_model(struct model *model, size_t limit, enum keep_mode keep, uint32_t write_count,
			      uint32_t write_max)
{
	struct capture *capture = capture_of(limit, keep);

	model->count = 0;
	for (uint32_t i = 0; i < write_count; i++) {
		size_t len = random_below(write_max + 1);
		unsigned char stream = (unsigned char)random_below(2);

		len = MIN_OF(len, MODEL_MAX - model->count);
		for (size_t k = 0; k < len; k++)
			model->bytes[model->count + k] =
				(unsigned char)(random_below(3) ? 'a' + random_below(26) : random_below(256));
		memset(model->streams + model->count, stream, len);
		CHECK_INT(run_capture_add(capture, stream, model->bytes + model->count, len), 0);
		model->count += len;
		if (write_count < 20)
			check_against_model(model, capture, limit, keep);
	}
	check_against_model(model, capture, limit, keep);
	run_capture_free(capture);
}

static void test_kept_bytes_agree_with_a_model(void)
{
	struct model *model = malloc(sizeof(*model));

	for (int round = 0; round < 6000; round++)
		run_against_model(model, random_below(40), (enum keep_mode)random_below(3), random_below(15), 12);
	for (int round = 0; round < 100; round++)
		run_against_model(model, random_below(12000), (enum keep_mode)random_below(3), 300,
				  1 + random_below(300));
	for (int round = 0; round < 20; round++)
		run_against_model(model, random_below(12000), (enum keep_mode)random_below(3), 10, 9000);
	free(model);
}

/* Every character of valid text is kept whole or not at all. */
static void test_text_of_valid_utf8_is_never_lossy(void)
{
	static const char *const characters[] = {"a", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};

	for (int round = 0; round < 5000; round++) {
		struct capture *capture = capture_of(random_below(20), (enum keep_mode)random_below(3));
		uint32_t character_count = random_below(15);

		for (uint32_t i = 0; i < character_count; i++) {
			const char *character = characters[random_below(4)];
			enum stream_index stream = (enum stream_index)random_below(2);
			size_t cut = random_below((uint32_t)strlen(character));

			CHECK_INT(run_capture_add(capture, stream, character, cut), 0);
			CHECK_INT(run_capture_add(capture, stream, character + cut, strlen(character) - cut), 0);
		}
		for (int stream = 0; stream < STREAM_COUNT; stream++) {
			AUTO_TEXT out = {0};
			bool is_lossy = true;

			run_capture_text(capture, stream, &out, &is_lossy);
			CHECK(!is_lossy);
		}
		run_capture_free(capture);
	}
}

static void test_memory_stays_near_the_limit_for_alternating_single_bytes(void)
{
	static const enum keep_mode modes[] = {KEEP_HEAD, KEEP_TAIL, KEEP_BOTH};
	const size_t limit = 1 << 20;

	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		struct capture *capture = capture_of(limit, modes[i]);
		AUTO_TEXT out = {0};

		for (int round = 0; round < 3000000; round++)
			run_capture_add(capture, round & 1, &"xy"[round & 1], 1);
#ifdef __GLIBC__
		CHECK(mallinfo2().uordblks + mallinfo2().hblkhd < 3 * limit);
#endif
		run_capture_bytes(capture, STREAM_STDOUT, &out);
		run_capture_bytes(capture, STREAM_STDERR, &out);
		CHECK_INT(out.len, limit);
		run_capture_free(capture);
	}
}

static const struct test tests[] = {
	TEST(test_each_stream_can_have_a_cap_of_its_own),
	TEST(test_head_keeps_the_first_bytes_of_both_streams),
	TEST(test_tail_keeps_the_last_bytes_of_both_streams),
	TEST(test_both_keeps_the_first_and_the_last_half),
	TEST(test_limit_zero_keeps_nothing),
	TEST(test_no_limit_keeps_everything),
	TEST(test_character_cut_by_the_cap_is_dropped_from_text),
	TEST(test_bytes_that_are_no_character_are_left_at_a_cut),
	TEST(test_character_is_whole_although_the_streams_are_interleaved),
	TEST(test_out_is_appended_to),
	TEST(test_kept_bytes_agree_with_a_model),
	TEST(test_text_of_valid_utf8_is_never_lossy),
	TEST(test_memory_stays_near_the_limit_for_alternating_single_bytes),
};

TEST_MAIN(tests)
