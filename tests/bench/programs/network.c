/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/bench/programs/network.c - a server on the loopback, and a client that measures it
 *
 * serve                     prints its port, and serves until its standard input ends
 * requests HOST PORT COUNT  connect, one byte there and back, close; prints NANOSECONDS for each
 * pull HOST PORT MEBIBYTES  prints NANOSECONDS for all of them
 * now                       prints what the clock shows, in nanoseconds
 *
 * With $PROXY, which is ADDRESS:PORT, all of them go by that proxy.
 */
#include "turns.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static char buffer[1 << 18];

/* A request is its length in mebibytes, 0 for a byte. */
static void attend(int fd)
{
	unsigned char mebibytes[2];

	if (recv(fd, mebibytes, 2, MSG_WAITALL) != 2)
		_exit(0);
	if (!mebibytes[0] && !mebibytes[1])
		(void)!write(fd, "x", 1);
	for (long long left = (long long)(mebibytes[0] << 8 | mebibytes[1]) << 20; left > 0;) {
		ssize_t len = write(fd, buffer, left < (long long)sizeof(buffer) ? (size_t)left : sizeof(buffer));

		if (len <= 0)
			break;
		left -= len;
	}
	_exit(0);
}

static int serve(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct pollfd waiting[] = {{.fd = listener, .events = POLLIN}, {.fd = 0, .events = POLLIN}};

	signal(SIGCHLD, SIG_IGN);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 128) ||
	    getsockname(listener, (struct sockaddr *)&address, &len))
		return 1;
	printf("%d\n", ntohs(address.sin_port));
	fflush(stdout);
	while (poll(waiting, 2, -1) > 0 && !waiting[1].revents) {
		int fd = accept(listener, NULL, NULL);

		if (fd >= 0 && fork() == 0)
			attend(fd);
		close(fd);
	}
	return 0;
}

/* Ask the proxy for the server; its address stands in @where. */
static int ask_proxy(int fd, const char *where)
{
	char text[128];
	size_t used = 0;
	int len = snprintf(text, sizeof(text), "CONNECT %s HTTP/1.1\r\n\r\n", where);

	if (write(fd, text, (size_t)len) != len)
		return -1;
	do {
		ssize_t got = read(fd, text + used, sizeof(text) - 1 - used);

		if (got <= 0)
			return -1;
		used += (size_t)got;
		text[used] = '\0';
	} while (!strstr(text, "\r\n\r\n"));
	return strncmp(text, "HTTP/1.1 200", 12) ? -1 : 0;
}

static int request(const struct addrinfo *server, const char *proxied, unsigned mebibytes)
{
	const unsigned char line[2] = {(unsigned char)(mebibytes >> 8), (unsigned char)mebibytes};
	int fd = socket(server->ai_family, SOCK_STREAM, 0);
	long long wanted = mebibytes ? (long long)mebibytes << 20 : 1;
	ssize_t len = -1;

	if (connect(fd, server->ai_addr, server->ai_addrlen) || (proxied && ask_proxy(fd, proxied)) ||
	    write(fd, line, 2) != 2)
		return -1;
	while (wanted > 0 && (len = read(fd, buffer, sizeof(buffer))) > 0)
		wanted -= len;
	close(fd);
	return wanted ? -1 : 0;
}

int main(int argc, char **argv)
{
	struct addrinfo *server, wish = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
	char *proxy = getenv("PROXY"), *proxy_port = proxy ? strchr(proxy, ':') : NULL, proxied[64];
	unsigned mebibytes;
	int count;

	if (argc == 2 && !strcmp(argv[1], "now"))
		return printf("%lld\n", now_ns()) < 0;
	if (argc == 2)
		return serve();
	if (argc != 5)
		return 2;
	snprintf(proxied, sizeof(proxied), "%s:%s", argv[2], argv[3]);
	if (proxy_port)
		*proxy_port++ = '\0';
	if (getaddrinfo(proxy_port ? proxy : argv[2], proxy_port ? proxy_port : argv[3], &wish, &server))
		return 2;
	mebibytes = strcmp(argv[1], "pull") ? 0 : (unsigned)atoi(argv[4]);
	count = mebibytes ? 1 : atoi(argv[4]);
	for (int i = 0; i < count; i++) {
		long long begun = now_ns();

		if (request(server, proxy_port ? proxied : NULL, mebibytes))
			return 1;
		printf("%lld\n", now_ns() - begun);
	}
	return 0;
}
