/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/client_request.c - what the program asks for, as frames: JSON and descriptors
 *
 * Nothing is decided here: whether a key, a path or a value is right, the engine says. The one thing that has to be known
 * of keys is what kind of JSON value an option "NAME=VALUE" becomes.
 */
#include "client/client_request.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "base/json_write.h"

#define ALL_FLAGS                                                                                                      \
	(BELLJAR_SHELL | BELLJAR_MERGE | BELLJAR_PTY | BELLJAR_NO_CAPTURE | BELLJAR_STDIN_FD | BELLJAR_OUTPUT_FDS |    \
	 BELLJAR_DETACH | BELLJAR_CELLS | BELLJAR_CEILINGS)
#define DEFAULT_ROWS 24
#define DEFAULT_COLUMNS 80

void client_request_done(struct client_request *request)
{
	text_done(&request->json);
	close_fd(&request->input_fd);
}

static void request_init(struct client_request *request)
{
	*request = (struct client_request){.input_fd = -1};
}

struct client_message client_request_message(const struct client_request *request, enum frame_type type)
{
	return (struct client_message){.type = type,
				       .payload = text_string(&request->json),
				       .len = request->json.len,
				       .fds = request->fds,
				       .fd_count = request->fd_count};
}

static int request_finish(struct client_request *request, struct belljar_error *failure)
{
	return text_failed(&request->json) ? client_no_memory(failure) : 0;
}

static void write_strings(struct json_writer *writer, const char *key, const char *const *strings)
{
	json_open_array(writer, key);
	for (; strings && *strings; strings++)
		json_write_string(writer, NULL, *strings);
	json_close_array(writer);
}

/* --- options --- */

static const struct {
	const char *name;
	enum client_shape shape;
} shapes[] = {
	{"allow_net", SHAPE_LIST}, {"secrets", SHAPE_LIST},        {"cd", SHAPE_WORD},
	{"env", SHAPE_VARIABLES},  {"hide", SHAPE_LIST},           {"cow_dirs", SHAPE_LIST},
	{"workspace", SHAPE_WORD}, {"workspace_name", SHAPE_WORD}, {"hostname", SHAPE_WORD},
	{"keep", SHAPE_WORD},      {"ledger", SHAPE_WORD},         {"ask", SHAPE_WORD},
	{"net", SHAPE_WORD},       {"optional", SHAPE_LIST},       {"overflow", SHAPE_WORD},
	{"pass_env", SHAPE_LIST},  {"publish", SHAPE_LIST},        {"redact", SHAPE_LIST},
	{"ro", SHAPE_LIST},        {"rung", SHAPE_WORD},           {"rw", SHAPE_LIST},
	{"tmpfs", SHAPE_LIST},     {"workdir", SHAPE_WORKDIR},     {"workdir_mode", SHAPE_WORD},
	{"exec", SHAPE_WORD},      {"speculation", SHAPE_WORD},    {"machine_facts", SHAPE_WORD},
};

enum client_shape client_option_shape(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		if (strlen(shapes[i].name) == len && memcmp(shapes[i].name, name, len) == 0)
			return shapes[i].shape;
	}
	return SHAPE_VALUE;
}

/* A limit or a switch: a number, a word with a unit, none, true or false. */
static void write_value(struct json_writer *writer, const char *key, const char *value)
{
	size_t digits = strspn(value, "0123456789");

	if (strcmp(value, "none") == 0)
		json_write_null(writer, key);
	else if (strcmp(value, "true") == 0 || strcmp(value, "false") == 0)
		json_write_bool(writer, key, value[0] == 't');
	else if (digits && !value[digits] && (value[0] != '0' || digits == 1))
		json_write_raw(writer, key, value, digits);
	else
		json_write_string(writer, key, value);
}

static bool has_name(const char *option, const char *name, size_t len)
{
	return strncmp(option, name, len) == 0 && option[len] == '=';
}

/* The same name once more further on: of single values the last counts, lists take all. */
static bool is_named_again(const char *const *options, const char *name, size_t len)
{
	while (*options) {
		if (has_name(*options++, name, len))
			return true;
	}
	return false;
}

static int write_variables(struct json_writer *writer, const char *const *options, const char *name, size_t len,
			   struct belljar_error *failure)
{
	json_open_object(writer, "env");
	for (; *options; options++) {
		const char *variable = *options + len + 1;
		const char *value = has_name(*options, name, len) ? strchr(variable, '=') : NULL;
		AUTO_FREE char *variable_name = NULL;
		AUTO_FREE char *full = NULL;

		if (!has_name(*options, name, len))
			continue;
		if (!value)
			return error_set(&failure->error, STAGE_USAGE, EINVAL, "option '%.100s' must be NAME=VALUE",
					 *options);
		variable_name = strndup(variable, (size_t)(value - variable));
		full = strndup(*options, (size_t)(value - *options));
		if (!variable_name || !full)
			return client_no_memory(failure);
		/* "env=A=1", "env=A=2": a name may stand in an object but once. */
		if (!is_named_again(options + 1, full, strlen(full)))
			json_write_string(writer, variable_name, value + 1);
	}
	json_close_object(writer);
	return 0;
}

static void write_list(struct json_writer *writer, const char *const *options, const char *name, size_t len,
		       const char *key)
{
	json_open_array(writer, key);
	for (; *options; options++) {
		if (has_name(*options, name, len))
			json_write_string(writer, NULL, *options + len + 1);
	}
	json_close_array(writer);
}

static bool was_named_before(const char *const *options, size_t before, const char *name, size_t len)
{
	for (size_t i = 0; i < before; i++) {
		if (has_name(options[i], name, len))
			return true;
	}
	return false;
}

static int write_option(struct json_writer *writer, const char *const *options, size_t index,
			struct belljar_error *failure)
{
	const char *name = options[index];
	const char *equals = strchr(name, '=');
	size_t len = equals ? (size_t)(equals - name) : 0;
	AUTO_FREE char *key = NULL;

	if (!len) {
		error_set(&failure->error, STAGE_USAGE, EINVAL, "option '%.100s' must be NAME=VALUE", name);
		return error_hint(&failure->error, "options are policy keys, as in \"timeout=5s\"");
	}
	key = strndup(name, len);
	if (!key)
		return client_no_memory(failure);
	switch (client_option_shape(name, len)) {
	case SHAPE_LIST:
		if (!was_named_before(options, index, name, len))
			write_list(writer, options, name, len, key);
		return 0;
	case SHAPE_VARIABLES:
		if (!was_named_before(options, index, name, len))
			return write_variables(writer, options, name, len, failure);
		return 0;
	case SHAPE_WORKDIR:
	case SHAPE_WORD:
	case SHAPE_VALUE:
		break;
	}
	if (is_named_again(options + index + 1, name, len))
		return 0;
	if (client_option_shape(name, len) == SHAPE_VALUE)
		write_value(writer, key, equals + 1);
	else if (client_option_shape(name, len) == SHAPE_WORKDIR && strcmp(equals + 1, "none") == 0)
		json_write_null(writer, key);
	else
		json_write_string(writer, key, equals + 1);
	return 0;
}

static int write_keys(struct json_writer *writer, const char *const *options, struct belljar_error *failure)
{
	int rc = 0;

	json_open_object(writer, "keys");
	for (size_t i = 0; options && options[i] && rc == 0; i++)
		rc = write_option(writer, options, i, failure);
	json_close_object(writer);
	return rc;
}

/* --- policy and surroundings --- */

/*
 * JSON text is parsed here first: that it is one whole value, and so cannot say anything else in the request, has to be
 * known before it becomes a part of one. It stands first, so that the engine's line numbers are the text's own.
 */
static int write_policy(struct json_writer *writer, const char *policy, struct belljar_error *failure)
{
	const char *text = policy ? policy + strspn(policy, " \t\r\n") : "";
	struct json_input input = {.name = "policy", .bytes = policy, .stage = STAGE_POLICY};
	AUTO_JSON document = {0};
	int rc;

	if (*text != '{') {
		json_write_string(writer, "policy", policy);
		return 0;
	}
	input.len = strlen(policy);
	rc = json_parse(&input, &document, &failure->error);
	if (rc < 0)
		return rc;
	json_write_raw(writer, "policy", policy, input.len);
	/* It may end in a comment. */
	text_append_char(writer->text, '\n');
	return 0;
}

static void write_directory(struct json_writer *writer, const char *directory)
{
	AUTO_FREE char *current = directory ? NULL : getcwd(NULL, 0);

	if (!directory)
		directory = current;
	json_write_string(writer, "cwd", directory);
	json_write_string(writer, "base", directory);
}

static void write_environment(struct json_writer *writer, const char *const *environment)
{
	write_strings(writer, "environ", environment ? environment : (const char *const *)environ);
}

/* --- the command --- */

/* Sealed: not even the program can change it any more, and all runs may share it. */
static int make_input(const void *bytes, size_t len, int *fd_out)
{
	AUTO_CLOSE int fd = client_raise_fd(memfd_create("belljar-input", MFD_CLOEXEC | MFD_ALLOW_SEALING));
	size_t written = 0;

	if (fd < 0)
		return fd;
	while (written < len) {
		ssize_t count = pwrite(fd, (const char *)bytes + written, len - written, (off_t)written);

		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			return count < 0 ? -errno : -EIO;
		written += (size_t)count;
	}
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return -errno;
	*fd_out = take_fd(&fd);
	return 0;
}

static int check_command(const struct belljar_command *command, bool is_join, struct belljar_error *failure)
{
	struct error *error = &failure->error;

	if (command->flags & ~ALL_FLAGS)
		return error_set(error, STAGE_USAGE, EINVAL, "unknown flags: 0x%x", command->flags & ~ALL_FLAGS);
	if (command->reserved)
		return error_set(error, STAGE_USAGE, EINVAL, "the member `reserved` is not 0");
	if (!command->argv || !command->argv[0])
		return error_set(error, STAGE_USAGE, EINVAL, "there is no command: argv is empty");
	if (command->flags & BELLJAR_SHELL && command->argv[1])
		return error_set(error, STAGE_USAGE, EINVAL, "a command for the shell is one string");
	if (command->flags & BELLJAR_DETACH && (!is_join || command->flags & (BELLJAR_PTY | BELLJAR_OUTPUT_FDS)))
		return error_set(
			error, STAGE_USAGE, EINVAL,
			"what a command leaves running needs a kept jar, and has neither terminal nor output descriptors");
	if (command->flags & (is_join ? BELLJAR_CEILINGS : BELLJAR_CELLS))
		return error_set(error, STAGE_USAGE, EINVAL,
				 "BELLJAR_CELLS is for a kept jar, and BELLJAR_CEILINGS for a jar of the run's own");
	if (is_join && (command->policy || command->directory))
		return error_set(error, STAGE_USAGE, EINVAL,
				 "the policy and directory of a session were fixed when it was opened");
	if (command->fd_count > FRAME_MAX_EXTRA || (command->fd_count && !command->fds))
		return error_set(error, STAGE_USAGE, EINVAL, "a command can have at most %d further descriptors",
				 FRAME_MAX_EXTRA);
	if (command->flags & BELLJAR_STDIN_FD && command->input)
		return error_set(error, STAGE_USAGE, EINVAL,
				 "the command cannot have both input and a stdin descriptor");
	if (command->flags & BELLJAR_OUTPUT_FDS && command->on_output)
		return error_set(error, STAGE_USAGE, EINVAL,
				 "output goes to descriptors or to a callback, not to both");
	if (command->input_len && !command->input)
		return error_set(error, STAGE_USAGE, EINVAL, "there are %zu bytes of input, but input is NULL",
				 command->input_len);
	return 0;
}

static int attach_descriptors(struct client_request *request, const struct belljar_command *command,
			      struct belljar_error *failure)
{
	int rc = 0;

	if (command->input_len) {
		rc = make_input(command->input, command->input_len, &request->input_fd);
		if (rc < 0)
			return error_set(&failure->error, STAGE_FILES, -rc, "cannot store the input: %s",
					 errno_name(-rc));
		request->fds[request->fd_count++] = request->input_fd;
	} else if (command->flags & BELLJAR_STDIN_FD) {
		request->fds[request->fd_count++] = command->stdin_fd;
	}
	if (command->flags & BELLJAR_OUTPUT_FDS) {
		request->fds[request->fd_count++] = command->stdout_fd;
		request->fds[request->fd_count++] = command->stderr_fd;
	}
	for (uint32_t i = 0; i < command->fd_count; i++)
		request->fds[request->fd_count++] = command->fds[i];
	for (size_t i = 0; i < request->fd_count; i++) {
		if (fcntl(request->fds[i], F_GETFD) < 0)
			return error_set(&failure->error, STAGE_USAGE, EBADF, "descriptor %d is not open",
					 request->fds[i]);
	}
	return 0;
}

static void write_command(struct json_writer *writer, const struct belljar_command *command)
{
	bool has_stdin = command->input_len || command->flags & BELLJAR_STDIN_FD;

	write_strings(writer, "argv", command->argv);
	json_write_bool(writer, "shell", command->flags & BELLJAR_SHELL);
	json_write_string(writer, "stdin", has_stdin ? "descriptor" : "null");
	json_write_bool(writer, "pty", command->flags & BELLJAR_PTY);
	json_write_integer(writer, "rows", command->rows ? command->rows : DEFAULT_ROWS);
	json_write_integer(writer, "columns", command->columns ? command->columns : DEFAULT_COLUMNS);
	json_write_string(writer, "sink",
			  command->flags & BELLJAR_OUTPUT_FDS ? "pipes" : (command->on_output ? "frames" : "none"));
	json_write_bool(writer, "merge", command->flags & BELLJAR_MERGE);
	json_write_bool(writer, "capture", !(command->flags & BELLJAR_NO_CAPTURE));
	json_write_bool(writer, "events", command->on_event);
	if (command->on_ask)
		json_write_bool(writer, "ask", true);
	json_write_unsigned(writer, "extra", command->fd_count);
}

void client_request_give_channel(struct client_request *request, int channel)
{
	memmove(request->fds + 1, request->fds, request->fd_count * sizeof(int));
	request->fds[0] = channel;
	request->fd_count++;
}

int client_request_run(struct client_request *request, const struct belljar_command *command,
		       const struct client_run_request *how, struct belljar_error *failure)
{
	struct json_writer writer = {.text = &request->json, .has_byte_escapes = true};
	bool has_ceilings = command->flags & BELLJAR_CEILINGS;
	int rc;

	request_init(request);
	rc = check_command(command, how->is_join, failure);
	if (rc < 0)
		return rc;
	json_open_object(&writer, NULL);
	if (!how->is_join)
		rc = write_policy(&writer, command->policy, failure);
	json_write_integer(&writer, "version", WIRE_VERSION);
	if (rc == 0 && !has_ceilings)
		rc = write_keys(&writer, command->options, failure);
	write_environment(&writer, command->environment);
	if (!how->is_join) {
		write_directory(&writer, command->directory);
		json_open_object(&writer, "run");
	}
	if (rc == 0 && has_ceilings)
		rc = write_keys(&writer, command->options, failure);
	write_command(&writer, command);
	json_write_bool(&writer, "started", how->is_start_told);
	if (command->flags & BELLJAR_DETACH)
		json_write_bool(&writer, "detach", true);
	if (command->flags & BELLJAR_CELLS)
		json_write_bool(&writer, "cells", true);
	if (!how->is_join)
		json_close_object(&writer);
	json_close_object(&writer);
	if (rc == 0)
		rc = attach_descriptors(request, command, failure);
	return rc < 0 ? rc : request_finish(request, failure);
}

int client_request_open(struct client_request *request, const struct belljar_jar_options *options,
			struct belljar_error *failure)
{
	struct json_writer writer = {.text = &request->json, .has_byte_escapes = true};
	int rc;

	request_init(request);
	if (options->flags)
		return error_set(&failure->error, STAGE_USAGE, EINVAL, "unknown flags: 0x%x", options->flags);
	json_open_object(&writer, NULL);
	rc = write_policy(&writer, options->policy, failure);
	json_write_integer(&writer, "version", WIRE_VERSION);
	if (rc == 0)
		rc = write_keys(&writer, options->options, failure);
	write_environment(&writer, options->environment);
	write_directory(&writer, options->directory);
	if (options->ttl)
		json_write_string(&writer, "ttl", options->ttl);
	json_close_object(&writer);
	return rc < 0 ? rc : request_finish(request, failure);
}

void client_request_task(struct client_request *request, const struct client_task *task)
{
	struct json_writer writer = {.text = &request->json, .has_byte_escapes = true};

	request_init(request);
	json_open_object(&writer, NULL);
	json_write_integer(&writer, "version", WIRE_VERSION);
	if (task->operation)
		json_write_string(&writer, "op", task->operation);
	if (task->path)
		json_write_string(&writer, "path", task->path);
	if (task->to)
		json_write_string(&writer, "to", task->to);
	if (task->rule)
		json_write_string(&writer, "rule", task->rule);
	if (task->has_mode)
		json_write_unsigned(&writer, "mode", task->mode & 07777);
	if (task->flags & BELLJAR_PARENTS)
		json_write_bool(&writer, "parents", true);
	if (task->flags & BELLJAR_RECURSIVE)
		json_write_bool(&writer, "recursive", true);
	if (task->flags & BELLJAR_FOLLOW)
		json_write_bool(&writer, "follow", true);
	if (task->port)
		json_write_unsigned(&writer, "port", task->port);
	if (task->pid) {
		json_write_integer(&writer, "pid", task->pid);
		json_write_integer(&writer, "signal", task->signal);
	}
	json_close_object(&writer);
}

static void write_optional_strings(struct json_writer *writer, const char *key, const char *const *strings)
{
	if (strings)
		write_strings(writer, key, strings);
}

int client_request_order(struct client_request *request, const struct client_order *order,
			 struct belljar_error *failure)
{
	struct json_writer writer = {.text = &request->json, .has_byte_escapes = true};
	AUTO_FREE char *current = order->id ? getcwd(NULL, 0) : NULL;

	request_init(request);
	json_open_object(&writer, NULL);
	json_write_integer(&writer, "version", WIRE_VERSION);
	json_write_string(&writer, "op", order->operation);
	if (order->id) {
		json_write_string(&writer, "id", order->id);
		write_environment(&writer, NULL);
		json_write_string(&writer, "cwd", current);
	}
	write_optional_strings(&writer, "paths", order->paths);
	write_optional_strings(&writer, "allow_risky", order->risky);
	write_optional_strings(&writer, "theirs", order->theirs);
	write_optional_strings(&writer, "ours", order->ours);
	if (order->note)
		json_write_string(&writer, "note", order->note);
	if (order->checkpoint)
		json_write_string(&writer, "checkpoint", order->checkpoint);
	if (order->count)
		json_write_unsigned(&writer, "count", order->count);
	json_close_object(&writer);
	return request_finish(request, failure);
}

int client_request_finish(struct client_request *request, int channel, struct belljar_error *failure)
{
	request->fds[request->fd_count++] = channel;
	return request_finish(request, failure);
}
