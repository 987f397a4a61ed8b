/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/policy_build.c - make a policy: preset, then file, then flags
 *
 * A document starts from what it `extends`, which may be a file that extends another. The chain is followed by
 * recursion, outermost document first; its depth is bounded and no file may occur in it twice.
 */
#include "policy/policy_build.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/suggest.h"
#include "policy/policy_document.h"
#include "policy/policy_lists.h"
#include "policy/policy_paths.h"
#include "policy/policy_presets.h"
#include "policy/policy_value.h"

#define MAX_EXTENDS_DEPTH 8

/* A file being loaded, and the one that extends it. */
struct load_frame {
	const struct load_frame *outer;
	const struct policy_file *file;
};

static bool is_file_name(const char *name)
{
	size_t len = strlen(name), suffix_len = strlen(".json");

	return strchr(name, '/') || (len >= suffix_len && strcmp(name + len - suffix_len, ".json") == 0);
}

static struct policy_source source_of(const char *name, const char *directory, const struct policy_context *context,
				      struct error *error)
{
	return (struct policy_source){.name = name, .directory = directory, .home = context->home, .error = error};
}

static int apply_preset(struct policy *policy, const char *name, const struct policy_context *context,
			struct error *error)
{
	const char *document = policy_preset_document(name);
	struct policy_source source = source_of(name, "/", context, error);
	AUTO_JSON root = {0};
	int rc = policy_document_parse(document, strlen(document), name, &root, error);

	return rc < 0 ? rc : policy_document_apply(policy, &root, false, &source);
}

/* Add the private home, which depends on the caller, unlike the other private places. */
static int add_private_home(struct policy *policy, const struct policy_context *context, struct error *error)
{
	struct policy_source source = source_of("HOME", "/", context, error);
	struct policy_origin origin = {.source = &source, .key = policy_key_by_name("tmpfs"), .line = 1, .column = 1};
	AUTO_FREE char *home = NULL;
	int rc;

	if (!context->home)
		return 0;
	rc = policy_clean_path(context->home, PATH_DEST, &origin, &home);
	if (rc < 0)
		return rc;
	if (strcmp(home, "/") == 0)
		return 0;
	rc = policy_add_tmpfs(policy, home, LIMIT_NONE);
	return rc < 0 ? policy_refuse_errno(&origin, rc) : 0;
}

int policy_init(struct policy *policy, const struct policy_context *context, struct error *error)
{
	AUTO(policy_done) struct policy made = {0};
	int rc = apply_preset(&made, POLICY_PRESET_AGENT, context, error);

	if (rc == 0)
		rc = add_private_home(&made, context, error);
	if (rc < 0)
		return rc;
	made.given_keys = made.replaced_keys = 0;
	*policy = made;
	made = (struct policy){0};
	return 0;
}

int policy_init_from(struct policy *policy, const struct policy *agent, const struct policy_context *context,
		     struct error *error)
{
	AUTO(policy_done) struct policy made = {0};
	int rc = policy_copy(agent, &made);

	if (rc < 0)
		return error_set(error, STAGE_POLICY, -rc, "no memory for the policy");
	rc = add_private_home(&made, context, error);
	if (rc < 0)
		return rc;
	made.given_keys = made.replaced_keys = 0;
	*policy = made;
	made = (struct policy){0};
	return 0;
}

static int refuse_preset(const char *name, const struct policy_origin *origin, struct error *error)
{
	const char *near = suggest_from(name, policy_preset_names);
	AUTO_TEXT message = {0};

	if (origin) {
		policy_append_place(&message, origin->source, origin->line, origin->column);
		text_append_string(&message, "extends: ");
	}
	text_append_format(&message, "there is no preset '%.100s'", name);
	if (near)
		text_append_format(&message, " (did you mean '%s'?)", near);
	error_set(error, STAGE_POLICY, 0, "%s", text_string(&message));
	return error_hint(error,
			  "presets are agent, readonly and strict; a file has a '/' in its name or ends in .json");
}

static int make_preset(struct policy *out, const char *name, const struct policy_origin *origin,
		       const struct policy_context *context, struct error *error)
{
	AUTO(policy_done) struct policy made = {0};
	int rc;

	if (!policy_preset_document(name))
		return refuse_preset(name, origin, error);
	rc = policy_init(&made, context, error);
	if (rc == 0 && strcmp(name, POLICY_PRESET_AGENT) != 0)
		rc = apply_preset(&made, name, context, error);
	if (rc < 0)
		return rc;
	*out = made;
	made = (struct policy){0};
	return 0;
}

static int make_named(struct policy *out, const char *name, const struct policy_origin *origin,
		      const struct load_frame *outer, const struct policy_context *context);

/* Make the policy that a document starts from. */
static int make_base(struct policy *out, const struct json_value *document, const struct policy_source *source,
		     const struct load_frame *frame, const struct policy_context *context)
{
	const struct json_member *extends = json_find(document, "extends");
	struct policy_origin origin = {.source = source, .key = policy_key_by_name("extends")};

	if (!extends)
		return policy_init(out, context, source->error);
	origin.line = extends->value.line;
	origin.column = extends->value.column;
	if (extends->value.type != JSON_STRING)
		return policy_set_json(out, &extends->value, false, &origin);
	return make_named(out, extends->value.string.bytes, &origin, frame, context);
}

static int make_from_value(struct policy *out, const struct json_value *document, const struct policy_source *source,
			   const struct load_frame *frame, const struct policy_context *context)
{
	AUTO(policy_done) struct policy made = {0};
	int rc = make_base(&made, document, source, frame, context);

	if (rc == 0)
		rc = policy_document_apply(&made, document, false, source);
	if (rc < 0)
		return rc;
	*out = made;
	made = (struct policy){0};
	return 0;
}

static int make_from_document(struct policy *out, const char *bytes, size_t len, const struct policy_source *source,
			      const struct load_frame *frame, const struct policy_context *context)
{
	AUTO_JSON document = {0};
	int rc = policy_document_parse(bytes, len, source->name, &document, source->error);

	return rc < 0 ? rc : make_from_value(out, &document, source, frame, context);
}

static int check_chain(const struct policy_file *file, const struct policy_origin *origin,
		       const struct load_frame *outer)
{
	int depth = 1;

	for (; outer; outer = outer->outer, depth++) {
		if (outer->file && outer->file->device == file->device && outer->file->inode == file->inode)
			return policy_refuse(origin, NULL, "these files extend each other in a circle");
	}
	if (depth > MAX_EXTENDS_DEPTH)
		return policy_refuse(origin, NULL, "more than %d files extend one another", MAX_EXTENDS_DEPTH);
	return 0;
}

static int make_from_file(struct policy *out, const char *path, const char *name, const struct policy_origin *origin,
			  const struct load_frame *outer, const struct policy_context *context, struct error *error)
{
	AUTO_POLICY_FILE file = {0};
	struct load_frame frame = {.outer = outer, .file = &file};
	struct policy_source source;
	int rc = policy_file_read(path, name, origin, &file, error);

	if (rc == 0 && outer)
		rc = check_chain(&file, origin, outer);
	if (rc < 0)
		return rc;
	source = source_of(name, file.directory, context, error);
	rc = make_from_document(out, text_string(&file.bytes), file.bytes.len, &source, &frame, context);
	if (rc == 0 && string_list_add(&out->files, path) < 0) {
		policy_done(out);
		rc = error_set(error, STAGE_POLICY, ENOMEM, "no memory for the policy");
	}
	return rc;
}

/* Make the preset or file that the `extends` at @origin names. */
static int make_named(struct policy *out, const char *name, const struct policy_origin *origin,
		      const struct load_frame *outer, const struct policy_context *context)
{
	AUTO_FREE char *path = NULL;
	int rc;

	if (!is_file_name(name))
		return make_preset(out, name, origin, context, origin->source->error);
	rc = policy_clean_path(name, PATH_HOST, origin, &path);
	if (rc < 0)
		return rc;
	return make_from_file(out, path, path, origin, outer, context, origin->source->error);
}

static void replace(struct policy *policy, struct policy *made)
{
	policy_done(policy);
	*policy = *made;
	*made = (struct policy){0};
}

int policy_load(struct policy *policy, const char *file_or_preset, const struct policy_context *context,
		struct error *error)
{
	AUTO(policy_done) struct policy made = {0};
	AUTO_FREE char *path = NULL;
	int rc;

	if (is_file_name(file_or_preset)) {
		rc = policy_file_path(file_or_preset, context, &path, error);
		if (rc == 0)
			rc = make_from_file(&made, path, file_or_preset, NULL, NULL, context, error);
	} else {
		rc = make_preset(&made, file_or_preset, NULL, context, error);
	}
	if (rc == 0)
		replace(policy, &made);
	return rc;
}

int policy_load_document(struct policy *policy, const char *document, size_t len, const char *name,
			 const char *directory, const struct policy_context *context, struct error *error)
{
	AUTO(policy_done) struct policy made = {0};
	struct policy_source source = source_of(name, directory, context, error);
	struct load_frame frame = {0};
	int rc = make_from_document(&made, document, len, &source, &frame, context);

	if (rc == 0)
		replace(policy, &made);
	return rc;
}

int policy_load_value(struct policy *policy, const struct json_value *value, const char *directory,
		      const struct policy_context *context, struct error *error)
{
	AUTO(policy_done) struct policy made = {0};
	struct policy_source source = source_of("policy", directory, context, error);
	struct load_frame frame = {0};
	int rc;

	source.is_from_program = true;
	rc = make_from_value(&made, value, &source, &frame, context);
	if (rc == 0)
		replace(policy, &made);
	return rc;
}

static int append(struct policy *policy, const struct json_value *value, const struct policy_source *source)
{
	AUTO(policy_done) struct policy made = {0};
	const struct json_member *extends = json_find(value, "extends");
	AUTO_TEXT place = {0};
	int rc;

	if (extends) {
		policy_append_place(&place, source, extends->line, extends->column);
		return error_set(source->error, STAGE_POLICY, 0, "%sextends: only a policy file can have it",
				 text_string(&place));
	}
	rc = policy_copy(policy, &made);
	if (rc < 0)
		return error_set(source->error, STAGE_POLICY, -rc, "no memory for the policy");
	rc = policy_document_apply(&made, value, true, source);
	if (rc == 0)
		replace(policy, &made);
	return rc;
}

int policy_append_document(struct policy *policy, const char *document, size_t len, const char *name,
			   const char *directory, const struct policy_context *context, struct error *error)
{
	struct policy_source source = source_of(name, directory, context, error);
	AUTO_JSON root = {0};
	int rc = policy_document_parse(document, len, name, &root, error);

	return rc < 0 ? rc : append(policy, &root, &source);
}

int policy_append_value(struct policy *policy, const struct json_value *value, const struct policy_context *context,
			struct error *error)
{
	struct policy_source source = source_of("keys", context->current_directory, context, error);

	source.is_from_program = true;
	return append(policy, value, &source);
}

int policy_set_flag(struct policy *policy, const struct policy_key *key, const char *value, bool is_negated,
		    const struct policy_context *context, struct error *error)
{
	struct policy_source source = source_of(NULL, context->current_directory, context, error);
	struct policy_origin origin = {.source = &source, .key = key, .is_negated = is_negated};
	int rc;

	if (!key->flag)
		return error_set(error, STAGE_USAGE, 0, "only a policy file can say '%s'", key->name);
	if (is_negated && !policy_key_is_switch(key))
		return policy_refuse(&origin, NULL, "only switches have a --no- form");
	if (!value && !policy_key_is_switch(key))
		return policy_refuse(&origin, NULL, "needs a value: %s", key->placeholder);
	rc = policy_set_text(policy, value, &origin);
	if (rc == 0 && policy->net == NET_NONE &&
	    (key->type == POLICY_RULES || (key->offset == offsetof(struct policy, ask) && policy->ask == ASK_NET)))
		policy->net = NET_GATE;
	if (rc == 0 && key->offset == offsetof(struct policy, workspace_name))
		policy->workspace = WORKSPACE_COW;
	if (rc == 0)
		policy->given_keys |= UINT64_C(1) << (key - policy_keys);
	return rc;
}

bool policy_is_replaced(const struct policy *policy, const char *key_name)
{
	const struct policy_key *key = policy_key_by_name(key_name);

	return key && (policy->replaced_keys >> (key - policy_keys) & 1);
}

bool policy_is_given(const struct policy *policy, const char *key_name)
{
	const struct policy_key *key = policy_key_by_name(key_name);

	assert(key);
	return policy->given_keys >> (key - policy_keys) & 1;
}
