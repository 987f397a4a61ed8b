/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/tools/attack_paths.c - every call of the corpus that takes a path, on one target, by every way that leads to it
 *
 * attack_paths TARGET OWN   TARGET is the absolute path that is attacked; OWN a directory the attacker may write, used
 * for the other end of renames and links. Prints "CALL ROUTE ANSWER" for each pair; the answer is "ok" or the name of
 * the errno. What succeeds is not undone: whoever expects success must not care.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "prove/corpus.h"

static char own[PATH_MAX];   /* a file of ours */
static char fresh[PATH_MAX]; /* a name in our directory that is free */

struct error_name {
	int number;
	const char *name;
};

static const struct error_name error_names[] = {
	{EPERM, "EPERM"},
	{ENOENT, "ENOENT"},
	{EACCES, "EACCES"},
	{EBUSY, "EBUSY"},
	{EEXIST, "EEXIST"},
	{EXDEV, "EXDEV"},
	{ENOTDIR, "ENOTDIR"},
	{EISDIR, "EISDIR"},
	{EINVAL, "EINVAL"},
	{EROFS, "EROFS"},
	{ELOOP, "ELOOP"},
	{ENOSYS, "ENOSYS"},
	{ENOTEMPTY, "ENOTEMPTY"},
	{ESTALE, "ESTALE"},
	{EOPNOTSUPP, "EOPNOTSUPP"},
	{ENOEXEC, "ENOEXEC"},
	{ETXTBSY, "ETXTBSY"},
	{EADDRINUSE, "EADDRINUSE"},
	{ENAMETOOLONG, "ENAMETOOLONG"},
	{ENXIO, "ENXIO"},
};

static const char *name_of(int number)
{
	static char other[16];

	for (size_t i = 0; i < sizeof(error_names) / sizeof(error_names[0]); i++)
		if (error_names[i].number == number)
			return error_names[i].name;
	snprintf(other, sizeof(other), "E%d", number);
	return other;
}

static void prepare(void)
{
	int fd;

	unlink(fresh);
	rmdir(fresh);
	fd = open(own, O_CREAT | O_WRONLY, 0644);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	char routes[7][2 * PATH_MAX], up[PATH_MAX] = "", here[PATH_MAX];
	static const char *const route_names[] = {"direct", "self-root", "thread-root", "one-root",
						  "cwd",    "fd",        "dots"};
	const char *target = argc > 1 ? argv[1] : "";
	int root = open("/", O_PATH | O_DIRECTORY);

	if (argc != 3 || target[0] != '/')
		return 2;
	snprintf(own, sizeof(own), "%s/own", argv[2]);
	snprintf(fresh, sizeof(fresh), "%s/fresh", argv[2]);
	if (getcwd(here, sizeof(here)))
		for (const char *slash = strchr(here, '/'); slash && slash[1]; slash = strchr(slash + 1, '/'))
			strncat(up, "/..", sizeof(up) - strlen(up) - 1);
	snprintf(routes[0], sizeof(routes[0]), "%s", target);
	snprintf(routes[1], sizeof(routes[1]), "/proc/self/root%s", target);
	snprintf(routes[2], sizeof(routes[2]), "/proc/thread-self/root%s", target);
	snprintf(routes[3], sizeof(routes[3]), "/proc/1/root%s", target);
	snprintf(routes[4], sizeof(routes[4]), "/proc/self/cwd%s%s", up, target);
	snprintf(routes[5], sizeof(routes[5]), "/proc/self/fd/%d%s", root, target);
	snprintf(routes[6], sizeof(routes[6]), "/usr/../../../..%s", target);
	for (const struct corpus_call *row = prove_corpus_paths; row->name; row++) {
		for (size_t route = 0; route < sizeof(route_names) / sizeof(route_names[0]); route++) {
			struct corpus_target on = {.path = routes[route], .own = own, .fresh = fresh};

			prepare();
			printf("%s %s %s\n", row->name, route_names[route],
			       prove_corpus_make(row, &on) < 0 ? name_of(errno) : "ok");
		}
	}
	return 0;
}
