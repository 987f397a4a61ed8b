/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits/crowd.c - keep a storm of processes away from one processor: when to look, and who does it
 *
 * The kernel numbers processes as they are made, and tells the last number in a few microseconds. Only if that says that more
 * are made than programs need which execute others, a copy of the engine goes through the jar's processes: that may take long,
 * and the engine's loop waits for nothing that a jar does.
 */
#include "limits/crowd.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/calls.h"

/*
 * When it is looked for the first time; then after twice as long each time, up to the last, so that however many jars there are the
 * looking makes no storm of its own. Of one that is confined: for those that slipped through.
 */
#define FIRST_NS UINT64_C(2000000)
#define LAST_NS UINT64_C(800000000)
#define CONFINED_NS UINT64_C(250000000)
#define SECOND_NS UINT64_C(1000000000)
/* So many a second for each processor. A shell that starts one program after the other makes fewer. */
#define STORM_RATE 2000
/* So many looks without a crowd, before processors are given back. */
#define CALM_LOOKS 4
/* How often it is asked whether a helper has done its work; one that was killed. */
#define WORKING_NS UINT64_C(20000000)
#define REAP_NS 500000ULL

enum helper { HELPER_NONE, HELPER_CONFINES, HELPER_RELEASES };

struct crowd {
	struct loop *loop;
	struct reap_family *family;
	pid_t root;
	crowd_function *is_busy;
	const void *owner;
	struct processors all, fewer;
	unsigned processor_count;
	struct loop_timer timer;
	uint64_t wait_ns;
	int last_number; /* 0: not looked at yet */
	uint64_t last_ns;
	enum helper helper;
	pid_t helper_pid;
	bool is_confined; /* something was, and may still be */
	bool was_confined;
	unsigned calm_looks;
};

/* --- the helper --------------------------------------------------------------------------------------------- */

static void help(const struct crowd *crowd, enum helper helper, pid_t engine_pid) __attribute__((noreturn));
static void help(const struct crowd *crowd, enum helper helper, pid_t engine_pid)
{
	/* A copy of a jar's control socket would outlive the engine's own end of it. */
	sys_close_range(0, ~0U);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != engine_pid)
		_exit(0);
	setsid();
	processor_be_prompt();
	_exit(helper == HELPER_CONFINES ? crowd_confine(crowd->root, &crowd->fewer, crowd->is_confined)
					: crowd_release(crowd->root, &crowd->all, &crowd->fewer));
}

static void start_helper(struct crowd *crowd, enum helper helper)
{
	pid_t engine_pid = getpid(), pid = fork();

	if (pid == 0)
		help(crowd, helper, engine_pid);
	if (pid < 0)
		return; /* the next look tries again */
	/* Without memory for that it may be taken for an orphan and killed: then it is as if it had found nothing. */
	(void)reap_family_add(crowd->family, pid);
	crowd->helper = helper;
	crowd->helper_pid = pid;
}

/* True: none is at work. */
static bool is_helper_gone(struct crowd *crowd)
{
	int status = 0;
	bool is_found;

	if (!crowd->helper_pid)
		return true;
	if (waitpid(crowd->helper_pid, &status, WNOHANG | __WALL) == 0)
		return false;
	reap_family_remove(crowd->family, crowd->helper_pid);
	crowd->helper_pid = 0;
	is_found = WIFEXITED(status) && WEXITSTATUS(status) == 1;
	crowd->calm_looks = is_found ? 0 : crowd->calm_looks + 1;
	/* What was made while others got processors back may have inherited fewer: that none was found is the end of it. */
	crowd->is_confined = is_found || (crowd->is_confined && crowd->helper == HELPER_CONFINES);
	crowd->was_confined |= crowd->is_confined;
	crowd->helper = HELPER_NONE;
	return true;
}

/* --- when ---------------------------------------------------------------------------------------------------- */

/* The number of the process that was made last. 0: not known. */
static int last_number(void)
{
	char content[128], *last = NULL;

	if (sys_read_file(AT_FDCWD, "/proc/loadavg", content, sizeof(content)) > 0)
		last = strrchr(content, ' ');
	return last ? atoi(last + 1) : 0;
}

/* Are more made than the processors can run? Numbers begin anew now and then: what was made before that is not counted. */
static bool is_stormy(struct crowd *crowd)
{
	uint64_t now_ns = sys_monotonic_ns(), spent_ns = now_ns - crowd->last_ns;
	int number = last_number(), before = crowd->last_number;
	uint64_t made = (uint64_t)(number < before ? number : number - before);

	crowd->last_number = number;
	crowd->last_ns = now_ns;
	return before > 0 && made * SECOND_NS / MAX_OF(spent_ns, 1) >= STORM_RATE * crowd->processor_count;
}

static void on_tick(struct loop_timer *timer)
{
	struct crowd *crowd = timer->owner;
	bool is_storm;

	if (!is_helper_gone(crowd)) {
		loop_arm(crowd->loop, timer, sys_monotonic_ns() + WORKING_NS, on_tick, crowd);
		return;
	}
	if (!crowd->is_busy(crowd->owner))
		return;
	is_storm = is_stormy(crowd);
	crowd->calm_looks += !is_storm;
	if (crowd->is_confined && crowd->calm_looks >= CALM_LOOKS)
		start_helper(crowd, HELPER_RELEASES);
	else if (is_storm)
		start_helper(crowd, HELPER_CONFINES);
	crowd->wait_ns = crowd->is_confined ? CONFINED_NS : MIN_OF(crowd->wait_ns * 2, LAST_NS);
	loop_arm(crowd->loop, timer, sys_monotonic_ns() + crowd->wait_ns, on_tick, crowd);
}

void crowd_watch(struct crowd *crowd)
{
	if (!crowd || crowd->timer.loop)
		return;
	crowd->wait_ns = FIRST_NS;
	crowd->calm_looks = 0;
	crowd->last_number = 0;
	crowd->was_confined = crowd->is_confined;
	loop_arm(crowd->loop, &crowd->timer, sys_monotonic_ns() + FIRST_NS, on_tick, crowd);
}

bool crowd_was_confined(const struct crowd *crowd)
{
	return crowd && crowd->was_confined;
}

struct crowd *crowd_new(struct loop *loop, struct reap_family *family, pid_t root, crowd_function *is_busy,
			const void *owner)
{
	struct crowd *crowd = calloc(1, sizeof(*crowd));

	if (!crowd)
		return NULL;
	*crowd = (struct crowd){.loop = loop, .family = family, .root = root, .is_busy = is_busy, .owner = owner};
	crowd->processor_count = processor_all_but_one(&crowd->all, &crowd->fewer);
	if (crowd->processor_count < 2) {
		free(crowd);
		return NULL;
	}
	return crowd;
}

static void on_reaping(struct loop_timer *timer)
{
	struct crowd *crowd = timer->owner;

	if (is_helper_gone(crowd))
		free(crowd);
	else
		loop_arm(crowd->loop, timer, sys_monotonic_ns() + REAP_NS, on_reaping, crowd);
}

void crowd_free(struct crowd *crowd)
{
	if (!crowd)
		return;
	loop_disarm(&crowd->timer);
	if (crowd->helper_pid)
		kill(crowd->helper_pid, SIGKILL); /* nobody else waits for it */
	crowd->timer.owner = crowd;
	on_reaping(&crowd->timer);
}
