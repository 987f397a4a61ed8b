/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper/meter_process.h - the processes that a meter knows of
 */
#ifndef BELLJAR_HELPER_METER_PROCESS_H
#define BELLJAR_HELPER_METER_PROCESS_H

#include "helper/meter.h"

/* More than any policy's default allows; a look that finds more is given up. */
#define METER_PROCESSES_MAX 16384
/* So far up the tree a parent is looked for. */
#define METER_DEPTH_MAX 64

/* Something that a process uses up and that its parent inherits when it waits for it. */
struct meter_tally {
	uint64_t older, before, now; /* at the last looks */
	uint64_t
		expected; /* what children had that were gone at the look before: it shows in `now`, unless nobody waited */
	uint64_t pending; /* the same for children that are gone at this look; it may not show yet */
};

struct meter_process {
	pid_t pid;
	pid_t parent;
	bool is_new;
	bool is_gone;
	bool is_stranger; /* no descendant of the first process: it has the number of one, or all were listed */
	bool is_fork;     /* it has executed nothing since it was forked */
	bool is_ours;     /* a copy of the engine, no part of any command: its memory is not the run's */
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

/* One line of /proc/PID/stat. False: it is none, or tells of another process that got the number since. */
bool helper_meter_parse_stat(struct meter_process *process, const char *line);
/* Lines of list @which of /proc/sysvipc: the bytes that the kernel keeps for what they name. */
uint64_t helper_meter_parse_list(unsigned which, const char *lines);
/* The number of kilobytes after @key, in bytes; 0 if it is not there. */
uint64_t helper_meter_parse_kilobytes(const char *content, const char *key);

/*
 * Bring the table up to date: who is there, and what each has used. METER_BLIND if /proc cannot be read; METER_CROWDED
 * if there are too many, and the look is given up.
 */
enum meter_progress helper_meter_update(struct meter *meter);
/* Find out which of the processes are ours; of the table as it is now. */
void helper_meter_mark_ours(struct meter *meter);
/* Forget those that are gone; to be called when their tallies were taken. */
void helper_meter_forget(struct meter *meter);
/* What System V keeps for the jar. */
uint64_t helper_meter_list_bytes(const struct meter *meter);
struct meter_process *helper_meter_find(const struct meter *meter, pid_t pid);

#endif
