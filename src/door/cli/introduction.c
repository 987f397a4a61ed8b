/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/introduction.c - what `belljar shell` says at its start, and the mark on its prompt
 */
#include "door/cli/introduction.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"

/* --- what the jar shows ------------------------------------------------------------------------------------- */

static bool is_workdir_writable(const struct policy *policy, const char *workdir)
{
	bool is_writable = policy->workdir_mode == WORKDIR_RW;

	for (size_t i = 0; i < policy->mounts.count; i++)
		if (!strcmp(policy->mounts.items[i].dest, workdir))
			is_writable = policy->mounts.items[i].access == MOUNT_RW;
	return is_writable;
}

/* One more entry of a list in words. */
static void append_item(struct text *list, const char *item)
{
	if (list->len)
		text_append_string(list, ", ");
	text_append_string(list, item);
}

static void say_files(const struct messenger *messenger, const struct policy *policy, const char *workdir,
		      bool has_mounts)
{
	AUTO_TEXT writable = {0};
	AUTO_TEXT private_places = {0};

	if (is_workdir_writable(policy, workdir))
		append_item(&writable, workdir);
	for (size_t i = 0; i < policy->mounts.count; i++)
		if (policy->mounts.items[i].access == MOUNT_RW && strcmp(policy->mounts.items[i].dest, workdir) != 0)
			append_item(&writable, policy->mounts.items[i].dest);
	for (size_t i = 0; i < policy->tmpfs.count && has_mounts; i++)
		append_item(&private_places, policy->tmpfs.items[i].path);
	if (!has_mounts)
		append_item(&private_places, "$HOME, $TMPDIR");
	cli_message_note(messenger, "writable: %s", writable.len ? text_string(&writable) : "nothing of the host");
	if (private_places.len)
		cli_message_note(messenger, "private, gone at the end: %s", text_string(&private_places));
}

static void append_size(struct text *list, const char *name, uint64_t bytes)
{
	if (bytes == LIMIT_NONE)
		return;
	append_item(list, name);
	text_append_char(list, ' ');
	units_format_size(list, bytes);
}

static void append_duration(struct text *list, const char *name, uint64_t nanoseconds)
{
	if (nanoseconds == LIMIT_NONE)
		return;
	append_item(list, name);
	text_append_char(list, ' ');
	units_format_duration(list, nanoseconds);
}

static const char *network_of(const struct policy *policy, bool has_mounts)
{
	if (policy->net == NET_HOST)
		return "the host's";
	return has_mounts ? "none but a private loopback" : "none";
}

static void say_limits(const struct messenger *messenger, const struct policy *policy, const char *network)
{
	AUTO_TEXT limits = {0};

	append_duration(&limits, "timeout", policy->limits.timeout_ns);
	append_duration(&limits, "cpu-time", policy->limits.cpu_time_ns);
	append_size(&limits, "memory", policy->limits.memory_bytes);
	append_size(&limits, "disk", policy->limits.disk_bytes);
	if (policy->limits.pids != LIMIT_NONE) {
		append_item(&limits, "pids");
		text_append_format(&limits, " %" PRIu64, policy->limits.pids);
	}
	cli_message_note(messenger, "network: %s; limits: %s", network, limits.len ? text_string(&limits) : "none");
}

void cli_introduce_jar(const struct messenger *messenger, const struct policy *policy, const char *workdir,
		       const char *rung)
{
	bool has_mounts = !strcmp(rung, "namespace");

	cli_message_note(messenger, "a shell in a jar (rung %s), in %s; exit leaves it", rung, workdir);
	if (!strcmp(rung, "process")) {
		cli_message_note(messenger, "this rung protects none of the host's files from being read or changed");
		say_limits(messenger, policy, "the host's");
		return;
	}
	say_files(messenger, policy, workdir, has_mounts);
	say_limits(messenger, policy, network_of(policy, has_mounts));
}

/* --- the prompt --------------------------------------------------------------------------------------------- */

/* The home is empty, so no file of the caller sets a prompt; system files may, and Debian's use debian_chroot. */
static const struct {
	const char *shell;
	const char *prompt;
} prompts[] = {
	{"bash", "(jar) \\w\\$ "},
	{"zsh", "(jar) %~%# "},
};

static const char *name_of(const char *shell)
{
	const char *slash = strrchr(shell, '/');

	return slash ? slash + 1 : shell;
}

bool cli_shell_is_zsh(const char *shell)
{
	return !strcmp(name_of(shell), "zsh");
}

static const char *prompt_of(const char *shell)
{
	for (size_t i = 0; i < ARRAY_LEN(prompts); i++)
		if (!strcmp(name_of(shell), prompts[i].shell))
			return prompts[i].prompt;
	/* Every other shell of POSIX expands variables in its prompt, and some nothing else. */
	return geteuid() == 0 ? "(jar) $PWD# " : "(jar) $PWD$ ";
}

static bool is_named(const struct policy *policy, const char *name)
{
	for (size_t i = 0; i < policy->env.count; i++)
		if (!strcmp(policy->env.items[i].name, name))
			return true;
	for (size_t i = 0; i < policy->pass_env.count; i++)
		if (!strcmp(policy->pass_env.items[i], name))
			return true;
	return false;
}

int cli_mark_prompt(struct policy *policy, const char *shell, struct error *error)
{
	const char *const variables[][2] = {{"debian_chroot", "jar"}, {"PS1", prompt_of(shell)}};
	const struct policy_key *key = policy_key_by_name("env");
	int rc = 0;

	if (is_named(policy, "PS1") || is_named(policy, "debian_chroot"))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(variables) && rc == 0; i++) {
		AUTO_TEXT variable = {0};

		text_append_format(&variable, "%s=%s", variables[i][0], variables[i][1]);
		rc = policy_set_flag(policy, key, text_string(&variable), false,
				     &(struct policy_context){.current_directory = "/"}, error);
	}
	return rc;
}
