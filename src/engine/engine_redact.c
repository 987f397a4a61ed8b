/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_redact.c - what the engine itself says of a run is redacted like what the command prints
 *
 * A command line or a path can hold a secret as well as output can, and a message quotes them. Only what is quoted can
 * hold one: names and numbers of our own are left alone, or a text to redact such as "name" would tear the JSON apart.
 */
#include "engine/engine_redact.h"

#include <stdio.h>
#include <string.h>

#include "base/json_write.h"
#include "engine/engine.h"
#include "base/redact/redact.h"

static void init(struct engine_words *words, const struct string_list *secrets, bool has_shapes, struct error *error)
{
	*words = (struct engine_words){0};
	words->is_blind = redactor_new(secrets, has_shapes, &words->redactor, error) < 0;
}

void engine_words_init(struct engine_words *words, const struct plan *plan)
{
	init(words, &plan->redact, plan->has_redact_secrets, NULL);
}

void engine_words_done(struct engine_words *words)
{
	redactor_free(words->redactor);
}

static void clean(const struct engine_words *words, const char *string, struct text *out)
{
	if (words->is_blind)
		text_append_string(out, REDACT_MARK);
	else
		redact_string(words->redactor, string, out);
}

void engine_words_write(const struct engine_words *words, const char *string, struct json_writer *writer,
			const char *key)
{
	AUTO_TEXT shown = {0};

	if (string)
		clean(words, string, &shown);
	json_write_string(writer, key, string ? text_string(&shown) : NULL);
}

static void clean_buffer(const struct engine_words *words, char *buffer, size_t size)
{
	AUTO_TEXT shown = {0};

	if (!buffer[0])
		return;
	clean(words, buffer, &shown);
	snprintf(buffer, size, "%s", text_string(&shown));
}

int engine_make_redactor(const struct policy *policy, char *const *environment, struct redactor **out,
			 struct error *error)
{
	struct string_list secrets = {0};
	int rc = plan_secrets(policy, environment, NULL, &secrets);

	if (rc < 0)
		error_set(error, STAGE_ENGINE, -rc, "no memory for what is to be redacted");
	else
		rc = redactor_new(&secrets, policy->has_redact_secrets, out, error);
	string_list_done(&secrets);
	return rc;
}

void engine_redact_error(const struct policy *policy, char *const *environment, struct error *error)
{
	struct string_list secrets = {0};
	struct engine_words words;
	struct error failure = {0};

	if (error->stage == STAGE_NONE || !policy)
		return;
	if (plan_secrets(policy, environment, NULL, &secrets) < 0)
		words = (struct engine_words){.is_blind = true};
	else
		init(&words, &secrets, policy->has_redact_secrets, &failure);
	/* Do not redact the message that there is too much to redact. */
	if (strcmp(failure.message, error->message) != 0) {
		clean_buffer(&words, error->message, sizeof(error->message));
		clean_buffer(&words, error->hint, sizeof(error->hint));
	}
	engine_words_done(&words);
	string_list_done(&secrets);
}
