/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jar/jar_carry.c - the order of steps
 *
 * A plan marks steps that no later step needs before the root is sealed: the entries of /etc, fifty small things. They
 * stand together; a thread carries them out while the first one goes on behind them.
 */
#include "jar/jar_carry.h"

#include "jar/jar_thread.h"
#include "sys/calls.h"

struct crew {
	struct jar_build *build;
	const struct plan_step_list *steps;
	uint64_t *times;
	struct jar_thread thread;
	size_t first, end; /* what the thread does */
	bool is_working;
	struct jar_progress beside;
};

static int carry_out_range(const struct crew *crew, size_t first, size_t end, struct jar_progress *progress)
{
	for (size_t i = first; i < end; i++) {
		int rc = jar_step(crew->build, &crew->steps->items[i]);

		if (crew->times && i < JAR_TIMES_MAX)
			crew->times[i] = sys_monotonic_ns();
		if (rc < 0) {
			progress->failed_step = (int)i;
			progress->error = rc;
			return rc;
		}
		progress->done++;
	}
	return 0;
}

static void thread_main(void *argument)
{
	struct crew *crew = argument;

	carry_out_range(crew, crew->first, crew->end, &crew->beside);
}

static int join(struct crew *crew, struct jar_progress *progress)
{
	if (!crew->is_working)
		return 0;
	crew->is_working = false;
	jar_thread_join(&crew->thread);
	progress->done += crew->beside.done;
	if (crew->beside.failed_step < 0)
		return 0;
	progress->failed_step = crew->beside.failed_step;
	progress->error = crew->beside.error;
	return progress->error;
}

/* Where the steps beside end that begin at @first. */
static size_t end_of_beside(const struct plan_step_list *steps, size_t first)
{
	while (first < steps->count && steps->items[first].flags & STEP_BESIDE)
		first++;
	return first;
}

int jar_carry_out(struct jar_build *build, const struct plan_step_list *steps, uint64_t *times,
		  struct jar_progress *progress)
{
	static struct crew crew;
	int rc = 0;

	crew.build = build;
	crew.steps = steps;
	crew.times = times;
	crew.is_working = false;
	crew.beside = (struct jar_progress){.failed_step = -1};
	*progress = (struct jar_progress){.failed_step = -1};
	for (size_t i = 0; i < steps->count && rc == 0; i++) {
		if (steps->items[i].flags & STEP_BESIDE && !crew.is_working) {
			crew.first = i;
			crew.end = end_of_beside(steps, i);
			crew.is_working = jar_thread_start(&crew.thread, thread_main, &crew) == 0;
			if (crew.is_working) {
				i = crew.end - 1;
				continue;
			}
		}
		if (steps->items[i].kind == STEP_SEAL)
			rc = join(&crew, progress);
		if (rc == 0)
			rc = carry_out_range(&crew, i, i + 1, progress);
	}
	/* A thread that still works has the memory that is about to be left: it must not outlive a failure either. */
	if (rc < 0) {
		struct jar_progress ignored = {0};

		join(&crew, &ignored);
	}
	return rc;
}
