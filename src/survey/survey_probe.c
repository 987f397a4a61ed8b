/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey/survey_probe.c - the kernel's and the caller's facts, as cheaply as they can be had
 *
 * Every run pays for this, so nothing here makes a process or a namespace: three sysctls say whether user namespaces
 * should work, and using one shows whether they do.
 */
#include "survey/survey.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>

#include "survey/survey_layers.h"
#include "survey/survey_cgroup.h"
#include "survey/survey_ids.h"
#include "survey/survey_paths.h"
#include "base/sys/calls.h"

/* The kernel takes a quarter of the stack limit, at most three quarters of 8 MiB, at least 128 KiB. */
#define ARGUMENT_BYTES_LEAST (128ULL << 10)
#define ARGUMENT_BYTES_MOST (6ULL << 20)
#define MADE_UP_HOME "/home/jar"
#define NUMBER_LANDLOCK_CREATE_RULESET 444
#define LANDLOCK_VERSION 1U

static bool sysctl_is_zero(const char *path)
{
	char content[16];

	return sys_read_file(AT_FDCWD, path, content, sizeof(content)) > 0 && content[0] == '0';
}

static uint64_t sysctl_number(const char *path)
{
	char content[32];

	return sys_read_file(AT_FDCWD, path, content, sizeof(content)) > 0 ? strtoull(content, NULL, 10) : 0;
}

static bool may_use_user_namespaces(uid_t uid)
{
	if (sysctl_is_zero("/proc/sys/user/max_user_namespaces"))
		return false;
	if (uid == 0)
		return true;
	/* AppArmor may refuse them to us, or have a profile that allows them to us: that shows by trying. */
	return !sysctl_is_zero("/proc/sys/kernel/unprivileged_userns_clone");
}

/* Effective. */
static bool has_capability(int capability)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}, {0}};

	return syscall(SYS_capget, &header, data) == 0 && data[capability / 32].effective >> capability % 32 & 1;
}

int survey_landlock_abi(void)
{
	long abi = syscall(NUMBER_LANDLOCK_CREATE_RULESET, NULL, 0, LANDLOCK_VERSION);

	return abi < 0 ? 0 : (int)abi;
}

/*
 * Can root's jars get a host id that no user has? Root of a container cannot map it: it lacks the capability, or its
 * user namespace does not contain the id. It then makes jars as an ordinary user does.
 */
static bool may_map_ids(void)
{
	unsigned inside, outside, count;
	char map[128];

	return has_capability(CAP_SYS_ADMIN) && sys_read_file(AT_FDCWD, "/proc/self/uid_map", map, sizeof(map)) > 0 &&
	       sscanf(map, "%u %u %u", &inside, &outside, &count) == 3 && inside == 0 && outside == 0 &&
	       count > INT_MAX;
}

/* May this process not trace its descendants? From 2 on that needs a capability, and at 3 no process may. */
static bool hides_memory(void)
{
	char scope[16];

	if (sys_read_file(AT_FDCWD, "/proc/sys/kernel/yama/ptrace_scope", scope, sizeof(scope)) <= 0)
		return false;
	return scope[0] >= (has_capability(CAP_SYS_PTRACE) ? '3' : '2');
}

/* To a program ("|") or a socket ("@"). */
static bool pipes_core_dumps(void)
{
	char pattern[256];

	if (sys_read_file(AT_FDCWD, "/proc/sys/kernel/core_pattern", pattern, sizeof(pattern)) <= 0)
		return false;
	return pattern[0] == '|' || pattern[0] == '@';
}

const char *survey_variable(char *const *environment, const char *name)
{
	size_t len = strlen(name);

	for (; environment && *environment; environment++)
		if (!strncmp(*environment, name, len) && (*environment)[len] == '=')
			return *environment + len + 1;
	return NULL;
}

/* HOME of the environment, else of the password file; where neither will do, a made-up one that exists only inside. */
int survey_find_home(struct host *host)
{
	const char *home = survey_variable(host->environment, "HOME");
	struct host_path found = {0};

	if (!home || home[0] != '/') {
		const struct passwd *entry = getpwuid(host->uid);

		home = entry ? entry->pw_dir : NULL;
	}
	if (home && home[0] == '/' && survey_look_through(&found, home) < 0)
		return -ENOMEM;
	if (found.kind == PATH_DIRECTORY)
		host->real_home = take_ptr(found.path);
	survey_path_done(&found);
	if (host->real_home && !survey_is_system_directory(host->real_home))
		host->home = strdup(host->real_home);
	else
		host->home = strdup(host->uid == 0 ? "/root" : MADE_UP_HOME);
	return host->home ? 0 : -ENOMEM;
}

/* In the caller's own runtime directory where there is one; elsewhere the name must not be guessable. */
static int name_run_directory(struct host *host)
{
	const char *base = survey_variable(host->environment, "XDG_RUNTIME_DIR");
	struct stat status;
	uint64_t random = 0;

	if (!base || base[0] != '/' || lstat(base, &status) < 0 || !S_ISDIR(status.st_mode) ||
	    status.st_uid != host->uid)
		base = "/tmp";
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	return asprintf(&host->run_directory, "%s/belljar-%016" PRIx64, base, random) < 0 ? -ENOMEM : 0;
}

size_t survey_boot_id(char id[HOST_BOOT_ID_BYTES])
{
	ssize_t len = sys_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", id, HOST_BOOT_ID_BYTES);

	return len > 0 ? (size_t)len : 0;
}

int survey_hand_on(struct host *host, char *const *environment, unsigned number)
{
	host->environment = environment;
	survey_forget_stores(host);
	host->prefixes = NULL; /* of the request before; only a survey asks for them */
	host->jar_id = host->uid == 0 ? survey_jar_id(number) : 0;
	free(host->run_directory);
	host->run_directory = NULL;
	if (host->cgroups.name && survey_name_cgroups(&host->cgroups) < 0)
		return -ENOMEM;
	return name_run_directory(host);
}

int survey_probe(struct host *host, char *const *environment, struct error *error)
{
	struct rlimit stack;
	struct sysinfo system;

	*host = (struct host){
		.uid = getuid(),
		.gid = getgid(),
		.jar_id = getuid() == 0 ? survey_jar_id(0) : 0,
		.environment = environment,
		.landlock_abi = survey_landlock_abi(),
		.has_seccomp = prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0,
		.has_seccomp_listeners = true,
		.hides_memory = hides_memory(),
		.pipes_core_dumps = pipes_core_dumps(),
		.has_id_mapped_mounts = getuid() != 0 || may_map_ids(),
		.argument_bytes_max = ARGUMENT_BYTES_MOST,
		.inotify_instances = sysctl_number("/proc/sys/fs/inotify/max_user_instances"),
		.inotify_watches = sysctl_number("/proc/sys/fs/inotify/max_user_watches"),
	};
	for (int kind = 0; kind < HOST_SPECULATIONS; kind++)
		host->speculation[kind] = prctl(PR_GET_SPECULATION_CTRL, kind, 0, 0, 0);
	host->has_user_namespaces = may_use_user_namespaces(host->uid);
	if (getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur != RLIM_INFINITY)
		host->argument_bytes_max =
			MIN_OF(ARGUMENT_BYTES_MOST, MAX_OF((uint64_t)stack.rlim_cur / 4, ARGUMENT_BYTES_LEAST));
	if (sysinfo(&system) == 0) {
		host->memory_bytes = (uint64_t)system.totalram * system.mem_unit;
		host->process_count = system.procs;
	}
	if (survey_find_home(host) < 0 || name_run_directory(host) < 0)
		return error_set(error, STAGE_ENGINE, ENOMEM, "out of memory");
	return 0;
}
