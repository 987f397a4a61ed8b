/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan_view_collect.c - first stage of a view: all that the policy and the host name, in layers
 *
 * A layer adds its places and looks at no other layer's, so that each reads by itself: devices, the system, /etc,
 * toolchains, the work directory, private places, what the user named. Of two places at one target the later layer's wins
 * (plan_view_order.c), so the calls in plan_view_collect() stand in the order of who knows best: what the user names comes
 * after what Belljar shows by itself, and protected files come before it, because naming one lifts its protection.
 * The home comes last, since it is made only where nothing else holds it.
 */
#include "plan/plan_view_stages.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define PRIVATE_WORKDIR "/workspace"
/* All jars of the host have 3072 between them, by default; what a user has outside of jars is counted apart. */
#define TERMINALS_MAX 128

/* A host path at its own place, whether it is a symbolic link or the thing itself. */
static void add_same(struct plan_build *build, struct view *view, const struct host_path *from, unsigned flags)
{
	if (from->kind == PATH_SYMLINK)
		plan_view_add(build, view, PLACE_SYMLINK, from->path)->source = plan_string(build, from->target);
	else if (from->kind != PATH_OTHER)
		plan_view_add_bind(build, view, from, from->path, flags);
}

static void add_list(struct plan_build *build, struct view *view, const struct host_path_list *list, unsigned flags)
{
	for (size_t i = 0; i < list->count; i++)
		add_same(build, view, &list->items[i], flags);
}

/* A made-up file in its own read-only mount: it can be neither changed nor replaced. */
static struct place *add_file(struct plan_build *build, struct view *view, const char *path, const char *content)
{
	struct place *place = plan_view_add(build, view, PLACE_FILE, path);

	place->source = content;
	place->flags = STEP_ON_FILE | STEP_READ_ONLY;
	place->mode = 0444;
	return place;
}

/* --- the layers, in their order ----------------------------------------------------------------------------- */

static void add_devices(struct plan_build *build, struct view *view)
{
	static const char *const links[][2] = {{"/dev/fd", "/proc/self/fd"},
					       {"/dev/stdin", "/proc/self/fd/0"},
					       {"/dev/stdout", "/proc/self/fd/1"},
					       {"/dev/stderr", "/proc/self/fd/2"},
					       {"/dev/ptmx", "pts/ptmx"}};
	struct place *place;

	for (size_t i = 0; i < build->host->devices.count; i++)
		plan_view_add_bind(build, view, &build->host->devices.items[i], build->host->devices.items[i].path,
				   STEP_DEVICE | STEP_NO_EXEC);
	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		plan_view_add(build, view, PLACE_SYMLINK, links[i][0])->source = links[i][1];
	place = plan_view_add(build, view, PLACE_DEVPTS, "/dev/pts");
	place->on_host = PATH_DIRECTORY;
	place->limit = TERMINALS_MAX;
	plan_view_add(build, view, PLACE_PROC, "/proc")->on_host = PATH_DIRECTORY;
}

/*
 * A mount costs more than copying a small file. Only what everybody may read is copied: who makes the jar may read more than the
 * command.
 */
static bool may_be_copied(const struct plan_build *build, const struct host_path *path)
{
	return path->kind == PATH_FILE && path->mode & S_IROTH && path->size_bytes <= JAR_COPY_BYTES_MAX &&
	       !build->host->has_unsteady_etc;
}

/* Other addresses end like it. */
static bool names_loopback(const char *hosts)
{
	for (const char *at = hosts; (at = strstr(at, "::1")); at += 3)
		if ((at == hosts || at[-1] == '\n') && (at[3] == ' ' || at[3] == '\t'))
			return true;
	return false;
}

/* With a network of its own the jar has ::1, whether or not the host has; without a name, looking it up would take a name server. */
static bool lacks_loopback(const struct plan_build *build)
{
	return build->plan->rung == RUNG_NAMESPACE && build->policy->net != NET_HOST && build->host->hosts &&
	       !names_loopback(build->host->hosts);
}

/* With a gate names are its business: of the host's list only what is about the jar's own loopback is left. */
static void add_gate_files(struct plan_build *build, struct view *view)
{
	const char *at = build->host->hosts ? build->host->hosts : "";
	AUTO_TEXT hosts = {0};

	text_append_string(&hosts, "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n");
	while (*at) {
		size_t len = strcspn(at, "\n");

		if (!strncmp(at, "127.", 4) || (!strncmp(at, "::1", 3) && strchr(" \t", at[3])))
			text_append_format(&hosts, "%.*s\n", (int)len, at);
		at += len + (at[len] == '\n');
	}
	build->has_failed |= text_failed(&hosts);
	add_file(build, view, "/etc/hosts", plan_string(build, text_string(&hosts)));
	add_file(build, view, "/etc/resolv.conf", "nameserver 198.18.0.1\noptions timeout:2 attempts:2\n");
}

static bool is_gate_file(const struct plan_build *build, const char *path)
{
	return build->policy->net == NET_GATE && (!strcmp(path, "/etc/hosts") || !strcmp(path, "/etc/resolv.conf"));
}

/* Only root can put a link there: those on the way are followed. */
static void add_etc(struct plan_build *build, struct view *view)
{
	const struct host_path_list *list = &build->host->etc;

	for (size_t i = 0; i < list->count; i++) {
		const struct host_path *path = &list->items[i];

		if (is_gate_file(build, path->path))
			continue;
		if (path->kind == PATH_FILE && !strcmp(path->path, "/etc/hosts") && lacks_loopback(build)) {
			add_file(build, view, path->path,
				 plan_format(build, "%s\n::1\tlocalhost ip6-localhost ip6-loopback\n",
					     build->host->hosts));
		} else if (may_be_copied(build, path)) {
			struct place *place =
				plan_view_add_bind(build, view, path, path->path, STEP_READ_ONLY | STEP_FOLLOW);

			place->is_copied = true;
			place->mode = path->mode & 0555;
			place->changed_ns = path->changed_ns;
			place->size_bytes = path->size_bytes;
		} else {
			add_same(build, view, path, STEP_READ_ONLY | STEP_FOLLOW);
		}
	}
	if (build->policy->has_system && build->policy->net == NET_GATE)
		add_gate_files(build, view);
	if (build->policy->has_system && build->policy->hostname)
		add_file(build, view, "/etc/hostname", plan_format(build, "%s\n", build->policy->hostname))->is_own =
			true;
}

/* The host's lists of authorities with one more, where programs look for them. In a plan that is only shown they are not made. */
static void add_trust(struct plan_build *build, struct view *view)
{
	const struct host_trust *trust = &build->host->trust;
	size_t count = build->plan->gate.trust_path ? trust->paths.count + (trust->java_path ? 1 : 0) : 0;

	for (size_t i = 0; i < count; i++) {
		bool is_java = i == trust->paths.count;
		const struct text *content = is_java ? &trust->java : &trust->bundle;
		const char *path = plan_string(build, is_java ? trust->java_path : trust->paths.items[i]);
		struct place *place;

		if (is_java && trust->bundle.len && !content->len) {
			plan_note(
				build, "network",
				"Belljar cannot add to Java's list of authorities, because it does not know the format: Java programs will not trust inspected hosts",
				NULL);
			continue;
		}
		place = add_file(build, view, path, "the host's list of authorities, and the jar's own\n");
		place->content = content->len ? content : NULL;
		place->is_over = place->is_own = true;
		place->on_host = PATH_FILE;
	}
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
		plan_view_add_bind(build, view, &workdir->git, workdir->git.path, flags);
	/* The other worktrees' parts are protected, this one's own is not. */
	if (workdir->git_own.kind == PATH_DIRECTORY)
		plan_view_add_bind(build, view, &workdir->git_own, workdir->git_own.path, flags);
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
		plan_view_add(build, view, PLACE_PRIVATE, PRIVATE_WORKDIR)->mode = 0755;
		build->plan->core.workdir = PRIVATE_WORKDIR;
		return;
	}
	if (workdir->refused_git.path)
		plan_note(
			build, "git",
			plan_format(build, "Belljar does not use '%s' as the repository of the work directory: %s",
				    workdir->refused_git.path, workdir->refused_why),
			"git works in the jar only with a repository that the caller owns; --ro and --rw show others");
	is_read_only = has_read_only_workdir(build);
	build->plan->core.workdir = plan_string(build, workdir->path.path);
	if (workdir->top.kind == PATH_DIRECTORY)
		plan_view_add_bind(build, view, &workdir->top, workdir->top.path, STEP_READ_ONLY | STEP_ID_MAPPED);
	/* A repository that lies elsewhere has no layer: what the command changes there would be the host's. */
	add_git(build, view, is_read_only || build->host->has_workdir_layer);
	if (build->host->has_workdir_layer && !is_read_only)
		build->plan->core.workdir = plan_view_add_layer(build, view, &build->host->layers.items[0]);
	else
		plan_view_add_bind(build, view, &workdir->path, workdir->path.path,
				   STEP_ID_MAPPED | (is_read_only ? STEP_READ_ONLY : 0));
	/* What stands elsewhere, since there are no mounts, has nothing on it either. */
	if (!build->policy->has_protect || is_read_only || strcmp(build->plan->core.workdir, workdir->path.path) != 0)
		return;
	for (size_t i = 0; i < workdir->protected.count; i++) {
		const struct host_path *protected = &workdir->protected.items[i];

		/* Nothing can be mounted on a symbolic link; if the command replaces it, the result says so. */
		if (protected->kind == PATH_DIRECTORY || protected->kind == PATH_FILE)
			plan_view_add_bind(build, view, protected, protected->path, STEP_READ_ONLY | STEP_ID_MAPPED)
				->is_protected = true;
	}
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
		const struct host_path *on_host = &build->host->tmpfs_places.items[i];
		/* Behind a symbolic link of the host, the place is where the link leads, and the link stays. */
		bool is_link = on_host->kind == PATH_DIRECTORY && strcmp(on_host->path, tmpfs->path) != 0 &&
			       !is_moved(policy, tmpfs->path);
		struct place *place =
			plan_view_add(build, view, tmpfs->size_bytes == LIMIT_NONE ? PLACE_PRIVATE : PLACE_TMPFS,
				      is_link ? on_host->path : tmpfs->path);

		place->mode = private_mode(build, tmpfs->path);
		if (is_link && place->mode == 0755)
			place->mode = private_mode(build, on_host->path);
		place->limit = tmpfs->size_bytes;
		plan_view_set_on_host(place, on_host);
		if (is_link)
			plan_view_add(build, view, PLACE_SYMLINK, tmpfs->path)->source =
				plan_string(build, on_host->path);
		has_run |= !strcmp(tmpfs->path, "/run");
	}
	if (has_run)
		plan_view_add(build, view, PLACE_SYMLINK, "/var/run")->source = "/run";
}

static void add_gitconfig(struct plan_build *build, struct view *view)
{
	const char *path = strcmp(build->host->home, "/") ? build->host->home : "";

	add_file(build, view, plan_format(build, "%s/.gitconfig", path), plan_gitconfig(build));
}

static bool has_parent_component(const char *path)
{
	for (const char *at = strstr(path, "/.."); at; at = strstr(at + 1, "/.."))
		if (at[3] == '/' || at[3] == '\0')
			return true;
	return false;
}

static int check_named(struct plan_build *build, const struct policy_mount *mount, const struct host_path *source)
{
	int error = source->error ? source->error : ENOENT;

	if (source->kind == PATH_ABSENT) {
		error_set(build->error, STAGE_FILES, error, "cannot show '%s' in the jar: %s", mount->path,
			  strerror(error));
		return error_hint(build->error,
				  "check the path; in a policy file, \"optional\": true skips what is not there");
	}
	if (source->kind == PATH_OTHER)
		return error_set(build->error, STAGE_FILES, EINVAL,
				 "cannot show '%s' in the jar: it is neither a file nor a directory", mount->path);
	return 0;
}

static int add_named_mount(struct plan_build *build, struct view *view, const struct policy_mount *mount,
			   const struct host_path *source, const struct host_path *on_host)
{
	bool has_own_place = strcmp(mount->path, mount->dest) != 0;
	const char *target = has_own_place ? mount->dest : source->path;
	struct place *place;

	if (build->plan->rung == RUNG_NAMESPACE && !strcmp(target, "/")) {
		error_set(build->error, STAGE_PLAN, EINVAL, "cannot show '%s' at '/': a jar has a root of its own",
			  mount->path);
		return error_hint(build->error,
				  "name the directories that the command needs, or another place: %s:/host",
				  mount->path);
	}
	place = plan_view_add_bind(build, view, source, target,
				   STEP_ID_MAPPED | (mount->access == MOUNT_RO ? STEP_READ_ONLY : 0));
	if (has_own_place)
		plan_view_set_on_host(place, on_host);
	else if (strcmp(source->path, mount->path) != 0 && !has_parent_component(mount->path))
		plan_view_add(build, view, PLACE_SYMLINK, mount->path)->source = plan_string(build, source->path);
	return 0;
}

static bool has_layer(const struct plan_build *build, const struct host_path *path)
{
	for (size_t i = 0; i < build->host->layers.count; i++)
		if (!strcmp(build->host->layers.items[i].path.path, path->path))
			return true;
	return false;
}

static int add_named(struct plan_build *build, struct view *view)
{
	const struct policy *policy = build->policy;
	int rc = 0;

	for (size_t i = 0; i < policy->mounts.count && rc == 0; i++) {
		const struct policy_mount *mount = &policy->mounts.items[i];
		const struct host_path *source = &build->host->mounts.items[i];

		if (source->kind == PATH_ABSENT && mount->is_optional)
			continue;
		rc = check_named(build, mount, source);
		/* Who says both wants to write there, and to decide later. */
		if (rc == 0 && mount->access == MOUNT_RW && !strcmp(mount->path, mount->dest) &&
		    has_layer(build, source))
			continue;
		if (rc == 0)
			rc = add_named_mount(build, view, mount, source, &build->host->places.items[i]);
	}
	return rc;
}

/* Other directories under layers. */
static void add_cow_directories(struct plan_build *build, struct view *view)
{
	for (size_t i = build->host->has_workdir_layer; i < build->host->layers.count; i++)
		plan_view_add_layer(build, view, &build->host->layers.items[i]);
}

/* HOME points somewhere in every jar, also where it is a made-up one or the policy has no private home. */
static void add_home(struct plan_build *build, struct view *view)
{
	const char *home = build->host->home;

	for (size_t i = 0; i < view->count; i++)
		if (view->items[i].kind != PLACE_SYMLINK && path_is_within(home, view->items[i].target))
			return;
	plan_view_add(build, view, PLACE_PRIVATE, home)->mode = 0700;
}

int plan_view_collect(struct plan_build *build, struct view *view)
{
	int rc;

	add_devices(build, view);
	add_list(build, view, &build->host->system, STEP_READ_ONLY);
	add_etc(build, view);
	add_trust(build, view);
	add_toolchains(build, view);
	add_workdir(build, view);
	add_private_places(build, view);
	if (build->plan->rung == RUNG_NAMESPACE)
		add_gitconfig(build, view);
	add_cow_directories(build, view);
	rc = add_named(build, view);
	if (rc == 0)
		add_home(build, view);
	return rc;
}
