/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/gate/plan_netlink.h - messages for the kernel, as bytes
 *
 * The planner writes them. The jar sends them, and does not parse them.
 */
#ifndef BELLJAR_PLAN_GATE_PLAN_NETLINK_H
#define BELLJAR_PLAN_GATE_PLAN_NETLINK_H

#include "base/text.h"

/* Messages one after the other; @bytes records whether memory ran out. */
struct netlink_messages {
	struct text *bytes;
	size_t begun; /* where the last message begins */
	uint32_t count;
	uint64_t acknowledged; /* the number of answers that follow */
};

void plan_netlink_begin(struct netlink_messages *messages, unsigned type, unsigned flags, const void *head,
			size_t head_len);
void plan_netlink_end(struct netlink_messages *messages);
void plan_netlink_put(struct netlink_messages *messages, unsigned type, const void *bytes, size_t len);
void plan_netlink_put_string(struct netlink_messages *messages, unsigned type, const char *string);
/* Append a number in network byte order, as nf_tables expects. */
void plan_netlink_put_number(struct netlink_messages *messages, unsigned type, uint32_t number);
/* Open an attribute that contains others. Returns its offset, for plan_netlink_close_nest(). */
size_t plan_netlink_open_nest(struct netlink_messages *messages, unsigned type);
void plan_netlink_close_nest(struct netlink_messages *messages, size_t at);

#endif
