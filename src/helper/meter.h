/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper/meter.h - measure a jar from outside, where no cgroup does: memory, CPU time, bytes written
 *
 * The measuring process reads the jar's processes through a descriptor of the jar's /proc. That shows exactly
 * the processes of the jar, whatever their sessions or parents, and no process in the jar can stop or deceive
 * the measuring process. Without a pid namespace it follows the lists of children from the jar's first process.
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

/* The result of one look. */
struct meter_reading {
	unsigned processes;      /* and threads; the jar's own not counted */
	uint64_t resident_bytes; /* of all processes: a page that two share counts twice */
	uint64_t private_bytes;  /* in the private places and in System V objects */
	uint64_t cpu_ns;
	uint64_t written_bytes; /* to host directories */
	uint64_t grown_bytes;   /* growth of the file system that grew most, if has_lost_writes */
	uint64_t stored_bytes;  /* in the scratch space of the private places */
	bool has_lost_writes;   /* processes ended that no parent waited for */
	bool is_scratch_full;
};

/* The lists of /proc/sysvipc: shared memory, message queues, semaphores. */
#define METER_LIST_COUNT 3

/* How complete a look was. */
enum meter_progress {
	METER_WHOLE,
	METER_CROWDED, /* stopped: more processes than the meter can look at, or than the limit */
	METER_BLIND,   /* /proc could not be read */
};

struct meter {
	const struct plan *plan;
	pid_t first_pid;                /* the jar's first process as /proc shows it */
	bool is_whole_proc;             /* every process that /proc shows is the jar's */
	int proc_fd;                    /* -1: not there yet */
	int list_fds[METER_LIST_COUNT]; /* lists of the jar's System V objects; -1: none */
	int clock_fd;                   /* the kernel's clock of the jar's CPU time; -1: none, add up the processes */
	int *places;                    /* the private places; the first one is the scratch space if has_scratch */
	size_t place_count;
	struct meter_store *stores; /* file systems of writable host directories */
	size_t store_count;
	bool has_scratch;
	bool is_run;          /* one of several runs in the jar, which share the private places */
	uint64_t stored_base; /* what they held when it began */
	struct meter_process *processes;
	size_t process_count, process_capacity;
	size_t sorted_count; /* the first are sorted by pid; this look found those behind them */
	bool has_lists;      /* the kernel lists children */
	/* The look that is under way. */
	size_t at; /* whose children are being listed */
	bool is_crowded, has_seen_any;
	uint64_t seen_threads;  /* so far; at least one for a process, none for the first process */
	uint64_t most_threads;  /* stop the look beyond this many; LIMIT_NONE: never */
	bool has_hidden;        /* this look found a process that forbids reading what it writes ... */
	pid_t hidden_pid;       /* ... the last such one */
	unsigned hidden_rounds; /* looks in a row that found one */
	uint64_t lost_cpu_ns, lost_written_bytes; /* of processes that no parent waited for */
	unsigned losses;              /* looks that found children lost because a process did not wait for them */
	uint64_t first_written_bytes; /* as the first process reports, for all that it has reaped */
};

/* The most processes that the meter can look at. */
unsigned helper_meter_most_processes(void);
void helper_meter_init(struct meter *meter, const struct plan *plan);
/* Take the descriptor @fd that came as @view. */
void helper_meter_take(struct meter *meter, enum jar_view view, int fd);
/* Without namespaces: the jar's first process is @pid in our own /proc. */
int helper_meter_follow(struct meter *meter, pid_t pid);
/* Measure one run in the session that @jar measures: all below its minder, @pid. */
int helper_meter_join(struct meter *meter, const struct meter *jar, pid_t pid);
void helper_meter_done(struct meter *meter);

/* Whether /proc shows the first process. */
bool helper_meter_can_see(const struct meter *meter);
/*
 * Measure what the plan has metered. Any process of the jar can make this wait: see looker.h. Writes @reading
 * only if it measured everything (METER_WHOLE).
 */
enum meter_progress helper_meter_look(struct meter *meter, struct meter_reading *reading);
/* CPU time of this process: on a busy host wall time does not show the cost of a look. */
uint64_t helper_meter_spent_ns(void);
/* Measure the private places alone, which outlive the jar's processes. */
void helper_meter_look_at_places(const struct meter *meter, struct meter_reading *reading);
/* Growth of the file system that grew most. Programs outside the jar count too. */
uint64_t helper_meter_grown_bytes(const struct meter *meter);
/* The memory of the jar with shared pages counted once: 16 µs for a process, and more the more pages it has. */
uint64_t helper_meter_weigh(const struct meter *meter, const struct meter_reading *reading);

#endif
