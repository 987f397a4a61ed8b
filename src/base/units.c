/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/units.c - durations and sizes as people write them
 *
 * The code uses integers only: "0.1s" is exactly 100 ms, independent of locale and floating point. A duration drops
 * digits below a nanosecond, because programs print floats with 17 digits. A size that is not a whole number of bytes
 * is an error. Results stay within int64_t, as the kernel's own limits do.
 */
#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_SECOND UINT64_C(1000000000)
/* Digits after the point that count; 10^18 times the largest unit fits into 128 bits. */
#define MAX_FRACTION_DIGITS 18

struct unit {
	const char *name;
	uint64_t factor;
};

/* From large to small; the last one is the unit of the result, or nearest to it. */
static const struct unit duration_units[] = {
	{"h", 3600 * NS_PER_SECOND}, {"m", 60 * NS_PER_SECOND}, {"s", NS_PER_SECOND}, {"ms", NS_PER_MS}};
static const struct unit size_units[] = {
	{"T", UINT64_C(1) << 40}, {"G", UINT64_C(1) << 30}, {"M", UINT64_C(1) << 20}, {"K", UINT64_C(1) << 10}};

/* A number with a point: whole + fraction / scale. */
struct decimal {
	uint64_t whole;
	uint64_t fraction;
	uint64_t scale;
	bool has_more; /* digits beyond those looked at, and not all of them 0 */
};

static bool is_digit(char character)
{
	return character >= '0' && character <= '9';
}

static int parse_whole(const char **at, uint64_t *whole_out)
{
	uint64_t whole = 0;

	if (!is_digit(**at))
		return -EINVAL;
	for (; is_digit(**at); (*at)++) {
		if (__builtin_mul_overflow(whole, 10, &whole) || __builtin_add_overflow(whole, **at - '0', &whole))
			return -ERANGE;
	}
	*whole_out = whole;
	return 0;
}

static int parse_decimal(const char **at, struct decimal *out)
{
	int rc = parse_whole(at, &out->whole), digit_count = 0;

	if (rc < 0)
		return rc;
	out->scale = 1;
	if (**at != '.')
		return 0;
	(*at)++;
	if (!is_digit(**at))
		return -EINVAL;
	for (; is_digit(**at); (*at)++) {
		if (digit_count++ < MAX_FRACTION_DIGITS) {
			out->fraction = out->fraction * 10 + (uint64_t)(**at - '0');
			out->scale *= 10;
		} else if (**at != '0') {
			out->has_more = true;
		}
	}
	return 0;
}

/* Digits may overflow in a text that is not a number: check the whole text before returning -ERANGE. */
static bool is_number_with_unit(const char *string, const char *unit_letters)
{
	string += strspn(string, "0123456789");
	if (*string == '.')
		string += 1 + strspn(string + 1, "0123456789");
	return string[strspn(string, unit_letters)] == '\0';
}

static int scale_decimal(const struct decimal *decimal, uint64_t factor, bool must_be_whole, uint64_t *out)
{
	unsigned __int128 product = (unsigned __int128)decimal->fraction * factor;
	uint64_t result;

	if (must_be_whole && (decimal->has_more || product % decimal->scale != 0))
		return -EINVAL;
	if (__builtin_mul_overflow(decimal->whole, factor, &result) ||
	    __builtin_add_overflow(result, (uint64_t)(product / decimal->scale), &result) || result > INT64_MAX)
		return -ERANGE;
	*out = result;
	return 0;
}

int units_parse_duration(const char *string, uint64_t *nanoseconds_out)
{
	struct decimal decimal = {0};
	const char *at = string;
	int rc;

	if (strcmp(string, "none") == 0) {
		*nanoseconds_out = LIMIT_NONE;
		return 0;
	}
	rc = parse_decimal(&at, &decimal);
	if (rc < 0)
		return rc == -ERANGE && !is_number_with_unit(string, "msh") ? -EINVAL : rc;
	if (!*at)
		return scale_decimal(&decimal, NS_PER_SECOND, false, nanoseconds_out);
	for (size_t i = 0; i < ARRAY_LEN(duration_units); i++) {
		if (strcmp(at, duration_units[i].name) == 0)
			return scale_decimal(&decimal, duration_units[i].factor, false, nanoseconds_out);
	}
	return -EINVAL;
}

int units_parse_size(const char *string, uint64_t *bytes_out)
{
	struct decimal decimal = {0};
	const char *at = string;
	int rc;

	if (strcmp(string, "none") == 0) {
		*bytes_out = LIMIT_NONE;
		return 0;
	}
	rc = parse_decimal(&at, &decimal);
	if (rc < 0)
		return rc == -ERANGE && !is_number_with_unit(string, "KMGTkmgt") ? -EINVAL : rc;
	if (!*at)
		return scale_decimal(&decimal, 1, true, bytes_out);
	for (size_t i = 0; i < ARRAY_LEN(size_units); i++) {
		if (toupper((unsigned char)at[0]) == size_units[i].name[0] && at[1] == '\0')
			return scale_decimal(&decimal, size_units[i].factor, true, bytes_out);
	}
	return -EINVAL;
}

int units_parse_count(const char *string, uint64_t *count_out)
{
	const char *at = string;
	uint64_t count = 0;
	int rc;

	if (strcmp(string, "none") == 0) {
		*count_out = LIMIT_NONE;
		return 0;
	}
	rc = parse_whole(&at, &count);
	if (rc < 0)
		return rc == -ERANGE && !is_number_with_unit(string, "") ? -EINVAL : rc;
	if (*at)
		return -EINVAL;
	if (count > INT64_MAX)
		return -ERANGE;
	*count_out = count;
	return 0;
}

void units_format_duration(struct text *text, uint64_t nanoseconds)
{
	uint64_t rest = nanoseconds % NS_PER_MS;
	int digits = 6;

	if (nanoseconds == LIMIT_NONE) {
		text_append_string(text, "none");
		return;
	}
	if (nanoseconds == 0) {
		text_append_string(text, "0s");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(duration_units); i++) {
		if (nanoseconds % duration_units[i].factor == 0) {
			text_append_format(text, "%" PRIu64 "%s", nanoseconds / duration_units[i].factor,
					   duration_units[i].name);
			return;
		}
	}
	for (; rest % 10 == 0; digits--)
		rest /= 10;
	text_append_format(text, "%" PRIu64 ".%0*" PRIu64 "ms", nanoseconds / NS_PER_MS, digits, rest);
}

void units_format_size(struct text *text, uint64_t bytes)
{
	if (bytes == LIMIT_NONE) {
		text_append_string(text, "none");
		return;
	}
	for (size_t i = 0; bytes && i < ARRAY_LEN(size_units); i++) {
		if (bytes % size_units[i].factor == 0) {
			text_append_format(text, "%" PRIu64 "%s", bytes / size_units[i].factor, size_units[i].name);
			return;
		}
	}
	text_append_format(text, "%" PRIu64, bytes);
}
