/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/burial.c - the end of a jar's first process: reap it, and do what it could not do
 *
 * In a pid namespace nothing outlives the first process, and elsewhere it ends its tree before it leaves. If it was killed
 * there, its orphans are the engine's children, however many they are and however fast they fork, and a directory is left
 * with whatever is in it. Both may take long, and the engine has other jars: a timer kills and reaps what is there, and
 * processes made for that do the rest.
 */
#include "run/burial.h"

#include <errno.h>
#include <sys/wait.h>
#include <time.h>

#include "sys/calls.h"

#define ROUND_NS 2000000ULL
#define ORPHANS_MAX 256
/* After so many rounds those are left out that are dead and cannot be reaped. */
#define QUICK_ROUNDS 16

static void on_round(struct loop_timer *timer);

static void go_on_later(struct burial *burial)
{
	loop_arm(burial->loop, &burial->timer, sys_monotonic_ns() + ROUND_NS, on_round, burial);
}

static void finish(struct burial *burial)
{
	burial_function *function = burial->function;

	burial->function = NULL;
	function(burial->owner, &burial->usage, burial->status);
}

/* True: it is gone. */
static bool reap(pid_t pid, int *status, struct rusage *usage)
{
	pid_t found = wait4(pid, status, WNOHANG | __WALL, usage);

	return found == pid || (found < 0 && errno == ECHILD);
}

static void start_helper(struct burial *burial, pid_t pid)
{
	/* If no process can be made, or there is no memory to note it: the next round tries again. */
	if (pid <= 0 || jar_family_add(burial->family, pid) < 0)
		return;
	burial->helper_pid = pid;
	if (burial->family)
		burial->family->hunters++;
}

/* True: there is none at work any more. */
static bool is_helper_gone(struct burial *burial)
{
	int status;

	if (!burial->helper_pid)
		return !burial->family || !burial->family->hunters;
	if (!reap(burial->helper_pid, &status, NULL))
		return false;
	jar_family_remove(burial->family, burial->helper_pid);
	if (burial->family)
		burial->family->hunters--;
	burial->helper_pid = 0;
	return true;
}

static void hunt(struct burial *burial)
{
	pid_t orphans[ORPHANS_MAX];
	bool is_patient = burial->rounds++ > QUICK_ROUNDS;
	size_t count;

	if (!jar_end_orphans(burial->family, is_patient, orphans, ARRAY_LEN(orphans), &count)) {
		if (count)
			start_helper(burial, jar_start_hunter(orphans, count));
		return;
	}
	burial->is_sweeping = true;
	if (burial->plan->run_directory)
		start_helper(burial, jar_start_sweeper(burial->plan->run_directory));
	if (!burial->helper_pid)
		finish(burial);
}

static void on_round(struct loop_timer *timer)
{
	struct burial *burial = timer->owner;

	if (burial->pid) {
		if (!reap(burial->pid, &burial->status, &burial->usage)) {
			go_on_later(burial);
			return;
		}
		jar_family_remove(burial->family, burial->pid);
		burial->pid = 0;
		/* One that has left by itself has done its work. */
		if (burial->plan->rung == RUNG_NAMESPACE || WIFEXITED(burial->status)) {
			finish(burial);
			return;
		}
	}
	if (is_helper_gone(burial)) {
		if (burial->is_sweeping)
			finish(burial);
		else
			hunt(burial);
	}
	if (burial->function)
		go_on_later(burial);
}

void burial_begin(struct burial *burial, struct loop *loop, const struct plan *plan, struct jar_family *family,
		  pid_t pid, burial_function *function, void *owner)
{
	*burial = (struct burial){
		.loop = loop, .plan = plan, .family = family, .pid = pid, .function = function, .owner = owner};
	burial->timer.owner = burial;
	on_round(&burial->timer);
}

void burial_finish(struct burial *burial)
{
	static const struct timespec round = {.tv_nsec = ROUND_NS};

	loop_disarm(&burial->timer);
	while (burial->function) {
		on_round(&burial->timer);
		loop_disarm(&burial->timer);
		if (burial->function)
			nanosleep(&round, NULL);
	}
}
