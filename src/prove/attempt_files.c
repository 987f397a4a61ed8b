/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove/attempt_files.c - attempts on files, descriptors and the environment
 *
 * What was planted outside has permissions that let anybody in, so a refusal is a layer's: what does not exist was not
 * mounted, EROFS is a read-only mount, EACCES is Landlock.
 */
#include "prove/attempt.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>

#define KERNEL_SETTING "/proc/sys/kernel/core_pattern"
#define DESCRIPTORS_MAX 1024

const char *attempt_path(const struct prove_facts *facts, const char *name)
{
	static char paths[2][2 * PROVE_PATH_MAX];
	static unsigned turn;
	char *path = paths[turn++ % ARRAY_LEN(paths)];

	snprintf(path, sizeof(paths[0]), "%s/%s", facts->base, name);
	return path;
}

static struct answer judge(const char *call, int result)
{
	if (result >= 0)
		return prove_answer_through(call);
	switch (errno) {
	case ENOENT:
	case EROFS:
	case EBUSY: /* a mount point cannot be moved away */
		return prove_answer_stopped(LAYER_MOUNT_NS, call, errno);
	case EACCES:
	case EXDEV: /* Landlock's word for a link or rename that would give more rights */
		return prove_answer_stopped(LAYER_LANDLOCK, call, errno);
	case EPERM:
		return prove_answer_stopped(LAYER_PRIVILEGES, call, errno);
	default:
		return prove_answer_stopped(LAYER_HOST, call, errno);
	}
}

static struct answer try_open(const char *path, int flags, const char *call)
{
	AUTO_CLOSE int fd = open(path, flags | O_CLOEXEC, 0644);

	return judge(call, fd);
}

/* Not forbidden: if this does not work, nothing that is refused proves anything. */
struct answer attempt_control(const struct prove_facts *facts)
{
	AUTO_CLOSE int fd = open(attempt_path(facts, "work/control"), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd < 0 || write(fd, "x", 1) != 1 || unlink(attempt_path(facts, "work/control")) < 0)
		return prove_answer_stopped(LAYER_HOST, "open", errno);
	return prove_answer_through("open");
}

struct answer attempt_on_path(const struct prove_facts *facts)
{
	struct corpus_target target = {.path = attempt_path(facts, facts->path),
				       .fresh = attempt_path(facts, "work/link")};

	return judge(prove_corpus_word(facts->call), (int)prove_corpus_make(facts->call, &target));
}

struct answer attempt_read(const struct prove_facts *facts)
{
	char content[64];
	AUTO_CLOSE int fd = open(attempt_path(facts, "outside/secret"), O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return judge("open", -1);
	return judge("read", read(fd, content, sizeof(content)) > 0 ? 0 : -1);
}

struct answer attempt_write(const struct prove_facts *facts)
{
	AUTO_CLOSE int fd = open(attempt_path(facts, "outside/secret"), O_WRONLY | O_APPEND | O_CLOEXEC);

	if (fd < 0)
		return judge("open", -1);
	return judge("write", write(fd, "!", 1) == 1 ? 0 : -1);
}

/* The kernel lets an owner make all these changes. So a refusal comes from the process that answers the filter. */
static struct answer judge_change(const struct prove_facts *facts, const char *call, int result)
{
	struct answer answer = judge(call, result);
	struct stat status;

	if (answer.errno_value == EPERM && stat(attempt_path(facts, "outside/secret"), &status) == 0 &&
	    status.st_uid == geteuid())
		answer.layer = LAYER_SECCOMP;
	return answer;
}

struct answer attempt_chmod(const struct prove_facts *facts)
{
	return judge_change(facts, "chmod", chmod(attempt_path(facts, "outside/secret"), 0640));
}

struct answer attempt_chmod_by_descriptor(const struct prove_facts *facts)
{
	AUTO_CLOSE int fd = open(attempt_path(facts, "outside/secret"), O_PATH | O_CLOEXEC);
	char path[32];

	if (fd < 0)
		return judge("open", fd);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return judge_change(facts, "chmod", chmod(path, 0640));
}

struct answer attempt_times(const struct prove_facts *facts)
{
	static const struct timespec times[2] = {{PROVE_OLD_TIME, 0}, {PROVE_OLD_TIME, 0}};

	return judge_change(facts, "utimensat", utimensat(AT_FDCWD, attempt_path(facts, "outside/secret"), times, 0));
}

struct answer attempt_attribute(const struct prove_facts *facts)
{
	struct answer answer = judge_change(
		facts, "setxattr", setxattr(attempt_path(facts, "outside/secret"), PROVE_ATTRIBUTE, "x", 1, 0));

	/* The filter answers so before the kernel sees that no path is given, a file system after. */
	if (answer.errno_value == EOPNOTSUPP && syscall(SYS_setxattr, NULL, NULL, NULL, 0, 0) < 0 &&
	    errno == EOPNOTSUPP)
		answer.layer = LAYER_SECCOMP;
	return answer;
}

/* A later layer over the workdir would not show the file. */
struct answer attempt_mark(const struct prove_facts *facts)
{
	AUTO_CLOSE int fd =
		open(attempt_path(facts, "work/marked"), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	const char *call = "setxattr";
	int rc = setxattr(attempt_path(facts, "work/marked"), "user.overlay.whiteout", "y", 1, 0), why = errno;

	if (rc < 0) {
		call = "mknod";
		rc = mknod(attempt_path(facts, "work/whiteout"), S_IFCHR | 0644, 0);
		why = errno;
	}
	unlink(attempt_path(facts, "work/marked"));
	unlink(attempt_path(facts, "work/whiteout"));
	if (fd < 0)
		return prove_answer_stopped(LAYER_HOST, "open", ENOENT);
	return rc < 0 ? prove_answer_stopped(LAYER_SECCOMP, call, why) : prove_answer_through(call);
}

struct answer attempt_read_by_engine(const struct prove_facts *facts)
{
	char path[4 * PROVE_PATH_MAX];
	struct answer answer;

	snprintf(path, sizeof(path), "/proc/%d/root%s", facts->engine_pid, attempt_path(facts, "outside/secret"));
	answer = try_open(path, O_RDONLY, "open");
	if (answer.errno_value == ENOENT)
		answer.layer = LAYER_PID_NS;
	return answer;
}

/* Only opened: nothing is written even if this works. */
struct answer attempt_proc_sys(const struct prove_facts *facts)
{
	struct answer answer = try_open(KERNEL_SETTING, O_WRONLY, "open");

	/* The file's own mode says no to this id before any other layer is asked; Landlock has no say in access(). */
	if (answer.errno_value == EACCES && faccessat(AT_FDCWD, KERNEL_SETTING, W_OK, AT_EACCESS) < 0)
		answer.layer = errno == EROFS ? LAYER_MOUNT_NS : LAYER_IDENTITY;
	return answer;
}

struct answer attempt_protected(const struct prove_facts *facts)
{
	struct answer answer = try_open(attempt_path(facts, "work/.git/hooks/pre-commit"), O_WRONLY, "open");

	if (answer.verdict == VERDICT_STOPPED)
		answer = try_open(attempt_path(facts, "work/.git/hooks/new"), O_WRONLY | O_CREAT | O_EXCL, "open");
	if (answer.verdict == VERDICT_STOPPED)
		answer = judge("rename",
			       rename(attempt_path(facts, "work/.git/hooks"), attempt_path(facts, "work/moved")));
	if (answer.verdict == VERDICT_STOPPED)
		answer = judge("rename", rename(attempt_path(facts, "work/.git"), attempt_path(facts, "work/moved")));
	return answer;
}

/* Each directory between the workdir and PROVE_PLACE; what was moved goes back, for the attempts to come. */
struct answer attempt_move_above(const struct prove_facts *facts)
{
	static const char *const above[] = {"work/above", "work/above/deep"};
	struct answer answer = {0};

	for (size_t i = 0; i < ARRAY_LEN(above); i++) {
		answer = judge("rename", rename(attempt_path(facts, above[i]), attempt_path(facts, "work/moved")));
		if (answer.verdict == VERDICT_STOPPED)
			continue;
		(void)!rename(attempt_path(facts, "work/moved"), attempt_path(facts, above[i]));
		break;
	}
	return answer;
}

/* A file that other programs run, and the directory it is in: change the one, move the other away. */
static struct answer try_protected(const struct prove_facts *facts, const char *file, const char *directory)
{
	struct answer answer = try_open(attempt_path(facts, file), O_WRONLY, "open");

	if (answer.verdict == VERDICT_STOPPED)
		answer = judge("rename", rename(attempt_path(facts, directory), attempt_path(facts, "work/moved")));
	return answer;
}

struct answer attempt_protected_by_config(const struct prove_facts *facts)
{
	return try_protected(facts, "work/githooks/pre-commit", "work/githooks");
}

struct answer attempt_protected_by_link(const struct prove_facts *facts)
{
	return try_protected(facts, "work/settings/settings.json", "work/settings");
}

struct answer attempt_protected_by_gitlink(const struct prove_facts *facts)
{
	struct answer answer = try_protected(facts, "work/nested/.git/config", "work/nested/.git");

	if (answer.verdict == VERDICT_STOPPED)
		answer = judge("rename", rename(attempt_path(facts, "work/nested"), attempt_path(facts, "work/moved")));
	return answer;
}

/* ETXTBSY comes after every permission was given: it only says that the program is running just now. */
struct answer attempt_overwrite_engine(const struct prove_facts *facts)
{
	char path[64];
	struct answer answer;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)getppid());
	answer = try_open(path, O_WRONLY, "open");
	if (answer.errno_value == ETXTBSY)
		return prove_answer_through("open");
	if (answer.errno_value == EACCES && getppid() == 1)
		answer.layer = LAYER_NOT_DUMPABLE;
	return answer;
}

struct answer attempt_descriptors(const struct prove_facts *facts)
{
	for (int fd = 3; fd < DESCRIPTORS_MAX; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			return prove_answer_through("fcntl");
	return prove_answer_stopped(LAYER_DESCRIPTORS, "fcntl", EBADF);
}

struct answer attempt_environment(const struct prove_facts *facts)
{
	return getenv(PROVE_SECRET_VARIABLE) ? prove_answer_through("getenv")
					     : prove_answer_stopped(LAYER_ENVIRONMENT, "getenv", 0);
}

struct answer attempt_replace_engine(const struct prove_facts *facts)
{
	struct answer answer = try_protected(facts, "work/package/__init__.py", "work/package");

	if (answer.verdict == VERDICT_STOPPED)
		answer = try_open(attempt_path(facts, "work/package/new"), O_WRONLY | O_CREAT | O_EXCL, "open");
	return answer;
}

struct answer attempt_shared_roots(const struct prove_facts *facts)
{
	char path[2 * PROVE_PATH_MAX];
	int fd;

	prove_roots(path, sizeof(path));
	snprintf(path + strlen(path), sizeof(path) - strlen(path), "/skeletons/%s", facts->token);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return judge("open", -1);
	close(fd);
	unlink(path);
	return prove_answer_through("open");
}

/* The jar ends before this is over, or the cover is still there. */
struct answer attempt_uncover(const struct prove_facts *facts)
{
	struct timespec nap = {.tv_sec = 2};
	char content[64];
	AUTO_CLOSE int ready = open(attempt_path(facts, PROVE_READY), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	AUTO_CLOSE int fd = -1;

	nanosleep(&nap, NULL);
	fd = open(attempt_path(facts, PROVE_HIDDEN), O_RDONLY | O_CLOEXEC);
	if (ready < 0 || fd < 0)
		return prove_answer_stopped(LAYER_HOST, "open", errno);
	return read(fd, content, sizeof(content)) > 0 ? prove_answer_through("read")
						      : prove_answer_stopped(LAYER_MOUNT_NS, "read", 0);
}
