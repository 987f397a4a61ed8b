/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/client_workspace.c - workspaces: review the changes in a layer, apply or discard them
 *
 * The same functions serve a jar's own workspace and one that earlier runs left. Only the request frame differs.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json_write.h"
#include "client/client_jar.h"

#define READ_BYTES ((size_t)64 << 10)

struct belljar_workspace {
	struct belljar_engine *engine;
	struct belljar_jar *jar; /* NULL: it has none */
	char *id;                /* without a jar */
};

/* The answer is a file, with a NUL behind what was read of it. */
static int read_answer(int fd, struct text *out, struct belljar_error *failure)
{
	for (;;) {
		char *end = text_reserve(out, READ_BYTES);
		ssize_t count = end ? read(fd, end, READ_BYTES) : 0;

		if (!end)
			return client_no_memory(failure);
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return error_set(&failure->error, STAGE_ENGINE, errno, "cannot read the answer: %s",
					 errno_name(errno));
		if (count == 0)
			break;
		out->len += (size_t)count;
	}
	text_append(out, "", 0);
	return text_failed(out) ? client_no_memory(failure) : 0;
}

/* Take the new description of a jar that was made again after a change of its layer. */
static int take_opened(struct belljar_jar *jar, const struct client_frame *frame, struct belljar_error *failure)
{
	AUTO_JSON document = {0};
	AUTO_TEXT info = {0};
	struct json_writer writer = {.text = &info, .has_byte_escapes = true};
	const struct json_member *opened;
	int rc = client_parse(frame->payload, frame->len, &document, failure);

	opened = rc == 0 ? json_find(&document, "opened") : NULL;
	if (!opened)
		return rc;
	json_write_value(&writer, NULL, &opened->value);
	if (text_failed(&info))
		return client_no_memory(failure);
	client_jar_opened_again(jar, take_ptr(info.data));
	return 0;
}

static int send_order(struct belljar_workspace *workspace, struct client_request *request,
		      struct client_channel *channel, struct client_frame *frame, struct belljar_error *failure)
{
	struct client_message message;
	int fd = -1, rc;

	if (workspace->jar)
		return client_jar_send(workspace->jar, request, FRAME_LAYER, channel, frame, failure);
	message = client_request_message(request, FRAME_WORKSPACE);
	rc = client_engine_connect(workspace->engine, &message, &fd, failure);
	if (rc < 0)
		return rc;
	client_channel_init(channel, fd);
	return client_engine_await(workspace->engine, channel, frame, failure);
}

static int ask(struct belljar_workspace *workspace, struct client_order order, struct text *out,
	       struct belljar_error *failure)
{
	AUTO(client_channel_done) struct client_channel channel = {.fd = -1, .received_fd = -1};
	AUTO_REQUEST_OUT request = {.input_fd = -1};
	struct client_frame frame;
	int rc;

	if (!workspace)
		return error_set(&failure->error, STAGE_USAGE, EINVAL, "there is no workspace: the pointer is NULL");
	rc = workspace->jar ? client_jar_check(workspace->jar, failure)
			    : client_engine_check(workspace->engine, failure);
	order.id = workspace->id;
	if (rc == 0)
		rc = client_request_order(&request, &order, failure);
	if (rc == 0)
		rc = send_order(workspace, &request, &channel, &frame, failure);
	if (rc == 0 && workspace->jar)
		rc = take_opened(workspace->jar, &frame, failure);
	if (rc < 0)
		return rc;
	if (frame.type != FRAME_DESCRIPTOR)
		return client_read_refusal(&frame, failure);
	return channel.received_fd < 0 ? client_engine_nonsense(failure)
				       : read_answer(channel.received_fd, out, failure);
}

/* Ask, and give the answer to the caller if @text_out is not NULL. */
static int ask_text(struct belljar_workspace *workspace, struct client_order order, char **text_out, size_t *len_out,
		    struct belljar_error *failure)
{
	AUTO_TEXT answer = {0};
	int rc = ask(workspace, order, &answer, failure);

	if (rc < 0)
		return rc;
	if (len_out)
		*len_out = answer.len;
	if (text_out)
		*text_out = take_ptr(answer.data);
	return 0;
}

/* Ask, and look at one member of the answer, which is the caller's to free with the document. */
static int ask_member(struct belljar_workspace *workspace, struct client_order order, const char *name,
		      enum json_type type, struct text *answer, struct json_value *document,
		      const struct json_value **out, struct belljar_error *failure)
{
	const struct json_member *member;
	int rc = ask(workspace, order, answer, failure);

	if (rc == 0)
		rc = client_parse(text_string(answer), answer->len, document, failure);
	if (rc < 0)
		return rc;
	member = json_find(document, name);
	if (!member || member->value.type != type)
		return client_engine_nonsense(failure);
	*out = &member->value;
	return 0;
}

/* --- finding one --- */

static int make(struct belljar_engine *engine, struct belljar_jar *jar, const char *id, struct belljar_workspace **out,
		struct belljar_error *failure)
{
	struct belljar_workspace *workspace = calloc(1, sizeof(*workspace));

	if (workspace && id)
		workspace->id = strdup(id);
	if (!workspace || (id && !workspace->id)) {
		free(workspace);
		return client_no_memory(failure);
	}
	workspace->engine = engine;
	workspace->jar = jar;
	client_engine_hold(engine);
	*out = workspace;
	return 0;
}

/* It must be there; a name becomes an id, which stays the same wherever the program goes. */
static int find(struct belljar_workspace *workspace, struct belljar_error *failure)
{
	const struct json_value *id;
	AUTO_JSON document = {0};
	AUTO_TEXT answer = {0};
	char *copy;
	int rc = ask_member(workspace, (struct client_order){.operation = "show"}, "id", JSON_STRING, &answer,
			    &document, &id, failure);

	if (rc < 0 || workspace->jar)
		return rc;
	copy = strdup(id->string.bytes);
	if (!copy)
		return client_no_memory(failure);
	free(workspace->id);
	workspace->id = copy;
	return 0;
}

static int open_workspace(struct belljar_engine *engine, struct belljar_jar *jar, const char *id,
			  struct belljar_workspace **out, struct belljar_error *failure)
{
	struct belljar_workspace *workspace = NULL;
	int rc = make(engine, jar, id, &workspace, failure);

	if (rc < 0)
		return rc;
	rc = find(workspace, failure);
	if (rc < 0)
		belljar_workspace_free(workspace);
	else
		*out = workspace;
	return rc;
}

int belljar_workspace_open(struct belljar_engine *engine, const char *id, struct belljar_workspace **out,
			   struct belljar_error **error)
{
	AUTO_FAILURE failure = {0};
	int rc = client_engine_check(engine, &failure);

	if (rc == 0 && !id)
		rc = error_set(&failure.error, STAGE_USAGE, EINVAL, "there is no id: the pointer is NULL");
	return client_publish(rc < 0 ? rc : open_workspace(engine, NULL, id, out, &failure), &failure, error);
}

int belljar_jar_workspace(struct belljar_jar *jar, struct belljar_workspace **out, struct belljar_error **error)
{
	AUTO_FAILURE failure = {0};
	int rc = client_jar_check(jar, &failure);

	return client_publish(rc < 0 ? rc : open_workspace(client_jar_engine(jar), jar, NULL, out, &failure), &failure,
			      error);
}

void belljar_workspace_free(struct belljar_workspace *workspace)
{
	if (!workspace)
		return;
	client_engine_release(workspace->engine);
	free(workspace->id);
	free(workspace);
}

/* --- looking at it --- */

int belljar_workspace_show(struct belljar_workspace *workspace, char **json_out, struct belljar_error **error)
{
	AUTO_FAILURE failure = {0};

	return client_publish(ask_text(workspace, (struct client_order){.operation = "show"}, json_out, NULL, &failure),
			      &failure, error);
}

int belljar_workspace_diff(struct belljar_workspace *workspace, const char *const *paths, char **json_out,
			   struct belljar_error **error)
{
	const struct client_order order = {.operation = "diff", .paths = paths};
	AUTO_FAILURE failure = {0};

	return client_publish(ask_text(workspace, order, json_out, NULL, &failure), &failure, error);
}

int belljar_workspace_patch(struct belljar_workspace *workspace, const char *const *paths, char **patch_out,
			    size_t *len_out, struct belljar_error **error)
{
	const struct client_order order = {.operation = "patch", .paths = paths};
	AUTO_FAILURE failure = {0};

	return client_publish(ask_text(workspace, order, patch_out, len_out, &failure), &failure, error);
}

/* --- deciding about it --- */

/* 1 if the list @name of the answer has anything in it. */
static int decide(struct belljar_workspace *workspace, struct client_order order, const char *name, char **json_out,
		  struct belljar_error *failure)
{
	const struct json_value *list;
	AUTO_JSON document = {0};
	AUTO_TEXT answer = {0};
	int rc = ask_member(workspace, order, name, JSON_LIST, &answer, &document, &list, failure);

	if (rc < 0)
		return rc;
	rc = list->list.count != 0;
	if (json_out)
		*json_out = take_ptr(answer.data);
	return rc;
}

int belljar_workspace_apply(struct belljar_workspace *workspace, const struct belljar_apply_options *given,
			    char **json_out, struct belljar_error **error)
{
	struct belljar_apply_options options = {0};
	AUTO_FAILURE failure = {0};
	int rc = given ? client_copy_struct(given, sizeof(options), &options, &failure) : 0;

	if (rc == 0 && options.flags)
		rc = error_set(&failure.error, STAGE_USAGE, EINVAL, "unknown flags: 0x%x", options.flags);
	if (rc == 0)
		rc = decide(workspace,
			    (struct client_order){.operation = "apply",
						  .paths = options.paths,
						  .risky = options.allow_risky,
						  .theirs = options.theirs,
						  .ours = options.ours},
			    "not_applied", json_out, &failure);
	return client_publish(rc, &failure, error);
}

int belljar_workspace_discard(struct belljar_workspace *workspace, const char *const *paths, char **json_out,
			      struct belljar_error **error)
{
	const struct client_order order = {.operation = "discard", .paths = paths};
	AUTO_FAILURE failure = {0};

	return client_publish(decide(workspace, order, "not_dropped", json_out, &failure), &failure, error);
}

int belljar_workspace_checkpoint(struct belljar_workspace *workspace, const char *note, char **id_out,
				 struct belljar_error **error)
{
	const struct client_order order = {.operation = "checkpoint", .note = note};
	const struct json_value *id;
	AUTO_FAILURE failure = {0};
	AUTO_JSON document = {0};
	AUTO_TEXT answer = {0};
	int rc = ask_member(workspace, order, "checkpoint", JSON_STRING, &answer, &document, &id, &failure);
	char *copy = rc == 0 && id_out ? strdup(id->string.bytes) : NULL;

	if (rc == 0 && id_out && !copy)
		rc = client_no_memory(&failure);
	if (copy)
		*id_out = copy;
	return client_publish(rc, &failure, error);
}

int belljar_workspace_rollback(struct belljar_workspace *workspace, const char *checkpoint,
			       struct belljar_error **error)
{
	const struct client_order order = {.operation = "rollback", .checkpoint = checkpoint};
	AUTO_FAILURE failure = {0};

	return client_publish(ask_text(workspace, order, NULL, NULL, &failure), &failure, error);
}

int belljar_workspace_fork(struct belljar_workspace *workspace, uint32_t count, char **json_out,
			   struct belljar_error **error)
{
	const struct client_order order = {.operation = "fork", .count = count};
	AUTO_FAILURE failure = {0};
	int rc = count ? 0 : error_set(&failure.error, STAGE_USAGE, EINVAL, "a fork makes one workspace or more");

	return client_publish(rc < 0 ? rc : ask_text(workspace, order, json_out, NULL, &failure), &failure, error);
}
