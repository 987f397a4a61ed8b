/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/gate_answer.c - answer the questions that a jar asks of any name server
 *
 * If a rule allows a name, or the gate can ask about it, the answer is one made-up IPv4 address. There is no other
 * record: no IPv6 address, and no keys for hiding the name of a server. Every other name does not exist, and no
 * outside server sees it.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "gate/gate_process.h"
#include "base/sys/calls.h"

#define DATAGRAMS_PER_TURN 64
#define STREAM_NS 10000000000ULL

/* Report whether this asks for the name of an address. No rule can allow that, and made-up addresses have no owner. */
static bool is_reverse(const char *name)
{
	size_t len = strlen(name), end_len = strlen(".arpa");

	return len > end_len && !strcmp(name + len - end_len, ".arpa");
}

static size_t answer(struct gate_process *gate, const uint8_t *message, size_t len, uint8_t *out)
{
	struct dns_question question;
	struct net_verdict verdict;
	uint32_t address = 0;
	bool is_asked;

	if (!gate_dns_read_question(message, len, &question))
		return 0;
	if (!question.name[0])
		return gate_dns_write_answer(message, &question, DNS_NO_SUCH_NAME, 0, NULL, out);
	verdict = gate_rules_decide_name(gate, question.name, 0);
	is_asked = !verdict.rule && gate_ask_is_possible(gate) && strcmp(question.name, NET_HOST_NAME) != 0;
	if (!verdict.is_allowed && !is_asked) {
		/* A program that asks for one kind of address asks for the other too. */
		if (!is_reverse(question.name))
			gate_account_refusal(gate, &(struct refusal){.kind = DENIAL_NAME,
								     .host = question.name,
								     .is_twin = question.type == DNS_TYPE_AAAA});
		return gate_dns_write_answer(message, &question, DNS_NO_SUCH_NAME, 0,
					     verdict.rule && verdict.rule->reason[0] ? verdict.rule->reason : NULL,
					     out);
	}
	if (question.type == DNS_TYPE_A) {
		address = is_asked ? gate_names_address_to_ask(gate, question.name)
				   : gate_names_address(gate, question.name);
		if (!address) {
			gate_account_refusal(gate, &(struct refusal){.kind = DENIAL_NAME,
								     .reason = DENIAL_MANY_NAMES,
								     .host = question.name});
			return gate_dns_write_answer(message, &question, DNS_SERVER_FAILURE, 0, NULL, out);
		}
	}
	return gate_dns_write_answer(message, &question, 0, address, NULL, out);
}

/* The answer comes from the address that was asked, whichever that was. */
static void answer_from_there(struct msghdr *message)
{
	struct cmsghdr *control = CMSG_FIRSTHDR(message);

	if (control && control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_PKTINFO) {
		struct in_pktinfo info;

		memcpy(&info, CMSG_DATA(control), sizeof(info));
		info.ipi_spec_dst = info.ipi_addr;
		info.ipi_ifindex = 0;
		memcpy(CMSG_DATA(control), &info, sizeof(info));
		message->msg_controllen = CMSG_SPACE(sizeof(info));
	} else if (control && control->cmsg_level == IPPROTO_IPV6 && control->cmsg_type == IPV6_PKTINFO) {
		message->msg_controllen = CMSG_SPACE(sizeof(struct in6_pktinfo));
	} else {
		message->msg_controllen = 0;
	}
}

void gate_answer_on_datagram(struct loop_watch *watch, uint32_t events)
{
	struct gate_process *gate = watch->owner;

	(void)events;
	for (size_t i = 0; i < DATAGRAMS_PER_TURN; i++) {
		uint8_t question[DNS_MESSAGE_MAX], reply[DNS_MESSAGE_MAX * 2];
		union {
			struct cmsghdr header;
			char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo))];
		} control;
		struct sockaddr_in6 from;
		struct iovec part = {.iov_base = question, .iov_len = sizeof(question)};
		struct msghdr message = {.msg_name = &from,
					 .msg_namelen = sizeof(from),
					 .msg_iov = &part,
					 .msg_iovlen = 1,
					 .msg_control = &control,
					 .msg_controllen = sizeof(control)};
		ssize_t len = recvmsg(watch->fd, &message, MSG_DONTWAIT);

		if (len < 0)
			return;
		part.iov_len = answer(gate, question, (size_t)len, reply);
		part.iov_base = reply;
		if (!part.iov_len)
			continue;
		answer_from_there(&message);
		sendmsg(watch->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
}

/* --- by stream ---------------------------------------------------------------------------------------------- */

struct dns_stream {
	struct gate_process *gate;
	struct dns_stream *next;
	struct loop_watch watch;
	uint64_t deadline_ns;
	size_t len;
	uint8_t bytes[2 + DNS_MESSAGE_MAX];
};

static void close_stream(struct dns_stream *stream)
{
	for (struct dns_stream **at = &stream->gate->streams; *at; at = &(*at)->next) {
		if (*at == stream) {
			*at = stream->next;
			break;
		}
	}
	stream->gate->stream_count--;
	loop_remove(&stream->watch);
	close(stream->watch.fd);
	free(stream);
}

/* One question that is there whole. False: it cannot be answered. */
static bool answer_one(struct dns_stream *stream, size_t question_len)
{
	uint8_t reply[2 + DNS_MESSAGE_MAX * 2];
	size_t len = answer(stream->gate, stream->bytes + 2, question_len, reply + 2);

	reply[0] = (uint8_t)(len >> 8);
	reply[1] = (uint8_t)len;
	if (!len || send(stream->watch.fd, reply, len + 2, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)len + 2)
		return false;
	stream->len -= question_len + 2;
	memmove(stream->bytes, stream->bytes + 2 + question_len, stream->len);
	return true;
}

static void on_stream(struct loop_watch *watch, uint32_t events)
{
	struct dns_stream *stream = watch->owner;
	ssize_t len = recv(watch->fd, stream->bytes + stream->len, sizeof(stream->bytes) - stream->len, MSG_DONTWAIT);

	(void)events;
	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (len <= 0) {
		close_stream(stream);
		return;
	}
	stream->len += (size_t)len;
	while (stream->len >= 2) {
		size_t question_len = (size_t)stream->bytes[0] << 8 | stream->bytes[1];

		if (question_len <= DNS_MESSAGE_MAX && stream->len < question_len + 2)
			return;
		if (question_len > DNS_MESSAGE_MAX || !answer_one(stream, question_len)) {
			close_stream(stream);
			return;
		}
	}
}

void gate_answer_on_stream(struct loop_watch *watch, uint32_t events)
{
	struct gate_process *gate = watch->owner;
	struct dns_stream *stream;
	int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			gate_pause(gate, true);
		return;
	}
	/* Close the oldest stream to make room. */
	if (gate->stream_count >= GATE_DNS_STREAMS_MAX) {
		for (stream = gate->streams; stream->next;)
			stream = stream->next;
		close_stream(stream);
	}
	stream = calloc(1, sizeof(*stream));
	if (!stream || loop_add(gate->loop, &stream->watch, fd, EPOLLIN, on_stream, stream) < 0) {
		free(stream);
		close(fd);
		return;
	}
	stream->gate = gate;
	stream->deadline_ns = sys_monotonic_ns() + STREAM_NS;
	stream->next = gate->streams;
	gate->streams = stream;
	gate->stream_count++;
	gate_want_tick(gate);
}

void gate_answer_check_time(struct gate_process *gate, uint64_t now_ns)
{
	struct dns_stream *next;

	for (struct dns_stream *stream = gate->streams; stream; stream = next) {
		next = stream->next;
		if (now_ns >= stream->deadline_ns)
			close_stream(stream);
	}
}
