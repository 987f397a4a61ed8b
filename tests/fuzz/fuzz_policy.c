/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/fuzz/fuzz_policy.c - any bytes as a policy document
 *
 * What loads must print, what is printed must load, and print the same again. The directory of the document holds no
 * files, so `extends` leads nowhere outside.
 */
#include <stdio.h>
#include <string.h>

#include "policy/policy_build.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct policy_context context = {.current_directory = "/nonexistent/work", .home = "/home/user"};

static void fail(const char *what, const struct text *first, const struct text *second, const struct error *error)
{
	fprintf(stderr, "%s: %s\n%s\n%s\n", what, error->message, text_string(first), text_string(second));
	abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(policy_done) struct policy policy = {0};
	AUTO_TEXT first = {0}, second = {0};
	struct error error = {0};

	if (policy_init(&policy, &context, &error) < 0)
		abort();
	if (policy_load_document(&policy, (const char *)data, size, "fuzz", "/nonexistent/p", &context, &error) < 0) {
		if (error.stage == STAGE_NONE || !error.message[0])
			fail("an error without a message", &first, &second, &error);
		return 0;
	}
	policy_print(&policy, &first, (int)(size & 1) * 2);
	/* The bound on documents also holds for what is printed: escapes can make it longer than what was read. */
	if (first.len > (size_t)1 << 20)
		return 0;
	if (policy_load_document(&policy, text_string(&first), first.len, "again", "/", &context, &error) < 0)
		fail("what was printed does not load", &first, &second, &error);
	policy_print(&policy, &second, (int)(size & 1) * 2);
	if (first.len != second.len || memcmp(first.data, second.data, first.len) != 0)
		fail("not the same when printed again", &first, &second, &error);
	return 0;
}
