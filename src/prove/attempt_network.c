/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove/attempt_network.c - attempts on sockets
 *
 * A refusal by the filter comes before the kernel looks at a descriptor, so a call on descriptor -1 tells it from the
 * others: the kernel returns EBADF. In a network namespace of its own no process listens: ECONNREFUSED.
 */
#include "prove/attempt.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define ANSWER_MS 200
#define FAST_OPEN 0x20000000

/* Find the layer that refused to make a socket. */
static struct answer judge_socket(const char *call)
{
	switch (errno) {
	case EAFNOSUPPORT:
	case ESOCKTNOSUPPORT:
	case EPROTONOSUPPORT:
		return prove_answer_stopped(LAYER_SECCOMP, call, errno);
	case EPERM:
		return prove_answer_stopped(LAYER_PRIVILEGES, call, errno);
	default:
		return prove_answer_stopped(LAYER_HOST, call, errno);
	}
}

/* Find the layer that refused to reach an address. */
static struct answer judge_reach(const char *call, int result)
{
	int errno_value = errno;

	if (result >= 0)
		return prove_answer_through(call);
	switch (errno_value) {
	case ECONNREFUSED:
	case ENETUNREACH:
	case EADDRNOTAVAIL:
		return prove_answer_stopped(LAYER_NET_NS, call, errno_value);
	case ENOENT:
		return prove_answer_stopped(LAYER_MOUNT_NS, call, errno_value);
	case EACCES:
	case EPERM:
		return prove_answer_stopped(connect(-1, NULL, 0) < 0 && errno != EBADF ? LAYER_SECCOMP : LAYER_LANDLOCK,
					    call, errno_value);
	default:
		return prove_answer_stopped(LAYER_HOST, call, errno_value);
	}
}

static struct sockaddr_in loopback(int port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
}

struct answer attempt_tcp(const struct prove_facts *facts)
{
	struct sockaddr_in address = loopback(facts->tcp_port);
	AUTO_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return judge_socket("socket");
	return judge_reach("connect", connect(fd, (struct sockaddr *)&address, sizeof(address)));
}

struct answer attempt_tcp_fast_open(const struct prove_facts *facts)
{
	struct sockaddr_in address = loopback(facts->tcp_port);
	AUTO_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ssize_t sent;

	if (fd < 0)
		return judge_socket("socket");
	/* The filter refuses the flag before the kernel looks at the descriptor. */
	if (send(-1, "x", 1, FAST_OPEN | MSG_NOSIGNAL) < 0 && errno == EOPNOTSUPP)
		return prove_answer_stopped(LAYER_SECCOMP, "sendto", EOPNOTSUPP);
	sent = sendto(fd, "x", 1, FAST_OPEN | MSG_NOSIGNAL, (struct sockaddr *)&address, sizeof(address));
	return judge_reach("sendto", sent < 0 ? -1 : 0);
}

/* Sending always works. The answer, or the listener outside, shows whether the datagram arrived. */
struct answer attempt_udp(const struct prove_facts *facts)
{
	struct sockaddr_in address = loopback(facts->udp_port);
	AUTO_CLOSE int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	char answer;

	if (fd < 0)
		return judge_socket("socket");
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return judge_reach("connect", -1);
	if (send(fd, "x", 1, 0) < 0)
		return judge_reach("send", -1);
	if (poll(&ready, 1, ANSWER_MS) <= 0)
		return prove_answer_stopped(LAYER_HOST, "send", 0);
	return judge_reach("recv", recv(fd, &answer, 1, 0) < 0 ? -1 : 0);
}

/* @name begins with a NUL for an abstract socket. */
static socklen_t unix_address(struct sockaddr_un *address, const char *name, size_t len)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	len = MIN_OF(len, sizeof(address->sun_path));
	memcpy(address->sun_path, name, len);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
}

static socklen_t abstract_address(struct sockaddr_un *address, const struct prove_facts *facts, const char *kind)
{
	char name[64] = {0};
	int len = snprintf(name + 1, sizeof(name) - 1, "belljar-%s-%s", kind, facts->token);

	return unix_address(address, name, (size_t)len + 1);
}

static struct answer connect_unix(const struct sockaddr_un *address, socklen_t len)
{
	AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return judge_socket("socket");
	return judge_reach("connect", connect(fd, (const struct sockaddr *)address, len));
}

static struct answer send_unix(const struct sockaddr_un *address, socklen_t len)
{
	AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return judge_socket("socket");
	return judge_reach("sendto",
			   sendto(fd, "x", 1, MSG_DONTWAIT, (const struct sockaddr *)address, len) < 0 ? -1 : 0);
}

struct answer attempt_unix_stream(const struct prove_facts *facts)
{
	const char *path = attempt_path(facts, "outside/stream");
	struct sockaddr_un address;
	socklen_t len = unix_address(&address, path, strlen(path) + 1);

	return connect_unix(&address, len);
}

struct answer attempt_unix_datagram(const struct prove_facts *facts)
{
	const char *path = attempt_path(facts, "outside/datagram");
	struct sockaddr_un address;
	socklen_t len = unix_address(&address, path, strlen(path) + 1);

	return send_unix(&address, len);
}

struct answer attempt_abstract_stream(const struct prove_facts *facts)
{
	struct sockaddr_un address;
	socklen_t len = abstract_address(&address, facts, "stream");

	return connect_unix(&address, len);
}

struct answer attempt_abstract_datagram(const struct prove_facts *facts)
{
	struct sockaddr_un address;
	socklen_t len = abstract_address(&address, facts, "datagram");

	return send_unix(&address, len);
}

/* The name of a listener of the host's: in another network namespace it is free, and taking it there is no harm. */
struct answer attempt_abstract_name(const struct prove_facts *facts)
{
	struct sockaddr_un address;
	socklen_t len = abstract_address(&address, facts, "stream");
	AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return judge_socket("socket");
	if (bind(fd, (const struct sockaddr *)&address, len) == 0)
		return prove_answer_stopped(LAYER_NET_NS, "bind", 0);
	return errno == EADDRINUSE ? prove_answer_through("bind") : prove_answer_stopped(LAYER_SECCOMP, "bind", errno);
}

/* A socket pair needs no connect(), and its datagrams can be sent to any name. */
struct answer attempt_pair_datagram(const struct prove_facts *facts)
{
	struct sockaddr_un address;
	socklen_t len = abstract_address(&address, facts, "datagram");
	struct answer answer;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) < 0)
		return judge_socket("socketpair");
	answer = judge_reach("sendto",
			     sendto(pair[0], "x", 1, MSG_DONTWAIT, (struct sockaddr *)&address, len) < 0 ? -1 : 0);
	close(pair[0]);
	close(pair[1]);
	return answer;
}

struct answer attempt_socket(const struct prove_facts *facts)
{
	return prove_corpus_make(facts->call, &(struct corpus_target){0}) < 0 ? judge_socket("socket")
									      : prove_answer_through("socket");
}
