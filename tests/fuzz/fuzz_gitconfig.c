/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/fuzz/fuzz_gitconfig.c - any bytes as a git configuration file
 *
 * What is read as the caller's name is written into the jar's .gitconfig; read again from there it must be the same, but
 * for the control characters, and nothing else may have come in with it.
 */
#include <stdio.h>
#include <string.h>

#include "survey/survey_git.h"
#include "plan/plan_build.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	char name[GIT_VALUE_MAX + 1];
	int names, others;
};

static void note(void *context, const struct git_config_key *key, const char *value)
{
	struct seen *seen = context;

	if (!key->section[0] || !key->name[0])
		abort();
	if (!survey_git_config_is(key, "user", "name")) {
		seen->others++;
	} else if (strlen(value) <= GIT_VALUE_MAX) {
		snprintf(seen->name, sizeof(seen->name), "%s", value);
		seen->names++;
	}
}

static void drop_controls(char *text)
{
	char *to = text;

	for (; *text; text++)
		if ((unsigned char)*text >= 0x20 && *text != 0x7f)
			*to++ = *text;
	*to = '\0';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen before = {0}, after = {0};
	struct host host = {0};
	struct policy policy = {0};
	struct plan plan = {.core = {.workdir = "/w"}};
	struct plan_build build = {.plan = &plan, .policy = &policy, .host = &host};
	const char *written;

	survey_git_config_parse((const char *)data, size, note, &before);
	if (!before.names)
		return 0;
	host.git_name = before.name;
	written = plan_gitconfig(&build);
	if (survey_git_config_parse(written, strlen(written), note, &after) < 0 || after.names != 1 ||
	    after.others != 1)
		abort();
	drop_controls(before.name);
	if (strcmp(before.name, after.name) != 0)
		abort();
	string_list_done(&plan.strings);
	return 0;
}
