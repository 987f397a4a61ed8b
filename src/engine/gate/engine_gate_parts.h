/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/gate/engine_gate_parts.h - private to the files of the gate's engine side
 */
#ifndef BELLJAR_ENGINE_GATE_ENGINE_GATE_PARTS_H
#define BELLJAR_ENGINE_GATE_ENGINE_GATE_PARTS_H

#include "engine/gate/engine_gate.h"
#include "gate/gate_message.h"
#include "gate/gate_page.h"

struct gate {
	struct loop *loop;
	const struct plan *plan;
	struct reap_family *family;
	struct gate_page *page;
	size_t page_len;
	int page_fd;
	int fds[JAR_SOCKETS_MAX];
	size_t fd_count, taken; /* sockets that exist, of those that came */
	int host_fds[PUBLISH_MAX];
	size_t host_fd_count;
	struct network_seen published;
	bool is_waiting; /* the process is not started yet */
	struct loop_watch first_use[JAR_SOCKETS_MAX];
	struct loop_timer later;
	pid_t pid; /* 0: none */
	int control_fd;
	int pidfd;
	struct loop_watch control, process;
	struct loop_timer timer;
	struct gate_visit *visits;
	int rules_fd;                /* to redirect more addresses to the gate; -1: not possible */
	struct net_rule_list led;    /* the redirected ones */
	struct gate_change *changes; /* the gate has not confirmed them */
	uint32_t last_change;
	struct gate_question *questions; /* without an answer yet */
	uint32_t last_question, last_run;
	uint32_t run_numbers[GATE_RUNS_MAX]; /* as in the page, which the process could write to; 0: free */
	struct loop_timer ask_timer;
	bool has_died; /* its end was not intended */
	void (*finished)(void *owner);
	void *owner;
};

/* Send a message. 0, -EAGAIN: the process does not read, or -EPIPE: it is gone. */
int engine_gate_send(struct gate *gate, const struct gate_message *message);

/* engine_gate_files.c: copy the host's files about names into the page. */
void engine_gate_files_read(struct gate_page *page);

/* engine_gate_changes.c */
void engine_gate_changes_done(struct gate *gate, uint32_t number, int rc);
/* Fail all changes, because the gate will confirm none. */
void engine_gate_changes_fail(struct gate *gate, int rc);

/* engine_gate_questions.c */
void engine_gate_questions_take(struct gate *gate, uint32_t number, const struct net_rule *rule);
void engine_gate_questions_withdraw(struct gate *gate, uint32_t number);
void engine_gate_questions_enter(struct gate *gate, struct gate_visit *visit);
/* It is still in the list. */
void engine_gate_questions_leave(struct gate *gate, struct gate_visit *visit);
/* Drop all questions, because the gate waits for no answers any more. */
void engine_gate_questions_end(struct gate *gate);

#endif
