/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper/meter_process.h - the processes that a meter knows of
 */
#ifndef BELLJAR_HELPER_METER_PROCESS_H
#define BELLJAR_HELPER_METER_PROCESS_H

#include "helper/meter.h"

/* More than any policy's default allows; a look that finds more stops. */
#define METER_PROCESSES_MAX 16384
/* The most levels to go up the tree for a parent. */
#define METER_DEPTH_MAX 64

/* A resource whose use a parent inherits when it waits for the process. */
struct meter_tally {
	uint64_t older, before, now; /* at the last looks */
	uint64_t expected;           /* use of children gone at the look before: part of `now` if the parent waited */
	uint64_t pending;            /* the same for children gone at this look; may not be part of `now` yet */
};

struct meter_process {
	pid_t pid;
	pid_t parent;
	bool is_new;
	bool is_gone;
	bool is_stranger; /* no descendant of the first process: it has the number of one, or all were listed */
	bool is_fork;     /* it has executed nothing since it was forked */
	bool is_ours;     /* a copy of the engine, not part of a command: its memory is not the run's */
	bool has_starter; /* it is a minder, and one of its children counts as its starter */
	pid_t session;
	uint64_t start_time;
	unsigned threads;
	pid_t shown; /* whose entries of /proc show its memory: a thread's, where the first one has ended */
	uint64_t resident_bytes;
	uint64_t virtual_bytes; /* 0: it has ended, or is ending */
	struct meter_tally cpu_ns;
	struct meter_tally written_bytes;
	/* Of pages. Those of children that it waited for stand alone: it can have as many of its own as it likes. */
	uint64_t own_faults;
	struct meter_tally waited_faults;
};

/* Parse one line of /proc/PID/stat. False: it is invalid, or of another process that has the pid now. */
bool helper_meter_parse_stat(struct meter_process *process, const char *line);
/* Add up the bytes of all objects in the list @which of /proc/sysvipc. */
uint64_t helper_meter_parse_list(unsigned which, const char *lines);
/* The number of kilobytes after @key, in bytes; 0 if it is not there. */
uint64_t helper_meter_parse_kilobytes(const char *content, const char *key);

/*
 * Update the table of processes and the use of each. METER_BLIND: /proc cannot be read. METER_CROWDED: there
 * are too many processes, and the look stopped.
 */
enum meter_progress helper_meter_update(struct meter *meter);
/* Set is_ours of each process in the table. */
void helper_meter_mark_ours(struct meter *meter);
/* Remove processes that are gone, after the caller has taken their tallies. */
void helper_meter_forget(struct meter *meter);
/* The bytes of the jar's System V objects. */
uint64_t helper_meter_list_bytes(const struct meter *meter);
struct meter_process *helper_meter_find(const struct meter *meter, pid_t pid);

#endif
