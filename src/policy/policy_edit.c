/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy/policy_edit.c - add a rule to a policy file, and leave the rest of it unchanged
 *
 * People write these files, with their own comments and layout. So the code edits the text instead of printing it
 * anew: it walks over the tokens to the list and inserts one entry. Then it checks the result: the new text must
 * parse to the old rules and the new one.
 */
#include "policy/policy_edit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json_write.h"

#define KEY "allow_net"

/* --- text --------------------------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Return the end of the comment at @at, or @at if there is none. */
static size_t skip_comment(const char *text, size_t len, size_t at)
{
	const char *end;

	if (at + 1 >= len || text[at] != '/')
		return at;
	if (text[at + 1] == '/') {
		end = memchr(text + at, '\n', len - at);
		return end ? (size_t)(end - text) : len;
	}
	if (text[at + 1] != '*')
		return at;
	end = memmem(text + at + 2, len - at - 2, "*/", 2);
	return end ? (size_t)(end - text) + 2 : len;
}

/* Return the next token from @at on, or @len if there is none. */
static size_t next_token(const char *text, size_t len, size_t at)
{
	for (;;) {
		size_t behind;

		while (at < len && is_blank(text[at]))
			at++;
		behind = skip_comment(text, len, at);
		if (behind == at)
			return at;
		at = behind;
	}
}

/* Return the end of the token at @at. A string is one token; every other character is its own. */
static size_t end_of_token(const char *text, size_t len, size_t at)
{
	if (text[at] != '"')
		return at + 1;
	for (at++; at < len && text[at] != '"'; at++)
		at += text[at] == '\\';
	return MIN_OF(at + 1, len);
}

struct places {
	size_t object;      /* behind the bracket that begins the document */
	size_t list;        /* behind that of the list; 0: there is none */
	size_t last;        /* behind the last token of the list before its end */
	size_t list_end;    /* at the bracket that ends it */
	size_t first_token; /* of the object */
};

static int find_places(const char *text, size_t len, struct places *out)
{
	size_t at = next_token(text, len, 0), depth = 0, key = 0, last = 0;
	struct places found = {0};

	if (at == len || text[at] != '{')
		return -EINVAL;
	found.object = at + 1;
	found.first_token = next_token(text, len, at + 1);
	for (; at < len && !found.list_end; at = next_token(text, len, at)) {
		size_t end = end_of_token(text, len, at);

		if (text[at] == '{' || text[at] == '[') {
			depth++;
			if (depth == 2 && text[at] == '[' && key)
				found.list = end;
		} else if (text[at] == '}' || text[at] == ']') {
			if (depth == 2 && found.list) {
				found.list_end = at;
				found.last = last;
			}
			depth--;
		} else if (depth == 1 && text[at] != ':') {
			key = end - at == sizeof(KEY) + 1 && !memcmp(text + at + 1, KEY, sizeof(KEY) - 1) ? end : 0;
		}
		last = end;
		at = end;
	}
	if (found.list && !found.list_end)
		return -EINVAL;
	*out = found;
	return 0;
}

/* Append the indentation of the line of @at. */
static void append_indent(const char *text, size_t at, struct text *out)
{
	size_t begin = at, end;

	while (begin && text[begin - 1] != '\n')
		begin--;
	for (end = begin; text[end] == ' ' || text[end] == '\t'; end++)
		;
	text_append(out, text + begin, end - begin);
}

static void append_rule(const char *rule, struct text *out)
{
	struct json_writer writer = {.text = out};

	if (rule[0] == '{')
		text_append_string(out, rule);
	else
		json_write_string(&writer, NULL, rule);
}

static void add_to_list(const char *text, size_t len, const struct places *places, const char *rule, struct text *out)
{
	bool is_empty = places->last == places->list, has_comma = text[places->last - 1] == ',';
	bool has_lines = memchr(text + places->last, '\n', places->list_end - places->last);
	size_t end = places->list_end;

	while (end > places->last && is_blank(text[end - 1]))
		end--;
	text_append(out, text, places->last);
	if (!is_empty && !has_comma)
		text_append_char(out, ',');
	text_append(out, text + places->last, end - places->last);
	if (has_lines) {
		text_append_char(out, '\n');
		append_indent(text, is_empty ? places->list_end : places->last - 1, out);
		if (is_empty)
			text_append_string(out, "  ");
	} else if (!is_empty) {
		text_append_char(out, ' ');
	}
	append_rule(rule, out);
	text_append(out, text + end, len - end);
}

static void add_list(const char *text, size_t len, const struct places *places, const char *rule, struct text *out)
{
	bool has_lines = memchr(text + places->object, '\n', places->first_token - places->object);
	bool is_empty = places->first_token < len && text[places->first_token] == '}';

	text_append(out, text, places->object);
	if (has_lines) {
		text_append_char(out, '\n');
		append_indent(text, places->first_token, out);
	}
	text_append_string(out, has_lines && is_empty ? "  \"" KEY "\": [" : "\"" KEY "\": [");
	append_rule(rule, out);
	text_append_string(out, is_empty ? "]" : has_lines ? "]," : "], ");
	text_append(out, text + places->object, len - places->object);
}

int policy_edit_text(const char *document, size_t len, const char *rule, struct text *out)
{
	struct places places;
	int rc = find_places(document, len, &places);

	if (rc < 0)
		return rc;
	if (places.list)
		add_to_list(document, len, &places, rule, out);
	else
		add_list(document, len, &places, rule, out);
	return text_failed(out) ? -ENOMEM : 0;
}

/* --- file --------------------------------------------------------------------------------------------------- */

static int read_whole(int fd, struct text *out)
{
	for (;;) {
		char *room = text_reserve(out, 65536);
		ssize_t count = room ? read(fd, room, 65536) : -1;

		if (!room || out->len > JSON_MAX_BYTES)
			return room ? -EFBIG : -ENOMEM;
		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			return count < 0 ? -errno : 0;
		out->len += (size_t)count;
	}
}

/* Read the rules of a document as if it were at @path. */
static int read_rules(const struct text *document, const char *path, const struct policy_context *context,
		      struct policy *out, struct error *error)
{
	AUTO_FREE char *directory = strdup(path);
	char *slash = directory ? strrchr(directory, '/') : NULL;
	int rc;

	if (!slash)
		return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	slash[slash == directory] = '\0';
	rc = policy_init(out, context, error);
	return rc < 0 ? rc
		      : policy_load_document(out, text_string(document), document->len, path, directory, context,
					     error);
}

/* Does @after have the rules of @before and then the new one? */
static bool is_as_wanted(const struct policy *before, const struct policy *after, const char *rule)
{
	const struct string_list *old = &before->allow_net, *new = &after->allow_net;

	if (new->count != old->count + 1 || strcmp(new->items[old->count], rule) != 0)
		return false;
	for (size_t i = 0; i < old->count; i++)
		if (strcmp(old->items[i], new->items[i]) != 0)
			return false;
	return true;
}

static int check(const struct text *old, const struct text *new, const char *path, const char *rule,
		 const struct policy_context *context, struct error *error)
{
	AUTO(policy_done) struct policy before = {0}, after = {0};
	int rc = read_rules(old, path, context, &before, error);

	if (rc == 0)
		rc = read_rules(new, path, context, &after, error);
	if (rc < 0)
		return rc;
	if (is_as_wanted(&before, &after, rule))
		return 0;
	error_set(error, STAGE_POLICY, EINVAL,
		  "%s has no list " KEY " of its own, and a new one would replace another's", path);
	return error_hint(error, "write the rule into the list yourself: %s", rule);
}

int policy_edit_open(struct policy_edit *file, const char *path)
{
	struct policy_edit made = {.path = realpath(path, NULL), .directory_fd = -1, .held_fd = -1};
	struct stat status;
	char *slash = made.path ? strrchr(made.path, '/') : NULL;
	int rc = 0;

	if (!slash)
		return -errno;
	*slash = '\0';
	made.directory_fd = open(slash == made.path ? "/" : made.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	*slash = '/';
	made.name = slash + 1;
	if (made.directory_fd >= 0)
		made.held_fd = openat(made.directory_fd, made.name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (made.held_fd < 0 || fstat(made.held_fd, &status) < 0)
		rc = -errno;
	else if (!S_ISREG(status.st_mode))
		rc = -EINVAL;
	if (rc < 0) {
		policy_edit_done(&made);
		return rc;
	}
	made.device = status.st_dev;
	made.inode = status.st_ino;
	*file = made;
	return 0;
}

void policy_edit_done(struct policy_edit *file)
{
	if (file->path) {
		close_fd(&file->directory_fd);
		close_fd(&file->held_fd);
	}
	free(file->path);
	*file = (struct policy_edit){0};
}

static bool is_same_file(const struct policy_edit *file, const struct stat *status)
{
	return status->st_dev == file->device && status->st_ino == file->inode && S_ISREG(status->st_mode);
}

/* Write the new file beside the old one, then rename it over the old one. @status: of the old one. */
static int replace(struct policy_edit *file, const struct stat *status, const struct text *document)
{
	AUTO_TEXT name = {0};
	AUTO_CLOSE int fd = -1;
	struct stat now;
	int rc = 0;

	text_append_format(&name, "%s.%d.new", file->name, (int)getpid());
	if (text_failed(&name))
		return -ENOMEM;
	fd = openat(file->directory_fd, text_string(&name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	/* Keep the owner if allowed; else the caller owns the file. */
	if (fchown(fd, status->st_uid, status->st_gid) < 0 && errno != EPERM)
		rc = -errno;
	if (rc == 0 && fchmod(fd, status->st_mode & 07777) < 0)
		rc = -errno;
	if (rc == 0 && write(fd, document->data, document->len) != (ssize_t)document->len)
		rc = errno ? -errno : -EIO;
	if (rc == 0 && fsync(fd) < 0)
		rc = -errno;
	/* Another process may have changed the file meanwhile. */
	if (rc == 0 && (fstatat(file->directory_fd, file->name, &now, AT_SYMLINK_NOFOLLOW) < 0 ||
			!is_same_file(file, &now) || now.st_size != status->st_size ||
			now.st_mtim.tv_sec != status->st_mtim.tv_sec || now.st_mtim.tv_nsec != status->st_mtim.tv_nsec))
		rc = -EBUSY;
	if (rc == 0 && fstat(fd, &now) < 0)
		rc = -errno;
	if (rc == 0 && renameat(file->directory_fd, text_string(&name), file->directory_fd, file->name) < 0)
		rc = -errno;
	if (rc < 0)
		unlinkat(file->directory_fd, text_string(&name), 0);
	if (rc < 0)
		return rc;
	close_fd(&file->held_fd);
	file->held_fd = take_fd(&fd);
	file->device = now.st_dev;
	file->inode = now.st_ino;
	return 0;
}

int policy_edit_add_rule(struct policy_edit *file, const char *rule, const struct policy_context *context,
			 struct error *error)
{
	AUTO_CLOSE int fd = openat(file->directory_fd, file->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	AUTO_TEXT old = {0}, new = {0};
	struct stat status;
	int rc;

	if (fd < 0 && errno != ELOOP)
		return error_set(error, STAGE_FILES, errno, "cannot read '%s': %s", file->path, strerror(errno));
	if (fd < 0 || fstat(fd, &status) < 0 || !is_same_file(file, &status))
		return error_set(error, STAGE_FILES, EBUSY, "another program replaced '%s' after Belljar read it",
				 file->path);
	rc = read_whole(fd, &old);
	if (rc == 0)
		rc = policy_edit_text(text_string(&old), old.len, rule, &new);
	if (rc < 0)
		return error_set(error, STAGE_FILES, -rc, "cannot add the rule %s to '%s': %s", rule, file->path,
				 strerror(-rc));
	rc = check(&old, &new, file->path, rule, context, error);
	if (rc < 0)
		return rc;
	rc = replace(file, &status, &new);
	return rc < 0 ? error_set(error, STAGE_FILES, -rc, "cannot write '%s': %s", file->path, strerror(-rc)) : 0;
}
