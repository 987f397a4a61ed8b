/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/policy_document.c - read a policy document, and lay its keys over a policy
 *
 * A path from outside may be a FIFO without a writer, a device or a directory. So the code opens the file without
 * waiting and checks its type before it reads.
 */
#include "policy/policy_document.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "policy/policy_value.h"
#include "policy/policy_musts.h"
#include "policy/secret_files.h"

void policy_file_done(struct policy_file *file)
{
	if (!file)
		return;
	text_done(&file->bytes);
	free(file->directory);
	*file = (struct policy_file){0};
}

/* A failure about the file as a whole, prefixed by the place of the `extends` that named it. */
static int refuse_file(const struct policy_origin *origin, struct error *error, int errno_value, const char *what,
		       const char *name)
{
	AUTO_TEXT place = {0};

	if (!origin)
		return error_set(error, STAGE_POLICY, errno_value, "%s '%s'", what, name);
	policy_append_place(&place, origin->source, origin->line, origin->column);
	return error_set(error, STAGE_POLICY, errno_value, "%sextends: %s '%s'", text_string(&place), what, name);
}

/* The same after a failed system call, whose reason is part of the message. */
static int refuse_access(const struct policy_origin *origin, struct error *error, int errno_value, const char *what,
			 const char *name)
{
	AUTO_TEXT place = {0};

	if (origin)
		policy_append_place(&place, origin->source, origin->line, origin->column);
	return error_set(error, STAGE_POLICY, errno_value, "%s%s%s '%s': %s", text_string(&place),
			 origin ? "extends: " : "", what, name, strerror(errno_value));
}

/* Symbolic links on the way to the directory are followed once, now, so that its '..' are gone. */
static int find_directory(const char *path, char **out)
{
	AUTO_FREE char *directory = strdup(path);
	char *slash = directory ? strrchr(directory, '/') : NULL;
	char *real;

	if (!slash)
		return -ENOMEM;
	slash[slash == directory] = '\0';
	real = realpath(directory, NULL);
	if (!real)
		return -errno;
	*out = real;
	return 0;
}

int policy_file_path(const char *name, const struct policy_context *context, char **path_out, struct error *error)
{
	AUTO_FREE char *path = NULL;
	int len;

	if (!*name)
		return error_set(error, STAGE_POLICY, 0, "the name of the policy file is empty");
	if (name[0] != '/' && !context->current_directory)
		return error_set(error, STAGE_POLICY, ENOENT,
				 "cannot read the policy file '%s': the current directory no longer exists", name);
	len = name[0] == '/' ? asprintf(&path, "%s", name) : asprintf(&path, "%s/%s", context->current_directory, name);
	if (len < 0) {
		path = NULL; /* asprintf() leaves it undefined on failure */
		return error_set(error, STAGE_POLICY, ENOMEM, "no memory for the policy");
	}
	*path_out = take_ptr(path);
	return 0;
}

int policy_file_read(const char *path, const char *name, const struct policy_origin *origin, struct policy_file *out,
		     struct error *error)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	AUTO_POLICY_FILE file = {0};
	struct stat status;
	int rc;

	if (fd < 0)
		return refuse_access(origin, error, errno, "cannot open the policy file", name);
	if (fstat(fd, &status) < 0)
		return refuse_access(origin, error, errno, "cannot examine the policy file", name);
	if (S_ISDIR(status.st_mode))
		return refuse_file(origin, error, EISDIR, "a policy must be a file, not a directory:", name);
	if (!S_ISREG(status.st_mode))
		return refuse_file(origin, error, EINVAL, "a policy must be a regular file:", name);
	rc = text_read_all(&file.bytes, fd, JSON_MAX_BYTES);
	if (rc == -EFBIG)
		return refuse_file(origin, error, EFBIG, "a policy may not be larger than 1 MiB:", name);
	if (rc < 0)
		return refuse_access(origin, error, -rc, "cannot read the policy file", name);
	rc = find_directory(path, &file.directory);
	if (rc < 0)
		return refuse_file(origin, error, -rc, "cannot find the directory of the policy file", name);
	file.device = status.st_dev;
	file.inode = status.st_ino;
	*out = file;
	file = (struct policy_file){0};
	return 0;
}

/* `belljar policy show` prints the patterns of `hide_secrets`. A file may repeat that list, but not change it. */
static int take_secret_globs(struct json_value *document, const char *name, struct error *error)
{
	struct json_member *member = document->object.members;
	size_t i = 0;

	while (i < document->object.count && strcmp(member->name, SECRET_GLOBS_MEMBER) != 0)
		member = &document->object.members[++i];
	if (i == document->object.count)
		return 0;
	if (!policy_secret_files_are(&member->value)) {
		error_set(error, STAGE_POLICY, 0,
			  "%s:%u:%u: '%s' shows what `hide_secrets` hides, and cannot change it", name, member->line,
			  member->column, member->name);
		return error_hint(error, "take it out, and put further patterns into `hide`");
	}
	free(member->name);
	json_value_done(&member->value);
	document->object.count--;
	memmove(member, member + 1, (document->object.count - i) * sizeof(*member));
	return 0;
}

int policy_document_parse(const char *bytes, size_t len, const char *name, struct json_value *out, struct error *error)
{
	struct json_input input = {.name = name, .bytes = bytes, .len = len, .stage = STAGE_POLICY};
	AUTO_JSON value = {0};
	int rc = json_parse(&input, &value, error);

	if (rc < 0)
		return rc;
	if (value.type != JSON_OBJECT)
		return error_set(error, STAGE_POLICY, 0, "%s:%u:%u: a policy must be an object, not %s", name,
				 value.line, value.column, json_type_name(value.type));
	rc = policy_musts_take(&value, name, NULL, error);
	if (rc == 0)
		rc = take_secret_globs(&value, name, error);
	if (rc < 0)
		return rc;
	*out = value;
	value = (struct json_value){0};
	return 0;
}

int policy_document_key(const struct json_member *member, const struct policy_source *source,
			const struct policy_key **out)
{
	const struct policy_key *key = policy_key_by_name(member->name);
	struct suggestion suggestion = {.word = member->name};
	AUTO_TEXT place = {0};

	if (key) {
		*out = key;
		return 0;
	}
	for (size_t i = 0; i < policy_key_count; i++)
		suggest_consider(&suggestion, policy_keys[i].name);
	policy_append_place(&place, source, member->line, member->column);
	if (suggestion.best)
		return error_set(source->error, STAGE_POLICY, 0, "%sunknown key '%.100s' (did you mean '%s'?)",
				 text_string(&place), member->name, suggestion.best);
	return error_set(source->error, STAGE_POLICY, 0, "%sunknown key '%.100s'", text_string(&place), member->name);
}

int policy_document_apply_member(struct policy *policy, const struct policy_key *key, const struct json_member *member,
				 bool is_append, const struct policy_source *source)
{
	struct policy_origin origin = {
		.source = source,
		.key = key,
		.line = member->value.line,
		.column = member->value.column,
	};
	int rc = policy_set_json(policy, &member->value, is_append, &origin);

	if (rc == 0)
		policy->given_keys |= UINT64_C(1) << (key - policy_keys);
	if (rc == 0 && !is_append)
		policy->replaced_keys |= UINT64_C(1) << (key - policy_keys);
	return rc;
}

int policy_document_apply(struct policy *policy, const struct json_value *document, bool is_append,
			  const struct policy_source *source)
{
	for (size_t i = 0; i < document->object.count; i++) {
		const struct json_member *member = &document->object.members[i];
		const struct policy_key *key = NULL;
		int rc = policy_document_key(member, source, &key);

		if (rc == 0)
			rc = policy_document_apply_member(policy, key, member, is_append, source);
		if (rc < 0)
			return rc;
	}
	/* A document that names hosts or sets `ask` gets net = gate, unless it sets `net` itself. */
	if (policy->net == NET_NONE && !json_find(document, "net") &&
	    ((policy->allow_net.count && json_find(document, "allow_net")) ||
	     (policy->ask == ASK_NET && json_find(document, "ask"))))
		policy->net = NET_GATE;
	/* A document that names a workspace gets a layer, unless it sets `workspace` itself. */
	if (policy->workspace_name && json_find(document, "workspace_name") && !json_find(document, "workspace"))
		policy->workspace = WORKSPACE_COW;
	return 0;
}
