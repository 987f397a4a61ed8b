/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/gate_account.c - count traffic and refusals in memory that the engine reads
 *
 * The gate counts bytes when it reads them from one side, before it sends them on.
 */
#include <string.h>

#include "gate/gate_process.h"
#include "base/sys/calls.h"

struct gate_host *gate_account_host(struct gate_page *page, const char *host, uint16_t port)
{
	uint32_t count = page->host_count;
	struct gate_host *row;

	for (uint32_t i = 0; i < count; i++)
		if (page->hosts[i].port == port && !strcmp(page->hosts[i].host, host))
			return &page->hosts[i];
	if (count == GATE_HOSTS_MAX || strlen(host) >= GATE_HOST_SIZE)
		return NULL;
	row = &page->hosts[count];
	memcpy(row->host, host, strlen(host) + 1);
	row->port = port;
	page->host_count = count + 1;
	return row;
}

uint64_t gate_account_room(const struct gate_page *page)
{
	uint64_t most = page->bytes_max, bytes = page->bytes;

	return bytes < most ? most - bytes : 0;
}

void gate_account_add(struct gate_page *page, struct gate_host *host, bool is_out, uint64_t bytes)
{
	page->bytes += bytes;
	if (host && is_out)
		host->bytes_out += bytes;
	else if (host)
		host->bytes_in += bytes;
}

static struct gate_denial *find_denial(struct gate_page *page, const struct refusal *refusal)
{
	uint32_t count = page->denial_count;

	for (uint32_t i = 0; i < count; i++) {
		struct gate_denial *row = &page->denials[i];

		if (row->kind == refusal->kind && row->reason == refusal->reason && row->port == refusal->port &&
		    !strcmp(row->host, refusal->host) &&
		    (refusal->kind != DENIAL_HTTP || !strcmp(row->detail, refusal->detail ? refusal->detail : "")))
			return row;
	}
	return NULL;
}

static struct gate_denial *add_denial(struct gate_page *page, const struct refusal *refusal)
{
	uint32_t count = page->denial_count;
	struct gate_denial *row = &page->denials[count];

	if (count == DENIALS_MAX || strlen(refusal->host) >= sizeof(row->host))
		return NULL;
	row->kind = refusal->kind;
	row->reason = refusal->reason;
	row->port = refusal->port;
	memcpy(row->host, refusal->host, strlen(refusal->host) + 1);
	if (refusal->detail && strlen(refusal->detail) < sizeof(row->detail))
		memcpy(row->detail, refusal->detail, strlen(refusal->detail) + 1);
	page->denial_count = count + 1;
	return row;
}

void gate_account_refusal(struct gate_process *gate, const struct refusal *refusal)
{
	struct gate_denial *row = find_denial(gate->page, refusal);

	if (row && refusal->is_twin && row->count)
		return;
	if (!row)
		row = add_denial(gate->page, refusal);
	if (!row) {
		gate->page->denials_more++;
		return;
	}
	row->last_ns = sys_monotonic_ns();
	row->count++;
	if (!row->is_told) {
		row->is_told = 1;
		gate_notify(gate);
	}
}
