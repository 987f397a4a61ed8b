/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_client_channel.c - frames from the engine in pieces, too long, malformed; descriptors that come along
 */
#include "client/client_channel.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "test.h"

static struct client_channel channel;
static int engine_fd;

static void open_channel(void)
{
	int ours = -1;

	CHECK_INT(client_channel_pair(&ours, &engine_fd), 0);
	client_channel_init(&channel, ours);
}

static void close_channel(void)
{
	client_channel_done(&channel);
	close(engine_fd);
}

static void say(const void *bytes, size_t len)
{
	CHECK_INT(send(engine_fd, bytes, len, MSG_NOSIGNAL), (long long)len);
}

static void test_a_frame_in_pieces(void)
{
	static const char bytes[] = "\x02\0\0\0\x44\0\0\0{}\x0a\0\0\0\x42\0\0\0\1\0\0\0\0\0\0\0hi";
	struct client_frame frame;

	open_channel();
	CHECK_INT(client_receive(&channel), -EAGAIN);
	for (size_t i = 0; i < sizeof(bytes) - 1; i++) {
		say(bytes + i, 1);
		CHECK_INT(client_receive(&channel), 1);
		CHECK_INT(client_next_frame(&channel, &frame), i == 9 || i == sizeof(bytes) - 2);
	}
	CHECK_INT(frame.type, FRAME_OUTPUT);
	CHECK_INT(frame.len, 10);
	CHECK(memcmp(frame.payload + FRAME_STREAM_BYTES, "hi", 2) == 0);
	close(engine_fd);
	CHECK_INT(client_receive(&channel), 0);
	engine_fd = -1;
	close_channel();
}

static void test_several_frames_in_one_read(void)
{
	struct client_frame frame;

	open_channel();
	for (int i = 0; i < 3; i++)
		say("\x02\0\0\0\x44\0\0\0{}", 10);
	CHECK_INT(client_receive(&channel), 30);
	for (int i = 0; i < 3; i++)
		CHECK_INT(client_next_frame(&channel, &frame), 1);
	CHECK_INT(client_next_frame(&channel, &frame), 0);
	close_channel();
}

static void test_malformed_frames_are_refused(void)
{
	static const struct {
		const char *bytes;
		size_t len;
	} cases[] = {
		{"\x02\0\0\0\x44\0\0\1", 8},       /* not zero */
		{"\xff\xff\xff\xff\x44\0\0\0", 8}, /* too long for JSON */
		{"\x09\0\1\0\x42\0\0\0", 8},       /* too long for output */
		{"\x07\0\0\0\x42\0\0\0", 8},       /* too short to say which stream */
	};
	struct client_frame frame;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		open_channel();
		say(cases[i].bytes, cases[i].len);
		CHECK_INT(client_receive(&channel), (long long)cases[i].len);
		CHECK_INT(client_next_frame(&channel, &frame), -EPROTO);
		close_channel();
	}
}

/* Sent by the code of the host itself, which is as good as the engine's. */
static void test_a_descriptor_comes_along_and_no_other_stays_open(void)
{
	int fds[3] = {open("/dev/null", O_RDONLY | O_CLOEXEC), STDOUT_FILENO, STDERR_FILENO};
	struct client_message message = {
		.type = FRAME_DESCRIPTOR, .payload = "{}", .len = 2, .fds = fds, .fd_count = 3};
	struct client_frame frame;
	int next;

	open_channel();
	CHECK_INT(client_send(engine_fd, &message), 0);
	next = dup(STDOUT_FILENO);
	close(next);
	CHECK_INT(client_receive(&channel), 10);
	CHECK_INT(client_next_frame(&channel, &frame), 1);
	CHECK(channel.received_fd > STDERR_FILENO);
	CHECK_INT(fcntl(channel.received_fd, F_GETFD), FD_CLOEXEC);
	close_channel();
	/* All numbers are free again. */
	open_channel();
	close_channel();
	CHECK_INT(fcntl(next, F_GETFD), -1);
	close(fds[0]);
}

static void test_what_nobody_reads_is_an_error(void)
{
	struct client_message message = {.type = FRAME_RUN, .payload = "{}", .len = 2};

	open_channel();
	close(engine_fd);
	engine_fd = -1;
	CHECK_INT(client_send(channel.fd, &message), -EPIPE);
	CHECK_INT(client_send_short(channel.fd, FRAME_CANCEL, "\0\0\0\0", 4), -EPIPE);
	message.len = FRAME_MAX_BYTES + 1;
	CHECK_INT(client_send(channel.fd, &message), -E2BIG);
	close_channel();
}

static const struct test tests[] = {
	TEST(test_a_frame_in_pieces),
	TEST(test_several_frames_in_one_read),
	TEST(test_malformed_frames_are_refused),
	TEST(test_a_descriptor_comes_along_and_no_other_stays_open),
	TEST(test_what_nobody_reads_is_an_error),
};

TEST_MAIN(tests)
