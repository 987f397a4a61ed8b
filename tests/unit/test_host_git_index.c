/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_host_git_index.c - gitlinks in indexes of every version, and what is no index
 */
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "host/host_git_index.h"

/* --- an index to read --------------------------------------------------------------------------------------- */

struct entry {
	const char *path;
	unsigned mode;
	bool is_extended;
};

static void put(struct text *out, uint32_t number)
{
	unsigned char bytes[4] = {(unsigned char)(number >> 24), (unsigned char)(number >> 16),
				  (unsigned char)(number >> 8), (unsigned char)number};

	text_append(out, bytes, 4);
}

static void put_zeros(struct text *out, size_t count)
{
	while (count--)
		text_append_char(out, '\0');
}

static void put_entry(struct text *out, unsigned version, size_t hash_bytes, const struct entry *entry,
		      const char *before)
{
	size_t start = out->len, len = strlen(entry->path), same = 0;
	unsigned flags = (unsigned)MIN_OF(len, 0xfffU) | (entry->is_extended ? 0x4000U : 0);

	put_zeros(out, 24);
	put(out, entry->mode);
	put_zeros(out, 12 + hash_bytes);
	text_append_char(out, (char)(flags >> 8));
	text_append_char(out, (char)flags);
	if (entry->is_extended)
		put_zeros(out, 2);
	if (version == 4) {
		size_t dropped;

		while (before[same] && before[same] == entry->path[same])
			same++;
		dropped = strlen(before) - same;
		if (dropped >= 128)
			text_append_char(out, (char)(0x80 | ((dropped >> 7) - 1)));
		text_append_char(out, (char)(dropped & 0x7f));
		text_append(out, entry->path + same, len - same + 1);
		return;
	}
	text_append(out, entry->path, len);
	put_zeros(out, 8 - (out->len - start) % 8);
}

static void put_index(struct text *out, unsigned version, size_t hash_bytes, const struct entry *entries, size_t count)
{
	text_append(out, "DIRC", 4);
	put(out, version);
	put(out, (uint32_t)count);
	for (size_t i = 0; i < count; i++)
		put_entry(out, version, hash_bytes, &entries[i], i ? entries[i - 1].path : "");
	text_append(out, "TREE", 4);
	put(out, 5);
	put_zeros(out, 5);
}

/* --- reading it --------------------------------------------------------------------------------------------- */

struct source {
	const char *bytes;
	size_t left, step;
};

static ssize_t read_bytes(void *context, void *buffer, size_t len)
{
	struct source *source = context;
	size_t part = MIN_OF(MIN_OF(len, source->left), source->step);

	memcpy(buffer, source->bytes, part);
	source->bytes += part;
	source->left -= part;
	return (ssize_t)part;
}

static int tell(void *context, const char *path)
{
	text_append_format(context, "%.40s|", path);
	return 0;
}

static int read_index(const struct text *index, size_t hash_bytes, size_t step, struct text *told,
		      struct git_index_facts *facts)
{
	struct source source = {index->data, index->len, step};
	struct git_index_request request = {
		.read = read_bytes,
		.read_context = &source,
		.size = index->len,
		.hash_bytes = hash_bytes,
		.each = tell,
		.each_context = told,
	};

	text_clear(told);
	return git_index_gitlinks(&request, facts);
}

static void test_gitlinks_of_every_version(void)
{
	char long_name[3000];
	const struct entry entries[] = {
		{"a", 0100644, false},         {"dir/file", 0100755, false}, {"dir/module", 0160000, false},
		{"dir/n", 0120000, false},     {long_name, 0160000, false},  {"x/module", 0160000, false},
		{"x/module2", 0160000, false},
	};
	const size_t sizes[] = {GIT_HASH_BYTES, GIT_HASH_BYTES_MAX};
	const size_t steps[] = {1, 7, 1 << 20};
	char expected[256];

	memset(long_name, 'l', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	snprintf(expected, sizeof(expected), "dir/module|%.40s|x/module|x/module2|", long_name);
	for (unsigned version = 2; version <= 4; version++) {
		for (size_t i = 0; i < ARRAY_LEN(sizes) * ARRAY_LEN(steps); i++) {
			size_t hash_bytes = sizes[i % 2];
			AUTO_TEXT index = {0};
			AUTO_TEXT told = {0};
			struct git_index_facts facts = {0};

			put_index(&index, version, hash_bytes, entries, ARRAY_LEN(entries));
			put_zeros(&index, hash_bytes);
			CHECK_INT(read_index(&index, hash_bytes, steps[i / 2], &told, &facts), 0);
			CHECK_STRING(text_string(&told), expected);
			CHECK(!facts.has_base && !facts.has_nameless);
		}
	}
}

static void test_a_split_index_names_the_other_file(void)
{
	const struct entry entries[] = {{"", 0160000, true}, {"m", 0160000, false}};
	AUTO_TEXT index = {0};
	AUTO_TEXT told = {0};
	struct git_index_facts facts = {0};

	put_index(&index, 3, GIT_HASH_BYTES, entries, ARRAY_LEN(entries));
	text_append(&index, "link", 4);
	put(&index, 24);
	text_append(&index, "\x12\xab", 2);
	put_zeros(&index, 22 + GIT_HASH_BYTES);
	CHECK_INT(read_index(&index, GIT_HASH_BYTES, 1 << 20, &told, &facts), 0);
	CHECK_STRING(text_string(&told), "m|");
	CHECK(facts.has_base && facts.has_nameless && !strncmp(facts.base, "12ab0000", 8) && strlen(facts.base) == 40);
}

/* Every beginning of an index is none, and neither is one with another byte in its header. */
static void test_what_is_no_index_is_refused(void)
{
	const struct entry entries[] = {{"a", 0100644, false}, {"dir/module", 0160000, false}};

	for (unsigned version = 2; version <= 4; version++) {
		AUTO_TEXT index = {0};
		AUTO_TEXT told = {0};
		struct git_index_facts facts;

		put_index(&index, version, GIT_HASH_BYTES, entries, ARRAY_LEN(entries));
		put_zeros(&index, GIT_HASH_BYTES);
		for (size_t len = 0; len < index.len; len++) {
			struct text part = {.data = index.data, .len = len};

			/* Without its extension it is an index again, if that is where it ends. */
			if (read_index(&part, GIT_HASH_BYTES, 64, &told, &facts) == 0)
				CHECK_STRING(text_string(&told), "dir/module|");
		}
		for (size_t at = 0; at < 8; at++) {
			index.data[at] ^= 0x40;
			CHECK_INT(read_index(&index, GIT_HASH_BYTES, 64, &told, &facts), -EINVAL);
			index.data[at] ^= 0x40;
		}
		index.data[8] = 0x7f; /* more entries than there are */
		CHECK_INT(read_index(&index, GIT_HASH_BYTES, 64, &told, &facts), -EINVAL);
	}
}

/* --- tables of blocks --------------------------------------------------------------------------------------- */

/* An index of three blocks of two entries; @wrong: which number of the tables at its end is off by one, or 0. */
static void put_blocks(struct text *out, unsigned version, unsigned wrong)
{
	const struct entry entries[] = {
		{"a/a", 0100644, false}, {"a/b", 0100644, false}, {"a/c", 0160000, false},
		{"a/d", 0100644, false}, {"a/e", 0100644, false}, {"a/f", 0160000, false},
	};
	size_t starts[3], end;

	text_append(out, "DIRC", 4);
	put(out, version);
	put(out, ARRAY_LEN(entries));
	for (size_t i = 0; i < ARRAY_LEN(entries); i++) {
		if (i % 2 == 0)
			starts[i / 2] = out->len;
		/* At the beginning of a block the whole name before is dropped, as if it had nothing in common. */
		if (version == 4 && i && i % 2 == 0 && wrong != 9) {
			put_entry(out, version, GIT_HASH_BYTES, &entries[i], "");
			out->data[out->len - 5] = (char)strlen(entries[i - 1].path);
		} else {
			put_entry(out, version, GIT_HASH_BYTES, &entries[i], i ? entries[i - 1].path : "");
		}
	}
	end = out->len;
	text_append(out, "IEOT", 4);
	put(out, 4 + 3 * 8);
	put(out, 1 + (wrong == 1));
	for (unsigned i = 0; i < 3; i++) {
		put(out, (uint32_t)starts[i] + (wrong == 2 + 2 * i));
		put(out, 2 + (wrong == 3 + 2 * i) - (wrong == 5 && i == 2));
	}
	text_append(out, "EOIE", 4);
	put(out, 4 + GIT_HASH_BYTES);
	put(out, (uint32_t)end + (wrong == 8));
	put_zeros(out, 2 * GIT_HASH_BYTES);
}

static void test_tables_of_blocks_must_fit_the_entries(void)
{
	for (unsigned version = 2; version <= 4; version++) {
		for (unsigned wrong = 0; wrong <= (version == 4 ? 9 : 8); wrong++) {
			AUTO_TEXT index = {0};
			AUTO_TEXT told = {0};
			struct git_index_facts facts;

			put_blocks(&index, version, wrong);
			CHECK_INT(read_index(&index, GIT_HASH_BYTES, 7, &told, &facts), wrong ? -EINVAL : 0);
			CHECK_STRING(text_string(&told), "a/c|a/f|");
		}
	}
}

/* git finds it by its place, also in the content of another extension. */
static void test_a_hidden_end_of_entries_is_refused(void)
{
	const struct entry entries[] = {{"a", 0100644, false}};
	AUTO_TEXT index = {0};
	AUTO_TEXT told = {0};
	struct git_index_facts facts;

	put_index(&index, 2, GIT_HASH_BYTES, entries, 1);
	text_append(&index, "ABCD", 4);
	put(&index, 8 + 4 + GIT_HASH_BYTES);
	text_append(&index, "EOIE", 4);
	put(&index, 4 + GIT_HASH_BYTES);
	put(&index, 77);
	put_zeros(&index, 2 * GIT_HASH_BYTES);
	CHECK_INT(read_index(&index, GIT_HASH_BYTES, 1, &told, &facts), -EINVAL);
}

static void test_what_is_too_large_is_not_read(void)
{
	struct git_index_request request = {.size = GIT_INDEX_BYTES_MAX + 1ULL, .hash_bytes = GIT_HASH_BYTES};
	struct git_index_facts facts;

	CHECK_INT(git_index_gitlinks(&request, &facts), -EFBIG);
}

static const struct test tests[] = {
	TEST(test_gitlinks_of_every_version),          TEST(test_a_split_index_names_the_other_file),
	TEST(test_what_is_no_index_is_refused),        TEST(test_tables_of_blocks_must_fit_the_entries),
	TEST(test_a_hidden_end_of_entries_is_refused), TEST(test_what_is_too_large_is_not_read),
};

int main(void)
{
	return test_main(tests, ARRAY_LEN(tests));
}
