/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove/attempt_gate.c - an attempt in a jar that has a gate, which leads to one port of the host
 *
 * First what is allowed must work, by name, with an answer from outside: a gate that leads nowhere stops everything
 * and proves nothing. If it does not work the attempt has no answer to give.
 */
#include "prove/attempt.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "plan/plan_gate.h"
#include "policy/net_rules.h"

#define ANSWER_SECONDS 5

/* A connection to a host by its name, or a negative errno; -ENOENT: it has no address. */
static int connect_by_name(const char *name, int port)
{
	const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
	const struct timeval limit = {.tv_sec = ANSWER_SECONDS};
	struct addrinfo *found = NULL;
	char service[16];
	int fd, rc = 0;

	snprintf(service, sizeof(service), "%d", port);
	if (getaddrinfo(name, service, &hints, &found) != 0 || !found)
		return -ENOENT;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0 ||
	    connect(fd, found->ai_addr, found->ai_addrlen) < 0)
		rc = -errno;
	freeaddrinfo(found);
	if (rc < 0)
		close_fd(&fd);
	return rc < 0 ? rc : fd;
}

/* Report whether this network has a gate. Without one the attempt must not ask any server for names. */
static bool has_gate(void)
{
	const struct sockaddr_in self = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(GATE_SELF_ADDRESS)};
	AUTO_CLOSE int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd >= 0 && bind(fd, (const struct sockaddr *)&self, sizeof(self)) == 0;
}

/* 0: the server has said the token; or a negative errno. */
static int reach_server(const struct prove_facts *facts)
{
	AUTO_CLOSE int fd = connect_by_name(NET_HOST_NAME, facts->gate_port);
	char said[PROVE_TOKEN_MAX] = {0};
	ssize_t len = fd < 0 ? -1 : recv(fd, said, sizeof(said) - 1, MSG_WAITALL);

	if (fd < 0)
		return fd;
	return len > 0 && !strcmp(said, facts->token) ? 0 : -EIO;
}

struct answer attempt_gate(const struct prove_facts *facts)
{
	AUTO_CLOSE int fd = -1;
	int rc = has_gate() ? reach_server(facts) : -ENETUNREACH;
	char byte;

	if (rc < 0)
		return (struct answer){VERDICT_UNKNOWN, LAYER_NONE, "reach-what-is-allowed", -rc};
	fd = connect_by_name(NET_HOST_NAME, facts->tcp_port);
	/* A refusal may come after the connection was made: as a reset. */
	if (fd >= 0 && recv(fd, &byte, 1, 0) < 0 && errno != EAGAIN)
		return prove_answer_stopped(LAYER_GATE, "recv", errno);
	return fd >= 0 ? prove_answer_through("connect") : prove_answer_stopped(LAYER_GATE, "connect", -fd);
}
