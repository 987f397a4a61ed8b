/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/publish.h - the entries of `publish`: ports of a jar that can be reached from the host
 *
 * An entry is a text, [HOSTPORT:]PORT. A policy holds each in one canonical form, without a host port of 0.
 */
#ifndef BELLJAR_POLICY_PUBLISH_H
#define BELLJAR_POLICY_PUBLISH_H

#include "base/text.h"

#define PUBLISH_MAX 32
/* Nothing in a jar may listen on a port below. */
#define PUBLISH_PORT_MIN 1024

struct publish {
	uint16_t port;      /* in the jar */
	uint16_t host_port; /* of the host's 127.0.0.1; 0: any that is free */
};

/* Why an entry will not do, or NULL. */
const char *policy_publish_parse(const char *text, struct publish *out);
void policy_publish_format(const struct publish *entry, struct text *out);
/* Add an entry to those of a policy; one for the same port gives way. As policy_publish_parse(). */
const char *policy_publish_add(struct string_list *entries, const char *text);

#endif
