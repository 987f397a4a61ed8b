/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/reap/reap_hunt.c - find and end every descendant where there is no pid namespace to do it
 *
 * This process is a subreaper: a descendant whose parent ends becomes its child, in whatever session or process group
 * it hides. So its children are killed until there are none. Chains that keep forking away (fork, setsid, exit) come
 * up here with every link they lose, and are faster than a walk through the tree: most rounds kill children only. A
 * deep tree survives that, so every few rounds this process freezes the whole tree and then kills it.
 */
#include "base/reap/reap.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "base/directory.h"
#include "base/sys/calls.h"

/* Deeper processes come up when their ancestors are gone. */
#define DEPTH_MAX 64
#define LIST_BYTES 4096
/* The most processes that get a polite signal; the others get SIGKILL after the grace. */
#define HELD_MAX 768
#define FREEZE_ROUNDS 16
/* The most processes that are frozen at a time. */
#define TREE_MAX 16384
#define QUICK_ROUNDS 24
#define REST_NS 500000L
#define NUMBER_PIDFD_SEND_SIGNAL 424

struct walk;

/* Called for each child of @parent that is found. */
typedef void visit_function(struct walk *walk, pid_t child, pid_t parent);

struct walk {
	visit_function *visit;
	int depth;
	bool has_lists; /* the kernel lists children (CONFIG_PROC_CHILDREN) */
	const struct reap_family *spared;
	/* killing */
	int found;
	/* reaping */
	bool is_patient; /* look for processes that cannot be reaped */
	int left;        /* neither reaped nor ignored */
	int ignored;
	/* signalling */
	int *held;
	int held_count;
};

void reap_signal(int pidfd, int signal_number)
{
	syscall(NUMBER_PIDFD_SEND_SIGNAL, pidfd, signal_number, NULL, 0);
}

static pid_t parent_of(pid_t pid)
{
	char path[64], content[512], *after;
	int parent = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (sys_read_file(AT_FDCWD, path, content, sizeof(content)) <= 0)
		return 0;
	/* The name before it may contain any character, brackets too. */
	after = strrchr(content, ')');
	return after && sscanf(after + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

/* Is it dead, and does another process trace it? The kernel notifies the tracer first, which may take its time. */
static bool is_dead_and_traced(pid_t pid)
{
	char path[64], content[1024];
	const char *state, *tracer;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (sys_read_file(AT_FDCWD, path, content, sizeof(content)) <= 0)
		return false;
	state = strstr(content, "\nState:\tZ");
	tracer = strstr(content, "\nTracerPid:\t");
	return state && tracer && atoi(tracer + strlen("\nTracerPid:\t")) != 0;
}

static bool is_spared(const struct walk *walk, pid_t pid)
{
	for (size_t i = 0; walk->spared && i < walk->spared->count; i++)
		if (walk->spared->items[i] == pid)
			return true;
	return false;
}

/* The numbers in one `children` file of the kernel's, read piece by piece: it may be longer than the buffer. */
static void visit_list(struct walk *walk, const char *path, pid_t parent)
{
	char list[LIST_BYTES];
	size_t kept = 0;
	ssize_t len;
	AUTO_CLOSE int fd = sys_open(path, O_RDONLY);

	if (fd < 0)
		return;
	walk->has_lists = true;
	while ((len = read(fd, list + kept, sizeof(list) - 1 - kept)) > 0) {
		char *at = list, *end;

		list[kept + (size_t)len] = '\0';
		for (; (end = strchr(at, ' ')); at = end + 1)
			walk->visit(walk, (pid_t)atoi(at), parent);
		kept = strlen(at);
		memmove(list, at, kept);
	}
}

typedef void number_function(struct walk *walk, pid_t number, pid_t parent);

/* Call @function for each number that names an entry of @path. */
static void visit_directory(struct walk *walk, const char *path, pid_t parent, number_function *function)
{
	_Alignas(struct directory_entry) char entries[LIST_BYTES];
	AUTO_CLOSE int fd = sys_open(path, O_RDONLY | O_DIRECTORY);
	struct directory list = {.fd = fd, .buffer = entries, .size = sizeof(entries)};
	const struct directory_entry *entry;

	while (fd >= 0 && (entry = directory_next(&list)))
		if (entry->name[0] >= '1' && entry->name[0] <= '9')
			function(walk, (pid_t)atoi(entry->name), parent);
}

static void visit_thread(struct walk *walk, pid_t thread, pid_t parent)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)parent, (int)thread);
	visit_list(walk, path, parent);
}

static void visit_if_child(struct walk *walk, pid_t pid, pid_t parent)
{
	if (parent_of(pid) == parent)
		walk->visit(walk, pid, parent);
}

static void visit_children(struct walk *walk, pid_t parent)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)parent);
	visit_directory(walk, path, parent, visit_thread);
	if (!walk->has_lists)
		visit_directory(walk, "/proc", parent, visit_if_child);
}

/* The same for this process, which has one thread, in the fewest calls. */
static void visit_own_children(struct walk *walk)
{
	visit_thread(walk, getpid(), getpid());
	if (!walk->has_lists)
		visit_directory(walk, "/proc", getpid(), visit_if_child);
}

/*
 * A child of ours keeps its number until we reap it: killing by number is safe as long as nothing is reaped between
 * looking and killing. A list that changes during the read may name one twice, and the kernel may have reused its
 * number by then.
 */
static void kill_child(struct walk *walk, pid_t child, pid_t parent)
{
	(void)parent;
	if (is_spared(walk, child))
		return;
	walk->found++;
	kill(child, SIGKILL);
}

static void reap_child(struct walk *walk, pid_t child, pid_t parent)
{
	(void)parent;
	if (is_spared(walk, child) || waitpid(child, NULL, WNOHANG | __WALL) != 0)
		return;
	if (walk->is_patient && is_dead_and_traced(child))
		walk->ignored++;
	else
		walk->left++;
}

/*
 * Deeper down the kernel may have reused a number: hold the process first, then look at its parent. Hold all before
 * signalling any, since the children of a process that dies move elsewhere. Parents come before children, or a shell
 * would print a message about the end of its child.
 */
static void hold(struct walk *walk, pid_t child, pid_t parent)
{
	int pidfd = walk->held_count < HELD_MAX && !is_spared(walk, child) ? sys_pidfd_open(child) : -1;

	if (pidfd < 0)
		return;
	if (parent_of(child) != parent) {
		close(pidfd);
		return;
	}
	walk->held[walk->held_count++] = pidfd;
	if (walk->depth < DEPTH_MAX) {
		walk->depth++;
		visit_children(walk, child);
		walk->depth--;
	}
}

void reap_signal_tree(int signal_number)
{
	int held[HELD_MAX];
	struct walk walk = {.visit = hold, .held = held};

	visit_children(&walk, getpid());
	for (int i = 0; i < walk.held_count; i++) {
		reap_signal(held[i], signal_number);
		close(held[i]);
	}
}

/* The tree to end, parents before their children. */
static struct {
	pid_t pid, parent;
} tree[TREE_MAX];
static size_t tree_count;

static void add_to_tree(struct walk *walk, pid_t child, pid_t parent)
{
	if (tree_count == TREE_MAX || is_spared(walk, child))
		return;
	tree[tree_count].pid = child;
	tree[tree_count++].parent = parent;
}

/* The kernel may have reused the number: hold the process first, then look at its parent. */
static void signal_member(size_t at, int signal_number)
{
	AUTO_CLOSE int pidfd = sys_pidfd_open(tree[at].pid);

	if (pidfd >= 0 && parent_of(tree[at].pid) == tree[at].parent)
		reap_signal(pidfd, signal_number);
}

/*
 * A stopped process cannot fork, and still counts against the user's limit on processes. Stop each process before
 * listing its children. Repeat the walk until it finds no new process.
 */
static void freeze_and_kill(struct walk *walk, const pid_t *roots, size_t count)
{
	size_t last = 0;

	for (int round = 0; round < FREEZE_ROUNDS; round++) {
		tree_count = 0;
		if (roots)
			for (size_t i = 0; i < count; i++)
				add_to_tree(walk, roots[i], getppid());
		else
			visit_own_children(walk);
		for (size_t i = 0; i < tree_count; i++) {
			signal_member(i, SIGSTOP);
			visit_children(walk, tree[i].pid);
		}
		if (tree_count <= last)
			break;
		last = tree_count;
	}
	/* Children before their parents, since the parent identifies the child. */
	while (tree_count)
		signal_member(--tree_count, SIGKILL);
}

/* Wait until the next child ends, or a moment. Every signal is blocked here. */
static void rest(void)
{
	static const struct timespec moment = {.tv_nsec = REST_NS};
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigtimedwait(&child, NULL, &moment);
}

bool reap_hunt(const struct reap_family *spared, uint64_t until_ns)
{
	struct walk killing = {.visit = kill_child, .spared = spared};
	struct walk reaping = {.visit = reap_child, .spared = spared};
	siginfo_t ended;

	/* Most commands leave nothing behind. */
	if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 && errno == ECHILD)
		return true;
	for (unsigned round = 1; round == 1 || sys_monotonic_ns() < until_ns; round++) {
		killing.found = 0;
		visit_own_children(&killing);
		/* None, or only dead ones that cannot be reaped yet. */
		if (killing.found == reaping.ignored && !reaping.left)
			return true;
		reaping.left = reaping.ignored = 0;
		reaping.is_patient = round >= QUICK_ROUNDS;
		visit_own_children(&reaping);
		if (round % QUICK_ROUNDS == 0)
			freeze_and_kill(&(struct walk){.visit = add_to_tree, .spared = spared}, NULL, 0);
		if (reaping.left)
			rest();
	}
	return false;
}

/* --- orphans of a first process that was killed, in the engine ----------------------------------------------- */

struct orphans {
	struct walk walk;
	pid_t *found;
	size_t count, max;
	bool has_reaped;
};

/* If waitpid() returns 0, @child is our child now, and the kernel cannot reuse its pid before we reap it. */
static void end_orphan(struct walk *walk, pid_t child, pid_t parent)
{
	struct orphans *orphans = (struct orphans *)walk;

	(void)parent;
	if (orphans->count == orphans->max || is_spared(walk, child))
		return;
	if (waitpid(child, NULL, WNOHANG | __WALL) != 0) {
		orphans->has_reaped = true;
		return;
	}
	if (walk->is_patient && is_dead_and_traced(child))
		return;
	kill(child, SIGKILL);
	orphans->found[orphans->count++] = child;
}

bool reap_orphans(const struct reap_family *spared, bool is_patient, pid_t *found, size_t max, size_t *count_out)
{
	struct orphans orphans = {
		.walk = {.visit = end_orphan, .spared = spared, .is_patient = is_patient}, .found = found, .max = max};

	visit_own_children(&orphans.walk);
	*count_out = orphans.count;
	/* Children of a reaped process may have become ours after the list was read. */
	return !orphans.count && !orphans.has_reaped;
}

pid_t reap_start_hunter(const pid_t *roots, size_t count)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid < 0 ? -errno : pid;
	freeze_and_kill(&(struct walk){.visit = add_to_tree}, roots, count);
	_exit(0);
}

pid_t reap_start_sweeper(const char *directory)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid < 0 ? -errno : pid;
	reap_sweep(directory);
	_exit(0);
}
