/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/limits/observation.h - the record of one run, from started to surely gone: plain data for engine/result/
 */
#ifndef BELLJAR_ENGINE_LIMITS_OBSERVATION_H
#define BELLJAR_ENGINE_LIMITS_OBSERVATION_H

#include "base/base.h"
#include "base/error.h"
#include "base/list.h"
#include "plan/explain/denial.h"
#include "policy/publish.h"

enum stream_index { STREAM_STDOUT, STREAM_STDERR, STREAM_COUNT };

/* Why Belljar ended the run; the first cause in time is kept. */
enum cause {
	CAUSE_NONE, /* it ended by itself */
	CAUSE_TIMEOUT,
	CAUSE_CPU,
	CAUSE_MEMORY,
	CAUSE_DISK,
	CAUSE_OUTPUT,
	CAUSE_NET,  /* bytes through the gate */
	CAUSE_PIDS, /* too many processes, where the kernel does not refuse them */
	CAUSE_CANCELLED,
	CAUSE_OUTPUT_LOST, /* the output could not be written */
	CAUSE_UNHELD,      /* it turned out that a limit could not be held */
	CAUSE_BREACH,      /* it turned out that a wall did not hold, whatever else ended the run */
};

enum limit_name {
	LIMIT_TIMEOUT,
	LIMIT_CPU_TIME,
	LIMIT_MEMORY,
	LIMIT_PIDS,
	LIMIT_DISK,
	LIMIT_FILE_SIZE,
	LIMIT_FDS,
	LIMIT_NET_CONNECTIONS,
	LIMIT_NET_BYTES,
	LIMIT_OUTPUT,
	LIMIT_NAME_COUNT,
};

/* Whether the kernel killed a process for memory although the run reached no limit. */
enum host_shortage {
	SHORTAGE_NONE,  /* it did not, or this is unknown */
	SHORTAGE_SEEN,  /* somewhere on the host while the command ran; perhaps in the jar */
	SHORTAGE_PROVEN /* in the jar */
};

#define LIMIT_EVIDENCE_MAX 192

struct limit_hit {
	bool is_hit;
	uint64_t limit; /* bytes, milliseconds or a count */
	uint64_t peak;
	bool has_peak;
	const char *enforced_by;
	char evidence[LIMIT_EVIDENCE_MAX];
};

/* The traffic through the gate to one host and port. */
struct network_host {
	char host[256];
	uint16_t port;
	uint64_t connections, bytes_out, bytes_in;
};

LIST_TYPE(struct network_host, network_host_list);

struct network_seen {
	struct publish published[PUBLISH_MAX]; /* with their real ports of the host */
	size_t published_count;
	bool has_gate;
	bool has_died; /* the gate, before the run was over */
	struct network_host_list hosts;
};

struct observation {
	bool has_started;   /* the command ran */
	struct error error; /* set where it did not, or where its output was lost */
	int failed_step;    /* index in the plan where a step failed; -1: none did */
	bool failed_in_entry;
	enum cause cause;
	int cancel_signal; /* CAUSE_CANCELLED: the signal that asked for it; 0: none */
	bool has_status;
	int status; /* wait status of the main process */
	uint64_t wall_us;
	uint64_t user_us;
	uint64_t system_us;
	uint64_t peak_memory_bytes;
	const char *memory_by;   /* the source of the number */
	uint64_t peak_processes; /* 0: not counted */
	uint32_t metered;        /* 1 << enum guarantee: what the engine measured while the command ran */
	enum host_shortage shortage;
	uint64_t stream_bytes[STREAM_COUNT]; /* as the command wrote them */
	bool is_truncated;
	bool is_stream_cut[STREAM_COUNT]; /* bytes of this one were dropped */
	const char *overflowed;           /* what went over its cap first: "output", "stdout", "stderr"; or NULL */
	struct limit_hit limits[LIMIT_NAME_COUNT];
	struct network_seen network;
	struct denied_seen denied;
	uint32_t steps_done, entry_done;
};

#endif
