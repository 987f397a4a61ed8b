/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/gate/plan_netlink.c - messages for the kernel, as bytes
 */
#include "plan/gate/plan_netlink.h"

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <string.h>

static void put(struct netlink_messages *messages, const void *bytes, size_t len)
{
	static const char padding[NLMSG_ALIGNTO];

	text_append(messages->bytes, bytes, len);
	text_append(messages->bytes, padding, NLMSG_ALIGN(len) - len);
}

void plan_netlink_begin(struct netlink_messages *messages, unsigned type, unsigned flags, const void *head,
			size_t head_len)
{
	struct nlmsghdr header = {
		.nlmsg_type = (uint16_t)type,
		.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags),
		.nlmsg_seq = ++messages->count,
	};

	messages->begun = messages->bytes->len;
	messages->acknowledged += flags & NLM_F_ACK ? 1 : 0;
	put(messages, &header, sizeof(header));
	put(messages, head, head_len);
}

void plan_netlink_end(struct netlink_messages *messages)
{
	uint32_t len = (uint32_t)(messages->bytes->len - messages->begun);

	if (!text_failed(messages->bytes))
		memcpy(messages->bytes->data + messages->begun, &len, sizeof(len));
}

void plan_netlink_put(struct netlink_messages *messages, unsigned type, const void *bytes, size_t len)
{
	struct nlattr attribute = {.nla_len = (uint16_t)(NLA_HDRLEN + len), .nla_type = (uint16_t)type};

	put(messages, &attribute, sizeof(attribute));
	put(messages, bytes, len);
}

void plan_netlink_put_string(struct netlink_messages *messages, unsigned type, const char *string)
{
	plan_netlink_put(messages, type, string, strlen(string) + 1);
}

void plan_netlink_put_number(struct netlink_messages *messages, unsigned type, uint32_t number)
{
	number = htonl(number);
	plan_netlink_put(messages, type, &number, sizeof(number));
}

size_t plan_netlink_open_nest(struct netlink_messages *messages, unsigned type)
{
	size_t at = messages->bytes->len;

	plan_netlink_put(messages, type | NLA_F_NESTED, "", 0);
	return at;
}

void plan_netlink_close_nest(struct netlink_messages *messages, size_t at)
{
	uint16_t len = (uint16_t)(messages->bytes->len - at);

	if (!text_failed(messages->bytes))
		memcpy(messages->bytes->data + at, &len, sizeof(len));
}
