/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/client_jar_tasks.c - files, processes and ports of a session
 *
 * Each question has a channel of its own. Whatever looks up, makes or removes a name is done inside the jar.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "client/client_jar.h"

#define AUTO_CHANNEL AUTO(client_channel_done) struct client_channel
#define NO_CHANNEL                                                                                                     \
	{                                                                                                              \
		.fd = -1, .received_fd = -1                                                                            \
	}

/* Send a task whose answer is a descriptor. */
static int ask_descriptor(struct belljar_jar *jar, const struct client_task *task, struct belljar_error *failure)
{
	AUTO_CHANNEL channel = NO_CHANNEL;
	struct client_frame frame;
	int rc = client_jar_ask(jar, task, &channel, &frame, failure);

	if (rc < 0)
		return rc;
	return channel.received_fd < 0 ? client_engine_nonsense(failure) : take_fd(&channel.received_fd);
}

/* Send a task whose answer only confirms it. */
static int cli_ask_done(struct belljar_jar *jar, const struct client_task *task, struct belljar_error *failure)
{
	AUTO_CHANNEL channel = NO_CHANNEL;
	struct client_frame frame;

	return client_jar_ask(jar, task, &channel, &frame, failure);
}

/* Send a task whose answer is JSON text. */
static int ask_json(struct belljar_jar *jar, enum frame_type type, char **json_out, struct belljar_error *failure)
{
	const struct client_task task = {.type = type};
	AUTO_CHANNEL channel = NO_CHANNEL;
	struct client_frame frame;
	int rc = client_jar_ask(jar, &task, &channel, &frame, failure);
	char *json = rc < 0 ? NULL : strndup(frame.payload, frame.len);

	if (rc < 0)
		return rc;
	if (!json)
		return client_no_memory(failure);
	*json_out = json;
	return 0;
}

static int check_path(const char *path, uint32_t flags, uint32_t allowed, struct belljar_error *failure)
{
	if (!path)
		return error_set(&failure->error, STAGE_USAGE, EINVAL, "there is no path: the pointer is NULL");
	if (flags & ~allowed)
		return error_set(&failure->error, STAGE_USAGE, EINVAL, "unknown flags: 0x%x", flags & ~allowed);
	return 0;
}

/* --- files --- */

static int open_file(struct belljar_jar *jar, const char *path, int access, uint32_t mode,
		     struct belljar_error *failure)
{
	static const char *const words[] = {[BELLJAR_FILE_READ] = "read",
					    [BELLJAR_FILE_WRITE] = "write",
					    [BELLJAR_FILE_LIST] = "list",
					    [BELLJAR_FILE_WATCH] = "watch"};
	uint32_t flags = (uint32_t)access & BELLJAR_PARENTS;
	int kind = access & ~(int)BELLJAR_PARENTS;
	bool is_write = kind == BELLJAR_FILE_WRITE;

	if (!path || kind < BELLJAR_FILE_READ || kind > BELLJAR_FILE_WATCH || (flags && !is_write))
		return error_set(&failure->error, STAGE_USAGE, EINVAL,
				 "a file needs a path, and an access that is known");
	return ask_descriptor(jar,
			      &(struct client_task){.type = FRAME_FILE,
						    .operation = words[kind],
						    .path = path,
						    .flags = flags,
						    .has_mode = is_write,
						    .mode = mode},
			      failure);
}

int belljar_jar_open_file(struct belljar_jar *jar, const char *path, int access, uint32_t mode,
			  struct belljar_error **error)
{
	AUTO_FAILURE failure = {0};

	return client_publish(open_file(jar, path, access, mode, &failure), &failure, error);
}

static int read_file(struct belljar_jar *jar, const char *path, size_t max_len, struct text *out,
		     struct belljar_error *failure)
{
	AUTO_CLOSE int fd = open_file(jar, path, BELLJAR_FILE_READ, 0, failure);
	struct stat status;
	int rc;

	if (fd < 0)
		return fd;
	max_len = MIN_OF(max_len, SIZE_MAX / 2);
	rc = fstat(fd, &status) < 0 ? -errno : 0;
	if (rc == 0)
		rc = status.st_size > 0 && (size_t)status.st_size > max_len ? -EFBIG : text_read_all(out, fd, max_len);
	if (rc == -EFBIG)
		return error_set(&failure->error, STAGE_FILES, EFBIG, "'%s' has more than %zu bytes", path, max_len);
	if (rc < 0)
		return error_set(&failure->error, STAGE_FILES, -rc, "cannot read '%s': %s", path, errno_name(-rc));
	return 0;
}

int belljar_jar_read_file(struct belljar_jar *jar, const char *path, size_t max_len, void **bytes_out, size_t *len_out,
			  struct belljar_error **error)
{
	AUTO_FAILURE failure = {0};
	AUTO_TEXT text = {0};
	int rc = read_file(jar, path, max_len, &text, &failure);

	text_append(&text, "", 0);
	if (rc == 0 && text_failed(&text))
		rc = client_no_memory(&failure);
	if (rc < 0)
		return client_publish(rc, &failure, error);
	*len_out = text.len;
	*bytes_out = take_ptr(text.data);
	return 0;
}

static int write_file(struct belljar_jar *jar, const char *path, const char *bytes, size_t len, uint32_t mode,
		      struct belljar_error *failure)
{
	AUTO_CLOSE int fd = open_file(jar, path, BELLJAR_FILE_WRITE, mode, failure);
	size_t written = 0;

	if (fd < 0)
		return fd;
	while (written < len) {
		ssize_t count = write(fd, bytes + written, len - written);

		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			return error_set(&failure->error, STAGE_FILES, count < 0 ? errno : EIO, "cannot write '%s': %s",
					 path, errno_name(count < 0 ? errno : EIO));
		written += (size_t)count;
	}
	return 0;
}

int belljar_jar_write_file(struct belljar_jar *jar, const char *path, const void *bytes, size_t len, uint32_t mode,
			   struct belljar_error **error)
{
	AUTO_FAILURE failure = {0};

	return client_publish(write_file(jar, path, bytes, len, mode, &failure), &failure, error);
}

int belljar_jar_mkdir(struct belljar_jar *jar, const char *path, uint32_t mode, uint32_t flags,
		      struct belljar_error **error)
{
	const struct client_task task = {
		.type = FRAME_FILE, .operation = "mkdir", .path = path, .flags = flags, .has_mode = true, .mode = mode};
	AUTO_FAILURE failure = {0};
	int rc = check_path(path, flags, BELLJAR_PARENTS, &failure);

	return client_publish(rc < 0 ? rc : cli_ask_done(jar, &task, &failure), &failure, error);
}

int belljar_jar_remove(struct belljar_jar *jar, const char *path, uint32_t flags, struct belljar_error **error)
{
	const struct client_task task = {.type = FRAME_FILE, .operation = "remove", .path = path, .flags = flags};
	AUTO_FAILURE failure = {0};
	int rc = check_path(path, flags, BELLJAR_RECURSIVE, &failure);

	return client_publish(rc < 0 ? rc : cli_ask_done(jar, &task, &failure), &failure, error);
}

int belljar_jar_rename(struct belljar_jar *jar, const char *path, const char *to, struct belljar_error **error)
{
	const struct client_task task = {.type = FRAME_FILE, .operation = "rename", .path = path, .to = to};
	AUTO_FAILURE failure = {0};
	int rc = check_path(path, 0, 0, &failure);

	if (rc == 0)
		rc = check_path(to, 0, 0, &failure);
	return client_publish(rc < 0 ? rc : cli_ask_done(jar, &task, &failure), &failure, error);
}

static int64_t integer_of(const struct json_value *document, const char *name)
{
	const struct json_member *member = json_find(document, name);

	return member && member->value.type == JSON_INTEGER ? member->value.number.integer : 0;
}

static int type_of(const struct json_value *document)
{
	static const char *const words[] = {
		[BELLJAR_TYPE_FILE] = "file", [BELLJAR_TYPE_DIRECTORY] = "dir", [BELLJAR_TYPE_LINK] = "symlink"};
	const struct json_member *member = json_find(document, "type");

	for (int i = BELLJAR_TYPE_FILE; i < BELLJAR_TYPE_OTHER; i++)
		if (member && member->value.type == JSON_STRING && !strcmp(member->value.string.bytes, words[i]))
			return i;
	return BELLJAR_TYPE_OTHER;
}

static int ask_stat(struct belljar_jar *jar, const struct client_task *task, struct json_value *document,
		    struct belljar_error *failure)
{
	AUTO_CHANNEL channel = NO_CHANNEL;
	struct client_frame frame;
	int rc = client_jar_ask(jar, task, &channel, &frame, failure);

	return rc < 0 ? rc : client_parse(frame.payload, frame.len, document, failure);
}

int belljar_jar_stat(struct belljar_jar *jar, const char *path, uint32_t flags, uint64_t *size_out, uint32_t *mode_out,
		     int64_t *modified_out, struct belljar_error **error)
{
	const struct client_task task = {.type = FRAME_FILE, .operation = "stat", .path = path, .flags = flags};
	AUTO_FAILURE failure = {0};
	AUTO_JSON document = {0};
	int rc = check_path(path, flags, BELLJAR_FOLLOW, &failure);

	if (rc == 0)
		rc = ask_stat(jar, &task, &document, &failure);
	if (rc < 0)
		return client_publish(rc, &failure, error);
	if (size_out)
		*size_out = (uint64_t)integer_of(&document, "size");
	if (mode_out)
		*mode_out = (uint32_t)integer_of(&document, "mode");
	if (modified_out)
		*modified_out = integer_of(&document, "mtime_ns");
	return type_of(&document);
}

/* --- processes and ports --- */

int belljar_jar_connect(struct belljar_jar *jar, uint16_t port, struct belljar_error **error)
{
	const struct client_task task = {.type = FRAME_CONNECT, .port = port};
	AUTO_FAILURE failure = {0};
	int rc = port ? 0 : error_set(&failure.error, STAGE_USAGE, EINVAL, "no port has the number 0");

	return client_publish(rc < 0 ? rc : ask_descriptor(jar, &task, &failure), &failure, error);
}

int belljar_jar_processes(struct belljar_jar *jar, char **json_out, struct belljar_error **error)
{
	AUTO_FAILURE failure = {0};

	return client_publish(ask_json(jar, FRAME_PROCESSES, json_out, &failure), &failure, error);
}

int belljar_jar_kill(struct belljar_jar *jar, int pid, int signal, struct belljar_error **error)
{
	const struct client_task task = {.type = FRAME_KILL, .pid = pid, .signal = signal};
	AUTO_FAILURE failure = {0};
	int rc = 0;

	if (pid <= 1 || signal < 0 || signal > 64)
		rc = error_set(&failure.error, STAGE_USAGE, EINVAL,
			       "no process of a jar has the number %d, or no signal the number %d", pid, signal);
	return client_publish(rc < 0 ? rc : cli_ask_done(jar, &task, &failure), &failure, error);
}

int belljar_jar_usage(struct belljar_jar *jar, char **json_out, struct belljar_error **error)
{
	AUTO_FAILURE failure = {0};

	return client_publish(ask_json(jar, FRAME_USAGE, json_out, &failure), &failure, error);
}

int belljar_jar_look(struct belljar_jar *jar, char **json_out, struct belljar_error **error)
{
	AUTO_FAILURE failure = {0};

	return client_publish(ask_json(jar, FRAME_LOOK, json_out, &failure), &failure, error);
}

/* --- the network --- */

static int change_net(struct belljar_jar *jar, const char *operation, const char *rule, struct belljar_error **error)
{
	const struct client_task task = {.type = FRAME_NET, .operation = operation, .rule = rule};
	AUTO_FAILURE failure = {0};
	int rc = rule ? 0 : error_set(&failure.error, STAGE_USAGE, EINVAL, "there is no rule: the pointer is NULL");

	return client_publish(rc < 0 ? rc : cli_ask_done(jar, &task, &failure), &failure, error);
}

int belljar_jar_allow_net(struct belljar_jar *jar, const char *rule, struct belljar_error **error)
{
	return change_net(jar, "allow", rule, error);
}

int belljar_jar_deny_net(struct belljar_jar *jar, const char *rule, struct belljar_error **error)
{
	return change_net(jar, "deny", rule, error);
}
