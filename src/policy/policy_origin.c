/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/policy_origin.c - messages that name the flag, or the line and column, that they are about
 */
#include "policy/policy_origin.h"

#include <errno.h>
#include <string.h>

#include "base/utf8.h"
#include "policy/policy_lists.h"

#define SHOWN_BYTES 120

/* Cut a long text from outside, to leave room for the rest of the message. */
static void append_shown(struct text *text, const char *shown)
{
	size_t len = strnlen(shown, SHOWN_BYTES + 1);

	if (len <= SHOWN_BYTES) {
		text_append(text, shown, len);
		return;
	}
	text_append(text, shown, SHOWN_BYTES - utf8_cut_tail((const unsigned char *)shown, SHOWN_BYTES));
	text_append_string(text, "...");
}

void policy_append_place(struct text *text, const struct policy_source *source, unsigned line, unsigned column)
{
	if (!source->is_from_program)
		text_append_format(text, "%s:%u:%u: ", source->name, line, column);
}

int policy_refuse(const struct policy_origin *origin, const char *shown, const char *format, ...)
{
	const struct policy_source *source = origin->source;
	bool is_flag = policy_is_flag(origin);
	AUTO_TEXT message = {0};
	va_list arguments;

	if (is_flag) {
		text_append_format(&message, "--%s%s", origin->is_negated ? "no-" : "", origin->key->flag);
	} else {
		policy_append_place(&message, source, origin->line, origin->column);
		text_append_string(&message, origin->key->name);
	}
	if (shown) {
		text_append_string(&message, is_flag ? " " : " '");
		append_shown(&message, shown);
		text_append_string(&message, is_flag ? "" : "'");
	}
	text_append_string(&message, ": ");
	va_start(arguments, format);
	text_append_format_list(&message, format, arguments);
	va_end(arguments);
	return error_set(source->error, is_flag ? STAGE_USAGE : STAGE_POLICY, 0, "%s", text_string(&message));
}

int policy_refuse_errno(const struct policy_origin *origin, int rc)
{
	if (rc == -E2BIG)
		return policy_refuse(origin, NULL, "more than %d entries", POLICY_MAX_ENTRIES);
	return error_set(origin->source->error, policy_is_flag(origin) ? STAGE_USAGE : STAGE_POLICY, -rc,
			 "no memory for the policy");
}
