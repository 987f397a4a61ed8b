/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/command_hook.c - `hook`: have a coding agent's shell commands run in jars
 *
 * An agent asks its hooks before it uses a tool: an event on standard input, an answer on standard output. A shell
 * command comes back as `belljar run ... -- bash -c COMMAND`. Whatever goes wrong blocks the command (exit status 2):
 * with any other failure an agent would run it as it is.
 *
 * A model chooses the directory that its command starts in, so nothing that decides what a jar may do depends on that directory: the
 * work directory is the project, paths of options are absolute, and the command changes to its directory inside the jar, where only
 * the jar's own places exist. The agent's configuration is read-only as a whole, or a command could turn this hook off.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json_write.h"
#include "base/paths.h"
#include "door/cli/hook.h"

static const struct agent agents[] = {
	{"claude", "PreToolUse", "Bash", "updatedInput", ".claude", "settings.json", "CLAUDE_PROJECT_DIR", NULL, true,
	 true},
	{"codex", "PreToolUse", "Bash", "updatedInput", ".codex", "hooks.json", NULL,
	 "codex skips a new hook until you have trusted it: /hooks", false, false},
	{"gemini", "BeforeTool", "run_shell_command", "tool_input", ".gemini", "settings.json", "GEMINI_PROJECT_DIR",
	 "gemini skips a project's hooks until you have trusted the folder (/permissions), and with --skip-trust; those in your home "
	 "directory it never skips",
	 false, false},
};

static const struct agent *find_agent(const char *name)
{
	for (size_t i = 0; name && i < ARRAY_LEN(agents); i++)
		if (!strcmp(agents[i].name, name))
			return &agents[i];
	return NULL;
}

/* --- what the files of `hook` share -------------------------------------------------------------------------- */

void cli_hook_append_quoted(struct text *out, const char *word)
{
	text_append_char(out, '\'');
	for (; *word; word++) {
		if (*word == '\'')
			text_append_string(out, "'\\''");
		else
			text_append_char(out, *word);
	}
	text_append_char(out, '\'');
}

/* --- the project --------------------------------------------------------------------------------------------- */

/* The work directory of an agent's jars. */
struct project {
	char *path;      /* absolute, without links; NULL: jars have a private work directory */
	bool is_default; /* it is not among the hook's options */
	bool is_guessed; /* nor does the agent name it: it is where the hook was started */
};

static void project_done(struct project *project)
{
	free(project->path);
}

static const char *variable(char *const *environment, const char *name)
{
	size_t len = name ? strlen(name) : 0;

	for (; len && environment && *environment; environment++)
		if (!strncmp(*environment, name, len) && (*environment)[len] == '=')
			return *environment + len + 1;
	return NULL;
}

/* Report whether @path is in a dot directory below the home directory: keys, settings, caches. */
static bool is_hidden(const char *path, const char *home)
{
	return home && path_is_within(path, home) && strlen(path) > strlen(home) + 1 && path[strlen(home) + 1] == '.';
}

/*
 * The project: what the options name as the work directory; else what the agent names; else, for an agent that names
 * none, where it starts its hooks.
 */
static int find_project(const struct agent *agent, const struct invocation *invocation, const struct policy *policy,
			struct project *out, struct error *error)
{
	const char *named = variable(invocation->environment, agent->project);
	const char *path = named && *named ? named : invocation->current_directory;

	if (policy->workdir_choice == WORKDIR_PRIVATE)
		return 0;
	out->is_default = policy->workdir_choice == WORKDIR_DEFAULT;
	out->is_guessed = out->is_default && !(named && *named);
	if (!out->is_default)
		path = policy->workdir;
	out->path = path ? realpath(path, NULL) : NULL;
	if (!out->path)
		return error_set(error, STAGE_USAGE, errno, "cannot find the project '%s'", path ? path : ".");
	if (!out->is_default)
		return 0;
	if (is_hidden(out->path, invocation->home)) {
		error_set(error, STAGE_USAGE, 0, "the project '%s' is in a hidden directory of your home", out->path);
		error_hint(error, "install the hook there, or with -C, if commands may write in it");
		return -EINVAL;
	}
	/* Not a project: as for `run`, jars have a private directory instead. */
	if (invocation->home && path_is_within(invocation->home, out->path))
		free(take_ptr(out->path));
	return 0;
}

/* Where the agent says that the command starts. The command itself cannot start elsewhere either: see append_place(). */
static int check_place(const struct project *project, const struct json_value *event, struct error *error)
{
	const struct json_value *place = json_member(event, "cwd", JSON_STRING);
	AUTO_FREE char *path = place ? realpath(place->string.bytes, NULL) : NULL;

	if (!path || !project->path || project->is_guessed || path_is_within(path, project->path))
		return 0;
	error_set(error, STAGE_USAGE, 0, "the directory '%.300s' is outside the project '%.300s'", path, project->path);
	error_hint(error, "start commands in the project");
	return -EINVAL;
}

/* --- the agent's configuration ------------------------------------------------------------------------------- */

/*
 * Make sure that @directory has the agent's directory: only what exists can be held, and a command that makes it can
 * turn hooks off. @out: its path.
 */
static int make_configuration(const struct agent *agent, const char *directory, struct text *out, struct error *error)
{
	struct stat status;

	text_append_format(out, "%s/%s", directory, agent->directory);
	if (text_failed(out))
		return error_set(error, STAGE_ENGINE, ENOMEM, "no memory for a path");
	if (mkdir(out->data, 0755) < 0 && errno != EEXIST)
		return error_set(error, STAGE_USAGE, errno, "cannot make '%s', so that no command can: %s", out->data,
				 strerror(errno));
	if (lstat(out->data, &status) == 0 && S_ISDIR(status.st_mode))
		return 0;
	error_set(error, STAGE_USAGE, 0, "'%s' is not a directory", out->data);
	error_hint(error, "%s reads its settings there, and a jar can protect only a directory", agent->name);
	return -EINVAL;
}

/* @source is writable in the jar as @dest. If the agent reads settings below it, they are made read-only. */
static int protect_in(const struct agent *agent, const char *directory, const char *source, const char *dest,
		      struct text *line, struct error *error)
{
	AUTO_TEXT path = {0}, word = {0};
	int rc;

	if (!path_is_within(directory, source))
		return 0;
	rc = make_configuration(agent, directory, &path, error);
	if (rc < 0)
		return rc;
	text_append_format(&word, "%s:%s%s", text_string(&path), dest, text_string(&path) + strlen(source));
	text_append_string(line, " --ro ");
	cli_hook_append_quoted(line, strcmp(source, dest) ? text_string(&word) : text_string(&path));
	return text_failed(&word) ? error_set(error, STAGE_ENGINE, ENOMEM, "no memory for a path") : 0;
}

/* Read-only in the jar, by the last options about it, which are the ones that hold. */
static int append_protection(const struct agent *agent, const struct invocation *invocation,
			     const struct policy *policy, const struct project *project, struct text *line,
			     struct error *error)
{
	const char *named = variable(invocation->environment, agent->project);
	AUTO_FREE char *other = named && *named ? realpath(named, NULL) : NULL;
	const char *const directories[] = {project->path, other, invocation->home};
	int rc = 0;

	for (size_t i = 0; i < ARRAY_LEN(directories) && rc == 0; i++) {
		if (!directories[i] || (i && project->path && !strcmp(directories[i], project->path)))
			continue;
		if (project->path && policy->workdir_mode == WORKDIR_RW)
			rc = protect_in(agent, directories[i], project->path, project->path, line, error);
		for (size_t j = 0; j < policy->mounts.count && rc == 0; j++)
			if (policy->mounts.items[j].access == MOUNT_RW)
				rc = protect_in(agent, directories[i], policy->mounts.items[j].path,
						policy->mounts.items[j].dest, line, error);
	}
	return rc;
}

/* --- an event ------------------------------------------------------------------------------------------------ */

static void append_given(struct text *out, const struct run_options *options)
{
	for (size_t i = 0; i < options->given.count; i++) {
		text_append_char(out, ' ');
		cli_hook_append_quoted(out, options->given.items[i]);
	}
}

/* The program that runs now, also where it is not in the agent's PATH. */
static int append_program(struct text *out, struct error *error)
{
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (len <= 0)
		return error_set(error, STAGE_ENGINE, errno, "cannot find out which program this is: %s",
				 strerror(errno));
	path[len] = '\0';
	cli_hook_append_quoted(out, path);
	return 0;
}

/* The work directory and where the command starts in it. The shell names its own directory; in the jar it is found, or it is not. */
static void append_place(struct text *out, const struct policy *policy, const struct project *project)
{
	if (project->is_default) {
		text_append_string(out, " -C ");
		cli_hook_append_quoted(out, project->path ? project->path : "none");
	}
	if (project->path && !policy->cd)
		text_append_string(out, " --cd \"$PWD\"");
}

static void write_answer(const struct agent *agent, const struct json_value *input, const char *command, bool is_asking,
			 struct text *out)
{
	struct json_writer writer = {.text = out};

	json_open_object(&writer, NULL);
	json_open_object(&writer, "hookSpecificOutput");
	json_write_string(&writer, "hookEventName", agent->event);
	json_write_string(&writer, "permissionDecision", is_asking ? "ask" : "allow");
	json_write_string(&writer, "permissionDecisionReason",
			  is_asking ? "the user decides; the command would run in a jar" : "the command runs in a jar");
	json_open_object(&writer, agent->rewritten);
	for (size_t i = 0; i < input->object.count; i++)
		if (strcmp(input->object.members[i].name, "command"))
			json_write_value(&writer, input->object.members[i].name, &input->object.members[i].value);
	json_write_string(&writer, "command", command);
	json_close_object(&writer);
	json_close_object(&writer);
	json_close_object(&writer);
	text_append_char(out, '\n');
}

/* The command in a jar, as a line for the agent's shell. */
static int rewrite(const struct agent *agent, const struct invocation *invocation, const struct run_options *options,
		   const struct json_value *event, const char *command, struct text *line, struct error *error)
{
	AUTO(project_done) struct project project = {0};
	int rc = find_project(agent, invocation, &options->policy, &project, error);

	if (rc < 0)
		return rc;
	if (options->has_relative_path &&
	    (!project.path || !invocation->current_directory || strcmp(project.path, invocation->current_directory))) {
		error_set(error, STAGE_USAGE, 0,
			  "an option of the hook has a relative path, but the hook does not start in the project");
		error_hint(error, "write absolute paths, as `belljar hook install` does");
		return -EINVAL;
	}
	rc = check_place(&project, event, error);
	if (rc == 0)
		rc = append_program(line, error);
	if (rc < 0)
		return rc;
	text_append_string(line, " run");
	append_given(line, options);
	append_place(line, &options->policy, &project);
	rc = append_protection(agent, invocation, &options->policy, &project, line, error);
	/* What agents write is for bash. */
	text_append_string(line, access("/bin/bash", X_OK) == 0 ? " -- bash -c " : " -- sh -c ");
	cli_hook_append_quoted(line, command);
	return rc;
}

static int answer_event(const struct agent *agent, const struct invocation *invocation,
			const struct run_options *options, struct text *out, struct error *error)
{
	AUTO_TEXT bytes = {0}, line = {0};
	AUTO_JSON event = {0};
	int rc = text_read_all(&bytes, STDIN_FILENO, HOOK_EVENT_MAX);
	struct json_input input = {.name = "event",
				   .bytes = text_string(&bytes),
				   .len = bytes.len,
				   .stage = STAGE_USAGE,
				   .max_bytes = HOOK_EVENT_MAX,
				   .max_entries = 100000};
	const struct json_value *name, *command;

	if (rc < 0)
		return error_set(error, STAGE_USAGE, -rc, "cannot read the event: %s", strerror(-rc));
	rc = json_parse(&input, &event, error);
	if (rc < 0)
		return rc;
	name = json_member(&event, "tool_name", JSON_STRING);
	if (!name)
		return error_set(error, STAGE_USAGE, 0, "the event does not name a tool");
	if (strcmp(name->string.bytes, agent->tool)) {
		text_append_string(out, "{}\n"); /* not for us */
		return 0;
	}
	command = json_member(json_member(&event, "tool_input", JSON_OBJECT), "command", JSON_STRING);
	if (!command)
		return error_set(error, STAGE_USAGE, 0, "the event has no command");
	rc = rewrite(agent, invocation, options, &event, command->string.bytes, &line, error);
	if (rc < 0)
		return rc;
	write_answer(agent, json_member(&event, "tool_input", JSON_OBJECT), text_string(&line), options->has_confirm,
		     out);
	return text_failed(&line) || text_failed(out)
		       ? error_set(error, STAGE_ENGINE, ENOMEM, "no memory for the answer")
		       : 0;
}

/* --- the command line ---------------------------------------------------------------------------------------- */

/* A program that goes when a directory of packages is removed: then the agent's commands are blocked, or run without a jar. */
static void warn_about_program(const struct agent *agent, const char *program, struct text *out)
{
	if (!strstr(program, "/site-packages/") && !strstr(program, "/node_modules/"))
		return;
	text_append_format(
		out,
		"note: the entry names a program inside a virtual environment or node_modules. When that is removed, %s "
		"%s. Run `belljar hook uninstall %s` before, or install from a program that stays, such as one of pipx.\n",
		agent->name, agent->has_failure_key ? "blocks every shell command" : "runs commands without a jar",
		agent->name);
}

/* Install the agent's command: every path absolute, and with the project, except for the home directory, which means all. */
static int install(const struct agent *agent, const struct invocation *invocation, const struct run_options *options,
		   struct text *out, struct error *error)
{
	const char *here = invocation->current_directory;
	AUTO_TEXT command = {0};
	int rc = append_program(&command, error);

	if (rc < 0)
		return rc;
	warn_about_program(agent, text_string(&command), out);
	text_append_format(&command, " hook %s", agent->name);
	if (options->has_confirm)
		text_append_string(&command, " '--confirm'");
	append_given(&command, options);
	if (options->policy.workdir_choice == WORKDIR_DEFAULT && here &&
	    (!invocation->home || strcmp(here, invocation->home))) {
		text_append_string(&command, " '--workdir' ");
		cli_hook_append_quoted(&command, here);
	}
	if (text_failed(&command))
		return error_set(error, STAGE_ENGINE, ENOMEM, "no memory for the entry");
	return cli_hook_install(agent, text_string(&command), options->is_agreed, out, error);
}

int cli_command_hook(const struct invocation *invocation, struct run_options *options,
		     const struct messenger *messenger)
{
	bool is_install = !strcmp(options->words[0], "install"), is_uninstall = !strcmp(options->words[0], "uninstall");
	bool is_setup = is_install || is_uninstall;
	const struct agent *agent = find_agent(options->words[is_setup ? 1 : 0]);
	struct error error = {0};
	AUTO_TEXT out = {0};
	int rc;

	if (!agent || options->word_count != (is_setup ? 2 : 1)) {
		rc = error_set(&error, STAGE_USAGE, 0, "name one agent: claude, codex or gemini");
		error_hint(&error, "usage: belljar hook [install|uninstall] claude|codex|gemini [options]");
	} else if (options->has_confirm && !agent->can_ask) {
		/* It would take the answer for a failure of the hook, and run the command as it is. */
		rc = error_set(&error, STAGE_USAGE, 0, "a hook cannot make %s ask its user", agent->name);
	} else if (is_uninstall) {
		rc = cli_hook_uninstall(agent, options->is_agreed, &out, &error);
	} else if (is_install) {
		rc = install(agent, invocation, options, &out, &error);
	} else {
		rc = answer_event(agent, invocation, options, &out, &error);
	}
	if (rc == 0)
		rc = cli_print_out(&out, messenger) == 0 ? 0 : -EIO;
	else
		cli_message_error(messenger, &error);
	return rc == 0 ? 0 : EXIT_HOOK_BLOCKS;
}
