/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/fuzz/fuzz_wire.c - any bytes as frames on a channel, and as requests in them
 *
 * Whatever arrives, the wire ends in one of two ways: the other side has closed, or an error with words. Every payload is
 * read as each kind of request, and what is a request becomes a policy or an error with words.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "door/serve/serve_request.h"
#include "policy/policy_build.h"
#include "door/wire/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What a socket takes at once, whatever the host's settings. */
#define INPUT_MAX 65536

struct seen {
	bool has_ended;
	size_t frame_count;
};

static void fail(const char *what)
{
	fprintf(stderr, "%s\n", what);
	abort();
}

static void check_error(const struct error *error)
{
	if (error->stage == STAGE_NONE || !error->message[0])
		fail("an error without a message");
}

/* Policies that name files are left alone. */
static bool names_files(const struct request *request)
{
	return request->base || (request->policy && request->policy->type == JSON_STRING) ||
	       (request->policy && request->policy->type == JSON_OBJECT && json_find(request->policy, "extends"));
}

static void try_policy(enum request_kind kind, const struct wire_frame *frame)
{
	static struct server server; /* it keeps the preset from one to the next */
	struct serve_request *request;
	struct error error = {0};

	if (serve_request_read(&server, kind, NULL, frame, &request, &error) < 0) {
		check_error(&error);
		return;
	}
	if (request->policy.limits.memory_bytes == 0)
		fail("a limit of nothing");
	serve_request_release(request);
}

static void on_frame(void *owner, struct wire_frame *frame)
{
	struct seen *seen = owner;

	seen->frame_count++;
	for (int kind = 0; kind < REQUEST_KIND_COUNT; kind++) {
		AUTO_REQUEST request = {0};
		struct error error = {0};

		if (wire_request_parse((enum request_kind)kind, frame->payload, frame->len, &request, &error) < 0) {
			check_error(&error);
			continue;
		}
		if (wire_request_descriptors(&request) > FRAME_MAX_DESCRIPTORS - 1)
			fail("more descriptors than a frame can have");
		if ((kind == REQUEST_RUN || kind == REQUEST_OPEN) && !names_files(&request))
			try_policy((enum request_kind)kind, frame);
	}
}

static void on_drained(void *owner)
{
	(void)owner;
}

static void on_ended(void *owner, const struct error *error)
{
	struct seen *seen = owner;

	if (error)
		check_error(error);
	seen->has_ended = true;
}

static void as_frames(const uint8_t *data, size_t size)
{
	struct seen seen = {0};
	struct wire_listener listener = {&seen, on_frame, on_drained, on_ended};
	struct loop *loop = loop_new();
	struct wire wire;
	int ends[2];

	if (!loop || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		abort();
	if (size && send(ends[1], data, size, MSG_DONTWAIT) != (ssize_t)size)
		abort();
	close(ends[1]);
	if (wire_open(&wire, loop, ends[0], &listener) < 0)
		abort();
	while (!seen.has_ended)
		if (loop_turn(loop) < 0)
			abort();
	wire_done(&wire);
	loop_free(loop);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen seen = {0};
	char *copy;

	if (size > INPUT_MAX)
		return 0;
	as_frames(data, size);
	/* The same bytes as the payload of one frame, so that not every input has to find a header first. */
	copy = malloc(size + 1);
	if (!copy)
		abort();
	memcpy(copy, data, size);
	copy[size] = '\0';
	on_frame(&seen, &(struct wire_frame){.type = FRAME_RUN, .payload = copy, .len = size});
	free(copy);
	return 0;
}
