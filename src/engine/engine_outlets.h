/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_outlets.h - where the output of a job goes: one descriptor for each stream, or one for both
 *
 * The run waits for a slow reader, and ends when a reader is gone. After a limit or a cancel has ended the run,
 * a reader that takes nothing gets one more second; then the engine drops the rest.
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
	bool is_ending[STREAM_COUNT];   /* nothing more comes for it */
	int *sinks;                     /* close these when their stream ends; NULL: others use the descriptors too */
	bool is_shared;                 /* the first one is for both streams */
	void (*moved)(struct job *job); /* bytes were written or lost: check what to wait for */
	struct loop_timer stall;
};

/*
 * Open the outlets. The caller has set job, loop, is_shared, sinks and moved. @fds are borrowed. @is_watching:
 * notice a reader that goes away even while there is nothing to write.
 */
int engine_outlets_open(struct engine_outlets *outlets, const int fds[STREAM_COUNT], bool is_watching,
			struct error *error);
void engine_outlets_done(struct engine_outlets *outlets);
/* Write. True: the reader is behind; wait for run_resume(). */
bool engine_outlets_write(struct engine_outlets *outlets, enum stream_index stream, const void *bytes, size_t len);
/* End this stream: close its sink once all is written. With @sinks only. */
void engine_outlets_end(struct engine_outlets *outlets, enum stream_index stream);
/* Write nothing to terminals until they are released. */
void engine_outlets_hold(struct engine_outlets *outlets, bool is_held);
bool engine_outlets_are_empty(const struct engine_outlets *outlets);
/* Drop what the readers have not taken: now, or after a second. */
void engine_outlets_drop(struct engine_outlets *outlets);
void engine_outlets_drop_later(struct engine_outlets *outlets);

#endif
