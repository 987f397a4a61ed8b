/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_outlets.h - where the output of a job goes: one descriptor for each stream, or one for both
 *
 * The run waits for a reader that is slow, and is ended when a reader is gone. A reader that takes nothing once a limit or
 * a cancel has ended the run gets another second; then the rest is dropped.
 */
#ifndef BELLJAR_ENGINE_ENGINE_OUTLETS_H
#define BELLJAR_ENGINE_ENGINE_OUTLETS_H

#include "engine/engine_job.h"
#include "engine/run/outlet.h"

struct engine_outlets {
	struct job *job;
	struct loop *loop;
	struct outlet items[STREAM_COUNT];
	bool is_open[STREAM_COUNT];
	bool is_ending[STREAM_COUNT]; /* nothing more comes for it */
	int *sinks;                   /* to be closed where a stream has ended; NULL: the descriptors are others' too */
	bool is_shared;               /* the first is for both streams */
	void (*moved)(struct job *job); /* bytes have left, or are lost: there may be nothing to wait for any more */
	struct loop_timer stall;
};

/*
 * job, loop, is_shared, sinks and moved are to be filled in before. @fds are borrowed. @is_watching: notice a reader that goes
 * away even while there is nothing to write.
 */
int engine_outlets_open(struct engine_outlets *outlets, const int fds[STREAM_COUNT], bool is_watching,
			struct error *error);
void engine_outlets_done(struct engine_outlets *outlets);
/* True: that was enough for now, see run_resume(). */
bool engine_outlets_write(struct engine_outlets *outlets, enum stream_index stream, const void *bytes, size_t len);
/* Nothing more comes for this stream: its reader is to see the end, once all is written. With @sinks only. */
void engine_outlets_end(struct engine_outlets *outlets, enum stream_index stream);
/* Those that are terminals: write nothing there until they are released. */
void engine_outlets_hold(struct engine_outlets *outlets, bool is_held);
bool engine_outlets_are_empty(const struct engine_outlets *outlets);
/* Drop what was not taken: now, or after a second. */
void engine_outlets_drop(struct engine_outlets *outlets);
void engine_outlets_drop_later(struct engine_outlets *outlets);

#endif
