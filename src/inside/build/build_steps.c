/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/build/build_steps.c - the table of steps, and the steps that are neither mounts nor identity
 */
#include "inside/build/build.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/paths.h"
#include "base/reap/reap.h"
#include "base/sys/calls.h"

/* The Landlock rights for files; the kernel refuses other rights on them. */
#define FILE_RIGHTS                                                                                                    \
	(SYS_LANDLOCK_EXECUTE | SYS_LANDLOCK_WRITE_FILE | SYS_LANDLOCK_READ_FILE | SYS_LANDLOCK_TRUNCATE |             \
	 SYS_LANDLOCK_IOCTL_DEV)

int build_check_object(int fd, dev_t device, ino_t inode)
{
	struct stat status;

	if (!inode)
		return 0;
	if (fstat(fd, &status) < 0)
		return -errno;
	return status.st_dev == device && status.st_ino == inode ? 0 : -ESTALE;
}

int build_hostname(struct jar_build *build, const struct plan_step *step)
{
	return sethostname(step->source, strlen(step->source)) < 0 ? -errno : 0;
}

int build_subreaper(struct jar_build *build, const struct plan_step *step)
{
	return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 ? -errno : 0;
}

int build_speculation(struct jar_build *build, const struct plan_step *step)
{
	int rc = 0;

	/* It lasts over fork and exec, and no process can turn it on again. */
	for (unsigned kind = 0; step->as.speculation.turned_off >> kind && rc == 0; kind++)
		if (step->as.speculation.turned_off >> kind & 1)
			rc = prctl(PR_SET_SPECULATION_CTRL, kind, PR_SPEC_FORCE_DISABLE, 0, 0);
	return rc < 0 ? -errno : 0;
}

int build_workdir(struct jar_build *build, const struct plan_step *step)
{
	AUTO_CLOSE int fd = sys_open(step->target, O_PATH | O_DIRECTORY);
	int rc = fd < 0 ? fd : build_check_object(fd, step->device, step->inode);

	if (rc < 0)
		return rc;
	return fchdir(fd) < 0 ? -errno : 0;
}

static int allow_path(int ruleset_fd, const struct plan_landlock_rule *rule)
{
	AUTO_CLOSE int fd = sys_open(rule->path, O_PATH);
	struct stat status;
	int rc = fd < 0 ? fd : build_check_object(fd, rule->device, rule->inode);

	if (rc < 0)
		return rc == -ENOENT && rule->may_be_absent ? 0 : rc;
	if (fstat(fd, &status) < 0)
		return -errno;
	return sys_landlock_allow_path(ruleset_fd, fd,
				       S_ISDIR(status.st_mode) ? rule->access : rule->access & FILE_RIGHTS);
}

int build_landlock_ruleset(const struct jar_build *build)
{
	const struct jar_plan *plan = build->plan;
	AUTO_CLOSE int ruleset_fd =
		sys_landlock_create(plan->landlock_files, plan->landlock_scopes, plan->landlock_abi);
	int rc = MIN_OF(ruleset_fd, 0);

	for (size_t i = 0; rc == 0 && i < plan->landlock.count; i++)
		rc = allow_path(ruleset_fd, &plan->landlock.items[i]);
	return rc < 0 ? rc : take_fd(&ruleset_fd);
}

int build_landlock(struct jar_build *build, const struct plan_step *step)
{
	AUTO_CLOSE int ruleset_fd = build_landlock_ruleset(build);

	return ruleset_fd < 0 ? ruleset_fd : sys_landlock_restrict(ruleset_fd, 0);
}

/* A ruleset without this forbids renames and links across directories to every domain that has rules on files. */
static int allow_renames(int ruleset_fd)
{
	AUTO_CLOSE int root_fd = sys_open("/", O_PATH | O_DIRECTORY);

	return root_fd < 0 ? root_fd : sys_landlock_allow_path(ruleset_fd, root_fd, SYS_LANDLOCK_REFER);
}

/*
 * Keep the signals of this process and its descendants among themselves. It may then end all of them at once (init_watch.c),
 * so the step proves it: a signal to the parent was possible before, and is not now.
 */
int build_scope(struct jar_build *build, const struct plan_step *step)
{
	int abi = build->plan->landlock_abi;
	AUTO_CLOSE int ruleset_fd = sys_landlock_create(SYS_LANDLOCK_REFER, SYS_LANDLOCK_SCOPE_SIGNAL, abi);
	pid_t parent = getppid();
	bool could_signal = parent > 0 && kill(parent, 0) == 0;
	int rc = ruleset_fd < 0 ? ruleset_fd : allow_renames(ruleset_fd);

	if (rc == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		rc = -errno;
	if (rc == 0)
		rc = sys_landlock_restrict(ruleset_fd, abi < 7 ? 0 : SYS_LANDLOCK_QUIET);
	if (rc == 0 && could_signal && kill(parent, 0) < 0 && errno == EPERM)
		build->scoped_pid = getpid();
	return rc;
}

size_t build_set_filter_pid(const struct jar_filter *filter, unsigned slot, pid_t pid)
{
	uint32_t placeholder = (uint32_t)JAR_PID_PLACEHOLDER(slot);
	size_t changed = 0;

	for (size_t i = 0; i < filter->len; i++) {
		struct sock_filter *line = &filter->program[i];

		if (line->code != (BPF_JMP | BPF_JEQ | BPF_K) || (line->k != placeholder && line->k != -placeholder))
			continue;
		line->k = line->k == placeholder ? (uint32_t)pid : -(uint32_t)pid;
		changed++;
	}
	return changed;
}

int build_seccomp(struct jar_build *build, const struct plan_step *step)
{
	const struct jar_plan *plan = build->plan;
	size_t level = step->as.seccomp.level % (JAR_ASKING_MAX + 1);
	const struct jar_filter *filter = level ? &plan->asking[level - 1] : &plan->filter;

	/* On the landlock rung this runs in the command's process: its parent is the minder, whose parent is the engine. */
	build_set_filter_pid(filter, 0, getppid());
	build_set_filter_pid(filter, 1, build->engine_pid);
	build_set_filter_pid(filter, 2, build->first_pid);
	/* Behind the filter of a metered jar it can be done no more. What is executed afterwards starts anew. */
	if (prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -errno;
	if (!plan->filter_asks)
		return sys_seccomp_load(filter->program, filter->len);
	build->listener_fd = answer_listen(filter->program, filter->len);
	/* Behind its own walls the first process answers itself, and makes no call that it would have to ask itself about. */
	return build->listener_fd < 0 ? build->listener_fd
				      : answer_hand_over(build->listener_socket, &build->listener_fd);
}

int build_run_directory(struct jar_build *build, const struct plan_step *step)
{
	build->run_directory_fd = reap_make_directory(step->target);
	return MIN_OF(build->run_directory_fd, 0);
}

/* Landlock applies to the command only; the supervisor checks the rules itself. */
static bool is_allowed(const void *owner, const char *path, enum jar_access access)
{
	static const uint64_t wanted[] = {[JAR_READS] = SYS_LANDLOCK_READ_FILE | SYS_LANDLOCK_READ_DIR,
					  [JAR_WRITES] = SYS_LANDLOCK_WRITE_FILE,
					  [JAR_EXECUTES] = SYS_LANDLOCK_EXECUTE};
	const struct plan_rule_list *rules = owner;

	for (size_t i = 0; i < rules->count; i++)
		if (rules->items[i].access & wanted[access] && path_is_within(path, rules->items[i].path))
			return true;
	return false;
}

int build_places(struct jar_build *build, const struct plan_step *step)
{
	const struct plan_rule_list *rules = &build->plan->landlock;
	int rc = answer_open_places(&build->places, rules->count);

	build->places.is_allowed = is_allowed;
	build->places.owner = rules;
	for (size_t i = 0; i < rules->count && rc == 0; i++)
		if (rules->items[i].is_writable)
			rc = answer_add_place(&build->places, rules->items[i].path, rules->items[i].device,
					      rules->items[i].inode);
	return rc == 0 && step->as.places.tries_listener ? answer_try_listener() : rc;
}

static jar_step_function *const jar_steps[] = {
#define STEP_FUNCTION(kind, function, ...) [STEP_##kind] = function,
	JAR_STEPS(STEP_FUNCTION)};

int build_step(struct jar_build *build, const struct plan_step *step)
{
	return jar_steps[step->kind](build, step);
}
