/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper/meter.h - measure a jar from outside, where no cgroup does: memory, CPU time, bytes written
 *
 * The looker looks at the jar's processes through a descriptor of the jar's own root: its /proc shows every process of
 * the jar and none else, whatever sessions or parents they have, and nothing in the jar can slow, stop or deceive the one
 * who looks. Without a pid namespace it follows the lists of children from the jar's first process.
 */
#ifndef BELLJAR_HELPER_METER_H
#define BELLJAR_HELPER_METER_H

#include "inside/jar.h"
#include "plan/plan.h"

struct meter_process;

/* A file system of the host's that commands write to. */
struct meter_store {
	int fd;
	dev_t device;
	uint64_t base_bytes; /* used when the run began, by any program */
};

/* What one look showed. */
struct meter_reading {
	unsigned processes;      /* and threads; the jar's own not counted */
	uint64_t resident_bytes; /* of all processes: a page shared by two counts twice */
	uint64_t private_bytes;  /* in the private places, and in what System V keeps */
	uint64_t cpu_ns;
	uint64_t written_bytes; /* to host directories */
	uint64_t grown_bytes;   /* by which the fullest file system has grown, if has_lost_writes */
	uint64_t stored_bytes;  /* in the scratch space of the private places */
	bool has_lost_writes;   /* some processes ended, and no parent waited for them */
	bool is_scratch_full;
};

/* The lists of /proc/sysvipc: shared memory, message queues, semaphores. */
#define METER_LIST_COUNT 3

/* How far a look has come. */
enum meter_progress {
	METER_WHOLE,
	METER_CROWDED, /* there are more processes than can be looked at, or than may be, and it was given up */
	METER_BLIND,   /* nothing could be seen */
};

struct meter {
	const struct plan *plan;
	pid_t first_pid;                /* the jar's first process as /proc shows it */
	bool is_whole_proc;             /* every process that /proc shows is the jar's */
	int proc_fd;                    /* -1: not there yet */
	int list_fds[METER_LIST_COUNT]; /* what System V keeps for the jar; -1: none */
	int clock_fd; /* the kernel's clock of all CPU time of the jar; -1: none, the processes are asked */
	int *places;  /* the private places; the first one is the scratch space if has_scratch */
	size_t place_count;
	struct meter_store *stores; /* where writing to host directories is counted */
	size_t store_count;
	bool has_scratch;
	bool is_run;          /* one of several runs in the jar: the private places are not its alone */
	uint64_t stored_base; /* what they held when it began */
	struct meter_process *processes;
	size_t process_count, process_capacity;
	size_t sorted_count; /* so many are in order of their numbers; found in this look were those behind */
	bool has_lists;      /* the kernel lists children */
	/* The look that is under way. */
	size_t at; /* whose children are being listed */
	bool is_crowded, has_seen_any;
	uint64_t seen_threads;  /* so far; of processes one, of the first process none */
	uint64_t most_threads;  /* beyond this many it need not be finished; LIMIT_NONE: it must */
	bool has_hidden;        /* this look found a process that forbids reading what it writes ... */
	pid_t hidden_pid;       /* ... the last such one */
	unsigned hidden_rounds; /* looks in a row that found one */
	uint64_t lost_cpu_ns, lost_written_bytes; /* of processes that nobody waited for */
	unsigned losses;                          /* looks at a process, some of whose children it had not waited for */
	uint64_t first_written_bytes;             /* what the first process says of all that it has reaped */
};

/* More processes than this cannot be looked at. */
unsigned helper_meter_most_processes(void);
void helper_meter_init(struct meter *meter, const struct plan *plan);
/* Take the descriptor @fd that came as @view. */
void helper_meter_take(struct meter *meter, enum jar_view view, int fd);
/* Without namespaces: the jar's first process is @pid in our own /proc. */
int helper_meter_follow(struct meter *meter, pid_t pid);
/* One run in the session that @jar looks at: all below its minder, @pid. */
int helper_meter_join(struct meter *meter, const struct meter *jar, pid_t pid);
void helper_meter_done(struct meter *meter);

/* Can the first process be seen at all? */
bool helper_meter_can_see(const struct meter *meter);
/*
 * Look at what the plan has metered. Any process of the jar can make this wait: see looker.h. @reading is written when all was
 * looked at (METER_WHOLE).
 */
enum meter_progress helper_meter_look(struct meter *meter, struct meter_reading *reading);
/* What this process has spent of a processor: on a busy host time says nothing of how much work a look was. */
uint64_t helper_meter_spent_ns(void);
/* The private places alone, which outlive the jar's processes. */
void helper_meter_look_at_places(const struct meter *meter, struct meter_reading *reading);
/* By how much the file system has grown that has grown most. Programs outside of the jar count too. */
uint64_t helper_meter_grown_bytes(const struct meter *meter);
/* The memory of the jar with shared pages counted once: 16 µs for a process, and more the more pages it has. */
uint64_t helper_meter_weigh(const struct meter *meter, const struct meter_reading *reading);

#endif
