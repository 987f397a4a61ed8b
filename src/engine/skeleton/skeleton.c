/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine/skeleton/skeleton.c - make, find and sweep the skeletons of jars' roots
 *
 * A skeleton is a directory with all that a jar's root holds before anything is mounted on it. It is named by the SHA-256 of the
 * steps that make it, with what identifies every file that is copied: device, inode, time of change, size. So a change of
 * any of them gives another name, and no skeleton is ever compared or updated. An engine makes it under another
 * name, renames it when complete, and never changes it then. A user holds a shared lock. An engine that removes one
 * needs the lock, and renames first. No engine uses one from before a reboot: a crash may have lost its content.
 *
 * The first start that asks for a name leaves only an empty file there, and the second one makes the skeleton: a work directory
 * with another path each time would be asked for once. A file that is not empty says that this skeleton could not be mounted.
 *
 * Only the caller can use the directory of them all; no jar on any rung reaches it (plan/plan_view_protect.c,
 * plan_view_own.c). If anything fails here, the jar makes its root itself.
 */
#include "engine/skeleton/skeleton.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include "base/directory.h"
#include "base/paths.h"
#include "survey/survey_paths.h"
#include "survey/survey_risky.h"
#include "inside/build/build.h"
#include "base/reap/reap.h"
#include "workspace/workspace_digest.h"

/* The version of the content: change it when the same steps make other files. */
#define FORMAT 2
#define ENTRY_BYTES 16384
/* Keep the names that were used last: this many, each for this long after its last use. */
#define KEPT_MAX 32
#define KEPT_SECONDS (7L * 24 * 3600)
/* The time of use is not noted more often. */
#define NOTED_SECONDS 3600
/* Being made, or being removed: no digest has such a beginning. */
#define UNFINISHED ".unfinished-"
#define UNFINISHED_SIZE (sizeof(UNFINISHED) + 16)

/* --- the directory ------------------------------------------------------------------------------------------ */

static bool is_private(const struct stat *status)
{
	return S_ISDIR(status->st_mode) && status->st_uid == geteuid() && !(status->st_mode & 077);
}

/* Make the directories; opening them checks their owner. */
static void make_directories(const char *base, bool is_own)
{
	AUTO_CLOSE int fd = open(base, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0 || (is_own && !is_private(&status)))
		return;
	if (mkdirat(fd, "belljar", 0700) == 0 || errno == EEXIST)
		mkdirat(fd, "belljar/skeletons", 0700);
}

/*
 * Use one directory for each user, and ignore the environment: with one for each session, a jar that hides its own
 * session's directory could write to another session's. Without that directory jars make their roots themselves.
 */
int skeletons_find(struct host *host)
{
	char base[64], path[128];
	int rc;

	snprintf(base, sizeof(base), host->uid ? "/run/user/%u" : "/run", (unsigned)host->uid);
	snprintf(path, sizeof(path), "%s/belljar/skeletons", base);
	rc = survey_look(&host->skeletons, path);
	if (rc == 0 && host->skeletons.kind == PATH_ABSENT) {
		survey_path_done(&host->skeletons);
		make_directories(base, host->uid != 0);
		rc = survey_look(&host->skeletons, path);
	}
	/* Only a command can have made a link on the way. */
	if (rc == 0 && survey_is_plain(path) <= 0)
		host->skeletons.kind = PATH_ABSENT;
	return rc;
}

/* A descriptor of it, or a negative errno: it is not the caller's alone, or another one than was hidden. */
static int open_directory(const struct host *host)
{
	const struct host_path *path = &host->skeletons;
	AUTO_CLOSE int fd =
		path->kind == PATH_DIRECTORY ? open(path->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0)
		return path->kind == PATH_DIRECTORY ? -errno : -ENOENT;
	if (!is_private(&status) || status.st_dev != path->device || status.st_ino != path->inode)
		return -EPERM;
	return take_fd(&fd);
}

/* --- its name ----------------------------------------------------------------------------------------------- */

static void add_text(struct digest *digest, const char *text)
{
	workspace_digest_add(digest, text, strlen(text) + 1);
}

/* -EAGAIN: a file changed so shortly before that a change after it may bear the same time. */
static int name_of(const struct plan *plan, char name[DIGEST_SHA256_HEX])
{
	int64_t settled_ns = survey_settled_ns();
	char boot[HOST_BOOT_ID_BYTES] = "";
	struct digest digest;

	workspace_digest_init_sha256(&digest);
	if (!survey_boot_id(boot))
		return -ENOENT;
	workspace_digest_add(&digest, boot, sizeof(boot));
	workspace_digest_add(&digest, &(uint64_t){FORMAT}, sizeof(uint64_t));
	for (size_t i = 0; i < plan->skeleton.count; i++) {
		const struct plan_step *step = &plan->skeleton.items[i];
		const uint64_t facts[] = {(uint64_t)step->as.copy.changed_ns, step->as.copy.size_bytes, step->device,
					  step->inode};
		bool is_same = step->source && !strcmp(step->source, step->target);
		const char head[] = {(char)step->kind, (char)(step->mode & 0xff), (char)(step->mode >> 8),
				     (char)is_same};

		if (step->kind == STEP_COPY && step->as.copy.changed_ns > settled_ns)
			return -EAGAIN;
		workspace_digest_add(&digest, head, sizeof(head));
		add_text(&digest, step->target);
		if (!is_same)
			add_text(&digest, step->source ? step->source : "");
		if (step->kind == STEP_COPY)
			workspace_digest_add(&digest, facts, sizeof(facts));
	}
	workspace_digest_hex(&digest, name);
	return 0;
}

static void name_unfinished(char name[UNFINISHED_SIZE])
{
	uint64_t number = 0;

	/* If it is not random it may exist already; then making it fails. */
	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) < 0)
		number = (uint64_t)getpid();
	snprintf(name, UNFINISHED_SIZE, "%s%016" PRIx64, UNFINISHED, number);
}

/* --- sweep -------------------------------------------------------------------------------------------------- */

struct kept {
	char name[DIGEST_SHA256_HEX];
	struct timespec used;
	bool is_skeleton; /* and whole */
	bool is_unfinished;
};

LIST_TYPE(struct kept, kept_list);

/* Those used last come first. */
static int compare_kept(const void *left, const void *right)
{
	const struct kept *a = left, *b = right;

	if (a->used.tv_sec != b->used.tv_sec)
		return a->used.tv_sec < b->used.tv_sec ? 1 : -1;
	return a->used.tv_nsec < b->used.tv_nsec ? 1 : a->used.tv_nsec > b->used.tv_nsec ? -1 : 0;
}

static void list_kept(int directory_fd, struct kept_list *out)
{
	_Alignas(struct directory_entry) char entries[ENTRY_BYTES];
	AUTO_CLOSE int fd = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct directory list = {.fd = fd, .buffer = entries, .size = sizeof(entries)};
	const struct directory_entry *entry;
	struct stat status;

	while (fd >= 0 && (entry = directory_next(&list))) {
		struct kept *item;

		if (strlen(entry->name) >= sizeof(item->name) ||
		    fstatat(directory_fd, entry->name, &status, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		item = list_add(out);
		if (!item)
			return;
		snprintf(item->name, sizeof(item->name), "%s", entry->name);
		item->used = status.st_mtim;
		item->is_unfinished = !strncmp(entry->name, UNFINISHED, strlen(UNFINISHED));
		item->is_skeleton = S_ISDIR(status.st_mode) && !item->is_unfinished;
	}
	if (out->count)
		qsort(out->items, out->count, sizeof(*out->items), compare_kept);
}

/* Remove a skeleton, unless another process uses, makes or removes it. */
static void remove_kept(int directory_fd, const char *name)
{
	AUTO_CLOSE int fd = openat(directory_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char gone[UNFINISHED_SIZE];

	if (fd < 0) {
		unlinkat(directory_fd, name, 0);
		return;
	}
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return;
	name_unfinished(gone);
	if (renameat(directory_fd, name, directory_fd, gone) == 0)
		reap_sweep_at(directory_fd, gone);
}

static void sweep(int directory_fd)
{
	struct kept_list list = {0};
	time_t oldest = time(NULL) - KEPT_SECONDS;

	list_kept(directory_fd, &list);
	for (size_t i = 0; i < list.count; i++)
		if (i >= KEPT_MAX || list.items[i].used.tv_sec < oldest || list.items[i].is_unfinished)
			remove_kept(directory_fd, list.items[i].name);
	free(list.items);
}

/* --- one of them -------------------------------------------------------------------------------------------- */

static int carry_out(const struct plan *plan, int fd)
{
	struct jar_build build = {.plan = &plan->core, .root_fd = fd, .scratch_fd = -1};
	mode_t mask = umask(0);
	int rc = 0;

	for (size_t i = 0; i < plan->skeleton.count && rc == 0; i++)
		rc = build_step(&build, &plan->skeleton.items[i]);
	umask(mask);
	return rc;
}

/* If another start makes the same one meanwhile, whichever is whole first stays. */
static int make(int directory_fd, const struct plan *plan, const char *name)
{
	char unfinished[UNFINISHED_SIZE];
	AUTO_CLOSE int fd = -1;
	int rc;

	name_unfinished(unfinished);
	if (mkdirat(directory_fd, unfinished, 0700) < 0)
		return -errno;
	fd = openat(directory_fd, unfinished, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	rc = fd < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0 ? -errno : carry_out(plan, fd);
	if (rc == 0 && fchmod(fd, 0755) < 0)
		rc = -errno;
	if (rc == 0) {
		unlinkat(directory_fd, name, 0); /* the file that asks for it */
		rc = renameat(directory_fd, unfinished, directory_fd, name) < 0 ? -errno : 0;
	}
	if (rc == 0)
		return 0;
	reap_sweep_at(directory_fd, unfinished);
	return rc == -EEXIST || rc == -ENOTEMPTY ? 0 : rc;
}

static int leave_file(int directory_fd, const char *name, const char *content)
{
	AUTO_CLOSE int fd = openat(directory_fd, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 || write(fd, content, strlen(content)) < 0 ? -errno : 0;
}

/* Open a complete skeleton and lock it; @status describes it, if it exists. */
static int use(int directory_fd, const char *name, struct stat *status)
{
	AUTO_CLOSE int fd = openat(directory_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat around;

	if (fd < 0 || fstat(fd, status) < 0 || fstat(directory_fd, &around) < 0)
		return -errno;
	if (status->st_uid != geteuid() || (status->st_mode & 07777) != 0755 || status->st_dev != around.st_dev)
		return -EPERM;
	if (flock(fd, LOCK_SH | LOCK_NB) < 0)
		return -errno;
	/* Note the use, so that no engine removes it as unused. */
	if (status->st_mtime < time(NULL) - NOTED_SECONDS)
		futimens(fd, NULL);
	return take_fd(&fd);
}

static struct plan_step *find_step(struct plan *plan)
{
	for (size_t i = 0; i < plan->core.steps.count; i++)
		if (plan->core.steps.items[i].kind == STEP_SKELETON)
			return &plan->core.steps.items[i];
	return NULL;
}

int skeleton_open(struct engine_skeleton *skeleton, const struct host *host, struct plan *plan)
{
	struct plan_step *step = plan->skeleton.count ? find_step(plan) : NULL;
	AUTO_CLOSE int directory_fd = -1;
	char name[DIGEST_SHA256_HEX];
	AUTO_FREE char *path = NULL;
	struct stat status;
	int rc;

	skeleton_close(skeleton);
	if (!step)
		return 0;
	directory_fd = open_directory(host);
	rc = directory_fd < 0 ? directory_fd : name_of(plan, name);
	if (rc < 0)
		return rc;
	if (fstatat(directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno != ENOENT)
			return -errno;
		sweep(directory_fd);
		rc = leave_file(directory_fd, name, "");
		return rc < 0 ? rc : -EAGAIN;
	}
	if (S_ISREG(status.st_mode)) {
		rc = status.st_size ? -EOPNOTSUPP : make(directory_fd, plan, name);
		if (rc < 0)
			return rc;
	}
	rc = use(directory_fd, name, &status);
	if (rc < 0)
		return rc;
	skeleton->fd = rc;
	path = survey_path_join(host->skeletons.path, name);
	if (!path || string_list_add(&plan->strings, path) < 0)
		return -ENOMEM;
	step->source = plan->strings.items[plan->strings.count - 1];
	step->device = status.st_dev;
	step->inode = status.st_ino;
	return 0;
}

void skeleton_refuse(struct engine_skeleton *skeleton, const struct host *host, const struct plan *plan)
{
	AUTO_CLOSE int directory_fd = open_directory(host);
	char name[DIGEST_SHA256_HEX];

	skeleton_close(skeleton);
	if (directory_fd < 0 || name_of(plan, name) < 0)
		return;
	remove_kept(directory_fd, name);
	leave_file(directory_fd, name, "cannot be mounted\n");
}

void skeleton_close(struct engine_skeleton *skeleton)
{
	if (skeleton->fd > 0)
		close_fd(&skeleton->fd);
	skeleton->fd = 0;
}

ssize_t skeletons_count(const struct host *host)
{
	AUTO_CLOSE int directory_fd = open_directory(host);
	struct kept_list list = {0};
	ssize_t count = 0;

	if (directory_fd < 0)
		return directory_fd;
	list_kept(directory_fd, &list);
	for (size_t i = 0; i < list.count; i++)
		count += list.items[i].is_skeleton;
	free(list.items);
	return count;
}
