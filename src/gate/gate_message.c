/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/gate_message.c - what a gate's process and its engine say to each other
 *
 * Bytes: four numbers of 4 bytes each as this host has them, then the text without a NUL. Both sides are the same program.
 */
#include "gate/gate_message.h"

#include <string.h>

#define HEAD_BYTES 16

static const struct {
	enum gate_side from;
	bool has_rule;
	bool has_answer;
} rows[GATE_MESSAGE_KIND_COUNT] = {
	[GATE_LOOK] = {GATE_FROM_PROCESS, false, false},      [GATE_DONE] = {GATE_FROM_PROCESS, false, false},
	[GATE_FULL] = {GATE_FROM_PROCESS, false, false},      [GATE_QUESTION] = {GATE_FROM_PROCESS, true, false},
	[GATE_WITHDRAWN] = {GATE_FROM_PROCESS, false, false}, [GATE_RULE] = {GATE_FROM_ENGINE, true, false},
	[GATE_ANSWER] = {GATE_FROM_ENGINE, false, true},      [GATE_STALE] = {GATE_FROM_PROCESS, false, false},
	[GATE_FILES] = {GATE_FROM_ENGINE, false, false},
};

static bool read_rule(const char *bytes, size_t len, struct net_rule *out)
{
	char text[GATE_TEXT_MAX + 1];
	struct net_refusal refusal;

	if (len > GATE_TEXT_MAX || memchr(bytes, '\0', len))
		return false;
	memcpy(text, bytes, len);
	text[len] = '\0';
	return net_rule_parse(text, out, &refusal) == 0;
}

_Static_assert(offsetof(struct gate_message, rule) == HEAD_BYTES, "the numbers come first");

bool gate_message_read(const void *bytes, size_t len, enum gate_side from, struct gate_message *out)
{
	struct gate_message message = {0};

	if (len < HEAD_BYTES || len > GATE_MESSAGE_MAX)
		return false;
	memcpy(&message, bytes, HEAD_BYTES);
	if (message.kind < GATE_LOOK || message.kind >= GATE_MESSAGE_KIND_COUNT || rows[message.kind].from != from)
		return false;
	if (rows[message.kind].has_answer ? message.answer >= NET_ANSWER_COUNT : message.answer || message.run)
		return false;
	if (rows[message.kind].has_rule) {
		if (!read_rule((const char *)bytes + HEAD_BYTES, len - HEAD_BYTES, &message.rule))
			return false;
	} else if (len != HEAD_BYTES) {
		return false;
	}
	if (message.kind == GATE_QUESTION && !net_rule_is_exact(&message.rule))
		return false;
	*out = message;
	return true;
}

size_t gate_message_write(const struct gate_message *message, uint8_t out[GATE_MESSAGE_MAX])
{
	AUTO_TEXT text = {0};

	memcpy(out, message, HEAD_BYTES);
	if (rows[message->kind].has_rule)
		net_rule_format(&message->rule, &text);
	if (text_failed(&text) || text.len > GATE_TEXT_MAX)
		return 0;
	if (text.len)
		memcpy(out + HEAD_BYTES, text.data, text.len);
	return HEAD_BYTES + text.len;
}
