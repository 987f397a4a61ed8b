/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/inspect_world.h - an inspected connection in memory, without sockets and TLS
 *
 * What the jar sends is put into world.inspection.client.in, what it would get is taken from .wire; the same for the host.
 */
#ifndef BELLJAR_TESTS_UNIT_INSPECT_WORLD_H
#define BELLJAR_TESTS_UNIT_INSPECT_WORLD_H

#include <stdlib.h>
#include <string.h>

#include "gate/inspect/inspect.h"

#define WORLD_HOST "api.test"
#define WORLD_VALUE "s3cr3t-value-0123456789"
#define WORLD_STARS "***********************"
#define WORLD_HOLDER "belljar-placeholder-for-TOKEN"

struct world {
	struct gate_process gate;
	struct net_rule rules[4];
	struct secret secret;
	struct inspector inspector;
	struct inspection inspection;
	struct gate_page page; /* it may have more behind it */
};

static struct world world;

static inline void world_begin(const struct protocol *protocol, bool has_secret)
{
	memset(&world, 0, sizeof(world));
	world.gate.page = &world.page;
	world.gate.rules = (struct net_rule_list){.items = world.rules, .count = 1};
	world.rules[0] = (struct net_rule){.kind = NET_RULE_NAME,
					   .name = WORLD_HOST,
					   .is_inspected = true,
					   .ports = {{1, 65535}},
					   .port_count = 1};
	world.secret = (struct secret){.name = "TOKEN",
				       .placeholder = WORLD_HOLDER,
				       .host = WORLD_HOST,
				       .header = "Authorization",
				       .format = "Bearer {}",
				       .value = WORLD_VALUE,
				       .value_len = sizeof(WORLD_VALUE) - 1,
				       .written = "Bearer " WORLD_VALUE};
	world.inspector.secrets = (struct secrets){&world.secret, has_secret};
	world.inspection = (struct inspection){.inspector = &world.inspector,
					       .gate = &world.gate,
					       .host = WORLD_HOST,
					       .port = 443,
					       .is_safe = true,
					       .has_secret = has_secret,
					       .protocol = protocol};
	inspect_stream_init(&world.inspection.client, -1, NULL, &world.page, NULL, true);
	inspect_stream_init(&world.inspection.server, -1, NULL, &world.page, NULL, false);
	if (!protocol->begin(&world.inspection))
		abort();
}

static inline void world_end(void)
{
	world.inspection.protocol->end(&world.inspection);
	inspect_stream_done(&world.inspection.client);
	inspect_stream_done(&world.inspection.server);
}

/* How often that was refused; @detail is the beginning of what was recorded. */
static inline unsigned world_denials(const char *detail)
{
	unsigned count = 0;

	for (uint32_t i = 0; i < world.page.denial_count; i++)
		if (!strncmp(world.page.denials[i].detail, detail, strlen(detail)))
			count += (unsigned)world.page.denials[i].count;
	return count;
}

#endif
