/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_meta.c - read and write meta.json
 *
 * Only this program writes the file, in a directory that only its owner can enter. The parser treats it as untrusted
 * all the same, because it decides what is removed, and where changes are applied. Paths may hold any byte, so bytes
 * that are not UTF-8 are escaped as lone surrogates.
 */
#include "workspace/workspace_meta.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json_read.h"
#include "base/json_write.h"

#define META_VERSION 1

static const char consonants[] = "bdfghjklmnprstvz";
static const char vowels[] = "aiou";

void workspace_meta_done(struct workspace_meta *meta)
{
	if (!meta)
		return;
	free(meta->name);
	free(meta->workdir);
	free(meta->place);
	free(meta->note);
	string_list_done(&meta->layers);
	*meta = (struct workspace_meta){0};
}

/* Five letters for 16 bits: consonants have four of them, vowels two. */
static void make_word(uint32_t bits, char *out)
{
	out[0] = consonants[bits >> 12 & 15];
	out[1] = vowels[bits >> 10 & 3];
	out[2] = consonants[bits >> 6 & 15];
	out[3] = vowels[bits >> 4 & 3];
	out[4] = consonants[bits & 15];
}

void workspace_id_make(uint32_t bits, char out[WORKSPACE_ID_SIZE])
{
	make_word(bits >> 16, out);
	out[5] = '-';
	make_word(bits & 0xffff, out + 6);
	out[11] = '\0';
}

bool workspace_id_is_valid(const char *id)
{
	if (strlen(id) != WORKSPACE_ID_SIZE - 1 || id[5] != '-')
		return false;
	for (size_t i = 0; id[i]; i++) {
		size_t at = i < 5 ? i : i - 6;

		if (i != 5 && !strchr(at % 2 ? vowels : consonants, id[i]))
			return false;
	}
	return true;
}

bool workspace_name_is_valid(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t len = strnlen(name, WORKSPACE_NAME_MAX + 1);

	return len && len <= WORKSPACE_NAME_MAX && strspn(name, letters) == len && !strchr("._-", name[0]) &&
	       !workspace_id_is_valid(name);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

struct reading {
	const struct json_value *object;
	struct error *error;
	const char *id;
	size_t seen;
	int rc;
};

static void refuse(struct reading *reading, const char *name)
{
	if (reading->rc == 0)
		reading->rc = error_set(reading->error, STAGE_FILES, EBADMSG,
					"the workspace '%s' is damaged: '%s' in its meta.json is missing or wrong",
					reading->id, name);
}

static const struct json_value *member(struct reading *reading, const char *name, enum json_type type, bool may_be_null)
{
	const struct json_member *found = json_find(reading->object, name);

	if (found)
		reading->seen++;
	if (found && found->value.type == type)
		return &found->value;
	if (!found || !may_be_null || found->value.type != JSON_NULL)
		refuse(reading, name);
	return NULL;
}

static char *read_string(struct reading *reading, const char *name, bool may_be_null)
{
	const struct json_value *value = member(reading, name, JSON_STRING, may_be_null);
	char *copy = value ? strdup(value->string.bytes) : NULL;

	if (value && !copy)
		refuse(reading, name);
	return copy;
}

static int64_t read_number(struct reading *reading, const char *name)
{
	const struct json_value *value = member(reading, name, JSON_INTEGER, false);

	if (value && value->number.integer < 0)
		refuse(reading, name);
	return value ? value->number.integer : 0;
}

/* Numbers of devices and inodes use all 64 bits: they are written as text. */
static uint64_t read_wide(struct reading *reading, const char *name)
{
	AUTO_FREE char *digits = read_string(reading, name, false);
	char *rest = NULL;
	uint64_t number;

	errno = 0;
	number = digits && digits[0] >= '0' && digits[0] <= '9' ? strtoull(digits, &rest, 10) : 0;
	if (!rest || *rest || errno)
		refuse(reading, name);
	return number;
}

static void read_layers(struct reading *reading, struct workspace_meta *meta)
{
	const struct json_value *list = member(reading, "layers", JSON_LIST, false);

	if (list && list->list.count > WORKSPACE_LAYERS_MAX)
		refuse(reading, "layers");
	for (size_t i = 0; list && reading->rc == 0 && i < list->list.count; i++) {
		const struct json_value *item = &list->list.items[i];

		if (item->type != JSON_STRING || !workspace_id_is_valid(item->string.bytes) ||
		    !strcmp(item->string.bytes, reading->id) || string_list_add(&meta->layers, item->string.bytes) < 0)
			refuse(reading, "layers");
	}
}

static void read_kind(struct reading *reading, struct workspace_meta *meta)
{
	AUTO_FREE char *kind = read_string(reading, "kind", false);

	if (!kind || (strcmp(kind, "overlay") != 0 && strcmp(kind, "copy") != 0))
		refuse(reading, "kind");
	else
		meta->kind = strcmp(kind, "copy") == 0 ? WORKSPACE_COPY : WORKSPACE_OVERLAY;
}

static void read_members(struct reading *reading, struct workspace_meta *meta)
{
	const struct json_value *flag;
	AUTO_FREE char *id = read_string(reading, "id", false);

	if (!id || strcmp(id, reading->id) != 0)
		refuse(reading, "id");
	else
		memcpy(meta->id, id, WORKSPACE_ID_SIZE);
	if (read_number(reading, "version") != META_VERSION)
		refuse(reading, "version");
	meta->name = read_string(reading, "name", true);
	if (meta->name && !workspace_name_is_valid(meta->name))
		refuse(reading, "name");
	read_kind(reading, meta);
	meta->workdir = read_string(reading, "workdir", false);
	if (meta->workdir && meta->workdir[0] != '/')
		refuse(reading, "workdir");
	meta->workdir_device = (dev_t)read_wide(reading, "workdir_device");
	meta->workdir_inode = (ino_t)read_wide(reading, "workdir_inode");
	meta->created_ns = read_number(reading, "created_ns");
	meta->stamp_ns = read_number(reading, "stamp_ns");
	meta->copied_ns = read_number(reading, "copied_ns");
	meta->place = read_string(reading, "place", true);
	if (meta->place && meta->place[0] != '/')
		refuse(reading, "place");
	flag = member(reading, "user_xattrs", JSON_BOOL, false);
	meta->has_user_xattrs = flag && flag->boolean;
	flag = member(reading, "frozen", JSON_BOOL, false);
	meta->is_frozen = flag && flag->boolean;
	meta->note = read_string(reading, "note", true);
	read_layers(reading, meta);
}

int workspace_meta_parse(struct workspace_meta *out, const char *id, const char *bytes, size_t len, struct error *error)
{
	const struct json_input input = {
		.name = "meta.json",
		.bytes = bytes,
		.len = len,
		.stage = STAGE_FILES,
		.max_bytes = WORKSPACE_META_BYTES_MAX,
		.has_byte_escapes = true,
	};
	AUTO(workspace_meta_done) struct workspace_meta meta = {0};
	AUTO_JSON value = {0};
	struct reading reading = {.object = &value, .error = error, .id = id};

	if (json_parse(&input, &value, error) < 0 || value.type != JSON_OBJECT)
		return error_set(error, STAGE_FILES, EBADMSG,
				 "the workspace '%s' is damaged: its meta.json is not an object", id);
	read_members(&reading, &meta);
	if (reading.rc == 0 && reading.seen != value.object.count)
		refuse(&reading, "a name that is not known");
	if (reading.rc < 0)
		return reading.rc;
	*out = meta;
	meta = (struct workspace_meta){0};
	return 0;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static void write_wide(struct json_writer *json, const char *name, uint64_t number)
{
	char digits[32];

	snprintf(digits, sizeof(digits), "%llu", (unsigned long long)number);
	json_write_string(json, name, digits);
}

void workspace_meta_print(const struct workspace_meta *meta, struct text *out)
{
	struct json_writer json = {.text = out, .indent = 2, .has_byte_escapes = true};

	json_open_object(&json, NULL);
	json_write_unsigned(&json, "version", META_VERSION);
	json_write_string(&json, "id", meta->id);
	json_write_string(&json, "name", meta->name);
	json_write_string(&json, "kind", meta->kind == WORKSPACE_COPY ? "copy" : "overlay");
	json_write_string(&json, "workdir", meta->workdir);
	write_wide(&json, "workdir_device", (uint64_t)meta->workdir_device);
	write_wide(&json, "workdir_inode", (uint64_t)meta->workdir_inode);
	json_write_integer(&json, "created_ns", meta->created_ns);
	json_write_integer(&json, "stamp_ns", meta->stamp_ns);
	json_write_integer(&json, "copied_ns", meta->copied_ns);
	json_write_string(&json, "place", meta->place);
	json_write_bool(&json, "user_xattrs", meta->has_user_xattrs);
	json_write_bool(&json, "frozen", meta->is_frozen);
	json_write_string(&json, "note", meta->note);
	json_open_array(&json, "layers");
	for (size_t i = 0; i < meta->layers.count; i++)
		json_write_string(&json, NULL, meta->layers.items[i]);
	json_close_array(&json);
	json_close_object(&json);
	text_append_char(out, '\n');
}
