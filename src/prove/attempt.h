/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prove/attempt.h - the inside of a proof: one function per attempt, and the functions that they share
 */
#ifndef BELLJAR_PROVE_ATTEMPT_H
#define BELLJAR_PROVE_ATTEMPT_H

#include <errno.h>

#include "prove/corpus.h"
#include "prove/prove.h"

static inline struct answer prove_answer_through(const char *call)
{
	return (struct answer){VERDICT_THROUGH, LAYER_NONE, call, 0};
}

static inline struct answer prove_answer_stopped(enum layer layer, const char *call, int errno_value)
{
	return (struct answer){VERDICT_STOPPED, layer, call, errno_value};
}

static inline struct answer prove_answer_skipped(const char *call)
{
	return (struct answer){VERDICT_SKIPPED, LAYER_NONE, call, errno};
}

/* Return the path of a planted object: BASE/NAME. Static storage, valid until the second next call. */
const char *attempt_path(const struct prove_facts *facts, const char *name);

/* attempt_files.c */
attempt_function attempt_control, attempt_on_path, attempt_read, attempt_write, attempt_chmod,
	attempt_chmod_by_descriptor, attempt_times, attempt_attribute, attempt_mark, attempt_read_by_engine,
	attempt_proc_sys, attempt_protected, attempt_protected_by_config, attempt_protected_by_link,
	attempt_protected_by_gitlink, attempt_move_above, attempt_overwrite_engine, attempt_descriptors,
	attempt_environment, attempt_replace_engine, attempt_shared_roots, attempt_uncover;
/* attempt_network.c */
attempt_function attempt_tcp, attempt_tcp_fast_open, attempt_udp, attempt_unix_stream, attempt_unix_datagram,
	attempt_abstract_stream, attempt_abstract_datagram, attempt_pair_datagram, attempt_abstract_name,
	attempt_socket;
/* attempt_gate.c */
attempt_function attempt_gate;
/* attempt_processes.c; the first three make a row of prove_corpus_process */
attempt_function attempt_on_engine, attempt_on_victim, attempt_on_first, attempt_pidfd_other, attempt_owner_other,
	attempt_write_memory, attempt_other_environment, attempt_other_memory, attempt_see_other,
	attempt_init_environment, attempt_init_arguments, attempt_shared_memory, attempt_outlive, attempt_processes;
/* attempt_limits.c */
attempt_function attempt_hidden_memory, attempt_terminals, attempt_inotify, attempt_queued_signals,
	attempt_message_queues;
/* attempt_kernel.c; the first three make the row of the corpus that the table names */
attempt_function attempt_reach, attempt_answered, attempt_clone, attempt_remount, attempt_mount, attempt_unshare_user,
	attempt_foreign_call, attempt_personality, attempt_terminal, attempt_controlling_terminal, attempt_raise_limit,
	attempt_setuid, attempt_capabilities;

#endif
