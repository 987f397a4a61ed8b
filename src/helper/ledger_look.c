/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper/ledger_look.c - is what a traced command asks for there on the host, and does the jar refuse it?
 *
 * In a process of its own, a copy of the engine: a command can name a path of a file server that does not answer, and the engine has
 * deadlines to keep. It can look at names and at nothing else: no file can be opened, nothing written, and no call made but those
 * it needs. What it looks at it looks at as the caller, since a path counts if the caller could use it on the host.
 */
#include "helper/ledger_look.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/escape.h"
#include "inside/control.h"
#include "plan/plan_landlock.h"
#include "plan/seccomp/seccomp_compile.h"
#include "base/sys/calls.h"

#define SOCKET_FD 3
#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif

struct looking {
	const struct plan *plan;
	struct plan_looker looker;
	int socket_fd;
	struct denial_list denials;
	/* For each attempt the index of its denial, plus one; 0: none. */
	uint32_t places[1024];
};

/* --- the host ----------------------------------------------------------------------------------------------- */

static void look(void *owner, const char *path, struct plan_object *out)
{
	struct stat status;
	ssize_t len;

	(void)owner;
	*out = (struct plan_object){0};
	if (fstatat(AT_FDCWD, path, &status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
		return;
	out->mode = status.st_mode;
	out->uid = status.st_uid;
	out->gid = status.st_gid;
	len = S_ISLNK(status.st_mode) ? readlink(path, out->link, sizeof(out->link) - 1) : 0;
	out->link[MAX_OF(len, 0)] = '\0';
}

struct plan_looker helper_ledger_host(const char *home)
{
	return (struct plan_looker){.look = look, .uid = geteuid(), .gid = getegid(), .home = home};
}

/* Could the caller do that on the host? To make something one must be able to write to where it comes. */
static bool is_possible_on_host(const char *path, enum plan_access access)
{
	static const int modes[] = {[PLAN_READ] = R_OK, [PLAN_WRITE] = W_OK, [PLAN_EXECUTE] = X_OK};
	char place[PATH_MAX];
	char *slash;

	if (syscall(SYS_faccessat2, AT_FDCWD, path, modes[access], AT_EACCESS) == 0)
		return true;
	if (errno != ENOENT || access != PLAN_WRITE)
		return false;
	snprintf(place, sizeof(place), "%s", path);
	slash = strrchr(place, '/');
	if (!slash)
		return false;
	slash[slash == place] = '\0';
	return syscall(SYS_faccessat2, AT_FDCWD, place, W_OK, AT_EACCESS) == 0;
}

/* --- walls -------------------------------------------------------------------------------------------------- */

static const enum syscall_id allowed[] = {
	/* what it does */
	SYSCALL_faccessat2,
	SYSCALL_newfstatat,
	SYSCALL_lstat,
	SYSCALL_statx,
	SYSCALL_readlink,
	SYSCALL_readlinkat,
	SYSCALL_poll,
	SYSCALL_ppoll,
	SYSCALL_recvmsg,
	SYSCALL_sendmsg,
	SYSCALL_close,
	/* memory, time, the end */
	SYSCALL_brk,
	SYSCALL_clock_gettime,
	SYSCALL_exit,
	SYSCALL_exit_group,
	SYSCALL_madvise,
	SYSCALL_mmap,
	SYSCALL_mprotect,
	SYSCALL_mremap,
	SYSCALL_munmap,
	SYSCALL_restart_syscall,
	SYSCALL_rt_sigreturn,
};

static int load_filter(void)
{
	struct seccomp_profile profile = {.parts = SECCOMP_UNKNOWN};
	struct sock_filter program[SECCOMP_PROGRAM_MAX];
	struct error error = {0};
	size_t len;
	int rc = seccomp_compile_only(allowed, ARRAY_LEN(allowed), NULL, 0, &profile, syscall_native_arch(), program,
				      ARRAY_LEN(program), &len, &error);

	return rc < 0 ? rc : sys_seccomp_load(program, len);
}

static int put_up_walls(int abi)
{
	AUTO_CLOSE int ruleset_fd = -1;

	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	if (abi) {
		ruleset_fd = sys_landlock_create(plan_landlock_rights_of_abi(abi), 0, abi);
		if (ruleset_fd < 0 || sys_landlock_restrict(ruleset_fd, abi < 7 ? 0 : SYS_LANDLOCK_QUIET) < 0)
			return -EPERM;
	}
	return load_filter();
}

/* --- what was asked for ------------------------------------------------------------------------------------- */

/* Without what says nothing: "//", "/./", a slash at the end. */
static void clean_path(char *path)
{
	char *out = path;

	for (const char *at = path; *at;) {
		size_t len;

		at += strspn(at, "/");
		len = strcspn(at, "/");
		if (len && !(len == 1 && *at == '.')) {
			*out++ = '/';
			memmove(out, at, len);
			out += len;
		}
		at += len;
	}
	if (out == path)
		*out++ = '/';
	*out = '\0';
}

/* A name that cannot be shown as it is cannot be copied from a screen either. */
static bool is_plain(const char *path)
{
	AUTO_TEXT shown = {0};

	escape_append(&shown, path, PATH_MAX);
	return !strcmp(text_string(&shown), path);
}

/* The directory of the virtual environment that @path lies in; false: it lies in none. */
static bool find_environment(const char *path, char out[PATH_MAX])
{
	char mark[PATH_MAX];
	char *slash;

	snprintf(out, PATH_MAX, "%s", path);
	while ((slash = strrchr(out, '/')) && slash != out) {
		*slash = '\0';
		if (snprintf(mark, sizeof(mark), "%s/pyvenv.cfg", out) < (int)sizeof(mark) &&
		    syscall(SYS_faccessat2, AT_FDCWD, mark, R_OK, AT_EACCESS) == 0)
			return true;
	}
	return false;
}

/* Propose a change for @directory instead of for a file in it. False: that would show too much, or does not help. */
static bool widen(const struct looking *looking, const char *directory, enum plan_access access,
		  struct plan_explanation *explanation)
{
	AUTO(plan_explanation_done) struct plan_explanation wider = {0};

	if (!is_plain(directory) || helper_ledger_holds_secret(&looking->looker, directory))
		return false;
	plan_explain_path(looking->plan, &looking->looker, directory, access, &wider);
	if (wider.is_allowed || !wider.flag.len || wider.warning.len)
		return false;
	text_clear(&explanation->flag);
	text_append_string(&explanation->flag, text_string(&wider.flag));
	text_clear(&explanation->policy);
	text_append_string(&explanation->policy, text_string(&wider.policy));
	return true;
}

/* A program of a virtual environment is of no use without the rest of it. */
static void widen_to_environment(const struct looking *looking, const char *path, struct plan_explanation *explanation)
{
	char directory[PATH_MAX];

	if (explanation->flag.len && find_environment(path, directory) &&
	    widen(looking, directory, PLAN_READ, explanation))
		text_append_string(&explanation->why, "; it is part of a virtual environment of Python's");
}

/* Removing, renaming or replacing a file writes to its directory, so propose that. */
static void widen_to_directory(const struct looking *looking, const char *path, struct plan_explanation *explanation)
{
	char directory[PATH_MAX];
	char *slash;

	if (!explanation->flag.len ||
	    syscall(SYS_faccessat2, AT_FDCWD, path, F_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) < 0)
		return;
	snprintf(directory, sizeof(directory), "%s", path);
	slash = strrchr(directory, '/');
	*slash = '\0';
	if (slash != directory && widen(looking, directory, PLAN_WRITE, explanation))
		return;
	text_clear(&explanation->flag);
	text_clear(&explanation->policy);
	text_append_string(&explanation->warning,
			   "to remove or replace it its directory has to be writable; Belljar proposes no change");
}

static bool judge_path(const struct looking *looking, const char *path, enum jar_access asked, struct denial *out)
{
	static const enum plan_access accesses[] = {[JAR_READS] = PLAN_READ,
						    [JAR_WRITES] = PLAN_WRITE,
						    [JAR_RENAMES] = PLAN_WRITE,
						    [JAR_EXECUTES] = PLAN_EXECUTE,
						    [JAR_LOOKS] = PLAN_READ};
	enum plan_access access = accesses[asked];
	AUTO(plan_explanation_done) struct plan_explanation explanation = {0};
	bool has_cure = is_plain(path);

	plan_explain_path(looking->plan, &looking->looker, path, access, &explanation);
	if (explanation.is_allowed || !is_possible_on_host(path, access))
		return false;
	if (asked == JAR_RENAMES)
		widen_to_directory(looking, path, &explanation);
	if (access != PLAN_WRITE)
		widen_to_environment(looking, path, &explanation);
	if (!has_cure && !explanation.warning.len)
		text_append_string(&explanation.warning,
				   "its name has characters in it that cannot be shown; Belljar proposes no change");
	out->kind = DENIAL_FILE;
	out->path = helper_ledger_path(access, (const char *const[]){path, text_string(&explanation.why),
								     has_cure ? text_string(&explanation.flag) : "",
								     has_cure ? text_string(&explanation.policy) : "",
								     text_string(&explanation.warning)});
	return out->path;
}

/* The loopback is the jar's own: a missing listener is not a refusal. A gate reports its own refusals. */
static bool judge_address(const struct looking *looking, const char *target, struct denial *out)
{
	AUTO(plan_explanation_done) struct plan_explanation explanation = {0};
	struct plan_network_rules network = plan_network_rules(looking->plan);
	static const uint8_t loopback[16] = {[15] = 1}, any[16] = {0};
	struct plan_endpoint endpoint;
	AUTO_TEXT host = {0};

	if (network.net != NET_NONE || !plan_read_endpoint(target, &endpoint) || !endpoint.is_address)
		return false;
	if (endpoint.is_ipv6 ? !memcmp(endpoint.address, loopback, 16) || !memcmp(endpoint.address, any, 16)
			     : endpoint.address[0] == 127 || endpoint.address[0] == 0)
		return false;
	plan_explain_host(&network, &endpoint, &explanation);
	out->kind = DENIAL_NET;
	out->port = endpoint.port;
	endpoint.port = 0;
	plan_format_endpoint(&endpoint, &host);
	snprintf(out->what, sizeof(out->what), "%s", text_string(&host));
	return !explanation.is_allowed;
}

static void hear_attempt(struct looking *looking, struct jar_message *message)
{
	struct denial denial = {.count = 1, .last_ns = message->tried.last_ns, .is_inferred = true};
	uint32_t number = message->tried.number, access = message->tried.access;
	bool is_denied = false;
	struct denial *added;

	message->tried.path[JAR_PATH_BYTES - 1] = '\0';
	if (number >= ARRAY_LEN(looking->places) || looking->denials.count >= DENIALS_MAX)
		return;
	if (access == JAR_CONNECTS) {
		is_denied = judge_address(looking, message->tried.path, &denial);
	} else if (access < JAR_ACCESS_COUNT && message->tried.path[0] == '/') {
		clean_path(message->tried.path);
		is_denied = judge_path(looking, message->tried.path, (enum jar_access)access, &denial);
	}
	added = is_denied ? list_add(&looking->denials) : NULL;
	if (!added)
		return;
	memcpy(denial.process, message->tried.process, sizeof(denial.process));
	denial.process[sizeof(denial.process) - 1] = '\0';
	*added = denial;
	looking->places[number] = (uint32_t)looking->denials.count;
	helper_ledger_send(looking->socket_fd, LEDGER_FOUND, added);
}

static void hear_again(struct looking *looking, const struct jar_message *message)
{
	uint32_t number = message->tried_again.number;
	uint32_t place = number < ARRAY_LEN(looking->places) ? looking->places[number] : 0;

	if (!place)
		return;
	looking->denials.items[place - 1].count = message->tried_again.count;
	looking->denials.items[place - 1].last_ns = message->tried_again.last_ns;
}

/* False: there will be no more. */
static bool hear(struct looking *looking)
{
	struct pollfd waiting = {.fd = looking->socket_fd, .events = POLLIN};
	struct jar_message message;
	int fd, rc;

	poll(&waiting, 1, -1);
	rc = control_receive(looking->socket_fd, &message, &fd);
	if (rc > 0 && message.kind == JAR_TRIED)
		hear_attempt(looking, &message);
	else if (rc > 0 && message.kind == JAR_TRIED_AGAIN)
		hear_again(looking, &message);
	return rc > 0 || rc == -EAGAIN || rc == -EINTR;
}

void helper_ledger_look(int socket_fd, const struct plan *plan)
{
	static struct looking looking;
	const struct sigaction standard = {.sa_handler = SIG_DFL};

	for (int number = 1; number < NSIG; number++)
		sigaction(number, &standard, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	/* A key typed at a terminal is for the engine. */
	setsid();
	for (int fd = 0; fd <= SOCKET_FD; fd++)
		if (dup2(socket_fd, fd) < 0)
			_exit(125);
	sys_close_range(SOCKET_FD + 1, ~0U);
	looking = (struct looking){.plan = plan, .looker = helper_ledger_host(plan->home), .socket_fd = SOCKET_FD};
	looking.looker.was_refused = true;
	if (put_up_walls(plan->core.landlock_abi) < 0)
		_exit(125);
	while (hear(&looking))
		;
	helper_ledger_group(plan, &looking.looker, &looking.denials);
	helper_ledger_send(SOCKET_FD, LEDGER_ANEW, NULL);
	for (size_t i = 0; i < looking.denials.count; i++)
		helper_ledger_send(SOCKET_FD, LEDGER_FOUND, &looking.denials.items[i]);
	_exit(0);
}
