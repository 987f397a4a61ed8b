/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/child_run.c - make a run in a child process, as `belljar run` does, and read its result
 *
 * `run` changes signals, terminal and heap of its process. So a command that goes on afterwards makes the run in a
 * child, and reads the outcome from the result object.
 */
#include "door/cli/child_run.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define RESULT_BYTES_MAX ((size_t)16 << 20)

int cli_child_run_set_key(struct run_options *options, const struct invocation *invocation, const char *name,
			  const char *value, struct error *error)
{
	const struct policy_context context = cli_context_of(invocation);

	return policy_set_flag(&options->policy, policy_key_by_name(name), value, false, &context, error);
}

/* Wait for the child's exit status. If the child stops, stop this process too, so that the shell takes over. */
static int wait_for(pid_t child)
{
	int status;

	for (;;) {
		if (waitpid(child, &status, WUNTRACED) < 0) {
			if (errno == EINTR)
				continue;
			return EXIT_BELLJAR;
		}
		if (!WIFSTOPPED(status))
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		kill(getpid(), SIGSTOP);
		kill(child, SIGCONT);
	}
}

/* It passes the terminal's signals on and ends in order. */
static int run_in_child(command_function *function, const struct invocation *invocation, struct run_options *options,
			const struct messenger *messenger)
{
	static const int signals[] = {SIGINT, SIGQUIT, SIGTSTP};
	struct sigaction before[ARRAY_LEN(signals)];
	pid_t parent = getpid(), child = fork();
	int status;

	if (child == 0) {
		/* If the parent dies, the run must end too. */
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		_exit(getppid() == parent ? function(invocation, options, messenger) : EXIT_BELLJAR);
	}
	if (child < 0)
		return EXIT_BELLJAR;
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		sigaction(signals[i], &(struct sigaction){.sa_handler = SIG_IGN}, &before[i]);
	status = wait_for(child);
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		sigaction(signals[i], &before[i], NULL);
	return status;
}

static void read_result(int fd, struct json_value *result)
{
	AUTO_FREE char *bytes = malloc(RESULT_BYTES_MAX);
	ssize_t len = bytes ? pread(fd, bytes, RESULT_BYTES_MAX, 0) : -1;
	const struct json_input input = {.name = "result",
					 .bytes = bytes,
					 .len = len > 0 ? (size_t)len : 0,
					 .stage = STAGE_ENGINE,
					 .max_bytes = RESULT_BYTES_MAX,
					 .has_byte_escapes = true};
	struct error nobodys = {0};

	*result = (struct json_value){.type = JSON_NULL};
	if (len > 0 && json_parse(&input, result, &nobodys) < 0)
		*result = (struct json_value){.type = JSON_NULL};
}

int cli_child_run(command_function *function, const struct invocation *invocation, struct run_options *options,
		  const struct messenger *messenger, struct json_value *result)
{
	AUTO_CLOSE int result_fd = result ? memfd_create("result", MFD_CLOEXEC) : -1;
	int status;

	if (result && result_fd < 0)
		return EXIT_BELLJAR;
	options->status_fd = result_fd;
	status = run_in_child(function, invocation, options, messenger);
	options->status_fd = -1;
	if (result)
		read_result(result_fd, result);
	return status;
}

static const char *id_of(const struct json_value *workspace)
{
	const struct json_member *member = workspace->type == JSON_OBJECT ? json_find(workspace, "id") : NULL;

	return member && member->value.type == JSON_STRING && workspace_id_is_valid(member->value.string.bytes)
		       ? member->value.string.bytes
		       : NULL;
}

static const struct json_value *workspace_of(const struct json_value *result)
{
	const struct json_member *member = result->type == JSON_OBJECT ? json_find(result, "workspace") : NULL;

	return member && member->value.type == JSON_OBJECT ? &member->value : NULL;
}

int cli_child_run_workspaces(const struct json_value *result, struct string_list *ids)
{
	const struct json_value *workspace = workspace_of(result);
	const struct json_member *others = workspace ? json_find(workspace, "dirs") : NULL;
	const char *id = workspace ? id_of(workspace) : NULL;
	int rc = id ? string_list_add(ids, id) : 0;

	for (size_t i = 0; rc == 0 && others && others->value.type == JSON_LIST && i < others->value.list.count; i++) {
		id = id_of(&others->value.list.items[i]);
		rc = id ? string_list_add(ids, id) : 0;
	}
	return rc;
}
