/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/mcp/mcp_files.c - the tools for files. All are carried out inside the jar, so no link leads out of it.
 */
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "base/base64.h"
#include "base/escape.h"
#include "base/paths.h"
#include "base/utf8.h"
#include "door/mcp/mcp_server.h"

#define FILE_MAX ((size_t)8 << 20)
#define SHOWN_MAX ((size_t)64 << 10)
#define LIST_MAX 2000

static void answer(const struct mcp_request *request, struct mcp_result *result)
{
	mcp_answer(request->server, &request->asker, result);
}

/* False: it was answered. */
static bool read_whole(const struct mcp_request *request, struct mcp_jar *jar, const char *path, char **bytes,
		       size_t *len)
{
	struct belljar_error *error = NULL;
	void *read = NULL;
	int rc = belljar_jar_read_file(jar->jar, path, FILE_MAX, &read, len, &error);

	if (rc == -EFBIG)
		mcp_refuse(request,
			   "'%s' has more than %zu bytes; read a part of it with the tool `run` (head, tail, sed)",
			   path, FILE_MAX);
	else if (rc < 0)
		mcp_refuse_error(request, error);
	belljar_error_free(error);
	*bytes = read;
	return rc >= 0;
}

static const char *image_type(const char *bytes, size_t len)
{
	if (len > 8 && !memcmp(bytes, "\x89PNG\r\n\x1a\n", 8))
		return "image/png";
	if (len > 3 && !memcmp(bytes, "\xff\xd8\xff", 3))
		return "image/jpeg";
	return NULL;
}

static void answer_image(const struct mcp_request *request, const char *path, const char *type, const char *bytes,
			 size_t len)
{
	AUTO_TEXT encoded = {0}, quoted = {0};
	AUTO_RESULT result = {0};
	struct json_writer writer = {.text = &result.structured};

	base64_append(&encoded, bytes, len);
	mcp_quote(&quoted, path);
	json_open_object(&writer, NULL);
	mcp_show(&result, &writer, NULL, 0);
	mcp_show_image(&result, type, text_string(&encoded));
	json_write_string(&writer, "image", type);
	json_write_unsigned(&writer, "bytes", len);
	mcp_say(&result, "%s: %s, %zu bytes", text_string(&quoted), type, len);
	mcp_close_structured(&result, &writer);
	result.blocks.has_failed |= text_failed(&encoded);
	answer(request, &result);
}

/* Lines from @first on, @count of them, as far as they fit; and where to go on. */
static void answer_lines(const struct mcp_request *request, const char *path, const char *bytes, size_t len,
			 size_t first, size_t count)
{
	AUTO_RESULT result = {0};
	AUTO_TEXT quoted = {0};
	struct json_writer writer = {.text = &result.structured};
	size_t at = 0, line = 1, begin, shown = 0;

	for (; line < first && at < len; line++) {
		const char *newline = memchr(bytes + at, '\n', len - at);

		at = newline ? (size_t)(newline - bytes) + 1 : len;
	}
	begin = at;
	while (at < len && shown < count) {
		const char *newline = memchr(bytes + at, '\n', len - at);
		size_t end = newline ? (size_t)(newline - bytes) + 1 : len;

		if (shown && end - begin > SHOWN_MAX)
			break;
		at = end;
		shown++;
	}
	json_open_object(&writer, NULL);
	mcp_show(&result, &writer,
		 &(struct mcp_piece){.name = "content", .bytes = bytes + begin, .len = at - begin, .max = SHOWN_MAX},
		 1);
	mcp_quote(&quoted, path);
	if (!shown)
		mcp_say(&result, "%s: no line from line %zu on", text_string(&quoted), first);
	else
		mcp_say(&result, "%s: lines %zu to %zu", text_string(&quoted), line, line + shown - 1);
	if (at < len)
		mcp_say(&result, "%zu bytes more; go on with first_line %zu", len - at, line + shown);
	json_write_unsigned(&writer, "first_line", line);
	json_write_unsigned(&writer, "lines", shown);
	json_write_bool(&writer, "is_all", begin == 0 && at == len);
	if (at < len)
		json_write_unsigned(&writer, "next_line", line + shown);
	mcp_close_structured(&result, &writer);
	answer(request, &result);
}

/* What `run` would not print is not read either. All of the file is looked at: a secret may have several lines. */
static void answer_text(const struct mcp_request *request, const struct mcp_jar *jar, const char *path,
			const char *bytes, size_t len, size_t first, size_t count)
{
	AUTO_TEXT text = {0}, clean = {0};

	if (!jar->redactor) {
		answer_lines(request, path, bytes, len, first, count);
		return;
	}
	text_append(&text, bytes, len);
	redact_string(jar->redactor, text_string(&text), &clean);
	if (text_failed(&text) || text_failed(&clean))
		mcp_refuse(request, "no memory for the file");
	else
		answer_lines(request, path, text_string(&clean), clean.len, first, count);
}

void mcp_tool_read_file(struct mcp_request *request)
{
	AUTO_FREE char *bytes = NULL;
	const char *path = NULL;
	double first = 1, count = 1e9;
	struct mcp_jar *jar;
	size_t len = 0;

	if (!mcp_string(request, "path", true, &path) || !mcp_number(request, "first_line", 1, 1e9, &first) ||
	    !mcp_number(request, "lines", 1, 1e9, &count))
		return;
	jar = mcp_find_jar(request);
	if (!jar || !read_whole(request, jar, path, &bytes, &len))
		return;
	if (image_type(bytes, len))
		answer_image(request, path, image_type(bytes, len), bytes, len);
	else if (memchr(bytes, '\0', len) || !utf8_is_valid((const unsigned char *)bytes, len))
		mcp_refuse(request, "'%s' is not text: %zu bytes of another kind; use the tool `run` (file, xxd)", path,
			   len);
	else
		answer_text(request, jar, path, bytes, len, (size_t)first, (size_t)count);
}

/* Is it in a work directory that the server's policy, or jar_open, shows read-only? @path: absolute. */
static bool is_in_read_only_workdir(const struct mcp_request *request, const struct mcp_jar *jar, const char *path,
				    const char *workdir)
{
	bool is_read_only = request->server->options->policy->workdir_mode == WORKDIR_RO;

	return (is_read_only || mcp_is_tightened(jar, "workdir_mode")) && path_is_within(path, workdir);
}

/* The kernel only says that the place is read-only. Name the rule, and the change that would allow it. */
static void refuse_write(const struct mcp_request *request, const struct mcp_jar *jar, const char *path,
			 const struct belljar_error *error)
{
	const struct mcp_options *options = request->server->options;
	const char *workdir = options->policy->workdir ? options->policy->workdir : options->context->current_directory;
	AUTO_TEXT whole = {0}, quoted = {0};
	AUTO_RESULT result = {0};
	bool is_in_workdir;

	if (*path != '/')
		text_append_format(&whole, "%s/", workdir ? workdir : "");
	text_append_string(&whole, path);
	mcp_quote(&quoted, text_string(&whole));
	is_in_workdir = is_in_read_only_workdir(request, jar, text_string(&whole), workdir ? workdir : "/");
	mcp_say_error(&result, error, "cannot write the file");
	if (is_in_workdir && mcp_is_tightened(jar, "workdir_mode"))
		mcp_say(&result,
			"refused: writing %s: jar_open was given workdir_mode in tighten, and can make a jar "
			"without it",
			text_string(&quoted));
	else if (is_in_workdir)
		mcp_say(&result,
			"refused: writing %s: the policy shows the work directory read-only; the user can allow "
			"it with --workdir-mode rw; trying again unchanged will not help",
			text_string(&quoted));
	else if (belljar_error_errno(error) == EROFS)
		mcp_say(&result,
			"refused: writing %s: the jar shows it read-only; the user can allow it with --rw %s; "
			"trying again unchanged will not help",
			text_string(&quoted), text_string(&quoted));
	answer(request, &result);
}

/* False: it was answered. */
static bool write_whole(const struct mcp_request *request, struct mcp_jar *jar, const char *path, const char *bytes,
			size_t len)
{
	struct belljar_error *error = NULL;
	uint32_t mode = 0644;
	int fd, type;

	/* An existing file keeps its mode, as with an editor. */
	type = belljar_jar_stat(jar->jar, path, BELLJAR_FOLLOW, NULL, &mode, NULL, NULL);
	fd = belljar_jar_open_file(jar->jar, path, BELLJAR_FILE_WRITE | BELLJAR_PARENTS,
				   type == BELLJAR_TYPE_FILE ? mode & 0777 : 0644, &error);
	while (fd >= 0 && len) {
		ssize_t count = write(fd, bytes, len);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0) {
			mcp_refuse(request, "cannot write '%s': %s", path, strerror(errno));
			close(fd);
			return false;
		}
		bytes += count;
		len -= (size_t)count;
	}
	if (fd < 0) {
		refuse_write(request, jar, path, error);
		belljar_error_free(error);
		return false;
	}
	close(fd);
	return true;
}

static void answer_written(const struct mcp_request *request, const char *path, size_t len, size_t count)
{
	AUTO_RESULT result = {0};
	struct json_writer writer = {.text = &result.structured};
	AUTO_TEXT quoted = {0};

	mcp_quote(&quoted, path);
	json_open_object(&writer, NULL);
	json_write_string(&writer, "path", path);
	json_write_unsigned(&writer, "bytes", len);
	if (count)
		json_write_unsigned(&writer, "replacements", count);
	json_close_object(&writer);
	if (count)
		mcp_say(&result, "%s: replaced %zu time%s", text_string(&quoted), count, count == 1 ? "" : "s");
	else
		mcp_say(&result, "%s: wrote %zu bytes", text_string(&quoted), len);
	answer(request, &result);
}

void mcp_tool_write_file(struct mcp_request *request)
{
	const char *path = NULL, *content = NULL;
	struct mcp_jar *jar;

	if (!mcp_string(request, "path", true, &path) || !mcp_string(request, "content", true, &content))
		return;
	jar = mcp_find_jar(request);
	if (jar && write_whole(request, jar, path, content, strlen(content)))
		answer_written(request, path, strlen(content), 0);
}

static size_t replace(const char *bytes, size_t len, const char *old_text, const char *new_text, struct text *out)
{
	size_t old_len = strlen(old_text), count = 0;

	for (;;) {
		const char *found = memmem(bytes, len, old_text, old_len);
		size_t before = found ? (size_t)(found - bytes) : len;

		text_append(out, bytes, before);
		if (!found)
			return count;
		text_append_string(out, new_text);
		bytes += before + old_len;
		len -= before + old_len;
		count++;
	}
}

void mcp_tool_edit_file(struct mcp_request *request)
{
	const char *path = NULL, *old_text = NULL, *new_text = NULL;
	AUTO_FREE char *bytes = NULL;
	AUTO_TEXT edited = {0};
	bool is_all = false;
	struct mcp_jar *jar;
	size_t len = 0, count;

	if (!mcp_string(request, "path", true, &path) || !mcp_string(request, "old_text", true, &old_text) ||
	    !mcp_string(request, "new_text", true, &new_text) || !mcp_bool(request, "replace_all", &is_all))
		return;
	if (!*old_text) {
		mcp_refuse(request, "old_text is empty; write_file writes a whole file");
		return;
	}
	jar = mcp_find_jar(request);
	if (!jar || !read_whole(request, jar, path, &bytes, &len))
		return;
	count = replace(bytes, len, old_text, new_text, &edited);
	if (text_failed(&edited))
		mcp_refuse(request, "no memory for '%s'", path);
	else if (count == 0)
		mcp_refuse(request, "old_text is not in '%s'; read the file and copy the text exactly", path);
	else if (count > 1 && !is_all)
		mcp_refuse(request, "old_text is in '%s' %zu times; give more of what is around it, or replace_all",
			   path, count);
	else if (write_whole(request, jar, path, text_string(&edited), edited.len))
		answer_written(request, path, edited.len, count);
}

static const char *type_name(unsigned char type)
{
	switch (type) {
	case DT_DIR:
		return "directory";
	case DT_REG:
		return "file";
	case DT_LNK:
		return "link";
	default:
		return "other";
	}
}

void mcp_tool_list_files(struct mcp_request *request)
{
	AUTO_RESULT result = {0};
	AUTO_TEXT names = {0};
	struct json_writer writer = {.text = &result.structured};
	struct belljar_error *error = NULL;
	const char *path = ".";
	struct dirent *entry;
	size_t count = 0;
	struct mcp_jar *jar;
	DIR *directory;
	int fd;

	if (!mcp_string(request, "path", false, &path))
		return;
	jar = mcp_find_jar(request);
	if (!jar)
		return;
	fd = belljar_jar_open_file(jar->jar, path, BELLJAR_FILE_LIST, 0, &error);
	directory = fd < 0 ? NULL : fdopendir(fd);
	if (!directory) {
		if (fd >= 0)
			close(fd);
		mcp_refuse(request, "%s", fd < 0 ? belljar_error_message(error) : "no memory for a directory");
		belljar_error_free(error);
		return;
	}
	json_open_object(&writer, NULL);
	json_open_array(&writer, "entries");
	while ((entry = readdir(directory)) && count < LIST_MAX) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		json_open_object(&writer, NULL);
		json_write_string(&writer, "name", entry->d_name);
		json_write_string(&writer, "type", type_name(entry->d_type));
		json_close_object(&writer);
		escape_append(&names, entry->d_name, sizeof(entry->d_name));
		text_append_string(&names, entry->d_type == DT_DIR ? "/\n" : "\n");
		count++;
	}
	json_close_array(&writer);
	json_write_bool(&writer, "is_all", !entry);
	mcp_show(&result, &writer,
		 &(struct mcp_piece){.name = "names",
				     .bytes = text_string(&names),
				     .len = names.len,
				     .max = names.len,
				     .is_for_model_only = true},
		 1);
	mcp_say(&result, "%zu %s%s", count, count == 1 ? "entry" : "entries", entry ? "; there are more" : "");
	mcp_close_structured(&result, &writer);
	closedir(directory);
	answer(request, &result);
}
