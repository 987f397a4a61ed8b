/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/tools/attack_metadata.c - change mode, owner, times and attributes of a file that is not ours to change
 *
 * attack_metadata matrix OUTSIDE             every call by every way that leads to it; prints CALL ROUTE ANSWER
 * attack_metadata WAY SECONDS INSIDE OUTSIDE race: one thread exchanges what a name means, the other calls; prints how many
 *                                            calls went through (they met INSIDE) and how many were refused. WAY: memory,
 *                                            link, directory, descriptor, base, work
 *
 * Both are files. OUTSIDE can be seen, and opened for reading if the jar shows it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "prove/corpus.h"

#define CALL_FCHMODAT2 452
#define CALL_SETXATTRAT 463
#define CALL_REMOVEXATTRAT 466
#define CALL_FILE_SETATTR 469
#define SETFLAGS 0x40086602UL
#define FSSETXATTR 0x401c5820UL
#define EMPTY 0x1000
#define BAD_POINTER ((void *)16)

static const struct timespec old_times[2] = {{1000000000, 0}, {1000000000, 0}};
static const long old_seconds[4] = {1000000000, 0, 1000000000, 0};

/* --- calls --------------------------------------------------------------------------------------------------- */

static const char value[28], flags_value[8] = {0x40}; /* no dump */

/* clang-format off */
static const struct corpus_call path_calls[] = {
#ifdef SYS_chmod
	{"chmod", SYS_chmod, {CORPUS_PATH, 0777}},
	{"chown", SYS_chown, {CORPUS_PATH, CORPUS_UID, CORPUS_GID}},
	{"lchown", SYS_lchown, {CORPUS_PATH, CORPUS_UID, CORPUS_GID}},
	{"utime", SYS_utime, {CORPUS_PATH, (long)old_seconds}},
	{"utimes", SYS_utimes, {CORPUS_PATH, (long)old_seconds}},
	{"utimes-now", SYS_utimes, {CORPUS_PATH}},
#endif
	{"setxattr", SYS_setxattr, {CORPUS_PATH, (long)"user.attack", (long)"x", 1}},
	{"lsetxattr", SYS_lsetxattr, {CORPUS_PATH, (long)"user.attack", (long)"x", 1}},
	{"removexattr", SYS_removexattr, {CORPUS_PATH, (long)"user.there"}},
	{"lremovexattr", SYS_lremovexattr, {CORPUS_PATH, (long)"user.there"}},
	{0},
};
static const struct corpus_call directory_calls[] = {
	{"fchmodat", SYS_fchmodat, {CORPUS_FD, CORPUS_PATH, 0777}},
	{"fchmodat2", CALL_FCHMODAT2, {CORPUS_FD, CORPUS_PATH, 0777, CORPUS_FLAGS}},
	{"fchownat", SYS_fchownat, {CORPUS_FD, CORPUS_PATH, CORPUS_UID, CORPUS_GID, CORPUS_FLAGS}},
	{"utimensat", SYS_utimensat, {CORPUS_FD, CORPUS_PATH, (long)old_times, CORPUS_FLAGS}},
	{"utimensat-now", SYS_utimensat, {CORPUS_FD, CORPUS_PATH, 0, CORPUS_FLAGS}},
#ifdef SYS_futimesat
	{"futimesat", SYS_futimesat, {CORPUS_FD, CORPUS_PATH, (long)old_seconds}},
#endif
	{"setxattrat", CALL_SETXATTRAT, {CORPUS_FD, CORPUS_PATH, CORPUS_FLAGS, (long)"user.attack", (long)value, 16}},
	{"removexattrat", CALL_REMOVEXATTRAT, {CORPUS_FD, CORPUS_PATH, CORPUS_FLAGS, (long)"user.there"}},
	{"file_setattr", CALL_FILE_SETATTR, {CORPUS_FD, CORPUS_PATH, (long)value, 16, CORPUS_FLAGS}},
	{0},
};
static const struct corpus_call descriptor_calls[] = {
	{"fchmod", SYS_fchmod, {CORPUS_FD, 0777}},
	{"fchown", SYS_fchown, {CORPUS_FD, CORPUS_UID, CORPUS_GID}},
	{"futimens", SYS_utimensat, {CORPUS_FD, 0, (long)old_times}},
	{"fsetxattr", SYS_fsetxattr, {CORPUS_FD, (long)"user.attack", (long)"x", 1}},
	{"fremovexattr", SYS_fremovexattr, {CORPUS_FD, (long)"user.there"}},
	{"setflags", SYS_ioctl, {CORPUS_FD, SETFLAGS, (long)flags_value}},
	{"fssetxattr", SYS_ioctl, {CORPUS_FD, FSSETXATTR, (long)value}},
#ifdef SYS_futimesat
	{"futimesat-null", SYS_futimesat, {CORPUS_FD, 0, (long)old_seconds}},
#endif
	{0},
};
/* clang-format on */
/* Those of directory_calls that races make: the ones that every kernel has. */
#define RACING_CALLS 6

static long by_path(const struct corpus_call *call, const char *path)
{
	return prove_corpus_make(call, &(struct corpus_target){.path = path});
}

/* Does it mean a link itself? */
static bool means_link(const struct corpus_call *call)
{
	return call->name[0] == 'l';
}

/* @flags are those of a call that has some. */
static long by_directory(const struct corpus_call *call, int fd, const char *path, int flags)
{
	bool has_flags = false;

	for (size_t i = 0; i < 6; i++)
		has_flags |= call->arguments[i] == CORPUS_FLAGS;
	if (flags && !has_flags) {
		errno = ENOSYS;
		return -1;
	}
	return prove_corpus_make(call, &(struct corpus_target){.path = path, .fd = fd, .flags = flags});
}

static long by_descriptor(const struct corpus_call *call, int fd)
{
	return prove_corpus_make(call, &(struct corpus_target){.fd = fd});
}

/* --- the matrix ---------------------------------------------------------------------------------------------- */

static void tell(const char *call, const char *route, long rc)
{
	if (rc < 0)
		printf("%s %s %d\n", call, route, errno);
	else
		printf("%s %s ok\n", call, route);
}

static void try_path(const char *route, const char *path)
{
	for (const struct corpus_call *call = path_calls; call->name; call++)
		tell(call->name, route, by_path(call, path));
	for (const struct corpus_call *call = directory_calls; call->name; call++) {
		tell(call->name, route, by_directory(call, AT_FDCWD, path, 0));
		tell(call->name, route, by_directory(call, AT_FDCWD, path, AT_SYMLINK_NOFOLLOW));
	}
}

static void try_directory(const char *route, int fd, const char *path, int flags)
{
	for (const struct corpus_call *call = directory_calls; call->name; call++)
		tell(call->name, route, by_directory(call, fd, path, flags));
}

static void try_descriptor(const char *route, int fd)
{
	char path[64];

	if (fd < 0)
		return;
	for (const struct corpus_call *call = descriptor_calls; call->name; call++)
		tell(call->name, route, by_descriptor(call, fd));
	try_directory(route, fd, "", EMPTY);
	try_directory(route, fd, "", EMPTY | AT_SYMLINK_NOFOLLOW);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	try_path("own-descriptor", path);
	snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", fd);
	try_path("thread-descriptor", path);
	snprintf(path, sizeof(path), "/dev/fd/%d", fd);
	try_path("dev-descriptor", path);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), fd);
	try_path("pid-descriptor", path);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/fd/%d", getpid(), getpid(), fd);
	try_path("task-descriptor", path);
	snprintf(path, sizeof(path), "/proc/self/fd/0%d", fd);
	try_path("odd-descriptor", path);
}

static void try_garbage(const char *outside)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *at_border = page + 4096 - strlen(outside);
	static char endless[8192];

	try_path("null", NULL);
	try_path("bad-pointer", BAD_POINTER);
	try_path("kernel-pointer", (void *)(uintptr_t)0xffffffff81000000ULL);
	try_path("negative-pointer", (void *)(uintptr_t)-8);
	munmap(page + 4096, 4096);
	memcpy(at_border, outside, strlen(outside));
	try_path("unterminated", at_border);
	memset(endless, 'x', sizeof(endless));
	try_path("endless", endless);
	memset(endless, '/', 4000);
	snprintf(endless + 4000 - strlen(outside), sizeof(endless) - 4000, "%s", outside);
	try_path("long", endless);
	tell("setxattr", "bad-name", syscall(SYS_setxattr, outside, BAD_POINTER, "x", 1, 0));
	tell("setxattr", "bad-value", syscall(SYS_setxattr, outside, "user.attack", BAD_POINTER, 1, 0));
	tell("setxattr", "huge-value", syscall(SYS_setxattr, outside, "user.attack", "x", UINT64_MAX, 0));
	tell("utimensat", "bad-times", syscall(SYS_utimensat, AT_FDCWD, outside, BAD_POINTER, 0));
	try_directory("bad-descriptor", 1 << 20, outside + 1, 0);
	try_directory("negative-descriptor", -5, outside + 1, 0);
}

static int matrix(char *outside)
{
	char copy[4096], path[8192], directory[4096];
	const char *name;
	int fd;

	snprintf(copy, sizeof(copy), "%s", outside);
	name = basename(copy);
	snprintf(directory, sizeof(directory), "%s", outside);
	dirname(directory);
	try_path("direct", outside);
	snprintf(path, sizeof(path), "../outside/%s", name);
	try_path("relative", path);
	snprintf(path, sizeof(path), "/proc/self/root%s", outside);
	try_path("root", path);
	snprintf(path, sizeof(path), "/proc/self/cwd/../outside/%s", name);
	try_path("cwd", path);
	unlink("to-file");
	unlink("to-directory");
	if (symlink(outside, "to-file") < 0 || symlink(directory, "to-directory") < 0)
		return 3;
	for (const struct corpus_call *call = path_calls; call->name; call++)
		if (!means_link(call))
			tell(call->name, "link", by_path(call, "to-file"));
	try_directory("link", AT_FDCWD, "to-file", 0);
	snprintf(path, sizeof(path), "to-directory/%s", name);
	try_path("linked-directory", path);
	snprintf(path, sizeof(path), "to-directory/../outside/./%s", name);
	try_path("up-and-down", path);
	fd = open(directory, O_PATH | O_CLOEXEC);
	try_directory("directory", fd, name, 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", fd, name);
	try_path("through-descriptor", path);
	try_descriptor("directory-itself", fd);
	try_descriptor("path-descriptor", open(outside, O_PATH | O_CLOEXEC));
	try_descriptor("link-descriptor", open("to-file", O_PATH | O_CLOEXEC));
	try_descriptor("read-descriptor", open(outside, O_RDONLY | O_CLOEXEC));
	if (chdir(directory) == 0) {
		try_path("in-directory", name);
		try_directory("current", AT_FDCWD, "", EMPTY);
		try_path("dot", ".");
	}
	try_path("device", "/dev/null");
	try_descriptor("open-device", open("/dev/null", O_RDWR | O_CLOEXEC));
	try_garbage(outside);
	return 0;
}

/* --- races --------------------------------------------------------------------------------------------------- */

static const char *inside, *outside;
static char *name_in_memory;
static atomic_bool is_over;
static int inside_fd, outside_fd, slot_fd;
static char inside_directory[4096], outside_directory[4096];

static void copy_name(char *to, const char *from)
{
	/* Bytes in between may be of both: that is the point. */
	for (size_t i = 0;; i++) {
		((volatile char *)to)[i] = from[i];
		if (!from[i])
			return;
	}
}

static void *change_memory(void *unused)
{
	while (!atomic_load(&is_over)) {
		copy_name(name_in_memory, inside);
		copy_name(name_in_memory, outside);
	}
	return unused;
}

static void *change_link(void *unused)
{
	for (unsigned i = 0; !atomic_load(&is_over); i++) {
		char fresh[] = "race-next";

		unlink(fresh);
		if (symlink(i % 2 ? inside : outside, fresh) == 0)
			rename(fresh, "race-link");
	}
	return unused;
}

static void *exchange(void *unused)
{
	while (!atomic_load(&is_over))
		syscall(SYS_renameat2, AT_FDCWD, "race-directory", AT_FDCWD, "race-other", 2);
	return unused;
}

static void *change_descriptor(void *unused)
{
	while (!atomic_load(&is_over)) {
		dup2(inside_fd, slot_fd);
		dup2(outside_fd, slot_fd);
	}
	return unused;
}

static void *change_current(void *unused)
{
	while (!atomic_load(&is_over)) {
		if (chdir(inside_directory) < 0 || chdir(outside_directory) < 0)
			abort();
	}
	return unused;
}

static long met, refused, failed;

static void count(long rc)
{
	if (rc == 0)
		met++;
	else if (errno == EPERM || errno == EACCES)
		refused++;
	else
		failed++;
}

static void call_path(const char *path)
{
	for (const struct corpus_call *call = path_calls; call->name; call++)
		if (!means_link(call))
			count(by_path(call, path));
	for (int i = 0; i < RACING_CALLS; i++)
		count(by_directory(&directory_calls[i], AT_FDCWD, path, 0));
}

static void call_base(const char *name)
{
	for (int i = 0; i < RACING_CALLS; i++)
		count(by_directory(&directory_calls[i], slot_fd, name, 0));
}

static void call_descriptor(void)
{
	char path[64];

	for (const struct corpus_call *call = descriptor_calls; call->name; call++)
		count(by_descriptor(call, slot_fd));
	for (int i = 0; i < RACING_CALLS; i++)
		count(by_directory(&directory_calls[i], slot_fd, "", EMPTY));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", slot_fd);
	count(by_directory(&directory_calls[0], AT_FDCWD, path, 0));
}

static int prepare_directories(void)
{
	snprintf(inside_directory, sizeof(inside_directory), "%s", inside);
	snprintf(outside_directory, sizeof(outside_directory), "%s", outside);
	dirname(inside_directory);
	dirname(outside_directory);
	mkdir("race-directory", 0700);
	if (symlink(outside_directory, "race-other") < 0)
		return -1;
	return close(open("race-directory/secret", O_WRONLY | O_CREAT, 0600));
}

static int race(const char *way, int seconds)
{
	static const struct {
		const char *way;
		void *(*changer)(void *);
	} ways[] = {{"memory", change_memory},         {"link", change_link},       {"directory", exchange},
		    {"descriptor", change_descriptor}, {"base", change_descriptor}, {"work", change_current}};
	void *(*changer)(void *) = NULL;
	bool has_base = !strcmp(way, "base");
	time_t end = time(NULL) + seconds;
	pthread_t thread;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (!strcmp(ways[i].way, way))
			changer = ways[i].changer;
	if (!changer || prepare_directories() < 0)
		return 2;
	name_in_memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	inside_fd = open(has_base ? inside_directory : inside, O_PATH | O_CLOEXEC);
	outside_fd = open(has_base ? outside_directory : outside, O_PATH | O_CLOEXEC);
	slot_fd = dup(inside_fd);
	copy_name(name_in_memory, inside);
	if (slot_fd < 0 || outside_fd < 0 || symlink(inside, "race-link") < 0 ||
	    pthread_create(&thread, NULL, changer, NULL))
		return 3;
	while (time(NULL) < end) {
		if (changer == change_memory)
			call_path(name_in_memory);
		else if (changer == change_link)
			call_path("race-link");
		else if (changer == exchange)
			call_path("race-directory/secret");
		else if (changer == change_current)
			call_path("secret");
		else if (has_base)
			call_base("secret");
		else
			call_descriptor();
	}
	atomic_store(&is_over, true);
	pthread_join(thread, NULL);
	printf("met %ld\nrefused %ld\nfailed %ld\n", met, refused, failed);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "matrix"))
		return matrix(argv[2]);
	if (argc < 5)
		return 2;
	inside = argv[3];
	outside = argv[4];
	return race(argv[1], atoi(argv[2]));
}
