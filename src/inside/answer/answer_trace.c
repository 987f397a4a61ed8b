/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/answer/answer_trace.c - what a traced command opens, executes and connects to
 *
 * The kernel continues every call; this file decides nothing. It reads names from the command's memory,
 * where another thread may change them meanwhile: a report is a best guess.
 *
 * The kernel decides after this process has answered. So this file predicts a refusal with access(): in a
 * jar of mounts the supervisor sees what the command sees. Where only the command is behind Landlock, it
 * checks the rules instead. A call that will fail is reported; a helper outside checks whether the host
 * has the file. Programs open the same paths again and again, so this file remembers allowed ones.
 */
#include "inside/answer/answer_trace.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/vfs.h>

#include "inside/answer/answer_refusals.h"
#include "base/sys/calls.h"

/* A cache of hashes of allowed paths and accesses; a hash may be in one of FINE_TRIES slots. */
#define FINE_COUNT (1U << 15)
#define FINE_TRIES 4
/* Report at most this many attempts to the engine. */
#define ATTEMPTS_MAX 512
/* Noted and not reported yet. More than the calls that are answered between two reports. */
#define UNTOLD_MAX 32
#define PAGE_BYTES 4096U
#define STATX_MOUNT 0x1000U
#define HASH_START 0xcbf29ce484222325ULL
#define HASH_FACTOR 0x100000001b3ULL
#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif

struct attempt {
	uint64_t hash, count, told, last_ns;
};

struct untold {
	uint32_t number;
	enum jar_access access;
	char process[JAR_NAME_BYTES];
	char path[JAR_PATH_BYTES];
};

/* A supervisor serves one command, so these are of that command alone. */
static uint64_t fine[FINE_COUNT];
static struct attempt attempts[ATTEMPTS_MAX];
static size_t attempt_count;
static struct untold untold[UNTOLD_MAX];
static size_t untold_count, untold_next; /* those from `untold_next` on are not reported */

/* --- what the arguments point at ---------------------------------------------------------------------------- */

/* Read as many of @len bytes as possible. The number, or a negative errno. */
static ssize_t read_memory(pid_t pid, uint64_t address, void *out, size_t len)
{
	struct iovec here = {.iov_base = out, .iov_len = len};
	struct iovec there = {.iov_base = (void *)(uintptr_t)address, .iov_len = len};
	ssize_t done = process_vm_readv(pid, &here, 1, &there, 1, 0);

	return done < 0 ? -errno : done;
}

/* A text that ends within @capacity. A page at a time: the next may not be there. */
static bool read_text(pid_t pid, uint64_t address, char *out, size_t capacity)
{
	size_t len = 0;

	while (len < capacity) {
		size_t rest = PAGE_BYTES - (size_t)((address + len) % PAGE_BYTES);
		ssize_t done = read_memory(pid, address + len, out + len, MIN_OF(rest, capacity - len));

		if (done <= 0)
			return false;
		if (memchr(out + len, '\0', (size_t)done))
			return true;
		len += (size_t)done;
	}
	return false;
}

/* Read the directory where a relative path starts. The length, or a negative errno. */
static ssize_t read_directory(pid_t pid, int directory, char out[JAR_PATH_BYTES])
{
	char link[48];
	ssize_t len;

	if (directory == AT_FDCWD)
		snprintf(link, sizeof(link), "/proc/%d/cwd", (int)pid);
	else
		snprintf(link, sizeof(link), "/proc/%d/fd/%d", (int)pid, directory);
	len = readlink(link, out, JAR_PATH_BYTES - 1);
	return len < 0 ? -errno : len;
}

/* Read the path at @address and make it absolute. False: it is unknown, or does not matter. */
static bool read_path(pid_t pid, int directory, uint64_t address, char out[JAR_PATH_BYTES])
{
	char path[JAR_PATH_BYTES];
	ssize_t len;

	if (!read_text(pid, address, path, sizeof(path)) || !path[0])
		return false;
	if (path[0] == '/') {
		memcpy(out, path, sizeof(path));
	} else {
		len = read_directory(pid, directory, out);
		/* An object outside any directory has a name without a slash. */
		if (len <= 0 || out[0] != '/' || (size_t)len + strlen(path) + 2 > JAR_PATH_BYTES)
			return false;
		if (len > 1)
			out[len++] = '/';
		memcpy(out + len, path, strlen(path) + 1);
	}
	/*
	 * The kernel shows each process other files in these directories. Every program looks for the last file
	 * when it starts, and none needs it.
	 */
	return strncmp(out, "/proc/", 6) != 0 && strncmp(out, "/dev/fd/", 8) != 0 &&
	       strcmp(out, "/etc/ld.so.preload") != 0;
}

/* --- will it be refused? ------------------------------------------------------------------------------------ */

static const int modes[] = {[JAR_READS] = R_OK, [JAR_WRITES] = W_OK, [JAR_EXECUTES] = X_OK, [JAR_LOOKS] = F_OK};

static int try_access(const char *path, int mode)
{
	return syscall(SYS_faccessat2, AT_FDCWD, path, mode, AT_EACCESS) < 0 ? -errno : 0;
}

/* Cut the last component off; false: there is none. */
static bool leave_component(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash || !path[1])
		return false;
	slash[slash == path] = '\0';
	return true;
}

/* The id of the mount that @path is in; 0: unknown. Some C libraries lack this field, so read it raw. */
static uint64_t mount_of(const char *path)
{
	struct {
		uint32_t mask;
		char before[140];
		uint64_t mount;
		char after[104];
	} status = {.mask = 0};

	return syscall(SYS_statx, AT_FDCWD, path, 0, STATX_MOUNT, &status) == 0 ? status.mount : 0;
}

/* The jar's own places are in memory, or in its root, which may be a directory of the host's that was made for it. */
static bool is_own_place(const char *path)
{
	struct statfs system;

	if (statfs(path, &system) == 0 && system.f_type == TMPFS_MAGIC)
		return true;
	return mount_of(path) == mount_of("/");
}

/*
 * Whether the host may have @path, which the jar lacks. In a shown directory of the host it lacks it too. A
 * link that leads nowhere in the jar may lead somewhere on the host.
 */
static bool may_be_hidden(const char *path)
{
	char place[JAR_PATH_BYTES];
	struct stat status;

	snprintf(place, sizeof(place), "%s", path);
	do {
		if (stat(place, &status) == 0)
			return is_own_place(place);
		if (lstat(place, &status) == 0)
			return true;
	} while (leave_component(place));
	return false;
}

/* @path does not exist: check that its directory is writable. */
static int try_making(const char *path)
{
	char place[JAR_PATH_BYTES];

	snprintf(place, sizeof(place), "%s", path);
	return leave_component(place) ? try_access(place, W_OK) : 0;
}

/* Check the rules for the object that the path leads to. */
static bool is_allowed_by_rules(const struct answer_places *places, const char *path, enum jar_access access)
{
	AUTO_CLOSE int fd = sys_open(path, O_PATH);
	char link[32], real[JAR_PATH_BYTES];
	ssize_t len;

	if (fd < 0)
		return access == JAR_WRITES ? places->is_allowed(places->owner, path, access) : fd == -ENOENT;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, real, sizeof(real) - 1);
	if (len <= 0)
		return true;
	real[len] = '\0';
	return places->is_allowed(places->owner, real, access);
}

/* The object that a call names; connecting writes to a socket and does not make it. */
struct named {
	const char *path;
	enum jar_access access;
	bool is_socket;
};

static bool may_be_refused(const struct answer_places *places, const struct named *named)
{
	enum jar_access access = named->access == JAR_RENAMES ? JAR_WRITES : named->access;
	int rc;

	if (places->is_allowed)
		return access != JAR_LOOKS && !is_allowed_by_rules(places, named->path, access);
	rc = try_access(named->path, modes[access]);
	if (rc == -ENOENT && access == JAR_WRITES && !named->is_socket)
		rc = try_making(named->path);
	return rc == -ENOENT ? may_be_hidden(named->path) : rc == -EROFS || rc == -EACCES || rc == -EPERM;
}

/* Everybody may open /dev/tty, and it is the terminal of the process that does, if it has one. */
static bool lacks_terminal(pid_t pid, const char *path)
{
	char name[48], line[512];
	AUTO_CLOSE int fd = -1;
	const char *end;
	ssize_t len;
	int terminal;

	if (strcmp(path, "/dev/tty") != 0)
		return false;
	snprintf(name, sizeof(name), "/proc/%d/stat", (int)pid);
	fd = sys_open(name, O_RDONLY);
	len = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
	if (len <= 0)
		return false;
	line[len] = '\0';
	/* Behind the name, which may have anything in it: state, parent, group, session, terminal. */
	end = strrchr(line, ')');
	return end && sscanf(end + 1, " %*c %*d %*d %*d %d", &terminal) == 1 && !terminal;
}

/* --- what is remembered ------------------------------------------------------------------------------------- */

static uint64_t hash_of(const char *path, enum jar_access access)
{
	uint64_t hash = HASH_START ^ (uint64_t)access;

	for (; *path; path++)
		hash = (hash ^ (uint8_t)*path) * HASH_FACTOR;
	return hash ? hash : 1;
}

static uint64_t *place_of(uint64_t hash, unsigned number)
{
	return &fine[(hash >> 32 ^ (hash + number)) % FINE_COUNT];
}

static bool is_known_fine(uint64_t hash)
{
	for (unsigned i = 0; i < FINE_TRIES; i++)
		if (*place_of(hash, i) == hash)
			return true;
	return false;
}

static void remember_fine(uint64_t hash)
{
	unsigned i = 0;

	while (i < FINE_TRIES - 1 && *place_of(hash, i))
		i++;
	*place_of(hash, i) = hash;
}

static void add_attempt(pid_t pid, uint64_t hash, const char *path, enum jar_access access)
{
	struct untold *news = &untold[untold_count];

	if (attempt_count == ATTEMPTS_MAX || untold_count == UNTOLD_MAX)
		return;
	attempts[attempt_count] = (struct attempt){.hash = hash, .count = 1, .last_ns = sys_monotonic_ns()};
	news->number = (uint32_t)attempt_count++;
	news->access = access;
	answer_read_name(pid, news->process);
	memcpy(news->path, path, strlen(path) + 1);
	untold_count++;
}

static void note_attempt(pid_t pid, uint64_t hash, const char *path, enum jar_access access)
{
	for (size_t i = 0; i < attempt_count; i++) {
		if (attempts[i].hash != hash)
			continue;
		attempts[i].count++;
		attempts[i].last_ns = sys_monotonic_ns();
		return;
	}
	add_attempt(pid, hash, path, access);
}

static void note_path(const struct answer_places *places, pid_t pid, const struct named *named)
{
	uint64_t hash = hash_of(named->path, named->access);

	if (is_known_fine(hash))
		return;
	if (!may_be_refused(places, named) && (named->access == JAR_LOOKS || !lacks_terminal(pid, named->path)))
		remember_fine(hash);
	else if (named->access == JAR_LOOKS)
		note_attempt(pid, hash_of(named->path, JAR_READS), named->path, JAR_READS);
	else
		note_attempt(pid, hash, named->path, named->access);
}

bool answer_next_attempt(struct jar_message *message, bool is_end)
{
	if (untold_next < untold_count) {
		const struct untold *news = &untold[untold_next++];
		struct attempt *attempt = &attempts[news->number];

		*message = (struct jar_message){
			.kind = JAR_TRIED,
			.tried = {.last_ns = attempt->last_ns, .number = news->number, .access = news->access}};
		memcpy(message->tried.process, news->process, sizeof(news->process));
		memcpy(message->tried.path, news->path, strlen(news->path) + 1);
		attempt->told = 1;
		if (untold_next == untold_count)
			untold_next = untold_count = 0;
		return true;
	}
	for (size_t i = 0; is_end && i < attempt_count; i++) {
		struct attempt *attempt = &attempts[i];

		if (attempt->count == attempt->told)
			continue;
		*message = (struct jar_message){
			.kind = JAR_TRIED_AGAIN,
			.tried_again = {.count = attempt->count, .last_ns = attempt->last_ns, .number = (uint32_t)i}};
		attempt->told = attempt->count;
		return true;
	}
	return false;
}

/* --- the calls ---------------------------------------------------------------------------------------------- */

/* The positions of a call's arguments; NONE: the call lacks that argument. */
enum { NONE = -1 };

/* The access that a call asks for, or where it says so. */
enum way { LOOKS, WRITES, RENAMES, EXECUTES, BY_FLAGS, BY_STRUCT, CONNECTS };

struct traced_call {
	int number;
	int8_t directory;
	int8_t path;
	int8_t flags; /* or a pointer to them */
	enum way way;
};

/* A call with two paths has two rows. */
static const struct traced_call calls[] = {
#ifdef SYS_open /* newer architectures have only those that start at a directory */
	{SYS_open, NONE, 0, 1, BY_FLAGS},      {SYS_creat, NONE, 0, NONE, WRITES},
	{SYS_mkdir, NONE, 0, NONE, RENAMES},   {SYS_rmdir, NONE, 0, NONE, RENAMES},
	{SYS_unlink, NONE, 0, NONE, RENAMES},  {SYS_rename, NONE, 0, NONE, RENAMES},
	{SYS_rename, NONE, 1, NONE, RENAMES},  {SYS_link, NONE, 1, NONE, RENAMES},
	{SYS_symlink, NONE, 1, NONE, RENAMES}, {SYS_mknod, NONE, 0, NONE, RENAMES},
	{SYS_stat, NONE, 0, NONE, LOOKS},      {SYS_lstat, NONE, 0, NONE, LOOKS},
	{SYS_access, NONE, 0, NONE, LOOKS},
#endif
	{SYS_newfstatat, 0, 1, NONE, LOOKS},   {SYS_statx, 0, 1, NONE, LOOKS},
	{SYS_faccessat, 0, 1, NONE, LOOKS},    {SYS_faccessat2, 0, 1, NONE, LOOKS},
	{SYS_chdir, NONE, 0, NONE, LOOKS},     {SYS_openat, 0, 1, 2, BY_FLAGS},
	{SYS_openat2, 0, 1, 2, BY_STRUCT},     {SYS_execve, NONE, 0, NONE, EXECUTES},
	{SYS_execveat, 0, 1, NONE, EXECUTES},  {SYS_connect, NONE, 1, NONE, CONNECTS},
	{SYS_mkdirat, 0, 1, NONE, RENAMES},    {SYS_unlinkat, 0, 1, NONE, RENAMES},
#ifdef SYS_renameat
	{SYS_renameat, 0, 1, NONE, RENAMES},   {SYS_renameat, 2, 3, NONE, RENAMES},
#endif
	{SYS_renameat2, 0, 1, NONE, RENAMES},  {SYS_renameat2, 2, 3, NONE, RENAMES},
	{SYS_linkat, 2, 3, NONE, RENAMES},     {SYS_symlinkat, 1, 2, NONE, RENAMES},
	{SYS_mknodat, 0, 1, NONE, RENAMES},    {SYS_truncate, NONE, 0, NONE, WRITES},
};

static enum jar_access access_of(const struct traced_call *call, const struct answer_question *question)
{
	uint64_t flags = 0;

	if (call->way == EXECUTES)
		return JAR_EXECUTES;
	if (call->way == LOOKS)
		return JAR_LOOKS;
	if (call->way == WRITES)
		return JAR_WRITES;
	if (call->way == RENAMES)
		return JAR_RENAMES;
	if (call->way == BY_FLAGS)
		flags = question->arguments[call->flags];
	else if (call->way == BY_STRUCT &&
		 read_memory(question->pid, question->arguments[call->flags], &flags, sizeof(flags)) < 0)
		flags = 0;
	return flags & O_PATH || !(flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) ? JAR_READS : JAR_WRITES;
}

/* A name in the file system is reached by writing to it; of others a filter, a gate or the kernel decides. */
static void trace_connect(const struct answer_places *places, const struct answer_question *question)
{
	union {
		struct sockaddr any;
		struct sockaddr_un local;
		struct sockaddr_in ipv4;
		struct sockaddr_in6 ipv6;
	} address = {.any = {0}};
	char host[INET6_ADDRSTRLEN], target[JAR_PATH_BYTES] = "";
	size_t len = MIN_OF(question->arguments[2], sizeof(address) - 1);

	if (read_memory(question->pid, question->arguments[1], &address, len) < (ssize_t)sizeof(sa_family_t))
		return;
	if (address.any.sa_family == AF_UNIX && address.local.sun_path[0] == '/')
		note_path(places, question->pid, &(struct named){address.local.sun_path, JAR_WRITES, true});
	if (address.any.sa_family == AF_INET && inet_ntop(AF_INET, &address.ipv4.sin_addr, host, sizeof(host)))
		snprintf(target, sizeof(target), "%s:%u", host, ntohs(address.ipv4.sin_port));
	if (address.any.sa_family == AF_INET6 && inet_ntop(AF_INET6, &address.ipv6.sin6_addr, host, sizeof(host)))
		snprintf(target, sizeof(target), "[%s]:%u", host, ntohs(address.ipv6.sin6_port));
	if (target[0])
		note_attempt(question->pid, hash_of(target, JAR_CONNECTS), target, JAR_CONNECTS);
}

static void trace_path(const struct answer_places *places, const struct traced_call *call,
		       const struct answer_question *question)
{
	int directory = call->directory == NONE ? AT_FDCWD : (int)question->arguments[call->directory];
	char path[JAR_PATH_BYTES];

	if (read_path(question->pid, directory, question->arguments[call->path], path))
		note_path(places, question->pid, &(struct named){path, access_of(call, question), false});
}

bool answer_traces(int number)
{
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		if (calls[i].number == number)
			return true;
	return false;
}

bool answer_trace(const struct answer_places *places, int listener_fd, const struct answer_question *question)
{
	if (!answer_traces(question->number))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		if (calls[i].number != question->number)
			continue;
		if (calls[i].way == CONNECTS)
			trace_connect(places, question);
		else
			trace_path(places, &calls[i], question);
	}
	answer_question_continue(listener_fd, question);
	return true;
}
