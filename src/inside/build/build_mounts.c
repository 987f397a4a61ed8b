/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside/build/build_mounts.c - the steps that build the file system the jar sees
 *
 * A fresh tmpfs is mounted over / and everything is attached below it by descriptor. A source is opened here, in the new
 * mount namespace, and must be the very object the planner saw; a target is resolved without following any symbolic
 * link, since parts of the tree may be the work of an earlier, untrusted command. Nothing is ever created on the host.
 */
#include "inside/build/build.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/sys/calls.h"

#define PATH_BYTES 4096
/* The root tmpfs holds directories, mount points and small files only. */
#define ROOT_SIZE "16m"

static const char *beneath_root(const char *path)
{
	while (*path == '/')
		path++;
	return *path ? path : ".";
}

static int make_entry(const struct jar_build *build, const char *path, bool is_file)
{
	return is_file ? sys_make_file(build->root_fd, path, 0444) : sys_make_directory(build->root_fd, path, 0755);
}

/* The directories above @path that are not there yet. */
static int make_parents(const struct jar_build *build, const char *path)
{
	char parent[PATH_BYTES];

	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		size_t len = (size_t)(slash - path);
		int rc;

		if (len >= sizeof(parent))
			return -ENAMETOOLONG;
		memcpy(parent, path, len);
		parent[len] = '\0';
		rc = sys_make_directory(build->root_fd, parent, 0755);
		if (rc < 0 && rc != -EEXIST)
			return rc;
	}
	return 0;
}

/* Make @target as a directory or an empty file. */
static int make_place(const struct jar_build *build, const char *target, bool is_file)
{
	const char *path = beneath_root(target);
	int rc = make_entry(build, path, is_file);

	if (rc == -ENOENT) {
		rc = make_parents(build, path);
		if (rc == 0)
			rc = make_entry(build, path, is_file);
	}
	return rc == -EEXIST ? 0 : rc;
}

/* Open the target of a step in a host directory, and check it. */
static int open_place(const struct jar_build *build, const struct plan_step *step)
{
	AUTO_CLOSE int place = sys_openat2(build->root_fd, beneath_root(step->target), O_PATH, 0,
					   SYS_RESOLVE_IN_ROOT | SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS);
	int rc = place < 0 ? place : build_check_object(place, step->place_device, step->place_inode);

	return rc < 0 ? rc : take_fd(&place);
}

/* Ignore the failure @rc if the step's target may be gone or replaced. */
static int unless_gone(const struct plan_step *step, int rc)
{
	bool is_gone =
		rc == -ENOENT || rc == -ENOTDIR || rc == -ELOOP || rc == -EINVAL; /* a file instead of a directory */

	return is_gone && step->flags & STEP_MAY_BE_GONE ? 0 : rc;
}

/* Attach a detached mount, which is closed here; a negative errno instead of one is the answer. */
static int attach(const struct jar_build *build, int made, const struct plan_step *step)
{
	AUTO_CLOSE int mount_fd = made;
	AUTO_CLOSE int place = -1;
	int rc;

	if (mount_fd < 0)
		return mount_fd;
	/* Outside host directories this process made the whole path, so it has no foreign links. */
	if (!(step->flags & STEP_IN_PLACE)) {
		rc = step->flags & STEP_STANDS ? 0 : make_place(build, step->target, step->flags & STEP_ON_FILE);
		return rc < 0 ? rc : sys_move_mount(mount_fd, build->root_fd, beneath_root(step->target));
	}
	place = open_place(build, step);
	return unless_gone(step, place < 0 ? place : sys_move_mount(mount_fd, place, ""));
}

/* Move a detached mount to a place in the scratch space that no process can enter. */
static int set_aside(struct jar_build *build, int mount_fd)
{
	char name[16];
	int rc;

	snprintf(name, sizeof(name), "%d", build->scratch_count++);
	rc = sys_make_directory(build->scratch_fd, name, 0000);
	return rc < 0 ? rc : sys_move_mount(mount_fd, build->scratch_fd, name);
}

static uint64_t attributes_of(const struct plan_step *step)
{
	return SYS_MOUNT_NOSUID | (step->flags & STEP_DEVICE ? 0 : SYS_MOUNT_NODEV) |
	       (step->flags & STEP_READ_ONLY ? SYS_MOUNT_RDONLY : 0) |
	       (step->flags & STEP_NO_EXEC ? SYS_MOUNT_NOEXEC : 0);
}

/* An empty file has no size, and takes about a kilobyte all the same: so the number of files is limited too. */
static int new_tmpfs(const struct plan_step *step, uint64_t bytes, uint64_t file_count)
{
	char mode[8], size[32], files[32];
	struct sys_option options[] = {{"mode", mode}, {"size", size}, {"nr_inodes", files}};

	snprintf(mode, sizeof(mode), "%04o", (unsigned)step->mode);
	snprintf(size, sizeof(size), "%" PRIu64, bytes);
	snprintf(files, sizeof(files), "%" PRIu64, file_count);
	return sys_new_mount("tmpfs", options, bytes == LIMIT_NONE ? 1 : ARRAY_LEN(options), attributes_of(step));
}

/* Without this, root's mounts would appear on the host. */
int build_private_mounts(struct jar_build *build, const struct plan_step *step)
{
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ? -errno : 0;
}

int build_root(struct jar_build *build, const struct plan_step *step)
{
	static const struct sys_option options[] = {{"mode", "0755"}, {"size", ROOT_SIZE}};

	build->root_fd = sys_new_mount("tmpfs", options, ARRAY_LEN(options), SYS_MOUNT_NOSUID | SYS_MOUNT_NODEV);
	return build->root_fd < 0 ? build->root_fd : sys_move_mount(build->root_fd, AT_FDCWD, "/");
}

int build_scratch(struct jar_build *build, const struct plan_step *step)
{
	int rc;

	build->scratch_fd = new_tmpfs(step, step->as.scratch.bytes, step->as.scratch.files);
	if (build->scratch_fd < 0)
		return build->scratch_fd;
	/* Before Linux 6.15 nothing can be bound out of a mount without a place. The real /proc will cover this one. */
	rc = make_place(build, "/proc", false);
	return rc < 0 ? rc : sys_move_mount(build->scratch_fd, build->root_fd, "proc");
}

int build_directory(struct jar_build *build, const struct plan_step *step)
{
	int rc = make_place(build, step->target, false);

	if (rc < 0)
		return rc;
	return fchmodat(build->root_fd, beneath_root(step->target), step->mode, 0) < 0 ? -errno : 0;
}

int build_symlink(struct jar_build *build, const struct plan_step *step)
{
	const char *path = beneath_root(step->target);
	int rc = sys_make_link(step->source, build->root_fd, path);

	if (rc == -ENOENT && make_parents(build, path) == 0)
		rc = sys_make_link(step->source, build->root_fd, path);
	return rc == -EEXIST ? 0 : rc;
}

/* A detached mount of the object at @path, which must be the one the planner saw. */
static int open_object(const struct jar_build *build, const struct plan_step *step, const char *path)
{
	/* The planner's path has no links. If there is one by now, it is not followed, unless the plan says so. */
	bool is_plain = !(step->flags & STEP_FOLLOW);
	AUTO_CLOSE int source = is_plain ? sys_openat2(AT_FDCWD, path, O_PATH, 0, SYS_RESOLVE_NO_SYMLINKS) : AT_FDCWD;
	AUTO_CLOSE int mount_fd = -1;
	int rc;

	if (is_plain && source < 0)
		return source;
	mount_fd = sys_open_tree_with(source, is_plain ? "" : path, step->flags & STEP_RECURSIVE, attributes_of(step),
				      step->flags & STEP_ID_MAPPED ? build->user_namespace_fd : -1);
	rc = mount_fd < 0 ? mount_fd : build_check_object(mount_fd, step->device, step->inode);
	return rc < 0 ? rc : take_fd(&mount_fd);
}

int build_skeleton(struct jar_build *build, const struct plan_step *step)
{
	build->root_fd = open_object(build, step, step->source);
	return build->root_fd < 0 ? build->root_fd : sys_move_mount(build->root_fd, AT_FDCWD, "/");
}

static int write_new_file(int directory_fd, const char *path, const struct plan_step *step)
{
	AUTO_CLOSE int fd =
		openat(directory_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, step->mode);
	const void *bytes = step->as.file.bytes ? step->as.file.bytes : step->source;
	size_t len = step->as.file.bytes ? step->as.file.len : strlen(step->source);
	ssize_t written = fd < 0 ? -1 : write(fd, bytes, len);

	if (written < 0 || fchmod(fd, step->mode) < 0)
		return -errno;
	return written == (ssize_t)len ? 0 : -ENOSPC;
}

static int write_in_root(const struct jar_build *build, const struct plan_step *step)
{
	const char *path = beneath_root(step->target);
	int rc = write_new_file(build->root_fd, path, step);

	if (rc == -ENOENT && make_parents(build, path) == 0)
		rc = write_new_file(build->root_fd, path, step);
	return rc;
}

int build_copy(struct jar_build *build, const struct plan_step *step)
{
	static char content[JAR_COPY_BYTES_MAX + 1];
	AUTO_CLOSE int source = sys_open(step->source, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
	struct plan_step copy = *step;
	struct stat status;
	ssize_t len;

	if (source < 0)
		return source;
	if (fstat(source, &status) < 0)
		return -errno;
	/* Its mode too: this process may read more than the command. */
	if (status.st_dev != step->device || status.st_ino != step->inode || !S_ISREG(status.st_mode) ||
	    (status.st_mode & 0555) != step->mode)
		return -ESTALE;
	len = read(source, content, sizeof(content));
	if (len < 0 || len > JAR_COPY_BYTES_MAX)
		return len < 0 ? -errno : -EFBIG;
	copy.as.file.bytes = content;
	copy.as.file.len = (size_t)len;
	return write_in_root(build, &copy);
}

int build_bind(struct jar_build *build, const struct plan_step *step)
{
	return attach(build, open_object(build, step, step->source), step);
}

int build_attach_tree(struct jar_build *build, const struct plan_step *step, int mount_fd)
{
	AUTO_CLOSE int tree = mount_fd;
	int rc = sys_mount_attributes(tree, attributes_of(step), true);

	return rc < 0 ? rc : attach(build, take_fd(&tree), step);
}

/*
 * Each part is a checked mount of its own, with the map of ids where there is one. Before Linux 6.15 it must be attached
 * somewhere: in the host's tree it can stay, since the jar's root covers it and an unmount would wait for all processors.
 */
static int open_parts(struct jar_build *build, const struct plan_step *step, int *fds)
{
	const struct jar_part *parts = step->as.overlay.parts;
	struct plan_step part = *step;
	int rc = step->as.overlay.count > JAR_PARTS_MAX ? -E2BIG : 0;

	for (size_t i = 0; i < step->as.overlay.count && rc == 0; i++) {
		part.device = parts[i].device;
		part.inode = parts[i].inode;
		fds[i] = open_object(build, &part, parts[i].path);
		rc = fds[i] < 0 ? fds[i] : sys_move_mount(fds[i], AT_FDCWD, parts[0].path);
	}
	return rc;
}

static int new_overlay(const struct plan_step *step, const int *fds)
{
	char lower[JAR_PARTS_MAX * 12] = "", upper[32], work[32];
	/* User attributes need no privilege. Trusted ones allow renaming directories, and the jar cannot forge them. */
	bool is_trusted = step->flags & STEP_ID_MAPPED;
	const struct sys_option options[] = {
		{"lowerdir", lower},
		{"upperdir", upper},
		{"workdir", work},
		{"index", "off"},
		{"metacopy", "off"},
		{"volatile", NULL}, /* else its end would wait until the whole file system is on disk */
		{is_trusted ? "redirect_dir" : "userxattr", is_trusted ? "on" : NULL},
	};
	struct statvfs status;
	size_t len = 0;
	int mount_fd;

	/* By descriptor, and short: an option has 255 bytes. What the jar can read of it names nothing of the host's. */
	if (chdir("/proc/self/fd") < 0)
		return -errno;
	for (size_t i = 1; i < step->as.overlay.count; i++)
		len += (size_t)snprintf(lower + len, sizeof(lower) - len, "%s%d", i > 1 ? ":" : "", fds[i]);
	snprintf(upper, sizeof(upper), "%d/upper", fds[0]);
	snprintf(work, sizeof(work), "%d/work", fds[0]);
	mount_fd = sys_new_mount("overlay", options, ARRAY_LEN(options), attributes_of(step));
	/* The kernel makes it read-only, and says nothing, where it cannot use the directory `work`. */
	if (mount_fd >= 0 && (fstatvfs(mount_fd, &status) < 0 || status.f_flag & ST_RDONLY)) {
		close(mount_fd);
		mount_fd = -EROFS;
	}
	return mount_fd;
}

int build_overlay(struct jar_build *build, const struct plan_step *step)
{
	int fds[JAR_PARTS_MAX] = {0};
	int rc = open_parts(build, step, fds);
	int mount_fd = rc < 0 ? rc : new_overlay(step, fds);

	for (size_t i = 0; i < step->as.overlay.count && fds[i] > 0; i++)
		close(fds[i]);
	return attach(build, mount_fd, step);
}

/* A new empty directory or file of the scratch tmpfs, as a detached mount. */
static int scratch_piece(struct jar_build *build, mode_t mode, bool is_file)
{
	char name[16];
	int rc;

	snprintf(name, sizeof(name), "%d", build->scratch_count++);
	rc = is_file ? sys_make_file(build->scratch_fd, name, mode) : sys_make_directory(build->scratch_fd, name, mode);
	return rc < 0 ? rc : sys_open_tree(build->scratch_fd, name, false);
}

int build_file(struct jar_build *build, const struct plan_step *step)
{
	AUTO_CLOSE int mount_fd = -1;
	char name[16];
	int rc;

	/* Without mounts the target lies in the run's own directory; what is made to be used again has no scratch space. */
	if (build->scratch_fd < 0)
		return build->root_fd < 0 ? write_new_file(AT_FDCWD, step->target, step) : write_in_root(build, step);
	snprintf(name, sizeof(name), "%d", build->scratch_count++);
	rc = write_new_file(build->scratch_fd, name, step);
	mount_fd = rc < 0 ? rc : sys_open_tree(build->scratch_fd, name, false);
	if (mount_fd < 0)
		return mount_fd;
	rc = sys_mount_attributes(mount_fd, SYS_MOUNT_RDONLY | SYS_MOUNT_NOSUID | SYS_MOUNT_NODEV | SYS_MOUNT_NOEXEC,
				  false);
	return rc < 0 ? rc : attach(build, take_fd(&mount_fd), step);
}

int build_private(struct jar_build *build, const struct plan_step *step)
{
	return attach(build, scratch_piece(build, step->mode, false), step);
}

int build_tmpfs(struct jar_build *build, const struct plan_step *step)
{
	return attach(build, new_tmpfs(step, step->as.tmpfs.bytes, step->as.tmpfs.files), step);
}

int build_hide(struct jar_build *build, const struct plan_step *step)
{
	bool is_file = step->flags & STEP_ON_FILE;
	AUTO_CLOSE int mount_fd = scratch_piece(build, is_file ? 0000 : 0555, is_file);
	int rc = mount_fd < 0 ? mount_fd : sys_mount_attributes(mount_fd, SYS_MOUNT_RDONLY, false);

	return rc < 0 ? rc : attach(build, take_fd(&mount_fd), step);
}

/*
 * The kernel refuses to rename or remove a directory that carries a mount anywhere in this namespace. So the directory is mounted
 * once more in the scratch space, where no process can go, with a cover on top. A mount at its own place would cut it off
 * from what is around it: no file could be moved in or out.
 */
int build_pin(struct jar_build *build, const struct plan_step *step)
{
	/* Under a layer it is another directory than on the host: the one that shows in the jar. */
	AUTO_CLOSE int place = step->flags & STEP_IN_PLACE ? open_place(build, step) : AT_FDCWD;
	AUTO_CLOSE int directory = place == AT_FDCWD ? open_object(build, step, step->target)
				   : place < 0       ? place
						     : sys_open_tree(place, "", true);
	AUTO_CLOSE int cover = -1;
	int rc = directory < 0 ? directory : set_aside(build, directory);

	if (rc < 0)
		return unless_gone(step, rc);
	cover = scratch_piece(build, 0000, false);
	return cover < 0 ? cover : sys_move_mount(cover, directory, "");
}

int build_devpts(struct jar_build *build, const struct plan_step *step)
{
	char max[24];
	const struct sys_option options[] = {{"ptmxmode", "0666"}, {"mode", "0620"}, {"max", max}};

	snprintf(max, sizeof(max), "%" PRIu64, step->as.devpts.limit);
	return attach(build, sys_new_mount("devpts", options, ARRAY_LEN(options), SYS_MOUNT_NOSUID | SYS_MOUNT_NOEXEC),
		      step);
}

int build_proc(struct jar_build *build, const struct plan_step *step)
{
	AUTO_CLOSE int mount_fd = sys_new_mount("proc", NULL, 0, SYS_MOUNT_NOSUID | SYS_MOUNT_NODEV | SYS_MOUNT_NOEXEC);

	if (mount_fd < 0)
		return mount_fd;
	/* The scratch tmpfs is mounted there already. Mount by path, so that this comes on top. */
	return sys_move_mount(mount_fd, build->root_fd, beneath_root(step->target));
}

int build_proc_lock(struct jar_build *build, const struct plan_step *step)
{
	AUTO_CLOSE int mount_fd = sys_open_tree(build->root_fd, beneath_root(step->target), false);
	int rc = mount_fd < 0 ? mount_fd : sys_mount_attributes(mount_fd, SYS_MOUNT_RDONLY, false);

	if (mount_fd == -ENOENT)
		return 0;
	return rc < 0 ? rc : sys_move_mount(mount_fd, build->root_fd, beneath_root(step->target));
}

int build_seal(struct jar_build *build, const struct plan_step *step)
{
	return sys_mount_attributes(build->root_fd, SYS_MOUNT_RDONLY, false);
}

int build_enter(struct jar_build *build, const struct plan_step *step)
{
	/* The new root lies on top of the old one; chroot is enough, and nothing needs to be unmounted. */
	if (fchdir(build->root_fd) < 0 || chroot(".") < 0 || chdir("/") < 0)
		return -errno;
	close_fd(&build->root_fd);
	close_fd(&build->scratch_fd);
	return 0;
}
