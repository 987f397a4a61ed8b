/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/meter.h - measure a jar from outside, where no cgroup does: memory, CPU time, bytes written
 *
 * The engine looks at the jar's processes through a descriptor of the jar's own root: its /proc shows every process of
 * the jar and none else, whatever sessions or parents they have, and nothing in the jar can slow, stop or deceive the one
 * who looks. Without a pid namespace it follows the lists of children from the jar's first process.
 */
#ifndef BELLJAR_RUN_METER_H
#define BELLJAR_RUN_METER_H

#include "jar/jar.h"

struct meter_process;

/* A memory file (memfd). */
struct meter_file {
	uint64_t inode;
	uint64_t bytes;
	unsigned round; /* in which it was last seen */
};

/* What one look showed. */
struct meter_reading {
	unsigned processes;      /* and threads; the jar's first process not counted */
	uint64_t resident_bytes; /* of all processes: a page shared by two counts twice */
	uint64_t private_bytes;  /* in the private places, in System V shared memory and in memory files */
	uint64_t cpu_ns;
	uint64_t written_bytes; /* to host directories */
	uint64_t stored_bytes;  /* in the scratch space of the private places */
	bool is_scratch_full;
};

struct meter {
	const struct plan *plan;
	pid_t first_pid;    /* the jar's first process as /proc shows it */
	bool is_whole_proc; /* every process that /proc shows is the jar's */
	int proc_fd;        /* -1: not there yet */
	int shared_fd;      /* the list of System V shared memory; -1: none */
	int clock_fd;       /* the kernel's clock of all CPU time of the jar; -1: none, the processes are asked */
	int *places;        /* the private places; the first one is the scratch space if has_scratch */
	size_t place_count;
	bool has_scratch;
	bool is_run;                     /* one of several runs in the jar: the private places are not its alone */
	uint64_t stored_base;            /* what they held when it began */
	struct meter_process *processes; /* sorted by number */
	size_t process_count, process_capacity;
	bool keeps_nothing; /* no descriptors of processes between two looks */
	struct meter_file *files;
	size_t file_count;
	unsigned round;                           /* through the descriptors of all processes */
	pid_t next_pid;                           /* where it goes on */
	uint64_t lost_cpu_ns, lost_written_bytes; /* of processes that nobody waited for */
	uint64_t first_written_bytes;             /* what the first process says of all that it has reaped */
};

void meter_init(struct meter *meter, const struct plan *plan);
/* Take the descriptor @fd that came as @view. */
void meter_take(struct meter *meter, enum jar_view view, int fd);
/* Without namespaces: the jar's first process is @pid in our own /proc. */
int meter_follow(struct meter *meter, pid_t pid);
/* One run in the kept jar that @jar looks at: all below its keeper, @pid. */
int meter_join(struct meter *meter, const struct meter *jar, pid_t pid);
void meter_done(struct meter *meter);

/* Look at what the plan has metered. False if nothing could be seen. */
bool meter_look(struct meter *meter, struct meter_reading *reading);
/* The private places alone, which outlive the jar's processes. */
void meter_look_at_places(const struct meter *meter, struct meter_reading *reading);
/* The memory of the jar with no page counted twice; takes much longer than a look. */
uint64_t meter_weigh(struct meter *meter, const struct meter_reading *reading, uint64_t limit_bytes);

#endif
