/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/gate_address.c - which addresses are the host's own
 */
#include "gate/gate_address.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

bool gate_address_is_own(bool is_ipv6, const uint8_t *address)
{
	union {
		struct sockaddr any;
		struct sockaddr_in ipv4;
		struct sockaddr_in6 ipv6;
	} to = {.any.sa_family = is_ipv6 ? AF_INET6 : AF_INET}, source = {0};
	socklen_t len = is_ipv6 ? sizeof(to.ipv6) : sizeof(to.ipv4), source_len = sizeof(source);
	void *place = is_ipv6 ? (void *)&to.ipv6.sin6_addr : (void *)&to.ipv4.sin_addr;
	AUTO_CLOSE int fd = socket(to.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	/* The port stands in the same place for both families. */
	to.ipv4.sin_port = htons(9);
	memcpy(place, address, is_ipv6 ? 16 : 4);
	if (fd < 0 || connect(fd, &to.any, len) < 0 || getsockname(fd, &source.any, &source_len) < 0)
		return false;
	return is_ipv6 ? !memcmp(&source.ipv6.sin6_addr, address, 16) : !memcmp(&source.ipv4.sin_addr, address, 4);
}
