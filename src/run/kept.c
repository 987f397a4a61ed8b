/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/kept.c - a jar that outlives the call that made it: from its first process to surely gone
 *
 * Everything that the jar's first process says comes here; what is for a run goes to its seat. The jar is gone when its
 * first process is: every run in it is then over, whether or not it was told before.
 */
#include "run/kept.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "run/seat_jar.h"
#include "sys/calls.h"

/* What the jar's first process may take to kill and reap the rest. */
#define OVERDUE_NS 400000000ULL
#define SECOND_CHANCE_NS 3000000000ULL
/* A jar that cannot be made in this time never will be. */
#define MAKING_NS 30000000000ULL
/* So many questions for files are sent and not yet answered at a time. */
#define FILES_ASKED_MAX 16

struct kept_file {
	struct kept_file *next;
	kept_file_function *function; /* NULL: nobody waits any more */
	void *owner;
	enum jar_access access;
	mode_t mode;
	bool is_sent;
	char path[];
};

bool kept_is_ready(const struct kept_jar *jar)
{
	return jar->seen.has_started && !jar->is_gone;
}

const struct observation *kept_observation(const struct kept_jar *jar)
{
	return &jar->seen;
}

/* --- files -------------------------------------------------------------------------------------------------- */

static void send_files(struct kept_jar *jar)
{
	unsigned sent = 0;

	for (struct kept_file *file = jar->files; file && sent < FILES_ASKED_MAX; file = file->next) {
		sent++;
		if (file->is_sent)
			continue;
		if (jar_send_open(jar->jar.control_fd, file->path, file->access, file->mode) < 0)
			return;
		file->is_sent = true;
	}
}

/* The oldest question is answered. */
static void answer_file(struct kept_jar *jar, int fd, int errno_value)
{
	struct kept_file *file = jar->files;

	if (!file) {
		close_fd(&fd);
		return;
	}
	jar->files = file->next;
	if (file->function)
		file->function(file->owner, fd, errno_value);
	else
		close_fd(&fd);
	free(file);
}

int kept_open_file(struct kept_jar *jar, const char *path, enum jar_access access, mode_t mode,
		   kept_file_function *function, void *owner)
{
	size_t len = strlen(path) + 1;
	struct kept_file **end = &jar->files, *file;

	if (jar->is_closing || jar->is_gone)
		return -ESHUTDOWN;
	if (jar->plan->kind != PLAN_KEPT || jar->plan->has_zygote)
		return -EINVAL;
	if (len >= JAR_PATH_MAX)
		return -ENAMETOOLONG;
	file = calloc(1, sizeof(*file) + len);
	if (!file)
		return -ENOMEM;
	*file = (struct kept_file){.function = function, .owner = owner, .access = access, .mode = mode};
	memcpy(file->path, path, len);
	while (*end)
		end = &(*end)->next;
	*end = file;
	send_files(jar);
	return 0;
}

void kept_forget_files(struct kept_jar *jar, const void *owner)
{
	for (struct kept_file *file = jar->files; file; file = file->next)
		if (file->owner == owner)
			file->function = NULL;
}

/* --- limits of the whole jar -------------------------------------------------------------------------------- */

void kept_note_written(struct kept_jar *jar)
{
	uint64_t sum = jar->first_written_bytes;

	for (const struct seat *seat = jar->seats; seat; seat = seat->next)
		sum += seat->written_bytes;
	guard_written(&jar->guard, sum);
}

static uint64_t share_of(const struct seat *seat, enum limit_name name)
{
	return name == LIMIT_DISK   ? seat->guard.last_disk_bytes
	       : name == LIMIT_PIDS ? seat->guard.last_processes
				    : seat->guard.last_memory_bytes;
}

static bool is_running(const struct seat *seat)
{
	return seat->occupant.owner && !seat->is_over;
}

/* Is a run being ended for a limit, or has one gone over its own and nobody has seen it yet? Then that comes first. */
static bool look_at_runs(struct kept_jar *jar)
{
	bool is_one_ending = false;

	for (struct seat *seat = jar->seats; seat; seat = seat->next) {
		if (is_running(seat)) {
			seat_poll(
				seat); /* the news that the command has started, and with it the guard, may be unread */
			guard_look(&seat->guard);
		}
		/* What it had is given back only when it is gone. */
		is_one_ending |= seat->guard.is_over && !seat->is_keeper_gone;
	}
	return is_one_ending;
}

/*
 * The jar is over a limit of its own. Of several runs the one that has most of it is ended; if that is not enough, the
 * next look finds the next one.
 */
static void on_limit(void *owner, enum limit_name name, const struct limit_hit *hit, enum cause cause)
{
	struct kept_jar *jar = owner;
	struct seat *largest = NULL;

	if (cause != CAUSE_NONE && look_at_runs(jar))
		return;
	for (struct seat *seat = jar->seats; seat; seat = seat->next) {
		if (!is_running(seat))
			continue;
		if (cause == CAUSE_NONE)
			seat->occupant.limit(seat->occupant.owner, name, hit, cause);
		else if (!largest || share_of(seat, name) > share_of(largest, name))
			largest = seat;
	}
	if (largest) {
		largest->guard.is_over = true;
		largest->occupant.limit(largest->occupant.owner, name, hit, cause);
	}
}

/* --- news from the first process ---------------------------------------------------------------------------- */

static void on_ready(struct kept_jar *jar)
{
	struct rusage nothing = {0};

	loop_disarm(&jar->overdue);
	jar->seen.has_started = true;
	jar->seen.metered = jar->plan->has_zygote ? 0 : jar->plan->metered;
	/* In a jar for calls every limit is a call's own. */
	if (jar->plan->kind == PLAN_KEPT && !jar->plan->has_zygote &&
	    !guard_start(&jar->guard, jar->jar.pid, &nothing)) {
		error_set(&jar->seen.error, STAGE_LIMITS, ENOENT,
			  "the jar cannot be measured: its /proc is not to be seen");
		kept_kill(jar);
		return;
	}
	if (!jar->seats)
		seat_want_spare(jar, 0);
	if (jar->request.listener.ready)
		jar->request.listener.ready(jar->request.listener.owner, jar);
}

static void note_zygote_gone(struct kept_jar *jar, int status)
{
	if (WIFSIGNALED(status))
		error_set(&jar->seen.error, STAGE_ENGINE, 0, "the zygote was killed by signal %d", WTERMSIG(status));
	else
		error_set(&jar->seen.error, STAGE_ENGINE, 0, "the zygote has left with status %d", WEXITSTATUS(status));
}

static void on_message(struct kept_jar *jar, const struct jar_message *message, int fd)
{
	struct seat *seat = seat_find(jar, message->kind == JAR_KEEPER_GONE ? (uint32_t)message->step : 0);

	jar->seen.steps_done = message->steps_done;
	switch ((enum jar_message_kind)message->kind) {
	case JAR_VIEW:
		guard_take(&jar->guard, (enum jar_view)message->step, fd, message->clock_ns);
		return;
	case JAR_READY:
		on_ready(jar);
		return;
	case JAR_OPENED:
		answer_file(jar, fd, message->error);
		send_files(jar);
		return;
	case JAR_KEEPER_GONE:
		jar->first_written_bytes = message->written_bytes;
		if (seat)
			seat_keeper_gone(seat, &message->self, SIGKILL);
		kept_note_written(jar);
		seat_sweep(jar);
		return;
	case JAR_STEP_FAILED:
		if (jar->seen.has_started)
			break;
		jar->failure = *message;
		jar->seen.failed_step = message->step;
		error_set(&jar->seen.error, STAGE_ISOLATE, message->error, "cannot make the jar: %s",
			  strerror(message->error));
		close_fd(&fd);
		return;
	case JAR_WRITTEN:
		guard_written(&jar->guard, message->written_bytes);
		close_fd(&fd);
		return;
	case JAR_EXITED:
		if (jar->plan->has_zygote)
			note_zygote_gone(jar, message->status);
		break;
	case JAR_EXEC_FAILED:
	case JAR_TERMINAL:
	case JAR_STARTED:
	case JAR_EMPTY:
	case JAR_SIGNAL:
	case JAR_KILL:
	case JAR_RUN:
	case JAR_KEEPER:
	case JAR_RENEW:
	case JAR_OPEN:
		break;
	}
	if (seat)
		seat_hear(seat, message, fd);
	else
		close_fd(&fd);
}

static void on_control(struct loop_watch *watch, uint32_t events)
{
	struct kept_jar *jar = watch->owner;
	struct jar_message message;
	int fd, rc = -EAGAIN;

	(void)events;
	while (watch->loop && (rc = jar_receive(jar->jar.control_fd, &message, &fd)) > 0)
		on_message(jar, &message, fd);
	if (watch->loop && rc != -EAGAIN && rc != -EINTR)
		loop_remove(watch); /* the pidfd tells the rest */
}

void kept_poll(struct kept_jar *jar)
{
	if (jar->control.loop)
		on_control(&jar->control, EPOLLIN);
}

/* --- the end ------------------------------------------------------------------------------------------------ */

static void on_buried(void *owner, const struct rusage *usage, int status)
{
	struct kept_jar *jar = owner;

	jar->is_gone = true;
	if (!jar->seen.has_started && jar->seen.error.stage == STAGE_NONE)
		error_set(&jar->seen.error, STAGE_ENGINE, 0,
			  "the jar's first process died while making the jar (status %d)", status);
	guard_finish(&jar->guard, usage, &jar->seen);
	for (struct seat *seat = jar->seats; seat; seat = seat->next) {
		if (jar->failure.kind && is_running(seat))
			seat->occupant.message(seat->occupant.owner, &jar->failure, -1);
		seat_keeper_gone(seat, seat->number ? &(struct rusage){0} : usage, status);
	}
	seat_sweep(jar);
	while (jar->files)
		answer_file(jar, -1, ESHUTDOWN);
	if (jar->request.listener.gone)
		jar->request.listener.gone(jar->request.listener.owner, jar);
}

static void begin_burial(struct kept_jar *jar, burial_function *function)
{
	pid_t pid = jar->jar.pid;

	jar->jar.pid = -1;
	burial_begin(&jar->burial, jar->loop, jar->plan, jar->request.family, pid, function, jar);
}

static void on_pidfd(struct loop_watch *watch, uint32_t events)
{
	struct kept_jar *jar = watch->owner;

	(void)events;
	kept_poll(jar); /* its last words may still be unread */
	loop_remove(&jar->pidfd);
	loop_remove(&jar->control);
	loop_disarm(&jar->overdue);
	begin_burial(jar, on_buried);
}

static void on_overdue(struct loop_timer *timer)
{
	struct kept_jar *jar = timer->owner;

	if (!jar->seen.has_started && !jar->is_closing)
		error_set(&jar->seen.error, STAGE_ENGINE, ETIMEDOUT, "the jar could not be made in time");
	/* Without a pid namespace it alone can end its tree at once. */
	if (jar->plan->rung != RUNG_NAMESPACE && jar->is_killed && !jar->is_overdue) {
		jar->is_overdue = true;
		sys_pidfd_send_signal(jar->jar.pidfd, SIGCONT);
		loop_arm(jar->loop, timer, sys_monotonic_ns() + SECOND_CHANCE_NS, on_overdue, jar);
		return;
	}
	sys_pidfd_send_signal(jar->jar.pidfd, SIGKILL);
}

void kept_kill(struct kept_jar *jar)
{
	struct jar_message message = {.kind = JAR_KILL};

	if (jar->is_gone || jar->is_killed)
		return;
	jar->is_killed = true;
	/* The kernel ends what is in the pid namespace of a process that it ends; elsewhere that one has to do it. */
	if (jar->plan->rung == RUNG_NAMESPACE || jar_send(jar->jar.control_fd, &message, -1) < 0)
		sys_pidfd_send_signal(jar->jar.pidfd, SIGKILL);
	else
		loop_arm(jar->loop, &jar->overdue, sys_monotonic_ns() + OVERDUE_NS, on_overdue, jar);
}

void kept_close(struct kept_jar *jar)
{
	if (jar->is_closing || jar->is_gone)
		return;
	jar->is_closing = true;
	for (struct seat *seat = jar->seats; seat; seat = seat->next)
		if (is_running(seat))
			seat->occupant.closing(seat->occupant.owner);
	kept_kill(jar);
}

/* --- making and freeing ------------------------------------------------------------------------------------- */

static int start_jar(struct kept_jar *jar, struct error *error)
{
	const struct kept_request *request = &jar->request;
	enum jar_mode mode = jar->plan->kind == PLAN_KEPT ? JAR_MODE_SERVE : JAR_MODE_WAIT;
	const struct jar_streams streams = {.stdin_fd = -1,
					    .stdout_fd = -1,
					    .stderr_fd = -1,
					    .extra_fds = request->zygote_fds,
					    .extra_count = request->zygote_fd_count};
	pid_t *member = list_add(request->family);
	int rc;

	if (!member)
		return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	rc = jar_start(jar->plan, mode, jar->plan->has_zygote ? &streams : NULL, request->area, NULL, &jar->jar, error);
	if (rc < 0) {
		request->family->count--;
		return rc;
	}
	*member = jar->jar.pid;
	rc = loop_add(jar->loop, &jar->control, jar->jar.control_fd, EPOLLIN, on_control, jar);
	if (rc == 0)
		rc = loop_add(jar->loop, &jar->pidfd, jar->jar.pidfd, EPOLLIN, on_pidfd, jar);
	return rc < 0 ? error_set(error, STAGE_ENGINE, -rc, "cannot watch the jar: %s", strerror(-rc)) : 0;
}

int kept_open(struct loop *loop, const struct kept_request *request, struct kept_jar **out, struct error *error)
{
	struct kept_jar *jar = calloc(1, sizeof(*jar));
	int rc;

	if (!jar)
		return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	jar->loop = loop;
	jar->request = *request;
	jar->plan = request->plan;
	jar->jar = (struct jar){.pid = -1, .pidfd = -1, .control_fd = -1};
	jar->seen.failed_step = -1;
	rc = guard_open(&jar->guard, loop, jar->plan, on_limit, jar, error);
	if (rc == 0)
		rc = start_jar(jar, error);
	if (rc < 0) {
		kept_free(jar);
		return rc;
	}
	loop_arm(loop, &jar->overdue, sys_monotonic_ns() + MAKING_NS, on_overdue, jar);
	*out = jar;
	return 0;
}

static void on_unwatched(void *owner, const struct rusage *usage, int status)
{
	(void)owner;
	(void)usage;
	(void)status;
}

void kept_free(struct kept_jar *jar)
{
	if (!jar)
		return;
	loop_disarm(&jar->overdue);
	loop_remove(&jar->control);
	loop_remove(&jar->pidfd);
	if (jar->jar.pid > 0) {
		kept_kill(jar);
		loop_disarm(&jar->overdue);
		close_fd(&jar->jar.control_fd); /* the leash */
		begin_burial(jar, on_unwatched);
	}
	burial_finish(&jar->burial);
	jar->is_gone = true;
	loop_disarm(&jar->spare);
	close_fd(&jar->jar.pidfd);
	close_fd(&jar->jar.control_fd);
	for (struct seat *seat = jar->seats; seat; seat = seat->next) {
		seat->occupant = (struct seat_occupant){0};
		seat->is_keeper_gone = true;
	}
	seat_sweep(jar);
	guard_done(&jar->guard); /* its cgroup can go only when nothing is in it */
	while (jar->files)
		answer_file(jar, -1, ESHUTDOWN);
	free(jar);
}
