/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/call/call_minder.c - the minder of one call: make its places, have the zygote fork, check and supervise that
 *
 * The minder is the first process of the call's own pid, mount, IPC and network namespace, and makes the private places of the
 * jar anew in them. It drops its capabilities before it asks for a fork. The fork is the zygote's child, so the
 * zygote reports its end. But it dies with this process, like every process of the pid namespace.
 */
#include "inside/call/call_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/descriptors.h"
#include "base/sys/calls.h"

#define NAMESPACES_MAX 4
#define CGROUPS_MAX 8
/* How long to wait for the end of a killed fork; a host that swaps may be slow. */
#define REAP_MS 5000

/* The jar's own mounts, for the STEP_BINDs that a minder carries out again. */
static int trees[CALL_TREES_MAX];

/* The fork that this minder supervises. */
static struct {
	int fd;           /* to it, and to the zygote */
	pid_t pid;        /* as the minder sees it; 0: there is none yet */
	pid_t minder_pid; /* the minder's, as the jar sees it */
	bool is_reaped;   /* the zygote has said how it ended */
	int status;       /* likewise */
} call = {.fd = -1};

/* --- messages ----------------------------------------------------------------------------------------------- */

enum {
	ZYGOTE_FORK = 1,    /* minder to zygote */
	ZYGOTE_READY,       /* fork to minder: it waits, its pid is `value` */
	ZYGOTE_BEGIN,       /* minder to fork */
	ZYGOTE_ENDED,       /* zygote to minder: wait status in `value` */
	ZYGOTE_FORK_FAILED, /* zygote or fork to minder: errno in `value` */
	ZYGOTE_LISTENER,    /* fork to minder, before it is ready: what its filter asks is heard there */
};

/* Little endian on every machine we build for; docs/protocol.md has the table. */
struct zygote_fork {
	int32_t kind;
	uint32_t namespaces; /* CLONE_NEW*, in the order of the descriptors: pid, mount, IPC, network */
	uint32_t has_ruleset;
	uint32_t cgroup_count;
};

struct zygote_begin {
	int32_t kind;
	uint32_t has_environment; /* the first descriptor is a file with it; else it is the zygote's own */
};

struct zygote_word {
	int32_t kind;
	int32_t value;
	uint64_t user_us, system_us, maxrss_kib, written_blocks;
};

/* --- fresh places ------------------------------------------------------------------------------------------- */

/* Clone the jar's mounts in private places before the minder covers those. */
static int take_trees(const struct plan_step_list *anew)
{
	for (size_t i = 0; i < anew->count; i++) {
		if (anew->items[i].kind != STEP_BIND)
			continue;
		trees[i] = sys_open_tree(AT_FDCWD, anew->items[i].target, true);
		if (trees[i] < 0)
			return trees[i];
	}
	return 0;
}

static int carry_out(struct jar_build *build, size_t number)
{
	struct plan_step step = build->plan->zygote.anew.items[number];

	if (step.kind == STEP_BIND)
		return build_attach_tree(build, &step, trees[number]);
	if (step.kind == STEP_METER)
		step.as.meter.has_clock =
			false; /* the fork is not this process's child: a clock here would not count it */
	return build_step(build, &step);
}

static int make_anew(struct jar_build *build)
{
	const struct plan_step_list *anew = &build->plan->zygote.anew;
	int rc = take_trees(anew);

	build->root_fd = sys_open("/", O_PATH | O_DIRECTORY);
	if (rc == 0 && build->root_fd < 0)
		rc = build->root_fd;
	for (size_t i = 0; i < anew->count && rc == 0; i++)
		rc = carry_out(build, i);
	close_fd(&build->root_fd);
	close_fd(&build->scratch_fd);
	return rc;
}

/* Before this /proc is covered: it is the jar's, and so are its numbers. */
static pid_t pid_in_jar(void)
{
	char number[16];
	ssize_t len = readlink("/proc/self", number, sizeof(number) - 1);

	if (len <= 0)
		return 0;
	number[len] = '\0';
	return (pid_t)strtol(number, NULL, 10);
}

/* --- the fork ----------------------------------------------------------------------------------------------- */

static const struct {
	uint32_t flag;
	const char *path;
} namespaces[NAMESPACES_MAX] = {
	{CLONE_NEWPID, "/proc/self/ns/pid"},
	{CLONE_NEWNS, "/proc/self/ns/mnt"},
	{CLONE_NEWIPC, "/proc/self/ns/ipc"},
	{CLONE_NEWNET, "/proc/self/ns/net"},
};

static int send_fork_request(const struct jar_inside *inside, int their_end, const int *cgroup_fds, size_t cgroup_count)
{
	const struct jar_plan *plan = inside->plan;
	struct zygote_fork request = {.kind = ZYGOTE_FORK, .cgroup_count = (uint32_t)cgroup_count};
	const struct iovec parts[] = {
		{.iov_base = &request, .iov_len = sizeof(request)},
		{.iov_base = plan->filter.program, .iov_len = plan->filter.len * sizeof(*plan->filter.program)},
	};
	struct pollfd room = {.fd = CALL_ZYGOTE_FD, .events = POLLOUT};
	int fds[1 + NAMESPACES_MAX + 1 + CGROUPS_MAX], rc = 0;
	size_t count = 0;

	fds[count++] = their_end;
	for (size_t i = 0; i < ARRAY_LEN(namespaces) && rc == 0; i++) {
		if (namespaces[i].flag == CLONE_NEWNET && !(plan->namespaces & CLONE_NEWNET))
			continue;
		request.namespaces |= namespaces[i].flag;
		rc = fds[count++] = sys_open(namespaces[i].path, O_RDONLY);
		rc = MIN_OF(rc, 0);
	}
	if (rc == 0 && plan->landlock_abi) {
		request.has_ruleset = 1;
		rc = fds[count++] = build_landlock_ruleset(&inside->build);
		rc = MIN_OF(rc, 0);
	}
	for (size_t i = 0; i < cgroup_count && rc == 0; i++)
		fds[count++] = cgroup_fds[i];
	while (rc == 0 &&
	       (rc = descriptors_send_packet(CALL_ZYGOTE_FD, parts, ARRAY_LEN(parts), fds, count)) == -EAGAIN)
		rc = poll(&room, 1, -1) < 0 && errno != EINTR ? -errno : 0;
	for (size_t i = 1; i < count; i++)
		close_fd(&fds[i]);
	return rc;
}

/* --- the fork gets ready ------------------------------------------------------------------------------------ */

/* Receive a word on the call's socket, with a descriptor or -1, and the sender's pid in this namespace. */
static ssize_t receive_word(int fd, struct zygote_word *word, int *sent_fd, pid_t *sender)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
	} control = {0};
	struct iovec part = {.iov_base = word, .iov_len = sizeof(*word)};
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	ssize_t len = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	*sent_fd = -1;
	*sender = 0;
	for (struct cmsghdr *at = len < 0 ? NULL : CMSG_FIRSTHDR(&message); at; at = CMSG_NXTHDR(&message, at)) {
		if (at->cmsg_level == SOL_SOCKET && at->cmsg_type == SCM_RIGHTS)
			memcpy(sent_fd, CMSG_DATA(at), sizeof(*sent_fd));
		if (at->cmsg_level == SOL_SOCKET && at->cmsg_type == SCM_CREDENTIALS) {
			struct ucred credentials;

			memcpy(&credentials, CMSG_DATA(at), sizeof(credentials));
			*sender = credentials.pid;
		}
	}
	return len < 0 ? -errno : len;
}

/* Wait until the fork says something; the engine may let go in the meantime. */
static int wait_for_word(struct jar_inside *inside, struct zygote_word *word, int *sent_fd, pid_t *sender)
{
	struct pollfd waiting[] = {{.fd = call.fd, .events = POLLIN}, {.fd = JAR_CONTROL_FD}, {.events = POLLIN}};

	for (;;) {
		ssize_t len;

		waiting[2].fd = inside->build.listener_fd;
		if (poll(waiting, ARRAY_LEN(waiting), -1) < 0)
			continue;
		if (waiting[1].revents)
			init_leave(inside, 0);
		/* Libraries in the zygote may make calls at a fork. */
		if (waiting[2].revents)
			answer_some(&inside->build.places, &inside->build.listener_fd);
		len = receive_word(call.fd, word, sent_fd, sender);
		if (len == -EAGAIN || len == -EINTR)
			continue;
		if (len < 0)
			return (int)len;
		return len == sizeof(*word) ? 0 : -EPIPE;
	}
}

/* The zygote is not there, or did not do its part. */
static int wait_until_ready(struct jar_inside *inside)
{
	AUTO_CLOSE int probe_fd = -1;
	struct zygote_word word;
	pid_t sender;
	int rc = wait_for_word(inside, &word, &probe_fd, &sender);

	if (rc == 0 && word.kind == ZYGOTE_LISTENER && answer_is_listener(probe_fd)) {
		inside->build.listener_fd = take_fd(&probe_fd);
		rc = wait_for_word(inside, &word, &probe_fd, &sender);
	}
	if (rc < 0)
		return rc;
	if (word.kind != ZYGOTE_READY) {
		call.is_reaped = word.kind == ZYGOTE_ENDED;
		return word.kind == ZYGOTE_FORK_FAILED && word.value > 0 ? -word.value : -EPIPE;
	}
	/* A sender outside this pid namespace has no pid here. */
	if (sender <= 1 || sender != word.value)
		return -EPERM;
	call.pid = sender;
	return call_check(inside->plan, sender, probe_fd);
}

static int ask_for_fork(struct jar_inside *inside, const int *cgroup_fds, size_t cgroup_count)
{
	int their_end = -1, wanted = 1, rc;

	rc = control_socket_pair(&call.fd, &their_end);
	if (rc == 0 && setsockopt(call.fd, SOL_SOCKET, SO_PASSCRED, &wanted, sizeof(wanted)) < 0)
		rc = -errno;
	/* Root owns /proc/self of a process that is not dumpable. Only the zygote could look here meanwhile. */
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	if (rc == 0)
		rc = send_fork_request(inside, their_end, cgroup_fds, cgroup_count);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	close_fd(&their_end);
	return rc < 0 ? rc : wait_until_ready(inside);
}

static int prepare(struct jar_inside *inside, const int *cgroup_fds, size_t cgroup_count)
{
	int rc;

	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	call.minder_pid = pid_in_jar();
	close_fd(&inside->build.written_fd); /* the first process's */
	rc = inside->plan->namespaces & CLONE_NEWNET ? sys_new_network() : 0;
	umask(0);
	if (rc == 0)
		rc = make_anew(&inside->build);
	umask(022);
	if (rc == 0)
		init_hand_over_sockets(inside);
	if (rc == 0)
		rc = call_keep_capabilities(0);
	return rc < 0 ? rc : ask_for_fork(inside, cgroup_fds, cgroup_count);
}

/* --- beginning ---------------------------------------------------------------------------------------------- */

static int limit_fork(const struct jar_inside *inside, const struct plan_step *step)
{
	struct rlimit limit;

	if (prlimit(call.pid, step->as.rlimit.resource, NULL, &limit) < 0)
		return -errno;
	limit.rlim_max = MIN_OF(limit.rlim_max, step->as.rlimit.limit);
	limit.rlim_cur = limit.rlim_max;
	return prlimit(call.pid, step->as.rlimit.resource, &limit, NULL) < 0 ? -errno : 0;
}

/* The fork has put them up, and call_check() has looked. */
static bool is_wall(enum step_kind kind)
{
	return kind == STEP_PRIVILEGES || kind == STEP_LANDLOCK || kind == STEP_SECCOMP;
}

/* One step of the run's own: done here for the fork, or seen to be done, or sent to it. */
static int enter_step(struct jar_inside *inside, const struct plan_step *step, const char **workdir)
{
	if (step->kind == STEP_RLIMIT)
		return limit_fork(inside, step);
	if (step->kind == STEP_CGROUP)
		return build_step(&inside->build, step);
	if (step->kind == STEP_WORKDIR)
		*workdir = step->target;
	return step->kind == STEP_WORKDIR || is_wall(step->kind) ? 0 : -EINVAL;
}

static bool is_same_environment(const struct jar_command *command, const struct string_list *zygote)
{
	if (command->env_count != zygote->count)
		return false;
	for (size_t i = 0; i < command->env_count; i++)
		if (strcmp(command->env[i], zygote->items[i]) != 0)
			return false;
	return true;
}

static int write_environment(const struct jar_command *command)
{
	AUTO_CLOSE int fd = memfd_create("environment", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	for (size_t i = 0; i < command->env_count; i++) {
		size_t len = strlen(command->env[i]) + 1;

		if (write(fd, command->env[i], len) != (ssize_t)len)
			return -ENOMEM;
	}
	return take_fd(&fd);
}

static int send_begin(struct jar_inside *inside, const char *workdir)
{
	const struct jar_command *command = &inside->command;
	struct zygote_begin begin = {.kind = ZYGOTE_BEGIN};
	const struct iovec parts[] = {
		{.iov_base = &begin, .iov_len = sizeof(begin)},
		{.iov_base = (void *)workdir, .iov_len = strlen(workdir)},
	};
	AUTO_CLOSE int environment_fd = -1;
	int fds[JAR_ATTACHED_MAX];
	size_t count = 0;

	if (!is_same_environment(command, &inside->plan->env)) {
		environment_fd = write_environment(command);
		if (environment_fd < 0)
			return environment_fd;
		begin.has_environment = 1;
		fds[count++] = environment_fd;
	}
	memcpy(fds + count, command->fds, command->fd_count * sizeof(*fds));
	return descriptors_send_packet(call.fd, parts, ARRAY_LEN(parts), fds, count + command->fd_count);
}

/* On failure *@failed_step says which step it was, or -1. */
static int begin_fork(struct jar_inside *inside, int32_t *failed_step)
{
	const struct plan_step_list *entry = &inside->command.entry;
	const char *workdir = inside->plan->workdir;
	int rc = inside->command.has_pty ? -EINVAL : 0;

	*failed_step = -1;
	for (size_t i = 0; i < entry->count && rc == 0; i++) {
		rc = enter_step(inside, &entry->items[i], &workdir);
		if (rc < 0)
			*failed_step = (int32_t)i;
		else
			inside->entry_done++;
	}
	if (rc == 0)
		rc = send_begin(inside, workdir);
	/* The call comes first: its caller waits for it, and no process waits for this. */
	if (rc == 0 && inside->command.is_metered)
		init_hand_over_view(inside);
	return rc;
}

/* --- the end ------------------------------------------------------------------------------------------------ */

static struct timeval to_timeval(uint64_t microseconds)
{
	return (struct timeval){.tv_sec = (time_t)(microseconds / 1000000),
				.tv_usec = (suseconds_t)(microseconds % 1000000)};
}

static void note_end(struct jar_inside *inside)
{
	struct zygote_word word = {0};
	ssize_t len = recv(call.fd, &word, sizeof(word), MSG_DONTWAIT);

	call.is_reaped = true;
	call.status = SIGKILL; /* the zygote is gone; this minder kills the fork now */
	if (len != sizeof(word) || word.kind != ZYGOTE_ENDED)
		return;
	call.status = word.value;
	inside->outsider_usage = (struct rusage){
		.ru_utime = to_timeval(word.user_us),
		.ru_stime = to_timeval(word.system_us),
		.ru_maxrss = (long)word.maxrss_kib,
		.ru_oublock = (long)word.written_blocks,
	};
}

static void await_fork(struct jar_inside *inside)
{
	struct pollfd waiting = {.fd = call.fd, .events = POLLIN};

	if (call.is_reaped || !call.pid)
		return;
	if (poll(&waiting, 1, REAP_MS) > 0)
		note_end(inside);
}

/* --- one call ----------------------------------------------------------------------------------------------- */

static void begin_call(struct jar_inside *inside)
{
	struct jar_message started = {.kind = JAR_STARTED, .started = {.begun_ns = sys_monotonic_ns()}};
	struct jar_message failed = {.kind = JAR_STEP_FAILED};
	int rc = begin_fork(inside, &failed.step_failed.step);

	if (rc < 0) {
		failed.step_failed.is_entry = failed.step_failed.step >= 0;
		failed.step_failed.error = -rc;
		init_report(inside, &failed, -1);
		init_leave(inside, 125);
	}
	getrusage(RUSAGE_SELF, &started.started.making);
	inside->start = started;
	init_report(inside, &started, -1);
	for (size_t i = 0; i < inside->command.fd_count; i++)
		close(inside->command.fds[i]);
}

/* Let the waiting fork begin, and supervise it until its tree is gone. */
static void watch_call(struct jar_inside *inside)
{
	struct pollfd waiting[] = {
		{.fd = JAR_CONTROL_FD, .events = POLLIN}, {.fd = call.fd, .events = POLLIN}, {.events = POLLIN}};
	sigset_t all_but_child;

	begin_call(inside);
	init_catch_children(&all_but_child);
	while (!waiting[1].revents) {
		init_reap(inside); /* orphans; the fork is the zygote's child */
		waiting[2].fd = inside->build.listener_fd;
		if (init_wait(inside, waiting, ARRAY_LEN(waiting), &all_but_child) <= 0)
			continue;
		if (waiting[0].revents)
			init_on_request(inside);
		if (waiting[2].revents)
			answer_some(&inside->build.places, &inside->build.listener_fd);
		init_report_refusals(inside, false);
	}
	close_fd(&inside->build.listener_fd);
	note_end(inside);
	inside->end.status = call.status;
	init_report_end(inside);
}

void call_minder_main(struct jar_inside *inside, const int *cgroup_fds, size_t cgroup_count)
{
	struct jar_message message;
	int rc;

	inside->owns_pids = true;
	inside->await_outsider = await_fork;
	rc = prepare(inside, cgroup_fds, cgroup_count);
	if (rc < 0)
		init_fail(inside, rc);
	init_report_ready(inside, call.minder_pid);
	if (!init_receive(JAR_RUN, &message))
		init_leave(inside, 0);
	rc = init_take_command(inside, &message, NULL);
	if (rc < 0)
		init_fail(inside, rc);
	watch_call(inside);
	init_report_empty(inside);
	_exit(0);
}
