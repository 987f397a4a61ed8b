/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/session.c - a jar that outlives the call that made it: from its first process to surely gone
 *
 * Everything that the jar's first process says comes here; what is for a run goes to its slot. The jar is gone when its
 * first process is: every run in it is then over, whether or not it was told before.
 */
#include "session/session.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "session/session_jar.h"
#include "session/session_inside.h"
#include "session/session_send.h"
#include "sys/calls.h"

/* What the jar's first process may take to kill and reap the rest. */
#define OVERDUE_NS 400000000ULL
#define SECOND_CHANCE_NS 3000000000ULL
/* A jar that cannot be made in this time never will be. */
#define MAKING_NS 30000000000ULL
/* So many questions for files are sent and not yet answered at a time. */
#define FILES_ASKED_MAX 16

struct session_file {
	struct session_file *next;
	session_file_function *function; /* NULL: nobody waits any more */
	void *owner;
	enum session_access access;
	mode_t mode;
	bool is_sent;
	char path[];
};

bool session_is_ready(const struct session *jar)
{
	return jar->seen.has_started && !jar->is_gone;
}

const struct observation *session_observation(const struct session *jar)
{
	return &jar->seen;
}

/* --- files -------------------------------------------------------------------------------------------------- */

static void send_files(struct session *jar)
{
	unsigned sent = 0;

	for (struct session_file *file = jar->files; file && sent < FILES_ASKED_MAX; file = file->next) {
		sent++;
		if (file->is_sent)
			continue;
		if (jar_send_open(jar->jar.control_fd, file->path, file->access, file->mode) < 0)
			return;
		file->is_sent = true;
	}
}

/* The oldest question is answered. */
static void answer_file(struct session *jar, int fd, int errno_value)
{
	struct session_file *file = jar->files;

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

int session_open_file(struct session *jar, const char *path, enum session_access access, mode_t mode,
		      session_file_function *function, void *owner)
{
	size_t len = strlen(path) + 1;
	struct session_file **end = &jar->files, *file;

	if (jar->is_closing || jar->is_gone)
		return -ESHUTDOWN;
	if (jar->plan->kind != PLAN_SESSION || jar->plan->core.has_zygote)
		return -EINVAL;
	if (len >= SESSION_PATH_MAX)
		return -ENAMETOOLONG;
	file = calloc(1, sizeof(*file) + len);
	if (!file)
		return -ENOMEM;
	*file = (struct session_file){.function = function, .owner = owner, .access = access, .mode = mode};
	memcpy(file->path, path, len);
	while (*end)
		end = &(*end)->next;
	*end = file;
	send_files(jar);
	return 0;
}

void session_forget_files(struct session *jar, const void *owner)
{
	for (struct session_file *file = jar->files; file; file = file->next)
		if (file->owner == owner)
			file->function = NULL;
}

/* --- limits of the whole jar -------------------------------------------------------------------------------- */

void session_note_written(struct session *jar)
{
	uint64_t sum = jar->first_written_bytes;

	for (const struct slot *slot = jar->slots; slot; slot = slot->next)
		sum += slot->written_bytes;
	limiter_written(&jar->limiter, sum);
}

static uint64_t share_of(const struct slot *slot, enum limit_name name)
{
	return name == LIMIT_DISK   ? slot->limiter.last_disk_bytes
	       : name == LIMIT_PIDS ? slot->limiter.last_processes
				    : slot->limiter.last_memory_bytes;
}

static bool is_running(const struct slot *slot)
{
	return slot->occupant.owner && !slot->is_over;
}

/* Is a run being ended for a limit, or has one gone over its own and nobody has seen it yet? Then that comes first. */
static bool look_at_runs(struct session *jar)
{
	bool is_one_ending = false;

	for (struct slot *slot = jar->slots; slot; slot = slot->next) {
		if (is_running(slot)) {
			slot_poll(
				slot); /* the news that the command has started, and with it the limiter, may be unread */
			limiter_look(&slot->limiter);
		}
		/* What it had is given back only when it is gone. */
		is_one_ending |= slot->limiter.is_over && !slot->is_minder_gone;
	}
	return is_one_ending;
}

/*
 * The jar is over a limit of its own. Of several runs the one that has most of it is ended; if that is not enough, the
 * next look finds the next one.
 */
static void on_limit(void *owner, enum limit_name name, const struct limit_hit *hit, enum cause cause)
{
	struct session *jar = owner;
	struct slot *largest = NULL;

	if (cause != CAUSE_NONE && look_at_runs(jar))
		return;
	for (struct slot *slot = jar->slots; slot; slot = slot->next) {
		if (!is_running(slot))
			continue;
		if (cause == CAUSE_NONE)
			slot->occupant.limit(slot->occupant.owner, name, hit, cause);
		else if (!largest || share_of(slot, name) > share_of(largest, name))
			largest = slot;
	}
	if (largest) {
		largest->limiter.is_over = true;
		largest->occupant.limit(largest->occupant.owner, name, hit, cause);
	}
}

/* --- news from the first process ---------------------------------------------------------------------------- */

static void on_ready(struct session *jar)
{
	struct rusage nothing = {0};

	loop_disarm(&jar->overdue);
	jar->seen.has_started = true;
	jar->seen.metered = jar->plan->core.has_zygote ? 0 : jar->plan->metered;
	/* In a jar for calls every limit is a call's own. */
	if (jar->plan->kind == PLAN_SESSION && !jar->plan->core.has_zygote &&
	    !limiter_start(&jar->limiter, jar->jar.pid, &nothing)) {
		error_set(&jar->seen.error, STAGE_LIMITS, ENOENT,
			  "the jar cannot be measured: its /proc is not to be seen");
		session_kill(jar);
		return;
	}
	if (!jar->slots)
		slot_want_spare(jar, 0);
	if (jar->request.listener.ready)
		jar->request.listener.ready(jar->request.listener.owner, jar);
}

static void note_zygote_gone(struct session *jar, int status)
{
	if (WIFSIGNALED(status))
		error_set(&jar->seen.error, STAGE_ENGINE, 0, "the zygote was killed by signal %d", WTERMSIG(status));
	else
		error_set(&jar->seen.error, STAGE_ENGINE, 0, "the zygote has left with status %d", WEXITSTATUS(status));
}

static void on_message(struct session *jar, const struct jar_message *message, int fd)
{
	struct slot *slot = slot_find(jar, message->kind == JAR_MINDER_GONE ? message->minder_gone.minder : 0);

	jar->seen.steps_done = message->steps_done;
	switch ((enum jar_message_kind)message->kind) {
	case JAR_VIEW:
		limiter_take(&jar->limiter, (enum jar_view)message->view.what, fd, message->view.clock_ns);
		return;
	case JAR_READY:
		on_ready(jar);
		return;
	case JAR_OPENED:
		/* Neither a file nor a reason: the engine has no descriptor left for it. */
		answer_file(jar, fd, fd < 0 && !message->opened.error ? EMFILE : message->opened.error);
		send_files(jar);
		return;
	case JAR_MINDER_GONE:
		jar->first_written_bytes = message->minder_gone.written_bytes;
		if (slot)
			slot_minder_gone(slot, &message->minder_gone.usage, SIGKILL);
		session_note_written(jar);
		slot_sweep(jar);
		return;
	case JAR_STEP_FAILED:
		if (jar->seen.has_started)
			break;
		jar->failure = *message;
		jar->seen.failed_step = message->step_failed.step;
		error_set(&jar->seen.error, STAGE_ISOLATE, message->step_failed.error, "cannot make the jar: %s",
			  strerror(message->step_failed.error));
		close_fd(&fd);
		return;
	case JAR_WRITTEN:
		limiter_written(&jar->limiter, message->written.bytes);
		close_fd(&fd);
		return;
	case JAR_EXITED:
		if (jar->plan->core.has_zygote)
			note_zygote_gone(jar, message->exited.status);
		break;
	case JAR_EXEC_FAILED:
	case JAR_TERMINAL:
	case JAR_STARTED:
	case JAR_EMPTY:
	case JAR_SIGNAL:
	case JAR_KILL:
	case JAR_RUN:
	case JAR_MINDER:
	case JAR_RENEW:
	case JAR_OPEN:
	case JAR_MESSAGE_KIND_COUNT:
		break;
	}
	if (slot)
		slot_hear(slot, message, fd);
	else
		close_fd(&fd);
}

static void on_control(struct loop_watch *watch, uint32_t events)
{
	struct session *jar = watch->owner;
	struct jar_message message;
	int fd, rc = -EAGAIN;

	(void)events;
	while (watch->loop && (rc = jar_receive(jar->jar.control_fd, &message, &fd)) > 0)
		on_message(jar, &message, fd);
	if (watch->loop && rc != -EAGAIN && rc != -EINTR)
		loop_remove(watch); /* the pidfd tells the rest */
}

void session_poll(struct session *jar)
{
	if (jar->control.loop)
		on_control(&jar->control, EPOLLIN);
}

/* --- the end ------------------------------------------------------------------------------------------------ */

static void on_buried(void *owner, const struct rusage *usage, int status)
{
	struct session *jar = owner;

	jar->is_gone = true;
	if (!jar->seen.has_started && jar->seen.error.stage == STAGE_NONE)
		error_set(&jar->seen.error, STAGE_ENGINE, 0,
			  "the jar's first process died while making the jar (status %d)", status);
	limiter_finish(&jar->limiter, usage, &jar->seen);
	for (struct slot *slot = jar->slots; slot; slot = slot->next) {
		if (jar->failure.kind && is_running(slot))
			slot->occupant.message(slot->occupant.owner, &jar->failure, -1);
		slot_minder_gone(slot, slot->number ? &(struct rusage){0} : usage, status);
	}
	slot_sweep(jar);
	while (jar->files)
		answer_file(jar, -1, ESHUTDOWN);
	if (jar->request.listener.gone)
		jar->request.listener.gone(jar->request.listener.owner, jar);
}

static void begin_reaping(struct session *jar, reaper_function *function)
{
	pid_t pid = jar->jar.pid;

	jar->jar.pid = -1;
	jar->reaper = (struct reaper){
		.loop = jar->loop,
		.ends_with_first = jar->plan->rung == RUNG_NAMESPACE,
		.run_directory = jar->plan->core.run_directory,
		.family = jar->request.family,
		.pid = pid,
		.function = function,
		.owner = jar,
	};
	reaper_begin(&jar->reaper);
}

static void on_pidfd(struct loop_watch *watch, uint32_t events)
{
	struct session *jar = watch->owner;

	(void)events;
	session_poll(jar); /* its last words may still be unread */
	loop_remove(&jar->pidfd);
	loop_remove(&jar->control);
	loop_disarm(&jar->overdue);
	begin_reaping(jar, on_buried);
}

static void on_overdue(struct loop_timer *timer)
{
	struct session *jar = timer->owner;

	if (!jar->seen.has_started && !jar->is_closing)
		error_set(&jar->seen.error, STAGE_ENGINE, ETIMEDOUT, "the jar could not be made in time");
	/* Without a pid namespace it alone can end its tree at once. */
	if (jar->plan->rung != RUNG_NAMESPACE && jar->is_killed && !jar->is_overdue) {
		jar->is_overdue = true;
		reap_signal(jar->jar.pidfd, SIGCONT);
		loop_arm(jar->loop, timer, sys_monotonic_ns() + SECOND_CHANCE_NS, on_overdue, jar);
		return;
	}
	reap_signal(jar->jar.pidfd, SIGKILL);
}

void session_kill(struct session *jar)
{
	struct jar_message message = {.kind = JAR_KILL};

	if (jar->is_gone || jar->is_killed)
		return;
	jar->is_killed = true;
	/* The kernel ends what is in the pid namespace of a process that it ends; elsewhere that one has to do it. */
	if (jar->plan->rung == RUNG_NAMESPACE || jar_send(jar->jar.control_fd, &message, -1) < 0)
		reap_signal(jar->jar.pidfd, SIGKILL);
	else
		loop_arm(jar->loop, &jar->overdue, sys_monotonic_ns() + OVERDUE_NS, on_overdue, jar);
}

void session_close(struct session *jar)
{
	if (jar->is_closing || jar->is_gone)
		return;
	jar->is_closing = true;
	for (struct slot *slot = jar->slots; slot; slot = slot->next)
		if (is_running(slot))
			slot->occupant.closing(slot->occupant.owner);
	session_kill(jar);
}

/* --- making and freeing ------------------------------------------------------------------------------------- */

static jar_main_function *main_of(const struct session_request *request)
{
	if (request->main)
		return request->main;
	return request->plan->kind == PLAN_SESSION ? session_first_main : session_prepared_main;
}

static int start_jar(struct session *jar, struct error *error)
{
	const struct session_request *request = &jar->request;
	const struct jar_streams streams = {.stdin_fd = -1,
					    .stdout_fd = -1,
					    .stderr_fd = -1,
					    .extra_fds = request->zygote_fds,
					    .extra_count = request->zygote_fd_count};
	pid_t *member = list_add(request->family);
	int rc;

	if (!member)
		return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	rc = jar_start(&jar->plan->core, main_of(request), jar->plan->core.has_zygote ? &streams : NULL, request->area,
		       NULL, &jar->jar, error);
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

int session_open(struct loop *loop, const struct session_request *request, struct session **out, struct error *error)
{
	struct session *jar = calloc(1, sizeof(*jar));
	int rc;

	if (!jar)
		return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	jar->loop = loop;
	jar->request = *request;
	jar->plan = request->plan;
	jar->jar = (struct jar){.pid = -1, .pidfd = -1, .control_fd = -1};
	jar->seen.failed_step = -1;
	rc = limiter_open(&jar->limiter, loop, jar->plan, on_limit, jar, error);
	if (rc == 0)
		rc = start_jar(jar, error);
	if (rc < 0) {
		session_free(jar);
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

void session_free(struct session *jar)
{
	if (!jar)
		return;
	loop_disarm(&jar->overdue);
	loop_remove(&jar->control);
	loop_remove(&jar->pidfd);
	if (jar->jar.pid > 0) {
		session_kill(jar);
		loop_disarm(&jar->overdue);
		close_fd(&jar->jar.control_fd); /* the leash */
		begin_reaping(jar, on_unwatched);
	}
	reaper_finish(&jar->reaper);
	jar->is_gone = true;
	loop_disarm(&jar->spare);
	close_fd(&jar->jar.pidfd);
	close_fd(&jar->jar.control_fd);
	for (struct slot *slot = jar->slots; slot; slot = slot->next) {
		slot->occupant = (struct slot_occupant){0};
		slot->is_minder_gone = true;
	}
	slot_sweep(jar);
	limiter_done(&jar->limiter); /* its cgroup can go only when nothing is in it */
	while (jar->files)
		answer_file(jar, -1, ESHUTDOWN);
	free(jar);
}
