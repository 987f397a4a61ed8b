/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan_git.c - the .gitconfig of the private home: the committer's name, and trust in the workdir
 *
 * Belljar copies nothing else of the caller's configuration: credentials, aliases, proxies and includes stay outside.
 * Git refuses a repository of another user unless this file names it; inside a jar started by root, files of other
 * users belong to an unmapped id.
 */
#include "plan/plan_build.h"

#include <string.h>

/* A value in quotes, as git reads it back. A path keeps every byte; elsewhere control characters have no business. */
static void append_value(struct text *out, const char *value, bool is_path)
{
	text_append_char(out, '"');
	for (; *value; value++) {
		unsigned char byte = (unsigned char)*value;

		if (byte == '"' || byte == '\\')
			text_append_format(out, "\\%c", byte);
		else if (byte == '\n' && is_path)
			text_append_string(out, "\\n");
		else if ((byte >= 0x20 && byte != 0x7f) || is_path)
			text_append_char(out, (char)byte);
	}
	text_append_char(out, '"');
}

static void append_entry(struct text *out, const char *key, const char *value, bool is_path)
{
	text_append_format(out, "\t%s = ", key);
	append_value(out, value, is_path);
	text_append_char(out, '\n');
}

const char *plan_gitconfig(struct plan_build *build)
{
	const struct host *host = build->host;
	const struct host_path *top = &host->workdir.top;
	AUTO_TEXT content = {0};

	text_append_string(&content, "# Made by Belljar for this run. It can be read and not changed.\n");
	if (host->git_name || host->git_email)
		text_append_string(&content, "[user]\n");
	if (host->git_name)
		append_entry(&content, "name", host->git_name, false);
	if (host->git_email)
		append_entry(&content, "email", host->git_email, false);
	text_append_string(&content, "[safe]\n");
	append_entry(&content, "directory", build->plan->core.workdir, true);
	if (!build->has_private_workdir && top->kind == PATH_DIRECTORY)
		append_entry(&content, "directory", top->path, true);
	build->has_failed |= text_failed(&content);
	return plan_string(build, text_string(&content));
}
