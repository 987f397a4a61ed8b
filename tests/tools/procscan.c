/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/tools/procscan.c - look for a text in the environ and cmdline files of every process that can be seen
 *
 * procscan HEX   HEX is the text, in hexadecimal so that this program's own cmdline does not hold it. Prints the path
 * of every file that holds it, then "read N" with the number of files that could be read.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MAX = 4 << 20 };

static int holds(const char *path, const char *needle, size_t needle_len, int *is_read)
{
	static char buffer[FILE_MAX];
	int fd = open(path, O_RDONLY);
	size_t len = 0;
	ssize_t count;

	*is_read = 0;
	if (fd < 0)
		return 0;
	while (len < sizeof(buffer) && (count = read(fd, buffer + len, sizeof(buffer) - len)) > 0)
		len += (size_t)count;
	close(fd);
	*is_read = len > 0;
	return memmem(buffer, len, needle, needle_len) != NULL;
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"environ", "cmdline"};
	char needle[512];
	size_t needle_len = 0;
	int read_count = 0;
	DIR *proc = opendir("/proc");

	if (argc != 2 || strlen(argv[1]) / 2 > sizeof(needle))
		return 2;
	for (const char *at = argv[1]; at[0] && at[1]; at += 2) {
		char digits[3] = {at[0], at[1], 0};

		needle[needle_len++] = (char)strtol(digits, NULL, 16);
	}
	for (struct dirent *entry; proc && (entry = readdir(proc));) {
		if (strspn(entry->d_name, "0123456789") != strlen(entry->d_name))
			continue;
		for (int i = 0; i < 2; i++) {
			char path[512];
			int is_read;

			snprintf(path, sizeof(path), "/proc/%s/%s", entry->d_name, names[i]);
			if (holds(path, needle, needle_len, &is_read))
				puts(path);
			read_count += is_read;
		}
	}
	printf("read %d\n", read_count);
	return 0;
}
