/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_helper.c - start a helper for each work directory, ask it, and receive its answers in the loop
 *
 * Messages go both ways over a socket, in order. The engine never waits for a helper: it keeps what the socket
 * does not take. After a helper's end, or an invalid answer, it answers each open question with NULL.
 */
#include "engine/engine_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "survey/survey_paths.h"
#include "base/sys/calls.h"

#define READ_BYTES 16384
/* The interval between attempts to reap a killed helper. */
#define REAP_NS 100000ULL
/* A search takes a second at most where no other program runs. A helper that needs longer was stopped, or hangs. */
#define ANSWER_MAX_NS 20000000000ULL

struct engine_helper {
	struct engine_helpers *helpers;
	struct engine_helper *next;
	struct loop *loop;
	struct reap_family *family;
	struct host_path top; /* what it is for */
	unsigned users;
	pid_t pid;
	int fd; /* -1: it is lost */
	struct loop_watch watch;
	struct loop_timer reaping;
	struct text in, out;
	uint64_t last_number;
	struct engine_question *questions; /* the oldest first */
};

/* --- the end of a helper ------------------------------------------------------------------------------------- */

static void free_helper(struct engine_helper *helper)
{
	survey_path_done(&helper->top);
	text_done(&helper->in);
	text_done(&helper->out);
	free(helper);
}

static void on_reaping(struct loop_timer *timer)
{
	struct engine_helper *helper = timer->owner;

	if (waitpid(helper->pid, NULL, WNOHANG | __WALL) == 0) {
		loop_arm(helper->loop, timer, sys_monotonic_ns() + REAP_NS, on_reaping, helper);
		return;
	}
	reap_family_remove(helper->family, helper->pid);
	free_helper(helper);
}

static void lose(struct engine_helper *helper)
{
	loop_remove(&helper->watch);
	close_fd(&helper->fd);
	if (helper->pid > 0)
		kill(helper->pid, SIGKILL);
	helper->users++;
	while (helper->questions) {
		struct engine_question *question = helper->questions;

		helper->questions = question->next;
		question->helper = NULL;
		loop_disarm(&question->lost);
		question->answered(question->owner, NULL);
	}
	engine_helper_release(helper);
}

/* Nothing uses it: its process ends, and then it goes. */
static void end(struct engine_helper *helper)
{
	for (struct engine_helper **at = &helper->helpers->first; *at; at = &(*at)->next) {
		if (*at == helper) {
			*at = helper->next;
			break;
		}
	}
	loop_remove(&helper->watch);
	close_fd(&helper->fd);
	if (helper->pid <= 0) {
		free_helper(helper);
		return;
	}
	kill(helper->pid, SIGKILL);
	helper->reaping.owner = helper;
	on_reaping(&helper->reaping);
}

/* The one that was used longest ago goes first. */
static void end_idle(struct engine_helpers *helpers)
{
	struct engine_helper *oldest;
	size_t count;

	do {
		oldest = NULL;
		count = 0;
		for (struct engine_helper *at = helpers->first; at; at = at->next) {
			count += !at->users;
			if (!at->users)
				oldest = at;
		}
		if (count > helpers->idle_max)
			end(oldest);
	} while (count > helpers->idle_max);
}

struct engine_helper *engine_helper_hold(struct engine_helper *helper)
{
	helper->users++;
	return helper;
}

void engine_helper_release(struct engine_helper *helper)
{
	if (!helper || --helper->users)
		return;
	if (helper->fd < 0)
		end(helper);
	else
		end_idle(helper->helpers);
}

bool engine_helper_is_lost(const struct engine_helper *helper)
{
	return helper->fd < 0;
}

bool engine_helper_is_for_one(const struct engine_helper *helper)
{
	return !helper->helpers->idle_max;
}

uint64_t engine_helper_number(struct engine_helper *helper)
{
	return ++helper->last_number;
}

void engine_helpers_done(struct engine_helpers *helpers)
{
	while (helpers->first)
		end(helpers->first);
}

/* --- messages ------------------------------------------------------------------------------------------------ */

static void flush(struct engine_helper *helper)
{
	ssize_t count = 0;

	while (helper->out.len) {
		count = send(helper->fd, helper->out.data, helper->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (count <= 0)
			break;
		text_consume(&helper->out, (size_t)count);
	}
	/* The next read reports errors of the socket. */
	loop_change(&helper->watch, helper->out.len ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

/* Take the answer to the oldest question. False: it is invalid. */
static bool take_answer(struct engine_helper *helper, const struct helper_header *header, const char *payload)
{
	struct engine_question *question = helper->questions;
	struct unpack from = {.at = payload, .end = payload + header->len};

	/* The question may have been dropped meanwhile. */
	if (!question || question->number != header->question)
		return header->question && header->question <= helper->last_number &&
		       (!question || header->question < question->number);
	helper->questions = question->next;
	question->helper = NULL;
	loop_disarm(&question->lost);
	question->answered(question->owner, &from);
	return true;
}

/* The whole messages that have come. */
static bool take_messages(struct engine_helper *helper)
{
	size_t at = 0;
	bool is_good = true;

	while (is_good && helper->fd >= 0 && helper->in.len - at >= sizeof(struct helper_header)) {
		struct helper_header header;

		memcpy(&header, helper->in.data + at, sizeof(header));
		if (header.len > HELPER_MESSAGE_MAX)
			return false;
		if (helper->in.len - at - sizeof(header) < header.len)
			break;
		is_good = take_answer(helper, &header, helper->in.data + at + sizeof(header));
		at += sizeof(header) + header.len;
	}
	if (at)
		text_consume(&helper->in, at);
	return is_good;
}

static void on_socket(struct loop_watch *watch, uint32_t events)
{
	struct engine_helper *helper = watch->owner;
	char *room = text_reserve(&helper->in, READ_BYTES);
	ssize_t count = room ? recv(helper->fd, room, READ_BYTES, MSG_DONTWAIT) : 0;

	(void)events;
	if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
		flush(helper);
		return;
	}
	engine_helper_hold(helper);
	if (count > 0)
		helper->in.len += (size_t)count;
	if (count <= 0 || !take_messages(helper))
		lose(helper);
	else if (helper->fd >= 0)
		flush(helper);
	engine_helper_release(helper);
}

static void on_lost(struct loop_timer *timer)
{
	struct engine_question *question = timer->owner;

	question->answered(question->owner, NULL);
}

/* End a helper that does not answer, so that every run ends. */
static void on_overdue(struct loop_timer *timer)
{
	struct engine_helper *helper = ((struct engine_question *)timer->owner)->helper;

	engine_helper_hold(helper);
	lose(helper);
	engine_helper_release(helper);
}

void engine_question_done(struct engine_question *question)
{
	loop_disarm(&question->lost);
	for (struct engine_question **at = question->helper ? &question->helper->questions : NULL; at && *at;
	     at = &(*at)->next) {
		if (*at == question) {
			*at = question->next;
			break;
		}
	}
	question->helper = NULL;
}

void engine_helper_send(struct engine_helper *helper, enum helper_kind kind, const struct text *payload,
			struct engine_question *question)
{
	struct helper_header header = {.len = (uint32_t)payload->len, .kind = kind};
	struct engine_question **at = &helper->questions;

	if (question && (helper->fd < 0 || text_failed(payload))) {
		loop_arm(helper->loop, &question->lost, 0, on_lost, question);
		return;
	}
	if (helper->fd < 0)
		return;
	if (question) {
		header.question = question->number = engine_helper_number(helper);
		question->helper = helper;
		question->next = NULL;
		while (*at)
			at = &(*at)->next;
		*at = question;
		loop_arm(helper->loop, &question->lost, sys_monotonic_ns() + ANSWER_MAX_NS, on_overdue, question);
	}
	text_append(&helper->out, &header, sizeof(header));
	text_append(&helper->out, text_string(payload), payload->len);
	/* Never send part of a message: end the helper, and the loop sees its end. */
	if (text_failed(&helper->out))
		shutdown(helper->fd, SHUT_RDWR);
	else
		flush(helper);
}

void engine_helper_tell(struct engine_helper *helper, enum helper_kind kind, struct engine_question *question,
			const uint64_t *numbers, size_t count)
{
	AUTO_TEXT payload = {0};

	for (size_t i = 0; i < count; i++)
		survey_pack_number(&payload, numbers[i]);
	engine_helper_send(helper, kind, &payload, question);
}

/* --- the beginning ------------------------------------------------------------------------------------------- */

static int start(struct engine_helper *helper)
{
	pid_t engine_pid = getpid();
	int ends[2], rc;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	helper->fd = ends[0];
	helper->pid = fork();
	if (helper->pid == 0)
		engine_helper_main(ends[1], engine_pid);
	rc = helper->pid < 0 ? -errno : reap_family_add(helper->family, helper->pid);
	close(ends[1]);
	return rc < 0 ? rc : loop_add(helper->loop, &helper->watch, helper->fd, EPOLLIN, on_socket, helper);
}

/* The directory that identifies a project. */
static const struct host_path *top_of(const struct host *host)
{
	return host->workdir.is_searched ? &host->workdir.path : &host->grants.items[0];
}

static struct engine_helper *find(struct engine_helpers *helpers, const struct host_path *top)
{
	for (struct engine_helper **at = &helpers->first; *at; at = &(*at)->next) {
		struct engine_helper *helper = *at;

		if (helper->fd < 0 || helper->top.device != top->device || helper->top.inode != top->inode ||
		    strcmp(helper->top.path, top->path) != 0)
			continue;
		*at = helper->next;
		helper->next = helpers->first;
		helpers->first = helper;
		return helper;
	}
	return NULL;
}

static int make(struct engine_helpers *helpers, const struct host_path *top, struct engine_helper **out)
{
	struct engine_helper *helper = calloc(1, sizeof(*helper));
	int rc;

	if (!helper)
		return -ENOMEM;
	*helper = (struct engine_helper){
		.helpers = helpers,
		.next = helpers->first,
		.loop = helpers->loop,
		.family = helpers->family,
		.top = {.path = strdup(top->path), .device = top->device, .inode = top->inode},
		.fd = -1,
	};
	helpers->first = helper;
	rc = helper->top.path ? start(helper) : -ENOMEM;
	if (rc < 0) {
		end(helper);
		return rc;
	}
	*out = helper;
	return 0;
}

int engine_project_open(struct engine_project *project, struct engine_helpers *helpers, const struct host *host)
{
	struct engine_helper *helper = find(helpers, top_of(host));
	AUTO_TEXT payload = {0};
	int rc = helper ? 0 : make(helpers, top_of(host), &helper);

	if (rc < 0)
		return rc;
	project->helper = engine_helper_hold(helper);
	project->number = engine_helper_number(helper);
	survey_pack_number(&payload, project->number);
	survey_pack_project(&payload, host);
	if (text_failed(&payload)) {
		engine_project_close(project);
		return -ENOMEM;
	}
	engine_helper_send(helper, HELPER_PROJECT, &payload, NULL);
	return 0;
}

void engine_project_close(struct engine_project *project)
{
	if (!project->helper)
		return;
	engine_helper_tell(project->helper, HELPER_FORGET_PROJECT, NULL, &project->number, 1);
	engine_helper_release(project->helper);
	*project = (struct engine_project){0};
}
