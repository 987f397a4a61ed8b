/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove/prove_stage.c - plant, look, clear away
 *
 * All planted objects are open to every user, so that only Belljar's layers can stop an attempt. They are below a
 * directory that cannot be listed, under a name that cannot be guessed, against other users of the host.
 */
#include "prove/prove_stage.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>

#include "base/reap/reap.h"
#include "base/sys/calls.h"

#define VICTIM_BYTE 'V'
#define VICTIM_TRIES 256
#define VICTIM_PAGE_BYTES 2
#define VICTIM_WAITS 20000
#define LISTEN_QUEUE 8
#define HOOK_TEXT "#!/bin/sh\n"

void prove_stage_init(struct prove_stage *stage)
{
	*stage = (struct prove_stage){.fifo = -1, .leaked_fd = -1, .facts.shared_memory_id = -1};
	for (size_t i = 0; i < LISTEN_COUNT; i++)
		stage->listeners[i] = -1;
}

/* --- files -------------------------------------------------------------------------------------------------- */

static const char *path_of(const struct prove_stage *stage, const char *name, char *path, size_t capacity)
{
	snprintf(path, capacity, "%s/%s", stage->facts.base, name);
	return path;
}

static int make_directory(const struct prove_stage *stage, const char *name)
{
	char path[2 * PROVE_PATH_MAX];

	path_of(stage, name, path, sizeof(path));
	return mkdir(path, 0700) < 0 || chmod(path, 0777) < 0 ? -errno : 0;
}

static int make_file(const struct prove_stage *stage, const char *name, const char *content)
{
	char path[2 * PROVE_PATH_MAX];
	size_t len = strlen(content);
	AUTO_CLOSE int fd = open(path_of(stage, name, path, sizeof(path)),
				 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, content, len) != (ssize_t)len || fchmod(fd, 0666) < 0)
		return -errno;
	return 0;
}

static int make_top(struct prove_stage *stage)
{
	static const char *const places[] = {"/tmp", "/var/tmp"};
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	snprintf(stage->facts.token, sizeof(stage->facts.token), "%016" PRIx64, random);
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		snprintf(stage->top, sizeof(stage->top), "%s/belljar-prove-XXXXXX", places[i]);
		if (!mkdtemp(stage->top)) {
			stage->top[0] = '\0';
			continue;
		}
		if (chmod(stage->top, 0711) < 0)
			return -errno;
		snprintf(stage->facts.base, sizeof(stage->facts.base), "%.40s/%s", stage->top, stage->facts.token);
		return mkdir(stage->facts.base, 0700) < 0 || chmod(stage->facts.base, 0755) < 0 ? -errno : 0;
	}
	return -errno;
}

/* What is protected since git, or a link, leads to it. */
static int make_protected(const struct prove_stage *stage)
{
	char path[2 * PROVE_PATH_MAX];
	int rc = make_file(stage, "work/.git/config", "[core]\n\thooksPath = githooks\n");

	if (rc == 0)
		rc = make_file(stage, "work/githooks/pre-commit", HOOK_TEXT);
	if (rc == 0)
		rc = make_file(stage, "work/settings/settings.json", "");
	if (rc == 0)
		rc = make_file(stage, "work/nested/.git/config", "");
	if (rc == 0)
		rc = make_file(stage, "work/.gitmodules", "[submodule \"nested\"]\n\tpath = nested\n");
	if (rc == 0 && symlink("settings", path_of(stage, "work/.claude", path, sizeof(path))) < 0)
		rc = -errno;
	return rc;
}

/* Plant the objects for attempts with a scene. */
static int make_scenes(const struct prove_stage *stage)
{
	char target[2 * PROVE_PATH_MAX], link[2 * PROVE_PATH_MAX];
	int rc = make_file(stage, "work/package/__init__.py", "");

	if (rc == 0)
		rc = make_file(stage, PROVE_HIDDEN, stage->facts.token);
	if (rc == 0)
		rc = make_file(stage, PROVE_HIDDEN ".saved", stage->facts.token);
	path_of(stage, "outside", target, sizeof(target));
	if (rc == 0 && symlink(target, path_of(stage, "work/planted", link, sizeof(link))) < 0)
		rc = -errno;
	return rc;
}

static int make_files(struct prove_stage *stage)
{
	static const char *const directories[] = {
		"outside",   "work",         "work/.git",     "work/.git/hooks", "work/above",  "work/above/deep",
		PROVE_PLACE, "work/package", "work/githooks", "work/settings",   "work/nested", "work/nested/.git"};
	char path[2 * PROVE_PATH_MAX];
	int rc = make_top(stage);

	for (size_t i = 0; i < ARRAY_LEN(directories) && rc == 0; i++)
		rc = make_directory(stage, directories[i]);
	if (rc == 0)
		rc = make_file(stage, "outside/secret", stage->facts.token);
	if (rc == 0)
		rc = make_file(stage, "outside/removable", "");
	if (rc == 0)
		rc = make_file(stage, "work/.git/hooks/pre-commit", HOOK_TEXT);
	if (rc == 0)
		rc = make_protected(stage);
	if (rc < 0)
		return rc;
	rc = make_scenes(stage);
	if (rc < 0)
		return rc;
	path_of(stage, "work/fifo", path, sizeof(path));
	if (mkfifo(path, 0600) < 0 || chmod(path, 0666) < 0)
		return -errno;
	stage->fifo = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (stage->fifo < 0)
		return -errno;
	path_of(stage, "work", stage->work, sizeof(stage->work));
	return 0;
}

/* --- listeners ---------------------------------------------------------------------------------------------- */

static int listen_at(int family, int type, const void *address, socklen_t len)
{
	AUTO_CLOSE int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, address, len) < 0 || (type == SOCK_STREAM && listen(fd, LISTEN_QUEUE) < 0))
		return -errno;
	return take_fd(&fd);
}

static int listen_inet(int type, int *port_out)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(address);
	int fd = listen_at(AF_INET, type, &address, len);

	if (fd >= 0 && getsockname(fd, (struct sockaddr *)&address, &len) == 0)
		*port_out = ntohs(address.sin_port);
	return fd;
}

static int listen_path(const struct prove_stage *stage, int type, const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd;

	path_of(stage, name, address.sun_path, sizeof(address.sun_path));
	fd = listen_at(AF_UNIX, type, &address, sizeof(address));
	if (fd >= 0)
		chmod(address.sun_path, 0777);
	return fd;
}

static int listen_abstract(const struct prove_stage *stage, int type, const char *kind)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int len =
		snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "belljar-%s-%s", kind, stage->facts.token);

	return listen_at(AF_UNIX, type, &address,
			 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len));
}

static int make_listeners(struct prove_stage *stage)
{
	int *listeners = stage->listeners;

	/* A host without internet sockets has no port to reach: 0 is refused by itself. */
	listeners[LISTEN_TCP] = listen_inet(SOCK_STREAM, &stage->facts.tcp_port);
	listeners[LISTEN_UDP] = listen_inet(SOCK_DGRAM, &stage->facts.udp_port);
	listeners[LISTEN_STREAM] = listen_path(stage, SOCK_STREAM, "outside/stream");
	listeners[LISTEN_DATAGRAM] = listen_path(stage, SOCK_DGRAM, "outside/datagram");
	listeners[LISTEN_ABSTRACT_STREAM] = listen_abstract(stage, SOCK_STREAM, "stream");
	listeners[LISTEN_ABSTRACT_DATAGRAM] = listen_abstract(stage, SOCK_DGRAM, "datagram");
	return listeners[LISTEN_STREAM] < 0 ? listeners[LISTEN_STREAM] : 0;
}

/* --- a process to attack ------------------------------------------------------------------------------------ */

/* The first byte of the page is what attempts aim at, the second says that the victim is ready. */
static void be_victim(volatile char *page) __attribute__((noreturn));
static void be_victim(volatile char *page)
{
	sigset_t all;

	/* Signals stay pending, where the other side can see them. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	prctl(PR_SET_NAME, "belljar-victim", 0, 0, 0);
	/* The engine cannot be looked into, and so neither could this copy of it. */
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	page[1] = VICTIM_BYTE;
	for (;;)
		pause();
}

/* Its pid must not be one that a process in the jar has too, or an attempt would hit the wrong one. */
static int make_victim(struct prove_stage *stage)
{
	struct timespec nap = {.tv_nsec = 100000};
	volatile char *page;
	pid_t pid = -1;

	stage->victim_page = mmap(NULL, VICTIM_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (stage->victim_page == MAP_FAILED) {
		stage->victim_page = NULL;
		return -errno;
	}
	page = stage->victim_page;
	page[0] = VICTIM_BYTE;
	for (int i = 0; i < VICTIM_TRIES && pid < PROVE_ENGINE_PID_LEAST; i++) {
		if (pid > 0) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
		}
		pid = fork();
		if (pid < 0)
			return -errno;
		if (pid == 0)
			be_victim(page);
	}
	stage->facts.victim_pid = pid;
	for (int i = 0; i < VICTIM_WAITS && page[1] != VICTIM_BYTE; i++)
		nanosleep(&nap, NULL);
	stage->facts.victim_address = (uintptr_t)stage->victim_page;
	stage->victim_priority = getpriority(PRIO_PROCESS, (id_t)pid);
	return prlimit(pid, RLIMIT_CORE, NULL, &stage->victim_limit) < 0 ? -errno : 0;
}

/* Send the token to a client that comes through the gate: it proves that bytes came all the way. */
static void be_server(int listener, const char *token) __attribute__((noreturn));
static void be_server(int listener, const char *token)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	for (;;) {
		AUTO_CLOSE int peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

		if (peer >= 0)
			send(peer, token, strlen(token), MSG_NOSIGNAL);
	}
}

static int make_server(struct prove_stage *stage)
{
	AUTO_CLOSE int listener = listen_inet(SOCK_STREAM, &stage->facts.gate_port);
	pid_t pid;

	if (listener < 0)
		return 0;
	if (fcntl(listener, F_SETFL, 0) < 0)
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		be_server(listener, stage->facts.token);
	stage->server = pid;
	return 0;
}

int prove_stage_build(struct prove_stage *stage, struct error *error)
{
	AUTO_CLOSE int root = -1;
	int rc = make_files(stage);

	if (rc == 0)
		rc = make_listeners(stage);
	if (rc == 0)
		rc = make_server(stage);
	if (rc == 0)
		rc = make_victim(stage);
	if (rc < 0)
		return error_set(error, STAGE_FILES, -rc, "cannot prepare the proof in '%s': %s",
				 stage->top[0] ? stage->top : "/tmp", strerror(-rc));
	stage->facts.engine_pid = getpid();
	stage->facts.shared_memory_id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0666);
	root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	stage->leaked_fd = fcntl(root, F_DUPFD, PROVE_FD);
	return 0;
}

void prove_stage_done(struct prove_stage *stage)
{
	if (stage->facts.victim_pid > 0) {
		kill(stage->facts.victim_pid, SIGKILL);
		waitpid(stage->facts.victim_pid, NULL, 0);
	}
	if (stage->server > 0) {
		kill(stage->server, SIGKILL);
		waitpid(stage->server, NULL, 0);
	}
	if (stage->victim_page)
		munmap(stage->victim_page, VICTIM_PAGE_BYTES);
	if (stage->facts.shared_memory_id >= 0)
		shmctl(stage->facts.shared_memory_id, IPC_RMID, NULL);
	for (size_t i = 0; i < LISTEN_COUNT; i++)
		close_fd(&stage->listeners[i]);
	close_fd(&stage->fifo);
	close_fd(&stage->leaked_fd);
	if (stage->top[0])
		reap_sweep(stage->top);
	prove_stage_init(stage);
}

/* --- looking ------------------------------------------------------------------------------------------------ */

static bool has_content(const struct prove_stage *stage, const char *name, const char *expected)
{
	char path[2 * PROVE_PATH_MAX], content[64];
	ssize_t len = sys_read_file(AT_FDCWD, path_of(stage, name, path, sizeof(path)), content, sizeof(content));

	return len == (ssize_t)strlen(expected) && !memcmp(content, expected, (size_t)len);
}

static bool exists(const struct prove_stage *stage, const char *name)
{
	char path[2 * PROVE_PATH_MAX];
	struct stat status;

	return lstat(path_of(stage, name, path, sizeof(path)), &status) == 0;
}

static const char *look_at_files(const struct prove_stage *stage)
{
	char path[2 * PROVE_PATH_MAX];
	struct stat status;

	if (!has_content(stage, "outside/secret", stage->facts.token))
		return "the file outside was changed";
	if (lstat(path_of(stage, "outside/secret", path, sizeof(path)), &status) < 0 || status.st_nlink != 1)
		return "the file outside has another name now";
	if ((status.st_mode & 07777) != 0666)
		return "the mode of the file outside was changed";
	if (status.st_mtime == PROVE_OLD_TIME)
		return "the times of the file outside were changed";
	if (getxattr(path, PROVE_ATTRIBUTE, NULL, 0) >= 0)
		return "the file outside has an attribute more";
	if (exists(stage, "outside/new"))
		return "a file was created outside";
	if (!exists(stage, "outside/removable"))
		return "a file outside was removed";
	if (!has_content(stage, "work/.git/hooks/pre-commit", HOOK_TEXT) || exists(stage, "work/.git/hooks/new"))
		return "the protected files were changed";
	return NULL;
}

static const char *look_at_listeners(const struct prove_stage *stage)
{
	static const char *const words[] = {
		[LISTEN_TCP] = "the TCP listener was reached",
		[LISTEN_UDP] = "the UDP socket was reached",
		[LISTEN_STREAM] = "the Unix listener was reached",
		[LISTEN_DATAGRAM] = "the Unix datagram socket was reached",
		[LISTEN_ABSTRACT_STREAM] = "the abstract listener was reached",
		[LISTEN_ABSTRACT_DATAGRAM] = "the abstract datagram socket was reached",
	};
	char byte;

	for (size_t i = 0; i < LISTEN_COUNT; i++) {
		bool is_stream = i == LISTEN_TCP || i == LISTEN_STREAM || i == LISTEN_ABSTRACT_STREAM;
		AUTO_CLOSE int peer = is_stream ? accept4(stage->listeners[i], NULL, NULL, SOCK_CLOEXEC) : -1;

		if (peer >= 0 || (!is_stream && recv(stage->listeners[i], &byte, 1, MSG_DONTWAIT) >= 0))
			return words[i];
	}
	return NULL;
}

static bool has_pending_signal(pid_t pid)
{
	char path[64], content[4096];
	unsigned long long own = 0, shared = 0;
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (sys_read_file(AT_FDCWD, path, content, sizeof(content)) <= 0)
		return false;
	at = strstr(content, "SigPnd:");
	if (at)
		sscanf(at, "SigPnd: %llx ShdPnd: %llx", &own, &shared);
	return own || shared;
}

static const char *look_at_processes(const struct prove_stage *stage)
{
	struct timespec now = {0};
	struct rlimit limit;
	sigset_t harmless;

	if (*stage->victim_page != VICTIM_BYTE)
		return "the memory of the process outside was changed";
	if (has_pending_signal(stage->facts.victim_pid))
		return "the process outside got a signal";
	if (prlimit(stage->facts.victim_pid, RLIMIT_CORE, NULL, &limit) < 0 ||
	    memcmp(&limit, &stage->victim_limit, sizeof(limit)) != 0)
		return "the limits of the process outside were changed";
	if (getpriority(PRIO_PROCESS, (id_t)stage->facts.victim_pid) != stage->victim_priority)
		return "the priority of the process outside was changed";
	sigemptyset(&harmless);
	sigaddset(&harmless, SIGURG);
	if (sigtimedwait(&harmless, NULL, &now) == SIGURG)
		return "the engine got a signal";
	return NULL;
}

/* Reading a FIFO without writers gives end of file; with a writer it gives EAGAIN. */
static const char *look_at_fifo(const struct prove_stage *stage)
{
	char byte;

	return read(stage->fifo, &byte, 1) < 0 && errno == EAGAIN ? "a process outlived the run" : NULL;
}

const char *prove_stage_look(const struct prove_stage *stage)
{
	const char *seen = look_at_files(stage);

	if (!seen)
		seen = look_at_listeners(stage);
	if (!seen)
		seen = look_at_processes(stage);
	return seen ? seen : look_at_fifo(stage);
}
