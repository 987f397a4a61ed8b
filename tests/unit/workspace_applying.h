/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/workspace_applying.h - apply the workspace of a scene, and look at what the workdir has then
 */
#ifndef BELLJAR_TESTS_UNIT_WORKSPACE_APPLYING_H
#define BELLJAR_TESTS_UNIT_WORKSPACE_APPLYING_H

#include "workspace_scene.h"

#include "base/directory.h"
#include "workspace/workspace_apply.h"
#include "workspace/workspace_risk.h"

static struct apply_outcome outcome;
static struct string_list paths, theirs, ours, allowed;
static bool is_copying, is_dry_run;

/* 0 or what workspace_apply() says; the marks of every change that was not applied are in @notes. */
static char notes[65536];

static inline int apply(void)
{
	struct workspace_view view = {0};
	struct change_list list = {0};
	struct apply_request request = {
		.view = &view,
		.workspace = &workspace,
		.changes = &list,
		.choice = {.paths = &paths, .theirs = &theirs, .ours = &ours},
		.may_move = !is_copying,
		.is_dry_run = is_dry_run,
	};
	size_t len = 0;
	int rc = workspace_view_open(&home, &workspace, &view, fresh());

	workspace_apply_outcome_done(&outcome);
	notes[0] = '\0';
	if (rc == 0)
		rc = workspace_settle(&view, &workspace, fresh());
	if (rc == 0)
		rc = workspace_changes(&view, &list, fresh());
	if (rc == 0) {
		workspace_judge(&view, &list, &allowed);
		rc = workspace_apply(&request, &outcome, fresh());
	}
	for (size_t i = 0; i < list.count && len < sizeof(notes) - 512; i++)
		if (!(list.items[i].flags & CHANGE_IS_DONE))
			len += (size_t)snprintf(notes + len, sizeof(notes) - len, "%c %s%s%s\n",
						workspace_change_letter(list.items[i].kind), list.items[i].path,
						list.items[i].flags & CHANGE_IS_CONFLICT ? " !" : "",
						list.items[i].flags & CHANGE_IS_REFUSED ? " refused" : "");
	workspace_change_list_done(&list);
	workspace_view_done(&view);
	string_list_clear(&paths);
	string_list_clear(&theirs);
	string_list_clear(&ours);
	string_list_clear(&allowed);
	return rc;
}

/* What is in a file of the workdir; "(none)" if it is not there. */
static inline const char *content(const char *path)
{
	static char text[4096];
	int fd = openat(workdir_fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	close(fd);
	if (len < 0)
		return "(none)";
	text[len] = '\0';
	return text;
}

static inline size_t count_names(const char *path)
{
	int fd = openat(workdir_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char buffer[65536];
	size_t count = 0;
	struct directory list = {.fd = fd, .buffer = buffer, .size = sizeof(buffer)};

	while (directory_next(&list))
		count++;
	close(fd);
	return count;
}

#endif
