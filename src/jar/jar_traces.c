/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jar/jar_traces.c - is there a trace of a call in what its keeper leaves to the next one?
 *
 * What ends with the processes of a call, all killed and reaped by then, needs no look. What does not is made anew, or
 * cannot be changed by a call, or is compared here with what it was before. docs/design/0016 has the whole list.
 */
#include "jar/jar_traces.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "sys/calls.h"

#define NET_BYTES 8192

/* What something looked like. */
struct sight {
	struct timespec accessed, modified, changed;
	ino_t last_number;   /* of a file system of the call's own: the last file that was made in it */
	bool has_fine_times; /* two changes are told apart by their times however soon the second comes */
};

/*
 * Attempts that no packet came of are counted too; a flow label outlives its socket; a route that was used is counted.
 * Whatever else the network counts goes with a packet, and so with a count in one of the first two.
 */
static const char *const net_files[] = {
	"/proc/self/net/snmp",
	"/proc/self/net/snmp6",
	"/proc/self/net/ip6_flowlabel",
	"/proc/self/net/rt6_stats",
};

static struct {
	struct sight sights[JAR_WATCHED_MAX];
	char net[ARRAY_LEN(net_files)][NET_BYTES];
	struct timespec begun; /* when the call could begin to change something, as coarse as the times of files */
	bool is_doubtful;      /* something could not be seen */
} noted;

static bool is_same_time(const struct timespec *left, const struct timespec *right)
{
	return left->tv_sec == right->tv_sec && left->tv_nsec == right->tv_nsec;
}

static bool is_before(const struct timespec *left, const struct timespec *right)
{
	return left->tv_sec < right->tv_sec || (left->tv_sec == right->tv_sec && left->tv_nsec < right->tv_nsec);
}

/* --- files -------------------------------------------------------------------------------------------------- */

/*
 * Files without a name leave no time on the directory they were made in, but the next file's number tells of them. A tmpfs
 * counts up by one. 0: not to be had.
 */
static ino_t take_number(const char *directory)
{
	AUTO_CLOSE int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	struct stat status;

	return fd >= 0 && fstat(fd, &status) == 0 ? status.st_ino : 0;
}

static bool look(const struct plan_watch *watch, struct sight *sight)
{
	struct stat status;

	/* First: it may be that its directory's own times change. */
	*sight = (struct sight){.last_number = watch->has_numbers ? take_number(watch->path) : 0};
	if (lstat(watch->path, &status) < 0 || (watch->has_numbers && !sight->last_number))
		return false;
	sight->accessed = status.st_atim;
	sight->modified = status.st_mtim;
	sight->changed = status.st_ctim;
	return true;
}

/*
 * Whatever is made, removed or changed in a directory, or of itself, shows in one of its times. Nobody can set that of
 * change; but where times are coarse, what was changed right after we looked may have the time that we saw.
 */
static bool is_untouched(const struct plan_watch *watch, struct sight *before)
{
	struct sight now;

	if (!look(watch, &now) || !is_same_time(&before->accessed, &now.accessed) ||
	    !is_same_time(&before->modified, &now.modified) || !is_same_time(&before->changed, &now.changed))
		return false;
	if (watch->has_numbers && now.last_number != before->last_number + 1)
		return false;
	before->last_number = now.last_number;
	return before->has_fine_times || is_before(&now.changed, &noted.begun);
}

/*
 * In a tmpfs Linux 6.13 and later give a change that follows a look at the times another time, however soon it comes. See
 * by trying, more than once: a tick of the clock may have come between.
 */
static bool has_fine_times(const char *path)
{
	struct timespec last = {0};
	struct stat status;

	for (int i = 0; i < 3; i++) {
		if (lstat(path, &status) < 0 || !S_ISDIR(status.st_mode) || is_same_time(&last, &status.st_ctim) ||
		    chmod(path, status.st_mode & 07777) < 0)
			return false;
		last = status.st_ctim;
	}
	return true;
}

static bool note_sight(const struct plan_watch *watch, struct sight *sight)
{
	bool is_fine = has_fine_times(watch->path);

	if (!look(watch, sight))
		return false;
	sight->has_fine_times = is_fine;
	return true;
}

/* --- the network -------------------------------------------------------------------------------------------- */

/* What is not there, as without IPv6, reads as nothing. */
static bool read_net(size_t number, char content[NET_BYTES])
{
	ssize_t len = sys_read_file(AT_FDCWD, net_files[number], content, NET_BYTES);

	if (len == -ENOENT)
		content[0] = '\0';
	return len == -ENOENT || (len > 0 && len < NET_BYTES - 1);
}

static bool is_network_untouched(void)
{
	char content[NET_BYTES];

	for (size_t i = 0; i < ARRAY_LEN(net_files); i++)
		if (!read_net(i, content) || strcmp(content, noted.net[i]) != 0)
			return false;
	return true;
}

/*
 * Groups that a call joined are reported to the network some milliseconds later, when it may have ended. The first versions
 * of both protocols do so at once, or not at all once the group was left.
 */
static bool hush_network(void)
{
	int rc = sys_write_file(AT_FDCWD, "/proc/sys/net/ipv6/conf/lo/force_mld_version", "1");

	return (rc == 0 || rc == -ENOENT) &&
	       sys_write_file(AT_FDCWD, "/proc/sys/net/ipv4/conf/lo/force_igmp_version", "1") == 0;
}

/* --- signals ------------------------------------------------------------------------------------------------ */

/* Where Landlock does not keep a call's signals to itself, those to this process stay pending for all to see. */
static bool is_nothing_pending(void)
{
	static const struct timespec now = {0};
	sigset_t pending, children;

	sigemptyset(&children);
	sigaddset(&children, SIGCHLD); /* of orphans, who are all gone */
	while (sigtimedwait(&children, NULL, &now) > 0)
		;
	if (sigpending(&pending) < 0)
		return false;
	for (int number = 1; number < NSIG; number++)
		if (sigismember(&pending, number) > 0)
			return false;
	return true;
}

/* --- all of it ---------------------------------------------------------------------------------------------- */

void jar_traces_prevent(const struct plan *plan)
{
	if (plan->namespaces & CLONE_NEWNET && !hush_network())
		noted.is_doubtful = true;
}

void jar_traces_note(const struct plan *plan)
{
	const struct plan_watch_list *watched = &plan->watched;

	for (size_t i = 0; i < watched->count; i++)
		if (!note_sight(&watched->items[i], &noted.sights[i]))
			noted.is_doubtful = true;
	for (size_t i = 0; i < ARRAY_LEN(net_files) && plan->namespaces & CLONE_NEWNET; i++)
		if (!read_net(i, noted.net[i]))
			noted.is_doubtful = true;
}

void jar_traces_begin(void)
{
	clock_gettime(CLOCK_REALTIME_COARSE, &noted.begun);
}

bool jar_is_traceless(const struct jar_inside *inside)
{
	const struct plan_watch_list *watched = &inside->plan->watched;

	if (!inside->call.is_reaped || inside->call.last_pid_fd < 0 || noted.is_doubtful || !is_nothing_pending())
		return false;
	for (size_t i = 0; i < watched->count; i++)
		if (!is_untouched(&watched->items[i], &noted.sights[i]))
			return false;
	/* Without one of its own, what a call did to it is the policy's matter, as for all that share a jar. */
	return !(inside->plan->namespaces & CLONE_NEWNET) || is_network_untouched();
}
