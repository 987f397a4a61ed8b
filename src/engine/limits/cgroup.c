/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/limits/cgroup.c - the cgroups of one run: made before its jar, read while it runs, removed after it
 *
 * Version 1 has one directory in each controller's tree, version 2 one for all. The engine holds a lock on each
 * of its directories. If the engine is killed, the jar ends and the kernel drops the lock, and the empty
 * directory stays. The next engine that makes one beside it removes all unlocked directories of Belljar. That
 * works across pid namespaces too, where a process number in the name would mean nothing.
 *
 * In a session each run has one of its own below the jar's, so that the jar's limits hold for the sum. Version 2 wants
 * processes in leaves only: there the jar's first process has one too.
 */
#include "engine/limits/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/helper.h"
#include "base/sys/calls.h"

#define NAME_PREFIX "belljar-"
/* The prefix and 16 digits: survey_find_cgroups() makes the names. */
#define NAME_LEN (sizeof(NAME_PREFIX) - 1 + 16)
/* The engine's cgroup while runs use the one that it came from. */
#define ENGINE_SUFFIX "-engine"
#define MAKE_TRIES 50
#define MAKE_WAIT_NS 1000000L
#define REMOVE_TRIES 250
#define REMOVE_WAIT_NS 2000000ULL
#define FILE_BYTES 512
#define RUN_PREFIX "run-"

const char *limits_cgroup_word(const struct cgroup *cgroup)
{
	return cgroup->version == 2 ? "cgroup2" : "cgroup1";
}

/* --- reading ------------------------------------------------------------------------------------------------ */

/* The number after @key (NULL: the file is one number). */
static bool read_number(int directory_fd, const char *file, const char *key, uint64_t *out)
{
	char content[FILE_BYTES];
	const char *at = content;
	char *end;
	uint64_t value;

	if (directory_fd < 0 || sys_read_file(directory_fd, file, content, sizeof(content)) <= 0)
		return false;
	if (key) {
		size_t len = strlen(key);

		while (strncmp(at, key, len) != 0 || at[len] != ' ') {
			at = strchr(at, '\n');
			if (!at)
				return false;
			at++;
		}
		at += len + 1;
	}
	errno = 0;
	value = strtoull(at, &end, 10);
	if (end == at || errno)
		return false;
	*out = value;
	return true;
}

uint64_t limits_cgroup_cpu_ns(const struct cgroup *cgroup)
{
	uint64_t value = 0;

	if (cgroup->version == 1)
		return read_number(cgroup->fds[CGROUP_CPU], "cpuacct.usage", NULL, &value) ? value : 0;
	return read_number(cgroup->fds[CGROUP_CPU], "cpu.stat", "usage_usec", &value) ? value * 1000 : 0;
}

static void read_cpu(const struct cgroup *cgroup, struct cgroup_reading *reading)
{
	int fd = cgroup->fds[CGROUP_CPU];
	uint64_t user = 0, system = 0;

	reading->cpu_ns = limits_cgroup_cpu_ns(cgroup);
	reading->has_cpu = reading->cpu_ns > 0;
	if (cgroup->version == 1) {
		read_number(fd, "cpuacct.usage_user", NULL, &reading->user_ns);
		read_number(fd, "cpuacct.usage_sys", NULL, &reading->system_ns);
	} else if (read_number(fd, "cpu.stat", "user_usec", &user) &&
		   read_number(fd, "cpu.stat", "system_usec", &system)) {
		reading->user_ns = user * 1000;
		reading->system_ns = system * 1000;
	}
}

/* Count refused forks; 0 where the kernel does not count them. */
static uint64_t refused_pids(const struct cgroup *cgroup)
{
	uint64_t value = 0;

	return read_number(cgroup->fds[CGROUP_PIDS], "pids.events", "max", &value) ? value : 0;
}

static void read_memory(const struct cgroup *cgroup, struct cgroup_reading *reading)
{
	int fd = cgroup->fds[CGROUP_MEMORY];

	if (cgroup->version == 1) {
		reading->has_peak_memory =
			read_number(fd, "memory.max_usage_in_bytes", NULL, &reading->peak_memory_bytes);
		read_number(fd, "memory.oom_control", "oom_kill", &reading->killed_for_memory);
		return;
	}
	reading->has_peak_memory = read_number(fd, "memory.peak", NULL, &reading->peak_memory_bytes); /* since 5.19 */
	read_number(fd, "memory.events", "oom_kill", &reading->killed_for_memory);
	read_number(fd, "memory.events", "oom", &reading->memory_refusals);
}

bool limits_cgroup_memory_now(const struct cgroup *cgroup, uint64_t *bytes_out)
{
	const char *file = cgroup->version == 1 ? "memory.usage_in_bytes" : "memory.current";
	int fd = cgroup->version ? cgroup->fds[CGROUP_MEMORY] : -1;

	return fd >= 0 && read_number(fd, file, NULL, bytes_out);
}

bool limits_cgroup_processes_now(const struct cgroup *cgroup, uint64_t *count_out)
{
	int fd = cgroup->version ? cgroup->fds[CGROUP_PIDS] : -1;

	return fd >= 0 && read_number(fd, "pids.current", NULL, count_out);
}

void limits_cgroup_read(const struct cgroup *cgroup, struct cgroup_reading *reading)
{
	*reading = (struct cgroup_reading){0};
	if (cgroup->fds[CGROUP_MEMORY] >= 0)
		read_memory(cgroup, reading);
	if (cgroup->fds[CGROUP_PIDS] >= 0) {
		reading->has_peak_pids = read_number(cgroup->fds[CGROUP_PIDS], "pids.peak", NULL, &reading->peak_pids);
		reading->refused_pids = refused_pids(cgroup);
	}
	if (cgroup->fds[CGROUP_CPU] >= 0)
		read_cpu(cgroup, reading);
}

/* --- making ------------------------------------------------------------------------------------------------- */

static int write_number(int directory_fd, const char *file, uint64_t value)
{
	char content[32];

	snprintf(content, sizeof(content), "%" PRIu64, value);
	return sys_write_file(directory_fd, file, content);
}

/* Swap must not stretch the limit. */
static int limit_swap1(int fd, uint64_t limit)
{
	int rc = write_number(fd, "memory.memsw.limit_in_bytes", limit);

	/* A kernel that does not count swap per cgroup can still be told to use none. */
	return rc == -ENOENT ? sys_write_file(fd, "memory.swappiness", "0") : rc;
}

static int limit_swap2(int fd)
{
	int rc = sys_write_file(fd, "memory.swap.max", "0");

	return rc == -ENOENT ? 0 : rc; /* a kernel without swap */
}

/* Version 1 keeps memory below memory and swap together at every moment: what is raised last must be raised first. */
static int set_memory1(int fd, uint64_t limit, bool is_raised)
{
	int rc = is_raised ? limit_swap1(fd, limit) : 0;

	if (rc == 0)
		rc = write_number(fd, "memory.limit_in_bytes", limit);
	return rc < 0 || is_raised ? rc : limit_swap1(fd, limit);
}

static int set_memory(const struct cgroup *cgroup, uint64_t limit)
{
	int fd = cgroup->fds[CGROUP_MEMORY];
	int rc;

	if (cgroup->version == 1)
		return set_memory1(fd, limit, cgroup->memory_bytes && limit > cgroup->memory_bytes);
	rc = write_number(fd, "memory.max", limit);
	return rc < 0 ? rc : limit_swap2(fd);
}

/* One process killed for memory takes the others of the run along. Not those of other runs in the same jar. */
static int kill_together(const struct cgroup *cgroup)
{
	int rc = cgroup->version == 2 && cgroup->fds[CGROUP_MEMORY] >= 0
			 ? sys_write_file(cgroup->fds[CGROUP_MEMORY], "memory.oom.group", "1")
			 : 0;

	return rc == -ENOENT ? 0 : rc; /* it is there since 4.19; without it we kill the rest ourselves */
}

/* Open the kernel's notice of kills. Without it the engine sees a kill only at the end. */
static void open_notice(struct cgroup *cgroup)
{
	AUTO_CLOSE int event_fd = -1;
	AUTO_CLOSE int control_fd = -1;
	char words[32];

	if (cgroup->version == 2) {
		cgroup->notice_fd = openat(cgroup->fds[CGROUP_MEMORY], "memory.events", O_RDONLY | O_CLOEXEC);
		return;
	}
	event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	control_fd = openat(cgroup->fds[CGROUP_MEMORY], "memory.oom_control", O_RDONLY | O_CLOEXEC);
	if (event_fd < 0 || control_fd < 0)
		return;
	snprintf(words, sizeof(words), "%d %d", event_fd, control_fd);
	if (sys_write_file(cgroup->fds[CGROUP_MEMORY], "cgroup.event_control", words) == 0)
		cgroup->notice_fd = take_fd(&event_fd);
}

/* The directories of runs in a session's, left by an engine that was killed. */
static void empty(int fd)
{
	AUTO_CLOSE int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *entry;

	if (!directory)
		return;
	take_fd(&copy); /* it is the stream's now */
	while ((entry = readdir(directory)))
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
			unlinkat(fd, entry->d_name, AT_REMOVEDIR);
	closedir(directory);
}

static bool is_our_name(const char *name)
{
	size_t len = strlen(name);

	return strncmp(name, NAME_PREFIX, sizeof(NAME_PREFIX) - 1) == 0 &&
	       (len == NAME_LEN ||
		(len == NAME_LEN + sizeof(ENGINE_SUFFIX) - 1 && !strcmp(name + NAME_LEN, ENGINE_SUFFIX)));
}

/* Remove the directories of ours in @parent that no engine has locked. Those that are in use refuse to go anyway. */
static void sweep(int parent)
{
	AUTO_CLOSE int copy = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *entry;

	if (!directory)
		return;
	take_fd(&copy); /* it is the stream's now */
	while ((entry = readdir(directory))) {
		AUTO_CLOSE int fd = -1;

		if (!is_our_name(entry->d_name))
			continue;
		fd = openat(parent, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
			continue;
		if (unlinkat(parent, entry->d_name, AT_REMOVEDIR) < 0 && errno == EBUSY) {
			empty(fd);
			unlinkat(parent, entry->d_name, AT_REMOVEDIR);
		}
	}
	closedir(directory);
}

/*
 * Make @name in @parent, and lock it. Between the two another engine may take it for a left-over, lock it and
 * remove it. -EAGAIN: that happened; try again.
 */
static int try_launch(int parent, const char *name)
{
	AUTO_CLOSE int fd = -1;
	struct stat made, found;

	if (mkdirat(parent, name, 0755) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -EAGAIN : -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	if (fstat(fd, &made) < 0 || fstatat(parent, name, &found, AT_SYMLINK_NOFOLLOW) < 0 ||
	    made.st_ino != found.st_ino)
		return -EAGAIN;
	return take_fd(&fd);
}

/* A directory, locked. */
static int make_directory(const char *path)
{
	static const struct timespec wait = {.tv_nsec = MAKE_WAIT_NS};
	const char *name = strrchr(path, '/') + 1;
	char parent_path[PATH_MAX];
	AUTO_CLOSE int parent = -1;
	int rc = -EAGAIN;

	if ((size_t)snprintf(parent_path, sizeof(parent_path), "%.*s", (int)(name - path), path) >= sizeof(parent_path))
		return -ENAMETOOLONG;
	parent = open(parent_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent < 0)
		return -errno;
	sweep(parent);
	for (int tries = 0; rc == -EAGAIN && tries < MAKE_TRIES; tries++) {
		if (tries)
			nanosleep(&wait, NULL);
		rc = try_launch(parent, name);
	}
	if (rc < 0)
		unlinkat(parent, name, AT_REMOVEDIR);
	return rc;
}

/* --- room in our own cgroup --------------------------------------------------------------------------------- */

static const char *const room_controllers[] = {"memory", "pids"};

/* Hand the controllers that the run needs on to the cgroups in @room, or (@sign '-') no longer. */
static int hand_on(const struct cgroup *cgroup, char sign)
{
	for (int i = 0; i < (int)ARRAY_LEN(room_controllers); i++) {
		char word[16];
		int rc;

		if (!cgroup->paths[i])
			continue;
		snprintf(word, sizeof(word), "%c%s", sign, room_controllers[i]);
		rc = sys_write_file(cgroup->room_fd, "cgroup.subtree_control", word);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* Are there cgroups of other runs in @room? They need what is handed on. */
static bool is_shared(int room_fd, const char *own_name)
{
	AUTO_CLOSE int copy = openat(room_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *entry;
	bool has_others = !directory;

	if (directory)
		take_fd(&copy); /* it is the stream's now */
	while (directory && (entry = readdir(directory)))
		has_others |= is_our_name(entry->d_name) && strcmp(entry->d_name, own_name) != 0;
	if (directory)
		closedir(directory);
	return has_others;
}

/* Our helpers go where we go. */
static void move_helpers(int from_fd, int to_fd)
{
	char members[PATH_MAX], number[16];
	char *end;

	if (sys_read_file(from_fd, "cgroup.procs", members, sizeof(members)) <= 0)
		return;
	for (const char *at = members; *at; at = end + strspn(end, "\n")) {
		long pid = strtol(at, &end, 10);

		if (end == at)
			return;
		snprintf(number, sizeof(number), "%ld", pid);
		if (helper_is_ours((pid_t)pid))
			sys_write_file(to_fd, "cgroup.procs", number);
	}
}

/* Go back to where we were. As long as other runs of this process are there, nothing can be undone, and nothing must. */
static void leave_room(struct cgroup *cgroup)
{
	if (cgroup->room_fd < 0)
		return;
	if (!is_shared(cgroup->room_fd, strrchr(cgroup->engine_path, '/') + 1) && hand_on(cgroup, '-') == 0 &&
	    sys_write_file(cgroup->room_fd, "cgroup.procs", "0") == 0) {
		move_helpers(cgroup->engine_fd, cgroup->room_fd);
		rmdir(cgroup->engine_path);
	}
	close_fd(&cgroup->engine_fd);
	close_fd(&cgroup->room_fd);
}

/* A cgroup that hands controllers on may have no process: go one down ourselves, the only one there. */
static int make_room(struct cgroup *cgroup, const struct plan_cgroup *plan)
{
	int rc;

	if (!plan->room)
		return 0;
	if ((size_t)snprintf(cgroup->engine_path, sizeof(cgroup->engine_path), "%s" ENGINE_SUFFIX,
			     plan->memory ? plan->memory
			     : plan->pids ? plan->pids
					  : plan->cpu) >= sizeof(cgroup->engine_path))
		return -ENAMETOOLONG;
	cgroup->room_fd = open(plan->room, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (cgroup->room_fd < 0)
		return -errno;
	cgroup->engine_fd = make_directory(cgroup->engine_path);
	rc = cgroup->engine_fd < 0 ? cgroup->engine_fd : sys_write_file(cgroup->engine_fd, "cgroup.procs", "0");
	if (rc == 0)
		move_helpers(cgroup->room_fd, cgroup->engine_fd);
	/* This fails if another process has entered meanwhile: the engine moves only itself and its helpers. */
	return rc < 0 ? rc : hand_on(cgroup, '+');
}

/* --- all of it ---------------------------------------------------------------------------------------------- */

static int make_all(struct cgroup *cgroup)
{
	for (int i = 0; i < CGROUP_PART_COUNT; i++) {
		const char *path = cgroup->paths[i];

		if (!path)
			continue;
		for (int j = 0; j < i && cgroup->version == 2; j++)
			if (cgroup->fds[j] >= 0 && cgroup->fds[i] < 0)
				cgroup->fds[i] = fcntl(cgroup->fds[j], F_DUPFD_CLOEXEC, 3);
		if (cgroup->fds[i] < 0)
			cgroup->fds[i] = make_directory(path);
		if (cgroup->fds[i] < 0) {
			int rc = cgroup->fds[i];

			cgroup->fds[i] = -1;
			return rc;
		}
	}
	return 0;
}

/* One that is set already, made ahead with what most runs have, is not set again. */
int limits_cgroup_limit(struct cgroup *cgroup, const struct limits *limits)
{
	int rc = 0;

	if (cgroup->fds[CGROUP_MEMORY] >= 0 && limits->memory_bytes != cgroup->memory_bytes &&
	    (limits->memory_bytes != LIMIT_NONE || cgroup->memory_bytes)) {
		rc = set_memory(cgroup, limits->memory_bytes);
		cgroup->memory_bytes = limits->memory_bytes;
	}
	/* The jar's own first process is in it too, but no minder is in that of a run. */
	if (rc == 0 && cgroup->fds[CGROUP_PIDS] >= 0 && limits->pids != cgroup->pids &&
	    (limits->pids != LIMIT_NONE || cgroup->pids)) {
		rc = limits->pids == LIMIT_NONE
			     ? sys_write_file(cgroup->fds[CGROUP_PIDS], "pids.max", "max")
			     : write_number(cgroup->fds[CGROUP_PIDS], "pids.max", limits->pids + !cgroup->parent);
		cgroup->pids = limits->pids;
	}
	return rc;
}

int limits_cgroup_make_room(const struct cgroup *cgroup, const struct limits *limits, size_t minders)
{
	return cgroup->fds[CGROUP_PIDS] >= 0 && limits->pids != LIMIT_NONE
		       ? write_number(cgroup->fds[CGROUP_PIDS], "pids.max", limits->pids + PLAN_OWN_ROOM + minders)
		       : 0;
}

/* Below it there will be cgroups of runs. */
static int prepare_for_runs(const struct cgroup *cgroup, const struct limits *limits)
{
	int fd = cgroup->fds[CGROUP_MEMORY];
	int rc = 0;

	rc = limits_cgroup_make_room(cgroup, limits, 1);
	/* Before 5.11 a limit of version 1 holds for what is below only if that is said; since then always. */
	if (cgroup->version == 1 && fd >= 0)
		sys_write_file(fd, "memory.use_hierarchy", "1");
	if (cgroup->version != 2)
		return rc;
	for (int i = 0; i < CGROUP_PART_COUNT && fd < 0; i++)
		fd = cgroup->fds[i];
	if (rc == 0 && cgroup->fds[CGROUP_MEMORY] >= 0)
		rc = sys_write_file(fd, "cgroup.subtree_control", "+memory");
	if (rc == 0 && cgroup->fds[CGROUP_PIDS] >= 0)
		rc = sys_write_file(fd, "cgroup.subtree_control", "+pids");
	return rc < 0 || mkdirat(fd, PLAN_CGROUP_LEAF, 0755) == 0 ? rc : -errno;
}

int limits_cgroup_open(struct cgroup *cgroup, const struct plan *plan, struct error *error)
{
	/* In a jar for calls they are each call's own. */
	static const struct limits none = {.memory_bytes = LIMIT_NONE, .pids = LIMIT_NONE};
	const struct limits *limits = plan_is_for_calls(plan) ? &none : &plan->limits;
	int rc;

	*cgroup = (struct cgroup){
		.version = plan->cgroup.version,
		.paths = {plan->cgroup.memory, plan->cgroup.pids, plan->cgroup.cpu},
		.fds = {-1, -1, -1},
		.notice_fd = -1,
		.room_fd = -1,
		.engine_fd = -1,
	};
	if (!cgroup->version)
		return 0;
	rc = make_room(cgroup, &plan->cgroup);
	if (rc == 0)
		rc = make_all(cgroup);
	if (rc == 0)
		rc = limits_cgroup_limit(cgroup, limits);
	if (rc == 0)
		rc = plan_has_minders(plan) ? prepare_for_runs(cgroup, limits) : kill_together(cgroup);
	if (rc == 0) {
		if (cgroup->fds[CGROUP_MEMORY] >= 0)
			open_notice(cgroup);
		return 0;
	}
	limits_cgroup_done(cgroup, NULL);
	return error_set(error, STAGE_LIMITS, -rc, "cannot make a cgroup for the run: %s", strerror(-rc));
}

static int make_run_part(struct cgroup *cgroup, int part, int *member_fd)
{
	int parent = cgroup->parent->fds[part];

	if (mkdirat(parent, cgroup->name, 0755) < 0)
		return -errno;
	cgroup->fds[part] = openat(parent, cgroup->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (cgroup->fds[part] < 0) {
		int saved = errno;

		unlinkat(parent, cgroup->name, AT_REMOVEDIR);
		return -saved;
	}
	/* Not cgroup.procs in version 1: moving a whole process waits until no process of the host is being started. */
	*member_fd = openat(cgroup->fds[part], cgroup->version == 2 ? "cgroup.procs" : "tasks", O_WRONLY | O_CLOEXEC);
	return *member_fd < 0 ? -errno : 0;
}

int limits_cgroup_open_run(struct cgroup *cgroup, const struct cgroup *jar, uint32_t number,
			   int member_fds[CGROUP_PART_COUNT], size_t *member_count)
{
	int rc = 0;

	*cgroup = (struct cgroup){.version = jar->version,
				  .fds = {-1, -1, -1},
				  .parent = jar,
				  .room_fd = -1,
				  .engine_fd = -1,
				  .notice_fd = -1};
	*member_count = 0;
	snprintf(cgroup->name, sizeof(cgroup->name), RUN_PREFIX "%" PRIu32, number);
	for (int i = 0; i < CGROUP_PART_COUNT && jar->version && rc == 0; i++) {
		int first = -1;

		if (jar->fds[i] < 0)
			continue;
		for (int j = 0; j < i && cgroup->version == 2 && first < 0; j++)
			first = cgroup->fds[j];
		if (first >= 0) {
			cgroup->fds[i] = fcntl(first, F_DUPFD_CLOEXEC, 3);
			continue;
		}
		rc = make_run_part(cgroup, i, &member_fds[*member_count]);
		if (rc == 0)
			(*member_count)++;
	}
	if (rc == 0)
		rc = kill_together(cgroup);
	if (rc == 0) {
		if (cgroup->fds[CGROUP_MEMORY] >= 0)
			open_notice(cgroup);
		return 0;
	}
	while (*member_count)
		close(member_fds[--*member_count]);
	limits_cgroup_done(cgroup, NULL);
	return rc;
}

static int remove_part(const struct cgroup *cgroup, int part)
{
	if (cgroup->parent)
		return unlinkat(cgroup->parent->fds[part], cgroup->name, AT_REMOVEDIR);
	if (cgroup->version == 2)
		unlinkat(cgroup->fds[part], PLAN_CGROUP_LEAF, AT_REMOVEDIR);
	return rmdir(cgroup->paths[part]);
}

/* A process that was just reaped may take a moment to leave its cgroup: false, try again. */
static bool remove_all(struct cgroup *cgroup)
{
	for (int i = 0; i < CGROUP_PART_COUNT; i++) {
		if (cgroup->fds[i] < 0)
			continue;
		if (remove_part(cgroup, i) < 0 && errno == EBUSY)
			return false;
		close_fd(&cgroup->fds[i]);
	}
	return true;
}

static void let_go(struct cgroup *cgroup)
{
	for (int i = 0; i < CGROUP_PART_COUNT; i++)
		close_fd(&cgroup->fds[i]);
	leave_room(cgroup);
	cgroup->version = 0;
}

/* One that could not be removed at once: a copy, with all that it needs. */
struct removal {
	struct loop *loop;
	struct loop_timer timer;
	int tries;
	struct cgroup cgroup;
	struct cgroup parent;
	char *paths[CGROUP_PART_COUNT];
};

static void free_removal(struct removal *removal)
{
	let_go(&removal->cgroup);
	for (int i = 0; i < CGROUP_PART_COUNT; i++) {
		close_fd(&removal->parent.fds[i]);
		free(removal->paths[i]);
	}
	free(removal);
}

static void on_removal(struct loop_timer *timer)
{
	struct removal *removal = timer->owner;

	/* If this engine cannot remove it, the next engine that makes one there does. */
	if (remove_all(&removal->cgroup) || ++removal->tries == REMOVE_TRIES)
		free_removal(removal);
	else
		loop_arm(removal->loop, timer, sys_monotonic_ns() + REMOVE_WAIT_NS, on_removal, removal);
}

/* The jar's own may be gone before this one is. */
static void remove_later(struct cgroup *cgroup, struct loop *loop)
{
	struct removal *removal = calloc(1, sizeof(*removal));

	if (!removal) {
		let_go(cgroup);
		return;
	}
	removal->loop = loop;
	removal->cgroup = *cgroup;
	for (int i = 0; i < CGROUP_PART_COUNT; i++) {
		removal->parent.fds[i] = -1;
		if (cgroup->parent && cgroup->fds[i] >= 0)
			removal->parent.fds[i] = fcntl(cgroup->parent->fds[i], F_DUPFD_CLOEXEC, 3);
		if (cgroup->paths[i])
			removal->paths[i] = strdup(cgroup->paths[i]);
		removal->cgroup.paths[i] = removal->paths[i] ? removal->paths[i] : "";
	}
	if (cgroup->parent)
		removal->cgroup.parent = &removal->parent;
	*cgroup = (struct cgroup){0};
	loop_arm(loop, &removal->timer, sys_monotonic_ns() + REMOVE_WAIT_NS, on_removal, removal);
}

void limits_cgroup_done(struct cgroup *cgroup, struct loop *loop)
{
	if (!cgroup->version)
		return;
	close_fd(&cgroup->notice_fd);
	if (remove_all(cgroup) || !loop)
		let_go(cgroup);
	else
		remove_later(cgroup, loop);
}
