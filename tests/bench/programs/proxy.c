/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/bench/programs/proxy.c - run a command whose only way out is a proxy
 *
 * proxy COMMAND...   in a network of its own; $PROXY says where the proxy listens in there
 *
 * What a sandbox has that sets proxy variables: a listener inside, a process outside that is told whom to connect to
 * (CONNECT), and moves bytes. No rules, no names, no walls.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PIPE_BYTES (256 << 10)

/* One end of a connection; what comes from it goes to the other. */
struct side {
	int fd, pipe[2];
	struct side *other;
	int is_ended;
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(path);
	close(fd);
}

static void enter_network(void)
{
	struct ifreq request = {.ifr_name = "lo"};
	char map[64];
	unsigned id = geteuid(), group = getegid();
	int fd;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		die("unshare");
	write_file("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "%u %u 1", id, id);
	write_file("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "%u %u 1", group, group);
	write_file("/proc/self/gid_map", map);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	request.ifr_flags = IFF_UP | IFF_RUNNING;
	if (ioctl(fd, SIOCSIFFLAGS, &request))
		die("lo");
	close(fd);
}

/* The listener goes to the parent over @channel. */
static void become_command(int channel, char **words)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(address);
	char control[CMSG_SPACE(sizeof(int))] = {0}, where[32];
	struct iovec part = {(void *)"", 1};
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	int listener;

	enter_network();
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(listener, (struct sockaddr *)&address, len) || listen(listener, 128) ||
	    getsockname(listener, (struct sockaddr *)&address, &len))
		die("listen");
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &listener, sizeof(int));
	if (sendmsg(channel, &message, 0) < 0)
		die("sendmsg");
	snprintf(where, sizeof(where), "127.0.0.1:%d", ntohs(address.sin_port));
	setenv("PROXY", where, 1);
	execvp(words[0], words);
	die(words[0]);
}

static int take_listener(int channel)
{
	char control[CMSG_SPACE(sizeof(int))], byte;
	struct iovec part = {&byte, 1};
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	int fd;

	if (recvmsg(channel, &message, MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&message))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

/* "CONNECT ADDRESS:PORT HTTP/1.1", and an empty line. */
static int dial(int client)
{
	char text[512], host[64];
	struct sockaddr_in address = {.sin_family = AF_INET};
	static const char answer[] = "HTTP/1.1 200 OK\r\n\r\n";
	size_t used = 0;
	int port, fd;

	do {
		ssize_t len = read(client, text + used, sizeof(text) - 1 - used);

		if (len <= 0)
			return -1;
		used += (size_t)len;
		text[used] = '\0';
	} while (!strstr(text, "\r\n\r\n"));
	if (sscanf(text, "CONNECT %63[^:]:%d ", host, &port) != 2)
		return -1;
	address.sin_port = htons((uint16_t)port);
	inet_pton(AF_INET, host, &address.sin_addr);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    write(client, answer, sizeof(answer) - 1) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static void end(struct side *side)
{
	struct side *sides[] = {side, side->other};

	for (int i = 0; i < 2; i++) {
		close(sides[i]->fd);
		close(sides[i]->pipe[0]);
		close(sides[i]->pipe[1]);
		free(sides[i]);
	}
}

static void accept_one(int epoll, int listener)
{
	int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	int server = client < 0 ? -1 : dial(client);
	struct side *sides[2];

	if (server < 0) {
		close(client);
		return;
	}
	for (int i = 0; i < 2; i++) {
		sides[i] = calloc(1, sizeof(struct side));
		sides[i]->fd = i ? server : client;
		if (pipe2(sides[i]->pipe, O_CLOEXEC))
			die("pipe2");
		fcntl(sides[i]->pipe[1], F_SETPIPE_SZ, PIPE_BYTES);
	}
	for (int i = 0; i < 2; i++) {
		struct epoll_event event = {.events = EPOLLIN, .data.ptr = sides[i]};

		sides[i]->other = sides[1 - i];
		epoll_ctl(epoll, EPOLL_CTL_ADD, sides[i]->fd, &event);
	}
}

static void move(int epoll, struct side *side)
{
	ssize_t len = splice(side->fd, NULL, side->pipe[1], NULL, PIPE_BYTES, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

	if (len < 0 && errno == EAGAIN)
		return;
	if (len <= 0) {
		side->is_ended = 1;
		shutdown(side->other->fd, SHUT_WR);
		epoll_ctl(epoll, EPOLL_CTL_DEL, side->fd, NULL);
		if (side->other->is_ended || len < 0)
			end(side);
		return;
	}
	while (len > 0) {
		ssize_t sent = splice(side->pipe[0], NULL, side->other->fd, NULL, (size_t)len, SPLICE_F_MOVE);

		if (sent <= 0) {
			end(side);
			return;
		}
		len -= sent;
	}
}

int main(int argc, char **argv)
{
	int channel[2], listener, epoll = epoll_create1(EPOLL_CLOEXEC), status = 0;
	struct epoll_event event = {.events = EPOLLIN};
	pid_t child;

	if (argc < 2 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel))
		return 2;
	signal(SIGPIPE, SIG_IGN);
	child = fork();
	if (child == 0)
		become_command(channel[1], argv + 1);
	close(channel[1]);
	listener = take_listener(channel[0]);
	if (listener < 0)
		return 1;
	epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
	/* The other end closes when the command is executed; when it ends is looked at now and then. */
	while (waitpid(child, &status, WNOHANG) == 0) {
		struct epoll_event events[1];

		/* One at a time: what one event ends is not there for the next. */
		if (epoll_wait(epoll, events, 1, 1) < 1)
			continue;
		if (events[0].data.ptr)
			move(epoll, events[0].data.ptr);
		else
			accept_one(epoll, listener);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
