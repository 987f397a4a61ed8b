/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan_view.c - collect what the jar will see
 */
#include "plan/plan_view.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define PRIVATE_WORKDIR "/workspace"
/* As many links as the kernel follows. */
#define LINK_TURNS_MAX 40
/* All jars of the host have 3072 between them, by default; what a user has outside of jars is counted apart. */
#define TERMINALS_MAX 128

static struct place *add(struct plan_build *build, struct view *view, enum place_kind kind, const char *target)
{
	static struct place spare;
	struct place *place = build->has_failed ? NULL : list_add(view);

	if (!place) {
		build->has_failed = true;
		return &spare;
	}
	place->kind = kind;
	place->target = plan_string(build, target);
	place->order = view->count;
	return place;
}

/* What the survey saw at the place: something else there when the jar is made is a race that somebody tries to win. */
static void set_on_host(struct place *place, const struct host_path *path)
{
	place->on_client = path->kind;
	place->place_device = path->device;
	place->place_inode = path->inode;
}

static struct place *add_bind(struct plan_build *build, struct view *view, const struct host_path *from,
			      const char *target, unsigned flags)
{
	struct place *place = add(build, view, PLACE_BIND, target);

	place->source = plan_string(build, from->path);
	place->device = from->device;
	place->inode = from->inode;
	place->flags = flags | (from->kind == PATH_DIRECTORY ? STEP_RECURSIVE : STEP_ON_FILE);
	/* By default a thing stands where it stands on the host. */
	set_on_host(place, from);
	return place;
}

/* A host path at its own place, whether it is a symbolic link or the thing itself. */
static void add_same(struct plan_build *build, struct view *view, const struct host_path *from, unsigned flags)
{
	if (from->kind == PATH_SYMLINK)
		add(build, view, PLACE_SYMLINK, from->path)->source = plan_string(build, from->target);
	else if (from->kind != PATH_OTHER)
		add_bind(build, view, from, from->path, flags);
}

static void add_list(struct plan_build *build, struct view *view, const struct host_path_list *list, unsigned flags)
{
	for (size_t i = 0; i < list->count; i++)
		add_same(build, view, &list->items[i], flags);
}

/* A made-up file in its own read-only mount: it can be neither changed nor replaced. */
static void add_file(struct plan_build *build, struct view *view, const char *path, const char *content)
{
	struct place *place = add(build, view, PLACE_FILE, path);

	place->source = content;
	place->flags = STEP_ON_FILE | STEP_READ_ONLY;
	place->mode = 0444;
}

/* With a network of its own the jar has ::1, whether or not the host has; without a name, looking it up would take a name server. */
static void add_etc(struct plan_build *build, struct view *view)
{
	const struct host_path_list *list = &build->host->etc;

	for (size_t i = 0; i < list->count; i++) {
		bool is_hosts = build->policy->net == NET_NONE && !strcmp(list->items[i].path, "/etc/hosts");

		add_same(build, view, &list->items[i], STEP_READ_ONLY | STEP_SNAPSHOT | (is_hosts ? STEP_HOSTS : 0));
	}
	if (build->policy->has_system && build->policy->hostname)
		add_file(build, view, "/etc/hostname", plan_format(build, "%s\n", build->policy->hostname));
}

/* Tools in the workdir (a project's own venv in PATH) are visible there already, and as writable as the rest of it. */
static void add_toolchains(struct plan_build *build, struct view *view)
{
	const struct host_path_list *list = &build->host->toolchains;
	const char *workdir = build->has_private_workdir ? NULL : build->host->workdir.path.path;

	for (size_t i = 0; i < list->count; i++)
		if (!workdir || !path_is_within(list->items[i].path, workdir))
			add_same(build, view, &list->items[i], STEP_READ_ONLY | STEP_ID_MAPPED);
}

/* --- layers ------------------------------------------------------------------------------------------------- */

static void add_devices(struct plan_build *build, struct view *view)
{
	static const char *const links[][2] = {{"/dev/fd", "/proc/self/fd"},
					       {"/dev/stdin", "/proc/self/fd/0"},
					       {"/dev/stdout", "/proc/self/fd/1"},
					       {"/dev/stderr", "/proc/self/fd/2"},
					       {"/dev/ptmx", "pts/ptmx"}};
	struct place *place;

	for (size_t i = 0; i < build->host->devices.count; i++)
		add_bind(build, view, &build->host->devices.items[i], build->host->devices.items[i].path,
			 STEP_DEVICE | STEP_NO_EXEC);
	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		add(build, view, PLACE_SYMLINK, links[i][0])->source = links[i][1];
	place = add(build, view, PLACE_DEVPTS, "/dev/pts");
	place->on_client = PATH_DIRECTORY;
	place->limit = TERMINALS_MAX;
	add(build, view, PLACE_PROC, "/proc")->on_client = PATH_DIRECTORY;
}

static mode_t private_mode(const struct plan_build *build, const char *path)
{
	static const char *const shared[] = {"/tmp", "/var/tmp", "/dev/shm"};

	for (size_t i = 0; i < ARRAY_LEN(shared); i++)
		if (!strcmp(path, shared[i]))
			return 01777;
	return strcmp(path, build->host->home) ? 0755 : 0700;
}

/* Does a mount with a place of its own stand at @path or around it? Then @path does not lie where it does on the host. */
static bool is_moved(const struct policy *policy, const char *path)
{
	for (size_t i = 0; i < policy->mounts.count; i++)
		if (strcmp(policy->mounts.items[i].path, policy->mounts.items[i].dest) != 0 &&
		    path_is_within(path, policy->mounts.items[i].dest))
			return true;
	return false;
}

static void add_private_places(struct plan_build *build, struct view *view)
{
	const struct policy *policy = build->policy;
	bool has_run = false;

	for (size_t i = 0; i < policy->tmpfs.count; i++) {
		const struct policy_tmpfs *tmpfs = &policy->tmpfs.items[i];
		const struct host_path *on_client = &build->host->tmpfs_places.items[i];
		/* Behind a symbolic link of the host, the place is where the link leads, and the link stays. */
		bool is_link = on_client->kind == PATH_DIRECTORY && strcmp(on_client->path, tmpfs->path) != 0 &&
			       !is_moved(policy, tmpfs->path);
		struct place *place = add(build, view, tmpfs->size_bytes == LIMIT_NONE ? PLACE_PRIVATE : PLACE_TMPFS,
					  is_link ? on_client->path : tmpfs->path);

		place->mode = private_mode(build, tmpfs->path);
		if (is_link && place->mode == 0755)
			place->mode = private_mode(build, on_client->path);
		place->limit = tmpfs->size_bytes;
		set_on_host(place, on_client);
		if (is_link)
			add(build, view, PLACE_SYMLINK, tmpfs->path)->source = plan_string(build, on_client->path);
		has_run |= !strcmp(tmpfs->path, "/run");
	}
	if (has_run)
		add(build, view, PLACE_SYMLINK, "/var/run")->source = "/run";
}

/* HOME points somewhere in every jar, also where it is a made-up one or the policy has no private home. */
static void add_home(struct plan_build *build, struct view *view)
{
	const char *home = build->host->home;

	for (size_t i = 0; i < view->count; i++)
		if (view->items[i].kind != PLACE_SYMLINK && path_is_within(home, view->items[i].target))
			return;
	add(build, view, PLACE_PRIVATE, home)->mode = 0700;
}

static void add_gitconfig(struct plan_build *build, struct view *view)
{
	const char *path = strcmp(build->host->home, "/") ? build->host->home : "";

	add_file(build, view, plan_format(build, "%s/.gitconfig", path), plan_gitconfig(build));
}

/* Naming the workdir in `ro` or `rw` says the same as workdir_mode, and later. */
static bool has_read_only_workdir(const struct plan_build *build)
{
	const struct policy *policy = build->policy;
	bool is_read_only = policy->workdir_mode == WORKDIR_RO;

	for (size_t i = 0; i < policy->mounts.count; i++) {
		const struct policy_mount *mount = &policy->mounts.items[i];
		const char *path = build->host->mounts.items[i].path;

		if (!strcmp(mount->path, mount->dest) && path && !strcmp(path, build->host->workdir.path.path))
			is_read_only = mount->access == MOUNT_RO;
	}
	return is_read_only;
}

/* The repository's own directory, where it is not in the workdir; with `.git` as a file it is not in its top either. */
static void add_git(struct plan_build *build, struct view *view, bool is_read_only)
{
	const struct host_workdir *workdir = &build->host->workdir;
	unsigned flags = STEP_ID_MAPPED | (is_read_only ? STEP_READ_ONLY : 0);

	if (workdir->git.kind != PATH_DIRECTORY || (is_read_only && !workdir->has_git_file))
		return;
	if (!path_is_within(workdir->git.path, workdir->path.path))
		add_bind(build, view, &workdir->git, workdir->git.path, flags);
	/* The other worktrees' parts are protected, this one's own is not. */
	if (workdir->git_own.kind == PATH_DIRECTORY)
		add_bind(build, view, &workdir->git_own, workdir->git_own.path, flags);
}

/* The workdir, the repository around it, and what in both other programs would execute later. */
static void add_workdir(struct plan_build *build, struct view *view)
{
	const struct host_workdir *workdir = &build->host->workdir;
	bool is_read_only;

	if (build->has_private_workdir && build->plan->rung != RUNG_NAMESPACE) {
		build->plan->core.workdir = plan_format(build, "%s/workspace", build->plan->core.run_directory);
		return;
	}
	if (build->has_private_workdir) {
		add(build, view, PLACE_PRIVATE, PRIVATE_WORKDIR)->mode = 0755;
		build->plan->core.workdir = PRIVATE_WORKDIR;
		return;
	}
	if (workdir->strange_git.path)
		plan_note(build, "git",
			  plan_format(build, "'%s' is not taken for the repository of the work directory: %s",
				      workdir->strange_git.path, workdir->strange_why),
			  "git works in the jar only with a repository of the caller's own; --ro and --rw show others");
	is_read_only = has_read_only_workdir(build);
	build->plan->core.workdir = plan_string(build, workdir->path.path);
	if (workdir->top.kind == PATH_DIRECTORY)
		add_bind(build, view, &workdir->top, workdir->top.path, STEP_READ_ONLY | STEP_ID_MAPPED);
	add_git(build, view, is_read_only);
	add_bind(build, view, &workdir->path, workdir->path.path, STEP_ID_MAPPED | (is_read_only ? STEP_READ_ONLY : 0));
	if (!build->policy->has_protect || is_read_only)
		return;
	for (size_t i = 0; i < workdir->protected.count; i++) {
		const struct host_path *protected = &workdir->protected.items[i];

		/* Nothing can be mounted on a symbolic link; if the command replaces it, the result says so. */
		if (protected->kind == PATH_DIRECTORY || protected->kind == PATH_FILE)
			add_bind(build, view, protected, protected->path, STEP_READ_ONLY | STEP_ID_MAPPED)->is_guard =
				true;
	}
}

static bool has_parent_component(const char *path)
{
	for (const char *at = strstr(path, "/.."); at; at = strstr(at + 1, "/.."))
		if (at[3] == '/' || at[3] == '\0')
			return true;
	return false;
}

static int add_named(struct plan_build *build, struct view *view)
{
	const struct policy *policy = build->policy;

	for (size_t i = 0; i < policy->mounts.count; i++) {
		const struct policy_mount *mount = &policy->mounts.items[i];
		const struct host_path *source = &build->host->mounts.items[i];
		bool has_own_place = strcmp(mount->path, mount->dest) != 0;
		struct place *place;

		if (source->kind == PATH_ABSENT) {
			if (mount->is_optional)
				continue;
			error_set(build->error, STAGE_FILES, source->error ? source->error : ENOENT,
				  "cannot show '%s' in the jar: %s", mount->path,
				  strerror(source->error ? source->error : ENOENT));
			return error_hint(
				build->error,
				"check the path; in a policy file, \"optional\": true skips what is not there");
		}
		if (source->kind == PATH_OTHER)
			return error_set(build->error, STAGE_FILES, EINVAL,
					 "cannot show '%s' in the jar: it is neither a file nor a directory",
					 mount->path);
		if (build->plan->rung == RUNG_NAMESPACE && !strcmp(has_own_place ? mount->dest : source->path, "/")) {
			error_set(build->error, STAGE_PLAN, EINVAL,
				  "the root of the jar is its own; '%s' cannot stand there", mount->path);
			return error_hint(build->error,
					  "name the directories that the command needs, or another place: %s:/host",
					  mount->path);
		}
		place = add_bind(build, view, source, has_own_place ? mount->dest : source->path,
				 STEP_ID_MAPPED | (mount->access == MOUNT_RO ? STEP_READ_ONLY : 0));
		if (has_own_place)
			set_on_host(place, &build->host->places.items[i]);
		else if (strcmp(source->path, mount->path) != 0 && !has_parent_component(mount->path))
			add(build, view, PLACE_SYMLINK, mount->path)->source = plan_string(build, source->path);
	}
	return 0;
}

/* --- putting them in order ---------------------------------------------------------------------------------- */

/* A directory, then all that is in it: the slash sorts before every other character. */
static int compare_paths(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	if (*a == *b)
		return 0;
	if (!*a || !*b)
		return *a ? 1 : -1;
	if (*a == '/' || *b == '/')
		return *a == '/' ? -1 : 1;
	return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
}

/* Of two at one target the later one counts, and a thing before a link: that link only says where the thing is. */
static int compare_places(const struct place *a, const struct place *b)
{
	int difference = compare_paths(a->target, b->target);

	if (!difference)
		difference = (b->kind == PLACE_SYMLINK) - (a->kind == PLACE_SYMLINK);
	return difference ? difference : (a->order < b->order ? -1 : a->order > b->order);
}

/* In a view in order the places around one are among those before it, the innermost last. */
static void find_around(struct view *view)
{
	for (size_t i = 0; i < view->count; i++) {
		size_t around = i - 1; /* SIZE_MAX for the first */

		while (around != SIZE_MAX && !path_is_within(view->items[i].target, view->items[around].target))
			around = view->items[around].around;
		view->items[i].around = around;
	}
}

const struct place *view_around(const struct view *view, size_t index)
{
	size_t around = view->items[index].around;

	return around == SIZE_MAX ? NULL : &view->items[around];
}

static void remove_dropped(struct view *view)
{
	size_t kept = 0;

	for (size_t i = 0; i < view->count; i++) {
		if (view->items[i].is_dropped)
			continue;
		if (kept != i)
			view->items[kept] = view->items[i];
		kept++;
	}
	view->count = kept;
	find_around(view);
}

static void keep_last_of_each(struct view *view)
{
	for (size_t i = 0; i + 1 < view->count; i++)
		view->items[i].is_dropped = !strcmp(view->items[i].target, view->items[i + 1].target);
	remove_dropped(view);
}

/* The innermost place that encloses @path, which need not be a place itself; NULL: the root. */
static const struct place *innermost(const struct view *view, const char *path)
{
	const struct place *found = NULL;

	for (size_t i = 0; i < view->count; i++)
		if (path_is_within(path, view->items[i].target) &&
		    (!found || strlen(view->items[i].target) >= strlen(found->target)))
			found = &view->items[i];
	return found;
}

/* Where @place belongs among the first @count of @sorted. */
static size_t position_of(const struct place *place, struct place *const *sorted, size_t count)
{
	size_t low = 0, high = count;

	/* Places mostly come in order. */
	if (!count || compare_places(sorted[count - 1], place) <= 0)
		return count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_places(sorted[middle], place) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* By pointer: places are large. */
static void sort(struct plan_build *build, struct view *view)
{
	size_t count = view->count;
	AUTO_FREE struct place **sorted = calloc(count + 1, sizeof(struct place *));
	struct place *items = calloc(count + 1, sizeof(*items));

	if (!sorted || !items) {
		build->has_failed = true;
		free(items);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		size_t at = position_of(&view->items[i], sorted, i);

		memmove(&sorted[at + 1], &sorted[at], (i - at) * sizeof(struct place *));
		sorted[at] = &view->items[i];
	}
	for (size_t i = 0; i < count; i++)
		items[i] = *sorted[i];
	free(view->items);
	view->items = items;
	view->capacity = count + 1;
	keep_last_of_each(view);
}

/* Where a symbolic link at @link leads, with @rest behind it: absolute, without "." and "..". */
static const char *follow(struct plan_build *build, const char *link, const char *text, const char *rest)
{
	const char *slash = strrchr(link, '/');
	const char *joined = text[0] == '/' ? plan_format(build, "%s%s", text, rest)
					    : plan_format(build, "%.*s/%s%s", (int)(slash - link), link, text, rest);
	AUTO_TEXT clean = {0};

	while (*joined) {
		size_t len = strcspn(joined, "/");

		if (len == 2 && !strncmp(joined, "..", 2)) {
			while (clean.len && clean.data[clean.len - 1] != '/')
				clean.len--;
			clean.len -= clean.len > 0;
			if (clean.data)
				clean.data[clean.len] = '\0';
		} else if (len && !(len == 1 && joined[0] == '.')) {
			text_append_char(&clean, '/');
			text_append(&clean, joined, len);
		}
		joined += len + (joined[len] == '/');
	}
	build->has_failed |= text_failed(&clean);
	return plan_string(build, clean.len ? clean.data : "/");
}

/* @path with every link of the view that it leads through replaced by where that leads. */
static const char *through_links(struct plan_build *build, const struct view *view, const char *path)
{
	for (int turns = 0; turns < LINK_TURNS_MAX; turns++) {
		const char *before = path;

		for (size_t i = 0; i < view->count && path == before; i++) {
			const struct place *link = &view->items[i];

			if (link->kind == PLACE_SYMLINK && path[1] == link->target[1] &&
			    path_is_within(path, link->target) && path[strlen(link->target)] == '/')
				path = follow(build, link->target, link->source, path + strlen(link->target));
		}
		if (path == before)
			break;
	}
	return path;
}

/* A destination that leads through one of the system's own links (/bin/x) means the place behind the link. */
static void resolve_links(struct plan_build *build, struct view *view)
{
	for (size_t i = 0; i < view->count; i++)
		view->items[i].target = through_links(build, view, view->items[i].target);
}

/* Where the host's @path shows through @place, if nothing else stands there; NULL: it does not. */
static const char *seen_through(struct plan_build *build, const struct view *view, const struct place *place,
				const char *path)
{
	const char *target;

	if (place->kind != PLACE_BIND || !path_is_within(path, place->source) || !strcmp(path, place->source))
		return NULL;
	target = plan_format(build, "%s%s", place->target,
			     path + (strcmp(place->source, "/") ? strlen(place->source) : 0));
	return innermost(view, target) == place ? target : NULL;
}

/* Protected files are protected under every name that a writable mount gives them. */
static void add_protection(struct plan_build *build, struct view *view)
{
	const struct host_path_list *protected = &build->host->workdir.protected;
	size_t count = view->count;

	if (!build->policy->has_protect || build->has_private_workdir)
		return;
	for (size_t i = 0; i < protected->count; i++) {
		const struct host_path *path = &protected->items[i];

		/* Nothing can be mounted on a symbolic link; if the command replaces it, the result says so. */
		if (path->kind != PATH_DIRECTORY && path->kind != PATH_FILE)
			continue;
		for (size_t j = 0; j < view->count && !build->has_failed; j++) {
			bool is_writable = !(view->items[j].flags & STEP_READ_ONLY);
			const char *target =
				is_writable ? seen_through(build, view, &view->items[j], path->path) : NULL;

			if (target)
				add_bind(build, view, path, target, STEP_READ_ONLY | STEP_ID_MAPPED)->is_guard = true;
		}
	}
	if (view->count != count)
		sort(build, view);
}

/*
 * A file that is named writable, in a directory that is writable and shows it already, needs no mount; and as a mount
 * point it could not be replaced, which is how git config and editors save. Naming it has lifted its protection.
 */
static void drop_idle_files(struct plan_build *build, struct view *view)
{
	for (size_t i = 0; i < view->count; i++) {
		struct place *place = &view->items[i];
		const struct place *around = view_around(view, i);
		bool is_writable_file =
			place->kind == PLACE_BIND && place->flags & STEP_ON_FILE && !(place->flags & STEP_READ_ONLY);

		if (is_writable_file && around && around->kind == PLACE_BIND && !(around->flags & STEP_READ_ONLY))
			place->is_dropped = !strcmp(
				plan_format(build, "%s%s", around->source, place->target + strlen(around->target)),
				place->source);
	}
	remove_dropped(view);
}

/* A symbolic link, or a made-up file, that lies in a host directory is that directory's own affair. */
static void drop_inner_links(struct view *view)
{
	for (size_t i = 0; i < view->count; i++) {
		struct place *place = &view->items[i];
		const struct place *around = view_around(view, i);

		place->is_dropped = (place->kind == PLACE_SYMLINK || place->kind == PLACE_FILE) && around &&
				    around->kind == PLACE_BIND;
	}
	remove_dropped(view);
}

static void remove_within(struct view *view, const char *path)
{
	size_t kept = 0;

	for (size_t i = 0; i < view->count; i++)
		if (!path_is_within(view->items[i].target, path))
			view->items[kept++] = view->items[i];
	view->count = kept;
}

/* Nothing shows at the place any more; it stays a place, so that what it stood on does not show either. */
static void blank(struct place *place)
{
	place->kind = PLACE_HIDDEN;
	place->source = NULL;
	place->flags = place->on_client == PATH_DIRECTORY ? 0 : STEP_ON_FILE;
	place->is_guard = false;
}

/* What is at @path or in it, and wherever the host's object @hidden or part of it was mounted. True: there was something. */
static bool blank_places(struct view *view, const char *path, const struct host_path *hidden)
{
	size_t kept = 0;
	bool has_found = false;

	for (size_t i = 0; i < view->count; i++) {
		struct place place = view->items[i];
		bool shows_hidden = place.kind == PLACE_BIND && hidden->kind != PATH_ABSENT &&
				    path_is_within(place.source, hidden->path);

		has_found |= shows_hidden || path_is_within(place.target, path);
		if (path_is_within(place.target, path) &&
		    (strcmp(place.target, path) != 0 || place.kind == PLACE_SYMLINK))
			continue;
		if (shows_hidden || !strcmp(place.target, path))
			blank(&place);
		view->items[kept++] = place;
	}
	view->count = kept;
	return has_found;
}

/* Wherever the host's object @hidden can be reached through a host directory of the view: put nothing there. */
static void cover(struct plan_build *build, struct view *view, const struct host_path *hidden)
{
	struct string_list targets = {0};

	for (size_t i = 0; i < view->count; i++) {
		const char *target = seen_through(build, view, &view->items[i], hidden->path);

		if (target && string_list_add(&targets, target) < 0)
			build->has_failed = true;
	}
	for (size_t i = 0; i < targets.count; i++) {
		struct place *place;

		remove_within(view, targets.items[i]);
		place = add(build, view, PLACE_HIDDEN, targets.items[i]);
		set_on_host(place, hidden);
		place->flags = hidden->kind == PATH_DIRECTORY ? 0 : STEP_ON_FILE;
	}
	string_list_done(&targets);
}

/*
 * A path is hidden by what it is, not only by its name: the host's object behind it is shown nowhere in the jar, under
 * whatever name a mount elsewhere or a symbolic link would give it.
 */
static int hide(struct plan_build *build, struct view *view)
{
	const struct string_list *paths = &build->policy->hide;
	const struct host_path *hidden = build->host->hidden.items;

	for (size_t i = 0; i < paths->count; i++) {
		bool has_found;

		/* What cannot be looked at may become visible: the command may be able to change the modes above it. */
		if (hidden[i].kind == PATH_ABSENT && hidden[i].error && hidden[i].error != ENOENT &&
		    hidden[i].error != ENOTDIR)
			return error_set(build->error, STAGE_FILES, hidden[i].error, "cannot hide '%s': %s",
					 paths->items[i], strerror(hidden[i].error));
		has_found = blank_places(view, through_links(build, view, paths->items[i]), &hidden[i]);
		has_found |= blank_places(view, paths->items[i], &hidden[i]);
		if (hidden[i].kind == PATH_ABSENT && !has_found)
			plan_note(build, "hide",
				  plan_format(build,
					      "'%s' is not there: nothing is hidden, and what appears there is visible",
					      paths->items[i]),
				  "check the path; what was moved has to be hidden under its new name");
	}
	for (size_t i = 0; i < paths->count && !build->has_failed; i++)
		if (hidden[i].kind != PATH_ABSENT)
			cover(build, view, &hidden[i]);
	return 0;
}

static int check_workdir_is_there(struct plan_build *build, const struct view *view)
{
	const struct place *around = innermost(view, build->plan->core.workdir);

	if (build->plan->rung != RUNG_NAMESPACE || (around && around->kind != PLACE_HIDDEN))
		return 0;
	error_set(build->error, STAGE_PLAN, EINVAL, "the work directory '%s' is hidden", build->plan->core.workdir);
	return error_hint(build->error, "hide what is in it instead, or use -C none for a private one");
}

/* Outside of host directories there is nothing to hide, and in what is hidden nothing can stand. */
static void drop_idle_hidings(struct view *view)
{
	for (size_t i = 0; i < view->count; i++) {
		struct place *place = &view->items[i];
		const struct place *around = view_around(view, i);

		/* What was dropped around it is not there either. */
		while (around && around->is_dropped)
			around = view_around(view, (size_t)(around - view->items));
		if (place->kind == PLACE_HIDDEN)
			place->is_dropped = !around || around->kind != PLACE_BIND;
		else
			place->is_dropped = around && around->kind == PLACE_HIDDEN;
	}
	remove_dropped(view);
}

static int check_places(struct plan_build *build, struct view *view)
{
	for (size_t i = 0; i < view->count; i++) {
		struct place *place = &view->items[i];
		const struct place *around = view_around(view, i);
		bool wants_file = place->flags & STEP_ON_FILE;

		place->is_in_host = around && around->kind == PLACE_BIND;
		if (!place->is_in_host)
			continue;
		if (place->on_client == PATH_ABSENT || place->on_client == PATH_SYMLINK ||
		    wants_file == (place->on_client == PATH_DIRECTORY)) {
			error_set(build->error, STAGE_PLAN, ENOENT,
				  "nothing can be placed at '%s': there is no %s of that name in '%s'", place->target,
				  wants_file ? "file" : "directory", around->target);
			return error_hint(
				build->error,
				"Belljar creates nothing on the host; make it first, or choose another place");
		}
	}
	return 0;
}

int view_collect(struct plan_build *build, struct view *view)
{
	int rc = view_check_ways(build);

	if (rc < 0)
		return rc;
	add_devices(build, view);
	add_list(build, view, &build->host->system, STEP_READ_ONLY);
	add_etc(build, view);
	add_toolchains(build, view);
	add_workdir(build, view);
	add_private_places(build, view);
	if (build->plan->rung == RUNG_NAMESPACE)
		add_gitconfig(build, view);
	rc = add_named(build, view);
	if (rc < 0)
		return rc;
	add_home(build, view);
	resolve_links(build, view);
	if (build->has_failed)
		return 0;
	sort(build, view);
	drop_inner_links(view);
	add_protection(build, view);
	drop_idle_files(build, view);
	rc = hide(build, view);
	if (rc < 0 || build->has_failed)
		return rc;
	if (build->policy->hide.count) {
		sort(build, view);
		drop_idle_hidings(view);
	}
	rc = check_workdir_is_there(build, view);
	return rc < 0 ? rc : check_places(build, view);
}

void view_done(struct view *view)
{
	free(view->items);
	*view = (struct view){0};
}
