/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tools/manual.c - `manual IN OUT`: fill one man page template; used by the build only, never installed
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "manual_pages.h"

static int read_file(const char *path, struct text *out)
{
	FILE *file = fopen(path, "re");
	char buffer[4096];
	size_t len;

	if (!file)
		return -errno;
	while ((len = fread(buffer, 1, sizeof(buffer), file)) > 0)
		text_append(out, buffer, len);
	return fclose(file) ? -errno : 0;
}

static int write_file(const char *path, const struct text *text)
{
	FILE *file = fopen(path, "we");

	if (!file)
		return -errno;
	fwrite(text_string(text), 1, text->len, file);
	return fclose(file) ? -errno : 0;
}

int main(int argc, char **argv)
{
	AUTO_TEXT template = {0};
	AUTO_TEXT page = {0};
	struct error error = {0};
	int rc;

	if (argc != 3) {
		fprintf(stderr, "usage: manual IN OUT\n");
		return 2;
	}
	rc = read_file(argv[1], &template);
	if (rc < 0) {
		fprintf(stderr, "manual: cannot read %s: %s\n", argv[1], strerror(-rc));
		return 1;
	}
	if (manual_fill(text_string(&template), &page, &error) < 0) {
		fprintf(stderr, "manual: %s: %s\n", argv[1], error.message);
		return 1;
	}
	rc = text_failed(&page) ? -ENOMEM : write_file(argv[2], &page);
	if (rc < 0) {
		fprintf(stderr, "manual: cannot write %s: %s\n", argv[2], strerror(-rc));
		return 1;
	}
	return 0;
}
