/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/jar/jar_reaper.c - after the end of a jar's first process: reap it, and finish its work
 *
 * In a pid namespace no process outlives the first process. Elsewhere it ends its tree before it leaves. If it
 * was killed there, the engine adopts its orphans, which may be many and fork fast, and the run's directory
 * stays. Both may take long, and the engine has other jars. So a timer kills and reaps orphans, and helpers do
 * the rest.
 */
#include "engine/jar/jar_reaper.h"

#include <errno.h>
#include <sys/wait.h>
#include <time.h>

#include "base/sys/calls.h"

#define ROUND_NS 2000000ULL
#define ORPHANS_MAX 256
/* After this many rounds leave out dead processes that cannot be reaped. */
#define QUICK_ROUNDS 16

/* --- the end of a first process ------------------------------------------------------------------------------ */

static void on_round(struct loop_timer *timer);

static void go_on_later(struct reaper *reaper)
{
	loop_arm(reaper->loop, &reaper->timer, sys_monotonic_ns() + ROUND_NS, on_round, reaper);
}

static void finish(struct reaper *reaper)
{
	reaper_function *function = reaper->function;

	reaper->function = NULL;
	function(reaper->owner, &reaper->usage, reaper->status);
}

/* True: it is gone. */
static bool reap(pid_t pid, int *status, struct rusage *usage)
{
	pid_t found = wait4(pid, status, WNOHANG | __WALL, usage);

	return found == pid || (found < 0 && errno == ECHILD);
}

static void start_helper(struct reaper *reaper, pid_t pid)
{
	/* Without a process, or memory to note it, the next round tries again. */
	if (pid <= 0 || reap_family_add(reaper->family, pid) < 0)
		return;
	reaper->helper_pid = pid;
	if (reaper->family)
		reaper->family->hunters++;
}

/* True: there is none at work any more. */
static bool is_helper_gone(struct reaper *reaper)
{
	int status;

	if (!reaper->helper_pid)
		return !reaper->family || !reaper->family->hunters;
	if (!reap(reaper->helper_pid, &status, NULL))
		return false;
	reap_family_remove(reaper->family, reaper->helper_pid);
	if (reaper->family)
		reaper->family->hunters--;
	reaper->helper_pid = 0;
	return true;
}

static void hunt(struct reaper *reaper)
{
	pid_t orphans[ORPHANS_MAX];
	bool is_patient = reaper->rounds++ > QUICK_ROUNDS;
	size_t count;

	if (!reap_orphans(reaper->family, is_patient, orphans, ARRAY_LEN(orphans), &count)) {
		if (count)
			start_helper(reaper, reap_start_hunter(orphans, count));
		return;
	}
	reaper->is_sweeping = true;
	if (reaper->run_directory)
		start_helper(reaper, reap_start_sweeper(reaper->run_directory));
	if (!reaper->helper_pid)
		finish(reaper);
}

static void on_round(struct loop_timer *timer)
{
	struct reaper *reaper = timer->owner;

	if (reaper->pid) {
		if (!reap(reaper->pid, &reaper->status, &reaper->usage)) {
			go_on_later(reaper);
			return;
		}
		reap_family_remove(reaper->family, reaper->pid);
		reaper->pid = 0;
		/* One that has left by itself has done its work. */
		if (reaper->ends_with_first || WIFEXITED(reaper->status)) {
			finish(reaper);
			return;
		}
	}
	if (is_helper_gone(reaper)) {
		if (reaper->is_sweeping)
			finish(reaper);
		else
			hunt(reaper);
	}
	if (reaper->function)
		go_on_later(reaper);
}

void jar_reaper_begin(struct reaper *reaper)
{
	reaper->timer.owner = reaper;
	on_round(&reaper->timer);
}

void jar_reaper_finish(struct reaper *reaper)
{
	static const struct timespec round = {.tv_nsec = ROUND_NS};

	loop_disarm(&reaper->timer);
	while (reaper->function) {
		on_round(&reaper->timer);
		loop_disarm(&reaper->timer);
		if (reaper->function)
			nanosleep(&round, NULL);
	}
}
