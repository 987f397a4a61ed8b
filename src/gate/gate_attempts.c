/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/gate_attempts.c - record connections and datagrams that the kernel refuses because no process listens there
 *
 * Raw sockets of the jar's network get a copy of each packet to any address. A filter in the kernel passes the first
 * packet of each connection, and datagrams to any port but DNS. These sockets never send, and this file decides
 * nothing: the rules have already refused what it records.
 */
#include <arpa/inet.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "gate/gate_process.h"
#include "plan/plan_gate.h"

#define PACKETS_PER_TURN 64
#define PACKETS_AT_END 4096
/* Headers with all their options. */
#define PACKET_BYTES 128
#define IPV4_HEADER_BYTES 20
#define IPV4_TO 16
#define PORT_TO 2
#define TCP_FLAGS 13
#define TCP_SYN_ACK 0x12
#define TCP_SYN 0x02
#define DNS_PORT 53

struct attempt {
	bool is_ipv6, is_datagram;
	uint8_t to[16];
	uint16_t port;
};

/* --- which packets ------------------------------------------------------------------------------------------ */

static bool attach(int fd, const struct sock_filter *program, size_t len)
{
	struct sock_fprog filter = {.len = (unsigned short)len, .filter = (struct sock_filter *)program};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) == 0;
}

static int number_of(int fd, int name)
{
	int value = 0;
	socklen_t len = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, name, &value, &len) < 0 ? -1 : value;
}

bool gate_attempts_prepare(struct gate_process *gate, int fd)
{
	static const struct sock_filter ipv4_connections[] = {
		BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),           BPF_STMT(BPF_LD | BPF_B | BPF_IND, TCP_FLAGS),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, TCP_SYN_ACK), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TCP_SYN, 0, 3),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, IPV4_TO),      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 127, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, PACKET_BYTES),          BPF_STMT(BPF_RET | BPF_K, 0),
	};
	static const struct sock_filter ipv4_datagrams[] = {
		BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
		BPF_STMT(BPF_LD | BPF_H | BPF_IND, PORT_TO),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, DNS_PORT, 3, 0),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, IPV4_TO),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 127, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, PACKET_BYTES),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	/* These come without the header of their network. */
	static const struct sock_filter ipv6_connections[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, TCP_FLAGS),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, TCP_SYN_ACK),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TCP_SYN, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, PACKET_BYTES),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};

	if (number_of(fd, SO_DOMAIN) == AF_INET6) {
		gate->sees_ipv6 = attach(fd, ipv6_connections, ARRAY_LEN(ipv6_connections));
		return gate->sees_ipv6;
	}
	if (number_of(fd, SO_PROTOCOL) == IPPROTO_UDP)
		return attach(fd, ipv4_datagrams, ARRAY_LEN(ipv4_datagrams));
	gate->sees_ipv4 = attach(fd, ipv4_connections, ARRAY_LEN(ipv4_connections));
	return gate->sees_ipv4;
}

/* --- what they say ------------------------------------------------------------------------------------------ */

/* Filter again: packets can come before the socket has its filter. */
static bool read_transport(struct attempt *attempt, const uint8_t *header, size_t len)
{
	if (len < (attempt->is_datagram ? PORT_TO + 2 : TCP_FLAGS + 1))
		return false;
	attempt->port = (uint16_t)(header[PORT_TO] << 8 | header[PORT_TO + 1]);
	/* The gate answers DNS questions to any address, by datagram and by stream. */
	if (attempt->port == DNS_PORT)
		return false;
	return attempt->is_datagram || (header[TCP_FLAGS] & TCP_SYN_ACK) == TCP_SYN;
}

static bool read_ipv4(struct attempt *attempt, const uint8_t *packet, size_t len)
{
	size_t header_len = len ? (packet[0] & 0xfU) * 4 : 0;

	if (len < IPV4_HEADER_BYTES || header_len < IPV4_HEADER_BYTES || header_len > len)
		return false;
	attempt->is_datagram = packet[9] == IPPROTO_UDP;
	memcpy(attempt->to, packet + IPV4_TO, 4);
	return read_transport(attempt, packet + header_len, len - header_len);
}

static bool read_ipv6(struct attempt *attempt, const struct msghdr *message, const uint8_t *packet, size_t len)
{
	const struct cmsghdr *control = CMSG_FIRSTHDR(message);
	struct in6_pktinfo info;

	if (!control || control->cmsg_level != IPPROTO_IPV6 || control->cmsg_type != IPV6_PKTINFO)
		return false;
	memcpy(&info, CMSG_DATA(control), sizeof(info));
	memcpy(attempt->to, &info.ipi6_addr, sizeof(attempt->to));
	return read_transport(attempt, packet, len);
}

/* The jar's own loopback, and its own address. */
static bool is_own(const struct attempt *attempt)
{
	static const struct in6_addr loopback = IN6ADDR_LOOPBACK_INIT;
	const uint32_t self = htonl(GATE_SELF_ADDRESS);

	if (attempt->is_ipv6)
		return !memcmp(attempt->to, &loopback, sizeof(loopback));
	return attempt->to[0] == 127 || !memcmp(attempt->to, &self, sizeof(self));
}

static void judge(struct gate_process *gate, const struct attempt *attempt)
{
	struct refusal refusal = {.kind = DENIAL_NET,
				  .reason = attempt->is_datagram ? DENIAL_DATAGRAM : DENIAL_BY_RULE,
				  .port = attempt->port};
	struct net_verdict verdict;
	char text[INET6_ADDRSTRLEN];
	uint32_t address;

	if (is_own(attempt))
		return;
	memcpy(&address, attempt->to, sizeof(address));
	refusal.host = attempt->is_ipv6 ? NULL : gate_names_find(gate, ntohl(address));
	if (refusal.host) {
		verdict = gate_rules_decide_name(gate, refusal.host, attempt->port);
	} else {
		inet_ntop(attempt->is_ipv6 ? AF_INET6 : AF_INET, attempt->to, text, sizeof(text));
		refusal.host = text;
		verdict = gate_rules_decide_address(gate, attempt->is_ipv6, attempt->to, attempt->port);
	}
	/* It comes to the gate itself, and may be asked about. */
	if (!attempt->is_datagram && gate->page->may_ask && !verdict.rule)
		return;
	if (attempt->is_datagram || !verdict.is_allowed)
		gate_account_refusal(gate, &refusal);
}

/* --- reading ------------------------------------------------------------------------------------------------ */

static bool take(struct gate_process *gate, int fd, bool is_ipv6)
{
	uint8_t packet[PACKET_BYTES];
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	} control;
	struct iovec part = {.iov_base = packet, .iov_len = sizeof(packet)};
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	struct attempt attempt = {.is_ipv6 = is_ipv6};
	ssize_t len = recvmsg(fd, &message, MSG_DONTWAIT);

	if (len < 0)
		return false;
	if (is_ipv6 ? read_ipv6(&attempt, &message, packet, (size_t)len) : read_ipv4(&attempt, packet, (size_t)len))
		judge(gate, &attempt);
	return true;
}

void gate_attempts_on_packet(struct loop_watch *watch, uint32_t events)
{
	struct gate_process *gate = watch->owner;
	bool is_ipv6 = number_of(watch->fd, SO_DOMAIN) == AF_INET6;

	(void)events;
	for (size_t i = 0; i < PACKETS_PER_TURN && take(gate, watch->fd, is_ipv6); i++)
		;
}

void gate_attempts_drain(struct gate_process *gate)
{
	for (size_t i = 0; i < gate->listener_count; i++) {
		int fd = gate->listeners[i].fd;
		bool is_ipv6 = number_of(fd, SO_DOMAIN) == AF_INET6;

		if (number_of(fd, SO_TYPE) != SOCK_RAW)
			continue;
		for (size_t j = 0; j < PACKETS_AT_END && take(gate, fd, is_ipv6); j++)
			;
	}
}
