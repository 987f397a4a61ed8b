/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits/crowd_walk.c - find the processes of a jar's commands, and say on which processors they may run
 *
 * Processes that end as fast as they are made are met while they live only if each is told as soon as it is found; their
 * children inherit it. The jar's own processes are in the session of its first one, which no command can enter. A number may be another's
 * by the time it is used: who turns out to be another gets back what it had.
 */
#include "limits/crowd.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "limits/meter_process.h"
#include "reap/reap_children.h"
#include "sys/calls.h"

/* A bound for what a look costs. Those that make others are above them, and found first. */
#define MEMBERS_MAX 512
#define STAT_BYTES 1024
#define ROUNDS_MAX 8
/* That young are those that only just live. */
#define YOUNG_MS 30
/*
 * A crowd are so many of them, if they are at least half of all: chains that fork away. Or so many that were made within a tenth
 * of a second and wait for their turn: who makes them is faster than they are. What builds and tests start lives longer, and
 * there are about as many as processors.
 */
#define CHAINS_MIN 4
#define WAITING_MIN 16
#define WAITING_MS 100

struct tree {
	int proc_fd;
	struct meter_process members[MEMBERS_MAX]; /* parents before children; the first is the jar's first process */
	size_t count;
	struct meter_process *current;      /* whose threads are gone through */
	const struct processors *from, *to; /* to NULL: only look; from NULL: from any */
	size_t changed;
};

/* False: it has ended, or the number is another's. */
static bool read_member(const struct tree *tree, struct meter_process *member)
{
	char name[32], content[STAT_BYTES];

	snprintf(name, sizeof(name), "%d/stat", (int)member->pid);
	return sys_read_file(tree->proc_fd, name, content, sizeof(content)) > 0 && meter_parse_stat(member, content);
}

static void each_thread(struct tree *tree, struct meter_process *member, reap_number_function *function)
{
	char name[32];
	AUTO_CLOSE int fd = -1;

	tree->current = member;
	snprintf(name, sizeof(name), "%d/task", (int)member->pid);
	fd = openat(tree->proc_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	while (fd >= 0 && reap_some_numbers(fd, function, tree) > 0)
		;
}

/* --- processors --------------------------------------------------------------------------------------------- */

/* True: it has something to lose, or to get back. */
static bool choose(const struct tree *tree, const struct processors *now, struct processors *wanted)
{
	bool is_any = false;

	*wanted = *tree->to;
	if (tree->from)
		return !memcmp(now->bits, tree->from->bits, sizeof(now->bits));
	/* What a process has chosen by itself stays, as far as it may. */
	for (size_t i = 0; i < ARRAY_LEN(now->bits); i++)
		is_any |= (now->bits[i] & tree->to->bits[i]) != 0;
	for (size_t i = 0; i < ARRAY_LEN(now->bits) && is_any; i++)
		wanted->bits[i] &= now->bits[i];
	return memcmp(now->bits, wanted->bits, sizeof(now->bits)) != 0;
}

static bool change_thread(void *owner, pid_t thread)
{
	struct tree *tree = owner;
	struct meter_process again = *tree->current;
	struct processors now = {0}, wanted;

	if (syscall(SYS_sched_getaffinity, thread, sizeof(now.bits), now.bits) <= 0 || !choose(tree, &now, &wanted) ||
	    syscall(SYS_sched_setaffinity, thread, wanted.len, wanted.bits) < 0)
		return true;
	if (read_member(tree, &again))
		tree->changed++;
	else
		(void)syscall(SYS_sched_setaffinity, thread, wanted.len, now.bits);
	return true;
}

/* --- who is there ------------------------------------------------------------------------------------------- */

static bool is_command(const struct tree *tree, const struct meter_process *member)
{
	return member->session != tree->members[0].session;
}

/* A minder may have a starter, a fork that waits for a command: one of its forks counts as that. */
static bool is_starter(const struct tree *tree, struct meter_process *parent, const struct meter_process *child)
{
	if (parent == &tree->members[0] || is_command(tree, parent) || parent->has_starter || !child->is_fork)
		return false;
	parent->has_starter = true;
	return true;
}

static bool add_child(void *owner, pid_t pid)
{
	struct tree *tree = owner;
	struct meter_process *parent = tree->current;
	struct meter_process *child = &tree->members[tree->count];

	*child = (struct meter_process){.pid = pid, .is_new = true};
	if (!read_member(tree, child) || child->parent != parent->pid)
		return true;
	child->is_new = false;
	child->is_ours = !is_command(tree, child) || is_starter(tree, parent, child);
	child->is_gone = !child->virtual_bytes;
	if (tree->to && is_command(tree, child) && !child->is_gone) {
		tree->current = child;
		if (child->threads == 1)
			change_thread(tree, pid);
		else
			each_thread(tree, child, change_thread);
		tree->current = parent;
	}
	return ++tree->count < MEMBERS_MAX;
}

static bool add_children(void *owner, pid_t thread)
{
	struct tree *tree = owner;

	reap_each_child(tree->proc_fd, tree->current->pid, thread, add_child, tree);
	return tree->count < MEMBERS_MAX;
}

static void go_through(struct tree *tree, pid_t root)
{
	struct meter_process *first = &tree->members[0];

	*first = (struct meter_process){.pid = root, .is_new = true};
	tree->changed = 0;
	tree->count = read_member(tree, first);
	first->is_new = false;
	for (size_t i = 0; i < tree->count && tree->count < MEMBERS_MAX; i++)
		if (!tree->members[i].is_gone)
			each_thread(tree, &tree->members[i], add_children);
}

/* Those that have ended and were not waited for count too: they were made. */
static size_t count_younger(const struct tree *tree, unsigned milliseconds, uint64_t now_ticks)
{
	uint64_t ticks = milliseconds * (uint64_t)sysconf(_SC_CLK_TCK) / 1000;
	size_t count = 0;

	for (size_t i = 1; i < tree->count; i++)
		count += !tree->members[i].is_ours && tree->members[i].start_time + ticks >= now_ticks;
	return count;
}

static uint64_t now_in_ticks(void)
{
	uint64_t hertz = (uint64_t)sysconf(_SC_CLK_TCK);
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * hertz + (uint64_t)now.tv_nsec / (1000000000 / hertz);
}

static bool is_crowd(const struct tree *tree, uint64_t ticks)
{
	size_t young = count_younger(tree, YOUNG_MS, ticks);

	return (young >= CHAINS_MIN && 2 * young >= count_younger(tree, UINT32_MAX, ticks)) ||
	       count_younger(tree, WAITING_MS, ticks) >= WAITING_MIN;
}

/* --- both ways ---------------------------------------------------------------------------------------------- */

bool crowd_confine(pid_t root, const struct processors *fewer, bool is_again)
{
	AUTO_FREE struct tree *tree = calloc(1, sizeof(*tree));
	AUTO_CLOSE int proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint64_t ticks = now_in_ticks();

	if (!tree || proc_fd < 0)
		return false;
	*tree = (struct tree){.proc_fd = proc_fd, .to = is_again ? fewer : NULL};
	go_through(tree, root);
	if (!is_crowd(tree, ticks))
		return false;
	for (int round = 0; round < ROUNDS_MAX && (!tree->to || tree->changed); round++) {
		tree->to = fewer;
		go_through(tree, root);
	}
	return true;
}

bool crowd_release(pid_t root, const struct processors *all, const struct processors *fewer)
{
	AUTO_FREE struct tree *tree = calloc(1, sizeof(*tree));
	AUTO_CLOSE int proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (!tree || proc_fd < 0)
		return false;
	*tree = (struct tree){.proc_fd = proc_fd, .from = fewer, .to = all};
	go_through(tree, root);
	return tree->changed != 0;
}
