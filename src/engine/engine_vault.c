/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_vault.c - have belljar-gate make the certificates for a jar whose requests it inspects
 */
#include "engine/engine_vault.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/json_write.h"
#include "gate/gate_vault.h"
#include "policy/net_secrets.h"
#include "base/sys/calls.h"

/* It takes some milliseconds. */
#define MAKE_MS 10000
#define FILE_COUNT 4
#define HIGH_FD 16

/* In a child that shares the engine's memory until it execs: system calls only. */
static void become_maker(const int *fds, int program_fd) __attribute__((noreturn, noinline));
static void become_maker(const int *fds, int program_fd)
{
	static char *const arguments[] = {(char *)"belljar-gate", (char *)VAULT_ARGUMENT, NULL};
	static char *const environment[] = {NULL};
	int high[FILE_COUNT], program = fcntl(program_fd, F_DUPFD_CLOEXEC, HIGH_FD);
	sigset_t none;

	for (int i = 0; i < FILE_COUNT; i++)
		high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, HIGH_FD);
	for (int i = 0; i < FILE_COUNT; i++)
		if (dup2(high[i], VAULT_REQUEST_FD + i) < 0)
			_exit(125);
	/* 0, 1 and 2 stay taken by something that says nothing. */
	for (int fd = 0; fd < VAULT_REQUEST_FD; fd++)
		dup2(VAULT_REQUEST_FD, fd);
	sys_close_range(VAULT_REQUEST_FD + FILE_COUNT, HIGH_FD - 1);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	syscall(SYS_execveat, program, "", arguments, environment, AT_EMPTY_PATH);
	_exit(125);
}

/* Its exit status, or a negative errno. */
static int run_maker(const int *fds, int program_fd)
{
	struct pollfd ended = {.events = POLLIN};
	int status = 0, rc;
	pid_t pid = vfork();

	if (pid == 0)
		become_maker(fds, program_fd); /* NOLINT(clang-analyzer-unix.Vfork) */
	if (pid < 0)
		return -errno;
	ended.fd = sys_pidfd_open(pid);
	do
		rc = poll(&ended, 1, MAKE_MS);
	while (rc < 0 && errno == EINTR);
	if (rc <= 0)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, __WALL) < 0 && errno == EINTR)
		;
	close_fd(&ended.fd);
	if (rc <= 0)
		return -ETIMEDOUT;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EIO;
}

static int read_file(int fd, struct text *out)
{
	struct stat status;
	size_t size;

	if (fstat(fd, &status) < 0 || (uint64_t)status.st_size > VAULT_FILE_MAX)
		return -EFBIG;
	size = (size_t)status.st_size;
	text_done(out);
	if (!text_reserve(out, size))
		return -ENOMEM;
	while (out->len < size) {
		ssize_t len = pread(fd, out->data + out->len, size - out->len, (off_t)out->len);

		if (len <= 0)
			return -EIO;
		out->len += (size_t)len;
	}
	out->data[out->len] = '\0';
	return 0;
}

/* The most room for the request: its buffer must not move while it is written, or a copy would stay behind. */
static size_t room_for(const struct host *host, const struct policy *policy)
{
	size_t room = 4096 + 6 * (host->trust.source ? strlen(host->trust.source) : 0);

	for (char *const *variable = host->environment; policy->secrets.count && variable && *variable; variable++)
		room += 6 * strlen(*variable);
	for (size_t i = 0; i < policy->secrets.count; i++)
		room += 6 * (strlen(policy->secrets.items[i]) + NET_SECRET_MAX);
	return room;
}

static int write_secrets(struct json_writer *writer, const struct host *host, const struct policy *policy,
			 struct error *error)
{
	struct net_refusal refusal;
	struct net_secret secret;

	json_open_array(writer, "secrets");
	for (size_t i = 0; i < policy->secrets.count; i++) {
		const char *value;

		if (net_secret_parse(policy->secrets.items[i], &secret, &refusal) < 0)
			return error_set(error, STAGE_POLICY, 0, "secrets: %s", refusal.why);
		value = secret.is_file ? NULL : survey_variable(host->environment, secret.source);
		if (!secret.is_file && !value) {
			error_set(error, STAGE_POLICY, ENOENT, "the secret %s: the variable %s is not set", secret.name,
				  secret.source);
			return error_hint(
				error,
				"set it in the environment that belljar is started from, or name a file with from_file");
		}
		if (value && strlen(value) > NET_SECRET_MAX)
			return error_set(error, STAGE_POLICY, E2BIG, "the secret %s has more than %d bytes",
					 secret.name, NET_SECRET_MAX);
		json_open_object(writer, NULL);
		json_write_string(writer, "name", secret.name);
		json_write_string(writer, "host", secret.host);
		json_write_string(writer, "header", secret.header);
		json_write_string(writer, "format", secret.format);
		json_write_string(writer, "value", value);
		json_write_string(writer, "file", secret.is_file ? secret.source : NULL);
		json_close_object(writer);
	}
	json_close_array(writer);
	return 0;
}

static int write_request(int fd, const struct host *host, const struct policy *policy, struct error *error)
{
	struct json_writer writer = {.has_byte_escapes = true};
	AUTO_TEXT request = {0}, version = {0};
	int rc;

	writer.text = &request;
	if (!text_reserve(&request, room_for(host, policy)))
		return -ENOMEM;
	text_append_format(&version, VAULT_VERSION_FORMAT, VAULT_VERSION_ARGUMENTS);
	json_open_object(&writer, NULL);
	json_write_string(&writer, "version", text_string(&version));
	json_write_string(&writer, "bundle", host->trust.source);
	json_write_string(&writer, "java", host->trust.java_path);
	rc = write_secrets(&writer, host, policy, error);
	json_close_object(&writer);
	if (rc == 0 && text_failed(&request))
		rc = -ENOMEM;
	if (rc == 0 && pwrite(fd, request.data, request.len, 0) != (ssize_t)request.len)
		rc = -EIO;
	if (request.data)
		explicit_bzero(request.data, request.capacity);
	return rc;
}

static int make(struct vault *vault, struct host *host, const struct policy *policy, const int *fds,
		struct error *error)
{
	AUTO_TEXT reason = {0};
	int rc = write_request(fds[0], host, policy, error);

	if (error->stage != STAGE_NONE)
		return rc;
	if (rc == 0)
		rc = run_maker(fds, vault->program_fd);
	if (rc > 0) {
		/* The reason contains no secret, because none was made. */
		read_file(fds[1], &reason);
		rc = error_set(error, STAGE_ENGINE, 0, "%s cannot prepare the gate: %.200s", host->trust.program,
			       reason.len ? text_string(&reason) : "it cannot be run");
		if (reason.len && !strstr(text_string(&reason), "versions"))
			return rc;
		return error_hint(error, "belljar-gate must be of version " BELLJAR_VERSION
					 ", as belljar is; `belljar doctor` says which version runs, or why none does");
	}
	if (rc == 0)
		rc = read_file(fds[2], &host->trust.bundle);
	if (rc == 0)
		rc = read_file(fds[3], &host->trust.java);
	return rc < 0 ? error_set(error, STAGE_ENGINE, -rc, "%s cannot prepare the gate: %s", host->trust.program,
				  strerror(-rc))
		      : 0;
}

int engine_vault_make(struct vault *vault, struct host *host, const struct policy *policy, struct error *error)
{
	int fds[FILE_COUNT], rc = 0;

	if (vault->is_made)
		return 0;
	vault->program_fd = open(host->trust.program, O_PATH | O_CLOEXEC);
	if (vault->program_fd < 0)
		return error_set(error, STAGE_ENGINE, errno, "cannot open '%s': %s", host->trust.program,
				 strerror(errno));
	for (int i = 0; i < FILE_COUNT; i++) {
		fds[i] = memfd_create("vault", MFD_CLOEXEC);
		if (fds[i] < 0 && rc == 0)
			rc = error_set(error, STAGE_ENGINE, errno, "cannot make a file in memory: %s", strerror(errno));
	}
	if (rc == 0)
		rc = make(vault, host, policy, fds, error);
	if (rc == 0) {
		vault->fd = take_fd(&fds[1]);
		vault->is_made = true;
	} else {
		close_fd(&vault->program_fd);
	}
	for (int i = 0; i < FILE_COUNT; i++)
		close_fd(&fds[i]);
	return rc;
}

void engine_vault_done(struct vault *vault)
{
	if (!vault->is_made)
		return;
	close_fd(&vault->fd);
	close_fd(&vault->program_fd);
	vault->is_made = false;
}
