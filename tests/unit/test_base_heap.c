/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_base_heap.c - blocks hold what they should, keep apart, come back, and misuse ends the program
 *
 * Of both heaps: heap.c, and in a build with -Dcheck_heap=true heap_checked.c, which finds more, and gives nothing back soon.
 */
#include "base/heap.h"

#include <signal.h>
#include <stdbool.h>
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

#ifdef BELLJAR_CHECK_HEAP
static const bool is_checked = true;
#else
static const bool is_checked = false;
#endif

static void test_what_is_released_is_used_again(void)
{
	void *first = heap_allocate(100), *second;

	heap_release(first);
	second = heap_allocate(100);
	CHECK((second == first) == !is_checked);
	heap_release(second);
	heap_release(NULL);
}

static void test_zeroed_blocks_are_zero(void)
{
	static const size_t sizes[] = {0, 1, 31, 4000, 4096, 65536, 65537, 1 << 20};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (int turn = 0; turn < 2000; turn += i < 4 ? 1 : 500) {
			unsigned char *block = heap_allocate_zeroed(sizes[i]);
			size_t at = 0;

			while (at < sizes[i] && block[at] == 0)
				at++;
			CHECK_INT(at, sizes[i]);
			memset(block, 0x5a, sizes[i]);
			heap_release(block);
		}
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

static char said[256];

/* The signal that ended a child which does something wrong; what it said on stderr is in @said. */
static int end_of(void (*misuse)(void))
{
	int status = 0, ends[2];
	ssize_t len;
	pid_t child;

	CHECK(pipe(ends) == 0);
	child = fork();
	if (child == 0) {
		dup2(ends[1], STDERR_FILENO);
		signal(SIGABRT, SIG_DFL);
		misuse();
		_exit(0);
	}
	close(ends[1]);
	len = read(ends[0], said, sizeof(said) - 1);
	said[len > 0 ? len : 0] = '\0';
	close(ends[0]);
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
	for (int i = 0; !is_checked && i < 10000 && next - block != 48; i++) {
		block = next;
		next = heap_allocate(32);
	}
	memset(block, 0x41, 48);
	heap_release(next);
}

static void test_misuse_ends_the_program(void)
{
	CHECK_INT(end_of(release_twice), SIGABRT);
	CHECK_INT(end_of(release_the_middle), SIGABRT);
	CHECK_INT(end_of(overflow_into_the_next), is_checked ? SIGSEGV : SIGABRT);
}

#ifdef BELLJAR_CHECK_HEAP

/* The compiler must not see through them. */
static void write_at(volatile char *block, long at)
{
	block[at] = 0x41;
}

static int read_at(const volatile char *block, long at)
{
	return block[at];
}

static void overrun_to_the_guard(void)
{
	write_at(heap_allocate(64), 64);
}

static void read_behind(void)
{
	read_at(heap_allocate(64), 64);
}

static void overrun_large(void)
{
	write_at(heap_allocate(100000), 100000);
}

static void overrun_by_one(void)
{
	char *block = heap_allocate(61);

	write_at(block, 61);
	heap_release(block);
}

static void underrun(void)
{
	char *block = heap_allocate(61);

	write_at(block, -1);
	heap_release(block);
}

static void underrun_far(void)
{
	char *block = heap_allocate(61);

	write_at(block, -40);
	heap_release(block);
}

static void overrun_what_is_resized(void)
{
	char *block = heap_allocate(61);

	write_at(block, 62);
	heap_resize(block, 100);
}

static void read_released(void)
{
	char *block = heap_allocate(64);

	heap_release(block);
	/* Others come and go; that address stays empty for a while. */
	for (int i = 0; i < 500; i++)
		heap_release(heap_allocate(64));
	read_at(block, 10);
}

static void write_released_large(void)
{
	char *block = heap_allocate(100000);

	heap_release(block);
	write_at(block, 99999);
}

static void write_resized(void)
{
	char *block = heap_allocate(60);

	heap_resize(block, 50);
	write_at(block, 0);
}

static void release_twice_later(void)
{
	char *block = heap_allocate(64);

	heap_release(block);
	for (int i = 0; i < 500; i++)
		heap_release(heap_allocate(64));
	heap_release(block);
}

static void resize_released(void)
{
	char *block = heap_allocate(64);

	heap_release(block);
	heap_resize(block, 100);
}

static void release_foreign(void)
{
	static _Alignas(16) char block[64];

	heap_release(block + 32);
}

static void release_nowhere(void)
{
	heap_release((void *)0x10000);
}

static void release_odd(void)
{
	heap_release((char *)heap_allocate(64) + 1);
}

static void overrun_in_a_crowd(void)
{
	char *block = NULL;

	for (int i = 0; i < 40000; i++)
		block = heap_allocate(64);
	if (!block)
		_exit(1);
	write_at(block, 64);
	heap_release(block);
}

static const struct {
	void (*misuse)(void);
	int signal;
	const char *said;
} mistakes[] = {
	{overrun_to_the_guard, SIGSEGV, "the end of a block was overrun"},
	{read_behind, SIGSEGV, "the end of a block was overrun"},
	{overrun_large, SIGSEGV, "the end of a block was overrun"},
	{overrun_by_one, SIGABRT, "the end of a block was overrun"},
	{underrun, SIGABRT, "its beginning was overrun"},
	{underrun_far, SIGABRT, "the beginning of a block was overrun"},
	{overrun_what_is_resized, SIGABRT, "the end of a block was overrun"},
	{overrun_in_a_crowd, SIGABRT, "the end of a block was overrun"},
	{read_released, SIGSEGV, "a released block was used"},
	{write_released_large, SIGSEGV, "a released block was used"},
	{write_resized, SIGSEGV, "a released block was used"},
	{release_twice, SIGABRT, "this block was released before"},
	{release_twice_later, SIGABRT, "this block was released before"},
	{resize_released, SIGABRT, "this block was released before"},
	{release_foreign, SIGABRT, "this is no block"},
	{release_nowhere, SIGABRT, "this is no block"},
	{release_odd, SIGABRT, "this is not the beginning of a block"},
};

static void test_the_checked_heap_says_what_was_wrong(void)
{
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		int signal = end_of(mistakes[i].misuse);

		if (signal != mistakes[i].signal || !strstr(said, mistakes[i].said))
			printf("mistake %zu (%s): %s", i, mistakes[i].said, said);
		CHECK_INT(signal, mistakes[i].signal);
		CHECK(strstr(said, mistakes[i].said) != NULL);
	}
}

#endif

static void *filled(size_t len)
{
	return memset(heap_allocate(len), 0x5a, len);
}

static void test_large_blocks_go_in_any_order(void)
{
	char *blocks[5];

	for (size_t i = 0; i < 5; i++)
		blocks[i] = filled(70000 + i * 1000);
	blocks[2] = heap_resize(blocks[2], 400000);
	for (size_t i = 0; i < 5; i++) {
		CHECK(blocks[i * 3 % 5][69999] == 0x5a);
		heap_release(blocks[i * 3 % 5]);
	}
}

/* Last: there is no way back. */
static void test_at_the_end_nothing_is_taken_back(void)
{
	char *block = heap_allocate(100);

	memset(block, 0x5a, 100);
	heap_end();
	CHECK(heap_size(block) >= 100);
	heap_release(block);
	CHECK(heap_allocate(100) != block);
	CHECK(is_checked || block[0] == 0x5a);
}

static const struct test tests[] = {
	TEST(test_every_size_is_held_and_aligned),
	TEST(test_blocks_keep_apart),
	TEST(test_what_is_released_is_used_again),
	TEST(test_zeroed_blocks_are_zero),
	TEST(test_resizing_keeps_the_content),
	TEST(test_too_much_is_refused),
	TEST(test_misuse_ends_the_program),
#ifdef BELLJAR_CHECK_HEAP
	TEST(test_the_checked_heap_says_what_was_wrong),
#endif
	TEST(test_large_blocks_go_in_any_order),
	TEST(test_at_the_end_nothing_is_taken_back),
};

TEST_MAIN(tests)
