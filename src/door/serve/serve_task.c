/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/serve/serve_task.c - requests to a session other than runs: files, a connection, processes
 *
 * The jar does it behind its walls (inside/task/), and the answer is one frame on the channel that came with the request: DESCRIPTOR
 * where something was opened, else ANSWER. A client that closes the channel before gives the task up.
 */
#include "door/serve/serve_task.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json_write.h"
#include "base/utf8.h"

struct serve_task {
	struct object object;
	struct channel *channel; /* NULL: the client is gone */
	struct server_jar *server_jar;
	struct session_task *task; /* NULL: it is over */
	enum task_operation operation;
	struct text payload; /* TASK_PROCESSES: the answer so far */
	struct json_writer writer;
};

static const enum task_operation file_operations[] = {
	[REQUEST_READ] = TASK_READ,     [REQUEST_WRITE] = TASK_WRITE,   [REQUEST_LIST] = TASK_LIST,
	[REQUEST_WATCH] = TASK_WATCH,   [REQUEST_STAT] = TASK_STAT,     [REQUEST_MKDIR] = TASK_MAKE_DIRECTORY,
	[REQUEST_REMOVE] = TASK_REMOVE, [REQUEST_RENAME] = TASK_RENAME,
};

/* The failed operation, in words. */
static const char *const verbs[] = {
	[TASK_READ] = "open the file in the jar",          [TASK_WRITE] = "open the file in the jar",
	[TASK_LIST] = "open the directory in the jar",     [TASK_WATCH] = "watch the file in the jar",
	[TASK_STAT] = "look at the file in the jar",       [TASK_MAKE_DIRECTORY] = "make the directory in the jar",
	[TASK_REMOVE] = "remove the file in the jar",      [TASK_RENAME] = "rename the file in the jar",
	[TASK_CONNECT] = "connect to the port in the jar", [TASK_PROCESSES] = "list the processes of the jar",
	[TASK_KILL] = "signal the process in the jar",
};
_Static_assert(ARRAY_LEN(verbs) == TASK_OPERATION_COUNT, "every operation has its words");

bool serve_is_task(enum frame_type type, enum request_kind *kind)
{
	static const struct {
		enum frame_type type;
		enum request_kind kind;
	} rows[] = {
		{FRAME_FILE, REQUEST_FILE},
		{FRAME_CONNECT, REQUEST_CONNECT},
		{FRAME_PROCESSES, REQUEST_PROCESSES},
		{FRAME_KILL, REQUEST_KILL},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (rows[i].type != type)
			continue;
		*kind = rows[i].kind;
		return true;
	}
	return false;
}

/* --- life ---------------------------------------------------------------------------------------------------- */

static void leave_task(struct serve_task *task)
{
	jar_drop_task(take_ptr(task->task));
	task->channel = NULL;
	task->object.is_dead = true;
}

/* The server ends: its channels go before what hangs on them, and no answer may come after that. */
static void kill_task(struct object *object)
{
	struct serve_task *task = (struct serve_task *)object;

	task->channel = NULL;
	jar_drop_task(take_ptr(task->task));
}

static void free_task(struct object *object)
{
	struct serve_task *task = (struct serve_task *)object;

	jar_drop_task(take_ptr(task->task));
	server_jar_leave(task->server_jar);
	text_done(&task->payload);
	free(task);
}

static void task_on_channel_gone(struct channel *channel)
{
	leave_task(channel->object);
}

static const struct channel_role task_role = {serve_channel_refuse, NULL, task_on_channel_gone};

/* --- answers ------------------------------------------------------------------------------------------------- */

static const char *type_name(mode_t mode)
{
	return S_ISREG(mode) ? "file" : S_ISDIR(mode) ? "dir" : S_ISLNK(mode) ? "symlink" : "other";
}

static void task_on_process(void *owner, const struct jar_message *message, const char *text, size_t text_len)
{
	struct serve_task *task = owner;
	struct json_writer *writer = &task->writer;
	const char state[2] = {(char)message->process.state, '\0'};
	size_t at = strnlen(text, text_len);

	json_open_object(writer, NULL);
	json_write_integer(writer, "pid", message->process.pid);
	json_write_integer(writer, "ppid", message->process.parent);
	json_write_unsigned(writer, "run", message->process.minder);
	json_write_string(writer, "state", state);
	json_write_unsigned(writer, "started_ms", message->process.started_ns / 1000000);
	json_write_bytes(writer, "name", text, at);
	json_open_array(writer, "argv");
	for (at++; at < text_len;) {
		size_t len = strnlen(text + at, text_len - at);

		json_write_bytes(writer, NULL, text + at, len);
		at += len + 1;
	}
	json_close_array(writer);
	json_close_object(writer);
}

static void write_answer(struct serve_task *task, const struct jar_message *message)
{
	struct json_writer *writer = &task->writer;

	if (task->operation == TASK_PROCESSES)
		json_close_array(writer);
	if (task->operation == TASK_STAT) {
		json_write_string(writer, "type", type_name(message->task_done.mode));
		json_write_unsigned(writer, "size", message->task_done.size);
		json_write_unsigned(writer, "mode", message->task_done.mode & 07777);
		json_write_integer(writer, "mtime_ns", message->task_done.modified_ns);
	}
	json_close_object(writer);
}

static void task_on_done(void *owner, const struct jar_message *message, int fd)
{
	struct serve_task *task = owner;
	struct channel *channel = task->channel;
	int errno_value = message->task_done.error;
	AUTO_CLOSE int opened = fd;
	struct error error = {0};
	bool opens = task->operation <= TASK_WATCH || task->operation == TASK_CONNECT;

	task->task = NULL;
	/* Neither a descriptor nor a reason: the engine has none left for it. */
	if (!errno_value && opens && opened < 0)
		errno_value = EMFILE;
	if (!errno_value && !opens)
		write_answer(task, message);
	if (text_failed(&task->payload))
		errno_value = ENOMEM;
	if (errno_value) {
		error_set(&error, STAGE_FILES, errno_value, "cannot %s: %s", verbs[task->operation],
			  strerror(errno_value));
		serve_channel_set_role(channel, NULL, NULL);
		serve_channel_fail(channel, &error, NULL);
	} else if (opens) {
		wire_send(&channel->wire, FRAME_DESCRIPTOR, "{}", 2, opened);
		serve_channel_end(channel);
	} else {
		wire_send(&channel->wire, FRAME_ANSWER, text_string(&task->payload), task->payload.len, -1);
		serve_channel_end(channel);
	}
	leave_task(task);
}

/* --- beginning ----------------------------------------------------------------------------------------------- */

static struct session_task_request order_of(enum request_kind kind, const struct request *request)
{
	struct session_task_request order = {.path = request->path, .to = request->to};

	if (kind == REQUEST_FILE) {
		order.task.operation = file_operations[request->operation];
		order.task.flags = (request->makes_parents ? TASK_PARENTS : 0) |
				   (request->is_recursive ? TASK_RECURSIVE : 0) |
				   (request->follows_link ? TASK_FOLLOW : 0);
		order.task.number = request->mode >= 0                            ? (uint32_t)request->mode
				    : order.task.operation == TASK_MAKE_DIRECTORY ? 0755
										  : 0644;
	} else if (kind == REQUEST_CONNECT) {
		order.task.operation = TASK_CONNECT;
		order.task.number = (uint32_t)request->port;
	} else if (kind == REQUEST_KILL) {
		order.task.operation = TASK_KILL;
		order.task.number = (uint32_t)request->signal;
		order.task.pid = (int32_t)request->pid;
	} else {
		order.task.operation = TASK_PROCESSES;
	}
	return order;
}

/*
 * Without a network namespace of its own, whatever the jar reached would be the host's. The filter keeps commands from
 * that; it does not hold for a task.
 */
static int check_network(const struct server_jar *server_jar, struct error *error)
{
	if (server_jar->launch.plan.rung == RUNG_NAMESPACE || server_jar->request->policy.net == NET_HOST)
		return 0;
	return error_set(error, STAGE_FILES, EOPNOTSUPP,
			 "cannot connect to a port in the jar: on the rung '%s' a jar without network has no loopback",
			 plan_rung_name(server_jar->launch.plan.rung));
}

static int begin(struct channel *channel, struct server_jar *server_jar, enum request_kind kind,
		 const struct wire_frame *frame, struct error *error)
{
	struct serve_task *task;
	struct session_task_request order;
	AUTO_REQUEST request = {0};
	int rc = wire_request_parse(kind, frame->payload, frame->len, &request, error);

	if (rc == 0 && kind == REQUEST_CONNECT)
		rc = check_network(server_jar, error);
	if (rc < 0)
		return rc;
	task = calloc(1, sizeof(*task));
	if (!task)
		return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	task->object = (struct object){.kill = kill_task, .free = free_task};
	task->server_jar = server_jar;
	task->writer = (struct json_writer){.text = &task->payload, .has_byte_escapes = true};
	json_open_object(&task->writer, NULL);
	if (kind == REQUEST_PROCESSES)
		json_open_array(&task->writer, "processes");
	server_jar_hold(server_jar);
	server_add(channel->server, &task->object);
	order = order_of(kind, &request);
	task->operation = (enum task_operation)order.task.operation;
	rc = jar_begin_task(server_jar->jar, &order,
			    &(struct session_task_listener){task, task_on_process, task_on_done}, &task->task);
	if (rc < 0) {
		task->object.is_dead = true;
		return error_set(error, STAGE_FILES, -rc, "cannot %s: %s", verbs[task->operation], strerror(-rc));
	}
	task->channel = channel;
	serve_channel_set_role(channel, &task_role, task);
	return 0;
}

void serve_task_begin(struct channel *channel, struct server_jar *server_jar, enum request_kind kind,
		      const struct wire_frame *frame)
{
	struct error error = {0};

	if (serve_check_descriptors_sent(frame, 1, &error) < 0 || begin(channel, server_jar, kind, frame, &error) < 0)
		serve_channel_fail(channel, &error, NULL);
}
