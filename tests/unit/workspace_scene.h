/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/workspace_scene.h - a workdir, and a workspace over it whose layer a test writes as overlay would
 */
#ifndef BELLJAR_TESTS_UNIT_WORKSPACE_SCENE_H
#define BELLJAR_TESTS_UNIT_WORKSPACE_SCENE_H

#include "scratch_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/reap/reap.h"
#include "workspace/workspace_changes.h"

static struct workspace_home home;
static struct workspace workspace;
static int workdir_fd = -1;
static struct error scene_error;

static inline void scene_prepare(void)
{
	static char state[PATH_MAX + 32];
	char *environment[] = {state, NULL};

	snprintf(state, sizeof(state), "XDG_STATE_HOME=%s/state", top);
	if (workspace_home_open(environment, &home, &scene_error) < 0)
		printf("no home: %s\n", scene_error.message);
}

static inline struct error *fresh(void)
{
	scene_error = (struct error){0};
	return &scene_error;
}

static inline void put(int parent, const char *path, const char *text)
{
	int fd = openat(parent, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		printf("cannot write %s: %s\n", path, strerror(errno));
	close(fd);
}

/* An empty workdir, to be filled before scene_begin(). */
static inline void scene_reset(void)
{
	if (workspace.path)
		workspace_remove(&home, &workspace, fresh());
	close_fd(&workdir_fd);
	reap_sweep(at("/project"));
	make_directory("/project");
	workdir_fd = open(at("/project"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static inline void scene_begin_as(enum workspace_kind kind)
{
	struct workspace_request request = {
		.workdir_fd = workdir_fd, .workdir = at("/project"), .kind = kind, .has_user_xattrs = geteuid() != 0};

	if (workspace_create(&home, &request, &workspace, fresh()) < 0)
		printf("no workspace: %s\n", scene_error.message);
	/* What an ordinary user's overlay does; tests run as either. */
	workspace.meta.has_user_xattrs = true;
	workspace_save(&workspace, fresh());
}

static inline void scene_begin(void)
{
	scene_begin_as(WORKSPACE_OVERLAY);
}

static inline void whiteout(const char *path)
{
	if (mknodat(workspace.upper_fd, path, S_IFCHR, 0) < 0)
		printf("no whiteout: %s\n", strerror(errno));
}

static inline void set_mark(const char *path, const char *name, const char *value)
{
	int fd = openat(workspace.upper_fd, path, O_RDONLY | O_CLOEXEC);

	if (fsetxattr(fd, name, value, strlen(value), 0) < 0)
		printf("no attribute: %s\n", strerror(errno));
	close(fd);
}

static inline bool is_renamed(const struct change *change)
{
	return change->from && change->kind == CHANGE_ADDED;
}

/* "A a/b" for each change, a line each; what stands after the path are its marks: ! a conflict, < renamed from. */
static inline const char *changes(void)
{
	static char lines[65536];
	struct workspace_view view = {0};
	struct change_list list = {0};
	size_t len = 0;

	lines[0] = '\0';
	if (workspace_view_open(&home, &workspace, &view, fresh()) < 0)
		return scene_error.message;
	if (workspace_changes(&view, &list, fresh()) < 0) {
		workspace_view_done(&view);
		return scene_error.message;
	}
	workspace_find_renames(&view, &list);
	for (size_t i = 0; i < list.count && len < sizeof(lines) - 512; i++)
		len += (size_t)snprintf(lines + len, sizeof(lines) - len, "%c %s%s%s%s\n",
					workspace_change_letter(list.items[i].kind), list.items[i].path,
					list.items[i].flags & CHANGE_IS_CONFLICT ? " !" : "",
					is_renamed(&list.items[i]) ? " < " : "",
					is_renamed(&list.items[i]) ? list.items[i].from->path : "");
	workspace_change_list_done(&list);
	workspace_view_done(&view);
	return lines;
}

#endif
