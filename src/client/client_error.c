/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/client_error.c - the error record that programs see, and the reading of input structs
 */
#include <errno.h>
#include <string.h>

#include "base/json_write.h"
#include "client/client.h"

#define MAX_ANSWER_BYTES ((size_t)16 << 20)
#define MAX_ANSWER_ENTRIES 100000
#define MAX_ERRNO 4096

/* If there is no memory for the record itself, the program gets NULL, and this text for NULL. */
static const char no_memory[] = "out of memory";

void client_error_done(struct belljar_error *failure)
{
	free(failure->missing);
	failure->missing = NULL;
}

int client_publish(int rc, struct belljar_error *failure, struct belljar_error **error)
{
	struct belljar_error *made;

	if (rc >= 0 || !error)
		return rc;
	made = malloc(sizeof(*made));
	if (made) {
		*made = *failure;
		failure->missing = NULL;
	}
	belljar_error_free(*error);
	*error = made;
	return rc;
}

int client_no_memory(struct belljar_error *failure)
{
	return error_set(&failure->error, STAGE_ENGINE, ENOMEM, "%s", no_memory);
}

int client_copy_struct(const void *given, size_t known_size, void *copy, struct belljar_error *failure)
{
	const unsigned char *bytes = given;
	uint32_t size;

	if (!given)
		return error_set(&failure->error, STAGE_USAGE, EINVAL, "a struct is missing: the pointer is NULL");
	memcpy(&size, given, sizeof(size));
	if (size < 2 * sizeof(uint32_t)) {
		error_set(&failure->error, STAGE_USAGE, EINVAL, "a struct says that it has %u bytes", size);
		return error_hint(&failure->error, "its member `size` must be set to sizeof the struct");
	}
	for (size_t i = known_size; i < size; i++) {
		if (!bytes[i])
			continue;
		error_set(&failure->error, STAGE_USAGE, E2BIG,
			  "the program was built for a newer libbelljar and uses what this one, " BELLJAR_VERSION
			  ", does not know");
		return error_hint(&failure->error, "update libbelljar");
	}
	memset(copy, 0, known_size);
	memcpy(copy, given, MIN_OF(size, known_size));
	return 0;
}

/* --- what the engine says --- */

int client_parse(const char *payload, size_t len, struct json_value *out, struct belljar_error *failure)
{
	struct json_input input = {
		.name = "answer",
		.bytes = payload,
		.len = len,
		.stage = STAGE_ENGINE,
		.max_bytes = MAX_ANSWER_BYTES,
		.max_entries = MAX_ANSWER_ENTRIES,
		.has_byte_escapes = true,
	};
	int rc = json_parse(&input, out, &failure->error);

	if (rc < 0)
		return rc;
	if (out->type == JSON_OBJECT)
		return 0;
	json_value_done(out);
	return client_engine_nonsense(failure);
}

/* null where no system call failed. */
static int errno_member(const struct json_value *object)
{
	const struct json_member *member = json_find(object, "errno");

	return member && member->value.type == JSON_INTEGER && member->value.number.integer > 0 &&
			       member->value.number.integer < MAX_ERRNO
		       ? (int)member->value.number.integer
		       : 0;
}

static enum stage stage_of(const char *name)
{
	for (enum stage stage = STAGE_NONE + 1; name && stage < STAGE_COUNT; stage++) {
		if (strcmp(stage_name(stage), name) == 0)
			return stage;
	}
	return STAGE_ENGINE;
}

/* [{"name","why","hint"}], written again: nothing of the answer is kept. */
static char *write_missing(const struct json_value *list)
{
	static const char *const names[] = {"name", "why", "hint"};
	AUTO_TEXT text = {0};
	struct json_writer writer = {.text = &text, .has_byte_escapes = true};

	json_open_array(&writer, NULL);
	for (size_t i = 0; i < list->list.count; i++) {
		if (list->list.items[i].type != JSON_OBJECT)
			continue;
		json_open_object(&writer, NULL);
		for (size_t j = 0; j < ARRAY_LEN(names); j++)
			json_write_string(&writer, names[j], json_string_of(&list->list.items[i], names[j]));
		json_close_object(&writer);
	}
	json_close_array(&writer);
	return text_failed(&text) ? NULL : take_ptr(text.data);
}

int client_read_failure(const struct json_value *document, struct belljar_error *failure)
{
	const struct json_member *error = json_find(document, "error");
	const struct json_member *missing = json_find(document, "missing");
	const char *message, *hint;
	int rc;

	if (!error || error->value.type != JSON_OBJECT)
		return client_engine_nonsense(failure);
	message = json_string_of(&error->value, "message");
	hint = json_string_of(&error->value, "hint");
	rc = error_set(&failure->error, stage_of(json_string_of(&error->value, "stage")), errno_member(&error->value),
		       "%s", message ? message : "the engine gave no reason");
	if (hint)
		error_hint(&failure->error, "%s", hint);
	if (missing && missing->value.type == JSON_LIST && missing->value.list.count)
		failure->missing = write_missing(&missing->value);
	return rc;
}

/* --- public --- */

const char *belljar_version(void)
{
	return BELLJAR_VERSION;
}

const char *belljar_error_stage(const struct belljar_error *error)
{
	return stage_name(error ? error->error.stage : STAGE_ENGINE);
}

int belljar_error_errno(const struct belljar_error *error)
{
	return error ? error->error.errno_value : ENOMEM;
}

const char *belljar_error_message(const struct belljar_error *error)
{
	return error ? error->error.message : no_memory;
}

const char *belljar_error_hint(const struct belljar_error *error)
{
	return error && error->error.hint[0] ? error->error.hint : NULL;
}

const char *belljar_error_missing(const struct belljar_error *error)
{
	return error && error->missing ? error->missing : "[]";
}

void belljar_error_free(struct belljar_error *error)
{
	if (!error)
		return;
	client_error_done(error);
	free(error);
}
