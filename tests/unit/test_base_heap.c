/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_base_heap.c - blocks hold what they should, keep apart, come back, and misuse ends the program
 */
#include "base/heap.h"

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

static void test_every_size_is_held_and_aligned(void)
{
	for (size_t len = 0; len < 70000; len += len < 300 ? 1 : len / 7) {
		unsigned char *block = heap_allocate(len);

		CHECK(block != NULL);
		CHECK(((uintptr_t)block & 15) == 0);
		CHECK(heap_size(block) >= len);
		/* No class wastes more than a third, but for the smallest and the last page of a large block. */
		CHECK(len < 32 || len > 65536 || heap_size(block) <= len + len / 2 + 1);
		memset(block, 0xa5, heap_size(block));
		heap_release(block);
	}
}

static void test_blocks_keep_apart(void)
{
	enum { COUNT = 500 };
	unsigned char *blocks[COUNT];

	for (int turn = 0; turn < 3; turn++) {
		for (size_t i = 0; i < COUNT; i++) {
			blocks[i] = heap_allocate(i * 37 % 3000 + 1);
			memset(blocks[i], (int)(i & 0xff), i * 37 % 3000 + 1);
		}
		for (size_t i = 0; i < COUNT; i++)
			for (size_t at = 0; at < i * 37 % 3000 + 1; at++)
				if (blocks[i][at] != (i & 0xff)) {
					CHECK(!"a block was written into by another");
					break;
				}
		for (size_t i = 0; i < COUNT; i++)
			heap_release(blocks[(i * 7) % COUNT]);
	}
}

static void test_what_is_released_is_used_again(void)
{
	void *first = heap_allocate(100);

	heap_release(first);
	CHECK(heap_allocate(100) == first);
	heap_release(first);
	heap_release(NULL);
}

static void test_resizing_keeps_the_content(void)
{
	static const size_t sizes[] = {1, 40, 50, 1000, 65536, 65537, 1 << 20, 3 << 20, 70000, 65536, 200, 10};
	unsigned char *block = heap_resize(NULL, 10);

	memset(block, 0x5a, 1);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		block = heap_resize(block, sizes[i]);
		CHECK(block && block[0] == 0x5a && heap_size(block) >= sizes[i]);
		CHECK(block[sizes[i] / 2] == 0x5a || sizes[i] > 1);
		memset(block, 0x5a, sizes[i]);
	}
	heap_release(block);
}

static void test_too_much_is_refused(void)
{
	CHECK(heap_allocate(SIZE_MAX) == NULL);
	CHECK(heap_allocate(SIZE_MAX - 4096) == NULL);
	CHECK(heap_allocate(SIZE_MAX / 2) == NULL);
}

static int end_of(void (*misuse)(void))
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		signal(SIGABRT, SIG_DFL);
		misuse();
		_exit(0);
	}
	waitpid(child, &status, 0);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void release_twice(void)
{
	void *block = heap_allocate(64);

	heap_release(block);
	heap_release(block);
}

static void release_the_middle(void)
{
	char *block = heap_allocate(640);

	memset(block, 0x41, 640);
	heap_release(block + 64);
}

static void overflow_into_the_next(void)
{
	char *block = heap_allocate(32);
	char *next = heap_allocate(32);

	/* Blocks that were released before come first, in any order. */
	for (int i = 0; i < 10000 && next - block != 48; i++) {
		block = next;
		next = heap_allocate(32);
	}
	memset(block, 0x41, 48);
	heap_release(next);
}

static void test_misuse_ends_the_program(void)
{
	CHECK(end_of(release_twice) == SIGABRT);
	CHECK(end_of(release_the_middle) == SIGABRT);
	CHECK(end_of(overflow_into_the_next) == SIGABRT);
}

/* Last: there is no way back. */
static void test_at_the_end_nothing_is_taken_back(void)
{
	char *block = heap_allocate(100);

	memset(block, 0x5a, 100);
	heap_end();
	heap_release(block);
	CHECK(block[0] == 0x5a && heap_allocate(100) != block);
	CHECK(heap_size(block) >= 100);
}

static const struct test tests[] = {
	TEST(test_every_size_is_held_and_aligned),
	TEST(test_blocks_keep_apart),
	TEST(test_what_is_released_is_used_again),
	TEST(test_resizing_keeps_the_content),
	TEST(test_too_much_is_refused),
	TEST(test_misuse_ends_the_program),
	TEST(test_at_the_end_nothing_is_taken_back),
};

TEST_MAIN(tests)
