/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_mux_mux.c - who waits for whom on a shared stream: bounds, turns and credit, with a server that is played here
 */
#include "door/serve/mux/mux.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/json_write.h"
#include "test.h"
#include "door/wire/wire.h"

#define CHANNELS 64

static struct loop *loop;
static struct mux *mux;
static int client_out, client_in; /* what the client writes to, what it reads from */
static int server_fds[CHANNELS];
static size_t server_count;
static int end_count;

static void on_hello(void *owner, struct json_writer *writer)
{
	(void)owner;
	json_write_integer(writer, "version", WIRE_VERSION);
}

static void on_channel(void *owner, int fd)
{
	(void)owner;
	server_fds[server_count++] = fd;
}

static void on_ended(void *owner, const struct error *error)
{
	(void)owner;
	(void)error;
	end_count++;
}

static void on_tick(struct loop_timer *timer)
{
	(void)timer;
}

static void turns(int count)
{
	for (int i = 0; i < count; i++) {
		struct loop_timer tick = {0};

		loop_arm(loop, &tick, 0, on_tick, NULL);
		CHECK_INT(loop_turn(loop), 0);
		loop_disarm(&tick);
		mux_turn(mux);
	}
}

static void say(enum frame_type type, uint32_t channel, const void *payload, size_t len)
{
	unsigned char header[FRAME_HEADER_BYTES];

	frame_header_write(header, type, len, channel);
	CHECK_INT(write(client_out, header, sizeof(header)), sizeof(header));
	CHECK_INT(write(client_out, payload, len), (long long)len);
}

static void begin(uint32_t channel_count)
{
	static const char hello[] = "{\"version\":2}";
	struct mux_listener listener = {NULL, on_hello, on_channel, on_ended};
	struct error error = {0};
	int in[2], out[2];

	server_count = 0;
	end_count = 0;
	loop = loop_new();
	CHECK_INT(pipe2(in, O_CLOEXEC | O_NONBLOCK), 0);
	CHECK_INT(pipe2(out, O_CLOEXEC | O_NONBLOCK), 0);
	client_out = in[1];
	client_in = out[0];
	mux = mux_new(loop, in[0], out[1], &listener, &error);
	say(FRAME_HELLO, 0, hello, sizeof(hello) - 1);
	for (uint32_t i = 1; i <= channel_count; i++) {
		say(FRAME_OPEN, i, "{}", 2);
		turns(2);
	}
	CHECK_INT(server_count, channel_count);
}

static void finish(void)
{
	close(client_out);
	turns(2);
	CHECK_INT(end_count, 1);
	mux_free(mux);
	loop_free(loop);
	close(client_in);
	while (server_count)
		close(server_fds[--server_count]);
}

/* As much of @len bytes in one frame as the socket takes. */
static void serve_frame(size_t server, enum frame_type type, size_t len)
{
	static char bytes[FRAME_HEADER_BYTES + FRAME_STREAM_BYTES + FRAME_OUTPUT_MAX_BYTES];

	frame_header_write((unsigned char *)bytes, type, len, 0);
	bytes[FRAME_HEADER_BYTES] = 1;
	CHECK_INT(send(server_fds[server], bytes, FRAME_HEADER_BYTES + len, MSG_DONTWAIT),
		  (long long)(FRAME_HEADER_BYTES + len));
}

static bool has_room(size_t server)
{
	struct pollfd room = {.fd = server_fds[server], .events = POLLOUT};

	return poll(&room, 1, 0) == 1 && room.revents & POLLOUT;
}

/* The next frame that has come whole; 0: none. */
static int hear(uint32_t *channel)
{
	static unsigned char bytes[FRAME_HEADER_BYTES + FRAME_STREAM_BYTES + FRAME_OUTPUT_MAX_BYTES];
	struct frame_header header;
	size_t at = 0, wanted = FRAME_HEADER_BYTES;

	for (int i = 0; i < 1000 && at < wanted; i++) {
		ssize_t count = read(client_in, bytes + at, wanted - at);

		at += count > 0 ? (size_t)count : 0;
		if (at == FRAME_HEADER_BYTES) {
			frame_header_read(bytes, &header);
			wanted = FRAME_HEADER_BYTES + header.len;
		}
		if (count <= 0)
			turns(1);
	}
	if (at < wanted || at < FRAME_HEADER_BYTES)
		return 0;
	*channel = header.channel;
	return header.type;
}

static void test_a_client_that_does_not_listen_holds_its_channels_up_and_no_memory(void)
{
	size_t sent = 0;
	int last = 0;

	begin(CHANNELS);
	/* These need no credit: only that there is no room holds them. */
	for (int i = 0; i < 4000; i++) {
		for (size_t j = 0; j < CHANNELS; j++)
			if (has_room(j) && sent < (size_t)128 << 20) {
				serve_frame(j, FRAME_EVENT, 60000);
				sent += 60000;
			}
		turns(1);
	}
	CHECK(sent < (size_t)16 << 20);
	/* Once it listens, everything comes. */
	for (uint32_t channel; (last = hear(&channel)) > 0;)
		sent -= last == FRAME_EVENT ? 60000 : 0;
	CHECK_INT(sent, 0);
	finish();
}

static void test_channels_have_their_turn(void)
{
	int heard[5] = {0};
	uint32_t channel;

	begin(4);
	CHECK_INT(hear(&channel), FRAME_ANSWER);
	for (int i = 0; i < 200; i++) {
		/* All write as fast as they can; the client gives back what it reads. */
		for (size_t j = 0; j < 4; j++)
			for (int k = 0; k < 2 && has_room(j); k++)
				serve_frame(j, FRAME_OUTPUT, FRAME_STREAM_BYTES + 30000);
		turns(1);
		if (hear(&channel) == FRAME_OUTPUT) {
			unsigned char number[4];

			heard[channel]++;
			frame_number_write(number, FRAME_STREAM_BYTES + 30000, 4);
			say(FRAME_CREDIT, channel, number, 4);
		}
	}
	for (int i = 1; i <= 4; i++)
		CHECK(heard[i] >= 45 && heard[i] <= 55);
	finish();
}

static void test_a_channel_without_credit_stops_alone(void)
{
	unsigned char number[4];
	uint32_t channel;
	int count = 0;

	begin(2);
	CHECK_INT(hear(&channel), FRAME_ANSWER);
	for (int i = 0; i < 50; i++) {
		if (has_room(0))
			serve_frame(0, FRAME_OUTPUT, FRAME_STREAM_BYTES + 60000);
		turns(1);
	}
	for (int i = 0; i < 4; i++) {
		CHECK_INT(hear(&channel), FRAME_OUTPUT);
		CHECK_INT(channel, 1);
	}
	CHECK_INT(hear(&channel), 0);
	serve_frame(1, FRAME_OUTPUT, FRAME_STREAM_BYTES + 60000);
	CHECK_INT(hear(&channel), FRAME_OUTPUT);
	CHECK_INT(channel, 2);
	frame_number_write(number, 60008 - (256 * 1024 - 4 * 60008) - 1, 4);
	say(FRAME_CREDIT, 1, number, 4);
	CHECK_INT(hear(&channel), 0); /* one byte is missing */
	frame_number_write(number, 1, 4);
	say(FRAME_CREDIT, 1, number, 4);
	while (hear(&channel) == FRAME_OUTPUT)
		count++;
	CHECK_INT(count, 1);
	finish();
}

static const struct test tests[] = {
	TEST(test_a_client_that_does_not_listen_holds_its_channels_up_and_no_memory),
	TEST(test_channels_have_their_turn),
	TEST(test_a_channel_without_credit_stops_alone),
};

TEST_MAIN(tests)
