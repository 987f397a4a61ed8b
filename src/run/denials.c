/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/denials.c - names of what was refused are redacted like what the command prints: it chose them
 */
#include "run/denials.h"

#include <stdio.h>

#include "redact/redact.h"

static void redact_name(const struct redactor *redactor, char *name, size_t size)
{
	AUTO_TEXT shown = {0};

	redact_string(redactor, name, &shown);
	snprintf(name, size, "%s", text_string(&shown));
}

void denials_redact(const struct redactor *redactor, struct denial *denials, size_t count)
{
	for (size_t i = 0; redactor && i < count; i++) {
		redact_name(redactor, denials[i].what, sizeof(denials[i].what));
		redact_name(redactor, denials[i].detail, sizeof(denials[i].detail));
		redact_name(redactor, denials[i].process, sizeof(denials[i].process));
	}
}
