/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/run/denials.c - what a run was refused: system calls, as its jar reports them; names, redacted like what the command prints
 */
#include "engine/run/denials.h"

#include <stdio.h>
#include <string.h>

#include "helper/ledger_look.h"
#include "plan/seccomp/syscall_numbers.h"
#include "base/redact/redact.h"

static void redact_name(const struct redactor *redactor, char *name, size_t size)
{
	AUTO_TEXT shown = {0};

	redact_string(redactor, name, &shown);
	snprintf(name, size, "%s", text_string(&shown));
}

/* Drop the proposed change if redaction changes the path: it would be for another path. */
static void redact_path(const struct redactor *redactor, struct denial *denial)
{
	AUTO_TEXT path = {0}, why = {0}, warning = {0};
	struct denial_path *before = denial->path, *shown;
	bool is_same;

	redact_string(redactor, before->path, &path);
	redact_string(redactor, before->why, &why);
	redact_string(redactor, before->warning, &warning);
	is_same = !strcmp(text_string(&path), before->path);
	shown = helper_ledger_path(before->access,
				   (const char *const[]){text_string(&path), text_string(&why),
							 is_same ? before->flag : "", is_same ? before->policy : "",
							 text_string(&warning)});
	free(before);
	denial->path = shown;
}

void run_denials_copy(const struct denial *denial, struct denial *out)
{
	const struct denial_path *path = denial->path;

	*out = *denial;
	if (path)
		out->path = helper_ledger_path(path->access, (const char *const[]){path->path, path->why, path->flag,
										   path->policy, path->warning});
}

void run_denials_redact(const struct redactor *redactor, struct denial *denials, size_t count)
{
	for (size_t i = 0; redactor && i < count; i++) {
		redact_name(redactor, denials[i].what, sizeof(denials[i].what));
		redact_name(redactor, denials[i].detail, sizeof(denials[i].detail));
		redact_name(redactor, denials[i].process, sizeof(denials[i].process));
		if (denials[i].path)
			redact_path(redactor, &denials[i]);
	}
}

static struct denial *find_call(struct denied_seen *seen, const char *name, size_t *count)
{
	struct denial *found = NULL;

	*count = 0;
	for (size_t i = 0; i < seen->list.count; i++) {
		struct denial *denial = &seen->list.items[i];

		if (denial->kind != DENIAL_CALL)
			continue;
		(*count)++;
		if (!strcmp(denial->what, name))
			found = denial;
	}
	return found;
}

const struct denial *run_denials_note_call(struct denied_seen *seen, const struct jar_message *message)
{
	const char *name = message->denied.number < 0
				   ? NULL
				   : syscall_name((uint32_t)message->denied.number, syscall_native_arch());
	struct denial *denial = NULL;
	size_t count = 0;
	bool is_new;

	if (name)
		denial = find_call(seen, name, &count);
	is_new = !denial;
	if (!denial && name && count < DENIED_CALLS_MAX)
		denial = list_add(&seen->list);
	if (!denial) {
		seen->more_calls = MAX_OF(seen->more_calls, message->denied.count);
		return NULL;
	}
	if (is_new) {
		*denial = (struct denial){.kind = DENIAL_CALL};
		snprintf(denial->what, sizeof(denial->what), "%s", name);
		snprintf(denial->process, sizeof(denial->process), "%.*s", JAR_NAME_BYTES - 1, message->denied.process);
	}
	denial->count = message->denied.count;
	denial->last_ns = message->denied.last_ns;
	return is_new ? denial : NULL;
}
