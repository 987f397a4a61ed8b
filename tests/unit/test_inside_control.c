/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_inside_control.c - a message comes out as it was sent, and what is no message is refused
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "inside/control.h"
#include "test.h"

#define HEADER_BYTES offsetof(struct jar_message, step_failed)

static int sender, receiver;

static void open_sockets(void)
{
	CHECK_INT(control_socket_pair(&sender, &receiver), 0);
}

static void close_sockets(void)
{
	close_fd(&sender);
	close_fd(&receiver);
}

/* What receiving @len bytes of a message of @kind gives. */
static int receive_bytes(uint32_t kind, size_t len)
{
	struct jar_message message = {.kind = kind};
	int fd;

	CHECK_INT(send(sender, &message, len, 0), (ssize_t)len);
	return control_receive(receiver, &message, &fd);
}

static void test_each_part_comes_out_as_it_was_sent(void)
{
	struct jar_message sent = {.kind = JAR_EXITED, .steps_done = 3, .entry_done = 4};
	struct jar_message message;
	int fd;

	sent.exited = (struct jar_end){.ended_ns = 7, .status = 256, .is_last = 1};
	open_sockets();
	CHECK_INT(control_send(sender, &sent, -1), 0);
	CHECK_INT(control_receive(receiver, &message, &fd), 1);
	CHECK_INT(fd, -1);
	CHECK_INT(message.kind, JAR_EXITED);
	CHECK_INT(message.steps_done, 3);
	CHECK_INT(message.entry_done, 4);
	CHECK(!memcmp(&message.exited, &sent.exited, sizeof(sent.exited)));
	close_sockets();
}

static void test_a_size_that_is_not_the_kinds_is_refused(void)
{
	size_t exact = HEADER_BYTES + sizeof(((struct jar_message *)NULL)->signal);

	open_sockets();
	CHECK_INT(receive_bytes(JAR_SIGNAL, exact), 1);
	CHECK_INT(receive_bytes(JAR_SIGNAL, exact - 1), -EPROTO);
	CHECK_INT(receive_bytes(JAR_SIGNAL, exact + 1), -EPROTO);
	CHECK_INT(receive_bytes(JAR_SIGNAL, sizeof(struct jar_message)), -EPROTO);
	CHECK_INT(receive_bytes(JAR_TERMINAL, HEADER_BYTES), 1);
	CHECK_INT(receive_bytes(JAR_TERMINAL, HEADER_BYTES + 4), -EPROTO);
	CHECK_INT(receive_bytes(JAR_STARTED, HEADER_BYTES - 4), -EPROTO);
	close_sockets();
}

static void test_an_unknown_kind_is_refused(void)
{
	open_sockets();
	CHECK_INT(receive_bytes(0, HEADER_BYTES), -EPROTO);
	CHECK_INT(receive_bytes(JAR_MESSAGE_KIND_COUNT, HEADER_BYTES), -EPROTO);
	CHECK_INT(receive_bytes(UINT32_MAX, HEADER_BYTES), -EPROTO);
	close_sockets();
}

static void test_text_and_descriptors_come_along(void)
{
	struct jar_message sent = {.kind = JAR_TASK, .task = {.operation = 1, .number = 0640}};
	struct jar_message message;
	struct jar_attached attached;
	char long_text[JAR_TEXT_MAX + 1] = {0};
	int fds[2];

	open_sockets();
	fds[0] = fds[1] = sender;
	CHECK_INT(control_send_all(sender, &sent, "a/b", 4, fds, 2), 0);
	CHECK_INT(control_receive_all(receiver, &message, &attached), 1);
	CHECK_INT(message.task.number, 0640);
	CHECK_STRING(attached.text, "a/b");
	CHECK_INT(attached.text_len, 4);
	CHECK_INT(attached.passed.count, 2);
	CHECK_INT(fcntl(attached.passed.fds[0], F_GETFD), FD_CLOEXEC);
	close(attached.passed.fds[0]);
	close(attached.passed.fds[1]);
	CHECK_INT(control_send_all(sender, &sent, long_text, JAR_TEXT_MAX, NULL, 0), 0);
	CHECK_INT(control_receive_all(receiver, &message, &attached), 1);
	CHECK_INT(attached.text_len, JAR_TEXT_MAX);
	close_sockets();
}

static void test_descriptors_of_what_is_refused_are_closed(void)
{
	struct jar_message message = {.kind = JAR_TERMINAL};
	const struct iovec part = {.iov_base = &message, .iov_len = HEADER_BYTES + 4};
	int fd, next;

	open_sockets();
	next = dup(sender);
	close(next);
	CHECK_INT(descriptors_send_packet(sender, &part, 1, &sender, 1), 0);
	CHECK_INT(control_receive(receiver, &message, &fd), -EPROTO);
	CHECK_INT(fd, -1);
	fd = dup(sender);
	CHECK_INT(fd, next);
	close(fd);
	close_sockets();
}

static void test_the_end_is_told(void)
{
	struct jar_message message;
	int fd;

	open_sockets();
	CHECK_INT(control_receive(receiver, &message, &fd), -EAGAIN);
	close_fd(&sender);
	CHECK_INT(control_receive(receiver, &message, &fd), 0);
	close_sockets();
}

static const struct test tests[] = {
	TEST(test_each_part_comes_out_as_it_was_sent),
	TEST(test_a_size_that_is_not_the_kinds_is_refused),
	TEST(test_an_unknown_kind_is_refused),
	TEST(test_text_and_descriptors_come_along),
	TEST(test_descriptors_of_what_is_refused_are_closed),
	TEST(test_the_end_is_told),
};

TEST_MAIN(tests)
