/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/answer/answer.c - carry out what a command's filter asks about: changes of mode, owner, times and attributes of files
 *
 * The command sleeps in its call meanwhile. This process takes the arguments from the registers that the kernel
 * copied and reads what they point at once. It opens the object itself, checks where the object lies, and
 * changes it by that descriptor. The kernel never continues the command's own call: its memory, links and
 * descriptors may have changed by then. Other threads may change them during the read too; this process checks
 * and uses what it has read.
 *
 * This process looks names up as the same user, with no effective capabilities, and has the same root and mounts. It
 * looks up /proc/self/fd/3 and /dev/fd/3 in the command's descriptors, and follows no other link of that kind.
 */
#include "inside/answer/answer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "inside/answer/answer_refusals.h"
#include "inside/answer/answer_trace.h"
#include "base/sys/calls.h"

/* Questions to answer before this process reads from the engine again. */
#define ANSWERS_AT_ONCE 16
#define MICROSECONDS 1000000
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

/* The thread that made the call. */
struct asker {
	int proc_fd;   /* its directory in /proc */
	int memory_fd; /* or a negative errno */
};

/* The object to change: held open, and with a name for calls that take no descriptor. */
struct object {
	int fd;
	char link[32];
	bool is_link;
};

typedef int change_function(const struct object *object, const struct asker *asker, const uint64_t *arguments);

/* --- what the arguments point at ---------------------------------------------------------------------------- */

/* Exactly @len bytes. */
static int read_bytes(const struct asker *asker, uint64_t address, void *out, size_t len)
{
	if (asker->memory_fd < 0)
		return -EPERM;
	return pread(asker->memory_fd, out, len, (off_t)address) == (ssize_t)len ? 0 : -EFAULT;
}

/* A string that fits @capacity with its end, else @too_long. */
static int read_string(const struct asker *asker, uint64_t address, char *out, size_t capacity, int too_long)
{
	ssize_t len;

	if (asker->memory_fd < 0)
		return -EPERM;
	len = pread(asker->memory_fd, out, capacity, (off_t)address);
	if (len > 0 && memchr(out, '\0', (size_t)len))
		return 0;
	return len == (ssize_t)capacity ? too_long : -EFAULT;
}

/* --- which object ------------------------------------------------------------------------------------------- */

static int open_descriptor(const struct asker *asker, int number)
{
	char path[32];
	int fd;

	if (number < 0)
		return -EBADF;
	snprintf(path, sizeof(path), "fd/%d", number);
	fd = openat(asker->proc_fd, path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -EBADF : -errno;
	return fd;
}

static int open_current_directory(const struct asker *asker)
{
	int fd = openat(asker->proc_fd, "cwd", O_PATH | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static const char *after_prefix(const char *path, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncmp(path, prefix, len) ? NULL : path + len;
}

/*
 * A path that leads through a descriptor of the asker's own: its number, and *@rest is what follows. -1: it is another.
 * C libraries change what they hold with O_PATH by such a name.
 */
static int own_descriptor(const char *path, const char **rest)
{
	static const char *const prefixes[] = {"/proc/self/fd/", "/proc/thread-self/fd/", "/dev/fd/"};
	const char *digits = NULL;
	size_t len;

	for (size_t i = 0; i < ARRAY_LEN(prefixes) && !digits; i++)
		digits = after_prefix(path, prefixes[i]);
	len = digits ? strspn(digits, "0123456789") : 0;
	if (!len || len > 7 || (digits[len] && digits[len] != '/'))
		return -1;
	*rest = digits + len;
	return atoi(digits);
}

/* Open @path below @directory_fd, and close that. */
static int open_below(int directory_fd, const char *path, bool is_followed)
{
	AUTO_CLOSE int fd = directory_fd;

	if (fd < 0 && fd != AT_FDCWD)
		return fd;
	return sys_openat2(fd, path, O_PATH | O_CLOEXEC | (is_followed ? 0 : O_NOFOLLOW), 0, SYS_RESOLVE_NO_MAGICLINKS);
}

static int open_path(const struct asker *asker, int directory, const char *path, bool is_followed)
{
	const char *rest;
	int number = own_descriptor(path, &rest);

	if (number >= 0) {
		rest += strspn(rest, "/");
		if (*rest)
			return open_below(open_descriptor(asker, number), rest, is_followed);
		/* The link itself is the kernel's. */
		return is_followed ? open_descriptor(asker, number) : -EPERM;
	}
	if (path[0] == '/')
		return open_below(AT_FDCWD, path, is_followed);
	if (directory == AT_FDCWD)
		return open_below(open_current_directory(asker), path, is_followed);
	return open_below(open_descriptor(asker, directory), path, is_followed);
}

/* --- the changes -------------------------------------------------------------------------------------------- */

static int result_of(long rc)
{
	return rc < 0 ? -errno : 0;
}

static int change_mode(const struct object *object, const struct asker *asker, const uint64_t *arguments)
{
	(void)asker;
	return object->is_link ? -EOPNOTSUPP : result_of(chmod(object->link, (mode_t)arguments[0] & 07777));
}

static int change_owner(const struct object *object, const struct asker *asker, const uint64_t *arguments)
{
	(void)asker;
	return result_of(fchownat(object->fd, "", (uid_t)arguments[0], (gid_t)arguments[1], AT_EMPTY_PATH));
}

static int set_times(const struct object *object, const struct timespec *times)
{
	return result_of(syscall(SYS_utimensat, object->fd, "", times, AT_EMPTY_PATH));
}

static int change_times(const struct object *object, const struct asker *asker, const uint64_t *arguments)
{
	struct timespec times[2];
	int rc = arguments[0] ? read_bytes(asker, arguments[0], times, sizeof(times)) : 0;

	return rc < 0 ? rc : set_times(object, arguments[0] ? times : NULL);
}

static int change_times_in_microseconds(const struct object *object, const struct asker *asker,
					const uint64_t *arguments)
{
	struct timeval given[2];
	struct timespec times[2];
	int rc = arguments[0] ? read_bytes(asker, arguments[0], given, sizeof(given)) : 0;

	if (rc < 0 || !arguments[0])
		return rc < 0 ? rc : set_times(object, NULL);
	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		if (given[i].tv_usec < 0 || given[i].tv_usec >= MICROSECONDS)
			return -EINVAL;
		times[i] = (struct timespec){given[i].tv_sec, given[i].tv_usec * 1000};
	}
	return set_times(object, times);
}

static int change_times_in_seconds(const struct object *object, const struct asker *asker, const uint64_t *arguments)
{
	time_t given[2];
	struct timespec times[2] = {{0}, {0}};
	int rc = arguments[0] ? read_bytes(asker, arguments[0], given, sizeof(given)) : 0;

	if (rc < 0 || !arguments[0])
		return rc < 0 ? rc : set_times(object, NULL);
	times[0].tv_sec = given[0];
	times[1].tv_sec = given[1];
	return set_times(object, times);
}

static int read_name(const struct asker *asker, uint64_t address, char name[XATTR_NAME_MAX + 1])
{
	int rc = read_string(asker, address, name, XATTR_NAME_MAX + 1, -ERANGE);

	return rc == 0 && !name[0] ? -ERANGE : rc;
}

static int set_attribute(const struct object *object, const struct asker *asker, const uint64_t *arguments)
{
	static char value[XATTR_SIZE_MAX];
	char name[XATTR_NAME_MAX + 1];
	size_t len = arguments[2];
	int rc = read_name(asker, arguments[0], name);

	/* A layer over the file would take them for its own: the file would be gone, or could not be opened. */
	if (rc == 0 && after_prefix(name, "user.overlay."))
		rc = -EPERM;
	if (rc == 0 && len > sizeof(value))
		rc = -E2BIG;
	if (rc == 0 && len)
		rc = read_bytes(asker, arguments[1], value, len);
	return rc < 0 ? rc : result_of(setxattr(object->link, name, value, len, (int)arguments[3]));
}

static int remove_attribute(const struct object *object, const struct asker *asker, const uint64_t *arguments)
{
	char name[XATTR_NAME_MAX + 1];
	int rc = read_name(asker, arguments[0], name);

	return rc < 0 ? rc : result_of(removexattr(object->link, name));
}

/* --- the calls ---------------------------------------------------------------------------------------------- */

/* The positions of a call's arguments; NONE: the call lacks that argument. */
enum { NONE = -1 };

struct asked_call {
	int number;
	int8_t directory; /* a descriptor: where a path starts; without a path, the object itself */
	int8_t path;
	int8_t flags;
	bool is_followed; /* a link that the path ends with */
	int8_t first;     /* of the arguments that the change gets */
	change_function *change;
};

static const struct asked_call calls[] = {
#ifdef SYS_chmod /* newer architectures have only those that start at a directory */
	{SYS_chmod, NONE, 0, NONE, true, 1, change_mode},
	{SYS_chown, NONE, 0, NONE, true, 1, change_owner},
	{SYS_lchown, NONE, 0, NONE, false, 1, change_owner},
	{SYS_utime, NONE, 0, NONE, true, 1, change_times_in_seconds},
	{SYS_utimes, NONE, 0, NONE, true, 1, change_times_in_microseconds},
	{SYS_futimesat, 0, 1, NONE, true, 2, change_times_in_microseconds},
#endif
	{SYS_fchmod, 0, NONE, NONE, true, 1, change_mode},
	{SYS_fchmodat, 0, 1, NONE, true, 2, change_mode},
	{SYS_fchmodat2, 0, 1, 3, true, 2, change_mode},
	{SYS_fchown, 0, NONE, NONE, true, 1, change_owner},
	{SYS_fchownat, 0, 1, 4, true, 2, change_owner},
	{SYS_utimensat, 0, 1, 3, true, 2, change_times},
	{SYS_setxattr, NONE, 0, NONE, true, 1, set_attribute},
	{SYS_lsetxattr, NONE, 0, NONE, false, 1, set_attribute},
	{SYS_fsetxattr, 0, NONE, NONE, true, 1, set_attribute},
	{SYS_removexattr, NONE, 0, NONE, true, 1, remove_attribute},
	{SYS_lremovexattr, NONE, 0, NONE, false, 1, remove_attribute},
	{SYS_fremovexattr, 0, NONE, NONE, true, 1, remove_attribute},
};

static const struct asked_call *find_call(int number)
{
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		if (calls[i].number == number)
			return &calls[i];
	return NULL;
}

bool answer_knows(int number)
{
	return find_call(number) != NULL;
}

/* These two take NULL for a path: then the descriptor is meant. */
static bool has_optional_path(const struct asked_call *call)
{
#ifdef SYS_futimesat
	if (call->number == SYS_futimesat)
		return true;
#endif
	return call->number == SYS_utimensat;
}

static int open_object(const struct asker *asker, const struct asked_call *call, const uint64_t *arguments)
{
	int directory = call->directory == NONE ? AT_FDCWD : (int)arguments[call->directory];
	unsigned flags = call->flags == NONE ? 0 : (unsigned)arguments[call->flags];
	bool is_followed = call->is_followed && !(flags & AT_SYMLINK_NOFOLLOW);
	char path[PATH_MAX];
	int rc;

	if (flags & ~(unsigned)(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
		return -EINVAL;
	if (call->path == NONE)
		return open_descriptor(asker, directory);
	if (!arguments[call->path] && has_optional_path(call) && directory != AT_FDCWD)
		return flags ? -EINVAL : open_descriptor(asker, directory);
	rc = read_string(asker, arguments[call->path], path, sizeof(path), -ENAMETOOLONG);
	if (rc < 0)
		return rc;
	if (path[0] || !(flags & AT_EMPTY_PATH))
		return open_path(asker, directory, path, is_followed);
	return directory == AT_FDCWD ? open_current_directory(asker) : open_descriptor(asker, directory);
}

static int change_object(const struct answer_places *places, const struct asker *asker, const struct asked_call *call,
			 const uint64_t *arguments)
{
	AUTO_CLOSE int fd = open_object(asker, call, arguments);
	struct object object = {.fd = fd};
	struct stat status;

	if (fd < 0)
		return fd;
	if (fstat(fd, &status) < 0)
		return -errno;
	if (!answer_is_in_place(places, fd, &status))
		return -EPERM;
	object.is_link = S_ISLNK(status.st_mode);
	snprintf(object.link, sizeof(object.link), "/proc/self/fd/%d", fd);
	return call->change(&object, asker, arguments + call->first);
}

/* Make the change with the rights of the asker, not of this process. */
static int change_as_asker(const struct answer_places *places, const struct asker *asker, const struct asked_call *call,
			   const uint64_t *arguments)
{
	int rc = sys_set_effective(false);

	if (rc < 0)
		return rc;
	rc = change_object(places, asker, call, arguments);
	sys_set_effective(true);
	return rc;
}

static int answer(const struct answer_places *places, int listener_fd, const struct answer_question *question)
{
	const struct asked_call *call = find_call(question->number);
	AUTO_CLOSE int proc_fd = -1;
	AUTO_CLOSE int memory_fd = -1;
	char path[32];

	/* The filter asks about nothing else but what it refuses. */
	if (!call) {
		answer_note_refusal(question);
		return -EPERM;
	}
	snprintf(path, sizeof(path), "/proc/%d", (int)question->pid);
	proc_fd = sys_open(path, O_PATH | O_DIRECTORY);
	if (proc_fd < 0)
		return -EPERM;
	/* Refused where it has made itself unreadable, or the host does not allow this to us. */
	memory_fd = openat(proc_fd, "mem", O_RDONLY | O_CLOEXEC);
	/* Both are its own, not those of another that has its number now; what is looked up by them later is, too. */
	if (!answer_question_is_open(listener_fd, question))
		return -EPERM;
	return change_as_asker(places, &(struct asker){proc_fd, memory_fd}, call, question->arguments);
}

void answer_some(const struct answer_places *places, int *listener_fd)
{
	struct pollfd waiting = {.fd = *listener_fd, .events = POLLIN};
	struct answer_question question;

	for (int i = 0; i < ANSWERS_AT_ONCE && poll(&waiting, 1, 0) > 0; i++) {
		/* Everybody whom the filter is for is gone. */
		if (!(waiting.revents & POLLIN)) {
			close_fd(listener_fd);
			return;
		}
		if (answer_question_receive(*listener_fd, &question) < 0)
			continue;
		if (answer_trace(places, *listener_fd, &question))
			continue;
		answer_question_answer(*listener_fd, &question, answer(places, *listener_fd, &question));
	}
}
