/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/engine_helper_process.c - the process that searches: its walls, what it remembers, and what it answers
 *
 * It reads what hostile commands wrote. A process that such a file took over could read what the caller can read, and say
 * wrong things to the engine, which believes little (survey_pack.c). It can write to no file, start no program, reach no other process
 * and no network: Landlock and seccomp forbid it, and root's has one capability, to read.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/helper.h"
#include "base/processor.h"
#include "engine/engine_helper.h"
#include "survey/survey_nested.h"
#include "survey/survey_paths.h"
#include "survey/survey_trees.h"
#include "survey/survey_watch.h"
#include "plan/plan_landlock.h"
#include "plan/seccomp/seccomp_compile.h"
#include "base/sys/calls.h"

#define SOCKET_FD 3
#define READ_BYTES 16384
/*
 * While directories are opened, the jar's process cannot cut its mounts off: that takes as long as the listing lasts. It is
 * over within this time.
 */
#define MOUNTS_NS 1000000

/* --- walls --------------------------------------------------------------------------------------------------- */

static const enum syscall_id allowed[] = {
	/* what it looks at */
	SYSCALL_open,
	SYSCALL_openat,
	SYSCALL_openat2,
	SYSCALL_close,
	SYSCALL_read,
	SYSCALL_getdents64,
	SYSCALL_lseek,
	SYSCALL_fcntl,
	SYSCALL_stat,
	SYSCALL_fstat,
	SYSCALL_lstat,
	SYSCALL_newfstatat,
	SYSCALL_statx,
	SYSCALL_statfs,
	SYSCALL_fstatfs,
	SYSCALL_readlink,
	SYSCALL_readlinkat,
	SYSCALL_inotify_init1,
	SYSCALL_inotify_add_watch,
	SYSCALL_inotify_rm_watch,
	/* messages */
	SYSCALL_poll,
	SYSCALL_ppoll,
	SYSCALL_recvfrom,
	SYSCALL_sendto,
	/* memory, time, the end */
	SYSCALL_brk,
	SYSCALL_clock_gettime,
	SYSCALL_exit,
	SYSCALL_exit_group,
	SYSCALL_getrandom,
	SYSCALL_madvise,
	SYSCALL_mmap,
	SYSCALL_mprotect,
	SYSCALL_mremap,
	SYSCALL_munmap,
	SYSCALL_restart_syscall,
	SYSCALL_rt_sigreturn,
	/* the sanitizers ask for it before _exit() */
	SYSCALL_sigaltstack,
};

static int load_filter(void)
{
	struct seccomp_profile profile = {.parts = SECCOMP_UNKNOWN};
	struct sock_filter program[SECCOMP_PROGRAM_MAX];
	struct error error = {0};
	size_t len;
	int rc = seccomp_compile_only(allowed, ARRAY_LEN(allowed), NULL, 0, &profile, syscall_native_arch(), program,
				      ARRAY_LEN(program), &len, &error);

	return rc < 0 ? rc : sys_seccomp_load(program, len);
}

/*
 * Do not restrict reading: a question may name any file. Do not restrict truncation and ioctl() of devices
 * either: these need a file that is open for writing, or a call that the filter refuses. If Landlock handled
 * them, the kernel would check every directory above each opened file.
 */
static int leave_writing(void)
{
	static const uint64_t kept =
		SYS_LANDLOCK_READ_FILE | SYS_LANDLOCK_READ_DIR | SYS_LANDLOCK_TRUNCATE | SYS_LANDLOCK_IOCTL_DEV;
	int abi = survey_landlock_abi();
	uint64_t rights = plan_landlock_rights_of_abi(abi) & ~kept;
	AUTO_CLOSE int ruleset_fd = -1;

	if (!abi)
		return 0;
	ruleset_fd = sys_landlock_create(
		rights, abi >= 6 ? SYS_LANDLOCK_SCOPE_ABSTRACT_UNIX | SYS_LANDLOCK_SCOPE_SIGNAL : 0, abi);
	return ruleset_fd < 0 ? ruleset_fd : sys_landlock_restrict(ruleset_fd, abi < 7 ? 0 : SYS_LANDLOCK_QUIET);
}

/* Drop all capabilities. Root's helper keeps the one to read and search. */
static int leave_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}, {0}};

	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capget, &header, data) < 0)
		return -errno;
	data[0].permitted &= geteuid() == 0 ? 1U << CAP_DAC_READ_SEARCH : 0;
	data[0].effective = data[0].permitted;
	data[0].inheritable = 0;
	data[1] = (struct __user_cap_data_struct){0};
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

static int put_up_walls(int socket_fd)
{
	int rc;

	if (socket_fd != SOCKET_FD && dup2(socket_fd, SOCKET_FD) < 0)
		return -errno;
	sys_close_range(0, SOCKET_FD - 1);
	sys_close_range(SOCKET_FD + 1, ~0U);
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	rc = leave_capabilities();
	if (rc == 0)
		rc = leave_writing();
	if (rc == 0)
		rc = load_filter();
	/* A kernel without filters: jars have none there either, and `missing` says so. */
	return rc == -ENOSYS || rc == -EINVAL ? 0 : rc;
}

/* --- what it remembers --------------------------------------------------------------------------------------- */

struct known_project {
	uint64_t number;
	struct host host;
	struct tree_list trees; /* of the runs in it */
};

/* The files that other programs run or read as settings, at one moment. */
struct baseline {
	uint64_t number;
	struct watch_list before;
	struct host_moment moment;
};

struct helper {
	struct text in;
	struct tree_list kept;
	LIST_TYPE(struct known_project *, known_projects) projects;
	LIST_TYPE(struct baseline *, baselines) baselines;
	bool is_growing;
	uint64_t grow_at_ns;
};

static struct known_project *find_project(const struct helper *helper, uint64_t number)
{
	for (size_t i = 0; i < helper->projects.count; i++)
		if (helper->projects.items[i]->number == number)
			return helper->projects.items[i];
	return NULL;
}

static struct baseline *find_baseline(const struct helper *helper, uint64_t number)
{
	for (size_t i = 0; i < helper->baselines.count; i++)
		if (helper->baselines.items[i]->number == number)
			return helper->baselines.items[i];
	return NULL;
}

/* Find the baseline @number before a search. */
static const struct baseline *baseline_of(const struct helper *helper, uint64_t number)
{
	static const struct baseline nothing;

	return number == HELPER_NOTHING ? &nothing : find_baseline(helper, number);
}

static struct baseline *add_baseline(struct helper *helper, uint64_t number)
{
	struct baseline *baseline = calloc(1, sizeof(*baseline)), **place;

	place = baseline ? list_add(&helper->baselines) : NULL;
	if (!place) {
		free(baseline);
		return NULL;
	}
	baseline->number = number;
	*place = baseline;
	return baseline;
}

static void forget_project(struct helper *helper, uint64_t number)
{
	for (size_t i = 0; i < helper->projects.count; i++) {
		struct known_project *project = helper->projects.items[i];

		if (project->number != number)
			continue;
		helper->projects.items[i] = helper->projects.items[--helper->projects.count];
		survey_trees_done(&project->trees);
		survey_done(&project->host);
		free(project);
		return;
	}
}

static void forget_baseline(struct helper *helper, uint64_t number)
{
	for (size_t i = 0; i < helper->baselines.count; i++) {
		struct baseline *baseline = helper->baselines.items[i];

		if (baseline->number != number)
			continue;
		helper->baselines.items[i] = helper->baselines.items[--helper->baselines.count];
		survey_watch_done(&baseline->before);
		free(baseline);
		return;
	}
}

/* --- what it answers ----------------------------------------------------------------------------------------- */

static void send_all(const void *bytes, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t count = send(SOCKET_FD, (const char *)bytes + done, len - done, MSG_NOSIGNAL);

		if (count <= 0)
			_exit(0);
		done += (size_t)count;
	}
}

/* Without memory the answer is empty, which the engine refuses. */
static void answer(uint64_t question, const struct text *payload)
{
	AUTO_TEXT whole = {0};
	struct helper_header header = {.question = question};

	if (!question)
		return;
	header.len = text_failed(payload) ? 0 : (uint32_t)payload->len;
	text_append(&whole, &header, sizeof(header));
	text_append(&whole, text_string(payload), header.len);
	if (text_failed(&whole))
		_exit(1);
	send_all(whole.data, whole.len);
}

static void hear_project(struct helper *helper, struct unpack *from)
{
	struct known_project *project = calloc(1, sizeof(*project)), **place = NULL;

	if (project) {
		project->number = survey_unpack_number(from);
		place = survey_unpack_project(from, &project->host) == 0 ? list_add(&helper->projects) : NULL;
	}
	/* Without facts nothing can be answered. */
	if (!place)
		_exit(1);
	*place = project;
}

static void hear_look(struct helper *helper, struct unpack *from, uint64_t question)
{
	struct known_project *project = find_project(helper, survey_unpack_number(from));
	struct baseline *baseline = project ? add_baseline(helper, survey_unpack_number(from)) : NULL;
	struct host_path_list pinned = {0};
	AUTO_TEXT payload = {0};
	int rc = -ENOMEM;

	if (baseline) {
		rc = survey_watch(&project->host, survey_settled_ns(), &baseline->before, question ? &pinned : NULL);
		survey_moment_now(&baseline->moment);
	}
	survey_pack_number(&payload, (uint64_t)-rc);
	if (rc == 0)
		survey_pack_protected(&payload, &baseline->before, &pinned);
	survey_path_list_done(&pinned);
	answer(question, &payload);
}

static void open_trees(struct helper *helper, struct known_project *project)
{
	survey_trees_done(&project->trees);
	survey_trees_open(&project->trees, &project->host, &helper->kept);
	helper->is_growing = true;
}

static void hear_grow(struct helper *helper, struct unpack *from)
{
	struct known_project *project = find_project(helper, survey_unpack_number(from));

	if (!project)
		return;
	open_trees(helper, project);
	helper->grow_at_ns = sys_monotonic_ns() + MOUNTS_NS;
}

/* Search; the next search compares with the result. */
static void search(struct known_project *project, struct risky_request *request, struct baseline *next,
		   struct risky_list *risky)
{
	struct risk_look look;

	request->host = &project->host;
	request->trees = project->trees.items;
	request->tree_count = project->trees.count;
	if (next)
		survey_moment_now(&next->moment);
	survey_look_begin(&look, request, risky);
	while (survey_look_go(&look, SIZE_MAX, risky))
		;
	if (next) {
		next->before = look.now;
		look.now = (struct watch_list){0};
	}
	survey_look_end(&look);
}

static void hear_search(struct helper *helper, struct unpack *from, uint64_t question)
{
	struct known_project *project = find_project(helper, survey_unpack_number(from));
	const struct baseline *baseline = baseline_of(helper, survey_unpack_number(from));
	struct baseline *next = project ? add_baseline(helper, survey_unpack_number(from)) : NULL;
	struct risky_request request = {.was_protected = survey_unpack_number(from)};
	bool is_last = survey_unpack_number(from);
	struct risky_list risky = {0};
	AUTO_TEXT payload = {0};

	if (project && baseline) {
		if (!project->trees.count)
			open_trees(helper, project);
		request.before = &baseline->before;
		request.start = baseline->moment;
		search(project, &request, next, &risky);
	} else {
		risky.unsearched = RISKY_IS_LOST;
	}
	helper->is_growing = true;
	survey_pack_risky(&payload, &risky);
	answer(question, &payload);
	/* The helper ends while the engine reads the answer. */
	if (is_last)
		_exit(0);
	survey_risky_done(&risky);
}

static void hear(struct helper *helper, const struct helper_header *header, const char *payload)
{
	struct unpack from = {.at = payload, .end = payload + header->len};
	AUTO_TEXT nothing = {0};

	switch ((enum helper_kind)header->kind) {
	case HELPER_PROJECT:
		hear_project(helper, &from);
		break;
	case HELPER_FORGET_PROJECT:
		forget_project(helper, survey_unpack_number(&from));
		break;
	case HELPER_LOOK:
		hear_look(helper, &from, header->question);
		break;
	case HELPER_FORGET_BASELINE:
		forget_baseline(helper, survey_unpack_number(&from));
		break;
	case HELPER_GROW:
		hear_grow(helper, &from);
		break;
	case HELPER_SEARCH:
		hear_search(helper, &from, header->question);
		break;
	case HELPER_SYNC:
		answer(header->question, &nothing);
		break;
	case HELPER_KIND_COUNT:
		_exit(1);
	}
}

/* --- its loop ------------------------------------------------------------------------------------------------ */

static void hear_messages(struct helper *helper)
{
	size_t at = 0;

	while (helper->in.len - at >= sizeof(struct helper_header)) {
		struct helper_header header;

		memcpy(&header, helper->in.data + at, sizeof(header));
		if (helper->in.len - at - sizeof(header) < header.len)
			break;
		hear(helper, &header, helper->in.data + at + sizeof(header));
		at += sizeof(header) + header.len;
	}
	if (at)
		text_consume(&helper->in, at);
}

static void read_some(struct helper *helper)
{
	char *room = text_reserve(&helper->in, READ_BYTES);
	ssize_t count = room ? recv(SOCKET_FD, room, READ_BYTES, 0) : 0;

	if (count <= 0)
		_exit(0);
	helper->in.len += (size_t)count;
	hear_messages(helper);
}

/* List directories until a question comes. */
static void wait_or_grow(struct helper *helper)
{
	struct pollfd socket = {.fd = SOCKET_FD, .events = POLLIN};
	uint64_t now_ns = sys_monotonic_ns();
	uint64_t left_ns = helper->grow_at_ns > now_ns ? helper->grow_at_ns - now_ns : 0;
	struct timespec timeout = {.tv_nsec = (long)left_ns};

	if (ppoll(&socket, 1, helper->is_growing ? &timeout : NULL, NULL) != 0)
		read_some(helper);
	else if (helper->is_growing)
		helper->is_growing = survey_trees_grow(&helper->kept, TREES_STEP);
}

void engine_helper_main(int socket_fd, pid_t engine_pid)
{
	struct helper helper = {.is_growing = false};

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != engine_pid)
		_exit(1);
	/* A terminal's signals are the engine's business. */
	setsid();
	helper_take_name();
	processor_be_prompt();
	if (put_up_walls(socket_fd) < 0)
		_exit(1);
	for (;;)
		wait_or_grow(&helper);
}
