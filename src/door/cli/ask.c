/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door/cli/ask.c - ask on the terminal about hosts that no rule decides about
 *
 * Names in questions have only letters, digits, dots and hyphens, so they cannot steer a terminal. This file drops
 * text that was typed before the question is shown. While it is shown the command cannot write to the terminal, so it
 * cannot show another question instead.
 */
#include "door/cli/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

static bool is_in_foreground(const struct asking *asking)
{
	return tcgetpgrp(asking->fd) == getpgrp();
}

static void rule_of(const struct net_question *question, struct text *out)
{
	net_rule_format(&question->rule, out);
}

/* --- what is shown ------------------------------------------------------------------------------------------ */

static void print_question(const struct asking *asking)
{
	static const char *const places[] = {
		[NET_PLACE_NAME] = "",
		[NET_PLACE_PUBLIC] = " (an address)",
		[NET_PLACE_PRIVATE] = " (a private address)",
		[NET_PLACE_HOST] = " (an address of this host)",
	};
	const struct net_question *question = &asking->queue[0];
	AUTO_TEXT rule = {0}, file = {0};

	rule_of(question, &rule);
	dprintf(asking->fd, "%sbelljar: the command wants to reach %s%s. Allow it?\n",
		asking->is_dumb ? "" : TERMINAL_PLAIN, text_string(&rule), places[question->place]);
	if (asking->file.path) {
		cli_message_escape(&file, asking->file.path);
		dprintf(asking->fd, "  a: always, which adds \"%s\" to allow_net in %s\n", text_string(&rule),
			text_string(&file));
	}
	dprintf(asking->fd, "  o: once  r: in this run%s  n: no > ", asking->file.path ? "  a: always" : "");
}

static void on_terminal(struct loop_watch *watch, uint32_t events);

static void hide(struct asking *asking)
{
	if (!asking->is_shown)
		return;
	asking->is_shown = false;
	loop_remove(&asking->watch);
	if (asking->terminal->fd >= 0)
		cli_terminal_raw(asking->terminal);
	engine_hold_terminal(asking->engine, false);
}

static void answer_first(struct asking *asking, enum net_answer answer)
{
	uint32_t id = asking->queue[0].id;

	asking->count--;
	memmove(asking->queue, asking->queue + 1, asking->count * sizeof(asking->queue[0]));
	engine_answer(asking->engine, id, answer);
}

static void show(struct asking *asking)
{
	/* A background process cannot ask: a read from the terminal would stop it. */
	while (asking->count && !is_in_foreground(asking))
		answer_first(asking, NET_DENY);
	if (!asking->count) {
		hide(asking);
		return;
	}
	if (!asking->is_shown) {
		engine_hold_terminal(asking->engine, true);
		cli_terminal_restore(asking->terminal);
		if (loop_add(asking->loop, &asking->watch, asking->fd, EPOLLIN, on_terminal, asking) < 0) {
			answer_first(asking, NET_DENY);
			return;
		}
		asking->is_shown = true;
	}
	tcflush(asking->fd, TCIFLUSH);
	print_question(asking);
}

/* --- what is answered --------------------------------------------------------------------------------------- */

static void add_to_file(struct asking *asking)
{
	const struct policy_context context = cli_context_of(asking->invocation);
	AUTO_TEXT rule = {0}, words = {0};
	struct error error = {0};

	rule_of(&asking->queue[0], &rule);
	if (policy_edit_add_rule(&asking->file, text_string(&rule), &context, &error) == 0) {
		cli_message_escape(&words, asking->file.path);
		dprintf(asking->fd, "belljar: added \"%s\" to allow_net in %s\n", text_string(&rule),
			text_string(&words));
		return;
	}
	cli_message_escape(&words, error.message);
	dprintf(asking->fd, "belljar: %s; allowed in this run\n", text_string(&words));
}

/* Take a letter as the answer. False: it is not one. */
static bool take_answer(struct asking *asking, char letter)
{
	switch (letter) {
	case 'o':
	case 'y':
		answer_first(asking, NET_ONCE);
		return true;
	case 'r':
		answer_first(asking, NET_RUN);
		return true;
	case 'a':
		if (!asking->file.path)
			return false;
		add_to_file(asking);
		answer_first(asking, NET_RUN);
		return true;
	case 'n':
	case '\n':
		answer_first(asking, NET_DENY);
		return true;
	default:
		return false;
	}
}

static void on_terminal(struct loop_watch *watch, uint32_t events)
{
	struct asking *asking = watch->owner;
	char line[256];
	ssize_t len = read(asking->fd, line, sizeof(line));
	size_t at = 0;

	(void)events;
	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	/* End of input means no; a terminal that is gone gives no more answers. */
	if (len == 0) {
		dprintf(asking->fd, "\n");
		answer_first(asking, NET_DENY);
		show(asking);
		return;
	}
	if (len < 0) {
		while (asking->count)
			answer_first(asking, NET_DENY);
		hide(asking);
		return;
	}
	while ((ssize_t)at < len && (line[at] == ' ' || line[at] == '\t'))
		at++;
	if ((ssize_t)at == len ||
	    (line[at] != '\n' && (ssize_t)at + 1 < len && line[at + 1] != '\n' && line[at + 1] != ' ') ||
	    !take_answer(asking, line[at]))
		dprintf(asking->fd, "belljar: answer with one of the letters\n");
	show(asking);
}

/* --- questions ---------------------------------------------------------------------------------------------- */

void cli_ask_on_question(void *owner, const struct net_question *question)
{
	struct asking *asking = owner;

	if (!asking->queue)
		asking->queue = calloc(ASK_QUEUE_MAX, sizeof(*asking->queue));
	if (!asking->queue || asking->count == ASK_QUEUE_MAX) {
		engine_answer(asking->engine, question->id, NET_DENY);
		return;
	}
	asking->queue[asking->count++] = *question;
	if (asking->count == 1)
		show(asking);
}

void cli_ask_on_withdrawn(void *owner, uint32_t id)
{
	struct asking *asking = owner;
	size_t at = 0;

	while (at < asking->count && asking->queue[at].id != id)
		at++;
	if (at == asking->count)
		return;
	asking->count--;
	memmove(asking->queue + at, asking->queue + at + 1, (asking->count - at) * sizeof(asking->queue[0]));
	if (at > 0 || !asking->is_shown)
		return;
	dprintf(asking->fd, "\nbelljar: the connection no longer waits for this answer\n");
	show(asking);
}

void cli_ask_again(struct asking *asking)
{
	if (!asking->is_shown)
		return;
	cli_terminal_restore(asking->terminal);
	show(asking);
}

static bool is_file(const char *name)
{
	size_t len = name ? strlen(name) : 0;

	return name && (strchr(name, '/') || (len > 5 && !strcmp(name + len - 5, ".json")));
}

bool cli_ask_open(struct asking *asking, struct loop *loop, const struct invocation *invocation,
		  const struct run_options *options, struct terminal *terminal)
{
	*asking = (struct asking){
		.fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC),
		.loop = loop,
		.terminal = terminal,
		.invocation = invocation,
		.is_dumb = cli_terminal_is_dumb(invocation->environment),
	};
	if (asking->fd >= 0 && !is_in_foreground(asking))
		close_fd(&asking->fd);
	if (asking->fd >= 0 && is_file(options->policy_name))
		policy_edit_open(&asking->file, options->policy_name); /* without it, "always" is not offered */
	return asking->fd >= 0;
}

void cli_ask_done(struct asking *asking)
{
	if (asking->is_shown)
		dprintf(asking->fd, "\n");
	loop_remove(&asking->watch);
	asking->is_shown = false;
	asking->count = 0;
	free(asking->queue);
	asking->queue = NULL;
	policy_edit_done(&asking->file);
	close_fd(&asking->fd);
}
