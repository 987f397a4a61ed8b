/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace/workspace_patch.c - changes as a patch that `git apply` takes, as counts of lines, and as JSON
 *
 * Binary files are literal: base 85 of a zlib stream whose blocks are stored, not compressed. That is all a reader
 * needs, and a compressor is more than this is worth. The names of blobs are whole: git checks a binary file by them,
 * and `git apply --3way` finds the version that both sides began with.
 */
#include "workspace/workspace_patch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/json_write.h"
#include "workspace/workspace_base.h"
#include "workspace/workspace_digest.h"
#include "workspace/workspace_lines.h"

#define NO_BLOB "0000000000000000000000000000000000000000"
#define LOOK_BYTES 8000 /* git looks for a NUL in this many */
#define STORED_MAX 65535
#define BINARY_LINE 52
#define BLOCK 65536

/* --- one side of a change ----------------------------------------------------------------------------------------- */

struct side {
	mode_t mode;
	uint64_t size;
	struct text content; /* empty if it is too large */
	bool is_read;
	bool is_binary;
	char blob[DIGEST_SHA1_HEX];
};

static void side_done(struct side *side)
{
	text_done(&side->content);
}

static int open_side(const struct workspace_view *view, const struct change *change, bool is_new, int *parent_out,
		     const char **name_out)
{
	int top = is_new ? view->fds[change->layer] : workspace_view_workdir(view);

	*parent_out =
		workspace_view_open_parent(top, is_new ? workspace_change_layer_path(change) : change->path, name_out);
	return *parent_out < 0 ? *parent_out
			       : openat(*parent_out, *name_out, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

static int read_content(struct side *side, int fd)
{
	while (side->content.len < side->size) {
		size_t want = (size_t)MIN_OF(side->size - side->content.len, (uint64_t)BLOCK);
		char *room = text_reserve(&side->content, want);
		ssize_t count = room ? read(fd, room, want) : -1;

		if (!room)
			return -ENOMEM;
		if (count < 0)
			return -errno;
		if (!count)
			break;
		side->content.len += (size_t)count;
	}
	side->size = side->content.len;
	return 0;
}

static int name_side(struct side *side)
{
	struct digest digest;
	char head[32];
	int len = snprintf(head, sizeof(head), "blob %zu", side->content.len);

	workspace_digest_init_sha1(&digest);
	workspace_digest_add(&digest, head, (size_t)len + 1);
	workspace_digest_add(&digest, text_string(&side->content), side->content.len);
	workspace_digest_hex(&digest, side->blob);
	side->is_read = true;
	return text_failed(&side->content) ? -ENOMEM : 0;
}

static int read_side(const struct workspace_view *view, const struct change *change, bool is_new, struct side *side)
{
	const struct change_side *from = is_new ? &change->after : &change->before;
	const char *name = NULL;
	AUTO_CLOSE int parent = -1;
	AUTO_CLOSE int fd = -1;
	int rc = 0;

	*side = (struct side){.mode = from->mode, .size = from->size, .blob = NO_BLOB};
	if (!S_ISREG(from->mode) && !S_ISLNK(from->mode))
		return 0;
	fd = open_side(view, change, is_new, &parent, &name);
	if (S_ISLNK(from->mode)) {
		char target[WORKSPACE_LINK_MAX];
		ssize_t len = parent < 0 ? -1 : readlinkat(parent, name, target, sizeof(target));

		if (len < 0)
			return -errno;
		text_append(&side->content, target, (size_t)len);
		side->size = (uint64_t)len;
	} else {
		side->is_binary = from->size > PATCH_TEXT_BYTES;
		if (from->size > PATCH_BINARY_BYTES)
			return 0;
		if (fd < 0)
			return -errno;
		rc = read_content(side, fd);
		if (side->content.len &&
		    memchr(side->content.data, '\0', MIN_OF(side->content.len, (size_t)LOOK_BYTES)))
			side->is_binary = true;
	}
	return rc < 0 ? rc : name_side(side);
}

static int read_old(const struct workspace_view *view, const struct workspace *workspace, const struct change *change,
		    struct side *side)
{
	struct stat status;
	AUTO_CLOSE int fd =
		change->flags & CHANGE_IS_CONFLICT ? workspace_base_open(workspace, change->path, &status) : -1;
	int rc;

	if (fd < 0)
		return read_side(view, change, false, side);
	*side = (struct side){.mode = status.st_mode, .size = (uint64_t)status.st_size};
	rc = read_content(side, fd);
	return rc < 0 ? rc : name_side(side);
}

/* --- names -------------------------------------------------------------------------------------------------------- */

void workspace_patch_quote(struct text *out, const char *prefix, const char *name)
{
	bool is_plain = true;

	for (const char *at = name; *at; at++)
		if ((unsigned char)*at < 0x20 || (unsigned char)*at >= 0x7f || *at == '"' || *at == '\\')
			is_plain = false;
	if (is_plain) {
		text_append_format(out, "%s%s", prefix, name);
		return;
	}
	text_append_format(out, "\"%s", prefix);
	for (const char *at = name; *at; at++) {
		unsigned char byte = (unsigned char)*at;

		if (byte == '"' || byte == '\\')
			text_append_format(out, "\\%c", byte);
		else if (byte < 0x20 || byte >= 0x7f)
			text_append_format(out, "\\%03o", byte);
		else
			text_append_char(out, (char)byte);
	}
	text_append_char(out, '"');
}

/* git knows three kinds of files, and nothing of directories. */
static unsigned git_mode(mode_t mode)
{
	if (S_ISLNK(mode))
		return 0120000;
	if (S_ISREG(mode))
		return mode & 0100 ? 0100755 : 0100644;
	return 0;
}

/* --- binary ------------------------------------------------------------------------------------------------------- */

/* A zlib stream of stored blocks. */
static void deflate_stored(struct text *out, const char *bytes, size_t len)
{
	uint32_t a = 1, b = 0;

	text_append(out, "\x78\x01", 2);
	for (size_t at = 0; at < len || at == 0; at += STORED_MAX) {
		size_t count = MIN_OF(len - at, (size_t)STORED_MAX);
		const unsigned char head[5] = {at + count >= len, (unsigned char)count, (unsigned char)(count >> 8),
					       (unsigned char)~count, (unsigned char)(~count >> 8)};

		text_append(out, head, sizeof(head));
		text_append(out, bytes + at, count);
		if (!len)
			break;
	}
	for (size_t i = 0; i < len; i++) {
		a = (a + (unsigned char)bytes[i]) % 65521;
		b = (b + a) % 65521;
	}
	b = b << 16 | a;
	text_append(out,
		    (const unsigned char[]){(unsigned char)(b >> 24), (unsigned char)(b >> 16), (unsigned char)(b >> 8),
					    (unsigned char)b},
		    4);
}

static void print_base85(struct text *out, const unsigned char *bytes, size_t len)
{
	static const char letters[] =
		"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

	for (size_t at = 0; at < len; at += 4) {
		uint32_t word = 0;
		char five[5];

		for (size_t i = 0; i < 4; i++)
			word = word << 8 | (at + i < len ? bytes[at + i] : 0);
		for (int i = 4; i >= 0; i--) {
			five[i] = letters[word % 85];
			word /= 85;
		}
		text_append(out, five, sizeof(five));
	}
}

static void print_literal(struct text *out, const struct side *side)
{
	AUTO_TEXT packed = {0};

	deflate_stored(&packed, text_string(&side->content), side->content.len);
	out->has_failed |= packed.has_failed;
	text_append_format(out, "literal %zu\n", side->content.len);
	for (size_t at = 0; at < packed.len; at += BINARY_LINE) {
		size_t count = MIN_OF(packed.len - at, (size_t)BINARY_LINE);

		text_append_char(out, (char)(count <= 26 ? 'A' + count - 1 : 'a' + count - 27));
		print_base85(out, (const unsigned char *)packed.data + at, count);
		text_append_char(out, '\n');
	}
	text_append_char(out, '\n');
}

/* --- a patch ------------------------------------------------------------------------------------------------------ */

/* The line before a hunk; a name with a space in it is ended by a tab, as git does. */
static void print_file_line(struct text *out, const char *mark, const char *prefix, const char *path, bool is_there)
{
	text_append_string(out, mark);
	if (is_there)
		workspace_patch_quote(out, prefix, path);
	else
		text_append_string(out, "/dev/null");
	if (is_there && strchr(path, ' '))
		text_append_char(out, '\t');
	text_append_char(out, '\n');
}

static void print_head(struct text *out, const char *old_path, const char *new_path, const struct side *old,
		       const struct side *new)
{
	unsigned old_mode = git_mode(old->mode), new_mode = git_mode(new->mode);

	text_append_string(out, "diff --git ");
	workspace_patch_quote(out, "a/", old_path);
	text_append_char(out, ' ');
	workspace_patch_quote(out, "b/", new_path);
	text_append_char(out, '\n');
	if (!old_mode) {
		text_append_format(out, "new file mode %o\n", new_mode);
	} else if (!new_mode) {
		text_append_format(out, "deleted file mode %o\n", old_mode);
	} else if (old_mode != new_mode) {
		text_append_format(out, "old mode %o\nnew mode %o\n", old_mode, new_mode);
	}
	if (old_path != new_path) {
		text_append_string(out, "similarity index 100%\nrename from ");
		workspace_patch_quote(out, "", old_path);
		text_append_string(out, "\nrename to ");
		workspace_patch_quote(out, "", new_path);
		text_append_char(out, '\n');
	}
}

static int print_one(struct text *out, const char *path, const struct side *old, const struct side *new)
{
	bool is_same = old->is_read && new->is_read && !strcmp(old->blob, new->blob);
	unsigned old_mode = git_mode(old->mode), new_mode = git_mode(new->mode);

	if (is_same && old_mode == new_mode)
		return 0; /* permissions that git has no word for */
	print_head(out, path, path, old, new);
	if (is_same)
		return 0;
	if ((old_mode && !old->is_read) || (new_mode && !new->is_read)) {
		text_append_string(out, "Binary files ");
		workspace_patch_quote(out, "a/", path);
		text_append_string(out, " and ");
		workspace_patch_quote(out, "b/", path);
		text_append_string(out, " differ\n");
		return 0;
	}
	text_append_format(out, "index %s..%s", old->blob, new->blob);
	if (old_mode == new_mode)
		text_append_format(out, " %o", old_mode);
	text_append_char(out, '\n');
	if (old->is_binary || new->is_binary) {
		text_append_string(out, "GIT binary patch\n");
		print_literal(out, new);
		print_literal(out, old);
		return 0;
	}
	if (!old->content.len && !new->content.len)
		return 0;
	print_file_line(out, "--- ", "a/", path, old_mode);
	print_file_line(out, "+++ ", "b/", path, new_mode);
	return workspace_lines_print(text_string(&old->content), old->content.len, text_string(&new->content),
				     new->content.len, out);
}

int workspace_patch_print(const struct workspace_view *view, const struct workspace *workspace,
			  const struct change *change, struct text *out)
{
	AUTO(side_done) struct side old = {0};
	AUTO(side_done) struct side new = {0};
	const struct side none = {.blob = NO_BLOB};
	unsigned old_mode = git_mode(change->before.mode), new_mode = git_mode(change->after.mode);
	int rc;

	/* A rename is written once, where the file is now. */
	if (change->from) {
		if (change->kind == CHANGE_DELETED)
			return 0;
		old.mode = change->from->before.mode;
		new.mode = change->after.mode;
		print_head(out, change->from->path, change->path, &old, &new);
		return text_failed(out) ? -ENOMEM : 0;
	}
	if (!old_mode && !new_mode)
		return 0;
	rc = read_old(view, workspace, change, &old);
	if (rc == 0)
		rc = read_side(view, change, true, &new);
	if (rc < 0)
		return rc;
	/* A link that became a file is another file. */
	if (old_mode && new_mode && S_ISLNK(old.mode) != S_ISLNK(new.mode)) {
		rc = print_one(out, change->path, &old, &none);
		return rc == 0 ? print_one(out, change->path, &none, &new) : rc;
	}
	rc = print_one(out, change->path, old_mode ? &old : &none, new_mode ? &new : &none);
	return rc == 0 && text_failed(out) ? -ENOMEM : rc;
}

int workspace_patch_count(const struct workspace_view *view, const struct workspace *workspace,
			  const struct change *change, struct patch_count *out)
{
	AUTO(side_done) struct side old = {0};
	AUTO(side_done) struct side new = {0};
	int rc;

	*out = (struct patch_count){0};
	if (change->from)
		return 0;
	rc = read_old(view, workspace, change, &old);
	if (rc == 0)
		rc = read_side(view, change, true, &new);
	if (rc < 0)
		return rc;
	out->is_binary = old.is_binary || new.is_binary;
	if (out->is_binary)
		return 0;
	return workspace_lines_count(text_string(&old.content), old.content.len, text_string(&new.content),
				     new.content.len, &out->added, &out->removed);
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

static const char *type_name(mode_t mode)
{
	if (S_ISREG(mode))
		return "file";
	if (S_ISDIR(mode))
		return "directory";
	if (S_ISLNK(mode))
		return "link";
	if (S_ISFIFO(mode))
		return "fifo";
	return S_ISSOCK(mode) ? "socket" : "device";
}

/* The digest of a file, or of a link's text; NULL: it cannot be had. */
static const char *digest_side(const struct workspace_view *view, const struct change *change, bool is_new,
			       char hex[DIGEST_SHA256_HEX])
{
	const struct change_side *from = is_new ? &change->after : &change->before;
	const char *name = NULL;
	AUTO_CLOSE int parent = -1;
	AUTO_CLOSE int fd = open_side(view, change, is_new, &parent, &name);
	AUTO_FREE char *block = malloc(BLOCK);
	struct digest digest;
	ssize_t count;

	workspace_digest_init_sha256(&digest);
	if (!block || parent < 0)
		return NULL;
	if (S_ISLNK(from->mode)) {
		count = readlinkat(parent, name, block, BLOCK);
		if (count < 0)
			return NULL;
		workspace_digest_add(&digest, block, (size_t)count);
	} else {
		if (fd < 0 || from->size > PATCH_DIGEST_BYTES)
			return NULL;
		while ((count = read(fd, block, BLOCK)) > 0)
			workspace_digest_add(&digest, block, (size_t)count);
		if (count < 0)
			return NULL;
	}
	workspace_digest_hex(&digest, hex);
	return hex;
}

static void json_side(const struct workspace_view *view, const struct change *change, bool is_new, const char *key,
		      struct json_writer *json)
{
	const struct change_side *side = is_new ? &change->after : &change->before;
	char hex[DIGEST_SHA256_HEX], mode[8];

	if (!side->mode) {
		json_write_null(json, key);
		return;
	}
	json_open_object(json, key);
	json_write_string(json, "type", type_name(side->mode));
	snprintf(mode, sizeof(mode), "%04o", (unsigned)side->mode & 07777);
	json_write_string(json, "mode", mode);
	if (S_ISREG(side->mode) || S_ISLNK(side->mode)) {
		json_write_unsigned(json, "size", side->size);
		json_write_string(json, "sha256", digest_side(view, change, is_new, hex));
	}
	json_close_object(json);
}

void workspace_patch_json(const struct workspace_view *view, const struct change *change, struct json_writer *json)
{
	static const char *const kinds[] = {
		[CHANGE_ADDED] = "added", [CHANGE_MODIFIED] = "modified", [CHANGE_TYPE] = "type",
		[CHANGE_MODE] = "mode",   [CHANGE_DELETED] = "deleted",
	};

	json_open_object(json, NULL);
	json_write_string(json, "path", change->path);
	json_write_string(json, "change", kinds[change->kind]);
	json_side(view, change, false, "before", json);
	json_side(view, change, true, "after", json);
	json_write_string(json, "renamed_from",
			  change->from && change->kind == CHANGE_ADDED ? change->from->path : NULL);
	json_write_bool(json, "conflict", change->flags & CHANGE_IS_CONFLICT);
	json_write_bool(json, "refused", change->flags & CHANGE_IS_REFUSED);
	json_write_bool(json, "apart", change->flags & CHANGE_IS_APART);
	json_write_string(json, "why", change->flags & CHANGE_IS_CONFLICT ? change->conflict : change->why);
	json_close_object(json);
}
