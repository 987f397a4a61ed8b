/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_base_units.c - durations, sizes and counts, there and back
 */
#include "base/units.h"

#include <errno.h>

#include "test.h"

#define MS UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)
#define KIB UINT64_C(1024)

struct example {
	const char *string;
	int rc;
	uint64_t value;
};

static void check_all(const struct example *examples, size_t count, int (*parse)(const char *, uint64_t *))
{
	for (size_t i = 0; i < count; i++) {
		uint64_t value = 12345;
		int rc = parse(examples[i].string, &value);

		if (rc != examples[i].rc || value != (rc < 0 ? 12345 : examples[i].value)) {
			printf("'%s' gives %d, %llu\n", examples[i].string, rc, (unsigned long long)value);
			CHECK(false);
		}
	}
}

static void test_durations_are_exact(void)
{
	static const struct example examples[] = {
		{"500ms", 0, 500 * MS},
		{"30s", 0, 30 * SECOND},
		{"5m", 0, 300 * SECOND},
		{"1h", 0, 3600 * SECOND},
		{"7", 0, 7 * SECOND},
		{"0", 0, 0},
		{"0.5", 0, 500 * MS},
		{"1.5s", 0, 1500 * MS},
		{"0.1", 0, 100 * MS},
		{"0.1ms", 0, 100000},
		{"1.5h", 0, 5400 * SECOND},
		{"0.30000000000000004", 0, 300 * MS},
		{"0.000000001", 0, 1},
		{"0.0000000019", 0, 1},
		{"0.9999999999999999999999999999", 0, SECOND - 1},
		{"007s", 0, 7 * SECOND},
		{"none", 0, LIMIT_NONE},
		{"9223372036", 0, 9223372036 * SECOND},
		{"9223372036.854775807", 0, INT64_MAX},
	};

	check_all(examples, ARRAY_LEN(examples), units_parse_duration);
}

static void test_what_is_no_duration_is_refused(void)
{
	static const struct example examples[] = {
		{"", -EINVAL, 0},      {"s", -EINVAL, 0},   {"5x", -EINVAL, 0},
		{"-1", -EINVAL, 0},    {"+1", -EINVAL, 0},  {" 1", -EINVAL, 0},
		{"1 ", -EINVAL, 0},    {"1 s", -EINVAL, 0}, {"1e3", -EINVAL, 0},
		{"1.", -EINVAL, 0},    {".5", -EINVAL, 0},  {"1.s", -EINVAL, 0},
		{"nan", -EINVAL, 0},   {"inf", -EINVAL, 0}, {"None", -EINVAL, 0},
		{"1S", -EINVAL, 0},    {"1d", -EINVAL, 0},  {"1mss", -EINVAL, 0},
		{"0x10", -EINVAL, 0},  {"1,5", -EINVAL, 0}, {"1.5.5", -EINVAL, 0},
		{"5m30s", -EINVAL, 0}, {"1K", -EINVAL, 0},  {"99999999999999999999x", -EINVAL, 0},
	};

	check_all(examples, ARRAY_LEN(examples), units_parse_duration);
}

static void test_durations_that_do_not_fit_are_out_of_range(void)
{
	static const struct example examples[] = {
		{"9223372036.854775808", -ERANGE, 0},        {"9223372037", -ERANGE, 0},
		{"18446744073709551615", -ERANGE, 0},        {"18446744073709551616", -ERANGE, 0},
		{"99999999999999999999999999h", -ERANGE, 0}, {"2562048h", -ERANGE, 0},
	};

	check_all(examples, ARRAY_LEN(examples), units_parse_duration);
}

static void test_sizes_are_1024_based_and_whole(void)
{
	static const struct example examples[] = {
		{"0", 0, 0},
		{"1000", 0, 1000},
		{"100K", 0, 100 * KIB},
		{"100k", 0, 100 * KIB},
		{"512M", 0, 512 * KIB * KIB},
		{"2g", 0, 2 * KIB * KIB * KIB},
		{"1T", 0, KIB * KIB * KIB * KIB},
		{"1.5G", 0, 3 * KIB * KIB * KIB / 2},
		{"0.5K", 0, 512},
		{"1.0", 0, 1},
		{"2.000000000000000000000000", 0, 2},
		{"none", 0, LIMIT_NONE},
		{"9223372036854775807", 0, INT64_MAX},
		{"8388607T", 0, UINT64_C(8388607) << 40},
		{"0.0001K", -EINVAL, 0},
		{"1.5", -EINVAL, 0},
		{"2.0000000000000000000001", -EINVAL, 0},
		{"1KB", -EINVAL, 0},
		{"1KiB", -EINVAL, 0},
		{"1B", -EINVAL, 0},
		{"K", -EINVAL, 0},
		{"-1", -EINVAL, 0},
		{"1 K", -EINVAL, 0},
		{"1e9", -EINVAL, 0},
		{"", -EINVAL, 0},
		{"9223372036854775808", -ERANGE, 0},
		{"8388608T", -ERANGE, 0},
		{"18446744073709551615", -ERANGE, 0},
		{"99999999999999999999999G", -ERANGE, 0},
	};

	check_all(examples, ARRAY_LEN(examples), units_parse_size);
}

static void test_counts_are_plain_whole_numbers(void)
{
	static const struct example examples[] = {
		{"64", 0, 64},
		{"0", 0, 0},
		{"none", 0, LIMIT_NONE},
		{"9223372036854775807", 0, INT64_MAX},
		{"1.0", -EINVAL, 0},
		{"1K", -EINVAL, 0},
		{"-1", -EINVAL, 0},
		{"", -EINVAL, 0},
		{"9223372036854775808", -ERANGE, 0},
		{"99999999999999999999", -ERANGE, 0},
	};

	check_all(examples, ARRAY_LEN(examples), units_parse_count);
}

static void test_durations_are_written_short_and_exact(void)
{
	static const struct {
		uint64_t value;
		const char *string;
	} examples[] = {
		{0, "0s"},
		{500 * MS, "500ms"},
		{1500 * MS, "1500ms"},
		{30 * SECOND, "30s"},
		{90 * SECOND, "90s"},
		{120 * SECOND, "2m"},
		{7200 * SECOND, "2h"},
		{1, "0.000001ms"},
		{1500000, "1.5ms"},
		{LIMIT_NONE, "none"},
		{1234567, "1.234567ms"},
	};

	for (size_t i = 0; i < ARRAY_LEN(examples); i++) {
		AUTO_TEXT text = {0};
		uint64_t back = 0;

		units_format_duration(&text, examples[i].value);
		CHECK_STRING(text_string(&text), examples[i].string);
		CHECK_INT(units_parse_duration(text_string(&text), &back), 0);
		CHECK(back == examples[i].value);
	}
}

static void test_sizes_are_written_short_and_exact(void)
{
	static const struct {
		uint64_t value;
		const char *string;
	} examples[] = {
		{0, "0"},
		{1, "1"},
		{1000, "1000"},
		{1024, "1K"},
		{1536, "1536"},
		{100 * KIB, "100K"},
		{512 * KIB * KIB, "512M"},
		{LIMIT_NONE, "none"},
		{INT64_MAX, "9223372036854775807"},
	};

	for (size_t i = 0; i < ARRAY_LEN(examples); i++) {
		AUTO_TEXT text = {0};
		uint64_t back = 0;

		units_format_size(&text, examples[i].value);
		CHECK_STRING(text_string(&text), examples[i].string);
		CHECK_INT(units_parse_size(text_string(&text), &back), 0);
		CHECK(back == examples[i].value);
	}
}

static void test_any_value_survives_writing_and_reading(void)
{
	uint64_t seed = 88172645463325252;

	for (int i = 0; i < 20000; i++) {
		AUTO_TEXT text = {0};
		uint64_t value, back = 0;

		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		value = seed >> (1 + seed % 60);
		units_format_duration(&text, value);
		CHECK_INT(units_parse_duration(text_string(&text), &back), 0);
		CHECK(back == value);
		text_clear(&text);
		units_format_size(&text, value);
		CHECK_INT(units_parse_size(text_string(&text), &back), 0);
		CHECK(back == value);
	}
}

static const struct test tests[] = {
	TEST(test_durations_are_exact),
	TEST(test_what_is_no_duration_is_refused),
	TEST(test_durations_that_do_not_fit_are_out_of_range),
	TEST(test_sizes_are_1024_based_and_whole),
	TEST(test_counts_are_plain_whole_numbers),
	TEST(test_durations_are_written_short_and_exact),
	TEST(test_sizes_are_written_short_and_exact),
	TEST(test_any_value_survives_writing_and_reading),
};

TEST_MAIN(tests)
