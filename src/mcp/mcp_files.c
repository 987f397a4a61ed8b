/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp/mcp_files.c - the tools for files. All are carried out inside the jar, so no link leads out of it.
 */
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "base/base64.h"
#include "base/utf8.h"
#include "mcp/mcp_server.h"

#define FILE_MAX ((size_t)8 << 20)
#define SHOWN_MAX ((size_t)64 << 10)
#define LIST_MAX 2000

static void answer_words(const struct mcp_request *request, struct mcp_result *result)
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
	AUTO_RESULT result = {0};

	text_append_format(&result.words, "%s: %s, %zu bytes", path, type, len);
	text_append_format(&result.structured, "{\"image\":\"%s\",\"bytes\":%zu}", type, len);
	text_append_string(&result.images, "{\"type\":\"image\",\"data\":\"");
	base64_append(&result.images, bytes, len);
	text_append_format(&result.images, "\",\"mimeType\":\"%s\"}", type);
	answer_words(request, &result);
}

/* Lines from @first on, @count of them, as far as they fit; and where to go on. */
static void answer_lines(const struct mcp_request *request, const char *bytes, size_t len, size_t first, size_t count)
{
	AUTO_RESULT result = {0};
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
	if (at - begin > SHOWN_MAX)
		mcp_shorten(&result.words, bytes + begin, at - begin, SHOWN_MAX, NULL);
	else
		text_append(&result.words, bytes + begin, at - begin);
	json_open_object(&writer, NULL);
	json_write_bytes(&writer, "content", text_string(&result.words), result.words.len);
	json_write_unsigned(&writer, "first_line", line);
	json_write_unsigned(&writer, "lines", shown);
	json_write_bool(&writer, "is_all", begin == 0 && at == len);
	if (at < len)
		json_write_unsigned(&writer, "next_line", line + shown);
	json_close_object(&writer);
	if (at < len)
		text_append_format(&result.words, "[%zu bytes more; go on with first_line %zu]\n", len - at,
				   line + shown);
	answer_words(request, &result);
}

/* What `run` would not print is not read either. All of the file is looked at: a secret may have several lines. */
static void answer_text(const struct mcp_request *request, const struct mcp_jar *jar, const char *bytes, size_t len,
			size_t first, size_t count)
{
	AUTO_TEXT text = {0}, clean = {0};

	if (!jar->redactor) {
		answer_lines(request, bytes, len, first, count);
		return;
	}
	text_append(&text, bytes, len);
	redact_string(jar->redactor, text_string(&text), &clean);
	if (text_failed(&text) || text_failed(&clean))
		mcp_refuse(request, "no memory for the file");
	else
		answer_lines(request, text_string(&clean), clean.len, first, count);
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
		mcp_refuse(request, "'%s' is no text: %zu bytes of another kind; use the tool `run` (file, xxd)", path,
			   len);
	else
		answer_text(request, jar, bytes, len, (size_t)first, (size_t)count);
}

/* False: it was answered. */
static bool write_whole(const struct mcp_request *request, struct mcp_jar *jar, const char *path, const char *bytes,
			size_t len)
{
	struct belljar_error *error = NULL;
	uint32_t mode = 0644;
	int fd, type;

	/* What is there keeps its mode, as with an editor. */
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
		mcp_refuse_error(request, error);
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

	json_open_object(&writer, NULL);
	json_write_string(&writer, "path", path);
	json_write_unsigned(&writer, "bytes", len);
	if (count)
		json_write_unsigned(&writer, "replacements", count);
	json_close_object(&writer);
	if (count)
		text_append_format(&result.words, "%s: replaced %zu time%s", path, count, count == 1 ? "" : "s");
	else
		text_append_format(&result.words, "%s: wrote %zu bytes", path, len);
	answer_words(request, &result);
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
		text_append_format(&result.words, "%s%s\n", entry->d_name, entry->d_type == DT_DIR ? "/" : "");
		count++;
	}
	json_close_array(&writer);
	json_write_bool(&writer, "is_all", !entry);
	json_close_object(&writer);
	if (entry)
		text_append_format(&result.words, "[only the first %zu are listed]\n", count);
	else if (!count)
		text_append_string(&result.words, "[an empty directory]\n");
	closedir(directory);
	answer_words(request, &result);
}
