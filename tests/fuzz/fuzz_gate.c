/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/fuzz/fuzz_gate.c - what a gate reads of others: first bytes, questions, answers; rules; and what gate and engine say
 *
 * Input: one byte that says which, then the bytes. First bytes must be judged the same however they arrive: what was found
 * in a part is found in the whole, and nothing is found in what ends before it.
 */
#include <assert.h>
#include <string.h>

#include "gate/gate_dns.h"
#include "gate/gate_message.h"
#include "gate/gate_resolver.h"
#include "gate/gate_sniff.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_sniff(const uint8_t *data, size_t size)
{
	struct sniffed whole, part;
	enum sniff found = gate_sniff_first_bytes(data, size, &whole);

	for (size_t len = 0; len < size; len += 1 + size / 64) {
		enum sniff earlier = gate_sniff_first_bytes(data, len, &part);

		assert(earlier == SNIFF_MORE || found != SNIFF_MORE);
		if (earlier == SNIFF_FOUND)
			assert(found == SNIFF_FOUND && !strcmp(part.name, whole.name) && part.port == whole.port);
		if (earlier == SNIFF_BAD)
			assert(found == SNIFF_BAD);
	}
}

static void check_dns(const uint8_t *data, size_t size)
{
	uint8_t out[DNS_MESSAGE_MAX * 2];
	struct dns_addresses addresses = {0};
	struct dns_question question;
	unsigned code;

	size = MIN_OF(size, DNS_MESSAGE_MAX);
	if (gate_dns_read_question(data, size, &question)) {
		size_t len = gate_dns_write_answer(data, &question, 0, 0xc6120100U, NULL, out);

		assert(len <= sizeof(out));
		len = gate_dns_write_answer(data, &question, DNS_NO_SUCH_NAME, 0, "a reason", out);
		assert(len <= sizeof(out));
	}
	if (size > 2)
		gate_dns_read_answer(data, size, (uint16_t)(data[0] << 8 | data[1]), "good.test", DNS_TYPE_A,
				     &addresses, &code);
	assert(addresses.count <= DNS_ADDRESSES_MAX);
}

static void check_rule(const char *text)
{
	struct net_refusal refusal;
	struct net_rule rule, again;
	AUTO_TEXT form = {0}, form_again = {0};

	if (net_rule_parse(text, &rule, &refusal) < 0)
		return;
	net_rule_format(&rule, &form);
	assert(net_rule_parse(text_string(&form), &again, &refusal) == 0);
	net_rule_format(&again, &form_again);
	assert(!strcmp(text_string(&form), text_string(&form_again)));
}

static void check_files(const char *text)
{
	struct resolver_servers servers = {0};
	struct resolver resolver = {0};

	gate_resolver_read_hosts(&resolver, text);
	gate_resolver_read_configuration(text, &servers);
	free(resolver.hosts.items);
}

/* A message that is understood is understood the same when it is sent on. */
static void check_message(const uint8_t *data, size_t size)
{
	static uint8_t bytes[GATE_MESSAGE_MAX];
	struct gate_message message, again;

	for (int from = GATE_FROM_PROCESS; from <= GATE_FROM_ENGINE; from++) {
		size_t len;

		if (!gate_message_read(data, size, (enum gate_side)from, &message))
			continue;
		len = gate_message_write(&message, bytes);
		assert(len && gate_message_read(bytes, len, (enum gate_side)from, &again));
		assert(again.kind == message.kind && again.number == message.number);
		assert(again.rule.is_deny == message.rule.is_deny && again.rule.port_count == message.rule.port_count);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_FREE char *text = NULL;

	if (size < 1)
		return 0;
	text = strndup((const char *)data + 1, size - 1);
	switch (data[0] % 5) {
	case 0:
		check_sniff(data + 1, size - 1);
		break;
	case 1:
		check_dns(data + 1, size - 1);
		break;
	case 2:
		check_rule(text);
		break;
	case 3:
		check_files(text);
		break;
	case 4:
		check_message(data + 1, size - 1);
		break;
	}
	return 0;
}
